"""The trainer: exact accumulation, schedules by closed form, resuming, stopping, odd modules."""

import json
import logging
import math
import os
import re
import shutil
import signal
import types
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lab.assembled import Incomplete, load_module
from lab.batching import EncodedPairs
from tests import small_training
from tests.small_training import CONFIG, MODULE
from trainer.configs import TrainConfig
from trainer.housekeeping import Stop
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


def trained(module: types.ModuleType, data: EncodedCorpus, config: TrainConfig, **more) -> Trainer:
    trainer = Trainer(module, data, config, **more)
    trainer.resume()
    trainer.train()
    return trainer


def largest_difference(one: Trainer, other: Trainer) -> float:
    first, second = one.weights(), other.weights()
    assert first.keys() == second.keys()
    return max((first[name] - second[name]).abs().max().item() for name in first)


# schedules


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


# one update


def test_accumulation_equals_the_large_batch_however_ragged(module, data):
    """The gradients of 2 and of 6 micro-batches are those of the mean over all their tokens."""
    for count in (2, 6):
        config = NO_DROPOUT.with_fields({"accumulate": count, "steps": 1, "clip": 0.0})
        trainer = Trainer(module, data, config)
        model = configured_model(module, data.tokenizer, config)
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
        model = configured_model(module, data.tokenizer, config)
        objective = Objective(model, config, data.tokenizer.pad_id)
        source, target = (torch.tensor([ids]) for ids in data.train[0])
        padded = [F.pad(ids, (0, 3), value=data.tokenizer.pad_id) for ids in (source, target)]
        torch.testing.assert_close(objective(source, target), objective(*padded))
        labels = target[:, 1:]
        log_p = model(source, target[:, :-1]).log_softmax(-1)
        smoothed = 0.9 * log_p.gather(-1, labels[..., None]).sum() + 0.1 * log_p.mean(-1).sum()
        torch.testing.assert_close(objective(source, target), -smoothed)


def test_the_first_loss_is_that_of_a_guess(module, data):
    """First weights that are too large show here, as a tied output without scaling does."""
    model = configured_model(module, data.tokenizer, NO_DROPOUT)
    config = NO_DROPOUT.with_fields({"label_smoothing": 0.0})
    source, target = (torch.tensor([ids]) for ids in data.train[0])
    loss = Objective(model, config, 0)(source, target).item() / (target.shape[1] - 1)
    assert abs(loss - math.log(len(data.tokenizer))) < 1


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


@pytest.mark.parametrize("iterations", [3, 5])
def test_muons_directions_are_nearly_orthogonal(iterations):
    generator = torch.Generator().manual_seed(0)
    matrices = torch.randn(2, 6, 10, generator=generator)
    directions = orthogonal(matrices, iterations)
    _, singular, _ = torch.linalg.svd(directions)
    spread = {3: (0.4, 2.0), 5: (0.85, 1.15)}[iterations]
    assert spread[0] < singular.min() and singular.max() < spread[1]
    u, _, v = torch.linalg.svd(matrices, full_matrices=False)
    cosine = F.cosine_similarity(directions.flatten(1), (u @ v).flatten(1))
    assert cosine.min() > {3: 0.9, 5: 0.99}[iterations]


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
    before = configured_model(module, data.tokenizer, config).state_dict()
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


# resuming


@pytest.mark.parametrize("optimiser", ["adamw", "muon"])
def test_resuming_gives_the_same_bits(module, data, tmp_path, optimiser):
    rate = 0.01 if optimiser == "muon" else None
    config = CONFIG.with_fields(
        {"optimiser": optimiser, "matrix_rate": rate, "ema": 0.9, "save_every": 2}
    )
    (tmp_path / "checkpoints").mkdir()
    whole = trained(module, data, config)

    class Enough(Exception):
        pass

    first = Trainer(module, data, config, run=tmp_path)
    real = first._save

    def save() -> Path | None:
        path = real()
        if first.position.step == 4:
            raise Enough
        return path

    first._save = save
    with pytest.raises(Enough):
        first.train()
    second = Trainer(module, data, config, run=tmp_path)
    assert second.resume()
    assert second.position.step == 4
    second.train()
    assert largest_difference(second, whole) == 0
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [6]


