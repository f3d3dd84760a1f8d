"""An answer's schedulers set the rates of a test's optimiser; and layers that are lazy."""

from typing import Any

import pytest
import torch

from autograder.bridge.kept_on import KeptOn
from tests.judge.small_course import HIDDEN_PART, rehearsed

ANSWER = """import torch
from torch import nn
from torch.optim import lr_scheduler
def falling(opt): return lr_scheduler.LambdaLR(opt, lambda step: 1 / (step + 1))
def stairs(opt): return lr_scheduler.StepLR(opt, 2, gamma=0.1)
def cycle(opt, n): return lr_scheduler.OneCycleLR(opt, 1.0, total_steps=n)
def cosine(opt): return lr_scheduler.CosineAnnealingLR(opt, 4)
class Noam(lr_scheduler.LRScheduler):
    def __init__(self, opt, d, w):
        self.d, self.w = d, w
        super().__init__(opt)
    def get_lr(self):
        n = max(1, self.last_epoch)
        return [self.d**-0.5 * min(n**-0.5, n * self.w**-1.5) for _ in self.base_lrs]
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        parts = [nn.LazyConv2d(4, 3, padding=1), nn.LazyBatchNorm2d(), nn.Flatten()]
        self.f = nn.Sequential(*parts, nn.LazyLinear(10))
    def forward(self, x): return self.f(x)
def twice(layer, x): return 2 * layer(x)
"""
BEGIN = """import torch
from torch import nn
w = nn.Parameter(torch.zeros(1))
def rates(make, n, **more):
    opt = torch.optim.SGD([w], lr=1.0, **more)
    made, found = make(opt), []
    for _ in range(n):
        opt.zero_grad()
        (w - 1).pow(2).sum().backward()
        opt.step()
        made.step()
        found.append(opt.param_groups[0]["lr"])
    return found, made
"""
TESTS = {
    "a function of steps": "found, made = rates(falling, 3)\n"
    "assert found == [1 / 2, 1 / 3, 1 / 4] and made.get_last_lr() == [1 / 4]",
    "stairs": "found, _ = rates(stairs, 4)\n"
    "assert [round(x, 6) for x in found] == [1, .1, .1, .01]",
    "a cycle": "found, _ = rates(lambda opt: cycle(opt, 10), 9, momentum=0.9)\n"
    "assert max(found) <= 1.0001 and found[0] < found[1] and found[-1] < found[3]",
    "a cosine": "found, _ = rates(cosine, 4)\nassert abs(found[-1]) < 1e-9 < found[0] < 1",
    "a class of the answer's": "found, _ = rates(lambda opt: Noam(opt, 4, 2), 3)\n"
    "assert abs(found[0] - 0.5 * 2**-1.5) < 1e-9 and found[2] < found[1]",
    "an answer's lazy layers": """torch.manual_seed(0)
net, x = Net(), torch.randn(2, 1, 8, 8)
assert net(x).shape == (2, 10)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
net(x).pow(2).sum().backward()
assert all(p.grad is not None for p in net.parameters()) and len([*net.parameters()]) == 6
before = net.f[3].weight.clone()
opt.step()
assert net.f[3].weight.shape == (10, 256) and not torch.equal(before, net.f[3].weight)
net.eval()
with torch.no_grad():
    assert torch.equal(net(x), net(x))
assert {"f.0.weight", "f.1.running_mean"} <= {*net.state_dict()}""",
    "a test's lazy layer": "layer, x = nn.LazyLinear(3), torch.ones(2, 5)\ny = twice(layer, x)\n"
    "assert torch.allclose(y, 2 * layer(x)) and layer.weight.shape == (3, 5)",
}
WRONG = ANSWER.replace("step + 1", "step + 2").replace("0.1)", "0.2)").replace("1.0,", "9.0,")
WRONG = (
    WRONG.replace("opt, 4)", "opt, 40)").replace("-1.5", "-1.0").replace("Linear(10", "Linear(9")
)
WRONG = WRONG.replace("2 * layer", "3 * layer")


@pytest.mark.parametrize("way", TESTS)
def test_it_goes_as_in_one_process(task: Any, way: str) -> None:
    made = rehearsed(task([("own", ANSWER), ("t_own", BEGIN + TESTS[way], 1)]))
    assert made.scores(own=ANSWER) == {"t_own": 1}
    assert made.scores(own=WRONG) == {"t_own": 0}


def test_an_answer_sets_nothing_else_in_an_optimiser(task: Any) -> None:
    test = BEGIN + "found, _ = rates(falling, 3)\nassert found == [1 / 2, 1 / 3, 1 / 4]"
    made = rehearsed(task([("own", ANSWER), ("t_own", test, 1)]))
    for more in ("opt.step = print", "opt.param_groups[0]['x'] = 1", "opt.zero_grad = print"):
        forged = ANSWER.replace("def falling(opt): ", f"def falling(opt):\n    {more}\n    ")
        assert made.scores(own=forged)["t_own"] == (1 if "'x'" in more else 0), more


