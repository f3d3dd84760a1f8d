"""Nobody hands in for somebody else, whatever files, folders and archives are called."""

import os
from functools import lru_cache
from pathlib import Path

import pytest
from nbgrader.utils import parse_utc
from traitlets import TraitError

from autograder.classroom import archives, file_names, lms, unzip
from autograder.classroom.collector import SafeCollector
from tests.zipping import LATER, MANUAL, TIME, archive_of, collected, zipped


@pytest.mark.skipif(os.name != "posix", reason="Windows has no such names")
def test_a_time_with_colons_in_a_name_is_no_reason_to_leave_it_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = tmp_path / "archive"
    folder.mkdir()
    names = {
        "cy": "ps1_cy_attempt_Nov 20 2026 11:59PM_numbers.ipynb",
        "fay": "ps1_fay_attempt_2026-11-20T23:59:59+0100_numbers.ipynb",
        "gil": "12:30/ps1_gil_attempt_2026-11-20 23:59_numbers.ipynb",
    }
    zipped(folder / "class.zip", **{name: who.encode() for who, name in names.items()})
    regexp = r".*ps1_(?P<student_id>\w+)_attempt_(?P<timestamp>[^_]+)_(?P<file_id>\w+)"
    assert collected(folder, regexp, tmp_path) == {who: who for who in names}
    with monkeypatch.context() as patch:
        patch.setattr(os, "name", "nt")
        assert not archives.is_a_name("b:c") and archives.is_a_name("b")


@pytest.mark.parametrize(
    ("student", "notebook"),
    [
        ("..", "numbers"),
        ("a/b", "numbers"),
        ("", "numbers"),
        ("ada", "../x"),
        ("ada", "/etc/x"),
        ("<b>", "x"),
    ],
)
def test_a_name_that_leads_elsewhere_is_not_collected(student: str, notebook: str):
    assert not file_names.stays_inside(student, notebook)


def test_of_doubled_files_the_first_is_collected_unless_times_say_more():
    collector = SafeCollector(
        named_regexp=r"(?P<student_id>[a-z]+)_(?P<file_id>[a-z]+)(_(?P<timestamp>[^_.]*))?"
    )
    said = [
        collector.collect(f"{name}.ipynb") is not None
        for name in (
            "ada_nb",
            "ada_nb1",
            "bo_nb_2026-01-01",
            "bo_nb_2026-01-02",
            "cy_nb_2026-13-77",
        )
    ]
    assert said == [True, False, True, True, True]
    assert "timestamp" not in (collector.collect("dan_nb_no time.ipynb") or {"timestamp": 1})


@pytest.mark.parametrize(
    ("names", "taken"),
    [
        (["ps1.ipynb", "ps1.v2.ipynb", "ps2.ipynb"], [True, False, True]),
        (["data.csv", "data.csv/x.csv", "other/x.csv"], [True, False, True]),
        (["data.csv/a/x.csv", "data.csv", "data.csv/a.csv"], [True, False, True]),
        (["data.csv/a.csv/x.csv", "data.csv/a.csv"], [True, False]),
    ],
)
def test_of_files_that_would_lie_in_one_place_the_first_is_collected(
    names: list[str], taken: list[bool]
):
    collector = SafeCollector(
        named_regexp=r".*/(?P<student_id>[a-z]+)_\d_(?P<file_id>.*)\.\w+$",
        valid_ext=[".ipynb", ".csv"],
    )
    collector._root = Path("/x")
    said = [collector.collect(f"/x/eve_1_{name}") is not None for name in names]
    assert said == taken


