"""The files that belong to a result: the graded notebook, the student's pages, what hands them out.

Files are renamed into place, so that none is ever seen half written.
"""

import filecmp
import hashlib
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from autograder.classroom.asked import Replies, asked_in
from autograder.classroom.counted import Marks
from autograder.classroom.gradebook import moment, time_told
from autograder.classroom.journal_lines import Graded
from autograder.classroom.pages import made_of, stamped
from autograder.classroom.rebuild import rebuild
from autograder.classroom.secret import made_up
from autograder.common.names import plain, readable
from autograder.common.results import NotebookResult, Result, Verdict
from autograder.common.whole import whole, write_whole
from autograder.judge.assignment import Assignment, Notebook
from autograder.judge.parcel import SECRET_FILE, STAMP
from autograder.judge.showing import ALL, Shown

if TYPE_CHECKING:
    from autograder.classroom.classes import Class


OF_THE_GROUP = 0o2770
NO_MARKS: Mapping[str, Marks] = {}  # before there is a gradebook
NO_REPLIES: Replies = {}


def write_files(
    taught: "Class",
    graded: Graded,
    assignment: Assignment,
    marks: Mapping[str, Marks] = NO_MARKS,
    shown: Shown = ALL,
    replies: Replies = NO_REPLIES,
) -> None:
    """Write the graded notebook for the instructor and the page for the student.

    Args:
        taught: the class.
        graded: what came of the submission.
        assignment: what was to be done.
        marks: what the gradebook says of it, by notebook.
        shown: what its student may read of hidden tests.
        replies: what was answered to its student's questions.
    """
    result = graded.result
    folder = taught.autograded / result.student / result.assignment
    for name, text in graded_notebooks(result, assignment):
        write_whole(folder / f"{name}.ipynb", text)
    for path in assignment.released:
        _copy(path, folder / path.relative_to(assignment.folder))
    write_pages(taught, graded, assignment, marks, shown, replies)


def _copy(path: Path, place: Path) -> None:
    """Put a file of the instructor's, as a picture in the text, where the graded notebook lies."""
    if place.is_file() and filecmp.cmp(path, place, shallow=False):
        return
    with path.open("rb") as original, whole(place) as copy:
        shutil.copyfileobj(original, copy)


def _for_the_exchange(graded: Graded) -> dict[str, str]:
    """What `nbgrader release_feedback` wants beside each page: when it was handed in, and a secret.

    By the secret a page is published under a name that its student alone knows (`secret.py`).
    """
    when = None if graded.collected is None else moment(graded.collected)
    collected = f"{when} UTC" if when else ""
    return {
        STAMP: graded.stamp if time_told(graded.stamp) else collected,
        SECRET_FILE: graded.secret or made_up(graded.result.key),
    }


def write_pages(
    taught: "Class",
    graded: Graded,
    assignment: Assignment,
    marks: Mapping[str, Marks],
    shown: Shown = ALL,
    replies: Replies = NO_REPLIES,
    *,
    changed_only: bool = False,
) -> None:
    """Write the student's pages, and what hands them out; arguments as above.

    With `changed_only`, those that say something else than what there is to say today.
    """
    result = graded.result
    folder = taught.feedback / result.student / result.assignment
    stamps = {
        notebook.name: _stamp(result, marks.get(notebook.name, Marks()), shown, replies)
        for notebook in assignment.notebooks
    }
    paths = {name: folder / f"{name}.html" for name in stamps}
    if changed_only and all(made_of(paths[name]) == stamp for name, stamp in stamps.items()):
        who = result.student, result.assignment
        mend_exchange(taught, who, _for_the_exchange(graded))
        return
    for name, text in feedback_pages(result, assignment, marks, shown, replies):
        write_whole(paths[name], stamped(text, stamps[name]))
    for folder in (taught.autograded, taught.feedback):
        own = folder / result.student / result.assignment
        beside = _for_the_exchange(graded)
        if folder == taught.autograded and not time_told(graded.stamp):
            del beside[STAMP]  # as nbgrader has it where none was handed in
            (own / STAMP).unlink(missing_ok=True)
        for name, text in beside.items():
            write_whole(own / name, text)
        if taught.is_shared:
            _share(own)


