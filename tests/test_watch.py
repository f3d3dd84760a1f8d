"""What a question forbids is stopped however it is called; all else runs as ever."""

import importlib
import inspect
import queue
import re
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import lab.blocks as finished
from autograder.bridge import watch as watching
from autograder.bridge.watch import Forbidden, Watch

NAMES = [
    "torch.softmax",
    "torch.log_softmax",
    "torch.nn.functional.layer_norm",
    "torch.sort",
    "lab.blocks.FeedForward",
    "lab.blocks.LayerNorm",
    "lab.blocks.causal_mask",
    "lab.corpus",
]
X = torch.linspace(-2, 3, 6).reshape(2, 3)


@pytest.fixture
def watch() -> Iterator[Watch]:
    """Watches these names while a test runs."""
    made = Watch(NAMES)
    yield made
    made.end()


def in_a_thread(call: Callable[[], Any]) -> Any:
    """What a call gives in another thread."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result()


def in_inference_mode(call: Callable[[], Any]) -> Any:
    """What a call gives without any autograd."""
    with torch.inference_mode():
        return call()


def without_dispatch_modes(call: Callable[[], Any]) -> Any:
    """What a call gives where no TorchDispatchMode sees it."""
    with torch._C._DisableTorchDispatch():  # pyright: ignore[reportPrivateImportUsage, reportAttributeAccessIssue]
        return call()


def on_an_inference_tensor() -> Any:
    """Softmax outside inference mode of a tensor from inside."""
    with torch.inference_mode():
        x = X + 0
    return torch.softmax(x, -1)


CALLS: dict[str, Callable[[], Any]] = {
    "function": lambda: torch.softmax(X, -1),
    "method": lambda: X.softmax(-1),
    "functional": lambda: F.softmax(X, -1),
    "layer": lambda: nn.Softmax(-1)(X),
    "out": lambda: torch.softmax(X, -1, out=torch.empty(2, 3)),
    "operator": lambda: torch.ops.aten._softmax(X, -1, False),
    "log": lambda: X.log_softmax(-1),
    "loss": lambda: F.cross_entropy(X, torch.tensor([0, 1])),
    "half": lambda: torch.softmax(X, -1, dtype=torch.float64),
    "two outs": lambda: torch.sort(X, out=(torch.empty(2, 3), torch.empty(2, 3).long())),
    "thread": lambda: in_a_thread(lambda: torch.softmax(X, -1)),
    "inference mode": lambda: in_inference_mode(lambda: torch.softmax(X, -1)),
    "inference mode, thread": lambda: in_a_thread(lambda: in_inference_mode(lambda: X.softmax(-1))),
    "inference tensor": on_an_inference_tensor,
    "dispatch off": lambda: without_dispatch_modes(lambda: torch.softmax(X, -1)),
    "vmap": lambda: torch.func.vmap(lambda r: torch.softmax(r, -1))(X),
    "grad": lambda: torch.func.grad(lambda r: torch.softmax(r, -1).sum())(X),
    "functional_call": lambda: torch.func.functional_call(nn.Softmax(-1), {}, (X,)),
    "sparse": lambda: torch.sparse.softmax(X.to_sparse(), -1),
    "sparse, inference mode": lambda: in_inference_mode(
        lambda: torch.sparse.softmax(X.to_sparse(), -1)
    ),
    "mkldnn": lambda: in_inference_mode(lambda: torch.softmax(X.to_mkldnn(), -1)),
    "meta": lambda: torch.softmax(X.to("meta"), -1),
    "in python": lambda: torch._refs.softmax(X, -1),  # pyright: ignore[reportAttributeAccessIssue]
    "layer_norm": lambda: nn.LayerNorm(3)(X),
    "finished class": lambda: finished.FeedForward(3, 4),
    "subclass of it": lambda: type("Mine", (finished.LayerNorm,), {})(3),
    "its method": lambda: finished.LayerNorm.forward(nn.Identity(), X),  # pyright: ignore[reportArgumentType]
    "finished function": lambda: finished.causal_mask(3),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_forbidden_call_is_stopped_and_noted(watch: Watch, name: str):
    with pytest.raises(Forbidden, match=r"does not allow .*; write it yourself"):
        CALLS[name]()
    assert watch.seen


@pytest.mark.parametrize("name", [name for name in CALLS if name != "mkldnn"])
def test_afterwards_all_is_as_before(name: str):
    Watch(NAMES).end()
    if name != "its method":  # which no other object can call
        CALLS[name]()


def test_who_kept_the_function_has_the_stopped_one(watch: Watch):
    with pytest.raises(Forbidden):
        KEPT["mask"](3)
    assert watch.seen == {"lab.blocks.causal_mask"}


KEPT = {"mask": finished.causal_mask}


def test_what_was_stopped_in_a_try_is_noted_all_the_same(watch: Watch):
    try:
        torch.softmax(X, -1)
    except RuntimeError:
        X.exp()
    assert watch.seen == {"torch.softmax"}


def test_an_operator_in_a_compiled_graph_is_stopped():
    """Also where it was compiled before anything was watched."""
    unit = torch.jit.CompilationUnit("def f(x):\n    return torch.softmax(x, -1)\n")
    unit.f(X)
    watch = Watch(NAMES)
    try:
        with pytest.raises(RuntimeError, match="does not allow"):
            unit.f(X)
    finally:
        watch.end()
    assert watch.seen == {"torch.softmax"}


def test_what_the_watch_needs_was_bound_before(monkeypatch: pytest.MonkeyPatch):
    """A student replaced torch's ways to watch."""
    nothing = lambda *_, **__: None  # noqa: E731
    for place, name in (
        (torch.library.Library, "impl"),
        (torch.library.Library, "__init__"),
        (torch.library, "Library"),
        (torch.library, "get_kernel"),
        (torch._C, "_dispatch_get_all_op_names"),
        (torch, "is_inference_mode_enabled"),
    ):
        monkeypatch.setattr(place, name, nothing)
    watch = Watch(["torch.softmax"])
    try:
        assert not watch.seen
        with pytest.raises(Forbidden):
            torch.softmax(X, -1)
    finally:
        watch.end()


