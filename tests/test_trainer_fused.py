"""Drop-ins: they compute what the student's parts compute, or are taken back and say why."""

import copy
import math
import re
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lab.assembled import load_module
from trainer.fused import layers, products
from trainer.fused.adoption import DropIn, adopt, subclass
from trainer.fused.loss import hidden_states, token_loss
from trainer.fused.process import prepare_process

MODULE = Path(__file__).parents[1] / "solutions" / "transformer.py"
PAD = 0
ALWAYS = {"dropout", "embedding", "layer norm", "feed-forward", "attention", "generator"}
ONEDNN = products.onednn_works(torch.float32)


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def module() -> types.ModuleType:
    return load_module(MODULE)


@pytest.fixture(
    params=[
        False,
        pytest.param(True, marks=pytest.mark.skipif(not ONEDNN, reason="torch without oneDNN")),
    ]
)
def onednn(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Both kinds of processor: torch's own matrix product, and oneDNN's called directly."""
    monkeypatch.setattr(products, "slow_matrix_product", lambda: request.param)
    return request.param


def make(module: types.ModuleType, norm_first: bool = True, dropout: float = 0.0, **sizes) -> Any:
    torch.manual_seed(3)
    sizes = {"d_model": 16, "num_layers": 2, "num_heads": 4, "d_ff": 24} | sizes
    table = module.sinusoidal_encoding(12, sizes["d_model"])
    model = module.Transformer(
        300, 300, table, dropout=dropout, pad_id=PAD, norm_first=norm_first, **sizes
    )
    module.initialise(model)
    return model


def changed(tmp_path: Path, *edits: tuple[str, str]) -> types.ModuleType:
    """The reference module with pieces of its text replaced."""
    text = MODULE.read_text(encoding="utf-8")
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new)
    path = tmp_path / "changed.py"
    path.write_text(text, encoding="utf-8")
    return load_module(path)


def draw(*lengths: int, seed: int = 0) -> Tensor:
    """Rows of random ids, padded on the right."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(1, 300, (len(lengths), max(lengths)), generator=generator)
    return ids.masked_fill(torch.arange(max(lengths)) >= torch.tensor(lengths)[:, None], PAD)


def loss_and_gradients(
    model: nn.Module, loss: Callable[[nn.Module], Tensor]
) -> tuple[float, dict[str, Tensor]]:
    model.zero_grad()
    value = loss(model)
    value.backward()
    gradients = {n: p.grad for n, p in model.named_parameters() if p.grad is not None}
    return float(value.detach()), gradients


def plain_loss(model: nn.Module, source: Tensor, target: Tensor, smoothing: float = 0.1) -> Tensor:
    logits = model(source, target[:, :-1]).flatten(0, 1)
    return F.cross_entropy(
        logits,
        target[:, 1:].flatten(),
        ignore_index=PAD,
        label_smoothing=smoothing,
        reduction="sum",
    )


def lab_loss(model: nn.Module, source: Tensor, target: Tensor, smoothing: float = 0.1) -> Tensor:
    hidden = hidden_states(model, source, target[:, :-1])
    return token_loss(model, hidden, target[:, 1:], PAD, smoothing)[0]


def assert_same_gradients(
    ours: dict[str, Tensor], theirs: dict[str, Tensor], within: float
) -> None:
    assert ours.keys() == theirs.keys()
    largest = max(float(gradient.abs().max()) for gradient in theirs.values())
    for name, gradient in ours.items():
        difference = float((gradient - theirs[name]).abs().max())
        assert difference <= within * largest, f"{name}: {difference} of {largest}"


# adoption


@pytest.mark.parametrize("norm_first", [True, False])
def test_every_part_of_the_reference_gets_its_drop_in(module, norm_first, onednn):
    found = adopt(module, make(module, norm_first))
    assert {drop.name for drop in found if drop.used} == ALWAYS | (
        {"linear maps"} if onednn else set()
    )
    assert all(drop.difference < 1e-5 for drop in found if drop.used)
    assert all(drop.reason for drop in found)


@pytest.mark.parametrize("norm_first", [True, False])
def test_loss_and_gradients_are_those_of_the_own_parts(module, norm_first, onednn):
    own = make(module, norm_first)
    ours = copy.deepcopy(own)
    adopt(module, ours)
    source, target = draw(7, 3, 5, 1), draw(6, 9, 2, 4, seed=1)
    expected, theirs = loss_and_gradients(own, lambda m: plain_loss(m, source, target))
    for loss in (plain_loss, lab_loss):
        value, gradients = loss_and_gradients(ours, lambda m, loss=loss: loss(m, source, target))
        assert value == pytest.approx(expected, rel=1e-5)
        assert_same_gradients(gradients, theirs, 1e-5)


def test_a_fully_padded_sentence_leaves_everything_finite_and_the_others_alone(module, onednn):
    model = make(module)
    adopt(module, model)
    source, target = draw(7, 5, 4), draw(6, 5, 3, seed=1)
    expected, without = loss_and_gradients(model, lambda m: lab_loss(m, source, target))
    empty = torch.zeros(2, 7, dtype=torch.int64), torch.zeros(2, 6, dtype=torch.int64)
    more = torch.cat([source, empty[0]]), torch.cat([target, empty[1]])
    value, gradients = loss_and_gradients(model, lambda m: lab_loss(m, *more))
    assert value == pytest.approx(expected, rel=1e-5)
    assert_same_gradients(gradients, without, 1e-5)
    no_source = torch.cat([source, empty[0][:1]]), torch.cat([target, target[:1]])
    value, gradients = loss_and_gradients(model, lambda m: lab_loss(m, *no_source))
    assert math.isfinite(value)
    assert all(gradient.isfinite().all() for gradient in gradients.values())


def test_adoption_leaves_names_ties_modes_gradients_and_generators_alone(module):
    model = make(module, dropout=0.3).eval()
    model.encoder.train()
    parameters = dict(model.named_parameters())
    names = list(model.state_dict())
    modes = [part.training for part in model.modules()]
    model.generator.weight.grad = torch.ones_like(model.generator.weight)
    state = torch.get_rng_state()
    adopt(module, model)
    assert torch.equal(torch.get_rng_state(), state)
    assert list(model.state_dict()) == names
    after = dict(model.named_parameters())
    assert after.keys() == parameters.keys()
    assert all(after[name] is parameters[name] for name in after)
    assert model.generator.weight is model.target_embedding.weight
    assert [part.training for part in model.modules()] == modes
    assert torch.equal(model.generator.weight.grad, torch.ones_like(model.generator.weight))
    assert model.encoder.layers[0].self_attention.w_q.weight.grad is None
    assert {part.p for part in model.modules() if isinstance(part, nn.Dropout)} == {0.3}
    assert isinstance(model.encoder.layers[0], module.EncoderLayer)


def test_a_copy_of_an_adopted_model_stands_on_its_own(module):
    model = make(module)
    adopt(module, model)
    other = copy.deepcopy(model)
    source, target = draw(5, 4), draw(6, 3, seed=1)
    expected = model(source, target).detach()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    assert torch.equal(other(source, target), expected)


def test_an_adopted_model_trains_the_same_way_twice(module):
    losses = []
    for _ in range(2):
        model = make(module, dropout=0.3)
        adopt(module, model)
        torch.manual_seed(11)
        losses.append(lab_loss(model, draw(5, 4), draw(6, 3, seed=1)).item())
    assert losses[0] == losses[1]


# what is not adopted


def used(module: types.ModuleType, model: nn.Module) -> dict[str, DropIn]:
    return {drop.name: drop for drop in adopt(module, model)}


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("attention", " / math.sqrt(q.shape[-1])", ""),
        ("attention", "dim=-1)  # (..., n, m), over the keys", "dim=-2)"),
        ("embedding", "self.weight[ids] * math.sqrt(self.d_model)", "self.weight[ids]"),
        ("layer norm", "centred.square().mean(-1", "centred.abs().mean(-1"),
        ("feed-forward", "torch.relu(self.inner(x))", "F.gelu(self.inner(x))"),
        ("generator", "return x @ self.weight.T", "return x @ self.weight.T * 0.5"),
    ],
)
def test_a_part_that_computes_something_else_stays_as_it_is(tmp_path, name, old, new):
    module = changed(tmp_path, (old, new))
    own = make(module)
    model = copy.deepcopy(own)
    found = used(module, model)
    assert not found[name].used
    assert re.search("differs from the module's own by ", found[name].reason)
    assert all(found[other].used for other in ALWAYS - {name})
    source, target = draw(7, 5, 4), draw(6, 5, 3, seed=1)
    assert (model(source, target) - own(source, target)).abs().max() < 1e-4


