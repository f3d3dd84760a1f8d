"""A module that an answer hands on as a value is no way to what a question forbids."""

import types
from textwrap import indent

import pytest
import torch

from autograder.judge.broken_rules import broken_rules
from autograder.judge.rules import QuestionRules

SETUP = "import math\nimport time\nimport torch\nimport torch.nn.functional as F\n"
RULES = QuestionRules(forbid=("sorted", "max", "torch.softmax"))


def found(answer: str, *others: str) -> list[str]:
    """Names that are found in an answer."""
    return [hit.name for hit in broken_rules(answer, RULES, others, (SETUP,))]


@pytest.mark.parametrize(
    ("answer", "module"),
    [
        ("import builtins\ndef f(x): return [builtins][0].sorted(x)", "builtins"),
        ("import builtins as b\ndef f(x, m=b): return m.sorted(x)", "builtins"),
        ("def f(x):\n    import builtins as b\n    return (b if x else 0).max(x)", "builtins"),
        ("import builtins as b\nclass K:\n    m = b\ndef f(x): return K.m.sorted(x)", "builtins"),
        ("import builtins as b\nclass K:\n    if 1:\n        m = b\nK.m.sorted", "builtins"),
        ("import builtins as b\nk.m = b\nf = k.m.sorted", "builtins"),
        ("import builtins as b\nk.m = z = b\nf = k.m.sorted", "builtins"),
        ("import builtins as b\nf = (m := b).sorted", "builtins"),
        ("import builtins as b\ndef g():\n    m = b\n    return m\ng().sorted", "builtins"),
        ("import builtins as b\nf = [m.sorted for m in (b,)][0]", "builtins"),
        ("import builtins as b\nmatch b:\n    case object(sorted=f):\n        pass", "builtins"),
        ("import sys\nf = (lambda m: m.modules)(sys)['builtins'].sorted", "sys"),
        (
            "import sys\nmatch sys:\n    case object(modules={'builtins': object(sorted=f)}):\n"
            "        pass",
            "sys",
        ),
        ("import operator\n[operator][0].methodcaller('so' + 'rt')(x)", "operator"),
        ("import typing\n[typing][0].get_type_hints(x)", "typing"),
        ("from os import *\n[path][0].os.popen", "os.path"),
        ("import xml\n[xml.sax][0]", "xml.sax"),
        ("def print(m): return m.sorted\nimport builtins\nf = print(builtins)", "builtins"),
        ("import builtins\ndef f(print): return print(builtins)", "builtins"),
    ],
)
def test_a_module_is_handed_on_to_nobody(answer: str, module: str):
    assert f"the module {module} as a value" in found(answer)


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        ("from builtins import __dict__ as d\nd['sor' + 'ted']", "builtins.__dict__"),
        ("from operator import __dict__ as d\nd['attr' + 'getter']", "operator.__dict__"),
        ("from torch import __getattr__ as g\ng('soft' + 'max')", "torch.__getattr__"),
    ],
)
def test_a_part_by_which_others_are_reached_is_not_imported(answer: str, name: str):
    assert name in found(answer)


@pytest.mark.parametrize(
    "answer",
    [
        "import builtins\ndef f(x): return builtins.len(x) + builtins.sum(x)",
        "import numpy as np\nxp = np\ndef f(x): return xp.exp(x)",
        "def f(x):\n    a, b = math, torch\n    return a.pi + b.exp(x)",
        "def f(x):\n    for library in (math, torch):\n        x = library.exp(x)\n    return x",
        "def f(x, time): return [time, max_of(time)]",
        "def f(x):\n    for time in x:\n        yield time",
        "def f(x): return [x.time, g(x.math)]",
        "def f(x): return getattr(F, 'relu')(x) if hasattr(torch, 'relu') else x",
        "print(torch)\ntorch\ndef f(x): print(f'{torch} {type(math)}')",
        "def f(x): return list(map(math.sqrt, x)), [torch.float64, F.relu, torch.nn.Linear]",
        "time = 3\ndef f(x): return [x, time]",
        "for time in range(3): pass\ndef f(x): return [x, time]",
        "if x:\n    time = 3\nf = [time]",  # and where it is not, the look without it tells
        "def f(x):\n    match x:\n        case [time, *math]:\n            return [time, math]",
        "def f(time):\n    def g(): return [time]\n    return g()",
        "def f(x): return [time for time in x], {math: 1 for math in x}, lambda time: [time]",
        "def f(x):\n    with x as time:\n        return [time]",
        "def f(x):\n    if (time := x):\n        return [time]",
        "from time import time\ndef f(x): return [x, time]",
        "class A:\n    time = 1\n    def f(self, math=2): return [self.time, math]",
        "def f(x):\n    try:\n        x()\n    except ValueError as time:\n        return [time]",
        "def f(*math, **time): return [math, time]",
        "def f(x):\n    time = g(x)\n    return [time]",
        "def f(x):\n    time, math = x\n    return {'time': time, 'math': math}",
        "time, math = 1, 2\ndef f(x): return x + time, [math]",
        "def f(x):\n    time += 1\n    return [time]",
        "def time(x): return x\ndef f(x): return map(time, x)",
        "class time: pass\ndef f(x): return [time, time()]",
        "def f(x):\n    time: int = 3\n    return [time]",
        "def f(x, *, math: float = 2.0) -> list: return sorted_by(x, key=math)",
    ],
)
def test_ordinary_use_of_modules_is_left_alone(answer: str):
    assert not found(answer)


