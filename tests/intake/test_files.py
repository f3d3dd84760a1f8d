"""Which of the files that a student hands in is which notebook, and what else is taken along."""

import json
import os
import shutil
import stat
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from autograder.judge import intake
from autograder.judge.assignment import Assignment, Notebook, read_assignment
from autograder.judge.parcel import Parcel, Place, at, collect
from autograder.judge.rules import Rules
from tests.intake.handing_in import (
    CHAPTER,
    NAME,
    code,
    id_of,
    posix,
    put,
    read,
    released,
    right,
    solved,
    strip_all,
)


def test_a_renamed_notebook_is_taken_if_it_is_the_only_one(
    box: Path, assignment: Assignment, week: Notebook
):
    put(box, solved(week), f"{CHAPTER} (1).ipynb")
    put(box, {"cells": []}, "other.ipynb")
    put(box, b"{", "broken.ipynb")
    found = read(box, assignment)
    assert right(found.scripts[0], week)
    said = " ".join(found.scripts[0].notes)
    assert "(1).ipynb was graded, because no 03_attention.ipynb was handed in." in said
    put(box, solved(week), f"{CHAPTER} (2).ipynb")
    found = read(box, assignment)
    assert "could each be meant; keep one" in found.reason
    put(box, released())
    assert read(box, assignment).reason == ""


@pytest.mark.parametrize(
    "name", [f"{CHAPTER}.ipynb ", f"{CHAPTER}.ipynb.", f"{CHAPTER}.IPYNB.txt\u00a0"]
)
def test_a_sign_that_nobody_sees_at_the_end_of_a_name_costs_nothing(
    box: Path, assignment: Assignment, week: Notebook, name: str
):
    put(box, solved(week), name)
    assert right(read(box, assignment).scripts[0], week)


FIRST, SECOND = "def first(x):\n    return x", "def second(x):\n    return 2 * x"


@pytest.fixture
def parts(tmp_path: Path) -> Assignment:
    """An assignment of two notebooks."""
    folder = tmp_path / "source" / CHAPTER
    folder.mkdir(parents=True)
    for name, content in (("part1.ipynb", part(FIRST)), ("part2.ipynb", part(SECOND))):
        (folder / name).write_text(json.dumps(content))
    return read_assignment(folder)


def part(answer: str) -> dict[str, Any]:
    """One of two notebooks: a heading, a setup that both have, an answer and its test."""
    name = answer[4:].partition("(")[0]
    head = {"cell_type": "markdown", "metadata": {}, "source": f"# The {name} part"}
    test = code(f"assert {name}(1)", f"{name}-test", grade=True)
    cells = [head, code("k = 5"), code(answer, name), test]
    return {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}


def stripped(content: dict[str, Any]) -> dict[str, Any]:
    """The same without marks."""
    return content | {"cells": strip_all(content["cells"])}


@pytest.mark.parametrize("change", [dict, stripped])
@pytest.mark.parametrize(
    ("handed_in", "taken"),
    [
        ({"part1": FIRST, "part2": SECOND}, ["part1", "part2"]),
        ({"part1": SECOND, "part2": FIRST}, ["part2", "part1"]),
        ({"part1": FIRST, "part2": FIRST, "part2 (1)": SECOND}, ["part1", "part2 (1)"]),
        ({"part1": SECOND, "part2": SECOND, "a": FIRST}, ["a", "part2"]),
        ({"part2": FIRST, "a": SECOND}, ["part2", "a"]),
        ({"part1": SECOND, "part2": "def other(x): return x", "a": FIRST}, ["a", "part1"]),
    ],
)
def test_which_file_is_which_notebook_goes_by_its_cells_before_its_name(
    box: Path, parts: Assignment, handed_in: dict[str, str], taken: list[str], change: Callable
):
    for name, answer in handed_in.items():
        put(box, change(part(answer)), f"{name}.ipynb")
    for found, file, answer in zip(read(box, parts).scripts, taken, (FIRST, SECOND), strict=True):
        assert list(found.answers.values()) == [answer] and not found.missing
        said = f"{file}.ipynb was graded, because "
        assert any(note.startswith(said) for note in found.notes) == (file != found.name)
    expected = {"part1", "part2"}
    left = [f"{name}.ipynb" for name in handed_in if name not in {*expected, *taken}]
    assert all(name in " ".join(read(box, parts).notes) for name in left)


