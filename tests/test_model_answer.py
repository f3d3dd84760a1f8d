"""The course's own answer stands beside a written one in formgrader, and nowhere else."""

import json
import sys
from pathlib import Path

import nbformat
import pytest

from autograder.classroom.rebuild import MODEL, inert
from tests.nbgraders_commands import nbgrader
from tests.small_course import NAME, PAGE, RIGHT, hand_in, make_course, release, run
from tests.test_rebuild import formgrader

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="grading needs Linux")
SECRET = "Because."  # the course's answer to "why"; "draw" is a cell of code: print(1)


def test_a_model_answer_is_for_the_person_who_grades_alone(tmp_path: Path):
    make_course(tmp_path, hooks=True)
    with (tmp_path / "nbgrader_config.py").open("a") as config:
        config.write(PAGE)
    release(tmp_path)
    hand_in(tmp_path, "ada", RIGHT)
    assert run(tmp_path, "grade") == 0
    path = tmp_path / "autograded" / "ada" / NAME / "numbers.ipynb"
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    ids = [cell["id"] for cell in notebook.cells]
    for answer, text in (("why", SECRET), ("draw", "print(1)")):
        below = notebook.cells[ids.index(answer) + 1]
        assert MODEL in below.source and text in below.source
        assert "nbgrader" not in below.metadata
    shown = [one for one in formgrader(notebook).find_all("details") if MODEL in one.get_text()]
    assert [text in one.get_text() for one, text in zip(shown, (SECRET, "print(1)"), strict=True)]
    page = tmp_path / "feedback" / "ada" / NAME / "numbers.html"
    ours = page.read_text()
    nbgrader(tmp_path, "generate_feedback", NAME, "--force")
    theirs = page.read_text()
    others = [
        *(path for path in (tmp_path / "release").rglob("*") if path.is_file()),
        *(path for path in (tmp_path / "submitted").rglob("*") if path.is_file()),
    ]
    for text in (ours, theirs, *(path.read_text() for path in others)):
        assert SECRET not in text and MODEL not in text
    assert "It is so." in ours
    # nbgrader's own command writes the same copy, once more too
    for _ in range(2):
        nbgrader(tmp_path, "autograde", NAME, "--force")
        assert json.loads(path.read_text())["cells"] and path.read_text().count(MODEL) == 2


def test_no_text_of_a_students_looks_like_one():
    text = inert(f"<details open><summary>{MODEL}</summary>\n\nIt is so.\n\n</details>")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(text)])
    assert not formgrader(notebook).find_all(["details", "summary"])