def test_a_checkpoint_of_another_recipe_is_refused(module, data, tmp_path):
    (tmp_path / "checkpoints").mkdir()
    one = {"recipe": CONFIG.with_fields({"steps": 2}).to_json()}
    trained(module, data, CONFIG.with_fields({"steps": 2}), run=tmp_path, identity=one)
    other = Trainer(module, data, CONFIG, run=tmp_path, identity={"recipe": CONFIG.to_json()})
    with pytest.raises(ValueError, match="belongs to another run: its recipe's steps is 2, not 6"):
        other.resume()


def test_a_log_that_was_cut_is_refused(module, data, tmp_path):
    (tmp_path / "checkpoints").mkdir()
    trained(module, data, CONFIG, run=tmp_path)
    (tmp_path / "log.jsonl").write_text("")
    with pytest.raises(ValueError, match=r"log\.jsonl is cut: it had [\d,]+ bytes"):
        Trainer(module, data, CONFIG, run=tmp_path).resume()


# stopping


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_after_the_update_and_saves(module, data, tmp_path, number):
    (tmp_path / "checkpoints").mkdir()
    before = signal.getsignal(number)
    trainer = Trainer(module, data, CONFIG, run=tmp_path)
    real = trainer._update

    def update() -> None:
        real()
        if trainer.position.step == 3:
            os.kill(os.getpid(), number)

    trainer._update = update
    outcome = trainer.train()
    assert outcome.stopped == number.name
    assert outcome.saved == tmp_path / "checkpoints" / "step-00000003"
    assert signal.getsignal(number) is before
    again = trained(module, data, CONFIG, run=tmp_path)
    assert largest_difference(again, trained(module, data, CONFIG)) == 0


def test_a_signal_does_not_wait_for_the_end_of_a_validation():
    stop, passed = Stop(), []
    with stop.noticing(), stop.leaving_at_once():
        os.kill(os.getpid(), signal.SIGINT)
        passed.append("validation")
    assert (stop.name, passed) == ("SIGINT", [])


def test_processor_time_ends_training_and_drives_the_cosine(module, data, monkeypatch):
    clock = iter(range(1_000_000))
    monkeypatch.setattr("time.process_time", lambda: next(clock) * 0.5)
    config = CONFIG.with_fields({"steps": None, "cpu_minutes": 0.1, "warmup": 1})
    shares = []
    monkeypatch.setattr(Optimiser, "step", lambda self, share: shares.append(share))
    trainer = Trainer(module, data, config)
    outcome = trainer.train()
    assert outcome.position.step == 12  # half a second each, of 6 seconds
    expected = [(1 + math.cos(math.pi * done / 12)) / 2 for done in range(12)]
    assert shares == pytest.approx(expected)


def test_validation_takes_no_training_time(module, data, monkeypatch):
    clock = iter(range(1_000_000))
    monkeypatch.setattr("time.process_time", lambda: next(clock) * 1.0)
    config = CONFIG.with_fields({"steps": 4, "validate_every": 1, "bleu_sentences": 2})
    real = Trainer._valid_loss

    def slow(self: Trainer) -> float:
        for _ in range(1000):
            next(clock)
        return real(self)

    monkeypatch.setattr(Trainer, "_valid_loss", slow)
    trainer = Trainer(module, data, config)
    assert trainer.train().position.cpu_seconds < 20


def test_a_training_that_breaks_down_says_so_and_keeps_its_checkpoints(module, data, tmp_path):
    (tmp_path / "checkpoints").mkdir()
    config = CONFIG.with_fields({"peak_rate": 1e30, "save_every": 1, "fused": False, "clip": 0.0})
    trainer = Trainer(module, data, config, run=tmp_path)
    with pytest.raises(ValueError, match=r"broke down: the gradients' norm is (nan|inf) at step"):
        trainer.train()
    for path in (tmp_path / "checkpoints").iterdir():
        kept = trainer_weights(path)
        assert all(bool(tensor.isfinite().all()) for tensor in kept.values())


def trainer_weights(path: Path) -> dict[str, Tensor]:
    from trainer.checkpoints import read_weights

    return read_weights(path)


# what is logged


