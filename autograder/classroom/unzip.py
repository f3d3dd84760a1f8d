"""What `nbgrader zip_collect` is told to use: no archive harms another one.

    c.ZipCollectApp.extractor_plugin = "autograder.classroom.unzip.SafeExtractor"
    c.ZipCollectApp.collector_plugin = "autograder.classroom.unzip.SafeCollector"

`FromCanvas`, `FromMoodle` and `FromBlackboard` in its place know how these systems name files; for
any other system `c.FileNameCollectorPlugin.named_regexp` says it. A time in a name is taken for
UTC, or for what `c.SafeCollector.time_zone` says.

`nbgrader zip_collect` would stop for everybody at the first archive with a bad member. Here a bad
member is left out and named in the log, a bad archive is refused alone, and everybody else's work
is collected.
"""

import os
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePath
from typing import Any

from nbgrader.plugins.zipcollect import ExtractorPlugin
from traitlets import List

from autograder.classroom.archives import (
    ENDINGS,
    MAX_FILES,
    MAX_NESTED,
    MAX_OF_ONE,
    MAX_RATIO,
    MAX_UNPACKED,
    Bounds,
    Room,
    Rooms,
    Unpacked,
    Whose,
    concerns_all,
    safe_unzip,
    take_room,
    words_of,
    written,
)
from autograder.classroom.collector import SafeCollector
from autograder.classroom.file_names import INNER, is_a_systems, unpacked_at
from autograder.classroom.lms import FromBlackboard, FromCanvas, FromMoodle
from autograder.classroom.places import ARCHIVE
from autograder.common.course import CourseError
from autograder.common.failures import sentence_of
from autograder.common.names import clean_log

# What nbgrader_config.py and --collector name, of this module.
__all__ = ["FromBlackboard", "FromCanvas", "FromMoodle", "SafeCollector", "SafeExtractor"]

MAX_OF_ALL = 10_000_000_000  # bytes of what was downloaded: more than honest work of a class takes
LMS_FILES = 100_000  # in what was downloaded: a whole class may be in one archive
MAX_INNER = 100  # archives of one student's in an archive
MAX_TOLD = 10  # names below one folder that the log says; how many more there are is one line
MAX_FOLDERS = 100  # of which it says names
UNKNOWN = "%s was left out: nothing here unpacks this kind; ask for a zip"
FOREIGN = re.compile(ARCHIVE, re.IGNORECASE)  # ends an archive's name, also of what stays packed


