"""What is said of a failure: the right words for a student, and nothing of a hidden test."""

import math
from dataclasses import replace

import pytest
import torch

from autograder.common.results import PASSED_ON, Crossing, Opaque, Raised, TestRun
from autograder.judge.diagnose import claim_of, told
from autograder.judge.differences import Kept, call_in_words, in_words, kept, same
from tests.judge.runs import (
    SECRET,
    SOURCE,
    Cell,
    run,
    tensor,
    verdict,
)


@pytest.mark.parametrize(
    ("theirs", "ours", "equal"),
    [
        (tensor(1, 2), tensor(1, 2 + 1e-9), True),
        (tensor(1, 2), tensor(1, 2 + 1e-4), False),
        (tensor(1, 2, dtype=torch.float32), tensor(1, 2.00001, dtype=torch.float32), True),
        (tensor(1, math.nan), tensor(1, math.nan), True),
        (tensor(1, math.inf), tensor(1, math.inf), True),
        (tensor(1, math.inf), tensor(1, -math.inf), False),
        (tensor(1, dtype=torch.float32), tensor(1), False),
        (tensor(1).numpy(), tensor(1), False),
        (tensor(1).requires_grad_(), tensor(1), False),
        (torch.tensor(1.0), 1.0, False),
        (tensor(1).bfloat16(), tensor(1).bfloat16(), True),
        (1, 1.0, True),
        (1, True, False),
        (10**400, 1.0, False),
        (math.nan, math.nan, True),
        ([1, (2, tensor(3))], [1, (2, tensor(3))], True),
        ([1, 2], (1, 2), False),
        ({"a": tensor(1)}, {"a": tensor(2)}, False),
        ({1, 2}, {2, 1}, True),
        (Raised("ValueError", "one"), Raised("ValueError", "another"), True),
        (Raised("ValueError", ""), Raised("TypeError", ""), False),
        (Opaque("function", "A"), Opaque("function", "B"), True),
        (torch.float32, torch.float64, False),
        (torch.Size([2]), torch.Size([2]), True),
    ],
)
def test_outcomes_are_equal_within_rounding_and_in_kind(theirs, ours, equal):
    assert same(kept(theirs), kept(ours)) is equal


@pytest.mark.parametrize(
    ("theirs", "ours", "words"),
    [
        (None, tensor(1), "Yours is None: is a return statement missing?"),
        ([1.0], tensor(1), "Yours is a list, expected a torch.Tensor."),
        (torch.ones(2, 5), torch.ones(2, 5, 5), "Yours has shape (2, 5), expected (2, 5, 5)."),
        (
            torch.arange(6.0).reshape(2, 3),
            torch.arange(6.0).reshape(2, 3).T,
            "Yours has shape (2, 3), expected (3, 2). Yours is the transpose of what it should be "
            "(last two axes swapped).",
        ),
        (
            tensor(1, dtype=torch.float32),
            tensor(1),
            "Yours has dtype torch.float32, expected torch.float64.",
        ),
        (
            tensor(1, math.nan, math.nan),
            tensor(1, 2, 3),
            "Yours is NaN (not a number) at index [1] (2 of 3 entries).",
        ),
        (
            tensor(1, math.inf),
            tensor(1, 2),
            "Yours is infinite at index [1] (1 of 2 entries).",
        ),
        (
            tensor(2, 4, 6),
            tensor(1, 2, 3),
            "First difference at index [0] (3 of 3 entries): yours 2, expected 1. "
            "Everything is 2 times what it should be.",
        ),
        (
            torch.tensor(2.0),
            torch.tensor(3.0),
            "First difference (a single number): yours 2, expected 3.",
        ),
        (
            (1, tensor(1)),
            (1, tensor(3)),
            "In item 1 of the result: First difference at index [0] (1 of 1 entries): yours 1, "
            "expected 3.",
        ),
        ({"a": 1}, {"b": 1}, "Yours lacks the entry 'b'."),
        ([1], [1, 2], "Yours has length 1, expected 2."),
        (3, 4, "Yours is 3, expected 4."),
        (1, Raised("ValueError", ""), "Expected a ValueError; nothing was raised."),
        (
            tensor(1),
            tensor(1).requires_grad_(),
            "The numbers are right, but no gradient goes through them (detach or no_grad?).",
        ),
    ],
)
def test_a_difference_is_put_in_words(theirs, ours, words):
    assert in_words(kept(theirs), kept(ours)) == words


