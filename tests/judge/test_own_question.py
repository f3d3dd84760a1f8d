"""What a cell does costs the question that it belongs to."""

import builtins
import keyword
from pathlib import Path
from typing import Any

import pytest

from autograder.isolation.clock import doubts
from autograder.judge import old
from autograder.judge.rehearsal import prepare
from autograder.judge.work import Work
from tests.judge.small_course import (
    ALL,
    CHAIN,
    HIDDEN_PART,
    SETUP,
    SMALL,
    VEC,
)

LOOPED = """\
def cube(n):
    return n ** 3
n = 5
def count():
    global calls
    calls += 1
calls = 0
"""


TEST_LOOPED = (
    "for n in range(6):\n    assert cube(n) == n ** 3\ncalls = 3\ncount()\nassert calls == 4"
)


def test_a_name_that_a_test_sets_is_read_here_unless_answers_use_it(task: Any) -> None:
    made = task([("cube", LOOPED), ("t_cube", TEST_LOOPED, 1)])
    assert made.scores() == {"t_cube": 1}
    liar = LOOPED.replace("n ** 3", "0") + LIAR_OF_NAMES
    assert made.scores(cube=liar) == {"t_cube": 0}


LIAR_OF_NAMES = """
import gc
for peer in [one for one in gc.get_objects() if type(one).__name__ == "Peer"]:
    first = peer.services["name"]
    peer.services["name"] = lambda name, first=first: 0 if name == "n" else first(name)
"""


def test_operators_of_one_questions_classes_are_not_believed_in_another(task: Any) -> None:
    parts = [
        ("vec", VEC + "    def __sub__(self, other):\n        return self.x - other.x\n"),
        ("t_vec", "assert Vec(3) - Vec(1) == 2", 1),
        ("mean", "def mean(xs):\n    return sum(xs) / len(xs)"),
        ("t_mean", "assert abs(mean([1, 3]) - 2) < 1e-9", 1),
    ]
    made = task(parts)
    assert made.scores() == {"t_vec": 1, "t_mean": 1}
    near = "class Near:\n    def __sub__(self, other):\n        return 0.0\n"
    liar = near + "def mean(xs):\n    return Near()"
    assert made.scores(mean=liar) == {"t_vec": 1, "t_mean": 0}


def test_a_visible_line_below_a_hidden_one_is_as_good_as_hidden(task: Any) -> None:
    test = (
        "assert square(3) == 9\n### BEGIN HIDDEN TESTS\nassert square(4711) == 4711 ** 2\n"
        "### END HIDDEN TESTS\nassert square(2) == 4, f'two: {square(2)}'"
    )
    made = task([SMALL[1], ("t_square", test, 1)])
    keeps = "ASKED = []\ndef square(x):\n    ASKED.append(x)\n    return ASKED if x == 2 else x * x"
    (notebook,) = made.grade(square=keeps).notebooks
    (verdict,) = notebook.verdicts
    assert verdict.hidden
    assert "4711" not in verdict.told + " ".join((*notebook.notes, *notebook.by_tests))


def test_a_forbidden_operation_is_named_in_the_rules_words(task: Any) -> None:
    made = task(CHAIN)
    liar = (
        "import gc\ndef total(xs):\n    found = 0\n    for x in xs: found += x\n    return found\n"
    )
    setup = SETUP + LIAR_OF_SEEN
    verdict = made.verdicts(setup=setup, total=liar)["t_total"]
    assert "4711" not in verdict.told


LIAR_OF_SEEN = """
import gc
for peer in [one for one in gc.get_objects() if type(one).__name__ == "Peer"]:
    peer.services["seen"] = lambda: ["hidden asked 4711"]
"""


def test_who_ends_when_asked_twice_has_counted(task: Any) -> None:
    made = task(
        [("square", SMALL[1][1]), ("t_square", "assert square(3) == 9\nassert square(2) == 4", 1)]
    )
    counts = (
        "import os\nWANTED = [9, 4]\ndef square(x):\n"
        "    if x == 2 and len(WANTED) == 2: os._exit(0)\n"
        "    return WANTED.pop(0)"
    )
    assert made.scores() == {"t_square": 1}
    assert made.scores(square=counts) == {"t_square": 0}


