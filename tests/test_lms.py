"""What Canvas, Moodle and Blackboard call files is known, and two people never become one."""

from pathlib import Path

import pytest
from nbgrader.api import Gradebook
from nbgrader.apps.zipcollectapp import ZipCollectApp
from nbgrader.coursedir import CourseDirectory
from nbgrader.utils import parse_utc

from autograder.classroom import exports, file_names, unzip
from autograder.classroom.collector import SafeCollector
from tests.small_course import NAME
from tests.test_collector import BLACKBOARD, CANVAS
from tests.test_unzip import collecting_course
from tests.zipping import archive_of, collected, collected_as, extracted, zipped

OF_BLACKBOARD = "gradebook_2261-CS101.01_ps1_{}_attempt_2026-01-01-12-00-00"


@pytest.mark.parametrize(
    ("collector", "name", "student", "file", "time"),
    [
        (CANVAS, "adaminsanne_123_456_numbers.ipynb", "adaminsanne_123", "numbers", None),
        (CANVAS, "adaminsanne_LATE_123_456_numbers-2.ipynb", "adaminsanne_123", "numbers", None),
        (CANVAS, "adaminsanne_123_456_numbers (1).ipynb", "adaminsanne_123", "numbers", None),
        (CANVAS, "adaminsanne_123_456_my work.ipynb", "adaminsanne_123", "my work", None),
        (CANVAS, "liwei_78_91_part-2.ipynb", "liwei_78", "part-2", None),
        (CANVAS, "müllerjörg_LATE_5_6_x_7_8_numbers.ipynb", "müllerjörg_5", "x_7_8_numbers", None),
        (
            unzip.FromMoodle,
            "Anne Adamins_123_assignsubmission_file_/numbers.ipynb",
            "Anne Adamins",
            "numbers",
            None,
        ),
        (
            unzip.FromMoodle,
            "Jörg O'Müller-Lüdenscheidt_7_assignsubmission_file/inner/numbers.ipynb",
            "Jörg O'Müller-Lüdenscheidt",
            "inner/numbers",
            None,
        ),
        (
            unzip.FromMoodle,
            "Anne Adamins_123_assignsubmission_file_numbers.ipynb",
            "Anne Adamins",
            "numbers",
            None,
        ),
        (unzip.FromMoodle, "Anne Adamins_123_assignsubmission_onlinetext_/x.ipynb", "", "", None),
        (
            BLACKBOARD,
            f"{OF_BLACKBOARD.format('anne')}_numbers.ipynb",
            "anne",
            "numbers",
            "2026-01-01 12:00:00",
        ),
        (
            BLACKBOARD,
            "Home work 1_a.adamins@x.edu_attempt_2026-1-1-9-05-00_numbers.ipynb",
            "a.adamins@x.edu",
            "numbers",
            "2026-01-01 09:05:00",
        ),
        (
            BLACKBOARD,
            "ps1_eve_attempt_2026-01-02-12-00-00_ps1_bo_attempt_2025-01-01-12-00-00_numbers.ipynb",
            "eve",
            "ps1_bo_attempt_2025-01-01-12-00-00_numbers",
            "2026-01-02 12:00:00",
        ),
        (BLACKBOARD, f"{OF_BLACKBOARD.format('anne')}.txt", "", "", None),
    ],
)
def test_what_systems_call_files_is_known(
    collector: type[SafeCollector], name: str, student: str, file: str, time: str | None
):
    made = collector(valid_ext=[".ipynb", ".txt"])
    made._root = Path("/my_x")
    vars(made)["_released"] = {"numbers", "part-2"}
    found = made.collect(f"/my_x/{name}") or {"student_id": "", "file_id": ""}
    assert (found["student_id"], found["file_id"].removesuffix(".ipynb")) == (student, file)
    assert str(parse_utc(found["timestamp"]) if "timestamp" in found else None) == str(time)


@pytest.mark.parametrize(
    ("collector", "theirs", "mine"),
    [
        (unzip.FromCanvas, "zoe_1_2_{}", "eve_LATE_3_4_{}"),
        (
            unzip.FromMoodle,
            "Zoe Z_1_assignsubmission_file_/{}",
            "Eve E_3_assignsubmission_file_/{}",
        ),
        (
            unzip.FromBlackboard,
            "ps1_zoe_attempt_2026-01-02-00-00-00_{}",
            "ps1_eve_attempt_2026-01-03-00-00-00_{}",
        ),
    ],
)
@pytest.mark.parametrize("whole_class", [True, False])
def test_in_no_systems_archive_anybody_hands_in_for_somebody_else(
    tmp_path: Path,
    collector: type[SafeCollector],
    theirs: str,
    mine: str,
    whole_class: bool,
):
    forged = theirs.format("numbers.ipynb")
    files = {theirs.format("numbers.ipynb"): b"true", mine.format("numbers.ipynb"): b"mine"}
    files[mine.format("w.zip")] = archive_of(**{forged: b"forged", f"w/{forged}": b"forged"})
    folder = tmp_path / "archive"
    folder.mkdir()
    if whole_class:
        zipped(folder / "class.zip", **files)
    else:
        for name, content in files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(content)
    regexp = collector().named_regexp
    assert sorted(collected(folder, regexp, tmp_path).values()) == ["mine", "true"]