def test_attention_whose_weights_are_used_stays(tmp_path):
    old = "x = self.norm1(x + self.dropout(self.self_attention(x, x, x, mask)[0]))"
    new = (
        "out, weights = self.self_attention(x, x, x, mask)\n"
        "        self.seen = weights.mean()\n"
        "        x = self.norm1(x + self.dropout(out))"
    )
    module = changed(tmp_path, (old, new))
    found = used(module, make(module, norm_first=False))["attention"]
    assert not found.used
    assert "AttributeError" in found.reason


def test_a_part_with_dropout_inside_stays(tmp_path):
    module = changed(
        tmp_path,
        (
            "self.outer = nn.Linear(d_ff, d_model)",
            "self.outer = nn.Linear(d_ff, d_model)\n        self.drop = nn.Dropout(0.1)",
        ),
        ("hidden = torch.relu(self.inner(x))", "hidden = self.drop(torch.relu(self.inner(x)))"),
    )
    found = used(module, make(module))["feed-forward"]
    assert (found.used, found.reason) == (False, "the model has no such part")


def test_a_model_that_is_random_without_dropout_keeps_its_own_parts(tmp_path):
    module = changed(
        tmp_path, ("hidden = torch.relu", "hidden = torch.rand_like(x[..., :1]) + torch.relu")
    )
    found = adopt(module, make(module))
    assert not any(drop.used for drop in found)
    assert {drop.reason for drop in found} == {
        "the model gives something else each time, even without dropout"
    }


