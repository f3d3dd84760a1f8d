"""Ordinary system users who run commands side by side, without an account on this machine.

    python -m tests.users PASSWD

reads one command a line from its input, as JSON, and answers each with a line: exit status and
what was said. It has to be root. Each command runs in a fork of its own that has given up every
right, in a view of the file system in which PASSWD is /etc/passwd, and Python and this project can
be read by everybody.
"""

import ctypes
import json
import os
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

NEW_MOUNTS = 0x00020000  # CLONE_NEWNS
BIND, PRIVATE = 0x1000, 0x44000  # MS_BIND; MS_REC | MS_PRIVATE
DUMPABLE = 4  # PR_SET_DUMPABLE: as after an exec
KEPT = ("PATH", "LANG", "LC_ALL", "OMP_NUM_THREADS", "PYTHONPATH", "TMPDIR")
libc = ctypes.CDLL(None, use_errno=True)


class Users:
    """Users by name, each with a home that nobody else may enter; use as a context manager."""

    def __init__(self, folder: Path, first: int, names: tuple[str, ...]):
        """Make their homes in a folder that everybody may enter."""
        self._folder = folder
        self._ids = {name: first + number for number, name in enumerate(names)}
        self._passwd = folder / "passwd"
        lines = [f"{who}:x:{id}:{id}::{self.home(who)}:/bin/sh" for who, id in self._ids.items()]
        self._passwd.write_text("\n".join(["root:x:0:0::/root:/bin/sh", *lines, ""]))
        for who, id in self._ids.items():
            self.home(who).mkdir(mode=0o700)
            os.chown(self.home(who), id, id)

    def __enter__(self) -> "Users":
        command = [sys.executable, "-m", __spec__.name, str(self._passwd)]
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self._server = subprocess.Popen(command, cwd=Path(__file__).parents[1], **pipes)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._server.stdin and self._server.stdout
        self._server.stdin.close()
        self._server.stdout.close()
        self._server.wait(60)

    def home(self, who: str) -> Path:
        """A user's home folder."""
        return self._folder / who

    def run(self, who: str, *command: str, where: str = "") -> tuple[int, str]:
        """Run a command; its exit status and what it said.

        Args:
            who: the user.
            command: `nbgrader` or `autograder` with arguments, or `python` with a program's text.
            where: in this folder of the user's home.
        """
        assert self._server.stdin and self._server.stdout
        asked = [self._ids[who], who, str(self.home(who)), where, *command]
        print(json.dumps(asked), file=self._server.stdin, flush=True)
        status, said = json.loads(self._server.stdout.readline())
        return status, said


def serve(passwd: str) -> None:
    """Run what is asked until nobody asks."""
    import nbgrader.apps.nbgraderapp  # noqa: F401 - once for all who will be forked

    must(libc.unshare(NEW_MOUNTS))
    must(libc.mount(None, b"/", None, PRIVATE, None))
    must(libc.mount(passwd.encode(), b"/etc/passwd", None, BIND, None))
    open_up([Path(sys.base_prefix), Path(sys.prefix), Path(__file__).parents[1]])
    for line in sys.stdin:
        with tempfile.TemporaryFile() as said:
            child = os.fork()
            if not child:
                _be(said.fileno(), *json.loads(line))
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            said.seek(0)
            print(json.dumps([status, said.read().decode(errors="replace")]), flush=True)


def open_up(needed: list[Path]) -> None:
    """Put nothing but these in the place of folders that not everybody may enter."""
    closed = {path: next(filter(_is_closed, [*path.parents][::-1]), None) for path in needed}
    held = {path: os.open(path, os.O_PATH) for path, folder in closed.items() if folder}
    for folder in {folder for folder in closed.values() if folder}:
        must(libc.mount(b"tmpfs", str(folder).encode(), b"tmpfs", 0, b"mode=755"))
    for path, handle in held.items():
        path.mkdir(parents=True, exist_ok=True)
        must(libc.mount(f"/proc/self/fd/{handle}".encode(), str(path).encode(), None, BIND, None))


def _is_closed(folder: Path) -> bool:
    return not folder.stat().st_mode & 0o001


def _be(said: int, id: int, who: str, home: str, where: str, *command: str) -> None:
    """Become this user, run the command, and end."""
    status = 1
    try:
        with open(os.devnull) as nothing:  # noqa: PTH123 - for its number alone
            for number, to in ((nothing.fileno(), 0), (said, 1), (said, 2)):
                os.dup2(number, to)
        os.setgroups([])
        os.setgid(id)
        os.setuid(id)
        must(libc.prctl(DUMPABLE, 1, 0, 0, 0))
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        os.environ.clear()
        os.environ.update(kept | {"HOME": home, "USER": who})
        os.chdir(Path(home, where))
        status = _command(*command)
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else bool(ended.code)
    except BaseException:  # noqa: BLE001 - it is the end of a process
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def must(result: int) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _command(program: str, *arguments: str) -> int:
    if program == "nbgrader":
        from nbgrader.apps.nbgraderapp import NbGraderApp

        NbGraderApp.launch_instance(list(arguments))
    elif program == "autograder":
        from autograder.__main__ import main

        return main(arguments)
    else:
        exec(compile(arguments[0], "<a user's>", "exec"), {"__name__": "__main__"})
    return 0


if __name__ == "__main__":
    serve(sys.argv[1])
