"""What an instructor may set for an assignment.

Rules lie beside the assignment's source, in solutions/<chapter>/rules.toml or, in a course that
nbgrader alone manages, in source/<assignment>/rules.toml. All of it is optional:

    [defaults]                    # for every question; the values are the ones without a file
    seconds = 30                  # for one test cell, of work (see isolation/clock.py)
    memory_mb = 4096
    forbid = ["numpy.linalg"]

    ["question-id"]               # the grade_id of a solution cell; adds to the defaults
    forbid = ["sorted", "numpy.sort", ".sort"]
    allow = ["numpy.linalg.norm"]
    seconds = 60

    [late]
    policy = "per-day"            # or "none" (the default), or "zero"
    due = 2026-03-01T23:59:00+01:00
    rate = 0.1                    # of the score, for each day begun after the due time
    grace_hours = 2               # this late is not late
    times = "../times.csv"        # from the LMS: columns student and submitted, perhaps assignment;
                                  # not in the assignment's folder, which nbgrader hands out
    trust_timestamp = false       # true: believe timestamp.txt; safe after zip_collect alone

    [feedback]
    hidden = "always"             # or "after-due": when students read what hidden tests found
    looks_a_day = 3               # at that, for one student; by default as many as they like

    [files]
    allow = ["*.csv"]             # of what a student hands in: plain files that answers may read

What `forbid` may hold:

    "numpy.sort"      this function under any alias, and a method `sort` of any value
    "numpy.linalg"    everything in a module
    "softsign"        anything of this name: function, method, in any module
    "sorted"          a builtin: that builtin, and no method
    ".sort"           the method only
    "any convolution" torch's operators that are one, or have one inside; the ideas that can be
                      named so are in `autograder.bridge.ideas`
    "any sorting"     whatever puts values in order, of Python and NumPy as well: who forbids
                      `sorted` alone forbids no `heapq`, no `numpy.unique` and no `torch.topk`

A field or method of the student's own classes is none of these.

Where something is forbidden, ways to reach a name by its text (`eval`, `getattr` with a computed
name, `globals()`, ...), to hand on a module as a value, to compile code out of sight and to start
another program or process are forbidden too, unless `allow` names them. So is a library that nobody
has read for such ways (`autograder.judge.vetted`), but for those that the notebook imports or the
rules name; of a module of the course's own what loads, runs or gets something by what it is handed
(`autograder.judge.own_modules`). Searched are the answer
and, of the student's other cells and of the modules that they write (`%%writefile`, `write`), the
statements that make what it uses, and those that set something inside a library, which every answer
then uses. Cells are read as IPython reads them, with the code that magics run. A name stands for
what it was given last before it is used, and a builtin's name for the student's own if that was
given to it.

While the tests of the question run, operators of tensor libraries, and functions and classes
written in Python, are stopped as well (`autograder.bridge.watch`); a function written in terms of a
forbidden one is forbidden with it. No other process of the student's runs meanwhile, since nothing
is stopped in it: those that cells have left are ended, and none can be started. What could give a
name its meaning out of sight, or undo the stops, is no part of the answer (`broken_rules.unread`):
such statements elsewhere in the notebook, those that use what is forbidden when it is not stopped
yet, what a name stood for before, cells too long or too deep to be read, and imported modules whose
text is not seen. Nor is Python's own meaning of a builtin's name that the student gives another. An
answer that earns points beside them is run once more without them, and has to earn the same. A
broken rule costs the points of the question's tests.

Open in principle: the stops live in the student's own process, so what undoes them by a name that
is not known here is not seen; nor is a builtin that is handed on inside a module's C code; nor what
a function of another answer leaves in a file when it is called by tests of its own. Whoever copies
a finished part's text into the answer has an answer that keeps to the rules.

Nobody is late by a time that a student can set. Files keep the time that their student gave them
when `nbgrader collect` copies them, and timestamp.txt comes from the student as well; then the
LMS's list says who is late. `nbgrader zip_collect` writes timestamp.txt itself, from the names that
the LMS gave. Of whom nothing trusted says when it was, that one is in time, and the report says so.
"""

import builtins
import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

from autograder.bridge.ideas import IDEAS, MARK, in_full
from autograder.common.course import CourseError
from autograder.common.names import alike, composed
from autograder.judge.forbidden import CALLED_FOR_IT, IN_TERMS_OF, covers
from autograder.judge.lateness import Late, read_late
from autograder.judge.showing import Showing, read_showing
from autograder.judge.toml_tables import checked, dotted, names, nearest, positive, whole

