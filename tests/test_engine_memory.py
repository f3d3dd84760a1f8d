"""What results share memory with, held against one process; and nothing that can be forged."""

import contextlib
import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from autograder.bridge import views
from autograder.bridge.wire import WireError
from autograder.isolation.fork_server import ForkServer
from tests.test_engine_peer import against, answering, of_tests


@pytest.fixture
def both(open_fork_server: ForkServer) -> Iterator[Callable[..., None]]:
    """both(source, use) runs a test with an answer in its own process, and in this one: alike."""
    with contextlib.ExitStack() as stack:

        def run(source: str, use: Callable[..., Any], *values: Any) -> None:
            source = "import copy, collections\nimport numpy as np\n" + source
            source = "import torch\nfrom torch import nn\n" + source
            student = stack.enter_context(answering(open_fork_server, source))
            wanted = use(of_tests(source).__getitem__, *copy.deepcopy(values))
            with student.peer.recording():
                assert use(student.name, *values) == wanted

        yield run


# --- views of what a test handed over -----------------------------------------------------------

VIEWS = """
def part(x, how): return eval(how)
def inside(x, how): return {'a': [eval(how)], 'b': (1, x)}
def of_dict(xs, how):
    return {name: part(x, how) for name, x in xs[0].items()}
def fill(x, how):
    x[...] = 7
    return eval(how)
"""
HOWS = [
    *("x.detach()", "x[:]", "x.view(-1)", "x.T", "x[0]", "x[:, 1]", "x[1:, ::2]", "x.view(3, 2)"),
    *("x[None]", "x[0, 0]", "x.diagonal()", "x.data", "x.clone()", "x + 0", "x", "x.reshape(6)"),
    *("x.expand(5, 2, 3)", "x.numpy()[0]", "x.repeat(2, 1)"),
]


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("name", ["part", "inside", "of_dict", "fill"])
def test_a_view_of_a_tensor_is_one_here(both: Any, name: str, how: str) -> None:
    def use(of: Any, x: Any) -> Any:
        given = [{"w": x}] if name == "of_dict" else x
        got: Any = of(name)(given, how)
        if name in ("inside", "of_dict"):
            got = got["a"][0] if name == "inside" else got["w"]
        before = got.tolist()
        shares = isinstance(got, Tensor) and (
            got.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
        )
        if "expand" not in how and "numpy" not in how:
            got += 1
            x *= 2
            return before, got.tolist(), x.tolist(), shares, tuple(got.shape), got.stride()
        return before

    both(VIEWS, use, torch.arange(6.0).reshape(2, 3))


LAID: list[Tensor] = [
    torch.arange(6.0).reshape(3, 2).T,
    torch.arange(12.0).reshape(2, 6)[:, ::2],
    torch.arange(24.0).reshape(4, 6)[1:3, 2:5],
    torch.arange(6).reshape(1, 2, 3)[0],
    torch.arange(6.0).reshape(2, 3).requires_grad_(),
    nn.Parameter(torch.arange(6.0).reshape(2, 3)),
]


@pytest.mark.parametrize("ours", LAID, ids=lambda x: f"{tuple(x.stride())}{type(x).__name__}")
@pytest.mark.parametrize("how", ["x.detach()", "x.detach()[0]", "x.detach().T", "x.data[:, 1]"])
def test_whatever_the_layout_of_what_was_handed_over(both: Any, ours: Tensor, how: str) -> None:
    def use(of: Any, x: Any) -> Any:
        got = of("part")(x, how)
        got.mul_(3)
        return x.tolist(), got.tolist(), got.stride()

    both(VIEWS, use, ours)


def test_what_lies_between_the_entries_of_a_tensor_is_not_handed_over(both: Any) -> None:
    big = torch.arange(12.0).reshape(2, 6)
    spread = big[:, ::2]
    for start, shape, steps in ((0, [6], [1]), (1, [1], [1]), (0, [2, 3], [1, 1])):
        assert views.view(spread, [start, shape, steps, [6, 2]]) is None
    same = views.view(spread, [2, [2, 2], [6, 2], [6, 2]])
    assert same is not None
    assert torch.equal(same, spread[:, 1:])
    wide = torch.ones(3).expand(2, 3)
    assert views.view(wide, [0, [3], [1], [0, 1]]) is not None


