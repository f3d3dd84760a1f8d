"""What the gradebook knows of an assignment: its notebooks and their cells as they are today."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, case, select

from autograder.classroom.gradebook_rows import (
    KINDS,
    SOURCE,
    add_row,
    id_of,
    insert_rows,
    update_rows,
)
from autograder.classroom.marks import BASE, COMMENT, GRADE, NOTEBOOK, SUBMITTED
from autograder.classroom.rebuild import checksum
from autograder.judge.assignment import Cell, Notebook

OTHERS = {"GradeCell": "TaskCell", "TaskCell": "GradeCell"}  # kinds of rows with points


@dataclass
class KnownCells:
    """A notebook's rows in the gradebook: ids of its cells by type and grade_id."""

    id: str
    cells: dict[tuple[str, str], str] = field(default_factory=dict)

    def graded(self) -> dict[str, str]:
        """Ids of the cells that have a grade, by grade_id."""
        return {name: id for (kind, name), id in self.cells.items() if kind != "SolutionCell"}

    def commented(self) -> dict[str, str]:
        """Ids of the cells that have a comment, by grade_id."""
        return {name: id for (kind, name), id in self.cells.items() if kind != "GradeCell"}


def kinds_of(cell: Cell) -> list[str]:
    """As which types nbgrader lists this cell."""
    marks = cell.metadata.get("nbgrader", {})
    signs = {"grade": "GradeCell", "solution": "SolutionCell", "task": "TaskCell"}
    return [kind for sign, kind in signs.items() if marks.get(sign)]


def enter_notebook(db: Connection, assignment: str, notebook: Notebook) -> KnownCells:
    """Make the gradebook know a notebook's cells as they are today; their rows."""
    keys = {"name": notebook.name, "assignment_id": assignment}
    id = id_of(db, NOTEBOOK, **keys) or add_row(db, NOTEBOOK, **keys)
    kernel = json.dumps(notebook.metadata.get("kernelspec", {}))
    update_rows(db, NOTEBOOK, [{"id": id, "kernelspec": kernel}])
    wanted = {(kind, cell.grade_id): cell for cell in notebook.cells for kind in kinds_of(cell)}
    known = KnownCells(id, _cells_of(db, id))
    changed = _change_kinds(db, known, wanted)
    for (kind, name), cell in wanted.items():
        values = {} if kind == "SolutionCell" else _worth(cell)
        if (kind, name) not in known.cells:
            known.cells[kind, name] = add_row(db, BASE, name=name, notebook_id=id, type=kind)
            insert_rows(db, KINDS[kind], [{"id": known.cells[kind, name], **values}])
        elif values:
            update_rows(db, KINDS[kind], [{"id": known.cells[kind, name], **values}])
    _move_comments(db, known, changed)
    for kind, name in known.cells.keys() - wanted.keys():
        if _forget_cell(db, kind, known.cells[kind, name]):
            del known.cells[kind, name]
    _enter_sources(db, id, notebook)
    return known


def _change_kinds(
    db: Connection, known: KnownCells, wanted: Mapping[tuple[str, str], Cell]
) -> list[tuple[str, str]]:
    """Make tasks of rows of answers that are tasks now, or the other way round; which these are.

    What people gave stands in the same row then.
    """
    changed = []
    for (kind, name), cell in wanted.items():
        old = OTHERS.get(kind, ""), name
        if old not in known.cells or old in wanted or (kind, name) in known.cells:
            continue
        id = known.cells[kind, name] = known.cells.pop(old)
        db.execute(KINDS[old[0]].delete().where(KINDS[old[0]].c.id == id))
        insert_rows(db, KINDS[kind], [{"id": id, **_worth(cell)}])
        update_rows(db, BASE, [{"id": id, "type": kind}])
        changed.append((kind, name))
    return changed


def _move_comments(db: Connection, known: KnownCells, changed: Iterable[tuple[str, str]]) -> None:
    """Put what people said of cells that have changed where nbgrader looks for it now."""
    for kind, name in changed:
        rows = known.cells[kind, name], known.cells.get(("SolutionCell", name))
        target, source = rows if kind == "TaskCell" else rows[::-1]
        if target and source:
            moved = COMMENT.update().where(COMMENT.c.cell_id == source)
            db.execute(moved.values(cell_id=target))