WARM = """class Warmup:
    def __init__(self, opt, n):
        self.{keeps}, self.n, self.k = opt{part}, n, 0
        self.base = opt.param_groups[0]["lr"]
    def step(self):
        self.k += 1
        for group in {groups}:
            group["lr"] = self.base * min(1, self.k / self.n)
    def now(self):
        return {first}["lr"]
"""
KEEPS = (
    WARM.format(keeps="opt", part="", groups="self.opt.param_groups",
                first="self.opt.param_groups[0]"),
    WARM.format(keeps="group", part=".param_groups[0]", groups="[self.group]", first="self.group"),
    WARM.format(keeps="all", part=".param_groups", groups="self.all", first="self.all[0]"),
)  # fmt: skip
WARMED = """p = torch.nn.Parameter(torch.zeros(1))
opt = torch.optim.SGD([p], lr=1.0)
warm = Warmup(opt, 4)
warm.step()
assert opt.param_groups[0]["lr"] == 0.25
warm.step()
assert opt.param_groups[0]["lr"] == 0.5 == warm.now()
opt.param_groups[0]["lr"] = 7.0
assert warm.now() == 7
for _ in range(3):
    warm.step()
p.grad = torch.ones(1)
opt.step()
assert p.item() == -1"""


@pytest.mark.parametrize("right", KEEPS)
def test_what_an_answer_keeps_of_an_optimiser_stays_the_optimisers(task: Any, right: str) -> None:
    made = rehearsed(task([("own", right), ("t_own", WARMED, 1)]))
    for other in KEEPS:
        assert made.scores(own=other) == {"t_own": 1}
    assert made.scores(own=right.replace("min(1", "max(1")) == {"t_own": 0}
    assert made.scores(own=right.replace('group["lr"] =', "rate =")) == {"t_own": 0}


def test_a_kept_group_is_set_only_where_the_reference_sets_it(task: Any) -> None:
    right = "class Keeps:\n    def __init__(self, opt): self.group = opt.param_groups[0]\n"
    right += "    def step(self): return 1"
    test = (
        "opt = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)\nkeeps = Keeps(opt)\n"
    )
    test += "assert keeps.step() == 1 and opt.param_groups[0]['lr'] == 1"
    made = rehearsed(task([("own", right), ("t_own", HIDDEN_PART.format(test), 1)]))
    forged = right.replace("return 1", "self.group['lr'] = 5.0; return 1")
    assert made.scores(own=forged) == {"t_own": 0}


OPTIMISER = {
    "the library's": "def make(model, lr): return torch.optim.SGD(model.parameters(), lr=lr)",
    "of its own": """class Falls(torch.optim.Optimizer):
    def __init__(self, params, lr): super().__init__(params, dict(lr=lr))
    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                p.sub_(p.grad * group["lr"])
def make(model, lr): return Falls(model.parameters(), lr)""",
    "with a function": """def make(model, lr):
    kept = [*model.parameters()]
    class Falls:
        @torch.no_grad()
        def step(self):
            for p in kept: p -= lr * p.grad
        def zero_grad(self):
            for p in kept: p.grad = None
    return Falls()""",
}
STEPPED = """net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
other = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
other.load_state_dict(net.state_dict())
mine, wanted = make(net, 0.5), torch.optim.SGD(other.parameters(), lr=0.5)
for n in range(3):
    for model, opt in ((net, mine), (other, wanted)):
        opt.zero_grad()
        assert model[0].weight.grad is None
        model(torch.ones(1, 2) * n).pow(2).sum().backward()
        opt.step()
    assert torch.allclose(net[0].weight, other[0].weight)"""


@pytest.mark.parametrize("way", OPTIMISER)
def test_an_answers_optimiser_goes_on_with_a_tests_net(task: Any, way: str) -> None:
    right = OPTIMISER[way]
    made = rehearsed(task([("own", right), ("t_own", HIDDEN_PART.format(STEPPED), 1)]))
    for other in OPTIMISER.values():
        assert made.scores(own=other) == {"t_own": 1}
    assert made.scores(own=f"{right}\nmore = make\ndef make(m, lr): return more(m, 2 * lr)") == {
        "t_own": 0
    }


def test_no_net_is_held_once_nobody_holds_its_parameters() -> None:
    kept, net = KeptOn(), torch.nn.Sequential(torch.nn.Linear(2, 2))
    kept.add(net)
    opt = torch.optim.SGD(net.parameters(), lr=1)
    kept.look()
    assert kept.roots == [net]
    del opt
    kept.look()
    assert kept.roots == []
