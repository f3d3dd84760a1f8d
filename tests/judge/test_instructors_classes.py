"""Classes and settings of the instructor's in the hands of an answer."""

from typing import Any

import pytest

from autograder.judge import rehearsal
from tests.judge.small_course import (
    HIDDEN_PART,
    LISTING,
)

SETTINGS = [
    (
        "rate",
        "def rate(optimiser, lr):\n"
        "    for group in optimiser.param_groups:\n        group['lr'] = lr",
    ),
    (
        "t_rate",
        "w = torch.ones(1, requires_grad=True)\nsgd = torch.optim.SGD([w], 1.0)\nrate(sgd, 0.5)\n"
        "assert sgd.param_groups[0]['lr'] == 0.5",
        1,
    ),
    ("drop", "def drop(layer, p):\n    layer.p = p\n    return layer.p"),
    ("t_drop", "layer = torch.nn.Dropout(0.5)\nassert drop(layer, 0.25) == layer.p == 0.25", 2),
    ("peek", "def peek(layer, sgd):\n    return layer.p + sgd.param_groups[0]['lr']"),
    (
        "t_peek",
        "layer, w = torch.nn.Dropout(0.5), torch.ones(1, requires_grad=True)\n"
        "sgd = torch.optim.SGD([w], 1.0)\nassert peek(layer, sgd) == peek(layer, sgd) == 1.5\n"
        "assert (layer.p, sgd.param_groups[0]['lr']) == (0.5, 1.0), 'as they were'",
        4,
    ),
]


def test_settings_of_what_a_test_hands_over_are_set_in_the_tests_own(task: Any) -> None:
    made = task(SETTINGS)
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    assert made.scores() == {"t_rate": 1, "t_drop": 2, "t_peek": 4}
    keeps = "def peek(layer, sgd):\n    found = layer.p + sgd.param_groups[0]['lr']\n"
    for slip in ("layer.p = 0.0", "sgd.param_groups[0]['lr'] = 3"):
        assert made.scores(peek=f"{keeps}    {slip}\n    return found")["t_peek"] == 0
    mends = (
        "def peek(layer, sgd):\n    layer.p, sgd.param_groups[0]['lr'] = 0.5, 1.0\n    return 1.5"
    )
    assert made.scores(peek=mends)["t_peek"] == 4


COUNTING = """\
class Counting(torch.nn.Linear):
    def __init__(self):
        super().__init__(1, 1)
        self.calls = 0
    def forward(self, x):
        self.calls += 1
        return super().forward(x)
"""


HOOKED = [
    ("go", "def go(sgd):\n    sgd.step()"),
    (
        "t_go",
        "w = torch.ones(1, requires_grad=True)\nsgd = torch.optim.SGD([w], 1.0)\n"
        "w.grad = torch.ones(1)\ngo(sgd)\nassert w.item() == 0\nsgd.step()\nassert w.item() == -1",
        1,
    ),
]
HOOKS = [  # and the points of a step with it
    ("with sgd.register_step_pre_hook(lambda o, a, k: None): sgd.step()", 1),
    ("end = sgd.register_step_post_hook(lambda o, a, k: None); sgd.step(); end.remove()", 1),
    ("with sgd.register_step_pre_hook(lambda o, a, k: o.zero_grad()): sgd.step()", 0),
    ("end = sgd.register_step_pre_hook(lambda o, a, k: None); end.hooks_dict_ref; sgd.step()", 0),
]


@pytest.mark.parametrize(("text", "points"), HOOKS)
def test_an_answer_may_hang_hooks_on_a_tests_optimiser(task: Any, text: str, points: int) -> None:
    assert task(HOOKED).scores(go=f"def go(sgd):\n    {text}") == {"t_go": points}


def test_no_answer_sets_what_a_class_of_the_instructors_counts(task: Any) -> None:
    parts = [
        ("look", COUNTING),
        (
            "use",
            "def use(model):\n    model.train()\n"
            "    return [model(torch.ones(1)) for _ in range(2)]",
        ),
        (
            "t_use",
            "model = Counting().eval()\nuse(model)\nassert model.calls == 2 and model.training",
            1,
        ),
    ]
    made = task(parts)
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    assert made.scores() == {"t_use": 1}
    assert made.scores(use="def use(model):\n    model.train()\n    model.calls = 2") == {
        "t_use": 0
    }


LINKED = """\
class Node:
    kind = "node"
    def __init__(self, v, then=None): self.v, self.then, self._seen = v, then, 0
    def bump(self): self.v += 1
"""