@pytest.mark.parametrize("name", ["all", "part1", "part2", "Part 2"])
def test_notebooks_that_were_put_together_in_one_file_are_graded_from_it(
    box: Path, parts: Assignment, name: str
):
    one, other = part(FIRST), part(SECOND)
    for first, second in ((one, other), (other, one)):
        put(box, first | {"cells": [*first["cells"], *second["cells"]]}, f"{name}.ipynb")
        found = read(box, parts)
        assert [list(one.answers.values()) for one in found.scripts] == [[FIRST], [SECOND]]
        assert not any(one.missing or one.reason for one in found.scripts)


@pytest.mark.parametrize("change", [dict, stripped])
def test_notebooks_with_the_same_marks_are_told_apart_by_what_else_they_hold(
    box: Path, tmp_path: Path, change: Callable
):
    folder = tmp_path / "source" / CHAPTER
    folder.mkdir(parents=True)
    content = json.loads(
        json.dumps([part(FIRST), part(SECOND)])
        .replace('"grade_id": "first', '"grade_id": "q')
        .replace('"grade_id": "second', '"grade_id": "q')
    )
    for number, one in enumerate(content, 1):
        (folder / f"part{number}.ipynb").write_text(json.dumps(one))
    assignment = read_assignment(folder)
    for one, other in ((1, 2), (2, 1)):
        put(box, change(content[one - 1]), "part1.ipynb")
        put(box, change(content[other - 1]), "part2.ipynb")
        answers = [found.answers["q"] for found in read(box, assignment).scripts]
        assert answers == [FIRST, SECOND]


def test_a_notebook_of_another_assignment_does_not_hide_the_true_one(
    box: Path, assignment: Assignment, week: Notebook
):
    put(box, part(FIRST))
    put(box, solved(week), "final.ipynb")
    (found,) = read(box, assignment).scripts
    assert right(found, week)
    assert found.notes == (f"final.ipynb was graded, because {NAME} holds something else.",)
    (box / "final.ipynb").unlink()
    (found,) = read(box, assignment).scripts
    assert found.notes[0] == f"{NAME} was graded and holds something else."


def test_a_notebook_of_its_own_name_without_marks_is_not_left_for_an_older_one(
    box: Path, assignment: Assignment, week: Notebook
):
    mine, older = solved(week), solved(week)
    mine["cells"] = [cell for cell in strip_all(mine["cells"]) if cell["cell_type"] == "code"]
    put(box, mine)
    next(cell for cell in older["cells"] if id_of(cell) == "masks")["source"] = "old = 1"
    put(box, older, f"{CHAPTER} (1).ipynb")
    assert right(read(box, assignment).scripts[0], week)


def test_a_notebook_in_a_folder_of_its_own_is_found(
    box: Path, assignment: Assignment, week: Notebook
):
    (box / CHAPTER).mkdir()
    put(box / CHAPTER, strip_all(solved(week)["cells"]), NAME)
    put(box / CHAPTER, {"cells": strip_all(solved(week)["cells"])}, NAME)
    assert right(read(box, assignment).scripts[0], week)


def test_a_missing_notebook_says_what_was_found(box: Path, assignment: Assignment):
    assert read(box, assignment).reason == (
        f"no file named {NAME} was submitted (the folder is empty)"
    )
    (box / ".ipynb_checkpoints").mkdir()
    (box / ".ipynb_checkpoints" / NAME).write_text("{}", encoding="utf-8")
    assert "(what lies in .ipynb_checkpoints is not what was" in read(box, assignment).reason
    (box / "essay.txt").write_text("x", encoding="utf-8")
    found = read(box, assignment)
    assert found.reason == f"no file named {NAME} was submitted (found essay.txt)"
    shutil.rmtree(box)
    assert "the folder is missing" in read(box, assignment).reason
    box.write_text("a file", encoding="utf-8")
    assert read(box, assignment).reason == "the submission is a file, not a folder"