def _worth(cell: Cell) -> dict[str, Any]:
    return {"max_score": float(cell.points), "cell_type": cell.cell_type}


def _cells_of(db: Connection, notebook: str) -> dict[tuple[str, str], str]:
    rows = db.execute(select(BASE).where(BASE.c.notebook_id == notebook))
    return {(row.type, row.name): row.id for row in rows if row.type in KINDS}


def _enter_sources(db: Connection, notebook: str, read: Notebook) -> None:
    """The text of every marked cell: nbgrader's own commands put it back where it was changed."""
    rows = db.execute(select(SOURCE).where(SOURCE.c.notebook_id == notebook))
    known = {row.name: row.id for row in rows}
    for cell in read.cells:
        if not (cell.grade_id and (kinds_of(cell) or cell.locked)):
            continue
        source = cell.stub if "SolutionCell" in kinds_of(cell) else cell.as_written
        values = {
            "cell_type": cell.cell_type,
            "locked": cell.locked,
            "source": source,
            "checksum": checksum(cell),
        }
        if cell.grade_id in known:
            update_rows(db, SOURCE, [{"id": known.pop(cell.grade_id), **values}])
        else:
            add_row(db, SOURCE, name=cell.grade_id, notebook_id=notebook, **values)
    for id in known.values():
        db.execute(SOURCE.delete().where(SOURCE.c.id == id))


def _forget_cell(db: Connection, kind: str, cell: str) -> bool:
    """Take a cell out of the gradebook, or what it is worth, if a person graded or commented it."""
    for table, columns in (
        (GRADE, (GRADE.c.manual_score, GRADE.c.extra_credit)),
        (COMMENT, (COMMENT.c.manual_comment,)),
    ):
        for column in columns:
            touched = select(table.c.id).where(table.c.cell_id == cell, column.is_not(None))
            if db.execute(touched.limit(1)).first():
                _make_worthless(db, kind, cell)
                return False
    for table in (GRADE, COMMENT):
        db.execute(table.delete().where(table.c.cell_id == cell))
    db.execute(KINDS[kind].delete().where(KINDS[kind].c.id == cell))
    db.execute(BASE.delete().where(BASE.c.id == cell))
    return True


def _make_worthless(db: Connection, kind: str, cell: str) -> None:
    """Nobody can earn this cell's points any more, and nothing in it waits for anybody."""
    if kind != "SolutionCell":
        update_rows(db, KINDS[kind], [{"id": cell, "max_score": 0.0}])
        alone = case((GRADE.c.extra_credit.is_(None), None), else_=0.0)  # nbgrader counts none so
        nothing = {"auto_score": alone, "needs_manual_grade": False}
        db.execute(GRADE.update().where(GRADE.c.cell_id == cell).values(**nothing))


def forget_notebooks(db: Connection, assignment: str, kept: Iterable[str]) -> dict[str, KnownCells]:
    """Take out notebooks that the assignment no longer has; those with a person's work stay."""
    former: dict[str, KnownCells] = {}
    others = NOTEBOOK.c.assignment_id == assignment, NOTEBOOK.c.name.not_in(list(kept))
    for id, name in db.execute(select(NOTEBOOK.c.id, NOTEBOOK.c.name).where(*others)).all():
        cells = _cells_of(db, id)
        left = {key: cell for key, cell in cells.items() if not _forget_cell(db, key[0], cell)}
        if left:
            former[name] = KnownCells(id, left)
        else:
            for table in (SOURCE, SUBMITTED):
                db.execute(table.delete().where(table.c.notebook_id == id))
            db.execute(NOTEBOOK.delete().where(NOTEBOOK.c.id == id))
    return former


def cell_again(db: Connection, known: KnownCells, kind: str, name: str) -> str:
    """A cell's id; made, worth nothing, if the assignment has it no more."""
    found = known.commented() if kind == "SolutionCell" else known.graded()
    if name not in found:
        values = {} if kind == "SolutionCell" else {"max_score": 0.0, "cell_type": "code"}
        found[name] = add_row(db, BASE, name=name, notebook_id=known.id, type=kind)
        insert_rows(db, KINDS[kind], [{"id": found[name], **values}])
        known.cells[kind, name] = found[name]
    return found[name]