@pytest.mark.parametrize("whole_class", [True, False])
@pytest.mark.parametrize(
    "name", [f"ps1_mallory_attempt_{TIME}_work.zip", "work.zip", f"ps1_victim_attempt_{TIME}.zip"]
)
def test_an_archive_hands_in_nothing_for_somebody_else(
    tmp_path: Path, name: str, whole_class: bool
):
    theirs = f"ps1_victim_attempt_{TIME}_ps1.ipynb"
    members = {f"ps1_yvictim_attempt_{LATER}_ps1.ipynb": b"forged"}
    members[f"ps1_victim_attempt_{LATER}_ps1.ipynb"] = b"forged"
    members[f"w.unpacked/ps1_victim_attempt_{LATER}_ps1.ipynb"] = b"forged"
    members["w.zip"] = archive_of(**members)
    folder = tmp_path / "archive"
    folder.mkdir()
    given = {theirs: b"true", name: archive_of(**members)}
    if whole_class:
        zipped(folder / "class.zip", **given)
    elif "mallory" in name:  # each file on its own: its name is the system's
        for one, content in given.items():
            (folder / one).write_bytes(content)
    else:
        return
    assert collected(folder, MANUAL, tmp_path) == {"victim": "true"}


@pytest.mark.parametrize("way", ["\\\\..\\\\", "/../", "/a/../../", "\\\\..\\\\..\\\\"])
def test_a_name_that_goes_up_again_hands_in_nothing_for_somebody_else(tmp_path: Path, way: str):
    folder = tmp_path / "archive"
    folder.mkdir()
    forged = f"ps1_mallory_attempt_{LATER}_x{way}ps1_victim_attempt_{LATER}_ps1.ipynb"
    true = f"ps1_victim_attempt_{TIME}_ps1.ipynb"
    other = f"../ps1_ben_attempt_{TIME}_ps1.ipynb"
    zipped(folder / "class.zip", **{true: b"true", forged: b"forged", other: b"ben"})
    assert collected(folder, MANUAL, tmp_path) == {"victim": "true", "ben": "ben"}


def test_a_students_folder_decides_for_what_is_in_archives_in_it(tmp_path: Path):
    folder = tmp_path / "archive"
    folder.mkdir()
    mine = archive_of(**{"ps1.ipynb": b"mine", "victim/ps1.ipynb": b"forged"})
    zipped(folder / "class.zip", **{"victim/ps1.ipynb": b"true", "mallory/x.zip": mine})
    regexp = r".*/(?P<student_id>[a-z]+)/(?P<file_id>\w+)\.ipynb"
    assert collected(folder, regexp, tmp_path)["victim"] == "true"


MOODLE = r".*/(?P<student_id>[^/]+)_\d+_assignsubmission_file_/(?P<file_id>.*)"
BY_FOLDER = r".+/(?P<student_id>[^/]+)/(?P<file_id>[^/]+)\.ipynb"
SAKAI = r".*/[^/]+\((?P<student_id>\w+)\)/Attachments\(s\)/(?P<file_id>.+)"
FOLDERS = {
    MOODLE: "{}_1_assignsubmission_file_",
    lms.MOODLE: "{}_1_assignsubmission_file_",
    BY_FOLDER: "{}",
    SAKAI: "Name({})/Attachments(s)",
    r".*/(?P<student_id>[a-z]+)/(?P<file_id>work/.*)": "{}/work",
}


@pytest.mark.parametrize("regexp", FOLDERS)
@pytest.mark.parametrize("way", ["folder", "deep", "archive", "both"])
@pytest.mark.parametrize("given", ["class", "in a folder", "loose"])
@pytest.mark.parametrize("victim", [True, False])
def test_a_folder_in_a_students_folder_hands_in_nothing_for_somebody_else(
    tmp_path: Path, regexp: str, way: str, given: str, victim: bool
):
    aaron, zoe = (FOLDERS[regexp].format(name) for name in ("aaron", "zoe"))
    forged = {f"{zoe}/ps1.ipynb": b"forged"}
    inside = {"folder": forged, "deep": {f"my/own/{name}": b"forged" for name in forged}}
    inside |= {"archive": {"x.zip": archive_of(**forged)}}
    inside |= {"both": {f"{zoe}/x.zip": archive_of(**forged)}}
    files = {f"{aaron}/{name}": content for name, content in inside[way].items()}
    files |= {f"{aaron}/ps2.ipynb": b"aaron's"}
    files |= {f"{zoe}/ps1.ipynb": b"true"} if victim else {}
    folder = tmp_path / "archive"
    folder.mkdir()
    if given == "loose":
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    else:
        above = "class/" if given == "in a folder" else ""
        zipped(folder / "class.zip", **{above + name: content for name, content in files.items()})
    found = collected(folder, regexp, tmp_path)
    assert found == {"aaron": "aaron's"} | ({"zoe": "true"} if victim else {})


