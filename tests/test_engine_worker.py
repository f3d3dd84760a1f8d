"""A submission as a whole: what each answer is worth, and that nothing costs more than itself."""

import importlib
import json
import keyword
import os
import pickle
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from autograder.__main__ import MOST_CALLS, costly
from autograder.common.course import CourseError
from autograder.common.results import Result, Verdict
from autograder.isolation.clock import doubts
from autograder.isolation.fork_server import ForkServer
from autograder.isolation.outcomes import Unwell
from autograder.judge import attempts, budget, grading, old, rehearsal, testing, texts, work
from autograder.judge.assignment import Assignment, read_assignment
from autograder.judge.differences import keep

RULES = "[defaults]\nseconds = {seconds}\n"
FORBID = '[total]\nforbid = ["sum", "torch.softmax"]\n'
SETUP = "import math\nimport random\nimport numpy as np\nimport torch"
LOCKED = ("setup", "table")  # cells of the instructor's that nobody fills in
OPEN = ("look", "data", "star")  # ordinary cells of the instructor's, which a student may change


@pytest.fixture(scope="module")
def fork_server(open_fork_server: ForkServer) -> ForkServer:
    """Where students' processes come from, without the sandbox, which is not in question here."""
    importlib.import_module("autograder.bridge.tensors")  # here too, before any clock runs
    return open_fork_server


def _cell(id: str, source: str, kind: str, points: float | None = None) -> dict[str, Any]:
    marks: dict[str, Any] = {"grade_id": id, "schema_version": 3, "task": False}
    marks |= {"grade": kind == "test", "solution": kind == "solution", "locked": kind != "solution"}
    if points is not None:
        marks["points"] = points
    metadata = {} if kind == "code" else {"nbgrader": marks}
    return {
        "cell_type": "code",
        "id": id.replace("_", "-"),
        "source": source,
        "execution_count": None,
        "outputs": [],
        "metadata": metadata,
    }


def _text(source: str) -> dict[str, Any]:
    """A cell of text."""
    return {"cell_type": "markdown", "id": "words", "source": source, "metadata": {}}


def _notebook(cells: list[dict[str, Any]]) -> str:
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    made = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(made)


class Task:
    """An assignment of questions and tests, and what submissions to it get."""

    def __init__(
        self, folder: Path, fork_server: ForkServer, parts: list[tuple[Any, ...]], seconds: float
    ) -> None:
        self.folder, self.fork_server, self.parts = folder, fork_server, parts
        source = folder / "source" / "small"
        source.mkdir(parents=True)
        (source / "rules.toml").write_text(
            RULES.format(seconds=seconds) + FORBID * any(part[0] == "total" for part in parts)
        )
        (source / "small.ipynb").write_text(_notebook([self._instructors(*p) for p in parts]))
        self.assignment: Assignment = replace(read_assignment(source), stand_in=True)
        self.count = 0
        self.beside: dict[str, bytes] = {}  # what is handed in with the notebook
        self.known: Any = None  # what the reference gives
        self.added: dict[str, str] = {}  # a cell of the student's own behind the one of this name

    def _instructors(self, id: str, source: str, points: float | None = None) -> dict[str, Any]:
        if id == "words":
            return _text(source)
        if id in LOCKED + OPEN:
            return _cell(id, source, "readonly" if id in LOCKED else "code")
        if points is not None:
            return _cell(id, source, "test", points)
        return _cell(id, f"### BEGIN SOLUTION\n{source}\n### END SOLUTION", "solution")

    def grade(self, **answers: str) -> Result:
        """The result of these answers; to the other questions, the reference's."""
        self.count += 1
        folder = self.folder / "submitted" / f"s{self.count}" / "small"
        folder.mkdir(parents=True)
        cells = []
        for id, source, *points in self.parts:
            if id == "words":
                cells.append(_text(source))
            elif points:
                cells.append(_cell(id, "assert True", "test", points[0]))
            else:
                kind = "readonly" if id in LOCKED else "code" if id in OPEN else "solution"
                cells.append(_cell(id, str(answers.get(id, source)), kind))
            if id in self.added:
                cells.append(_cell(f"own-after-{id}", self.added[id], "code"))
        (folder / "small.ipynb").write_text(_notebook(cells))
        for name, content in self.beside.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(content)
        return grading.grade(
            self.assignment, folder, f"s{self.count}", self.fork_server, self.known
        )

    def verdicts(self, **answers: str) -> dict[str, Verdict]:
        """What each test is worth."""
        result = self.grade(**answers)
        assert not result.reason, result.reason
        return {v.test: v for notebook in result.notebooks for v in notebook.verdicts}

    def scores(self, **answers: str) -> dict[str, float]:
        """The points of each test."""
        return {test: verdict.score for test, verdict in self.verdicts(**answers).items()}


@pytest.fixture
def task(tmp_path: Path, fork_server: ForkServer) -> Callable[..., Task]:
    """task(parts) makes an assignment of (id, source) and (id, source, points)."""

    def make(parts: list[tuple[Any, ...]], seconds: float = 10.0) -> Task:
        return Task(tmp_path, fork_server, [("setup", SETUP), *parts], seconds)

    return make


CHAIN = [
    ("square", "def square(x):\n    return x * x"),
    ("t_square", "assert square(3) == 9\nassert square(-1) == 1", 1),
    ("norm", "def norm(xs):\n    return math.sqrt(sum(square(x) for x in xs))"),
    ("t_norm", "assert norm([3, 4]) == 5", 2),
    ("total", "def total(xs):\n    found = 0\n    for x in xs: found += x\n    return found"),
    ("t_total", "assert total([1, 2, 3]) == 6", 3),
]
ALL = {"t_square": 1, "t_norm": 2, "t_total": 3}


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
    made.known = Transcripts(made)
    result = made.grade(pick="pick = 1", **STANDS_IN[way])
    (notebook,) = result.notebooks
    assert any(verdict.stood_in for verdict in notebook.verdicts) or way == "raised"
    told = [verdict.told for verdict in notebook.verdicts if verdict.score == 0]
    seen = [*told, *notebook.outputs.values(), *notebook.notes]
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
    verdicts = task(CHAIN, seconds=1.5).verdicts(square=answer)
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
    result = task(CHAIN, seconds=1.5).grade(square=answer)
    assert isinstance(result, Result)
    found = {v.test: v.score for notebook in result.notebooks for v in notebook.verdicts}
    assert found.keys() == ALL.keys()
    assert all(0 <= found[test] <= points for test, points in ALL.items())
    assert found["t_square"] == 0 or "x * x" in answer


def test_a_forbidden_name_costs_its_question(task: Any) -> None:
    verdicts = task(CHAIN).verdicts(total="def total(xs):\n    return sum(xs)")
    assert verdicts["t_total"].status == "forbidden"
    assert "sum" in verdicts["t_total"].told
    assert verdicts["t_total"].score == 0
    assert verdicts["t_norm"].score == 2


def test_a_forbidden_operation_costs_its_question_however_it_is_called(task: Any) -> None:
    small = task(
        [
            ("total", "def total(x):\n    e = x.exp()\n    return e / e.sum()"),
            ("t_total", "assert abs(float(total(torch.zeros(4)).sum()) - 1) < 1e-6", 2),
        ]
    )
    assert small.scores() == {"t_total": 2}
    verdict = small.verdicts(total="def total(x):\n    return torch.nn.Softmax(-1)(x)")["t_total"]
    assert (verdict.status, verdict.score) == ("forbidden", 0)
    assert "softmax" in verdict.told


READS = """\
def total(xs):
    import json
    from pathlib import Path
    return json.loads(Path("data/sums.json").read_text())[str(xs)] + float(open("one.csv").read())
"""
FROM_MINE = "from mine import add\n\ndef total(xs):\n    return add(xs)"
ADDS = b"def add(xs):\n    found = 0\n    for x in xs: found += x\n    return found\n"


def test_an_answer_may_read_the_files_that_the_rules_allow(task: Any) -> None:
    made = task(CHAIN)
    made.beside = {"data/sums.json": b'{"[1, 2, 3]": 5}', "one.csv": b"1", "mine.py": ADDS}
    assert made.scores(total=READS)["t_total"] == 0
    allowed = replace(made.assignment.rules, files=("*.csv", "data/*", "*.py"))
    made.assignment = replace(made.assignment, rules=allowed)
    assert made.scores(total=READS)["t_total"] == 3
    assert made.scores(total=FROM_MINE)["t_total"] == 3
    made.beside = {"mine.py": b"def add(xs):\n    return sum(xs)\n"}
    verdict = made.verdicts(total=FROM_MINE)["t_total"]
    assert verdict.status == "forbidden" and "of your mine.py" in verdict.told


def test_a_file_that_cannot_be_laid_out_costs_nothing(task: Any) -> None:
    made = task(CHAIN)
    made.beside = {"x" * 200 + ".csv": b"1"}
    allowed = replace(made.assignment.rules, files=("*",))
    made.assignment = replace(made.assignment, rules=allowed)
    assert made.scores() == ALL


NEEDED = "def total(xs):\n    return ready(xs)"


@pytest.mark.parametrize(
    "cell",
    [
        "exec('ready = su' + 'm')",
        "def keep(f):\n    global ready\n    ready = f\nkeep(sum)",
        "vars(__import__('builtins'))['ready'] = sum",
    ],
)
def test_an_answer_that_needs_what_nobody_can_read_has_no_points(task: Any, cell: str) -> None:
    made = task([("look", "1"), *CHAIN])
    verdicts = made.verdicts(look=cell, total=NEEDED)
    assert verdicts["t_total"].status == "forbidden"
    assert "cannot be read before it runs; write the answer" in verdicts["t_total"].told
    assert verdicts["t_norm"].score == 2
    assert made.scores(look=cell) == ALL, "who does not need it loses nothing"


PLUS = "def total(xs):\n    return xs[0] + xs[1] + xs[2]\n"


@pytest.mark.parametrize(
    "line",
    [
        "import timeit\nprint(timeit.timeit(lambda: total([1, 2, 3]), number=2))",
        "import inspect\nprint(inspect.signature(total))",
        "import gc\ngc.collect()",
        "print('total' in globals(), total.__code__.co_name)",
        "import doctest\ndoctest.run_docstring_examples(total, globals())",
        "if __name__ == '__main__':\n    import inspect\n    print(inspect.getsource(total))",
    ],
)
def test_a_line_beside_the_answer_costs_nothing_unless_the_answer_needs_it(
    task: Any, line: str
) -> None:
    made = task([("look", "1"), *CHAIN])
    assert made.scores(total=f"{PLUS}{line}\n") == ALL
    needs = f"exec('ready = su' + 'm')\n{NEEDED}\n{line}\n"
    assert made.verdicts(total=needs)["t_total"].status == "forbidden"


LOOKED = [
    ("look", "1"),
    ("double", "def double(x):\n    return x * 2"),
    ("t_double", "assert double(2) == 4", 1),
    *CHAIN[4:],
]
POINTS_OF_BOTH = {"t_double": 1, "t_total": 3}


def test_what_another_answer_calls_costs_only_the_answers_that_use_it(task: Any) -> None:
    made = task(LOOKED)
    keeps = "def double(x):\n    found = {}\n    found[0] = sum([x, x])\n    return found[0]"
    assert made.scores(double=keeps) == POINTS_OF_BOTH
    uses = "def total(xs):\n    return double(xs[0]) + double(xs[1])"
    assert made.verdicts(double=keeps, total=uses)["t_total"].status == "forbidden"


CALLS = [*LOOKED[:-1], ("t_total", "assert total([1, 2, double(1.5)]) == 6", 3)]
RUNS = "def double(x):\n    return x * 2 * float(torch.softmax(torch.ones(1), -1))"


def test_what_another_answer_runs_while_a_test_calls_it_costs_nothing(task: Any) -> None:
    made = task(CALLS)
    assert made.scores(double=RUNS) == POINTS_OF_BOTH
    own = "def total(xs):\n    return 6 * float(torch.nn.functional.softmin(torch.ones(1), 0))"
    leans = "def total(xs):\n    return double(xs[0]) + 4"
    through = "def total(xs):\n    return ready(xs)"
    for answer in (own, leans, through):
        verdicts = made.verdicts(look="ready = lambda xs: double(1) + 4", double=RUNS, total=answer)
        assert verdicts["t_total"].status == "forbidden", answer


@pytest.mark.parametrize(
    "cell",
    [
        "def total(xs):\n    return sum(xs)\nprint(total([1]))",
        "total = sum",
        "from torch import softmax as total",
        "sum = 3\nprint(sum)",
        "def sum(xs):\n    return 6",
    ],
)
def test_a_name_that_meant_something_else_before_costs_nothing(task: Any, cell: str) -> None:
    assert task(LOOKED).scores(look=cell) == POINTS_OF_BOTH


