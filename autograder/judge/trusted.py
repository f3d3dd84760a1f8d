"""Test cells, unchanged, in the trusted process: the names of the answers in them are stand-ins."""

import __future__

import ast
import builtins
import collections
import contextlib
import functools
import io
import math
import operator
import signal
import sys
import threading
import time
import types
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

from autograder.bridge.based import as_plain
from autograder.bridge.due import is_iterator, take_steps
from autograder.bridge.errors import said
from autograder.bridge.lent import LENT
from autograder.bridge.line import Gone, left_on
from autograder.bridge.policy import Policy
from autograder.bridge.reference import parts_of
from autograder.bridge.session import Student
from autograder.bridge.shapes import classes_in, is_one
from autograder.bridge.stand_ins import FORWARDED, remote_of
from autograder.common.results import Crossing, Raised, TestRun, Transcript
from autograder.common.syntax import facts, parse
from autograder.isolation.clock import Clock, here
from autograder.judge.old import is_old

HOME = "__main__"  # what tests and answers both take for their module's name
FUNCTIONS = (types.FunctionType, types.MethodType, functools.partial)
FUNCTIONS += (operator.itemgetter, operator.attrgetter, operator.methodcaller)
PARTS = ("call", "len", "iter", "next", "reversed", "getitem", "setitem", "delitem")
SHOWN = ("enter", "exit", "repr", "str", "format", "bool", "eq", "ne")
ACCESS = frozenset(f"__{name}__" for name in (*PARTS, *SHOWN))
COPIED = FORWARDED | {"__copy__", "__deepcopy__"}  # a copy stays here, as what it is of
TEXT_SECONDS = 3.0
MAX_MESSAGE = 20_000
FUTURE = sum(getattr(__future__, one).compiler_flag for one in __future__.all_feature_names)
HOLDERS = (list, dict, set, collections.deque, collections.Counter)
STATES = frozenset(("getstate", "get_state", "get_rng_state"))  # what tells of random numbers
TEXTS = (str, bytes, int, float, tuple, frozenset)  # whose methods change nothing


class Guard(Policy):
    """What an answer may do with what a test hands it: call it, and use its public parts.

    Never with anything by which code, files or other objects of this process could be reached.
    And what an object of the answer's says of itself is no value: unless the reference has such
    objects too, they have no sum, no size and no order here.
    """

    def __init__(
        self, operators: frozenset[str] = frozenset(), helpers: frozenset[str] = frozenset()
    ) -> None:
        self.operators = operators  # special methods that the reference defines
        self.homes = helpers | {HOME}  # modules of the tests' own, and those beside the notebook

    def believes(self, name: str) -> bool:
        """Access to parts, and the operators that the reference defines."""
        return name in ACCESS or name in self.operators

    def may_change(self, value: Any) -> bool:
        """What tests and the instructor's cells have made; nothing that modules hold."""
        return not is_old(value)

    def may_give(self, value: Any) -> bool:
        """Functions, iterators, and objects of the tests' own classes; nothing of the system's."""
        if isinstance(value, FUNCTIONS) or _is_iterator(value) or _is_holders_method(value):
            return True
        kind = value if isinstance(value, type) else type(value)
        if kind is object and value is not object:  # nothing but itself, as what marks an end
            return True
        return kind.__module__ in self.homes or _tensors_allow("may_give", value)

    def may_use(self, value: Any, name: str | None) -> bool:
        """Calls, special methods that do no harm, and public names."""
        if isinstance(value, FUNCTIONS) or _is_holders_method(value):
            return name in (None, "__call__", "__doc__")
        if _is_iterator(value):
            return name in ("__next__", "__iter__")
        if "torch" in sys.modules:
            from autograder.bridge import tensors

            told = tensors.may_use(value, name)
            if told is not None:
                return told
        return name is None or name in COPIED or not name.startswith("_")


def _tensors_allow(question: str, value: Any) -> bool:
    if "torch" not in sys.modules:
        return False
    from autograder.bridge import tensors

    return getattr(tensors, question)(value)


def _is_iterator(value: Any) -> bool:
    kind = type(value)
    return hasattr(kind, "__next__") and kind.__module__ in ("builtins", "itertools")


