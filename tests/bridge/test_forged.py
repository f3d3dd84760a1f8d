"""Forged replies: values that lie, names that do something."""

import json
from typing import Any

import numpy as np
import pytest

from autograder.bridge.line import Gone
from autograder.bridge.public import named
from autograder.bridge.stand_ins import Kind, remote_of
from autograder.bridge.wire import WireError
from autograder.common.results import Raised
from autograder.judge.guard import Guard
from tests.bridge.ends import (
    Enemy,
    against,
    holders,
    of_tests,
    outcome,
    raised_of,
    replying,
    told,
)

REPLIES: list[Any] = [
    *([], 1, None, "x", {}, {"r": {}}, {"r": ["?"]}, {"r": ["R", 0]}, {"r": ["R", 99]}),
    *({"c": 1}, {"c": [1]}, {"c": [[0, ["L"]]]}, {"c": [[-1, ["L", 1]]]}, {"c": [["a", 1]]}),
    *({"r": ["Y", 1]}, {"r": ["Y", "x"]}, {"r": ["Y", ["L"]]}, {"r": ["Y"]}),
    *({"r": ["U", 0, 0]}, {"r": ["U", -1, 0]}, {"r": ["U", 0, -1]}, {"r": ["U", 9, 9]}),
    *({"r": ["X", 0]}, {"r": ["A", "float32", [2], 0]}, {"r": ["A", "object", [1], 0]}),
    *({"r": ["DT", "object"]}, {"r": ["DD", 5, 1, 2]}, {"r": ["H", 1]}, {"r": ["H", {}]}),
    *({"r": ["H", told(n="x", k=5, type=7, dunders=5)]}, {"r": ["H", told(public="os:system")]}),
    *({"r": ["H", told(k="class", error=["BaseException", "Gone"])]},),
    *({"r": ["H", told(k="class", error={"type": "E", "kinds": ["ExceptionGroup"]})]},),
    *({"r": ["H", told(k="module")]}, {"r": ["H", told(k="module", base="builtins:eval")]}),
    *({"r": ["O", "Raised", ["L"], ["L"]]}, {"r": ["O", "Opaque", 1, 2]}),
    *({"e": 1}, {"e": {}}, {"e": {"yours": 1}}, {"e": {"yours": ["L"]}}, {"e": None}),
    *({"e": {"kinds": ["KeyboardInterrupt"], "type": "K", "text": "", "args": [], "id": 1}},),
    *({"e": {"kinds": ["SystemExit"], "type": "SystemExit", "text": "", "args": [], "id": 1}},),
    *({"e": {"kinds": ["UnicodeDecodeError"], "type": "X", "text": "", "args": [], "id": 1}},),
    *({"e": {"kinds": ["ExceptionGroup"], "type": "a\0b", "text": "", "args": [], "id": 1}},),
    *({"used": ["torch", "x"], "r": 1}, {"used": 7, "r": 1}, {"drop": 5}, {"drop": [["L"]]}),
    *({"drop": [0, -1, 10**30, None]}, {"t": 1, "r": 1}, {"t": {"m": 1}}, {"t": {"m": [[1]]}}),
    *({"t": {"kids": [[1, 1, []]]}}, {"t": {"mode": [[0, ["L"], 1]]}}, {"x": [1]}, {"x": 1}),
    *({"graph": 1, "r": 1}, {"graph": "x", "x": [], "r": 1}, {"graph": ["L"], "x": [], "r": 1}),
    *({"c": [[0, 5]]}, {"c": [[0]]}, {"c": [[0, ["L"], 1]]}, {"e": {"yours": {}}}),
    *({"c": [[0, ["D", 1, 2]]]}, {"c": [[0, ["DQ", None, 1]]]}, {"c": [[0, ["BA", 0]]]}),
    *(
        {"r": ["DQ", -1]},
        {"r": ["DQ", True]},
        {"r": ["DQ", 2**70]},
        {"r": ["DD", 5]},
        {"c": [[0, []]]},
    ),
    *({"r": ["DD", True, 1, 2]}, {"r": ["DD"]}, {"r": ["BA"]}, {"c": [[0, ["L", ["DD", 5]]]]}),
    *({"r": ["FR", 1, 0]}, {"r": ["DC", "zz"]}, {"r": ["TS", 2**62, 2**62]}, {"r": ["GEN", 5]}),
]


@pytest.mark.parametrize("tree", REPLIES, ids=lambda tree: json.dumps(tree)[:60])
def test_a_reply_of_any_form_gives_plain_values_or_fails_the_test(tree: Any) -> None:
    got = outcome(replying(tree), [1, 2])
    plain = got in (None, 1) or got == [1, 2]
    assert plain or remote_of(got) is not None or isinstance(got, Exception | Gone | type), got
    assert not isinstance(got, KeyboardInterrupt | SystemExit)
    if isinstance(got, Exception):
        assert isinstance(got, WireError) or hasattr(got, "raised"), got
    if isinstance(got, type):
        assert issubclass(got, Exception)


