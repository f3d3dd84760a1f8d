"""Look at what a stranger made in a process of its own, which the kernel ends if it is too much."""

import json
import os
import resource
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from autograder.isolation.processes import hear_of_children

MEMORY = 1 << 30  # bytes more than this process has


def apart(work: Callable[[], Any], seconds: int) -> Any:
    """What `work` returns, by way of JSON; None if it failed or took more processor time."""
    hear_of_children()
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        _work(work, seconds, writes)
    os.close(writes)
    with os.fdopen(reads, "rb") as pipe:
        said = pipe.read()
    status = os.waitpid(child, 0)[1]
    return None if status else json.loads(said)


def _work(work: Callable[[], Any], seconds: int, writes: int) -> None:
    code = 1
    try:
        _limit(resource.RLIMIT_CORE, 0)
        _limit(resource.RLIMIT_CPU, seconds)
        with suppress(OSError):  # Linux alone says what there is, and keeps to it
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            _limit(resource.RLIMIT_AS, pages * resource.getpagesize() + MEMORY)
        said = json.dumps(work()).encode()
        with os.fdopen(writes, "wb") as pipe:
            pipe.write(said)
        code = 0
    finally:
        os._exit(code)


def _limit(which: int, most: int) -> None:
    highest = resource.getrlimit(which)[1]
    most = most if highest == resource.RLIM_INFINITY else min(most, highest)
    resource.setrlimit(which, (most, most))