def test_a_folder_that_lies_too_deep_is_named_and_none_is_called_empty(
    box: Path, assignment: Assignment, week: Notebook
):
    deep = box / "Users" / "ann" / "course"
    deep.mkdir(parents=True)
    put(deep, solved(week), NAME)
    words = "the folder Users/ann/course lies too deep to be looked into"
    found = read(box, assignment)
    assert found.reason == f"no file named {NAME} was submitted ({words})"
    (box / "essay.txt").write_text("x", encoding="utf-8")
    assert read(box, assignment).reason.endswith(f"(found essay.txt; {words})")
    parcel = collect(at(box), assignment)
    assert Parcel.unpack(parcel.pack()).unseen == words
    for number in range(250):
        (box / "Users" / f"{number:03}").mkdir()
    shutil.rmtree(box / "Users" / "ann")
    reason = read(box, assignment).reason
    assert reason.endswith("; the folder Users/198 is one of too many to be looked into)")


def test_a_folder_in_place_of_the_notebook(box: Path, assignment: Assignment, week: Notebook):
    (box / NAME).mkdir()
    found = read(box, assignment)
    assert found.reason == f"{NAME} is a folder, not a file"
    assert [flag.kind for flag in found.flags] == ["file"]
    put(box, solved(week), "other.ipynb")
    assert right(read(box, assignment).scripts[0], week)


def test_a_notebook_in_a_folder_that_is_called_as_it_is_graded(
    box: Path, assignment: Assignment, week: Notebook
):
    folder = box / NAME  # as what unpacks a .zip calls it
    folder.mkdir()
    (folder / "essay.txt").write_text("x", encoding="utf-8")
    assert read(box, assignment).reason.endswith(f"(found {NAME})")
    put(folder, solved(week))
    found = read(box, assignment)
    assert right(found.scripts[0], week) and not found.flags
    assert found.scripts[0].notes[0].startswith(f"{NAME}/{NAME} was graded, because no {NAME}")


@posix
def test_links_pipes_and_sockets_are_left_alone(box: Path, assignment: Assignment, week: Notebook):
    real = box.parent / "real.ipynb"
    put(box.parent, solved(week), real.name)
    (box / NAME).symlink_to(real)
    found = read(box, assignment)
    assert found.reason == f"{NAME} is a link, not a file"
    (box / NAME).unlink()
    os.mkfifo(box / NAME)
    assert read(box, assignment).reason == f"{NAME} is a pipe, not a file"
    (box / NAME).unlink()
    put(box, solved(week))
    os.mkfifo(box / "timestamp.txt")
    (box / "dangling").symlink_to(box / "nothing")
    (box / "passwd").symlink_to("/etc/passwd")
    (box / "up").symlink_to(box.parent)
    found = read(box, assignment)
    assert right(found.scripts[0], week)
    assert sorted(flag.where for flag in found.flags) == [
        "dangling",
        "passwd",
        "timestamp.txt",
        "up",
    ]
    assert found.scripts[0].files == ()


@posix
def test_a_submission_that_is_a_link_is_not_followed(box: Path, assignment: Assignment):
    put(box, released())
    link = box.parent / "link"
    link.symlink_to(box, target_is_directory=True)
    assert read(link, assignment).reason == "the submission is a link, not a folder"


@posix
@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may read all")
def test_a_file_without_permission_gives_a_reason(box: Path, assignment: Assignment):
    put(box, released())
    (box / NAME).chmod(0)
    assert "cannot be opened" in read(box, assignment).reason
    (box / NAME).chmod(stat.S_IRUSR | stat.S_IWUSR)
    box.chmod(0)
    assert "cannot be read" in read(box, assignment).reason
    box.chmod(stat.S_IRUSR)
    assert read(box, assignment).reason == f"{NAME} is not readable"
    box.chmod(stat.S_IRWXU)


