"""The trusted end of the line against an answer that says anything; run in a process of its own.

`python -m tests.line_fuzz SEED ROUNDS` sends so many malformed and half-malformed replies and
requests to a trusted `Peer`, uses what comes out as tests do, and prints what came out. Status 0:
only values, refusals (`WireError`), exceptions that the answer claims, and `Gone`.
"""

import contextlib
import copy
import json
import random
import resource
import socket
import sys
import threading
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from autograder.bridge.line import Gone
from autograder.bridge.peer import Peer
from autograder.bridge.wire import Frame, WireError
from autograder.isolation.clock import Clock
from autograder.judge.guard import Guard
from lab.check import assert_close

MEMORY = 8 << 30
SECONDS = 20.0  # for one exchange: only what hangs takes as long
FOUR = np.ones(4, "float32").tobytes()
GENERATOR = torch.get_rng_state().numpy().tobytes()
BUFFERS = [FOUR, FOUR, FOUR, FOUR, GENERATOR, b"", b"\xff" * 8, b"\x01"]
PLAIN = ["R", "T", "L", "D", "S", "I", "B", "BA", "C", "FS", "G", "SL", "E", "NI", "FR", "DC", "O"]
TAGS = [
    *PLAIN,
    "CN",
    "OD",
    "DQ",
    "Y",
    "U",
    "H",
    "X",
    "A",
    "AS",
    "DT",
    "PUB",
    "DD",
    "PS",
    "LP",
    "AV",
]
TAGS += ["TD", "DV", "TS", "GEN", "V", "NT", "?"]
WORDS = ["", "a", "weight", "ff", "float32", "int64", "bool", "bfloat16", "cpu", "meta", "cuda:0"]
WORDS += ["torch.nn:Parameter", "torch.nn:Linear", "torch:Tensor", "torch:Size", "torch:Generator"]
WORDS += ["torch.nn.parameter:UninitializedParameter", "torch.nn:Buffer", "torch:UntypedStorage"]
WORDS += ["torch.nn.utils.rnn:PackedSequence", "builtins:int", "torch.utils.data:Dataset"]
WORDS += ["torch.optim:SGD", "torch.fx:GraphModule", "torch.jit:ScriptModule", "numpy:ndarray"]
WORDS += ["date", "time", "timedelta", "mappingproxy", "ChainMap", "array", "memoryview", "U2"]
WORDS += ["M8[D]", "SimpleNamespace", "__array_interface__", "00" * 8]
WORDS += ["torch.nn:LazyLinear", "torch.nn:LSTM", "builtins:KeyError", "KeyError", "1E+99999999"]
NUMBERS = [0, 1, 2, 3, 4, -1, 7, 8, 15, 2**31, 2**39, 2**40, 2**62, 2**63 - 1, 2**70, 0.5]
NUMBERS += [float("nan"), float("inf"), True, None]


