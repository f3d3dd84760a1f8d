"""What `judge.old` should remember, tried in an interpreter that holds little else.

    python -m tests.old_cases CASE

Everything that lives is looked through; pytest's own process holds some million objects.
"""

import gc
import keyword
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from autograder.judge import old
from autograder.judge.guard import Guard

SHELF: Any = types.ModuleType("shelf")  # as a module of the course's that holds values
SHELF.table = {"rows": [[1, 2], [3, 4]]}
SHELF.grid = np.zeros((3, 3))
SHELF.deep = ([bytearray(b"x")], np.ones(2))


def everything() -> list[Any]:
    """What the module holds, its parts and views into them."""
    rows = SHELF.table["rows"]
    views = [SHELF.grid[1:], SHELF.grid.T[:, 0], SHELF.grid.reshape(9)]
    return [SHELF.table, rows, rows[0], SHELF.grid, *views, SHELF.deep[0][0], SHELF.deep[1]]


def held() -> None:
    assert all(old.is_old(value) for value in [keyword.kwlist, *everything()])
    assert not any(Guard().may_change(value) for value in everything())


def frozen() -> None:
    gc.freeze()
    old.remember()
    held()


def later() -> None:
    made: list[Any] = [[], {}, set(), np.zeros(3), np.zeros((3, 3))[1:], list(keyword.kwlist)]
    made += [SHELF.grid.copy(), SHELF.grid + 1]
    assert not any(old.is_old(value) for value in made)


def let_go() -> None:
    SHELF.table = None
    assert not any(old.is_old([[0, n], {}][n % 2]) for n in range(10_000))


CASES: dict[str, Callable[[], None]] = {
    "held": held,
    "frozen": frozen,
    "later": later,
    "let go": let_go,
}

if __name__ == "__main__":
    old.remember()
    CASES[sys.argv[1]]()