class SafeExtractor(ExtractorPlugin):
    """Unpacks each archive by `safe_unzip`, archives in archives too."""

    zip_ext = List(list(ENDINGS), help="Endings of archives that are unpacked.").tag(config=True)

    def extract(self, archive_path: str, extracted_path: str) -> None:
        """Unpack every archive below one folder into another, and copy the other files."""
        clean_log(self.log)
        source, target = Path(archive_path), Path(extracted_path)
        given = [one for one in source.rglob("*") if one.is_file() and not one.is_symlink()]
        # archives last: that a file lies beside them says that none is the whole class's
        for path in sorted(given, key=lambda path: (self._is_archive(path), path)):
            place = target / path.relative_to(source)
            with self._alone(path, target):
                if self._is_archive(path):
                    self._archive(path, unpacked_at(place))
                else:
                    self.log.info("Copying %s", path)
                    place.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(path, place)
                    if self._is_foreign(path):
                        self.log.error(UNKNOWN, path)

    @contextmanager
    def _alone(self, path: Path, target: Path) -> Iterator[None]:
        """Inside, what goes wrong leaves out this one file, named in the log, and no other."""
        try:
            yield
        except Exception as error:
            if concerns_all(error):
                raise SystemExit(sentence_of(error, str(target))) from error
            words = error if isinstance(error, CourseError) else words_of(error)
            self.log.error("%s was left out: %s", path, words)

    def _is_archive(self, path: Path) -> bool:
        name = written(path.name).lower()
        return PurePath(name).suffix in self.zip_ext or name.endswith((".tar.bz2", ".tar.xz"))

    def _is_foreign(self, path: Path) -> bool:
        """Whether work may lie in an archive that nobody unpacks here, as a .rar or a .7z."""
        return bool(FOREIGN.search(path.name)) and not self._is_archive(path)

    def _tell(self, words: str, names: Iterable[str], archive: Path) -> None:
        """Say which were left out, of each folder's a few, and of all others how many.

        An archive has room for a hundred thousand; in a class's each student has a folder.
        """
        told: Counter[str] = Counter()
        more = 0
        for name in names:
            folder = name.partition("/")[0]
            told[folder] += folder in told or len(told) < MAX_FOLDERS
            if 0 < told[folder] <= MAX_TOLD:
                self.log.error(words, archive, name)
            more += not 0 < told[folder] <= MAX_TOLD
        if more:
            self.log.error("%s: left out %d more", archive, more)

    def _archive(self, path: Path, target: Path) -> None:
        """Unpack one archive and those in it; each that is bad is refused alone."""
        wanted, target = target, _free(target)
        bounds = Bounds(LMS_FILES, max(MAX_OF_ALL, path.stat().st_size * MAX_RATIO))
        rooms = Rooms("all of it", bounds)
        whose = partial(self._whose, target)
        unpacked, inner = self._one(path, target, bounds, whose)
        self._require_same(target, wanted)
        rooms.whole.take(unpacked.files, unpacked.size)
        for student, taken in unpacked.shares.items():
            rooms.share(student).take(*taken)
        inner.sort(key=lambda found: found.stat().st_size)  # a large one takes no small one's room
        looked_at: Counter[str] = Counter()
        for found in inner:
            student = whose(found)
            looked_at[student] += 1
            if looked_at[student] > MAX_INNER + 1:
                continue
            with self._alone(found, target):
                if looked_at[student] > MAX_INNER:
                    raise CourseError(
                        f"one student handed in more than {MAX_INNER} archives; so were all others "
                        "of this student's"
                    )
                self._inner(found, [rooms.whole, rooms.share(student)])

    def _inner(self, path: Path, rooms: list[Room]) -> None:
        """Unpack an archive in an archive, as far as its student's share of the whole goes."""
        left = [room.left() for room in rooms]
        files = min(MAX_FILES, *(bounds.files for bounds in left))
        size = min(MAX_NESTED, *(bounds.size for bounds in left))
        place = unpacked_at(path)
        wanted = place.with_name(place.name + INNER)
        target = _free(wanted)
        try:
            unpacked, more = self._one(path, target, Bounds(files, size))
        except CourseError as error:
            if files == MAX_FILES and size == MAX_NESTED:
                raise
            most = f"{MAX_OF_ONE} files and {MAX_UNPACKED / 1e6:.3g} MB"
            raise CourseError(f"{error} All of one student's may take {most}.") from error
        self._require_same(target, wanted)
        take_room(rooms, unpacked.files, unpacked.size)
        deeper = (third.relative_to(target).as_posix() for third in more)
        self._tell("%s: %s was left out: an archive in an archive in an archive", deeper, path)

    def _one(
        self, path: Path, target: Path, bounds: Bounds, whose: Whose | None = None
    ) -> tuple[Unpacked, list[Path]]:
        """Unpack an archive; also returns the archives that came out of it."""
        self.log.info("Unpacking %s", path)
        unpacked = safe_unzip(path, target, bounds, whose)
        self._tell("%s: left out %s", unpacked.left, path)
        found = [one for one in sorted(target.rglob("*")) if one.is_file()]
        if not found and not unpacked.left:
            self.log.error("%s was left out: it holds no file", path)
        found = [one for one in found if not is_a_systems(one.relative_to(target))]
        foreign = (one.relative_to(target).as_posix() for one in found if self._is_foreign(one))
        self._tell(f"%s: {UNKNOWN}", foreign, path)
        return unpacked, list(filter(self._is_archive, found))

    def _require_same(self, target: Path, wanted: Path) -> None:
        """Refuse what by the number in its folder's name would be another's: ada-2 is not ada."""
        if target == wanted:
            return
        files = (one.relative_to(target) for one in target.rglob("*") if one.is_file())
        if all(self._whose(target, target / f) == self._whose(wanted, wanted / f) for f in files):
            return
        shutil.rmtree(target)
        raise CourseError(
            f"something else is unpacked as {wanted.name}, and as {target.name} it would be "
            "another student's; collect it by hand"
        )

    def _whose(self, target: Path, path: Path) -> str:
        """Who handed in a file, as the collector says; without one, the outermost name."""
        collector: Any = getattr(self.parent, "collector_plugin_inst", None)
        if isinstance(collector, SafeCollector):
            return collector.whose(path, is_archive=self._is_archive(path))
        return path.relative_to(target).parts[0]


def _free(path: Path) -> Path:
    """A path where nothing is, of this name or nearly."""
    while os.path.lexists(path):
        path = path.with_name(f"{path.stem}-2{path.suffix}")
    return path
