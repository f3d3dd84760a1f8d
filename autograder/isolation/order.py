"""What the processes behind a ForkServer are told, and ask of each other (`launch` names them)."""

import json
import os
import struct
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NoReturn

from autograder.isolation.limits import Limits
from autograder.isolation.machine import Capabilities
from autograder.isolation.seccomp import compile_filter

SPAWN, BEGUN, TEST = b"s", b"b", b"t"  # what a holder asks for
ASK = struct.Struct("<cI")  # to a fork server: what is asked for, and the slot
MOST_FDS = 9


@dataclass(frozen=True)
class Order:
    """What is to be made; the same for all processes."""

    modules: list[str]
    readable: list[str]
    private: list[str]
    limits: Limits
    found: Capabilities | None  # None without a sandbox
    student: str
    head: list[tuple[str, str]]
    watched: list[str]
    many: bool  # whether many will be forked
    seccomp: bytes

    @classmethod
    def read(cls, told: dict[str, Any]) -> "Order":
        """From what crosses to another process."""
        found = told["found"] and Capabilities(**told["found"])
        limits = Limits(**told["limits"])
        seccomp = compile_filter() if found else b""
        made: dict[str, Any] = {"limits": limits, "found": found, "seccomp": seccomp}
        return cls(**{**told, **made})


def tell(status_fd: int, **what: Any) -> None:
    """One line to whoever waits for it, if anybody does yet."""
    with suppress(OSError):
        os.write(status_fd, json.dumps(what).encode() + b"\n")


def never_return(job: Callable[[], int | None]) -> NoReturn:
    """Run a forked child's job; whatever happens, the parent's code must not go on in it."""
    code = 1
    try:
        code = job() or 0
    except Exception:  # noqa: BLE001  (the holder reads what is said)
        traceback.print_exc()
    finally:
        with suppress(Exception):
            sys.stderr.flush()
        os._exit(code)
