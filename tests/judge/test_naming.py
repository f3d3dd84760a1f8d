"""Naming a mistake: the one that gives the same; and any value that a test can hold."""

import copy
import math
import random
from collections import Counter, OrderedDict, defaultdict, deque
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePosixPath

import numpy as np
import pytest
import torch

from autograder.common.results import Crossing, Opaque, Raised, TestRun
from autograder.judge import differences
from autograder.judge.diagnose import Known, claim_of, ending, name_misconception
from autograder.judge.differences import in_words, keep, kept, same
from tests.judge.runs import (
    run,
    tensor,
    verdict,
)


def known(id: str, *outcomes: object, **more) -> Known:
    """A mistake that gives these outcomes."""
    fails = more.pop("fails", ())
    mistaken = run(*outcomes, **more)
    transcripts, ends = (
        {mistaken.test: keep(mistaken.transcript)},
        {mistaken.test: ending(mistaken)},
    )
    return Known(id, id.lower(), f"Message of {id}.", "page#label", fails, transcripts, ends)


def test_a_mistake_that_gives_the_same_is_named_and_says_where_to_read():
    wrong = known("SUM1", 1, 4)
    said = verdict(run(1, 4, message="the sum of three", in_hidden=True), 1, 5, mistakes=(wrong,))
    assert said.told == "the sum of three. Message of SUM1."
    assert (said.misconception, said.read) == ("SUM1", "page#label")


def test_a_mistake_agrees_up_to_the_end_of_what_was_called():
    assert verdict(run(4), 5, mistakes=(known("SUM1", 4, 8, 9),)).misconception == "SUM1"
    assert verdict(run(4, 8), 5, 6, mistakes=(known("SUM1", 4),)).misconception == ""
    assert verdict(run(4, 7), 5, 6, mistakes=(known("SUM1", 4, 8),)).misconception == ""


def test_right_outcomes_name_no_mistake_unless_the_test_ends_the_same_way():
    late = known("SUM1", 5, message="it took 7 calls")
    assert verdict(run(5, message="it took 9 calls"), 5, mistakes=(late,)).misconception == ""
    assert verdict(run(5, message="it took 7 calls"), 5, mistakes=(late,)).misconception == "SUM1"


def test_of_two_mistakes_the_one_that_fails_the_same_tests_is_named():
    failed = run(4)
    pair = known("SUM1", 4, fails=("other",)), known("SUM2", 4, fails=("total-values",))
    said = verdict(failed, 5, mistakes=pair, runs=(failed,))
    assert (said.misconception, "Probably" in said.told) == ("SUM2", False)


def test_of_two_mistakes_the_one_that_agrees_in_the_other_tests_is_named():
    failed, other = run(4), TestRun("total-more", "passed", 1.0, transcript=run(7).transcript)
    pair = tuple(
        Known(one.id, "", one.message, transcripts={**one.transcripts, "total-more": more})
        for one, more in (
            (known("SUM1", 4), run(8).transcript),
            (known("SUM2", 4), run(7).transcript),
        )
    )
    named = name_misconception(failed, pair, run(5).transcript, (failed, other))
    assert named is not None and named.known.id == "SUM2" and named.sure


def test_where_nothing_tells_two_mistakes_apart_the_first_is_only_probable():
    pair = known("SUM1", 4), known("SUM2", 4)
    said = verdict(run(4, message="the sum of three"), 5, mistakes=pair)
    assert said.told == "the sum of three. Probably: Message of SUM1."
    assert "may agree with SUM1" in said.said


def test_a_mistake_that_fails_a_test_which_the_answer_passes_is_only_probable():
    failed, passed = run(4), TestRun("total-more", "passed", 1.0, transcript=())
    mistakes = (known("SUM1", 4, fails=("total-values", "total-more")),)
    for runs, words in (((failed,), "Message"), ((failed, passed), "Probably: Message")):
        assert verdict(failed, 5, mistakes=mistakes, runs=runs).told.endswith(f"{words} of SUM1.")


def test_the_instructor_gets_the_values():
    said = verdict(run(4, message="the sum of three\nmore", in_hidden=True), 5).said
    assert "the sum of three\nmore" in said and "yours is 4, expected 5" in said.lower()


def test_a_passed_test_says_nothing():
    said = verdict(run(5, status="passed", error=""), 5, mistakes=(known("SUM1", 5),))
    assert (said.told, said.said, said.misconception) == ("", "", "")


def test_the_call_right_before_the_failure_is_the_one_explained():
    assert verdict(run(3, 5), 1, 6).told == "total: Yours is 5, expected 6."
    assert verdict(run(3, 6), 1, 6).told == "total: Yours is 3, expected 1."
    assert verdict(run({3}, 6), [3], 6).told == "total: Yours is a set, expected a list."
    assert verdict(run([3], 6), {3}, 6).told == "total: Yours is a list, expected a set."


