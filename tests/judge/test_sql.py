"""SQL that a student has written, run by a test: it reads and writes tables, and nothing else."""

import sqlite3
from pathlib import Path
from sqlite3 import dbapi2
from typing import Any

import pytest

from autograder.judge import sql
from autograder.judge.given import texts_of
from tests.judge.small_course import HIDDEN_PART, rehearsed

TABLES = """import sqlite3
c = sqlite3.connect(":memory:")
c.executescript("create table t(name, x); insert into t values ('a', 1), ('b', 2), ('c', 3);")
"""
QUERY = "query = 'select name from t where x > 1 order by name'"
ASKS = TABLES + "assert c.execute(query).fetchall() == [('b',), ('c',)]"


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests in this process have their connections as they were."""
    monkeypatch.setattr(sqlite3, "connect", sqlite3.connect)
    monkeypatch.setattr(dbapi2, "connect", dbapi2.connect)


@pytest.fixture
def bounded(task: Any) -> Any:
    """A task as a worker has it."""

    def make(*given: Any, **named: Any) -> Any:
        made = task(*given, **named)
        texts = texts_of(made.assignment.notebooks)
        sql.guard(lambda text: any(text in one for one in texts))
        return rehearsed(made)

    return make


def test_a_query_is_an_answer(bounded: Any) -> None:
    made = bounded([("own", QUERY), ("t_own", ASKS, 1)])
    for other in (
        "SELECT name FROM t WHERE x >= 2 ORDER BY 1",
        "select n from (select name n, x from t) where x in (2, 3) order by n;",
    ):
        assert made.scores(own=f"query = '{other}'") == {"t_own": 1}
    assert made.scores(own="query = 'select name from t'") == {"t_own": 0}
    assert made.scores(own="query = 'selct'") == {"t_own": 0}


SHOP = """import sqlite3
def make(conn):
    conn.execute("create table shop (id integer primary key, name text, price integer)")
    conn.commit()
def add(conn, name, price):
    cursor = conn.cursor()
    cursor.execute("insert into shop (name, price) values (?, ?)", (name, price))
    return cursor.lastrowid
def more(conn, rows):
    with conn:
        conn.executemany("insert into shop (name, price) values (:name, :price)", rows)
def cheap(conn):
    return [row[0] for row in conn.execute("select name from shop where price < 5 order by name")]
def shown(cursor):
    cursor.execute("select name, price from shop order by id")
    return [one[0] for one in cursor.description], cursor.fetchone(), cursor.fetchmany(1)
def both(conn):
    try:
        with conn:
            conn.execute("insert into shop (name) values ('lost')")
            conn.execute("insert into shops values (1)")
    except sqlite3.OperationalError as error:
        return str(error)
