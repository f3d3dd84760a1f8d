"""A process on a worker's machine that holds a warm pool: bytes of one submission in, a result out.

It is the caller of that pool (`classroom.warm`), so sandbox and walls are those of one machine. It
writes nothing, knows no student's name, and ends when the worker that has started it does.
"""

import json
import os
import struct
from pathlib import Path
from typing import IO

from autograder.authoring.processes import require_sandbox
from autograder.classroom.warm import Task, Warm
from autograder.cluster import kit
from autograder.cluster.words import said_of
from autograder.common.course import CourseError
from autograder.common.names import open_streams
from autograder.isolation import processes
from autograder.judge.parcel import Parcel

FRAME = struct.Struct(">Q")
HEAD = struct.Struct(">I")
NOBODY = "student"  # whose it is the caller knows


def order(chapter: str, parcel: bytes) -> bytes:
    """What a hand is asked to grade."""
    name = chapter.encode()
    return HEAD.pack(len(name)) + name + parcel


def main(folder: str, worker: str) -> None:
    """Say what is here, then grade what is asked for until nobody asks any more.

    Args:
        folder: where the kit lies open.
        worker: the process that asks; this one ends with it.
    """
    processes.die_with_parent(int(worker))
    open_streams()
    orders, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    found = kit.unpacked(Path(folder))
    account = kit.account(found.course, found.assignments)
    with Warm(found.course, found.assignments, 1, sandboxed=found.sandboxed) as warm:
        try:
            if found.sandboxed:
                require_sandbox()
        except CourseError as error:
            account["failed"] = str(error)
        _write(answers, json.dumps(account).encode())
        while head := orders.read(FRAME.size):
            _write(answers, _graded(warm, orders.read(*FRAME.unpack(head))))


def _graded(warm: Warm, asked: bytes) -> bytes:
    """What came of one submission."""
    (length,) = HEAD.unpack_from(asked)
    at = HEAD.size + length
    parcel = Parcel.unpack(asked[at:])
    task = Task(NOBODY, asked[HEAD.size : at].decode(), parcel, "")
    (_, outcome), *_ = warm.run(iter([task]))
    return said_of(outcome)


def _write(file: IO[bytes], data: bytes) -> None:
    file.write(FRAME.pack(len(data)) + data)
    file.flush()
