"""Results and modules that share memory, held against one process."""

import copy
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from autograder.isolation.fork_server import ForkServer
from tests.bridge.ends import answering
from tests.bridge.torch_ends import (
    VIEWS,
)

TWICE = """
class Keeper:
    def __init__(self, x=None): self.x = x
    def get(self): return self.x
    def part(self): return self.x[1:]
    def deep(self): return {'in': (1, [self.x])}
    @property
    def rows(self): return self.x
    def put(self, x): self.x.append(x)
    def look(self): return str(self.x)
MADE = {}
def start(n, kind='zeros'): return MADE.setdefault(n, eval(f'torch.{kind}(n)'))
def array(n): return MADE.setdefault(n, np.zeros(n))
def both(n): x = torch.zeros(n); return x, x.view(-1), x[1:], x.clone(), [x]
"""


KEPT: list[Any] = [
    *(
        [1, 2],
        [[1], [2]],
        {"a": [1], "b": 2},
        {1, (2, 3)},
        [(1, 2.5), float("nan")],
        bytearray(b"ab"),
    ),
    *(np.arange(4.0), np.arange(5000.0), np.arange(6).reshape(2, 3)[:, ::-1], torch.arange(4.0)),
    *(torch.arange(6.0).reshape(2, 3).T, torch.zeros(300_000), [torch.ones(3)], [np.ones(3), 1]),
]


def change(value: Any) -> None:
    """Change what a test holds, in place."""
    if isinstance(value, Tensor | np.ndarray):
        value += 1
    elif isinstance(value, dict):
        value["new"] = 1
    elif isinstance(value, set):
        value.add(7)
    else:
        value.append(7)


@pytest.mark.parametrize("value", KEPT, ids=lambda x: str(x)[:30])
@pytest.mark.parametrize("how", ["get", "rows", "deep"])
def test_what_is_given_twice_is_one(both: Any, value: Any, how: str) -> None:
    def use(of: Any, x: Any) -> Any:
        def get() -> Any:
            got = getattr(kept, how)
            got = got if how == "rows" else got()
            return got["in"][1][0] if how == "deep" else got

        kept = of("Keeper")(copy.deepcopy(x))
        one, two = get(), get()
        change(one)
        found = [one is two, str(one), str(two)]
        if getattr(x, "nbytes", 0) < 80_000:  # more is not sent
            found.append(str(get()))
        own = of("Keeper")(x)
        if not isinstance(x, np.ndarray | Tensor) or x.nbytes < 80_000:
            found += [own.get() is x, own.look()]
            change(x)
            found += [own.look(), own.look() == str(x), str(own.get()) == str(x)]
        return found

    both(TWICE, use, value)


def test_results_of_two_calls_lie_in_each_other(both: Any) -> None:
    def use(of: Any) -> Any:
        found = []
        for x in (torch.arange(4.0), np.arange(4.0)):
            kept = of("Keeper")(x)
            one, part, two = kept.get(), kept.part(), kept.part()
            two[0] = 9
            found += [one.tolist(), part.tolist(), kept.look(), x.tolist()]
        a, b = of("start")(2), of("start")(2)
        a += 1
        _, d = of("start")(3, "rand"), of("start")(4)
        d += 1
        found += [a is b, b.tolist(), of("start")(2).tolist(), of("start")(4).tolist()]
        whole, flat, rest, own, held = of("both")(3)
        rest += 1
        found += [whole.tolist(), flat.tolist(), own.tolist(), held[0] is whole]
        e, f = of("array")(5), of("array")(5)
        e[0] = 4
        return [*found, e is f, f.tolist()]

    both(TWICE, use)


def test_what_the_answer_has_changed_since_is_the_same_or_given_anew(
    both: Any, open_fork_server: ForkServer
) -> None:
    for protect in (False, True):  # against changes that the reference does not make
        with answering(open_fork_server, TWICE) as student:
            student.peer.protect = protect
            with student.peer.recording():
                _changed_since(student.name("Keeper")([1]), protect=protect)


def _changed_since(kept: Any, *, protect: bool) -> None:
    one = kept.get()
    kept.put(2)
    two = kept.get()
    assert (one, two) == ([1] if protect else [1, 2], [1, 2]) and (one is two) != protect
    two.append(3)
    assert kept.get() == [1, 2, 3]
    assert kept.get() is two


def test_what_one_test_was_given_another_one_is_given_anew(open_fork_server: ForkServer) -> None:
    source = "import torch\nkept, xs = torch.zeros(2), [1]\ndef get(): return kept, xs"
    with answering(open_fork_server, source) as student:
        with student.peer.recording():
            one = student.name("get")()
        with student.peer.recording():
            two = student.name("get")()
        assert one[0] is not two[0]
        assert one[1] is not two[1]
        one[0].add_(1)
        assert two[0].tolist() == [0, 0]


def test_tensors_that_nobody_holds_are_not_kept(open_fork_server: ForkServer) -> None:
    source = "import torch\ndef f(x): return x.view(-1), x + 1"
    with answering(open_fork_server, source) as student, student.peer.recording():
        f, pairs = student.name("f"), student.peer.shared.pairs
        for _ in range(50):
            f(torch.zeros(3))
        assert len(pairs) < 10
        view = f(torch.zeros(3))[0]
        for _ in range(5):
            f(torch.zeros(3))
        held = [pair.value for pair in pairs.values() if isinstance(pair.value, Tensor)]
        assert any(one.data_ptr() == view.data_ptr() for one in held)
        del held
        many = [f(torch.zeros(3))[1] for _ in range(400)]
        assert len(pairs) <= 300
        big = [f(torch.zeros(3_000_000))[1] for _ in range(10)]
        assert sum(getattr(pair.value, "nbytes", 0) for pair in pairs.values()) < 100_000_000
        assert len(many) + len(big) == 410


