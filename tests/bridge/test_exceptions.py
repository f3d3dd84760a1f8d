"""Exceptions that cross the line."""

import builtins
import dataclasses
import json
from typing import Any

import pytest

from tests.bridge.ends import (
    of_tests,
    raised_of,
)


def test_exceptions_keep_their_kind_and_text(answer: Any) -> None:
    names = answer(
        "class Strange(LookupError): pass\n"
        "def fail(kind):\n"
        "    if kind == 'key': return {}['missing']\n"
        "    if kind == 'own': raise Strange('so', 2)\n"
        "    if kind == 'unicode': return b'\\xff'.decode()\n"
        "    if kind == 'exit': raise SystemExit(3)\n"
        "    if kind == 'interrupt': raise KeyboardInterrupt\n"
        "    if kind == 'group': raise ExceptionGroup('several', [ValueError(1)])\n"
        "    raise StopIteration(5)\n"
    )
    with pytest.raises(KeyError) as caught:
        names.fail("key")
    assert str(caught.value) == "'missing'"
    with pytest.raises(LookupError) as caught:
        names.fail("own")
    assert caught.value.args == ("so", 2)
    raised = raised_of(caught.value)
    assert (raised.type_name, raised.line, raised.cell) == ("Strange", 4, "cell")
    with pytest.raises(names.Strange):
        names.fail("own")
    for kind in ("unicode", "exit", "interrupt", "group", "stop"):
        with pytest.raises(Exception) as caught:
            names.fail(kind)
        assert raised_of(caught.value).type_name != "", kind


def test_a_tests_own_exception_passes_through_the_answer_as_the_same_object(answer: Any) -> None:
    names = answer(
        "def through(f): return f()\n"
        "def wrapped(f):\n"
        "    try: return f()\n"
        "    except ValueError as error: raise KeyError('mine') from error\n"
    )
    space = of_tests("def fail(): raise error")
    for ours in (ValueError("x", 1), of_tests("class Own(Exception): pass")["Own"](2)):
        space["error"] = ours
        with pytest.raises(type(ours)) as caught:
            names.through(space["fail"])
        assert caught.value is ours
    space["error"] = ValueError("hidden")
    with pytest.raises(KeyError):
        names.wrapped(space["fail"])


def test_what_an_assertion_of_the_test_says_is_not_told_to_the_answer(answer: Any) -> None:
    names = answer(
        "heard = []\n"
        "def listen(f):\n"
        "    try: f()\n"
        "    except AssertionError as error: heard.append(repr(error))\n"
    )
    names.listen(of_tests("def f():\n    assert False, 'the secret'")["f"])
    assert "secret" not in repr(names.heard)


FAMILY = """
import dataclasses, json
class E(KeyError, ValueError): pass
class Shape(ValueError): pass
class Axis(Shape): pass
class Both(Axis, E): pass
class Says(OSError):
    def __str__(self): return 'in its own words'
class Coded(Exception):
    def __init__(self, code, why=""):
        super().__init__(code)
        self.code, self.why, self._secret, self.table = code, why, 5, {}
@dataclasses.dataclass(frozen=True)
class Fixed: x: int
def fail(kind):
    if kind == 'two': raise E('k')
    if kind == 'axis': raise Axis('deep')
    if kind == 'both': raise Both
    if kind == 'coded': raise Coded(7, 'so')
    if kind == 'json': json.loads('{')
    if kind == 'frozen': Fixed(1).x = 2
    if kind == 'unicode': b'\\xff'.decode()
    if kind == 'system': open('/nowhere')
    if kind == 'says': raise Says(3)
    if kind == 'deep':
        a = []
        for _ in range(300): a = [a]
        return a
"""


def test_an_exception_is_caught_as_at_home(answer: Any) -> None:
    names = answer(FAMILY)
    for kind, caught in (
        ("two", (KeyError, ValueError, LookupError, names.E)),
        ("axis", (ValueError, names.Shape, names.Axis)),
        ("both", (KeyError, ValueError, names.E, names.Shape, names.Both)),
        ("json", (json.JSONDecodeError, ValueError)),
        ("frozen", (dataclasses.FrozenInstanceError, AttributeError)),
        ("unicode", (UnicodeDecodeError, UnicodeError, ValueError)),
        ("system", (FileNotFoundError, OSError)),
    ):
        for one in caught:
            with pytest.raises(one) as found:
                names.fail(kind)
            assert type(found.value).__name__ == raised_of(found.value).type_name
    with pytest.raises(ValueError, match="deep"):
        names.fail("axis")
    with pytest.raises(UnicodeDecodeError, match="invalid start byte"):
        names.fail("unicode")
    with pytest.raises(OSError, match="nowhere") as caught:
        names.fail("system")
    assert caught.value.errno == 2
    with pytest.raises(names.Says, match="in its own words") as said:
        names.fail("says")
    assert said.value.args == (3,)
    with pytest.raises(names.Shape) as other:
        names.fail("axis")
    assert not isinstance(other.value, LookupError)


def test_an_exception_carries_what_is_public_and_plain(answer: Any) -> None:
    names = answer(FAMILY)
    with pytest.raises(names.Coded) as caught:
        names.fail("coded")
    error: Any = caught.value
    assert (error.code, error.why, error.table) == (7, "so", {})
    assert not hasattr(error, "_secret")


def test_what_is_refused_on_the_line_goes_by_a_name_of_pythons(answer: Any) -> None:
    with pytest.raises(TypeError, match="nested too deeply") as caught:
        answer(FAMILY).fail("deep")
    assert raised_of(caught.value).type_name == "TypeError"


OWN_TEXTS = {
    "by itself": "class TooHot(E):\n    def __init__(self, v): self.v = v\n"
    "    def __str__(self): return f'{self.v} over'",
    "of arguments": "class TooHot(E):\n    v = property(lambda self: self.args[0])\n"
    "    def __str__(self): return '%s over' % self.args",
    "as a record": "import dataclasses\n@dataclasses.dataclass\nclass TooHot(E):\n    v: int\n"
    "    def __str__(self): return f'{self.v} over'",
    "of the class above": "class Over(E):\n    def __str__(self): return f'{self.v} over'\n"
    "class TooHot(Over):\n    def __init__(self, v): self.v = v",
}


@pytest.mark.parametrize("text", list(OWN_TEXTS))
@pytest.mark.parametrize("base", ["ValueError", "KeyError", "OSError"])
def test_an_exception_that_makes_its_own_text_is_of_the_class_that_it_has(
    answer: Any, text: str, base: str
) -> None:
    names = answer(f"E = {base}\n{OWN_TEXTS[text]}\ndef read(v): raise TooHot(v)")
    with pytest.raises(names.TooHot) as caught:
        names.read(3)
    assert type(caught.value) is names.TooHot and caught.value.__class__ is names.TooHot
    assert str(caught.value) == "3 over" and caught.value.v == 3
    assert issubclass(names.TooHot, getattr(builtins, base)) and str(names.TooHot(5)) == "5 over"
