"""Files that are written whole or not at all, whoever else writes, whenever one is ended.

What is no file in the place of one stays what it is, and is neither opened nor waited for.
"""

import codecs
import errno
import os
import re
import secrets
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

NO_FILE = errno.ENXIO
NO_FILES = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
_BEGUN = re.compile(r"\.[0-9a-f]{16}\.part")


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file beside its place and rename it into it. May raise OSError.

    A sign that UTF-8 does not have is written as an escape.
    """
    if isinstance(content, str):
        content = content.encode("utf-8", "backslashreplace")
    with whole(path) as file:
        file.write(content)


def write_table(path: Path, content: str, *, is_named: bool = True) -> None:
    """The same for a table, which takes the place of an older one of its kind and of nothing else.

    Where a person named the place, a pipe or a device is written into, and stays. Raises OSError
    where another file lies there: work, settings or a gradebook would be lost.
    """
    if is_named and path.exists() and not (path.is_file() or path.is_dir()):
        path.write_bytes(content.encode("utf-8", "backslashreplace"))
        return
    require_file(path)
    if path.exists():
        begins = ",".join(content.split(",", 2)[:2]).encode()  # its first two columns
        with path.open("rb") as file:
            found = file.read(len(begins) + 3).removeprefix(codecs.BOM_UTF8)
        if found and not found.startswith(begins):
            raise OSError(
                NO_FILE, "another file lies there, which stays; name another place", str(path)
            )
    write_whole(path, content)


def require_file(path: Path) -> None:
    """Raise OSError where something else lies there: who opened a pipe could wait for ever.

    A link that leads nowhere is nothing, as a new file takes its place.
    """
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return
    if not stat.S_ISREG(mode):
        kind = NO_FILES.get(stat.S_IFMT(mode), "no file")
        raise OSError(NO_FILE, f"it is {kind}, and a file belongs there; move it away", str(path))


@contextmanager
def whole(path: Path) -> Generator[BinaryIO]:
    """A new file that nobody else writes; it takes its place when it is written to the end."""
    require_file(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    _clear(path.parent)
    file = _begun(path.parent)
    begun = Path(file.name)
    try:
        with file:
            yield file
            file.flush()
            if fcntl is None:  # and no file that is open can be renamed
                file.close()
            _rename(begun, path)
    except BaseException:
        with suppress(OSError):
            begun.unlink(missing_ok=True)
        raise


def _rename(begun: Path, path: Path) -> None:
    """Put it into its place; an error names that alone, and so says the same each time."""
    try:
        begun.replace(path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None


def _begun(folder: Path) -> BinaryIO:
    """A new file in a folder, held by this process."""
    while True:
        file = folder.joinpath(f".{secrets.token_hex(8)}.part").open("xb")
        _lock(file)
        if os.fstat(file.fileno()).st_nlink:
            return file
        file.close()  # somebody took it for abandoned before it was locked


def _clear(folder: Path) -> None:
    """Remove what writers have left here that were ended: no process holds it."""
    found: list[str] = []
    with suppress(OSError):  # a folder may be for writing alone
        found = [one.name for one in folder.iterdir() if _BEGUN.fullmatch(one.name)]
    for name in found:
        with suppress(OSError), folder.joinpath(name).open("r+b") as file:
            if _lock(file):
                folder.joinpath(name).unlink()


def _lock(file: BinaryIO) -> bool:
    """Hold a file for as long as it is open; False if somebody does, or if none can be held."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
