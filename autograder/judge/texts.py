"""Texts and bytes of an answer's are not run where the tests run, whichever library offers to."""

import ast
import builtins
import functools
import os
import pickle
import re
import subprocess
import sys
import types
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

from autograder.bridge.lent import LENT
from autograder.judge.given import texts_in
from autograder.judge.space import BrokenCell

EVALUATORS = (  # functions of libraries that run a text which they are given
    ("sympy.parsing.sympy_parser", "parse_expr"),
    ("sympy.utilities.lambdify", "lambdify"),
    ("pandas.core.computation.eval", "eval"),
    ("numexpr.necompiler", "evaluate"),
    ("numexpr.necompiler", "validate"),
    ("timeit", "timeit"),
    ("timeit", "repeat"),
    ("os", "system"),
)
LOADERS = ("load", "loads", "Unpickler")
PICKLED = (  # where they are
    *(("pickle", name) for name in LOADERS),
    *(("_pickle", name) for name in LOADERS),
    ("shelve", "Unpickler"),
    *(("cloudpickle.cloudpickle", name) for name in LOADERS[:2]),
    *(("cloudpickle", name) for name in LOADERS[:2]),
)
CODE = (("marshal", "load"), ("marshal", "loads"))  # make code of bytes
STARTING = tuple(  # programs; `system` and `popen` are guarded by what they use
    ("os", name)
    for name in (
        *("posix_spawn", "posix_spawnp", "execv", "execve", "execvp", "execvpe", "execl"),
        *("execle", "execlp", "execlpe", "spawnv", "spawnve", "spawnvp", "spawnvpe", "spawnl"),
        *("spawnle", "spawnlp", "spawnlpe"),
    )
)
# modules whose own code runs what it is given
RUNNERS = ("codeop", "cProfile", "profile", "trace", "bdb", "runpy", "logging.config")
RUNNERS += ("IPython.core.interactiveshell", "IPython.core.compilerop", "importlib.abc")
HINTING = ("typing", "typing_extensions", "inspect")  # of these a text that calls nothing is a type
RUNNERS += HINTING
ACTING = (ast.Call, ast.Lambda, ast.NamedExpr, ast.Await, ast.ListComp, ast.SetComp)
ACTING += (ast.DictComp, ast.GeneratorExp, ast.FormattedValue)
HAND_ON = ("/asyncio/", "/IPython/")  # libraries that start what a cell has named
RUNS = ("eval", "exec", "compile")
INSTALLED = frozenset(("site-packages", "dist-packages"))  # where libraries lie
OF_YAML = (  # methods that make, or call, what a text names
    "find_python_name",
    "find_python_module",
    "make_python_instance",
    "set_python_instance_state",
)


class _Refuser(pickle.Unpickler):
    """Stands in the place of `pickle.Unpickler`, of which libraries derive classes of their own."""

    def __init__(self, *_: Any, **__: Any) -> None:
        _refuse()


_KNOWN: set[str] = set()  # the instructor's texts, of all notebooks that were read here
_OWN: set[str] = set()  # names of the modules beside these


def run_no_texts(texts: Iterable[str], own: Iterable[str] = ()) -> None:
    """From now on this process runs no text but such as these, and makes no pickled object.

    Called again, it runs the newer texts as well. What is imported later is not looked at, but for
    the instructor's `own` modules, which run no text but these and those that stand in them.
    """
    _KNOWN.update(texts)
    _OWN.update(own)

    def known() -> Collection[str]:
        return _KNOWN

    _load_no_bytes(known)
    for module in [one for name, one in sys.modules.items() if _is_own(name)]:
        _guard_loaded(module, known)
    for module, name in EVALUATORS:
        function = getattr(sys.modules.get(module), name, None)
        if function is not None:
            _replace(module.partition(".")[0], name, function, known)
    for module in RUNNERS:
        for name in RUNS if module in sys.modules else ():
            setattr(sys.modules[module], name, _running(name, known, module in HINTING))
    for method in OF_YAML if "yaml.constructor" in sys.modules else ():
        setattr(sys.modules["yaml.constructor"].UnsafeConstructor, method, _refuse_name)
    for module, kind, method, guard in METHODS:
        if module in sys.modules:
            owner = getattr(sys.modules[module], kind)
            runs = getattr(getattr(owner, method), "__wrapped__", getattr(owner, method))
            setattr(owner, method, functools.wraps(runs)(guard(runs, known)))


