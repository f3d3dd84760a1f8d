"""The plots: what they show, and that everybody can read it."""

import matplotlib as mpl

mpl.use("Agg")

import itertools

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from matplotlib.colors import to_rgb

from lab import plots

TOKENS = ["the", "small", "cat"]
# How a colour looks without one kind of cone (linear light), Vienot, Brettel and Mollon (1999).
COLOR_BLIND = {
    "protan": [[0.11238, 0.88762, 0.0], [0.11238, 0.88762, 0.0], [0.00401, -0.00401, 1.0]],
    "deutan": [[0.29275, 0.70725, 0.0], [0.29275, 0.70725, 0.0], [-0.02234, 0.02234, 1.0]],
}


@pytest.fixture(autouse=True)
def style():
    with mpl.rc_context():
        plots.use()
        yield
    plt.close("all")


def texts(ax) -> list[str]:
    return [text.get_text() for text in ax.texts]


def labels(ax) -> tuple[list[str], list[str]]:
    return (
        [label.get_text() for label in ax.get_yticklabels()],
        [label.get_text() for label in ax.get_xticklabels()],
    )


def contrast(first, second) -> float:
    low, high = sorted([plots.luminance(to_rgb(first)), plots.luminance(to_rgb(second))])
    return (high + 0.05) / (low + 0.05)


def test_a_heatmap_writes_every_value_into_its_cell():
    ax = plots.heatmap([[0.25, 0.75, 0], [1, 0.004, -0.001]])
    assert texts(ax) == ["0.25", "0.75", "0.00", "1.00", "0.00", "0.00"]


def test_whole_numbers_are_written_without_decimals():
    assert texts(plots.heatmap([[3, -14]])) == ["3", "−14"]


def test_infinite_and_missing_values_are_named():
    ax = plots.heatmap([[0.5, -np.inf, np.nan]])
    assert texts(ax) == ["0.50", "−∞", "NaN"]


def test_a_heatmap_of_nothing_finite_is_drawn():
    assert texts(plots.heatmap([[-np.inf, np.nan]])) == ["−∞", "NaN"]


def test_rows_are_labelled_from_top_to_bottom_and_columns_from_left_to_right():
    ax = plots.heatmap(np.zeros((2, 3)), rows=["a", "b"], columns=TOKENS)
    assert labels(ax) == (["a", "b"], TOKENS)
    bottom, top = ax.get_ylim()
    assert bottom > top


def test_titles_and_axis_labels_are_set():
    ax = plots.heatmap([[1.0]], title="Weights", xlabel="keys", ylabel="queries")
    found = (ax.get_title(loc="left"), ax.get_xlabel(), ax.get_ylabel())
    assert found == ("Weights", "keys", "queries")


def test_tensors_that_need_gradients_can_be_drawn():
    weights = torch.rand(2, 3, requires_grad=True)
    assert len(texts(plots.heatmap(weights))) == 6


def test_unsigned_colours_start_at_zero_and_signed_ones_centre_on_it():
    unsigned = plots.heatmap([[0.2, 0.8]]).images[0].norm
    signed = plots.heatmap([[-0.2, 0.8]], signed=True).images[0].norm
    assert (unsigned.vmin, unsigned.vmax) == (0, 0.8)
    assert (signed.vmin, signed.vmax) == (-0.8, 0.8)


@pytest.mark.parametrize("signed", [False, True])
def test_numbers_have_a_contrast_of_at_least_four_and_a_half_to_one(signed):
    ax = plots.heatmap(np.linspace(-1, 1, 49).reshape(7, 7), signed=signed)
    image = ax.images[0]
    backgrounds = image.to_rgba(np.asarray(image.get_array())).reshape(-1, 4)
    for text, background in zip(ax.texts, backgrounds, strict=True):
        assert contrast(text.get_color(), tuple(background[:3])) >= 4.5


def test_cells_too_small_for_numbers_get_a_colour_bar_instead():
    ax = plots.heatmap(np.eye(40))
    assert not ax.texts
    assert len(ax.figure.axes) == 2


def test_numbers_fit_into_their_cells():
    ax = plots.heatmap(-np.random.default_rng(0).random((5, 9)))
    plt.gcf().draw_without_rendering()
    width = ax.get_window_extent().width / 9
    assert max(text.get_window_extent().width for text in ax.texts) < width


