"""A run of `python -m trainer language` or `captions`: its folder, training, and opening it again.

The folder holds

    module.py        a copy of the module that is trained
    tokenizer.json   the text's subwords, where there are some
    log.jsonl        loss and rate of the updates, what was measured and written on the way
    weights/step-00000250.safetensors   the model on its way and at the end
    task.json        task, recipe, data, digests; written last

Only module.py is ever run.
"""

import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from lab.assembled import load_module
from lab.files import digest, write_text
from lab.kept import changed, refuse_taken
from lab.text import Tokenizer
from lab.weights import load_weights, read_tensors, weights_of, write_tensors
from trainer import records
from trainer.housekeeping import Log, Stop
from trainer.tasks import Captions, Language, Recipe, Task, vocabulary

FORMAT = 1
TASK = "task.json"


@dataclass(frozen=True)
class Progress:
    """How far a training is; what was measured, after the updates where something was."""

    step: int
    steps: int
    loss: float
    tokens_per_second: float
    measured: Mapping[str, float]
    sample: tuple[str, ...]


@dataclass(frozen=True)
class TaskRun:
    """A run that was opened.

    Attributes:
        task: what its model is for.
        model: with the last weights, in evaluation mode.
        step: after how many updates.
        notes: what somebody who uses the run should know, in sentences.
    """

    path: Path
    task: Task
    model: nn.Module
    step: int
    notes: tuple[str, ...]


def is_task_run(path: Path) -> bool:
    """Whether a folder holds such a run."""
    return (path / TASK).is_file()


def begin(path: Path, module: Path, task: Task, data: str) -> None:
    """Write the folder of a new run.

    Args:
        path: a folder that holds nothing yet.
        module: file of the module.
        task: what is trained.
        data: what a language model reads; "" for drawings.

    Raises:
        ValueError: if there is something already, or the folder cannot be made.
    """
    refuse_taken(path)
    texts = {"module.py": module.read_text(encoding="utf-8")}
    if isinstance(task, Language) and task.text.tokenizer is not None:
        texts["tokenizer.json"] = task.text.tokenizer.to_json()
    content = {
        "format": FORMAT,
        "task": task.name,
        "recipe": asdict(task.recipe),
        "data": data,
        "module": str(module.absolute()),
        "sha256": {name: digest(text) for name, text in texts.items()},
        "training": records.head(),
    }
    try:
        (path / "weights").mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            write_text(path / name, text)
        write_text(path / TASK, json.dumps(content, indent=2) + "\n")
    except OSError as error:
        raise ValueError(f"the run cannot be kept in {path} ({error})") from error


def train(
    path: Path,
    task: Task,
    model: nn.Module,
    device: torch.device,
    report: Callable[[Progress], None],
) -> Stop:
    """Train the model of a run that was begun; a signal ends it after the update it comes in.

    Args:
        path: the run's folder.
        task: what is trained.
        model: its model, with first weights.
        device: where to compute.
        report: is told of every update.

    Returns:
        Whether a signal stopped it. Weights are kept in any case.

    Raises:
        ValueError: if the loss is no number any more.
    """
    recipe, stop, log = task.recipe, Stop(), Log(path / "log.jsonl")
    model.to(device).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=recipe.peak_rate, betas=(0.9, 0.98))
    batches = task.batches()
    began = time.perf_counter()
    tokens = 0
    with stop.noticing():
        for step in range(1, recipe.steps + 1):
            batch = tuple(one.to(device) for one in next(batches))
            for group in optimizer.param_groups:
                group["lr"] = recipe.rate(step)
            loss = task.loss(model, *batch)
            optimizer.zero_grad()
            loss.backward()
            if recipe.clip:
                nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
            optimizer.step()
            tokens += batch[-1][:, 1:].numel()
            value = loss.item()
            if not math.isfinite(value):
                raise ValueError(f"the loss of step {step:,} is {value}; try a lower peak_rate")
            log.write("train", {"step": step, "loss": value, "rate": recipe.rate(step)})
            is_last = step == recipe.steps or stop.name is not None
            looks = is_last or step % recipe.look_every == 0
            measured, sample = _look(path, task, model, step, log) if looks else ({}, ())
            speed = tokens / (time.perf_counter() - began)
            report(Progress(step, recipe.steps, value, speed, measured, sample))
            if is_last:
                break
    return stop


@torch.no_grad()
def _look(
    path: Path, task: Task, model: nn.Module, step: int, log: Log
) -> tuple[dict[str, float], tuple[str, ...]]:
    """Measure, let it write, and keep its weights."""
    model.eval()
    measured, sample = task.measure(model), tuple(task.sample(model))
    model.train()
    log.write("valid", {"step": step, **measured, "sample": list(sample)})
    name = f"step-{step:08d}.safetensors"
    write_tensors(path / "weights" / name, weights_of(model), {"step": str(step)})
    return measured, sample


def open_task_run(path: Path) -> TaskRun:
    """Open a run with its last weights.

    Raises:
        ValueError: if there is none, or one of its files is missing, damaged or was changed.
    """
    if not is_task_run(path):
        raise ValueError(
            f"{path} holds no run of python -m trainer language or captions: it has no {TASK}"
        )
    content = _read(path)
    weights = sorted((path / "weights").glob("step-*.safetensors"))
    if not weights:
        raise ValueError(f"{path} has no weights yet")
    task = _task(path, content)
    model = task.build(load_module(path / "module.py"))
    tensors, words = read_tensors(weights[-1])
    load_weights(model, tensors, str(weights[-1]))
    notes = changed(Path(content["module"]), content["sha256"]["module.py"])
    return TaskRun(path, task, model.eval(), int(words["step"]), notes)


def _read(path: Path) -> dict[str, Any]:
    """What `task.json` says, once the other texts are found unchanged."""
    file = path / TASK
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        known = content["format"] == FORMAT and content["task"] in ("language", "captions")
        digests = dict(content["sha256"])
    except (ValueError, TypeError, LookupError) as error:
        raise ValueError(f"{file} is damaged ({type(error).__name__}: {error})") from error
    if not known or "module.py" not in digests:
        raise ValueError(f"{file} is of no run that this trainer knows (format {FORMAT})")
    for name, sha256 in digests.items():
        if name not in ("module.py", "tokenizer.json") or not (path / name).is_file():
            raise ValueError(f"{path / name} is missing; it was written when the run began")
        if digest((path / name).read_text(encoding="utf-8")) != sha256:
            raise ValueError(f"{path / name} was changed or damaged since the run began")
    return content


def _task(path: Path, content: Mapping[str, Any]) -> Task:
    recipe = Recipe().with_fields(content["recipe"])
    if content["task"] == "captions":
        return Captions(recipe)
    tokenizer = None
    if "tokenizer.json" in content["sha256"]:
        text = (path / "tokenizer.json").read_text(encoding="utf-8")
        tokenizer = Tokenizer.from_json(text)
    return Language(recipe, vocabulary(content["data"], tokenizer))