REVERSE = """\
def reverse(node):
    before = None
    while node:
        node.then, before, node = before, node, node.then
    return before
"""


def test_what_an_object_of_a_tests_own_class_holds_can_be_set(task: Any) -> None:
    reads = "def values(node):\n    while node:\n        yield node.v\n        node = node.then\n"
    parts = [
        ("reverse", REVERSE),
        (
            "t_reverse",
            f"{LINKED}{reads}first = Node(1, last := Node(2))\nmade = reverse(first)\n"
            "assert [*values(made)] == [2, 1] and made is last and first.then is None",
            1,
        ),
        ("more", "def more(node):\n    node.v += 1"),
        (
            "t_more",
            f"{LINKED}one = Node(1)\nmore(one)\nassert one.v == 2 and not one._seen\n"
            "assert one.kind == Node.kind == 'node'",
            2,
        ),
        ("peek", "def peek(node):\n    return node.v"),
        ("t_peek", f"{LINKED}one = Node(1)\nassert peek(one) == 1\nassert one.v == 1", 4),
    ]
    made = task(parts)
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    right = "def reverse(node):\n    if not (node and node.then): return node\n"
    right += "    head = reverse(node.then)\n    node.then.then, node.then = node, None\n"
    right = {"reverse": right + "    return head", "more": "def more(node):\n    node.bump()"}
    assert made.scores(**right) == {"t_reverse": 1, "t_more": 2, "t_peek": 4}
    values = "def reverse(node):\n    node.v, node.then.v = node.then.v, node.v\n    return node"
    assert made.scores(reverse=values)["t_reverse"] == 0
    for slip in ("pass", "node._seen = 1", "node.kind = 'x'", "node.v += 2"):
        wrong = f"def more(node):\n    node.v += {int(slip != 'pass')}\n    {slip}"
        assert made.scores(more=wrong)["t_more"] == 0
    changes = "def peek(node):\n    node.v += 1\n    return node.v - 1"
    assert made.scores(peek=changes)["t_peek"] == 0


def test_a_test_may_hand_over_functions_of_numpys(task: Any) -> None:
    apply = "def apply(f, x):\n    return f(x)"
    test = "assert apply(np.cos, 0.0) == 1\nassert apply(np.mean, np.array([1.0, 3.0])) == 2\n"
    test += "assert apply(np.linalg.det, np.eye(2)) == 1"
    made = task([("apply", apply), ("t_apply", test, 1)])
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    assert made.scores() == {"t_apply": 1}
    assert made.scores(apply="def apply(f, x):\n    return 1.0") == {"t_apply": 0}


def test_an_answer_may_ask_whether_a_function_of_the_test_has_a_part(task: Any) -> None:
    asks = (
        "def run(f, x):\n    if hasattr(f, 'eval'):\n        f.eval()\n"
        "    try:\n        f.train()\n    except AttributeError:\n        pass\n"
        "    import inspect\n    assert inspect.signature(f) is not None\n"
        "    return f(x) + getattr(f, 'eps', 0) + getattr(f, '_hidden', 0)"
    )
    parts = [
        ("run", "def run(f, x):\n    return f(x)"),
        ("t_run", "def double(x):\n    return 2 * x\nassert run(double, 3) == 6", 1),
    ]
    assert task(parts).scores(run=asks) == {"t_run": 1}


SHAPES = """\
from abc import ABC, abstractmethod
class Shape:
    def describe(self):
        return f"{type(self).__name__} of {self.area()}"
class Animal(ABC):
    def __init__(self, name):
        self.name = name
    @abstractmethod
    def sound(self): ...
    def speak(self):
        return self.name + " says " + self.sound()
class Row(list):
    pass
"""


SQUARE = "class Square(Shape):\n    def __init__(self, a):\n        self.a = a\n"


SQUARE += "    def area(self):\n        return self.a ** 2"


DOG = "class Dog(Animal):\n    def sound(self):\n        return 'woof'"


