"""Which modules ran from files that are a student's own, and what stood in these files.

An answer's text may show a module's file and run another one: a copy under a computed name, a file
that lies before Python's own, one that a library loads by a text, a library's file by the name of
another library, to whose `__path__` its folder was added. So it is noted where Python
itself tells of it, and told before the module runs, which could take the note away. What is told
is a claim all the same, like all that a student's process says.
"""

import os
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from autograder.bridge.wire import Frame

TOLD = frozenset(("compile", "exec", "import"))
LOADERS = ("importlib._bootstrap", "zipimport")  # whose functions run a module's code
MOST = 500  # modules
MOST_TEXT = 400_000  # bytes of all of them
MAX_NAME = 200
RAN = "ran"  # the key of a message that tells of one

_homes: tuple[str, ...] = ()  # where modules lie that are nobody's own
_compiled: dict[str, bytes] = {}  # files of students' to their text, until it is run


class Ran:
    """Modules that ran, each with the text that did; None where there is none to be read."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, bytes | None], None] = {}

    def add(self, name: Any, text: bytes | None) -> tuple[str, bytes | None] | None:
        """What is added, if it was not known; one too many, or with no name, is left out."""
        is_name = type(name) is str and 0 < len(name) <= MAX_NAME
        if not is_name or (name, text) in self.found or len(self.found) >= MOST:
            return None
        left = MOST_TEXT - sum(len(one or b"") for _, one in self.found)
        pair = name, text if text is not None and len(text) <= left else None
        if pair in self.found:
            return None
        self.found[pair] = None
        return pair

    def hear(self, frame: Frame) -> None:
        """Add what the other end tells, whatever that is."""
        text = bytes(frame.buffers[0][: MOST_TEXT + 1]) if frame.buffers else None
        self.add(frame.tree.get(RAN), text)


_ran = Ran()
_tell: Callable[[Frame], None] | None = None


def prepare() -> None:
    """Take all that can be imported now for nobody's own; call this before any student's code."""
    global _homes
    files = (vars(one).get("__file__") for one in list(sys.modules.values()))
    places = {*filter(None, sys.path), *(str(Path(file).parent) for file in files if file)}
    # as they are called, too: in a sandbox a link among them may lead nowhere
    named = {name for place in places for name in (os.path.realpath(place), str(Path(place)))}
    _homes = tuple(f"{name}{os.sep}" for name in sorted(named) if name.startswith(os.sep))


def hear(event: str, told: tuple[Any, ...]) -> None:
    """Hear what Python tells an audit hook, which calls this."""
    if event == "compile":
        text, file = told  # whoever only takes a text apart may call it by the name of any file
        if type(text) is bytes and _is_own(file) and _loads(sys._getframe(2)):
            _compiled[file] = text
    elif event == "import" and _is_own(told[1]):  # a library in C
        _note(told[0], None)
    elif event == "exec" and (space := _module_that_runs(sys._getframe(2))) is not None:
        name, file, made_of = space.get("__name__"), space.get("__file__"), told[0].co_filename
        name = name if type(name) is str else "a module"
        if _is_own(made_of if file is None else file):  # bytes of Python's say what they like
            _note(name, _compiled.pop(made_of, None) if file == made_of else None)
        elif type(file) is str and not _is_called(name, file):
            _note(name, None)  # as if it were a part of what it was put into


def tell_by(send: Callable[[Frame], None]) -> None:
    """From now on tell of each module in this way before it runs."""
    global _tell
    _tell = send


def _is_own(file: Any) -> bool:
    """Whether a file lies nowhere where modules do; by its name, since links may lead anywhere."""
    if type(file) is not str:
        return False
    path = Path(file)
    return ".." in path.parts or not str(path.absolute()).startswith(_homes)


def _is_called(name: str, file: str) -> bool:
    """Whether a module of this name is what lies in this file: no folder was lent to a package."""
    path = Path(file).with_suffix("")
    path = path.parent if path.name == "__init__" else path
    parts = name.split(".")
    return list(path.parts[-len(parts) :]) == parts


def _loads(frame: types.FrameType) -> bool:
    return frame.f_globals.get("__name__") in LOADERS


def _module_that_runs(frame: types.FrameType) -> dict[str, Any] | None:
    """The names of a module of which a loader runs the code just now; None if none does.

    What is frozen into Python itself is nobody's own.
    """
    if not _loads(frame) or frame.f_code.co_name == "exec_module":
        return None
    zipped = getattr(frame.f_locals.get("mod"), "__dict__", None)
    spaces = (one for one in (*frame.f_locals.get("args", ()), zipped) if type(one) is dict)
    return next(spaces, {})


def _note(name: str, text: bytes | None) -> None:
    """Tell of a module; raises ImportError where there are more than anybody reads."""
    new = _ran.add(name[:MAX_NAME] or "a module", text)
    if len(_ran.found) >= MOST:
        raise ImportError(f"so many modules of your own cannot be read: {MOST}")
    if new is not None and _tell is not None:
        _tell(Frame({RAN: new[0]}, [] if new[1] is None else [new[1]]))
