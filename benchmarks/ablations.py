"""`python -m benchmarks ablations`: what each technique buys, by training with it and without it.

Every training and every score is a command of the trainer's, in a process of its own. The recipe
is trained once for each seed, and once more for each seed and each technique with that one thing
changed; minutes are of processor time, so a busy machine makes the command slow and not unfair.
Nothing here imports torch until a line is recorded.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from tqdm import tqdm

MODEL = "solutions/transformer.py"
CONFIG = "cpu10"
MINUTES = 1.5
SEEDS = 3
RECIPE = "the recipe"  # the name of what all others are compared with


@dataclass(frozen=True)
class Technique:
    """One point in which two trainings differ.

    Attributes:
        name: as the book's page lists it.
        changes: fields of the recipe and their values, as `--set` takes them.
        added: whether the changes add the technique; else they take it from the recipe.
    """

    name: str
    changes: Mapping[str, str]
    added: bool = False


TECHNIQUES = (
    Technique(
        # each optimiser with the rate and the size of batch that suit it
        "Muon, not AdamW alone",
        {
            "optimiser": "adamw",
            "matrix_rate": "null",
            "peak_rate": "0.002",
            "max_tokens": "1024",
        },
    ),
    Technique("pre-norm", {"model.norm_first": "false"}),
    Technique("cosine schedule", {"schedule": "inverse-sqrt"}),
    Technique("label smoothing", {"label_smoothing": "0"}),
    Technique(
        # one for both languages at the size that suits it
        "a vocabulary for each language",
        {"target_vocab_size": "0", "vocab_size": "4000"},
    ),
    Technique("first embeddings from counts", {"first_embeddings": "drawn"}),
    Technique("strong weight decay", {"weight_decay": "0.0001"}),
    Technique("mean of weights", {"ema": "0.98"}, added=True),
)


# The command --------------------------------------------------------------------------------------


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `python -m benchmarks ablations`."""
    names = ", ".join(technique.name for technique in TECHNIQUES)
    parser.add_argument(
        "--model", default=MODEL, metavar="FILE", help=f"the module with the model ({MODEL})"
    )
    parser.add_argument(
        "--only", action="append", metavar="NAME", help=f"may be given again; one of: {names}"
    )
    parser.add_argument(
        "--config", default=CONFIG, metavar="NAME", help=f"the recipe that is changed ({CONFIG})"
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=MINUTES,
        metavar="M",
        help=f"of processor time, for each training ({MINUTES})",
    )
    parser.add_argument(
        "--seeds", type=int, default=SEEDS, metavar="N", help=f"trainings of each kind ({SEEDS})"
    )
    parser.add_argument("--data", default="multi30k", help="as the trainer takes it (multi30k)")
    parser.add_argument(
        "--data-dir", type=Path, metavar="DIR", help="where multi30k's files lie (else downloaded)"
    )
    parser.add_argument("--record", type=Path, metavar="FILE", help="append results as JSON lines")


def run(options: argparse.Namespace) -> int:
    """Train, score, print a table and record a line for each technique; the exit status.

    Raises:
        ValueError: if an option cannot be used, or a training failed.
    """
    techniques = _chosen(options.only)
    if options.seeds < 1:
        raise ValueError(f"--seeds ({options.seeds}) must be at least 1")
    if options.record is not None and not options.record.parent.is_dir():
        raise ValueError(f"there is no directory {options.record.parent} for {options.record.name}")
    kinds = {RECIPE: {}} | {technique.name: technique.changes for technique in techniques}
    scores: dict[str, list[float]] = {name: [] for name in kinds}
    trainings = [(seed, name) for seed in range(options.seeds) for name in kinds]
    with tempfile.TemporaryDirectory() as folder:
        for seed, name in tqdm(trainings, desc="trainings", disable=None):
            out = Path(folder) / f"{len(scores[name])}-{list(kinds).index(name)}"
            scores[name].append(_trained(options, kinds[name], seed, out))
    print(f"BLEU on the validation set, greedy: mean of {options.seeds} (lowest to highest)")
    print(_line(RECIPE, scores[RECIPE]))
    for technique in techniques:
        sign = "with" if technique.added else "without"
        print(_line(f"{sign} {technique.name}", scores[technique.name]))
        if options.record is not None:
            _record(options, technique, scores[RECIPE], scores[technique.name])
    return 0


# Helpers ------------------------------------------------------------------------------------------


def _chosen(names: Sequence[str] | None) -> list[Technique]:
    known = {technique.name: technique for technique in TECHNIQUES}
    for name in names or ():
        if name not in known:
            raise ValueError(f"--only {name!r} is none of {'; '.join(known)}")
    return [known[name] for name in names or known]


def _trained(
    options: argparse.Namespace, changes: Mapping[str, str], seed: int, out: Path
) -> float:
    """BLEU of one training."""
    train = [options.model, "--config", options.config, "--data", options.data, "--out", str(out)]
    train += ["--cpu-minutes", str(options.minutes), "--seed", str(seed), "--threads", "1"]
    train += ["--set", "validate_every=0"]
    if options.data_dir is not None:
        train += ["--data-dir", str(options.data_dir)]
    for field, value in changes.items():
        train += ["--set", f"{field}={value}"]
    _trainer("train", train)
    record = out / "score.jsonl"
    _trainer("evaluate", [str(out), "--split", "valid", "--beam", "1", "--record", str(record)])
    return json.loads(record.read_text(encoding="utf-8"))["scores"]["valid"]["bleu"]


def _trainer(name: str, arguments: Sequence[str]) -> None:
    command = [sys.executable, "-m", "trainer", name, *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        last = done.stderr.strip().rpartition("\n")[2]
        raise ValueError(f"python -m trainer {name} {' '.join(arguments)} failed: {last}")


def _line(name: str, scores: Sequence[float]) -> str:
    return f"{name:<40} {mean(scores):.2f} ({min(scores):.2f} to {max(scores):.2f})"


def _record(
    options: argparse.Namespace,
    technique: Technique,
    recipe: Sequence[float],
    changed: Sequence[float],
) -> None:
    from trainer import records

    without, with_it = (recipe, changed) if technique.added else (changed, recipe)
    changes = ", ".join(f"{field} = {value}" for field, value in technique.changes.items())
    records.append(
        options.record,
        {
            "what": "ablation",
            "technique": technique.name,
            "measure": f"BLEU on the validation set after {options.minutes:g} minutes, greedy",
            "without": round(mean(without), 2),
            "with": round(mean(with_it), 2),
            "without_each": [round(score, 2) for score in without],
            "with_each": [round(score, 2) for score in with_it],
            "unit": "BLEU",
            "setting": f"recipe {options.config} for {options.minutes:g} minutes of a core; "
            f"{'with' if technique.added else 'without'}: {changes}",
            "note": "",
        },
    )
