"""Tensors and modules on the line, held against plain torch in one process."""

import contextlib
import copy
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from autograder.bridge import dense, module_classes, rng
from autograder.bridge.line import Gone
from autograder.bridge.stand_ins import remote_of
from autograder.bridge.wire import WireError
from autograder.isolation.fork_server import ForkServer
from tests.test_engine_peer import against, answering, of_tests, outcome, replying


@pytest.fixture
def answer(open_fork_server: ForkServer) -> Iterator[Callable[[str], Any]]:
    """answer(source) runs it in a new process; its names there, and the same source run here."""
    with contextlib.ExitStack() as stack:

        def run(source: str) -> Any:
            student = stack.enter_context(answering(open_fork_server, SOURCE + source))
            here = of_tests(SOURCE + source)
            return lambda name: (student.name(name), here[name])

        yield run


SOURCE = "import copy, torch\nfrom torch import nn\nimport torch.nn.functional as F\n"


def same_bits(one: Tensor, two: Tensor) -> None:
    """Two tensors that nobody could tell apart."""
    assert (one.dtype, one.shape, one.stride()) == (two.dtype, two.shape, two.stride())
    assert one.requires_grad == two.requires_grad
    a, b = one.detach().contiguous(), two.detach().contiguous()
    if a.numel():
        assert a.reshape(-1).view(torch.uint8).equal(b.reshape(-1).view(torch.uint8))


TENSORS = [
    torch.tensor(3.0),
    torch.tensor(True),
    torch.zeros(0, 3),
    torch.arange(6).reshape(2, 3).T,
    torch.arange(12.0).reshape(3, 4)[:, ::2],
    torch.ones(1, 3).expand(4, 3),
    torch.randn(2, 3, 4).permute(2, 0, 1),
    torch.tensor([True, False]),
    torch.tensor([1.5, -2], dtype=torch.bfloat16),
    torch.tensor([1 + 2j]),
    torch.tensor([float("nan"), -0.0, float("inf")], dtype=torch.float16),
    torch.tensor([[255]], dtype=torch.uint8),
    torch.ones(2, requires_grad=True),
]


@pytest.mark.parametrize("tensor", TENSORS, ids=lambda t: f"{t.dtype}{tuple(t.shape)}")
def test_a_tensor_arrives_bit_for_bit_in_its_layout(answer: Any, tensor: Tensor) -> None:
    make, _ = answer(
        "def make(x):\n"
        "    copied = x.detach().clone(memory_format=torch.preserve_format)\n"
        "    return [copied, x.stride()]\n"
    )("make")
    copied, strides = make(tensor)
    assert tuple(strides) == tensor.stride()
    assert torch.equal(
        copied.nan_to_num() if copied.is_floating_point() else copied,
        tensor.detach().nan_to_num() if tensor.is_floating_point() else tensor,
    )
    own = tensor.detach().clone(memory_format=torch.preserve_format)
    same_bits(copied, own)


def test_kinds_sizes_and_generators_cross(answer: Any) -> None:
    names = answer(
        "def same(x): return x\n"
        "def draw(g): return torch.rand(3, generator=g)\n"
        "def facts(x): return x.dtype, x.shape, x.device, str(x.dtype)\n"
    )
    same, _ = names("same")
    for value in (torch.float16, torch.bfloat16, torch.device("cpu"), torch.Size([2, 3])):
        assert same(value) == value
        assert type(same(value)) is type(value)
    x = torch.ones(2, 3)
    assert same(x) is x
    facts, own = names("facts")
    assert facts(x) == own(x)
    draw, own = names("draw")
    one, two = torch.Generator().manual_seed(5), torch.Generator().manual_seed(5)
    for _ in range(3):
        assert torch.equal(draw(one), own(two))
    assert torch.equal(one.get_state(), two.get_state())


def test_a_tensor_changed_in_place_is_changed_here(answer: Any) -> None:
    zero, _ = answer("def zero(x):\n    x[0].zero_()\n    return x\n")("zero")
    x = torch.ones(2, 2).T
    assert zero(x) is x
    assert x.tolist() == [[0, 0], [1, 1]]


IN_PLACE = """
def unsqueezed(x): x.unsqueeze_(0)
def turned(x): x.t_()
def swapped(x): x.transpose_(0, 1); x += 1
def squeezed(x): x.unsqueeze_(1).squeeze_(); x += 1
def grown(x): x.resize_(4, 5).fill_(2)
def shrunk(x): x.resize_(2)
def halved(x): x.data = x.data.half()
def replaced(x): x.data = torch.zeros(5)
def wants(x): x.requires_grad_()
def stepped(x): x.as_strided_((2,), (1,)); x += 1
"""
CHANGERS = [line.split("(")[0][4:] for line in IN_PLACE.splitlines() if line]


@pytest.mark.parametrize("name", CHANGERS)
@pytest.mark.parametrize("laid", ["plain", "turned", "spread", "leaf"])
def test_a_tensor_reshaped_in_place_is_reshaped_here(answer: Any, name: str, laid: str) -> None:
    there, here = answer(IN_PLACE)(name)
    found = []
    for function in (there, here):
        x = torch.arange(12.0).reshape(3, 4)
        if laid == "turned":
            x = x.t()
        if laid == "spread":
            x = torch.arange(24.0).reshape(3, 8)[:, ::2]
        if laid == "leaf":
            x.requires_grad_()
        try:
            with torch.no_grad():
                function(x)
        except RuntimeError as error:
            found.append(type(error))
        else:
            found.append((x.shape, x.dtype, x.requires_grad, x.detach().tolist()))
    one, two = found
    if name in ("shrunk", "stepped") and laid in ("turned", "spread"):
        one, two = one[:3], two[:3]  # which entries it looks at depends on the memory
    assert one == two
    if name != "wants" or laid != "leaf":
        assert remote_of(there).peer.changed_ours or found[0] is RuntimeError  # type: ignore[union-attr]


