"""Which modules ran from files that are a student's own, and what stood in these files.

An answer's text may show a module's file and run another one: a copy under a computed name, a file
that lies before Python's own, one that a library loads by a text. So it is noted where Python
itself tells of it. What is noted is a claim like all that a student's process says.
"""

import os
import sys
from pathlib import Path
from typing import Any

TOLD = frozenset(("compile", "exec", "import"))
LOADERS = ("importlib._bootstrap", "zipimport")  # whose functions run a module's code
MOST = 50  # modules
MOST_TEXT = 400_000  # bytes of all of them

_homes: tuple[str, ...] = ()  # where modules lie that are nobody's own
_compiled: dict[str, bytes] = {}  # files of students' to their text, until it is run
_found: dict[str, bytes | None] = {}


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
        text, file = told
        if type(text) is bytes and _is_own(file):
            _compiled[file] = text
    elif event == "import" and _is_own(told[1]):  # a library in C
        _note(told[0], None)
    elif event == "exec" and (name := _module_that_runs()):
        file = told[0].co_filename
        if _is_own(file):
            _note(name, _compiled.pop(file, None))


def told() -> list[list[Any]]:
    """The names of these modules, each with its text; None where there is none to be read."""
    return [[name, text] for name, text in _found.items()]


def _is_own(file: Any) -> bool:
    if type(file) is not str:
        return False
    names = os.path.realpath(file), os.path.normpath(Path(file).absolute())
    return not any(name.startswith(_homes) for name in names)


def _module_that_runs() -> str:
    """The name of a module of which a loader runs the code just now."""
    frame = sys._getframe(3)  # above this function, `hear` and the hook
    if frame.f_globals.get("__name__") not in LOADERS:
        return ""
    spaces = [*frame.f_locals.get("args", ()), frame.f_locals.get("mod")]
    names = [one.get("__name__") for one in spaces if type(one) is dict]
    return next((name for name in names if type(name) is str), "a module")


def _note(name: str, text: bytes | None) -> None:
    left = MOST_TEXT - sum(len(one or b"") for one in _found.values())
    if len(_found) < MOST or name in _found:
        is_new = name not in _found  # what ran under one name twice is not told apart
        _found[name] = text if is_new and text is not None and len(text) <= left else None
