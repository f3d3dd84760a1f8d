"""Exceptions on the line: classes with their bases, so that `except` catches what it would at home.

The other end tells of each class of its own its name and its bases; Python's own classes, and those
of libraries that are loaded here, go by their names. What is made here is empty but for that.
Those by which what runs tests says "skipped", "stop" or "quit" are no answer's to raise.
"""

import builtins
import contextlib
import sys
from collections.abc import Iterable
from typing import Any

from autograder.engine.wire import WireError

MAX_CLASSES = 500  # that are kept
MAX_FAMILY = 20
MAX_BASES = 5
MAX_NAME = 100
MAX_TEXT = 4000  # characters of an attribute
RUNNERS = frozenset(("unittest", "doctest", "bdb", "pdb"))  # modules that run tests
TAKEN = ("raised", "through", "args")  # attributes with a meaning of their own


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
    return name if _known(name) is kind else ""


def _known(name: Any) -> Any:
    """The public exception of Python's library that goes by this name, if it is loaded."""
    module, _, path = str(name).partition(":")
    top = module.partition(".")[0]
    if top not in sys.stdlib_module_names - RUNNERS or module == "__main__" or path[:1] == "_":
        return None
    found = vars(sys.modules[module]).get(path) if module in sys.modules else None
    return found if isinstance(found, type) and issubclass(found, Exception) else None


class Classes:
    """The classes made here for those of the other end."""

    def __init__(self) -> None:
        self.made: dict[tuple[Any, ...], type[Exception]] = {}

    def of(self, told: Any) -> type[Exception]:
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

    def make(self, told: Any, args: list[Any], text: str) -> Exception:
        """An exception of such a class, with this text; alone, if it wants other arguments."""
        kind = self.of(told)
        with contextlib.suppress(Exception):  # classes want what they want
            made = kind(*args)
            return made if str(made) == text else self._saying(kind, args, text, _SAYS)
        with contextlib.suppress(Exception):
            return self._saying(kind, [text], text, _SAYS | _WANTS)
        return self._class(kind.__name__, (Exception,))(text)

    def _saying(
        self, kind: type[Exception], args: list[Any], text: str, body: dict[str, Any]
    ) -> Exception:
        """One whose class has a text of its own making at the other end."""
        made = self._class(kind.__name__, (kind,), body)(*args)
        made.__dict__["_said"] = text
        return made

    def _of_family(self, told: list[Any]) -> type[Exception]:
        found: dict[int, type[Exception]] = {}
        if len(told) > MAX_FAMILY:
            raise ValueError
        for place in reversed(range(len(told))):
            name, bases = told[place]
            if len(bases) > MAX_BASES:
                raise ValueError
            known = [found[base] if type(base) is int else _known(base) for base in bases]
            kinds = tuple(base for base in known if base is not None)
            found[place] = self._class(str(name)[:MAX_NAME], kinds or (Exception,))
        return found[0]

    def _class(
        self, name: str, bases: tuple[type, ...], body: dict[str, Any] | None = None
    ) -> type[Exception]:
        key = (name, bases, *(body or ()))
        if key not in self.made:
            if len(self.made) >= MAX_CLASSES:
                return bases[0]
            made: Any = type(name, bases, dict(body or {}))
            self.made[key] = made
        return self.made[key]


_SAYS: dict[str, Any] = {"__str__": lambda self: self.__dict__.get("_said", "")}
_WANTS: dict[str, Any] = {"__init__": lambda self, text: None}


def _builtin(kinds: Iterable[str]) -> type[Exception] | None:
    """The first of these names that is an exception of Python's own."""
    for kind in kinds:
        found = getattr(builtins, kind, None)
        if isinstance(found, type) and issubclass(found, Exception):
            return found
    return None


def arguments(error: BaseException) -> list[Any]:
    """What an exception was made with, and would be made with again."""
    file = error.filename if isinstance(error, OSError) and len(error.args) == 2 else None
    return [*error.args, file] if type(file) is str else list(error.args)


def attributes(error: BaseException) -> dict[str, Any]:
    """What an exception carries along that is public and plain."""
    found = {name: value for name, value in vars(error).items() if type(name) is str}
    kept = [(n, v[:MAX_TEXT] if isinstance(v, str) else v) for n, v in found.items() if is_plain(v)]
    return {name: value for name, value in kept[:MAX_FAMILY] if _is_public(name)}


def carry(error: BaseException, told: Any) -> None:
    """Give an exception what another carries along; nothing that it has already."""
    if not isinstance(told, dict):
        return
    for name, value in list(told.items())[:MAX_FAMILY]:
        if _is_public(name) and is_plain(value) and not hasattr(type(error), name):
            error.__dict__[name] = value[:MAX_TEXT] if isinstance(value, str) else value


def _is_public(name: Any) -> bool:
    return (
        isinstance(name, str)
        and len(name) <= MAX_NAME
        and name.isidentifier()
        and not name.startswith("_")
        and name not in TAKEN
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


def is_plain(value: Any) -> bool:
    """Whether this may stand in a message as it is."""
    whole = type(value) is int and -(2**63) <= value < 2**63
    return value is None or whole or type(value) in (bool, float, str)
