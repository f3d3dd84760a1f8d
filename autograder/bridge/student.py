"""The student's end: runs the cells of a submission in a warm shell and serves what they define.

Everything here runs beside the student's code and can be changed by it; nothing depends on that.
"""

import __future__

import ast
import builtins
import contextlib
import importlib
import io
import os
import socket
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from autograder.bridge import late, loaded, namespaces, said, watch
from autograder.bridge.figures import close_figures
from autograder.bridge.peer import Peer
from autograder.bridge.policy import Free
from autograder.bridge.printed import STREAMS, Telling
from autograder.bridge.processor import know_processor
from autograder.bridge.public import open_packages
from autograder.bridge.watch import Watch
from autograder.bridge.wire import Frame
from autograder.common.syntax import awaits

MAX_OUTPUT = 20_000  # characters kept of what a cell prints
RUN = frozenset(  # magics that do something; all others are left out with a note
    ["time", "timeit", "capture", "precision", "who", "whos", "prun", "xmode"]
)
WRITE = frozenset(["writefile", "file"])  # cell magics that write what later cells import
# no result needs them; `config` runs a text as Python, and gives parts of the shell, as `lsmagic`
QUIET = frozenset(["matplotlib", "load_ext", "reload_ext", "autoreload", "config", "lsmagic"])
SHELL: Any = None

late.offer()


def warm(modules: Sequence[str], watched: Sequence[str] = ()) -> None:
    """Import what notebooks will import, and make the shell; before anything is forked.

    Args:
        modules: to be imported.
        watched: names that questions forbid; without any, nothing will have to be stopped.
    """
    global SHELL
    for name in modules:
        try:
            importlib.import_module(name)
        except ImportError as error:
            print(f"note: {name} could not be imported beforehand: {error}", file=sys.stderr)
    if "torch" in sys.modules:
        importlib.import_module("autograder.bridge.tensors")  # out of reach in the sandbox
    know_processor()
    watch.prepare(watched)
    if watched:
        watch.hear_of_starts()
        namespaces.keep()
    open_packages(modules)
    SHELL = _shell()
    SHELL.run_cell("None", store_history=False)  # what the first cell needs is looked up here


def begin(cells: Sequence[tuple[str, str]]) -> list[dict[str, Any]] | None:
    """Run the cells with which every submission begins; how each went.

    None if a fork could not go on from there as from a beginning of its own: a cell failed, has to
    be told something, or left behind files, open files, threads or processes.
    """
    line, other = socket.socketpair()
    with line, other:
        runner, before, streams = Runner(line), _left_behind(), (sys.stdout, sys.stderr)
        sys.stdout = sys.stderr = runner.output
        try:
            outcomes = [runner.run(*cell) for cell in cells]
        finally:
            sys.stdout, sys.stderr = streams
        failed = any(outcome["error"] or outcome["notes"] for outcome in outcomes)
        return None if failed or _left_behind() != before else outcomes


def _left_behind() -> list[list[str]]:
    """What a fork shares with its parent, or does not have: files, open ones, threads, children."""
    folders = {Path.home(), Path(tempfile.gettempdir())}
    files = [str(path) for folder in sorted(folders) for path in folder.rglob("*")]
    tasks, descriptors = (
        sorted(str(path) for path in Path("/proc/self", name).iterdir()) for name in ("task", "fd")
    )
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return [files, tasks, descriptors, children]


def serve(line: socket.socket) -> None:
    """Serve one submission until the line closes."""
    if SHELL is None:
        warm([])
    here = os.getpid()
    line = _Line(fileno=line.detach())
    os.register_at_fork(after_in_child=line.close)
    sys.path.insert(0, "")  # as in a notebook: what a cell writes beside it can be imported
    runner = Runner(line)
    sys.stdout, sys.stderr = (Telling(runner.output, name, runner.peer.printed) for name in STREAMS)
    try:
        runner.peer.serve()
    finally:
        if os.getpid() != here:  # a fork that a cell made, and that went on to the cell's end
            os._exit(0)


class _Line(socket.socket):
    """The line to the grader, for one process: a fork, however it was made, must not answer."""

    def __init__(self, fileno: int) -> None:
        super().__init__(fileno=fileno)
        self.owner = os.getpid()

    def send(self, *parts: Any) -> int:
        """Send some."""
        self._check()
        return super().send(*parts)

    def recv(self, *size: int) -> bytes:
        """Receive some."""
        self._check()
        return super().recv(*size)

    def _check(self) -> None:
        if os.getpid() != self.owner:
            raise OSError("this process is a fork of the one that answers")


