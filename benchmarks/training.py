"""`python -m benchmarks training`: our model and other libraries' of the same sizes, on one work.

Each model works in a process of its own (benchmarks/peer_process.py); in every round each does the
same work once, one after the other, and the median of the rounds counts. Nothing here imports
torch until it is needed.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tqdm import tqdm

from benchmarks.tables import Entry, Row, report
from benchmarks.work import Setup, set_up

MODEL = "solutions/transformer.py"
ROUNDS = 7
BATCHES = 4  # of a round

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


# The command --------------------------------------------------------------------------------------


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `python -m benchmarks training`."""
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
    setup = set_up(options)
    print(setup.sentence)
    ratios = []
    for work in ("train", "decode") if options.work == "all" else (options.work,):
        ratios.append(_measure(work, options, setup))
    first = ratios[0]
    print("ratio: none, no other library took part" if first is None else f"ratio: {first:.2f}")
    return 0


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
    return report(work, options, setup, found, profiled)


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
        "steps": setup.steps,
    }


class Process:
    """A process with one model; asked by lines of JSON."""

    def __init__(self, name: str, errors: Any) -> None:
        self.name, self.errors = name, errors
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.peer_process"],
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
