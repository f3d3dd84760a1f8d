"""One update of the trainer: schedules by closed form, exact accumulation, optimisers."""

import functools
import logging
import math
import shutil
import types
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lab.assembled import load_module
from lab.batching import EncodedPairs
from tests import small_training
from tests.small_training import CONFIG, MODULE, largest_difference, trained
from trainer.loop import MicroBatches, Trainer
from trainer.objective import Objective
from trainer.optimisers import Optimiser, orthogonal, rate_share
from trainer.preparation import EncodedCorpus, configured_model

NO_DROPOUT = CONFIG.with_fields({"model.dropout": 0.0, "fused": False})

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def module() -> types.ModuleType:
    return load_module(MODULE)


@pytest.fixture(scope="module")
def data() -> EncodedCorpus:
    return small_training.data()


@pytest.mark.parametrize("step", [1, 50, 400, 401, 10_000])
def test_inverse_square_root_is_vaswanis_equation_3(module, step):
    config = CONFIG.with_fields({"schedule": "inverse-sqrt", "warmup": 400})
    peak = module.learning_rate(400, 128, 400)
    assert peak * rate_share(config, step, 0.0) == pytest.approx(
        module.learning_rate(step, 128, 400), rel=1e-12
    )


def test_cosine_falls_by_the_share_of_the_budget_after_a_linear_rise():
    config = CONFIG.with_fields({"schedule": "cosine", "warmup": 10})
    assert rate_share(config, 5, 0.0) == pytest.approx(0.5)
    assert rate_share(config, 10, 0.0) == 1.0
    assert rate_share(config, 100, 0.5) == pytest.approx(0.5)
    assert rate_share(config, 100, 0.25) == pytest.approx((1 + math.cos(math.pi / 4)) / 2)
    assert rate_share(config, 1000, 1.0) == rate_share(config, 1000, 1.5) == 0.0
    by_share = config.with_fields({"warmup_share": 0.2})
    assert rate_share(by_share, 1, 0.0) == 0.0
    assert rate_share(by_share, 1, 0.1) == pytest.approx((1 + math.cos(0.1 * math.pi)) / 4)
    with pytest.raises(ValueError, match=r"step \(0\) must be at least 1"):
        rate_share(config, 0, 0.0)


def test_updates_are_made_at_the_schedules_rates(module, data, monkeypatch):
    seen = []
    monkeypatch.setattr(Optimiser, "step", lambda self, share: seen.append(share))
    trained(module, data, CONFIG)
    falls = [(1 + math.cos(math.pi * done / 6)) / 2 for done in range(6)]
    expected = [min((done + 1) / 3, 1) * fall for done, fall in enumerate(falls)]
    assert seen == pytest.approx(expected)


def test_accumulation_equals_the_large_batch_however_ragged(module, data):
    """The gradients of 2 and of 6 micro-batches are those of the mean over all their tokens."""
    for count in (2, 6):
        config = NO_DROPOUT.with_fields({"accumulate": count, "steps": 1, "clip": 0.0})
        trainer = Trainer(module, data, config)
        model = configured_model(module, data.tokenizers, config)
        trainer.train()
        indices = MicroBatches(data.train, config).take(count)
        sizes = {len(group) for group in indices}
        assert len(sizes) > 1, "the micro-batches should differ in size"
        total, tokens = torch.zeros(()), 0
        for source, target in (data.train[i] for group in indices for i in group):
            labels = torch.tensor(target[1:])
            logits = model(torch.tensor([source]), torch.tensor([target[:-1]]))[0]
            total = total + F.cross_entropy(logits, labels, label_smoothing=0.1, reduction="sum")
            tokens += len(labels)
        (total / tokens).backward()
        grads = dict(trainer.model.named_parameters())
        for name, parameter in model.named_parameters():
            torch.testing.assert_close(grads[name].grad, parameter.grad, rtol=1e-4, atol=1e-7)
        assert trainer.position.tokens == tokens


