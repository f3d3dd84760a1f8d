"""Run directories and checkpoints: safetensors plus JSON, written whole or not at all.

A run directory holds

    config.json      the recipe, the corpus, the module's name and digest
    module.py        a copy of the module that is trained
    tokenizer.json   the joint subwords, or {"source": ..., "target": ...}
    log.jsonl        what the training said, a line a record
    checkpoints/step-00001234/{model,optimizer,ema}.safetensors, state.json

A checkpoint is written under another name, flushed to the disk and then renamed, so that a kill
leaves a whole one or none. `state.json` holds the SHA-256 of every file beside it and of itself.
Nothing here is a pickle: reading a file runs no code.
"""

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from lab.files import digest, sync_directory, sync_file, write_text
from lab.weights import missing_bytes, own_memory, parse

FORMAT = 1
MODEL, OPTIMIZER, EMA, STATE = "model", "optimizer", "ema", "state.json"


@dataclass(frozen=True)
class Position:
    """How far a training is; all that decides how it goes on, apart from the tensors."""

    step: int = 0  # updates done
    epoch: int = 0  # of the next micro-batch
    index: int = 0  # of the next micro-batch within its epoch
    micro_batches: int = 0  # drawn so far
    tokens: int = 0  # real target tokens so far
    cpu_seconds: float = 0.0  # processor time of training alone, this process
    seconds: float = 0.0  # the same by the clock
    loss_sum: float = 0.0  # since the last line of the log
    loss_tokens: int = 0
    log_bytes: int = 0  # length of the log


@dataclass(frozen=True)
class Checkpoint:
    """Tensors by name, and the position they belong to; `ema` is empty where there is none."""

    position: Position
    model: Mapping[str, Tensor]
    optimizer: Mapping[str, Tensor]
    ema: Mapping[str, Tensor]


# Run directories ----------------------------------------------------------------------------------


def write_run(run: Path, config: Mapping[str, Any], module_source: str, tokenizers: str) -> None:
    """Make the run directory; `config.json` comes last, so that a run that has one is whole."""
    (run / "checkpoints").mkdir(parents=True, exist_ok=True)
    write_text(run / "module.py", module_source)
    write_text(run / "tokenizer.json", tokenizers)
    digests = {"module": digest(module_source), "tokenizer": digest(tokenizers)}
    content = {"format": FORMAT, **config, "sha256": digests}
    write_text(run / "config.json", json.dumps(content, indent=2) + "\n")


def read_run(run: Path) -> dict[str, Any]:
    """What `config.json` of a run says, once the module and the tokeniser are found unchanged.

    Raises:
        ValueError: if there is no run, or one of its files is damaged or was changed.
    """
    path = run / "config.json"
    if not path.is_file():
        raise ValueError(f"{run} holds no training run: it has no config.json")
    content = _read_json(path)
    if content.get("format") != FORMAT or not isinstance(content.get("sha256"), dict):
        raise ValueError(f"{path} is of no training run that this trainer knows (format {FORMAT})")
    for name, file in (("module", "module.py"), ("tokenizer", "tokenizer.json")):
        if not (run / file).is_file():
            raise ValueError(f"{run / file} is missing; it was written when the run began")
        if digest((run / file).read_text(encoding="utf-8")) != content["sha256"].get(name):
            raise ValueError(f"{run / file} was changed or damaged since the run began")
    return content


# Checkpoints --------------------------------------------------------------------------------------


def checkpoint_paths(run: Path) -> list[Path]:
    """The checkpoints of a run, oldest first."""
    return sorted((run / "checkpoints").glob("step-????????*"))


def save(run: Path, checkpoint: Checkpoint, keep: int, identity: Mapping[str, Any]) -> Path:
    """Write a checkpoint and remove all but the last `keep`; return where it is.

    Args:
        run: the run's directory.
        checkpoint: what to keep.
        keep: how many checkpoints stay.
        identity: what a checkpoint must share with the run that resumes from it.
    """
    home = run / "checkpoints"
    path = home / f"step-{checkpoint.position.step:08d}"
    sweep(run)
    if not path.exists():
        draft = home / f".{path.name}.tmp"
        draft.mkdir()
        _write_files(draft, checkpoint, identity)
        draft.rename(path)
        sync_directory(home)
    for old in checkpoint_paths(run)[:-keep]:
        remove(old)
    return path


def remove(path: Path) -> None:
    """Delete a checkpoint; a kill on the way leaves nothing that looks like one."""
    doomed = path.with_name(f".{path.name}.old")
    path.rename(doomed)
    shutil.rmtree(doomed)


