"""Visible tests are tried in one process as well: what two cannot tell, one does."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from autograder.bridge.session import CellRun
from autograder.judge import plain, rehearsal
from autograder.judge.assignment import read_assignment
from autograder.judge.work import Work
from tests.judge.small_course import ALL, CHAIN, HIDDEN_PART, LISTING, heard_of

KINDS = {  # a right answer, a wrong one, and a test that tells them apart in one process only
    "a list that a call-back gives": (
        "def f(load):\n    return sorted(load())[-1]",
        "def f(load):\n    xs = load()\n    xs.sort()\n    return xs[-1]",
        "data = [3, 1]\nassert f(lambda: data) == 3\nassert data == [3, 1], 'not sorted'",
    ),
    "a list handed to a call-back again": (
        "def f(visit):\n    visit([1])\n    visit([1, 2])",
        "def f(visit):\n    xs = [1]\n    visit(xs)\n    xs.append(2)\n    visit(xs)",
        "seen = []\nf(seen.append)\nassert seen == [[1], [1, 2]]",
    ),
    "an iterator in the place of a list": (
        "def f(xs):\n    return [x * x for x in xs]",
        "def f(xs):\n    return map(lambda x: x * x, xs)",
        "r = f([1, 2])\nassert sum(r) == 5\nassert list(r) == [1, 4]",
    ),
    "a view of another kind": (
        "def f(z):\n    return z.real.copy()",
        "def f(z):\n    return z.real",
        "z = np.array([1 + 2j])\nr = f(z)\nr[0] = 9\nassert z[0] == 1 + 2j",
    ),
    "keys that go on": (
        "def f(d):\n    return list(d)",
        "def f(d):\n    return d.keys()",
        "d = {'a': 1}\nk = f(d)\nd['b'] = 2\nassert sorted(k) == ['a']",
    ),
    "shared random numbers": (
        "def f(seed):\n    return random.Random(seed).random()",
        "def f(seed):\n    random.seed(seed)\n    return random.random()",
        "random.seed(1)\na = random.random()\nrandom.seed(1)\nf(5)\nassert a == random.random()",
    ),
    "an operator too many": (
        "class f:\n    pass",
        "class f:\n    def __add__(self, other):\n        return self",
        "try:\n    f() + f()\nexcept TypeError:\n    pass\nelse:\n    assert False",
    ),
    "slots": (
        "class f:\n    __slots__ = ('x',)\n    def __init__(self):\n        self.x = 1",
        "class f:\n    def __init__(self):\n        self.x = 1",
        "assert f().x == 1 and not hasattr(f(), '__dict__')",
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_two_processes_cannot_tell_one_does(task: Any, kind: str) -> None:
    right, wrong, test = KINDS[kind]
    made = task([("f", right), ("t_f", test, 1)])
    made.known = heard_of(made)
    assert made.scores() == {"t_f": 1}
    assert made.scores(f=wrong) == {"t_f": 0}


def test_cells_are_asked_one_by_one_only_where_one_ends_the_process(
    task: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    singly: list[int] = []
    by_itself = Work._one_by_one

    def counted(self: Work, cells: Mapping[int, Any]) -> dict[int, CellRun]:
        singly.append(len(cells))
        return by_itself(self, cells)

    monkeypatch.setattr(Work, "_one_by_one", counted)
    made = task([("f", "def f(g):\n    return g() + 1"), ("t_f", "assert f(lambda: 1) == 2", 1)])
    assert made.scores(f="def f(g):\n    return 1 + g()") == {"t_f": 1}
    assert singly == []
    beside = "'t_f' in ''.join(g.__code__.co_filename for g in [g] if hasattr(g, '__code__'))"
    ends = f"import os\ndef f(g):\n    if {beside}: os._exit(3)\n    return g() + 1"
    verdict = made.verdicts(f=ends)["t_f"]
    assert (verdict.status, verdict.score) == ("died", 0)
    assert singly


def test_who_uses_an_answer_that_hangs_is_not_waited_for_once_more(
    task: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[list[str | None]] = []
    beside = Work.run_beside

    def noted(self: Work, *asked: Any) -> list[CellRun]:
        runs = beside(self, *asked)
        looks.append([run.gone for run in runs if run.gone])
        return runs

    monkeypatch.setattr(Work, "run_beside", noted)
    hangs = "def square(x):\n    while True: pass"
    assert task(CHAIN, seconds=0.5).scores(square=hangs) == ALL | {"t_square": 0}
    assert looks and not any(looks)


def test_it_is_told_as_in_the_notebook(task: Any) -> None:
    right, wrong, test = KINDS["a list that a call-back gives"]
    first = ("g", "def g(): return 1"), ("t_g", HIDDEN_PART.format("assert g() == 1"), 1)
    told = task([*first, ("f", right), ("t_f", test, 1)]).verdicts(f=wrong)["t_f"]
    assert (told.status, told.score, told.hidden) == ("failed", 0, False)
    assert "in your notebook" in told.told and "not sorted" in told.told


def test_no_hidden_test_is_run_beside_an_answer(task: Any) -> None:
    test = "assert f(1) == 2" + HIDDEN_PART.format("secret = 4711\nassert f(secret) == 4712")
    made = task([("f", "def f(x):\n    return x + 1"), ("t_f", test, 1)])
    looks = (
        "import sys\ndef f(x):\n    frame = sys._getframe(1)\n"
        "    inside = '4711' in str([frame.f_code.co_consts, frame.f_globals.get('secret')])\n"
        "    return 0 if inside else x + 1"
    )
    assert made.scores(f=looks) == {"t_f": 1}


def test_where_the_reference_fails_as_well_nothing_is_lost(task: Any) -> None:
    mine = "class Mine(Plugin):\n    x = 1\ndef mine():\n    return Mine()"
    test = "assert mine().x == 1 and Plugin.made == []"
    made = task([("look", LISTING), ("mine", mine), ("t_mine", test, 1)])
    assert made.scores(mine=mine.replace("x = 1", "x = 2 - 1")) == {"t_mine": 1}


def test_other_cells_and_names_that_only_the_reference_imports_cost_nothing(task: Any) -> None:
    parts = [
        ("one", "import cmath\ndef one():\n    return cmath.pi"),
        ("two", "def two():\n    return 2"),
        ("t_one", "assert math.isclose(one(), cmath.pi) and min(1, 2) == 1", 1),
        ("t_two", "assert two() == 2", 2),
    ]
    made = task(parts)
    covers = "def two():\n    return 2\ndef min(*_):\n    return 0"
    for stands_in in (True, False):
        made.assignment = replace(made.assignment, stand_in=stands_in)
        found = made.scores(one="def one():\n    return math.pi", two=covers)
        assert found == {"t_one": 1, "t_two": 2}


def test_without_the_reference_a_question_is_tried_with_what_it_uses(task: Any) -> None:
    right, wrong, test = KINDS["a list that a call-back gives"]
    parts = [("top", "def top(xs):\n    return max(xs)"), ("f", right + "\ndef g(): return top")]
    made = task([*parts, ("t_f", test + "\nassert g()([1]) == 1", 1)])
    made.assignment = replace(made.assignment, stand_in=False)
    own = "def top(xs):\n    return sorted(xs)[-1]"
    assert made.scores(top=own) == {"t_f": 1}
    assert made.scores(top=own, f=wrong + "\ndef g(): return top") == {"t_f": 0}


def test_who_ends_that_process_shields_no_other_question(task: Any) -> None:
    right, wrong, test = KINDS["a list that a call-back gives"]
    parts = [("g", "def g():\n    return 1"), ("t_g", "assert g() == 1", 2)]
    made = task([*parts, ("f", right), ("t_f", test, 1)], seconds=1.0)
    ends = (
        "import os, sys\ndef g():\n"
        "    if {} in sys._getframe(1).f_code.co_filename: {}\n    return 1"
    )
    for end in ("os._exit(1)", "raise NameError"):
        assert made.scores(f=wrong, g=ends.format("'answer'", end)) == {"t_f": 0, "t_g": 0}
        assert made.scores(g=ends.format("'answer'", end)) == {"t_f": 1, "t_g": 0}
    assert made.scores(f=wrong, g="def g():\n    while True: pass") == {"t_f": 0, "t_g": 0}


KEEPS = (
    "class Bag:\n    def __init__(self, xs): self.x = {}\n    def add(self, y): self.x.append(y)"
)
COPIES, SHARES = KEEPS.format("list(xs)"), KEEPS.format("xs")
SHARED = "xs = [1]\nb = Bag(xs)\nb.add(2)\n"


def test_what_only_the_reference_imports_is_there_for_the_tests(task: Any) -> None:
    imports = "import copy\n" + KEEPS.format("copy.copy(xs)")
    test = "xs = [1]\nold = copy.copy(xs)\nb = Bag(xs)\nb.add(2)\nassert xs == old"
    made = task([("bag", imports), ("t_bag", test, 1)])
    assert made.scores(bag=COPIES) == {"t_bag": 1}
    assert made.scores(bag=SHARES) == {"t_bag": 0}


def test_claims_after_a_hidden_part_are_tried(task: Any) -> None:
    after = "assert Bag([]).x == []" + HIDDEN_PART.format("assert Bag([3]).x == [3]")
    made = task([("bag", COPIES), ("t_bag", f"{after}\n{SHARED}assert xs == [1]", 1)])
    assert made.scores() == {"t_bag": 1}
    assert made.scores(bag=SHARES) == {"t_bag": 0}


def test_a_test_that_is_about_an_earlier_question_is_tried_with_its_answer(task: Any) -> None:
    first = [("bag", COPIES), ("t_bag", "assert Bag([1]).x == [1]", 1)]
    later = [("two", "def two():\n    return 2"), ("t_two", "assert two() == 2", 2)]
    made = task([*first, *later, ("t_both", f"{SHARED}assert xs == [1]", 4)])
    for stands_in in (True, False):
        made.assignment = replace(made.assignment, stand_in=stands_in)
        assert made.scores() == {"t_bag": 1, "t_two": 2, "t_both": 4}
        assert made.scores(bag=SHARES) == {"t_bag": 1, "t_two": 2, "t_both": 0}


def test_a_part_of_a_package_that_a_visible_test_imports_is_there(task: Any) -> None:
    uses = "import xml\ndef name():\n    return xml.dom.Node.__name__"
    test = "import xml.dom\nassert name() == 'Node'"
    made = task([("name", "import xml.dom\n" + uses), ("t_name", test, 1)])
    assert made.scores(name=uses) == {"t_name": 1}


def test_points_that_a_test_ends_in_are_compared(task: Any) -> None:
    points = f"points = 0\n{SHARED}points += b.x == [1, 2]\npoints += xs == [1]\npoints"
    made = task([("bag", COPIES), ("t_bag", points, 2)])
    assert made.scores() == {"t_bag": 2}
    assert made.scores(bag=SHARES) == {"t_bag": 1}
    made.known = heard_of(made)
    verdict = made.verdicts(bag=SHARES)["t_bag"]
    assert (verdict.status, verdict.score) == ("passed", 1)
    assert made.scores(bag=COPIES.replace("list", "sorted")) == {"t_bag": 2}


def test_an_answer_for_which_the_reference_stood_in_elsewhere_is_tried(task: Any) -> None:
    parts = [("base", "def base():\n    return 1"), ("t_base", "assert base() == 1", 1)]
    asks = "\n    def n(self): return base()"
    made = task([*parts, ("bag", COPIES + asks), ("t_bag", f"{SHARED}assert xs == [b.n()]", 2)])
    wrong = "def base():\n    return 2"
    assert made.scores(base=wrong) == {"t_base": 0, "t_bag": 2}
    assert made.scores(base=wrong, bag=SHARES + asks) == {"t_base": 0, "t_bag": 0}


def test_two_causes_that_have_nothing_to_do_with_each_other_cost_nothing(task: Any) -> None:
    parts = [("top", "def top(xs):\n    return max(xs)"), ("t_top", "assert top([1, 3]) == 3", 1)]
    counts = "assert count([5, 6]) == sum(1 for _ in [5, 6])"
    made = task([*parts, ("count", "def count(xs):\n    return len(xs)"), ("t_count", counts, 2)])
    covers = "sum = 0\ndef top(xs):\n    return 0\nclass Own:\n    size = staticmethod(len)"
    assert made.scores(top=covers, count="def count(xs):\n    return Own.size(xs)") == {
        "t_top": 0,
        "t_count": 2,
    }


def test_a_test_that_is_lost_in_its_hidden_part_is_run_for_those_after_it(task: Any) -> None:
    hidden = HIDDEN_PART.format("assert sums(range(10**5)) == 4999950000")
    tests = [("t_one", f"data.append(4)\nassert sums(data) == 10{hidden}", 1)]
    tests += [("t_two", "assert sums(data) == 10", 2)]
    parts = [("data", "data = [1, 2, 3]"), ("sums", "def sums(xs):\n    return sum(xs)")]
    made = task([*parts, *tests], seconds=1.0)
    slow = "def sums(xs):\n    return sum(x for x in xs for y in xs if y == x)"
    assert made.scores(sums=slow) == {"t_one": 0, "t_two": 2}


def test_without_the_reference_tests_of_other_questions_do_not_run_beside_blanks(task: Any) -> None:
    first = [("rate", "rates = [2]"), ("one", "def one():\n    return 1")]
    test = "rates[0] = 0\nassert one() == 1\nrates[0] = 2"
    scaled = [("scaled", "def scaled(x):\n    return x * rates[0]")]
    made = task([*first, ("t_one", test, 1), *scaled, ("t_scaled", "assert scaled(3) == 6", 2)])
    made.assignment = replace(made.assignment, stand_in=False)
    assert made.scores() == {"t_one": 1, "t_scaled": 2}


def test_what_is_told_holds_nothing_of_the_reference(task: Any) -> None:
    first = [("first", "import cmath as secret_name\ndef first():\n    return 'secret text'")]
    first += [("t_first", "assert first()", 1)]
    made = task([*first, ("bag", COPIES), ("t_bag", f"{SHARED}assert xs == [1]", 2)])
    looks = (
        "import linecache, sys\nclass Bag:\n    def __init__(self, xs):\n        self.x = xs\n"
        "    def add(self, y):\n        if '<answer' in sys._getframe(1).f_code.co_filename:\n"
        "            texts = [''.join(v[2]) for v in linecache.cache.values() if len(v) > 2]\n"
        "            raise KeyError([t for t in texts if 'cmath' in t], 'seen', dir())\n"
        "        self.x.append(y)"
    )
    for stands_in in (True, False):
        made.assignment = replace(made.assignment, stand_in=stands_in)
        told = made.verdicts(bag=looks, first="def first():\n    return ''")["t_bag"]
        assert told.score == 0
        assert "secret" not in told.told + told.said and "cmath" not in told.told + told.said


def test_what_the_reference_imports_covers_no_name_of_an_answers(task: Any) -> None:
    first = [("hyp", "from math import *\ndef hyp(a, b):\n    return sqrt(a * a + b * b)")]
    first += [("t_hyp", "assert hyp(3, 4) == 5", 1)]
    inverse = "def inv(a):\n    return pow(a, 5, 7)"
    made = task([*first, ("inv", inverse), ("t_inv", "assert inv(3) == 5", 2)])
    own = "def hyp(a, b):\n    return pow(pow(a, 2, 1000) + pow(b, 2, 1000), 0.5)"
    for stands_in in (True, False):
        made.assignment = replace(made.assignment, stand_in=stands_in)
        assert made.scores(hyp=own) == {"t_hyp": 1, "t_inv": 2}


def test_a_helper_in_the_cell_of_a_wrong_answer_costs_no_other_question(task: Any) -> None:
    parts = [("enc", "def enc(x):\n    return x + 1"), ("t_enc", "assert enc(1) == 2", 1)]
    asks = "def tot(xs):\n    return sum(enc(x) for x in xs)"
    made = task([*parts, ("tot", asks), ("t_tot", "assert tot([1, 2]) == 5", 2)])
    wrong = "import operator\ndef plus(a, b): return operator.add(a, b)\ndef enc(x):\n    return x"
    right = "import functools\ndef tot(xs):\n    return functools.reduce(plus, map(enc, xs), 0)"
    assert made.scores(enc=wrong, tot=right) == {"t_enc": 0, "t_tot": 2}


@pytest.mark.parametrize(
    "covers", ["isinstance = lambda *a: True\nfloat = lambda *a: 1e9", "str, bytes, bool = 1, 2, 3"]
)
def test_points_are_told_by_no_name_of_the_answers(task: Any, covers: str) -> None:
    points = f"points = 0\n{SHARED}points += b.x == [1, 2]\npoints += xs == [1]\n(points)  # all"
    made = task([("bag", COPIES), ("t_bag", points, 2)])
    assert made.scores(bag=f"{COPIES}\n{covers}") == {"t_bag": 2}
    assert made.scores(bag=f"{SHARES}\n{covers}") == {"t_bag": 1}
    claims = SHARES.replace("self.x.append(y)", "raise AssertionError('_points_here2')")
    assert made.scores(bag=claims) == {"t_bag": 0}


def test_an_error_that_is_named_like_an_end_is_an_error(task: Any) -> None:
    made = task([("bag", COPIES), ("t_bag", f"{SHARED}assert xs == [1]", 1)])
    named = (
        "import sys\nclass timeout(Exception): pass\n"
        + SHARES
        + "\n        if '<answer' in sys._getframe(1).f_code.co_filename: raise timeout"
    )
    assert made.verdicts(bag=named)["t_bag"].status == "error"


def test_a_failure_of_the_grader_in_that_process_costs_nothing(
    task: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = task([("bag", COPIES), ("t_bag", f"{SHARED}assert xs == [1]", 1)])
    monkeypatch.setattr(plain, "_sure", lambda *_: 1 / 0)
    result = made.grade()
    assert result.notebooks[0].verdicts[0].score == 1
    assert "in one process (ZeroDivisionError" in result.flags[-1].words


def test_what_a_test_imports_an_answer_finds_as_in_the_notebook(task: Any) -> None:
    parts = [("one", "def one():\n    return 1"), ("t_one", "import cmath\nassert one()", 1)]
    hidden = "import string" + HIDDEN_PART.format("import colorsys\nassert two() == 2")
    made = task([*parts, ("two", "def two():\n    return 2"), ("t_two", hidden, 2)])
    uses = "def two():\n    return round(cmath.cos(0).real) + len(string.digits) // 10"
    assert made.scores(two=uses) == {"t_one": 1, "t_two": 2}
    early = "def one():\n    return len(string.digits)"
    late = "def two():\n    return round(colorsys.ONE_SIXTH * 12)"
    assert made.scores(one=early, two=late) == {"t_one": 0, "t_two": 0}


def test_what_tests_import_is_there_whatever_else_a_cell_binds(task: Any) -> None:
    first = "try:\n    import statistics\nexcept ImportError:\n    statistics = None\n"
    first += "from cmath import *\nfrom functools import lru_cache\nimport string as letters\n"
    parts = [("one", "def one():\n    return 1"), ("t_one", f"{first}assert one() == 1", 1)]
    second = [("two", "def two():\n    return 2"), ("t_two", "assert two() == 2", 2)]
    made = task([*parts, *second])
    cover = "\nexec = globals = hasattr = 1"
    uses = "def one():\n    return statistics.mean([cos(0).real, len(letters.digits) / 10])"
    late = "import statistics\nimport string as letters\n@lru_cache\ndef two():\n    return 2"
    for stands_in in (True, False):
        made.assignment = replace(made.assignment, stand_in=stands_in)
        assert made.scores(one=uses + cover, two=late) == {"t_one": 1, "t_two": 2}


def test_a_class_of_a_tests_tells_its_name(task: Any) -> None:
    test = "class Bar: pass\nassert name(Bar) == 'Bar'"
    made = task([("name", "def name(k):\n    return k.__name__"), ("t_name", test, 1)])
    assert made.scores(name="def name(k):\n    return k.__qualname__") == {"t_name": 1}


def test_an_iterator_of_a_test_can_be_split(task: Any) -> None:
    mean = "def mean(xs):\n    xs = list(xs)\n    return sum(xs) / len(xs)"
    test = "assert mean(x for x in (1, 2, 3)) == mean(iter([2])) == mean(map(int, '13')) == 2"
    made = task([("mean", mean), ("t_mean", test, 1)])
    splits = (
        "import itertools\ndef mean(xs):\n    a, b = itertools.tee(xs)\n"
        "    return sum(a) / sum(1 for _ in b)"
    )
    assert made.scores(mean=splits) == {"t_mean": 1}


VALUE = "class V:\n    def __init__(self, x): self.x = x\n    def __eq__(self, o): return {}"
PLAIN = "isinstance(o, V) and self.x == o.x"
BOTH = "self.x == (o.x if isinstance(o, V) else o)"


def test_an_object_compares_with_a_plain_value_as_its_class_says_where_the_references_does(
    task: Any,
) -> None:
    hidden = HIDDEN_PART.format("assert V(1) == 1 and V(1) != 2 and 1 in [V(1)] and V(1) == V(1)")
    made = task([("v", VALUE.format(BOTH)), ("t_v", hidden, 1)])
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    made.known = heard_of(made)
    assert made.scores() == {"t_v": 1}
    assert made.scores(v=VALUE.format("getattr(o, 'x', o) == self.x")) == {"t_v": 1}
    assert made.scores(v=VALUE.format(PLAIN)) == {"t_v": 0}
    made.known = None  # nobody knows what the reference does
    assert made.scores(v=VALUE.format("True")) == {"t_v": 0}


def test_what_a_test_does_to_a_result_that_it_does_not_keep_an_answer_sees(task: Any) -> None:
    box = "class Box:\n    def __init__(self): self._xs = [1]\n    def xs(self): return {}"
    hidden = HIDDEN_PART.format("b = Box()\nb.xs().append(7)\nassert b.xs() == [1]")
    made = task([("box", box.format("list(self._xs)")), ("t_box", hidden, 1)])
    assert made.scores() == {"t_box": 1}
    assert made.scores(box=box.format("self._xs")) == {"t_box": 0}
    given = "def add(m):\n    m.xs().append(2)\nb = Box()\nadd(b)\nassert b.xs() == [1, 2]"
    made = replace_test(made, HIDDEN_PART.format(given), box.format("self._xs"))
    assert made.scores() == {"t_box": 1}
    assert made.scores(box=box.format("list(self._xs)")) == {"t_box": 0}


def replace_test(made: Any, test: str, reference: str) -> Any:
    """The same question with another test and reference."""
    return type(made)(
        made.folder / "again", made.fork_server, [("box", reference), ("t_box", test, 1)], 10.0
    )


def test_a_class_in_the_place_of_a_function_that_gives_one_is_right(task: Any) -> None:
    closure = "def compose(f, g):\n    return lambda x: f(g(x))"
    test = "h = compose(abs, int)\nassert h('-3') == 3\nassert compose(str, abs)(-2) == '2'"
    made = task([("compose", closure), ("t_compose", test, 1)])
    made.known = heard_of(made)
    kind = (
        "class compose:\n    def __init__(self, f, g): self.f, self.g = f, g\n"
        "    def __call__(self, x): return self.f(self.g(x))"
    )
    assert made.scores(compose=kind) == {"t_compose": 1}


MOD = (
    "class Mod:\n    def __init__(self, v): self.v = v % 7\n"
    "    def __eq__(self, o): return self.v == o.v\n"
    "    def __hash__(self): return hash(self.v)\n"
)


def test_objects_of_a_test_are_marked_hashed_and_copied_as_in_one_process(task: Any) -> None:
    asked = "xs = [Mod(1), Mod(8), Mod(3)]\nassert uniq(xs) == [Mod(1), Mod(3)]\n"
    reference = "def uniq(xs):\n    return [x for n, x in enumerate(xs) if x not in xs[:n]]"
    made = task([("uniq", reference), ("t_uniq", MOD + asked, 1)])
    marks = (
        "import copy\ndef uniq(xs):\n    for n, x in enumerate(xs): x.place = n\n"
        "    assert not hasattr(xs[0], '_seen')\n    xs[0]._seen = True\n"
        "    assert xs[0]._seen and [x.place for x in xs] == [0, 1, 2]\n"
        "    for x in xs: del x.place\n    own = copy.copy(xs[0])\n"
        "    assert own is not xs[0] and own == xs[0] and not hasattr(own, 'place')\n"
        "    return list(dict.fromkeys(xs))"
    )
    assert made.scores() == made.scores(uniq=marks) == {"t_uniq": 1}
    assert made.scores(uniq="def uniq(xs):\n    xs[0].v = 5\n    return xs") == {"t_uniq": 0}


HELPER = (
    "class Stack:\n    def __init__(self): self.items = []\n"
    "    def push(self, x): self.items.append(x)\n\n\nclass Bad(ValueError):\n    pass\n"
)


def test_objects_and_errors_of_a_helper_file_are_as_a_cells(task: Any) -> None:
    fill = "def fill(stack, n):\n    for i in range(n): stack.push(i)"
    check = "def check(n):\n    if n < 0: raise Bad(n)\n    return n"
    caught = "assert check(1) == 1\ntry:\n    check(-1)\nexcept Bad:\n    pass\n"
    made = task(
        [
            ("data", "import tools\nfrom tools import Bad, Stack"),
            ("fill", fill),
            ("t_fill", "s = Stack()\nfill(s, 2)\nassert s.items == [0, 1]", 1),
            ("check", check),
            ("t_check", caught + "else:\n    assert False", 2),
        ]
    )
    (made.assignment.folder / "tools.py").write_text(HELPER)
    made.assignment = replace(read_assignment(made.assignment.folder), stand_in=True)
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    made.known = heard_of(made)
    assert made.scores() == {"t_fill": 1, "t_check": 2}
    other = "def fill(stack, n):\n    [*map(stack.push, range(n))]"
    named = check.replace("Bad(n)", "tools.Bad(n)")
    assert made.scores(fill=other, check=named) == {"t_fill": 1, "t_check": 2}
    wrong = check.replace("Bad(n)", "KeyError(n)")
    assert made.scores(fill="def fill(stack, n): pass", check=wrong) == {"t_fill": 0, "t_check": 0}


def test_a_cell_of_the_students_that_stops_is_named(task: Any) -> None:
    parts = [("look", "from math import sqrt"), ("f", "def f(x):\n    return sqrt(x)")]
    made = task([*parts, ("t_f", "assert f(4) == 2", 1)])
    stops = "from google.colab import drive\nfrom math import sqrt"
    (notebook,) = made.grade(look=stops).notebooks
    note = notebook.notes[-1]
    assert "begins with from google.colab import drive stopped with ModuleNotFoundError" in note
    assert not any("stopped with" in note for note in made.grade().notebooks[0].notes)
