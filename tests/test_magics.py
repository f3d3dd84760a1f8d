"""Cells are read as IPython reads them: prompts, and the code that magics run."""

import ast
import random
import sys

import pytest
from IPython.core.inputtransformer2 import TransformerManager

from autograder.common import magics
from autograder.common.plain_python import LONGEST
from autograder.common.scopes import facts
from autograder.common.syntax import parse, read
from autograder.judge.broken_rules import broken_rules, unread
from tests.rule_breaks import LAST, OWN, READY, RULES, SETUP, broken


def as_prompts(text: str) -> str:
    """A cell as it looks when it is copied from a Python session."""
    first, *rest = text.split("\n")
    return "\n".join([f">>> {first}", *(f"... {line}" for line in rest)])


def as_session(text: str) -> str:
    """A cell as it looks when it is copied from an IPython session."""
    first, *rest = text.split("\n")
    return "\n".join([f"In [12]: {first}", *(f"    ...: {line}" for line in rest)])


def indented(text: str) -> str:
    """A cell that is indented as a whole."""
    return "\n".join(f"    {line}" for line in text.split("\n"))


@pytest.mark.parametrize("written", [as_prompts, as_session, indented])
def test_a_cell_that_only_a_notebook_takes_is_read(written):
    assert broken(written(READY)) == ["torch.softmax"]
    assert broken(written(READY), names=("f",)) == ["torch.softmax"]
    assert broken(written(OWN), names=("f",)) == []
    assert broken("def f(x): return g(x)", written(READY.replace("f(", "g("))) == ["torch.softmax"]
    assert facts(written(OWN)).bound == {"f"}


RUN = [
    "%time {}",
    "x = %time {}",
    "x = %timeit -n 10 -r 3 -o {}",
    "%timeit -n10 -q {}",
    "%prun -s cumulative -l 5 {}",
    "%time --no-raise-error {}",
    "%time %time {}",
    "if True:\n    if True:\n        %time y = {}\n    %time z = 1",
    "def g(y):\n    x = %time {}\n    return x\ng(1)",
    "%%time\n{}",
    "%%timeit -n 5 k = {}\nk",
    "%%timeit k = 1\n{}",
    "%%capture out\n%time {}",
    "%%prun -q {}\n1",
    "%%prun\n{}",
    "\n\n  %%time\n  {}",
    "time y = {}",
    "%precision {{{}}}",
    "%config IPCompleter.greedy = {}",
    "files = !ls {{{}}}",
    "%time \\\n  {}",
    "/print {}",
]


@pytest.mark.parametrize("cell", RUN)
def test_the_code_of_a_magic_is_read(cell: str):
    assert broken(cell.format("torch.softmax(x,-1)")) == ["torch.softmax"]
    assert broken(cell.format("torch.exp(x)")) == []


def test_code_that_a_magic_does_not_run_is_not_read():
    for cell in ("%%bash\nsum(1)", "%pip install sum(1)", "%%html\nsum(1)", "!sum(1)", "sum?"):
        assert broken(cell) == [], cell


@pytest.mark.parametrize(
    "cell",
    [
        "%config InlineBackend.figure_format = 'retina'",
        "%%writefile a.py\nx = 1",
        "%%capture\n%%writefile a.py\nx = 1",
        "!ls {folder}",
        "%matplotlib {backend}",
        "%%bash\nls",
    ],
)
def test_what_a_magic_does_in_passing_is_done_by_nobody_who_only_runs_the_code(cell: str):
    """The instructor's cells run beside the tests, where there are no files and no shell."""
    tree = parse(cell)
    assert tree is not None
    assert all(isinstance(node, ast.Pass) for node in tree.body)
    assert facts(cell).needed == facts(cell).bound == frozenset()


def test_a_statement_keeps_its_line():
    hits = broken_rules("\n%who\n!ls \\\n  -l\n%time y = sum(x)", RULES)
    assert [hit.line for hit in hits] == [5]
    assert [hit.line for hit in broken_rules("%%time\n1\nsum(x)", RULES)] == [3]


# Pieces of cells, each begins after a |
PIECES = """x = 1
|    y = 2
|if x:
|def f(a):
|%time z = 3
|    %time w = 4
|!ls
|        !ls \\
  -l
|v = %time 5
|u = !ls
|'''
|(
|)
|% 24
|x?
|%%time
|>>> a
|... b
|In [1]: c
|   ...: d
|
|\t
|# %who
|?x
|/f a b
|,f a b
|x = 'a
|f(x,
  %time)
|else:
|%
|x = %
|\\
|@f
"""


def _dumped(text: str | None) -> str:
    tree = None if text is None else parse_plain(text)
    return "" if tree is None else ast.dump(tree)


def parse_plain(text: str) -> ast.Module | None:
    """The tree of what is Python already."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):
        return None


def test_prompts_and_magics_are_found_where_ipython_finds_them():
    drawn, same, pieces = random.Random(3), 0, PIECES.split("|")
    for _ in range(1500):
        cell = "".join(drawn.choices(pieces, k=drawn.randrange(1, 9)))
        try:
            wanted = _dumped(TransformerManager().transform_cell(cell))
        except Exception:  # noqa: BLE001  (then the notebook does not run it)
            wanted = ""
        if sys.version_info >= (3, 12) and not wanted:
            continue  # its tokens end where this can still be read on, and nothing of it runs
        lines, _ = magics._cleaned(cell)
        found = "".join(lines) if magics._cell_call(lines) else magics._plain(lines)
        if not magics._cell_call(lines):
            assert _dumped(found) == wanted, cell
            same += bool(wanted)
    assert same > 150


def test_what_is_too_long_or_too_deep_to_be_read_is_no_answer():
    deep = "x = " + "-" * 90_000 + "1\n"
    for more in (deep, "#" * LONGEST + "\n", "a" + ".a" * 300 + "\n", f"%time {deep}"):
        (hit,) = broken_rules(f"{more}{READY}", RULES)
        assert "too long, or nested too deep" in hit.words
        assert read(more)[1]
        found = unread("def f(x): return g(x)", RULES, ("1", more), (SETUP,), ["f"], LAST)
        assert found.statements == {(1, -1)}
    assert broken("def f(:\n sum") == [] and not read("def f(:")[1]