@pytest.mark.parametrize(
    "answer",
    [
        "time = 3\nimport time\nf = [time]",
        "time = 3\ndef g():\n    global time\n    import time\nf = [time]",
        "f = [time]\ntime = 3",
        "time = [time]",
        "time = 3\ndel time\nf = [time]",
        "time = 3\ntime = math\nf = [time]",
        "time = 3\nfor time in (math, torch):\n    pass\nf = [time]",
        "time = 3\nfrom os import *\nf = [time]",
        "def f(x): return [time]\nkept = f(1)\ntime = 3",
        "time = 3\nfrom torch import nn as time\nf = [time]",
    ],
)
def test_a_modules_name_is_a_students_only_if_it_surely_is(answer: str):
    assert any("as a value" in name for name in found(answer))


def test_a_function_is_none_though_a_module_is_called_so_as_well():
    assert isinstance(torch.nn.utils.weight_norm, types.FunctionType)
    assert not found("def f(x): return map(torch.nn.utils.weight_norm, x)")


def test_a_module_is_not_another_one_that_ends_alike():
    rules = QuestionRules(forbid=("torch.autograd.functional",))
    used = "def f(x): return F.linear(x, x)"
    assert not broken_rules(used, rules, (), (SETUP,))
    (hit,) = broken_rules("def f(x): return torch.autograd.functional.vjp", rules, (), (SETUP,))
    assert "torch.autograd.functional" in hit.name


def test_an_answer_hands_nothing_on_by_another_cell_either():
    answer, others = "def f(x): return kept[0].sorted(x)", ("import builtins\nkept = [builtins]",)
    assert "the module builtins as a value" in found(answer, *others)


NORM = (
    "class Norm:\n    def __init__(self, g): self.g = g\n"
    "    def backward(self, up): return up * self.g\n"
)
NORM_USES = [
    ("import m", "m.Norm(x)"),
    ("from m import Norm", "Norm(x)"),
    ("from own import m", "m.Norm(x)"),
    ("from own.m import Norm", "Norm(x)"),
    ("import m\nimport importlib, m", "m.Norm(x)"),
    ("from m import Norm\nfrom m import Norm", "Norm(x)"),
]
OTHERS_NORMS = [  # with the module's text and a second cell
    ("from m import Norm\nNorm = lambda x: x", "Norm(x)", NORM, ""),
    ("from m import Norm", "Norm(x)", f"{NORM}Norm = lambda x: x", ""),
    ("from k import Norm", "Norm(x)", NORM, "%%writefile k.py\nNorm = lambda x: x"),
    ("import m\nm = torch", "m.Norm(x)", NORM, ""),
    ("import m\nimport torch as m", "m.Norm(x)", NORM, ""),
    ("from torch import Norm", "Norm(x)", NORM, ""),
    ("from m import Norm", "x", NORM, ""),
]


def backward_of(imports: str, made: str, text: str = NORM, other: str = "") -> bool:
    """Whether an answer that calls what is made so breaks the rule."""
    rules = QuestionRules(forbid=(".backward",))
    answer = f"{imports}\ndef f(x, up):\n    layer = {made}\n    return layer.backward(up)"
    cells = (f"%%writefile own/m.py\n{text}", other)
    return bool(broken_rules(answer, rules, cells, ("import torch",), ("f",)))


@pytest.mark.parametrize(("imports", "made"), NORM_USES)
def test_a_method_of_a_class_in_a_module_of_ones_own_is_ones_own(imports: str, made: str):
    assert not backward_of(imports, made)


def test_a_method_of_a_class_in_a_function_is_ones_own():
    rules = QuestionRules(forbid=(".backward",))
    inside = f"def f(x, up):\n{indent(NORM, '    ')}    "
    own, other = "return Norm(x).backward(up)", "Norm = torch.Tensor\n    return Norm(x).backward()"
    assert broken_rules(inside + own, rules, (), ("import torch",), ("f",)) == ()
    for answer, cell in ((inside + other, ""), (inside + own, "Norm = 1"), (inside + own, NORM)):
        assert broken_rules(answer, rules, (cell,), ("import torch",), ("f",))
    unused = inside.replace("def f", "def g") + "pass\ndef f(x, up): return Norm{}.backward(up)"
    for called in ("", "(x)"):
        given = ("def Norm(x): return x",)
        assert broken_rules(unused.format(called), rules, (), given, ("f",))


@pytest.mark.parametrize("case", OTHERS_NORMS)
def test_a_class_that_may_be_another_one_is_not_that_one(case: tuple[str, ...]):
    assert backward_of(*case)
