"""What later tests find of earlier ones: names, objects and state, whatever failed in between."""

from dataclasses import replace
from typing import Any

import pytest

from autograder.judge import rehearsal
from tests.judge.small_course import HIDDEN_PART, heard_of

MEAN = ("mean", "def mean(xs):\n    return sum(xs) / len(xs)")
FLOORS = "def mean(xs):\n    return sum(xs) // len(xs)"
AGES = "ages = [10, 20]\nassert mean(ages) == 15" + HIDDEN_PART.format("assert mean([7.5]) == 7.5")
ENDS = ("raise SystemExit", "import os; os._exit(1)", "while True: pass")


@pytest.mark.parametrize("between", [(), [("look", "k = 3")]])
def test_names_of_an_earlier_test_are_there_when_a_test_is_run_again(
    task: Any, between: Any
) -> None:
    made = task(
        [MEAN, ("t_ages", AGES, 1), *between, ("t_more", "assert mean(ages + [30]) == 20", 2)]
    )
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    assert made.scores() == {"t_ages": 1, "t_more": 2}
    assert made.scores(mean=FLOORS) == {"t_ages": 0, "t_more": 2}


def test_a_test_of_two_answers_finds_what_the_test_of_one_has_made(task: Any) -> None:
    parts = [("small", "def small(xs):\n    return min(xs)")]
    parts += [("large", "def large(xs):\n    return max(xs)")]
    tests = [("t_small", "nums = [3, 1]\nassert small(nums) == 1", 1)]
    made = task([*parts, *tests, ("t_large", "assert large(nums) == 3", 2)], seconds=1.0)
    for end in ("return 7", *ENDS):
        ended = made.scores(small=f"def small(xs):\n    {end}")
        # what ends the process makes nothing for the tests of its own question
        assert ended == {"t_small": 0, "t_large": 0 if end in ENDS[1:] else 2}, end
    made.assignment = replace(made.assignment, stand_in=False)
    assert made.scores(small="def small(xs):\n    return 7") == {"t_small": 0, "t_large": 2}
    ended = made.scores(small="import os\ndef small(xs):\n    os._exit(1)")
    assert ended == {"t_small": 0, "t_large": 0}  # as in a notebook: nobody has made them


STOCK = "stock = {}\ndef put(name, n):\n    stock[name] = stock.get(name, 0) + n"
STATE = [
    ("put", STOCK),
    ("t_put", "put('a', 1)\nput('b', 2)", 1),
    ("look", "seen = 1"),
    ("half", "def half(x):\n    return x / 2"),
    ("t_half", "assert half(3) == 1.5", 2),
    ("worth", "def worth():\n    return sum(stock.values())"),
    ("t_worth", "assert worth() == 3", 4),
]


@pytest.mark.parametrize("stand_in", [True, False])
def test_state_goes_on_whatever_fails_in_between(task: Any, stand_in: bool) -> None:
    made = task(STATE)
    made.assignment = replace(made.assignment, stand_in=stand_in)
    assert made.scores() == {"t_put": 1, "t_half": 2, "t_worth": 4}
    for wrong in ("def half(x):\n    return 0", "", "raise NotImplementedError"):
        assert made.scores(half=wrong) == {"t_put": 1, "t_half": 0, "t_worth": 4}
    right = "def half(x):\n    return x / 2\nprint(half('a'))"
    assert made.scores(half=right, look="print(nothing)") == {"t_put": 1, "t_half": 2, "t_worth": 4}


DOG = "class Dog:\n    def __init__(self, name): self.name = name\n"
DOG += "    def speak(self): return self.name"
SHARED = [
    ("dog", DOG),
    ("t_dog", "rex = Dog('Rex')\nassert rex.name == 'Rex'", 1),
    ("look", "seen = 1"),
    ("half", "def half(x):\n    return x / 2"),
    ("t_half", "assert half(3) == 1.5", 2),
    ("call", "def call(dog):\n    return dog.speak()"),
    ("t_call", "assert call(rex) == 'Rex'", 4),
]


@pytest.mark.parametrize("stand_in", [True, False])
def test_an_object_that_tests_share_outlives_the_process_it_was_made_in(
    task: Any, stand_in: bool
) -> None:
    made = task(SHARED, seconds=1.0)
    made.assignment = replace(made.assignment, stand_in=stand_in)
    assert made.scores() == {"t_dog": 1, "t_half": 2, "t_call": 4}
    assert made.scores(look="print(nothing)") == {"t_dog": 1, "t_half": 2, "t_call": 4}
    for end in ENDS[1:]:
        ended = made.scores(half=f"def half(x):\n    {end}")
        assert ended == {"t_dog": 1, "t_half": 0, "t_call": 4}, end
    assert made.scores(dog="") == {"t_dog": 0, "t_half": 2, "t_call": 4 if stand_in else 0}


