"""Predict, then run: runs for the reader's eyes that ask for a prediction first.

A cell that trains, draws or measures with a student's own parts stands under `if watched():`, so
that it costs nothing while notebooks are graded. Its first line is `predicted(...)`.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


def watched() -> bool:
    """Whether somebody looks at what a cell shows: not while nbgrader grades the notebook."""
    return os.environ.get("NBGRADER_EXECUTION") != "autograde"


def predicted(predict: Callable[[], T], choices: Sequence[T]) -> T:
    """The prediction of an answer, one of these choices.

    Raises:
        ValueError: if there is none yet, in words for whoever wants to see the run first.
    """
    with suppress(NotImplementedError):  # not answered yet
        prediction = predict()
        if prediction in choices:
            return prediction
    known = ", ".join(repr(choice) for choice in choices)
    raise ValueError(f"predict first: let {predict.__name__} return one of {known}; then run")


def compare(prediction: object, outcome: object) -> None:
    """Print a prediction beside what came out."""
    print(f"predicted: {prediction}\nmeasured:  {outcome}")