def _share(folder: Path) -> None:
    """Let the group write into a submission's folder and those above it, as nbgrader does."""
    for each in (folder, *folder.parents[:2]):
        mode = each.stat().st_mode
        if mode & OF_THE_GROUP != OF_THE_GROUP:
            with suppress(PermissionError):  # another of them has made it
                each.chmod((mode | OF_THE_GROUP) & 0o7777)


def mend_exchange(taught: "Class", who: tuple[str, str], wanted: Mapping[str, str]) -> None:
    """See that what lies beside pages says what it should, where it lies there."""
    for folder in (taught.autograded, taught.feedback):
        for name, text in wanted.items():
            path = folder.joinpath(*who, name)
            if path.is_file() and path.read_bytes() != text.encode():
                write_whole(path, text)


def _stamp(result: Result, marks: Marks, shown: Shown, replies: Replies) -> str:
    """Changes when anything does that a page says."""
    points = marks.points
    by_hand, comments = sorted(marks.by_hand.items()), sorted(marks.comments.items())
    said: tuple = (result.key, f"{points.given:.6f}", points.late, by_hand, comments)
    if shown != ALL:
        said += (shown.hidden, shown.words)
    if replies:
        said += (sorted(replies.items()),)
    return hashlib.sha256(repr(said).encode("utf-8", "replace")).hexdigest()


def graded_notebooks(result: Result, assignment: Assignment) -> Iterator[tuple[str, str]]:
    """The graded notebooks by name, as text."""
    for notebook, outcome in _outcomes(result, assignment):
        try:
            text = rebuild(notebook, outcome)
        except Exception as error:  # noqa: BLE001 - the gradebook has the scores all the same
            text = rebuild(notebook, _unshown(outcome, error))
        yield notebook.name, text


def feedback_pages(
    result: Result,
    assignment: Assignment,
    marks: Mapping[str, Marks] = NO_MARKS,
    shown: Shown = ALL,
    replies: Replies = NO_REPLIES,
) -> Iterator[tuple[str, str]]:
    """What the student gets to read, by notebook."""
    from autograder.classroom import feedback

    student = readable(plain(result.student))
    for notebook, outcome in _outcomes(result, assignment):
        own = marks.get(notebook.name)
        asked = [
            (one, replies.get(one.name, ""))
            for one in asked_in(outcome, result.student, result.assignment)
        ]
        try:
            text = feedback.page(outcome, notebook, student, marks=own, shown=shown, asked=asked)
        except Exception as error:  # noqa: BLE001 - as above
            bare = _unshown(outcome, error)
            text = feedback.page(bare, notebook, student, marks=own, shown=shown)
        yield notebook.name, text


def _unshown(outcome: NotebookResult, error: Exception) -> NotebookResult:
    """A notebook of which only the scores can be shown, without a word of the student's."""
    verdicts = tuple(
        Verdict(v.test, v.status, v.score, v.points, hidden=v.hidden) for v in outcome.verdicts
    )
    note = f"This could not be written in full ({type(error).__name__}); the scores are right."
    reason = f"it is 0 and cannot be shown ({type(error).__name__})" if outcome.reason else ""
    return NotebookResult(outcome.name, verdicts, notes=(note,), reason=reason)


def _outcomes(result: Result, assignment: Assignment) -> Iterator[tuple[Notebook, NotebookResult]]:
    """Every notebook of the assignment with what came of it, also if nothing did."""
    found = {notebook.name: notebook for notebook in result.notebooks}
    for notebook in assignment.notebooks:
        reason = result.reason or "no such notebook was handed in"
        yield notebook, found.get(notebook.name) or NotebookResult(notebook.name, reason=reason)
