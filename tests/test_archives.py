"""One archive is unpacked within bounds, and nothing of it lands anywhere else."""

import gzip
import io
import os
import random
import shutil
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest

from autograder.classroom import archives
from autograder.classroom.archives import safe_unzip
from autograder.common.course import CourseError
from tests.zipping import nameless, of_a_size_beyond_memory, zipped


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
    monkeypatch.setattr(archives, "MAX_UNPACKED", 1000)
    with pytest.raises(CourseError, match="would unfold"):
        safe_unzip(
            zipped(tmp_path / "b.zip", a=os.urandom(800), b=os.urandom(800)), tmp_path / "out"
        )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.zip", "b.zip", "many.zip"]


def test_folders_count_as_files_do(tmp_path: Path):
    deep = {f"{number:x}/{'a/' * 15}b": b"" for number in range(70)}
    with pytest.raises(CourseError, match="would unfold to more than 1 MB"):
        bounds = archives.Bounds(9999, 1_000_000)
        safe_unzip(zipped(tmp_path / "a.zip", **deep), tmp_path / "out", bounds)
    with pytest.raises(CourseError, match="more than 1000 files"):
        safe_unzip(zipped(tmp_path / "b.zip", **deep), tmp_path / "out")
    unpacked = safe_unzip(
        zipped(tmp_path / "c.zip", **{"a/b/c": b"12", "a/d": b"3"}), tmp_path / "c"
    )
    assert unpacked == ([], 4, 2 * archives.FOLDER + 3, {})


def test_a_students_own_zip_may_hold_what_packs_well(tmp_path: Path):
    archive = zipped(tmp_path / "w.zip", **{"ps1.ipynb": b"step: loss 0.693147\n" * 400_000})
    assert archive.stat().st_size * archives.MAX_RATIO < 8_000_000
    assert safe_unzip(archive, tmp_path / "out").left == []


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


def sparse(name: str, size: int) -> bytes:
    """A member of a tar that says of itself to be so large, which may be less than nothing."""
    member = tarfile.TarInfo(name)
    member.type = tarfile.GNUTYPE_SPARSE
    head = bytearray(member.tobuf(tarfile.GNU_FORMAT))
    head[386:482] = bytes(96)  # what is no gap: nothing
    head[483:495] = bytes([0o377 if size < 0 else 0o200]) + size.to_bytes(11, "big", signed=True)
    head[148:156] = b" " * 8
    head[148:156] = b"%06o\0 " % sum(head)
    return bytes(head)


def test_what_calls_itself_smaller_than_nothing_makes_no_room(tmp_path: Path):
    archive, much = tmp_path / "a.tar.gz", 300_000_000
    archive.write_bytes(gzip.compress(sparse("less", -much) + sparse("more", much) + bytes(1024)))
    with pytest.raises(CourseError, match="would unfold to more than 50 MB"):
        safe_unzip(archive, tmp_path / "out")
    archive.write_bytes(gzip.compress(sparse("less", -much) + sparse("more", 10) + bytes(1024)))
    unpacked = safe_unzip(archive, tmp_path / "out")
    assert unpacked.left == ["less (it says that it is smaller than nothing)"]
    assert (unpacked.files, unpacked.size) == (1, 10)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["more"]


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
