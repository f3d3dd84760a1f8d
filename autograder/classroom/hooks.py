"""The same grader behind nbgrader's own entrances: `nbgrader autograde` and formgrader's button.

nbgrader_config.py names three classes of this module:

    c.Autograde.exporter_class = "autograder.classroom.hooks.AnySubmission"
    c.Autograde.sanitize_preprocessors = ["autograder.classroom.hooks.Rebuild"]
    c.Autograde.autograde_preprocessors = ["autograder.classroom.hooks.Grade"]

nbgrader still walks through the submissions one by one, and decides which of them are new. What a
student handed in is never parsed by it: the exporter gives the preprocessors an empty notebook, and
they put the instructor's, with the student's answers, in its place. A class without a single file
that ends in .ipynb is the one thing that nbgrader refuses before any of this is asked.
"""

import fnmatch
import logging
import shlex
import shutil
import weakref
from datetime import datetime
from pathlib import Path
from types import MethodType
from typing import Any

import nbformat
from nbconvert.exporters import NotebookExporter
from nbformat import NotebookNode
from nbgrader.converters.base import BaseConverter, NbGraderException
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import NbGraderPreprocessor

from autograder.authoring.building import build_changed
from autograder.authoring.processes import require_sandbox
from autograder.authoring.rehearsal import rehearsed
from autograder.classroom.classes import from_root
from autograder.classroom.grade import GONE, IN_DOUBT, Grader
from autograder.classroom.gradebook import moment
from autograder.classroom.nbgrader_course import (
    called_as,
    class_of,
    said,
    student_of,
    take_out_odd_names,
)
from autograder.classroom.result_files import graded_notebooks
from autograder.classroom.warm import Warm
from autograder.common.course import CourseError, without_effect
from autograder.common.names import clean_log, shown, visible
from autograder.common.results import Result
from autograder.common.startup import use_own_tools


class Collected(CourseDirectory):
    """The course's folders, with nothing in them that a student could have written believed."""

    def get_existing_timestamp(self, dest_path: str) -> datetime | None:
        """When something came to lie there: no file in it says that, nor a time that can be set."""
        try:
            times = [path.lstat().st_ctime for path in (Path(dest_path), *_notebooks(dest_path))]
        except OSError:
            return None
        return moment(max(times))


def _notebooks(folder: str) -> list[Path]:
    return list(Path(folder).glob("*.ipynb"))


class AnySubmission(NotebookExporter):
    """Takes every submission, whatever lies in its folder; nothing of it is parsed here."""

    def __init__(self, **options: Any):
        """Look over the submissions that nbgrader found; it is the exporter's parent."""
        super().__init__(**options)
        if isinstance(self.parent, BaseConverter):
            _prepare(self.parent)

    def from_filename(
        self, filename: str, resources: dict[str, Any] | None = None, **options: Any
    ) -> tuple[Any, dict[str, Any]]:
        """An empty notebook, which the preprocessors fill."""
        resources = resources if resources is not None else {}
        path = Path(filename)
        resources["metadata"] = {"name": path.stem, "path": str(path.parent)}
        return self.from_notebook_node(nbformat.v4.new_notebook(), resources, **options)


