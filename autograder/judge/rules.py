"""What an instructor may set for an assignment, and whether an answer keeps to it.

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

    [files]
    allow = ["*.csv"]             # of what a student hands in: plain files that answers may read

What `forbid` may hold:

    "numpy.sort"      this function under any alias, and a method `sort` of any value
    "numpy.linalg"    everything in a module
    "softsign"        anything of this name: function, method, in any module
    "sorted"          a builtin: that builtin, and no method
    ".sort"           the method only

A field or method of the student's own classes is none of these.

Where something is forbidden, ways to reach a name by its text (`eval`, `getattr` with a computed
name, `globals()`, ...), to compile code out of sight and to start another program or process are
forbidden too, unless `allow` names them. Searched are the answer and, of the student's other cells
and of the modules that they write (`%%writefile`, `write`), the statements that make what it uses,
and those that set something inside a library, which every answer then uses. Cells are read as
IPython reads them, with the code that magics run. A name stands for what it was given last before
it is used, and a builtin's name for the student's own if that was given to it.

While the tests of the question run, operators of tensor libraries, and functions and classes
written in Python, are stopped as well (`autograder.bridge.watch`); a function written in terms of a
forbidden one is forbidden with it. What could give a name its meaning out of sight, or undo the
stops, is no part of the answer (`unread`): such statements elsewhere in the notebook, what a name
stood for before, cells too long or too deep to be read, and imported modules whose text is not
seen. Nor is Python's own meaning of a builtin's name that the student gives another. An answer that
earns points beside them is run once more without them, and has to earn the same. A broken rule
costs the points of the question's tests.

Open in principle: the stops live in the student's own process, so what undoes them by a name that
is not known here is not seen; nor is a module that is written, by a text that is computed, under
the name of one that is installed; nor a builtin that is handed on inside a module's C code. Whoever
copies a finished part's text into the answer has an answer that keeps to the rules.

Nobody is late by a time that a student can set. Files keep the time that their student gave them
when `nbgrader collect` copies them, and timestamp.txt comes from the student as well; then the
LMS's list says who is late. `nbgrader zip_collect` writes timestamp.txt itself, from the names that
the LMS gave. Of whom nothing trusted says when it was, that one is in time, and the report says so.
"""

import ast
import builtins
import csv
import difflib
import importlib.util
import math
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from fnmatch import fnmatch
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from autograder.bridge.watch import WAYS_ROUND, is_method, is_module, is_seen, is_stopped
from autograder.common.course import CourseError
from autograder.common.names import alike, composed, plain, readable, shown
from autograder.common.syntax import parse, read
from autograder.common.times import moment
from autograder.judge import walked
from autograder.judge.walked import Bindings, Dotted, Import, Statement

# What reaches a name by its text, runs text, looks into other code, or could undo the stops.
# fmt: off
BY_TEXT = frozenset({
    "eval", "exec", "compile", "globals", "locals", "vars", "get_ipython",
    "__annotations__", "__import__", "__loader__", "__spec__", "__builtins__",
})
BY_TEXT_MODULES = (
    "importlib", "imp", "pkgutil", "zipimport", "runpy", "builtins", "ctypes", "cffi", "gc",
    "inspect", "pickle", "dill", "cloudpickle", "marshal", "code", "codeop", "cProfile", "profile",
    "trace", "bdb", "pdb", "unittest.mock", "autograder", "IPython", "ipykernel", "pydoc",
    "doctest", "rlcompleter", "shelve", "joblib", "logging.config", "_string", "sympy",
    "numexpr", "jinja2", "bltns", "jaxtyping",
    "numba", "jax", "tensorflow", *WAYS_ROUND,
)
PROGRAMS = (  # another process, which nothing watches
    "subprocess", "_posixsubprocess", "multiprocessing", "concurrent.futures.process",
    "concurrent.futures.ProcessPoolExecutor", "pty", "posix", "asyncio.subprocess",
    "asyncio.create_subprocess_exec", "asyncio.create_subprocess_shell", "webbrowser", "pexpect",
    *(f"os.{name}" for name in (
        "fork", "forkpty", "system", "popen", "posix_spawn", "posix_spawnp",
        "execl", "execle", "execlp", "execlpe", "execv", "execve", "execvp", "execvpe",
        "spawnl", "spawnle", "spawnlp", "spawnlpe", "spawnv", "spawnve", "spawnvp", "spawnvpe",
    )),
)
BY_TEXT_FUNCTIONS = (
    "operator.attrgetter", "operator.methodcaller", "sys.modules", "sys._getframe",
    "sys._current_frames", "sys.meta_path", "sys.path_hooks", "sys.settrace", "sys.setprofile",
    "threading.settrace",
    "threading.setprofile", "timeit.timeit", "timeit.repeat", "timeit.Timer",
    "types.FunctionType", "types.CodeType", "typing.get_type_hints", "typing.ForwardRef",
    "string.Formatter", "unittest.TestLoader", "unittest.defaultTestLoader", "unittest.main",
    "pandas.eval", "pandas.read_pickle", "numpy.f2py", "dataclasses._create_fn",
    "dataclasses._FuncBuilder", "numpy.testing.runstring", "numpy.testing.rundocs",
    "numpy.testing.measure", "numpy.testing._private", "numpy.ma.core._frommethod",
    "traitlets.import_item", "traitlets.utils.importstring", "xmlrpc.server",
    "pytest.importorskip", "pytest.MonkeyPatch", "_pytest", "matplotlib.backends", *PROGRAMS,
)
BY_NAME = frozenset({"operator.attrgetter", "operator.methodcaller"})
PLAIN = frozenset({"gc.collect", "gc.enable", "gc.disable"})  # of such modules, and harmless
IN_TERMS_OF = {  # parts of Python's library that call C functions, which are not seen to run
    "heapq": ("queue.PriorityQueue", "asyncio.PriorityQueue", "sched.scheduler"),
}
BY_TEXT_ATTRIBUTES = frozenset({
    "__dict__", "__builtins__", "__globals__", "__getattribute__", "__subclasses__", "__import__",
    "__loader__", "__spec__", "__self__", "__code__", "__closure__", "__mro__", "__base__",
    "__bases__", "__reduce__", "__reduce_ex__", "f_back", "f_builtins", "f_globals", "f_locals",
    "tb_frame", "gi_frame", "cr_frame", "ag_frame", "_C", "custom_op",
    "gi_code", "cr_code", "ag_code", "f_code", "__annotations__",
    "__getattr__", "decompose", "_op_dk", "py_impl", "redispatch",  # operators by their text
    "builtins", "bltns", "sys", "_sys",  # as other modules hold them
    "_ip", "user_ns", "user_global_ns",
    "subprocess_exec", "subprocess_shell", "run_cell", "run_line_magic", "run_cell_magic",
})
SET_BY_TEXT = frozenset(name for name in BY_TEXT_ATTRIBUTES if name.startswith("__"))
# fmt: on
WAYS = frozenset({*BY_TEXT_MODULES, *BY_TEXT_FUNCTIONS})
WORDS = frozenset({*BY_TEXT, *BY_TEXT_ATTRIBUTES, "getattr"})
WORDS |= {part for way in WAYS for part in way.split(".")}
LONGEST_WAY = max(way.count(".") + 1 for way in WAYS)
ORDINARY = frozenset({"trace", "profile", "code"})  # modules, but of libraries plain functions
ALL = -1  # statements of a cell
UNKNOWN = "*"  # the name of a module whose text is written to a file of any name
SHAPE = re.compile(r"(?:\.\.\.|[\w\s*#?+/=-])*")  # of an array, in which no code is hidden
# A module's name, as some loaders take it.
MODULE = re.compile(r"(?:\w+://)?([^\W\d]\w*(?:\.\w+)*)")
COMPUTED = "getattr with a computed name"
ENCODING = re.compile(r"\A((?:.*\n)?[ \t\f]*)#.*coding[:=].*")  # what names a module's
DAY = 86400
NAMED = 5  # students in one sentence
MOST_ABOVE = 10  # classes of which one is made, one by another
MOST_WAYS = 50_000  # of an answer to what it uses, at the times at which it may be used
MAX_READ = 400_000  # characters of one student's code that are searched
POLICIES = ("none", "zero", "per-day")
NO_TIME = "timestamp.txt is missing or says no time that can be read"


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
        return tuple(
            name
            for name in dict.fromkeys(self.forbid)
            if not hasattr(builtins, name) and not any(_covers(name, one) for one in self.allow)
        )


