"""Random and mutated frames: the trusted end reads a value or refuses it, in bounded memory.

`test_wire.py` draws trees of plain values, `line_fuzz.py` whole conversations whose results
are used. This is about the reading of one frame, of every tag that the protocol has.
"""

import argparse
import collections
import contextlib
import datetime
import inspect
import random
import re
import socket
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from autograder.bridge.incoming import Incoming
from autograder.bridge.outgoing import Outgoing
from autograder.bridge.peer import Peer
from autograder.bridge.policy import Free
from autograder.bridge.protocol import TAGS
from autograder.bridge.wire import Frame, WireError, read_frame, reading
from autograder.judge.guard import Guard
from tests.conftest import ROOT

ROUNDS = 1500
MEMORY = 32_000_000  # bytes, many times what a frame of a few thousand may need
SMALL = [0, 1, 2, 3, -1, 255, 2**31, 2**40, 2**63, 2**70, 0.5, True, None, {}, [], "", "a", "ff"]
WORDS = ["float32", "int64", "torch.nn:Linear", "builtins:list", "date", "array", "list", "cpu"]
DIGITS = re.compile(rb"-?\d+")


@pytest.fixture
def line() -> Iterator[socket.socket]:
    """A line on which nothing is said; the mode of gradients is set back afterwards."""
    here, there = socket.socketpair()
    before = torch.is_grad_enabled()
    with here, there:
        yield here
    torch.set_grad_enabled(before)


def values() -> list[Any]:
    """Of most kinds that there are tags for."""
    layer, point = nn.Linear(2, 3), collections.namedtuple("Point", "x y")
    plain = [None, 2**70, 1.5, "é", b"ab", bytearray(b"c"), 1 + 2j, (1, [2]), {3}, frozenset("d")]
    holders = [{"k": [1]}, collections.Counter("ab"), collections.deque([1], 4), range(5), slice(3)]
    arrays = [np.ones((2, 3), "float32"), np.float64(2.5), np.dtype("int64"), np.array(["x", "yz"])]
    tensors = [torch.ones(2, 3), torch.ones(2, requires_grad=True), nn.Parameter(torch.ones(3))]
    more = [torch.float64, torch.Size([2, 3]), torch.device("cpu"), torch.Generator(), layer]
    library = [datetime.date(2024, 2, 3), point(1, 2), SimpleNamespace(a=1), Path("a/b")]
    library += [argparse.Namespace(b=2), inspect.signature(lambda a, *, b=1: a)]
    return [*plain, *holders, *arrays, *tensors, *more, *library, lambda: 1, list, ValueError]


def written(line: socket.socket) -> list[bytes]:
    """Frames as an answer's end writes them: one for each value, and one for all together."""
    peer, frames = Peer(line, Free(), {}), []
    for value in [*values(), values()]:
        message = Outgoing(peer)
        tree: dict[str, Any] = {"r": message.encoder.node(value)}
        tree["x"] = [peer.tensors.write(message, tensor) for tensor in message.tensors]
        message.frame.tree = tree
        frames.append(b"".join(bytes(piece) for piece in message.frame.pieces()))
    return frames


def mutated(draw: random.Random, raw: bytes) -> bytes:
    """A frame with a few mistakes: bits, numbers, pieces that are missing or stand there twice."""
    broken = bytearray(raw)
    for _ in range(draw.randrange(1, 4)):
        start = draw.randrange(len(broken))
        end = min(len(broken), start + draw.randrange(1, 9))
        kind = draw.randrange(5)
        if kind == 0:
            broken[start] ^= 1 << draw.randrange(8)
        elif kind == 1:
            broken[start:end] = broken[start:end] * 2
        elif kind == 2 and len(broken) > 16:
            del broken[start:end]
        elif kind == 3:
            broken[start] = draw.choice(b'[]{},:"0123456789')
        elif found := [*DIGITS.finditer(broken)]:
            one = draw.choice(found)
            broken[one.start() : one.end()] = str(draw.choice(SMALL[:10])).encode()
    return bytes(broken)


def tree_of(draw: random.Random, depth: int) -> Any:
    """A node of any tag with any parts."""
    if not depth or draw.random() < 0.3:
        return draw.choice([*SMALL, *WORDS])
    return [
        draw.choice([*TAGS, "?"]),
        *(tree_of(draw, depth - 1) for _ in range(draw.randrange(5))),
    ]


def unpacked(raw: bytes) -> Frame:
    """A frame from bytes, of which no more are there than there are."""
    left = bytearray(raw)

    def read(size: int) -> bytes:
        if size > len(left):
            raise WireError("the bytes have ended")
        part = bytes(left[:size])
        del left[:size]
        return part

    return read_frame(read)


def taken(peer: Peer, frame: Frame) -> bool:
    """Read a frame as a request's values and tensors are read; whether it was not refused."""
    with contextlib.suppress(WireError):
        with reading():
            incoming = Incoming(peer, frame, [])
            incoming.take_tensors(None)
            incoming.value(frame.tree.get("r"))
        return True
    return False


def test_what_an_answers_end_writes_is_read(line: socket.socket) -> None:
    for raw in written(line):
        assert taken(Peer(line, Guard(), {}), unpacked(raw))


def test_mutated_frames_give_a_value_or_a_refusal_in_bounded_memory(line: socket.socket) -> None:
    draw, frames, read = random.Random(11), written(line), 0
    peer = Peer(line, Guard(), {})
    tracemalloc.start()
    try:
        for _ in range(ROUNDS):
            with contextlib.suppress(WireError):
                read += taken(peer, unpacked(mutated(draw, draw.choice(frames))))
        assert tracemalloc.get_traced_memory()[1] < MEMORY
    finally:
        tracemalloc.stop()
    assert ROUNDS // 20 < read < ROUNDS  # they are neither all refused nor all right


def test_random_trees_give_a_value_or_a_refusal_in_bounded_memory(line: socket.socket) -> None:
    draw, peer = random.Random(12), Peer(line, Guard(), {})
    four = np.ones(4, "float32").tobytes()
    tracemalloc.start()
    try:
        for _ in range(ROUNDS):
            entries = [["float32", [4], None, 0, draw.randrange(8), None], tree_of(draw, 2)]
            tree = {"r": tree_of(draw, 4), "x": entries[: draw.randrange(3)]}
            taken(peer, Frame(tree, [four, four, b"", b"abcd"]))
        assert tracemalloc.get_traced_memory()[1] < MEMORY
    finally:
        tracemalloc.stop()


def test_the_protocol_names_every_tag_that_is_written() -> None:
    text = "".join(p.read_text("utf-8") for p in sorted((ROOT / "autograder/bridge").glob("*.py")))
    said = set(re.findall(r'(?:return|node =|lambda e, v:) \["([A-Z]+)"', text))
    assert len(said) > 20
    assert said <= TAGS.keys()