@pytest.mark.parametrize("evil", ["Bo B_5_assignsubmission_file_", "Bo B_5_assignsubmission_file"])
@pytest.mark.parametrize("others", [(), ("Bo B_5_assignsubmission_file_/numbers.ipynb",)])
def test_who_calls_himself_as_moodle_calls_anothers_folder_hands_in_nothing_for_her(
    tmp_path: Path, evil: str, others: tuple[str, ...], caplog: pytest.LogCaptureFixture
):
    folder = tmp_path / "archive"
    folder.mkdir()
    theirs = f"{evil}_77_assignsubmission_file_/"
    files = dict.fromkeys((*others, "Cy_9_assignsubmission_file_/numbers.ipynb"), b"true")
    again = f"{theirs}Zoe_8_assignsubmission_file_/numbers.ipynb"
    packed = archive_of(**{"numbers.ipynb": b"forged"})
    files |= {f"{theirs}{name}": b"forged" for name in ("numbers.ipynb", "other.ipynb")}
    zipped(folder / "class.zip", **files, **{again: b"forged", f"{theirs}w.zip": packed})
    collector = unzip.FromMoodle()
    extracted(folder, collector, tmp_path)
    paths = [path for path in (tmp_path / "extracted").rglob("*") if path.is_file()]
    said = {path: collector.collect(str(path)) for path in paths}
    assert {path.read_bytes() for path, found in said.items() if found} == {b"true"}
    assert sum(found is not None for found in said.values()) == 1 + len(others)
    assert any("it can be read as two people's" in words for words in caplog.messages)


@pytest.mark.parametrize(
    ("collector", "names"),
    [
        (unzip.FromCanvas, ["liwei_1_7_a.ipynb", "liwei_LATE_2_8_a.ipynb"]),
        (unzip.FromMoodle, [f"Li Wei_{n}_assignsubmission_file_/a.ipynb" for n in "12"]),
        (unzip.FromMoodle, [f"Li Wei_{n}_assignsubmission_file_/{n}.ipynb" for n in "12"]),
        (
            unzip.FromBlackboard,
            [f"ps1_{n}_wei_attempt_2026-01-01-12-00-00_a.ipynb" for n in ("li", "su")],
        ),
    ],
)
def test_two_people_of_one_name_never_become_one(
    collector: type[SafeCollector], names: list[str], caplog: pytest.LogCaptureFixture
):
    made = collector()
    made._root = Path("/x")
    made._decide([Path("/x") / name for name in names])
    students = [one["student_id"] for one in made._plan.values() if one]
    assert len(set(students)) == len(students) == 2 or not students
    assert students or "two people are called" in caplog.text


@pytest.mark.parametrize(
    "called", ["Anne Adamins", ".Anne Adamins", '"Anne" Adamins', " Anne Adamins"]
)
@pytest.mark.parametrize("number", [100, 900])
def test_who_takes_the_name_of_another_hands_in_nothing_for_her(
    tmp_path: Path, called: str, number: int
):
    names = [f"{called}_{number}_assignsubmission_file_/ps1.ipynb"]
    names += [f"{name}_assignsubmission_file_/ps1.ipynb" for name in ("Anne Adamins_500", "Bo_3")]
    made = unzip.FromMoodle()
    found = collected_as(made, tmp_path, *names)
    assert set(found) == ({"Bo"} if called == "Anne Adamins" else {"Anne Adamins", "Bo"})
    assert not made.collect(str(tmp_path / names[0]))


@pytest.mark.parametrize(
    "called", ["Participant", "Group A-Participant", "Teilnehmerin", "Osaleja"]
)
def test_where_moodle_hides_names_each_is_one_of_his_own(tmp_path: Path, called: str):
    names = [f"{called}_{number}_assignsubmission_file_/ps1.ipynb" for number in (27, 28, 29)]
    found = collected_as(unzip.FromMoodle(), tmp_path, *names)
    assert found == {f"{called}_{number}": ["ps1.ipynb"] for number in (27, 28, 29)}


