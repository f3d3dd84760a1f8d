"""Plots in one style: heatmaps with readable numbers, masks, and lines, for a book and a phone.

Figures have an opaque white background, so that they read the same on a light and a dark page.
No plot tells things apart by colour alone: cells carry their numbers, lines differ in dashes too.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap, Normalize, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

Labels: TypeAlias = Sequence[Any] | None

# Blue, orange, green, purple, brown, black: each has a contrast of at least 3 to 1 on white, and
# they stay apart (CIELAB distance 20 or more) without red or green cones.
COLORS = ["#0341bb", "#e67206", "#1e8d74", "#b1088b", "#745c15", "#222426"]
DASHES: list[Any] = ["-", (0, (5, 1.5)), (0, (1.2, 1.2)), "-.", (0, (8, 2)), (0, (3, 1, 1, 1))]

INK = "#1c2126"  # nearly black
PAPER = "#ffffff"
BLANK = "#e3e6ea"  # cells without a finite value, or that may not be attended to
SEQUENTIAL = LinearSegmentedColormap.from_list(
    "sequential", ["#f4f8fc", "#b9d4ec", "#5c9bd1", "#1c67ad", "#08376f"]
)
DIVERGING = LinearSegmentedColormap.from_list(
    "diverging", ["#8a3a00", "#e08a3c", "#f9f7f5", "#5c9bd1", "#08376f"]
)

WIDTH = 5.4  # inches of a full-width figure; its fonts stay readable on a screen of 390 pixels
LARGEST_CELL = 0.66  # inches
LETTER = 0.095  # inches that a letter of a label takes
SMALLEST_ANNOTATED_CELL = 0.33  # inches; a number no longer fits into less

STYLE: Any = {
    "figure.figsize": (WIDTH, 3.4),
    "figure.dpi": 160,
    "figure.facecolor": PAPER,
    "savefig.facecolor": PAPER,
    "savefig.dpi": 160,
    "savefig.bbox": "tight",
    "axes.facecolor": PAPER,
    "axes.edgecolor": "#8b929a",
    "axes.labelcolor": INK,
    "axes.labelsize": 12,
    "axes.prop_cycle": cycler(color=COLORS, linestyle=DASHES),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlepad": 10,
    "axes.titlesize": 13,
    "axes.titleweight": "bold",
    "font.family": "DejaVu Sans",  # comes with matplotlib, so figures are the same everywhere
    "font.size": 12,
    "grid.color": "#e3e6ea",
    "image.interpolation": "none",  # a cell is a cell
    "legend.fontsize": 11.5,
    "legend.frameon": False,
    "lines.linewidth": 2.2,
    "svg.fonttype": "none",  # letters stay letters, in the page's typeface
    "svg.hashsalt": "lab",  # the same picture has the same bytes
    "text.color": INK,
    "xtick.color": INK,
    "xtick.labelsize": 11.5,
    "ytick.color": INK,
    "ytick.labelsize": 11.5,
}


def use() -> None:
    """Make this style matplotlib's default for the rest of the program."""
    mpl.rcParams.update(STYLE)


def heatmap(
    values: Any,
    rows: Labels = None,
    columns: Labels = None,
    title: str = "",
    ax: Axes | None = None,
    annotate: bool = True,
    xlabel: str = "",
    ylabel: str = "",
    signed: bool = False,
) -> Axes:
    """Draw a matrix as coloured cells, the first row on top.

    Args:
        values: (rows, columns), a tensor, array or nested list; infinities and NaN show as such.
        rows: one label per row, such as the tokens that ask; none by default.
        columns: one label per column, such as the tokens that are asked.
        title: a few words above the plot.
        ax: where to draw; by default a new figure that fits the matrix.
        annotate: write each value into its cell, if the cells are large enough.
        xlabel: what the columns are, such as "keys".
        ylabel: what the rows are, such as "queries".
        signed: centre the colours on 0, so that negative values differ in hue.

    Raises:
        ValueError: if `values` is no matrix, or the number of labels does not match it.
    """
    matrix = _matrix(values)
    ax = ax or _new_axes(matrix.shape, rows)
    finite = np.ma.masked_invalid(matrix)
    colors = (DIVERGING if signed else SEQUENTIAL).with_extremes(bad=BLANK)
    norm = _norm(finite, signed)
    image = ax.imshow(finite, cmap=colors, norm=norm, aspect="auto")
    _frame(ax, matrix.shape, rows, columns, title, xlabel, ylabel)
    cell = _cell_inches(ax, matrix.shape)
    if annotate and cell >= SMALLEST_ANNOTATED_CELL:
        _annotate(ax, matrix, colors, norm, cell)
    else:
        bar = _figure(ax).colorbar(image, ax=ax, fraction=0.05, pad=0.03)
        bar.outline.set_visible(False)  # pyright: ignore[reportCallIssue]
    return ax


