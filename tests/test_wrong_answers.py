"""Wrong answers that once had full marks and are too odd to get a name: each loses points."""

import ast
from dataclasses import replace
from functools import cache

import pytest

from autograder.authoring.answers import Answer, answered, read_answers
from autograder.authoring.mutants import alone, run_tests
from autograder.authoring.source import Source, read_source
from autograder.common.course import Course
from tests.conftest import COURSE, ROOT

FOUND = [
    pytest.param(chapter, answer, id=f"{chapter[:2]}-{answer.name}")
    for chapter in COURSE.chapters()
    if (path := ROOT / "tests" / "wrong" / f"{chapter}.py").is_file()
    for answer in read_answers(path, read_source(COURSE.source(chapter)))
]


@cache
def helpers(chapter: str) -> str:
    """What the answers of a file use beside themselves: imports, tables and small functions."""
    tree = ast.parse((ROOT / "tests" / "wrong" / f"{chapter}.py").read_text(encoding="utf-8"))
    kept = [node for node in tree.body[1:] if not getattr(node, "decorator_list", [])]
    return "\n".join(map(ast.unparse, kept)) + "\n"


def with_helpers(source: Source, answer: Answer, chapter: str) -> Source:
    """The source with this answer, and what it uses above it."""
    cells = (
        replace(cell, source=helpers(chapter) + cell.source) if cell.id == answer.question else cell
        for cell in answered(source, [answer]).cells
    )
    return replace(source, cells=tuple(cells))


@pytest.mark.parametrize(("chapter", "answer"), FOUND)
def test_it_loses_points(course: Course, chapter: str, answer: Answer):
    source = read_source(course.source(chapter))
    failed = run_tests(with_helpers(alone(source, answer.question), answer, chapter))
    assert failed
    # one that lacks what it uses is caught by any test
    assert not [words for words in failed.values() if words.startswith("NameError")]
