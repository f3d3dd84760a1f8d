"""nbgrader's gradebook of a class: opened, as this nbgrader has it, and the times that it holds."""

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import make_url

from autograder.common.failures import in_words
from autograder.common.startup import without_extensions

with without_extensions():
    from nbgrader import api
    from nbgrader.dbutil import ALEMBIC_DIR
    from nbgrader.utils import parse_utc

if TYPE_CHECKING:
    from autograder.classroom.classes import Class


_alembics_answer = api.get_alembic_version
# Times that every database, time zone and extension can take; what is beyond them counts as them.
EARLIEST, LATEST = (datetime(year, 1, 1, tzinfo=UTC).timestamp() for year in (1900, 9000))

# as `nbgrader submit` and `zip_collect` write it: a zone is a name or a number, and never a path
TIME = re.compile(
    r"\d{4}-\d\d?-\d\d?([ T]\d\d?:[\d:.]{2,13}( ?Z| ?[+-][\d:]{2,6}| [A-Z][\w/+-]*)?)?", re.ASCII
)


def open_book(taught: "Class") -> api.Gradebook:
    """The class's gradebook; CourseError if it cannot be had."""
    api.get_alembic_version = newest_version
    with in_words(shown_database(taught)):
        return api.Gradebook(taught.database, taught.course_id)


def is_there(taught: "Class") -> bool:
    """Whether the class has a gradebook, as far as that is a file: opening it would make one."""
    url = make_url(taught.database)
    return url.get_backend_name() != "sqlite" or Path(url.database or "").is_file()


@contextmanager
def reading(taught: "Class") -> Iterator[api.Gradebook]:
    """The class's gradebook, to look into; what the database refuses is a CourseError."""
    with in_words(shown_database(taught)), open_book(taught) as book:
        yield book


def shown_database(taught: "Class") -> str:
    """Where the gradebook is, without a password."""
    url = make_url(taught.database)
    if url.get_backend_name() == "sqlite" and url.database:
        return url.database
    return url.set(query={}).render_as_string()


def moment(seconds: float) -> datetime | None:
    """A time as the gradebook holds it: UTC, without saying so; None if it is none."""
    if math.isnan(seconds):
        return None
    within = min(max(seconds, EARLIEST), LATEST)
    return datetime.fromtimestamp(within, UTC).replace(tzinfo=None)


def time_told(text: str) -> datetime | None:
    """The time in a timestamp.txt, as nbgrader reads it; None if it is none or beyond all years."""
    if not TIME.fullmatch(text):
        return None
    try:
        when: datetime = parse_utc(text)
    except (ValueError, OverflowError):
        return None
    return when if EARLIEST <= when.replace(tzinfo=UTC).timestamp() <= LATEST else None


def share_gradebook(taught: "Class") -> None:
    """The same for a gradebook that is a file; nbgrader may have made it."""
    path = Path(shown_database(taught))
    if path.is_file():
        with suppress(PermissionError):
            path.chmod(path.stat().st_mode | 0o060)


def write_ahead(connection: Any, _: object) -> None:
    """Let formgrader read while we write; a file system that cannot do it goes on as before.

    What is written ahead is brought to the disk by `settle`, not by every transaction.
    """
    (mode,) = connection.execute("PRAGMA journal_mode=WAL").fetchone()
    if mode == "wal":
        connection.execute("PRAGMA synchronous=NORMAL")


def newest_version() -> str:
    """What nbgrader notes in a new gradebook; to ask alembic takes it a process and two seconds."""
    texts = [
        path.read_text(encoding="utf-8") for path in Path(ALEMBIC_DIR, "versions").glob("*.py")
    ]
    versions = {name for text in texts for name in re.findall(r"^revision = '(\w+)'", text, re.M)}
    older = {name for text in texts for name in re.findall(r"^down_revision = '(\w+)'", text, re.M)}
    newest = versions - older
    return newest.pop() if len(newest) == 1 else _alembics_answer()