@pytest.mark.parametrize(
    "hidden", [("aB3xz", "Qr7tP"), ("55555", "1a2b3"), ("LATE_aB3xz", "x1y2z")]
)
def test_where_canvas_hides_names_each_is_one_of_his_own(tmp_path: Path, hidden: tuple[str, str]):
    names = [f"anon_{one}_80{number}_2_ps1.ipynb" for number, one in enumerate(hidden)]
    found = collected_as(unzip.FromCanvas(), tmp_path, *names)
    assert set(found) == {f"anon_{one.removeprefix('LATE_')}" for one in hidden}


@pytest.mark.parametrize(
    ("collector", "one", "other", "who"),
    [
        (unzip.FromMoodle, "Ann_1_assignsubmission_file_/{}", "Bo_2_assignsubmission_file_/{}", 0),
        (unzip.FromCanvas, "ann_1_7_{}", "bo_2_9_{}", 1),
        (
            unzip.FromBlackboard,
            "x_ann_attempt_2026-01-01-12-00-00_{}",
            "x_bo_attempt_2026-01-01-12-00-00_{}",
            2,
        ),
    ],
)
def test_a_copy_keeps_its_number_where_the_plain_name_is_there_too(
    tmp_path: Path, collector: type[SafeCollector], one: str, other: str, who: int
):
    ann, bo = [("Ann", "Bo"), ("ann_1", "bo_2"), ("ann", "bo")][who]
    names = [one.format("ps1.ipynb"), one.format("ps1 (1).ipynb"), other.format("ps1 (1).ipynb")]
    found = {
        who: sorted(files) for who, files in collected_as(collector(), tmp_path, *names).items()
    }
    assert found == {ann: ["ps1 (1).ipynb", "ps1.ipynb"], bo: ["ps1.ipynb"]}


def test_of_two_canvas_downloads_the_later_file_counts(tmp_path: Path):
    names = ["a/ada_1_10_ps1.ipynb", "b/ada_1_12_ps1-1.ipynb", "a/bo_2_11_ps1.ipynb"]
    names += ["b/bo_2_11_ps1.ipynb", "a/cy_3_30_ps1.ipynb", "b/cy_3_9_ps1.ipynb"]
    made = unzip.FromCanvas()
    found = collected_as(made, tmp_path, *names)
    assert found == {who: ["ps1.ipynb"] for who in ("ada_1", "bo_2", "cy_3")}
    taken = [name for name in names if made.collect(str(tmp_path / name))]
    assert taken == [names[1], names[2], names[4]]


LISTED = exports.Person("bob", lms_id="12")


@pytest.mark.parametrize(
    ("name", "roster", "student", "file"),
    [
        ("bob_12_555_777_ps1.ipynb", {}, "", ""),  # or bob_12's 777_ps1.ipynb
        ("bob_12_555_777_ps1-2.ipynb", {}, "", ""),
        ("bob_12_LATE_555_777_ps1.ipynb", {}, "bob_12_555", "ps1.ipynb"),
        ("bob_12_555_777_w.ipynb", {}, "", ""),
        ("bob_12_555_777_w.ipynb", {"bob": LISTED}, "bob_12", "777_w.ipynb"),
        ("bob_12_555_777_ps1.ipynb", {"bob": LISTED}, "bob_12", "777_ps1.ipynb"),
        ("bob_12_555_02_ps2.ipynb", {}, "bob_12", "02_ps2.ipynb"),
        ("bob_12_555_777_w.unpacked/ps1.ipynb", {}, "", ""),
        ("bob_12_555_777_ps1.unpacked/x.ipynb", {}, "", ""),
        ("max_power_13_802_ps1.ipynb", {}, "max_power_13", "ps1.ipynb"),
        ("anon_smith_12_801_ps1.ipynb", {}, "anon_smith_12", "ps1.ipynb"),
    ],
)
def test_a_canvas_name_that_ends_in_a_number_is_nobody_elses(
    tmp_path: Path,
    name: str,
    roster: dict[str, exports.Person],
    student: str,
    file: str,
    caplog: pytest.LogCaptureFixture,
):
    made = unzip.FromCanvas()
    vars(made)["_roster"] = roster
    found = collected_as(made, tmp_path, name, "eve_1_2_x.ipynb", released=("ps1", "02_ps2"))
    assert found.pop("eve_1") == ["x.ipynb"]
    assert found == ({student: [file]} if student else {})
    assert bool(student) != ("which number is the student's?" in caplog.text)


def test_the_archive_of_one_whose_name_ends_in_a_number_is_his_share():
    made = unzip.FromCanvas()
    vars(made)["_released"] = {"ps1"}
    names = ["bob_12_801_w.zip", "bob_12_555_777_ps1.zip", "bob_12_555_777_w.zip", "class.zip"]
    said = [made.whose(Path("/x") / name, is_archive=True) for name in names]
    assert said == ["bob_12/", "", "", ""]


AT = "attempt_2026-01-01-12-00-00"