def test_gradients_go_through_a_tensor_reshaped_in_place(answer: Any) -> None:
    found = []
    for function in answer("def f(x): x.unsqueeze_(0); x *= 3; return x.t_()\n")("f"):
        leaf = torch.linspace(0, 1, 5, requires_grad=True)
        middle = leaf * 2
        given = function(middle)
        assert middle.shape == (5, 1)
        ((given**2).sum() + middle.sum()).backward()
        found.append(leaf.grad)
    assert torch.allclose(*found)


ODD = """
class Own(torch.Tensor):
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None): return func(*args)
def made(kind):
    x = torch.ones(2, 2)
    if kind == 'sparse': return x.to_sparse()
    if kind == 'csr': return x.to_sparse_csr()
    if kind == 'mkldnn': return x.to_mkldnn()
    if kind == 'nested': return torch.nested.nested_tensor([x, x[:1]])
    if kind == 'jagged': return torch.nested.nested_tensor([x, x[:1]], layout=torch.jagged)
    if kind == 'quantized': return torch.quantize_per_tensor(x, 0.1, 0, torch.qint8)
    if kind == 'meta': return x.to('meta')
    if kind == 'float8': return x.to(torch.float8_e4m3fn)
    if kind == 'class': return torch.Tensor._make_subclass(Own, x)
    if kind == 'vmap':
        kept = []
        torch.vmap(lambda y: kept.append(y) or y)(x)
        return kept[0]
    if kind == 'fake':
        from torch._subclasses.fake_tensor import FakeTensorMode
        with FakeTensorMode(): return torch.ones(2)
    if kind == 'lazy': return nn.LazyLinear(3)
    if kind == 'deep': return nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.LazyLinear(3)))
    if kind == 'parameter': return nn.LazyLinear(3).weight
    if kind == 'gradient':
        table = nn.Embedding(4, 2, sparse=True)
        table(torch.tensor([1])).sum().backward()
        return table.weight
    if kind == 'dtype': return torch.qint8
def fine(): return torch.ones(2)
layer = nn.Linear(2, 2)
layer.register_buffer("seen", torch.ones(2))
def held(): return layer
def spoil():
    with torch.no_grad(): layer.weight.zero_()
    layer.seen = layer.seen.to_sparse()
def mend(): layer.seen = torch.zeros(2)
"""
WORDS = {
    "sparse": "layout torch.sparse_coo",
    "csr": "layout torch.sparse_csr",
    "mkldnn": "layout torch._mkldnn",
    "nested": "nested tensor",
    "jagged": "special class NestedTensor",
    "quantized": "quantized tensor",
    "meta": "device meta",
    "float8": "float8",
    "class": "special class Own",
    "vmap": r"torch\.vmap",
    "fake": "special class FakeTensor",
    "lazy": "uninitialised until the first call",
    "deep": "uninitialised until the first call",
    "parameter": "uninitialised until the first call",
    "gradient": "gradient is a tensor of the layout",
    "dtype": "qint8 cannot be handed over",
}


def test_what_is_no_ordinary_tensor_is_refused_by_its_name(answer: Any) -> None:
    names = answer(ODD)
    made, fine = names("made")[0], names("fine")[0]
    for kind, words in WORDS.items():
        with pytest.raises(Exception, match=words) as caught:
            made(kind)
        assert hasattr(caught.value, "raised")
        assert fine().tolist() == [1, 1], kind  # the process goes on


def test_a_model_that_became_odd_costs_a_call_and_is_in_step_once_it_is_mended(
    answer: Any,
) -> None:
    names = answer(ODD)
    layer = names("held")[0]()
    with torch.no_grad():
        layer.bias.fill_(7)
    with pytest.raises(Exception, match=r"layout torch\.sparse_coo"):
        names("spoil")[0]()
    names("mend")[0]()
    assert layer.weight.tolist() == [[0, 0], [0, 0]]
    assert layer.bias.tolist() == [7, 7]
    assert layer.seen.tolist() == [0, 0]


def test_a_test_that_hands_over_an_odd_tensor_is_told_so(answer: Any) -> None:
    same, _ = answer("def same(x): return x\n")("same")
    with pytest.raises(WireError, match=r"torch\.vmap"):
        torch.vmap(same)(torch.ones(2, 2))
    with pytest.raises(WireError, match="uninitialised"):
        same(nn.LazyLinear(3))
    with pytest.raises(WireError, match="device meta"):
        same(torch.ones(2, device="meta"))
    assert same(3) == 3


def test_views_of_complex_numbers_and_subclasses_arrive_as_their_values(answer: Any) -> None:
    make, here = answer(
        "class Mine(torch.Tensor): pass\n"
        "def make(x): return [x.conj(), x.conj().imag, x.mT.conj(), x.real.as_subclass(Mine)]\n"
    )("make")
    x = torch.complex(torch.ones(2, 3), torch.arange(6.0).reshape(2, 3))
    for one, two in zip(make(x), here(x), strict=True):
        assert type(one) is Tensor
        assert torch.equal(one, two.as_subclass(Tensor))


def test_a_layer_the_compiler_made_is_a_module(answer: Any) -> None:
    names = answer(
        "traced = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))\n"
        "def f(): return traced\n"
    )
    there, here = names("f")
    model = there()
    assert type(model).__mro__[1] is nn.Module
    assert model(torch.ones(2)).shape == here()(torch.ones(2)).shape
    assert [name for name, _ in model.named_parameters()] == ["0.weight", "0.bias"]


