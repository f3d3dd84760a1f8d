"""The benchmark: what it counts, what it refuses, and that every model does the same work."""

import argparse
import json
import math
import subprocess
import sys
import types
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch
import yaml
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from benchmarks import ablations, peer_process, peers, training, work
from benchmarks.__main__ import main
from benchmarks.peer_process import Worker
from benchmarks.peers import BOS, EOS, PAD, Job, Missing, TorchPeer
from lab.assembled import load_module
from trainer import datasets
from trainer.configs import CONFIGS, ModelConfig

MODULE = Path(__file__).parents[1] / "solutions" / "transformer.py"
SIZES = ModelConfig(d_model=16, num_layers=2, num_heads=2, d_ff=24, dropout=0.1, norm_first=True)
VOCAB = 60
SENTENCES = [[BOS, 7, 8, 9, EOS], [BOS, 11, EOS], [BOS, 12, 13, EOS]]
JOB = Job(
    kind="ours",
    work="train",
    path=str(MODULE),
    model=asdict(SIZES),
    vocab=VOCAB,
    device="cpu",
    precision="fp32",
    compile=False,
    threads=1,
    onednn=False,
    trainers=False,
    cache=True,
    batches=[[SENTENCES, SENTENCES]],
    steps=5,
)


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
    torch.set_flush_denormal(False)


# models at work


@pytest.mark.parametrize("kind", ["ours", "plain", "torch", "x-transformers", "marian"])
@pytest.mark.parametrize("norm_first", [True, False])
def test_every_model_trains_on_the_real_target_tokens(kind, norm_first, monkeypatch):
    monkeypatch.setattr(peer_process, "RATE", 1e-2)
    needed = {"x-transformers": "x_transformers", "marian": "transformers"}.get(kind)
    if needed:
        pytest.importorskip(needed)
    sizes = asdict(replace(SIZES, norm_first=norm_first))
    worker = Worker(replace(JOB, kind=kind, model=sizes))
    first = worker.round()
    assert first["tokens"] == 4 + 2 + 3
    assert abs(first["loss"] - math.log(VOCAB)) < 2.5
    assert [worker.round()["loss"] for _ in range(15)][-1] < first["loss"] - 1


def test_our_trainers_loss_is_the_plain_one():
    sizes = asdict(replace(SIZES, dropout=0.0))
    losses = [
        Worker(replace(JOB, model=sizes, trainers=trainers)).round()["loss"]
        for trainers in (False, True)
    ]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


@pytest.mark.parametrize(("kind", "cache"), [("ours", True), ("ours", False), ("plain", True)])
def test_ours_decodes_so_many_tokens(kind, cache):
    worker = Worker(replace(JOB, kind=kind, work="decode", cache=cache, batches=SENTENCES))
    assert worker.round()["tokens"] == 3 * 5
    assert worker._decode().shape == (3, 5)


@pytest.mark.parametrize("kind", ["x-transformers", "marian"])
def test_peers_decode_with_their_caches_what_their_logits_say(kind):
    pytest.importorskip({"x-transformers": "x_transformers", "marian": "transformers"}[kind])
    worker = Worker(replace(JOB, kind=kind, work="decode", batches=SENTENCES))
    assert worker.round()["tokens"] == 3 * 5


class WrongMask(TorchPeer):
    """Lets padding speak."""

    def logits(self, source: Tensor, target: Tensor) -> Tensor:
        """As if padding were a word."""
        return super().logits(source.masked_fill(source == PAD, EOS), target)


class SeesTheFuture(TorchPeer):
    """Reads the sentence backwards."""

    def logits(self, source: Tensor, target: Tensor) -> Tensor:
        """Logits of the target's last token, first."""
        return super().logits(source, target.flip(1))


class Loud(TorchPeer):
    """Too sure of itself."""

    def logits(self, source: Tensor, target: Tensor) -> Tensor:
        """Logits that are too large."""
        return 100 * super().logits(source, target)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (WrongMask, "torch.nn.Transformer: padding of the source changes its logits"),
        (SeesTheFuture, "torch.nn.Transformer: a later token changes its logits"),
        (Loud, r"torch.nn.Transformer: the first loss is \d+.\d\d, far from log\(V\)"),
    ],
)
def test_a_model_that_does_other_work_is_refused(wrong, sentence):
    with pytest.raises(ValueError, match=sentence):
        peer_process.check(wrong(SIZES, VOCAB), VOCAB, "cpu")


