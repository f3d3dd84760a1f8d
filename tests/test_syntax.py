"""Facts about a cell's text: the same as Python's own tables give, and for any text whatsoever."""

import ast
import random
import subprocess
import symtable
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from autograder.common.plain_python import LONGEST, without_magics
from autograder.common.scopes import Facts, facts
from autograder.common.syntax import (
    awaits,
    made_by_statement,
    parse,
    top_level_names,
    without_statements,
)

HERE = Path(__file__).parents[1]
ROOMS = ("autograder", "lab", "trainer", "benchmarks")
OURS = [path for room in ROOMS for path in (HERE / room).rglob("*.py")]
PYTHONS = [Path(ast.__file__).with_name(f"{name}.py") for name in ("ast", "typing", "enum", "os")]


def _facts(bound: str = "", needed: str = "") -> Facts:
    return Facts(frozenset(bound.split()), frozenset(needed.split()), star=False)


def _tables(source: str) -> tuple[set[str], set[str]]:
    """Names that a text binds at its top level, and all globals that it reads, by Python itself."""
    top = symtable.symtable(source, "text", "exec")
    bound: set[str] = set()
    read: set[str] = set()
    todo = [top]
    while todo:
        table = todo.pop()
        if table is not top and table.get_name() == "top":
            pytest.skip("Python takes a function of this name for the whole text")
        for symbol in table.get_symbols():
            name, is_global = symbol.get_name(), table is top or symbol.is_global()
            if name == "__class__":  # `super()` in a function reads it, and no cell binds it
                continue
            if is_global and symbol.is_referenced():
                read.add(name)
            if is_global and (symbol.is_assigned() or symbol.is_imported()):
                bound.add(name)
            if is_global and (symbol.is_namespace() or symbol.is_declared_global()):
                bound.add(name)
        todo += table.get_children()
    return bound, read


def _promised(source: str) -> set[str]:
    """Names of which Python's tables say more than is so.

    They do not ask whether what has a type has a value; and since Python 3.12 they hold the
    variables of comprehensions, as if these were bound outside.
    """
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
        if isinstance(node, ast.comprehension) and sys.version_info >= (3, 12):
            names = (one for one in ast.walk(node.target) if isinstance(one, ast.Name))
            found |= {one.id for one in names}
    return found


@pytest.mark.parametrize("path", [*OURS, *PYTHONS], ids=lambda path: path.name)
def test_the_same_names_as_in_pythons_own_tables(path: Path):
    source = path.read_text(encoding="utf-8").replace("from __future__ import annotations", "")
    bound, read = _tables(source)
    known = facts(source)
    assert known.bound ^ bound <= _promised(source)
    assert known.needed <= read
    assert read - bound <= known.needed


SLIPS = {
    "a doubled argument": ("def f(a, a):\n    return a + b", "f", "b"),
    "a doubled argument of a lambda": ("g = lambda a, a: 1", "g", ""),
    "global after its use": ("def f():\n    COUNT += 1\n    global COUNT", "f COUNT", ""),
    "global of an argument": ("def f(a):\n    global a\n    return b", "f a", "b"),
    "nonlocal at the top": ("nonlocal x\ny = z", "y", "z"),
    "nonlocal of nothing": ("def f():\n    nonlocal x\n    return x", "f", "x"),
    "nonlocal and global": ("def f():\n    nonlocal x\n    global x", "f x", ""),
    "an import of * in a function": ("def f():\n    from math import *\n    return pi", "f", "pi"),
    "return outside": ("x = y\nreturn x", "x", "y"),
    "yield outside": ("yield x", "", "x"),
    "await outside": ("x = await y", "x", "y"),
    "break outside": ("break\nx = y", "x", "y"),
    "a huge number": (f"def f():\n    return 0x{'f' * 5000} + b", "f", "b"),
    "a late import from the future": (
        "x = 1\nfrom __future__ import annotations",
        "x annotations",
        "",
    ),
    "a walrus in a class's list": ("class A:\n    x = [y := 1 for z in w]", "A", "w"),
    "a walrus over its own variable": ("x = [a := 1 for a in b]", "x a", "b"),
    "two stars": ("*a, *b = c", "a b", "c"),
    "a type twice": ("def f():\n    x: int\n    global x", "f x", "int"),
    "a bare star": ("x = *a", "x", "a"),
    "a name twice in a pattern": ("match a:\n    case [b, b]: c = b", "b c", "a"),
    "a name that is none": ("def f():\n    __debug__ = 1", "f", ""),
}


