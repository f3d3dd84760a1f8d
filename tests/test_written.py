"""The text of a syntax tree, also where Python finds no quotes for an f-string."""

import ast
import sys

import pytest

from autograder.common.written import written
from autograder.judge.broken_rules import broken_rules, statements
from autograder.judge.rules import QuestionRules

ODD = "f\"{'a\u00a0b'}\""  # a no-break space, which comes by copying from a page
# before Python 3.12 no f-string may say it by a backslash
SPELT = "'{}'.format('a\\xa0b')"
if sys.version_info >= (3, 12):  # which quotes it has is Python's to choose
    SPELT = ast.unparse(ast.parse(ODD, mode="eval"))


@pytest.mark.parametrize(
    "text",
    [
        ODD,
        "f\"{{x}} {x!r:>{w}.3} {f'{x}\u00a0'} {x:{w}.2f} {'\u200b'}\"",
        "f\"{x}\" f'{w=}' f\"{d['\u00a0']}\"",
        "'plain', f'{x:>{w}}'",
    ],
)
def test_the_text_of_a_tree_means_the_same(text: str):
    names = {"x": 3.14159, "w": 8, "d": {"\u00a0": "there"}}
    assert eval(written(ast.parse(text, mode="eval")), {}, names) == eval(text, {}, names)


def test_a_sign_that_cannot_be_printed_costs_no_reading_of_an_answer():
    rules = QuestionRules(forbid=("sorted",))
    answer = f"def g(x): return object\nclass K(g({ODD})): pass\ndef f(x): return sorted(K, x)"
    assert [hit.name for hit in broken_rules(answer, rules, (), (), ("f",))] == ["sorted"]
    assert [text for _, text in statements(f"a = {ODD}")] == [f"a = {SPELT}"]