def _is_holders_method(value: Any) -> bool:
    return isinstance(value, types.BuiltinMethodType) and type(value.__self__) in HOLDERS + TEXTS


class Space(dict):
    """The names of the tests: their own, the instructor's, and behind them the student's.

    A name that an answer defines is looked up, set and deleted in the student's process. No other
    name ever is: what the instructor's cells define is defined here, or nowhere.
    """

    def __init__(
        self,
        *,
        live: frozenset[str] = frozenset(),
        texts: Callable[[], frozenset[str]] = frozenset,
        attributes: frozenset[str] = frozenset(),
        changed: frozenset[str] = frozenset(),
    ) -> None:
        """Begin with no names.

        Args:
            live: names of answers that the reference's own functions use: only such a one is set in
                the student's process, and only there its value is known after a test has set it.
            texts: gives the texts that tests may evaluate, those that the instructor wrote.
            attributes: names of attributes that the instructor's cells set, but for `self`'s.
            changed: those of them that the reference sets.
        """
        super().__init__(__name__=HOME, __builtins__=_builtins(texts))
        self._student: Student | None = None
        self.attributes, self.changed = attributes, changed
        self.helpers: frozenset[str] = frozenset()  # modules beside the notebook, on both sides
        self.classes: dict[str, type | None] = {}  # that the instructor's cells have made
        self.live = live
        self.answered: set[str] = set()  # names that the answers so far should define
        self.given: set[str] = set()  # names that the instructor's cells should define
        self.imported: dict[str, Any] = {}  # what references import, for all questions but theirs
        self.asked_for: frozenset[str] = frozenset()  # of it what the question under test asks for
        self.lost: dict[str, str] = {}  # those whose cell did not run here, and why
        self.unmade: set[str] = set()  # those whose cell failed when it called an answer
        self.instead: dict[str, Any] = {}  # names for which the reference stands in
        self.covered: dict[str, Any] = {}  # what these names meant here
        self.known: dict[str, Any] = {}  # stand-ins looked up already
        self.raisable: dict[str, type] = {}  # exceptions of the instructor's cells, no test's
        self.version = -1
        self.replaced = False  # whether a test has changed a name of the student's
        # whether a name stands for nothing but values with the reference
        self.is_value: Callable[[str], bool] = lambda name: False
        # whether it stands for a class by which what the test itself claims is caught
        self.may_catch: Callable[[str], bool] = lambda name: True

    @property
    def student(self) -> Student | None:
        """The process of which answers are asked."""
        return self._student

    @student.setter
    def student(self, student: Student | None) -> None:
        """Objects of the instructor's classes cross to this one from now on."""
        self._student = student
        if student is not None:
            student.peer.records.attach(self, self.classes)

    def hand_over(self, names: Iterable[str]) -> None:
        """From now on these names are the student's."""
        for name in names:
            self.answered.add(name)
            self.given.discard(name)
            self.unmade.discard(name)
            self.lost.pop(name, None)
            self.raisable.pop(name, None)
            self.imported.pop(name, None)
            self.pop(name, None)

    def take_over(self, names: Iterable[str]) -> None:
        """From now on these names are the instructor's."""
        names = set(names)
        self.given |= names
        self.answered -= self.given
        self.unmade -= names
        for name in names:
            self.lost.pop(name, None)

    def bring_in(self, imports: str, where: str, seconds: float, asks: bool) -> frozenset[str]:
        """Import what a reference imports, to be found here whatever an answer puts there.

        Args:
            imports: the statements.
            where: the cell's name, for messages.
            seconds: that it may take.
            asks: whether the question asks for these imports: its own tests ask the student.

        Returns:
            the names.
        """
        names: dict[str, Any] = {"__name__": HOME, "__builtins__": self["__builtins__"]}
        with contextlib.suppress(Exception), alarm(Clock(seconds, here())), _silence():
            exec(compiled_cell(imports, where), names)
        made = {k: v for k, v in names.items() if not k.startswith("__")}
        self.imported |= {k: v for k, v in made.items() if asks or k not in self.answered}
        return frozenset(made)

    def stand_in(self, instead: Mapping[str, Any]) -> None:
        """Have these names mean this, until `stand_back`."""
        self.covered = {name: self.pop(name) for name in instead if name in self}
        self.instead = dict(instead)

    def stand_back(self) -> None:
        """Let the names mean again what they did, but for those that have been set since."""
        covered, self.covered, self.instead = self.covered, {}, {}
        for name, value in covered.items():
            self.setdefault(name, value)

    def __missing__(self, name: str) -> Any:
        if name in self.instead:
            return self.instead[name]
        if name in self.lost:
            raise BrokenCell(self.lost[name])
        if name in self.unmade:
            raise NameError(f"{name} is made by a cell that calls your code, and that cell failed")
        if name in self.imported and name not in self.asked_for:
            return self.imported[name]
        if self.student is None or name not in self.answered | self.asked_for:
            raise KeyError(name)
        if self.version != self.student.version:
            self.known, self.version = {}, self.student.version
        if name in self.known:
            self.student.peer.named(self.known[name], name)
            return self.known[name]
        value = self._look_up(self.student, name)
        if remote_of(value) is not None:
            self.known[name] = value
        return value

    def _look_up(self, student: Student, name: str) -> Any:
        try:
            value = student.name(name)
        except NameError as error:
            raise KeyError(name) from error
        if catches_claims(value) and not self.may_catch(name):
            refuse_broad(name, value)
        if not remotes_in(value, all_of_them=True) or not self.is_value(name):
            return value
        value = as_plain(value)
        if objects := remotes_in(value):
            raise TypeError(f"your {name} is a {objects[0]} where a value is expected")
        take_steps(value)
        return value

    def __setitem__(self, name: str, value: Any) -> None:
        is_students = name in self.answered and name in self.live and not _is_local(value)
        if is_students and name not in self.imported and self.student is not None:
            self.known.pop(name, None)
            self.replaced = True
            self.student.set(name, value)
        else:
            super().__setitem__(name, value)

    def __delitem__(self, name: str) -> None:
        is_set = name in self
        if name in self.answered and self.student is not None:
            self.known.pop(name, None)
            self.replaced = True
            self.student.delete(name)
        elif not is_set:
            raise KeyError(name)
        if is_set:
            super().__delitem__(name)

    def forget_all_but(self, names: dict[str, Any]) -> None:
        """Be again as at a time when only these names were known."""
        self.clear()
        self.update(names)

    def prepare(self, source: str, where: str, seconds: float = 60.0) -> "Prepared":
        """Run one of the instructor's cells here, for the names it defines.

        Args:
            source: the instructor's own text; a student's never comes here.
            where: the cell's name, for messages.
            seconds: that it may take.
        """
        bound = facts(source).bound
        self.take_over(bound)
        peer = None if self.student is None else self.student.peer
        before = 0 if peer is None else peer.requests
        student = self.student
        timed = nullcontext(Clock(seconds, here())) if student is None else student.clock(seconds)
        failed, gone, crossed = "", False, False
        recording = nullcontext() if peer is None else peer.recording()  # of no test's calls
        if peer is not None:
            peer.protect, peer.allowed, peer.expected = False, (), ()
            peer.random.steps = None
        try:
            with timed as clock, alarm(clock), _silence(), recording:
                failed = self._run(source, where)
                crossed = peer is not None and peer.requests > before
                if crossed:
                    self._take_values(bound)
        except Gone:
            gone = True
            self._leave_unmade(self._from_answers(bound))
        self.classes |= classes_in(self, bound, self.helpers)
        crossed = peer is not None and peer.requests > before
        homes = self.helpers | {HOME}
        made: dict[str, Any] = {name: self.get(name) for name in bound}
        for one in [*made.values()]:
            if isinstance(one, types.ModuleType) and one.__name__ in self.helpers:
                made = vars(one) | made
        self.raisable |= {n: kind for n, kind in made.items() if _is_raisable(kind, n, homes)}
        missing = {name for name in bound if name not in self}
        if failed and (crossed or facts(source).needed & self.unmade):
            self.unmade |= missing
        elif failed:  # no answer had a part in it
            self.lost |= dict.fromkeys(missing, failed[:MAX_MESSAGE])
        return Prepared(gone, crossed)

    def keep_of(self, before: "Space", names: Iterable[str]) -> None:
        """Where a cell that had run does not run again, what it had made stays."""
        for name in names:
            if name in self.lost and dict.__contains__(before, name):
                del self.lost[name]
                dict.__setitem__(self, name, dict.__getitem__(before, name))

    def _run(self, source: str, where: str) -> str:
        """Run a cell's text; why it did not run to its end, if it did not."""
        try:
            exec(compiled_cell(source, where), self, self)
        except (Exception, SystemExit) as error:  # noqa: BLE001  (the tests that need it say it)
            return f"the instructor's cell {where} did not run ({said(error)}: {error})"
        return ""

    def _from_answers(self, names: Iterable[str]) -> list[str]:
        """Those of the names that stand here for something with an answer's objects in it."""
        return [n for n in names if n in self and remotes_in(self[n], all_of_them=True)]

    def _take_values(self, names: Iterable[str]) -> None:
        """What an answer gave for a value is that value from now on, or is not there."""
        for name in self._from_answers(names):
            try:
                value = as_plain(self[name])
            except Exception:  # noqa: BLE001  (an answer that does not say what it holds)
                self._leave_unmade([name])
                continue
            if self.is_value(name):
                super().__setitem__(name, value)
                if remotes_in(value):  # an answer gave an object in the place of a value
                    self._leave_unmade([name])
                else:
                    take_steps(value)

    def _leave_unmade(self, names: Iterable[str]) -> None:
        """Have these names, which a cell should have made of answers, mean nothing."""
        for name in names:
            self.unmade.add(name)
            super().__delitem__(name)