def test_only_allowed_files_are_kept(box: Path, assignment: Assignment, week: Notebook):
    put(box, solved(week))
    (box / "data").mkdir()
    for name in ("torch.py", "nbgrader_config.py", "data/a.csv", "bomb.zip", "timestamp.txt"):
        (box / name).write_text("garbage \x00", encoding="utf-8")
    found = read(box, assignment)
    assert found.scripts[0].files == () and found.reason == ""
    assert found.notes == (
        "Files that this assignment does not ask for were left out: "
        "bomb.zip, data/a.csv, nbgrader_config.py, torch.py.",
    )
    allowing = replace(assignment, rules=Rules(files=("data/*",)))
    assert read(box, allowing).scripts[0].files == (("data/a.csv", b"garbage \x00"),)
    (box / "submission_secret.txt").write_text("0" * 64)
    allowing = replace(assignment, rules=Rules(files=("*.txt",)))
    assert read(box, allowing).scripts[0].files == ()


@pytest.mark.parametrize("pattern", ["a.csv", "*.csv"])
@pytest.mark.parametrize("inside", ["work", "work/more"])
def test_files_beside_a_notebook_in_a_folder_are_beside_it(
    box: Path, assignment: Assignment, week: Notebook, pattern: str, inside: str
):
    (box / inside).mkdir(parents=True)
    put(box / inside, solved(week))
    (box / inside / "a.csv").write_text("inside")
    (box / "data").mkdir()
    (box / "data" / "b.txt").write_text("there")
    allowing = replace(assignment, rules=Rules(files=(pattern, "data/b.txt")))
    found = read(box, allowing)
    assert found.scripts[0].files == (("data/b.txt", b"there"), ("a.csv", b"inside"))
    assert not any("left out" in note for note in found.notes)
    (box / "a.csv").write_text("outside")
    assert dict(read(box, allowing).scripts[0].files)["a.csv"] == b"outside"


@pytest.mark.parametrize("pattern", ["gr\u00f6\u00dfe.csv", "*.csv"])
def test_an_allowed_file_is_found_however_a_mac_wrote_its_name(
    box: Path, assignment: Assignment, week: Notebook, pattern: str
):
    one, two = "gr\u00f6\u00dfe.csv", "gro\u0308\u00dfe.csv"
    put(box, solved(week))
    (box / two).write_text("2")
    allowing = replace(assignment, rules=Rules(files=(pattern,)))
    found = read(box, allowing)
    assert found.scripts[0].files == ((one, b"2"),) and not found.notes
    if (box / one).exists():
        return  # such a disk holds one of the two
    (box / one).write_text("1")
    found = read(box, allowing)
    assert found.scripts[0].files == ((one, b"1"),)
    assert [flag.words for flag in found.flags if "lies there twice" in flag.words]