def test_a_watch_that_was_undone_counts_as_used(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(watching._bound, "impl", lambda *_, **__: None)
    watch = Watch(["torch.softmax", "torch.nn.functional.layer_norm"])
    watch.end()
    assert watch.seen == {"torch.softmax", "torch.nn.functional.layer_norm"}


@pytest.mark.parametrize("inference", [False, True])
def test_trying_the_stops_out_leaves_no_note(inference: bool):
    with torch.inference_mode(inference):
        watch = Watch([*NAMES, "torch.batch_norm", "torch.nn.functional.multi_head_attention"])
        watch.end()
    assert not watch.seen


def test_of_a_package_the_functions_of_its_loaded_modules_are_stopped_too():
    from sacrebleu.metrics.helpers import extract_all_word_ngrams

    watched = Watch(["sacrebleu"])
    try:
        with pytest.raises(Forbidden):
            extract_all_word_ngrams("a b", 1, 2)
    finally:
        watched.end()
    assert watched.seen == {"sacrebleu"}
    assert extract_all_word_ngrams("a b", 1, 1)[1] == 2


def test_a_forbidden_module_cannot_be_imported_meanwhile():
    before = sys.modules.pop("lab.corpus", None)
    watch = Watch(["lab.corpus"])
    try:
        with pytest.raises(Forbidden):
            from lab.corpus import sentence_pairs  # noqa: F401
        assert watch.seen == {"lab.corpus"}
    finally:
        watch.end()
    assert "lab.corpus" not in sys.modules
    if before is not None:
        sys.modules["lab.corpus"] = before


def test_looking_through_all_modules_is_no_use_of_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delitem(sys.modules, "lab.corpus", raising=False)
    watch = Watch(["lab.corpus"])
    try:
        for module in list(sys.modules.values()):
            getattr(module, "__warningregistry__", None)
            hasattr(module, "__file__")
        assert not watch.seen
        with pytest.raises(Forbidden):
            exec("from lab.corpus import *")
        assert watch.seen == {"lab.corpus"}
    finally:
        watch.end()


class Doubled(torch.autograd.Function):
    """Written as torch's documentation does; its arguments are looked up by `inspect`."""

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return 2 * x

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> Tensor:
        return 2 * slope


def test_what_python_puts_into_the_classes_of_a_forbidden_module_is_anybodys():
    """As `Enum.__new__`, by which `inspect` and `re` find their own entries."""
    importlib.import_module("torch.nn.attention.flex_attention")  # it has an enumeration
    watch = Watch(["torch.nn.attention", "torch.distributions"])
    try:
        assert torch.equal(Doubled.apply(X), 2 * X)
        assert list(inspect.signature(lambda x: x).parameters) == ["x"]
        assert re.compile("a|B", re.IGNORECASE).match("b")
        assert not watch.seen
    finally:
        watch.end()


def test_what_is_said_later_to_be_anothers_stays_stopped(monkeypatch: pytest.MonkeyPatch):
    from sacrebleu.metrics import helpers

    watching.prepare(["sacrebleu.metrics"])
    monkeypatch.setattr(helpers.extract_all_word_ngrams, "__module__", "re")
    monkeypatch.setitem(sys.modules, "sacrebleu.metrics.later", types.ModuleType("later"))
    watch = Watch(["sacrebleu.metrics"])
    try:
        with pytest.raises(Forbidden):
            helpers.extract_all_word_ngrams("a b", 1, 2)
    finally:
        watch.end()


PERMITTED: dict[str, Callable[[Tensor], Tensor]] = {
    "exp and sum": lambda x: torch.exp(x - x.amax(-1, keepdim=True)) / torch.exp(x).sum(),
    "logsumexp": lambda x: x.logsumexp(-1),
    "sigmoid": torch.sigmoid,
    "normalize": F.normalize,
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "nll_loss": lambda x: F.nll_loss(x, torch.tensor([0, 1])),
    "topk": lambda x: x.topk(2).values,
    "median": lambda x: x.median(-1).values,  # a step of it sorts
    "unique": lambda x: x * torch.unique(x.detach(), dim=0).sum(),  # and of this
    "std": lambda x: x.std(-1),
}


@pytest.mark.parametrize("name", PERMITTED)
@pytest.mark.parametrize("inference", [False, True])
def test_what_is_permitted_gives_the_same_bits_and_gradients(name: str, inference: bool):
    def run() -> list[Tensor]:
        if inference:
            return [in_inference_mode(lambda: PERMITTED[name](X))]
        x = X.clone().requires_grad_()
        out = PERMITTED[name](x)
        return [out.detach(), *torch.autograd.grad(out.sum(), x)]

    before = run()
    watch = Watch(["torch.softmax", "torch.layer_norm", "torch.nn.functional.cross_entropy"])
    try:
        after = run()
    finally:
        watch.end()
    assert all(torch.equal(one, two) for one, two in zip(before, after, strict=True))
    assert not watch.seen


@pytest.mark.parametrize("name", ["median", "unique", "topk"])
def test_a_step_inside_another_operator_is_not_a_call(watch: Watch, name: str):
    PERMITTED[name](X)
    assert not watch.seen


def test_a_function_inside_another_can_be_stopped():
    def outer() -> Callable[[], int]:
        def inner() -> int:
            return len(kept)

        kept = [1, 2]
        return inner

    module = types.ModuleType("made_here")
    module.inner = outer()  # pyright: ignore[reportAttributeAccessIssue]
    sys.modules["made_here"] = module
    watch = Watch(["made_here.inner"])
    try:
        with pytest.raises(Forbidden):
            module.inner()
    finally:
        watch.end()
        del sys.modules["made_here"]
    assert module.inner() == 2


@pytest.mark.parametrize(
    "name", ["", ".", "nowhere.at.all", "torch.nn.nothing", "softmax", ".sort"]
)
def test_any_name_ends_in_a_watch(name: str):
    Watch([name]).end()


def test_what_a_decorator_holds_is_stopped_as_well(monkeypatch: pytest.MonkeyPatch):
    module: Any = types.ModuleType("made_here")
    code = (
        "import functools\nimport torch.nn.functional as F\n"
        "@functools.cache\ndef kept(x): return x\n"
        "@functools.wraps(kept.__wrapped__)\ndef outer(x): return x\n"
        "class Held:\n    @property\n    def value(self): return 1\n"
        "relu = functools.wraps(F.relu)(lambda x: F.relu(x))\n"
    )
    exec(code, vars(module))
    monkeypatch.setitem(sys.modules, "made_here", module)
    watch = Watch(["made_here", "made_here.relu"])
    try:
        for call in (
            lambda: module.kept(1),
            lambda: module.kept.__wrapped__(1),
            lambda: module.outer(1),
            lambda: module.Held().value,
        ):
            with pytest.raises(Forbidden):
                call()
        assert F.relu(X).sum() == X.clamp(min=0).sum()
    finally:
        watch.end()
    assert module.kept(1) == 1 and module.Held().value == 1


def of_numpy() -> Any:
    return numpy.linalg.lstsq(numpy.eye(2), numpy.eye(2), rcond=None)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("lstsq", of_numpy),
        ("lstsq", lambda: torch.linalg.lstsq(torch.eye(2), torch.eye(2))),
        ("pinv", lambda: torch.pinverse(torch.eye(2))),
        ("torch.linalg.solve", lambda: torch.linalg.solve(torch.eye(2), torch.eye(2))),
    ],
)
def test_a_bare_name_and_a_part_of_linear_algebra_are_stopped_too(
    name: str, call: Callable[[], Any]
):
    watch = Watch([name])
    try:
        with pytest.raises(Forbidden):
            call()
    finally:
        watch.end()
    call()
    assert watch.seen == {name}