def run_sql_within_bounds() -> None:
    """From now on SQL that is no text of the instructor's reads and writes tables, and no more."""
    if "sqlite3" in sys.modules:
        from autograder.judge import sql  # late, as few need it

        sql.guard(lambda text: _is_known(text, lambda: _KNOWN))


def _load_no_bytes(known: Callable[[], Collection[str]]) -> None:
    """Have no object, no code and no program made of what an answer may have made."""
    for module, name in PICKLED:
        if module in sys.modules:
            instead = _Refuser if name == "Unpickler" else _refuse
            setattr(sys.modules[module], name, instead)
    for module, name in (*CODE, *STARTING):
        if module in sys.modules and hasattr(sys.modules[module], name):
            guarding = _making_code if module == "marshal" else _becoming
            _guard(sys.modules[module], name, guarding, known)


def _guard(module: Any, name: str, guarding: Any, known: Callable[[], Collection[str]]) -> None:
    """Put a guarded function in the place of a module's."""
    function = getattr(module, name)
    runs = getattr(function, "__wrapped_evaluator__", function)
    guarded: Any = functools.wraps(runs)(guarding(runs, known))
    guarded.__wrapped_evaluator__ = runs
    setattr(module, name, guarded)


def _making_code(makes: Any, known: Callable[[], Collection[str]]) -> Any:
    """How code is made of bytes: for Python's own imports alone."""

    def guarded(*given: Any, **named: Any) -> Any:
        if not sys._getframe(1).f_code.co_filename.startswith("<frozen "):
            raise BrokenCell("bytes that an answer may have made are made no code of")
        return makes(*given, **named)

    return guarded


def _becoming(starts: Any, known: Callable[[], Collection[str]]) -> Any:
    """How a program is started by a function of the system's."""

    def guarded(*given: Any, **named: Any) -> Any:
        words = (*given, *named.values())
        inner = [word for one in words if isinstance(one, list | tuple) for word in one]
        texts = (one for one in (*words, *inner) if isinstance(one, str | bytes | os.PathLike))
        if _by_a_cell() and not all(_may_start(os.fsdecode(one), known) for one in texts):
            _refuse_text(starts.__name__)
        return starts(*given, **named)

    return guarded


def _running(
    name: str, known: Callable[[], Collection[str]], is_hinting: bool = False
) -> Callable[..., Any]:
    """One of Python's functions that run a text, for a module which is given one."""
    runs = getattr(builtins, name)

    def guarded(source: Any, *more: Any, **named: Any) -> Any:
        is_code = isinstance(source, types.CodeType) or (is_hinting and _calls_nothing(source))
        if not is_code and not _is_known(source, known):
            _refuse_text(name)
        if name != "compile" and not more:
            frame = sys._getframe(1)  # as without this function in between
            more = frame.f_globals, frame.f_locals
        return runs(source, *more, **named)

    return guarded


def _calls_nothing(source: Any) -> bool:
    """Whether a text could be the name of a type, as libraries write it in a hint."""
    try:
        tree = ast.parse(source, mode="eval")
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return False
    return not any(isinstance(node, ACTING) for node in ast.walk(tree))


def _is_known(source: Any, known: Callable[[], Collection[str]]) -> bool:
    """Whether this is a text of the instructor's, or a part of one."""
    text = source.decode(errors="replace") if isinstance(source, bytes) else source
    return isinstance(text, str) and any(text.strip() in one for one in (*known(), "pass"))


def _loading(loads: Any, known: Callable[[], Collection[str]]) -> Any:
    """How a module is made of a file's text: one that a test has written may be an answer's."""

    def guarded(self: Any, data: Any, path: Any, **named: Any) -> Any:
        if LENT.has_made(Path(str(path))) and not _is_known(data, known):
            _refuse_text("import")
        return loads(self, data, path, **named)

    return guarded


