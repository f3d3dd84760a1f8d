"""The class as a short table on the terminal, and lines that no terminal cuts."""

import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Sequence

from autograder.classroom.counted import number
from autograder.classroom.report_data import Row, Score, one_line, short_names
from autograder.common.names import say

WIDEST = 60  # characters of "what went wrong" in the terminal
MARGIN = "    "  # before what there is no room for on a row's first line
WIDE = ("W", "F", "A")  # signs that take two columns, the last on some terminals


def print_table(table: Sequence[Row], chapters: Sequence[str]) -> None:
    """The class as a short table: student, score by chapter, what went wrong."""
    width = max([7, *(min(len(row.student), WIDEST) for row in table)])
    short = short_names(chapters)
    heads = "  ".join(f"{short[chapter]:>7}" for chapter in chapters)
    say(f"{'student':<{width}}  {heads}  what went wrong")
    for row in table:
        points = ((_points(row.scores[name]), max(7, len(short[name]))) for name in chapters)
        scores = "  ".join(f"{words:>{wide}}" for words, wide in points)
        more = f" (+{len(row.wrong) - 1})" if len(row.wrong) > 1 else ""
        first = one_line(row.wrong[0] if row.wrong else "", WIDEST)
        say(f"{one_line(row.student, WIDEST):<{width}}  {scores}  {first}{more}")


def say_row(row: str) -> None:
    """Print a row of a table, on a terminal on several lines if there is no room for it on one."""
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize
    for piece in pieces(row, columns, MARGIN) or [""]:
        say(piece)


def pieces(line: str, columns: int, margin: str = "") -> list[str]:
    """A line as it fits on a terminal; all but the first begin with the margin.

    What a terminal itself cuts off it shows where the next line begins, and a student's text could
    so pass for a line of its own.
    """
    is_wide = any(unicodedata.east_asian_width(sign) in WIDE for sign in line)
    width = max(len(margin) + 1, columns // 2 if is_wide else columns)
    return textwrap.wrap(line, width, subsequent_indent=margin)


def _points(score: Score) -> str:
    return f"{number(score.points.counts)}/{number(score.most)}" if score.graded else "-"
