"""`python -m lab bench`: our model and other libraries' of the same sizes, on the same work.

Each model works in a process of its own (lab/peers.py); in every round each does the same work
once, one after the other, and the median of the rounds counts. Nothing here imports torch until
it is needed.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

if TYPE_CHECKING:
    from lab.configs import ModelConfig

MODEL = "solutions/transformer.py"
ROUNDS = 7
BATCHES = 4  # of a round
SENTENCES = 64  # to decode at once
VOCAB = 10_000
MAX_TOKENS = 4096  # of a batch, on either side
STEPS = 64  # tokens to decode for each
PEAKS = {"H100": 989e12, "H200": 989e12, "A100": 312e12}  # FLOP/s in bf16 without sparsity

# Tokens of 100 pairs of Multi30k, English to French (10,000 subwords): every 290th of the training
# set, sorted by the French length. Sources from <bos> to <eos>, targets without <bos>.
SOURCES = (
    "10 9 11 10 10 11 10 10 11 12 12 9 11 11 12 12 13 13 14 10 11 12 12 13 13 14 15 10 12 12 13 13 "
    "14 14 15 15 17 12 13 13 14 14 15 15 16 17 11 13 14 14 15 15 16 17 18 13 14 15 16 16 17 18 19 "
    "14 15 16 17 17 19 13 15 16 17 18 19 14 17 18 19 20 15 18 19 21 16 19 21 24 19 22 19 22 19 23 "
    "22 21 21 23 23 28"
)
TARGETS = (
    "7 8 8 9 9 9 10 10 10 10 10 11 11 11 11 11 11 11 11 12 12 12 12 12 12 12 12 13 13 13 13 13 13 "
    "13 13 13 13 14 14 14 14 14 14 14 14 14 15 15 15 15 15 15 15 15 15 16 16 16 16 16 16 16 16 17 "
    "17 17 17 17 17 18 18 18 18 18 18 19 19 19 19 19 20 20 20 20 21 21 21 21 22 22 23 23 24 24 25 "
    "26 27 28 30 34"
)
PAIRS = 29_000  # as many as Multi30k has


@dataclass(frozen=True)
class Entry:
    """A row of a table: a model in its settings."""

    name: str
    kind: str
    note: str = ""
    ours: bool = False  # decides the ratio
    trainers: bool = False
    cache: bool = True


TRAINING = (
    Entry("ours, all our trainer sets up", "ours", "(b)", ours=True, trainers=True),
    Entry("ours, same settings", "ours", "(a)", ours=True),
    Entry("ours without drop-ins", "plain", "the module's own code"),
    Entry("torch.nn.Transformer", "torch"),
    Entry("x-transformers", "x-transformers"),
    Entry("MarianMT", "marian", "always post-norm"),
)
DECODING = (
    Entry("ours, cached", "ours", ours=True),
    Entry("ours without a cache", "ours", cache=False),
    Entry("x-transformers", "x-transformers", "with its cache"),
    Entry("MarianMT", "marian", "with its cache"),
)


@dataclass
class Row:
    """What a model reached, in target tokens a second for each round."""

    entry: Entry
    rates: list[float] = field(default_factory=list)
    parameters: int = 0
    drop_ins: list[dict[str, Any]] = field(default_factory=list)
    loss: float = 0.0

    @property
    def rate(self) -> float:
        """The median."""
        return statistics.median(self.rates)

    def record(self) -> dict[str, Any]:
        """As a record keeps it."""
        return {
            "model": self.entry.name,
            "tokens_per_second": round(self.rate, 1),
            "low": round(min(self.rates), 1),
            "high": round(max(self.rates), 1),
            "rounds": len(self.rates),
            "parameters": self.parameters,
            "note": self.entry.note,
        }


# The command --------------------------------------------------------------------------------------


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `python -m lab bench`."""
    parser.add_argument(
        "--model", default=MODEL, metavar="FILE", help=f"the module with our model ({MODEL})"
    )
    parser.add_argument(
        "--work", default="all", choices=("train", "decode", "all"), help="what to time (all)"
    )
    parser.add_argument(
        "--rounds", type=int, default=ROUNDS, metavar="N", help=f"the median counts ({ROUNDS})"
    )
    parser.add_argument(
        "--batches", type=int, default=BATCHES, metavar="N", help=f"of a round ({BATCHES})"
    )
    parser.add_argument(
        "--config",
        metavar="NAME",
        help="sizes, vocabulary and tokens a batch of a training configuration (default: 4 + 4 "
        "layers, d_model 128, d_ff 256, 4 heads, 10,000 subwords, 4096 tokens)",
    )
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:1 (auto)")
    parser.add_argument(
        "--precision", choices=("fp32", "bf16"), help="fp32 on a CPU, bf16 on a GPU by default"
    )
    parser.add_argument(
        "--compile",
        action=argparse.BooleanOptionalAction,
        help="torch.compile every model (by default on a GPU only)",
    )
    parser.add_argument(
        "--threads", type=int, default=1, metavar="N", help="of every model on a CPU (1)"
    )
    parser.add_argument(
        "--onednn",
        action="store_true",
        help="let every model use oneDNN's matrix products, as ours does where MKL's are slow; a "
        "processor with bf16 units may round the factors",
    )
    parser.add_argument(
        "--data-dir", type=Path, metavar="DIR", help="a Multi30k folder; else lengths like its own"
    )
    parser.add_argument(
        "--profile", action="store_true", help="also say where the time of a step of ours goes"
    )
    parser.add_argument("--record", type=Path, metavar="FILE", help="append results as JSON lines")