def test_without_numpy_values_are_still_compared(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(__import__("sys").modules, "numpy", None)
    one, other = kept(tensor(1, 2)), kept(tensor(1, 3))
    assert isinstance(one, Kept) and one.numbers == [1.0, 2.0]
    assert not same(one, other) and "not as expected" in in_words(one, other)


@pytest.mark.parametrize(
    ("status", "error", "message", "words"),
    [
        ("unanswered", "NotImplementedError", "", "Not answered yet."),
        ("unanswered", "NameError", "", "The answer is missing"),
        ("timeout", "", "more than 20 seconds", "did not finish in time: more than 20 seconds"),
        (
            "died",
            "",
            "killed by signal 9 (KILL)",
            "ended the process in which it was tested: killed",
        ),
        ("forbidden", "", "calls `torch.softmax`", "not allowed here: calls `torch.softmax`"),
        ("test-error", "KeyError", "x", "no fault of yours"),
        ("failed", "TypeError", "no len()", "the test stopped with TypeError: no len()"),
        ("failed", "AssertionError", "", "A test failed."),
        ("failed", "NameError", "name 'total' is not defined", "needs total, which is not defined"),
    ],
)
def test_what_ended_a_test_is_said(status, error, message, words):
    said = verdict(run(status=status, error=error, message=message)).told
    assert words in said


def test_a_visible_claim_comes_with_its_details():
    said = verdict(run(3, message="the sum of one number is that number\nYours is 3."), 1)
    assert said.told == "the sum of one number is that number. Yours is 3."


def test_a_bare_assertion_is_explained_by_the_first_difference():
    assert verdict(run(3), 1).told == "total: Yours is 3, expected 1."


def test_of_the_reference_only_what_it_gives_in_the_visible_part_is_told():
    hidden = Crossing("total", (), SECRET, hidden=True)
    reference = (Crossing("total", (), 1), hidden, replace(hidden, outcome=SECRET + 1))
    for theirs in ((1, 7), (1, 1, 7), (0, 0, 7)):
        said = told(run(*theirs), Cell(), reference, ())
        assert str(SECRET)[:-1] not in said.told
        assert said.told == ("A test failed." if theirs[0] else "total: Yours is 0, expected 1.")
        assert str(SECRET)[:-1] in said.said or not theirs[0]


def test_what_a_tests_own_function_raised_is_told_in_its_own_words():
    passed_on, words = Opaque(PASSED_ON, "TypeError"), "unsupported operand"
    of = replace(run(passed_on), error="TypeError", message=words)
    assert verdict(of, 7.0).told == (
        "A function that your code was handed could not use what it was called with: TypeError: "
        + words
    )
    assert (
        "stopped with the Own that the test's own function raised"
        in verdict(run(Opaque(PASSED_ON, "Own")), 7.0).told
    )
    refused = replace(run(Opaque(PASSED_ON, "PermissionError")), error="PermissionError")
    assert verdict(replace(refused, message="no"), 7.0).told == (
        "Your code stopped with PermissionError: no"
    )


def test_what_was_called_goes_by_a_plain_name():
    label = "Ranker|Ranker.add()|Ranker|Ranker.add().add().ranking"
    of, right = (Crossing(label, (), outcome) for outcome in ([2], [2, 3]))
    assert call_in_words(of, right).startswith("Ranker.ranking: ")
    assert call_in_words(replace(of, what="f"), right).startswith("f: ")
    assert call_in_words(replace(of, what="a|b.c"), right).startswith("a.c: ")
    assert call_in_words(replace(of, what="get a.b"), right).startswith("a.b: ")


def test_changed_arguments_are_told():
    one = run()
    calls = (Crossing("total", (), 3, ("list",)),)
    said = told(TestRun(one.test, "failed", 0.0, transcript=calls), Cell(), run(3).transcript, ())
    assert said.told == "total changed what it was handed (list) in place."


def test_the_line_that_stopped_is_quoted_from_his_own_answer():
    raised = Raised("ValueError", "bad shape", line=2, cell="total")
    answers = {"total": "def total(x):\n    return x.sum(9)"}
    said = verdict(run(raised, status="error", raised=raised), 1, answers=answers).told
    assert said == (
        "Your code stopped with ValueError: bad shape (line 2 of your answer: `return x.sum(9)`)."
    )


def test_nothing_but_the_claim_is_told_of_a_hidden_test():
    message = f"the sum of three\nYours is {SECRET}, expected 5."
    said = verdict(run(SECRET, message=message, in_hidden=True), 5)
    assert (said.told, said.hidden) == ("the sum of three", True)


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (f"looking up {SECRET} should work", "looking up … should work"),
        (f"{SECRET} came in", "A hidden test failed."),
        ("the secret input", "A hidden test failed."),
    ],
)
def test_of_a_hidden_message_only_its_authors_words_are_told(message, words):
    assert verdict(run(1, message=message, in_hidden=True), 5).told == words


