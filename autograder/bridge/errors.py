"""Exceptions on the line: classes with their bases, so that `except` catches what it would at home.

The other end tells of each class of its own its name and its bases; Python's own classes, and those
of libraries that are loaded here, go by their names, and so do those of the instructor's cells
that both ends have. What else is made here is empty. Those by which what runs tests says "skipped"
or "stop" are no answer's to raise, and what is no `Exception` is raised only where a test runs.
"""

import builtins
import contextlib
import dis
import inspect
import sys
import traceback
import types
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

from autograder.bridge import arrays, based, library, public
from autograder.bridge.own_errors import Apart, class_of_errors
from autograder.bridge.wire import Decoder, Encoder, Frame, WireError

MAX_CLASSES = 500  # that are kept
MAX_FAMILY = 20
MAX_BASES = 5
MAX_NAME = 100
MAX_TEXT = 4000  # characters of an attribute
MAX_CARRIED = 50  # attributes
MAX_PARTS = 8000  # of all of them: values and characters
MAX_ARGUMENTS = 20
RUNNERS = frozenset(("unittest", "doctest", "bdb", "pdb"))  # modules that run tests
HOME = "__main__"  # what cells take for their module's name
OWN = "autograder."  # the modules of the grader
ASSERTS = "LOAD_ASSERTION_ERROR"
NUMERIC = frozenset(("numpy.linalg", "numpy.exceptions", "torch.linalg"))
HIDDEN = {"torch._C:_LinAlgError": "torch.linalg:LinAlgError"}  # where others find it
TAKEN = ("raised", "through", "args")  # attributes with a meaning of their own
NOTES = "__notes__"  # what `add_note` has added
NAMED = ("name", "path")  # what Python's own classes are told by these words, if at all


def family(kind: type) -> list[list[Any]]:
    """Name and bases of an exception's class and of those below it that are no library's.

    The nearest comes first; a base is the place of another one, or the name of a library's class.
    """
    if not issubclass(kind, BaseException) or name_of(kind):
        return []
    own = [one for one in kind.__mro__ if issubclass(one, BaseException) and not name_of(one)]
    places = {one: place for place, one in enumerate(own)}
    return [
        [one.__name__[:MAX_NAME], [places.get(base, name_of(base)) for base in _bases(one)]]
        for one in own[:MAX_FAMILY]
    ]


def _bases(kind: type) -> list[type]:
    return [base for base in kind.__bases__ if issubclass(base, BaseException)]


def name_of(kind: type) -> str:
    """The name by which an exception of a library's is found at the other end."""
    name = f"{kind.__module__}:{kind.__qualname__}"
    name = HIDDEN.get(name, name)
    return name if _known(name) is kind else ""


def _known(name: Any) -> Any:
    """The public exception of a library that goes by this name, if it is loaded."""
    module, _, path = str(name).partition(":")
    top = module.partition(".")[0]
    is_python = top in sys.stdlib_module_names - RUNNERS and module != "__main__"
    is_known = is_python or module in NUMERIC or top in public.PACKAGES
    if not is_known or path[:1] == "_":
        return None
    found = vars(sys.modules[module]).get(path) if module in sys.modules else None
    return found if isinstance(found, type) and issubclass(found, BaseException) else None