def test_what_an_answer_may_not_change_stays_though_a_result_lies_in_it(
    open_fork_server: ForkServer,
) -> None:
    source = (
        "import torch\nkept = []\n"
        "def keep(x): kept.append(x); return x.detach()\n"
        "def spoil(): kept[0].fill_(9); return 1\n"
        "def fill(x): x.fill_(7); return x[:]\n"
    )
    with answering(open_fork_server, source) as student:
        student.peer.protect = True
        with student.peer.recording():
            ours = torch.zeros(3)
            got = student.name("keep")(ours)
            student.name("spoil")()
            assert ours.eq(0).all()
            assert got.eq(0).all()
            view = student.name("fill")(ours)
            assert view.eq(7).all()
            assert ours.eq(0).all()


MODULES = """
def live(model): return model.state_dict()
def copied(model): return copy.deepcopy(model.state_dict())
def weights(model): return [p.data for p in model.parameters()]
def means(model): return model.running_mean
def share(layer):
    new = nn.Linear(layer.in_features, layer.out_features)
    new.weight.data, new.bias.data = layer.weight.data, layer.bias.data
    return new
def shared(layer): return share(layer), share(layer)
def tied():
    one = nn.Linear(2, 2)
    one.weight.data.fill_(0.5); one.bias.data.fill_(0.25)
    return one, share(one)
def wrap(x): return Wrapped(x)
class Wrapped(nn.Module):
    def __init__(self, x):
        super().__init__()
        self.w = nn.Parameter(x)
        self.register_buffer('b', x)
    def spoil(self):
        self.w.data.fill_(9)
    def forward(self, y): return self.w * y + self.b
def train(model):
    with torch.no_grad():
        for p in model.parameters(): p.add_(1)
"""


def summed(xs: Any) -> list[float]:
    """What tells of several tensors' entries."""
    return [round(x.float().sum().item(), 4) for x in xs]


@pytest.mark.parametrize("name", ["live", "copied", "weights"])
def test_what_a_module_of_the_tests_holds(both: Any, name: str) -> None:
    def use(of: Any) -> Any:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
        kept = of(name)(model)
        values = kept if name == "weights" else list(kept.values())
        before = summed(values)
        with torch.no_grad():
            for p in model.parameters():
                p.add_(1)
        model(torch.ones(4, 2))
        found = [before, summed(values)]
        values[0].zero_()
        return [*found, summed(model.parameters()), summed(of("weights")(model))]

    both(MODULES, use)


def test_a_buffer_is_given_itself(both: Any) -> None:
    def use(of: Any) -> Any:
        model = nn.BatchNorm1d(2)
        got = of("means")(model)
        got += 1
        return got is model.running_mean, summed([got]), summed(of("live")(model).values())

    both(MODULES, use)


def test_what_a_module_of_the_answers_holds(both: Any) -> None:
    def use(of: Any) -> Any:
        model, other = of("tied")()
        kept = of("live")(model)
        with torch.no_grad():
            model.weight.add_(1)
        found = [summed(kept.values()), summed(other.parameters())]
        kept["bias"].zero_()
        found += [summed(of("live")(m).values()) for m in (model, other)]
        of("train")(other)
        return [*found, summed(model.parameters()), summed(other.parameters())]

    both(MODULES, use)


def test_layers_that_share_what_a_layer_of_the_tests_holds(both: Any) -> None:
    def use(of: Any) -> Any:
        layer = nn.Linear(2, 3)
        with torch.no_grad():
            layer.weight.fill_(0.5)
            layer.bias.fill_(0.25)
        one, two = of("shared")(layer)
        with torch.no_grad():
            one.weight.add_(1)
        found = [summed(m.parameters()) for m in (layer, one, two)]
        with torch.no_grad():
            layer.bias.zero_()
        found += [summed(m.parameters()) for m in (layer, one, two)]
        return [*found, summed(of("live")(two).values())]

    both(MODULES, use)


def test_a_parameter_made_of_what_was_handed_over(both: Any) -> None:
    def use(of: Any) -> Any:
        x = torch.ones(3)
        model = of("wrap")(x)
        x += 1
        return summed([model.w, model.b, model(torch.ones(3))])

    both(MODULES, use)


def test_what_lies_in_the_tests_own_is_not_written_to_by_an_answer(
    open_fork_server: ForkServer,
) -> None:
    head = "import copy, torch\nfrom torch import nn\n"
    with answering(open_fork_server, head + MODULES) as student:
        student.peer.protect = True
        with student.peer.recording():
            ours = torch.ones(3)
            model = student.name("wrap")(ours)
            model.spoil()
            assert model.w.eq(9).all()
            assert ours.eq(1).all()
            layer = nn.Linear(2, 3)
            before = layer.weight.detach().clone()
            one, _ = student.name("shared")(layer)
            assert one.weight.data_ptr() == layer.weight.data_ptr()
            student.name("train")(one)
            assert torch.equal(one.weight, before + 1)
            assert torch.equal(layer.weight, before)


def test_gradients_go_the_same_way_as_ever(both: Any) -> None:
    def use(of: Any) -> Any:
        x = torch.arange(6.0).reshape(2, 3).requires_grad_()
        y = of("part")(x, "x.view(-1)")
        (y * y).sum().backward()
        z = of("part")(x, "x.detach().view(-1)")
        return x.grad.tolist() if x.grad is not None else 0, z.requires_grad, z.grad_fn

    both(VIEWS, use)
