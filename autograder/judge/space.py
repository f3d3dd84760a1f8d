"""The names of the tests: the instructor's, and stand-ins for what answers define."""

import builtins
import contextlib
import functools
import re
import signal
import sys
import threading
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from autograder.bridge.based import as_plain
from autograder.bridge.due import is_iterator, take_steps
from autograder.bridge.errors import said
from autograder.bridge.line import Gone, left_on
from autograder.bridge.own_errors import is_of_both
from autograder.bridge.reference import OBJECTS, VALUE, parts_of
from autograder.bridge.session import Student
from autograder.bridge.shapes import classes_in, is_one
from autograder.bridge.stand_ins import remote_of
from autograder.common.scopes import facts
from autograder.common.syntax import parse
from autograder.isolation.clock import Clock, here
from autograder.judge.claims import catches_claims, refuse_broad
from autograder.judge.class_asked import ASKING, of_answers
from autograder.judge.guard import HOME
from autograder.judge.quiet import silence
from autograder.judge.referred import Referred

TEXT_SECONDS = 3.0
MAX_MESSAGE = 20_000


class BadScore(Exception):
    """A test cell's last value is no score."""


class BrokenCell(BadScore):
    """A name that a test needs should come from a cell of the instructor's that does not run."""


@dataclass(frozen=True)
class Prepared:
    """How running one of the instructor's cells went."""

    gone: bool  # whether the student's process was lost meanwhile
    crossed: bool  # whether the cell asked it for anything


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
        read: frozenset[str] = frozenset(),
    ) -> None:
        """Begin with no names.

        Args:
            live: names of answers that the reference's own functions use: only such a one is set in
                the student's process, and only there its value is known after a test has set it.
            texts: gives the texts that tests may evaluate, those that the instructor wrote.
            attributes: names of attributes that the instructor's cells set, but for `self`'s.
            changed: those of them that the reference sets.
            read: names with an underscore that these cells read of what they are handed.
        """
        super().__init__(__name__=HOME, __builtins__=Builtins(_builtins(texts), self))
        self._student: Student | None = None
        self.attributes, self.changed, self.read = attributes, changed, read
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
        # what names stand for with the reference; None where an answer is not doubted
        self.referred: Referred | None = None

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
        names: dict[str, Any] = {"__name__": HOME, "__builtins__": dict(self["__builtins__"])}
        with contextlib.suppress(Exception), alarm(Clock(seconds, here())), silence():
            exec(compiled_cell(imports, where), names)
        made = {k: v for k, v in names.items() if not k.startswith("__")}
        self.imported |= {k: v for k, v in made.items() if asks or k not in self.answered}
        return frozenset(made)

    def stand_in(self, instead: Mapping[str, Any]) -> None:
        """Have these names mean this, until `stand_back`."""
        self.covered = {name: self.pop(name) for name in instead if self.has(name)}
        self.instead = dict(instead)

    def stand_back(self) -> None:
        """Let the names mean again what they did, but for those that have been set since."""
        covered, self.covered, self.instead = self.covered, {}, {}
        for name, value in covered.items():
            self.setdefault(name, value)

    def has(self, name: str) -> bool:
        """Whether a name stands here itself, whatever answers define."""
        return super().__contains__(name)

    def __contains__(self, name: object) -> bool:
        """Whether a test finds a name, as in `"mean" in globals()`."""
        if not isinstance(name, str) or self.has(name):
            return super().__contains__(name)
        with contextlib.suppress(KeyError, NameError):
            self.__missing__(name)
            return True
        return False

    def get(self, name: str, default: Any = None) -> Any:
        """What a test finds under a name, as in `globals().get("mean")`."""
        try:
            return self[name]
        except (KeyError, NameError):
            return default

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
        if catches_claims(value) and not (self.referred is None or self.referred.may_catch(name)):
            refuse_broad(name, value)
        if is_of_both(value) and self.referred is not None and self.referred.is_own_error(name):
            return student.peer.errors.apart.seen(value, sys.exc_info()[1])
        if not remotes_in(value, all_of_them=True):
            return value
        if not self._is_value(name):  # then what stands in a list or table is an object as well
            return value if remote_of(value) is not None else student.name(name, OBJECTS)
        value = as_plain(value)
        if isinstance(value, re.Pattern):  # where a text is due, it is one as well
            value = student.name(name, VALUE)
        if objects := remotes_in(value):
            raise TypeError(f"your {name} is a {objects[0]} where a value is expected")
        take_steps(value)
        return value

    def _is_value(self, name: str) -> bool:
        return self.referred is not None and self.referred.is_value(name)

    def __setitem__(self, name: str, value: Any) -> None:
        is_students = name in self.answered and name in self.live and not _is_local(value)
        if is_students and name not in self.imported and self.student is not None:
            self.known.pop(name, None)
            self.replaced = True
            self.student.set(name, value)
        else:
            super().__setitem__(name, value)

    def __delitem__(self, name: str) -> None:
        is_set = self.has(name)
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
            peer.protect, peer.allowed, peer.expected, peer.reckoned = False, (), (), None
            peer.left = peer.random.steps = None
        try:
            with timed as clock, alarm(clock), silence(), recording, as_main(self):
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
        made: dict[str, Any] = {name: dict.get(self, name) for name in bound}
        for one in [*made.values()]:
            if isinstance(one, types.ModuleType) and one.__name__ in self.helpers:
                made = vars(one) | made
        self.raisable |= {n: kind for n, kind in made.items() if _is_raisable(kind, n, homes)}
        missing = {name for name in bound if not self.has(name)}
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
        return [n for n in names if self.has(n) and remotes_in(self[n], all_of_them=True)]

    def _take_values(self, names: Iterable[str]) -> None:
        """What an answer gave for a value is that value from now on, or is not there."""
        for name in self._from_answers(names):
            try:
                value = as_plain(self[name])
            except Exception:  # noqa: BLE001  (an answer that does not say what it holds)
                self._leave_unmade([name])
                continue
            if self._is_value(name):
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


