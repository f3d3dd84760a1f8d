"""An end that speaks the language itself: any bytes, silence, no end."""

import json
import random
import struct
import subprocess
import sys
import threading
import types
from collections.abc import Iterator
from typing import Any

import pytest

from autograder.bridge.line import Gone
from autograder.bridge.stand_ins import YOURS
from autograder.bridge.wire import HEAD, Frame
from tests.bridge.ends import (
    Enemy,
    against,
    generators,
    of_tests,
    outcome,
    replying,
    told,
)


def test_an_optimiser_a_data_set_and_an_exception_may_be_passed_for() -> None:
    import torch

    for name, kind in (
        ("torch.optim:SGD", torch.optim.Optimizer),
        ("torch.utils.data:Dataset", torch.utils.data.Dataset),
        ("builtins:KeyError", LookupError),
    ):
        assert isinstance(outcome(replying({"r": ["H", told(public=name)]})), kind)


@pytest.mark.parametrize("seed", [1, 2])
def test_the_trusted_end_outlives_any_message(seed: int) -> None:
    command = [sys.executable, "-W", "ignore", "-X", "faulthandler", "-m", "tests.line_fuzz"]
    ended = subprocess.run([*command, str(seed), "1000"], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert json.loads(ended.stdout)["peak_mb"] < 2000


GIVEN = """
class Secret:
    hidden = {"key": 41}
    def __init__(self): self.open = 1; self._closed = 2
    def ask(self): return 5
def function(x=1): return x
thing = Secret()
numbers = iter([1, 2])
log = []
"""


KINDS_GIVEN = (object, type, types.FunctionType, types.MethodType, types.GeneratorType)


WAYS_OUT = [
    *("_closed", "__dict__", "__globals__", "__closure__", "__self__", "__func__", "gi_frame"),
    *("func_globals", "f_globals", "tb_frame", "__wrapped__", "__builtins__", "__module__"),
]


NAMES = sorted({name for kind in KINDS_GIVEN for name in dir(kind)} | {*WAYS_OUT})


FOUND_TYPES = (
    *("Secret", "method", "function", "Linear", "list_iterator", "generator"),
    *("builtin_function_or_method", "RemovableHandle"),
)


def test_no_attribute_leads_out_of_what_was_handed_over() -> None:
    import torch
    from torch import nn

    tests = of_tests(GIVEN)
    layer = nn.Linear(2, 2)
    optimiser = torch.optim.SGD(layer.parameters(), lr=1)
    handed = [tests["thing"], tests["Secret"], tests["function"], tests["thing"].ask]
    handed += [tests["numbers"], tests["log"].append, (n for n in [1]), layer, optimiser]
    handed.append(optimiser.register_step_pre_hook(lambda *_: None))
    names = [*NAMES, *dir(layer), *(n for n in dir(optimiser) if n.startswith("_"))]
    names += dir(handed[-1])
    names = list(dict.fromkeys(names))
    heard: list[tuple[Any, Any, Any]] = []

    def act(enemy: Enemy) -> None:
        asked = enemy.hear()
        numbers = sorted({told["n"] for told in _found(asked)})
        for number in numbers:
            for place, name in enumerate(names):
                change = ("put", ["T", 1]) if place % 2 else ("remove", ["T"])
                for op, values in (("get", ["T"]), change):
                    enemy.say({"op": op, "p": [number, name], "v": values})
                    heard.append((op, name, enemy.hear()))
                if name.startswith("_") and name not in ("__call__",):
                    enemy.say({"op": "call", "p": [number, name], "v": ["T", ["T"], ["D"]]})
                    heard.append(("call", name, enemy.hear()))
            for op in ("copy", "vjp", "ask", "nonsense", None, 5):
                for plain in ([number], [], ["run"], [number, {}], 7, [None, None]):
                    enemy.say({"op": op, "p": plain, "v": ["T"]})
                    heard.append((op, plain, enemy.hear()))
        enemy.say({"r": 1})

    before = [parameter.detach().clone() for parameter in layer.parameters()]
    assert outcome(act, handed) == 1
    assert len(heard) > 3000
    changes = ("put", "remove", "vjp", "ask")
    kept = [one for one in heard if "e" not in one[2] and one[2].get("r") != YOURS]
    done = {(op, name) for op, name, _ in kept if op in changes}
    assert done <= {("put", "in_features"), ("put", "out_features")}  # settings of the layer
    for op, name, reply in heard:
        if "e" in reply or not isinstance(name, str) or reply.get("r") == YOURS:
            continue
        is_text = name == "__doc__" and isinstance(reply["r"], str | None)
        assert not name.startswith("_") or op == "call" or is_text, (op, name, reply)
        for inner in _found(reply.get("r")):
            assert inner["type"] in FOUND_TYPES, (name, inner)
    assert vars(tests["thing"]) == {"open": 1, "_closed": 2} and not vars(tests["function"])
    assert tests["Secret"].hidden == {"key": 41}
    assert not layer._forward_hooks
    assert all(a.equal(b) for a, b in zip(before, layer.parameters(), strict=True))


def _found(node: Any) -> Iterator[dict[str, Any]]:
    """All objects that a tree hands over."""
    if isinstance(node, dict):
        node = [["H", node], *node.values()] if "n" in node and "k" in node else [*node.values()]
    if isinstance(node, list):
        if len(node) == 2 and node[0] == "H" and isinstance(node[1], dict):
            yield node[1]
            node = list(node[1].values())
        for part in node:
            yield from _found(part)


def test_a_forged_number_gives_an_object_that_was_handed_over_or_nothing() -> None:
    tests = of_tests(GIVEN)
    for number in (0, -1, 2, 3, 10**9, True, None, "1", 1.5, ["L"]):
        got = outcome(replying({"r": ["Y", number]}), tests["thing"])
        assert got is tests["thing"] or isinstance(got, Exception)


STATES: list[Any] = [
    *([["torch", 0]], [["python", 1]], [["numpy", 2]], [["numpy", 3]], [["torch", 1]]),
    *([["python", 0]], [["numpy", 0]], [["torch", 9]], 5, [[]], [["other", 0]]),
]


def test_the_numbers_that_a_test_draws_cannot_be_chosen_by_an_answer() -> None:
    import torch

    zeros = torch.get_rng_state()
    zeros[24:-16] = 0
    python = struct.pack("!625I?d", *[0] * 624, 1, False, 0.0)
    numpy = b"\0" * 624 * 4 + struct.pack("!q?d", 10**6, False, 0.0)
    numpy_fine = b"\0" * 624 * 4 + struct.pack("!q?d", 5, False, 0.0)

    def act(enemy: Enemy) -> None:
        enemy.hear()
        for states in STATES:
            asked = {"op": "call", "p": [1, None], "v": ["T", ["T"], ["D"]], "rng": states}
            enemy.say(asked, bytes(zeros.numpy().tobytes()), python, numpy, numpy_fine)
            enemy.hear()
        enemy.say({"r": 1})

    before = generators()
    assert outcome(act, of_tests("def f(): return 1")["f"]) == 1
    assert generators() == before


def test_noise_on_the_line_ends_in_time() -> None:
    draw = random.Random(7)
    for _ in range(60):
        noise = draw.randbytes(draw.randrange(1, 400))

        def act(enemy: Enemy, noise: bytes = noise) -> None:
            enemy.hear()
            enemy.line.sendall(noise)

        assert isinstance(outcome(act), Exception | Gone)


def test_flipped_bits_of_a_real_reply_end_in_a_value_or_a_failure() -> None:
    draw = random.Random(8)
    tree = {"r": ["L", 1, "ab", ["T", ["B", 0]], ["H", told(dunders=["__len__"])]]}
    tree |= {"c": [[0, ["L", 5]]], "used": ["torch"], "drop": [3]}
    tree |= {"t": {"m": [], "kids": []}, "x": []}
    raw = b"".join(bytes(piece) for piece in Frame(tree, [b"xyz"]).pieces())
    for _ in range(300):
        broken = bytearray(raw)
        for _ in range(draw.randrange(1, 4)):
            broken[draw.randrange(8, len(broken))] ^= 1 << draw.randrange(8)

        def act(enemy: Enemy, broken: bytes = bytes(broken)) -> None:
            enemy.hear()
            enemy.line.sendall(broken)

        got = outcome(act, [1])
        assert got is None or isinstance(
            got, list | tuple | str | int | bytes | dict | set | Exception | Gone
        )


@pytest.mark.parametrize(
    "act",
    [
        lambda enemy: enemy.hear(),
        lambda enemy: enemy.line.close(),
        lambda enemy: enemy.line.sendall(HEAD.pack(100, 0) + b"[1"),
        lambda enemy: enemy.line.sendall(HEAD.pack(2**31, 2**31)),
    ],
    ids=["leaves", "closes", "leaves midway", "too long"],
)
def test_an_end_that_goes_is_gone(act: Any) -> None:
    got = outcome(act)
    assert isinstance(got, Gone)
    assert got.kind in ("died", "broken")


def test_an_end_that_keeps_silent_or_dawdles_runs_out_of_time() -> None:
    stop = threading.Event()

    def silent(enemy: Enemy) -> None:
        stop.wait(30)

    def dripping(enemy: Enemy) -> None:
        for byte in HEAD.pack(1000, 0) + b" " * 1000:
            enemy.line.sendall(bytes([byte]))
            if stop.wait(0.2):
                return

    def asking(enemy: Enemy) -> None:
        while not stop.is_set():
            enemy.say({"op": "ask", "p": ["x"], "v": ["T"]})
            enemy.hear()

    def deaf(enemy: Enemy) -> None:
        while not stop.is_set():
            enemy.say({"op": "ask", "p": ["x"], "v": ["T"]})

    for act in (silent, dripping, asking, deaf):
        stop.clear()
        with against(act, seconds=0.7) as peer:
            with pytest.raises(Gone) as caught:
                peer.ask("name", b"x" * 5_000_000)
            stop.set()
        assert caught.value.kind == "timeout", act


def test_requests_within_requests_come_to_an_end() -> None:
    def act(enemy: Enemy) -> None:
        enemy.hear()
        while True:  # each is answered by a question of the test's own function
            enemy.say({"op": "call", "p": [1, None], "v": ["T", ["T"], ["D"]]})
            enemy.hear()

    tests = of_tests("def f(): return peer.ask('name')")
    with against(act, seconds=1.5) as peer:
        tests["peer"] = peer
        with pytest.raises((Exception, Gone)):
            peer.ask("name", tests["f"])
