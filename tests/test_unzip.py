"""Archives are unpacked within bounds; what is bad in one never keeps anybody else's work back."""

import errno
import gzip
import io
import os
import random
import shutil
import stat
import struct
import tarfile
import zipfile
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from nbgrader.api import Gradebook
from nbgrader.apps.zipcollectapp import ZipCollectApp
from nbgrader.coursedir import CourseDirectory
from nbgrader.utils import parse_utc
from traitlets import TraitError
from traitlets.config import Configurable

from autograder.classroom import exports, unzip
from autograder.classroom.unzip import SafeCollector, safe_unzip
from autograder.common.course import Course, CourseError
from tests.sandbox.shared import secretive
from tests.small_course import NAME, RIGHT, hand_in, make_course, nbgrader

COLLECT = r"""
c.ZipCollectApp.extractor_plugin = "autograder.classroom.unzip.SafeExtractor"
c.ZipCollectApp.collector_plugin = "autograder.classroom.unzip.SafeCollector"
c.FileNameCollectorPlugin.named_regexp = r".*/(?P<student_id>[^/_]+)_(?P<file_id>numbers)[^/]*$"
"""
MANUAL = r".*_(?P<student_id>\w+)_attempt_(?P<timestamp>[0-9\-]+)_(?P<file_id>\w+)"  # nbgrader's
TIME, LATER = "2026-01-02-00-00-00", "2027-01-01-00-00-00"


