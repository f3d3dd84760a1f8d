"""The diagrams: what stands in which cell, and that a part has one colour."""

from collections.abc import Iterator

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.patches import FancyArrowPatch

from lab import diagrams, plots
from lab.diagrams import Matrix


@pytest.fixture(autouse=True)
def style() -> Iterator[None]:
    with mpl.rc_context():
        plots.use()
        yield
    plt.close("all")


def texts(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.texts]


def test_words_stand_in_rows_from_top_to_bottom_and_padding_is_grey():
    real = [[True, True], [True, False]]
    ax = diagrams.words([["le", "chat"], ["oui", "<pad>"]], real, ["one", "two"])
    assert texts(ax) == ["le", "chat", "oui", "<pad>"]
    fills = [to_hex(cell.get_facecolor()) for cell in ax.patches]
    assert fills == 3 * [plots.PAPER] + [plots.BLANK]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["one", "two"]
    bottom, top = ax.get_ylim()
    assert bottom > top


def test_words_fit_into_their_cells():
    ax = diagrams.words([["<bos>", "the", "extraordinary", "cat", "sleeps", ".", "<eos>"]])
    plt.gcf().draw_without_rendering()
    for text, cell in zip(ax.texts, ax.patches, strict=True):
        assert text.get_window_extent().width < cell.get_window_extent().width


def test_matrices_have_their_cells_names_and_shapes():
    left, right = Matrix("A", 3, 2, "(N, D)", "query"), Matrix("B", 2, 4, "(D, V)", "key")
    ax = diagrams.matrices(left, "×", right)
    assert texts(ax) == ["A", "(N, D)", "×", "B", "(D, V)"]
    fills = [to_hex(cell.get_facecolor()) for cell in ax.patches]
    assert fills == 6 * [diagrams.ROLES["query"]] + 8 * [diagrams.ROLES["key"]]


def test_query_key_value_norm_and_residual_have_colours_of_their_own():
    names = ("query", "key", "value", "norm", "residual", "feed-forward")
    assert len({diagrams.ROLES[name] for name in names}) == len(names)
    assert {*diagrams.ROLES.values()} <= {*plots.COLORS}


def test_an_arrow_goes_through_its_points_and_ends_at_the_last():
    ax = plt.subplots()[1]
    diagrams.arrow(ax, (0, 0), (1, 0), (1, 2), color=plots.COLORS[1])
    (line,) = ax.lines
    assert np.asarray(line.get_xydata()).tolist() == [[0, 0], [1, 0]]
    (head,) = ax.patches
    assert isinstance(head, FancyArrowPatch)
    assert to_hex(head.get_edgecolor()) == plots.COLORS[1]