HELD_NODES: list[list[Any]] = [
    *(["L", 5], ["D", 5, 5], ["S", 5], ["DQ", None, 5], ["CN", 5, 5], ["OD", 5, 5]),
    *(["DD", None, 5, 5], ["BA", 0], ["A", "uint8", [1], 0]),
]


@pytest.mark.parametrize("node", HELD_NODES, ids=lambda node: node[0])
def test_a_holder_is_changed_into_none_of_another_kind(node: Any) -> None:
    tags = {"deque": "DQ", "Counter": "CN", "OrderedDict": "OD", "defaultdict": "DD"}
    tags |= {"bytearray": "BA", "list": "L", "dict": "D", "set": "S"}
    for value in [*holders(), [1], {"a": 1}, {1}]:
        before = list(value)
        got = outcome(replying({"c": [[0, node]], "r": 1}, b"\5"), value)
        if tags[type(value).__name__] == node[0]:
            assert got == 1
            assert list(value) == [5]
        else:
            assert isinstance(got, WireError)
            assert list(value) == before


ERRORS: list[dict[str, Any]] = [
    {"family": 5},
    {"family": [5]},
    {"family": [["A", [0]]]},
    {"family": [["A", [-1]], ["B", []]]},
    {"family": [["A", [5]]]},
    {"family": [["A", ["builtins:KeyError"] * 6]]},
    {"family": [["A", ["builtins:KeyError", "builtins:KeyError"]]]},
    {"family": [["A", ["builtins:OSError", "builtins:SyntaxError"]]]},
    {"family": [["A", ["builtins:LookupError", "builtins:KeyError"]]]},
    {"family": [["A", ["builtins:eval", "builtins:SystemExit", "os:system", None, []]]]},
    {"family": [["a\0b", []]]},
    {"family": [[["L"], []]]},
    {"family": [[f"A{n}", []] for n in range(30)]},
    {"home": "autograder.bridge.line:Gone"},
    {"home": "autograder.bridge.wire:WireError"},
    {"home": "builtins:KeyboardInterrupt"},
    {"home": "builtins:ExceptionGroup"},
    {"home": "__main__:AssertionError"},
    {"home": "json:decoder.JSONDecodeError"},
    {"home": 5},
    {"kinds": 5},
    {"carries": {"raised": 1, "through": 1, "__class__": 5, "args": 5, "with_traceback": 1}},
    {"carries": {"a": ["L"], "b" * 200: 1, "c": "x" * 10**5}},
    {"carries": 5},
]


@pytest.mark.parametrize("more", ERRORS, ids=lambda more: repr(more)[:60])
def test_lies_about_an_exception_give_an_exception(more: dict[str, Any]) -> None:
    error = {"id": 1, "type": "E", "kinds": ["ValueError"], "text": "t", "args": ["t"], **more}
    got = outcome(replying({"e": error}))
    assert isinstance(got, WireError if more == {"kinds": 5} else Exception)
    assert not isinstance(got, Gone | KeyboardInterrupt | SystemExit)
    if not isinstance(got, WireError):
        assert isinstance(raised_of(got), Raised)
        assert isinstance(got, ValueError) or more.keys() != {"carries"}
        assert got.__class__ is type(got)
        assert len(str(getattr(got, "c", ""))) < 5000
    kind = outcome(replying({"r": ["H", told(k="class", error=error)]}))
    assert isinstance(kind, WireError) or issubclass(kind, BaseException)
    assert isinstance(kind, WireError) or not issubclass(kind, Gone)


def test_classes_of_exceptions_made_without_end_are_bounded() -> None:
    def act(enemy: Enemy) -> None:
        for n in range(700):
            enemy.hear()
            family = [[f"E{n}", ["builtins:ValueError"]]]
            error = {"id": 1, "type": "E", "kinds": [], "text": "", "args": [], "family": family}
            enemy.say({"e": error})

    with against(act) as peer:
        for _ in range(700):
            with pytest.raises(ValueError):
                peer.ask("name")
        assert len(peer.errors.made) <= 500


PUBLIC = [
    *("os:system", "builtins:eval", "builtins:open", "builtins:getattr", "builtins:__import__"),
    *("builtins:type", "builtins:object", "builtins:print", "torch:load", "torch.hub:load"),
    *("torch:ops", "torch.utils.cpp_extension:load", "numpy:load", "sys:modules", "math:sqrt"),
    *("builtins:Exception.__init__.__globals__", "torch.nn:Module.__init__.__globals__"),
    *("torch.nn.modules.module:torch", "torch.nn.functional:torch", "torch:_inductor", ":", ""),
    *(
        "torch.nn:Module.register_forward_hook",
        "numpy.f2py:main",
        "collections:OrderedDict.fromkeys",
    ),
    *(
        "builtins:str.format",
        "operator:attrgetter",
        "torch.nn.modules.module:warnings",
        "nowhere:x",
    ),
    *("builtins:__build_class__", "torch.nn.init:_no_grad_fill_", "torch.nn:__builtins__"),
]


