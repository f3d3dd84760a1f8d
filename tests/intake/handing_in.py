"""What the tests of intake share: notebooks to hand in, and what is read of them."""

import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from autograder.judge.assignment import Assignment, Notebook, read_assignment
from autograder.judge.intake import read_submission
from autograder.judge.script import Script, Submission
from tests.conftest import ROOT

CHAPTER = "03_attention"
NAME = f"{CHAPTER}.ipynb"
posix = pytest.mark.skipif(os.name != "posix", reason="links and pipes are POSIX's")
Cells = list[dict[str, Any]]


def released() -> dict[str, Any]:
    """The student's notebook as it is handed out."""
    path = ROOT / "exercises" / CHAPTER / NAME
    return json.loads(path.read_text(encoding="utf-8"))


def id_of(cell: dict) -> str:
    """A cell's grade_id."""
    return cell["metadata"].get("nbgrader", {}).get("grade_id", "")


def solved(week: Notebook) -> dict[str, Any]:
    """The student's notebook with the reference's answers."""
    content = released()
    for cell in content["cells"]:
        if id_of(cell) and week.cell(id_of(cell)).kind == "solution":
            cell["source"] = week.cell(id_of(cell)).source.splitlines(keepends=True)
    return content


def put(box: Path, content: object, name: str = NAME) -> None:
    """Hand in a notebook."""
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    (box / name).write_bytes(text)


def read(box: Path, assignment: Assignment) -> Submission:
    """What is read; reading it again gives the same."""
    found = read_submission(box, "me", assignment)
    assert found == read_submission(box, "me", assignment)
    assert all(len(note) < 400 and note.endswith(".") for note in found.notes), found.notes
    json.dumps([found.notes, found.reason], ensure_ascii=False).encode("utf-8")
    return found


def script(box: Path, assignment: Assignment, content: object) -> Script:
    """The notebook of a submission that can be graded."""
    put(box, content)
    found = read(box, assignment)
    assert found.reason == "" and len(found.scripts) == 1
    return found.scripts[0]


def right(found: Script, week: Notebook) -> bool:
    """Whether every solution cell holds the reference."""
    return all(found.answers[c.grade_id] == c.source for c in week.of_kind("solution"))


def strip_marks(cells: Cells) -> Cells:
    """All of nbgrader's metadata removed."""
    return [cell | {"metadata": {}} for cell in cells]


def strip_all(cells: Cells) -> Cells:
    """No metadata and no ids either."""
    return [{k: v for k, v in c.items() if k != "id"} for c in strip_marks(cells)]


def random_json(drawn: random.Random, depth: int = 0) -> object:
    """Some JSON that looks a little like a notebook."""
    kind = drawn.randrange(8 if depth < 5 else 5)
    if kind < 5:
        values = [None, True, -1, 1e300, "code", "source", "masks", "def f(): pass", "\ud800", ""]
        return drawn.choice(values)
    if kind == 5:
        return [random_json(drawn, depth + 1) for _ in range(drawn.randrange(5))]
    keys = ["cells", "source", "metadata", "nbgrader", "grade_id", "id", "cell_type", "points"]
    return {drawn.choice(keys): random_json(drawn, depth + 1) for _ in range(drawn.randrange(6))}


PLAIN = "LOG = []\nLOG.append(1)\n\n\ndef helper(x):\n    return x  # change this\n\n\nprint(LOG)"
ANSWERS = {"mean": "def mean(x):\n    return x", "square": "def square(x):\n    return helper(x)"}


def small(tmp_path: Path, *ordinary: str) -> tuple[Assignment, dict[str, Any]]:
    """An assignment with ordinary cells, two answers and their tests; and its notebook, solved."""
    folder = tmp_path / "source" / CHAPTER
    folder.mkdir(parents=True)
    cells: Cells = [code("import math"), *map(code, ordinary)]
    for name, source in ANSWERS.items():
        cells += [code(source, name), code(f"assert {name}(1)", f"{name}-test", grade=True)]
    content = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
    (folder / NAME).write_text(json.dumps(content), encoding="utf-8")
    return read_assignment(folder), json.loads(json.dumps(content))


def code(source: str, grade_id: str = "", *, grade: bool = False) -> dict[str, Any]:
    """A code cell; with a grade_id an answer or a test."""
    marks = {"grade": grade, "solution": not grade, "locked": grade, "schema_version": 3}
    marks = {"nbgrader": marks | {"points": 1, "grade_id": grade_id}} if grade_id else {}
    return {"cell_type": "code", "metadata": marks, "source": source}


def ran(box: Path, assignment: Assignment, cells: Cells) -> list[str]:
    """What runs of these cells, in order, without the tests."""
    content = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
    return [c.source for c in script(box, assignment, content).cells if c.kind != "test"]


def marks(**values: object) -> Callable[[Cells], Cells]:
    """Other values in nbgrader's metadata of every cell that has some."""

    def change(cells: Cells) -> Cells:
        for cell in cells:
            if "nbgrader" in cell["metadata"]:
                cell["metadata"]["nbgrader"].update(values)
        return cells

    return change
