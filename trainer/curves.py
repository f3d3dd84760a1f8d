"""Pictures of a training run: curves from its log, and attention maps of one sentence."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor, nn

from lab.plots import COLORS, DASHES, STYLE, heatmap
from trainer.runs import Run, decoder, decoding_weights, open_run

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
    records: dict[str, list[dict[str, Any]]] = {"train": [], "valid": []}
    for number, line in enumerate(lines, start=1):
        if not line.endswith("\n"):
            continue
        try:
            record = json.loads(line)
            records[record["kind"]].append(record)
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
    source, target, maps = attention(run, sentence)
    rows, columns = run.tokenizer.tokens(target[1:]), run.tokenizer.tokens(source)
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


@torch.no_grad()
def attention(run: Run, sentence: str) -> tuple[list[int], list[int], list[Tensor]]:
    """Source ids, the target's from <bos> to <eos>, and weights (H, target - 1, source) a layer."""
    device = torch.device("cpu")
    tokenizer, max_len = run.tokenizer, run.config.model.max_len
    source = tokenizer.encode(sentence)
    if not 2 < len(source) <= max_len:
        raise ValueError(
            f"the sentence has {len(source) - 2} tokens; 1 to {max_len - 2} can be drawn"
        )
    model = decoder(run, decoding_weights(run), device)
    ids, target = torch.tensor([source]), [tokenizer.bos_id]
    memory, memory_mask = model.encode(ids)  # pyright: ignore[reportCallIssue]
    while target[-1] != tokenizer.eos_id and len(target) < min(LONGEST, max_len):
        logits = model.decode(torch.tensor([target]), memory, memory_mask)  # pyright: ignore[reportCallIssue]
        target.append(int(logits[0, -1].argmax()))
    with _weights_of(model) as maps:
        model(ids, torch.tensor([target[:-1]]))
    if not maps:
        raise ValueError(
            "the module's cross_attention returns no weights; scaled_dot_product_attention of "
            "chapter 3 returns them beside the output"
        )
    return source, target, [weights[0] for weights in maps]


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