@pytest.mark.parametrize(
    "slip",
    [
        "math.sqrt = lambda x: x",
        "import builtins\nbuiltins.pow = None\nmath.sqrt = builtins.float",
        "import math as m\nsetattr(m, 'sqrt', None)",
        "import sys\nsys.modules.pop('math')\nsys.modules['math'] = sys",
        "del math.sqrt",
        "vars(math).update(sqrt=float)",
    ],
)
def test_a_part_of_a_module_that_one_answer_changes_costs_no_other_question(
    task: Any, slip: str
) -> None:
    parts = [
        ("first", "def first():\n    return 1"),
        ("t_first", "assert first() == 1", 1),
        ("root", "def root(xs):\n    import math\n    return math.sqrt(sum(list(xs)))"),
        ("t_root", "assert root([4, 5]) == 3\nassert root([9, 7]) == 4", 2),
    ]
    made = task(parts)
    result = made.grade(first=f"{parts[0][1]}\n{slip}")
    assert {v.test: v.score for v in result.notebooks[0].verdicts} == {"t_first": 1, "t_root": 2}
    assert "was graded without that" in " ".join(result.notebooks[0].by_tests)
    assert made.scores(root=f"{slip}\n{parts[2][1]}")["t_root"] == 0
    wrong = made.scores(first=f"{parts[0][1]}\n{slip}", root="def root(xs):\n    return 3")
    assert wrong == {"t_first": 1, "t_root": 0}


FIRST = ("first", "def first():\n    return 1")


T_FIRST = ("t_first", "assert first() == 1", 1)


@pytest.mark.parametrize(
    "slip",
    [
        "np.seterr(all='raise')",
        "import sys\nsys.setrecursionlimit(120)",
        "import decimal\ndecimal.setcontext(decimal.Context(prec=3))",
        "import warnings\nwarnings.simplefilter('error')",
        "from numpy import *",
        "exec('sum = 0')",
        "globals()['math'] = 3",
        "def f():\n    global math\n    math = 0\nf()",
        "norm = math.sqrt\nL = torch.nn.Linear\nL.__init__ = None",
        "data.append(100)",
        "def total(xs):\n    return 0",
        "__builtins__ = {}",
    ],
)
def test_what_a_cell_does_to_all_others_costs_no_other_question(task: Any, slip: str) -> None:
    whole = (
        "def mean(xs):\n    import decimal, warnings\n    warnings.warn('slow')\n"
        "    layer = torch.nn.Linear(1, 1)\n    np.float64(1e300) * 1e300\n"
        "    deep = lambda n: n and deep(n - 1)\n    deep(150)\n"
        "    assert math.floor(1.5) == sum([1])\n"
        "    assert decimal.Decimal(1) / 3 > decimal.Decimal('0.33333')\n"
        "    return total(xs) / len(list(xs))"
    )
    parts = [
        ("data", "data = [1, 2, 3]"),
        ("total", CHAIN[4][1]),
        ("t_total", "assert total([1, 2]) == 3", 2),
        FIRST,
        T_FIRST,
        ("mean", whole),
        ("t_mean", "assert mean([4, 5]) == 4.5\nassert mean(data) == 2", 3),
    ]
    made = task(parts)
    scores = made.scores(first=f"{FIRST[1]}\n{slip}")
    assert scores["t_mean"] == 3 and scores["t_total"] == 2
    wrong = made.scores(first=f"{FIRST[1]}\n{slip}", mean="def mean(xs):\n    return 4.5")
    assert wrong["t_mean"] == 0


@pytest.mark.parametrize("slip", ["from torch import *", "exec('range = sum = 0')"])
def test_what_stands_above_a_class_with_methods_costs_no_other_question(
    task: Any, slip: str
) -> None:
    parts = [FIRST, T_FIRST, ("root", "def root(n):\n    return sum(list(range(n)))")]
    made = task([*parts, ("t_root", "assert root(4) == 6\nassert root(3) == 3", 2)])
    box = "class Box:\n    def __init__(self):\n        self.size = 1\n"
    assert made.scores(first=f"{slip}\n{box}{FIRST[1]}") == {"t_first": 1, "t_root": 2}