def test_the_loss_counts_real_tokens_only(module, data):
    """Padding more changes nothing: smoothing, too, is over real tokens."""
    for fused in (False, True):
        config = NO_DROPOUT.with_fields({"fused": fused})
        model = configured_model(module, data.tokenizers, config)
        objective = Objective(model, config, data.tokenizers.pad_id)
        source, target = (torch.tensor([ids]) for ids in data.train[0])
        padded = [F.pad(ids, (0, 3), value=data.tokenizers.pad_id) for ids in (source, target)]
        torch.testing.assert_close(objective(source, target), objective(*padded))
        labels = target[:, 1:]
        log_p = model(source, target[:, :-1]).log_softmax(-1)
        smoothed = 0.9 * log_p.gather(-1, labels[..., None]).sum() + 0.1 * log_p.mean(-1).sum()
        torch.testing.assert_close(objective(source, target), -smoothed)


def test_the_first_loss_is_that_of_a_guess(module, data):
    """First weights that are too large show here, as a tied output without scaling does."""
    model = configured_model(module, data.tokenizers, NO_DROPOUT)
    config = NO_DROPOUT.with_fields({"label_smoothing": 0.0})
    source, target = (torch.tensor([ids]) for ids in data.train[0])
    loss = Objective(model, config, 0)(source, target).item() / (target.shape[1] - 1)
    assert abs(loss - math.log(len(data.tokenizers.target))) < 1


@pytest.mark.parametrize("fused", [False, True])
def test_drop_ins_change_nothing_but_the_speed(module, data, fused):
    config = CONFIG.with_fields({"model.dropout": 0.0, "fused": fused, "steps": 3})
    plain = trained(module, data, NO_DROPOUT.with_fields({"steps": 3}))
    assert largest_difference(trained(module, data, config), plain) < 1e-5


def test_gradients_are_clipped(module, data):
    free = Trainer(module, data, NO_DROPOUT.with_fields({"clip": 0.0, "steps": 1}))
    free.train()
    limit = 0.01
    bound = Trainer(module, data, NO_DROPOUT.with_fields({"clip": limit, "steps": 1}))
    bound.train()

    def norm(trainer: Trainer) -> float:
        grads = [p.grad for p in trainer.model.parameters() if p.grad is not None]
        return math.sqrt(sum(float(grad.square().sum()) for grad in grads))

    assert norm(free) > 10 * limit
    assert norm(bound) == pytest.approx(limit, rel=1e-3)


def test_matrices_decay_and_vectors_do_not():
    parameters = {"w": nn.Parameter(torch.ones(2, 2)), "b": nn.Parameter(torch.ones(2))}
    config = CONFIG.with_fields({"weight_decay": 0.5, "peak_rate": 0.1})
    optimiser = Optimiser(config, parameters)
    for parameter in parameters.values():
        parameter.grad = torch.zeros_like(parameter)
    optimiser.step(1.0)
    assert parameters["w"].detach().unique().tolist() == pytest.approx([0.95])
    assert parameters["b"].detach().unique().tolist() == [1.0]


@pytest.mark.parametrize(("iterations", "low", "high"), [(3, 0.18, 1.88), (5, 0.86, 1.13)])
def test_muons_directions_are_nearly_orthogonal(iterations, low, high):
    """Small singular values come as near to 1 as large ones; the bounds are the polynomials'."""
    generator = torch.Generator().manual_seed(0)
    matrix = torch.randn(1, 40, 60, generator=generator)
    u, _, v = torch.linalg.svd(matrix, full_matrices=False)
    spectrum = torch.logspace(-2, 0, 40)
    assert (spectrum / spectrum.norm()).min() > 0.003
    direction = orthogonal(u * spectrum @ v, iterations)
    assert low < torch.linalg.svdvals(direction).min()
    assert torch.linalg.svdvals(direction).max() < high
    per_direction = (u.mT @ direction @ v.mT)[0]
    assert (per_direction - per_direction.diag().diag()).abs().max() < 1e-4