@dataclass(frozen=True)
class Late:
    """What a late submission loses."""

    policy: str = "none"
    due: datetime | None = None
    rate: float = 0.0
    grace_hours: float = 0.0
    trust_timestamp: bool = False
    times: Mapping[str, float] = field(default_factory=dict)  # student -> when, by the LMS
    listed: Path | None = None  # in which those stand: nothing for students to read
    shared: frozenset[str] = frozenset()  # names, composed, that several folders have

    def handed_in(self, student: str, collected: float | None) -> float | None:
        """When a student handed in, if something says so that is trusted.

        Args:
            student: the name of the folder.
            collected: what the submission says, or the disk on which it lies.
        """
        names = (student, readable(plain(student)))
        for name in names:
            if name in self.times:
                return self.times[name]
        for name in map(composed, names):  # if it may be no other's
            if name in self._alike and name not in self.shared:
                return self.times[self._alike[name]]
        return collected if self.trust_timestamp else None

    @cached_property
    def _alike(self) -> dict[str, str]:
        return alike(self.times)

    def seconds_late(self, student: str, collected: float | None, extension: float = 0.0) -> float:
        """How long after the due time; 0 within the grace, or if no time is known."""
        when = self.handed_in(student, collected)
        if self.due is None or when is None:
            return 0.0
        late = when - extension - self.due.timestamp()
        return late if late > self.grace_hours * 3600 else 0.0

    def penalty(self, score: float, seconds_late: float) -> float:
        """Points that a submission with this score loses."""
        if self.policy == "none" or seconds_late <= 0:
            return 0.0
        if self.policy == "zero":
            return score
        return score * min(1.0, self.rate * math.ceil(seconds_late / DAY))

    def unknown(self, students: Iterable[str]) -> str:
        """What to do if lateness costs points and of some students it cannot be known; or empty."""
        if self.trust_timestamp:
            return ""
        return self.untimed([one for one in students if self.handed_in(one, None) is None])

    def untimed(self, students: Sequence[str]) -> str:
        """The same of these students, of whom it is not known."""
        if self.policy == "none" or not students:
            return ""
        named = ", ".join(map(shown, students[:NAMED])) + (", ..." if len(students) > NAMED else "")
        if self.trust_timestamp:
            return f"{NO_TIME} in {len(students)} submissions ({named}); they count as in time."
        return (
            f"no time that its student cannot set is known of {len(students)} submissions ({named})"
            "; they count as in time. Name the LMS's list in rules.toml, as times under [late]."
        )


@dataclass(frozen=True)
class Rules:
    """An assignment's rules."""

    defaults: QuestionRules = QuestionRules()
    questions: Mapping[str, QuestionRules] = field(default_factory=dict)
    late: Late = Late()
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


@dataclass(frozen=True)
class Place:
    """Where an answer stands among the student's other cells."""

    above: int  # so many of them stand above it
    run: int  # so many have run when it is tested


@dataclass(frozen=True)
class Broken:
    """A rule that an answer breaks."""

    name: str
    line: int
    words: str  # for the student


def read_rules(path: Path, assignment: str, questions: Iterable[str]) -> Rules:
    """Read a rules.toml; without one, everything is allowed and nothing is late."""
    if not path.is_file():
        return Rules()
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CourseError(f"{path} is no TOML ({error}); mend that line.") from error
    known = sorted(questions)
    for name, table in content.items():
        if name not in ("defaults", "late", "files", *known):
            raise CourseError(
                f"{path}: [{name}] is neither a solution cell of {assignment} nor defaults, late "
                f"or files{_nearest(name, [*known, 'defaults', 'late', 'files'])}."
            )
        if not isinstance(table, dict):
            raise CourseError(f"{path}: {name} should be a table; write [{name}] on its own line.")
    defaults = _question(path, "defaults", content.get("defaults", {}), QuestionRules())
    return Rules(
        defaults,
        {id: _question(path, id, content[id], defaults) for id in known if id in content},
        _late(path, assignment, content.get("late", {})),
        _checked(path, "files", content.get("files", {}), {"allow": _names}).get("allow", ()),
    )


def broken_rules(
    answer: str,
    rules: QuestionRules,
    others: Sequence[str] = (),
    imports: Sequence[str] = (),
    names: Collection[str] = (),
    place: Place | None = None,
) -> tuple[Broken, ...]:
    """Forbidden names that an answer uses, in the order of its lines.

    Args:
        answer: the answer's source.
        rules: what holds for its question.
        others: the student's own further cells; of those only what the answer uses is searched.
        imports: the instructor's cells; their imports say what a name stands for.
        names: what the question asks for. Then of the answer, too, only what these use is searched:
            a student may compare an answer with the ready function. Without them all of it counts.
        place: where the answer stands. Then what another cell made counts only if it is still what
            a name stands for when it is used. Without it all that has the name counts.
    """
    forbid = rules.forbidden
    if not forbid:
        return ()
    if len(answer) + sum(map(len, others)) > MAX_READ:
        words = f"your notebook holds more code than is read ({MAX_READ:,} characters)"
        return (Broken("too much code", 0, words),)
    taken = walked.cell(answer)
    if taken is None:
        return ()
    if taken.more:
        words = "your answer is too long, or nested too deep, to be read before it runs"
        return (Broken("too much code", 0, words),)
    asked = names or _only_imported(taken.statements)
    read = _read(answer, forbid, tuple(others), tuple(imports), frozenset(names), place)
    if read is None:
        words = "your notebook gives what it imports more names than can be followed"
        return (Broken("too many names", 0, words),)
    search = read.search(forbid, rules.allow, read.own)
    found = {}
    for part in read.own:
        mine = read.mine(part)
        for name, line in [*search.imported(part.holds, asked), *search.of(part.holds, mine)]:
            found.setdefault((name, part.where), _broken(name, line, part.where))
    return tuple(found.values())