@pytest.mark.parametrize(
    ("claim", "message", "words"),
    [
        ("{a}: rows {b} {c} sum to {d}", "x: rows 1 2 sum to 5", "rows … sum to …"),
        ("the sum of {a}, {b} is wrong", "the sum of 3, 4 is wrong", "the sum of …, … is wrong"),
    ],
)
def test_values_that_a_hidden_claim_leaves_out_are_marked(claim, message, words):
    assert claim_of(message, f'assert 0, f"{claim}"', hidden=True) == words


def test_of_an_exception_in_a_hidden_test_neither_text_nor_type_is_told():
    for name in (f"Leak{SECRET}", "ValueError", "NameError", "ZeroDivisionError"):
        raised = Raised(name, f"{SECRET}", 2, "total", ("ValueError", "Exception"))
        stopped = run(raised, status="error", raised=raised, error=name, in_hidden=True)
        said = verdict(stopped, 1, answers={"total": "a\nraise leak(x)"}).told
        assert said == (
            "Your code stopped with an error in a hidden test. "
            "Try it with inputs of your own, edge cases among them."
        )
        unanswered = replace(stopped, status="unanswered")
        assert verdict(unanswered, 1).told == "Not answered yet."


def test_what_is_not_written_yet_is_told_in_a_hidden_test_too():
    for raised in (
        Raised("NotImplementedError", f"{SECRET}"),
        Raised("Later", "", bases=("NotImplementedError", "RuntimeError", "Exception")),
    ):
        said = verdict(run(raised, status="error", raised=raised, in_hidden=True), 1).told
        assert said == (
            "A part of your answer is not written yet: your code stopped with NotImplementedError "
            "in a hidden test."
        )


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (f"looking up {SECRET} should work", "looking up … should work"),
        (f"the sum of three\nYours is {SECRET}.", "the sum of three"),
        ("", "A test failed."),
    ],
)
def test_where_the_reference_stood_in_no_value_is_told(message, words):
    said = verdict(run(SECRET, message=message, stood_in=("pick",)), 5)
    assert (said.told, said.hidden) == (words, False)
    for error in ("KeyError", "TypeError"):
        said = verdict(run(SECRET, error=error, message=f"{SECRET}", stood_in=("pick",)), 5)
        assert said.told == "A test failed."
    raised = Raised("ValueError", f"{SECRET}", 1, "total")
    said = verdict(run(raised, status="error", raised=raised, stood_in=("pick",)), 5)
    assert said.told.startswith("Your code stopped with an error. Try it")


def test_the_end_of_a_process_cannot_carry_a_value_out_of_a_hidden_test():
    for message in ("exited with status 37", "was killed by signal 37"):
        died = run(status="died", error="", message=message, in_hidden=True)
        assert "37" not in verdict(died).told
        assert verdict(died).told == "Your code ended the process in which it was tested."
        assert message in verdict(replace(died, in_hidden=False)).told


def test_what_a_file_cannot_hold_is_left_out():
    said = verdict(run(status="timeout", message="\x1b[31mred\x1b[0m\x00\ud800"))
    assert "red" in said.told and not {"\x1b", "\x00", "\ud800"} & set(said.told)


def test_claims_are_found_in_loops_but_not_among_inputs():
    assert claim_of("the sum of four numbers", SOURCE, hidden=True) == "the sum of four numbers"
    assert claim_of("the secret input", SOURCE, hidden=True) == ""