"""
IN_SHOP = """import sqlite3
conn = sqlite3.connect(":memory:")
make(conn)
assert add(conn, "egg", 1) == 1 and add(conn, "pan", 9) == 2
more(conn, [{"name": "fig", "price": 3}])
assert cheap(conn) == ["egg", "fig"]
assert shown(conn.cursor()) == (["name", "price"], ("egg", 1), [("pan", 9)])
assert both(conn) == "no such table: shops"
assert add(conn, "o'ra", 2) == 4
assert conn.execute("select count(*) from shop").fetchone()[0] == 4
"""
WRONG_SHOPS = (
    ("where price < 5 ", ""),
    ("(?, ?)\", (name, price))", "('%s', %d)\" % (name, price))"),  # a name with a quotation mark
    ("        with conn:\n            conn.execute(\"insert into shop (n", "        if conn:\n"
     "            conn.execute(\"insert into shop (n"),
    ("    conn.commit()", "    conn.create_function('f', 1, len)"),
    ("    conn.commit()", "    conn.execute('attach \"made.db\" as z')"),
    ("return cursor.lastrowid", "return cursor.connection.total_changes"),
)  # fmt: skip


def test_a_connection_is_handed_to_an_answer(bounded: Any) -> None:
    made = bounded([("own", SHOP), ("t_own", HIDDEN_PART.format(IN_SHOP), 1)])
    assert made.scores(own=SHOP) == {"t_own": 1}
    for before, after in WRONG_SHOPS:
        assert SHOP.count(before) == 1
        assert made.scores(own=SHOP.replace(before, after)) == {"t_own": 0}


def test_rows_with_names_are_handed_over(bounded: Any) -> None:
    right = "def first(c):\n    r = c.execute('select 1 a, 2 b').fetchone()\n"
    right += "    return r['a'], tuple(r), dict(r), r.keys(), len(r)"
    test = "import sqlite3\nc = sqlite3.connect(':memory:')\nc.row_factory = sqlite3.Row\n"
    test += "assert first(c) == (1, (1, 2), {'a': 1, 'b': 2}, ['a', 'b'], 2)"
    made = bounded([("own", right), ("t_own", test, 1)])
    assert made.scores(own=right) == {"t_own": 1}


def test_what_writes_no_file_may_be_done(bounded: Any) -> None:
    script = "create table u(x); insert into u values (1); delete from u;"
    test = TABLES + "c.executescript(script)\nassert c.execute('select * from u').fetchall() == []"
    made = bounded([("own", f"script = {script!r}"), ("t_own", test, 1)])
    for more in ("vacuum;", "attach ':memory:' as z; detach z;", "analyze;", "reindex;"):
        assert made.scores(own=f"script = {script + more!r}") == {"t_own": 1}, more


LONG = "instr(hex(zeroblob(1500000)), substr(hex(zeroblob(750000)), 1, 1000000) || '1')"


def test_nothing_long_is_looked_for_in_something_long(bounded: Any) -> None:
    """SQLite makes no pause meanwhile; a text of the instructor's own may do so."""
    right = "query = 'select count(*) from t'\ndef own(c): return c.execute(query).fetchone()[0]"
    test = TABLES + "c.execute(query)\nassert own(c) == 3\n"
    test += "long = c.execute('select hex(zeroblob(200000)) union select 1').fetchall()\n"
    test += "assert len(long[1][0]) == 400_000"
    made = bounded([("own", right), ("t_own", HIDDEN_PART.format(test), 1)])
    assert made.scores(own=right) == {"t_own": 1}
    assert made.scores(own=right.replace("count(*)", LONG.replace("'", '"'))) == {"t_own": 0}
    other = f'def own(c): return c.execute("""select {LONG}""").fetchone()[0] + 3'
    assert made.scores(own=f"{right}\n{other}") == {"t_own": 0}
    connection = sqlite3.connect(":memory:")
    with pytest.raises(sqlite3.DataError, match="too big"):
        connection.execute(f"select {LONG}")


WAYS = (
    lambda c, text: c.execute(text),
    lambda c, text: c.executescript(text),
    lambda c, text: c.cursor().execute(text),
    lambda c, text: c.cursor().executescript(text),
    lambda c, text: sqlite3.Cursor(c).execute(text),
    lambda c, text: c.cursor(sqlite3.Cursor).executescript(text),
    lambda c, text: c.execute("select 1").connection.execute(text).connection.execute(text),
)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("own_class", [False, True])
def test_it_opens_no_file(tmp_path: Path, way: Any, own_class: bool) -> None:
    sql.guard(lambda _: False)
    kinds: dict[str, Any] = {"factory": type("Own", (sqlite3.Connection,), {})} if own_class else {}
    connection = sqlite3.connect(":memory:", **kinds)
    file = tmp_path / "made.db"
    for text in (
        f'attach "{file}" as z',
        f"vacuum into '{file}'",
        "pragma writable_schema = 1",
        f"/* */ ATTACH DATABASE 'file:{file}?mode=rwc' AS z",
        "create virtual table v using fts5(x)",
        "select load_extension('x')",
    ):
        with pytest.raises(sqlite3.Error, match=r"not authorized|denied|prohibited"):
            way(connection, text)
        assert not file.exists()
    assert connection.execute("pragma read_uncommitted").fetchone() == (0,)
    assert connection.execute("pragma foreign_keys = on").fetchone() is None
    assert connection.execute("select count(*) from pragma_table_info('t')").fetchone() == (0,)


def test_a_cell_of_the_instructors_may(bounded: Any) -> None:
    own = "import sqlite3\nc = sqlite3.connect(':memory:')\nc.execute(\"attach ':memory:' as z\")\n"
    own += "c.execute('pragma foreign_keys = on')\nassert c.execute(query).fetchone() == (1,)\n"
    own += "assert isinstance(c, sqlite3.Connection) and c.execute('select 2').fetchone() == (2,)"
    made = bounded([("own", "query = 'select 1'"), ("t_own", own, 1)])
    assert made.scores(own="query = 'SELECT 1 AS n'") == {"t_own": 1}


def test_it_ends_with_the_time(bounded: Any) -> None:
    made = bounded([("own", QUERY), ("t_own", ASKS, 1)], seconds=1.0)
    endless = (
        "with recursive r(n) as (select 1 union all select n + 1 from r) select count(*) from r"
    )
    verdict = made.verdicts(own=f"query = '{endless}'")["t_own"]
    assert (verdict.score, verdict.status) == (0, "timeout")
