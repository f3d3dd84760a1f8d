"""Work that does not lie where it should is found, or named: none is 0 in silence."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from autograder.classroom.places import Places, students_in

NOTEBOOKS = {
    "03_attention": ["03_attention"],
    "04_multi_head_attention": ["04_multi_head_attention"],
    "ps1": ["problem1", "problem2"],
}


@pytest.fixture
def submitted(tmp_path: Path) -> Path:
    """A class's folder, still empty."""
    folder = tmp_path / "submitted"
    folder.mkdir()
    return folder


def put(folder: Path, *names: str) -> Places:
    """The places of a class in which ada has these files."""
    for name in names:
        path = folder / "ada" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    return Places(folder, NOTEBOOKS)


def test_work_in_its_place_is_taken_from_there(submitted: Path):
    places = put(submitted, "03_attention/03_attention.ipynb")
    place = places.of("ada", "03_attention")
    assert place is not None
    assert (place.folder, place.note, place.reason) == (submitted / "ada" / "03_attention", "", "")
    assert places.of("ada", "ps1") is None
    assert list(places.strays(["ada"])) == []


@pytest.mark.parametrize(
    "name",
    [
        "03_Attention/03_attention.ipynb",
        "03-attention/x.ipynb",
        "03 attention (1)/x.ipynb",
        "3_attention/03_attention.ipynb",
        "03_atention/03_attention.ipynb",
        "03_attention - Copy/03_attention.ipynb",
        "attention/03_attention.ipynb",
    ],
)
def test_a_misspelt_folder_is_found_and_named(submitted: Path, name: str):
    places = put(submitted, name)
    place = places.of("ada", "03_attention")
    assert place is not None
    assert place.folder == submitted / "ada" / name.partition("/")[0]
    assert name.partition("/")[0] in place.note
    assert places.of("ada", "04_multi_head_attention") is None
    assert list(places.strays(["ada"])) == []


@pytest.mark.parametrize(
    "name",
    ["03_attention.ipynb", "03_attention (2).ipynb", "03_ATTENTION.ipynb", "03_attention.ipynb "],
)
def test_a_notebook_beside_its_folder_is_found_and_named(submitted: Path, name: str):
    place = put(submitted, name, "notes.txt").of("ada", "03_attention")
    assert place is not None
    assert (place.folder, place.above, place.only) == (submitted / "ada", 1, {name})
    assert name in place.note


def test_names_of_any_script_are_told_apart(submitted: Path):
    put(submitted, "作业一 (1)/x.ipynb", "笔记/x.ipynb", "Übung-2/x.ipynb", "課題/x.ipynb")
    names = ("作业一", "作业二", "Übung 2", "課題!", "課題?")
    places = Places(submitted, {name: ["x"] for name in names})
    found = {name: place.folder.name for name in names if (place := places.of("ada", name))}
    assert found == {"作业一": "作业一 (1)", "Übung 2": "Übung-2"}


def test_all_notebooks_of_an_assignment_beside_its_folder(submitted: Path):
    place = put(submitted, "problem1.ipynb", "problem2.ipynb").of("ada", "ps1")
    assert place is not None
    assert place.only == {"problem1.ipynb", "problem2.ipynb"}


def test_several_that_could_be_meant_are_named(submitted: Path):
    place = put(submitted, "03_Attention/a.ipynb", "03-attention/a.ipynb").of("ada", "03_attention")
    assert place is not None
    assert "03-attention, 03_Attention could each be meant" in place.reason


def test_the_true_folder_counts_before_any_other(submitted: Path):
    places = put(submitted, "03_attention/a.ipynb", "03_Attention/a.ipynb", "03_attention.ipynb")
    place = places.of("ada", "03_attention")
    assert place is not None
    assert (place.folder.name, place.note) == ("03_attention", "")

    words = "was not graded: 03_attention is there as well"
    expected = [f"ada/{name} {words}" for name in ("03_Attention", "03_attention.ipynb")]
    assert list(places.strays(["ada"])) == expected


@pytest.mark.parametrize("inside", ["", "read.me", "data.json", "sub/x.png", "all.zip"])
def test_a_true_folder_without_a_notebook_gives_way_to_work_beside_it(submitted: Path, inside: str):
    (submitted / "ada" / "03_attention").mkdir(parents=True)
    inner = [f"03_attention/{inside}"] if inside else []
    places = put(submitted, *inner, "03_attention (1)/03_attention.ipynb")
    place = places.of("ada", "03_attention")
    assert place is not None
    assert place.folder.name == "03_attention (1)" and "03_attention (1)" in place.note
    assert list(places.strays(["ada"])) == []
    place = put(submitted, "03_Attention/a.ipynb").of("ada", "03_attention")
    assert place is not None
    assert "there is no work in the folder 03_attention, and" in place.reason


def test_a_true_folder_counts_however_much_lies_in_it(submitted: Path):
    extra = [f"03_attention/{number:04}.txt" for number in range(600)]
    put(submitted, "03_attention (1)/x.ipynb", "03_attention/03_attention.ipynb", *extra)
    put(submitted, "ps1/ps1/other.ipynb", "PS1/other.ipynb")
    for name in ("03_attention", "ps1"):
        place = Places(submitted, NOTEBOOKS).of("ada", name)
        assert place is not None and place.folder.name == name