def selftest(line: socket.socket) -> None:
    """Show that a fork can compute: a library with threads of its own may hang there."""
    if "torch" in sys.modules:
        importlib.import_module("autograder.bridge.tensors").compute()
    line.sendall(b"ok")


class Runner:
    """Runs cells and tells what is defined."""

    def __init__(self, line: socket.socket) -> None:
        self.peer = Peer(
            line,
            Free(),
            {
                "run": self.run,
                "run_all": self.run_all,
                "name": self.name,
                "names": self.names,
                "set": self.set,
                "delete": self.delete,
                "put": self.put,
                "notes": self.notes,
                "watch": self.watch,
                "seen": self.seen,
            },
        )
        self.peer.errors.given = self._error
        loaded.tell_by(self._tell)
        self.output = Capped()
        self.process = os.getpid()
        self.watching: Watch | None = None
        self.space: dict[str, Any] = SHELL.user_ns
        self.peer.records.attach(self.space, {})
        self.noted: dict[tuple[str, str], None] = {}
        _tame(SHELL, self.note)
        builtins.input = self.peer.typed.input

    def _error(self, name: str) -> Any:
        """The class of exceptions of this name, if there is one: the tests' may be the same."""
        found = self.space.get(name)
        is_class = isinstance(found, type) and issubclass(found, Exception)
        return found if is_class and found.__module__ == "__main__" else None

    def _tell(self, told: Frame) -> None:
        """Tell of a module; a fork that a cell has made tells nobody anything."""
        if os.getpid() == self.process:
            self.peer.wire.send(told)

    def note(self, code: str, name: str = "") -> None:
        """Something is not done, or not kept, while grading; the words for it are in `said`."""
        if len(self.noted) < said.MOST:
            self.noted[code, name] = None

    def notes(self) -> list[list[str]]:
        """What was noted since this was asked last: codes, each with a name."""
        noted, self.noted = self.noted, {}
        return [list(pair) for pair in noted]

    def run(self, cell: str, source: str) -> dict[str, Any]:
        """Run a cell; what it printed, how it failed if it did, and what was left out of it."""
        self.output.clear()
        SHELL.compile.get_code_name = lambda raw, code, number: f"<answer {cell}>"
        _tell_of_cuda(self.note)
        before = _defaults()
        error = _run(source)
        close_figures()
        self.peer.printed.forget()
        for code, value in _defaults().items():
            if value != before.get(code, value):
                self.note(code)
        told = None if error is None else self.peer.thrown.describe(error)
        return {"printed": self.output.text(), "error": told, "notes": self.notes()}

    def run_all(self, *cells: tuple[str, str]) -> list[dict[str, Any]]:
        """Run cells, one after the other, whatever becomes of those before."""
        return [self.run(*cell) for cell in cells]

    def name(self, name: str) -> Any:
        """The value of a global name."""
        if name not in self.space:
            raise NameError(f"name {name!r} is not defined")
        if self.watching is not None:
            self.watching.look_at(self.space[name])
        return self.space[name]

    def names(self) -> list[str]:
        """All names that are defined."""
        return [name for name in self.space if type(name) is str]

    def set(self, name: str, value: Any) -> None:
        """Define a global name."""
        self.space[name] = value

    def delete(self, name: str) -> None:
        """Undefine a global name."""
        if name not in self.space:
            raise NameError(f"name {name!r} is not defined")
        del self.space[name]

    def put(self, name: str, content: bytes) -> None:
        """Write a file that was handed in beside the notebook; `name` is relative, with /."""
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        importlib.invalidate_caches()  # a module among them is to be found at once

    def watch(self, names: list[str], alone: bool) -> bool:
        """Stop the answer from now on where it does what these names stand for.

        If it is to be `alone`, no other process of the student's runs meanwhile; whether one did.
        """
        self.seen()
        self.watching = Watch(names)
        return alone and watch.start_alone()

    def seen(self) -> list[str]:
        """What was stopped; from now on nothing is."""
        if self.watching is None:
            return []
        watching, self.watching = self.watching, None
        watching.end()
        return sorted(watching.seen)


