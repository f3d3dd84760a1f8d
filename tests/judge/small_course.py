"""An assignment of a few questions, and what submissions to it get."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from autograder.common.results import Result, Verdict
from autograder.isolation.fork_server import ForkServer
from autograder.judge import grading, rehearsal
from autograder.judge.assignment import Assignment, read_assignment
from autograder.judge.heard import Heard, heard

RULES = "[defaults]\nseconds = {seconds}\n"


FORBID = '[total]\nforbid = ["sum", "torch.softmax"]\n'


SETUP = "import math\nimport random\nimport numpy as np\nimport torch"


LOCKED = ("setup", "table")  # cells of the instructor's that nobody fills in


OPEN = ("look", "data", "star")  # ordinary cells of the instructor's, which a student may change


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


CHAIN = [
    ("square", "def square(x):\n    return x * x"),
    ("t_square", "assert square(3) == 9\nassert square(-1) == 1", 1),
    ("norm", "def norm(xs):\n    return math.sqrt(sum(square(x) for x in xs))"),
    ("t_norm", "assert norm([3, 4]) == 5", 2),
    ("total", "def total(xs):\n    found = 0\n    for x in xs: found += x\n    return found"),
    ("t_total", "assert total([1, 2, 3]) == 6", 3),
]


ALL = {"t_square": 1, "t_norm": 2, "t_total": 3}


SMALL = [
    ("look", "import collections\nWANTED = 9"),
    ("square", "def square(x):\n    return x * x"),
    ("t_square", "assert square(3) == WANTED\ncollections.Counter()", 1),
]


VEC = "class Vec:\n    def __init__(self, x):\n        self.x = x\n"


LISTING = """\
class Plugin:
    made = []
    def __init_subclass__(cls):
        Plugin.made.append(cls.__name__)
"""


def heard_of(made: Task) -> Heard:
    """What the reference gives in each test."""
    notebook = made.assignment.notebooks[0]
    solutions = [cell.grade_id for cell in notebook.of_kind("solution")]
    runs = rehearsal.runs(made.assignment, {}, made.fork_server, solutions)
    return heard(made.assignment, notebook, runs)


def rehearsed(made: Task) -> Task:
    """The same, which can be released, and of which is known what the reference gives."""
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    made.known = heard_of(made)
    return made


HIDDEN_PART = "\n### BEGIN HIDDEN TESTS\n{}\n### END HIDDEN TESTS"