SELF: list = []


SELF += [SELF, SELF]


DIGITS = 10**5000


def _doubled(depth: int) -> list:
    """A list in which everything stands twice: small here, endless if it is spread out."""
    return [part := _doubled(depth - 1), part] if depth else [1]


def _nested(depth: int) -> tuple:
    return (_nested(depth - 1),) if depth else (DIGITS,)


UNPRINTABLE = {
    "a long fraction": Fraction(DIGITS, 3),
    "a long slice": slice(1, DIGITS),
    "a long range": range(DIGITS),
    "a wide range": range(50_000_000),
    "a deque": deque([DIGITS]),
    "a deque that holds itself": deque([SELF]),
    "a long number": DIGITS,
    "in a list": [1, {"a": DIGITS}],
    "as a key": {DIGITS: 1, (DIGITS, frozenset([DIGITS])): 2},
    "in a set": frozenset([DIGITS, (DIGITS,)]),
    "a list that holds itself": SELF,
    "a table that holds it": OrderedDict(x=SELF),
    "doubled again and again": OrderedDict(x=_doubled(40)),
    "nested": _nested(90),
    "not a number as a key": {math.nan: 1, (math.nan,): 2},
    "a number that signals": [Decimal("sNaN"), Decimal("1e999999"), Decimal("-0")],
    "bytes": [b"\xff" * 1000, bytearray(1000)],
    "a long text": "\ud800" * 100_000,
    "numbers without end": [math.inf, complex(math.inf, math.nan), 1e308, complex(1e308, 1e308)],
    "a record of odd parts": [
        Opaque(DIGITS, torch.zeros(3)),  # pyright: ignore[reportArgumentType]
        Raised([1], {}, DIGITS, torch.ones(2), 5),  # pyright: ignore[reportArgumentType]
        Crossing("f", (), SELF),
    ],
    "counts": Counter({"a": DIGITS, "b": -1}),
    "a table with a default": defaultdict(list, {1: SELF}),
    "marks": [..., NotImplemented, int, torch.float16, torch.device("cpu"), torch.Size([1, 2])],
    "an array of many axes": torch.zeros((1,) * 32),
    "no numbers": torch.zeros(0, 3),
    "an array without end": torch.zeros(1).expand(10**13),
    "small numbers": torch.tensor([math.nan, math.inf, 1e-320], dtype=torch.float64),
    "half a number": torch.tensor([65504.0, math.nan], dtype=torch.float16),
    "times": [date(2024, 1, 2), datetime(2024, 1, 2, tzinfo=UTC), np.datetime64("NaT", "D")],
    "records": np.array([(1, "a", "2024-01-02")], [("n", "i4"), ("a", "U2"), ("t", "M8[D]")]),
    "words of NumPy": [np.array(["a", "b"]), np.array("a"), np.array(["2024"], "M8[Y]")],
    "numbers of NumPy": [np.float16(1), np.uint64(2**64 - 1), np.zeros((0,)), np.complex64(1j)],
}


def _random(random_: random.Random, depth: int = 0) -> object:
    """A value of the kinds that cross from an answer, its parts of all the others."""
    if depth > 4 or random_.random() < 0.4:
        return random_.choice(
            [*UNPRINTABLE.values(), *range(20), None, True, 0, 1.5, "a", b"b", 1j, {}, ()]
        )
    parts = [_random(random_, depth + 1) for _ in range(random_.randrange(4))]
    keys = [part for part in parts if _is_key(part)]
    kind = random_.randrange(7)
    if kind < 2:
        return [list, tuple, deque][random_.randrange(3)](parts)
    if kind == 2:
        return dict(zip(keys, parts, strict=False))
    if kind == 3:
        return random_.choice([set, frozenset, Counter])(keys)
    if kind == 4:
        return OrderedDict(zip(keys, parts, strict=False))
    if kind == 5:
        return Raised("E", "words", 3, "square", ("ValueError",))
    return random_.choice([tensor(1, 2), tensor(1, 3), torch.ones(2, 2), torch.arange(3)])


def _is_key(value: object) -> bool:
    try:
        return bool(hash(value)) or True
    except TypeError:
        return False


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """So few parts are kept that the largest values are soon compared."""
    monkeypatch.setattr(differences, "MOST_PARTS", 1000)


def test_a_value_without_end_is_kept_as_far_as_there_is_room():
    assert len(repr(kept(SELF))) < 100 * differences.MOST_PARTS


@pytest.mark.parametrize("name", UNPRINTABLE)
@pytest.mark.usefixtures("few")
def test_any_value_is_kept_compared_and_put_in_words(name: str):
    mine = kept(UNPRINTABLE[name])
    assert same(mine, kept(copy.deepcopy(UNPRINTABLE[name])))
    for other in map(kept, (None, 1, [1], {"a": 1}, torch.ones(3), *UNPRINTABLE.values())):
        for one, two in ((mine, other), (other, mine)):
            words = in_words(one, two)
            assert len(words) < 2000
            assert bool(words) is not same(one, two)