def test_a_convolution_is_one_whatever_library_computes_it():
    picture, kernel = torch.ones(1, 1, 3, 3), torch.ones(1, 1, 2, 2)

    def call() -> Tensor:
        return torch.mkldnn_convolution(picture, kernel, None, [0, 0], [1, 1], [1, 1], 1)

    watch = Watch(["torch.convolution"])
    with pytest.raises(Forbidden):
        call()
    watch.end()
    assert watch.seen == {"torch.convolution"} and call().shape == (1, 1, 2, 2)


TALLY = "def tally(xs):\n    return sum(x for x in xs)\ndef each(xs):\n    for x in xs: yield x\n"


@pytest.fixture
def tally(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A library's function that goes through what it is handed, and one that waits in between."""
    library: Any = types.ModuleType("tallying")
    exec(TALLY, vars(library))
    monkeypatch.setitem(sys.modules, "tallying", library)
    return library


def test_a_call_that_is_under_way_in_another_thread_counts_as_used(tally: Any):
    asked, given = queue.Queue(), queue.Queue()

    def late() -> Iterator[int]:
        asked.put("begun")
        yield from given.get(timeout=20)

    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(lambda: tally.tally(late()))
        asked.get(timeout=20)
        watch = Watch(["tallying.tally"])
        given.put([1, 2])
        assert found.result() == 3  # nobody stops it
        watch.end()
    assert watch.seen == {"tallying.tally"}


def test_a_generator_that_waits_counts_as_used_while_there_is_one(tally: Any):
    waits = tally.each([1, 2])
    watch = Watch(["tallying.each"])
    watch.end()
    assert watch.seen == {"tallying.each"} and list(waits) == [1, 2]
    del waits
    watch = Watch(["tallying.each"])
    watch.end()
    assert not watch.seen


COPY = """
import sys, types
from autograder.bridge import watch
from autograder.bridge.watch import Forbidden, Watch
library = types.ModuleType("tallying")
exec(TALLY, vars(library))
sys.modules["tallying"] = library
watch.prepare(["tallying"])
watch.hear_of_starts()
code, plain = library.tally.__code__, lambda xs: 0
def gives(): plain.__code__ = code
tried = [
    lambda: type(plain)(code, {}),
    lambda: code.replace(co_name="own"),
    lambda: code.replace(co_filename="own"),
    gives,
]
for one in tried:
    try:
        one()
    except Forbidden:
        print("refused")
Watch(["tallying"]).end()
print(library.tally([1, 2]), plain([1]), type(plain)(plain.__code__, {})([1]))
"""


def test_nobody_copies_what_will_be_stopped():
    """In a process of its own: who hears what Python tells of hears it to the end."""
    text = f"TALLY = {TALLY!r}\n{COPY}"
    said = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert said.stdout.split("\n")[:-1] == [*["refused"] * 4, "3 0 0"]
