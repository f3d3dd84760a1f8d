"""Figures of matplotlib's as in a notebook: a cell or test begins with none that others drew."""

import sys
from contextlib import suppress


def close_figures() -> None:
    """Close what has been drawn, so that the next `plt.plot` begins a figure of its own."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        with suppress(Exception):  # in a student's process anything may stand there
            pyplot.close("all")