def test_long_column_labels_are_turned_and_short_ones_are_not():
    long = plots.heatmap(np.zeros((2, 3)), columns=["extraordinary"] * 3)
    short = plots.heatmap(np.zeros((2, 3)), columns=TOKENS)
    assert {label.get_rotation() for label in long.get_xticklabels()} == {45}
    assert {label.get_rotation() for label in short.get_xticklabels()} == {0}


def test_a_plot_goes_where_it_is_told():
    figure, axes = plt.subplots(1, 3)
    assert plots.heatmap([[1.0]], ax=axes[0]) is axes[0]
    assert plots.masks([[True]], ax=axes[1]) is axes[1]
    assert plots.lines([1], {"a": [1]}, ax=axes[2]) is axes[2]
    assert plt.get_fignums() == [figure.number]


def test_a_wrong_number_of_labels_is_refused():
    with pytest.raises(ValueError, match="3 labels for 2 rows"):
        plots.heatmap(np.zeros((2, 3)), rows=TOKENS)


@pytest.mark.parametrize("shape", [(3,), (2, 3, 4), (0, 3)])
def test_what_is_no_matrix_is_refused(shape):
    with pytest.raises(ValueError, match="rows, columns"):
        plots.heatmap(np.zeros(shape))


def test_a_mask_marks_each_cell_with_a_sign_besides_its_colour():
    ax = plots.masks(torch.tensor([[True, False], [True, True]]), title="Causal")
    assert texts(ax) == ["✓", "–", "✓", "✓"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("keys", "queries")
    (legend,) = ax.figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["may attend", "may not"]


def test_a_mask_that_is_not_boolean_is_refused():
    with pytest.raises(ValueError, match="dtype int64; it must be boolean"):
        plots.masks(np.zeros((2, 2), dtype=np.int64))


def test_lines_have_their_labels_limits_and_different_dashes():
    ax = plots.lines([0, 1, 2], {"train": [3, 2, 1], "test": [3, 3, 3]}, "Loss", "step", "loss")
    assert [line.get_label() for line in ax.lines] == ["train", "test"]
    assert len({(line.get_color(), str(line.get_linestyle())) for line in ax.lines}) == 2
    assert len({str(line.get_linestyle()) for line in ax.lines}) == 2
    assert ax.get_xlim()[0] <= 0 <= 2 <= ax.get_xlim()[1]
    assert ax.get_legend() is not None
    assert (ax.get_title(loc="left"), ax.get_xlabel(), ax.get_ylabel()) == ("Loss", "step", "loss")


def test_a_line_of_another_length_is_refused():
    with pytest.raises(ValueError, match=r"'a' has shape \(2,\), x has shape \(3,\)"):
        plots.lines([0, 1, 2], {"a": [1, 2]})


def test_more_lines_than_colours_are_refused():
    with pytest.raises(ValueError, match="7 lines; at most 6"):
        plots.lines([0], {str(i): [i] for i in range(7)})


def test_there_are_six_colours_that_stand_out_from_white():
    assert len(set(plots.COLORS)) == 6
    assert min(contrast(color, "white") for color in plots.COLORS) >= 3


def linear(color: str) -> np.ndarray:
    channels = np.array(to_rgb(color))
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def lab(light: np.ndarray) -> np.ndarray:
    """CIELAB (white point D65) of linear sRGB."""
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    x, y, z = np.cbrt(np.clip(xyz @ light / [0.9505, 1, 1.089], 0, None))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("kind", COLOR_BLIND)
def test_colours_stay_apart_for_colour_blind_readers(kind):
    seen = [lab(np.array(COLOR_BLIND[kind]) @ linear(color)) for color in plots.COLORS]
    distances = [np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)]
    assert min(distances) >= 20


def test_figures_are_opaque_white_so_that_dark_pages_do_not_show_through():
    figure = plots.heatmap([[1.0]]).figure
    assert figure.get_facecolor() == (1.0, 1.0, 1.0, 1.0)
    assert mpl.rcParams["savefig.facecolor"] == "#ffffff"


def test_nothing_is_shown_before_the_notebook_does(monkeypatch):
    monkeypatch.setattr(plt, "show", lambda: pytest.fail("a plot called show"))
    plots.heatmap([[1.0]])
    plots.masks([[True]])
    plots.lines([0, 1], {"a": [0, 1]})