AROUND = """
class Sub(np.ndarray): pass
KEPT = []
def rows(a, how): return eval(how)
def keep(a, how): KEPT.append(eval(how)); return KEPT[-1]
def look(): return [one.tolist() for one in KEPT]
"""
WAYS_ROUND = [
    *("list(a)", "list(a.view(Sub))", "[np.asarray(r).ravel() for r in a.view(np.matrix)]"),
    *(
        "[r.A1 for r in a.view(np.matrix)]",
        "list(a.view(np.matrix))",
        "[np.asarray(a.view(np.matrix))]",
    ),
    *("[a.view(np.recarray)]", "[r.view(np.recarray) for r in a]", "[a.view(Sub)]", "[a, a[0]]"),
    *("[t.numpy() for t in torch.from_numpy(a)]", "list(torch.from_numpy(a))", "[a.T, a.T[1:]]"),
    *("[np.frombuffer(memoryview(r), r.dtype) for r in a[:, None]]", "[torch.from_numpy(a)]"),
    *("[torch.from_numpy(a), a]", "[np.array(a), a + 0, np.array(a.view(np.matrix))]"),
]


@pytest.mark.parametrize("how", WAYS_ROUND)
@pytest.mark.parametrize("kind", [np.float64, np.int64])
def test_a_view_of_an_array_is_one_here_whatever_lies_between(
    both: Any, how: str, kind: Any
) -> None:
    def use(of: Any, a: Any) -> Any:
        got = of("rows")(a, how)
        got[0][0] = 9
        found = [a.tolist(), [one.tolist() for one in got]]
        a[...] = 5
        return [*found, [(one.tolist(), one.shape) for one in got]]

    both(AROUND, use, np.arange(6, dtype=kind).reshape(2, 3))


@pytest.mark.parametrize("how", ["list(a)", "[a.T]", "[np.asarray(a)]", "list(np.asarray(a))"])
@pytest.mark.parametrize("of", [np.asfortranarray, lambda a: a.view(np.matrix), np.array])
def test_whatever_the_order_or_class_of_what_was_handed_over(both: Any, how: str, of: Any) -> None:
    def use(name: Any, a: Any) -> Any:
        got = name("rows")(a, how)
        got[-1][...] = 9
        return a.tolist(), [one.tolist() for one in got]

    both(AROUND, use, of(np.arange(6.0).reshape(2, 3)))


@pytest.mark.parametrize("how", ["[a.numpy()]", "list(a.numpy())", "[a.T.numpy(), a[0]]"])
def test_an_array_in_the_memory_of_a_tensor_is_one_here(both: Any, how: str) -> None:
    def use(of: Any, a: Any) -> Any:
        got = of("rows")(a, how)
        got[0][...] = 9
        return a.tolist(), [one.tolist() for one in got]

    for ours in (torch.arange(6.0).reshape(2, 3), torch.arange(6).reshape(3, 2).T):
        both(AROUND, use, ours)


@pytest.mark.parametrize("how", ["a.view(Sub)", "a.view(np.matrix)", "a.copy().view(np.recarray)"])
def test_what_a_test_writes_to_an_array_of_another_class_is_seen_there(both: Any, how: str) -> None:
    def use(of: Any, a: Any) -> Any:
        got = of("keep")(a, how)
        got[0, 0] = 9
        return a.tolist(), of("look")()

    both(AROUND, use, np.arange(6.0).reshape(2, 3))


FORGED: list[Any] = [
    *([-1, [1], [1], [3, 1]], [0, [7], [1], [3, 1]], [6, [1], [1], [3, 1]], [5, [2], [1], [3, 1]]),
    *([0, [2], [6], [3, 1]], [0, [2], [-1], [3, 1]], [5, [2], [-1], [3, 1]], [0, [1], [1], [1, 3]]),
    *([0, [2], [2**62], [3, 1]], [2**63, [1], [1], [3, 1]], [0, [1], [1], [1]], [0, [1], [], []]),
    *([0, [0], [1], [3, 1]], [0, [-1], [1], [3, 1]], [0, [True], [1], [3, 1]], [0.0, [1], [1], []]),
    *([0, [1], [True], [3, 1]], [True, [1], [1], [3, 1]], ["0", [1], [1], [3, 1]], [0, 1, 1, 1]),
    *([0, [1] * 40, [1] * 40, [3, 1]], [0, [7], [0], [3, 1]], [0, [1], [1]], 5, "x", {"a": 1}),
]