class Classes:
    """The classes made here for those of the other end."""

    def __init__(self) -> None:
        self.made: dict[tuple[Any, ...], type[BaseException]] = {}
        self.given: Callable[[str], Any] = lambda name: None  # the instructor's, by their names
        self.apart = Apart()

    def of(self, told: Any) -> type[BaseException]:
        """The class for one of the other end's, of whose name, kinds, home and family it tells."""
        name, kinds = str(told["type"])[:MAX_NAME], [k for k in told["kinds"] if type(k) is str]
        try:
            family = told.get("family")
            found = self._of_family(family) if family else _known(told.get("home"))
            if found is not None:
                return found
        except (TypeError, ValueError, LookupError, AttributeError):
            pass  # bases that Python does not join; then the nearest of its own stands for all
        base = _builtin(kinds) or Exception
        return base if base.__name__ == name else self._class(name.replace("\0", ""), (base,))

    def make(self, told: Any, args: list[Any], text: str, *, is_tame: bool = True) -> BaseException:
        """An exception of such a class, with this text; alone, if it wants other arguments.

        It is an `Exception`, whatever its class, if it has to be `is_tame`.
        """
        kind = self.apart.joining(self.of(told))
        if is_tame and not issubclass(kind, Exception):
            kind = self._class(kind.__name__, (Exception,))
        if self.is_given(kind) or _is_of_package(kind):
            with contextlib.suppress(Exception):
                return self._bare(kind, args, text)
        if issubclass(kind, UnicodeError) and not _fit_a_text(args):
            args = [text]  # Python itself would read beside its text, to show where it is
        with contextlib.suppress(Exception):  # classes want what they want
            made = type.__call__(kind, *args)  # here: what was raised is not made again
            return made if str(made) == text else self._saying(made, args, text, _SAYS)
        with contextlib.suppress(Exception):
            made = _python_of(kind).__new__(kind, text)
            return self._saying(made, [text], text, _SAYS | _WANTS)
        base = Exception if issubclass(kind, Exception) else BaseException
        return type.__call__(self._class(kind.__name__, (base,)), text)

    def group(self, told: Any, message: str, members: list[BaseException], text: str) -> Any:
        """A group of exceptions; None where Python makes no such one of these."""
        kind: Any = self.of(told)
        if not issubclass(kind, ExceptionGroup):
            return None
        with contextlib.suppress(TypeError, ValueError):
            made = ExceptionGroup.__new__(kind, message, members)  # type: ignore[arg-type]
            if BaseExceptionGroup.__str__(made) != text:
                kind = self._class(kind.__name__, (kind,), _SAYS)
                made = ExceptionGroup.__new__(kind, message, members)  # type: ignore[arg-type]
                made.__dict__["_said"] = text
            return made
        return None

    def is_given(self, kind: type) -> bool:
        """Whether a class is one of the instructor's that both ends have, or made of one."""
        return any(self.given(one.__name__) is one for one in kind.__mro__)

    def _bare(self, kind: type[BaseException], args: list[Any], text: str) -> BaseException:
        """One of a class of the instructor's, whose own code is not run with what is told."""
        base = _python_of(kind)
        made = base.__new__(kind, *args)
        if type(kind.__str__) is type(base.__str__) and str(made) == text:
            return made
        made = base.__new__(self._class(kind.__name__, (kind,), _SAYS), *args)
        made.__dict__["_said"] = text
        return made

    def _saying(self, made: Any, args: list[Any], text: str, body: dict[str, Any]) -> Any:
        """What was made, with a text of the other end's making: if it has none, one that has."""
        kind = type(made)
        if kind.__str__ is not _say:
            made = type.__call__(self._class(kind.__name__, (kind,), body), *args)
        made.__dict__["_said"] = text
        return made

    def _of_family(self, told: list[Any]) -> type[BaseException]:
        found: dict[int, type[BaseException]] = {}
        if len(told) > MAX_FAMILY:
            raise ValueError
        for place in reversed(range(len(told))):
            name, bases = told[place]
            if len(bases) > MAX_BASES:
                raise ValueError
            known = [found[base] if type(base) is int else _known(base) for base in bases]
            kinds = tuple(base for base in known if base is not None)
            given = self.given(name) if type(name) is str else None
            says = {} if any(map(self.is_given, kinds)) else _SAYS
            found[place] = given or self._class(str(name)[:MAX_NAME], kinds or (Exception,), says)
        return found[0]

    def _class(
        self, name: str, bases: tuple[type, ...], body: dict[str, Any] | None = None
    ) -> type[BaseException]:
        key = (name, bases, *(body or ()))
        if key not in self.made:
            if len(self.made) >= MAX_CLASSES:
                return bases[0]
            self.made[key] = class_of_errors(name, bases, dict(body or {}))
        return self.made[key]


def _python_of(kind: type[BaseException]) -> Any:
    """The nearest class of Python's own, or of a library's, of which an exception's is made."""
    return next(one for one in kind.__mro__ if name_of(one))


def _fit_a_text(args: list[Any]) -> bool:
    """Whether these may say where in a text something cannot be written, or read."""
    if len(args) < len(_IN_TEXT):
        return True
    *_, text, start, end, _ = args
    numbers = type(start) is int and type(end) is int
    return type(text) in (str, bytes) and numbers and 0 <= start < end <= len(text)