def test_a_cache_that_writes_something_else_is_refused():
    peer = TorchPeer(SIZES, VOCAB).eval()
    source = torch.tensor([[BOS, 7, 8, EOS]])
    with pytest.raises(ValueError, match="it writes what its logits do not say"):
        peer_process.check_written(peer, source, 6, torch.tensor([[9, 10, 11, 12, 13, 14]]))


def test_a_library_that_is_missing_is_named():
    with pytest.raises(Missing, match="no-such-thing is not installed; pip install no-such-thing"):
        peers._imported("no_such_thing", "no-such-thing")


# counting


def test_flops_are_those_that_torch_counts(module_of_reference):
    """On a batch without padding, where the output layer's real tokens are all of them."""
    sources, targets = [[BOS, 5, 6, 7, EOS]] * 3, [[BOS, 8, 9, EOS]] * 3
    model = module_of_reference.Transformer(
        VOCAB, VOCAB, module_of_reference.sinusoidal_encoding(9, 16), pad_id=PAD, **asdict_sizes()
    )
    counter = FlopCounterMode(display=False)
    with counter:
        model(torch.tensor(sources), torch.tensor(targets)[:, :-1]).sum().backward()
    assert work.flops(setup([(sources, targets)])) == counter.get_total_flops()


def test_the_listed_products_are_the_flops_without_attention():
    found = peer_process.products(SIZES, VOCAB, 15, 9, 9)
    total = sum(6 * rows * inner * outer * times for rows, inner, outer, times in found)
    sources, targets = [[BOS, 5, 6, 7, EOS]] * 3, [[BOS, 8, 9, EOS]] * 3
    attention = 6 * 2 * 16 * 2 * (15 * 5 + 9 * (3 + 5))
    assert total + attention == work.flops(setup([(sources, targets)]))


@pytest.fixture(scope="module")
def module_of_reference() -> types.ModuleType:
    return load_module(MODULE)


def asdict_sizes() -> dict[str, object]:
    return {name: value for name, value in asdict(SIZES).items() if name != "max_len"}


def setup(batches: list[tuple[list[list[int]], list[list[int]]]]) -> work.Setup:
    return work.Setup(SIZES, VOCAB, 64, "cpu", "fp32", False, 1, batches, SENTENCES, 5, "")


def test_random_sentences_have_multi30ks_lengths():
    pairs, _ = work._pairs(None, 1000)
    assert len(pairs) == 29_000
    assert sum(len(target) - 1 for _, target in pairs) / len(pairs) == pytest.approx(15.8, abs=0.1)
    assert sum(len(source) for source, _ in pairs) / len(pairs) == pytest.approx(15.4, abs=0.2)
    assert all(side[0] == BOS and side[-1] == EOS for pair in pairs[:99] for side in pair)
    assert max(map(max, (side for pair in pairs[:99] for side in pair))) < 1000


def test_batches_are_filled_up_to_multiples():
    sources, targets = work._sides([([1, 2, 3], [1, 2, 3]), ([1, 2], [1, 2])], 4)
    assert max(map(len, sources)) == 4
    assert max(map(len, targets)) - 1 == 4


# the command


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes and models for a test: ours and torch's, and one whose library is missing."""
    few = ("ours, all our trainer sets up", "ours, same settings", "ours without drop-ins")
    chosen = [entry for entry in training.TRAINING if entry.name in (*few, "torch.nn.Transformer")]
    monkeypatch.setattr(training, "TRAINING", tuple(chosen))
    monkeypatch.setattr(training, "DECODING", training.DECODING[:2])
    monkeypatch.setattr(work, "MAX_TOKENS", 128)
    monkeypatch.setattr(work, "VOCAB", 500)
    monkeypatch.setattr(work, "STEPS", 4)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def test_the_command_prints_tables_and_ends_with_the_ratio(small, tmp_path, capsys):
    record = tmp_path / "bench.jsonl"
    flags = ["--rounds", "2", "--batches", "1", "--device", "cpu", "--profile"]
    assert main(["training", "--model", str(MODULE), *flags, "--record", str(record)]) == 0
    printed = capsys.readouterr().out.splitlines()
    last = printed[-1].removeprefix("ratio: ")
    assert float(last) > 0
    for line in ("(a) training", "(b) training", "greedy decoding", "where a step's time goes"):
        assert any(line in row for row in printed), line
    trained, decoded = map(json.loads, record.read_text(encoding="utf-8").splitlines())
    assert (trained["what"], trained["work"], trained["device"]) == ("bench", "train", "cpu")
    assert {"date", "command", "hardware", "versions", "setting", "config"} <= trained.keys()
    assert len(trained["rows"]) == 4
    assert {"model", "tokens_per_second", "low", "high", "rounds", "note"} <= trained["rows"][
        0
    ].keys()
    assert trained["ratio"] == pytest.approx(float(last), abs=0.006)
    assert sum(part["share"] for part in trained["profile"]) == pytest.approx(1, abs=0.01)
    assert trained["floor_tokens_per_second"] > 0
    assert decoded["work"] == "decode"
    assert decoded["ratio"] is None  # no peer with a cache took part