@dataclass(frozen=True)
class Unread:
    """What could change how an answer runs, and was not searched: it is no part of the answer."""

    statements: frozenset[tuple[int, int]]  # (which other cell, which statement); -1: the answer's
    modules: frozenset[str]  # that are imported, and whose text nobody can read
    words: str  # for the student whose answer needs them
    meant: frozenset[tuple[int, int, str]] = frozenset()
    """Statements that give a builtin's name, which may not be used, another meaning."""


def unread(
    answer: str,
    rules: QuestionRules,
    others: Sequence[str] = (),
    imports: Sequence[str] = (),
    names: Collection[str] = (),
    place: Place | None = None,
) -> Unread:
    """What an answer in which `broken_rules` finds nothing should do without.

    That is what can give a name a meaning out of sight, take a stop away or ask another process,
    uses of what no stop is known for, and what a name stood for before it was given to something
    else; arguments as for `broken_rules`. To have it in a notebook breaks no rule: only running the
    answer without it shows whether the answer needs it.
    """
    forbid = rules.forbidden
    read = None
    if forbid and walked.cell(answer) is not None:
        read = _read(answer, forbid, tuple(others), tuple(imports), frozenset(names), place)
    if read is None:
        return Unread(frozenset(), frozenset(), "")
    hits = _hits_unread(read, forbid, rules.allow)
    modules = _modules_unread(read)
    for part, _ in hits:
        if part.statement < 0:
            modules |= part.modules - {UNKNOWN}
    meant = frozenset(read.meant({*forbid, *BY_TEXT, "getattr"} - {*rules.allow}))
    said = [f"{name} (line {line}{part.where or ' of its cell'})" for part, (name, line) in hits]
    said += [f"the module {name}" for name in sorted(modules)]
    said += ["a cell that is too long or nested too deep" for _ in read.dark]
    said += [f"Python's own {name}" for _, _, name in sorted(meant)]
    out = {(part.cell, part.statement) for part, _ in hits if part.statement >= 0}
    return Unread(
        frozenset(out | {(cell, ALL) for cell in read.dark}),
        frozenset(modules),
        f"your answer needs what {said[0]} does, which cannot be read before it runs; write the "
        "answer so that its own text shows what it calls"
        if said
        else "",
        meant,
    )


def _hits_unread(
    read: "_Read", forbid: tuple[str, ...], allow: tuple[str, ...]
) -> list[tuple["_Part", tuple[str, int]]]:
    """Statements that an answer should do without, each with the first reason for it."""
    own = {id(part) for part in read.own}
    before = {id(part) for part in read.before}
    unstopped = tuple(name for name in forbid if not is_seen(name))
    search = read.search(unstopped, allow, read.everything)
    strict = read.search(forbid, allow, read.everything) if before else search
    hits = []
    for part in read.everything:
        if id(part) not in own:
            found = (strict if id(part) in before else search).of(part.holds, read.mine(part))
            hits += [(part, found[0])] if found else []
    return hits


def statements(source: str) -> Iterator[tuple[int, str]]:
    """A cell's statements one by one, each with its number."""
    tree = read(source, aside=True)[0] or ast.Module([], [])
    yield from ((number, ast.unparse(node)) for number, node in enumerate(tree.body))


def module_cell(name: str, content: bytes) -> str:
    """A module that was handed in, as a cell that writes it."""
    text = walked.module_text(content)
    if text is None:
        return f"%%writefile '{name}'\n{content.decode('utf-8', 'replace')}"
    text = ENCODING.sub(r"\1#", text)  # it is text now, in no encoding
    return f"%%writefile '{name}'\n{text}"


def _broken(name: str, line: int, where: str) -> Broken:
    return Broken(
        name,
        line,
        f"your answer calls {name} (line {line}{where}), which this question does not allow; "
        "write it yourself",
    )


def _nearest(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), 1, 0.5)
    return f"; perhaps {close[0]} was meant" if close else ""


def _checked(path: Path, table: str, content: dict, kinds: dict) -> dict[str, Any]:
    """The values of a table, each of the kind that its key asks for."""
    for key in content:
        if key not in kinds:
            raise CourseError(
                f"{path}: [{table}] has no setting {key}; it may hold "
                f"{', '.join(kinds)}{_nearest(key, kinds)}."
            )
    values = {}
    for key, value in content.items():
        values[key], wanted = kinds[key](value)
        if values[key] is None:
            raise CourseError(f"{path}: {key} of [{table}] is {value!r}; write {wanted}.")
    return values


def _names(value: object) -> tuple[tuple[str, ...] | None, str]:
    good = isinstance(value, list) and all(isinstance(name, str) and name for name in value)
    return tuple(value) if good else None, 'a list of names, such as ["sorted"]'  # type: ignore


def _positive(value: object) -> tuple[float | None, str]:
    good = isinstance(value, int | float) and not isinstance(value, bool)
    good = good and 0 < value <= DAY  # type: ignore
    return value if good else None, "a number above 0, of a day at most"  # type: ignore


def _whole(value: object) -> tuple[int | None, str]:
    good = type(value) is int and 0 < value <= 10**9
    return value if good else None, "a whole number above 0"  # type: ignore


def _hours(value: object) -> tuple[float | None, str]:
    good = type(value) in (int, float) and math.isfinite(value) and value >= 0  # type: ignore
    return value if good else None, "a number of hours, 0 or more"  # type: ignore


def _share(value: object) -> tuple[float | None, str]:
    good = type(value) in (int, float) and 0 <= value <= 1  # type: ignore
    return value if good else None, "a share of the score, from 0 to 1"  # type: ignore


def _policy(value: object) -> tuple[str | None, str]:
    return value if value in POLICIES else None, f"one of {', '.join(POLICIES)}"  # type: ignore


def _moment(value: object) -> tuple[datetime | None, str]:
    wanted = "a date, a time and an offset, such as 2026-03-01T23:59:00+01:00"
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None, wanted
    good = isinstance(value, datetime) and value.tzinfo is not None
    return value if good else None, wanted  # type: ignore


def _flag(value: object) -> tuple[bool | None, str]:
    return value if isinstance(value, bool) else None, "true or false"


def _file(value: object) -> tuple[str | None, str]:
    return value if isinstance(value, str) and value else None, "a file's name, such as times.csv"