_IN_TEXT = ("text", "start", "end", "reason")  # after the encoding's name, where it has one


def _is_of_package(kind: type[BaseException]) -> bool:
    """Whether a package that a notebook imports has made it: none of its code is run here."""
    return _python_of(kind).__module__.partition(".")[0] in public.PACKAGES


def _say(self: BaseException) -> str:
    """What it has said at the other end; of one of a test's own class, what Python says."""
    said = vars(self).get("_said")
    return _python_of(type(self)).__str__(self) if said is None else said


_SAYS: dict[str, Any] = {"__str__": _say}
_WANTS: dict[str, Any] = {"__init__": lambda self, text: None}


def _builtin(kinds: Iterable[str]) -> type[BaseException] | None:
    """The first of these names that is an exception of Python's own."""
    for kind in kinds:
        found = getattr(builtins, kind, None)
        if isinstance(found, type) and issubclass(found, BaseException):
            return found
    return None


def arguments(error: BaseException) -> list[Any]:
    """What an exception was made with, and would be made with again."""
    file = error.filename if isinstance(error, OSError) and len(error.args) == 2 else None
    return [*error.args, file] if type(file) is str else list(error.args)


def told_arguments(error: BaseException, text: str, lacks: Callable[[type], bool]) -> list[Any]:
    """The nodes of what an exception was made with; its text if that is not plain, or too much."""
    args = [arg[:MAX_TEXT] if type(arg) is str else arg for arg in arguments(error)]
    try:
        return _Plain(MAX_PARTS, lacks).node(args[:MAX_ARGUMENTS])[1:]
    except WireError:
        return [text[:MAX_TEXT]]


def read_arguments(told: Any, text: str) -> list[Any]:
    """What `told_arguments` tells."""
    try:
        return value_of(["L", *told])
    except WireError:
        return [text]


def attributes(error: BaseException, lacks: Callable[[type], bool]) -> dict[str, Any]:
    """What an exception carries along that is public and plain, as nodes.

    It is read now, properties as well; what cannot be read is left out.
    """
    found: dict[str, Any] = {}
    left, names = MAX_PARTS, []
    with _left_out():
        own = [name for one in type(error).__mro__ if not name_of(one) for name in vars(one)]
        names = list(dict.fromkeys([*vars(error), *own, *NAMED]))
    for name in filter(_is_public, names):
        with _left_out():
            value = getattr(error, name)
            writer = _Plain(left, lacks)
            found[name] = writer.node(value[:MAX_TEXT] if type(value) is str else value)
            left = writer.left
        if len(found) == MAX_CARRIED:
            break
    return found


def _left_out() -> Any:
    """What an answer's own code may raise where it is only asked for a value."""
    return contextlib.suppress(Exception, SystemExit, KeyboardInterrupt)


def as_told(_: str, value: Any) -> Any:
    """A part of an exception, by its name, as it was told."""
    return value


def carry(error: BaseException, told: Any, seen: Callable[[str, Any], Any] = as_told) -> None:
    """Give an exception what another carries along; Python's own attributes stay as they are.

    `seen` makes of each part, which has a name, what it carries here.
    """
    hidden: dict[str, Any] = {}  # what the class of the instructor's finds by itself
    for name, node in list(told.items())[:MAX_CARRIED] if isinstance(told, dict) else ():
        if not _is_public(name):
            continue
        owner = next((one for one in type(error).__mro__ if name in vars(one)), None)
        with contextlib.suppress(WireError):
            if name == NOTES:
                error.__dict__[name] = [seen(name, str(one)) for one in value_of(node)]
            elif owner is not None and name_of(owner):
                if name in NAMED and getattr(error, name) is None:
                    setattr(error, name, seen(name, value_of(node)))
            elif owner is not None and hasattr(vars(owner)[name], "__set__"):
                hidden[name] = seen(name, value_of(node))
            else:
                error.__dict__[name] = seen(name, value_of(node))
    if hidden:
        kind: Any = type(type(error).__name__, (type(error),), hidden)
        object.__setattr__(error, "__class__", kind)