def test_a_missing_library_is_named_and_the_others_go_on(small, monkeypatch, capsys):
    def ask(self: training.Process, task: dict[str, object]) -> dict[str, object]:
        if self.name == "torch.nn.Transformer":
            raise ValueError("torch.nn.Transformer: torch is not installed; pip install torch")
        if task["do"] == "start":
            return {"parameters": 1, "drop_ins": []}
        return {"seconds": 0.5, "tokens": 100, "loss": 3.0}

    monkeypatch.setattr(training.Process, "ask", ask)
    assert main(["training", "--model", str(MODULE), "--work", "train", "--device", "cpu"]) == 0
    printed = capsys.readouterr()
    assert "left out: torch.nn.Transformer: torch is not installed" in printed.err
    assert printed.out.splitlines()[-1] == "ratio: none, no other library took part"


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--rounds", "0"], "--rounds (0) must be at least 1"),
        (["--batches", "-1"], "--batches (-1) must be at least 1"),
        (["--threads", "0"], "--threads (0) must be at least 1"),
        (["--model", "no.py"], "there is no module no.py"),
        (["--config", "huge"], "config huge is none of"),
        (["--device", "tpu"], "device 'tpu' is not one of"),
        (["--data-dir", "nowhere"], "nowhere"),
        (["--record", "nowhere/bench.jsonl"], "there is no directory nowhere for --record"),
    ],
)
def test_an_option_that_cannot_be_used_gets_one_sentence(flags, sentence, capsys):
    assert main(["training", "--model", str(MODULE), "--device", "cpu", *flags]) == 2
    said = capsys.readouterr().err.strip()
    assert sentence in said
    assert len(said.splitlines()) == 1


def test_a_process_that_dies_is_named(tmp_path):
    with (tmp_path / "errors").open("w+", encoding="utf-8") as errors:
        process = training.Process("ours", errors)
        process.process.kill()
        process.process.wait()
        with pytest.raises(ValueError, match="ours: its process ended"):
            process.ask({"do": "round"})
        process.process.communicate()


def test_the_worker_answers_a_failure_with_its_name():
    task = {"do": "start", "job": asdict(replace(JOB, path="no.py"))}
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.peer_process"],
        input=json.dumps(task) + "\n",
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)["error"].startswith("Incomplete: there is no module no.py")


def test_the_flags_need_no_torch():
    code = "import sys, benchmarks.training; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_defaults_are_those_of_the_help():
    parser = argparse.ArgumentParser()
    training.add_arguments(parser)
    options = parser.parse_args([])
    assert (options.rounds, options.work, options.model) == (7, "all", "solutions/transformer.py")


# ablations

NAMES = ("the recipe", "without label smoothing")


@pytest.fixture
def small_corpus(tmp_path) -> list[str]:
    """Flags for a corpus and a recipe that take a second."""
    pairs = datasets.load("grammar", pairs=400).train[:40]
    for name, part in (("train", pairs[:32]), ("valid", pairs[32:])):
        for number, language in enumerate(("en", "fr")):
            lines = "".join(f"{pair[number]}\n" for pair in part)
            (tmp_path / f"{name}.{language}").write_text(lines, encoding="utf-8")
    recipe = CONFIGS["cpu10"].with_fields(
        {
            "model.d_model": 16,
            "model.d_ff": 16,
            "model.num_layers": 1,
            "model.max_len": 64,
            "vocab_size": 200,
            "max_tokens": 256,
        }
    )
    path = tmp_path / "small.json"
    path.write_text(json.dumps(recipe.to_json()), encoding="utf-8")
    return ["--data", str(tmp_path), "--config", str(path), "--minutes", "0.005"]