def _is_raisable(value: Any, name: str, homes: Set[str]) -> bool:
    """Whether this is a class of exceptions that was defined under this name at one of these."""
    if not isinstance(value, type) or not issubclass(value, Exception):
        return False
    return value.__module__ in homes and value.__qualname__ == name


def catches_claims(value: Any) -> str:
    """The name of a class in a value by which a test would catch its own claims; or nothing."""
    kinds = [part for part in parts_of(value) if isinstance(part, type)]
    broad = [kind for kind in kinds if kind in AssertionError.__mro__ and kind is not object]
    return broad[0].__name__ if broad else ""


def refuse_broad(name: str, value: Any) -> None:
    """Raise TypeError if a value of an answer's would catch what a test claims."""
    if broad := catches_claims(value):
        raise TypeError(f"your {name} is {broad}; define a class of its own for it")


@functools.lru_cache(maxsize=2000)
def catches_by_value(source: str) -> bool:
    """Whether a test's text has an `except` that names anything but Python's own exceptions."""
    handlers = (n for n in ast.walk(parse(source) or ast.Module([], [])) if _catches(n))
    return any(
        isinstance(part, ast.Attribute | ast.Call)
        or (isinstance(part, ast.Name) and not hasattr(builtins, part.id))
        for one in handlers
        for part in ast.walk(one.type)  # type: ignore[attr-defined]
    )


