"""A cluster of Dask's on this machine, for tests and drills: processes to be killed."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from distributed import Client

# The second as the page tells it: no process of Dask's keeps work in a log of messages.
SETTINGS = {"OMP_NUM_THREADS": "1", "DASK_DISTRIBUTED__ADMIN__LOW_LEVEL_LOG_LENGTH": "0"}
PATIENCE = 120  # seconds until what does not come up counts as hung


def free_port() -> int:
    """A port that nobody uses."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class LocalCluster:
    """Processes of `dask scheduler` and `dask worker`; a context manager."""

    def __init__(self, folder: Path, workers: int = 0, tls: Sequence[str] = ()) -> None:
        """Start a scheduler and some workers.

        Args:
            folder: where workers may write, and logs lie.
            workers: how many.
            tls: options that name certificates.
        """
        self.folder, self._tls, self._port = folder, list(tls), free_port()
        self._scheme = "tls" if tls else "tcp"
        self.workers: list[subprocess.Popen[bytes]] = []
        self.scheduler = self._start_scheduler()
        for _ in range(workers):
            self.add_worker()

    def __enter__(self) -> "LocalCluster":
        return self

    def __exit__(self, *_: object) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()

    @property
    def on(self) -> str:
        """What `grade --on` is given."""
        return f"{'tls' if self._tls else 'dask'}://127.0.0.1:{self._port}"

    @property
    def address(self) -> str:
        """The same as Dask writes it."""
        return f"{self._scheme}://127.0.0.1:{self._port}"

    def add_worker(
        self, *options: str, slots: int = 1, path: Sequence[Path] = ()
    ) -> "subprocess.Popen[bytes]":
        """Start one more worker.

        Args:
            options: of `dask worker`.
            slots: submissions that it grades side by side.
            path: folders from which its Python imports before others.
        """
        words = ["worker", self.address, "--nthreads", str(slots), "--no-nanny", "--no-dashboard"]
        words += ["--local-directory", str(self.folder), *options]
        before = os.environ.get("PYTHONPATH", "")
        paths = os.pathsep.join([*map(str, path), *filter(None, [before])])
        process = self._start("worker", words, {"PYTHONPATH": paths})
        self.workers.append(process)
        return process

    def kill_worker(self, number: int = 0) -> None:
        """Kill one of those that live, as a machine that loses its power."""
        alive = [one for one in self.workers if one.poll() is None]
        alive[number].kill()
        alive[number].wait()
        self.workers.remove(alive[number])

    def kill_scheduler(self) -> None:
        """Kill it; the workers end when they notice."""
        self.scheduler.kill()
        self.scheduler.wait()

    def restart_scheduler(self) -> None:
        """Start it anew at its old address."""
        self.scheduler = self._start_scheduler()

    def tend(self, workers: int) -> None:
        """Start workers until there are so many, as a supervisor of services does."""
        self.workers = [one for one in self.workers if one.poll() is None]
        while len(self.workers) < workers:
            self.add_worker()

    def wait_for_workers(self, workers: int) -> None:
        """Return once so many are registered."""
        with Client(self.address, set_as_default=False) as client:
            client.wait_for_workers(workers, timeout=PATIENCE)

    def _start_scheduler(self) -> "subprocess.Popen[bytes]":
        words = ["scheduler", "--host", self.address, "--no-dashboard"]
        words += ["--protocol", self._scheme]
        process = self._start("scheduler", words, {})
        deadline = time.monotonic() + PATIENCE
        while not _listens(self._port):
            assert process.poll() is None, (self.folder / "scheduler.log").read_text("utf-8")
            assert time.monotonic() < deadline, "the scheduler does not come up"
            time.sleep(0.05)
        return process

    def _start(
        self, name: str, words: Sequence[str], more: dict[str, str]
    ) -> "subprocess.Popen[bytes]":
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "dask", *words, *self._tls],
                cwd=self.folder,  # nothing is imported from the course's folder
                env={**os.environ, **SETTINGS, **more},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )


def _listens(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def stop(process: "subprocess.Popen[bytes]") -> None:
    """Let it hang."""
    process.send_signal(signal.SIGSTOP)
