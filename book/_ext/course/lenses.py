"""What the translator's smaller figures show before they are loaded: one picture each.

The numbers are the model's own, computed with `lab.page.plain` when the book is built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import torch
from torch import Tensor

from lab.page import numbers, plain

NEAREST = 5  # rows below a word's own
TINTS = 5  # steps of a strip's colour
EOS = "<eos>"
STAGES = (
    *(("rows", "what comes in"), ("made", "attention adds"), ("sum", "the sum")),
    ("out", "after the norm"),
)
THEN = (("made", "network adds"), ("sum", "the sum"), ("out", "after the norm"))
WIDTH = 360  # of every picture


@dataclass(frozen=True)
class Told:
    """What stands beside a picture, and the picture."""

    title: str
    note: str
    picture: str


class Translator:
    """The book's model, with its words."""

    def __init__(self, content: Mapping[str, Any]):
        """Take the file's content."""
        self.tensors, self.positions = numbers.unpacked(content)
        self.sizes = plain.Sizes(**content["sizes"])
        self.source, self.target = content["source"], content["target"]
        self.bos, self.eos = content["specials"]["bos"], content["specials"]["eos"]

    def ids(self, sentence: str) -> Tensor:
        """Ids (1, M) of an English sentence with its ends."""
        inner = [self.source.index(word) for word in sentence.split()]
        return torch.tensor([[self.bos, *inner, self.eos]])

    def translate(
        self, sentence: str, beginning: Sequence[str] = (), *, positions: bool = True
    ) -> list[tuple[str, Tensor]]:
        """The words that follow a French beginning, each with the shares of all words."""
        table = self.positions if positions else torch.zeros_like(self.positions)
        ids = self.ids(sentence)
        written = [self.bos, *map(self.target.index, beginning)]
        words: list[tuple[str, Tensor]] = []
        while len(written) < len(table) and written[-1] != self.eos:
            given = ids, torch.tensor([written])
            shares = plain.logits(self.tensors, self.sizes, table, *given)[0, -1].softmax(-1)
            written.append(int(shares.argmax()))
            words.append((self.target[written[-1]], shares))
        return words

    def stages(self, sentence: str, hidden: int | None = None) -> list[dict[str, Tensor]]:
        """What stands before and after each sub-layer of the encoder, one place hidden."""
        ids = self.ids(sentence)
        seen = torch.ones_like(ids, dtype=torch.bool)
        if hidden is not None:
            seen[0, hidden] = False
        return plain.encoder_stages(self.tensors, self.sizes, self.positions, ids, seen)

    def influence(self, sentence: str) -> Tensor:
        """How far each token's last vector moves, in lengths, when another is hidden: (M, M)."""
        whole = self.stages(sentence)[-1]["out"][0]
        without = [self.stages(sentence, k)[-1]["out"][0] for k in range(len(whole))]
        moved = torch.stack([(whole - rows).norm(dim=-1) for rows in without], 1)
        return moved / whole.norm(dim=-1, keepdim=True)


def word(model: Translator, asked: str, _: str) -> Told:
    """A word's row of the table, and the rows that are most like it."""
    table, row = model.tensors["source_embedding.weight"], model.source.index(asked)
    likeness = torch.cosine_similarity(table, table[row : row + 1])
    order = [int(i) for i in likeness.argsort(descending=True)]
    shown = [i for i in order if not model.source[i].startswith("<")][: NEAREST + 1]
    most = table[shown].abs().max().item()
    parts = []
    for line, i in enumerate(shown):
        y = 26 * line + (10 if line else 0)
        parts += [
            _text(88, y + 15, model.source[i], "end", strong=not line),
            _strip(table[i], most, 96, y, 222),
            _text(WIDTH, y + 15, f"{likeness[i]:.2f}" if line else "cosine", "end", faint=True),
        ]
    names = ", ".join(model.source[i] for i in shown[1:4])
    return Told(
        f"{asked} \u2192 id {row}",
        f"Row {row} of a trained table, {table.shape[1]} numbers: blue above zero, rust below. "
        f"Under it are the rows most like it, out of {len(table)}. They began as random numbers.",
        _svg(26 * len(shown) + 8, parts, f"Rows of the table: {asked}, and nearest to it {names}"),
    )


