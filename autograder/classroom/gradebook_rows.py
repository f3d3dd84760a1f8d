"""The gradebook's tables, and how a row of one is found, added and changed."""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Column, Connection, MetaData, String, Table, Text, bindparam, select
from sqlalchemy.engine import Row

from autograder.classroom.marks import GRADE, table_of
from autograder.common.startup import without_extensions

with without_extensions():
    from nbgrader import api


SOURCE, STUDENT = map(table_of, (api.SourceCell, api.Student))
KINDS = {
    "GradeCell": table_of(api.GradeCell),
    "SolutionCell": table_of(api.SolutionCell),
    "TaskCell": table_of(api.TaskCell),
}
# Ours, and of no interest to nbgrader: by it a gradebook is known again (`keeper`).
SIGN = Table(
    "autograder_sign",
    MetaData(),
    Column("journal", String(64), primary_key=True),
    Column("assignment", String(128), primary_key=True),
    Column("sign", String(64)),
)
# Ours too: which course an assignment's grades are of (`whose`).
WHOSE = Table(
    "autograder_course",
    MetaData(),
    Column("assignment", String(128), primary_key=True),
    Column("journal", String(64)),
    Column("course_id", String(128)),
    Column("root", Text),
)


def rows_by_cell(
    db: Connection, table: Table, notebook: str, cells: Iterable[str]
) -> dict[str, Row]:
    """A submitted notebook's rows; found by their cells, for which the gradebook has an index."""
    where = table.c.notebook_id == notebook, table.c.cell_id.in_(list(cells))
    return {row.cell_id: row for row in db.execute(select(table).where(*where))}


def id_of(db: Connection, table: Table, **values: Any) -> str | None:
    """The id of the row with these values."""
    where = [table.c[name] == value for name, value in values.items()]
    return db.execute(select(table.c.id).where(*where)).scalar()


def add_row(db: Connection, table: Table, **values: Any) -> str:
    """Add a row; returns its id."""
    row = {"id": api.new_uuid(), **values}
    db.execute(table.insert(), row)
    return row["id"]


def row_where(db: Connection, table: Table, notebook: str, cell: str) -> list[Any]:
    """By which a cell's row of a submission is found; made, if there is none."""
    keys = {"notebook_id": notebook, "cell_id": cell}
    if id_of(db, table, **keys) is None:
        add_row(db, table, **keys, **({"needs_manual_grade": False} if table is GRADE else {}))
    return [table.c[name] == value for name, value in keys.items()]


def fill_row(db: Connection, table: Table, where: list[Any], values: dict[str, Any]) -> int:
    """Change the row that is so, if there is one; how many there were."""
    return db.execute(table.update().where(*where).values(**values)).rowcount if values else 0


def insert_rows(db: Connection, table: Table, rows: list[dict[str, Any]]) -> None:
    """Add rows, if there are any; all name the same columns."""
    if rows:
        db.execute(table.insert(), rows)


def update_rows(db: Connection, table: Table, rows: list[dict[str, Any]]) -> None:
    """Change rows by their id; all name the same columns."""
    if rows:
        change = table.update().where(table.c.id == bindparam("row"))
        db.execute(change, [{"row": row.pop("id"), **row} for row in rows])