@pytest.mark.parametrize("slip", SLIPS)
def test_what_only_the_compiler_refuses_has_its_names(slip: str):
    source, bound, needed = SLIPS[slip]
    with pytest.raises((SyntaxError, ValueError)):
        ast.unparse(ast.parse(source))  # a number may be too long to be written down again
        compile(source, "cell", "exec")
    assert facts(source) == _facts(bound, needed)


ORDERS = {
    "a function is called later": ("def f(): return late\nlate = 1", "f late", ""),
    "a class runs now": ("class A:\n    x = late\nlate = 1", "A late", "late"),
    "its functions do not": ("class A:\n    def f(self): return late\nlate = 1", "A late", ""),
    "nor see its names": ("class A:\n    x = 1\n    def f(self): return x", "A", "x"),
    "a default runs now": ("def f(a=late): pass\nlate = 1", "f late", "late"),
    "around a function": ("def f(a):\n    def g(): return a, b\n    return g", "f", "b"),
    "global hides what is around": (
        "def f(a):\n    def g():\n        global a\n        return lambda: a\n    return a",
        "f a",
        "",
    ),
    "a list's own variable": ("x = [a for a in b if c]", "x", "b c"),
    "the same name before it": ("x = [a for a in a]", "x", "a"),
    "a walrus in it": ("x = [y := a for a in b]\ny", "x y", "b"),
    "a walrus in a function's list": ("def f(b): return [y := a for a in b], y", "f", ""),
    "a lambda's walrus": ("x = lambda: (y := 1) + y", "x", ""),
    "what a function deletes is its own": ("def f():\n    del x\n    return x", "f", ""),
    "added to": ("x += 1", "x", "x"),
    "a type only": ("x: int", "", "int"),
    "named like the tables' own": ("def top(a):\n    return a", "top", ""),
}


@pytest.mark.parametrize("order", ORDERS)
def test_names_in_the_order_in_which_they_are_read(order: str):
    source, bound, needed = ORDERS[order]
    assert facts(source) == _facts(bound, needed)


def test_a_long_sum_is_read_like_a_short_one():
    assert facts("x = " + " + ".join(f"a{n}" for n in range(900))).needed == {
        f"a{n}" for n in range(900)
    }


MAGICS = {
    "%matplotlib inline\nx = 1": "pass\nx = 1",
    "x = (31\n    % 24)": "x = (31\n    % 24)",
    "!ls\nx = (31\n    % 24)\ny = (x\n    != 3)": "pass\nx = (31\n    % 24)\ny = (x\n    != 3)",
    'x = """\n%s, %d\n! no\n"""': 'x = """\n%s, %d\n! no\n"""',
    "%time\ns = '''\n!ls\n'''": "%time\n".replace("%time", "pass") + "s = '''\n!ls\n'''",
    "%time y = 2": "y = 2",
    "files = !ls\nx = 2": "files = None\nx = 2",
    "!ls \\\n  -l\nx = 2": "pass\n\nx = 2",
    "x = 1 + \\\n  2\n%who": "x = 1 + \\\n  2\npass",
    "if x:\n    %who\nprint('# [')\n!ls": "if x:\n    pass\nprint('# [')\npass",
    "print?\nx = 2  # (\n!ls": "print\nx = 2  # (\npass",
    "%%bash\nrm x": "",
    "%%time\nx = 1": "pass\nx = 1",
    'a = """%s\u2028%d"""\n%who': 'a = """%s\u2028%d"""\npass',
}


@pytest.mark.parametrize("source", MAGICS)
def test_magics_are_taken_out_where_a_statement_begins(source: str):
    assert without_magics(source) == MAGICS[source]
    assert parse(source) is not None


# Each is built of one part, as often as a cell has room for it.
HUGE = {
    "brackets": "(",
    "closed brackets": "()" * 100,
    "minus": "-",
    "not": "not ",
    "attributes": "a.",
    "calls": "a(",
    "lambdas": "lambda: ",
    "assignments": "a=",
    "and": "a and ",
    "sums": "1+",
    "comparisons": "1<",
    "subscripts": "a[0][",
    "else": "1 if 1 else ",
    "functions": "def f(): pass\n",
    "decorators": "@a\n",
    "nested f-strings": 'f"{',
    "f-string fields": "{a}",
    "stars": "*a, ",
    "patterns": "|1",
    "statements": "a;",
    "an import": "a.",
    "a walrus": "(a:=",
    "lists": "[a for a in ",
    "fors": " for a in a",
    "semicolons": ";",
    "backslashes": "\\\n",
    "percents": "%",
    "timers": "%timeit ",
    "questions": "a?",
    "commas": "a,",
    "spaces": " ",
    "equals": "= ",
    "lines": "!ls\n",
    "broken quotes": '""" \\',
    "quotes": "'\n\"\n",
    "forms": "\x0c",
}
BEFORE = ["", "import ", "%x\n"]
MEASURED = """
import resource, sys, time
from autograder.common.plain_python import without_magics
from autograder.common.scopes import facts
from autograder.common.syntax import awaits, parse, top_level_names
resource.setrlimit(resource.RLIMIT_AS, (600_000_000, 600_000_000))
for part, before in eval(sys.stdin.read()):
    source = before + part * (60_000 // len(part))
    start = time.process_time()
    facts(source)
    without_magics(source)
    tree = parse(source)
    if tree is not None:
        top_level_names(tree), awaits(tree)
    spent = time.process_time() - start
    assert spent < 30, (part, before, spent)
print("done")
"""


