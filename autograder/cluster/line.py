"""The line to a cluster of Dask's: which workers there are, text and bytes there, bytes back.

Only this module imports Dask. What comes back is read as `msgpack`, not as a pickle: it is bytes or
it is refused.
"""

import logging
import re
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from uuid import uuid4

from autograder.common.course import CourseError

SCHEMES = {"dask": "tcp", "tls": "tls"}
SOON = 10.0  # seconds for an answer from the scheduler
PAGE = "see 'A cluster' on the book's page 'Running the course'"


def require_address(on: str) -> str:
    """The address as Dask writes it; CourseError if it is none."""
    scheme, _, where = on.partition("://")
    host, _, port = where.rpartition(":")
    is_port = port.isascii() and port.isdecimal() and 0 < int(port[:6]) < 65536
    if scheme not in SCHEMES or not host or not is_port or re.search(r"[\s\0/]", host):
        raise CourseError(
            f"--on {on} names no cluster; write --on dask://HOST:PORT or --on tls://HOST:PORT, "
            "with host and port of its scheduler."
        )
    return f"{SCHEMES[scheme]}://{where}"


class Line:
    """A client of a scheduler's; made anew when that was gone."""

    def __init__(self, on: str) -> None:
        """Check the address; nothing is connected yet."""
        self.on, self._address = on, require_address(on)
        self._client: Any = None
        try:
            import dask.config
            import distributed
        except ImportError as error:
            raise CourseError(
                f"--on {on} needs Dask ({error}); install it: pip install -r "
                "requirements/cluster.txt -c constraints.txt"
            ) from error
        for name in ("distributed", "tornado", "asyncio"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)  # what matters is said here
        warnings.filterwarnings("ignore", module="distributed")  # as of versions: `kit` compares
        # Else it keeps the last thousand messages, with the work that was sent in them.
        dask.config.set({"distributed.admin.low-level-log-length": 0})
        self._dask = distributed

    def connect(self) -> bool:
        """Try once to reach the scheduler; whether it is there."""
        self.close()
        security = self._security()
        try:
            self._client = self._dask.Client(
                self._address,
                timeout=SOON,
                set_as_default=False,
                security=security,
                deserializers=["msgpack"],
            )
        except (OSError, TimeoutError, ValueError):
            return False
        return True

    def _security(self) -> Any:
        """Certificates, as Dask's settings name them."""
        security = self._dask.Security()
        if self._address.startswith("tls://"):
            try:
                context = security.get_connection_args("client").get("ssl_context")
            except OSError as error:
                raise CourseError(
                    f"--on {self.on}: a certificate cannot be read ({error}); {PAGE}."
                ) from error
            if context is None:
                raise CourseError(
                    f"--on {self.on} needs certificates, and Dask's settings name none; {PAGE}."
                )
        return security

    def members(self) -> dict[str, int] | None:
        """The workers' addresses, each with its number of threads; None if nobody answers."""
        if self._client is None or self._client.status != "running":
            return None
        try:
            told = self._client.sync(
                self._client.scheduler.identity, n_workers=-1, callback_timeout=SOON
            )
        except (OSError, TimeoutError):
            return None
        return {where: max(1, int(one["nthreads"])) for where, one in told["workers"].items()}

    def send(self, worker: str, text: str, names: dict[str, Any], done: Callable[[], None]) -> Any:
        """Have one worker evaluate an expression with these names; `done` is called at its end."""
        # By a function of Python's own: nothing of this project is unpickled over there.
        future = self._client.submit(
            eval,
            text,
            names,
            key=f"grade-{uuid4().hex}",
            workers=[worker],
            allow_other_workers=False,
            pure=False,
        )
        future.add_done_callback(lambda _: done())
        return future

    def fetch(self, future: Any, seconds: float) -> object:
        """What came of it.

        None if that was lost on the way, `NotYet` if it has not come over within these seconds (its
        worker may be dead), `Failed` if it is no result.
        """
        if future.status != "finished":
            return None if future.status in ("cancelled", "lost", "pending") else Failed()
        try:
            return future.result(timeout=seconds)
        except TimeoutError:
            return NotYet()
        except OSError:
            return None
        except Exception as error:  # noqa: BLE001 - whatever a worker has made of it
            return Failed(type(error).__name__)

    def forget(self, future: Any) -> None:
        """Nobody wants its result any more."""
        if self._client is None:
            return
        with suppress(Exception):  # the scheduler may be gone, in many ways
            future.cancel()
        with suppress(Exception):
            future.release()

    def close(self) -> None:
        """Leave the cluster."""
        client, self._client = self._client, None
        if client is not None:
            with suppress(Exception):  # as above
                client.close(timeout=2)


class NotYet(Exception):
    """A result takes its time."""


class Failed(Exception):
    """A worker gave no result."""


def wait(seconds: float) -> None:
    """Before the next try."""
    time.sleep(seconds)