def _of_archive(gets: Any, known: Callable[[], Collection[str]]) -> Any:
    """The same of an archive, in which modules lie as text or as bytes."""

    def guarded(self: Any, name: str) -> Any:
        if LENT.has_made(Path(self.archive)) and not _is_known(self.get_source(name), known):
            _refuse_text("import")
        return gets(self, name)

    return guarded


def _of_bytes(gets: Any, known: Callable[[], Collection[str]]) -> Any:
    """The same of a file of bytes alone, of which nobody knows the text."""

    def guarded(self: Any, name: str) -> Any:
        if LENT.has_made(Path(self.path)):
            _refuse_text("import")
        return gets(self, name)

    return guarded


def _in_own(runs: Any, known: Callable[[], Collection[str]]) -> Any:
    """How a module's text is run: one of the instructor's own finds these functions guarded."""

    def guarded(self: Any, module: Any) -> None:
        path = Path(self.path)
        if _is_own(module.__name__) and _is_written(path) and not LENT.has_made(path):
            guards = _guards_for(self.get_source(module.__name__) or "", known)
            vars(module).setdefault("__builtins__", {**vars(builtins), **guards})
        runs(self, module)

    return guarded


def _is_own(name: str) -> bool:
    return name.partition(".")[0] in _OWN


def _is_written(path: Path) -> bool:
    """Whether this is the text of a module that lies with no library."""
    return path.suffix == ".py" and INSTALLED.isdisjoint(path.parts) and path.is_file()


def _guards_for(source: str, known: Callable[[], Collection[str]]) -> dict[str, Any]:
    """These functions for a module of the instructor's, of this text."""
    there = texts_in(source)

    def also() -> Collection[str]:
        return (*known(), *there)

    return {name: _running(name, also) for name in RUNS}


def _guard_loaded(module: Any, known: Callable[[], Collection[str]]) -> None:
    """The same of one that is loaded: its functions keep their builtins, so its own names do it."""
    path = Path(str(getattr(module, "__file__", None)))
    if not _is_written(path):
        return
    source = path.read_bytes().decode(errors="replace")
    for name, guard in _guards_for(source, known).items():
        if re.search(rf"(?<![.\w]){name}\(", source) and name not in vars(module):
            setattr(module, name, guard)


def _timing(makes: Any, known: Callable[[], Collection[str]]) -> Any:
    """How a timer is made of the texts that it runs."""

    def guarded(self: Any, *args: Any, **named: Any) -> None:
        for one in (*args, *named.values()):
            if isinstance(one, str) and not _is_known(one, known):
                _refuse_text("timeit")
        makes(self, *args, **named)

    return guarded


def _of_logging(resolves: Any, known: Callable[[], Collection[str]]) -> Any:
    """What a text names in a table of logging's settings: of a text of an answer's, its own."""

    def guarded(self: Any, text: Any) -> Any:
        found = resolves(self, text)
        is_own = isinstance(found, type) and found.__module__.partition(".")[0] == "logging"
        if not is_own and found not in (sys.stdout, sys.stderr) and text not in known():
            _refuse_name()
        return found

    return guarded


def _starting(starts: Any, known: Callable[[], Collection[str]]) -> Any:
    """How a program is started by a cell: none whose command an answer may have made."""

    def guarded(self: Any, args: Any, *more: Any, **named: Any) -> None:
        words = [args] if isinstance(args, str | bytes | os.PathLike) else [*args]
        if _by_a_cell() and not all(_may_start(os.fsdecode(one), known) for one in words):
            _refuse_text("subprocess")
        starts(self, words if isinstance(args, Iterator) else args, *more, **named)

    return guarded


def _feeding(feeds: Any, known: Callable[[], Collection[str]]) -> Any:
    """How a program is handed what it reads: it may be one that runs that."""

    def guarded(self: Any, input: Any = None, timeout: float | None = None) -> Any:
        if input and _by_a_cell() and not _is_known(input, known):
            _refuse_text("subprocess")
        return feeds(self, input, timeout)

    return guarded


