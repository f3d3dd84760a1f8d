"""Tensors and modules that lie only fail the test."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from autograder.bridge import module_classes, rng
from autograder.bridge.line import Gone
from autograder.bridge.stand_ins import remote_of
from autograder.bridge.wire import WireError
from tests.bridge.ends import against, of_tests, outcome, replying
from tests.bridge.torch_ends import (
    FOUR,
    entry,
    module,
)

TREES = [
    *({"x": [entry([5])]}, {"x": [entry([-1])]}, {"x": [entry([2**62, 2**62])]}),
    *({"x": [entry([4], place=1)]}, {"x": [entry([4], place=-1)]}, {"x": [entry([4], name="str")]}),
    *(
        {"x": [entry([4]), entry([4])]},
        {"x": [entry([4], flags="x")]},
        {"x": [entry([0, 2**39, 2**39], place=1)]},
    ),
    *({"x": [entry([4], strides=[2**39])]}, {"x": [entry([2, 2], strides=[0, 0])]}),
    *({"x": [entry([2, 2], strides=[-1, 1])]}, {"x": [entry([2, 2], strides=["a", 1])]}),
    *({"x": [entry([4], flags=3, grad=entry([3], place=1))]}, {"x": [entry([4], flags=3, grad=5)]}),
    *({"x": [entry([4], name="int64")]}, {"x": [entry([4], flags=4 + 1, name="int32")]}),
    *({"x": [entry([4], flags=1)], "graph": 1}, {"x": [entry([4], flags=1)], "graph": None}),
    *({"t": {"m": [[0, 5, "w", None]]}}, {"t": {"m": [[1, 1, "weight", entry([9])]]}}),
    *({"t": {"m": [[1, 1, "weight", {"same": [0, 9, "x"]}]]}}, {"t": {"m": [[2, 1, "a", None]]}}),
    *({"t": {"kids": [[1, 1, [["a", ["Y", 1]]]]]}}, {"t": {"kids": [[1, 1, [["a", ["H", 5]]]]]}}),
    *(
        {"t": {"kids": [[1, 1, [["a", 5]]]]}},
        {"r": ["PS", 0, 0, "x"]},
        {"r": ["PS", 1, 1, "nothing"]},
    ),
    *(
        {"x": [entry([0, 2**40 - 1], place=1)]},
        {"x": [entry([4], flags=3, grad=entry([4], place=1, name="int32"))]},
        {"x": [entry([4], flags=16)]},
        {"x": [entry([4], flags=-1)]},
        {"x": [entry([2, 2], strides=[2])]},
        {"r": ["L", ["X", 0], ["X", 0]], "x": [entry([4])]},
        {"r": ["X", -1], "x": [entry([4])]},
    ),
    *({"r": ["LP", "a", 0], "x": [entry([4])]}, {"r": ["GEN", 0]}, {"r": ["TS", -1, "a"]}),
    *(
        {"r": ["TD", "x"]},
        {"r": ["DV", "cuda:0"]},
        {"r": ["DV", "meta"]},
        {"r": ["DV", "; import os"]},
    ),
]


@pytest.mark.parametrize("tree", TREES, ids=lambda tree: str(tree)[:60])
def test_a_malformed_tensor_or_module_only_fails_the_test(tree: Any) -> None:
    layer = nn.Linear(2, 2)
    got = outcome(replying({"r": None, **tree}, FOUR), layer)
    if isinstance(got, Tensor | nn.Module):
        return
    fine = got is None or isinstance(got, WireError | Gone | torch.device | torch.Size)
    assert fine or hasattr(got, "raised"), got


def test_gradients_within_gradients_are_refused() -> None:
    deep = entry([4], flags=3)
    for _ in range(500):
        deep = entry([4], flags=3, grad=deep)
    got = outcome(replying({"r": ["X", 0], "x": [deep]}, FOUR))
    assert isinstance(got, WireError)


def test_an_answer_that_asks_cannot_multiply_a_tensor() -> None:
    def act(enemy: Any) -> None:
        enemy.hear()
        many = ["T", ["T", ["L", *[["X", 0]] * 1000]], ["D"]]
        enemy.say({"op": "call", "p": [1, None], "v": many, "x": [entry([4])]}, FOUR)
        heard.append(enemy.hear())
        enemy.say({"r": 1})

    heard: list[Any] = []
    assert outcome(act, of_tests("def f(x): return 1")["f"]) == 1
    assert "names a tensor twice" in heard[0]["e"]["text"]
    assert "twice" in heard[0]["e"]["text"]


def test_entries_that_share_memory_are_laid_apart() -> None:
    shared = entry([2, 2], strides=[1, 1])
    got = outcome(replying({"r": ["X", 0], "x": [shared]}, np.arange(4, dtype="f4").tobytes()))
    assert got.tolist() == [[0, 1], [2, 3]]
    assert got.stride() == (2, 1)


def test_a_generator_whose_place_lies_beyond_its_numbers_is_refused() -> None:
    fine = torch.Generator().manual_seed(3).get_state().numpy().tobytes()
    assert isinstance(outcome(replying({"r": ["GEN", 0]}, fine)), torch.Generator)
    for left, seeded, place in ((624, 1, 624), (1, 1, 2**40), (0, 1, 625), (1, 0, 0), (-5, 1, 630)):
        state = bytearray(fine)
        rng.TORCH.pack_into(state, 0, 3, left, seeded, place)
        assert isinstance(outcome(replying({"r": ["GEN", 0]}, bytes(state))), WireError)
    assert isinstance(outcome(replying({"r": ["GEN", 0]}, fine[:-1])), WireError)


def test_a_part_of_a_module_that_is_none_is_refused() -> None:
    fake = ["H", {"n": 2, "k": "object", "type": "T", "dunders": [], "public": "torch:Tensor"}]
    for more in (
        {"params": [["weight", fake]]},
        {"params": [["weight", 5]]},
        {"buffers": [["seen", fake, True]]},
        {"children": [["a", fake]]},
        {"children": [["a", 5]]},
        {"base": "torch.fx:GraphModule"},
        {"base": "torch.nn:LazyLinear"},
        {"base": "torch.nn.parallel:DataParallel"},
        {"base": "torch.jit:ScriptModule"},
    ):
        assert isinstance(outcome(replying({"r": module(1, **more)})), WireError), more


NAMES = [
    *("__init__", "__class__", "__getattribute__", "__dict__", "__del__", "__reduce__", "__new__"),
    *("__init_subclass__", "_parameters", "_modules", "_call_impl", "_remote", "forward", "a b"),
    *("__torch_function__", "named_parameters", "state_dict", "training", "call_super_init", ""),
]


def test_a_module_can_have_any_names_and_is_still_only_a_stand_in() -> None:
    for told in (
        {"methods": NAMES, "fields": NAMES},
        {"fields": NAMES, "dunders": NAMES},
        {"params": [[name, ["X", 0]] for name in NAMES]},
        {"buffers": [[name, ["X", 0], False] for name in NAMES]},
        {"children": [[name, module(5)] for name in NAMES]},
        {"params": [[["L"], ["X", 0]]]},
        {"base": "torch.jit._script:ScriptModule"},
        {"base": "torch.nn.parallel:DistributedDataParallel"},
        {"base": "builtins:int"},
        {"base": "torch.nn:Parameter"},
        {"children": [["a", 5], ["b", None], ["c", ["PUB", "torch.nn:Linear"]]]},
    ):
        got = outcome(replying({"r": module(**told), "x": [entry([4], flags=7)]}, FOUR))
        if isinstance(got, Exception):
            continue
        assert isinstance(got, nn.Module)
        assert remote_of(got) is not None
        assert type(got).__init__ is not None
        own = vars(type(got))
        assert not {"__init__", "__class__", "__getattribute__", "__dict__"} & set(own)
        assert own["__new__"].__func__.__module__ == module_classes.__name__  # and not of the claim


def test_a_module_that_holds_itself_is_refused() -> None:
    alone = module(1, children=[["a", module(1)]])
    got = outcome(replying({"r": alone}))
    assert isinstance(got, Exception | nn.Module)
    tree = module(60)
    for number in range(59, 0, -1):  # each stands twice in the one above: 2**59 in all
        again = ["H", {"n": number + 1}]
        tree = module(number, children=[["a", tree], ["b", again]])
    assert isinstance(outcome(replying({"r": tree})), Exception)

    def act(enemy: Any) -> None:
        enemy.hear()
        enemy.say({"r": module(1, children=[["a", module(2)]])})
        enemy.hear()
        above = module(1, children=[["a", ["H", {"n": 2}]]])
        enemy.say({"r": 1, "t": {"kids": [[0, 2, [["b", above]]]]}})

    with against(act) as peer:
        held = peer.ask("name")
        with pytest.raises(Exception, match=r"holds itself|unknown"):
            peer.ask("name")
        assert held is not None


def test_an_object_cannot_become_a_module_later() -> None:
    def act(enemy: Any) -> None:
        enemy.hear()
        enemy.say({"r": ["H", {"n": 1, "k": "object", "type": "T", "dunders": []}]})
        enemy.hear()
        enemy.say({"r": module(1)})
        enemy.hear()
        enemy.say({"r": 5})

    with against(act) as peer:
        one = peer.ask("name")
        two = peer.ask("name")
        assert not isinstance(one, nn.Module)
        assert isinstance(two, nn.Module)
        assert peer.ask("name") == 5


GRADIENTS = [
    *(None, 5, ["T"], ["T", 1, 2], ["L", ["L"], ["L"]], ["L", ["L", ["X", 0]], ["L"]]),
    *(["L", ["L", 5], ["L"]], ["L", ["L", None, None, None], ["L"]], ["L", ["L", None], ["L", 5]]),
    *(["L", ["L", None], ["L", ["L", ["L"], 1]]], ["L", ["L", ["PUB", "builtins:int"]], ["L"]]),
]


@pytest.mark.parametrize("reply", GRADIENTS, ids=str)
def test_wrong_gradients_only_fail_the_test(reply: Any) -> None:
    def act(enemy: Any) -> None:
        enemy.hear()
        enemy.say({"r": ["X", 0], "graph": 9, "x": [entry([4], flags=1)]}, FOUR)
        enemy.hear()
        enemy.say({"r": reply, "x": [entry([4])]}, FOUR)

    x = torch.ones(3, requires_grad=True)
    with against(act) as peer:
        out = peer.ask("name", x)
        try:
            out.sum().backward()
        except (Exception, Gone):  # noqa: BLE001  (any of them only fails the test)
            return
        assert x.grad is None or x.grad.shape == x.shape


def test_an_end_that_goes_during_backward_is_gone() -> None:
    def act(enemy: Any) -> None:
        enemy.hear()
        enemy.say({"r": ["X", 0], "graph": 9, "x": [entry([4], flags=1)]}, FOUR)
        enemy.hear()

    x = torch.ones(3, requires_grad=True)
    with against(act) as peer:
        out = peer.ask("name", x)
        with pytest.raises(Gone):
            out.sum().backward()
