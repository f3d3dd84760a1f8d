"""Tests that compute what they expect from an answer's own numbers look at these numbers first."""

import pytest

from autograder.authoring.building import build_instructor
from autograder.authoring.source import read_source
from autograder.common.course import Course
from autograder.isolation.fork_server import ForkServer
from autograder.judge.assignment import read_assignment
from autograder.judge.rehearsal import runs

NO_PLACES = (  # a table of zeros, of which no row is looked for
    ("PositionalEncoding(encoding, dropout)", "PositionalEncoding(0 * encoding, dropout)"),
    (", offset)", ")"),
)


@pytest.mark.parametrize(
    ("chapter", "question"),
    [("12_language_model", "language-model"), ("13_pictures", "captioner")],
)
def test_a_model_without_positions_is_wrong_though_its_table_says_so_too(
    course: Course, chapter: str, question: str, open_fork_server: ForkServer
):
    answer = read_source(course.source(chapter)).solution(question).source
    for right, wrong in NO_PLACES:
        assert right in answer
        answer = answer.replace(right, wrong)
    assignment = read_assignment(build_instructor(course, chapter).parent)
    went = runs(assignment, {question: answer}, open_fork_server, [question])
    values = went[f"{question}-values"]
    assert values.status == "failed" and values.in_hidden, values
    assert "the table that is handed in" in values.message