class Maker:
    """Draws trees, most of them nearly right."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)

    def leaf(self) -> Any:
        """A number, a word or something that belongs nowhere."""
        return self.draw.choice([*NUMBERS, *WORDS, {}, []])

    def some(self, make: Callable[..., Any], *arguments: Any) -> list[Any]:
        """None to three of them."""
        return [make(*arguments) for _ in range(self.draw.choice([0, 1, 1, 2, 3]))]

    def node(self, depth: int = 3) -> Any:
        """A value's node."""
        kind = self.draw.random()
        if not depth or kind < 0.15:
            return self.leaf()
        if kind < 0.4:
            return self.draw.choice([self.known, self.object, self.module])(depth - 1)
        return [self.draw.choice(TAGS), *self.some(self.node, depth - 1)]

    def likely(self) -> Any:
        """A result such as answers give."""
        draw = self.draw.choice
        return draw(
            [
                ["X", draw([0, 1])],
                ["L", ["X", 0], ["X", 1]],
                ["T", ["LP", "p", 0], self.known(0)],
                ["A", "float32", draw([[4], [2, 2], [1, 4]]), 3],
                ["D", "a", ["X", 2], "b", self.known(0)],
                self.object(1),
                self.module(1),
                ["L", self.object(0), self.known(0)],
            ]
        )

    def known(self, depth: int) -> Any:
        """A node of the right form with wrong parts here and there."""
        draw = self.draw.choice
        place, name = draw([0, 0, 1, 2, 5]), draw(WORDS)
        return draw(
            [
                ["X", place],
                ["LP", "p", place],
                ["A", name, self.shape(), place],
                ["AS", name, draw(WORDS)],
                ["AV", draw([1, place]), draw(NUMBERS), self.shape(), self.shape()],
                ["AV", 1, draw([0, 4, 8]), draw([[2], [1, 2]]), draw([[4], [8, 4], [-4]])],
                ["A", ["void", [name, draw(WORDS), self.shape()]], self.shape(), place],
                ["NT", "N", ["a", name], ["X", place], self.leaf()],
                ["V", name, self.leaf(), place],
                ["V", "SimpleNamespace", [name], ["X", place]],
                ["V", "memoryview", draw(["b", "d", name]), self.shape(), True, place],
                ["GEN", 4],
                ["GEN", place],
                ["PUB", name],
                ["DD", ["PUB", name]],
                ["DV", name],
                ["TD", name],
                ["TS", *self.shape()],
                ["Y", place],
                ["U", place, place],
                ["PS", place, place, name],
                ["R", place],
            ]
        )

    def shape(self) -> list[Any]:
        """A shape that may hold what it should not."""
        return self.draw.choice([[4], [2, 2], [0, 2**39], [0, 2**39, 2**39], self.some(self.leaf)])

    def tensor(self, place: int = 0) -> Any:
        """A tensor's entry; two of three are right."""
        draw = self.draw.choice
        if self.draw.random() < 0.92:
            shape, strides = draw([([4], None), ([2, 2], [1, 2]), ([2, 2], [4, 2])])
            return ["float32", shape, strides, place, draw([0, 1, 2, 3, 5, 7]), None]
        strides = draw([None, None, [1], [2, 1], [1, 1], [0, 0], self.some(self.leaf)])
        grad = draw([None, None, None, ["float32", [4], None, 2, 2, None], self.leaf()])
        flags = draw([0, 1, 2, 3, 5, 7, self.leaf()])
        kind = draw(["float32", "float32", self.leaf()])
        return [kind, self.shape(), strides, draw([place, 5, 6, self.leaf()]), flags, grad]

    def object(self, depth: int) -> Any:
        """An object's description."""
        kind = self.draw.choice(["object", "class", "function", "module", self.leaf()])
        told = {"n": self.draw.choice([1, 2, 3, self.leaf()]), "k": kind, "type": "T"}
        told["public"] = self.draw.choice(WORDS)
        told["dunders"] = ["__len__", "__getitem__", "__eq__", "__float__", "__index__"]
        told["error"] = self.draw.choice([None, None, self.error()])
        told |= {"twin": self.draw.choice(WORDS), "named": self.draw.choice([None, ["N", ["a"]]])}
        told |= {
            "hash": self.leaf(),
            "parents": [1, self.leaf()],
            "bases": [self.draw.choice(WORDS)],
        }
        if self.draw.random() < 0.3:
            told["plain"] = self.draw.choice(["int", "list", "dict", "tuple", "PosixPath", "str"])
            body = [7, "a", None, ["T", ["X", 0]], ["V", "PurePosixPath", "a"], self.leaf()]
            told |= {"body": self.draw.choice(body), "own": self.some(self.draw.choice, WORDS)}
            told["member"] = self.draw.choice([True, None])
        return ["H", told]

    def module(self, depth: int) -> Any:
        """A module's description."""
        part = self.draw.choice([["X", 0], ["X", 1], ["X", 2], None, self.leaf()])
        child = self.module(depth - 1) if depth > 0 else None
        told = {
            "n": self.draw.choice([1, 2, 3, 0]),
            "k": "module",
            "type": "M",
            "methods": self.some(self.draw.choice, ["step", "train", "parameters", "_apply"]),
            "fields": self.some(self.draw.choice, ["size", "training", "weight"]),
            "dunders": [],
            "classes": [],
            "params": [["weight", part]],
            "buffers": self.draw.choice([[], [["seen", ["X", 1], True]], [["a", self.leaf(), 1]]]),
            "children": self.draw.choice([[], [["kid", child]], [["kid", self.leaf()]]]),
            "base": self.draw.choice([None, *WORDS]),
            "training": True,
        }
        return ["H", told]

    def state(self) -> Any:
        """What a message tells of modules."""
        slot = [self.draw.choice([0, 1, self.leaf()]), self.draw.choice([1, 2, self.leaf()])]
        new = self.draw.choice([self.tensor(), {"new": self.tensor()}, {"same": slot}, None])
        return {
            "m": [[*slot, "weight", new]],
            "mode": self.draw.choice([[], [[*slot, True]], self.leaf()]),
            "kids": self.draw.choice([[], [[*slot, [["kid", self.module(1)]]]], self.leaf()]),
            "grad": True,
        }

    def error(self) -> Any:
        """An exception's description."""
        kinds = self.some(self.draw.choice, ["KeyError", "SystemExit", "UnicodeDecodeError", 5])
        told = {"id": 1, "type": self.leaf(), "kinds": kinds, "text": "x", "args": [self.leaf()]}
        told["args"] += self.some(self.node, 1)
        bases = self.some(self.draw.choice, [1, 0, "builtins:KeyError", "builtins:OSError", None])
        told["family"] = self.draw.choice([None, [["E", bases], ["F", []]], self.leaf()])
        told |= {
            "home": self.draw.choice(WORDS),
            "carries": {self.draw.choice(WORDS): self.node(1)},
        }
        return self.draw.choice([told, {"yours": 1}, self.leaf()])

    def message(self) -> dict[str, Any]:
        """A reply, or a request."""
        made = self.node() if self.draw.random() < 0.3 else self.likely()
        tree: dict[str, Any] = {"r": made, "x": [self.tensor(place) for place in range(3)]}
        if self.draw.random() < 0.2:
            tree = {"e": self.error()}
        if self.draw.random() < 0.15:
            op = self.draw.choice(["call", "get", "put", "copy", "vjp", "ask", "remove"])
            number = self.draw.choice([1, 2, 3, self.leaf()])
            tree = {"op": op, "p": [number, self.leaf()], "v": self.node(), "x": tree.get("x")}
        for key, make in (("t", self.state), ("c", self.changes)):
            if self.draw.random() < 0.15:
                tree[key] = make()
        for key in ("graph", "drop", "used", "rng", "c", "t", "x"):
            if self.draw.random() < 0.03:
                tree[key] = self.draw.choice([self.leaf(), [self.leaf()], 1])
        return tree

    def changes(self) -> Any:
        """What a reply says was changed in place."""
        node = self.draw.choice([["X", 2], ["L", 1], ["A", "float32", [2, 2], 3], self.node(2)])
        if self.draw.random() < 0.3:
            tag = self.draw.choice(["D", "S", "DQ", "CN", "OD", "DD", "BA"])
            node = [tag, self.draw.choice([None, True, 3, self.leaf()]), *self.some(self.node, 1)]
        return [[self.draw.choice([*range(12), self.leaf()]), node]]

    def frame(self) -> bytes:
        """A message's bytes, of which some bits may be flipped."""
        frame = Frame(self.message(), list(BUFFERS))
        raw = bytearray(b"".join(bytes(piece) for piece in frame.pieces()))
        if self.draw.random() < 0.2:
            for _ in range(self.draw.randrange(1, 4)):
                raw[self.draw.randrange(72, len(raw))] ^= 1 << self.draw.randrange(8)
        return bytes(raw)


