"""Quizzes as they are written."""

import re

import pytest

from tests.book_code import boxes

QUIZ = ["- [ ] One", "  : Too few.", "- [x] Two", "  : Right. As many as", "    there are."]


def test_a_quiz_is_read_with_its_verdicts():
    one, two = boxes.read_options(QUIZ)
    assert (one.right, one.text, one.verdict) == (False, "One", "Too few.")
    assert (two.right, two.verdict) == (True, "Right. As many as there are.")


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (QUIZ[:2], "at least two answers, exactly one marked"),
        ([*QUIZ, "- [x] Three", "  : Also."], "exactly one marked"),
        ([QUIZ[0], *QUIZ[2:]], "the answer 'One' has no verdict"),
        (["Text", *QUIZ], "'Text' stands before the first answer"),
        ([*QUIZ, "* Three"], "is neither an answer"),
        ([*QUIZ, "  : Also."], "'  : Also.' is a second verdict"),
    ],
)
def test_a_quiz_that_is_not_written_so_is_refused(lines: list[str], says: str):
    with pytest.raises(ValueError, match=re.escape(says)):
        boxes.read_options(lines)