def _question(path: Path, name: str, table: dict, defaults: QuestionRules) -> QuestionRules:
    kinds = {"forbid": _names, "allow": _names, "seconds": _positive, "memory_mb": _whole}
    found = _checked(path, name, table, kinds)
    return QuestionRules(
        defaults.forbid + found.get("forbid", ()),
        defaults.allow + found.get("allow", ()),
        found.get("seconds", defaults.seconds),
        found.get("memory_mb", defaults.memory_mb),
    )


def _late(path: Path, assignment: str, table: dict) -> Late:
    kinds = {
        "policy": _policy,
        "due": _moment,
        "rate": _share,
        "grace_hours": _hours,
        "trust_timestamp": _flag,
        "times": _file,
    }
    found = _checked(path, "late", table, kinds)
    policy = found.get("policy", "none")
    for key, needed in (("due", policy != "none"), ("rate", policy == "per-day")):
        if needed and key not in found:
            raise CourseError(f"{path}: [late] has policy {policy} but no {key}; add {key} = ....")
    if "times" in found:
        found["listed"] = path.parent / found["times"]
        found["times"] = _times(found["listed"], assignment)
    return Late(**found)


def _times(path: Path, assignment: str) -> dict[str, float]:
    """When each student handed in, as the LMS has it; the last time counts."""
    if not path.is_file():
        raise CourseError(f"{path} is missing; [late] in rules.toml names it under times.")
    times: dict[str, float] = {}
    for number, row in enumerate(_rows(path), 2):
        if row.get("assignment", assignment) != assignment:
            continue
        try:
            if not (row["submitted"] or "").strip():
                continue  # who handed nothing in: nothing is known of when
            student, when = row["student"], moment(row["submitted"])
            if student is None:
                raise ValueError("a line that is too short")
            times[student] = max(when, times.get(student, when))
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise CourseError(
                f"{path}, line {number}: expected the columns student and submitted, with "
                "times such as 2026-03-01T23:59:00+01:00."
            ) from error
    return times


def _rows(path: Path) -> list[dict[str, str | None]]:
    """The lines of a table by its first one; None for what a short line has not."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return list(csv.DictReader(file))
    except (UnicodeDecodeError, csv.Error) as error:
        raise CourseError(
            f"{path} cannot be read ({error}); save it as CSV in UTF-8, as spreadsheets offer it."
        ) from error


@dataclass(frozen=True)
class _Part:
    """A statement at the top level of a student's cell, or of a module that a cell writes."""

    holds: Statement
    where: str  # of which cell, in words; empty for the answer's own
    cell: int = -1  # which of the other cells; -1 for the answer's own
    statement: int = -1  # which in its cell; -1 if it stands in a module
    modules: frozenset[str] = frozenset()  # that it is a part of, by the names to import them


def _parts(answer: str, others: Sequence[str]) -> Iterator[_Part]:
    """All statements of a student's: of the answer first, then of other cells and of modules."""
    cells = [(walked.cell(answer), "", -1)]
    for cell, text in enumerate(others):
        if file := walked.file(text):
            for statement in file.statements:
                yield _Part(statement, f" of your {file.name}", cell, modules=file.modules)
        else:
            cells.append((walked.cell(text), " of another cell of yours", cell))
    for taken, where, cell in cells:
        if taken is not None:
            for number, statement in enumerate(taken.statements):
                yield _Part(statement, where, cell, number)
            for statement in taken.written:
                where = " of a file that you write"
                yield _Part(statement, where, cell, modules=frozenset({UNKNOWN}))


Moment = tuple[int, int]  # in the order in which a notebook runs: a cell, a statement


@dataclass(frozen=True)
class _Read:
    """A student's statements, and which of them an answer is made of."""

    everything: Sequence[_Part]
    own: Sequence[_Part]
    given: Sequence[Bindings]  # of the instructor's cells
    before: Sequence[_Part]  # what names of it stood for before they were given to something else
    begin: Mapping[int, Moment]  # by the id of a part: when what it defines may be called first
    moments: Mapping[int, Moment]  # by the id of a part: when it runs
    dark: Sequence[int]  # other cells of which there may be more than is read
    hidden: frozenset[str]  # modules that cells write, and whose text cannot be read

    def search(
        self, forbid: tuple[str, ...], allow: tuple[str, ...], parts: Sequence[_Part]
    ) -> "_Search":
        """A search in these statements."""
        held = [part.holds for part in parts]
        names = frozenset().union(*(one.own for one in held))
        members = frozenset().union(*(one.members for one in held))
        fields = frozenset().union(*(one.fields for one in held))
        own = _Own(names, members, fields, self._classes, self._givens)
        return _Search(forbid, allow, _aliases(self.given, parts), own)

    def mine(self, part: _Part) -> "_Mine":
        """Names of builtins that stand for something of the student's in a statement."""
        if part.modules:
            return self._in_files.get(part.cell, NOTHING)
        if not self._meanings:
            return NOTHING
        now = self.moments[id(part)]
        later = self.begin.get(id(part), now)
        found = [(name, first) for name, (first, _, _) in self._meanings.items()]
        return _Mine(
            frozenset(name for name, first in found if first < now),
            frozenset(name for name, first in found if first < later),
        )

    def meant(self, names: Collection[str]) -> Iterator[tuple[int, int, str]]:
        """Where names of builtins that an answer uses are first given to something else."""
        used = {name for part in self.own if not part.modules for name in part.holds.uses}
        for name in used.intersection(names, self._meanings):
            _, cell, statement = self._meanings[name]
            yield cell, statement, name

    @cached_property
    def _meanings(self) -> dict[str, tuple[Moment, int, int]]:
        """Builtins' names that are given to something of the student's, and where first."""
        found: dict[str, tuple[Moment, int, int]] = {}
        lost = set[str]()
        for part in self.everything:
            lost |= part.holds.loses
            if not part.modules:
                here = (self.moments[id(part)], part.cell, part.statement)
                for name in part.holds.binds:
                    if hasattr(builtins, name):
                        found[name] = min(here, found.get(name, here))
        return {name: where for name, where in found.items() if name not in lost}

    @cached_property
    def _in_files(self) -> dict[int, "_Mine"]:
        """The same for modules, by the cells that write them."""
        found: dict[int, set[str]] = {}
        for part in self.everything:
            if part.modules and not part.holds.loses:
                names = {name for name in part.holds.binds if hasattr(builtins, name)}
                found.setdefault(part.cell, set()).update(names - part.holds.uses.keys())
        return {cell: _Mine(frozenset(), frozenset(names)) for cell, names in found.items()}

    @cached_property
    def _classes(self) -> dict[str, frozenset[str]]:
        """Members of the student's own classes, whose names stand for nothing else."""
        count = Counter(name for part in self.everything for name in part.holds.names)
        held = [(name, part.holds) for part in self.everything for name in part.holds.binds]
        once = {name: one for name, one in held if count[name] == 1}
        found = {name: one.tuple_class for name, one in once.items() if one.tuple_class}
        for _ in range(MOST_ABOVE):
            before = len(found)
            for name, one in once.items():
                node = one.plain_class
                above = [ast.unparse(base) for base in node.bases] if node else []
                if node and all(
                    b.rpartition(".")[2] in walked.HARMLESS or b in found for b in above
                ):
                    found[name] = one.members.union(*(found.get(base, ()) for base in above))
            if len(found) == before:
                break
        return found

    @cached_property
    def _givens(self) -> dict[str, list[ast.expr | None]]:
        """What the student's names are set to."""
        found: dict[str, list[ast.expr | None]] = {}
        for part in self.everything:
            for name, values in part.holds.givens.items():
                found.setdefault(name, []).extend(values)
        return found


