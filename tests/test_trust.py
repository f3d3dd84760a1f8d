"""The page on what a student's byte meets: every row names a check, and a test that there is."""

import ast
import re
from pathlib import Path

import pytest

from tests.conftest import ROOT

PAGE = ROOT / "book" / "trust.md"
ROW = re.compile(
    r"^\| (?!-)(?P<what>[^|]+) \| (?P<check>[^|]+) \| (?P<tests>[^|]+) \|$", re.MULTILINE
)
NAMED = re.compile(r"`([\w/]+\.py)::(\w+)`")
HEADS = ("what of the student's", "process")


def rows() -> list[tuple[str, str, str]]:
    """What, its check, and the tests."""
    found = ROW.finditer(PAGE.read_text("utf-8"))
    rows = [(row["what"], row["check"], row["tests"]) for row in found]
    return [row for row in rows if row[0] not in HEADS and not row[0].startswith("**")]


def functions(path: Path) -> set[str]:
    """Names of the tests in a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_the_page_has_its_rows():
    assert len(rows()) >= 45


@pytest.mark.parametrize("row", rows(), ids=[row[0][:40] for row in rows()])
def test_a_row_names_a_check_and_a_test_that_there_is(row: tuple[str, str, str]):
    _, check, tests = row
    assert check.strip()
    named = NAMED.findall(tests)
    assert named
    for file, name in named:
        assert name in functions(ROOT / "tests" / file), f"{file}::{name}"


def test_the_files_that_it_names_are_there():
    for name in re.findall(r"\(`([\w/]+\.py)`\)", PAGE.read_text(encoding="utf-8")):
        assert (ROOT / "autograder" / name).is_file(), name