def order(model: Translator, sentence: str, _: str) -> Told:
    """Two orders of the same words, and what comes of them with positions and without."""
    words = sentence.split()
    places = list(range(len(words)))
    places[1], places[-2] = places[-2], places[1]
    changed = [words[place] for place in places]
    step = WIDTH / len(words)
    parts = []
    for new, old in enumerate(places):
        x, end = step * (old + 0.5), step * (new + 0.5)
        parts += [
            f'<path d="M{x:g} 24C{x:g} 60 {end:g} 50 {end:g} 84" stroke-width="2"/>',
            _text(x, 16, words[old], "middle"),
            _text(end, 100, words[old], "middle", strong=new != old),
        ]
    for line, added in enumerate((True, False)):
        y = 140 + 66 * line
        parts.append(_text(0, y, f"with{'' if added else 'out'} positions", faint=True))
        for column, given in enumerate((words, changed)):
            found = [w for w, _ in model.translate(" ".join(given), positions=added) if w != EOS]
            text = _text(10, y + 20 + 20 * column, " ".join(found), kind="" if added else "wrong")
            parts.append(text)
    return Told(
        f"{sentence} / {' '.join(changed)}",
        "The same words in two orders. With positions the model tells them apart; without, both "
        "come out as one sentence.",
        _svg(250, parts, "The two orders, and four translations, which the opened figure lists"),
    )


def layer(model: Translator, sentence: str, asked: str) -> Told:
    """One token's vector before and after each part of the first layer."""
    place = sentence.split().index(asked) + 1
    first, second = model.stages(sentence)[:2]
    way = [(name, k, first[k][0, place]) for k, name in STAGES]
    way += [(name, k, second[k][0, place]) for k, name in THEN]
    most = max(vector.abs().max().item() for _, _, vector in way)
    parts = []
    for line, (name, kind, vector) in enumerate(way):
        middle = 44 * line + 22
        size = vector.square().mean().sqrt().item()
        parts += [
            _text(126, middle + 5, name, "end"),
            _bristles(vector / most, middle, kind),
            _text(WIDTH, middle + 5, f"{size:.2f}", "end", faint=True),
        ]
    return Told(
        sentence,
        f"The {len(way[0][2])} numbers of \u201c{asked}\u201d on their way through layer 1 of a "
        "trained encoder, and their size (root of the mean square) on the right.",
        _svg(44 * len(way), parts, f"Bars: seven vectors of {asked}, from the input to the norm"),
    )


def stack(model: Translator, sentence: str, asked: str) -> Told:
    """Which words a token's last vector draws on."""
    tokens = [model.source[i] for i in model.ids(sentence)[0]]
    place, moved = tokens.index(asked), model.influence(sentence)
    parts = [
        _curve(share, key, query, query == place)
        for query, row in enumerate(moved.tolist())
        for key, share in enumerate(row)
        if share > 0.02
    ]
    for row, token in enumerate(tokens):
        parts += [
            _text(4, 28 * row + 19, _percent(moved[place, row].item()), faint=True),
            _text(112, 28 * row + 19, token, "end"),
            _text(248, 28 * row + 19, token, strong=row == place),
        ]
    best = max(
        (i for i in range(1, len(tokens) - 1) if i != place), key=lambda i: moved[place, i].item()
    )
    return Told(
        sentence,
        f"Hide a token on the left from all others, and the vector that the encoder makes of "
        f"\u201c{asked}\u201d moves by so much of its length: it draws most on "
        f"\u201c{tokens[best]}\u201d.",
        _svg(
            28 * len(tokens), parts, f"Lines from all tokens to {asked}, most from {tokens[best]}"
        ),
    )