@lru_cache(maxsize=2)  # the two searches in an answer begin with the same
def _read(
    answer: str,
    forbid: tuple[str, ...],
    others: tuple[str, ...],
    imports: tuple[str, ...],
    names: frozenset[str],
    place: Place | None,
) -> _Read | None:
    """Take a student's cells apart; arguments as for `broken_rules`. None if that is too much."""
    bound, known = locked_names(imports)
    packages = {name.partition(".")[0] for name in (*forbid, *WAYS_ROUND) if "." in name} - {""}
    everything = list(_parts(answer, others))
    try:
        patches = _Patches(packages, _aliases(bound, everything))
    except walked.TooMuch:
        return None
    uses = _Uses(everything, place, len(others), patches, packages | known)
    begin = uses.of(names)
    before: list[_Part] = []
    if uses.dropped:
        whole = _Uses(everything, None, len(others), patches, packages | known).of(names)
        before = [everything[number] for number in sorted(whole.keys() - begin.keys())]
    files = [file for text in others if (file := walked.file(text))]
    cells = [walked.cell(text) for text in others]
    return _Read(
        everything,
        [everything[number] for number in sorted(begin)],
        bound,
        before,
        {id(everything[number]): moment for number, moment in begin.items()},
        {id(part): uses.moments[number] for number, part in enumerate(everything)},
        [cell for cell, taken in enumerate(cells) if taken is not None and taken.more],
        frozenset().union(*(file.modules for file in files if not file.statements)),
    )


@lru_cache(maxsize=64)
def locked_names(imports: tuple[str, ...]) -> tuple[Sequence[Bindings], frozenset[str]]:
    """What names the instructor's cells bind to what, and the packages that they import."""
    trees = [tree for text in imports if (tree := parse(text))]
    bound = [walked.bindings(ast.walk(tree)) for tree in trees]
    origins = [origin for one in bound for _, origin in one.imports]
    return bound, frozenset(origin.partition(".")[0] for origin in origins)


def _aliases(given: Sequence[Bindings], parts: Sequence[_Part]) -> dict[str, set[str]]:
    return walked.aliases([*given, *(part.holds.bindings for part in parts)])


def _modules_unread(read: _Read) -> set[str]:
    """Modules that the student's text imports, that are not installed, and whose text is not seen.

    A cell that writes nothing but plain texts, and names a module's file, shows its text.
    """
    cells: dict[int, list[_Part]] = {}
    for part in read.everything:
        cells.setdefault(part.cell, []).append(part)
    seen: set[str] = set()
    hidden, named = set(read.hidden), set(read.hidden)
    for parts in cells.values():
        whole = [part.holds for part in parts if part.statement >= 0]
        files = {name for one in whole for name in one.files}
        named |= files
        if files and (written := [given for one in whole for given in one.handed]):
            plain = (walked.text(n) is not None or isinstance(n, ast.Constant) for n in written)
            (seen if all(plain) else hidden).update(files)
        seen.update(name for part in parts for name in part.modules)
    found = {name for part in read.everything for name in part.holds.packages}
    unseen = found - (seen - hidden) - sys.modules.keys()
    return {name for name in unseen if name in named or not _is_installed(name)}


@lru_cache(maxsize=1000)
def _is_installed(name: str) -> bool:
    """Whether a module of this name is there without a student's doing."""
    if name in sys.stdlib_module_names:
        return True
    with suppress(ImportError, ValueError):
        return importlib.util.find_spec(name) is not None
    return False


@dataclass(frozen=True)
class _Patches:
    """Finds statements that set something inside a library: every answer then uses it."""

    packages: Collection[str]
    aliases: Mapping[str, set[str]]

    def of(self, holds: Statement) -> bool:
        """Whether a statement, or a function that it defines, does so."""
        mocks = not self._mocks.isdisjoint(holds.read)
        mocks |= any(attribute.endswith("mock") for attribute in holds.attributes)
        calls = holds.of_kind(ast.Call) if mocks else ()
        return any(map(self._is_patch, holds.changes)) or any(map(self._is_patch, calls))

    @cached_property
    def _mocks(self) -> frozenset[str]:
        """Names that may lead to `mock.patch`."""
        return frozenset(n for n, found in self.aliases.items() if any("mock" in o for o in found))

    def _is_patch(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Attribute | ast.Subscript):
            return not isinstance(node.ctx, ast.Load) and self._is_theirs(node.value)
        if not isinstance(node, ast.Call):
            return False
        called = walked.called(node)
        if any("mock.patch" in origin for origin in _origins(node.func, self.aliases)):
            texts = {(walked.text(given) or "").partition(".")[0] for given in node.args}
            return bool(texts & {*self.packages}) or any(map(self._is_theirs, node.args))
        if called in walked.CHANGERS and isinstance(node.func, ast.Attribute):
            return _is_namespace(node.func.value) and self._is_theirs(node.func.value)
        return called in walked.SETTERS and any(map(self._is_theirs, node.args[:1]))

    def _is_theirs(self, node: ast.expr) -> bool:
        """Whether this is a library, or something in it."""
        while _is_namespace(node) or isinstance(node, ast.Attribute | ast.Subscript):
            node = node.args[0] if isinstance(node, ast.Call) else node.value  # type: ignore
        if not isinstance(node, ast.Name):
            return False
        origins = self.aliases.get(node.id, self.aliases.get("*", ()))
        if node.id not in self.aliases and not node.id[:1].isupper():
            return False  # of what * brings, only classes are taken for theirs
        return any(origin.partition(".")[0] in self.packages for origin in origins)


def _is_namespace(node: ast.expr) -> bool:
    """Whether this is the dictionary of names of something: `vars(x)` or `x.__dict__`."""
    if isinstance(node, ast.Call):
        return getattr(node.func, "id", "") == "vars" and len(node.args) == 1
    return isinstance(node, ast.Attribute) and node.attr == "__dict__"