def zipped(path: Path, **members: bytes) -> Path:
    """A zip with these members."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return path


def test_a_zip_is_unpacked(tmp_path: Path):
    archive = zipped(tmp_path / "a.zip", **{"me/week/a.ipynb": b"{}", "b.txt": b"b"})
    assert safe_unzip(archive, tmp_path / "out").left == []
    assert (tmp_path / "out/me/week/a.ipynb").read_bytes() == b"{}"
    with pytest.raises(CourseError, match="exists"):
        safe_unzip(archive, tmp_path / "out")


def test_of_names_that_lead_out_the_last_parts_count_and_links_stay_in_the_zip(tmp_path: Path):
    names = ["../up", "/root", "a/../../b", "C:/x", "..\\win", "ok.txt", "n/" * 30 + "x"]
    archive = zipped(tmp_path / "a.zip", **dict.fromkeys(names, b"x"))
    with zipfile.ZipFile(archive, "a") as file:
        link = zipfile.ZipInfo("link")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        file.writestr(link, "/etc/passwd")
    left = safe_unzip(archive, tmp_path / "out").left
    assert len(left) == 2 and "link" in left
    found = {path.name for path in (tmp_path / "out").iterdir()}
    assert found == {"up", "root", "b", "x", "win", "ok.txt"}
    assert {path.name for path in tmp_path.iterdir()} == {"a.zip", "out"}


def test_whole_paths_keep_the_folders_that_they_do_not_share(tmp_path: Path):
    home = "C:/Users/fay/uni/"
    names = [f"{home}ps1/ps1.ipynb", f"{home}data/x.csv", f"{home}data/../../x.csv", "own/y.csv"]
    archive = zipped(tmp_path / "a.zip", **dict.fromkeys(names, b"x"))
    assert safe_unzip(archive, tmp_path / "out").left == []
    found = {str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*.*")}
    assert found >= {"own/y.csv"} and len(found) == 4
    del names[2]
    archive = zipped(tmp_path / "b.zip", **dict.fromkeys(names, b"x"))
    assert safe_unzip(archive, tmp_path / "b").left == []
    found = {str(path.relative_to(tmp_path / "b")) for path in (tmp_path / "b").rglob("*.*")}
    assert found == {"ps1/ps1.ipynb", "data/x.csv", "own/y.csv"}


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
        assert not unzip._is_a_name("b:c") and unzip._is_a_name("b")


def test_no_name_beside_an_archive_is_in_its_way(tmp_path: Path):
    taken = [tmp_path / ".unpacking.part", tmp_path / ".unpacking.part.tar"]
    for path in taken:
        path.write_text("a student's")
    plain = zipped(tmp_path / "a.zip", a=b"a")
    with tarfile.open(tmp_path / "b.tar.gz", "w:gz") as file:
        file.add(plain, "a.zip")
    assert safe_unzip(plain, tmp_path / "a").left == []
    assert safe_unzip(tmp_path / "b.tar.gz", tmp_path / "b").left == []
    assert all(path.read_text() == "a student's" for path in taken)
    mode = (tmp_path / "a").stat().st_mode
    (tmp_path / "plain").mkdir()
    assert mode == (tmp_path / "plain").stat().st_mode
    assert not list(tmp_path.glob(".unpacking-*"))


def test_a_zip_bomb_is_refused_and_nothing_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    archive = zipped(tmp_path / "a.zip", zeros=bytes(60_000_000))
    with pytest.raises(CourseError, match="would unfold to more than"):
        safe_unzip(archive, tmp_path / "out")
    many = zipped(tmp_path / "many.zip", **{str(number): b"" for number in range(1001)})
    with pytest.raises(CourseError, match="more than 1000 files"):
        safe_unzip(many, tmp_path / "out")
    monkeypatch.setattr(unzip, "MAX_UNPACKED", 1000)
    with pytest.raises(CourseError, match="would unfold"):
        safe_unzip(
            zipped(tmp_path / "b.zip", a=os.urandom(800), b=os.urandom(800)), tmp_path / "out"
        )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.zip", "b.zip", "many.zip"]


def test_folders_count_as_files_do(tmp_path: Path):
    deep = {f"{number:x}/{'a/' * 15}b": b"" for number in range(70)}
    with pytest.raises(CourseError, match="would unfold to more than 1 MB"):
        bounds = unzip.Bounds(9999, 1_000_000)
        safe_unzip(zipped(tmp_path / "a.zip", **deep), tmp_path / "out", bounds)
    with pytest.raises(CourseError, match="more than 1000 files"):
        safe_unzip(zipped(tmp_path / "b.zip", **deep), tmp_path / "out")
    unpacked = safe_unzip(
        zipped(tmp_path / "c.zip", **{"a/b/c": b"12", "a/d": b"3"}), tmp_path / "c"
    )
    assert unpacked == ([], 4, 2 * unzip.FOLDER + 3, {})


def test_each_archive_in_an_archive_is_looked_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = tmp_path / "archive"
    folder.mkdir()
    given = {f"f{n}": b"" for n in range(300)} | {f"z{n}.zip": b"" for n in range(300)}
    given["y.zip"] = archive_of(**{"ps1.ipynb": b"{}"})
    zipped(folder / "lms.zip", **given)
    asked: list[Path] = []
    true = Path.rglob
    monkeypatch.setattr(Path, "rglob", lambda self, *a: (asked.append(self), true(self, *a))[1])
    unzip.SafeExtractor().extract(str(folder), str(tmp_path / "out"))
    assert [path.name for path in asked] == ["archive", "lms", "y.unpacked"]


def extracted(folder: Path, collector: SafeCollector, tmp_path: Path) -> set[str]:
    """Names of what comes out of a download with such a collector."""
    out = tmp_path / "extracted"
    collector._root, collector._given = out, folder
    extractor = unzip.SafeExtractor()
    extractor.parent = Configurable()
    extractor.parent.collector_plugin_inst = collector  # pyright: ignore[reportAttributeAccessIssue]
    extractor.extract(str(folder), str(out))
    return {path.name for path in out.rglob("*")}


def test_archives_in_an_archive_are_bounded_for_each_student(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    folder = tmp_path / "archive"
    folder.mkdir()
    large, small = archive_of(x=os.urandom(700_000)), archive_of(**{"ps1.ipynb": b"{}"})
    given = {f"eve_1_{n}_w{n}.zip": large for n in range(3)}
    given |= {f"bo_2_{n}_b{n}.zip": small for n in range(4)} | {"zoe_3_9_z.zip": large}
    zipped(folder / "lms.zip", **given)
    monkeypatch.setattr(unzip, "MAX_UNPACKED", 3_000_000)
    monkeypatch.setattr(unzip, "MAX_INNER", 3)
    names = extracted(folder, unzip.FromCanvas(), tmp_path)
    unpacked = sorted(name[:3] for name in names if name.endswith(".unpacked"))
    assert unpacked == ["bo_", "bo_", "bo_", "eve", "zoe"]
    assert any("eve_1_1_w1.zip would unfold to more than" in said for said in caplog.messages)
    assert "it was refused. All of one student's may take 5000 files and 3 MB." in caplog.text
    assert any("b3.zip was left out: one student handed in" in said for said in caplog.messages)


@pytest.mark.parametrize("count", [1, 3])
def test_what_is_too_much_of_one_student_is_left_out_alone(
    tmp_path: Path, count: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    folder = tmp_path / "archive"
    folder.mkdir()
    zeros = {f"eve_9_{number}_{number}.csv": bytes(2_000_000) for number in range(count)}
    honest = {f"s{number}_{number}_1_ps1.ipynb": b"{}" for number in range(5)}
    printed = {"zoe_7_7_ps1.ipynb": b"step\n" * 500_000, "eve_9_99_ps1.ipynb": b"{}"}
    zipped(folder / "class.zip", **zeros, **honest, **printed)
    monkeypatch.setattr(unzip, "MAX_UNPACKED", 3_000_000)
    names = extracted(folder, unzip.FromCanvas(), tmp_path)
    assert names >= {*honest, *printed} and len([*zeros.keys() & names]) == 1
    left = [said for said in caplog.messages if "left out" in said]
    assert len(left) == count - 1 and all("more than 3 MB" in said for said in left)


def test_a_students_own_zip_may_hold_what_packs_well(tmp_path: Path):
    archive = zipped(tmp_path / "w.zip", **{"ps1.ipynb": b"step: loss 0.693147\n" * 400_000})
    assert archive.stat().st_size * unzip.MAX_RATIO < 8_000_000
    assert safe_unzip(archive, tmp_path / "out").left == []


def test_all_that_was_downloaded_is_bounded_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = tmp_path / "archive"
    folder.mkdir()
    zeros = {f"s{number}_{number}_1_ps1.ipynb": bytes(1_000_000) for number in range(9)}
    zipped(folder / "class.zip", **zeros)
    monkeypatch.setattr(unzip, "MAX_OF_ALL", 3_500_000)
    names = extracted(folder, unzip.FromCanvas(), tmp_path)
    assert len(names & zeros.keys()) == 3


def test_a_folder_called_as_an_archive_is_none(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    folder = tmp_path / "archive"
    folder.mkdir()
    zipped(folder / "class.zip", **{"Anne_1_assignsubmission_file_/my.zip/ps1.ipynb": b"{}"})
    assert "ps1.ipynb" in extracted(folder, unzip.FromMoodle(), tmp_path)
    assert "left out" not in caplog.text


def test_a_broken_zip_is_refused(tmp_path: Path):
    drawn = random.Random(3)
    whole = zipped(tmp_path / "a.zip", a=b"x" * 5000, b=os.urandom(100)).read_bytes()
    for number in range(60):
        broken = bytearray(whole)
        for _ in range(5):
            broken[drawn.randrange(len(whole))] ^= 1 << drawn.randrange(8)
        path = tmp_path / "broken.zip"
        path.write_bytes(bytes(broken[: drawn.randrange(len(whole))] if number % 2 else broken))
        try:
            safe_unzip(path, tmp_path / "out")
        except CourseError as error:
            assert "broken.zip" in str(error)
        shutil.rmtree(tmp_path / "out", ignore_errors=True)


def tarred(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    """A tar.gz with these members."""
    with tarfile.open(path, "w:gz") as file:
        for info, content in members:
            info.size = len(content)
            file.addfile(info, io.BytesIO(content))
    return path


def test_a_tar_gives_its_plain_files_alone(tmp_path: Path):
    link = tarfile.TarInfo("link")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    hard = tarfile.TarInfo("hard")
    hard.type, hard.linkname = tarfile.LNKTYPE, "/etc/passwd"
    names = ["ok.txt", "../up", "/root-file", "a/b.txt"]
    files = [(tarfile.TarInfo(name), b"x") for name in names]
    archive = tarred(tmp_path / "a.tar.gz", *files, (link, b""), (hard, b""))
    assert safe_unzip(archive, tmp_path / "out").left == ["link", "hard"]
    found = {path.name for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert found == {"ok.txt", "up", "root-file", "b.txt"} and len(list(tmp_path.iterdir())) == 2


def test_a_gzip_that_unfolds_without_end_is_refused(tmp_path: Path):
    (tmp_path / "a.tar.gz").write_bytes(gzip.compress(bytes(60_000_000)))
    with pytest.raises(CourseError, match="would unfold to more than"):
        safe_unzip(tmp_path / "a.tar.gz", tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["a.tar.gz"]


def with_header(kind: bytes, size: int) -> bytes:
    """A tar whose member has a header of digits, in which a regular expression goes astray."""
    head, member = tarfile.TarInfo("x"), tarfile.TarInfo("ps1.ipynb")
    head.type, head.size = kind, size
    digits = b"1" * size + bytes(-size % 512)
    return head.tobuf(tarfile.USTAR_FORMAT) + digits + member.tobuf() + bytes(1024)


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE])
@pytest.mark.parametrize("ending", ["tar", "tar.gz"])
def test_a_tar_with_a_long_header_is_refused_before_it_is_read(
    tmp_path: Path, kind: bytes, ending: str
):
    content = with_header(kind, 800_000)
    archive = tmp_path / f"a.{ending}"
    archive.write_bytes(gzip.compress(content) if ending == "tar.gz" else content)
    with pytest.raises(CourseError, match=r"cannot be unpacked .it has a header of 800000 bytes"):
        safe_unzip(archive, tmp_path / "out")
    member = tarfile.TarInfo(f"{'deep/' * 15}{'long' * 40}.ipynb")
    member.pax_headers = {"SCHILY.xattr.comment": "c" * 8000}
    assert safe_unzip(tarred(tmp_path / "b.tar.gz", (member, b"{}")), tmp_path / "b").left == []


def without_end(*_: object) -> Any:
    """Work that does not end by itself."""
    while True:
        pass


def without_measure(*_: object) -> Any:
    """Work that takes all memory, whatever is caught on the way."""
    taken = []
    while True:
        taken.append(bytearray(1 << 24))


def test_an_archive_that_takes_time_or_memory_without_end_is_refused_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    folder = tmp_path / "archive"
    folder.mkdir()
    for name in "abc":
        zipped(folder / f"{name}.zip", **{f"{name}.ipynb": b"{}"})
    true = unzip._unpack
    odd = {"a.zip": without_end, "b.zip": without_measure}
    monkeypatch.setattr(unzip, "_unpack", lambda *of: odd.get(of[0].name, true)(*of))
    monkeypatch.setattr(unzip, "MIN_SECONDS", 1)
    unzip.SafeExtractor().extract(str(folder), str(tmp_path / "out"))
    assert [path.name for path in (tmp_path / "out").rglob("*")] == ["c", "c.ipynb"]
    said = [text for text in caplog.messages if "left out" in text]
    assert "a.zip cannot be unpacked in 1 s and 1024 MB; it was refused." in said[0]
    assert "b.zip cannot be unpacked" in said[1] and len(said) == 2


def test_a_full_disk_ends_it_for_all_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = tmp_path / "archive"
    folder.mkdir()
    zipped(folder / "a.zip", a=b"a")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(unzip, "_copy", full)
    with pytest.raises(SystemExit, match="The disk is full"):
        unzip.SafeExtractor().extract(str(folder), str(tmp_path / "out"))


def test_a_member_that_cannot_be_read_is_left_out_alone(tmp_path: Path):
    names = ("good", "broken", "n" * 250, "dir", "dir/below", "late")
    archive = zipped(tmp_path / "a.zip", **{name: name.encode() * 9 for name in names})
    content = bytearray(archive.read_bytes())
    with zipfile.ZipFile(archive) as file:
        place = file.getinfo("broken").header_offset + 30 + len("broken")
    content[place] ^= 0xFF
    archive.write_bytes(bytes(content))
    left = safe_unzip(archive, tmp_path / "out").left
    assert len(left) == 3 and any(name.startswith("broken (") for name in left)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["dir", "good", "late"]


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
    assert not unzip._stays_inside(student, notebook)


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


def collected(folder: Path, regexp: str, tmp_path: Path) -> dict[str, str]:
    """Student -> file, of what is unpacked from a download; in nbgrader's order."""
    out = tmp_path / "extracted"
    unzip.SafeExtractor().extract(str(folder), str(out))
    collector = SafeCollector(named_regexp=regexp)
    collector._root, collector._given = out, folder
    found = {}
    for path in sorted(path for path in out.rglob("*") if path.is_file()):
        said = collector.collect(str(path))
        if said:
            found[said["student_id"]] = path.read_text()
    return found