def ours() -> Any:
    """What a test hands over."""
    layer = nn.Linear(2, 2)
    array, kept = np.ones(4, "float32"), [1, {"a": 2}]
    inputs = torch.ones(4, requires_grad=True)
    held = [deque([1], 5), Counter("a"), OrderedDict(a=1), defaultdict(int, a=1), bytearray(b"a")]
    return [kept, array, *held, torch.ones(2, 2), inputs, layer, lambda x=1: x, torch.Generator()]


def use(value: Any) -> None:
    """What tests do with a result; torch's C++ sees it here."""
    x = torch.ones(2, 2)
    uses: list[Callable[[], Any]] = [
        lambda: repr(value)[:100],
        lambda: assert_close(value, x, "equal"),
        lambda: assert_close(value, 1.0, "equal"),
        lambda: torch.isfinite(value),
        lambda: x + value,
        lambda: torch.stack([x, value]),
        lambda: torch.zeros(value),
        lambda: torch.zeros(2, dtype=value),
        lambda: torch.rand(2, generator=value),
        lambda: nn.functional.softmax(value, -1).sum().backward(),
        lambda: value.sum().backward(),
        lambda: np.asarray(value).sum(),
        lambda: np.testing.assert_allclose(value, np.ones(4)),
        lambda: [p + 1 for p in value.parameters()],
        lambda: value.state_dict(),
        lambda: value(x),
        lambda: copy.deepcopy(value),
        lambda: torch.optim.SGD(value, lr=1),
        lambda: torch.optim.lr_scheduler.StepLR(value, 1),
        lambda: list(torch.utils.data.DataLoader(value))[:3],
        lambda: isinstance(value, nn.Parameter) and value.data.add_(1),
    ]
    for one in uses:
        with contextlib.suppress(Exception, Gone):
            one()
    if isinstance(value, Tensor):
        assert type(value) in (Tensor, nn.Parameter)
    if isinstance(value, list | tuple):
        for part in value[:5]:
            use(part)


def exchange(frames: list[bytes]) -> Any:
    """What a request gives when these are sent in answer to whatever comes."""
    here, there = socket.socketpair()
    peer = Peer(here, Guard(), {})
    peer.clock = Clock(SECONDS)

    def answer() -> None:
        with contextlib.suppress(OSError):
            for frame in frames:
                there.recv(1 << 20)
                there.sendall(frame)
            there.shutdown(socket.SHUT_RDWR)

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    try:
        with peer.recording():
            value = peer.call(1, None, (ours(),), {}, "f")
            use(value)
            return value
    except Exception as error:
        if not any(error is own for own in peer.thrown.raised.values()):
            raise
        return error  # of the test's own code, which the answer passes on
    finally:
        here.close()
        there.close()
        thread.join(SECONDS)


def kind_of(maker: Maker) -> str:
    """What comes of one exchange, in a word; what must not come out is raised."""
    frames = [maker.frame() for _ in range(4)]
    try:
        return f"a {type(exchange(frames)).__name__}"
    except WireError:
        return "refused"
    except Gone as gone:
        assert gone.kind != "timeout", "an exchange hung"
        return "gone"
    except Exception as error:
        if not hasattr(error, "raised"):
            raise
        return "claimed"


def main(seed: int, rounds: int) -> None:
    """Exchange so often."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    torch.set_num_threads(1)
    maker = Maker(seed)
    found = Counter(kind_of(maker) for _ in range(rounds))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps({"peak_mb": peak, **found}))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