def test_a_test_of_another_answer_is_that_answers(task: Any) -> None:
    parts = [*CHAIN, ("t_square_more", "assert square(7) == 49\nassert square(2) == 4", 5)]
    made = task(parts)
    zero = "def square(x):\n    return 9 if x == 3 else x * x if abs(x) == 1 else 0"
    for extra in ("", "\nmath.tau = math.tau"):
        found = made.scores(square=zero + extra)
        assert found == {**ALL, "t_square": 1, "t_square_more": 0}
        found = made.scores(square="def square(x):\n    return 0" + extra)
        assert found == {**ALL, "t_square": 0, "t_square_more": 0}


def test_what_cells_put_into_a_holder_is_each_answers_own(task: Any) -> None:
    parts = [
        ("load", "def load():\n    return ['b ', 'a']"),
        ("t_load", "assert len(load()) == 2", 1),
        ("look", "results = {'raw': load()}"),
        ("clean", "def clean(words):\n    return sorted(w.strip() for w in words)"),
        ("data", "results['clean'] = clean(results['raw'])"),
        ("t_clean", "assert results['clean'] == ['a', 'b']", 2),
    ]
    made = task(parts)
    broken = "def load():\n    return None"
    assert made.scores() == {"t_load": 1, "t_clean": 2}
    assert made.scores(load=broken) == {"t_load": 0, "t_clean": 2}
    assert made.scores(load=broken, clean="def clean(words):\n    return 'wrong'") == {
        "t_load": 0,
        "t_clean": 0,
    }


LIARS = {
    "object": "class Any:\n    def __eq__(self, o): return True\n"
    "    def issubset(self, o): return True\n    def __len__(self): return 2\n",
    "set": "class Any(set):\n    def __eq__(self, o): return True\n"
    "    def issubset(self, o): return True\n    def __len__(self): return 2\n",
    "bare": "class Any:\n    def issubset(self, o): return True\n"
    "    def __len__(self): return 2\n    def __iter__(self): return iter([2, 3])\n",
}


@pytest.mark.parametrize("liar", LIARS)
def test_an_object_is_no_value_whatever_name_it_goes_by(task: Any, liar: str) -> None:
    parts = [
        ("primes", "primes = {2, 3}"),
        ("t_primes", "assert primes.issubset({2, 3, 5})\nassert len(primes) == 2", 1),
        ("scale", "def scale(xs):\n    return {x * 2 for x in xs}"),
        ("look", "scaled = scale([1])"),
        ("t_scale", "assert scaled.issubset({2})\nassert len(scaled) == 2 or 2 in scaled", 1),
    ]
    made = task(parts)
    assert made.scores() == {"t_primes": 1, "t_scale": 1}
    lies = {
        "primes": f"{LIARS[liar]}primes = Any()",
        "scale": f"{LIARS[liar]}def scale(xs):\n    return Any()",
    }
    assert made.scores(**lies) == {"t_primes": 0, "t_scale": 0}
    right = {"primes": "primes = frozenset([2, 3])", "scale": "scale = lambda xs: {2}"}
    assert made.scores(**right) == {"t_primes": 1, "t_scale": 1}


def test_a_class_made_of_a_wrong_one_is_graded_by_itself(task: Any) -> None:
    parts = [
        ("shape", "class Shape:\n    def sides(self):\n        return 4"),
        ("t_shape", "assert Shape().sides() == 4", 1),
        ("tile", "class Tile(Shape):\n    def cost(self):\n        return 2 * self.sides()"),
        ("t_tile", "assert Tile().cost() == 8", 2),
    ]
    made = task(parts)
    wrong = "class Shape:\n    def sides(self):\n        return 3"
    assert made.scores(shape=wrong) == {"t_shape": 0, "t_tile": 2}
    assert made.scores(shape=wrong, tile=parts[2][1].replace("2 *", "3 *"))["t_tile"] == 0


