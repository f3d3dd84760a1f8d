"""Hooks that a test hangs on an answer's net, or on a part of it, are run where that is called."""

from typing import Any

import pytest

from autograder.judge import rehearsal
from tests.judge.small_course import HIDDEN_PART, heard_of

NET = """\
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(4, 8)
        self.fc2 = nn.Linear(8, 2)
    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))
def predict(net, x): return net(x).argmax(-1)"""
BEGIN = "net, seen = Net(), []\nx = torch.ones(3, 4)\n"
SMALLER = NET.replace("4, 8", "4, 6").replace("8, 2", "6, 2")
SKIPPED = NET.replace("self.fc1(x)", "nn.functional.linear(x, *self.fc1.parameters())")
SWALLOWED = SMALLER.replace(
    "        return", "        try: self.fc1(x)\n        except BaseException: pass\n        return"
)
CLAIMS = [  # a test, and wrong answers that fail it
    (
        "net.fc1.register_forward_hook(lambda m, i, o: seen.append((i[0].shape, o.shape)))\n"
        "net(x)\nassert seen == [((3, 4), (3, 8))], seen",
        (SMALLER, SKIPPED),
    ),
    (
        "net.fc2.register_forward_pre_hook(lambda m, i: seen.append(i[0].shape))\n"
        "net(x)\nassert seen == [(3, 8)]",
        (SMALLER,),
    ),
    (
        "net.fc1.register_full_backward_hook(lambda m, i, o: seen.append(o[0].shape))\n"
        "net(x).sum().backward()\nassert seen == [(3, 8)]",
        (SMALLER, SKIPPED),
    ),
    (
        "for name, part in net.named_modules():\n    if isinstance(part, torch.nn.Linear):\n"
        "        part.register_forward_hook(lambda m, i, o, name=name: seen.append(name))\n"
        "net(x)\nassert seen == ['fc1', 'fc2']",
        (SKIPPED,),
    ),
    (
        "kept = net.fc1.register_forward_hook(lambda m, i, o: seen.append(m is net.fc1))\n"
        "net(x)\nnet.fc1(x)\nkept.remove()\nnet(x)\nassert seen == [True, True]",
        (SKIPPED,),
    ),
    (
        "with net.fc1.register_forward_hook(lambda m, i, o: 0 * o):\n"
        "    assert torch.equal(net(x), net.fc2.bias.expand(3, 2))\n"
        "assert not torch.equal(net(x), net.fc2.bias.expand(3, 2))",
        (SKIPPED,),
    ),
    (
        "net.register_forward_hook(lambda m, i, o: seen.append(o.shape))\nnet(x)\n"
        "predict(net, x)\nassert seen == [(3, 2), (3, 2)]",
        (NET.replace("net(x).", "net.forward(x)."),),
    ),
    (
        "def check(m, i, o): assert o.shape == (3, 8)\n"
        "net.fc1.register_forward_hook(check)\nnet(x)",
        (SMALLER, SWALLOWED),
    ),
]


@pytest.mark.parametrize(("test", "wrongs"), CLAIMS)
def test_a_hook_is_run_where_a_net_or_its_part_is_called(task: Any, test: str, wrongs: Any) -> None:
    made = task([("net", NET), ("t_net", HIDDEN_PART.format(BEGIN + test), 1)])
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    made.known = heard_of(made)
    assert made.scores() == {"t_net": 1}
    for wrong in wrongs:
        assert made.scores(net=wrong) == {"t_net": 0}, wrong


LIES = """
class Same:
    shape = property(lambda self: Same())
    def __eq__(self, other): return True
    def __getitem__(self, n): return self
    __hash__ = None
class Layer(nn.Linear):
    def register_forward_hook(self, hook, **more):
        self.hook = hook
        return super().register_forward_hook(lambda *a: None)
    def forward(self, x):
        self.hook(self, (Same(),), Same())
        return super().forward(x)"""


def test_a_hook_is_told_no_lie_about_what_equals_a_value(task: Any) -> None:
    made = task([("net", NET), ("t_net", HIDDEN_PART.format(BEGIN + CLAIMS[0][0]), 1)])
    made.known = heard_of(made)
    lies = LIES + "\n" + SMALLER.replace("nn.Linear(4, 6)", "Layer(4, 6)")
    assert made.scores(net="from torch import nn" + lies) == {"t_net": 0}


