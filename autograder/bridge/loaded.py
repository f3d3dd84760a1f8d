"""Which modules ran from files that are a student's own, and what stood in these files.

An answer's text may show a module's file and run another one: a copy under a computed name, a file
that lies before Python's own, one that a library loads by a text. So it is noted where Python
itself tells of it. What is noted is a claim like all that a student's process says.
"""

import os
import sys
from pathlib import Path
from types import FrameType
from typing import Any

TOLD = frozenset(("compile", "exec", "import"))
# whose functions run a module's code
LOADERS = ("importlib._bootstrap", "importlib._bootstrap_external", "zipimport")
MOST = 200  # modules; one that is loaded anew with another text counts again
MORE = "..."  # told in the place of all that came after so many
MOST_TEXT = 400_000  # bytes of all of them

_homes: tuple[str, ...] = ()  # where modules lie that are nobody's own
_compiled: dict[FrameType, bytes] = {}  # loaders at work to the texts that they are about to run
_found: dict[tuple[str, bytes | None], None] = {}  # names, each with a text, in order


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
        if type(text) is bytes and _is_own(file) and (loading := _loading()):
            _compiled[loading] = text
    elif event == "import" and _is_own(told[1]):  # a library in C
        _note(told[0], None)
    elif event == "exec" and (space := _module_that_runs()) is not None:
        loading = _loading()  # what was compiled elsewhere says nothing of this code
        text = _compiled.pop(loading, None) if loading else None
        # bytes of Python's say themselves where their text lay
        if _is_own(told[0].co_filename) or _is_own(space.get("__file__")):
            name = space.get("__name__")
            _note(name if type(name) is str else "a module", text)


def told() -> list[list[Any]]:
    """The names of these modules, each with its text; None where there is none to be read.

    A name may stand there twice, where what it names was changed and loaded anew.
    """
    return [[name, text] for name, text in _found]


def _is_own(file: Any) -> bool:
    if type(file) is not str:
        return False
    names = os.path.realpath(file), os.path.normpath(Path(file).absolute())
    return not any(name.startswith(_homes) for name in names)


def _module_that_runs() -> dict[str, Any] | None:
    """The names of a module of which a loader runs the code just now."""
    frame = sys._getframe(3)  # above this function, `hear` and the hook
    if frame.f_globals.get("__name__") not in LOADERS:
        return None
    spaces = [*frame.f_locals.get("args", ()), frame.f_locals.get("mod")]
    return next((one for one in spaces if type(one) is dict), {})


def _loading() -> FrameType | None:
    """Where a loader makes a module's code and runs it, if that is what happens just now."""
    frame: FrameType | None = sys._getframe(3)  # above this function, `hear` and the hook
    while frame is not None and frame.f_globals.get("__name__") in LOADERS:
        if frame.f_code.co_name == "exec_module":
            return frame
        frame = frame.f_back
    return None


def _note(name: str, text: bytes | None) -> None:
    if (name, text) in _found:
        return
    left = MOST_TEXT - sum(len(one or b"") for _, one in _found)
    if len(_found) >= MOST:
        name, text = MORE, None
    elif text is not None and len(text) > left:
        text = None
    _found[name, text] = None
