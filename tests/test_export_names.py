"""Exports: by which names and numbers an LMS finds students, and never another one."""

from pathlib import Path

import pytest

from autograder.classroom.exports import Grades, enrol, write_canvas, write_moodle
from autograder.classroom.roster import Person, roster_of
from tests.test_exports import table


def test_of_two_folders_that_an_lms_takes_for_one_neither_has_the_others_grade():
    people = {name: Person(name) for name in ("ada", "Ada", "bo", "Muller", "Müller", "BO")}
    names = [*people][:5]  # the last has handed in nothing
    scores = {(name, "one"): float(place) for place, name in enumerate(names)}
    grades = Grades({"one": 9.0}, scores, people=people)
    (said,) = enrol(grades, None)
    assert said.startswith("Ada, ada: an LMS may know somebody else by that number, login or")
    named = {row[-1]: row[3] for row in table(write_canvas, grades)[2:]}
    assert named == {"0": "", "1": "", "2": "bo", "3": "Muller", "4": "Müller", "": "BO"}


@pytest.mark.parametrize(
    "folder", ["Ada Lovelace", "Lovelace, Ada", "ADA LOVELACE", "Lovelace,  Ada", "Bo Diaz"]
)
@pytest.mark.parametrize("is_listed", [True, False])
def test_no_folder_goes_by_the_name_that_an_lms_has_of_somebody_else(folder: str, is_listed: bool):
    known = {"1": Person("1", "77", "Ada Lovelace"), "2": Person("2", name="Diaz, Bo")}
    people = {one: Person(one) for one in ("1", "2", folder)} if is_listed else {**known}
    people |= {one: Person(one) for one in ("cy", folder)}
    grades = Grades({"one": 9.0}, {(folder, "one"): 0.0, ("1", "one"): 8.0}, people=people)
    enrol(grades, known if is_listed else None)
    names = [row[0] for row in table(write_canvas, grades)[2:]]
    assert sorted(names[:2]) == ["Ada Lovelace", "Diaz, Bo"]
    others = [f"{folder} (folder)", "cy (folder)" if is_listed else "cy"]
    assert sorted(names[2:]) == sorted(others)


def test_names_that_a_roster_lists_are_as_they_are(tmp_path: Path):
    names = ["Muller", "Müller", "7", "007", "bo"]
    (tmp_path / "roster.csv").write_text("\n".join(["student", *names]), encoding="utf-8")
    people = {name: Person(name) for name in names}
    grades = Grades({"one": 3.0}, {(name, "one"): 1.0 for name in names}, people=people)
    assert enrol(grades, roster_of(tmp_path)) == []
    assert sorted(row[2] for row in table(write_moodle, grades)[1:]) == sorted(names)


@pytest.mark.parametrize("same", [True, False])
def test_a_number_that_a_roster_gives_to_two_brings_neither_the_others_points(
    tmp_path: Path, same: bool
):
    roster = "student,lms_id,email\nada,7,a@x.org\nbo,7,A@x.org\ncy,8,c@x.org\n"
    (tmp_path / "roster.csv").write_text(roster, encoding="utf-8")
    scores = {("ada", "one"): 1.0, ("bo", "one" if same else "two"): 2.0, ("cy", "one"): 3.0}
    people = {name: Person(name) for name in ("ada", "bo", "cy")}
    grades = Grades({"one": 3.0, "two": 3.0}, scores, people=people)
    said = enrol(grades, roster_of(tmp_path))
    words = "; the rows leave it out, mend the roster."
    both = [f"ada, bo: all have the same {kind}{words}" for kind in ("lms_id", "email")]
    assert said == (both if same else [])
    ids = [row[1] for row in table(write_canvas, grades)[2:]]
    assert ids == (["", "", "8"] if same else ["7", "7", "8"])
    emails = [row[3] for row in table(write_moodle, grades)[1:]]
    assert emails == (["", "", "c@x.org"] if same else ["a@x.org", "A@x.org", "c@x.org"])