def test_the_log_holds_losses_rates_and_validations(module, data, tmp_path):
    (tmp_path / "checkpoints").mkdir()
    config = CONFIG.with_fields({"steps": 20, "validate_every": 10, "bleu_sentences": 3})
    seen = []
    trainer = Trainer(module, data, config, run=tmp_path)
    trainer.train(seen.append)
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [(line["kind"], line["step"]) for line in lines] == [
        ("train", 10),
        ("valid", 10),
        ("train", 20),
        ("valid", 20),
    ]
    assert lines[2]["loss"] < lines[0]["loss"]
    assert lines[0]["rate"] == pytest.approx(4e-3 * (1 + math.cos(math.pi * 9 / 20)) / 2)
    assert lines[2]["tokens"] == trainer.position.tokens
    assert [progress.step for progress in seen] == [10, 10, 20, 20]
    assert seen[-1].valid_loss == lines[3]["valid_loss"]
    assert 0 <= lines[3]["bleu"] <= 100


# odd modules


STUB = 'raise NotImplementedError("not answered yet: replace this line")'


def with_stub(tmp_path: Path, *definitions: str) -> types.ModuleType:
    """The reference, but functions or methods that start with these lines are not answered."""
    text = MODULE.read_text(encoding="utf-8")
    for definition in definitions:
        head, rest = text.split(definition)
        indent = len(head.rsplit("\n", 1)[-1]) * " "
        signature, body = re.split(r":\n", rest, maxsplit=1)
        text = f"{head}{definition}{signature}:\n{indent}    {STUB}\n{body}"
    path = tmp_path / "unanswered.py"
    path.write_text(text, encoding="utf-8")
    return load_module(path)


def test_a_module_without_the_later_chapters_is_trained(tmp_path, data):
    missing = [
        "def initialise(",
        "def use_cache(",
        "def greedy_decode(",
        "def beam_search(",
        "def average_checkpoints(",
        "def label_smoothed_loss(",
        "def train_step(",
    ]
    unfinished = with_stub(tmp_path, *missing)
    config = CONFIG.with_fields({"validate_every": 3, "bleu_sentences": 3})
    trainer = trained(unfinished, data, config)
    assert trainer.position.step == 6


def test_an_answer_that_training_cannot_do_without_is_named(tmp_path, data):
    unfinished = with_stub(tmp_path, "def scaled_dot_product_attention(")
    with pytest.raises(Incomplete, match="scaled_dot_product_attention is not answered yet"):
        Trainer(unfinished, data, CONFIG)


def test_a_slow_odd_model_is_trained_as_it_is(data):
    """Loops, other names, an unused parameter: only the interface counts."""

    class Odd(nn.Module):
        def __init__(self, source_vocab, target_vocab, encoding, d_model, pad_id, **sizes) -> None:
            super().__init__()
            self.pad_id = pad_id
            self.words = nn.Embedding(target_vocab, d_model)
            self.spare = nn.Parameter(torch.ones(3))
            self.out = nn.Linear(d_model, target_vocab)

        def encode(self, source: Tensor) -> tuple[Tensor, Tensor]:
            keep = (source != self.pad_id).unsqueeze(1)
            return torch.stack([self.words(row) for row in source]), keep

        def decode(self, target: Tensor, memory: Tensor, keep: Tensor, offset: int = 0) -> Tensor:
            mean = (memory * keep.mT).sum(1, keepdim=True) / keep.sum(-1, keepdim=True)
            return self.out(self.words(target) + mean)

        def forward(self, source: Tensor, target: Tensor) -> Tensor:
            return self.decode(target, *self.encode(source))

    odd = types.ModuleType("odd")
    vars(odd).update(Transformer=Odd, sinusoidal_encoding=lambda n, d: torch.zeros(n, d))
    config = CONFIG.with_fields({"validate_every": 6, "bleu_sentences": 2, "steps": 30})
    seen = []
    trainer = Trainer(odd, data, config)
    trainer.train(seen.append)
    assert trainer.unused == ("spare",)
    assert trainer.weights()["spare"].tolist() == [1.0, 1.0, 1.0]
    assert not any(drop_in.used for drop_in in trainer.drop_ins)
    losses = [progress.loss for progress in seen if not math.isnan(progress.loss)]
    assert losses[-1] < losses[0]
