"""Predict, then run: runs for the reader's eyes that ask for a prediction first.

A cell that trains, draws or measures with a student's own parts stands under `if watched():`, so
that it costs nothing while notebooks are graded. Its first line is `predicted(...)`.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")


def watched() -> bool:
    """Whether somebody looks at what a cell shows: not while nbgrader grades the notebook."""
    return os.environ.get("NBGRADER_EXECUTION") != "autograde"


def predicted(predict: Callable[[], T], choices: Sequence[T] | Mapping[str, Sequence[object]]) -> T:
    """The prediction of an answer: one of these choices, or for each name one of its choices.

    Raises:
        ValueError: if there is none yet, in words for whoever wants to see the run first.
    """
    with suppress(NotImplementedError):  # not answered yet
        prediction = predict()
        if _is_among(prediction, choices):
            return prediction
    if isinstance(choices, Mapping):
        known = f"a dictionary of {', '.join(map(repr, choices))}, with a choice for each"
    else:
        known = f"one of {', '.join(map(repr, choices))}"
    raise ValueError(f"predict first: let {predict.__name__} return {known}; then run")


def _is_among(prediction: object, choices: Sequence[Any] | Mapping[str, Sequence[object]]) -> bool:
    """Whether all is decided, by choices that there are."""
    if not isinstance(choices, Mapping):
        return prediction in choices
    return (
        isinstance(prediction, Mapping)
        and prediction.keys() == choices.keys()
        and all(prediction[name] in known for name, known in choices.items())
    )


def compare(prediction: object, outcome: object) -> None:
    """Print a prediction beside what came out."""
    print(f"predicted: {prediction}\nmeasured:  {outcome}")