@pytest.mark.parametrize(
    ("cell", "answer"),
    [
        ("def total(xs):\n    return sum(xs)", "1 / 0\ndef total(xs):\n    return 6"),
        ("total = sum", "if False:\n    def total(xs):\n        return 6"),
        ("total = sum", "kept = total\ndef total(xs):\n    return kept(xs)"),
        ("1", "def total(xs):\n    return sum(xs)\n1 / 0\ndef sum(xs):\n    return 5"),
        ("1", "def total(xs):\n    return sum(xs)\n[][0]\nsum = 6"),
        (
            "sum = 6\ndef drop():\n    global sum\n    del sum\ndrop()",
            NEEDED.replace("ready", "sum"),
        ),
        ("from __future__ import barry_as_FLUFL", "1 <> 2\ndef total(xs):\n    return sum(xs)"),
        ("1", "    def total(xs):\n        return sum(xs)"),
        (">>> def ready(xs):\n...     return sum(xs)", NEEDED),
        ("%time ready = sum", NEEDED),
        ("%config A.b = [ready := sum]", NEEDED),
        ("%%capture\n%%writefile mine.py\nready = sum", f"from mine import ready\n{NEEDED}"),
        ("%%writefile 'mine.py' -a\nready = sum", f"from mine import ready\n{NEEDED}"),
        (
            "%%writefile mine.py\n# coding: utf-7\n# +AAo-ready = sum\nready: int",
            f"from mine import ready\n{NEEDED}",
        ),
    ],
)
def test_what_runs_is_what_counts(task: Any, cell: str, answer: str) -> None:
    verdicts = task(LOOKED).verdicts(look=cell, total=answer)
    assert verdicts["t_total"].score == 0
    assert verdicts["t_double"].score == 1


@pytest.mark.parametrize(
    ("cell", "answer"),
    [
        ("sum = 0", "def total(xs):\n    return sum + xs[0] + xs[1] + xs[2]"),
        ("def sum(xs):\n    return 6", "def total(xs):\n    return sum(xs)"),
        ("1", "sum = 6\ndef total(xs):\n    return sum"),
        ("n = %time 6", "    def total(xs):\n        return n"),
        ("exec('1')\nn = %time 6", "def total(xs):\n    return n"),
        (
            "%%writefile 'mine.py'\n# coding: latin-1\nn = 6",
            "from mine import n\ntotal = lambda x: n",
        ),
        ("1", "def total(xs):\n    last = xs[2]\n    found = %time last * 2\n    return found"),
        (
            "exec('1')\ndef six(last):\n    found = %time last + last\n    return found",
            "def total(xs):\n    return six(xs[2])",
        ),
        (
            "class Ops:\n    @staticmethod\n    def softmax(n): return n * 2",
            "total = lambda x: Ops.softmax(x[2])",
        ),
    ],
)
def test_what_is_the_students_own_is_no_rules_business(task: Any, cell: str, answer: str) -> None:
    assert task(LOOKED).scores(look=cell, total=answer) == POINTS_OF_BOTH