def forced(model: Translator, sentence: str, asked: str) -> Told:
    """The next word after the right beginning, and after one with a wrong word."""
    right = [found for found, _ in model.translate(sentence)]
    place = right.index(asked) - 1
    parts = []
    for line, last in enumerate((right[place], asked)):
        beginning = [*right[:place], last]
        rest = model.translate(sentence, beginning)
        y, kind = 168 * line, "wrong" if line else ""
        parts += [
            _text(0, y + 16, " ".join(beginning), kind=kind, strong=True),
            _text(0, y + 38, "\u2026 " + " ".join(w for w, _ in rest if w != EOS), faint=True),
        ]
        shares, ids = rest[0][1].topk(4)
        for row, (share, i) in enumerate(zip(shares.tolist(), ids.tolist(), strict=True)):
            top = y + 50 + 24 * row
            parts += [
                _text(78, top + 14, model.target[i], "end"),
                _bar(86, top, 220 * share, kind),
                _text(WIDTH, top + 14, _percent(share), "end", faint=True),
            ]
    return Told(
        sentence,
        f"The next word after a right beginning, and after one that has \u201c{asked}\u201d in the "
        f"place of \u201c{right[place]}\u201d. Below each beginning, what the model then writes.",
        _svg(318, parts, f"Bars of the next word's probability, right and with {asked} instead"),
    )


POSTERS: dict[str, Callable[[Translator, str, str], Told]] = {
    "word": word,
    "order": order,
    "layer": layer,
    "stack": stack,
    "forced": forced,
}


# --- parts of pictures ----------------------------------------------------------------------


def _svg(height: float, parts: Iterable[str], told: str) -> str:
    return (
        f'<svg class="translator-picture" viewBox="0 0 {WIDTH} {height:g}" role="img" '
        f'aria-label="{escape(told)}">{"".join(parts)}</svg>'
    )


def _percent(share: float) -> str:
    return f"{'<1' if share < 0.005 else f'{100 * share:.0f}'}\u202f%"


def _text(
    x: float,
    y: float,
    text: str,
    anchor: str = "start",
    *,
    kind: str = "",
    strong: bool = False,
    faint: bool = False,
) -> str:
    names = [f"translator-{kind}"] * bool(kind)
    names += ["translator-chosen"] * strong + ["translator-faint"] * faint
    told = f' class="{" ".join(names)}"' if names else ""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{told}>{escape(text)}</text>'


def _strip(vector: Tensor, most: float, x: float, y: float, width: float) -> str:
    """A field a number; fields of one tint are one path."""
    cell = width / len(vector)
    tints: dict[int, list[int]] = {}
    for place, value in enumerate((TINTS * vector / most).round().int().tolist()):
        tints.setdefault(value, []).append(place)
    return "".join(
        f'<path class="translator-{"plus" if tint > 0 else "minus"}" '
        f'transform="translate({x:g} {y:g}) scale({cell:g} 1)" '
        f'opacity="{abs(tint) / TINTS:.2g}" d="{"".join(f"M{p} 0h1v20h-1" for p in places)}"/>'
        for tint, places in sorted(tints.items())
        if tint
    )


def _bristles(vector: Tensor, middle: float, kind: str) -> str:
    bars = "h1".join(f"V{-20 * value:.0f}" for value in vector.tolist())
    return (
        f'<path class="translator-{kind}" transform="translate(132 {middle:g}) scale(2.8 1)" '
        f'd="M0 0{bars}h1V0"/>'
    )


def _curve(share: float, key: int, query: int, chosen: bool) -> str:
    start, end = 28 * key + 14, 28 * (query - key)
    base, gain = (0.25, 0.75) if chosen else (0.05, 0.3)
    return (
        f'<path d="M120 {start}c60 0 60 {end} 120 {end}" stroke-width="{0.6 + 6 * share:.1f}" '
        f'stroke-opacity="{base + gain * min(share, 1):.2f}"/>'
    )


def _bar(x: float, y: float, width: float, kind: str) -> str:
    name = "translator-minus" if kind else "translator-plus"
    return (
        f'<path class="{name}" d="M{x:g} {y + 3:g}h{max(width, 1):.1f}v14h-{max(width, 1):.1f}"/>'
    )