def test_gradients_flow_through_a_function(answer: Any) -> None:
    names = answer(
        "def f(x, y): return torch.softmax(x @ y, -1), (x * y.T).sum()\n"
        "def stacked(xs): return torch.stack([x * (i + 1) for i, x in enumerate(xs)])\n"
    )
    for name in ("f", "stacked"):
        there, here = names(name)
        found = []
        for function in (there, here):
            torch.manual_seed(1)
            x = torch.randn(3, 3, dtype=torch.float64, requires_grad=True)
            y = torch.randn(3, 3, dtype=torch.float64, requires_grad=True)
            out = function(x * 2, y) if name == "f" else (function([x, y, x]),)
            weights = [torch.randn_like(o) for o in out]
            parts = [(o * w).sum() for o, w in zip(out, weights, strict=True)]
            torch.stack(parts).sum().backward()
            found.append([*out, x.grad, y.grad])
        for one, two in zip(*found, strict=True):
            assert torch.allclose(one, two, atol=1e-12)
    there, here = names("f")
    x = torch.randn(2, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: there(x, x)[0], (x,))


def test_backward_twice_adds_up_and_no_grad_records_nothing(answer: Any) -> None:
    there, here = answer("def f(x): return (x ** 3).sum()\n")("f")
    found = []
    for function in (there, here):
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        out = function(x)
        out.backward(retain_graph=True)
        out.backward()
        function(x).backward()
        with torch.no_grad():
            assert not function(x).requires_grad
        assert not function(x.detach()).requires_grad
        found.append(x.grad)
    assert torch.allclose(*found)


def test_an_answer_may_differentiate_what_the_test_hands_over(answer: Any) -> None:
    there, here = answer(
        "def slope(f, x):\n"
        "    x = x.detach().requires_grad_()\n"
        "    return torch.autograd.grad(f(x).sum(), x)[0]\n"
        "def train(model, x):\n"
        "    model(x).sum().backward()\n"
        "    return [p.grad for p in model.parameters()]\n"
    )("slope")
    f = of_tests("def f(x): return x.sin() * x")["f"]
    x = torch.linspace(0, 1, 5)
    assert torch.allclose(there(f, x), here(f, x))


MODEL = """
class Block(nn.Module):
    scale = 2.0
    def __init__(self, size=3, tied=False):
        super().__init__()
        self.one = nn.Linear(size, size)
        self.two = nn.Linear(size, size)
        if tied: self.two.weight = self.one.weight
        self.drop = nn.Dropout(0.5)
        self.register_buffer("seen", torch.zeros(()))
        self.register_buffer("aside", torch.ones(2), persistent=False)
        self.parts = nn.ModuleList([nn.Linear(size, size) for _ in range(2)])
        self.width = size
    def forward(self, x):
        self.seen += 1
        y = self.two(torch.tanh(self.one(x)))
        for part in self.parts: y = y + part(y)
        return self.drop(y) * self.scale
    def helper(self, x): return self.one(x)
    def first(self): return self.one
    def swap(self): self.one = nn.Linear(3, 3); return self
def build(**kwargs):
    torch.manual_seed(0)
    return Block(**kwargs)
def step(model, optimiser, x, y):
    optimiser.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    optimiser.step()
    return loss
def fit(model, x, y):
    optimiser = torch.optim.Adam(model.parameters(), lr=0.1)
    model.train()
    return [step(model, optimiser, x, y).item() for _ in range(3)]
def freeze(model):
    for p in model.parameters(): p.requires_grad_(False)
def replace(model): model.one = nn.Linear(3, 3); return model
def close(model): model.eval()
"""


@pytest.fixture
def built(answer: Any) -> Any:
    """built(name): the answer's and the same here."""
    return answer(MODEL)


def leaves(found: Any) -> list[Any]:
    """All that lists, tuples and dictionaries hold, in order."""
    if isinstance(found, dict):
        found = list(found.values())
    if not isinstance(found, list | tuple):
        return [found]
    return [leaf for part in found for leaf in leaves(part)]


def both(built: Any, use: Callable[[Any, Any], Any], **kwargs: Any) -> None:
    """The same use of the answer's model and of one here gives the same."""
    found = []
    for place in (0, 1):
        model = built("build")[place](**kwargs)
        torch.manual_seed(9)
        found.append(use(model, lambda name, place=place: built(name)[place]))
    for one, two in zip(*map(leaves, found), strict=True):
        if isinstance(one, Tensor):
            assert torch.allclose(one, two, atol=1e-6), (one, two)
        else:
            assert one == two


X, Y = torch.linspace(-1, 1, 12).reshape(4, 3), torch.ones(4, 3)


def state(model: Any) -> dict[str, Tensor]:
    """A copy of a model's state."""
    return {name: value.clone() for name, value in model.state_dict().items()}


def test_a_model_of_the_answer_has_the_same_parts(built: Any) -> None:
    def use(model: Any, _: Any) -> Any:
        parts: Any = model.parts
        assert isinstance(model, nn.Module)
        return [
            list(state(model)),
            state(model),
            [name for name, _ in model.named_parameters()],
            [name for name, _ in model.named_buffers()],
            [type(m).__name__ for m in model.modules()][1:],
            sum(p.numel() for p in model.parameters()),
            model.width,
            model.scale,
            len(parts),
            model.training,
        ]

    both(built, use)
    both(built, use, tied=True)


