"""Dataclasses ask objects by their fields' names: nobody gives a field a name that is computed."""

from dataclasses import replace
from typing import Any

import pytest

from autograder.judge.rules import QuestionRules, Rules
from tests.judge.test_rules_out_of_sight import found

HEAD = (
    "import dataclasses\nfrom dataclasses import asdict, dataclass, field, make_dataclass\n"
    "from functools import total_ordering\nfrom abc import ABC\nNAME = ''.join(['so', 'rt'])\n"
    "ANN = '_'.join(['', '', 'annotations', '', ''])\n"
    "ON_SUBCLASS = '_'.join(['', '', 'init', 'subclass', '', ''])\n"
)
PLAIN = "@dataclass\nclass P:\n    a: int = 0\n"
USE = (
    "def f(x):\n    q, got = list.__new__(Q), []\n    q.extend(x)\n"
    "    asdict(q, dict_factory=lambda parts: got.extend(parts) or {})\n"
    "    got[0][1]()\n    return q"
)
MIXED = "class Q(P, list): pass\n"


@pytest.mark.parametrize(
    "answer",
    [
        PLAIN + "dataclasses.fields(P)[0].name = NAME\n",
        PLAIN + "for dataclasses.fields(P)[0].name in [NAME]: pass\n",
        PLAIN + "setattr(dataclasses.fields(P)[0], 'name', NAME)\n",
        PLAIN + "dataclasses.Field.name.__set__(dataclasses.fields(P)[0], NAME)\n",
        PLAIN
        + "class O:\n    def put(self, n): self.name = n\nO.put(dataclasses.fields(P)[0], NAME)\n",
        PLAIN + MIXED,
        PLAIN + "class L(list): pass\nclass Q(P, L): pass\n",
        PLAIN + "Q = type('Q', (P, list), {})\n",
        PLAIN + "N = type('N', (P, type), {})\n",
        "P = make_dataclass('P', [NAME])\n" + MIXED,
        "def other(kind): return type('D', (), {NAME: 1})\n"
        "@dataclass\n@other\nclass P:\n    a: int\n",
        "class B:\n    def __init_subclass__(kind): setattr(kind, ANN, {NAME: int})\n"
        "@dataclass\nclass P(B):\n    a: int = 0\n",
        "class Hook:\n    def __set_name__(self, kind, name): setattr(kind, ANN, {NAME: int})\n"
        "@dataclass\nclass P:\n    hook = Hook()\n",
        "def hear(kind): setattr(kind, ANN, {NAME: int})\n"
        "B = type('B', (), {ON_SUBCLASS: classmethod(hear)})\n"
        "@dataclass\nclass P(B):\n    a: int = 0\n",
        "class B: pass\nsetattr(B, ON_SUBCLASS, classmethod(lambda kind: setattr(kind, ANN, {})))\n"
        "@dataclass\nclass P(B):\n    a: int = 0\n",
    ],
)
def test_a_field_that_may_have_another_name_than_is_shown_is_a_way_round(answer: str):
    assert found(HEAD + answer + USE.replace("Q)", "P)")) or found(HEAD + answer + USE)


@pytest.mark.parametrize(
    "answer",
    [
        PLAIN + "class Run:\n    def __init__(self, name): self.name = name\n",
        PLAIN + "def show(self): return [one.name for one in dataclasses.fields(P)]\n",
        "@dataclass\nclass P:\n    name: str = 'a'\n    def show(self, name):\n"
        "        self.name = name\n        return dataclasses.fields(self)\n",
        "@dataclass\nclass A:\n    xs: list = field(default_factory=list)\nclass Node: pass\n"
        "@dataclass\nclass P(A):\n    b: int = 0\nnode = Node()\nnode.name = 'root'\n",
        "@total_ordering\n@dataclass\nclass P:\n    a: int = 0\n"
        "    def __lt__(self, other): return self.a < other.a\n",
        "class A(ABC): pass\n@dataclass\nclass P(A, torch.nn.Module):\n    a: int = 0\n",
        PLAIN + "class Vocab(dict): pass\n",
        PLAIN + "def changed(one, **new):\n    for k, v in new.items(): setattr(one, k, v)\n",
        PLAIN + "Node = type('Node', (), {'left': None, 'right': None})\n",
    ],
)
def test_ordinary_dataclasses_are_left_alone(answer: str):
    assert not found(f"{HEAD}{answer}def f(x):\n    return asdict(P()), x")


def test_a_counter_that_puts_itself_in_order_is_stopped():
    assert "collections.Counter.most_common" in QuestionRules(("sorted",)).operations_forbidden


@pytest.mark.parametrize(
    ("line", "fine"),
    [
        ("return self.__dict__['training']", True),
        ("return 'w' in self.__dict__ or self.__dict__.get('w')", True),
        ("self.__dict__['w'] = 1", True),
        ("return self.__dict__['so' 'rt']", False),
        ("return self.__dict__[''.join(['so', 'rt'])]", False),
        ("return self.__dict__.get('__class__' if self else 'w')", False),
        ("return self.w.__dict__['training']", False),
    ],
)
def test_a_part_of_self_that_is_spelt_out_is_no_way_round(line: str, fine: bool):
    answer = f"class A(nn.Module):\n    def go(self):\n        {line}\ndef f(x): return A().go()"
    assert (found(answer) == []) is fine


IN_ORDER = [
    ("ordered", "def ordered(x):\n    return [y for y in range(9) if y in x]"),
    ("t_ordered", "assert list(ordered([3, 1, 2])) == [1, 2, 3]", 3),
]
TEXT = (
    "from collections import Counter\ndef ordered(x):\n"
    "    text = repr(Counter({v: -v for v in x}))\n"
    "    return [int(part.split(':')[0]) for part in text[9:-2].split(',')]"
)
OWN = (
    "from collections import Counter\ndef ordered(x):\n    left, out = Counter(x), []\n"
    "    while left:\n        out.append(min(left))\n        del left[out[-1]]\n    return out"
)


@pytest.mark.parametrize(
    ("answer", "points"),
    [
        (TEXT, 0.0),
        (OWN, 3.0),
        (
            (HEAD + PLAIN + "dataclasses.fields(P)[0].name = NAME\n" + MIXED + USE).replace(
                "def f", "def ordered"
            ),
            0.0,
        ),
    ],
)
def test_such_ways_cost_the_question(task: Any, answer: str, points: float):
    made = task(IN_ORDER)
    rules = {"ordered": QuestionRules(forbid=("sorted", ".sort"))}
    made.assignment = replace(made.assignment, rules=Rules(QuestionRules(), rules))
    assert made.scores(ordered=answer) == {"t_ordered": points}