def test_a_model_that_is_not_answered_yet_keeps_its_own_parts(tmp_path):
    module = changed(tmp_path, ("return x @ self.weight.T", "raise NotImplementedError('soon')"))
    found = adopt(module, make(module))
    assert not any(drop.used for drop in found)
    assert found[0].reason == "the model cannot be tried (NotImplementedError: soon)"


def test_a_missing_class_is_no_crash(tmp_path):
    module = changed(
        tmp_path, ("class LayerNorm(", "class Norm("), ("LayerNorm(d_model)", "Norm(d_model)")
    )
    found = used(module, make(module))
    assert found["layer norm"].reason == "the model has no such part"
    assert found["attention"].used


# dropout


@pytest.fixture
def dropout() -> nn.Dropout:
    part = nn.Dropout(0.3)
    part.__class__ = subclass(layers.FusedDropout, nn.Dropout)
    return part


def test_dropout_drops_its_share_and_keeps_the_mean(dropout):
    torch.manual_seed(0)
    dropped = round(0.3 * 2**16) / 2**16
    out = dropout(torch.ones(1000, 1001))
    assert out.unique().tolist() == pytest.approx([0.0, 1 / (1 - dropped)])
    # five standard deviations of a share among a million coin flips
    assert float((out == 0).float().mean()) == pytest.approx(dropped, abs=5 * math.sqrt(0.21e-6))
    for one, other in ((out[:, 1:], out[:, :-1]), (out[1:], out[:-1]), (out[:, 4:], out[:, :-4])):
        together = float(((one == 0) & (other == 0)).float().mean())
        assert together == pytest.approx(dropped**2, abs=5 * math.sqrt(0.09e-6))


def test_dropout_gives_gradients_to_what_it_kept(dropout):
    x = torch.randn(5, 7, 3, requires_grad=True)
    out = dropout(x)
    out.sum().backward()
    assert x.grad is not None
    assert torch.allclose(out, x * x.grad)
    assert torch.equal(x.grad == 0, out == 0)


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_dropout_of_nothing_and_of_everything(dropout, p):
    dropout.p = p
    x = torch.randn(3, 4)
    assert torch.equal(dropout(x), x * (1 - p))


def test_dropout_rests_in_evaluation(dropout):
    x = torch.randn(3, 4)
    assert dropout.eval()(x) is x


# the loss


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("adopted", [True, False])
def test_token_loss_is_torchs_cross_entropy_of_the_real_tokens(module, adopted, smoothing, onednn):
    model = make(module)
    if adopted:
        adopt(module, model)
    generator = torch.Generator().manual_seed(5)
    hidden = 3 * torch.randn(20, 19, 16, generator=generator)  # three blocks of rows
    labels = draw(*range(1, 20), 19)
    reference = hidden.double().requires_grad_()
    weight = model.generator.weight.detach().double().requires_grad_()
    logits = (reference @ weight.T).flatten(0, 1)
    expected = F.cross_entropy(
        logits, labels.flatten(), ignore_index=PAD, label_smoothing=smoothing, reduction="sum"
    )
    expected.backward()
    hidden.requires_grad_()
    loss, count = token_loss(model, hidden, labels, PAD, smoothing)
    (2 * loss).backward()
    assert int(count) == int((labels != PAD).sum())
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    assert hidden.grad is not None and reference.grad is not None and weight.grad is not None
    assert torch.allclose(hidden.grad.double(), 2 * reference.grad, atol=1e-5)
    assert torch.allclose(model.generator.weight.grad.double(), 2 * weight.grad, atol=1e-4)
    with torch.no_grad():
        assert token_loss(model, hidden, labels, PAD, smoothing)[0].item() == loss.item()