def _catches(node: ast.AST) -> bool:
    return isinstance(node, ast.ExceptHandler) and node.type is not None


def remotes_in(value: Any, all_of_them: bool = False) -> list[str]:
    """The classes of an answer's own objects in a value, but for those that are only iterated."""
    parts = [part for part in parts_of(value) if all_of_them or not is_iterator(part)]
    found = map(remote_of, parts)
    names = [one.type_name for one in found if one is not None and one.kind == "object"]
    return names + [type(part).__name__ for part in parts if is_one(part)]


@dataclass(frozen=True)
class Prepared:
    """How running one of the instructor's cells went."""

    gone: bool  # whether the student's process was lost meanwhile
    crossed: bool  # whether the cell asked it for anything


def _builtins(texts: Callable[[], frozenset[str]]) -> dict[str, Any]:
    """Python's builtins, of which those that run a text run only the instructor's own."""

    def guarded(name: str) -> Callable[..., Any]:
        runs = getattr(builtins, name)

        def run(source: Any, *more: Any, **named: Any) -> Any:
            known = type(source) is str and source in texts()
            if not known and not isinstance(source, types.CodeType):
                raise BrokenCell(
                    f"{name}() of a text that an answer may have made; compare the values"
                )
            if name != "compile" and not more:
                frame = sys._getframe(1)  # as without this function in between
                more = frame.f_globals, frame.f_locals
            return runs(source, *more, **named)

        return run

    own = {name: guarded(name) for name in ("eval", "exec", "compile")}
    return {**vars(builtins), **own, "issubclass": _is_subclass}