@pytest.mark.parametrize("iterations", [3, 5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_muons_directions_are_bounded_where_a_gradient_has_one_direction(dtype, iterations):
    """Its largest singular value is 1 after the division; rounding can put it above."""
    generator = torch.Generator().manual_seed(0)
    columns = torch.randn(50, 64, 1, generator=generator)
    rows = torch.randn(50, 1, 128, generator=generator)
    noise = 1e-3 * torch.randn(50, 64, 128, generator=generator)
    directions = orthogonal(columns @ rows + noise, iterations, dtype)
    assert torch.linalg.matrix_norm(directions, 2).max() < 1.2


def test_muons_directions_are_bounded_on_the_first_gradients_of_a_training(
    module, data, monkeypatch
):
    """With the iterations and the precision of the recipes for a GPU."""
    tops = []

    def watched(matrices: Tensor, iterations: int, dtype: torch.dtype) -> Tensor:
        assert (iterations, dtype) == (5, torch.bfloat16)
        directions = orthogonal(matrices, iterations, dtype)
        tops.append(torch.linalg.matrix_norm(directions, 2).max())
        return directions

    monkeypatch.setattr("trainer.optimisers.orthogonal", watched)
    on_gpus = {"optimiser": "muon", "matrix_rate": 0.01, "newton_schulz": 5, "precision": "bf16"}
    trained(module, data, CONFIG.with_fields({**on_gpus, "steps": 12}))
    assert len(tops) >= 12 and max(tops) < 1.2


def test_muon_takes_the_matrices_of_the_stacks_and_adamw_the_rest(module, data):
    config = NO_DROPOUT.with_fields({"optimiser": "muon", "matrix_rate": 0.01, "steps": 1})
    trainer = trained(module, data, config)
    by_muon = {name.rpartition("/")[0] for name in trainer._optimiser.state() if "momentum" in name}
    stacks = {
        name
        for name, parameter in trainer.model.named_parameters()
        if parameter.dim() == 2 and name.startswith(("encoder.", "decoder."))
    }
    assert by_muon == stacks and len(stacks) == 16
    before = configured_model(module, data.tokenizers, config).state_dict()
    name = "encoder.layers.0.feed_forward.inner.weight"  # (24, 16): taller than wide
    step = before[name] * (1 - 0.01 / 3 * 1e-4) - trainer.weights()[name]
    singular = torch.linalg.svdvals(step) / (0.01 / 3 * math.sqrt(24 / 16))
    # those that are small are of directions that a gradient of few tokens has not
    assert 0.5 < singular.mean() < singular.max() < 2.0


def test_the_average_of_the_weights_follows_its_closed_form(module, data):
    config = NO_DROPOUT.with_fields({"ema": 0.5, "steps": 1})
    once = trained(module, data, config)
    name = "encoder.norm.gain"
    first = once.weights()[name]
    assert torch.equal(first, dict(once.model.named_parameters())[name])
    config = config.with_fields({"steps": 2})
    twice = trained(module, data, config)
    now = dict(twice.model.named_parameters())[name].detach()
    assert torch.equal(trained(module, data, replace(config, ema=0.0)).weights()[name], now)
    watched = Trainer(module, data, config)
    seen = []
    average = watched._average

    def watch(step: int) -> None:
        average(step)
        seen.append(watched.weights()[name].clone())

    watched._average = watch
    watched.train()
    decay = min(0.5, 3 / 12)
    expected = decay * seen[0] + (1 - decay) * now
    torch.testing.assert_close(twice.weights()[name], expected, rtol=0, atol=1e-7)


def test_bf16_learns_much_the_same(module, data):
    plain = trained(module, data, NO_DROPOUT)
    half = trained(module, data, CONFIG.with_fields({"model.dropout": 0.0, "precision": "bf16"}))
    assert all(tensor.dtype == torch.float32 for tensor in half.weights().values())
    assert 0 < largest_difference(plain, half) < 0.05


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")  # torch's own
@pytest.mark.skipif(not shutil.which("c++"), reason="torch.compile needs a C++ compiler")
def test_compiled_code_computes_the_same_and_is_made_once_a_shape(module, monkeypatch):
    from torch._dynamo.utils import counters

    # all of torch.compile but the C++ compiler, which takes 30 seconds for 37 small kernels
    compile_ = functools.partial(torch.compile, backend="aot_eager")
    monkeypatch.setattr(torch, "compile", compile_)
    # torch's trace is long, and pytest would keep it
    monkeypatch.setattr(logging.getLogger("torch.__trace"), "disabled", True)
    plain = NO_DROPOUT.with_fields({"steps": 2, "multiple": 32, "model.max_len": 32})
    data = small_training.data(plain)
    data = replace(data, train=EncodedPairs.of(data.train[:20]))  # batches of 8, 8 and 4 pairs
    taken = MicroBatches(data.train, plain).take(4)
    assert len({len(indices) for indices in taken}) > 1, "batches of several sizes"
    counters.clear()
    compiled = trained(module, data, replace(plain, compile=True))
    assert counters["stats"]["unique_graphs"] == 1
    assert not counters["graph_break"]
    assert largest_difference(compiled, trained(module, data, plain)) < 1e-6