@pytest.mark.parametrize(
    ("whole", "known", "students"),
    [
        (["ps1_a_eve", "ps1_eve"], (), ["a_eve", "eve"]),
        (["hw_1_a_eve", "hw_1_bo"], (), ["a_eve", "bo"]),
        (["ps1_a_eve", "ps1_a_bo"], ("a_eve", "a_bo"), ["a_eve", "a_bo"]),
        (["ps1_a_eve", "ps1_a_bo"], ("eve",), ["eve", "bo"]),
        (["ps1_eve"], (), ["eve"]),
        (["ps1_a_eve"], ("a_eve",), ["a_eve"]),
        (["ps1_a_eve"], (), []),
        (["eve", "bo"], (), []),
        (["ps1_a_eve", "hw2_bo"], (), ["bo"]),
    ],
)
def test_of_blackboards_names_the_column_is_what_all_have(
    tmp_path: Path, whole: list[str], known: tuple[str, ...], students: list[str]
):
    made = unzip.FromBlackboard()
    vars(made)["_students"] = set(known)
    found = collected_as(made, tmp_path, *(f"{one}_{AT}_ps1.ipynb" for one in whole))
    assert sorted(found) == sorted(students)


@pytest.mark.parametrize(
    "name", ["PS1.IPYNB", "ps1.ipynb.txt", "ps1.ipynb.json", "ps1 (1).ipynb.txt"]
)
def test_notebooks_with_the_endings_of_phones_are_collected(tmp_path: Path, name: str):
    found = collected_as(unzip.FromMoodle(), tmp_path, f"A_1_assignsubmission_file_/{name}")
    assert found == {"A": [name.replace(" (1)", "")]}
    assert file_names.destination(found["A"][0], name) == Path(name.replace(" (1)", ""))


def test_signs_that_no_folder_should_have_are_left_out_of_a_name(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    names = [".net guy_1", 'Ann "A" B_2', 'Ann "A" C_2', "Ann A C_3", ".._4", "O'Neil_5"]
    names = [f"{name}_assignsubmission_file_/ps1.ipynb" for name in names]
    found = collected_as(unzip.FromMoodle(), tmp_path, *names)
    assert set(found) == {"net guy", "Ann A B", "Ann A C", "O'Neil"}
    assert found["Ann A B"] == ["ps1.ipynb"]
    assert "two people are called 'Ann A C'" in caplog.text


def test_the_roster_and_the_gradebook_say_who_is_known(tmp_path: Path):
    course = collecting_course(tmp_path / "course")
    (course.root / "roster.csv").write_text("student,lms_id\nann,7\n")
    (course.root / "submitted" / "cy_d").mkdir(parents=True)
    with Gradebook(f"sqlite:///{course.root / 'gradebook.db'}") as book:
        book.add_student("a_eve")
    app = ZipCollectApp()
    app.coursedir = CourseDirectory(root=str(course.root), assignment_id=NAME)
    app.coursedir.db_url = f"sqlite:///{course.root / 'gradebook.db'}"
    made = unzip.FromCanvas(parent=app)
    assert made._students == {"ann", "a_eve", "cy_d"} and made._numbers == {"7"}


def test_the_gradebook_is_found_from_the_courses_root_and_one_that_is_none_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    course = collecting_course(tmp_path / "course")
    monkeypatch.chdir(tmp_path)
    app = ZipCollectApp()
    app.coursedir = CourseDirectory(root=str(course.root), assignment_id=NAME)
    app.coursedir.db_url = "sqlite:///grades.db?timeout=60"
    assert not unzip.FromCanvas(parent=app)._students
    book = course.root / "grades.db"
    assert not book.exists()
    with Gradebook(f"sqlite:///{book}") as made:
        made.add_student("a_eve")
    assert unzip.FromCanvas(parent=app)._students == {"a_eve"}
    assert "gradebook" not in capsys.readouterr().err
    book.write_bytes(b"no database at all " * 100)
    assert not unzip.FromCanvas(parent=app)._students
    assert f"{book} is no gradebook" in capsys.readouterr().err


def test_what_a_mac_puts_into_a_zip_is_nobodys_work(tmp_path: Path):
    moodle, canvas = "Ann_1_assignsubmission_file_ps1.ipynb", "ann_1_2_ps1.ipynb"
    blind = "anon_aB3xz_5_ps1.ipynb"
    for collector, name, student in (
        (unzip.FromMoodle(), moodle, "Ann"),
        (unzip.FromCanvas(), canvas, "ann_1"),
        (unzip.FromCanvas(), blind, "anon_aB3xz"),
    ):
        out = tmp_path / student
        names = name, f"._{name}", f"__MACOSX/._{name}", ".DS_Store"
        assert collected_as(collector, out, *names) == {student: ["ps1.ipynb"]}