def test_gradients_reach_parameters_and_inputs(built: Any) -> None:
    def use(model: Any, _: Any) -> Any:
        model.eval()
        x = X.clone().requires_grad_()
        model(x).pow(2).sum().backward()
        (model(x) + model.helper(x)).sum().backward()
        seen = model.seen.clone()
        return x.grad, [p.grad for p in model.parameters()], seen, model.training

    both(built, use)
    both(built, use, tied=True)


def test_a_loss_of_several_calls_and_of_the_parameters_themselves(built: Any) -> None:
    def use(model: Any, _: Any) -> Any:
        model.eval()
        loss = model(model(X)).sum() + sum((p**2).sum() for p in model.parameters())
        grads = torch.autograd.grad(loss, list(model.parameters()))
        return loss.detach(), grads

    both(built, use)
    both(built, use, tied=True)


def test_an_optimiser_of_the_test_trains_the_answers_model(built: Any) -> None:
    def use(model: Any, name: Any) -> Any:
        optimiser = torch.optim.AdamW(model.parameters(), lr=0.1)
        losses = []
        for _ in range(4):
            optimiser.zero_grad()
            model.eval()
            loss = (model(X) - Y).pow(2).mean()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            assert model.first() is model.one
            losses.append(loss.item())
        return [round(loss, 4) for loss in losses], state(model)

    both(built, use)
    both(built, use, tied=True)


CLIPS = """
def _parts(given): return list(given.parameters() if hasattr(given, "parameters") else given)
def in_place(given, factor):
    for p in _parts(given): p.grad.mul_(factor)
def anew(given, factor):
    for p in _parts(given): p.grad = p.grad * factor
def by_data(given, factor):
    for p in _parts(given): p.grad.data = p.grad.data * factor
class Clipper:
    def __init__(self, given):
        self.given, self.held = given, [p.grad for p in _parts(given)]
    def __call__(self, factor):
        for gradient in self.held: gradient *= factor
"""


@pytest.mark.parametrize("of_a_model", [False, True], ids=["list", "model"])
@pytest.mark.parametrize("name", ["in_place", "anew", "by_data"])
def test_a_gradient_is_changed_in_place_where_the_answer_did_and_only_there(
    answer: Any, name: str, of_a_model: bool
) -> None:
    found = []
    for clip in answer(CLIPS)(name):
        given: Any = nn.ModuleList([nn.Linear(2, 2)]) if of_a_model else None
        given = given or [nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(3))]
        parameters = list(given.parameters() if of_a_model else given)
        for parameter in parameters:
            parameter.grad = torch.ones_like(parameter)
        seen = []
        for factor in (2, 3):
            held = [parameter.grad for parameter in parameters]
            clip(given, factor)
            for before, parameter in zip(held, parameters, strict=True):
                now = parameter.grad
                assert before is not None and now is not None
                seen.append((before is now, before.sum().item(), now.sum().item()))
        found.append(seen)
    assert found[0] == found[1]


def test_a_gradient_that_the_test_changes_in_place_is_the_one_that_the_answer_holds(
    answer: Any,
) -> None:
    found = []
    for clipper in answer(CLIPS)("Clipper"):
        given = nn.Linear(2, 2)
        for parameter in given.parameters():
            parameter.grad = torch.ones_like(parameter)
        clip, held = clipper(given), given.weight.grad
        assert held is not None
        clip(2)
        assert held is given.weight.grad
        seen = held.sum()
        held.fill_(1)
        clip(3)
        found.append([seen, held.sum(), held is given.weight.grad])
    assert found[0] == found[1]


THROUGH = """
def same(x, f): return f(x) is x
def added(x, f):
    out = f(x)
    out += 1
    return out.sum()
def twice(x, f):
    f(x)
    return (x + f(x)).sum()
"""


@pytest.mark.parametrize("name", ["same", "added", "twice"])
@pytest.mark.parametrize(
    "function",
    [
        lambda t: t,
        nn.Identity(),
        nn.Dropout(0.5).eval(),
        torch.clone,
        lambda t: t.mul_(2),
        torch.relu_,
    ],
    ids=["function", "module", "dropout", "copy", "in place", "relu"],
)
def test_a_tensor_of_the_test_that_its_function_hands_back_is_that_very_tensor(
    answer: Any, name: str, function: Any
) -> None:
    found = []
    for answered in answer(THROUGH)(name):
        x = torch.tensor([-1.0, 2.0])
        found.append([answered(x, function), x])
    assert str(found[0]) == str(found[1])


def test_an_answer_trains_a_model_of_the_test(built: Any) -> None:
    found = []
    for place in (0, 1):
        torch.manual_seed(2)
        model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 3))
        optimiser = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        step = built("step")[place]
        losses = [step(model, optimiser, X, Y).item() for _ in range(3)]
        losses += built("fit")[place](model, X, Y)
        found.append([torch.tensor(losses), *state(model).values()])
    for one, two in zip(*found, strict=True):
        assert torch.allclose(one, two, atol=1e-5)


def test_an_answer_trains_its_own_model_that_the_test_holds(built: Any) -> None:
    def use(model: Any, name: Any) -> Any:
        model.drop.p = 0.0
        return name("fit")(model, X, Y)[0] > 0, model.training, len(state(model))

    both(built, use)


def test_modes_weights_and_kinds_set_by_the_test_hold_at_the_answer(built: Any) -> None:
    def use(model: Any, _: Any) -> Any:
        torch.manual_seed(5)
        model.load_state_dict({n: torch.randn(v.shape) for n, v in model.state_dict().items()})
        model.eval()
        one = model(X)
        with torch.no_grad():
            model.one.weight.fill_(0.5)
        two = model(X)
        model.to(torch.float64)
        three = model(X.double())
        for p in model.one.parameters():
            p.requires_grad_(False)
        model(X.double()).sum().backward()
        return one, two, three, model.one.weight.grad is None, model.two.weight.grad

    both(built, use)