@pytest.mark.usefixtures("few")
def test_whatever_a_test_gave_a_verdict_is_told():
    random_ = random.Random(10)
    for _ in range(60):
        values = [[_random(random_) for _ in range(random_.randrange(4))] for _ in range(4)]
        theirs, reference, one, two = values
        raised = random_.choice([None, UNPRINTABLE["a record of odd parts"][1]])
        status = random_.choice(["failed", "error"])
        mistakes = (known("M1", *one), known("M2", *two))
        told_ = verdict(run(*theirs, status=status, raised=raised), *reference, mistakes=mistakes)
        assert len(told_.told) < 3000 and len(told_.said) < 3000


def test_a_result_of_the_answers_own_making_is_never_asked():
    class Asks:
        def __getattribute__(self, name: str) -> object:
            raise AssertionError("it was asked")

        def __repr__(self) -> str:
            raise AssertionError("it was asked")

    unknown = kept([Asks(), deque([Asks()]), slice(Asks()), OrderedDict({1: Asks()})])
    assert [part.kind for part in unknown[:3]] == ["object"] * 3
    assert unknown[3][1].kind == "object"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (torch.float16, "torch.float16"),
        (torch.device("cpu"), "device(type='cpu')"),
        (np.dtype("int8"), "dtype('int8')"),
        (int, "<class 'int'>"),
        (Fraction(1, 3), "Fraction(1, 3)"),
        (range(3), "range(0, 3)"),
        (slice(None, 2), "slice(None, 2, None)"),
        (deque([1, "a"]), "deque([1, 'a'])"),
        (bytearray(b"ab"), "bytearray(b'ab')"),
        (date(2024, 1, 2), "datetime.date(2024, 1, 2)"),
        (timedelta(1), "datetime.timedelta(days=1)"),
        (PurePosixPath("a/b"), "PurePosixPath('a/b')"),
        (len, "<built-in function len>"),
        (..., "Ellipsis"),
    ],
)
def test_what_is_short_and_plain_keeps_its_text(value: object, text: str):
    assert kept(value).kind == text
    assert in_words(kept(value), Opaque("another", kept(value).type_name)) == (
        f"Yours is {text}, expected another."
    )


def test_one_is_not_near_infinity():
    assert not same(1.0, math.inf) and not same(math.inf, 1.0) and not same(1 + 1j, math.inf)
    assert same(math.inf, math.inf) and not same(math.inf, -math.inf)


def test_half_precision_widens_no_tolerance():
    half = torch.tensor([1.0], dtype=torch.float16)
    double = torch.tensor([1.0], dtype=torch.float64)
    assert not same(kept(half), kept(double)) and not same(kept(double), kept(half))
    assert in_words(kept(half), kept(double)) == (
        "Yours has dtype torch.float16, expected torch.float64."
    )
    assert not same(kept(half), kept(half + 0.001))
    assert not same(kept(np.float16(1)), kept(np.float64(1)))


CLAIM = 'assert f(a), f"shape {a}, {b} and {c} but {d}"'


def test_a_claim_is_found_in_linear_time():
    """A pattern with gaps would try every way to fill them: hours for a text of this length."""
    first = "shape " + ", and but " * 200_000
    assert claim_of(first + "x", CLAIM, hidden=True) == "shape …, … and … but …"
    assert claim_of(first.replace("but", "bat"), CLAIM, hidden=True) == ""


IN_LOOPS = """
for fault, claim in {"one": "the first is not found", "other": "the second is not found"}.items():
    assert diagnose(fault) == fault, claim
for case, claim in (("one", "the first is told"), ("other", "the second is told")):
    assert diagnose(case) == case, claim
"""


@pytest.mark.parametrize(
    "claim", ["the first is not found", "the second is not found", "the second is told"]
)
def test_a_claim_may_stand_in_what_a_loop_walks_through(claim: str):
    assert claim_of(claim, IN_LOOPS, hidden=True) == claim
    assert claim_of("other", IN_LOOPS, hidden=True) == ""


@pytest.mark.parametrize(
    ("message", "is_claimed"),
    [
        ("shape 1, 2 and 3 but 4", True),
        ("shape ,  and  but 4", True),
        ("shape 1, 2 but 3 and 4", False),
        ("a shape 1, 2 and 3 but 4", False),
        ("shape , and  but 4", False),
    ],
)
def test_a_claims_parts_stand_in_their_order(message: str, is_claimed: bool):
    assert bool(claim_of(message, CLAIM, hidden=False)) is is_claimed


def test_the_end_of_a_claim_is_not_its_beginning():
    claim = 'assert f(a), f"a long way {a} a long way"'
    assert claim_of("a long way", claim, hidden=False) == ""
    assert claim_of("a long way  a long way", claim, hidden=False)