def test_a_name_is_the_answers_for_tests_after_it(task: Any) -> None:
    first = [("double", "def double(x):\n    return 2 * x")]
    test = "def mean(xs): return 3\nassert double(mean([])) == 6"
    made = task([*first, ("t_double", test, 1), MEAN, ("t_mean", "assert mean([1, 5]) == 3", 2)])
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    assert made.scores() == {"t_double": 1, "t_mean": 2}
    assert made.scores(mean="def mean(xs):\n    return 0") == {"t_double": 1, "t_mean": 0}


def test_ordinary_cells_may_build_on_each_other(task: Any) -> None:
    parts = [("look", "base = 2"), ("data", "rows = [base, 4]"), ("star", "more = rows + [6]")]
    made = task([*parts, MEAN, ("t_mean", "assert mean(more) == 4", 1)])
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    assert made.scores() == {"t_mean": 1}


CART = [
    ("table", "class Cart:\n    def __init__(self): self.items = []\ncart = Cart()"),
    ("put", "def put(cart, x):\n    cart.items.append(x)"),
    ("t_put", "put(cart, 3)\nassert cart.items == [3]", 1),
    ("worth", "def worth(cart):\n    return sum(cart.items)"),
    ("t_worth", "put(cart, 5)\nassert worth(cart) == 8", 2),
]


def test_what_answers_did_to_the_instructors_values_stays_where_nothing_stands_in(
    task: Any,
) -> None:
    made = task(CART)
    made.assignment = replace(made.assignment, stand_in=False)
    assert made.scores() == {"t_put": 1, "t_worth": 2}
    assert made.scores(worth="def worth(cart):\n    return 0") == {"t_put": 1, "t_worth": 0}
    wrong = "def put(cart, x):\n    cart.items.append(2 * x)"
    assert made.scores(put=wrong) == {"t_put": 0, "t_worth": 0}


def test_imports_of_a_reference_are_made_after_a_process_was_lost(task: Any) -> None:
    parts = [("half", "def half(x):\n    return x / 2"), ("t_half", "assert half(3) == 1.5", 1)]
    root = "import cmath\ndef root(x):\n    return cmath.sqrt(x)"
    parts += [("root", root), ("t_root", "assert root(-1) == cmath.sqrt(-1)", 2)]
    made = task(parts, seconds=1.0)
    for stand_in in (True, False):
        made.assignment = replace(made.assignment, stand_in=stand_in)
        for end in ENDS:
            assert made.scores(half=f"def half(x):\n    {end}") == {"t_half": 0, "t_root": 2}


def test_the_instructors_own_names_outlive_a_process(task: Any) -> None:
    parts = [("table", "points = 0"), ("half", "def half(x):\n    return x / 2")]
    parts += [("t_half", "points = points + 1\nassert half(3) == 1.5", 1)]
    parts += [("twice", "def twice(x):\n    return 2 * x")]
    parts += [("t_twice", "points = points + 1\nassert twice(points) == 2 * points", 2)]
    made = task(parts, seconds=1.0)
    for end in ENDS:
        assert made.scores(half=f"def half(x):\n    {end}") == {"t_half": 0, "t_twice": 2}


SECRET = "seen = []\ndef keep(xs):\n    seen.append(xs[-1])\n    return xs"
KEEPS = "data = [1, 2]\nassert keep(data) == data" + HIDDEN_PART.format("assert keep([90717])")


@pytest.mark.parametrize("stand_in", [True, False])
def test_a_hidden_part_that_runs_again_for_its_names_is_told_to_nobody(
    task: Any, stand_in: bool
) -> None:
    parts = [("keep", SECRET), ("t_keep", KEEPS, 1), ("look", "k = 1")]
    parts += [("last", "def last(xs):\n    return xs[-1]"), ("t_last", "assert last(data) == 2", 2)]
    made = task(parts)
    made.assignment = replace(made.assignment, stand_in=stand_in)
    tells = "def last(xs):\n    raise ValueError(f'saw {seen}')"
    result = made.grade(look="import os\nos._exit(3)", last=tells)
    assert "90717" not in repr(result)


def test_what_ends_its_process_earns_nothing_by_names_of_the_reference(task: Any) -> None:
    tests = [("t_one", "made = nine()", 1), ("t_two", "assert made == 9", 3)]
    made = task([("nine", "def nine():\n    return 9"), *tests], seconds=1.0)
    assert made.scores() == {"t_one": 1, "t_two": 3}
    for end in ENDS[1:]:
        assert made.scores(nine=f"def nine():\n    {end}") == {"t_one": 0, "t_two": 0}