@pytest.mark.parametrize(
    "name",
    [
        *("homework.ipynb", "04_attention/a.ipynb", "week 3/a.ipynb", "13_attention.ipynb"),
        *("all.zip", "all.rar", "all.7Z", "all.tar", "all.tar.gz", "all.tgz", "week/all.tar.xz"),
        *("all.zip ", "all.zip. ", "all.zipx", "all.7z.001", "week.ipynb.gz", "other.ipynb.bz2"),
        *("ada/03_attention/03_attention.ipynb", "week1/ps1/problem1.ipynb"),
        "Users/ann/Documents/course/03_attention/03_attention.ipynb",
    ],
)
def test_what_is_meant_for_nothing_is_named(submitted: Path, name: str):
    places = put(submitted, name)
    assert all(places.of("ada", assignment) is None for assignment in NOTEBOOKS)
    (words,) = places.strays(["ada"])
    assert words == f"ada/{name.partition('/')[0]} belongs to no assignment"


@pytest.mark.parametrize(
    ("name", "is_meant"),
    [
        ("homework2/homework2.ipynb", False),
        ("homework2.ipynb", False),
        ("homework12/x.ipynb", False),
        ("homework1b2/x.ipynb", False),
        ("homewerk01/x.ipynb", True),
        ("homework/x.ipynb", True),
        ("lab 3/x.ipynb", False),
        ("5_project4/x.ipynb", True),
        ("project4/x.ipynb", True),
        ("6_project4/x.ipynb", False),
        ("6_projects/x.ipynb", False),
        ("5_projects5/x.ipynb", False),
        ("problem3.ipynb", False),
    ],
)
def test_another_number_is_another_assignment(submitted: Path, name: str, is_meant: bool):
    put(submitted, name)
    notebooks = {"homework1": ["homework1"], "05_project4": ["a"], "ps1": ["problem1", "problem2"]}
    places = Places(submitted, notebooks)
    found = [one for one in notebooks if places.of("ada", one) is not None]
    assert len(found) == is_meant
    assert len(list(places.strays(["ada"]))) == (not is_meant)


def test_what_is_no_work_is_not_named(submitted: Path):
    put(submitted, ".ipynb_checkpoints/a.ipynb", "__MACOSX/a.ipynb", "pictures/a.png", "read.me")
    (submitted / "ada" / "empty").mkdir()
    assert list(Places(submitted, NOTEBOOKS).strays(["ada"])) == []


@pytest.mark.parametrize("inside", ["x/problem1.ipynb", "Users/ann/course/problem1.ipynb"])
def test_work_deep_in_a_misspelt_folder_is_taken_unless_some_lies_nearer(
    submitted: Path, inside: str
):
    places = put(submitted, f"PS1/{inside}")
    place = places.of("ada", "ps1")
    assert place is not None and place.folder.name == "PS1"
    assert list(places.strays(["ada"])) == []
    places = put(submitted, "ps1 (1)/problem1.ipynb")
    place = places.of("ada", "ps1")
    assert place is not None and place.folder.name == "ps1 (1)"
    assert list(places.strays(["ada"])) == ["ada/PS1 belongs to no assignment"]


def test_folders_without_end_take_no_time_and_may_hold_work(
    submitted: Path, monkeypatch: pytest.MonkeyPatch
):
    looked: list[object] = []
    scan = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: looked.append(path) or scan(path))
    monkeypatch.setattr("autograder.classroom.places.MOST_IN_ALL", 50)
    for number in range(40):
        for inner in range(5):
            (submitted / "ada" / "week" / f"{number}" / f"{inner}").mkdir(parents=True)
    assert list(put(submitted).strays(["ada"])) == ["ada/week belongs to no assignment"]
    assert len(looked) < 60


def test_a_notebook_in_nobodys_folder_is_named(submitted: Path):
    (submitted / "bob.ipynb").write_text("{}")
    (words,) = Places(submitted, NOTEBOOKS).strays([])
    assert "bob.ipynb lies in no student's folder" in words


@pytest.mark.skipif(os.name != "posix", reason="links are POSIX's")
def test_no_link_is_followed(submitted: Path):
    put(submitted, "03_attention/03_attention.ipynb")
    (submitted / "mallory").symlink_to(submitted / "ada")
    (submitted / "eve").mkdir()
    (submitted / "eve" / "03_Attention").symlink_to(submitted / "ada" / "03_attention")
    (submitted / "eve" / "03_attention.ipynb").symlink_to(submitted / "ada" / "03_attention")
    places = Places(submitted, NOTEBOOKS)
    place = places.of("mallory", "03_attention")
    assert place is not None
    assert "link" in place.reason
    assert places.of("eve", "03_attention") is None