HEDGE = "def square(x):\n    return x * x if LOOK % 2 == 0 else x + x"


def test_who_goes_by_the_look_has_no_second_chance(task: Any, tmp_path: Path) -> None:
    made = task([FIRST, T_FIRST, *CHAIN[:2], ("t_more", "assert square(7) == 49", 1)])
    marks = tmp_path / "looks"
    # right in every second process in which it is looked at
    begun = (
        f"with open({str(marks)!r}, 'a') as file:\n    file.write('.')\n    LOOK = file.tell()\n"
    )
    assert made.scores(square=begun + HEDGE)["t_square"] == 0
    assert marks.stat().st_size >= 3


@pytest.mark.parametrize(
    "slip", ["list = [1]", "sum = 0", "math = 3.0", "del math", "import random as math"]
)
def test_a_name_that_one_answer_takes_costs_no_other_question(task: Any, slip: str) -> None:
    parts = [
        ("first", "def first():\n    return 1"),
        ("t_first", "assert first() == 1", 1),
        ("root", "def root(xs):\n    return math.sqrt(sum(list(xs)))"),
        ("t_root", "assert root([4, 5]) == 3\nassert root([9, 7]) == 4", 2),
    ]
    made = task(parts)
    result = made.grade(first=f"{parts[0][1]}\n{slip}")
    assert {v.test: v.score for v in result.notebooks[0].verdicts} == {"t_first": 1, "t_root": 2}
    assert "another meaning" in " ".join(result.notebooks[0].by_tests)
    assert made.scores(root=f"{slip}\n{parts[2][1]}")["t_root"] == 0


CASES = [
    ("look", "cases = [(1, 2), (2, 4), (3, 6)]"),
    ("whole", "def whole(pairs):\n    return sum(x + y for x, y in pairs)"),
    ("t_whole", "assert whole(cases) == 18", 1),
    ("double", "def double(x):\n    return 2 * x"),
    ("t_double", "for x, y in cases:\n    assert double(x) == y", 2),
]


def test_what_is_not_begun_is_not_tried_without_other_cells(task: Any, monkeypatch: Any) -> None:
    made, tried = task(CHAIN), []
    monkeypatch.setattr(Work, "_alone", lambda _, group, *__: tried.extend(group.solutions) or {})
    square = "def square(x):\n    return x * x\nprint(square(2))"  # it does something by itself
    stubs = {id: made.assignment.notebooks[0].cell(id).stub for id in ("norm", "total")}
    assert made.scores(square=square, **stubs) == {"t_square": 1, "t_norm": 0, "t_total": 0}
    assert tried == []  # each is a run of all cells of the notebook
    made.scores(square=square, **stubs | {"norm": "def norm(xs):\n    return 0"})
    assert set(tried) == {"norm"}


def test_what_an_answer_does_to_the_instructors_values_stays_in_its_question(task: Any) -> None:
    made = task(CASES)
    assert made.scores() == {"t_whole": 1, "t_double": 2}
    clears = f"{CASES[1][1].replace('return', 'found =')}\n    pairs.clear()\n    return found"
    found = made.scores(whole=clears, double="def double(x):\n    return None")
    assert found["t_double"] == 0
    adds = clears.replace("pairs.clear()", "pairs.append((1, 1))")
    assert made.scores(whole=adds)["t_double"] == 2


