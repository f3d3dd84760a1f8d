"""Archives as students and systems make them, for tests, and what is collected of them."""

import io
import struct
import tarfile
import zipfile
from pathlib import Path

from traitlets.config import Configurable

from autograder.classroom import unzip
from autograder.classroom.collector import SafeCollector

MANUAL = r".*_(?P<student_id>\w+)_attempt_(?P<timestamp>[0-9\-]+)_(?P<file_id>\w+)"  # nbgrader's
TIME, LATER = "2026-01-02-00-00-00", "2027-01-01-00-00-00"


def zipped(path: Path, **members: bytes) -> Path:
    """A zip with these members."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return path


def extracted(folder: Path, collector: SafeCollector, tmp_path: Path) -> set[str]:
    """Names of what comes out of a download with such a collector."""
    out = tmp_path / "extracted"
    collector._root, collector._given = out, folder
    extractor = unzip.SafeExtractor()
    extractor.parent = Configurable()
    extractor.parent.collector_plugin_inst = collector  # pyright: ignore[reportAttributeAccessIssue]
    extractor.extract(str(folder), str(out))
    return {path.name for path in out.rglob("*")}


def collected(folder: Path, regexp: str, tmp_path: Path) -> dict[str, str]:
    """Student -> file, of what is unpacked from a download; in nbgrader's order."""
    out, collector = tmp_path / "extracted", SafeCollector(named_regexp=regexp)
    extracted(folder, collector, tmp_path)
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
