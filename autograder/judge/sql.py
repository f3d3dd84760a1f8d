"""SQL that an answer may have written, where a test runs it: on the tables that are there.

A query is an answer, too, and SQLite a parser within bounds: a text that stands in no cell of the
instructor's opens no file and loads nothing, is counted while it runs, so that the test's time ends
it, and makes nothing that is too long.
"""

import sqlite3
import time
from collections.abc import Callable
from functools import partial
from sqlite3 import dbapi2
from typing import Any

from autograder.bridge.stand_ins import remote_of
from autograder.judge.tools import USES

STEPS = 1000  # of SQLite's, after which Python has a look at the time
AGAIN = 1.0  # seconds within which a test's alarm rings once more
LONGEST = 50_000_000  # bytes of a value
# the same for what an answer has written: SQLite looks for one text in another without a pause
DOUBTFUL = 100_000
# what anybody may read, or set, with an argument; without one each only tells
OPEN = frozenset(("table_info", "table_xinfo", "table_list", "index_list", "index_info"))
OPEN |= {"foreign_key_list", "foreign_keys", "function_list", "collation_list"}
PRAGMA, FUNCTION = sqlite3.SQLITE_PRAGMA, sqlite3.SQLITE_FUNCTION
ATTACH = sqlite3.SQLITE_ATTACH
IN_MEMORY = ("", ":memory:")  # as `vacuum` attaches one
CLOSED = (sqlite3.SQLITE_CREATE_VTABLE, sqlite3.SQLITE_DROP_VTABLE)


class Bounds:
    """Of a connection: whether what it runs just now is a text of the instructor's."""

    def __init__(self, is_known: Callable[[Any], bool], limit: Callable[[int], Any]) -> None:
        self.is_known, self.limit = is_known, limit
        self.is_doubtful = True  # also where a text comes by another way than `run`
        limit(DOUBTFUL)

    def allows(self, action: int, first: str | None, second: str | None, *where: Any) -> int:
        """SQLite asks before it does anything; the last thing it tells is in what trigger or view.

        That may be an answer's, whatever the text is that brings it about.
        """
        is_doubtful = self.is_doubtful or bool(where and where[-1])
        sets = action == PRAGMA and second is not None and first not in OPEN
        closed = action in CLOSED or sets or (action == ATTACH and first not in IN_MEMORY)
        closed = closed or (action == FUNCTION and second == "load_extension")
        return sqlite3.SQLITE_DENY if is_doubtful and closed else sqlite3.SQLITE_OK

    def run(self, runs: Callable[..., Any], sql: Any, *more: Any) -> Any:
        """Run a text of SQL, of which nobody may know who has written it."""
        return self.go_on(not self.is_known(sql), runs, sql, *more)

    def go_on(self, is_doubtful: bool, runs: Callable[..., Any], *given: Any) -> Any:
        """Run something for a text of which this is known."""
        before, self.is_doubtful = self.is_doubtful, is_doubtful
        self.limit(DOUBTFUL if is_doubtful else LONGEST)
        try:
            return _in_time(runs, *given)
        finally:
            self.is_doubtful = before
            self.limit(DOUBTFUL if before else LONGEST)


def _in_time(runs: Callable[..., Any], *given: Any) -> Any:
    """What SQLite gives; what the alarm raises in the middle of it is lost, so it rings again."""
    try:
        return runs(*given)
    except sqlite3.OperationalError as error:
        if str(error) == "interrupted":
            time.sleep(AGAIN)  # an instructor's own interruption goes on after that
        raise


