"""Errors that an answer gives as values, and the classes of those that it raises."""

from typing import Any

import pytest

from autograder.judge import rehearsal
from tests.judge.small_course import HIDDEN_PART, heard_of

SHOP = '''
class TooPoor(Exception):
    """Not enough."""
    def __init__(self, have, need):
        super().__init__(f"have {have}, need {need}")
        self.have, self.need = have, need
    @classmethod
    def of(cls, text):
        return cls(*map(int, text.split()))
class Broke(TooPoor):
    pass
'''
IN_OTHER_WORDS = '''
from dataclasses import dataclass
@dataclass
class TooPoor(Exception):
    """Not enough."""
    have: int
    need: int
    def __str__(self):
        return f"have {self.have}, need {self.need}"
    @staticmethod
    def of(text):
        have, need = text.split()
        return TooPoor(int(have), int(need))
class Broke(TooPoor): ...
'''
PAY = """
import json
def pay(have, need):
    if have == 0:
        raise Broke(have, need)
    if have < need:
        raise TooPoor(have, need)
    return have - need
def safe(f, *args):
    try:
        return f(*args), None
    except Exception as error:
        return None, error
def problem(have, need):
    return TooPoor(have, need) if have < need else None
def parsed(text):
    try:
        return json.loads(text)
    except ValueError as error:
        raise Broke(0, 1) from error
def numbered(text):
    try:
        return int(text)
    except ValueError:
        raise TooPoor(0, 1)
def alone(text):
    try:
        return int(text)
    except ValueError:
        raise TooPoor(0, 1) from None
"""
TESTS = {
    "given": """\
value, error = safe(pay, 1, 3)
assert value is None and isinstance(error, TooPoor) and not isinstance(error, Broke)
assert error.need == 3 and str(error) == "have 1, need 3"
assert safe(pay, 3, 1) == (2, None)""",
    "raised": """\
try:
    raise problem(1, 3)
except TooPoor as error:
    assert error.need == 3""",
    "python": """\
try:
    raise safe(int, "x")[1]
except ValueError as error:
    assert "invalid" in str(error)""",
    "class": """\
try:
    raise TooPoor.of("4 7")
except TooPoor as error:
    assert error.have == 4 and str(error) == "have 4, need 7"
assert TooPoor.__doc__ == "Not enough.\"""",
    "type": """\
for kind, have in ((TooPoor, 1), (Broke, 0)):
    try:
        pay(have, 3)
        raise RuntimeError("nothing was raised")
    except TooPoor as error:
        assert type(error) is kind""",
    "made": """\
assert not isinstance(TooPoor(1, 2), Broke)
assert isinstance(Broke(1, 2), TooPoor)""",
    "cause": """\
try:
    parsed("[1,")
    raise RuntimeError("nothing was raised")
except Broke as error:
    assert error.__cause__.pos == 3 and error.__cause__.lineno == 1
    assert error.__context__ is error.__cause__""",
    "context": """\
for wanted, f in enumerate((numbered, alone)):
    try:
        f("x")
        raise RuntimeError("nothing was raised")
    except TooPoor as error:
        assert isinstance(error.__context__, ValueError) and error.__cause__ is None
        assert error.__suppress_context__ is bool(wanted)
try:
    raise IndexError
except IndexError:
    assert safe(pay, 3, 1) == (2, None)
    try:
        pay(1, 3)
    except TooPoor as error:
        assert not error.__suppress_context__""",
}


@pytest.fixture
def shop(task: Any) -> Any:
    """The course of the shop, whose tests are hidden."""
    tests = [(f"t_{name}", HIDDEN_PART.format(text), 1) for name, text in TESTS.items()]
    made = task([("shop", SHOP + PAY), *tests])
    made.known = heard_of(made)
    return made


def failed(shop: Any, answer: str) -> list[str]:
    """The tests that an answer fails."""
    return [test[2:] for test, points in shop.scores(shop=answer).items() if not points]


def test_an_error_that_an_answer_gives_is_one_of_its_class(shop: Any) -> None:
    assert failed(shop, SHOP + PAY) == []
    wrong = PAY.replace("return None, error", "return None, (error,)")
    assert failed(shop, SHOP + wrong) == ["given", "python"]
    assert failed(shop, SHOP + PAY.replace("TooPoor(have, need) if", "have if")) == ["raised"]
    assert failed(shop, SHOP.replace("cls(*map", "tuple(map") + PAY) == ["class"]


def test_whatever_a_class_says_and_wants_a_raised_error_is_of_it(shop: Any) -> None:
    assert failed(shop, IN_OTHER_WORDS + PAY) == []
    below = PAY.replace("raise TooPoor", "raise type('TooPoor', (TooPoor,), {})")
    assert failed(shop, SHOP + below) == ["type"]


def test_a_raised_error_says_what_was_handled_then(shop: Any) -> None:
    assert failed(shop, SHOP + PAY.replace(" from None", "")) == ["context"]
    assert failed(shop, SHOP + PAY.replace(" from error", "")) == ["cause"]


def test_an_error_is_of_the_class_that_it_has_not_of_the_one_that_was_called(shop: Any) -> None:
    other = "    def __new__(cls, *args):\n        return Exception.__new__(Broke, *args)\n"
    answer = SHOP.replace("    @class", f"{other}    @class") + PAY
    assert "made" in failed(shop, answer)


SHOPS = """
class Shop(ValueError):
    pass
class Sold(Shop):
    pass
class Odd(Exception):
    pass
"""
BELOW = """
assert issubclass(Sold, Shop) and isinstance(Sold(), Shop)
assert not issubclass(Odd, Shop)
"""


def test_a_class_of_pythons_in_the_place_of_an_own_one_has_classes_below_it(task: Any) -> None:
    made = task([("shop", SHOPS), ("t_shop", HIDDEN_PART.format(BELOW), 1)])
    made.known = heard_of(made)
    named = SHOPS.replace("class Shop(ValueError):\n    pass", "Shop = ValueError")
    assert made.scores(shop=named) == {"t_shop": 1}
    assert made.scores(shop=named.replace("Odd(Exception)", "Odd(Sold)")) == {"t_shop": 0}


CLASSES = {
    "made": "assert type(Broke(1, 2)) is Broke and Broke(1, 2).__class__ == Broke",
    "given": "assert type(problem(1, 2)) is TooPoor and isinstance(problem(1, 2), TooPoor)",
    "raised": "try: pay(1, 2)\nexcept Exception as e: assert type(e) is TooPoor and e.need == 2\n"
    "else: raise AssertionError",
    "raised by the test": "try: raise Broke(1, 2)\n"
    "except TooPoor as e: assert type(e) is Broke and str(e) == 'have 1, need 2'",
    "given and raised": "try: raise problem(1, 2)\n"
    "except TooPoor as e: assert type(e) is TooPoor and str(e) == 'have 1, need 2'",
}
GIVES = """
def problem(have, need):
    return TooPoor(have, need)
def pay(have, need):
    raise problem(have, need)
"""


@pytest.mark.parametrize("asked", CLASSES.values(), ids=CLASSES)
@pytest.mark.parametrize("words", [SHOP, IN_OTHER_WORDS])
def test_an_error_is_of_its_class_whoever_made_or_raised_it(
    task: Any, words: str, asked: str
) -> None:
    made = task([("pay", words + GIVES), ("t_pay", HIDDEN_PART.format(asked), 1)])
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