def run(options: argparse.Namespace) -> int:
    """Measure, print the tables and the line `ratio: N.N`; the exit status.

    Raises:
        ValueError: if an option cannot be used, or our model does not do the work. Another
            library's model that is missing or does not do the work is left out, and that is said.
    """
    setup = _setup(options)
    print(setup.sentence)
    ratios = []
    for work in ("train", "decode") if options.work == "all" else (options.work,):
        ratios.append(_measure(work, options, setup))
    first = ratios[0]
    print("ratio: none, no other library took part" if first is None else f"ratio: {first:.2f}")
    return 0


@dataclass(frozen=True)
class Setup:
    """What all models share."""

    model: "ModelConfig"
    vocab: int
    max_tokens: int
    device: str
    precision: str
    compile: bool
    threads: int
    batches: list[tuple[list[list[int]], list[list[int]]]]
    sources: list[list[int]]
    sentence: str


def _setup(options: argparse.Namespace) -> Setup:
    for name in ("rounds", "batches", "threads"):
        if getattr(options, name) < 1:
            raise ValueError(f"--{name} ({getattr(options, name)}) must be at least 1")
    if options.record is not None and not options.record.parent.is_dir():
        raise ValueError(f"there is no directory {options.record.parent} for --record")
    from lab.batching import EncodedPairs, token_batches
    from lab.configs import ModelConfig, find_config
    from lab.distributed import find_device
    from lab.training import load_module

    load_module(Path(options.model))
    model = ModelConfig(
        d_model=128, num_layers=4, num_heads=4, d_ff=256, dropout=0.3, norm_first=True
    )
    vocab, max_tokens = VOCAB, MAX_TOKENS
    if options.config is not None:
        config = find_config(options.config)
        model, vocab, max_tokens = config.model, config.vocab_size, config.max_tokens
    device = str(find_device(options.device))
    on_gpu = device.startswith("cuda")
    precision = options.precision or ("bf16" if on_gpu else "fp32")
    compiled = on_gpu if options.compile is None else options.compile
    pairs, origin = _pairs(options.data_dir, vocab)
    multiple = 8 if compiled else 1
    encoded = EncodedPairs.of(pairs)
    planned = token_batches(encoded, max_tokens, seed=1, epoch=0, multiple=multiple)
    chosen = planned[: options.batches]
    batches = [_sides([pairs[index] for index in batch], multiple) for batch in chosen]
    place = "GPU" if on_gpu else f"{options.threads} thread{'s' if options.threads > 1 else ''}"
    time = "the processor's time" if device == "cpu" and options.threads == 1 else "the clock"
    sentence = (
        f"{model.num_layers} + {model.num_layers} layers, d_model {model.d_model}, d_ff "
        f"{model.d_ff}, {model.num_heads} heads, {'pre' if model.norm_first else 'post'}-norm, "
        f"vocabulary {vocab:,}, batches of {max_tokens} tokens ({origin}), "
        f"dropout {model.dropout}, {device}, {place}, {precision}"
        f"{', compiled' if compiled else ''}{', all by oneDNN' if options.onednn else ''}; "
        f"{options.rounds} rounds of {len(batches)} batches, "
        f"by {time}"
    )
    sources = [source for source, _ in pairs[:: max(len(pairs) // SENTENCES, 1)]][:SENTENCES]
    return Setup(
        model,
        vocab,
        max_tokens,
        device,
        precision,
        compiled,
        options.threads,
        batches,
        sources,
        sentence,
    )


def _sides(
    pairs: Sequence[tuple[list[int], list[int]]], multiple: int
) -> tuple[list[list[int]], list[list[int]]]:
    """Sources and targets of a batch, the longest filled up so that widths are multiples."""
    sources, targets = [list(source) for source, _ in pairs], [list(target) for _, target in pairs]
    for side, extra in ((sources, 0), (targets, 1)):
        longest = max(side, key=len)
        width = len(longest) - extra
        longest.extend([0] * (-width % multiple))
    return sources, targets


def _pairs(data_dir: Path | None, vocab: int) -> tuple[list[tuple[list[int], list[int]]], str]:
    """Encoded pairs, and where they come from: Multi30k's, or random ids in its lengths."""
    if data_dir is not None:
        from lab.batching import encode_pairs
        from lab.datasets import load
        from lab.text import Tokenizer

        corpus = load("multi30k", data_dir=data_dir)
        sentences = [sentence for pair in corpus.train for sentence in pair]
        tokenizer = Tokenizer.train_subwords(sentences, vocab)
        pairs = encode_pairs(corpus.train, tokenizer, tokenizer, 128)
        return pairs[:], "Multi30k"
    rng = random.Random(1)
    lengths = list(zip(map(int, SOURCES.split()), map(int, TARGETS.split()), strict=True))
    pairs = []
    for _ in range(PAIRS):
        source, target = rng.choice(lengths)
        # <bos> words <eos>; words are any ids but the four special ones
        words = [rng.randrange(4, vocab) for _ in range(source + target - 3)]
        pairs.append(([2, *words[: source - 2], 3], [2, *words[source - 2 :], 3]))
    return pairs, "random ids in Multi30k's lengths"


# Measuring ----------------------------------------------------------------------------------------


def _measure(work: str, options: argparse.Namespace, setup: Setup) -> float | None:
    """Time all models at this work, print their table; the ratio of ours to the fastest peer."""
    entries = TRAINING if work == "train" else DECODING
    rows, profiled = [], None
    with _processes(entries) as processes:
        for entry, process in zip(entries, processes, strict=True):
            try:
                answer = process.ask({"do": "start", "job": _job(entry, work, options, setup)})
            except ValueError as error:
                if entry.kind in ("ours", "plain"):
                    raise
                print(f"left out: {error}", file=sys.stderr)
                continue
            row = Row(entry, parameters=answer["parameters"], drop_ins=answer["drop_ins"])
            rows.append((row, process))
        with tqdm(total=options.rounds * len(rows), desc=work, file=sys.stderr) as bar:
            for _ in range(options.rounds):
                for row, process in rows:
                    done = process.ask({"do": "round"})
                    row.rates.append(done["tokens"] / done["seconds"])
                    row.loss = done["loss"]
                    bar.update()
        if options.profile and work == "train":
            profiled = rows[0][1].ask({"do": "profile"})
    found = [row for row, _ in rows]
    return _report(work, options, setup, found, profiled)


def _job(entry: Entry, work: str, options: argparse.Namespace, setup: Setup) -> dict[str, Any]:
    return {
        "kind": entry.kind,
        "work": work,
        "path": str(options.model),
        "model": asdict(setup.model),
        "vocab": setup.vocab,
        "device": setup.device,
        "precision": setup.precision,
        "compile": setup.compile and work == "train",
        "threads": setup.threads,
        "onednn": options.onednn,
        "trainers": entry.trainers,
        "cache": entry.cache,
        "batches": setup.batches if work == "train" else setup.sources,
        "steps": STEPS,
    }


class Process:
    """A process with one model; asked by lines of JSON."""

    def __init__(self, name: str, errors: Any) -> None:
        self.name, self.errors = name, errors
        self.process = subprocess.Popen(
            [sys.executable, "-m", "lab.peers"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**os.environ, "TOKENIZERS_PARALLELISM": "false"},
        )

    def ask(self, task: dict[str, Any]) -> dict[str, Any]:
        """Send a task and wait for the answer.

        Raises:
            ValueError: if the process fails.
        """
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            print(json.dumps(task), file=self.process.stdin, flush=True)
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self.errors.seek(0)
            said = self.errors.read().strip().splitlines()
            raise ValueError(f"{self.name}: its process ended ({said[-1] if said else 'silently'})")
        answer = json.loads(line)
        if "error" in answer:
            raise ValueError(f"{self.name}: {answer['error']}")
        return answer


@contextmanager
def _processes(entries: Sequence[Entry]) -> Iterator[list[Process]]:
    """A process for each entry, ended afterwards."""
    processes: list[Process] = []
    files = []
    try:
        for entry in entries:
            files.append(tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace"))  # noqa: SIM115
            processes.append(Process(entry.name, files[-1]))
        yield processes
    finally:
        for process in processes:
            process.process.kill()
            process.process.communicate()
        for file in files:
            file.close()


# Reporting ----------------------------------------------------------------------------------------


def _report(
    work: str,
    options: argparse.Namespace,
    setup: Setup,
    rows: list[Row],
    profiled: dict[str, Any] | None,
) -> float | None:
    peers = [row for row in rows if not row.entry.ours and row.entry.kind not in ("ours", "plain")]
    best = max(peers, key=lambda row: row.rate, default=None)
    by_name = {row.entry.name: row for row in rows}
    if work == "train":
        same, all_of_it = by_name["ours, same settings"], by_name["ours, all our trainer sets up"]
        plain = by_name["ours without drop-ins"]
        _table("(a) training, the same process settings for all", [same, plain, *peers], best)
        if not options.onednn and any(
            d["used"] and d["name"] == "linear maps" for d in same.drop_ins
        ):
            print(
                "torch's own matrix product does not use this processor's AVX-512; ours calls "
                "oneDNN's, which does (--onednn lets every model use it)"
            )
        _table("(b) training, ours as our trainer runs it", [all_of_it, *peers], best)
        mine = all_of_it
    else:
        title = f"greedy decoding, {SENTENCES} sentences, {STEPS} tokens each"
        _table(title, rows, best)
        mine = by_name["ours, cached"]
    unused = [drop for drop in mine.drop_ins if not drop["used"]]
    for drop in unused:
        print(f"not used: {drop['name']}: {drop['reason']}")
    ratio = mine.rate / best.rate if best else None
    result = _record(work, setup, rows, ratio)
    if work == "train":
        result |= _utilisation(setup, mine)
        if profiled is not None:
            result |= _profile(setup, profiled, mine)
    if options.record is not None:
        from lab.records import append

        append(options.record, result)
    return ratio


def _table(title: str, rows: Sequence[Row], best: Row | None) -> None:
    width = max(len(row.entry.name) for row in rows)
    print(f"\n{title}\n{'':<{width}}  tokens/s  (lowest-highest)    of the fastest peer")
    for row in sorted(rows, key=lambda row: -row.rate):
        span = f"({min(row.rates):,.0f}-{max(row.rates):,.0f})"
        share = f"{row.rate / best.rate:.2f}" if best else ""
        loss = f"  loss {row.loss:.2f}" if row.loss else ""
        print(f"{row.entry.name:<{width}}  {row.rate:>8,.0f}  {span:<18}  {share}{loss}")


def _record(work: str, setup: Setup, rows: Sequence[Row], ratio: float | None) -> dict[str, Any]:
    return {
        "what": "bench",
        "work": work,
        "device": setup.device.partition(":")[0],
        "precision": setup.precision,
        "setting": setup.sentence,
        "config": {
            "model": asdict(setup.model),
            "vocab_size": setup.vocab,
            "max_tokens": setup.max_tokens,
        },
        "rows": [row.record() for row in rows],
        "ratio": None if ratio is None else round(ratio, 3),
    }


def flops(setup: Setup) -> float:
    """Floating-point operations of training on a round's batches, by closed form.

    A product of matrices (r, a) and (a, b) takes 2 r a b; backwards takes twice as much again.
    With d = d_model, f = d_ff, L layers a side, S source and T target places a sentence, an
    encoder layer has 4 d^2 + 2 d f weights a source place; a decoder layer 6 d^2 + 2 d f a target
    place and 2 d^2 a source place (keys and values of the memory); the output layer d V a target
    place. Attention adds 2 S d a source place and 2 (T + S) d a target place and layer. Padding
    counts (it is computed), except at the output layer, which our trainer computes for real
    tokens only. Norms, softmax and the optimiser are left out.
    """
    model = setup.model
    d, f, layers = model.d_model, model.d_ff, model.num_layers
    total = 0
    for sources, targets in setup.batches:
        rows, s = len(sources), max(map(len, sources))
        t = max(map(len, targets)) - 1
        real = sum(len([i for i in target if i]) - 1 for target in targets)
        encoder = rows * s * layers * (4 * d * d + 2 * d * f + 2 * s * d)
        decoder = rows * t * layers * (6 * d * d + 2 * d * f + 2 * (t + s) * d)
        memory = rows * s * layers * 2 * d * d
        total += encoder + decoder + memory + real * d * setup.vocab
    return 3 * 2.0 * total


def _utilisation(setup: Setup, mine: Row) -> dict[str, Any]:
    """What share of the GPU's peak our training reaches, where its peak is known."""
    tokens = sum(
        len([i for i in target if i]) - 1 for _, targets in setup.batches for target in targets
    )
    speed = flops(setup) / tokens * mine.rate
    print(f"\nours computes at {speed / 1e12:,.3g} TFLOP/s", end="")
    if not setup.device.startswith("cuda"):
        print()
        return {"flops_per_second": speed}
    import torch

    name = torch.cuda.get_device_name(setup.device)
    peak = next((peak for part, peak in PEAKS.items() if part in name), None)
    if peak is None or setup.precision != "bf16":
        print(f"; the peak of {name} in {setup.precision} is not known here")
        return {"flops_per_second": speed}
    print(f", {speed / peak:.1%} of the peak of {name} in bf16")
    return {"flops_per_second": speed, "mfu": speed / peak}


def _profile(setup: Setup, profiled: dict[str, Any], mine: Row) -> dict[str, Any]:
    """Where our time goes, and how fast the bare matrix products of the work would be."""
    shares = sorted(profiled["shares"].items(), key=lambda item: -item[1])
    print("\nwhere a step's time goes")
    for part, share in shares:
        print(f"{part:<18} {share:6.1%}")
    tokens = sum(
        len([i for i in target if i]) - 1 for _, targets in setup.batches for target in targets
    )
    floor = tokens / profiled["floor"]
    print(
        f"the floor: its matrix products with weights alone would allow {floor:,.0f} tokens/s; "
        f"ours reaches {mine.rate / floor:.0%} of that"
    )
    return {
        "profile": [{"part": part, "share": round(share, 4)} for part, share in shares],
        "floor_tokens_per_second": round(floor, 1),
    }