@pytest.mark.parametrize("before", BEFORE)
def test_any_long_text_is_read_in_bounded_time_and_memory(before: str):
    cases = repr([(part, before) for part in HUGE.values()])
    command = [sys.executable, "-c", MEASURED]
    done = subprocess.run(command, input=cases, capture_output=True, text=True, cwd=HERE)
    assert done.stdout == "done\n", done.stderr[-2000:]


def test_an_import_of_a_name_without_end_is_no_python():
    """The parser would keep every beginning of it, ten gigabytes of them."""
    assert parse("import " + "a." * 99_000 + "a") is None
    assert parse("import " + "a\\\n." * 9_000 + "a") is None
    assert parse("import autograder.bridge . \\\n student") is not None


def test_what_is_longer_than_a_cell_may_be_is_no_python():
    assert parse("#" * LONGEST) is not None
    assert parse("#" * (LONGEST + 1)) is None


def _noise(random_: random.Random) -> Iterator[str]:
    """Slices of Python text put together anew, and characters that stand in no program."""
    sources = [path.read_text(encoding="utf-8") for path in [*OURS[:20], *PYTHONS]]
    sources += [*HUGE.values(), *(source for source, _, _ in [*SLIPS.values(), *ORDERS.values()])]
    odd = "\0\ud800\ufeff\x0c\r\n\u2028\x1c%!?=\\'\"#([{}]):\t ａ"
    for _ in range(400):
        pieces = []
        for _ in range(random_.randrange(1, 6)):
            source = random_.choice(sources)
            start = random_.randrange(len(source))
            pieces.append(source[start : start + random_.choice([3, 30, 300, 3000])])
            pieces.append("".join(random_.choices(odd, k=random_.choice([0, 0, 1, 3]))))
        yield "".join(pieces)
        yield bytes(random_.randrange(256) for _ in range(40)).decode("latin-1")
        lines = source.splitlines()
        yield "\n".join(random_.sample(lines, min(len(lines), 6)))


def test_noise_gives_facts_and_nothing_else():
    found = 0
    for source in _noise(random.Random(10)):
        assert isinstance(facts(source), Facts)
        assert isinstance(without_magics(source), str)
        tree = parse(source)
        found += tree is not None
        if tree is not None:
            assert all(isinstance(name, str) for name in top_level_names(tree))
            assert awaits(tree) in (True, False)
    assert found > 100


@pytest.mark.skipif(sys.version_info < (3, 12), reason="type parameters are new in Python 3.12")
def test_type_parameters_are_names_of_their_definition():
    source = "def f[T: Base](x: T) -> T: return T\nclass A[S](B[S]):\n    x: S\ntype C[U] = U | D"
    assert facts(textwrap.dedent(source)) == _facts("f A C", "Base B D")


@pytest.mark.parametrize(
    ("cell", "made"),
    [
        ("x = 1\ny = [\n    2\n]", [("x", [0]), ("y", [1, 2, 3])]),
        ("%time x = 1\ny = 2", [("x", [0]), ("y", [1])]),
        ("%%time\nx = 1\ny = 2", [("x", [1]), ("y", [2])]),
        ("a = !ls\nx = (3\n% 2)", [("a", [0]), ("x", [1, 2])]),
    ],
)
def test_statements_stand_where_they_do_whatever_magics_are_around_them(
    cell: str, made: list[tuple[str, list[int]]]
):
    found = [(" ".join(one.names), [*one.lines]) for one in made_by_statement(cell)]
    assert found == made
    lines = cell.split("\n")
    left = ["" if number in made[0][1] else line for number, line in enumerate(lines)]
    assert without_statements(cell, {made[0][0]}) == "\n".join(left)