class _Uses:
    """Finds the statements that an answer is made of, and those of other cells that it leans on."""

    def __init__(
        self,
        parts: Sequence[_Part],
        place: Place | None,
        cells: int,
        patches: _Patches,
        packages: Collection[str],
    ) -> None:
        """What a module outside these packages holds may be what the student wrote."""
        above = cells if place is None else place.above
        self.end: Moment = (cells + 1 if place is None else place.run + 1, -1)
        self.moments = [_when(part, above) for part in parts]
        self.parts, self.place, self.patches, self.packages = parts, place, patches, packages
        self.dropped = False  # whether a name was given to something else before it was used
        self._makers: dict[str, list[int]] = {}
        self._modules: dict[str, list[int]] = {}
        for number in sorted(range(len(parts)), key=self.moments.__getitem__):
            part = parts[number]
            for name in part.modules or part.holds.names:
                found = self._modules if part.modules else self._makers
                found.setdefault(name, []).append(number)
        self._given: dict[tuple[str, Moment], list[int]] = {}

    def of(self, names: Collection[str]) -> dict[int, Moment]:
        """The statements, and when what each defines may be called first.

        Without names, or if nothing defines them, all statements of the answer count.
        """
        mine = {number for number, part in enumerate(self.parts) if not part.where}
        stars = self._makers.get("*", [])
        todo = [*stars, *(n for name in names for n in self._giving(name, self.end))]
        if not any(n in mine for n in todo if "*" not in self.parts[n].holds.names):
            todo += mine
        todo += [n for n, part in enumerate(self.parts) if self.patches.of(part.holds)]
        found = self._followed([(number, self.end) for number in todo])
        if found is None:  # then no order is asked for
            self.place = None
            self._given.clear()
            found = self._followed([(number, self.end) for number in todo]) or {}
        return found

    def _followed(self, todo: list[tuple[int, Moment]]) -> dict[int, Moment] | None:
        """All that these use; None if there are more ways to it than are followed."""
        seen: set[tuple[int, Moment]] = set()
        asked: set[tuple[str, Moment, Moment]] = set()
        found: dict[int, Moment] = {}
        ways = 0
        while todo:
            number, when = pair = todo.pop()
            if pair in seen:
                continue
            seen.add(pair)
            found[number] = min(when, found.get(number, when))
            for name, at in self._uses(number, when):
                if (name, at, when) not in asked:
                    asked.add((name, at, when))
                    given = self._giving(name, at)
                    todo += [(one, moment) for one in given for moment in {at, when}]
                    ways += len(given)
            for node in self.parts[number].holds.imports:
                for name in _modules(node, self.packages):
                    todo += [(one, when) for one in self._modules.get(name, ())]
            if self.place is not None and ways > MOST_WAYS:
                return None
        return found

    def _uses(self, number: int, when: Moment) -> Iterator[tuple[str, Moment]]:
        """Names that a statement uses if it is called then; and when each is looked up."""
        here = when if self.place is None else self.moments[number]
        for name, at_once in self.parts[number].holds.uses.items():
            yield name, here if at_once else when

    def _giving(self, name: str, when: Moment) -> list[int]:
        """Statements that make what a name stands for at some time."""
        rows = self._makers.get(name, [])
        if self.place is None or len(rows) < 2:
            return rows
        if (name, when) not in self._given:
            self._given[name, when] = found = self._last(name, rows, when) or rows
            self.dropped |= len(found) < len(rows)
        return self._given[name, when]

    def _last(self, name: str, rows: Sequence[int], when: Moment) -> list[int]:
        """What gave a name its meaning last before this, and what changes that."""
        found: list[int] = []
        settled = False
        for number in reversed(rows):
            holds = self.parts[number].holds
            anytime = name not in holds.top_level and holds.defines  # it is set at some call
            if self.moments[number] < when and (anytime or not settled):
                found.append(number)
                settled |= name in holds.binds
        return found


def _when(part: _Part, above: int) -> Moment:
    """When a statement runs, if so many of the other cells stand above the answer."""
    cell = above if part.cell < 0 else part.cell + (part.cell >= above)
    return cell, part.statement


