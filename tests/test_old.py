"""What modules hold is never changed by an answer; what tests make, is."""

import subprocess
import sys

from tests.conftest import ROOT


def passes(case: str) -> None:
    """A case of tests/old_cases.py, in an interpreter of its own."""
    command = [sys.executable, "-m", "tests.old_cases", case]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_what_modules_hold_is_old_and_so_is_a_view_into_it() -> None:
    passes("held")


def test_what_was_frozen_for_the_collector_is_old_too() -> None:
    passes("frozen")


def test_what_is_made_later_is_not() -> None:
    passes("later")


def test_numbers_of_what_was_let_go_are_given_to_nobody_else() -> None:
    passes("let go")