@pytest.mark.parametrize("name", PUBLIC)
def test_an_answer_can_name_nothing_that_does_something(name: str) -> None:
    import torch  # noqa: F401  (its names are known here)

    for tree in (["PUB", name], ["H", told(public=name)], ["DD", ["PUB", name]]):
        got = outcome(replying({"r": tree}))
        if remote_of(got) is not None:
            assert type(type(got)) is Kind and type(got) is not named(name)
        else:
            assert isinstance(got, Exception), (tree, got)


READY = """
import collections, functools, math, numpy as np, operator, torch
count, Number, Whole, Kind = collections.Counter, np.int64, np.integer, np.dtype
area, mean, size, act, first = math.prod, np.mean, len, torch.relu, operator.itemgetter(0)
power, longest, lib = functools.partial(pow, 2), max, math
table = {"f": math.sqrt, "kinds": [int, np.float32]}
grouped = collections.defaultdict(collections.Counter, a=collections.Counter("aa"))
"""


def test_a_ready_function_or_class_can_be_the_answer(answer: Any) -> None:
    import torch

    names = answer(READY)
    names._peer.policy = Guard()
    assert names.count("aab") == {"a": 2, "b": 1}
    assert isinstance(names.count("a"), names.count)
    assert names.Number(3) == 3
    assert names.Number is np.int64
    assert isinstance(names.Number(3), names.Whole)
    assert not isinstance(3, names.Whole)
    assert names.Kind("int8") == np.dtype("int8")
    assert names.area([2, 3]) == 6
    assert names.mean([1, 3]) == 2
    assert names.size([1]) == 1
    assert names.first([5, 6]) == 5
    assert names.power(3) == 8
    assert names.longest([1, 2], key=of_tests("def f(x): return -x")["f"]) == 1
    assert names.lib.sqrt(4) == 2
    assert names.table["f"](9) == 3
    assert names.table["kinds"] == [int, np.float32]
    assert names.grouped["b"] == {}
    x = torch.tensor([-1.0, 2.0], requires_grad=True)
    names.act(x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0, 1]


@pytest.mark.parametrize("name", ["os:system", "builtins:eval", "numpy:load", "builtins:type", 5])
def test_a_class_of_an_answer_has_no_twin_that_is_not_public(name: Any) -> None:
    got = outcome(replying({"r": ["H", told(k="class", twin=name, named=["A", ["x"]])]}))
    assert remote_of(got) is not None
    assert not isinstance(3, got)


FAKES = [
    *("torch.nn:Parameter", "torch.nn:Buffer", "torch.nn.parameter:UninitializedParameter"),
    *("torch.nn.parameter:UninitializedBuffer", "torch:Tensor", "torch._C:TensorBase"),
    *("torch:Size", "torch:dtype", "torch:device", "torch:Generator", "torch:UntypedStorage"),
    *("torch:FloatStorage", "torch.nn.utils.rnn:PackedSequence", "torch.nn:Module"),
    *("torch.nn:Linear", "torch:ScriptObject", "torch._subclasses.fake_tensor:FakeTensor"),
    *("torch.fx:GraphModule", "torch.jit:ScriptModule", "numpy:ndarray", "numpy:float64"),
    *("builtins:int", "builtins:float", "builtins:bool", "builtins:str", "builtins:list"),
    *("builtins:tuple", "builtins:dict", "builtins:type", "collections:Counter"),
]


@pytest.mark.parametrize("name", FAKES)
def test_a_stand_in_passes_for_nothing_that_has_a_memory_of_its_own(name: str) -> None:
    import torch

    got = outcome(replying({"r": ["H", told(public=name)]}))
    assert remote_of(got) is not None
    assert got.__class__ is type(got)
    assert not isinstance(got, torch.Tensor | torch.nn.Module | int | float | tuple | np.ndarray)
    for use in (torch.isfinite, torch.relu, torch.numel, lambda x: torch.stack([x, x])):
        with pytest.raises(TypeError):
            use(got)


@pytest.mark.parametrize("name", ["torch.nn:Parameter", "torch.fx:GraphModule", "torch:Tensor"])
def test_an_answer_gives_no_class_that_c_trusts_or_that_makes_code(name: str) -> None:
    import torch  # noqa: F401

    assert isinstance(outcome(replying({"r": ["PUB", name]})), WireError)