def test_an_answer_changes_nothing_that_modules_hold(task: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(old, "_kept", [])
    monkeypatch.setattr(old, "_numbers", frozenset())
    old.remember()
    claims = "assert count(keyword.kwlist) == WORDS\nassert 'kept' not in keyword.kwlist"
    parts = [
        ("look", "import keyword\nWORDS = len(keyword.kwlist)"),
        ("count", "def count(words):\n    return len(words)"),
        ("t_count", HIDDEN_PART.format(claims), 1),
    ]
    answer = "def count(words):\n    n = len(words)\n    words.append('kept')\n    return n"
    assert task(parts).scores(count=answer) == {"t_count": 1}
    assert "kept" not in keyword.kwlist


def test_an_ordinary_cell_is_held_against_no_test(task: Any) -> None:
    parts = [
        (
            "make",
            "class Box:\n    def size(self):\n        return 3\ndef make(x):\n    return Box()",
        ),
        ("t_make", "assert make(1).size() == 3", 1),
        ("look", "box = make(2)"),
        ("more", "def more():\n    return 1"),
        ("t_more", "assert more() == 1 and box.size() == 3", 1),
    ]
    assert task(parts).scores() == {"t_make": 1, "t_more": 1}


@pytest.mark.parametrize(("number", "in_doubt"), [("KILL", True), ("SEGV", False)])
def test_an_answer_that_a_kernel_short_of_memory_may_have_killed_is_in_doubt(
    task: Any, number: str, in_doubt: bool
) -> None:
    made, before = task(CHAIN), doubts()
    ends = f"import os, signal\ndef total(xs): os.kill(os.getpid(), signal.SIG{number})"
    assert made.verdicts(total=ends)["t_total"].status == "died"
    assert (doubts() > before) == in_doubt


def test_how_a_process_crashed_is_no_message(task: Any) -> None:
    verdict = task(CHAIN).verdicts(square="import os\ndef square(x):\n    os.kill(os.getpid(), 42)")
    assert verdict["t_square"].status == "died"
    assert "42" not in verdict["t_square"].told


@pytest.mark.parametrize(
    "runs",
    [
        "runs = doctest.DocTestRunner(verbose=False)\n"
        "for one in doctest.DocTestFinder().find(f, 'f', globs={'f': f}): runs.run(one)\n"
        "assert runs.summarize()[0] == 0 and f(1) == 2",
        "doctest.run_docstring_examples(f, {'f': f})\nassert f(1) == 2",
        "runs = doctest.DocTestRunner(verbose=False)\nglobs = {'f': f}\n"
        "found = [*map(doctest.Example, [f.__doc__.split('>>> ')[1].split('\\n')[0]], ['2'])]\n"
        "runs.run(doctest.DocTest(found, globs, 'f', None, 0, ''), out=print)\nassert f(1) == 2",
    ],
)
def test_no_example_in_an_answers_docstring_is_run_where_tests_are(task: Any, runs: str) -> None:
    right = "def f(x):\n    '''Add.\n\n    >>> f(1)\n    2\n    '''\n    return x + 1"
    made = task([("asked", right), ("t_asked", f"import doctest\n{runs}", 2)])
    prepare(made.assignment)
    assert made.scores(asked=right) == {"t_asked": 2}
    more = right.replace("    >>>", "    >>> f(2)\n    3\n    >>>")
    assert made.scores(asked=more) == {"t_asked": 2}
    evil = right.replace("    >>>", "    >>> import builtins; builtins.RUN_BY = 1\n    >>>")
    made.scores(asked=evil)
    assert not hasattr(builtins, "RUN_BY")


@pytest.mark.parametrize("slip", ["list = [1]", "Number = None", "list, Number = [1], 2\nsum = 0"])
def test_a_name_that_another_cell_takes_costs_no_answer_that_is_made_with_it(task: Any, slip: str):
    parts = [
        ("table", "from typing import List as Number"),
        ("look", "1"),
        ("first", "def first(xs):\n    return xs[0]"),
        ("t_first", "assert first([2, 3]) == 2", 1),
        (
            "total",
            "def total(xs: list[int], by: Number[int] = ()) -> int:\n    return xs[0] + xs[1]",
        ),
        ("t_total", "assert total([1, 2]) == 3", 1),
    ]
    right = dict(parts[i][:2] for i in (2, 4))
    made = task(parts)
    assert made.scores(look=slip, **right) == {"t_first": 1, "t_total": 1}
    wrong = right | {"total": right["total"].replace("xs[1]", "xs[0]")}
    assert made.scores(look=slip, **wrong) == {"t_first": 1, "t_total": 0}
