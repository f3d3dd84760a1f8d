"""What each answer is worth, and that nothing costs more than itself."""

from typing import Any

import pytest

from autograder.commands.authoring import MOST_CALLS, costly
from autograder.common.results import Result
from autograder.judge import rehearsal
from autograder.judge.assignment import read_assignment
from autograder.judge.nothing import NOTHING
from tests.judge.small_course import (
    ALL,
    CHAIN,
    HIDDEN_PART,
    heard_of,
)


def test_the_reference_gets_everything(task: Any) -> None:
    made = task(CHAIN)
    assert made.scores() == ALL
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []


def test_two_notebooks_may_have_cells_of_one_name(task: Any) -> None:
    made = task(CHAIN[:2])
    (one,) = made.assignment.notebooks
    text = (made.assignment.folder / "small.ipynb").read_text(encoding="utf-8")
    other = made.assignment.folder / "other.ipynb"
    other.write_text(text.replace("square(", "cube(").replace("x * x", "x * x * x"))
    assignment = read_assignment(made.assignment.folder)
    assert [notebook.name for notebook in assignment.notebooks] == ["other", one.name]
    (complaint,) = rehearsal.rehearse(assignment, made.fork_server).complaints
    assert complaint.startswith("small/other, test t_square")
    other.write_text(text.replace('"t_square"', '"t_other"'))
    assignment = read_assignment(made.assignment.folder)
    assert rehearsal.rehearse(assignment, made.fork_server).complaints == []


def test_a_test_that_gives_the_reference_a_part_of_its_points_is_named(task: Any) -> None:
    made = task([*CHAIN[:1], ("t_square", "square(1) / 2", 2)])
    (complaint,) = rehearsal.rehearse(made.assignment, made.fork_server).complaints
    assert complaint == "small/small, test t_square: the reference gets 0.5 of 2 points."


def test_a_rehearsal_tells_what_each_test_costs(task: Any) -> None:
    many = "for k in range(40): assert square(k) == k * k"
    made = task([*CHAIN[:1], ("t_many", many, 1), *CHAIN[4:]])
    costs = rehearsal.rehearse(made.assignment, made.fork_server).costs
    assert set(costs) == {"t_many", "t_total"}
    assert 40 <= costs["t_many"][0] <= 45 and costs["t_total"][0] <= 5
    (first, note) = costly("small", {"t_many": (1 + MOST_CALLS, 0.5), "t_total": (2, 0.1)})
    assert first.startswith("small: 2 tests make 303 calls and work 0.6 s")
    assert "t_many makes 301 calls" in note and "at most 300" in note
    assert len(costly("small", costs)) == 1
    assert costly("small", {}) == []


def test_a_wrong_answer_costs_only_its_own_question(task: Any) -> None:
    verdicts = task(CHAIN).verdicts(square="def square(x):\n    return x + x")
    assert verdicts["t_square"].score == 0
    assert verdicts["t_norm"].score == 2
    assert verdicts["t_norm"].stood_in == ("square",)
    assert verdicts["t_total"].score == 3


PICK = [
    ("pick", "pick = 4711"),
    (
        "t_pick",
        "assert pick > 0\n### BEGIN HIDDEN TESTS\nassert pick == 4711\n### END HIDDEN TESTS",
        1,
    ),
    ("double", "def double(x):\n    return 2 * x"),
    ("t_double", "assert double(2) == 4, f'double(2) is {double(2)}'", 1),
    ("after", "def after(x):\n    return x"),
    ("t_after", "assert after(1) == 1, f'after(1) is {after(1)}'", 1),
]


KEEPS = "def double(x):\n    global kept\n    kept = pick\n    return 0 * pick"


STANDS_IN = {
    "returned": {"double": "def double(x):\n    return pick"},
    "raised": {"double": "def double(x):\n    raise ValueError(pick)"},
    "noted": {"double": "def double(x):\n    get_ipython().run_line_magic(f'x{pick}', '')"},
    "kept": {"double": KEEPS, "after": "print(kept)\ndef after(x):\n    return kept"},
    "there": {"double": KEEPS, "after": "print(pick)\ndef after(x):\n    return globals()['pick']"},
}