@pytest.mark.skipif(os.name != "posix", reason="links are POSIX's")
def test_a_link_in_a_students_place_is_a_student_wherever_it_leads(submitted: Path):
    put(submitted, "03_attention/03_attention.ipynb")
    targets = {"broken": "nowhere", "loop": "loop", "long": "n" * 300, "file": "/etc/passwd"}
    for name, target in targets.items():
        (submitted / name).symlink_to(target)
    (submitted / "ada" / "ps1").symlink_to("n" * 300)
    assert students_in(submitted) == sorted(["ada", *targets])
    places = Places(submitted, NOTEBOOKS)
    for name in targets:
        place = places.of(name, "ps1")
        assert place is not None and "a link, which is not followed" in place.reason
    assert places.of("ada", "ps1") is not None
    assert list(places.strays(students_in(submitted))) == []


def close(monkeypatch: pytest.MonkeyPatch, folder: Path, *, entered: bool) -> None:
    """Deny a folder to the user who grades; root's tests cannot do it by the folder's rights."""
    for name in ("lstat", "scandir"):
        allowed = getattr(os, name)

        def denied(path: Path, allowed: Any = allowed, name: str = name) -> Any:
            inside = folder in Path(path).parents and not (entered and name == "lstat")
            if inside or (name == "scandir" and Path(path) == folder):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
            return allowed(path)

        monkeypatch.setattr(os, name, denied)


def test_a_folder_that_may_not_be_entered_is_no_folder_without_work(
    submitted: Path, monkeypatch: pytest.MonkeyPatch
):
    places = put(submitted, "03_attention/03_attention.ipynb")
    close(monkeypatch, submitted / "ada", entered=False)
    for assignment in NOTEBOOKS:
        place = places.of("ada", assignment)
        assert place is not None
        assert place.reason == "the folder cannot be read (Permission denied)"
    assert list(places.strays(["ada"])) == ["ada: the folder cannot be read (Permission denied)"]


def test_of_a_folder_that_cannot_be_listed_what_has_its_true_name_is_taken(
    submitted: Path, monkeypatch: pytest.MonkeyPatch
):
    places = put(submitted, "03_attention/03_attention.ipynb")
    close(monkeypatch, submitted / "ada", entered=True)
    place = places.of("ada", "03_attention")
    assert place is not None and not place.reason
    place = places.of("ada", "ps1")  # perhaps it lies there under another name
    assert place is not None and "cannot be read" in place.reason


def test_a_closed_folder_in_a_students_may_hold_work(
    submitted: Path, monkeypatch: pytest.MonkeyPatch
):
    places = put(submitted, "03_attention/03_attention.ipynb", "03_Attention/x.ipynb", "week/a")
    close(monkeypatch, submitted / "ada" / "03_attention", entered=False)
    place = places.of("ada", "03_attention")
    assert place is not None and place.folder.name == "03_attention"
    close(monkeypatch, submitted / "ada" / "week", entered=False)
    assert list(places.strays(["ada"])) == [
        "ada/03_Attention was not graded: 03_attention is there as well",
        "ada/week belongs to no assignment",
    ]


def test_what_is_no_students_folder_is_named_unless_a_system_put_it_there(submitted: Path):
    put(submitted, "03_attention/03_attention.ipynb")
    for name in ("essay.pdf", "bob", ".DS_Store", ".gitkeep", "Thumbs.db", ".mine.ipynb"):
        (submitted / name).write_text("{}")
    for name in (".eve/ps1", ".ipynb_checkpoints", ".empty", ".git/hooks"):
        (submitted / name).mkdir(parents=True)
    (submitted / ".eve" / "ps1" / "problem1.ipynb").write_text("{}")
    (submitted / ".ipynb_checkpoints" / "ps1.ipynb").write_text("{}")
    many = [f"s{number}" for number in range(600)]  # a large class does not hide what is there
    for name in many:
        (submitted / name).mkdir()
    assert students_in(submitted) == sorted(["ada", *many])
    assert list(Places(submitted, NOTEBOOKS).strays([])) == [
        ".eve is no student's folder: its name begins with a dot",
        ".mine.ipynb lies in no student's folder",
        "bob lies in no student's folder",
        "essay.pdf lies in no student's folder",
    ]


@pytest.mark.skipif(os.name != "posix", reason="Windows has other names")
@pytest.mark.parametrize(
    "name", ["03_attention\udcfc", "\x1b[2J", "a\nb", "x" * 250, "03_attention'"]
)
def test_any_name_that_a_disk_can_hold(submitted: Path, name: str):
    places = put(submitted, f"{name}/a.ipynb")
    place = places.of("ada", "03_attention")
    words = "".join([place.note if place else "", *places.strays(["ada"])])
    words.encode("utf-8")
    assert words.isprintable()
    assert words


def test_a_notebook_in_another_assignments_folder_is_named(submitted: Path):
    own = "03_attention/03_attention.ipynb"
    places = put(submitted, own, "03_attention/Problem1.ipynb", "03_attention/notes.ipynb")
    (words,) = places.strays(["ada"])
    assert (
        words == "ada/03_attention/Problem1.ipynb was not graded: it should lie in the folder ps1"
    )
    put(submitted, "ps1/problem1.ipynb")
    assert list(Places(submitted, NOTEBOOKS).strays(["ada"])) == []