STACK = """
class Stack:
    def __init__(self): self.items = []
    def push(self, x): self.items.append(x)
    def pop(self): return self.items.pop()
"""
PUSHES = [("t_new", "s = Stack()\nassert s.items == []", 1), ("t_push", "s.push(5)", 1)]
POPS = ("t_pop", "assert s.pop() == 5", 2)
FULL = {"t_new": 1, "t_push": 1, "t_pop": 2}


def test_text_between_the_tests_of_a_question_does_not_part_them(task: Any) -> None:
    made = task([("stack", STACK), *PUSHES, ("words", "Now pop it."), POPS])
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    assert made.scores() == FULL


@pytest.mark.parametrize("own", ["# looks good", "Stack()", "1 / 0", "help = 1"])
def test_a_cell_of_ones_own_between_the_tests_of_a_question_does_not_part_them(
    task: Any, own: str
) -> None:
    made = task([MEAN, ("t_mean", "assert mean([1]) == 1", 1), ("stack", STACK), *PUSHES, POPS])
    made.added = {"t_push": own}
    assert made.scores() == FULL | {"t_mean": 1}
    broken = STACK.replace("self.items.pop()", "7")
    assert made.scores(stack=broken) == FULL | {"t_mean": 1, "t_pop": 0}


KEPT = "def add(x, acc=[]):\n    acc.append(x)\n    return acc"
ADD = ("add", "def add(x, acc=None):\n    return [*(acc or []), x]")
ADDS = "assert callable(add)" + HIDDEN_PART.format("assert add(2) == [2]")


@pytest.mark.parametrize("stand_in", [True, False])
@pytest.mark.parametrize("own", ["", "pass", "print('hello')"])
def test_what_an_answer_keeps_between_the_tests_of_a_question_is_found(
    task: Any, own: str, stand_in: bool
) -> None:
    between = [("words", "And once more.")]
    first = ("t_first", "assert add(1)[0] == 1", 1)
    made = task(
        [MEAN, ("t_mean", "assert mean([1]) == 1", 1), ADD, first, *between, ("t", ADDS, 1)]
    )
    made.assignment = replace(made.assignment, stand_in=stand_in)
    made.added = {"t_mean": own, "t_first": own} if own else {}
    assert made.scores() == {"t_mean": 1, "t_first": 1, "t": 1}
    assert made.scores(add=KEPT) == {"t_mean": 1, "t_first": 1, "t": 0}
    # another answer that is wrong does not help this one
    assert made.scores(add=KEPT, mean=FLOORS)["t"] == 0


def test_values_that_tests_share_are_not_changed_twice(task: Any) -> None:
    sorts = "def largest(xs):\n    xs.sort()\n    return xs[-1]"
    counted = "cnt += 1\nassert largest([1, 9, 3]) == 9 and cnt == 2"
    parts = [MEAN, ("t_mean", "cnt = 0\nassert mean([1]) == 1\ncnt += 1", 1)]
    made = task([*parts, ("largest", "def largest(xs):\n    return max(xs)"), ("t", counted, 1)])
    assert made.scores(largest=sorts) == {"t_mean": 1, "t": 1}


MAKE = """
class Plain:
    def __init__(self, v): self.v = v
def make(what):
    return Plain(3) if what == "obj" else 2
"""


def test_what_is_made_again_for_a_later_test_is_asked_as_it_was(task: Any) -> None:
    parts = [("make", MAKE), ("t_make", "p = make('obj')\nassert p.v == 3", 1)]
    parts += [("ends", "def ends():\n    return 1"), ("t_ends", "assert ends() == 1", 1)]
    parts += [
        ("last", "def last(x):\n    return x"),
        ("t_plain", "assert last(make('val')) == 2", 1),
    ]
    made = task([*parts, ("t_last", "assert last(p.v - 1) == 2", 1)])
    made.known = heard_of(made)
    gone = "import os\ndef ends():\n    os._exit(1)"
    assert made.scores(ends=gone) == {"t_make": 1, "t_ends": 0, "t_plain": 1, "t_last": 1}


def test_a_cell_of_the_instructors_between_the_tests_of_a_question_stays_there(task: Any) -> None:
    parts = [("table", "ages = [1, 2]"), ("count", "def count(xs):\n    return len(xs)")]
    parts += [("t_two", "assert count(ages) == 2", 1), ("look", "ages.append(3)")]
    made = task([*parts, ("t_three", "assert count(ages) == 3", 1)])
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    assert made.scores() == {"t_two": 1, "t_three": 1}
    assert made.scores(count="def count(xs):\n    return 2") == {"t_two": 1, "t_three": 0}
