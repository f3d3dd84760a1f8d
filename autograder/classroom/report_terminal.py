"""The class as a short table on the terminal."""

from collections.abc import Sequence

from autograder.classroom.counted import number
from autograder.classroom.report_data import Row, Score, one_line, short_names
from autograder.common.names import say

WIDEST = 60  # characters of "what went wrong" in the terminal


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


def _points(score: Score) -> str:
    return f"{number(score.points.counts)}/{number(score.most)}" if score.graded else "-"
