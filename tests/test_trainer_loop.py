"""The loop of the trainer: resuming, stopping, what is logged, odd modules."""

import json
import math
import os
import re
import signal
import types
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from lab.assembled import Incomplete, load_module
from tests import small_training
from tests.small_training import CONFIG, MODULE, largest_difference, trained
from trainer.housekeeping import Stop
from trainer.loop import Trainer
from trainer.optimisers import Optimiser
from trainer.preparation import EncodedCorpus

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def module() -> types.ModuleType:
    return load_module(MODULE)


@pytest.fixture(scope="module")
def data() -> EncodedCorpus:
    return small_training.data()


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


def test_a_validation_may_translate_nothing(module, data, tmp_path):
    (tmp_path / "checkpoints").mkdir()
    config = CONFIG.with_fields({"steps": 2, "validate_every": 1, "bleu_sentences": 0})
    Trainer(module, data, config, run=tmp_path).train()
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    found = [line for line in lines if line["kind"] == "valid"]
    assert len(found) == 2 and all("valid_loss" in line and "bleu" not in line for line in found)


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