def test_token_loss_holds_for_logits_of_any_size(module):
    model = make(module)
    adopt(module, model)
    hidden = torch.full((1, 2, 16), 1e4)
    labels = torch.tensor([[5, 6]])
    loss = token_loss(model, hidden, labels, PAD, 0.1)[0]
    logits = (hidden.double() @ model.generator.weight.double().T).flatten(0, 1)
    expected = F.cross_entropy(logits, labels.flatten(), label_smoothing=0.1, reduction="sum")
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)


def test_token_loss_of_padding_only_is_0_without_gradient(module):
    model = make(module)
    adopt(module, model)
    source = draw(4, 3)
    target = torch.zeros(2, 5, dtype=torch.int64)
    value, gradients = loss_and_gradients(model, lambda m: lab_loss(m, source, target))
    assert value == 0
    assert all(float(gradient.abs().max()) == 0 for gradient in gradients.values())


def test_hidden_states_put_the_generator_back_whatever_happens(module):
    model = make(module)
    generator = model.generator
    source, target = draw(5, 4), draw(6, 3, seed=1)
    hidden = hidden_states(model, source, target)
    assert torch.equal(generator(hidden), model(source, target))
    with pytest.raises(ValueError, match="max_len"):
        hidden_states(model, draw(13), target[:1])
    assert model.generator is generator


def test_a_model_without_a_generator_gives_logits():
    class Bare(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(300, 300)

        def forward(self, source: Tensor, target: Tensor) -> Tensor:
            return self.table(target)

    model = Bare()
    source, target = draw(5, 4), draw(6, 3, seed=1)
    assert lab_loss(model, source, target).item() == pytest.approx(
        plain_loss(model, source, target).item(), rel=1e-6
    )


@pytest.mark.skipif(not products.onednn_works(torch.bfloat16), reason="oneDNN has no bf16 here")
def test_under_autocast_only_factors_of_products_are_rounded(module):
    own = make(module)
    model = copy.deepcopy(own)
    adopt(module, model)
    source, target = draw(7, 5, 4), draw(6, 5, 3, seed=1)
    expected, theirs = loss_and_gradients(own, lambda m: plain_loss(m, source, target))
    with torch.autocast("cpu", torch.bfloat16):
        hidden = hidden_states(model, source, target[:, :-1])
        assert hidden.dtype == torch.float32
        value, gradients = loss_and_gradients(model, lambda m: lab_loss(m, source, target))
    assert value == pytest.approx(expected, rel=1e-2)  # bf16 has 8 bits
    assert_same_gradients(gradients, theirs, 5e-2)
    assert all(gradient.dtype == torch.float32 for gradient in gradients.values())


@pytest.mark.parametrize("half", [torch.bfloat16, torch.float16])
def test_autocast_works_where_onednn_cannot_take_the_type(module, half, monkeypatch):
    monkeypatch.setattr(products, "onednn_works", lambda factors: False)
    monkeypatch.setattr(products, "slow_matrix_product", lambda: False)
    model = make(module)
    adopt(module, model)
    source, target = draw(7, 5, 4), draw(6, 5, 3, seed=1)
    with torch.no_grad():
        expected = lab_loss(model, source, target).item()
        with torch.autocast("cpu", half):
            assert lab_loss(model, source, target).item() == pytest.approx(expected, rel=1e-2)


# the process


def test_prepare_process_says_what_it_set(monkeypatch):
    try:
        said = prepare_process(1)
    finally:
        torch.set_flush_denormal(False)
    assert said[0] == "1 thread"
    assert torch.get_num_threads() == 1


def test_prepare_process_leaves_other_c_libraries_alone(monkeypatch):
    monkeypatch.setattr("platform.libc_ver", lambda: ("", ""))
    try:
        assert not any("memory" in line for line in prepare_process(None))
    finally:
        torch.set_flush_denormal(False)