def _run(source: str) -> BaseException | None:
    """Run a cell, in the shell if it has what only a notebook has: magics, a top-level await."""
    SHELL.compile.flags &= ~__future__.barry_as_FLUFL.compiler_flag  # who reads cells reads no <>
    name = SHELL.compile.cache(source, SHELL.execution_count, raw_code=source)
    try:
        tree = SHELL.compile.ast_parse(source, filename=name)
    except Exception:  # noqa: BLE001  (the shell says what is wrong with it)
        return _run_notebook(source)
    return _run_notebook(source) if awaits(tree) else _run_python(tree.body, name)


def _run_python(body: list[ast.stmt], name: str) -> BaseException | None:
    """Run a cell as the shell would, without looking for what is no Python in it."""
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    try:
        with SHELL.builtin_trap, SHELL.display_trap:
            exec(SHELL.compile(ast.Module(body, []), name, "exec"), SHELL.user_ns)
            if last is not None:  # its value is displayed
                exec(SHELL.compile(ast.Interactive([last]), name, "single"), SHELL.user_ns)
    except BaseException as error:  # noqa: BLE001  (whatever an answer raises is told)
        return error
    return None


def _run_notebook(source: str) -> BaseException | None:
    """Run a cell in the shell."""
    result = SHELL.run_cell(source, store_history=False, silent=False)
    return result.error_before_exec or result.error_in_exec


class Capped(io.TextIOBase):
    """Keeps the first part of what is printed."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.left = MAX_OUTPUT

    def write(self, text: str) -> int:
        """Keep as much as fits."""
        if self.left > 0:
            self.parts.append(str(text)[: self.left])
            self.left -= len(self.parts[-1])
            if self.left <= 0:
                self.parts.append("\n[more was printed]\n")
        return len(text)

    def writable(self) -> bool:
        """It is for writing."""
        return True

    def fileno(self) -> int:
        """The process's own, as in Jupyter: `faulthandler` and `subprocess` ask for one."""
        return 2

    def flush(self) -> None:
        """Nothing waits to be written."""

    def clear(self) -> None:
        """Begin anew."""
        self.parts, self.left = [], MAX_OUTPUT

    def text(self) -> str:
        """What was kept."""
        return "".join(self.parts)


def _shell() -> Any:
    """An IPython shell without history, colours or files."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    settings = Config()
    settings.HistoryManager.enabled = False
    settings.InteractiveShell.colors = "NoColor"
    settings.InteractiveShell.cache_size = 0
    settings.InteractiveShell.autocall = 0
    return InteractiveShell.instance(config=settings)


def _tame(shell: Any, note: Any) -> None:
    """Leave out what a notebook may do by hand but not while it is graded."""
    line_magic, cell_magic = shell.run_line_magic, shell.run_cell_magic

    def run_line(name: str, line: str, *rest: Any, **more: Any) -> Any:
        if name in RUN:
            return line_magic(name, line, _stack_depth=2)
        return None if name in QUIET else note("line-magic", name)

    def run_cell(name: str, line: str, cell: str) -> Any:
        if name not in RUN | WRITE:
            return note("cell-magic", name)
        value = cell_magic(name, line, cell)
        importlib.invalidate_caches()  # so soon after it was written, a module might not be seen
        return value

    shell.run_line_magic, shell.run_cell_magic = run_line, run_cell
    shell.system = lambda command: note("shell")
    shell.getoutput = lambda command, *rest, **more: note("shell") or []
    shell.showtraceback = lambda *parts, **more: None
    shell.showsyntaxerror = lambda *parts, **more: None
    shell._tee = lambda channel: contextlib.nullcontext()  # what is printed is kept by `Capped`


def _defaults() -> dict[str, str]:
    """What a cell may set for all code after it, and what is set back."""
    torch: Any = sys.modules.get("torch")
    if torch is None:
        return {}
    kind, device = str(torch.get_default_dtype()), str(torch.get_default_device())
    return {"default-dtype": kind, "default-device": device}


def _tell_of_cuda(note: Any) -> None:
    """Have it noted when a GPU is asked for, before torch says that there is none."""
    cuda: Any = sys.modules.get("torch.cuda")
    if cuda is None:
        return
    first = getattr(cuda._lazy_init, "first", cuda._lazy_init)

    def begin() -> Any:
        note("cuda")
        return first()

    begin.first = first  # type: ignore[attr-defined]
    cuda._lazy_init = begin