def test_where_nobody_knows_whether_an_answer_needs_it_the_instructor_looks(
    task: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = task([("look", "1"), *CHAIN])
    monkeypatch.setattr(budget.Budget, "may_repeat", False)
    result = made.grade(look="exec('ready = su' + 'm')", total=NEEDED)
    assert {v.test: v.score for n in result.notebooks for v in n.verdicts} == ALL
    assert [flag.words[:9] for flag in result.flags if flag.kind == "forbidden"] == ["Not sure:"]


def test_an_answer_that_changes_its_input_is_told_so(task: Any) -> None:
    made = task(
        [
            ("double", "def double(x):\n    return x * 2"),
            ("t_double", "x = np.ones(3)\nassert (double(x) == x * 2).all()", 2),
            ("fill", "def fill(xs):\n    xs.append(1)"),
            ("t_fill", "xs = []\nfill(xs)\nassert xs == [1]", 1),
        ]
    )
    cheat = "def double(x):\n    x[:] = 0\n    return x"
    verdicts = made.verdicts(double=cheat)
    assert verdicts["t_double"].score == 0
    assert "changes what it was handed" in verdicts["t_double"].said + verdicts["t_double"].told
    assert verdicts["t_fill"].score == 1
    assert made.scores(fill="def fill(xs):\n    xs += [1]") == {"t_double": 2, "t_fill": 1}


LEFT = [  # (reference, test, an answer that changes what it was handed)
    (
        "def of(d):\n    d = collections.deque(d)\n    d.rotate(1)\n    return d",
        "d = collections.deque([1, 2])\nassert list(of(d)) == [2, 1]\nassert list(d) == [1, 2]",
        "def of(d):\n    d.rotate(1)\n    return d",
    ),
    (
        "def of(c):\n    return c + c",
        "c = collections.Counter('ab')\nassert of(c)['a'] == 2\nassert c['a'] == 1",
        "def of(c):\n    c.update(c)\n    return c",
    ),
    (
        "def of(d):\n    d = d.copy()\n    d['a'] += 1\n    return d",
        "d = collections.defaultdict(int)\nassert of(d)['a'] == 1\nassert not d",
        "def of(d):\n    d['a'] += 1\n    return d",
    ),
    (
        "def of(b):\n    return bytearray(reversed(b))",
        "b = bytearray(b'ab')\nassert of(b) == b'ba'\nassert b == b'ab'",
        "def of(b):\n    b.reverse()\n    return b",
    ),
]


@pytest.mark.parametrize(("reference", "test", "wrong"), LEFT)
def test_a_holder_of_any_kind_that_is_to_be_left_as_it_is(
    task: Any, reference: str, test: str, wrong: str
) -> None:
    given = ("table", "import collections")
    made = task([given, ("of", reference), ("t_of", test, 1)])
    assert made.scores() == {"t_of": 1}
    assert made.scores(of=wrong) == {"t_of": 0}


def test_a_right_change_of_a_holder_in_place_counts(task: Any) -> None:
    given = "import collections\ndef add(d, x):\n    d.append(x)"
    test = "d = collections.deque([1, 2], 2)\nadd(d, 3)\nassert list(d) == [2, 3]"
    made = task([("add", given), ("t_add", test, 1)])
    assert made.scores(add="def add(d, x):\n    d += [x]") == {"t_add": 1}
    assert made.scores(add="def add(d, x):\n    pass") == {"t_add": 0}


SAME = [  # (what is handed over, an answer that gives it back, the reference)
    ("[2, 1]", "return x", "return list(x)"),
    ("np.array([2, 1])", "return x", "return x.copy()"),
    ("torch.tensor([2, 1])", "return x", "return x.clone()"),
    ("collections.deque([2, 1])", "return x", "return x.copy()"),
    ("[[2], [1]]", "return x[0], x", "return list(x[0]), [list(one) for one in x]"),
    ("[[2], [1]]", "x[0].append(3)\n    return x", "return [[*x[0], 3], x[1]]"),
    ("[2, 1]", "x.sort()\n    return x", "return sorted(x)"),
    ("np.array([2, 1])", "x += 1\n    return x", "return x + 1"),
    ("torch.tensor([2, 1])", "x += 1\n    return x", "return x + 1"),
    (
        "collections.Counter([2, 1])",
        "x[2] += 1\n    return x",
        "return x + collections.Counter([2])",
    ),
]


@pytest.mark.parametrize(("value", "answer", "reference"), SAME)
def test_an_answer_may_give_back_what_it_was_handed(
    task: Any, value: str, answer: str, reference: str
) -> None:
    test = f"assert str(of({value})) == str(of({value}))"
    parts = [("table", "import collections"), ("of", f"def of(x):\n    {reference}")]
    made = task([*parts, ("t_of", test, 1)])
    assert made.scores(of=f"def of(x):\n    {answer}") == {"t_of": 1}


def test_an_answer_that_counts_its_calls_cannot_hide_it_in_what_it_was_handed(task: Any) -> None:
    test = "assert of([1]) == [1, 0]\nassert of([2]) == [2, 0]"
    made = task([("of", "def of(x):\n    return [*x, 0]"), ("t_of", test, 1)])
    assert made.scores(of="def of(x):\n    x.append(0)\n    return x") == {"t_of": 1}
    count = "n = 1\ndef of(x):\n    global n\n    x[:] = [n, 0]\n    n = 3 - n\n    return x"
    assert made.scores(of=count) == {"t_of": 0}


VIEW = "x = np.arange(6).reshape(2, 3)\nrow = of(x)\nrow[0] = 9\nassert x[0, 0] == 0"


def test_a_view_where_a_copy_is_asked_for(task: Any) -> None:
    made = task([("of", "def of(x):\n    return x[0].copy()"), ("t_of", VIEW, 1)])
    assert made.scores() == {"t_of": 1}
    assert made.scores(of="def of(x):\n    return x[0]") == {"t_of": 0}
    assert made.scores(of="def of(x):\n    return np.array(x)[0]") == {"t_of": 1}


SONGS = """\
class Songs:
    def __init__(self, songs=()):
        self.all = list(songs)
    def add(self, song):
        self.all.append(song)
    def give(self):
        return list(self.all)
"""
HANDS_OUT = SONGS.replace("return list(self.all)", "return self.all")
KEEPS = SONGS.replace("list(songs)", "songs")
TEST_GIVEN = """\
s = Songs()
s.add("a")
given = s.give()
given.append("b")
assert s.give() == ["a"]
"""
TEST_HANDED = """\
xs = ["a"]
s = Songs(xs)
xs.append("b")
assert s.give() == ["a"]
"""


@pytest.mark.parametrize(
    ("test", "answer", "score"),
    [
        (TEST_GIVEN, HANDS_OUT, 0),
        (TEST_GIVEN, KEEPS.replace("songs=()", "songs=None").replace("= songs", "= []"), 1),
        (TEST_HANDED, KEEPS, 0),
        (TEST_HANDED, HANDS_OUT, 1),  # what it hands out is compared, and not changed
    ],
)
def test_a_list_that_is_shared_with_the_test_is_one_list(
    task: Any, test: str, answer: str, score: int
) -> None:
    made = task([("songs", SONGS), ("t_songs", test, 1)])
    assert made.scores() == {"t_songs": 1}
    assert made.scores(songs=answer) == {"t_songs": score}


STEP = """\
import torch
def step(m, o, x):
    o.zero_grad()
    loss = m(x).pow(2).mean()
    loss.backward()
    o.step()
    return loss
"""
TEST_STEP = """\
import torch
m = torch.nn.Linear(2, 1)
o = torch.optim.SGD(m.parameters(), lr=0.1)
x = torch.ones(4, 2)
w = m.weight.clone()
one = step(m, o, x).item()
assert step(m, o, x).item() < one
assert not torch.equal(w, m.weight)
"""
OWN_STEP = """\
import torch
def step(model, opt, x):
    opt.zero_grad()
    loss = (model(x) ** 2).mean()
    loss.backward()
    opt.step()
    return loss
"""
NO_STEP = """\
import torch
def step(m, o, x):
    return torch.tensor(0.0)
"""


def test_an_answer_that_is_asked_to_train_a_model_may_change_it(task: Any) -> None:
    made = task([("step", STEP), ("t_step", TEST_STEP, 2)])
    assert made.scores(step=OWN_STEP) == {"t_step": 2}
    assert made.scores(step=NO_STEP) == {"t_step": 0}


LEARN = """\
def learn(model, x):
    model.weight.grad = None
    ((model(x) - 1) ** 2).sum().backward()
    with torch.no_grad():
        model.weight -= 0.1 * model.weight.grad
"""
TEST_LEARN = """\
model, x = torch.nn.Linear(2, 1, bias=False), torch.ones(3, 2)
wanted = torch.nn.Linear(2, 1, bias=False)
wanted.load_state_dict(model.state_dict())
learn(model, x)
((wanted(x) - 1) ** 2).sum().backward()  # from the same batch, after the call
with torch.no_grad():
    wanted.weight -= 0.1 * wanted.weight.grad
assert torch.allclose(model.weight, wanted.weight), "the weight should go against its gradient"
"""


@pytest.mark.parametrize(
    ("answer", "score"),
    [
        (LEARN, 2),
        ("def learn(model, x):\n    x.zero_()", 0),  # no gradient is right for no batch
        (LEARN + "    x.mul_(1)", 2),
        (LEARN + "    x.add_(1).sub_(1)", 2),
    ],
)
def test_what_the_reference_changes_is_all_that_an_answer_may_change(
    task: Any, answer: str, score: int
) -> None:
    assert task([("learn", LEARN), ("t_learn", TEST_LEARN, 2)]).scores(learn=answer) == {
        "t_learn": score
    }


PARTIAL = [
    ("share", "def share():\n    return 0.5"),
    ("t_share", "2 * share()", 2),
]


@pytest.mark.parametrize(
    ("value", "score"),
    [
        ("0.5", 1.0),
        ("1", 2.0),
        ("0", 0.0),
        ("np.float32(0.25)", 0.5),
        ("np.int64(1)", 2.0),
        ("np.array(0.5)", 1.0),
        ("float('nan')", 0.0),
        ("float('inf')", 0.0),
        ("-1", 0.0),
        ("1.01", 0.0),
        ("10 ** 400", 0.0),
        ("True", 2.0),
    ],
)
def test_partial_credit_counts_what_is_a_number_of_points(
    task: Any, value: str, score: float
) -> None:
    made = task(PARTIAL)
    verdict = made.verdicts(share=f"def share():\n    return {value}")["t_share"]
    assert verdict.score == pytest.approx(score)


@pytest.mark.parametrize("last", ["3", "-0.1", "float('nan')"])
def test_a_test_that_ends_in_a_wrong_number_of_points_is_the_instructors_fault(
    task: Any, last: str
) -> None:
    made = task([PARTIAL[0], ("t_share", f"assert share()\n{last}", 2)])
    verdict = made.verdicts()["t_share"]
    assert verdict.status == "test-error"
    assert verdict.score == 0
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints


@pytest.mark.parametrize("last", ["True", "False", "share() == 0.5", "'done'", "[share()]"])
def test_a_test_that_ends_in_no_number_with_the_reference_either_gives_all_points(
    task: Any, last: str
) -> None:
    made = task([PARTIAL[0], ("t_share", f"assert share()\n{last}", 2)])
    verdict = made.verdicts()["t_share"]
    assert verdict.status == "passed"
    assert verdict.score == 2
    assert made.scores(share="def share():\n    return 0") == {"t_share": 0}
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []


def test_an_answer_names_no_error_of_its_own_so_that_it_counts_as_the_tests(task: Any) -> None:
    made = task([PARTIAL[0], ("t_share", "share()\nshare() == 0.5", 2)])
    raises = "class {}(Exception): pass\ndef share(): raise {}()"
    for name in ("NoNumber", "BadScore"):
        assert made.scores(share=raises.replace("{}", name)) == {"t_share": 0}


def test_an_answer_that_makes_no_number_of_a_score_gets_nothing(task: Any) -> None:
    made = task([("share", "def share():\n    return 0.5"), ("t_share", "share()", 2)])
    for value in ("True", "'2'", "[2]", "lambda: 2"):
        verdict = made.verdicts(share=f"def share():\n    return {value}")["t_share"]
        assert verdict.status == "failed"
        assert verdict.score == 0


TEST_NEAR = """\
near = 1 - abs(share(1) - 0.5)
checks = [share(2) == 0.5]
2 * near * sum(checks)
"""
YES = """\
class Yes:
    def __sub__(self, other): return self
    __rsub__ = __add__ = __radd__ = __mul__ = __rmul__ = __truediv__ = __sub__
    def __abs__(self): return self
    def __float__(self): return 2.0
    def __eq__(self, other): return True
    __lt__ = __le__ = __gt__ = __ge__ = __eq__
def share(x): return Yes()
"""


def test_an_object_of_the_answer_is_no_number_of_points(task: Any) -> None:
    made = task([("share", "def share(x):\n    return 0.5"), ("t_share", TEST_NEAR, 2)])
    assert made.scores() == {"t_share": 2}
    assert made.scores(share=YES) == {"t_share": 0}


MONEY = """\
class Money:
    def __init__(self, cents): self.cents = cents
    def __add__(self, other): return Money(self.cents + other.cents)
    def __lt__(self, other): return self.cents < other.cents
"""
TEST_MONEY = """\
assert (Money(2) + Money(3)).cents == 5
assert Money(1) < Money(2)
assert not Money(3) < Money(2)
"""


def test_objects_have_the_operators_that_the_references_objects_have(task: Any) -> None:
    made = task([("money", MONEY), ("t_money", TEST_MONEY, 1)])
    assert made.scores() == {"t_money": 1}
    assert made.scores(money=MONEY.replace("<", ">")) == {"t_money": 0}


RANKER = """\
class Ranker:
    def __init__(self): self.all = []
    def add(self, x):
        self.all.append(x)
    def ranking(self): return sorted(self.all)
"""
TEST_RANKER = """\
r = Ranker()
for number in (3, 1, 2):
    r.add(number)
found = r.ranking()
assert sorted(found) == [1, 2, 3]
assert all(found[i] <= found[i + 1] for i in range(2))
"""
LIES = """
class Lie:
    def __init__(self, all): self.all = all
    def __iter__(self): return iter(self.all)
    def __getitem__(self, place): return 0
    def __len__(self): return len(self.all)
"""
ITSELF = "self.all.append(x)\n        return self"


FLUENT = RANKER.replace("self.all.append(x)", ITSELF)


@pytest.mark.parametrize("reference", [RANKER, FLUENT])
@pytest.mark.parametrize("gives", [ITSELF, ITSELF.replace("self.all.", "made[0].all.")])
def test_an_object_that_a_call_gives_once_more_still_has_to_give_values(
    task: Any, reference: str, gives: str
) -> None:
    made = task([("ranker", reference), ("t_ranker", TEST_RANKER, 1)])
    made.known = Transcripts(made)
    assert made.scores(ranker=FLUENT) == {"t_ranker": 1}
    lies = RANKER.replace("self.all.append(x)", gives)
    lies = lies.replace("sorted(self.all)", "Lie(self.all)")
    lies = lies.replace("self.all = []", "self.all = []; made.append(self)")
    assert made.scores(ranker="made = []\n" + lies + LIES) == {"t_ranker": 0}


def test_which_numbers_a_test_draws_cannot_be_known_from_its_name(task: Any) -> None:
    drawn = "random.seed('t_f')\nfirst = random.random()\n"
    test = "x = random.random()\nassert f(x) == x"
    made = task([("f", "def f(x):\n    return x"), ("t_f", test, 1)])
    assert made.scores(f=drawn + "def f(x):\n    return first") == {"t_f": 0}


TEST_HIDDEN = """\
assert f(1) == 1, 'f(1) should be 1'
### BEGIN HIDDEN TESTS
assert f(77) == 77, f'secret {f(77) + 72}'
### END HIDDEN TESTS
"""


def test_a_failure_in_a_hidden_line_is_not_shown(task: Any) -> None:
    made = task([("f", "def f(x):\n    return x"), ("t_f", TEST_HIDDEN, 1)])
    seen = made.verdicts(f="def f(x):\n    return 0")["t_f"]
    assert not seen.hidden
    assert "f(1) should be 1" in seen.told
    hidden = made.verdicts(f="def f(x):\n    return min(x, 5)")["t_f"]
    assert hidden.hidden
    assert "77" not in hidden.told
    assert hidden.score == 0


ENDINGS = """\
import os
def f(x):
    if x == 77:
        open('kept', 'w').write('x')
    elif x == 2 and os.path.exists('kept'):
        {}
    return x if x in (1, 77) else -1
"""


@pytest.mark.parametrize(
    "end", ["os._exit(3)", "os.kill(os.getpid(), 11)", "raise NotImplementedError", "return 0"]
)
def test_how_a_visible_test_ends_after_a_hidden_one_tells_nothing(task: Any, end: str) -> None:
    after = "assert f(2) == 2, f'f(2) is {f(2)}'"
    made = task([("f", "def f(x):\n    return x"), ("t_f", TEST_HIDDEN, 1), ("t_g", after, 1)])
    told = made.verdicts(f=ENDINGS.format(end))
    assert told["t_f"].score == 1
    assert (told["t_g"].score, told["t_g"].status) == (0, "failed")
    assert told["t_g"].told == "A test failed: f(2) is -1"


CALLS_BACK = """\
def inside(x):
    assert 0 <= x <= 1, f'f is asked between 0 and 1 only, not at {x}'
    return x
assert f(inside, 1) == 1
### BEGIN HIDDEN TESTS
assert f(abs, 77) == 77
### END HIDDEN TESTS
"""
KEEPS_IT = """\
kept = []
def f(of, x):
    kept.append(of)
    try:
        kept[0](x)
    except AssertionError:
        pass
    return of(x)
"""


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("where", ["seen", "hidden"])
def test_a_test_that_takes_names_from_one_with_a_hidden_part_accuses_nobody(
    task: Any, where: str, shared: bool
) -> None:
    seen, hidden = ("cc = 3", "pass") if where == "seen" else ("pass", "cc = 3")
    second = [("g", "def g(x):\n    return x")] if shared else []
    made = task(
        [
            ("f", "def f(x):\n    return x + 1"),
            ("t_one", f"{seen}\nassert f(1) == 2" + HIDDEN_PART.format(hidden), 1),
            *second,
            ("t_two", "assert f(cc) == 4, 'f(3) is 4'", 1),
        ]
    )
    assert made.scores() == {"t_one": 1, "t_two": 1}
    told = made.verdicts(f="def f(x):\n    return 2 if x == 1 else 7")["t_two"]
    assert told.score == 0 and "NameError" not in told.told + told.said
    assert ("f(3) is 4" in told.told) == (where == "seen"), told


def test_a_claim_of_the_visible_part_that_is_met_in_the_hidden_one_is_hidden(task: Any) -> None:
    made = task([("f", "def f(of, x):\n    return of(x)"), ("t_f", CALLS_BACK, 1)])
    assert made.scores() == {"t_f": 1}
    told = made.verdicts(f=KEEPS_IT)["t_f"]
    assert told.hidden
    assert told.score == 0
    assert "77" not in told.told
    seen = made.verdicts(f=KEEPS_IT.replace("kept[0](x)", "of(5)"))["t_f"]
    assert not seen.hidden
    assert "not at 5" in seen.told


QUEUE = """\
class Queue:
    def __init__(self): self.data = []
    def push(self, x): self.data.append(x)
    def pop(self): return self.data.pop(0)
    def empty(self): return not self.data
    def size(self): return len(self.data)
"""
DRAINED = """\
q = Queue()
q.push(1)
while not q.empty():
    q.pop()
assert q.size() == 0
### BEGIN HIDDEN TESTS
for number in range(63):
    q.push(number)
assert q.size() == 63
### END HIDDEN TESTS
"""
ENDLESS = """\
class Queue:
    asked = 0
    def push(self, x): pass
    def pop(self): return -1
    def empty(self):
        self.asked += 1
        return self.asked > {}
    def size(self): return -1
"""


def test_more_calls_than_the_visible_part_has_meet_no_value_of_the_hidden_one(task: Any) -> None:
    made = task([("queue", QUEUE), ("t_queue", DRAINED, 1)])
    made.known = Transcripts(made)
    for asked in (31, 32, 33):
        verdict = made.verdicts(queue=ENDLESS.format(asked))["t_queue"]
        assert not verdict.hidden and "63" not in verdict.told, verdict.told
    hidden = made.verdicts(queue=QUEUE.replace("append(x)", "extend([x] * (len(self.data) + 1))"))
    assert hidden["t_queue"].hidden and "63" not in hidden["t_queue"].told


SPANS = """\
from __future__ import annotations
def twice(x: 1 / 0): return 2 * f(x)
f(0)
for x in (1, 2):
    f(x)
    ### BEGIN HIDDEN TESTS
    f(3)
    ### END HIDDEN TESTS
def late(x: 1 / 0): return x
f(4)
twice(f(2)) / {points}
"""


def test_a_cell_in_two_parts_runs_as_one(task: Any) -> None:
    made = task([("f", "def f(x):\n    return x"), ("t_f", SPANS.format(points=4), 1)])
    (run,) = rehearsal.runs(made.assignment, {}, made.fork_server, ["f"]).values()
    assert run.score == 1
    assert [call.outcome for call in run.transcript if not call.hidden] == [0]
    assert [call.outcome for call in run.transcript if call.hidden] == [1, 3, 2, 3, 4, 2, 2]
    wrong = made.verdicts(f="def f(x):\n    if x == 4: raise ValueError\n    return x")["t_f"]
    assert wrong.hidden and wrong.score == 0


def test_a_test_without_a_hidden_part_is_visible_to_its_last_line(task: Any) -> None:
    made = task([("f", "def f(x):\n    return x"), ("t_f", "assert f(1) == 1\nf(2) / 2", 1)])
    (run,) = rehearsal.runs(made.assignment, {}, made.fork_server, ["f"]).values()
    assert [call.hidden for call in run.transcript] == [False, False]


WITH_UNITTEST = """\
import unittest
class Roman(unittest.TestCase):
    def test_one(self):
        self.assertEqual(roman(1), "I")
    def test_four(self):
        with self.subTest(4):
            self.assertEqual(roman(4), "IV")
result = unittest.TestResult()
unittest.defaultTestLoader.loadTestsFromTestCase(Roman).run(result)
assert result.wasSuccessful(), "roman is wrong"
"""


@pytest.mark.parametrize(
    "raised",
    [
        "unittest.SkipTest('later')",
        "unittest.case._ShouldStop()",
        "unittest.case._UnexpectedSuccess()",
        "type('Later', (unittest.SkipTest,), {})()",
        "type('Later', (unittest.SkipTest, ValueError), {})()",
    ],
)
def test_no_answer_ends_a_test_as_its_runner_would(task: Any, raised: str) -> None:
    right = "def roman(n):\n    return {1: 'I', 4: 'IV'}[n]"
    made = task([("roman", right), ("t_roman", WITH_UNITTEST, 2)])
    assert made.scores() == {"t_roman": 2}
    answer = f"import unittest.case\ndef roman(n):\n    raise {raised}"
    assert made.scores(roman=answer) == {"t_roman": 0}


SCALED = """\
out = scale(torch.ones(3))
assert out.shape == (3,)
assert out.allclose(3 * torch.ones(3))
"""
PASSES_FOR = "def scale(x):\n    {}\n    return {}"
HELD = {
    "namespace": ("import types", "types.SimpleNamespace(shape=x.shape, allclose={})"),
    "tuple": (
        "import collections; P = collections.namedtuple('P', 'shape allclose')",
        "P(x.shape, {})",
    ),
    "chain": ("import types", "types.SimpleNamespace(shape=x.shape, allclose=[{}])"),
}


@pytest.mark.parametrize(
    "kind", ["torch.nn.Identity", "list", "dict", "np.float64", "type('A', (), {})"]
)
@pytest.mark.parametrize("way", HELD)
def test_what_holds_a_class_is_no_value(task: Any, way: str, kind: str) -> None:
    made = task([("scale", "def scale(x):\n    return 2 * x + 1"), ("t_scale", SCALED, 2)])
    made.known = Transcripts(made)
    assert made.scores() == {"t_scale": 2}
    first, value = HELD[way]
    answer = PASSES_FOR.format(first, value.format(kind))
    assert made.scores(scale=answer) == {"t_scale": 0}


def test_who_fails_what_the_reference_fails_is_not_to_blame(task: Any) -> None:
    made = task(CHAIN)
    made.known = Transcripts(made)
    made.known.unable = frozenset({"t_norm"})
    wrong = {"norm": "def norm(xs):\n    return 0", "total": "def total(xs):\n    return 0"}
    verdicts = made.verdicts(**wrong)
    assert verdicts["t_norm"].status == "test-error"
    assert "no fault of yours" in verdicts["t_norm"].told
    assert verdicts["t_total"].status == "failed"
    assert made.verdicts()["t_norm"].status == "passed"


FIELD = "import collections\nField = collections.namedtuple('Field', 'name kind')\n"


def test_a_class_in_a_value_is_the_answers_where_the_reference_gives_one(task: Any) -> None:
    right = FIELD + "def fields():\n    return [Field('age', int), Field('name', str)]"
    test = "assert fields()[0].kind is int and fields()[1].kind('a') == 'a'"
    made = task([("fields", right), ("t_fields", test, 2)])
    assert made.scores() == {"t_fields": 2}
    made.known = Transcripts(made)
    assert made.scores() == {"t_fields": 2}


TOTAL = """\
def total(n):
    found = 0
    for x in squares(n): found += x
    return found
"""
TEST_USES = """\
old = squares
del squares
try:
    total(3)
except NameError:
    pass
else:
    raise AssertionError('total does not use squares')
finally:
    squares = old
assert total(4) == 14
"""


def test_a_test_may_take_away_and_replace_what_an_answer_defines(task: Any) -> None:
    made = task(
        [
            ("squares", "def squares(n):\n    return [i * i for i in range(n)]"),
            ("t_squares", "assert squares(3) == [0, 1, 4]", 1),
            ("total", TOTAL),
            ("t_uses", TEST_USES, 2),
            ("t_other", "def squares(n):\n    return [1] * n\nassert total(5) == 5", 2),
        ]
    )
    full = {"t_squares": 1, "t_uses": 2, "t_other": 2}
    assert made.scores() == full
    alone = "def total(n):\n    found = 0\n    for i in range(n): found += i * i\n    return found"
    assert made.scores(total=alone) == full | {"t_uses": 0, "t_other": 0}


def test_tests_may_share_what_they_made(task: Any) -> None:
    made = task(
        [
            ("make", "def make(n):\n    return list(range(n))"),
            ("t_make", "made = make(3)\nassert made == [0, 1, 2]", 1),
            ("grow", "def grow(xs):\n    return xs + [len(xs)]"),
            ("t_grow", "made = grow(made)\nassert made == [0, 1, 2, 3]", 1),
            ("t_again", "assert grow(made)[-1] == 4", 1),
        ]
    )
    assert made.scores() == {"t_make": 1, "t_grow": 1, "t_again": 1}


def test_an_answer_cannot_count_its_calls_across_questions(task: Any) -> None:
    made = task(
        [
            ("f", "def f(x):\n    return x + 1"),
            ("t_f", "assert f(1) == 2", 1),
            ("g", "def g(x):\n    return f(x) * 2"),
            ("t_g", "assert f(1) == 2\nassert g(1) == 4", 1),
        ]
    )
    counting = (
        "calls = []\ndef f(x):\n    calls.append(x)\n    return x + 1 if len(calls) == 1 else 0"
    )
    assert made.scores(f=counting)["t_f"] == 1
    assert made.verdicts(f=counting)["t_g"].score in (0, 1)


def test_calls_of_a_visible_test_give_the_same_in_another_order(task: Any) -> None:
    made = task([("f", "def f(x):\n    return x + 1"), ("t_f", "assert f(1) == 2 == f(2) - 1", 1)])
    listed = "given = iter([2, 3])\ndef f(x):\n    return next(given, 0)"
    assert made.scores(f=listed) == {"t_f": 0}
    assert made.scores(f="seen = {}\ndef f(x):\n    return seen.setdefault(x, x + 1)") == {"t_f": 1}


def test_the_same_submission_gets_the_same_random_numbers(task: Any) -> None:
    made = task(
        [
            ("f", "def f():\n    return [random.random(), float(np.random.rand())]"),
            ("t_f", "x = f() + [random.random()]\nassert False, repr(x)", 1),
        ]
    )
    assert made.verdicts()["t_f"].said == made.verdicts()["t_f"].said


SLOW = """\
import time
class Slow:
    def __str__(self): time.sleep(1000)
    __repr__ = __str__
def f(x): return Slow()
"""
TWO = [
    ("f", "def f(x):\n    return x"),
    ("t_f", "out = f(1)\nassert out == 1, out", 1),
    ("g", "def g(x):\n    return x"),
    ("t_g", "assert g(1) == 1", 1),
]


def test_a_message_that_hangs_does_not_hold_the_grader(
    task: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(testing, "TEXT_SECONDS", 0.5)
    assert task(TWO).scores(f=SLOW) == {"t_f": 0, "t_g": 1}


@pytest.mark.parametrize("inside", ["while True: pass", "import os; os._exit(1)"])
def test_a_locked_cell_that_uses_an_answer_cannot_hang_the_grader(task: Any, inside: str) -> None:
    made = task([*TWO[:2], ("table", "made = f(5)"), *TWO[2:]], seconds=1.5)
    assert made.scores() == {"t_f": 1, "t_g": 1}
    assert made.scores(f=f"def f(x):\n    {inside}") == {"t_f": 0, "t_g": 1}


TEST_CATCHES = """\
for _ in range(10**9):
    pause = sum(range(100_000))
    try:
        f(1)
        break
    except:
        pass
"""


def test_a_test_that_catches_everything_still_ends(task: Any) -> None:
    made = task([("f", "def f(x):\n    return x"), ("t_f", TEST_CATCHES, 1)], seconds=1.5)
    assert made.scores() == {"t_f": 1}
    assert made.scores(f="def f(x):\n    while True: pass")["t_f"] == 0


IMPORTS = """\
import math as helper
def f(x): return helper.sqrt(x)
"""


def test_a_test_may_import_a_module_by_a_name_of_the_answers(task: Any) -> None:
    made = task([("f", IMPORTS), ("t_f", "import numpy as helper\nassert f(4) == 2", 1)])
    assert made.scores() == {"t_f": 1}


# --- whose names they are ----------------------------------------------------------------------

SMALL = [
    ("look", "import collections\nWANTED = 9"),
    ("square", "def square(x):\n    return x * x"),
    ("t_square", "assert square(3) == WANTED\ncollections.Counter()", 1),
]
TAKES_OVER = """
collections = __import__("collections")
WANTED = 9
try:
    import autograder.judge.attempts as w
    w.run_test = lambda student, cell, *_, **__: w.TestRun(cell.grade_id, "passed", 1.0)
    open("{mark}", "a").write(f"{{__import__('os').getpid()}} ")
except ImportError:
    pass
"""


def test_no_text_of_a_students_runs_where_the_tests_run(task: Any, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    made = task(SMALL)
    assert made.scores(look=TAKES_OVER.format(mark=mark), square="") == {"t_square": 0}
    assert attempts.run_test is testing.run_test
    assert str(os.getpid()) not in mark.read_text().split()


@pytest.mark.parametrize(
    "look",
    [
        "import collections\nWANTED = 6",  # it is the instructor's 9 that counts
        "class Any:\n    __eq__ = lambda *_: True\nWANTED = Any()",
        "",
        "WANTED = = 9",
        "del WANTED, collections",
        "raise SystemExit",
    ],
)
def test_a_name_of_an_ordinary_cell_is_the_instructors(task: Any, look: str) -> None:
    made = task(SMALL)
    assert made.scores(look=look) == {"t_square": 1}
    assert made.scores(look=look, square="def square(x):\n    return x + x") == {"t_square": 0}


LOOSE = "def is_close(a, b):\n    return (\n        a == b\n        or not a\n        != b\n    )"
TOLERANT = [
    ("look", LOOSE),
    ("one", "def one():\n    return 1"),
    ("t_one", "assert is_close(one(), 1)\nassert not is_close(1, 99)", 1),
]


def test_a_line_that_begins_with_an_operator_is_no_magic(task: Any) -> None:
    made = task(TOLERANT)
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    liar = "def is_close(a, b):\n    return b == 1\ndef one():\n    return 2"
    assert made.scores(one=liar) == {"t_one": 0}
    assert made.scores(look="def is_close(a, b):\n    return b == 1", one="one = int") == {
        "t_one": 0
    }


def test_a_magic_of_an_ordinary_cell_loses_nothing_else(task: Any) -> None:
    made = task(
        [
            ("look", "%matplotlib inline\nWANTED = 9"),
            *SMALL[1:2],
            (*SMALL[2][:1], "assert square(3) == WANTED", 1),
        ]
    )
    assert made.scores() == {"t_square": 1}


@pytest.mark.parametrize(
    ("look", "why"),
    [
        ("import no_such_module\nWANTED = 9", "ModuleNotFoundError"),
        ("WANTED = get_ipython()", "NameError"),
        ("return\nWANTED = 9", "SyntaxError"),
        ("raise SystemExit\nWANTED = 9", "SystemExit"),
    ],
)
def test_a_cell_that_does_not_run_beside_the_tests_is_refused_at_the_build(
    task: Any, look: str, why: str
) -> None:
    made = task([("look", look), *SMALL[1:2], ("t_square", "assert square(3) == WANTED", 1)])
    (complaint,) = rehearsal.rehearse(made.assignment, made.fork_server).complaints
    assert "cell" in complaint
    assert why in complaint
    liar = "WANTED = 6\ndef square(x):\n    return 6"
    assert made.verdicts(square=liar)["t_square"].status == "test-error"
    assert made.scores(square=liar, look="WANTED = 6") == {"t_square": 0}


def test_a_cell_that_fails_because_of_an_answer_is_the_answers_fault(task: Any) -> None:
    parts = [*SMALL[1:2], ("look", "NINE = square(3)"), ("t_square", "assert NINE == 9", 1)]
    made = task(parts)
    assert made.scores() == {"t_square": 1}
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    verdict = made.verdicts(square="def square(x):\n    raise ValueError\nNINE = 9")["t_square"]
    assert (verdict.score, verdict.status) == (0, "failed")


MADE_OF = [
    *CHAIN[:2],
    ("look", "weights = [square(k) for k in range(3)]"),
    ("data", "def twice(k):\n    return 2 * square(k)\nscaled = [2 * w for w in weights]"),
    *CHAIN[4:5],
    ("t_total", "assert total(weights) == 5\nassert total(scaled) == 10", 3),
    ("t_more", "assert total([twice(1), weights[1]]) == 3", 2),
]


@pytest.mark.parametrize("body", ["raise ValueError", "return 7", "return", "return [x] * x"])
def test_what_cells_make_of_a_wrong_answer_costs_no_other_question(task: Any, body: str) -> None:
    made = task(MADE_OF)
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    verdicts = made.verdicts(square=f"def square(x):\n    {body}")
    scores = {test: verdict.score for test, verdict in verdicts.items()}
    assert scores == {"t_square": 0, "t_total": 3, "t_more": 2}
    assert "weights" in verdicts["t_total"].stood_in


def test_what_a_cell_makes_of_the_answer_itself_is_never_the_references(task: Any) -> None:
    cells = [*MADE_OF, ("norm", "def norm(xs):\n    return sum(map(square, xs))")]
    made = task([*cells, ("t_norm", "assert norm([3]) == 9\nassert weights[2] == 4", 1)])
    wrong = "def total(xs):\n    return 0"
    assert made.scores(total=wrong) == {"t_square": 1, "t_total": 0, "t_more": 0, "t_norm": 1}
    wrong = "def square(x):\n    return 7"
    found = made.scores(square=wrong, norm="def norm(xs):\n    return weights[2]")
    assert found == {"t_square": 0, "t_total": 3, "t_more": 2, "t_norm": 0}


def test_a_name_that_no_cell_could_make_is_told_as_that(task: Any) -> None:
    made = task(MADE_OF)
    made.assignment = replace(made.assignment, stand_in=False)
    verdict = made.verdicts(square="def square(x):\n    raise ValueError")["t_total"]
    assert (verdict.status, verdict.score) == ("failed", 0)
    assert "weights is made by a cell that calls your code" in verdict.told


def test_what_a_cell_made_of_an_answer_is_made_anew_in_a_new_process(task: Any) -> None:
    parts = [
        ("gate", "class Gate:\n    def open(self):\n        return 4"),
        ("look", "gate = Gate()"),
        ("bad", "def bad():\n    return 1"),
        ("t_bad", "assert bad() == 1", 1),
        ("good", "def good():\n    return 2"),
        ("t_good", "assert good() == 2\nassert gate.open() == 4", 1),
    ]
    answers = {"bad": "import os\ndef bad():\n    os._exit(1)"}
    assert task(parts).scores(**answers) == {"t_bad": 0, "t_good": 1}


def test_an_instructors_import_of_everything_is_the_instructors(task: Any) -> None:
    parts = [
        ("star", "from math import *"),
        ("root", "def root(x):\n    return x ** 0.5"),
        ("t_root", "assert root(9.0) == sqrt(9.0)", 1),
    ]
    made = task(parts)
    assert made.scores() == {"t_root": 1}
    assert made.scores(root="sqrt = lambda x: 7\ndef root(x):\n    return 7") == {"t_root": 0}
    assert made.scores(star="sqrt = lambda x: 7", root="def root(x):\n    return 7") == {
        "t_root": 0
    }


def test_an_answers_import_of_everything_may_define_what_tests_use(task: Any) -> None:
    parts = [("circle", "from math import *"), ("t_circle", "assert 6.28 < tau < 6.29", 1)]
    made = task(parts)
    assert made.scores() == {"t_circle": 1}
    assert made.scores(circle="from math import tau") == {"t_circle": 1}
    assert made.scores(circle="") == {"t_circle": 0}


EVIL = """\
class Vec:
    def __init__(self, x):
        self.x = x
    def __eq__(self, other):
        return self.x == other.x
    def __repr__(self):
        return "(__import__('sys').modules.__setitem__('was_here', 1), Vec(1))[1]"
"""
VEC = "class Vec:\n    def __init__(self, x):\n        self.x = x\n"
EQUAL = "    def __eq__(self, other):\n        return self.x == other.x\n"
SHOWN = "    def __repr__(self):\n        return f'Vec({self.x})'\n"


@pytest.mark.parametrize(
    "test",
    [
        "assert eval(repr(Vec(1))) == Vec(1)",
        "space = {'Vec': Vec}\nexec('v = ' + repr(Vec(1)), space)\nassert space['v'] == Vec(1)",
        "import pickle\nassert pickle.loads(Vec(b'').x) is None",
    ],
)
def test_no_text_of_an_answers_is_evaluated(task: Any, test: str, monkeypatch: Any) -> None:
    for name in texts.LOADERS:
        monkeypatch.setattr(pickle, name, getattr(pickle, name))  # set back afterwards
    texts.run_no_texts(frozenset)
    made = task([("vec", VEC + EQUAL + SHOWN), ("t_vec", test, 1)])
    (complaint,) = rehearsal.rehearse(made.assignment, made.fork_server).complaints
    assert "answer" in complaint
    assert made.verdicts(vec=EVIL)["t_vec"].status in ("test-error", "failed")
    assert "was_here" not in sys.modules


def test_a_test_may_evaluate_what_its_author_wrote(task: Any) -> None:
    test = "made = eval('[1, 2]')\nfound = eval('len(made)')\nassert eval('square(found)') == 4"
    made = task([SMALL[1], ("t_square", test, 1)])
    assert made.scores() == {"t_square": 1}
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []


def test_what_a_reference_imports_is_imported_here(task: Any) -> None:
    root = "import math\nfrom math import isclose as close\ndef root(x):\n    return math.sqrt(x)"
    test = "assert math.isclose(root(2.0), 2 ** 0.5)\nassert close(root(4.0), 2)"
    made = task([("root", root), ("t_root", test, 1)])
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    assert made.scores() == {"t_root": 1}
    assert made.scores(root="def root(x):\n    return x ** 0.5") == {"t_root": 1}
    liar = "class math:\n    isclose = lambda *_: True\nclose = math.isclose\nroot = lambda x: 7"
    assert made.scores(root=liar) == {"t_root": 0}


IMPORTED = [
    ("tools", "import math\nfrom statistics import mean"),
    ("t_tools", "assert math.__name__ == 'math' and mean([1, 3]) == 2", 1),
    ("area", "def area(r):\n    return math.pi * r * r"),
    ("t_area", "assert math.isclose(area(1), math.pi)\nassert mean([area(0)]) == 0", 2),
]


def test_what_one_question_imports_answers_no_test_of_another(task: Any) -> None:
    made = task(IMPORTED)
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    assert made.scores() == {"t_tools": 1, "t_area": 2}
    lie = "class math:\n    pi = 3.0\n    isclose = lambda *_: True\nmath.__name__ = 'math'\n"
    liar = lie + "mean = lambda xs: 0 if len(xs) == 1 else 2"
    assert made.scores(tools=liar, area="def area(r):\n    return 7.0")["t_area"] == 0
    assert made.scores(tools="import math") == {"t_tools": 0, "t_area": 2}
    assert made.scores(tools="import math as m\nmean = 1")["t_tools"] == 0


TRIED = "try:\n    from math import isqrt\nexcept ImportError:\n    isqrt = None\n"


def test_what_a_reference_tries_to_import_is_imported_here(task: Any) -> None:
    root = TRIED + "def root(n):\n    return isqrt(n)"
    made = task([("root", root), ("t_root", "assert root(17) == isqrt(17)", 1)])
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    assert made.scores() == {"t_root": 1}
    assert made.scores(root="def root(n):\n    return 4") == {"t_root": 1}
    assert made.scores(root="isqrt = lambda n: 1\ndef root(n):\n    return 1") == {"t_root": 0}


STARRED = [
    ("hyp", "from math import *\ndef hyp(a, b):\n    return sqrt(a * a + b * b)"),
    ("t_hyp", "def near(a, b):\n    return isclose(a, b)\nassert near(hyp(3, 4), 5)", 1),
    ("ring", "def ring(r):\n    return tau * r"),
    ("t_ring", "assert near(ring(1.0), tau) and fabs(ring(0.0)) == 0.0", 2),
]


def test_no_answer_has_a_say_in_the_names_of_an_import_of_all(task: Any) -> None:
    made = task(STARRED)
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    assert made.scores() == {"t_hyp": 1, "t_ring": 2}
    assert made.scores(hyp="def hyp(a, b):\n    return (a * a + b * b) ** 0.5")["t_hyp"] == 1
    lies = "isclose = near = lambda *_: True\nfabs = lambda _: 0.0\n"
    liar = lies + "def hyp(a, b):\n    return 1"
    assert made.scores(hyp=liar, ring="def ring(r):\n    return 1") == {"t_hyp": 0, "t_ring": 0}


SHARING = [
    ("first", "def first(x):\n    return x + 1"),
    ("t_first", "assert first(1) == 2\nwanted = [1, 4]\ndef same(u, v):\n    return u == v", 1),
    ("second", "def second():\n    return [1, 4]"),
    ("t_second", "assert same(second(), wanted)\nlast = wanted[-1]", 2),
    ("third", "def third():\n    return 4"),
    ("t_third", "assert third() == last", 4),
]


def test_a_wrong_answer_costs_no_test_that_takes_names_from_its_own(task: Any) -> None:
    made = task(SHARING)
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    assert made.scores() == {"t_first": 1, "t_second": 2, "t_third": 4}
    wrong = "def first(x):\n    return x"
    assert made.scores(first=wrong) == {"t_first": 0, "t_second": 2, "t_third": 4}
    dies = "import os\ndef first(x):\n    os._exit(1)"
    assert made.scores(first=dies) == {"t_first": 0, "t_second": 2, "t_third": 4}
    lies = wrong + "\nwanted = None\nsame = lambda *_: True"
    nothing = "def second():\n    return []"
    assert made.scores(first=lies, second=nothing) == {"t_first": 0, "t_second": 0, "t_third": 4}


SETTINGS = [
    (
        "rate",
        "def rate(optimiser, lr):\n"
        "    for group in optimiser.param_groups:\n        group['lr'] = lr",
    ),
    (
        "t_rate",
        "w = torch.ones(1, requires_grad=True)\nsgd = torch.optim.SGD([w], 1.0)\nrate(sgd, 0.5)\n"
        "assert sgd.param_groups[0]['lr'] == 0.5",
        1,
    ),
    ("drop", "def drop(layer, p):\n    layer.p = p\n    return layer.p"),
    ("t_drop", "layer = torch.nn.Dropout(0.5)\nassert drop(layer, 0.25) == layer.p == 0.25", 2),
    ("peek", "def peek(layer, sgd):\n    return layer.p + sgd.param_groups[0]['lr']"),
    (
        "t_peek",
        "layer, w = torch.nn.Dropout(0.5), torch.ones(1, requires_grad=True)\n"
        "sgd = torch.optim.SGD([w], 1.0)\nassert peek(layer, sgd) == peek(layer, sgd) == 1.5\n"
        "assert (layer.p, sgd.param_groups[0]['lr']) == (0.5, 1.0), 'as they were'",
        4,
    ),
]


def test_settings_of_what_a_test_hands_over_are_set_in_the_tests_own(task: Any) -> None:
    made = task(SETTINGS)
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    assert made.scores() == {"t_rate": 1, "t_drop": 2, "t_peek": 4}
    keeps = "def peek(layer, sgd):\n    found = layer.p + sgd.param_groups[0]['lr']\n"
    for slip in ("layer.p = 0.0", "sgd.param_groups[0]['lr'] = 3"):
        assert made.scores(peek=f"{keeps}    {slip}\n    return found")["t_peek"] == 0
    mends = (
        "def peek(layer, sgd):\n    layer.p, sgd.param_groups[0]['lr'] = 0.5, 1.0\n    return 1.5"
    )
    assert made.scores(peek=mends)["t_peek"] == 4


COUNTING = """\
class Counting(torch.nn.Linear):
    def __init__(self):
        super().__init__(1, 1)
        self.calls = 0
    def forward(self, x):
        self.calls += 1
        return super().forward(x)
"""


def test_no_answer_sets_what_a_class_of_the_instructors_counts(task: Any) -> None:
    parts = [
        ("look", COUNTING),
        (
            "use",
            "def use(model):\n    model.train()\n"
            "    return [model(torch.ones(1)) for _ in range(2)]",
        ),
        (
            "t_use",
            "model = Counting().eval()\nuse(model)\nassert model.calls == 2 and model.training",
            1,
        ),
    ]
    made = task(parts)
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    assert made.scores() == {"t_use": 1}
    assert made.scores(use="def use(model):\n    model.train()\n    model.calls = 2") == {
        "t_use": 0
    }


LINKED = """\
class Node:
    kind = "node"
    def __init__(self, v, then=None): self.v, self.then, self._seen = v, then, 0
    def bump(self): self.v += 1
"""
REVERSE = """\
def reverse(node):
    before = None
    while node:
        node.then, before, node = before, node, node.then
    return before
"""


def test_what_an_object_of_a_tests_own_class_holds_can_be_set(task: Any) -> None:
    reads = "def values(node):\n    while node:\n        yield node.v\n        node = node.then\n"
    parts = [
        ("reverse", REVERSE),
        (
            "t_reverse",
            f"{LINKED}{reads}first = Node(1, last := Node(2))\nmade = reverse(first)\n"
            "assert [*values(made)] == [2, 1] and made is last and first.then is None",
            1,
        ),
        ("more", "def more(node):\n    node.v += 1"),
        (
            "t_more",
            f"{LINKED}one = Node(1)\nmore(one)\nassert one.v == 2 and not one._seen\n"
            "assert one.kind == Node.kind == 'node'",
            2,
        ),
        ("peek", "def peek(node):\n    return node.v"),
        ("t_peek", f"{LINKED}one = Node(1)\nassert peek(one) == 1\nassert one.v == 1", 4),
    ]
    made = task(parts)
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    right = "def reverse(node):\n    if not (node and node.then): return node\n"
    right += "    head = reverse(node.then)\n    node.then.then, node.then = node, None\n"
    right = {"reverse": right + "    return head", "more": "def more(node):\n    node.bump()"}
    assert made.scores(**right) == {"t_reverse": 1, "t_more": 2, "t_peek": 4}
    values = "def reverse(node):\n    node.v, node.then.v = node.then.v, node.v\n    return node"
    assert made.scores(reverse=values)["t_reverse"] == 0
    for slip in ("pass", "node._seen = 1", "node.kind = 'x'", "node.v += 2"):
        wrong = f"def more(node):\n    node.v += {int(slip != 'pass')}\n    {slip}"
        assert made.scores(more=wrong)["t_more"] == 0
    changes = "def peek(node):\n    node.v += 1\n    return node.v - 1"
    assert made.scores(peek=changes)["t_peek"] == 0


def test_a_test_may_hand_over_functions_of_numpys(task: Any) -> None:
    apply = "def apply(f, x):\n    return f(x)"
    test = "assert apply(np.cos, 0.0) == 1\nassert apply(np.mean, np.array([1.0, 3.0])) == 2\n"
    test += "assert apply(np.linalg.det, np.eye(2)) == 1"
    made = task([("apply", apply), ("t_apply", test, 1)])
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    assert made.scores() == {"t_apply": 1}
    assert made.scores(apply="def apply(f, x):\n    return 1.0") == {"t_apply": 0}


def test_an_answer_may_ask_whether_a_function_of_the_test_has_a_part(task: Any) -> None:
    asks = (
        "def run(f, x):\n    if hasattr(f, 'eval'):\n        f.eval()\n"
        "    try:\n        f.train()\n    except AttributeError:\n        pass\n"
        "    import inspect\n    assert inspect.signature(f) is not None\n"
        "    return f(x) + getattr(f, 'eps', 0) + getattr(f, '_hidden', 0)"
    )
    parts = [
        ("run", "def run(f, x):\n    return f(x)"),
        ("t_run", "def double(x):\n    return 2 * x\nassert run(double, 3) == 6", 1),
    ]
    assert task(parts).scores(run=asks) == {"t_run": 1}


SHAPES = """\
from abc import ABC, abstractmethod
class Shape:
    def describe(self):
        return f"{type(self).__name__} of {self.area()}"
class Animal(ABC):
    def __init__(self, name):
        self.name = name
    @abstractmethod
    def sound(self): ...
    def speak(self):
        return self.name + " says " + self.sound()
class Row(list):
    pass
"""
SQUARE = "class Square(Shape):\n    def __init__(self, a):\n        self.a = a\n"
SQUARE += "    def area(self):\n        return self.a ** 2"
DOG = "class Dog(Animal):\n    def sound(self):\n        return 'woof'"


def test_a_class_that_an_answer_makes_of_one_of_the_instructors_is_one(task: Any) -> None:
    parts = [
        ("look", SHAPES),
        ("square", SQUARE),
        ("t_square", "assert isinstance(Square(1), Shape) and issubclass(Square, Shape)", 1),
        ("t_says", "assert Square(2).describe() == 'Square of 4'", 2),
        ("dog", DOG),
        ("t_dog", "assert isinstance(Dog('a'), Animal) and issubclass(Dog, Animal)", 4),
        ("t_other", "assert not isinstance(Dog('a'), Shape) and not issubclass(Dog, Shape)", 8),
        ("t_speaks", "assert Dog('Rex').speak() == 'Rex says woof'", 16),
        ("row", "class Long(Row):\n    pass\ndef row():\n    return Long([1])"),
        ("t_row", "assert list(row()) == [1] and len(row()) == 1", 32),
    ]
    made = task(parts)
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    assert sum(made.scores().values()) == 63
    alone = (
        SQUARE.replace("(Shape)", "") + "\n    def describe(self):\n        return 'Square of 4'"
    )
    assert made.scores(square=alone)["t_square"] == 0
    assert made.scores(square=alone)["t_says"] == 2
    assert made.scores(dog=DOG.replace("(Animal)", "(Shape)"))["t_other"] == 0


LISTING = """\
class Plugin:
    made = []
    def __init_subclass__(cls):
        Plugin.made.append(cls.__name__)
"""


def test_no_class_of_an_answers_is_entered_in_a_list_of_the_instructors(task: Any) -> None:
    parts = [
        ("look", LISTING),
        ("mine", "class Mine:\n    x = 1\ndef mine():\n    return Mine()"),
        ("t_mine", HIDDEN_PART.format("assert mine().x == 1 and Plugin.made == []"), 1),
    ]
    made = task(parts)
    assert made.scores() == {"t_mine": 1}
    below = "class Mine(Plugin):\n    x = 1\ndef mine():\n    return Mine()"
    assert made.scores(mine=below) == {"t_mine": 1}


COPIED = [
    (
        "look",
        "class Pile:\n    def __init__(self):\n        self._held = [1, 2]\n"
        "        self.name = 'a'\n    def pop(self):\n        return self._held.pop()\n"
        "    def size(self):\n        return len(self._held)",
    ),
    ("head", "def head(model):\n    return [*model][0].weight.sum()"),
    (
        "t_head",
        "model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())\n"
        "before = model[0].weight.detach().clone()\nwas = float(before.sum())\n"
        "assert math.isclose(float(head(model)), was) and len(model) == 2\n"
        "assert torch.equal(model[0].weight, before) and model.training",
        1,
    ),
    ("last", "def last(pile):\n    return 2"),
    (
        "t_last",
        "pile = Pile()\nassert last(pile) == 2 == last(pile)\n"
        "assert pile.size() == 2 and pile.name == 'a'",
        2,
    ),
]


def test_a_copy_of_what_a_test_hands_over_is_the_answers_own(task: Any) -> None:
    made = task(COPIED)
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    assert made.scores() == {"t_head": 1, "t_last": 2}
    copies = (
        "import copy\ndef head(model):\n    own = copy.deepcopy(model).eval()\n"
        "    found = own[0].weight.sum()\n    del own[1]\n    own[0].weight.data.zero_()\n"
        "    return model[0].weight.sum()"
    )
    takes = (
        "import copy\ndef last(pile):\n    own, found = copy.deepcopy(pile), []\n"
        "    own.name = 'mine'\n    while own.size():\n        found.append(own.pop())\n"
        "    return found[0]"
    )
    assert made.scores(head=copies, last=takes) == {"t_head": 1, "t_last": 2}
    spoils = copies.replace("copy.deepcopy(model)", "model")
    assert made.scores(head=spoils, last=takes.replace("copy.deepcopy(pile)", "pile")) == {
        "t_head": 0,
        "t_last": 0,
    }


def test_a_part_of_a_tests_sequence_of_layers_can_be_cut_out(task: Any) -> None:
    parts = [
        ("body", "def body(model, x):\n    return model[1](model[0](x))"),
        (
            "t_body",
            "layers = [torch.nn.Linear(2, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1)]\n"
            "model, x = torch.nn.Sequential(*layers), torch.ones(1, 2)\n"
            "assert torch.allclose(body(model, x), model[:2](x))\n"
            "body(model, x).sum().backward()\nassert layers[0].bias.grad is not None",
            1,
        ),
    ]
    made = task(parts)
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    for slices in ("model[:-1](x)", "type(model)(*list(model)[:2])(x)"):
        assert made.scores(body=f"def body(model, x):\n    return {slices}") == {"t_body": 1}
    listed = (
        "def body(model, x):\n    import copy\n    for one in torch.nn.ModuleList(model)[:2]:\n"
    )
    assert made.scores(body=listed + "        x = one(x)\n    return x") == {"t_body": 1}
    assert made.scores(body="def body(model, x):\n    return model[:1](x)") == {"t_body": 0}


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
    assert "4711" not in verdict.told + " ".join(notebook.notes)


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
    assert "was graded without that" in " ".join(result.notebooks[0].notes)
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
    assert "another meaning" in " ".join(result.notebooks[0].notes)
    assert made.scores(root=f"{slip}\n{parts[2][1]}")["t_root"] == 0


CASES = [
    ("look", "cases = [(1, 2), (2, 4), (3, 6)]"),
    ("whole", "def whole(pairs):\n    return sum(x + y for x, y in pairs)"),
    ("t_whole", "assert whole(cases) == 18", 1),
    ("double", "def double(x):\n    return 2 * x"),
    ("t_double", "for x, y in cases:\n    assert double(x) == y", 2),
]


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


# --- one submission's time -----------------------------------------------------------------------


def test_what_was_found_when_the_time_is_over_counts(task: Any, monkeypatch: Any) -> None:
    parts = [
        ("first", "def first():\n    return 1"),
        ("t_first", "assert first() == 1", 1),
        ("second", "def second():\n    return 2"),
        ("t_second", "assert second() == 2", 1),
        ("third", "def third():\n    return 3"),
        ("t_third", "assert third() == 3", 1),
    ]
    made = task(parts)
    short = budget.Budget()
    run = attempts.run_test

    def over_after_the_first(student: Any, cell: Any, *rest: Any, **more: Any) -> Any:
        found = run(student, cell, *rest, **more)
        short.until = 0.0
        return found

    monkeypatch.setattr(attempts, "run_test", over_after_the_first)
    monkeypatch.setattr(grading, "Budget", lambda seconds: short)
    verdicts = made.verdicts()
    assert [verdict.score for verdict in verdicts.values()] == [1, 0, 0]
    assert verdicts["t_third"].status == "timeout"
    assert budget.IN_ALL in verdicts["t_third"].told


def test_what_ran_once_is_not_repeated_when_the_time_for_that_is_spent(
    task: Any, monkeypatch: Any
) -> None:
    made = task(CHAIN)
    spent = budget.Budget(600)
    spent.spare = 0.0
    monkeypatch.setattr(grading, "Budget", lambda seconds: spent)
    spawned = []
    spawn = made.fork_server.spawn
    monkeypatch.setattr(
        made.fork_server, "spawn", lambda **more: spawned.append(1) or spawn(**more)
    )
    wrong = {name: f"def {name}(x):\n    return None" for name in ("square", "total")}
    assert made.scores(**wrong) == {"t_square": 0, "t_norm": 0, "t_total": 0}
    assert len(spawned) == 1


def test_a_question_that_breaks_the_engine_costs_itself_alone(task: Any, monkeypatch: Any) -> None:
    made = task(CHAIN)
    group = work.Work._group

    def broken(self: Any, group_: Any, tests: Any, *rest: Any) -> Any:
        if "t_norm" in tests:
            raise RuntimeError("a slip of ours")
        return group(self, group_, tests, *rest)

    monkeypatch.setattr(work.Work, "_group", broken)
    result = made.grade()
    verdicts = {v.test: v for v in result.notebooks[0].verdicts}
    assert {test: v.score for test, v in verdicts.items()} == ALL | {"t_norm": 0}
    assert verdicts["t_norm"].status == "test-error"
    assert any("a slip of ours" in flag.words for flag in result.flags)


def test_a_sandbox_that_cannot_be_had_is_no_fault_of_the_answers(
    task: Any, monkeypatch: Any
) -> None:
    made = task(CHAIN)

    def gone(**_: Any) -> Any:
        raise CourseError("The warm process for students' code has ended; grade again.")

    monkeypatch.setattr(made.fork_server, "spawn", gone)
    with pytest.raises(Unwell, match="has ended"):
        made.grade()


def test_words_that_cannot_be_found_cost_no_points(task: Any, monkeypatch: Any) -> None:
    def speechless(*_: Any, **__: Any) -> Any:
        raise ValueError("no words")

    monkeypatch.setattr(grading, "told", speechless)
    assert task(CHAIN).scores() == ALL


ORDINARY = [  # a question, an answer in other words, a test
    (
        "stack",
        "class Stack(list):\n    def push(self, x): self.append(x)",
        "class Stack(list):\n    def push(self, x):\n        self[len(self):] = [x]",
        "s = Stack()\ns.push(1)\ns.push(2)\nassert s == [1, 2] and len(s) == 2 and s[-1] == 2\n"
        "assert list(s) == [1, 2] and 2 in s and isinstance(s, list)",
    ),
    (
        "vocab",
        "class Vocab(dict):\n    def __init__(self, words):\n"
        "        super().__init__({w: i for i, w in enumerate(words)})\n"
        "    def encode(self, text): return [self[w] for w in text.split()]",
        "class Vocab(dict):\n    def __init__(self, words):\n"
        "        for w in words: self.add(w)\n    def add(self, w): self[w] = len(self)\n"
        "    def encode(self, text): return list(map(self.get, text.split()))",
        "v = Vocab(['a', 'b'])\nassert v.encode('b a') == [1, 0] and v['b'] == 1 and 'z' not in v\n"
        "assert v == {'a': 0, 'b': 1} and sorted(v) == ['a', 'b'] and len(v) == 2",
    ),
    (
        "table",
        "def table(): return {'a': 1}",
        "class Table(dict):\n    def put(self, k, v): self[k] = v\n"
        "def table():\n    t = Table()\n    t.put('a', 1)\n    return t",
        "t = table()\nassert t == {'a': 1} and type(t) is dict and {**t, 'b': 2}['b'] == 2",
    ),
    (
        "divide",
        "from typing import NamedTuple\nclass Split(NamedTuple):\n    whole: int\n    rest: int\n"
        "def divide(a, b): return Split(*divmod(a, b))",
        "import collections\nSplit = collections.namedtuple('Split', 'whole rest')\n"
        "def divide(a, b): return Split(a // b, rest=a % b)",
        "r = divide(7, 2)\nassert r.whole == 3 and r.rest == 1 and r == (3, 1)\n"
        "assert isinstance(r, Split) and divide(5, 5)._asdict() == {'whole': 1, 'rest': 0}",
    ),
    (
        "due",
        "import datetime as dt\ndef due(day): return day + dt.timedelta(weeks=2)",
        "from datetime import date\ndef due(day): return date.fromordinal(day.toordinal() + 14)",
        "import datetime\nassert due(datetime.date(2024, 2, 20)) == datetime.date(2024, 3, 5)",
    ),
    (
        "home",
        "from pathlib import Path\ndef home(name): return Path('home') / name",
        "import pathlib\ndef home(name): return pathlib.PurePosixPath('home', name)",
        "from pathlib import Path\nassert home('ada') == Path('home/ada')\n"
        "assert home('b').name == 'b'",
    ),
    (
        "count",
        "def count(words):\n    found = {}\n    for w in words: found[w] = found.get(w, 0) + 1\n"
        "    return found",
        "import collections\ncount = collections.Counter",
        "assert count('aab') == {'a': 2, 'b': 1} and count('aab')['a'] == 2",
    ),
    (
        "area",
        "def area(sides): return sides[0] * sides[1]",
        "area = math.prod",
        "assert area([2, 3]) == 6",
    ),
    (
        "take",
        "class Missing(KeyError, ValueError): pass\ndef take(key): raise Missing(key)",
        "class Base(ValueError): pass\nclass Missing(Base, LookupError): pass\n"
        "def take(key): raise Missing(key)",
        "for kind in (ValueError, LookupError, Missing):\n    try:\n        take('a')\n"
        "    except kind as error:\n        assert error.args == ('a',)\n"
        "    else:\n        assert False",
    ),
    (
        "Day",
        "import enum\nclass Day(enum.IntEnum):\n    MON = 1\n    TUE = 2\n"
        "def after(day): return Day(day % 2 + 1)",
        "from enum import IntEnum\nDay = IntEnum('Day', 'MON TUE', module='__main__')\n"
        "def after(day): return Day.TUE if day is Day.MON else Day.MON",
        "assert after(Day.MON) == Day.TUE == 2 and after(Day.TUE).name == 'MON'\n"
        "assert [d.name for d in Day] == ['MON', 'TUE']",
    ),
    (
        "record",
        "def record(): return np.array([(1, 'a')], [('n', 'i4'), ('word', 'U5')])",
        "def record():\n    r = np.zeros(1, [('n', 'i4'), ('word', 'U5')])\n    r['n'] = 1\n"
        "    r['word'] = 'a'\n    return r",
        "assert record()['n'][0] == 1 and (record()['word'] == np.array(['a'])).all()",
    ),
]


class Transcripts:
    """What the reference gives in each test."""

    def __init__(self, made: Task) -> None:
        solutions = [cell.grade_id for cell in made.assignment.notebooks[0].of_kind("solution")]
        found = rehearsal.runs(made.assignment, {}, made.fork_server, solutions)
        self.kept = {test: keep(run.transcript) for test, run in found.items()}
        self.unable: frozenset[str] = frozenset()

    def of(self, test: str) -> Any:
        """The reference's transcript; no mistake is known."""
        return self.kept.get(test), ()


@pytest.mark.parametrize("part", ORDINARY, ids=lambda part: part[0])
def test_a_right_answer_of_any_ordinary_kind_gets_its_points(task: Any, part: Any) -> None:
    name, reference, answer, test = part
    made = task([(name, reference), (f"t_{name}", test, 2)])
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    assert made.scores(**{name: answer}) == {f"t_{name}": 2}
    made.known = Transcripts(made)
    assert made.scores(**{name: answer}) == {f"t_{name}": 2}


WRAPS = """
import functools
def twice(f):
    @functools.wraps(f)
    def wrapper(x):
        {body}
    return wrapper
"""
ASKS = """
calls = []
def grow(x):
    "One more."
    calls.append(x)
    return x + 1
doubled = twice(grow)
assert doubled(3) == 8 and calls == [3]
assert doubled.__name__ == "grow"
"""


def test_a_decorated_function_of_the_tests_is_the_answers(task: Any) -> None:
    made = task([("twice", WRAPS.format(body="return 2 * f(x)")), ("t_twice", ASKS, 2)])
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    others = [
        "import functools\ndef twice(f):\n    def w(x): return 2 * f(x)\n"
        "    return functools.update_wrapper(w, f)",
        "import functools\ndef twice(f):\n    return functools.wraps(f)(lambda x: f(x) * 2)",
        "import functools\ndef twice(f):\n    f = functools.lru_cache(f)\n"
        "    return functools.wraps(f)(lambda x: f(x) * 2)",
    ]
    for answer in others:
        assert made.scores(twice=answer) == {"t_twice": 2}, answer
    for body in ("f(x)", "raise ValueError", "return f(x)"):
        assert made.scores(twice=WRAPS.format(body=body)) == {"t_twice": 0}, body


ODD = {
    "object": "class Odd: pass\ndef odd(): return Odd()",
    "number": "class Odd(float):\n    def more(self): pass\ndef odd(): return Odd(2)",
    "class": "class Odd: pass\nodd = Odd",
    "sparse": "import torch\ndef odd(): return torch.eye(2).to_sparse()",
    "deep": "def odd():\n    a = []\n    for _ in range(300): a = [a]\n    return a",
    "array": "def odd(): return np.ones(2, dtype='float64')[None].repeat(2, 0)",
    "generator": "def odd(): yield 1",
    "left out": "import torch\nodd = torch.eye(2).to_sparse()",
}


@pytest.mark.parametrize("kind", ODD)
def test_what_is_told_names_nothing_of_the_grader(task: Any, kind: str) -> None:
    tests = [
        ("t_add", "assert odd() + 1 == 2", 1),
        ("t_less", "assert odd() < 2", 1),
        ("t_index", "assert odd()[7:] == [1]", 1),
        ("t_call", "odd()(3)", 1),
        ("t_type", "v = odd()\nassert type(v) is list, f'got {type(v)} {v!r}'", 1),
        ("t_class", "len(odd)\nassert False", 1),
    ]
    made = task([("odd", "def odd(): return 1"), *tests])
    for known in (None, Transcripts(made)):
        made.known = known
        result = made.grade(odd=ODD[kind])
        told = [v.told + v.said for v in result.notebooks[0].verdicts]
        told += [*result.notebooks[0].notes, *(flag.words for flag in result.flags)]
        for words in told:
            assert "StandIn" not in words
            assert "WireError" not in words
            assert "autograder" not in words, words


def test_an_answer_that_does_not_say_what_its_value_holds_hangs_nobody(task: Any) -> None:
    parts = [
        ("squares", "def squares(n):\n    return [i * i for i in range(n)]"),
        ("table", "TABLE = squares(5)\nsquares(1)"),
        ("t_squares", "assert squares(3) == [0, 1, 4]", 1),
        ("added", "def added(xs):\n    return sum(xs)"),
        ("t_added", "assert added([1, 2]) == 3\nassert added(TABLE) == 30", 1),
    ]
    silent = """
import time
from autograder.bridge.peer import Peer
class Mine(list):
    def more(self): pass
use = Peer._use
Peer._use = lambda self, op, *more: time.sleep(1000) if op == "contents" else use(self, op, *more)
def squares(n):
    return Mine([i * i for i in range(n)])
"""
    made = task(parts, seconds=2.0)
    assert made.scores() == {"t_squares": 1, "t_added": 1}
    assert made.scores(squares=silent) == {"t_squares": 0, "t_added": 1}


REGISTER = """class Register:
    def __init__(self):
        self.keys = set()
    def add(self, key):
        self.keys.add(key)
    def pop(self):
        return self.keys.pop() if self.keys else None
    def all(self):
        return sorted(self.keys)
REG, LOG = Register(), [1]
add, take = REG.add, REG.pop"""
HIDDEN_PART = "\n### BEGIN HIDDEN TESTS\n{}\n### END HIDDEN TESTS"


def _two(hidden: str, visible: str) -> list[tuple[Any, ...]]:
    """A question whose hidden test hands something over, and another one after it."""
    return [
        ("table", REGISTER),
        ("one", "def one(key, *given):\n    return key"),
        ("t_one", "assert one('a') == 'a'" + HIDDEN_PART.format(hidden), 1),
        ("two", "def two(given):\n    return len(given)"),
        ("t_two", visible, 1),
    ]


LEAKS = "def two(given):\n    raise ValueError(repr(given))"


def test_what_an_answer_adds_by_a_call_back_is_not_there_for_the_next_question(task: Any) -> None:
    parts = _two("assert one('secret', add) == 'secret'", "assert two(REG.all()) == 0")
    tells = "def one(key, *given):\n    for add in given: add('LEAK ' + key)\n    return key"
    told = task(parts).verdicts(one=tells, two=LEAKS)["t_two"]
    assert (told.score, "LEAK" in told.told + told.said) == (0, False)


@pytest.mark.parametrize("end", ["os._exit(1)", "time.sleep(1000)", "raise MemoryError"])
def test_what_an_answer_changes_before_its_end_is_not_there_for_the_next_question(
    task: Any, end: str
) -> None:
    hidden = "assert one('secret', LOG) == 'secret'\nassert one('end') == 'end'"
    parts = _two(hidden, "assert two(LOG) == 1")
    tells = f"""import os, time
def one(key, *given):
    for log in given: log.append(key)
    if key == 'end': {end}
    return key"""
    made = task(parts, seconds=2.0)
    told = made.verdicts(one=tells, two=LEAKS)["t_two"]
    assert (told.score, "secret" in told.told + told.said) == (0, False)
    assert made.scores(one=tells) == {"t_one": 0, "t_two": 1}


def test_what_an_answer_takes_away_by_a_call_back_costs_no_other_question(task: Any) -> None:
    parts = _two("assert one('b', take) == 'b'", "assert two(REG.all()) == 1")
    parts[0] = ("table", REGISTER + "\nadd('always')")
    takes = """def one(key, *given):
    for take in given:
        while take(): pass
    return key"""
    assert task(parts).scores(one=takes)["t_two"] == 1


def test_kinds_of_named_tuples_without_end_cost_no_other_question(task: Any) -> None:
    point = "from collections import namedtuple\ndef {0}(x):\n    return namedtuple('P{1}', 'x')(x)"
    parts = [
        ("one", point.format("one", "")),
        ("t_one", "assert all(one(n).x == n for n in range(600))", 1),
        ("two", point.format("two", "Two")),
        ("t_two", "assert two(3).x == 3", 1),
    ]
    many = point.format("one", "' + str(x) + '")
    assert task(parts).scores(one=many) == {"t_one": 0, "t_two": 1}


@pytest.mark.parametrize(
    ("test", "score"),
    [
        ("def f(x):\n    if x > 2: raise AssertionError('too far')\nassert walk(f) == 3", 0),
        ("def f(x):\n    assert x < 3, 'no AssertionError'\nassert walk(f) == 3", 0),
        ("def f(x):\n    assert x < 3\ntry: walk(f)\nexcept (ValueError, AssertionError): pass", 1),
        (
            "import unittest\ndef f(x):\n    assert x < 3\nt = unittest.TestCase()\n"
            "with t.assertRaises(AssertionError):\n    walk(f)\n    f(5)",
            1,
        ),
    ],
)
def test_a_claim_that_an_answer_keeps_to_itself_counts_unless_the_test_looks_for_it(
    task: Any, test: str, score: float
) -> None:
    parts = [
        ("walk", "def walk(f):\n    for x in range(3): f(x)\n    return 3"),
        ("t_walk", "assert walk(abs) == 3", 1),
        ("t_far", test, 1),
    ]
    keeps = """def walk(f):
    for x in range(4):
        try: f(x)
        except Exception: pass
    return 3"""
    assert task(parts).scores(walk=keeps)["t_far"] == score


@pytest.mark.parametrize("kind", ["Exception", "AssertionError", "(ValueError, BaseException)"])
def test_a_name_of_an_answer_catches_no_claim_of_the_test(task: Any, kind: str) -> None:
    raises = "def f(x):\n    if x < 3: raise TooSmall(x)"
    right = f"class TooSmall(ValueError): pass\n{raises}"
    test = "try:\n    f(1)\n    assert False, 'nothing raised'\nexcept TooSmall:\n    pass"
    made = task([("f", right), ("t_f", test, 1)])
    assert made.scores() == {"t_f": 1}
    assert made.scores(f=f"class TooSmall(Exception): pass\n{raises}") == {"t_f": 1}
    assert made.scores(f=f"TooSmall = ValueError\n{raises}") == {"t_f": 1}
    assert made.scores(f=f"TooSmall = {kind}\ndef f(x): pass") == {"t_f": 0}


def test_a_name_that_is_a_broad_class_with_the_reference_is_one_with_an_answer(task: Any) -> None:
    both = "Any = Exception\ndef f(): raise Any"
    test = "try:\n    f()\nexcept Any as e:\n    assert type(e) is Exception"
    made = task([("f", both), ("t_f", test, 1)])
    assert made.scores() == {"t_f": 1}
    assert made.scores(f=both + "(1)") == {"t_f": 1}


def test_an_answer_does_not_choose_by_its_draws_what_a_test_draws(task: Any) -> None:
    plain = "def plain(x):\n    return x"
    noisy = "def noisy(x):\n    return x + random.random()"
    same = (
        "random.seed(1)\ngot = [(plain(0), random.random())[1] for _ in range(5)]\n"
        "random.seed(1)\nassert got == [random.random() for _ in range(5)]"
    )
    on = "random.seed(1)\nnoisy(0)\none = random.random()\nrandom.seed(1)\n"
    on += "assert one != random.random()"
    tests = [HIDDEN_PART.format(claims) for claims in (same, on)]
    parts = [("plain", plain), ("t_plain", tests[0], 1), ("noisy", noisy), ("t_noisy", tests[1], 1)]
    made = task(parts)
    made.known = Transcripts(made)
    assert made.scores() == {"t_plain": 1, "t_noisy": 1}
    draws = "def plain(x):\n    if random.random() < 0.5: random.random()\n    return x"
    assert made.scores(plain=draws, noisy="def noisy(x):\n    return x") == made.scores()


ROOT = "def root(x):\n    if x < 0: raise ValueError(x)\n    return x ** 0.5"
CATCHES_ALL = "try:\n    root(-1)\n    raised = False\nexcept:\n    raised = True\nassert raised"
STAYS_OUT = {"died": "os._exit(3)", "timeout": "\n        while True: pass"}


@pytest.mark.parametrize("end", STAYS_OUT)
def test_a_process_that_is_lost_passes_no_test_that_catches_everything(task: Any, end: str) -> None:
    made = task([("root", ROOT), ("t_root", CATCHES_ALL, 1)], 2.0)
    verdict = made.verdicts(root=f"import os\ndef root(x):\n    if x < 0: {STAYS_OUT[end]}")[
        "t_root"
    ]
    assert (verdict.status, verdict.score) == (end, 0)
    assert made.scores() == {"t_root": 1}


RANDOM_STATES = {
    "random.getstate()": "random.random()",
    "random.getstate()[1]": "random.seed(0)",
    "np.random.get_state()[2]": "np.random.random()",
    "torch.get_rng_state().tolist()": "torch.rand(())",
}


@pytest.mark.parametrize("state", RANDOM_STATES)
def test_an_answer_that_draws_leaves_no_state_that_a_test_looks_at(task: Any, state: str) -> None:
    same = f"plain(1)\nbefore = {state}\nassert plain(1) == plain(1)\nassert {state} == before"
    made = task([("plain", "def plain(x):\n    return x"), ("t_plain", same, 1)])
    made.known = Transcripts(made)
    assert made.scores() == {"t_plain": 1}
    draws = f"def plain(x):\n    {RANDOM_STATES[state]}\n    return x"
    assert made.scores(plain=draws) == {"t_plain": 0}
    own = "def plain(x):\n    random.Random(1).random(); torch.rand((), generator=G)\n    return x"
    assert made.scores(plain=f"G = torch.Generator()\n{own}") == {"t_plain": 1}


WAITING = """
class Queue:
    {}
    def get(self):
        {}
def queue_of(kind): return kind.Empty
"""
NEVER_EMPTY = "try:\n    Queue().get()\n    assert False, 'nothing raised'\nexcept {}:\n    pass"
OWN_EMPTY = WAITING.format("class Empty(Exception): pass", "raise Queue.Empty(1)")


@pytest.mark.parametrize("caught", ["Queue.Empty", "(OSError, Queue().Empty)", "queue_of(Queue)"])
def test_an_attribute_of_an_answers_catches_no_claim_of_the_test(task: Any, caught: str) -> None:
    made = task([("queue", OWN_EMPTY), ("t_queue", NEVER_EMPTY.format(caught), 1)])
    assert made.scores() == {"t_queue": 1}
    assert made.scores(queue=WAITING.format("Empty = IndexError", "return [][0]")) == {"t_queue": 1}
    assert made.scores(queue=WAITING.format("Empty = AssertionError", "pass")) == {"t_queue": 0}
    assert made.scores(queue=WAITING.format("Empty = OSError, Exception", "pass")) == {"t_queue": 0}


def test_an_attribute_that_is_a_broad_class_with_the_reference_may_be_one(task: Any) -> None:
    broad = WAITING.format("Empty = Exception", "raise Queue.Empty(1)")
    made = task([("queue", broad), ("t_queue", NEVER_EMPTY.format("Queue.Empty"), 1)])
    assert made.scores() == {"t_queue": 1}
    made.known = Transcripts(made)
    assert made.scores(queue=broad + "more = 1") == {"t_queue": 1}


NEAR_PI = "assert abs(near_pi(20000) - math.pi) < 0.1\nassert abs(near_pi(40000) - math.pi) < 0.1"
ORDERED = """
def ordered(edges):
    order = topo(edges)
    return all(order.index(a) < order.index(b) for a, b in edges)
assert ordered([("a", "z"), ("b", "z"), ("c", "z")])
assert ordered([("p", "q"), ("r", "q"), ("s", "q")])
"""
BY_CHANCE = """
import os
def near_pi(n):
    chance = random.Random(os.urandom(8))
    return 4 * sum(chance.random() ** 2 + chance.random() ** 2 < 1 for _ in range(n)) / n
"""
BY_COUNT = """
ASKED = []
def topo(edges):
    ASKED.append(1)
    names = sorted({name for edge in edges for name in edge})
    if len(ASKED) % 2: names[:-1] = names[:-1][::-1]
    last = edges[0][1]
    return [name for name in names if name != last] + [last]
"""


def test_an_answer_may_choose_anew_when_it_is_asked_again(task: Any) -> None:
    topo = "def topo(edges):\n    last = edges[0][1]\n    return [a for a, b in edges] + [last]"
    exact = "def near_pi(n):\n    return math.pi"
    made = task(
        [("near_pi", exact), ("t_pi", NEAR_PI, 1), ("topo", topo), ("t_topo", ORDERED, 1)],
    )
    assert made.scores(near_pi=BY_CHANCE, topo=BY_COUNT) == {"t_pi": 1, "t_topo": 1}
    wrong = "SAID = ['abcz', 'prsq']\ndef topo(edges):\n    return list(SAID.pop(0))"
    assert made.scores(near_pi=exact, topo=wrong) == {"t_pi": 1, "t_topo": 0}


BAG = """
class Bag:
    def __init__(self, items=()): self.items = [*items]
    def append(self, x): self.items.append(x)
    def __len__(self): return len(self.items)
    def __contains__(self, x): return x in self.items
    def __add__(self, other): return Bag(self.items + other.items)
"""
FROZEN = "import dataclasses\n@dataclasses.dataclass(frozen=True, order=True)\nclass Point:\n"
FROZEN += "    x: int\n    y: int"
POINTS = (
    "assert len({Point(1, 2), Point(1, 2), Point(2, 1)}) == 2\nassert Point(1, 2) < Point(1, 3)"
)
BAGS = "b, c = Bag(), Bag()\nb.append('a')\nc.append('b')\nassert len(b + c) == 2\n"
BAGS += "assert 'a' in b and 'z' not in b"
POINT = "import collections, typing\n"
INHERIT = {
    "class Bag(list): pass": (BAG, BAGS),
    "import collections\nclass Bag(collections.UserList): pass": (BAG, BAGS),
    f"{POINT}Point = collections.namedtuple('Point', 'x y')": (FROZEN, POINTS),
    f"{POINT}class Point(typing.NamedTuple):\n    x: int\n    y: int": (FROZEN, POINTS),
    f"{POINT}class Point(collections.namedtuple('Both', 'x y')): pass": (FROZEN, POINTS),
}


@pytest.mark.parametrize("reference", INHERIT)
def test_operators_that_the_references_class_inherits_are_its_own(
    task: Any, reference: str
) -> None:
    answer, test = INHERIT[reference]
    made = task([("made", reference), ("t_made", test, 1)])
    assert made.scores() == {"t_made": 1}
    assert made.scores(made=answer) == {"t_made": 1}


WITHHELD = "for x, y in json.load(open('hidden.json')).items(): assert square(int(x)) == y"
KEPT_BACK = [
    ("data", "import json\nimport helper"),
    SMALL[1],
    (
        "t_square",
        "### BEGIN HIDDEN TESTS\nimport reference\n"
        f"{WITHHELD}\nassert square(7) == reference.square(7) == helper.square(7)\n"
        "### END HIDDEN TESTS",
        1,
    ),
]


def kept_back(task: Any, parts: list[tuple[Any, ...]]) -> Task:
    """An assignment of which the release does not hold every file."""
    made = task(parts)
    folder = made.assignment.folder
    (made.folder / "nbgrader_config.py").write_text(
        'c = get_config()\nc.CourseDirectory.ignore = ["hidden*", "reference.py"]\n'
    )
    (folder / "hidden.json").write_text('{"2": 4, "5": 25}')
    (folder / "rows.csv").write_text("1")
    for name in ("reference.py", "helper.py"):
        (folder / name).write_text("class Made:\n    n = 1\n\ndef square(x):\n    return x * x\n")
    made.assignment = replace(read_assignment(folder), stand_in=True)
    return made


def test_an_answer_sees_no_file_that_the_release_does_not_hold(task: Any) -> None:
    made = kept_back(task, KEPT_BACK)
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    reads = "def square(x):\n    return json.load(open(FOUND))[str(x)]".replace
    leaks = [
        "from reference import square",
        reads("FOUND", "'hidden.json'"),
        "import os\n" + reads("FOUND", "next(n for n in os.listdir() if 'json' in n)"),
    ]
    assert made.scores() == made.scores(square="from helper import square") == {"t_square": 1}
    for leak in leaks:
        assert made.scores(square=leak) == {"t_square": 0}, leak
    tells = "import os\ndef square(x):\n    raise ValueError(str(sorted(os.listdir())))"
    assert "['helper.py', 'rows.csv']" in made.verdicts(square=tells)["t_square"].said


@pytest.mark.parametrize(
    "look", ["import reference", "GIVEN = open('hidden.json').read()\nimport reference"]
)
@pytest.mark.parametrize("kind", ["look", "table"])
def test_a_cell_that_only_tests_can_run_costs_no_answer(task: Any, look: str, kind: str) -> None:
    made = kept_back(task, [(kind, look), *KEPT_BACK])
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    assert made.scores() == {"t_square": 1}
    assert made.scores(square="def square(x):\n    return reference.square(x)") == {"t_square": 0}
    lie = "class reference:\n    def square(x): return x\n\ndef square(x):\n    return x"
    assert made.scores(square=lie) == {"t_square": 0}


def test_an_object_of_a_class_that_only_tests_have_is_refused_at_the_build(task: Any) -> None:
    test = ("t_total", "assert total(reference.Made()) == 1", 1)
    made = kept_back(
        task, [("table", "import reference"), ("total", "def total(x): return x.n"), test]
    )
    (complaint,) = rehearsal.rehearse(made.assignment, made.fork_server).complaints
    assert "a Made cannot be handed to an answer" in complaint


def test_a_reference_that_needs_what_students_do_not_get_is_named(task: Any) -> None:
    reference = ("square", "from reference import square")
    made = kept_back(task, [KEPT_BACK[0], reference, KEPT_BACK[2]])
    (complaint,) = rehearsal.rehearse(made.assignment, made.fork_server).complaints
    assert "release does not hold reference.py" in complaint