def _by_a_cell() -> bool:
    """Whether it is a cell that starts a program, and not a library that it uses."""
    frame = sys._getframe(2)
    while frame.f_back and _hands_on(frame.f_code.co_filename):
        frame = frame.f_back
    return frame.f_code.co_filename.startswith("<")


def _hands_on(file: str) -> bool:
    """Whether the code of this file starts what others have named."""
    is_pythons = file in (subprocess.__file__, os.__file__, "<frozen os>")
    return is_pythons or any(part in file for part in HAND_ON)


def _templating(makes: Any, known: Callable[[], Collection[str]]) -> Any:
    """How Jinja makes code of a template: of a library's file, or of the instructor's text."""

    def guarded(self: Any, source: Any, name: Any = None, filename: Any = None, *more: Any) -> Any:
        is_file = filename is not None and not LENT.has_made(Path(filename))
        if isinstance(source, str) and not is_file and not _is_known(source, known):
            _refuse_text("Template")
        return makes(self, source, name, filename, *more)

    return guarded


def _of_expression(makes: Any, known: Callable[[], Collection[str]]) -> Any:
    """The same of an expression."""

    def guarded(self: Any, source: str, *more: Any, **named: Any) -> Any:
        if not _is_known(source, known):
            _refuse_text("compile_expression")
        return makes(self, source, *more, **named)

    return guarded


def _of_pickle(loads: Any, known: Callable[[], Collection[str]]) -> Any:
    """How the class written in Python loads, of which dill's and joblib's are made."""
    return lambda self: _refuse()


def _may_start(word: str, known: Callable[[], Collection[str]]) -> bool:
    """Whether a word of a command is the instructor's, and no file of a text that is not."""
    path = Path(word)
    try:
        is_file = path.is_file()
    except OSError:  # it is too long for a name
        is_file = False
    if is_file and LENT.has_made(path):
        return _is_known(path.read_bytes(), known)
    return (is_file and path.is_absolute()) or _is_known(word, known)


METHODS = (  # of what class a method is guarded, and how
    ("logging.config", "BaseConfigurator", "resolve", _of_logging),
    ("timeit", "Timer", "__init__", _timing),
    ("importlib.machinery", "SourceFileLoader", "source_to_code", _loading),
    ("importlib.machinery", "SourceFileLoader", "exec_module", _in_own),
    ("importlib.machinery", "SourcelessFileLoader", "get_code", _of_bytes),
    ("zipimport", "zipimporter", "get_code", _of_archive),
    ("zipimport", "zipimporter", "load_module", _of_archive),
    ("subprocess", "Popen", "__init__", _starting),
    ("subprocess", "Popen", "communicate", _feeding),
    ("pickle", "_Unpickler", "load", _of_pickle),
    ("jinja2.environment", "Environment", "compile", _templating),
    ("jinja2.environment", "Environment", "compile_expression", _of_expression),
)


def _refuse_text(name: str) -> None:
    raise BrokenCell(
        f"{name}() of a text that an answer may have made; compare the values, or give it "
        "a text that stands in your cell"
    )


def _refuse_name(*_: Any, **__: Any) -> Any:
    raise BrokenCell("a text that an answer may have made names what is to be called")


def _refuse(*_: Any, **__: Any) -> Any:
    raise BrokenCell("pickled bytes may be an answer's own, and are not loaded where tests run")


def _replace(package: str, name: str, function: Any, known: Callable[[], Collection[str]]) -> None:
    """Put a guarded function wherever the package holds this one."""
    runs = getattr(function, "__wrapped_evaluator__", function)

    @functools.wraps(runs)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        texts = [one for one in (*args, *kwargs.values()) if isinstance(one, str)]
        if any(text not in known() for text in texts):
            _refuse_text(name)
        return runs(*args, **kwargs)

    guarded.__wrapped_evaluator__ = runs  # type: ignore[attr-defined]
    for place, module in list(sys.modules.items()):
        if place.partition(".")[0] == package and vars(module).get(name) is function:
            setattr(module, name, guarded)
