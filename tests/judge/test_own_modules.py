"""What a module of the course's own does by a text is a way round the rules; nothing else is."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from autograder.judge.broken_rules import broken_rules, unread
from autograder.judge.own_modules import leads_round
from autograder.judge.rules import QuestionRules

SOLUTIONS = Path(__file__).parents[2] / "solutions"
RULES = QuestionRules(forbid=("torch.softmax",))
BY_A_TEXT = {"lab.translator.workshop"}  # it loads a student's own module, if that is there
MODULE = """\
from importlib import import_module
import pickle as p
from operator import attrgetter
from numpy import load
def plain(x): return getattr(x, "shape", ())
class Own:
    def all(self): return [getattr(self, name) for name in "ab"]
def run(text): return eval(text)
def ask(x, name): return getattr(x, name)
def far(x): return nearer(x)
def nearer(x): return ask(x, x)
def inside(name):
    import importlib as i
    return i.import_module(name)
def read(file): return p.load(file)
def numbers(file): return load(file)
def objects(file): return load(file, allow_pickle=True)
def getter(name): return attrgetter(name)
class Kind:
    def method(self, name): return import_module(name)
def same(ask): return ask(1)
"""


def found(answer: str) -> list[str]:
    """What breaks the rule in an answer."""
    return [hit.words for hit in broken_rules(answer, RULES, (), ("import torch",), ("f",))]


@pytest.mark.parametrize(
    "name",
    ["load_module(Path('x.py'))", "own(x, 'soft' + 'max')(-1)", "build(x, (1, 2), 3, 4, {})"],
)
def test_what_the_lab_loads_or_gets_by_a_text_is_a_way_round(name: str):
    use = f"from lab.assembled import {name.partition('(')[0]}\ndef f(x): return {name}"
    assert any("what it runs or reaches cannot be seen" in words for words in found(use))


def test_a_way_round_is_one_wherever_it_is_found_and_in_every_cell():
    assert found("import lab.translator\ndef f(x): return lab.translator.load_module(x).f")
    own = "from lab.assembled import load_module\nM = load_module(x)"
    assert "lab.assembled.load_module" in unread("def f(x): return x", RULES, (own,)).words


@pytest.mark.parametrize(
    "name", ["run", "ask", "far", "inside", "read", "objects", "getter", "Kind", "Kind.method"]
)
def test_the_text_of_an_instructors_module_is_read(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "own_by_text.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    assert leads_round(f"own_by_text.{name}")


@pytest.mark.parametrize("name", ["plain", "Own", "numbers", "same", "missing"])
def test_what_takes_no_text_is_none(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "own_by_text.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    assert not leads_round(f"own_by_text.{name}")


def taken() -> Iterator[str]:
    """What of the lab the chapters' own notebooks take."""
    for path in SOLUTIONS.glob("*/[0-9]*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and f"{node.module}".startswith("lab."):
                yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_what_the_notebooks_take_of_the_lab_may_be_used():
    names = {*taken()}
    assert len(names) > 50
    assert {name for name in names if leads_round(name)} == BY_A_TEXT