def masks(
    mask: Any,
    rows: Labels = None,
    columns: Labels = None,
    title: str = "",
    ax: Axes | None = None,
    xlabel: str = "keys",
    ylabel: str = "queries",
) -> Axes:
    """Draw a boolean mask: which query (row) may attend to which key (column).

    Args:
        mask: (queries, keys), True = may attend.
        rows: one label per query.
        columns: one label per key.
        title: a few words above the plot.
        ax: where to draw; by default a new figure that fits the mask and explains its colours.
        xlabel: what the columns are.
        ylabel: what the rows are.

    Raises:
        ValueError: if `mask` is no boolean matrix, or the number of labels does not match it.
    """
    allowed = _array(mask)
    if allowed.dtype != np.bool_:
        raise ValueError(f"mask has dtype {allowed.dtype}; it must be boolean, True = may attend")
    matrix = _matrix(mask)
    own_figure = ax is None
    ax = ax or _new_axes(matrix.shape, rows)
    may, may_not = SEQUENTIAL(0.75), BLANK
    colors = LinearSegmentedColormap.from_list("mask", [may_not, may])
    ax.imshow(matrix, cmap=colors, vmin=0, vmax=1, aspect="auto")
    _frame(ax, matrix.shape, rows, columns, title, xlabel, ylabel)
    size = _font_size(_cell_inches(ax, matrix.shape))
    if size is not None:
        for (row, column), yes in np.ndenumerate(allowed):
            mark, ink = ("✓", PAPER) if yes else ("–", "#5b636c")
            ax.text(column, row, mark, ha="center", va="center", color=ink, fontsize=size)
    if own_figure:
        keys = [Patch(color=may, label="may attend"), Patch(color=may_not, label="may not")]
        _figure(ax).legend(handles=keys, loc="outside lower center", ncols=2, handlelength=1)
    return ax