class _Plain(Encoder):
    """Writes plain values: nothing with bytes of its own, and not much."""

    def __init__(self, left: int, lacks: Callable[[type], bool]) -> None:
        super().__init__(Frame())
        self.left, self.lacks = left, lacks

    def node(self, value: Any) -> Any:
        """The tree's node for a value."""
        size = len(value) if type(value) is str else 0
        self.left -= 1 + (value.bit_length() // 4 if type(value) is int else size)
        if self.left < 0:
            raise WireError("an exception carries too much")
        made = super().node(value)
        if self.frame.buffers:
            raise WireError("an exception carries no bytes")
        return made

    def other(self, value: Any) -> Any:
        """Numbers of NumPy, dates, named tuples, and what is made of numbers and texts."""
        kind = type(value)
        if self.lacks(kind) and hasattr(kind, "tolist"):
            return self.node(value.tolist())
        base = next((base for base in based.FIXED if issubclass(kind, base)), None)
        found = arrays.node(self, value) or library.node(self, value)
        if found is None and base is not None:
            return self.node(based.plain(value, base))
        return super().other(value) if found is None else found


def value_of(node: Any) -> Any:
    """The plain value that a node of the other end's exception stands for."""
    return _Reader(Frame()).value(node)


class _Reader(Decoder):
    """Reads plain values, and not many."""

    longest = MAX_PARTS

    def __init__(self, frame: Frame) -> None:
        super().__init__(frame)
        self.is_wary = True

    def value(self, node: Any) -> Any:
        """The value of a node."""
        if type(node) is str and len(node) > MAX_PARTS:
            raise WireError("an exception carries too much")
        return super().value(node)

    def _weigh(self, parts: int) -> None:
        super()._weigh(parts)
        if self.parts > 2 * MAX_PARTS:
            raise WireError("an exception carries too much")

    def _tagged(self, node: list[Any]) -> Any:
        if node[0] == "O":  # the grader's own records
            raise WireError("an exception carries a record")
        return super()._tagged(node)

    def other(self, tag: Any, parts: list[Any]) -> Any:
        """Numbers of NumPy, dates, named tuples."""
        if tag == "AS":
            return arrays.read_number(parts)
        found = library.read(self, tag, parts)
        return super().other(tag, parts) if found is None else found


def _is_public(name: Any) -> bool:
    return name == NOTES or (
        isinstance(name, str)
        and len(name) <= MAX_NAME
        and name.isidentifier()
        and not name.startswith("_")
        and name not in TAKEN
        and not hasattr(BaseException, name)
    )


def said(error: BaseException) -> str:
    """The name that an exception goes by in what is told: none of the grader's own."""
    return "TypeError" if isinstance(error, WireError) else type(error).__name__


def told_of(kind: type) -> dict[str, Any]:
    """What tells the other end of an exception's class; a refusal on the line is a TypeError."""
    kind = TypeError if kind is WireError else kind
    kinds = [one.__name__ for one in kind.__mro__ if getattr(builtins, one.__name__, None) is one]
    return {
        "type": kind.__name__[:MAX_NAME],
        "kinds": kinds,
        "home": name_of(kind),
        "family": family(kind),
    }


def is_of_check(error: BaseException) -> bool:
    """Whether an exception arose in a function of a test's that is there to check what it is told.

    It gives nothing, or makes claims. What cannot compute a value for what it was given says so by
    an exception, and so does an object of what it cannot do: an answer may catch that.
    """
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    homes = [frame.f_globals.get("__name__") for frame in frames]
    first = next((place for place, home in enumerate(homes) if home == HOME), None)
    if first is None or any(str(home).startswith(OWN) for home in homes[first:]):
        return False
    return _checks(frames[first].f_code)


def _checks(code: types.CodeType) -> bool:
    """Whether a function gives nothing, or makes a claim."""
    is_method = "." in code.co_qualname.rpartition("<locals>.")[2]
    if is_method or code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE):
        return False
    made = list(dis.get_instructions(code))
    if any("AssertionError" in (one.argrepr, one.argval) or one.opname == ASSERTS for one in made):
        return True
    return all(
        (before if one.opname == "RETURN_VALUE" else one).argval is None
        and (one.opname == "RETURN_CONST" or before.opname == "LOAD_CONST")
        for before, one in pairwise(made)
        if one.opname in ("RETURN_VALUE", "RETURN_CONST")
    )
