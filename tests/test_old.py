"""What modules hold is never changed by an answer; what tests make, is."""

import gc
import keyword
import types
from typing import Any

import numpy as np
import pytest

from autograder.judge import old
from autograder.judge.guard import Guard

SHELF = types.ModuleType("shelf")  # as a module of the course's that holds values


@pytest.fixture(autouse=True)
def _remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(old, "_kept", [])
    monkeypatch.setattr(old, "_numbers", frozenset())
    SHELF.table = {"rows": [[1, 2], [3, 4]]}  # type: ignore[attr-defined]
    SHELF.grid = np.zeros((3, 3))  # type: ignore[attr-defined]
    SHELF.deep = ([bytearray(b"x")], np.ones(2))  # type: ignore[attr-defined]
    old.remember()


def _held() -> list[Any]:
    shelf: Any = SHELF
    rows = shelf.table["rows"]
    views = [shelf.grid[1:], shelf.grid.T[:, 0], shelf.grid.reshape(9)]
    return [shelf.table, rows, rows[0], shelf.grid, *views, shelf.deep[0][0], shelf.deep[1]]


def test_what_modules_hold_is_old_and_so_is_a_view_into_it() -> None:
    assert all(old.is_old(value) for value in [keyword.kwlist, *_held()])
    assert not any(Guard().may_change(value) for value in _held())


def test_what_was_frozen_for_the_collector_is_old_too() -> None:
    gc.freeze()
    old.remember()
    test_what_modules_hold_is_old_and_so_is_a_view_into_it()


def test_what_is_made_later_is_not() -> None:
    made: list[Any] = [[], {}, set(), np.zeros(3), np.zeros((3, 3))[1:], list(keyword.kwlist)]
    made += [SHELF.grid.copy(), SHELF.grid + 1]  # type: ignore[attr-defined]
    assert not any(old.is_old(value) for value in made)


def test_numbers_of_what_was_let_go_are_given_to_nobody_else() -> None:
    SHELF.table = None  # type: ignore[attr-defined]
    assert not any(old.is_old([[0, n], {}][n % 2]) for n in range(10_000))
