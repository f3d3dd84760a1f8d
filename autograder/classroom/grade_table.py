"""`nbgrader export`: nbgrader's own table, in which no name is a formula or a second column.

nbgrader_config.py names the class:

    c.ExportApp.plugin_class = "autograder.classroom.grade_table.GradeTable"

Another one is chosen with --exporter; see `exports`.
"""

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nbgrader.api import Gradebook, MissingEntry
from nbgrader.plugins.export import ExportPlugin

from autograder.common.failures import ending_in_words, in_words
from autograder.common.names import readable
from autograder.common.spreadsheet import safe
from autograder.common.whole import write_table, write_whole

COLUMNS = (  # nbgrader's
    *("assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email"),
    *("raw_score", "late_submission_penalty", "score", "max_score"),
)


class GradeTable(ExportPlugin):
    """Writes grades.csv with nbgrader's columns: a line for each student and assignment."""

    def export(self, gradebook: Gradebook) -> None:
        """Write the table to --to."""
        path = Path(self.to or "grades.csv")
        self.log.info("Exporting grades to %s", path)
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(self._lines(gradebook))
        with ending_in_words(), in_words(path):
            (write_table if self.to else write_whole)(path, text.getvalue())

    def _lines(self, book: Gradebook) -> Iterator[list[str]]:
        wanted, whose = {*map(str, self.assignment)}, {*map(str, self.student)}
        for assignment in book.assignments:
            for student in book.students:
                named = not wanted or assignment.name in wanted
                if named and (not whose or student.id in whose):
                    yield [_cell(value) for value in _values(book, assignment, student)]


def _values(book: Gradebook, assignment: Any, student: Any) -> tuple[Any, ...]:
    """What stands in the columns; who handed nothing in has 0."""
    try:
        found: Any = book.find_submission(assignment.name, student.id)
    except MissingEntry:
        when, raw, penalty = None, 0.0, 0.0
    else:
        when, raw, penalty = found.timestamp, found.score, found.late_submission_penalty or 0.0
    return (
        *(assignment.name, assignment.duedate, when, readable(student.id)),
        *(student.last_name, student.first_name, student.email),
        *(raw, penalty, max(0.0, raw - penalty), assignment.max_score),
    )


def _cell(value: Any) -> str:
    return "" if value is None else safe(str(value))