@pytest.mark.parametrize("way", STANDS_IN)
@pytest.mark.parametrize("shares", [False, True])
def test_what_stands_in_for_a_wrong_value_is_not_told(task: Any, way: str, shares: bool) -> None:
    shared = [*PICK[:2], ("t_one", "one = 1", 1), *PICK[2:], ("t_two", "assert one == 1", 1)]
    made = task(shared if shares else PICK)
    made.known = heard_of(made)
    result = made.grade(pick="pick = 1", **STANDS_IN[way])
    (notebook,) = result.notebooks
    assert any(verdict.stood_in for verdict in notebook.verdicts) or way == "raised"
    told = [verdict.told for verdict in notebook.verdicts if verdict.score == 0]
    seen = [*told, *notebook.outputs.values(), *notebook.notes, *notebook.by_tests]
    assert not [text for text in seen if "4711" in text], seen
    assert len(told) >= 2 and all(told)


def test_how_a_cell_of_his_own_stopped_is_told_though_the_reference_stood_in(task: Any) -> None:
    more = [("twice", "twice = double(pick)"), ("t_twice", "assert twice == 9422", 1)]
    made = task([*PICK, *more])
    answers = {"pick": "pick = 1", "twice": "raise ValueError(pick)"}
    told = made.verdicts(**answers, double="def double(x):\n    return 0")["t_twice"].told
    assert "ValueError: 1" in told and "4711" not in told


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        ("while True: pass\ndef square(x): return x * x", "timeout"),
        ("import os\nos._exit(0)", "died"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)", "died"),
        ("def square(x):\n    while True: pass", "timeout"),
        ("def square(x):\n    import os\n    os._exit(3)", "died"),
        ("def square(x:\n    pass", "error"),
        ("raise ValueError('at once')\ndef square(x): return x * x", "error"),
        ("def square(x): return 1 / 0", "error"),
        ("square = None", "failed"),
        ("x = 5", None),
        ("raise NotImplementedError()", None),
        ("def square(x): raise KeyboardInterrupt", "error"),
        ("import sys\nsys.exit(0)\ndef square(x): return x * x", None),
        ("import sys, os\nsys.setrecursionlimit(10**6)\ndef square(x): return square(x)", None),
    ],
    ids=lambda value: str(value)[:30],
)
def test_an_answer_that_hangs_dies_or_fails_costs_only_its_question(
    task: Any, answer: str, status: str | None
) -> None:
    verdicts = task(CHAIN, seconds=0.5).verdicts(square=answer)
    assert verdicts["t_square"].score == 0
    assert status is None or verdicts["t_square"].status == status
    assert verdicts["t_norm"].score == 2
    assert verdicts["t_total"].score == 3


LATER = """
import os, threading, time
def square(x): return x * x
threading.Timer(%s, lambda: os._exit(7)).start()
"""


NO_FORKS = """
import resource
def square(x): return x * x
resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
"""


REACH = "import gc\npeer = [o for o in gc.get_objects() if type(o).__name__ == 'Peer'][0]\n"


@pytest.mark.parametrize(
    "answer",
    [
        LATER % 0.2,
        LATER % 0.01,
        REACH + "peer.line.close()",
        REACH + "peer.line.sendall(b'nonsense' * 1000)",
        REACH + "peer.services.clear()",
        REACH + "peer.services['name'] = lambda name: __import__('time').sleep(60)",
        REACH + "peer.services['set'] = lambda *a: __import__('time').sleep(60)",
        REACH + "peer.services['run'] = lambda *a: {'printed': ['x'], 'error': {'kinds': 5}}",
        REACH + "type(peer).read = lambda self: __import__('os')._exit(1)",
        REACH + "peer.services['name'] = lambda name: [[[name]]] * 5",
        REACH + "import json\njson.dumps = lambda *a, **k: '[' * 100000",
        REACH + 'import json\njson.dumps = lambda *a, **k: \'{"r": ["Y", 7]}\'',
        "import os\nos.fork = lambda: (_ for _ in ()).throw(BlockingIOError(11, 'no'))",
        NO_FORKS,
        "def square(x):\n    import os, time\n    os.closerange(3, 1000)\n    time.sleep(60)",
    ],
    ids=lambda value: value.replace(REACH, "").strip()[-40:],
)
def test_a_runner_that_was_tampered_with_still_ends_in_a_result(task: Any, answer: str) -> None:
    result = task(CHAIN, seconds=0.5).grade(square=answer)
    assert isinstance(result, Result)
    found = {v.test: v.score for notebook in result.notebooks for v in notebook.verdicts}
    assert found.keys() == ALL.keys()
    assert all(0 <= found[test] <= points for test, points in ALL.items())
    assert found["t_square"] == 0 or "x * x" in answer