# --- that an answer hangs on a test's -------------------------------------------------------------

MODEL = """from torch import nn
m = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
x = torch.ones(1, 2)
"""
HANGS = """def acts(model, x):
    got = []
    hooks = [part.register_forward_hook(lambda m, a, o: got.append(o)) for part in model]
    model(x)
    for hook in hooks:
        hook.remove()
    return got
"""
IN_A_BLOCK = """from contextlib import ExitStack
def acts(model, x):
    got = []
    def keep(m, a, k, o): got.append(o)
    with ExitStack() as stack:
        for name, part in model.named_children():
            stack.enter_context(part.register_forward_hook(hook=keep, with_kwargs=True))
        model(x)
    return got
"""
BY_HAND = """def acts(model, x):
    got = []
    for part in model:
        x = part(x)
        got.append(x)
    return got
"""
STAYS = HANGS.replace("        hook.remove()", "        pass")
BEFORE = HANGS.replace("forward_hook(lambda m, a, o: got.append(o))",
                       "forward_pre_hook(lambda m, a: got.append(a[0]))")  # fmt: skip
ACTS = """a = acts(m, x)
assert len(a) == 2 and torch.equal(a[1], m(x))
assert not any(part._forward_hooks for part in m)"""


@pytest.mark.parametrize("right", [HANGS, IN_A_BLOCK, BY_HAND])
def test_an_answer_hangs_hooks_on_a_tests_net(task: Any, right: str) -> None:
    made = task([("acts", right), ("t_acts", HIDDEN_PART.format(MODEL + ACTS), 1)])
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    made.known = heard_of(made)
    for other in (HANGS, IN_A_BLOCK, BY_HAND):
        assert made.scores(acts=other) == {"t_acts": 1}
    for wrong in (STAYS, BEFORE):
        assert made.scores(acts=wrong) == {"t_acts": 0}


BACKWARD = """def slope(model, x):
    got = {}
    hook = model[0].register_full_backward_hook(lambda m, i, o: got.update(g=o[0].clone()))
    model(x).sum().backward()
    hook.remove()
    return got["g"]
"""
TAP = """class Tap:
    def __init__(self, model):
        self.n, self.got = 0, []
        self.hook = model.register_forward_hook(self.hit)
    def hit(self, model, given, out):
        self.n += 1
        self.got.append(out)
"""
LEFT = [  # an answer, a test, and wrong answers
    (
        BACKWARD,
        "m = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 1))\n"
        "assert torch.allclose(slope(m, torch.ones(1, 2)), m[1].weight)",
        (BACKWARD.replace("model[0]", "model[1]"),),
    ),
    (
        TAP,
        f"{MODEL}tap = Tap(m)\nm(x)\nm(x)\nassert tap.n == 2 and torch.equal(tap.got[1], m(x))\n"
        "tap.hook.remove()\nm(x)\nassert tap.n == 3 and not m._forward_hooks",
        (
            TAP.replace("register_forward_hook(self.hit)", "register_forward_pre_hook(print)"),
            TAP.replace("self.n += 1", "raise ValueError('no')"),
            TAP.replace("self.n += 1", "return model(given[0])"),
        ),
    ),
    (
        "def double(model, x): return 2 * model(x)",
        f"{MODEL}assert torch.equal(double(m, x), 2 * m(x))",
        (
            "def double(model, x):\n"
            "    model.register_forward_hook(lambda m, a, o: torch.zeros(1, 3))\n"
            "    return torch.zeros(1, 3)",
            "def double(model, x):\n"
            "    model.register_forward_hook(torch.zeros_like)\n    return 2 * model(x)",
        ),
    ),
]


@pytest.mark.parametrize(("right", "test", "wrongs"), LEFT)
def test_such_a_hook_stays_where_the_references_does(
    task: Any, right: str, test: str, wrongs: tuple[str, ...]
) -> None:
    made = task([("own", right), ("t_own", HIDDEN_PART.format(test), 1)])
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    made.known = heard_of(made)
    assert made.scores(own=right) == {"t_own": 1}
    for wrong in wrongs:
        assert made.scores(own=wrong) == {"t_own": 0}, wrong
