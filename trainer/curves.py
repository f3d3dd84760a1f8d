"""Pictures of a training run: curves from its log, and attention maps of one sentence."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import torch
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor, nn

from lab.plots import COLORS, DASHES, STYLE, heatmap
from trainer.runs import Run, open_run

SMOOTHED = 40  # a point of the loss's curve is the mean of its last 40th, at most
LONGEST = 100  # tokens of a translation to draw


def read_log(path: Path) -> dict[str, list[dict[str, Any]]]:
    """The records of a log by kind; a last line that was cut by a kill is left out.

    Raises:
        ValueError: if there is no log, or nothing in it yet.
    """
    if not path.is_file():
        raise ValueError(f"there is no log {path}; is this a training run?")
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    records: dict[str, list[dict[str, Any]]] = {"train": [], "valid": []}  # and other kinds
    for number, line in enumerate(lines, start=1):
        if not line.endswith("\n"):
            continue
        try:
            record = json.loads(line)
            records.setdefault(record["kind"], []).append(record)
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise ValueError(f"{path}, line {number} is damaged") from error
    if not records["train"]:
        raise ValueError(f"{path} has no record of training yet")
    return records


def draw_curves(log: Path, out: Path) -> None:
    """Draw loss, learning rate and, where it was measured, BLEU over the steps.

    Args:
        log: a run's log.jsonl.
        out: the picture, .svg or .png.
    """
    records = read_log(log)
    train, valid = records["train"], records["valid"]
    scored = [record for record in valid if "bleu" in record]
    with _figure(2 + bool(scored)) as (figure, axes):
        _curve(axes[0], train, "loss", "training, smoothed labels", 0, mean=True)
        if valid:
            _curve(axes[0], valid, "valid_loss", "validation", 1)
        axes[0].set(title="Loss a token", ylabel="nats")
        axes[0].legend()
        _curve(axes[1], train, "rate", "", 0)
        axes[1].set(title="Learning rate")
        if scored:
            _curve(axes[2], scored, "bleu", "", 0)
            axes[2].set(title="BLEU of the validation set, greedy")
        axes[-1].set(xlabel="updates")
        figure.savefig(out)


def draw_attention(directory: Path, sentence: str, out: Path) -> None:
    """Translate a sentence greedily and draw each decoder layer's cross-attention.

    Args:
        directory: a training run.
        sentence: what to translate.
        out: the picture, .svg or .png.

    Raises:
        ValueError: if the sentence is empty or too long, or the module's attention keeps its
            weights to itself.
    """
    run = open_run(directory)
    model = run.model(run.weights())
    source = source_ids(run, sentence)
    target = written_greedily(run, model, source)
    draw_maps(run, source, target, cross_attention(model, source, target), out)


def draw_maps(
    run: Run, source: Sequence[int], target: Sequence[int], maps: Sequence[Tensor], out: Path
) -> None:
    """Draw the mean over heads of each layer's weights, as `cross_attention` gives them."""
    rows = run.target_tokenizer.tokens(target[1:])
    columns = run.source_tokenizer.tokens(source)
    with mpl.rc_context(STYLE):
        size = (1.6 + 0.42 * len(columns), 1.2 + 0.36 * len(rows))
        figure, axes = plt.subplots(
            len(maps),
            figsize=(max(size[0], 4.0), max(size[1], 2.5) * len(maps)),
            squeeze=False,
            layout="constrained",
        )
        for layer, (weights, ax) in enumerate(zip(maps, axes[:, 0], strict=True), start=1):
            # rows by what is written: the query at the token before it
            title = f"Layer {layer}, mean over heads"
            heatmap(weights.mean(0), rows, columns, title, ax, annotate=False)
        figure.savefig(out)
        plt.close(figure)


def source_ids(run: Run, sentence: str) -> list[int]:
    """Ids of a sentence that is neither empty nor too long for the model.

    Raises:
        ValueError: if it is.
    """
    ids = run.source_tokenizer.encode(sentence)
    if not 2 < len(ids) <= run.max_len:
        raise ValueError(
            f"the sentence has {len(ids) - 2} tokens; 1 to {run.max_len - 2} can be drawn"
        )
    return ids


@torch.no_grad()
def written_greedily(run: Run, model: nn.Module, source: Sequence[int]) -> list[int]:
    """Ids of the likeliest token after token, from <bos> to <eos>."""
    tokenizer = run.target_tokenizer
    target = [tokenizer.bos_id]
    memory, memory_mask = model.encode(torch.tensor([source]))  # pyright: ignore[reportCallIssue]
    while target[-1] != tokenizer.eos_id and len(target) < min(LONGEST, run.max_len):
        logits = model.decode(torch.tensor([target]), memory, memory_mask)  # pyright: ignore[reportCallIssue]
        target.append(int(logits[0, -1].argmax()))
    return target


@torch.no_grad()
def cross_attention(
    model: nn.Module, source: Sequence[int], target: Sequence[int]
) -> list[Float[Tensor, "H n M"]]:
    """For each decoder layer, where the query before each of n written tokens looks.

    Args:
        model: has encode and decode, as the Transformer of chapter 10.
        source: ids of M tokens.
        target: ids of <bos> and n more.

    Raises:
        ValueError: if the module's attention keeps its weights to itself.
    """
    with _weights_of(model) as maps:
        model(torch.tensor([source]), torch.tensor([target[:-1]]))
    if not maps:
        raise ValueError(
            "the module's cross_attention returns no weights; scaled_dot_product_attention of "
            "chapter 3 returns them beside the output"
        )
    return [weights[0] for weights in maps]


@contextmanager
def _weights_of(model: nn.Module) -> Iterator[list[Tensor]]:
    """What every cross-attention returns beside its output."""
    seen: list[Tensor] = []

    def keep(module: nn.Module, inputs: Any, output: Any) -> None:
        if isinstance(output, Sequence) and len(output) == 2 and isinstance(output[1], Tensor):
            seen.append(output[1])

    hooks = [
        part.register_forward_hook(keep)
        for name, part in model.named_modules()
        if name.endswith("cross_attention")
    ]
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()


@contextmanager
def _figure(rows: int) -> Iterator[tuple[Figure, Sequence[Axes]]]:
    with mpl.rc_context(STYLE):
        figure, axes = plt.subplots(
            rows, figsize=(5.4, 2.5 * rows), sharex=True, layout="constrained"
        )
        for ax in axes:
            ax.grid(True, axis="y")
            ax.set_axisbelow(True)
        yield figure, axes
        plt.close(figure)


def _curve(
    ax: Axes,
    records: Sequence[dict[str, Any]],
    key: str,
    label: str,
    number: int,
    mean: bool = False,
) -> None:
    values = [record[key] for record in records]
    if mean:
        width = 1 + len(values) // SMOOTHED
        values = [_mean(values[max(0, i + 1 - width) : i + 1]) for i in range(len(values))]
    marker = "o" if len(values) <= 12 else ""
    style = {"color": COLORS[number], "linestyle": DASHES[number], "marker": marker}
    ax.plot([record["step"] for record in records], values, label=label, **style)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