class Builtins(dict):
    """Python's builtins, and behind them the names of the tests, for the body of a class.

    Up to Python 3.12 that looks for a name in the dictionary of the globals itself, which has no
    answer's, and then here.
    """

    def __init__(self, names: dict[str, Any], space: Space) -> None:
        super().__init__(names)
        self.space = space

    def __missing__(self, name: str) -> Any:
        return self.space[name]


class Main(types.ModuleType):
    """`__main__` while tests run: there `unittest.main`, `typing` and `import` look for names."""

    def __init__(self, space: Space) -> None:
        super().__init__(HOME)
        super().__setattr__("_space", space)

    @property
    def __dict__(self) -> Any:
        return self._space

    def __getattr__(self, name: str) -> Any:
        try:
            return self._space[name]
        except KeyError:
            raise AttributeError(f"module {HOME!r} has no attribute {name!r}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        self._space[name] = value

    def __delattr__(self, name: str) -> None:
        try:
            del self._space[name]
        except (KeyError, NameError):
            raise AttributeError(name) from None

    def __dir__(self) -> list[str]:
        return list(self._space)


@contextlib.contextmanager
def as_main(space: Space) -> Iterator[None]:
    """Have `__main__` be the module of these names, as it is in a notebook."""
    before = sys.modules[HOME]
    sys.modules[HOME] = Main(space)
    try:
        yield
    finally:
        sys.modules[HOME] = before


def _is_raisable(value: Any, name: str, homes: Set[str]) -> bool:
    """Whether this is a class of exceptions that was defined under this name at one of these."""
    if not isinstance(value, type) or not issubclass(value, Exception):
        return False
    return value.__module__ in homes and value.__qualname__ == name


def remotes_in(value: Any, all_of_them: bool = False) -> list[str]:
    """The classes of an answer's own objects in a value, but for those that are only iterated."""
    parts = [part for part in parts_of(value) if all_of_them or not is_iterator(part)]
    found = map(remote_of, parts)
    names = [one.type_name for one in found if one is not None and one.kind == "object"]
    return names + [type(part).__name__ for part in parts if is_one(part)]


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
    more = {"issubclass": _is_subclass, "display": _display}
    return {**vars(builtins), **own, **ASKING, **more}


def _display(*shown: Any, **options: Any) -> None:
    """As a notebook's `display`, which every cell has, without a shell: IPython's own prints."""
    print(*shown)


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
    return compile(of_answers(tree), f"<instructor {where}>", "exec")


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

    def lost(unraisable: "sys.UnraisableHookArgs") -> None:
        """Nothing to tell: where something is thrown away it is lost, and soon it rings again."""
        if not isinstance(unraisable.exc_value, Gone):
            show(unraisable)

    before, show = signal.signal(signal.SIGALRM, ring), sys.unraisablehook
    sys.unraisablehook = lost
    # again and again: the clock may say "not yet", and what it raises may be swallowed
    signal.setitimer(signal.ITIMER_REAL, clock.seconds + 1, 0.25)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        sys.unraisablehook = show