AREA = "import math\ndef area(r):\n    return math.pi * r * r"
RUNS = "def runs(xs):\n    return np.cumsum(xs)"
CLOSE = "assert np.allclose(area(2), 12.566370614)"
SUMS = "assert (runs([2, 3]) == np.array([2, 5])).all()\nassert runs([]).size == 0"
GONE = "def runs(xs):\n    return np.zeros((0, 1))"


@pytest.mark.parametrize("empty", ["[]", "()", "np.array([])", "np.zeros((0, 3))"])
@pytest.mark.parametrize("is_hidden", [False, True])
def test_a_result_without_entries_equals_no_numbers(task: Any, empty: str, is_hidden: bool) -> None:
    test = HIDDEN_PART.format(CLOSE) if is_hidden else CLOSE
    made = task([("area", AREA), ("t_area", test, 2)])
    found = made.verdicts(area=f"import numpy as np\ndef area(r):\n    return {empty}")["t_area"]
    assert found.score == 0
    assert found.told.startswith(
        "A hidden test failed." if is_hidden else f"A test failed: {NOTHING}"
    )
    assert made.scores(area=AREA + " * 1.0") == {"t_area": 2}
    assert made.scores(area="def area(r):\n    return [3.14159265359 * r ** 2]") == {"t_area": 2}


def test_a_result_without_entries_counts_where_the_reference_gives_one(task: Any) -> None:
    made = task([("runs", RUNS), ("t_runs", SUMS, 2)])
    assert made.scores(runs=GONE) == {"t_runs": 0}
    right = "def runs(xs):\n    return np.array([sum(xs[: i + 1]) for i in range(len(xs))])"
    assert made.scores(runs=right) == {"t_runs": 2}


ROWS = "def rows(xs):\n    return [[2.0 * x] for x in xs]"
SUMMED = "def runs(xs):\n    return [float(s) for s in np.cumsum(xs)]"
SPANS = "def spans(x):\n    x = np.asarray(x)\n    return {'mean': x.mean(keepdims=True), 'all': x}"
EMPTY = {
    "rows": ["[[] for x in xs]", "tuple(() for x in xs)", "[np.zeros(0)] * 2", "np.zeros((2, 0))"],
    "runs": ["np.zeros((0, 2))", "np.zeros((0, 2), complex)", "np.matrix(np.zeros((0, 2)))"],
    "area": ["[[], []]", "range(0)", "deque()", "array('d')", "[range(0)] * 2"],
    "spans": ["dict.fromkeys(range(30)) | {'mean': np.zeros(0)}", "defaultdict(lambda: r)"],
}


@pytest.mark.parametrize(
    ("name", "empty"), [(name, one) for name, some in EMPTY.items() for one in some]
)
def test_nothing_equals_no_numbers_whatever_holds_it(task: Any, name: str, empty: str) -> None:
    made = task(
        [
            ("rows", f"import numpy as np\n{ROWS}"),
            ("t_rows", "assert np.allclose(rows([1, 3]), [[2], [6]])", 2),
            ("runs", SUMMED),
            ("t_runs", "assert np.allclose(runs([2, 3]), [2, 5])", 2),
            ("area", AREA),
            ("t_area", CLOSE, 2),
            ("spans", SPANS),
            ("t_spans", "assert np.allclose(spans([1, 3])['mean'], 2)", 2),
        ]
    )
    imports = "from collections import *\nfrom array import array\nimport numpy as np\n"
    given = {"rows": "xs", "runs": "xs", "area": "r", "spans": "x"}[name]
    answer = f"{imports}r = np.zeros(0)\ndef {name}({given}):\n    return {empty}"
    assert made.scores(**{name: answer})[f"t_{name}"] == 0


def test_a_list_without_entries_may_be_right(task: Any) -> None:
    test = "assert split('ab') == [['a'], ['b']]\nassert few([3, 9]) == [] and few([]) == []"
    few = "def few(xs):\n    return [x for x in xs if x < 2]"
    parts = f"def split(t):\n    return [[c] for c in t]\n{few}"
    made = task([("split", parts), ("t_split", test, 2)])
    right = "def split(t):\n    return [*map(list, t)]\ndef few(xs):\n    return []"
    assert made.scores(split=right) == {"t_split": 2}