def test_a_class_that_an_answer_makes_of_one_of_the_instructors_is_one(task: Any) -> None:
    parts = [
        ("look", SHAPES),
        ("square", SQUARE),
        ("t_square", "assert isinstance(Square(1), Shape) and issubclass(Square, Shape)", 1),
        ("t_says", "assert Square(2).describe() == 'Square of 4'", 2),
        ("dog", DOG),
        ("t_dog", "assert isinstance(Dog('a'), Animal) and issubclass(Dog, Animal)", 4),
        ("t_other", "assert not isinstance(Dog('a'), Shape) and not issubclass(Dog, Shape)", 8),
        ("t_speaks", "assert Dog('Rex').speak() == 'Rex says woof'", 16),
        ("row", "class Long(Row):\n    pass\ndef row():\n    return Long([1])"),
        ("t_row", "assert list(row()) == [1] and len(row()) == 1", 32),
    ]
    made = task(parts)
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    assert sum(made.scores().values()) == 63
    alone = (
        SQUARE.replace("(Shape)", "") + "\n    def describe(self):\n        return 'Square of 4'"
    )
    assert made.scores(square=alone)["t_square"] == 0
    assert made.scores(square=alone)["t_says"] == 2
    assert made.scores(dog=DOG.replace("(Animal)", "(Shape)"))["t_other"] == 0


def test_no_class_of_an_answers_is_entered_in_a_list_of_the_instructors(task: Any) -> None:
    parts = [
        ("look", LISTING),
        ("mine", "class Mine:\n    x = 1\ndef mine():\n    return Mine()"),
        ("t_mine", HIDDEN_PART.format("assert mine().x == 1 and Plugin.made == []"), 1),
    ]
    made = task(parts)
    assert made.scores() == {"t_mine": 1}
    below = "class Mine(Plugin):\n    x = 1\ndef mine():\n    return Mine()"
    assert made.scores(mine=below) == {"t_mine": 1}


COPIED = [
    (
        "look",
        "class Pile:\n    def __init__(self):\n        self._held = [1, 2]\n"
        "        self.name = 'a'\n    def pop(self):\n        return self._held.pop()\n"
        "    def size(self):\n        return len(self._held)",
    ),
    ("head", "def head(model):\n    return [*model][0].weight.sum()"),
    (
        "t_head",
        "model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())\n"
        "before = model[0].weight.detach().clone()\nwas = float(before.sum())\n"
        "assert math.isclose(float(head(model)), was) and len(model) == 2\n"
        "assert torch.equal(model[0].weight, before) and model.training",
        1,
    ),
    ("last", "def last(pile):\n    return 2"),
    (
        "t_last",
        "pile = Pile()\nassert last(pile) == 2 == last(pile)\n"
        "assert pile.size() == 2 and pile.name == 'a'",
        2,
    ),
]


def test_a_copy_of_what_a_test_hands_over_is_the_answers_own(task: Any) -> None:
    made = task(COPIED)
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    assert made.scores() == {"t_head": 1, "t_last": 2}
    copies = (
        "import copy\ndef head(model):\n    own = copy.deepcopy(model).eval()\n"
        "    found = own[0].weight.sum()\n    del own[1]\n    own[0].weight.data.zero_()\n"
        "    return model[0].weight.sum()"
    )
    takes = (
        "import copy\ndef last(pile):\n    own, found = copy.deepcopy(pile), []\n"
        "    own.name = 'mine'\n    while own.size():\n        found.append(own.pop())\n"
        "    return found[0]"
    )
    assert made.scores(head=copies, last=takes) == {"t_head": 1, "t_last": 2}
    spoils = copies.replace("copy.deepcopy(model)", "model")
    assert made.scores(head=spoils, last=takes.replace("copy.deepcopy(pile)", "pile")) == {
        "t_head": 0,
        "t_last": 0,
    }


def test_a_part_of_a_tests_sequence_of_layers_can_be_cut_out(task: Any) -> None:
    parts = [
        ("body", "def body(model, x):\n    return model[1](model[0](x))"),
        (
            "t_body",
            "layers = [torch.nn.Linear(2, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1)]\n"
            "model, x = torch.nn.Sequential(*layers), torch.ones(1, 2)\n"
            "assert torch.allclose(body(model, x), model[:2](x))\n"
            "body(model, x).sum().backward()\nassert layers[0].bias.grad is not None",
            1,
        ),
    ]
    made = task(parts)
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    for slices in ("model[:-1](x)", "type(model)(*list(model)[:2])(x)"):
        assert made.scores(body=f"def body(model, x):\n    return {slices}") == {"t_body": 1}
    listed = (
        "def body(model, x):\n    import copy\n    for one in torch.nn.ModuleList(model)[:2]:\n"
    )
    assert made.scores(body=listed + "        x = one(x)\n    return x") == {"t_body": 1}
    assert made.scores(body="def body(model, x):\n    return model[:1](x)") == {"t_body": 0}
