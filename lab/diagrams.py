"""Diagrams in one visual language: words in cells, matrices with their shapes, boxes and arrows.

What moves is drawn in cells, what computes in a box with round corners. A part has one colour in
all chapters, `ROLES`; its name stands beside it, so that nothing hangs on the colour alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle

from lab.plots import BLANK, COLORS, INK, LETTER, PAPER, WIDTH

BLUE, ORANGE, GREEN, PURPLE, BROWN, BLACK = COLORS
ROLES = {
    "query": BLUE,
    "key": ORANGE,
    "value": GREEN,
    "attention": BLUE,
    "feed-forward": PURPLE,
    "norm": BROWN,
    "embedding": GREEN,
    "residual": BLACK,
}
GREY = "#5b636c"
ROW = 0.36  # inches


@dataclass(frozen=True)
class Matrix:
    """A matrix in a row of matrices: its name above, its shape below."""

    name: str
    rows: int
    columns: int
    shape: str
    role: str = "residual"


def words(
    rows: Sequence[Sequence[Any]],
    real: Any = None,
    names: Sequence[str] = (),
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw rows of tokens, each in a cell.

    Args:
        rows: the tokens or ids of each row; rows may differ in length.
        real: a boolean for each cell; False makes it grey. By default all are real.
        names: one for each row, on its left.
        title: a few words above.
        ax: where to draw; by default a new figure.
    """
    longest = max(map(len, rows))
    left = max((len(name) for name in names), default=0) * LETTER
    if ax is None:
        height = ROW * len(rows) + (0.45 if title else 0.1)
        ax = plt.subplots(figsize=(WIDTH, height), layout="constrained")[1]
    cell = (WIDTH - left - 0.3) / longest
    size = min(11.5, 11.5 * cell / (LETTER * max(len(str(one)) for row in rows for one in row)))
    for y, row in enumerate(rows):
        for x, token in enumerate(row):
            is_real = real is None or bool(real[y][x])
            fill, ink = (PAPER, INK) if is_real else (BLANK, GREY)
            cell_of = Rectangle((x + 0.03, y + 0.06), 0.94, 0.88, fc=fill, ec="#8b929a", lw=1)
            ax.add_patch(cell_of)
            ax.text(x + 0.5, y + 0.5, str(token), ha="center", va="center", color=ink, size=size)
    ax.set(xlim=(0, longest), ylim=(len(rows), 0), xticks=[], title=title)
    ax.set_yticks([y + 0.5 for y in range(len(names))], list(names))
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return ax


def matrices(*parts: Matrix | str, height: float = 2.6) -> Axes:
    """Draw matrices in a row, with the signs between them, such as "×" and "=".

    Args:
        parts: matrices and signs, from left to right.
        height: of the figure, in inches.
    """
    ax = plt.subplots(figsize=(WIDTH, height), layout="constrained")[1]
    tallest = max(one.rows for one in parts if isinstance(one, Matrix))
    gap = 0.08 * sum(one.columns for one in parts if isinstance(one, Matrix))
    x = 0.0
    for part in parts:
        if isinstance(part, str):
            ax.text(x + gap / 2, tallest / 2, part, ha="center", va="center", fontsize=15)
            x += gap
            continue
        top = (tallest - part.rows) / 2
        grid(ax, x, top, part.rows, part.columns, ROLES[part.role])
        middle = x + part.columns / 2
        ax.text(middle, top - 0.25, part.name, ha="center", va="bottom", fontsize=12.5)
        below = top + part.rows + 0.2
        ax.text(middle, below, part.shape, ha="center", va="top", fontsize=11.5, color=GREY)
        x += part.columns
    ax.set(xlim=(-0.6, x + 0.6), ylim=(tallest + 1.5, -1.5), aspect="equal")
    ax.axis("off")
    return ax


def grid(ax: Axes, x: float, y: float, rows: int, columns: int, color: str) -> None:
    """Draw the cells of a matrix, of size 1, from its upper left corner on."""
    for row in range(rows):
        for column in range(columns):
            cell = Rectangle((x + column, y + row), 1, 1, fc=color, alpha=0.35, ec=PAPER, lw=1.2)
            ax.add_patch(cell)


def box(
    ax: Axes,
    place: tuple[float, float],
    text: str,
    color: str,
    size: tuple[float, float] = (2.3, 0.5),
    link: str = "",
) -> None:
    """Draw a box with round corners around the middle `place`; a link makes it lead to a page."""
    (x, y), (width, height) = place, size
    style = "round,pad=0.02,rounding_size=0.1"
    corner = (x - width / 2, y - height / 2)
    patch = FancyBboxPatch(corner, width, height, boxstyle=style, fc=PAPER, ec=color, lw=1.8)
    patch.set(zorder=2, url=link or None)
    ax.add_patch(patch)
    # drawn right after its box, so that the page can make them one link
    ax.text(x, y, text, ha="center", va="center", zorder=2, url=link or None)


def arrow(ax: Axes, *points: tuple[float, float], color: str = INK) -> None:
    """Draw a line through the points that ends in an arrow head."""
    ax.plot(*zip(*points[:-1], strict=True), color=color, lw=1.4, ls="-")
    style = {"arrowstyle": "-|>", "mutation_scale": 11, "lw": 1.4, "shrinkA": 0, "shrinkB": 0}
    ax.add_patch(FancyArrowPatch(*points[-2:], color=color, **style))