def _is_subclass(kind: Any, of: Any) -> bool:
    """As `issubclass`, which asks an abstract class of nothing but real classes."""
    remote = remote_of(kind)
    if remote is None or remote.kind != "class" or not isinstance(of, type):
        return issubclass(kind, of)
    return any(issubclass(base, of) for base in remote.bases)


def _is_local(value: Any) -> bool:
    """Modules stay on the side that imports them."""
    return isinstance(value, types.ModuleType)


@functools.lru_cache(maxsize=2000)
def compiled_cell(source: str, where: str) -> Any:
    """The code of one of the instructor's cells; raises SyntaxError."""
    tree = parse(source)
    if tree is None:
        raise SyntaxError("it is no Python")
    return compile(tree, f"<instructor {where}>", "exec")


def run_test(
    student: Student,
    cell: Any,
    space: Space,
    seconds: float,
    asked: list | None = None,
    *,
    may_fail: bool = False,
) -> TestRun:
    """Run one test cell against what the student's process defines now.

    Args:
        student: the process.
        cell: the test's cell.
        space: the tests' names.
        seconds: that it may take.
        asked: gets the calls that were made, if given.
        may_fail: whether it may pass though a claim of it, called by the answer, did not hold.
    """
    name = f"<test {cell.grade_id}>"
    seen, hidden, last = compiled(cell.source, name, cell.hidden_from)
    start, calls, work = time.monotonic(), student.peer.requests, 0.0
    error: BaseException | None = None
    score, visible = float(cell.points), None
    student.peer.asked = asked
    with student.peer.recording(runs_test=True) as crossings, _silence(), LENT.running():
        try:
            with student.clock(seconds) as clock, alarm(clock):
                exec(seen, space, space)
                _tell_kept(student, may_fail)
                visible = len(crossings) if cell.hidden else None
                exec(hidden, space, space)
                value = eval(last, space, space) if last is not None else None
                _tell_kept(student, may_fail)
            score, work = partial(value, cell.points), clock.worked()
        except BaseException as caught:  # noqa: BLE001  (every end of a test is a result)
            error = caught
    if type(error) is KeyboardInterrupt and getattr(error, "raised", None) is None:
        raise error
    return TestRun(
        test=cell.grade_id,
        status=_status(error),
        score=0.0 if error is not None else score,
        error="" if error is None else said(error),
        message="" if error is None else _text(student, error)[:MAX_MESSAGE],
        raised=getattr(error, "raised", None),
        in_hidden=_in_hidden(error, cell, name) if visible is None else error is not None,
        transcript=_marked(crossings, visible),
        seconds=time.monotonic() - start,
        calls=student.peer.requests - calls,
        work=work,
    )


@functools.lru_cache(maxsize=2000)
def looks_for_claims(source: str) -> bool:
    """Whether a test's text looks itself for claims that did not hold.

    It catches them, or hands their class to what does (`assertRaises`, `raises`, `isinstance`), or
    compares with it. To raise one is not to look for one.
    """
    places: list[ast.AST | None] = []
    for node in ast.walk(parse(source) or ast.Module([], [])):
        if isinstance(node, ast.ExceptHandler):
            places.append(node.type)
        elif isinstance(node, ast.Call):
            places += [*node.args, *(word.value for word in node.keywords)]
        elif isinstance(node, ast.Compare):
            places += [node.left, *node.comparators]
    parts = [part for one in places if one for part in getattr(one, "elts", [one])]
    return any(isinstance(one, ast.Name) and one.id == "AssertionError" for one in parts)


