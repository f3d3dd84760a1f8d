"""Cells with which every submission begins are run once, and nobody can tell."""

import json
from pathlib import Path
from typing import Any

import pytest

from autograder.authoring import processes
from autograder.common.results import Result
from autograder.isolation import machine
from autograder.judge import grading, questions
from autograder.judge.assignment import Assignment, read_assignment

pytestmark = pytest.mark.skipif(
    not machine.probe().namespaces,
    reason="no sandbox, so nobody can tell what a cell leaves behind",
)

SETUP = "import os\nseen = []\nprint('ready')"
ANSWER = "def f(x):\n    seen.append(x)\n    return len(seen)"
TEST = "assert f(1) == 1, f'{f(1)}'\nassert f(2) == 2"


def _cell(id: str, source: str, **marks: Any) -> dict[str, Any]:
    marks = {"grade_id": id, "schema_version": 3, "task": False, **marks}
    metadata = {"nbgrader": marks} if len(marks) > 3 else {}
    cell = {"cell_type": "code", "id": id, "source": source, "metadata": metadata}
    return cell | {"execution_count": None, "outputs": []}


def _write(path: Path, setup: str, answer: str = ANSWER, before: str = "") -> None:
    cells = [_cell("extra", before)] if before else []
    cells += [
        _cell("setup", setup),
        _cell("f", answer, grade=False, solution=True, locked=False),
        _cell("t", TEST, grade=True, solution=False, locked=True, points=2),
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(content), encoding="utf-8")


def _assignment(folder: Path, setup: str) -> Assignment:
    solution = f"### BEGIN SOLUTION\n{ANSWER}\n### END SOLUTION"
    _write(folder / "source" / "one" / "one.ipynb", setup, solution)
    return read_assignment(folder / "source" / "one")


def _grade(
    assignment: Assignment, folder: Path, who: str, fork_server: Any, **parts: str
) -> Result:
    _write(folder / who / "one" / "one.ipynb", **{"setup": SETUP, **parts})
    return grading.grade(assignment, folder / who / "one", who, fork_server)


def _score(result: Result) -> float:
    return sum(verdict.score for notebook in result.notebooks for verdict in notebook.verdicts)


def test_each_submission_goes_on_from_the_cells_run_once(tmp_path: Path) -> None:
    assignment = _assignment(tmp_path, SETUP)
    with processes.open_fork_server([assignment], sandboxed=True) as fork_server:
        assert [(name, said) for name, _, said in fork_server.head] == [
            (questions.YOURS, "ready\n")
        ]
        for who in ("ada", "ben"):  # what one of them appends is not in the list of the other
            assert _score(_grade(assignment, tmp_path, who, fork_server)) == 2


def test_a_submission_that_begins_otherwise_runs_all_its_cells(tmp_path: Path) -> None:
    assignment = _assignment(tmp_path, SETUP)
    with processes.open_fork_server([assignment], sandboxed=True) as fork_server:
        changed = _grade(assignment, tmp_path, "ada", fork_server, setup="seen = ['mine']")
        assert _score(changed) == 0
        added = _grade(assignment, tmp_path, "ben", fork_server, before="seen = 5")
        assert _score(added) == 2


@pytest.mark.parametrize(
    "cell",
    [
        "open('notes.txt', 'w').write('a')",
        "kept = open(os.devnull)",
        "import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()",
        "import subprocess\nsubprocess.Popen(['/bin/sleep', '60'])",
        "1 / 0",
    ],
    ids=["a file", "an open file", "a thread", "a process", "an error"],
)
def test_what_a_fork_cannot_go_on_from_is_run_for_each(tmp_path: Path, cell: str) -> None:
    setup = f"{SETUP}\n{cell}"
    assignment = _assignment(tmp_path, setup)
    with processes.open_fork_server([assignment], sandboxed=True) as fork_server:
        assert fork_server.head == ()
        assert _score(_grade(assignment, tmp_path, "ada", fork_server, setup=setup)) == 2


def test_only_the_code_before_the_first_answer_is_the_beginning(tmp_path: Path) -> None:
    (notebook,) = _assignment(tmp_path, SETUP).notebooks
    assert processes.beginning(notebook) == [(questions.YOURS, SETUP)]