def archive_of(**members: bytes) -> bytes:
    """A zip as bytes."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as file:
        for name, text in members.items():
            file.writestr(name, text)
    return content.getvalue()


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
    unzip.MOODLE: "{}_1_assignsubmission_file_",
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
    monkeypatch.setattr(unzip, "MAX_FILES", 3)
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
    found = [made.collect(f"/x/{name}") for name in names]
    students = [one["student_id"] for one in found if one]
    assert len(set(students)) == len(students)
    assert len(students) == 2 or "two people are called" in caplog.text


def collected_as(
    collector: SafeCollector, out: Path, *names: str, released: tuple[str, ...] = ("ps1",)
) -> dict[str, list[str]]:
    """Student -> what is collected as his, of files of these names that were unpacked."""
    for name in names:
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text(name)
    collector._root = out
    vars(collector)["_released"] = set(released)
    found: dict[str, list[str]] = {}
    for name in sorted(names):
        if said := collector.collect(str(out / name)):
            found.setdefault(said["student_id"], []).append(said["file_id"])
    return found


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
    assert unzip._destination(found["A"][0], name) == Path(name.replace(" (1)", ""))


def test_signs_that_no_folder_should_have_are_left_out_of_a_name(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    names = [".net guy_1", 'Ann "A" B_2', "Ann A B_3", ".._4", "O'Neil_5"]
    names = [f"{name}_assignsubmission_file_/ps1.ipynb" for name in names]
    found = collected_as(unzip.FromMoodle(), tmp_path, *names)
    assert set(found) == {"net guy", "Ann A B", "O'Neil"} and found["Ann A B"] == ["ps1.ipynb"]
    assert "two people are called 'Ann A B'" in caplog.text


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
    assert unzip._time(text, zone) == f"{meant} UTC"
    assert str(parse_utc(unzip._time(text, zone))) == meant


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
    assert unzip._time(text, "Europe/Berlin") == ""
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


def test_an_archive_that_fails_in_any_way_is_left_out_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = tmp_path / "archive"
    folder.mkdir()
    zipped(folder / "a.zip", **{"a.ipynb": b""})
    zipped(folder / "b.zip", **{"b.ipynb": b""})
    true = unzip.safe_unzip

    def fails(archive: Path, *rest) -> unzip.Unpacked:
        if archive.name == "a.zip":
            raise IndexError("a bug")
        return true(archive, *rest)

    monkeypatch.setattr(unzip, "safe_unzip", fails)
    unzip.SafeExtractor().extract(str(folder), str(tmp_path / "out"))
    assert [path.name for path in (tmp_path / "out").rglob("*.ipynb")] == ["b.ipynb"]


def nameless() -> bytes:
    """A zip with a member that has no name."""
    content = bytearray(archive_of(**{"numbers.ipynb": b"eve's", "Q": b""}))
    entry, end = content.rfind(b"PK\x01\x02"), content.rfind(b"PK\x05\x06")
    (size,) = struct.unpack_from("<I", content, end + 12)
    struct.pack_into("<I", content, end + 12, size - 1)
    struct.pack_into("<H", content, entry + 28, 0)
    del content[entry + 46]
    return bytes(content)


def of_a_size_beyond_memory() -> bytes:
    """A tar whose first header says that a file of 2**80 bytes follows."""
    info = tarfile.TarInfo("x")
    info.size = 2**80
    return info.tobuf(tarfile.GNU_FORMAT) + bytes(1024)


def test_a_member_without_a_name_is_left_out_alone(tmp_path: Path):
    (tmp_path / "a.zip").write_bytes(nameless())
    assert safe_unzip(tmp_path / "a.zip", tmp_path / "out").left == ["a member without a name"]
    assert (tmp_path / "out/numbers.ipynb").read_bytes() == b"eve's"


def test_whatever_a_library_makes_of_an_archive_it_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "a.tar").write_bytes(of_a_size_beyond_memory())
    with pytest.raises(CourseError, match=r"a\.tar cannot be unpacked .cannot fit"):
        safe_unzip(tmp_path / "a.tar", tmp_path / "out")
    archive = zipped(tmp_path / "a.zip", a=b"a", b=b"b")

    def fails(*_: object) -> bytes:
        raise MemoryError

    monkeypatch.setattr(zipfile.ZipExtFile, "read", fails)
    assert safe_unzip(archive, tmp_path / "out").left == ["a (MemoryError)", "b (MemoryError)"]


def test_a_bad_archive_in_the_systems_archive_is_refused_alone_and_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    folder = tmp_path / "archive"
    folder.mkdir()
    good = archive_of(**{"ps1.ipynb": b"{}"})
    given = {f"{who}_work.zip": good for who in ("ada", "zoe")} | {"eve_work.zip": nameless()}
    given["bo_work.tar.gz"] = gzip.compress(of_a_size_beyond_memory())
    zipped(folder / "lms.zip", **given)
    out = tmp_path / "out"
    unzip.SafeExtractor().extract(str(folder), str(out))
    found = {path.parent.name for path in out.rglob("*.ipynb")}
    assert found == {f"{who}_work.unpacked" for who in ("ada", "eve", "zoe")}
    said = [text for text in caplog.messages if "left out" in text]
    assert len(said) == 2 and not [text for text in said if "lms.zip was" in text]
    assert "bo_work.tar.gz was left out: " in said[0] and "eve_work.zip: left out" in said[1]


def bad_archives(folder: Path) -> None:
    """What students may upload."""
    with zipfile.ZipFile(folder / "out.zip", "w") as file:
        file.writestr("../../zip-escaped.ipynb", "{}")
        file.writestr("/zip-absolute.ipynb", "{}")
        file.writestr("fay_numbers.ipynb", "{}")
        link = zipfile.ZipInfo("gil_numbers.ipynb")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        file.writestr(link, "/etc/passwd")
    with zipfile.ZipFile(folder / "twice.zip", "w") as file, pytest.warns(UserWarning):
        file.writestr("hal_numbers.ipynb", "first")
        file.writestr("hal_numbers.ipynb", "second")
        file.writestr("again/hal_numbers.ipynb", "third")
    with zipfile.ZipFile(folder / "windows.zip", "w") as file:
        file.writestr("Abgabe\\ida_numbers.ipynb", "{}")
        file.writestr("M\u00fcller_numbers.ipynb", "{}")
    old = (folder / "windows.zip").read_bytes().replace("M\u00fcller".encode(), b"M\x81\x81ller")
    (folder / "windows.zip").write_bytes(old.replace(b"\x00\x08", b"\x00\x00"))
    with zipfile.ZipFile(folder / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as file:
        for number in range(6):
            file.writestr(f"b{number}", bytes(50_000_000))
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as file:
        file.writestr("jan_numbers.ipynb", "{}")
    with zipfile.ZipFile(folder / "nested.zip", "w") as file:
        file.writestr("jan_numbers.zip", inner.getvalue())
        file.writestr("inner.zip", inner.getvalue().replace(b"jan", b"leo"))
        file.writestr("eve_numbers.zip", inner.getvalue().replace(b"jan", b"mia"))
        file.writestr("bad.zip", b"PK no zip")
    locked = bytearray(inner.getvalue().replace(b"jan", b"kim"))
    for sign in (b"PK\x03\x04", b"PK\x01\x02"):
        place = locked.find(sign) + (6 if sign[3] == 4 else 8)
        locked[place] |= 1  # says that it is encrypted
    (folder / "locked.zip").write_bytes(bytes(locked))
    (folder / "none.zip").write_bytes(b"this is no zip")
    for name in ("..zip", "...zip", ".tar.gz"):
        (folder / name).write_bytes((folder / "nested.zip").read_bytes())
    with zipfile.ZipFile(folder / "dots.zip", "w") as file:
        for name in ("..zip", "..tar.gz", ".zip"):
            file.writestr(name, b"PK no zip")
        file.writestr("ned_numbers.ipynb", "{}")
    (folder / "none.gz").write_bytes(gzip.compress(b"this is no tar"))
    (folder / "\x1b[31mred.zip").write_bytes(b"")


def collecting_course(root: Path) -> Course:
    """The small course, with our collectors and a folder for what was downloaded."""
    course = make_course(root, hooks=True)
    with (root / "nbgrader_config.py").open("a") as file:
        file.write(COLLECT)
    nbgrader(root, "generate_assignment", NAME)
    (root / "downloaded" / NAME / "archive").mkdir(parents=True)
    return course


def test_an_instructors_umask_is_in_nobodys_way(tmp_path: Path):
    course = collecting_course(tmp_path / "course")
    work = hand_in(course.root, "bo", RIGHT)
    content = work.read_bytes()
    shutil.rmtree(work.parents[1])
    archive = course.root / "downloaded" / NAME / "archive" / "lms.zip"
    zipped(archive, **{"bo_numbers.ipynb": content})
    with secretive():
        nbgrader(course.root, "zip_collect", NAME)
        nbgrader(course.root, "autograde", NAME)
    with Gradebook(f"sqlite:///{course.root / 'gradebook.db'}") as book:
        assert [one.score for one in book.assignment_submissions(NAME)] == [6]
    assert not work.stat().st_mode & 0o077


def test_zip_collect_collects_everybody_whatever_somebody_uploads(tmp_path: Path):
    course = collecting_course(tmp_path / "course")
    folder = course.root / "downloaded" / NAME / "archive"
    (folder / "ada_numbers.ipynb").write_text("{}")
    zipped(folder / "bo.zip", **{"bo_numbers.ipynb": b"{}"})
    zipped(folder / "zoe.zip", **{"zoe_numbers.ipynb": b"{}"})
    bad_archives(folder)
    said = nbgrader(course.root, "zip_collect", NAME)
    found = {path.name for path in (course.root / "submitted").iterdir()}
    assert found >= {"ada", "bo", "zoe", "fay", "hal", "ida", "jan", "ned"}, said
    assert len([name for name in found if name.endswith("ller")]) == 1
    assert not found & {"gil", "kim", "leo", "mia"}
    hal = course.root / "submitted" / "hal" / NAME / "numbers.ipynb"
    assert hal.read_text() in ("first", "third")
    inside = course.root / "downloaded" / NAME / "extracted" / "out" / "zip-escaped.ipynb"
    assert list(tmp_path.rglob("zip-escaped*")) == [inside]
    assert not Path("/zip-absolute.ipynb").exists()
    for words in (
        "would unfold to more than 200 MB",
        "none.zip is no arch",
        "it names 'mia', but comes from 'eve'",
        "it names 'leo', but its archive's name says no student",
    ):
        assert words in said
    assert "Traceback" not in said and "\x1b[31mred" not in said