@functools.lru_cache(maxsize=2000)
def looks_at_random(source: str) -> bool:
    """Whether a test's text asks for the state of random numbers."""
    return any(
        (node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", None)) in STATES
        for node in ast.walk(parse(source) or ast.Module([], []))
    )


def _tell_kept(student: Student, may_fail: bool) -> None:
    """Raise what ended the process though the test has caught it, as a bare `except` does.

    And the claim that did not hold, and that the answer which met it has kept to itself.
    """
    if student.peer.gone is not None:
        raise student.peer.gone
    if student.peer.clock is not None and student.peer.clock.is_over:
        raise Gone("timeout", "it took too long")
    if student.peer.failed is not None and not may_fail:
        raise student.peer.failed


class BadScore(Exception):
    """A test cell's last value is no score."""


class BrokenCell(BadScore):
    """A name that a test needs should come from a cell of the instructor's that does not run."""


class NoNumber(BadScore):
    """It is not even a number; fine if it is none with the reference either."""


def partial(value: Any, points: float) -> float:
    """The points that a test cell's last value stands for, as nbgrader counts: none means all."""
    if value is None:
        return float(points)
    if isinstance(value, bool | str | bytes) or remote_of(value) is not None:
        raise NoNumber("the test ends in something that is no number of points")
    try:
        score = float(value)
    except Exception as error:
        raise NoNumber("the test ends in something that is no number of points") from error
    if not math.isfinite(score) or not 0 <= score <= points:
        raise BadScore(f"the test gave {score:g} points of {points:g}")
    return score


@functools.lru_cache(maxsize=2000)
def compiled(source: str, name: str, hidden_from: int) -> tuple[Any, Any, Any]:
    """A cell's code: before its hidden part, from there on, and its last line if it has a value.

    A statement that reaches into the hidden part belongs to it, and so does all that follows.
    """
    tree = ast.parse(source)
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr) and not source.rstrip().endswith(";"):
        last = ast.Expression(tree.body.pop().value)  # type: ignore[attr-defined]
    ends = [statement.end_lineno or 0 for statement in tree.body]
    count = sum(1 for _ in takewhile(lambda end: end < hidden_from or not hidden_from, ends))
    seen = compile(ast.Module(tree.body[:count], []), name, "exec", dont_inherit=True)
    future = seen.co_flags & FUTURE  # what the cell imports from __future__ holds to its end
    hidden = compile(ast.Module(tree.body[count:], []), name, "exec", future, dont_inherit=True)
    value = None if last is None else compile(last, name, "eval", dont_inherit=True)
    return seen, hidden, value


def _marked(crossings: list[Crossing], visible: int | None) -> Transcript:
    """A test's calls, of which those after the first few were made in its hidden part."""
    if visible is None:
        return tuple(crossings)
    return (*crossings[:visible], *(replace(call, hidden=True) for call in crossings[visible:]))


def _status(error: BaseException | None) -> Any:
    if error is None:
        return "passed"
    if isinstance(error, Gone):
        return "timeout" if error.kind == "timeout" else "died"
    if isinstance(error, BadScore):
        return "test-error"
    return "error" if isinstance(getattr(error, "raised", None), Raised) else "failed"


def _text(student: Student, error: BaseException) -> str:
    if isinstance(error, Gone):
        return student.why(error)
    try:
        with student.clock(TEXT_SECONDS) as clock, alarm(clock):
            return str(error)  # which may ask an object of the answer
    except BaseException:  # noqa: BLE001  (a text that cannot be made is no text)
        return ""


def _in_hidden(error: BaseException | None, cell: Any, name: str) -> bool:
    """Whether a cell ended after its hidden part had begun, or where nobody knows.

    A visible line below a hidden one is as good as hidden: the answer has been asked before it.
    """
    if error is None or not cell.hidden:
        return False
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == name:
            return trace.tb_lineno >= cell.hidden_from
        trace = trace.tb_next
    return True


@contextlib.contextmanager
def alarm(clock: Clock) -> Iterator[None]:
    """Stop what runs here when the time is over, even if it never asks the other process."""
    if (
        not hasattr(signal, "setitimer")
        or threading.current_thread() is not threading.main_thread()
    ):
        yield
        return

    def ring(number: int, frame: Any) -> None:
        left_on(clock)

    before = signal.signal(signal.SIGALRM, ring)
    # again and again: the clock may say "not yet", and what it raises may be swallowed
    signal.setitimer(signal.ITIMER_REAL, clock.seconds + 1, 0.25)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """What tests print and warn goes nowhere."""
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        yield