class Rebuild(NbGraderPreprocessor):
    """Grade the submission, and put the instructor's notebook with its answers in its place."""

    def preprocess(
        self, nb: NotebookNode, resources: dict[str, Any]
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """Nothing of `nb` is used."""
        return _graded(self, resources["nbgrader"]), resources


class Grade(NbGraderPreprocessor):
    """The graded notebook; gradebook and feedback page were written with it."""

    def preprocess(
        self, nb: NotebookNode, resources: dict[str, Any]
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """Nothing of `nb` is used."""
        return _graded(self, resources["nbgrader"]), resources


class _Run:
    """One run of nbgrader's Autograde; the warm process starts with its first submission."""

    def __init__(self, coursedir: CourseDirectory, log: logging.Logger):
        use_own_tools()
        self._log = log
        self._taught = class_of(coursedir)
        name = coursedir.assignment_id
        build_changed(self._taught.course, [name])
        self._assignments = {name: self._taught.read(name)}
        require_sandbox()
        self._warm = Warm(self._taught.course, self._assignments, jobs=1)
        self.close = weakref.finalize(self, self._warm.close)
        self._last: tuple[str, str] = ("", "")
        self._texts: dict[str, str] = {}
        self._is_rehearsed = False
        self.enter()

    def enter(self) -> None:
        """Make the gradebook know the assignment, and finish what an earlier run left."""
        with Grader(self._taught, self._assignments, self._warm) as grader:
            grader.open()
            for sentence in grader.put_back:
                self._log.warning(sentence)

    def _rehearse(self) -> None:
        """Say what is wrong with the tests, once, before the first submission."""
        course = self._taught.course
        if self._is_rehearsed or course.chapters():  # these were tried when they were released
            return
        self._is_rehearsed = True
        found = rehearsed(course, [*self._assignments])
        for words in filter(None, (*found.notes, found.words())):
            self._log.warning(visible(words))

    def notebook(self, where: dict[str, str]) -> NotebookNode:
        """The graded notebook of the submission that nbgrader is at."""
        student, assignment = where["student"], where["assignment"]
        if (student, assignment) != self._last:
            self._texts = self._grade(student, assignment)
            self._last = student, assignment
        return nbformat.reads(self._texts[where["notebook"]], as_version=4)

    def grade_apart(self, student: str) -> None:
        """Grade a submission that nbgrader cannot name, unless it is graded as it is."""
        (assignment,) = self._assignments
        self._graded(student, assignment, again=False)

    def submissions(self, pattern: str) -> list[Path]:
        """Where these students' work has to lie, of whom there is something to grade or to say."""
        (assignment,) = self._assignments
        everybody = self._taught.students()
        named = called_as(everybody, pattern)
        left_out = self._taught.excluded(named)
        return [
            self._taught.submission(student, assignment)
            for student in named
            if student not in left_out and self._taught.place(student, assignment) is not None
        ]

    def names(self) -> list[str]:
        """The assignment's notebooks."""
        (assignment,) = self._assignments.values()
        return [notebook.name for notebook in assignment.notebooks]

    def _grade(self, student: str, assignment: str) -> dict[str, str]:
        found = self._graded(student, assignment, again=True)
        if not found:
            raise NbGraderException(f"{shown(student)}/{assignment}: {GONE}")
        return dict(graded_notebooks(found[0], self._assignments[assignment]))

    def _graded(self, student: str, assignment: str, *, again: bool) -> list[Result]:
        """Grade a submission; none if that is not needed."""
        self._rehearse()
        with Grader(self._taught, self._assignments, self._warm) as grader:
            found = [*grader.grade(grader.todo([(student, assignment)], again))]
            for words in grader.gone:
                self._log.warning(visible(words))
            for one in grader.in_doubt:
                command = ["nbgrader", "autograde", assignment, "--student", student, "--force"]
                words = f"{one} is {IN_DOUBT}. Grade it once more: {shlex.join(command)}"
                self._log.warning(visible(words))
        return found


_runs: "weakref.WeakKeyDictionary[BaseConverter, _Run]" = weakref.WeakKeyDictionary()


class _Stop(BaseException):
    """Ends a run of nbgrader, which would go on with the next submission after an exception."""


def _graded(preprocessor: NbGraderPreprocessor, where: dict[str, str]) -> NotebookNode:
    """The graded notebook; nbgrader is the parent of the preprocessor's exporter."""
    exporter: Any = preprocessor.parent
    converter: Any = exporter.parent
    try:
        return _run_of(converter).notebook(where)
    except CourseError as error:  # a full disk, a locked gradebook: the next would end the same way
        begun = Path(converter._format_dest(where["assignment"], where["student"]))
        if not list(begun.glob("*.ipynb")):  # else nbgrader would take it for graded
            shutil.rmtree(begun, ignore_errors=True)
        raise _Stop(str(error)) from error


def _convert(converter: BaseConverter) -> None:
    """As nbgrader does, but what ends it all ends it with one sentence."""
    try:
        type(converter).convert_notebooks(converter)
    except _Stop as stop:
        raise said(converter, stop) from stop


def _run_of(converter: BaseConverter) -> _Run:
    if converter not in _runs:
        for earlier in list(_runs.values()):
            earlier.close()
        try:
            _runs[converter] = _Run(_safe(converter), converter.log)
        except CourseError as error:
            raise said(converter, error) from error
    return _runs[converter]


def _safe(converter: BaseConverter) -> Collected:
    """nbgrader's course directory once more, as one that believes nothing of a submission."""
    given: Any = converter.coursedir
    safe = Collected(config=converter.config)
    for name in given.trait_names(config=True):
        setattr(safe, name, getattr(given, name))
    safe.db_url = from_root(safe.db_url, Path(safe.root))
    safe.ignore = ["*"]  # a student's other files are not copied: links, pipes, programs
    return safe


def _prepare(converter: BaseConverter) -> None:
    """Let nbgrader see every submission, under the names that the instructor gave the notebooks."""
    clean_log(converter.log)
    run = _run_of(converter)
    for words in without_effect(converter.config):
        converter.log.warning(words)
    converter.coursedir = _safe(converter)
    converter.convert_notebooks = MethodType(_convert, converter)
    chosen = fnmatch.filter(run.names(), converter.coursedir.notebook_id)
    here = converter.coursedir
    try:
        for folder in run.submissions(here.student_id):
            converter.assignments[str(folder)] = [str(folder / f"{name}.ipynb") for name in chosen]
        for odd in take_out_odd_names(converter):
            converter.log.info("Grading %s", shown(odd))
            run.grade_apart(student_of(odd))
    except CourseError as error:
        raise said(converter, error) from error