def test_a_folders_name_says_a_student_where_there_is_more_than_one_archive(tmp_path: Path):
    folder = tmp_path / "archive"
    folder.mkdir()
    zipped(folder / "aaron.zip", **{"ps1.ipynb": b"aaron's", "zoe/ps1.ipynb": b"forged"})
    zipped(folder / "zoe.zip", **{"ps1.ipynb": b"true"})
    assert collected(folder, BY_FOLDER, tmp_path) == {"aaron": "aaron's", "zoe": "true"}


@pytest.mark.parametrize("other", ["ada.tgz", "ada"])
def test_what_another_thing_of_the_name_lies_beside_is_not_a_third_ones(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, other: str
):
    folder = tmp_path / "archive"
    folder.mkdir()
    zipped(folder / "ada.zip", **{"ps1.ipynb": b"ada's"})
    zipped(folder / "bo.zip", **{"ps1.ipynb": b"bo's"})
    zipped(folder / other, **{"ps1.ipynb": b"ada's"})
    found = collected(folder, BY_FOLDER, tmp_path)
    assert found == {"bo": "bo's"} | ({"ada": "ada's"} if "." in other else {})
    assert "as ada-2 it would be another student's; collect it by hand" in caplog.text


def test_long_names_with_many_words_cost_little(tmp_path: Path):
    folder = tmp_path / "archive" / "eve_9_assignsubmission_file_"
    folder.mkdir(parents=True)
    long = {f"{'/'.join(['a_' * 95] * 17)}/{number}.ipynb": b"" for number in range(20)}
    deep = {f"{'/'.join(['a_' * 8] * 17)}/{'_b' * 30}{number}.ipynb": b"" for number in range(99)}
    zipped(folder / "ps1.zip", **long, **deep, x=os.urandom(100_000))
    out = tmp_path / "extracted"
    unzip.SafeExtractor().extract(str(folder.parent), str(out))
    found = list(out.rglob("*.ipynb"))
    assert len(found) == 99
    collector, asked = SafeCollector(named_regexp=MOODLE), []
    collector._root = out
    true = collector._asked
    collector._said = lru_cache(10_000)(lambda path: (asked.append(path), true(path))[1])
    assert all(collector.collect(str(path)) for path in found)
    assert len(asked) < 5 * len(found)


