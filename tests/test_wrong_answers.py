"""Wrong answers that once had full marks and are too odd to get a name: each loses points."""

import pytest

from autograder.authoring.answers import Answer, answered, read_answers
from autograder.authoring.mutants import alone, run_tests
from autograder.authoring.source import read_source
from autograder.common.course import Course
from tests.conftest import COURSE, ROOT

FOUND = [
    pytest.param(chapter, answer, id=f"{chapter[:2]}-{answer.name}")
    for chapter in COURSE.chapters()
    if (path := ROOT / "tests" / "wrong" / f"{chapter}.py").is_file()
    for answer in read_answers(path, read_source(COURSE.source(chapter)))
]


@pytest.mark.parametrize(("chapter", "answer"), FOUND)
def test_it_loses_points(course: Course, chapter: str, answer: Answer):
    source = read_source(course.source(chapter))
    assert run_tests(answered(alone(source, answer.question), [answer])) != {}
