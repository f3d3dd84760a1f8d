"""Tensors on the line, held against plain torch in one process."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from autograder.bridge.stand_ins import remote_of
from autograder.bridge.wire import WireError
from autograder.isolation.fork_server import ForkServer
from tests.bridge.ends import of_tests
from tests.bridge.torch_ends import (
    beside,
    same_bits,
)


@pytest.fixture
def answer(open_fork_server: ForkServer) -> Iterator[Callable[[str], Any]]:
    """answer(source) runs it in a new process; its names there, and the same source run here."""
    yield from beside(open_fork_server)


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


def test_a_tensor_whose_axis_repeats_itself_is_changed_here(answer: Any) -> None:
    source = "def few(x):\n    x[x < 2] = 0\n    return x.sum()\n"
    few, _ = answer(source)("few")
    row = torch.tensor([1.0, 5.0, 2.0])
    assert few(row.expand(4, 3)) == 28
    assert row.tolist() == [0, 5, 2]


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


def test_a_lazy_layer_is_in_step_once_it_has_parameters(answer: Any) -> None:
    names = answer(ODD)
    made = names("made")[0]
    deep: Any = made("deep")
    pairs: list[tuple[Any, Any]] = [(made("lazy"),) * 2, (deep, deep[1][0])]
    for layer, lazy in pairs:
        assert lazy._parameters == {"weight": None, "bias": None}
        assert layer(torch.ones(1, 2)).shape == (1, 3)
        with torch.no_grad():
            lazy.weight.fill_(2)
            lazy.bias.fill_(1)
        assert lazy(torch.ones(1, 2)).tolist() == [[5, 5, 5]]


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
    with pytest.raises(WireError, match="uninitialised"):
        same(nn.LazyLinear(3).weight)
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
