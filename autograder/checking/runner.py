"""Run cells one by one in this process and say how each went; started by autograder.checking.check.

Reads a line of JSON for each cell from standard input and answers with one on standard output,
which says what was asked as well: what a cell writes there itself does not. It needs nothing but
Python's own library, and IPython where that is installed.
"""

import ast
import asyncio
import builtins
import importlib.util
import inspect
import io
import os
import sys
from json import dumps, loads  # by these names no cell can take them away
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn

LONGEST = 4000  # characters of a message
NO_INPUT = "input() waits for a person, and nobody is there when a notebook is graded; remove it"

NO_EXIT = "exit() ends Python; remove it"
CLOSED = 76  # the status of a Python whose cell closed the pipes to the other side
READY = {"ready": True}
_end, _status, _process = os._exit, os.fstat, os.getpid


class _Nowhere(io.TextIOWrapper):
    """Takes what is printed, also after it was closed."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", errors="replace")

    def write(self, s: str) -> int:
        """Keep nothing."""
        return len(s)

    def close(self) -> None:
        """Stay open: whoever prints next is not to blame."""


def serve() -> None:
    """Answer until the other side closes."""
    asks, answers = _own_channels()
    builtins.input = _no_input
    run = _shell() or _plain()
    run("pass", "<cell first>")  # what is imported for it is Python's own, as in a notebook, and
    sys.path.insert(0, "")  # modules beside the notebook can be imported from here on
    try:
        _say(answers, READY)
        here = _process()
        for line in asks:
            asked = loads(line)
            answer = _run(run, asked["name"], asked["source"])
            if _process() != here:  # the cell has forked: one of the two answers
                _end(0)
            _status(asks.fileno())  # is it still open? The next cell is not to blame if not
            _say(answers, {"asked": asked["asked"], **answer})
    except OSError:
        _end(CLOSED)


def _own_channels() -> tuple[Any, Any]:
    """The pipes to the other side; what the cells print or read goes nowhere."""
    asks, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    for number, mode in ((0, os.O_RDONLY), (1, os.O_WRONLY), (2, os.O_WRONLY)):
        nowhere = os.open(os.devnull, mode)
        os.dup2(nowhere, number)
        os.close(nowhere)
    return asks, answers


def _say(answers: Any, content: dict[str, Any]) -> None:
    answers.write(b"\n" + dumps(content).encode() + b"\n")  # a cell may have begun a line
    answers.flush()


def _no_input(*_: object) -> NoReturn:
    raise EOFError(NO_INPUT)


def _no_exit() -> NoReturn:
    raise SystemExit(NO_EXIT)


def _nothing(*_: object, **__: object) -> None:
    pass


def _run(run: Any, name: str, source: str) -> dict[str, Any]:
    """How one cell went: its value if that is a number, or the exception that ended it."""
    sys.stdout, sys.stderr = _Nowhere(), _Nowhere()  # a cell may have put anything there
    try:
        value, error = run(source, f"<cell {name}>")
    except BaseException as broken:  # noqa: BLE001  (it broke the shell itself: its own affair)
        value, error = None, broken
    if error is not None:
        return {"ok": False, **_described(error, f"<cell {name}>")}
    return {"ok": True, "value": _number(value)}


def _number(value: Any) -> float | None:
    """The value of a cell's last line as points; None if it is no number that can be some."""
    try:  # by its base: what a class of the cell's own says of itself does not matter
        if isinstance(value, bool):
            return None
        return float.__float__(value) if isinstance(value, float) else int.__float__(value)
    except Exception:  # noqa: BLE001  (it is none, or has more digits than fit)
        return None


def _described(error: BaseException, where: str) -> dict[str, Any]:
    try:
        message = str(error)
    except BaseException:  # noqa: BLE001  (the student's own class may do anything)
        message = ""
    line, cell, is_own = _last_cell(error.__traceback__)
    if isinstance(error, SyntaxError) and not cell:
        line, cell, message = error.lineno or 0, where, error.msg or message
    return {
        "type": type(error).__name__,
        "message": message[:LONGEST],
        "bases": [base.__name__ for base in type(error).__mro__[1:-1]],
        "line": line,
        "cell": cell.removeprefix("<cell ").removesuffix(">"),
        "own": is_own,
    }


def _last_cell(trace: TracebackType | None) -> tuple[int, str, bool]:
    """The innermost line of a cell that an exception passed through, and if it arose there."""
    line, cell, is_own = 0, "", False
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        is_own = name.startswith("<cell ")
        if is_own:
            line, cell = trace.tb_lineno, name
        trace = trace.tb_next
    return line, cell, is_own


def _shell() -> Any:
    """A function that runs a cell as a notebook does; None without IPython."""
    try:
        from IPython.core.interactiveshell import InteractiveShell
        from traitlets.config import Config
    except ImportError:
        return None
    config = Config()
    config.HistoryManager.enabled = False
    shell: Any = InteractiveShell.instance(config=config)
    shell.ask_exit = _no_exit
    shell.enable_gui = _nothing  # this shell has no windows to wait for
    shell.showtraceback = shell.showsyntaxerror = _nothing

    def run(source: str, where: str) -> tuple[Any, BaseException | None]:
        def named(*_: object) -> str:
            return where

        shell.compile.get_code_name = named
        done = shell.run_cell(source)
        return done.result, done.error_before_exec or done.error_in_exec

    return run


def _plain() -> Any:
    """A function that runs a cell in plain Python: magics do nothing, await works."""
    names: dict[str, Any] = {"__name__": "__main__", "__builtins__": builtins}
    without_magics = _plain_python().without_magics

    def run(source: str, where: str) -> tuple[Any, BaseException | None]:
        try:
            tree = ast.parse(without_magics(source), where)
            last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
            _execute(compile(tree, where, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
            if not isinstance(last, ast.Expr):
                return None, None
            code = compile(
                ast.Expression(last.value), where, "eval", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
            )
            return _execute(code, names), None
        except BaseException as error:  # noqa: BLE001  (whatever a cell raises is its outcome)
            return None, error

    return run


def _plain_python() -> Any:
    """That module of the grader's, which may belong to no package that this Python knows."""
    place = Path(__file__).parents[1] / "common" / "plain_python.py"
    spec: Any = importlib.util.spec_from_file_location("_plain_python_of_cells", place)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its classes look themselves up there
    spec.loader.exec_module(module)
    return module


def _execute(code: Any, names: dict[str, Any]) -> Any:
    value = eval(code, names)
    return asyncio.run(value) if inspect.iscoroutine(value) else value


if __name__ == "__main__":
    serve()