@pytest.mark.parametrize("part", FORGED, ids=repr)
def test_a_view_of_what_a_tensor_does_not_hold_is_none(part: Any) -> None:
    ours = torch.zeros(12)[3:9].reshape(2, 3)
    with contextlib.suppress(ValueError, TypeError):
        assert views.view(ours, part) is None


CLAIMS: list[Any] = [
    *(1, [], [1], [[1], []], [[[1, 2]], []], [{}, {}], [[[0, ["K", 0], []]]], [[[1, 5, 5]], []]),
    *([[[1, ["K", 0], [part]]], []] for part in FORGED),
    *([[[1, ["K", place], []]], []] for place in (-1, 1, 2, 99, "x", None, [1], True, 2**70)),
    *([[[1, ["E", *key], []]], []] for key in ([], [0, 0], [1, 9], ["x", 1], [[1], 2], [1])),
    *([[[1, ["P", *key], []]], []] for key in ([0, 0, "x"], [1, 1, 1], [5, 5, 5], [[], 0, ""], [])),
    *([[[1, ["X", key], []]], []] for key in (0, 1, -1, "x")),
    *([[], [[entry, ["K", 0], []]]] for entry in (-1, 0, 9, "x", [1], None)),
    *([[], [[0, where, []]]] for where in ([], 1, ["X", 0], ["P", 0, 1, "weight"], ["?", 1])),
    [[[1, ["K", 0], [0, [2, 3], [3, 1], [3, 1]]]], []],
]


def claiming(claim: Any, node: Any, *entries: Any) -> Callable[[Any], None]:
    """An answer's end that gives this, and tells that of it."""

    def act(enemy: Any) -> None:
        while True:
            enemy.hear()
            tree = {"r": node, "c": [], "x": [*entries], "t": None, "as": claim}
            enemy.say(tree, *[np.full(6, 5, "float32").tobytes() for _ in entries])

    return act


@pytest.mark.parametrize("claim", CLAIMS, ids=repr)
def test_no_claim_changes_what_a_test_is_given(claim: Any) -> None:
    ours = torch.zeros(12)[3:9].reshape(2, 3)
    entry = ["float32", [2, 3], None, 0, 2, None]
    act = claiming(claim, ["X", 0], entry)
    with against(act) as peer, peer.recording(), contextlib.suppress(WireError):
        got = peer.ask("name", ours)
        assert got.tolist() == [[5] * 3] * 2
        got += 1
    assert ours.eq(0).all()
    for node, given in ((["L", 1], [1, 2]), (["D", "a", 1], {"b": 1}), (["L", True], [1])):
        with against(claiming([[[1, ["K", 0], []]], []], node)) as peer, peer.recording():
            got = peer.ask("name", given)
            assert got is not given


def test_a_value_that_was_there_before_lies_in_no_result(both: Any, monkeypatch: Any) -> None:
    ours = torch.zeros(2, 3)
    monkeypatch.setattr("autograder.judge.old.is_old", lambda value: value is ours)
    monkeypatch.setattr("autograder.judge.guard.is_old", lambda v: v is ours, raising=False)

    def use(of: Any, x: Any) -> Any:
        of("part")(x, "x[:]").add_(1)
        return True

    both(VIEWS, use, ours)
    assert ours.eq(0).all()


# --- results that are one, or lie in each other ---------------------------------------------------

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


def test_what_the_answer_has_changed_since_is_given_anew(
    both: Any, open_fork_server: ForkServer
) -> None:
    with answering(open_fork_server, TWICE) as student, student.peer.recording():
        kept = student.name("Keeper")([1])
        one = kept.get()
        kept.put(2)
        two = kept.get()
        assert (one, two) == ([1], [1, 2])
        two.append(3)
        assert kept.get() == [1, 2, 3]
        assert kept.get() is two
        del one, two


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


# --- modules --------------------------------------------------------------------------------------

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
