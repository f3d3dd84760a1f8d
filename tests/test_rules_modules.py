"""A module that an answer hands on as a value is no way to what a question forbids."""

import pytest

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
    ],
)
def test_ordinary_use_of_modules_is_left_alone(answer: str):
    assert not found(answer)


def test_an_answer_hands_nothing_on_by_another_cell_either():
    answer, others = "def f(x): return kept[0].sorted(x)", ("import builtins\nkept = [builtins]",)
    assert "the module builtins as a value" in found(answer, *others)
