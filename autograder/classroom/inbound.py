"""`nbgrader collect`, by which nobody hands in what he may not read and nobody stops the others.

nbgrader_config.py names the class:

    c.ExchangeFactory.collect = "autograder.classroom.inbound.SafeCollect"

The exchange's inbound folder is written by students and copied with the instructor's rights. Here
a link stays a link, whatever it leads to and whenever it was put there: each folder is held open
while its files are copied. What is no file and no folder is left out, and said.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from nbgrader.exchange.default import ExchangeCollect
from nbgrader.utils import ignore_patterns

from autograder.classroom.gradebook import time_told
from autograder.common.names import clean_log, shown
from autograder.judge.parcel import STAMP, Unreadable, read_file

DEEPEST = 20  # folders in each other
CHUNK = 1 << 20
_FILE = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | os.O_CLOEXEC


class _Folder(NamedTuple):
    """A folder of a submission that is being copied, held open."""

    path: str
    inside: str  # its path in the submission
    names: list[str]
    handle: int


class SafeCollect(ExchangeCollect):
    """Collects what students put into the exchange."""

    @property
    def _here(self) -> Any:
        """nbgrader's course directory."""
        return self.coursedir

    def _path_to_record(self, path: str) -> dict[str, Any]:
        with suppress(ValueError, ArithmeticError):
            record = super()._path_to_record(path)
            if record["username"]:
                return record
        name = Path(path).name
        self._not_collected(name, "its name is not STUDENT+ASSIGNMENT+TIME, as nbgrader submit has")
        return {"username": "", "filename": name, "timestamp": datetime.min}

    def init_src(self) -> None:
        """Find the newest of each student; a name that nobody can read is nobody's."""
        clean_log(self.log)
        super().init_src()
        self.src_records = [record for record in self.src_records if record["username"]]

    def copy_files(self) -> None:
        """Copy them; a link in the place of an earlier one would be followed, and goes."""
        self._here.get_existing_timestamp = _time_of
        for record in self.src_records:
            student, assignment = record["username"], self._here.assignment_id
            submitted = self._here.submitted_directory
            there = Path(self._here.format_path(submitted, student, assignment))
            if there.is_symlink():
                there.unlink()
        super().copy_files()

    def get_size(self, root: str) -> int:
        """Bytes of all files in a folder, no link followed."""
        total = 0
        for folder in self._folders(root):
            for name in folder.names:
                with suppress(OSError):
                    status = os.stat(name, dir_fd=folder.handle, follow_symlinks=False)
                    total += status.st_size if stat.S_ISREG(status.st_mode) else 0
        return total

    def do_copy(self, src: str, dest: str, log: Any = None) -> None:
        """Copy one submission; what cannot be copied is left out, with a line in the log."""
        try:
            status = os.lstat(src)
        except OSError as error:
            self._not_collected(src, error.strerror or "it cannot be read")
            return
        most = 1000 * self._here.max_dir_size
        if stat.S_ISLNK(status.st_mode):
            self._link(Path(src).name, str(Path(src).readlink()), Path(dest))
        elif not stat.S_ISDIR(status.st_mode):
            self._not_collected(src, "it is no folder")
        elif self.get_size(src) > most:
            self._not_collected(
                src, f"it is larger than {most} bytes (CourseDirectory.max_dir_size)"
            )
        else:
            self._copy(src, Path(dest), status.st_uid)

    def _copy(self, src: str, dest: Path, owner: int) -> None:
        here = self._here
        left_out = ignore_patterns(here.ignore, here.include, here.max_file_size, self.log)
        for folder in self._folders(src):
            inside = dest / folder.inside
            inside.mkdir(parents=True)
            self._share(inside, 0o2770)
            out = {*left_out(folder.path, folder.names)}
            for name in folder.names:
                if name not in out:
                    self._copy_entry(folder, name, inside / name, owner)

    def _copy_entry(self, folder: _Folder, name: str, target: Path, owner: int) -> None:
        """Copy what is a file, make a link of what is one; folders come by themselves."""
        where = os.path.normpath(Path(folder.inside, name))
        try:
            status = os.stat(name, dir_fd=folder.handle, follow_symlinks=False)
            if stat.S_ISLNK(status.st_mode):
                self._link(where, os.readlink(name, dir_fd=folder.handle), target)
                return
            if stat.S_ISDIR(status.st_mode):
                return
            handle = os.open(name, _FILE, dir_fd=folder.handle)
        except OSError as error:
            self._not_collected(where, error.strerror or "it cannot be read")
            return
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                self._not_collected(where, "it is no file")
            elif status.st_nlink > 1 and status.st_uid != owner:
                self._not_collected(where, "it is a file of somebody else's under a second name")
            else:
                left = status.st_size
                with target.open("xb") as copy:
                    while left > 0 and (chunk := file.read(min(CHUNK, left))):
                        left -= copy.write(chunk)
                os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
                self._share(target, 0o660)

    def _link(self, name: str, leads_to: str, target: Path) -> None:
        if target.name == STAMP:  # nbgrader opens it, wherever a link of that name leads
            self._not_collected(name, "it is a link")
            return
        self.log.warning("%s is a link; it stays one, and nothing behind it is read", shown(name))
        target.symlink_to(leads_to)

    def _folders(self, top: str) -> Iterator[_Folder]:
        """A folder and those in it; none is swapped for a link while it is looked through."""
        for here, folders, files, handle in os.fwalk(top, onerror=self._unread):
            inside = os.path.relpath(here, top)
            names = sorted([*folders, *files])
            if inside.count(os.sep) >= DEEPEST:
                folders.clear()
            yield _Folder(here, inside, names, handle)

    def _unread(self, error: OSError) -> None:
        self._not_collected(str(error.filename), error.strerror or "it cannot be read")

    def _share(self, path: Path, mode: int) -> None:
        """Let the other instructors write what was made, if nbgrader's settings say so."""
        if self._here.groupshared:
            path.chmod(path.stat().st_mode & 0o7777 | mode)

    def _not_collected(self, name: str, why: str) -> None:
        self.log.warning("%s was not collected: %s", shown(name), why)


def _time_of(folder: str) -> datetime | None:
    """When a collected submission says that it was handed in; None if it says no time."""
    with suppress(Unreadable):
        told = read_file(Path(folder, STAMP), 1000)
        return time_told(told.decode("utf-8", "replace").strip())
    return None