TABLES = ("defaults", "late", "feedback", "files")  # beside those of questions


@dataclass(frozen=True)
class QuestionRules:
    """What holds for one question."""

    forbid: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    seconds: float = 30.0
    memory_mb: int = 4096

    @property
    def forbidden(self) -> tuple[str, ...]:
        """The forbidden names that are not allowed again, and what is written in terms of them."""
        more = (one for name in self.forbid for one in IN_TERMS_OF.get(name.partition(".")[0], ()))
        named = dict.fromkeys((*self.forbid, *more))
        return tuple(name for name in named if name not in self.allow)

    @property
    def operations_forbidden(self) -> tuple[str, ...]:
        """The forbidden names that can be stopped while an answer runs."""
        more = (one for name in self.forbid for one in CALLED_FOR_IT.get(name, ()))
        return tuple(
            name
            for name in dict.fromkeys((*self.forbid, *more))
            if not hasattr(builtins, name) and not any(covers(name, one) for one in self.allow)
        )


@dataclass(frozen=True)
class Rules:
    """An assignment's rules."""

    defaults: QuestionRules = QuestionRules()
    questions: Mapping[str, QuestionRules] = field(default_factory=dict)
    late: Late = field(default_factory=Late)
    feedback: Showing = field(default_factory=Showing)
    files: tuple[str, ...] = ()

    def for_question(self, id: str) -> QuestionRules:
        """The rules of the question with this solution cell."""
        return self.questions.get(id, self.defaults)

    def allows_file(self, name: str) -> bool:
        """Whether a submission's file of this name (with folders, by /) is taken along."""
        return any(fnmatch(composed(name), composed(pattern)) for pattern in self.files)

    def file_as(self, name: str) -> str:
        """The name under which an answer finds such a file: as the rules or as programs write it.

        A Mac writes ö as two signs in names of files, and a keyboard as one in a program.
        """
        known = alike(self.files)
        return known.get(composed(name), composed(name))


def read_rules(path: Path, assignment: str, questions: Iterable[str]) -> Rules:
    """Read a rules.toml; without one, everything is allowed and nothing is late."""
    if not os.path.lexists(path):
        return Rules()
    if not path.is_file():  # as a link that leads nowhere: nobody is graded without them unawares
        raise CourseError(f"{path} is no file that can be read; mend it, or remove it.")
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise CourseError(f"{path} is no TOML ({error}); mend that line.") from error
    known = sorted(questions)
    for name, table in content.items():
        if name not in (*TABLES, *known):
            raise CourseError(
                f"{path}: [{name}] is neither a solution cell of {assignment} nor one of "
                f"{', '.join(TABLES)}{nearest(name, [*known, *TABLES])}."
            )
        if not isinstance(table, dict):
            raise CourseError(f"{path}: {name} should be a table; write [{name}] on its own line.")
    defaults = _question(path, "defaults", content.get("defaults", {}), QuestionRules())
    late = read_late(path, assignment, content.get("late", {}))
    return Rules(
        defaults,
        {id: _question(path, id, content[id], defaults) for id in known if id in content},
        late,
        read_showing(path, content.get("feedback", {}), late.due),
        checked(path, "files", content.get("files", {}), {"allow": names}).get("allow", ()),
    )


def _question(path: Path, name: str, table: dict, defaults: QuestionRules) -> QuestionRules:
    kinds = {"forbid": dotted, "allow": dotted, "seconds": positive, "memory_mb": whole}
    found = checked(path, name, table, kinds)
    return QuestionRules(
        defaults.forbid + _in_full(path, name, found.get("forbid", ())),
        defaults.allow + _in_full(path, name, found.get("allow", ())),
        found.get("seconds", defaults.seconds),
        found.get("memory_mb", defaults.memory_mb),
    )


def _in_full(path: Path, table: str, entries: Iterable[str]) -> tuple[str, ...]:
    """Entries with what their ideas stand for."""
    for entry in entries:
        idea = entry.removeprefix(MARK)
        if entry.startswith(MARK) and idea not in IDEAS:
            raise CourseError(
                f"{path}: [{table}] names {entry!r}; of ideas there are "
                f"{', '.join(map(repr, IDEAS))}{nearest(idea, IDEAS)}."
            )
    return tuple(name for entry in entries for name in in_full(entry))