def lines(
    x: Any,
    ys: Mapping[str, Any],
    title: str = "",
    xlabel: str = "",
    ylabel: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw one line per entry of `ys`, with its key in the legend.

    Args:
        x: (n,) where the points lie, the same for all lines.
        ys: label -> (n,) values; at most six lines, since more cannot be told apart.
        title: a few words above the plot.
        xlabel: what x is.
        ylabel: what the values are.
        ax: where to draw; by default a new figure.

    Raises:
        ValueError: if a line has another length than x, or there are too many lines.
    """
    if len(ys) > len(COLORS):
        raise ValueError(f"{len(ys)} lines; at most {len(COLORS)} can be told apart in one plot")
    across = _array(x)
    if ax is None:
        ax = plt.subplots(layout="constrained")[1]
    for (label, y), color, dash in zip(ys.items(), COLORS, DASHES, strict=False):
        values = _array(y)
        if values.shape != across.shape:
            raise ValueError(f"{label!r} has shape {values.shape}, x has shape {across.shape}")
        marker = "o" if across.size <= 12 else ""
        ax.plot(across, values, color=color, linestyle=dash, marker=marker, label=label)
    ax.set(title=title, xlabel=xlabel, ylabel=ylabel)
    ax.grid(True, axis="y")
    ax.set_axisbelow(True)
    if np.issubdtype(across.dtype, np.integer):
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    if len(ys) > 1:  # below the plot, where it hides no line
        place = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.2)}
        ax.legend(handlelength=2.6, ncols=min(len(ys), 3), **place)
    return ax


def ink_on(color: Sequence[float]) -> str:
    """Black or white, whichever reads better on a background (red, green, blue in 0 to 1).

    One of the two always has a contrast of at least 4.5 to 1.
    """
    light = luminance(color)
    in_white, in_black = 1.05 / (light + 0.05), (light + 0.05) / 0.05
    return "#ffffff" if in_white > in_black else "#000000"


def luminance(color: Sequence[float]) -> float:
    """Relative luminance of a colour (red, green, blue in 0 to 1), as WCAG 2 defines it."""
    channels = np.asarray(color[:3], dtype=float)
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def _array(values: Any) -> np.ndarray:
    if hasattr(values, "detach"):  # a tensor, perhaps one that still collects gradients
        values = values.detach().cpu()
    return np.asarray(values)


def _matrix(values: Any) -> np.ndarray:
    matrix = _array(values).astype(float)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ValueError(f"values have shape {matrix.shape}; a plot needs (rows, columns)")
    return matrix


def _figure(ax: Axes) -> Figure:
    return cast(Figure, ax.get_figure(root=True))


def _new_axes(shape: tuple[int, ...], rows: Labels) -> Axes:
    """Axes with square cells where they fit; long row labels take from the width."""
    labels = max((len(str(row)) for row in rows), default=0) * LETTER if rows else 0.3
    frame = 0.6 + labels
    cell = min(LARGEST_CELL, (WIDTH - frame) / shape[1])
    height = min(max(cell * shape[0], 0.6), 6.0)
    size = (max(cell * shape[1] + frame, 2.6), height + 1.3)
    return plt.subplots(figsize=size, layout="constrained")[1]


def _norm(finite: np.ma.MaskedArray, signed: bool) -> Normalize:
    values = finite.compressed()
    low, high = (values.min(), values.max()) if values.size else (0.0, 1.0)
    if signed:
        reach = max(abs(low), abs(high)) or 1.0
        return Normalize(-reach, reach)
    low = min(low, 0.0)  # weights and counts start at 0, so that pale means little
    return Normalize(low, high if high > low else low + 1.0)


def _frame(
    ax: Axes,
    shape: tuple[int, ...],
    rows: Labels,
    columns: Labels,
    title: str,
    xlabel: str,
    ylabel: str,
) -> None:
    """Everything around and between the cells."""
    _ticks(ax, "y", "rows", rows, shape[0])
    _ticks(ax, "x", "columns", columns, shape[1])
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.set_title(title)
    _settle(ax)
    if columns is not None:
        longest = max(len(str(column)) for column in columns) * LETTER
        if longest > 0.95 * ax.get_window_extent().width / _figure(ax).dpi / shape[1]:
            ax.tick_params(axis="x", labelrotation=45)
            for label in ax.get_xticklabels():
                label.set(ha="right", rotation_mode="anchor")
    ax.tick_params(which="both", length=0)
    ax.spines[:].set_visible(False)
    if max(shape) <= 40:  # white gaps between the cells
        ax.set_xticks(np.arange(shape[1] + 1) - 0.5, minor=True)
        ax.set_yticks(np.arange(shape[0] + 1) - 0.5, minor=True)
        ax.grid(True, which="minor", color=PAPER, linewidth=1.5, linestyle="-")
    ax.grid(False, which="major")


def _ticks(ax: Axes, axis: str, name: str, labels: Labels, count: int) -> None:
    if labels is None:
        if count > 12:  # some numbers along the axis are enough
            return
        labels = range(count)
    if len(labels) != count:
        raise ValueError(f"{len(labels)} labels for {count} {name}; there must be one for each")
    ticks = {"x": ax.set_xticks, "y": ax.set_yticks}[axis]
    ticks(range(count), [str(label) for label in labels])


def _cell_inches(ax: Axes, shape: tuple[int, ...]) -> float:
    """The smaller side of a cell, as the figure stands before it is drawn."""
    _settle(ax)
    box = ax.get_window_extent()
    return min(box.width / shape[1], box.height / shape[0]) / _figure(ax).dpi


def _settle(ax: Axes) -> None:
    """Let the figure's layout, if it has one, give the axes their size."""
    if _figure(ax).get_layout_engine() is not None:
        _figure(ax).draw_without_rendering()


def _font_size(cell: float) -> float | None:
    """Points for a number in a cell of this size (inches); None if it would not fit."""
    return min(12.0, 20.5 * cell) if cell >= SMALLEST_ANNOTATED_CELL else None


def _annotate(ax: Axes, matrix: np.ndarray, colors: Colormap, norm: Normalize, cell: float) -> None:
    whole = bool(np.all(np.mod(matrix[np.isfinite(matrix)], 1) == 0))
    size = _font_size(cell)
    for (row, column), value in np.ndenumerate(matrix):
        background = colors(norm(value)) if np.isfinite(value) else to_rgb(BLANK)
        ink = ink_on(background)
        text = _number(float(value), whole)
        ax.text(column, row, text, ha="center", va="center", color=ink, fontsize=size)


def _number(value: float, whole: bool) -> str:
    if np.isnan(value):
        return "NaN"
    if np.isinf(value):
        return "∞" if value > 0 else "−∞"
    text = f"{value:.0f}" if whole else f"{value:.2f}"
    if float(text) == 0:
        text = text.removeprefix("-")
    return text.replace("-", "−")