def test_a_hand_in_of_more_files_than_anybody_needs_is_not_looked_at_to_the_end(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("autograder.classroom.collector.MAX_FILES", 3)
    collector = SafeCollector(named_regexp=MOODLE)
    collector._root = Path("/x")
    names = [
        f"{who}_1_assignsubmission_file_/w/{n}.ipynb" for who in ("eve", "zoe") for n in "1234"
    ]
    said = [collector.collect(f"/x/{name}") is not None for name in names]
    assert said == [True, True, True, False] * 2


def test_a_name_that_says_two_students_is_left_out():
    collector = SafeCollector(named_regexp=MANUAL)
    name = f"/x/ps1_mallory_attempt_{TIME}_x_yvictim_attempt_{LATER}_ps1.ipynb"
    assert collector.collect(name) is None
    for fair in ("ps1_ada", "my_ps1_ada", "ps1_mallory_ada"):
        found = collector.collect(f"/my_x/{fair}_attempt_{TIME}_my_own_work.ipynb")
        assert found and found["student_id"] == "ada"


@pytest.mark.parametrize("work", ["numbers.ipynb", "work/numbers.ipynb"])
@pytest.mark.parametrize("ending", ["", ".unpacked"])
def test_the_system_and_not_the_student_says_when_it_was(work: str, ending: str):
    collector = SafeCollector(named_regexp=MANUAL)
    collector._root = Path("/my_x")
    mine = f"x_eve_attempt_{TIME}_{work}"  # she may call her file as she likes
    if ending:
        names = [f"ps1_eve_attempt_{LATER}_w.unpacked/ps1_eve_attempt_{TIME}_{work}"]
        names += [f"ps1_eve_attempt_{LATER}_x_eve_attempt_{TIME}_w.unpacked/ps1_{mine}"]
        names += [f"ps1_eve_attempt_{LATER}_x_bob_attempt_{TIME}_w.unpacked/ps1_{mine}"]
    else:
        names = [f"ps1_eve_attempt_{LATER}_{mine}", f"ps1_eve_attempt_{LATER}_w/{mine}"]
    for name in names:
        found = collector.collect(f"/my_x/{name}")
        assert found and (found["student_id"], found["timestamp"]) == (
            "eve",
            "2027-01-01 00:00:00 UTC",
        ), name


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("2016-01-30-15-30-10", "2016-01-30 15:30:10"),  # the documented example
        ("2026-02-28-23-59", "2026-02-28 23:59:00"),
        ("2016-01-30", "2016-01-30 00:00:00"),
        ("2016-01-30-25-30-10", None),
        ("2016-13-30-15-30-10", None),
    ],
)
def test_a_time_in_a_files_name_is_read_as_blackboard_means_it(text: str, meant: str | None):
    collector = SafeCollector(named_regexp=MANUAL)
    found = collector.collect(f"/x/ps1_ada_attempt_{text}_ps1.ipynb")
    assert found
    time = found.get("timestamp")
    assert (time and str(parse_utc(time))) == meant


def test_an_archives_name_hands_in_nothing_for_somebody_else():
    collector = SafeCollector(named_regexp=MANUAL)
    collector._root = Path("/my_x")
    name = f"ps1_mallory_attempt_{TIME}_x_victim_attempt_{LATER}_w.unpacked"
    assert collector.collect(f"/my_x/{name}/ps1_victim_attempt_{LATER}_ps1.ipynb") is None


@pytest.mark.parametrize("name", ["timestamp.txt", "Timestamp.txt", "timestamp.x.txt"])
def test_no_student_hands_in_a_time(name: str):
    collector = SafeCollector(named_regexp=MANUAL + r".*", valid_ext=[".ipynb", ".txt"])
    assert collector.collect(f"/x/ps1_eve_attempt_{TIME}_{name}") is None
    assert collector.collect(f"/x/ps1_eve_attempt_{TIME}_notes.txt") is not None


@pytest.mark.parametrize("folder", ["timestamp.txt", "TimeStamp.txt"])
def test_no_folder_takes_the_place_of_the_time(folder: str):
    collector = SafeCollector(named_regexp=MANUAL.replace(r"id>\w+)", "id>.*)"))
    assert collector.collect(f"/x/ps1_eve_attempt_{TIME}_{folder}/y.ipynb") is None
    assert collector.collect(f"/x/ps1_eve_attempt_{TIME}_notes/{folder}/y.ipynb") is not None


@pytest.mark.parametrize(
    ("regexp", "name"),
    [
        (r".*/(?P<file_id>\w+)_(?P<student_id>[a-z]+)\.ipynb", "my_ps1_ada.ipynb"),
        (r".*/(?P<student_id>\w+)/(?P<file_id>\w+)\.ipynb", "ada/ps1.ipynb"),
        (r".*/(?P<student_id>\w+)_(?P<file_id>ps1)", "class/ada/ada_ps1.ipynb"),
    ],
)
def test_fair_names_are_collected_whatever_the_system_calls_files(regexp: str, name: str):
    collector = SafeCollector(named_regexp=regexp)
    collector._root = Path("/my_x")
    found = collector.collect(f"/my_x/{name}")
    assert found and found["student_id"] == "ada"


CANVAS, BLACKBOARD = unzip.FromCanvas, unzip.FromBlackboard