def sweep(run: Path) -> None:
    """Delete what writing or removing left unfinished when it was killed."""
    for left in (run / "checkpoints").glob(".step-*"):
        shutil.rmtree(left)


def read(path: Path, identity: Mapping[str, Any] | None = None) -> Checkpoint:
    """Read a checkpoint, every file checked against its digest.

    Args:
        path: the checkpoint's directory.
        identity: what it must share with the run; None to take any.

    Raises:
        ValueError: if something is missing, cut, changed or foreign, by name.
    """
    state = _read_state(path)
    if identity is not None:
        _check_identity(path, state["identity"], identity)
    tensors = {name: _read_tensors(path, name, state) for name in state["files"]}
    if MODEL not in tensors or OPTIMIZER not in tensors:
        raise ValueError(f"{path / STATE} names no file of the model's or the optimiser's tensors")
    return Checkpoint(
        Position(**state["position"]), tensors[MODEL], tensors[OPTIMIZER], tensors.get(EMA, {})
    )


def read_weights(path: Path, *, ema: bool = False) -> dict[str, Tensor]:
    """Only the weights of a checkpoint, or their moving average where there is one, checked."""
    state = _read_state(path)
    return _read_tensors(path, EMA if ema and EMA in state["files"] else MODEL, state)


def read_position(path: Path) -> Position:
    """How far the training was that wrote this checkpoint."""
    return Position(**_read_state(path)["position"])


# Weights ------------------------------------------------------------------------------------------


def mean_of(states: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of floating-point tensors; others come from the last (Vaswani et al., 6.1)."""
    mean: dict[str, Tensor] = {}
    for name, newest in states[-1].items():
        mean[name] = newest.clone()
        if newest.is_floating_point():
            mean[name].copy_(torch.stack([state[name].double() for state in states]).mean(0))
    return mean


# Files --------------------------------------------------------------------------------------------


def _write_files(folder: Path, checkpoint: Checkpoint, identity: Mapping[str, Any]) -> None:
    files = {MODEL: checkpoint.model, OPTIMIZER: checkpoint.optimizer}
    if checkpoint.ema:
        files[EMA] = checkpoint.ema
    digests = {}
    for name, tensors in files.items():
        path = folder / f"{name}.safetensors"
        save_file(own_memory(tensors), path)
        sync_file(path)
        digests[name] = _file_digest(path)
    state = {
        "format": FORMAT,
        "position": asdict(checkpoint.position),
        "identity": dict(identity),
        "files": digests,
    }
    state["sha256"] = _state_digest(state)
    write_text(folder / STATE, json.dumps(state, indent=2) + "\n")


def _read_state(path: Path) -> dict[str, Any]:
    if not (path / STATE).is_file():
        raise ValueError(f"{path} is no checkpoint: it has no {STATE}")
    state = _read_json(path / STATE)
    if state.get("format") != FORMAT:
        raise ValueError(f"{path / STATE} is of no checkpoint that this trainer knows")
    if state.get("sha256") != _state_digest(state):
        raise ValueError(f"{path / STATE} is damaged: its SHA-256 differs; {_cure(path)}")
    return state


def _read_tensors(path: Path, name: str, state: Mapping[str, Any]) -> dict[str, Tensor]:
    file = path / f"{name}.safetensors"
    if not file.is_file():
        raise ValueError(f"{file} is missing; {_cure(path)}")
    content = file.read_bytes()
    if hashlib.sha256(content).hexdigest() != state["files"][name]:
        why = "its SHA-256 differs"
        cut = missing_bytes(content)
        if cut:
            why = f"it is cut, {cut:,} bytes are missing"
        raise ValueError(f"{file} is damaged: {why}; {_cure(path)}")
    return parse(file, content)


def _check_identity(path: Path, found: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    own, other = _flat(expected), _flat(found)
    for name, value in own.items():
        if other.get(name) != value:
            raise ValueError(
                f"{path} belongs to another run: its {name} is {other.get(name)}, not {value}"
            )


def _flat(content: Mapping[str, Any], owner: str = "") -> dict[str, Any]:
    """Nested names as one: {"recipe's model's d_model": 128}."""
    flat: dict[str, Any] = {}
    for name, value in content.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{owner}{name}'s ")
        else:
            flat[owner + name] = value
    return flat


def _cure(path: Path) -> str:
    return f"delete {path} to go on from the checkpoint before it"


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is damaged: it is no JSON ({error})") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path} is damaged: it holds no object")
    return content


def _state_digest(state: Mapping[str, Any]) -> str:
    rest = {name: value for name, value in state.items() if name != "sha256"}
    return digest(json.dumps(rest, sort_keys=True))


def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