def test_a_deep_copy_is_a_model_of_its_own(built: Any) -> None:
    def use(model: Any, _: Any) -> Any:
        model.eval()
        other = copy.deepcopy(model)
        with torch.no_grad():
            other.one.weight.zero_()
        assert other is not model
        return model(X), other(X), model.one.weight.clone()

    both(built, use)


def test_a_module_swapped_by_the_answer_is_swapped_here(built: Any) -> None:
    def use(model: Any, _: Any) -> Any:
        before = model.one
        model.swap()
        assert model.one is not before
        model.eval()
        model(X).sum().backward()
        return list(state(model)), model.one.weight.grad is not None

    both(built, use)
    ours = nn.Sequential()
    ours.one = nn.Linear(3, 5)
    built("replace")[0](ours)
    assert ours.one.weight.shape == (3, 3)


def test_frozen_parameters_and_modes_come_back(built: Any) -> None:
    model = nn.Linear(2, 2)
    built("freeze")[0](model)
    assert not any(p.requires_grad for p in model.parameters())
    built("close")[0](model)
    assert not model.training


def test_the_librarys_own_modules_cross(answer: Any) -> None:
    there, here = answer(
        "def build():\n    torch.manual_seed(0)\n"
        "    return nn.Sequential(nn.Linear(2, 3), nn.LayerNorm(3), nn.Embedding(4, 3))\n"
    )("build")
    one, two = there(), here()
    assert [type(m).__name__ for m in one] == [type(m).__name__ for m in two]
    assert isinstance(one[0], nn.Linear)
    assert torch.equal(one[0].weight, two[0].weight)
    assert torch.allclose(one[1](one[0](torch.ones(2))), two[1](two[0](torch.ones(2))))
    assert torch.equal(one[2](torch.tensor([1, 2])), two[2](torch.tensor([1, 2])))


def test_loose_parameters_are_shared(answer: Any) -> None:
    names = answer(
        "w = nn.Parameter(torch.ones(2))\n"
        "def loss(): return (w ** 2).sum()\n"
        "def descend(p, rate):\n    with torch.no_grad(): p -= rate * p.grad\n"
    )
    w, _ = names("w")
    optimiser = torch.optim.SGD([w], lr=0.25)
    names("loss")[0]().backward()
    optimiser.step()
    assert w.tolist() == [0.5, 0.5]
    assert math.isclose(names("loss")[0]().item(), 0.5)
    ours = nn.Parameter(torch.ones(2))
    ours.sum().backward()
    names("descend")[0](ours, 0.5)
    assert ours.tolist() == [0.5, 0.5]


def test_what_an_answer_sets_for_all_code_is_undone(open_fork_server: ForkServer) -> None:
    source = (
        "import torch\ntorch.set_default_dtype(torch.float64)\n"
        "def sneaky():\n"
        "    torch.set_default_dtype(torch.float64); torch.set_grad_enabled(False)\n"
        "    torch.set_default_device('meta')\n"
        "def made(): return torch.ones(2), torch.is_grad_enabled()\n"
    )
    with answering(open_fork_server, source) as student:
        student.name("sneaky")()
        made, grad = student.name("made")()
        assert made.dtype is torch.float32
        assert made.tolist() == [1, 1]
        assert grad
        assert torch.is_grad_enabled()
        assert torch.get_default_dtype() is torch.float32


CHANGING = """
gain = torch.linspace(1, 2, 5, requires_grad=True)
def doubled(x): x *= 2; return x
def centred(x): x -= x.mean(); return x.square() * x.sin()
def weighted(x): x += gain; return (x, x * 2)
def hides(x): x.masked_fill_(x < 0.4, -5.0); return torch.softmax(x, -1)
"""


@pytest.mark.parametrize("name", ["doubled", "centred", "weighted", "hides"])
def test_gradients_go_through_a_value_that_was_changed_in_place(answer: Any, name: str) -> None:
    found = []
    for function in answer(CHANGING)(name):
        leaf = torch.linspace(0, 1, 5, requires_grad=True)
        middle = leaf * 3
        given = leaves(function(middle))
        (sum((part**3).sum() for part in given) + (middle**2).sum()).backward()
        found.append([*given, middle, leaf.grad])
    for one, two in zip(*found, strict=True):
        assert torch.allclose(one, two), (one, two)


@pytest.mark.parametrize("name", ["doubled", "centred", "weighted", "hides"])
def test_a_call_gives_the_same_where_the_tests_values_are_protected(answer: Any, name: str) -> None:
    there, here = answer(CHANGING)(name)
    x = torch.linspace(0, 1, 5)
    before, wanted = x.clone(), leaves(here(x.clone()))
    remote_of(there).peer.protect = True  # type: ignore[union-attr]
    for one, two in zip(leaves(there(x)), wanted, strict=True):
        assert torch.allclose(one, two)
    assert torch.equal(x, before)


PLAIN = """
class Scale(nn.Module):
    def __init__(self): super().__init__(); self.gain = torch.ones(3)
    def forward(self, x): return self.gain * x
"""


def test_a_test_may_change_a_plain_tensor_of_the_answers_module(answer: Any) -> None:
    for kind in answer(PLAIN)("Scale"):
        model = kind()
        model.gain.mul_(4)
        assert model(torch.ones(3)).tolist() == [4, 4, 4]
        kept = model.gain
        for number in (7, 8):
            kept[0] = number
            assert model(torch.ones(3)).tolist() == [number, 4, 4]
        assert list(model.state_dict()) == []


