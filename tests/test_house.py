"""The house: which room may know which, and what every file says of itself."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.conftest import ROOT

OWN = {"lab", "trainer", "benchmarks", "autograder", "solutions", "tests"}
MAY_IMPORT = {
    "lab": {"lab"},
    "trainer": {"lab", "trainer"},
    "benchmarks": {"lab", "trainer", "benchmarks"},
    "autograder": {"autograder"},
    "solutions": {"lab"},
}
LONGEST = 500  # lines of a module in a room that keeps to it


def tracked(pattern: str) -> list[Path]:
    """Files under version control that match a pattern."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", pattern],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


# What IPython calls its reading of cells, which is the grader's as well.
IPYTHONS = re.compile(r"\b(inputtransformer2|TransformerManager|token_transformers)\b")


def imports(path: Path) -> set[str]:
    """Top-level names of everything a module imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").split(".")[0])
    return found


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_rooms_import_only_what_they_may(room: str):
    files = tracked(f"{room}/**.py")
    assert files
    for path in files:
        assert imports(path) & OWN <= MAY_IMPORT[room], path


@pytest.mark.parametrize("room", ["lab", "trainer", "benchmarks"])
def test_no_module_is_too_long_to_be_read_in_one_go(room: str):
    for path in tracked(f"{room}/*.py"):
        assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST, path


def test_the_autograder_knows_nothing_of_transformers():
    for path in tracked("autograder/*"):
        text = path.read_text(encoding="utf-8")
        text = IPYTHONS.sub("", text).lower()
        for word in ("transformer", "attention", "embedding"):
            assert word not in text, f"{path.name} says {word}"
        if path.parent.name != "engine":  # which hands tensors from one process to the other
            assert "torch" not in text, path.name


def test_every_module_says_first_what_it_is_for():
    for path in tracked("*.py"):
        if path.parent.parent.name == "solutions" and path.stem == path.parent.name:
            continue  # an exercise says it in its first cell
        assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))), path


def test_public_functions_are_documented():
    for path in (
        one for room in MAY_IMPORT if room != "solutions" for one in tracked(f"{room}/*.py")
    ):
        for node in public(ast.parse(path.read_text(encoding="utf-8"))):
            assert ast.get_docstring(node), f"{path.name}: {node.name}"


def public(tree: ast.Module | ast.ClassDef) -> Iterator[ast.FunctionDef | ast.ClassDef]:
    """Functions and classes that others may use, and the methods of those classes."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield node
            if isinstance(node, ast.ClassDef):
                yield from public(node)


def test_every_package_that_is_imported_is_a_requirement():
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    listed = {line.partition("==")[0].lower().replace("_", "-") for line in lines if "==" in line}
    known = packages_distributions()
    for path in tracked("*.py"):
        for name in imports(path) - OWN - sys.stdlib_module_names - {""}:
            owners = {one.lower().replace("_", "-") for one in known.get(name, [])}
            assert not owners or owners & listed, f"{path}: {name} of {owners}"


def test_every_package_is_installed_but_those_for_the_repository_alone():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    listed = settings["tool"]["setuptools"]["packages"]
    rooms = ("lab", "trainer", "autograder")
    found = [path.parent for room in rooms for path in tracked(f"{room}/*__init__.py")]
    assert sorted(listed) == sorted(".".join(one.relative_to(ROOT).parts) for one in found)


def test_requirements_are_pinned_exactly_and_say_why():
    for line in (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith(("#", "-e")):
            assert "==" in line and "#" in line, line