def _modules(node: Import, packages: Collection[str]) -> Iterator[str]:
    """Names of modules that an import may load."""
    names = [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        names = [".".join(filter(None, (node.module, name))) for name in names]
    if not {name.partition(".")[0] for name in names} <= {*packages, *sys.stdlib_module_names}:
        yield UNKNOWN
    yield from (piece for name in names for piece in name.split("."))


def _only_imported(answer: Sequence[Statement]) -> set[str]:
    """What an answer imports if it does nothing else: then that is the answer."""
    if any(not isinstance(node, Import) for one in answer for node in one.tree.body):
        return set()
    return {name for one in answer for name in one.top_level} - {"*"}


def _origins(node: ast.expr, aliases: Mapping[str, set[str]]) -> set[str]:
    """Full dotted names that an expression may stand for; empty if its root was not imported."""
    name = walked.dotted(node)
    return {name.of(origin) for origin in aliases.get(name.root, ())} if name else set()


@dataclass(frozen=True)
class _Own:
    """What a student defined in the cells looked at."""

    names: frozenset[str]  # at their top level, if they are no builtin's
    members: frozenset[str]  # methods and attributes of the student's own classes
    fields: frozenset[str]  # these, and other names under which objects hold something
    classes: Mapping[str, frozenset[str]]  # classes that are only that, and their members
    givens: Mapping[str, Sequence[ast.expr | None]]  # what names are set to


@dataclass(frozen=True)
class _Mine:
    """Builtins' names that stand for something of the student's."""

    now: frozenset[str]  # where a statement runs
    later: frozenset[str]  # where a function in it is called


NOTHING = _Mine(frozenset(), frozenset())


@dataclass(frozen=True)
class _Search:
    """Looks for forbidden names in statements."""

    forbid: tuple[str, ...]
    allow: tuple[str, ...]
    aliases: Mapping[str, set[str]]
    own: _Own

    def of(self, holds: Statement, mine: _Mine = NOTHING) -> list[tuple[str, int]]:
        """Forbidden names that a statement mentions, and where."""
        if not self._may_find(holds):
            return []
        taken = {True: mine.now, False: mine.later}
        # nodes inside a dotted name that is judged as a whole; and of a call that is
        judged = {id(call.func) for call in holds.getattrs} | set(self._plain_calls(holds))
        found = []
        for node in holds.nodes:
            chain = isinstance(node, ast.Attribute)
            done = id(node) in judged or (chain and self._allowed(node))
            names = [] if done else list(self._mentions(node, holds, taken))
            if chain and (done or names) and isinstance(node.value, ast.Attribute | ast.Name):
                judged.add(id(node.value))
            found += [(name, getattr(node, "lineno", 0)) for name in names]
        return sorted(set(found), key=lambda hit: (hit[1], hit[0]))

    def _may_find(self, holds: Statement) -> bool:
        """Whether a statement has any name that is forbidden somewhere; most have none."""
        return bool(
            holds.getattrs
            or not holds.read.isdisjoint(self._names)
            or not holds.attributes.isdisjoint(BY_TEXT_ATTRIBUTES)
            or not holds.sets.isdisjoint(SET_BY_TEXT)
            or any(map(self._method_name, holds.attributes))
            or any(self._leads_to_forbidden(name) for name in holds.dotted)
            or any(next(self._modules_in(call), None) for call in holds.of_kind(ast.Call))
            or any(map(self._star_hit, holds.read) if "*" in self.aliases else ())
        )

    @cached_property
    def _names(self) -> frozenset[str]:
        """Names that may be forbidden as they stand."""
        named = {name for name in self.aliases if self._leads_to_forbidden(Dotted(name, ""))}
        return frozenset({*self.forbid, *BY_TEXT, "getattr", *named})

    def _leads_to_forbidden(self, name: Dotted) -> bool:
        return any(self._forbidden(name.of(origin)) for origin in self.aliases.get(name.root, ()))

    def imported(self, holds: Statement, asked: Collection[str]) -> Iterator[tuple[str, int]]:
        """Forbidden things that are imported under a name that the question asks for."""
        for node in holds.tree.body:
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    if alias.name == "*":
                        taken = [name for name in asked if name not in self.own.names]
                    else:
                        taken = [alias.name] if (alias.asname or alias.name) in asked else []
                    origins = [f"{node.module}.{name}" for name in taken]
                    yield from ((one, node.lineno) for one in origins if self._forbidden(one))

    def _allowed(self, node: ast.Attribute) -> bool:
        origins = _origins(node, self.aliases)
        if origins and origins <= PLAIN:
            return True
        return any(_covers(entry, origin) for entry in self.allow for origin in origins)

    def _mentions(
        self, node: ast.AST, holds: Statement, taken: Mapping[bool, Collection[str]]
    ) -> Iterator[str]:
        if isinstance(node, ast.Call):
            if not self._is_taken(node.func, holds, taken):
                yield from self._by_text(node, holds)
                yield from self._modules_in(node)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            yield from self._attribute(node, holds)
        elif isinstance(node, ast.Attribute):  # set to something else, or deleted
            origins = _origins(node, self.aliases)
            yield from sorted(origin for origin in origins if self._forbidden(origin))
            if node.attr in SET_BY_TEXT and node.attr not in self.allow:
                yield node.attr
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            if not self._is_taken(node, holds, taken):
                yield from self._name(node, id(node) in holds.free)
        elif isinstance(node, ast.Subscript):
            yield from self._item(node)
        elif isinstance(node, ast.MatchClass):
            names = [name for name in node.kwd_attrs if name not in self.allow]
            yield from (name for name in names if name in BY_TEXT_ATTRIBUTES)
            yield from (f".{name}" for name in names if self._method_name(name))

    def _is_taken(
        self, node: ast.AST, holds: Statement, taken: Mapping[bool, Collection[str]]
    ) -> bool:
        """Whether a builtin's name stands for something of the student's here."""
        at_once = holds.free.get(id(node))
        return at_once is not None and getattr(node, "id", "") in taken[at_once]

    def _name(self, node: ast.Name, free: bool) -> Iterator[str]:
        origins = self.aliases.get(node.id, set())
        yield from sorted(origin for origin in origins if self._forbidden(origin))
        if origins or not free or node.id in self.own.names or node.id in self.allow:
            return
        if node.id in self.forbid or node.id in BY_TEXT or self._star_hit(node.id):
            yield node.id
        elif node.id == "getattr":  # handed on, to be called with who knows what
            yield COMPUTED

    def _star_hit(self, name: str) -> bool:
        """Whether an import of * brought a forbidden function under its bare name."""
        modules = [origin.removesuffix(".*") for origin in self.aliases.get("*", ())]
        return any(self._forbidden(f"{module}.{name}") for module in modules)

    def _attribute(self, node: ast.Attribute, holds: Statement) -> Iterator[str]:
        origins = _origins(node, self.aliases)
        for origin in sorted(origins):
            if self._forbidden(origin):
                yield origin
        if node.attr in BY_TEXT_ATTRIBUTES and node.attr not in self.allow:
            yield node.attr
        if not origins and self._method(node, holds):
            yield f".{node.attr}"

    def _method(self, node: ast.Attribute, holds: Statement) -> bool:
        """Whether this is a forbidden method of some value, not one of the student's own."""
        return self._method_name(node.attr) and not self._is_mine(node.value, node.attr, holds)

    def _is_mine(self, value: ast.expr, name: str, holds: Statement) -> bool:
        """Whether a value is surely an object or class of the student's own that has this name."""
        if not isinstance(value, ast.Name):
            return self._makes(value, name, holds)
        if value.id in ("self", "cls") and name in self.own.members:
            return True
        free = id(value) in holds.free
        if free and name in self.own.classes.get(value.id, ()):
            return True
        given = (self.own.givens if free else holds.givens).get(value.id, ())
        return bool(given) and all(one and self._makes(one, name, holds) for one in given)

    def _makes(self, value: ast.expr, name: str, holds: Statement) -> bool:
        """Whether this makes an object of a class of the student's own, or a namespace."""
        if not isinstance(value, ast.Call):
            return False
        called = getattr(value.func, "id", "")
        (top,) = holds.tree.body
        if called == "super" and not value.args:
            called = getattr(top, "name", "")
        if "types.SimpleNamespace" in _origins(value.func, self.aliases):
            return name in {word.arg for word in value.keywords}
        once = len(self.own.givens.get(called, ())) == 1
        return once and name in self.own.classes.get(called, ())

    def _method_name(self, name: str) -> bool:
        """Whether a value's attribute of this name may be something forbidden."""
        bare = name.strip("_") or name
        if {f".{name}", f".{bare}", name, bare} & set(self.allow):
            return False
        return any(
            last == bare
            and ("." in entry or not hasattr(builtins, entry))
            and not _is_stopped_alone(entry, bare, name in self.own.fields)
            for entry, last in self._lasts
        )

    @cached_property
    def _lasts(self) -> list[tuple[str, str]]:
        """What is forbidden, with the last part of its name."""
        return [(entry, entry.rpartition(".")[2]) for entry in self.forbid]

    def _forbidden(self, origin: str) -> bool:
        """Whether the rules forbid this full dotted name."""
        if any(_covers(entry, origin) for entry in self.allow):
            return False
        if origin == "builtins" or origin.startswith("builtins."):
            return origin.removeprefix("builtins.") in {*self.forbid, *BY_TEXT, "getattr"}
        if _is_way_round(origin):
            return True
        return any(_covers(entry, origin) or _same(entry, origin) for entry in self.forbid)

    def _by_text(self, node: ast.Call, holds: Statement) -> Iterator[str]:
        """getattr and the like: a name that is computed, or spelt out and forbidden."""
        if self._is_by_name(node):
            yield from (text for text in _named(node) or () if self._is_word(text))
        if not walked.is_getattr(node):
            return
        texts = self._spelt(node.args[1], holds) if len(node.args) > 1 else None
        if texts is None:
            is_fine = self._is_begun_well(node) or self._is_of_self(node, holds)
            if "getattr" not in self.allow and not is_fine:
                yield COMPUTED
            return
        first = node.args[0]
        for text in texts:
            origins = {f"{origin}.{text}" for origin in _origins(first, self.aliases)}
            yield from sorted(origin for origin in origins if self._forbidden(origin))
            method = self._method_name(text) and not self._is_mine(first, text, holds)
            if (not origins and method) or text in BY_TEXT_ATTRIBUTES:
                yield text

    def _is_begun_well(self, node: ast.Call) -> bool:
        """Whether a computed name of some value begins as nothing that is forbidden does."""
        if len(node.args) < 2 or isinstance(node.args[0], ast.Starred):
            return False
        if _origins(node.args[0], self.aliases):
            return False
        return self._leads_nowhere(walked.prefix(node.args[1]))

    def _is_of_self(self, node: ast.Call, holds: Statement) -> bool:
        """Whether this asks an object of the student's own class for a part of it.

        What is forbidden has to be stopped where it runs, too: somebody may call the method of
        something else.
        """
        (top,) = holds.tree.body
        asked = node.args[0] if len(node.args) > 1 else None
        if not isinstance(asked, ast.Name) or asked.id != "self" or id(asked) in holds.free:
            return False
        is_given = any(value is not None for value in holds.givens.get("self", ()))
        return getattr(top, "name", "") in self.own.classes and not is_given and self._is_stopped

    @cached_property
    def _is_stopped(self) -> bool:
        """Whether all that is forbidden is stopped while the answer runs."""
        return all(map(is_stopped, self.forbid))

    def _modules_in(self, node: ast.Call) -> Iterator[str]:
        """Modules that may not be used, and that a call may load by the texts it is handed."""
        given = [] if getattr(node.func, "id", "") == "print" else node.args
        texts = map(walked.text, (*given, *(word.value for word in node.keywords)))
        named = [match[1] for text in texts if text and (match := MODULE.fullmatch(text))]
        yield from filter(self._may_not_load, named)

    def _may_not_load(self, name: str) -> bool:
        """Whether this is a module that is forbidden, or one that evaluates texts."""
        first, dot, _ = name.partition(".")
        covered = [one for one in self.forbid if name == one or name.startswith(f"{one}.")]
        if any("." in one or _is_installed(one) for one in covered):
            return True
        return bool(dot) and first in BY_TEXT_MODULES and first not in ORDINARY

    def _spelt(self, node: ast.expr, holds: Statement) -> list[str] | None:
        """The names that a text may be; None if it is computed."""
        given: Sequence[ast.expr | None] = [node]
        if isinstance(node, ast.Name):
            if not self.own.givens.keys().isdisjoint(("zip", "enumerate")):
                return None
            given = (self.own.givens if id(node) in holds.free else holds.givens).get(node.id, ())
        texts = [one and walked.text(one) for one in given]
        found = [text for text in texts if isinstance(text, str)]
        return found if found and len(found) == len(texts) else None

    def _leads_nowhere(self, begun: str) -> bool:
        """Whether nothing that is forbidden has a name that begins so."""
        bare = begun.lstrip("_")
        words = {*WORDS, *(part for entry in self.forbid for part in entry.split("."))}
        return bool(bare) and not any(word.lstrip("_").startswith(bare) for word in words)

    def _is_word(self, text: str) -> bool:
        """Whether this name reaches something forbidden of whatever has it."""
        ways = text.lstrip("_") in WORDS or text in WORDS
        return (ways and text not in self.allow) or self._method_name(text)

    def _is_by_name(self, node: ast.Call) -> bool:
        """Whether this makes a function that gets or calls what has a name that is spelt out."""
        origins = _origins(node.func, self.aliases)
        return bool(origins) and origins <= BY_NAME and _named(node) is not None

    def _plain_calls(self, holds: Statement) -> Iterator[int]:
        """Nodes that lead to names by their text, where they are used and do no harm."""
        for part in holds.of_kind(ast.Subscript):  # a type with a shape that is written out
            shape = walked.text(getattr(part.slice, "elts", [part.slice])[-1])
            if shape is not None and SHAPE.fullmatch(shape):
                origins = _origins(part.value, self.aliases)
                if origins and all(origin.startswith("jaxtyping.") for origin in origins):
                    yield id(part.value)
        for call in holds.of_kind(ast.Call):
            if self._is_by_name(call):
                yield id(call.func)
            elif walked.called(call) == "update" and isinstance(call.func, ast.Attribute):
                holder = call.func.value
                of: Any = getattr(holder, "value", None) or [*getattr(holder, "args", ()), None][0]
                if _is_namespace(holder) and getattr(of, "id", "") == "self":  # that sets it
                    yield id(getattr(holder, "func", holder))

    def _item(self, node: ast.Subscript) -> Iterator[str]:
        """Something["name"] on the dictionary of a module."""
        text = walked.text(node.slice)
        holder = node.value.id if isinstance(node.value, ast.Name) else ""
        if holder == "__builtins__" and (text is None or text in BY_TEXT or text in self.forbid):
            yield text or holder


def _covers(entry: str, origin: str) -> bool:
    """Whether an entry names this function, a module above it, or anything called like it."""
    if origin == entry or origin.startswith(f"{entry}."):
        return True
    return "." not in entry and not hasattr(builtins, entry) and origin.endswith(f".{entry}")


def _is_stopped_alone(entry: str, bare: str, own: bool) -> bool:
    """Whether an attribute of this name is no sign that an answer uses what is forbidden.

    The stops stand behind it: so a module's name is none, nor is one that no library's values have
    and that the student gives to something else.
    """
    if entry.startswith(".") or not (is_module(entry) or (own and not is_method(bare))):
        return False
    return is_stopped(entry)


def _named(node: ast.Call) -> list[str] | None:
    """The names that `attrgetter` or `methodcaller` are given; None if they do not show."""
    texts = [walked.text(given) for given in node.args]
    if walked.called(node) == "methodcaller":
        texts = texts[:1]
    shown = [part for text in texts if text is not None for part in text.split(".")]
    return shown if texts and None not in texts else None


@lru_cache(maxsize=1000)
def _is_way_round(origin: str) -> bool:
    """Whether this is a way to reach names by text, also as another module holds it."""
    if origin in PLAIN:
        return False
    parts = origin.split(".")
    ordinary = () if parts[0] in sys.stdlib_module_names else ORDINARY
    for start, first in enumerate(parts):
        if start and first in ordinary:
            continue
        for one in {first, first.lstrip("_") if start else first}:  # random._os is os
            rest = parts[start + 1 : start + LONGEST_WAY]
            if any(".".join((one, *rest[:count])) in WAYS for count in range(len(rest) + 1)):
                return True
    return False


def _same(entry: str, origin: str) -> bool:
    """Whether both are one package's function of one name, found in different places."""
    if "." not in entry or entry.startswith("."):
        return False
    same_package = entry.partition(".")[0] == origin.partition(".")[0]
    return same_package and entry.rpartition(".")[2] == origin.rpartition(".")[2].strip("_")