def test_a_protected_model_of_the_test_stays(built: Any) -> None:
    step, _ = built("fit")
    peer = remote_of(step).peer  # type: ignore[union-attr]
    peer.protect = True
    model = nn.Linear(3, 3)
    before = state(model)
    built("close")[0](model)
    step(model, X, Y)
    assert model.training
    assert all(
        torch.equal(a, b) for a, b in zip(before.values(), model.state_dict().values(), strict=True)
    )
    assert peer.changed_ours


SPOILS = """
def total(layer): return layer.weight.sum().item(), layer.training, len(layer)
def spoil(layer):
    layer.eval()
    with torch.no_grad(): layer.weight.zero_()
    layer.weight.grad = None
    layer.append(nn.Linear(1, 1))
def slope(layer): return layer.weight.grad.sum().item()
"""


def test_an_answer_sees_a_protected_model_as_the_test_has_it_and_not_its_own_changes(
    answer: Any,
) -> None:
    total, spoil, slope = (pair[0] for pair in map(answer(SPOILS), ("total", "spoil", "slope")))
    remote_of(total).peer.protect = True  # type: ignore[union-attr]
    layer = nn.Sequential(nn.Linear(1, 1))
    layer.weight = nn.Parameter(torch.ones(2, 2))
    layer.weight.grad = torch.ones(2, 2)
    for _ in range(2):
        assert total(layer) == (4.0, True, 1)
        assert slope(layer) == 4.0
        spoil(layer)
        layer.weight.grad = torch.ones(2, 2)  # as it was: nothing new for the test's end


BACKWARD = """
class Cheat(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, layer):
        ctx.layer = layer
        return x * 2
    @staticmethod
    def backward(ctx, gradient):
        with torch.no_grad():
            for one in ctx.layer.parameters(): one.zero_()
        return gradient * 2, None
def apply(layer, x): return Cheat.apply(x, layer)
"""


METHODS = """
def call(model, name, *args):
    remote = model._remote
    return remote.peer.call(remote.number, name, args, {}, "")
def get(model, name): return model._remote.peer.get(model._remote.number, name, "")
def own(model): return model.halve()
def forward(model, x): return model(x)
def step(optimiser): optimiser.step()
"""
HALVING = """
import torch
class Layer(torch.nn.Linear):
    def halve(self):
        with torch.no_grad(): self.weight /= 2
        self.eval()
"""


def test_an_answer_runs_no_method_of_the_librarys_on_a_model_of_the_test(answer: Any) -> None:
    names = {name: answer(METHODS)(name)[0] for name in ("call", "get")}
    layer, norm = nn.Linear(2, 2), nn.LayerNorm(2)
    for model, name in (
        *((layer, "reset_parameters"), (norm, "reset_parameters"), (layer, "requires_grad_")),
        *((nn.Sequential(layer), "append"), (nn.Sequential(layer), "pop"), (layer, "extra_repr")),
    ):
        with pytest.raises(PermissionError):
            names["call"](model, name)
        with pytest.raises(AttributeError, match="an answer may not use"):
            names["get"](model, name)
    assert names["get"](layer, "in_features") == 2


def test_what_a_method_of_the_tests_model_changes_for_an_answer_is_a_change(answer: Any) -> None:
    found = answer(METHODS)
    for protect in (False, True):
        layer: Any = of_tests(HALVING)["Layer"](2, 2)
        layer.weight.data.fill_(4.0)
        optimiser = torch.optim.SGD(layer.parameters(), lr=1.0)
        peer: Any = remote_of(found("own")[0]).peer  # type: ignore[union-attr]
        peer.protect = protect
        with peer.recording() as crossings:
            found("own")[0](layer)
            assert layer.weight.eq(4 if protect else 2).all()
            assert layer.training is protect
            assert found("forward")[0](layer, torch.ones(1, 2)).shape == (1, 2)
            layer.weight.grad = torch.ones(2, 2)
            found("step")[0](optimiser)
            assert layer.weight.eq(4 if protect else 1).all()
        made = [call.changed for call in crossings if call.what in ("own", "forward", "step")]
        assert made == [("Module",), (), ("Module",)]


def test_what_a_backward_pass_changes_is_recorded_and_kept_away(answer: Any) -> None:
    apply, _ = answer(BACKWARD)("apply")
    peer = remote_of(apply).peer  # type: ignore[union-attr]
    for protect in (False, True):
        peer.protect = protect
        layer, x = nn.Linear(2, 2), torch.ones(2, requires_grad=True)
        with peer.recording() as crossings:
            apply(layer, x).sum().backward()
        assert ("backward pass", ("Module",)) in [(c.what, c.changed) for c in crossings]
        assert bool(layer.weight.eq(0).all()) is not protect


# --- an answer that speaks the line's language itself -------------------------------------------


def entry(shape: list[int], **more: Any) -> list[Any]:
    """A tensor of float32 as a message lists it."""
    told = {"name": "float32", "strides": None, "place": 0, "flags": 2, "grad": None, **more}
    return [told["name"], shape, told["strides"], told["place"], told["flags"], told["grad"]]


FOUR = np.ones(4, "float32").tobytes()
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


def module(number: int = 1, /, **more: Any) -> list[Any]:
    """A module as a reply describes it."""
    empty = {"methods": [], "fields": [], "dunders": [], "classes": []}
    empty |= {"params": [], "buffers": [], "children": [], "base": None, "training": True}
    return ["H", {"n": number, "k": "module", "type": "M"} | empty | more]


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


