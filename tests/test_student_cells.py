"""What the rules read of a notebook: found once for all questions, and bounded."""

import ast
import dis
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from autograder.common.syntax import parse
from autograder.judge import student_cells
from autograder.judge.assignment import read_assignment
from autograder.judge.broken_rules import Unread, broken_rules, unread
from autograder.judge.cells import NAMELESS
from autograder.judge.expressions import Dotted, TooMuch, aliases, bindings
from autograder.judge.given import needed_here
from autograder.judge.questions import own_script
from autograder.judge.reach import may_hold
from autograder.judge.rehearsal import prepare
from autograder.judge.rules import QuestionRules
from autograder.judge.space import compiled_cell
from autograder.judge.statement import Statement
from autograder.judge.student_cells import EACH, MOST_KEPT, cell
from autograder.judge.work import Work
from tests.small_course import NAME, make_course

FIRST = "import torch\n\ndef first(x): return helper(x)\n"
SECOND = "def second(x): return sorted(first(x))\n"
OTHERS = "def helper(x): return x + 1\nprint([first(x) for x in range(3)])\n"
RULES = [QuestionRules(("torch.softmax",)), QuestionRules(("sorted", ".sort"))]


def search() -> list[list[str]]:
    """What is found in both answers, as for one notebook."""
    found = []
    for answer, other, name, rules in (
        (FIRST, SECOND, "first", RULES[0]),
        (SECOND, FIRST, "second", RULES[1]),
    ):
        read = (answer, rules, [other, OTHERS], ["import math\n"], [name])
        found.append([hit.name for hit in broken_rules(*read)])
        assert unread(*read) == Unread(frozenset(), frozenset(), "")
    return found


def test_each_statement_is_walked_once_for_all_questions(monkeypatch: pytest.MonkeyPatch):
    begun: list[ast.AST] = []
    walk = ast.walk

    def counted(node: ast.AST):
        if isinstance(node, ast.Module):  # all of a statement, or of a cell
            begun.append(node)
        return walk(node)

    source = [text.replace("helper", "helped") for text in (FIRST, SECOND, OTHERS)]
    for name, text in zip(("FIRST", "SECOND", "OTHERS"), source, strict=True):
        monkeypatch.setitem(globals(), name, text)  # that nothing has read before
    monkeypatch.setattr(ast, "walk", counted)
    assert search() == [[], ["sorted"]]
    assert len(begun) <= 5 + 1, "five statements and the instructor's cell"
    begun.clear()
    assert search() == [[], ["sorted"]] and not begun


def test_where_nothing_is_forbidden_nothing_is_read(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(student_cells, "parse", lambda text: pytest.fail("it was read"))
    read = ("x = 1  # of its own", QuestionRules(), ["exec('1')"])
    assert broken_rules(*read) == () and not unread(*read).statements


def test_what_is_the_instructors_is_read_before_there_is_a_submission(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    assignment = read_assignment(make_course(tmp_path / "course").root / "source" / NAME)
    prepare(assignment)
    monkeypatch.setattr(ast, "parse", lambda *_: pytest.fail("it was read again"))
    (notebook,) = assignment.notebooks
    fork_server: Any = SimpleNamespace(head=())
    script = own_script(notebook, {}, set())
    work = Work(assignment, notebook, script, fork_server, None)
    names: dict[str, Any] = {"__name__": "__main__"}
    for step in script.cells:
        if given := work._given(step, needed_here(notebook)):
            exec(compiled_cell(given.source, given.grade_id or NAMELESS), names)
    assert script.cells
    looked_through: list[Any] = []
    monkeypatch.setattr(dis, "get_instructions", lambda code: looked_through.append(code) or [])
    for test in notebook.of_kind("test"):
        may_hold(names, frozenset(), test.source)
    monkeypatch.undo()
    assert not looked_through


def test_what_is_kept_is_bounded():
    made = []

    @student_cells.kept
    def length(text: str) -> int:
        made.append(text)
        return len(text)

    half = "x" * (MOST_KEPT // 2 - EACH)
    assert [length(text) for text in (half, half, "y" + half[1:], half)] == [len(half)] * 4
    assert len(made) == 2
    length("one more")
    assert length(half) == len(half) and len(made) == 4, "the oldest was given up"
    assert length("z" * 2 * MOST_KEPT) == 2 * MOST_KEPT


@pytest.mark.parametrize(
    "lines",
    [
        "".join(f"a = a.b{n}\n" for n in range(30)),  # each doubles what a stands for
        "".join(f"import b{n} as a\n" for n in range(5000)),
        "".join(f"a{n} = torch.nn.functional\n" for n in range(6000)),
    ],
)
def test_names_without_end_for_what_is_imported_are_not_followed(lines: str):
    text = f"import torch\na = torch\n{lines}"
    (hit,) = broken_rules("a.softmax(1)", RULES[0], [text], (), ["f"])
    assert "more names than can be followed" in hit.words
    assert not unread("a.softmax(1)", RULES[0], [text], (), ["f"]).statements
    with pytest.raises(TooMuch):
        aliases([bindings(ast.walk(parse(text) or ast.Module([], [])))])


def test_names_are_followed_through_assignments():
    text = "import torch as t, os.path\nfrom a import b\nc = t\nd: int = c.nn\n(e := d.x)\nf = 1\n"
    found = aliases([bindings(ast.walk(parse(text) or ast.Module([], [])))])
    names = {"t": "torch", "os": "os", "b": "a.b", "c": "torch", "d": "torch.nn", "e": "torch.nn.x"}
    assert found == {name: {origin} for name, origin in names.items()}


def only(source: str) -> Statement:
    """The one statement of a cell."""
    taken = cell(source)
    assert taken is not None
    (statement,) = taken.statements
    return statement


def test_what_a_statement_holds():
    found = only(
        "class A(B):\n    n = c\n    def f(self, x):\n        global g\n        g = x.y.z\n"
    )
    assert found.names == {"A", "g"} and found.own == {"A"} and found.members == {"n", "f"}
    assert found.uses == {"B": True, "c": True} and found.read == {"B", "c", "x"}
    assert found.attributes == {"y", "z"}
    assert found.dotted == {Dotted("x", "y"), Dotted("x", "y.z")}
    assert only("x.y[0] += z").names == {"x"} and set(only("x += y").uses) == {"x", "y"}


def test_a_cell_holds_the_modules_that_it_writes():
    taken = cell("n = 1\nopen('a.py', 'w').write('def f(): pass')\nopen('b', 'w').write('1 + 1')")
    assert taken is not None
    assert [one.own for _, module in taken.written for one in module] == [{"f"}]
    assert [one.files for one in taken.statements] == [set(), {"a"}, set()]
    assert cell("no python (") is None and student_cells.module("no python (") == ()
