"""`python -m benchmarks ablations`: what each technique buys, by training with it and without it.

Every training and every score is a command of the trainer's, in a process of its own. The recipe
is trained once for each seed, and once more for each seed and each technique with that one thing
changed; minutes are of processor time, so a busy machine makes the command slow and not unfair.
All of it takes most of an hour: with `--runs` a command that was stopped goes on.
Nothing here imports torch until a line is recorded.
"""

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from tqdm import tqdm

from trainer.configs import find_config

MODEL = "solutions/transformer.py"
CONFIG = "cpu10"
MINUTES = 1.5
SEEDS = 3
RECIPE = "the recipe"  # the name of what all others are compared with
SCORE = "score.jsonl"
EVALUATE = ("--split", "valid", "--beam", "1")


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
    parser.add_argument(
        "--runs",
        type=Path,
        metavar="DIR",
        help="keep the trainings there, and take those that it has (else thrown away)",
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
    with _runs(options.runs) as folder:
        for seed, name in tqdm(trainings, desc="trainings", disable=None):
            out = folder / f"{name.replace(' ', '-')}-{seed}"
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


@contextmanager
def _runs(folder: Path | None) -> Iterator[Path]:
    """Where trainings lie: for good, or until the command ends."""
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        yield folder
        return
    with tempfile.TemporaryDirectory() as passing:
        yield Path(passing)


def _trained(
    options: argparse.Namespace, changes: Mapping[str, str], seed: int, out: Path
) -> float:
    """BLEU of one training; of the one that lies there, if it was asked for the same."""
    train = [options.model, "--config", options.config, "--data", options.data]
    train += ["--cpu-minutes", str(options.minutes), "--seed", str(seed), "--threads", "1"]
    train += ["--set", "validate_every=0"]
    if options.data_dir is not None:
        train += ["--data-dir", str(options.data_dir)]
    for field, value in changes.items():
        train += ["--set", f"{field}={value}"]
    recipe = find_config(options.config).to_json()  # a name may come to stand for another
    asked = json.dumps({"train": train, "recipe": recipe, "model": _digest(options.model)})
    scored = out / "asked.json"
    if not (scored.is_file() and scored.read_text(encoding="utf-8") == asked):
        shutil.rmtree(out, ignore_errors=True)  # begun and not ended, or something else
        _trainer("train", [*train, "--out", str(out)])
        _trainer("evaluate", [str(out), *EVALUATE, "--record", str(out / SCORE)])
        scored.write_text(asked, encoding="utf-8")
    return json.loads((out / SCORE).read_text(encoding="utf-8"))["scores"]["valid"]["bleu"]


def _digest(model: str) -> str | None:
    """Of the module's text; none where there is no file, which the trainer says better."""
    path = Path(model)
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None


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