@posix
def test_what_is_no_plain_file_or_too_large_is_not_kept(
    box: Path, assignment: Assignment, week: Notebook, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(intake, "MAX_BESIDE", 6)
    put(box, solved(week))
    (box / "a.csv").write_text("1234")
    (box / "b.csv").write_text("12345")
    (box / "c.csv").write_text("12")
    (box / "d.csv").symlink_to("/etc/hostname")
    os.mkfifo(box / "e.csv")
    found = read(box, replace(assignment, rules=Rules(files=("*.csv",))))
    assert [name for name, _ in found.scripts[0].files] == ["a.csv", "c.csv"]
    said = {flag.where: flag.words for flag in found.flags}
    assert "b.csv" in said and "left out" in said["b.csv"]
    assert {"d.csv", "e.csv"} <= said.keys()


def test_the_key_changes_with_what_matters(box: Path, assignment: Assignment, week: Notebook):
    put(box, solved(week))
    first = read(box, assignment).key
    os.utime(box / NAME, (1, 1))
    assert read(box, assignment).key == first
    (box / "notes.txt").write_text("x", encoding="utf-8")  # the page says that it was left out
    assert read(box, assignment).key != first
    (box / "notes.txt").unlink()
    assert read(box, assignment).key == first
    assert read(box, replace(assignment, digest="other")).key != first
    put(box, released())
    assert read(box, assignment).key != first
    (box / NAME).unlink()
    gone = read(box, assignment).key
    shutil.rmtree(box)
    assert len({first, gone, read(box, assignment).key}) == 3


def test_the_time_is_the_collectors(box: Path, assignment: Assignment):
    before = time.time() - 60
    put(box, released())
    (box / "timestamp.txt").write_text("1999-01-01 00:00:00 UTC", encoding="utf-8")
    for path, when in ((box / NAME, 2e9), (box, 1e9), (box / NAME, 1e9)):
        os.utime(path, (when, when))
    collected = read(box, assignment).collected
    assert collected is not None and before < collected < time.time() + 60
    late = replace(assignment.rules.late, trust_timestamp=True)
    trusting = replace(assignment, rules=replace(assignment.rules, late=late))
    assert read(box, trusting).collected == 915148800
    for spoil in (lambda path: path.write_text("", encoding="utf-8"), Path.unlink):
        spoil(box / "timestamp.txt")
        assert read(box, trusting).collected is None


def test_names_of_files_are_shown_without_control_signs(box: Path, assignment: Assignment):
    if sys.platform != "linux":
        pytest.skip("other systems refuse such names")
    for name in (b"\x1b[2J.ipynb", b"\xff\xfe.txt", b"a" * 200, b"new\nline"):
        (Path(os.fsdecode(os.fsencode(box) + b"/" + name))).write_text("{}", encoding="utf-8")
    found = read(box, assignment)
    assert "\x1b" not in found.reason and "\n" not in found.reason


def test_thousands_of_files_do_not_hide_the_notebook(
    box: Path, assignment: Assignment, week: Notebook
):
    for number in range(700):
        (box / f"0{number}.txt").write_text("", encoding="utf-8")
    put(box, solved(week))
    assert right(read(box, assignment).scripts[0], week)


def test_many_files_in_one_folder_do_not_hide_the_notebook_in_the_next(
    box: Path, assignment: Assignment, week: Notebook
):
    (box / "img" / "deep").mkdir(parents=True)
    for number in range(600):
        (box / "img" / f"{number}.png").write_text("", encoding="utf-8")
    put(box, solved(week), "img/deep/my.ipynb")
    reason = read(box, assignment).scripts[0].reason
    assert reason.endswith("(found img; only 500 files were looked at)")
    (box / "work").mkdir()
    put(box, solved(week), f"work/{NAME}")
    assert right(read(box, assignment).scripts[0], week)


def test_the_key_follows_the_names_of_what_is_only_named(
    box: Path, assignment: Assignment, week: Notebook
):
    def key() -> str:
        return collect(at(box), assignment).key("")

    put(box, solved(week))
    alone = key()
    for name in ("timestamp.txt", "submission_secret.txt"):  # these have words of their own
        (box / name).write_text("", encoding="utf-8")
    (box / "timestamp.txt").unlink()
    assert key() == alone
    put(box, b"Rar!", "work.rar")
    first = key()
    (box / "work.rar").rename(box / "work.docx")
    assert len({alone, first, key()}) == 3
    (box / "work.docx").unlink()
    assert key() == alone


@pytest.mark.parametrize("beside", ["a{}.txt", "a{}.ipynb", "a{}/x.txt"])
def test_the_notebook_is_found_however_much_lies_beside_it(
    box: Path, assignment: Assignment, beside: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("autograder.judge.parcel.MAX_FILES", 0)  # whichever is listed first
    for number in range(7):
        path = box / beside.format(number)
        path.parent.mkdir(exist_ok=True)
        path.write_text("{}")
    put(box, released())
    found = collect(at(box), assignment)
    assert NAME in found.files
    place = Place(box.parent / CHAPTER, 1, frozenset([NAME]))
    assert list(collect(place, assignment).files) == [NAME]


def test_data_files_do_not_crowd_out_a_misnamed_notebook(box: Path, assignment: Assignment):
    for number in range(12):
        put(box, {}, f"data{number}.json")
    put(box, released(), "my work.ipynb")
    put(box, released(), "saved.ipynb.json")
    assert list(collect(at(box), assignment).files)[:2] == ["my work.ipynb", "saved.ipynb.json"]