def forging(*replies: Any) -> Any:
    """The other end gives these replies, one a request, each with a tensor's bytes."""

    def act(enemy: Any) -> None:
        for tree in replies:
            enemy.hear()
            enemy.say(tree, FOUR)

    return act


def test_a_parameter_of_the_test_is_not_changed_through_a_module_of_the_answer() -> None:
    ours = nn.Linear(2, 2, bias=False)
    before = ours.weight.detach().clone()
    news = {"m": [[0, 7, "weight", {"same": [1, 1, "weight"]}], [0, 7, "weight", entry([2, 2])]]}
    theirs = {"params": [["weight", ["X", 0]]]}
    again = {"r": module(7, params=[["weight", ["X", 0]]]), "x": [entry([2, 2], flags=7)]}
    shared = {"m": [[0, 7, "weight", {"same": [1, 1, "weight"]}]]}
    for last in ({"r": 1, "t": news}, again):
        first = {"r": module(7, **theirs), "x": [entry([2, 2], flags=7)]}
        with against(forging(first, {"r": 1, "t": shared}, last)) as peer:
            held = peer.ask("name")
            peer.ask("f", ours)
            assert held.weight is ours.weight
            peer.ask("f")
            assert torch.equal(ours.weight, before)
            assert held.weight is not ours.weight


def calling_back(*requests: dict[str, Any], entries: bytes = FOUR, **reply: Any) -> Any:
    """The other end sends these in the middle of a call, and then a reply."""

    def act(enemy: Any) -> None:
        enemy.hear()
        for tree in requests:
            enemy.say({"op": "get", "p": [0, "x"], "v": ["T"], **tree}, entries, entries)
            enemy.hear()
        enemy.say({"r": 1, **reply}, entries)

    return act


BORROWED = {"v": ["T", module(7, params=[["w", ["PS", 1, 1, "weight"]]])]}
FROM_LIST = {"v": ["T", module(7, params=[["w", ["PS", 1, 0, "0"]]])]}
ANEW = module(7, params=[["w", ["X", 0]]])
ONES = {"m": [[0, 7, "w", entry([2, 2], flags=7)]]}
WITH_GRADIENT = {"m": [[0, 7, "w", entry([2, 2], flags=7, grad=entry([2, 2], place=1))]]}
OTHERS: dict[str, tuple[Any, ...]] = {
    "entries": (BORROWED, {"drop": [1], "t": ONES}),
    "entries of a loose one": (FROM_LIST, {"drop": [0], "t": ONES}),
    "a gradient": (BORROWED, {"drop": [1], "t": WITH_GRADIENT}),
    "another shape": (BORROWED, {"drop": [1], "t": {"m": [[0, 7, "w", entry([4], flags=7)]]}}),
    "described anew": (
        BORROWED,
        {"drop": [1], "v": ["T", ANEW], "x": [entry([2, 2], flags=7)]},
    ),
}


@pytest.mark.parametrize("how", OTHERS)
def test_what_a_test_made_is_changed_through_no_module_of_the_answers_unnoticed(how: str) -> None:
    for protect in (False, True):
        ours: Any = nn.Linear(2, 2, bias=False)
        before, first = ours.weight.detach().clone(), ours.weight.data
        with against(calling_back(*OTHERS[how])) as peer:
            peer.protect = protect
            with peer.recording() as crossings:
                peer.ask("f", [ours.weight] if "loose" in how else ours)
        assert crossings[0].changed == ("Module",)
        assert peer.changed_ours
        if protect:
            assert torch.equal(ours.weight, before)
            assert torch.equal(first, before)
            assert ours.weight.grad is None


def test_nothing_is_written_where_a_module_of_the_answers_was_told_to_lie() -> None:
    ours: Any = nn.Linear(2, 2, bias=False)
    ours.weight.data.fill_(1.0)
    reply = {"r": module(8, params=[["w", ["X", 0]]]), "x": [entry([2, 2], flags=7)]}
    reply["as"] = [[], [[0, ["P", 0, 7, "w"], []]]]
    zeros = {"m": [[0, 8, "w", entry([2, 2], flags=7)]]}
    first, second = calling_back(BORROWED, **reply), calling_back(t=zeros, entries=bytes(16))

    def act(enemy: Any) -> None:
        first(enemy)
        second(enemy)

    with against(act) as peer:
        held = peer.ask("f", ours)
        peer.ask("f")
        assert ours.weight.eq(1).all()
        assert held.w.eq(0).all()


TAKEN = """
class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.zeros(2))
    def forward(self, x): return (x * self.w).sum()
    def train_on(self, x):
        with torch.no_grad(): self.w -= 1.0
def own(): return Layer()
"""


def test_a_tensor_that_a_test_puts_into_a_model_of_the_answers_is_trained_there(
    answer: Any,
) -> None:
    for place in (0, 1):
        layer = answer(TAKEN)("own")[place]()
        layer.w = nn.Parameter(torch.ones(2))
        kept, memory = layer.w, torch.full((2,), 3.0)
        optimiser = torch.optim.SGD([kept], lr=1.0)
        layer(torch.ones(2)).backward()
        optimiser.step()
        layer.train_on(1)
        assert kept.tolist() == [-1, -1]
        assert layer.w is kept
        kept.data = memory
        layer.train_on(1)
        assert memory.tolist() == layer.w.tolist() == [2, 2]


def test_a_tensor_of_the_test_becomes_no_part_of_the_answers_module() -> None:
    for part in ({"params": [["w", ["R", 0]]]}, {"buffers": [["w", ["R", 0], True]]}):
        got = outcome(replying({"r": module(7, **part)}), torch.ones(2))
        assert isinstance(got, WireError)