@pytest.mark.parametrize(
    ("zone", "text", "meant"),
    [
        ("Europe/Berlin", "2026-07-01-12-00-00", "2026-07-01 10:00:00"),
        ("Europe/Berlin", "2026-01-01-12-00-00", "2026-01-01 11:00:00"),
        ("America/New_York", "2026-01-01-20-00-00", "2026-01-02 01:00:00"),
        ("UTC", "2026-01-01-12-00-00", "2026-01-01 12:00:00"),
        ("Europe/Berlin", "2026-07-01 12:00:00 UTC", "2026-07-01 12:00:00"),
        ("Europe/Berlin", "2026-07-01T12:00:00+0200", "2026-07-01 10:00:00"),
        ("Europe/Berlin", "2026-07-01T12:00:00Z", "2026-07-01 12:00:00"),
        ("Europe/Berlin", "2026-07-01 12:00 PM", "2026-07-01 10:00:00"),
        ("UTC", "2026-03-01 12:30:00 +0100", "2026-03-01 11:30:00"),
        ("Asia/Tokyo", "2026-03-01 12:30:00 -03:30", "2026-03-01 16:00:00"),
        ("Europe/Berlin", "2026-03-01 12:30:00 America/New_York", "2026-03-01 17:30:00"),
        ("Europe/Berlin", "2026-07-01 12:00 CEST", "2026-07-01 10:00:00"),
        ("America/Los_Angeles", "2026-03-01 12:30 PST", "2026-03-01 20:30:00"),
        ("Europe/Berlin", "2026-03-01 12:30:00 GMT", "2026-03-01 12:30:00"),
        ("Europe/Berlin", "30-01-2026", "2026-01-29 23:00:00"),
        ("Europe/Berlin", "2026-01-01 12:00 UTC+3", "2026-01-01 09:00:00"),
        ("Europe/Berlin", "2026-01-01 12:00 GMT-5", "2026-01-01 17:00:00"),
        ("Europe/Berlin", "2026-01-01 12:00 UTC-03:30", "2026-01-01 15:30:00"),
        ("Europe/Berlin", "2026-01-01 12:00 EST", "2026-01-01 17:00:00"),
        ("Europe/Berlin", "2026-01-01 01:30 PM EST", "2026-01-01 18:30:00"),
        ("Asia/Kolkata", "2026-01-01 12:00 IST", "2026-01-01 06:30:00"),
        ("UTC", "20260101T120000Z", "2026-01-01 12:00:00"),
        ("UTC", "Jan 30 2026 12:00 CET", "2026-01-30 11:00:00"),
    ],
)
def test_a_time_in_a_name_is_of_the_systems_time_zone(zone: str, text: str, meant: str):
    assert file_names.time_in_utc(text, zone) == f"{meant} UTC"
    assert str(parse_utc(file_names.time_in_utc(text, zone))) == meant


@pytest.mark.parametrize(
    "text",
    [
        "2026-03-01 12:30 PST",
        "2026-03-01 12:30:00 BST",
        "2026-03-01 12:30 IST",
        "2026-03-01 12:30 CEST",
        "2026-03-01 12:30 Mars/Base",
        "12:30 EST Mar 1 2026",
        "2026-03-01 1230 EST",
        "12:30",
    ],
)
def test_a_time_of_an_unknown_zone_or_day_is_none_and_said(
    text: str, caplog: pytest.LogCaptureFixture
):
    assert file_names.time_in_utc(text, "Europe/Berlin") == ""
    made = SafeCollector(
        named_regexp=r".*/(?P<student_id>\w+?)_(?P<timestamp>[^_]*)_(?P<file_id>.+)"
    )
    found = made.collect(f"/x/ada_{text.replace('/', '-')}_ps1.ipynb")
    assert found and "timestamp" not in found and "not known whether it is late" in caplog.text


def test_a_time_zone_that_is_none_is_named():
    with pytest.raises(TraitError, match="no time zone 'Berlin'"):
        SafeCollector(time_zone="Berlin")


def test_without_a_regular_expression_it_says_which_there_are(caplog: pytest.LogCaptureFixture):
    SafeCollector()
    assert "--collector=autograder.classroom.unzip.FromCanvas" in caplog.text


def test_a_number_without_end_in_a_name_is_no_time():
    assert file_names.time_in_utc("9" * 200 + "910h", "UTC") == ""
