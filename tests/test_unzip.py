"""What is bad in one archive of a download never keeps anybody else's work back."""

import errno
import gzip
import io
import os
import shutil
import stat
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
from nbgrader.api import Gradebook

from autograder.classroom import archives, unzip
from autograder.common.course import Course
from tests.sandbox.shared import secretive
from tests.small_course import NAME, RIGHT, hand_in, make_course, nbgrader, release
from tests.zipping import archive_of, extracted, nameless, of_a_size_beyond_memory, zipped

COLLECT = r"""
c.ZipCollectApp.extractor_plugin = "autograder.classroom.unzip.SafeExtractor"
c.ZipCollectApp.collector_plugin = "autograder.classroom.unzip.SafeCollector"
c.FileNameCollectorPlugin.named_regexp = r".*/(?P<student_id>[^/_]+)_(?P<file_id>numbers)[^/]*$"
"""


def test_each_archive_in_an_archive_is_looked_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = tmp_path / "archive"
    folder.mkdir()
    given = {f"f{n}": b"" for n in range(20)} | {f"z{n}.zip": b"" for n in range(20)}
    given["y.zip"] = archive_of(**{"ps1.ipynb": b"{}"})
    zipped(folder / "lms.zip", **given)
    asked: list[Path] = []
    true = Path.rglob
    monkeypatch.setattr(Path, "rglob", lambda self, *a: (asked.append(self), true(self, *a))[1])
    unzip.SafeExtractor().extract(str(folder), str(tmp_path / "out"))
    assert [path.name for path in asked] == ["archive", "lms", "y.unpacked"]


def test_archives_in_an_archive_are_bounded_for_each_student(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    folder = tmp_path / "archive"
    folder.mkdir()
    large, small = archive_of(x=os.urandom(700_000)), archive_of(**{"ps1.ipynb": b"{}"})
    given = {f"eve_1_{n}_w{n}.zip": large for n in range(3)}
    given |= {f"bo_2_{n}_b{n}.zip": small for n in range(4)} | {"zoe_3_9_z.zip": large}
    zipped(folder / "lms.zip", **given)
    for module in (archives, unzip):  # which bounds it, and which says so
        monkeypatch.setattr(module, "MAX_UNPACKED", 3_000_000)
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
    monkeypatch.setattr(archives, "MAX_UNPACKED", 3_000_000)
    names = extracted(folder, unzip.FromCanvas(), tmp_path)
    assert names >= {*honest, *printed} and len([*zeros.keys() & names]) == 1
    left = [said for said in caplog.messages if "left out" in said]
    assert len(left) == count - 1 and all("more than 3 MB" in said for said in left)


def test_of_what_is_left_out_of_an_archive_a_few_are_told_and_how_many_more(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    folder = tmp_path / "archive"
    folder.mkdir()
    bad = {f"{top}/{'x' * 250}{n}": b"" for n in range(40) for top in ("eve", "zoe")}
    odd = {f"eve/{n}.rar": b"" for n in range(50)}
    flat = {f"{n}{'y' * 250}": b"" for n in range(500)}
    more = {f"eve/{n}.zip": archive_of(x=b"") for n in range(120)}
    zipped(folder / "class.zip", **bad, **odd, **flat, **more)
    unzip.SafeExtractor().extract(str(folder), str(tmp_path / "out"))
    said = [text for text in caplog.messages if "left out" in text]
    for words, count in (
        ("left out zoe/", 10),
        ("left out eve/", 10),
        ("yyy", 98),  # a hundred folders in all
        ("left out 462 more", 1),
        (".rar was left out", 10),
        ("left out 40 more", 1),
        ("one student handed in more than", 1),
    ):
        assert len([text for text in said if words in text]) == count, words
    assert len(said) < 160


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
    true = archives._unpack
    odd = {"a.zip": without_end, "b.zip": without_measure}
    monkeypatch.setattr(archives, "_unpack", lambda *of: odd.get(of[0].name, true)(*of))
    monkeypatch.setattr(archives, "MIN_SECONDS", 1)
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

    monkeypatch.setattr(archives, "_copy", full)
    with pytest.raises(SystemExit, match="The disk is full"):
        unzip.SafeExtractor().extract(str(folder), str(tmp_path / "out"))


def test_an_archive_that_fails_in_any_way_is_left_out_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = tmp_path / "archive"
    folder.mkdir()
    zipped(folder / "a.zip", **{"a.ipynb": b""})
    zipped(folder / "b.zip", **{"b.ipynb": b""})
    true = unzip.safe_unzip

    def fails(archive: Path, *rest) -> archives.Unpacked:
        if archive.name == "a.zip":
            raise IndexError("a bug")
        return true(archive, *rest)

    monkeypatch.setattr(unzip, "safe_unzip", fails)
    unzip.SafeExtractor().extract(str(folder), str(tmp_path / "out"))
    assert [path.name for path in (tmp_path / "out").rglob("*.ipynb")] == ["b.ipynb"]


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


def tarred(mode: str) -> bytes:
    """A tar with a notebook."""
    content, info = io.BytesIO(), tarfile.TarInfo("ps1.ipynb")
    info.size = 2
    with tarfile.open(fileobj=content, mode=mode) as file:  # pyright: ignore[reportArgumentType, reportCallIssue]
        file.addfile(info, io.BytesIO(b"{}"))
    return content.getvalue()


def test_an_archive_of_any_usual_kind_is_unpacked_or_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    folder = tmp_path / "archive"
    folder.mkdir()
    kinds = {
        "tar": "w",
        "tgz": "w:gz",
        "tar.gz": "w:gz",
        "tar.bz2": "w:bz2",
        "TAR.XZ": "w:xz",
        "tgz ": "w:gz",
        "tar.": "w",
    }
    good = {f"{kind[-3:]}_1_1_w.{kind}": tarred(mode) for kind, mode in kinds.items()}
    bad = {"rar_1_1_w.rar": b"Rar!", "sev_1_1_w.7z": b"7z", "non_1_1_w.zip": archive_of()}
    bad |= {"fou_1_1_w.7z.001": b"7z", "six_1_1_w.zipx": b"PK"}
    zipped(folder / "lms.zip", **good, **bad)
    (folder / "ann_1_1_w.Rar").write_bytes(b"Rar!")
    (folder / "bo_1_1_data.csv.xz").write_bytes(b"no tar")
    assert "bo_1_1_data.csv.xz" in extracted(folder, unzip.FromCanvas(), tmp_path)
    assert len([*(tmp_path / "extracted").rglob("ps1.ipynb")]) == len(kinds)
    said = [text for text in caplog.messages if "left out" in text]
    assert sorted(text.partition("_1_1")[0][-3:] for text in said) == [
        "ann",
        "fou",
        "non",
        "rar",
        "sev",
        "six",
    ]
    assert "it holds no file" in caplog.text and "ask for a zip" in caplog.text


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
    release(root)
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
        "left out kim_numbers.ipynb (it has a password; ask for a zip file without one)",
    ):
        assert words in said
    assert "Traceback" not in said and "\x1b[31mred" not in said
