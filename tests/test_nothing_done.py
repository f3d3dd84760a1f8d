"""An answer that computes nothing earns nothing, but for what a class holds and for predictions."""

import ast

import pytest

from autograder.authoring.mutants import alone, run_tests
from autograder.authoring.source import Cell, Source, fill_in, read_source
from autograder.common.course import Course

NOTHING = {
    "what it is given": "return {first}",
    "zeros in its place": "return torch.zeros_like({first})",
    "one zero": "return torch.zeros(1)",
    "the number 0": "return 0",
    "twice what it is given": "return {first} * 2",
}
HELD = ("-parts", "-parameters", "-layers", "-size")  # tests of what an object of a class holds


def idle(cell: Cell, kind: str) -> Cell | None:
    """The cell, its functions and methods in place of which nothing is done; None without any."""
    tree, found = ast.parse(cell.source), False
    for node in tree.body:
        parts = node.body if isinstance(node, ast.ClassDef) else [node]
        for part in parts:
            if isinstance(part, ast.FunctionDef) and not part.name.startswith("_"):
                names = [one.arg for one in part.args.args if one.arg != "self"]
                text = NOTHING[kind].format(first=names[0] if names else "None")
                part.body, found = ast.parse(f"def f():\n    {text}").body[0].body, True  # type: ignore[attr-defined]
    return fill_in(cell, ast.unparse(tree)) if found else None


@pytest.mark.parametrize("kind", NOTHING)
def test_an_answer_that_does_nothing_earns_nothing(course: Course, chapter: str, kind: str):
    source = read_source(course.source(chapter))
    passed = []
    for cell in source.of_kind("solution"):
        done = idle(cell, kind)
        if done is None or cell.id.startswith("predicted"):
            continue
        question = alone(source, cell.id)
        cells = [done if one.id == cell.id else one for one in question.cells]
        failed = run_tests(Source(source.path, tuple(cells), source.digest))
        own = (test.id for test in source.of_kind("test") if _solution(source, test) == cell.id)
        passed += [test for test in own if test not in failed and not test.endswith(HELD)]
    assert passed == []


def _solution(source: Source, test: Cell) -> str:
    """The solution that a test is about: its id begins so."""
    ids = [one.id for one in source.of_kind("solution") if test.id.startswith(f"{one.id}-")]
    return max(ids, key=len, default="")