def _give_up(value: Tensor) -> None:
    value.data.untyped_storage().resize_(0)


CHANGES: dict[str, Callable[[Any], Any]] = {
    "nothing": lambda p: None,
    "an entry through .data": lambda p: p.data[0].fill_(9.0),
    "a zero's sign": lambda p: p.data[0].fill_(-0.0),
    "a NaN's bits": lambda p: p.data[0].view(torch.int64).fill_(0x7FF8000000000001),
    "other memory, same entries": lambda p: setattr(p, "data", p.data.clone()),
    "another layout": lambda p: setattr(p, "data", p.data.t().contiguous().t()),
    "another kind": lambda p: setattr(p, "data", p.data.float()),
    "another shape": lambda p: setattr(p, "data", p.data.reshape(4)),
    "fewer": lambda p: setattr(p, "data", p.data[:1]),
    "none": lambda p: setattr(p, "data", p.data[:0]),
    "memory given up": _give_up,
    "a gradient": lambda p: setattr(p, "grad", torch.ones_like(p)),
    "no gradient wanted": lambda p: p.requires_grad_(False),
}


@pytest.mark.parametrize("later", CHANGES)
@pytest.mark.parametrize("first", CHANGES)
def test_what_is_taken_for_unchanged_without_a_copy_is_so(first: str, later: str) -> None:
    value = nn.Parameter(torch.zeros(2, 2, dtype=torch.float64))
    CHANGES[first](value)
    with contextlib.suppress(WireError):
        told = dense.bits(value)
        with contextlib.suppress(RuntimeError, IndexError):  # it does not fit the one before
            CHANGES[later](value)
        is_same = dense.has_bits(value, told)
        assert not is_same or dense.bits(value) == told
        assert is_same or (first, later) != ("nothing", "nothing")


@pytest.mark.parametrize(
    "odd",
    [
        torch.zeros(2, 2).to_sparse(),
        torch.zeros(2, 2, device="meta"),
        torch.view_as_complex(torch.ones(2, 2)).conj(),
        torch.view_as_complex(torch.ones(2, 2)).conj().imag,
        nn.parameter.UninitializedParameter(),
        torch.nested.nested_tensor([torch.zeros(2)], layout=torch.jagged),
    ],
    ids=str,
)
def test_an_odd_tensor_is_never_taken_for_unchanged(odd: Tensor) -> None:
    told = (odd.dtype, (2, 2), False, b"\0" * 16, None)
    assert not dense.has_bits(odd, told)


USE = """
def use(layer, x):
    return layer(x).sum(), layer.weight
def halved(layer, x):
    layer.weight.data.mul_(0.5)
    return layer(x)
"""


def used_there(answer: Any, layer: nn.Linear, x: Tensor) -> tuple[list[Tensor], bool]:
    """What the answer makes of a layer, with its gradients, and whether it was called here."""
    student, here = answer(USE)("use")
    found, calls = [], []
    for use in (student, here):
        layer.zero_grad()
        work = student._remote.peer.answering.use
        student._remote.peer.answering.use = lambda op, *rest, w=work: (
            calls.append(op),
            w(op, *rest),
        )[1]
        total, weight = use(layer, x)
        student._remote.peer.answering.use = work
        assert weight is layer.weight
        total.backward()
        found.append([total.detach(), layer.weight.grad, x.grad])
        x.grad = None
    for one, two in zip(*found, strict=True):
        same_bits(one, two)
    return found[0], "call" in calls


def test_a_linear_layer_of_a_test_is_computed_where_the_answer_runs(answer: Any) -> None:
    layer, x = nn.Linear(3, 2), torch.randn(4, 3, requires_grad=True)
    assert not used_there(answer, layer, x)[1]
    student, _ = answer(USE)("halved")
    wanted = (0.5 * layer.weight.detach()) @ x.detach().T + layer.bias.detach()[:, None]
    torch.testing.assert_close(student(layer, x).detach().T, wanted)
    with torch.no_grad():
        layer.weight.fill_(1.0)  # and what a test changes later is told
    assert not used_there(answer, layer, x)[1]


class Counted(nn.Linear):
    """A class that a test has made."""


def hooked() -> nn.Linear:
    """A layer whose calls a test counts."""
    layer = nn.Linear(3, 2)
    layer.register_forward_hook(lambda *_: None)
    return layer


def replaced() -> nn.Linear:
    """One with another way to compute."""
    layer: Any = nn.Linear(3, 2)
    layer.forward = lambda x: nn.functional.linear(x, 2 * layer.weight)
    return layer


@pytest.mark.parametrize("made", [lambda: Counted(3, 2), hooked, replaced])
def test_a_layer_that_is_more_than_its_parameters_is_called_where_the_test_runs(
    answer: Any, made: Callable[[], nn.Linear]
) -> None:
    assert used_there(answer, made(), torch.randn(4, 3, requires_grad=True))[1]


def test_a_hook_that_comes_later_is_run(answer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    layer, x = nn.Linear(3, 2), torch.randn(4, 3, requires_grad=True)
    (student, _), seen = answer(USE)("use"), []
    student(layer, x)
    layer.register_forward_pre_hook(lambda *_: seen.append("hook"))
    student(layer, x)
    assert seen == ["hook"]
    second = nn.Linear(3, 2)
    linear = nn.functional.linear
    counted = lambda *args: (seen.append("function"), linear(*args))[1]  # noqa: E731
    monkeypatch.setattr(nn.functional, "linear", counted)
    student(second, x)
    assert seen == ["hook", "function"]