def test_an_ablation_trains_as_the_recipe_says_and_with_one_thing_changed(
    tmp_path, small_corpus, capsys
):
    record = tmp_path / "found.jsonl"
    flags = ["--only", "label smoothing", "--seeds", "1", "--record", str(record)]
    assert main(["ablations", *small_corpus, *flags]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith(name) for line, name in zip(lines[1:], NAMES, strict=True))
    (found,) = map(json.loads, record.read_text(encoding="utf-8").splitlines())
    assert found["setting"].endswith("without: label_smoothing = 0")
    assert found["without_each"] == [found["without"]] and found["with_each"] == [found["with"]]


def test_ablations_that_were_stopped_go_on_with_the_trainings_that_ended(
    tmp_path, small_corpus, monkeypatch
):
    asked, runs = [], tmp_path / "runs"

    def trainer(name, arguments):
        asked.append((name, *arguments))
        if name == "train" and len(asked) == 3:  # the second training
            raise KeyboardInterrupt
        if name == "evaluate":
            score = Path(arguments[-1])
            score.parent.mkdir(parents=True, exist_ok=True)
            found = {"scores": {"valid": {"bleu": float(len(asked))}}}
            score.write_text(json.dumps(found), encoding="utf-8")

    monkeypatch.setattr(ablations, "_trainer", trainer)
    model = tmp_path / "model.py"
    model.write_text("one = 1\n", encoding="utf-8")
    flags = [
        "--only",
        "label smoothing",
        "--seeds",
        "1",
        "--runs",
        str(runs),
        "--model",
        str(model),
    ]
    assert main(["ablations", *small_corpus, *flags]) == 130
    assert len(asked) == 3
    assert main(["ablations", *small_corpus, *flags]) == 0
    assert [name for name, *_ in asked[3:]] == ["train", "evaluate"]  # the second alone
    assert "label_smoothing=0" in asked[3]
    assert main(["ablations", *small_corpus, *flags]) == 0
    assert len(asked) == 5
    model.write_text("two = 2\n", encoding="utf-8")  # not what was trained
    assert main(["ablations", *small_corpus, *flags]) == 0
    assert len(asked) == 9
    recipe = Path(small_corpus[small_corpus.index("--config") + 1])
    recipe.write_text(recipe.read_text("utf-8").replace('"clip": 1.0', '"clip": 2.0'), "utf-8")
    assert main(["ablations", *small_corpus, *flags]) == 0
    assert len(asked) == 13


def test_an_ablation_knows_what_is_with_and_what_is_without(tmp_path, monkeypatch):
    def trained(options, changes, seed, out):
        return 10.0 * len(changes) + seed

    monkeypatch.setattr(ablations, "_trained", trained)
    record = tmp_path / "found.jsonl"
    chosen = ["--only", "label smoothing", "--only", "mean of weights", "--seeds", "2"]
    assert main(["ablations", *chosen, "--record", str(record)]) == 0
    taken, added = map(json.loads, record.read_text(encoding="utf-8").splitlines())
    assert (taken["with_each"], taken["without_each"]) == ([0, 1], [10, 11])
    assert (added["with_each"], added["without_each"]) == ([10, 11], [0, 1])
    assert (added["with"], added["without"]) == (10.5, 0.5)


def test_an_ablation_changes_fields_that_the_recipe_has():
    recipe = CONFIGS[ablations.CONFIG]
    for technique in ablations.TECHNIQUES:
        values = {name: yaml.safe_load(value) for name, value in technique.changes.items()}
        assert recipe.with_fields(values) != recipe


def test_an_ablation_that_cannot_be_made_is_one_sentence(tmp_path, small_corpus, capsys):
    for flags, said in (
        (["--only", "luck"], "--only 'luck' is none of Muon, not AdamW alone; pre-norm; "),
        (["--seeds", "0"], "--seeds (0) must be at least 1"),
        (["--record", str(tmp_path / "no" / "a.jsonl")], "there is no directory"),
        (["--model", "no.py"], "failed: python -m trainer train: there is no module no.py"),
    ):
        assert main(["ablations", *small_corpus, *flags]) == 2
        assert said in capsys.readouterr().err