def guard(is_known: Callable[[Any], bool]) -> None:
    """From now on connections of this process keep texts within bounds that are not known."""
    connect = getattr(sqlite3.connect, "__wrapped__", sqlite3.connect)

    def connected(*args: Any, **named: Any) -> sqlite3.Connection:
        if len(args) < 6:  # else a class of the test's own stands there
            named.setdefault("factory", Connection)
        made = connect(*args, **named)
        bounds = Bounds(is_known, partial(made.setlimit, sqlite3.SQLITE_LIMIT_LENGTH))
        made.set_authorizer(bounds.allows)
        made.set_progress_handler(lambda: 0, STEPS)
        if isinstance(made, Connection):
            made.bounds = bounds
        return made

    connected.__wrapped__ = connect  # type: ignore[attr-defined]
    sqlite3.connect = dbapi2.connect = connected


def _values(given: Any) -> Any:
    """What stands for a text's signs, read before SQLite runs: an answer's may do anything."""
    if isinstance(given, dict) or hasattr(type(given), "keys"):
        named = {key: given[key] for key in given.keys()}  # noqa: SIM118  (a mapping's own)
        return {key: _value(one) for key, one in named.items()}
    return tuple(map(_value, given))


def _value(given: Any) -> Any:
    if remote_of(given) is not None:
        raise sqlite3.ProgrammingError("an object of an answer's is no value for a table")
    return given


class Cursor(sqlite3.Cursor):
    """Runs texts within the bounds of its connection."""

    is_doubtful = True  # whether nobody may know who has written what it runs

    def execute(self, sql: str, *more: Any) -> Any:
        """As SQLite's."""
        given = map(_values, more)
        self.is_doubtful = not self.connection.bounds.is_known(sql)  # type: ignore
        return self.connection.bounds.run(super().execute, sql, *given)  # type: ignore

    def executemany(self, sql: str, rows: Any) -> Any:
        """As SQLite's."""
        given = [_values(row) for row in rows]
        return self.connection.bounds.run(super().executemany, sql, given)  # type: ignore

    def executescript(self, sql: str) -> Any:
        """As SQLite's."""
        return self.connection.bounds.run(super().executescript, sql)  # type: ignore

    def _go_on(self, runs: Callable[[], Any]) -> Any:
        return self.connection.bounds.go_on(self.is_doubtful, runs)  # type: ignore

    def fetchall(self) -> list[Any]:
        """As SQLite's."""
        return self._go_on(super().fetchall)

    def fetchmany(self, *size: Any, **named: Any) -> list[Any]:
        """As SQLite's."""
        return self._go_on(partial(super().fetchmany, *size, **named))

    def fetchone(self) -> Any:
        """As SQLite's."""
        return self._go_on(super().fetchone)

    def __next__(self) -> Any:
        return self._go_on(super().__next__)


class Connection(sqlite3.Connection):
    """Has such cursors, and runs by them what it is asked to run itself."""

    bounds: Bounds

    def cursor(self, factory: Any = Cursor) -> Any:
        """As SQLite's, of a class."""
        if not isinstance(factory, type) or not issubclass(factory, sqlite3.Cursor):
            raise TypeError("a cursor is made of a class of cursors")
        return super().cursor(factory)

    def execute(self, sql: str, *more: Any) -> Any:
        """As SQLite's."""
        return self.cursor().execute(sql, *more)

    def executemany(self, sql: str, *more: Any) -> Any:
        """As SQLite's."""
        return self.cursor().executemany(sql, *more)

    def executescript(self, sql: str) -> Any:
        """As SQLite's."""
        return self.cursor().executescript(sql)


# what an answer may use of a connection that a test hands over
RUNS = frozenset(("execute", "executemany", "executescript"))
USES[Connection] = RUNS | {"cursor", "commit", "rollback", "close", "__enter__", "__exit__"}
USES[Connection] |= {"in_transaction", "total_changes"}
USES[Cursor] = RUNS | {"fetchone", "fetchmany", "fetchall", "close", "__iter__", "__next__"}
USES[Cursor] |= {"lastrowid", "rowcount", "description", "arraysize"}
USES[sqlite3.Row] = frozenset(("keys", "__getitem__", "__len__", "__iter__", "__eq__"))
