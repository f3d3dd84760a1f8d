"""What a name stands for when an answer uses it: of the student's own, or of a library."""

import pytest

from autograder.judge.broken_rules import broken_rules, unread
from autograder.judge.made_of import Place
from autograder.judge.rules import QuestionRules
from tests.rule_breaks import LAST, OWN, RULES, SETUP, broken

# --- what belongs to an answer ------------------------------------------------------------------


def test_a_local_name_of_another_answer_is_not_a_name_of_the_notebook():
    """Both questions write into a variable `found` of their own."""
    second = "def second(x):\n    found = {}\n    found[0] = sum(x)\n    return found[0]"
    third = "def third(x):\n    found = 0\n    for y in x: found += y\n    return found"
    assert broken(third, second, names=("third",)) == []
    assert broken(f"found = 1\n{third}\nthird(found)", second, names=("third",)) == []
    assert broken("def third(x):\n    return second(x)", second, names=("third",)) == ["sum"]
    shared = "found = {}\ndef second(x):\n    found[0] = sum(x)"
    assert broken("def third(x):\n    return found[0]", shared, names=("third",)) == ["sum"]


def test_what_a_name_stood_for_before_is_no_part_of_an_answer():
    scratch = "f = lambda x: torch.softmax(x, -1)\nprint(f)"
    for place in (Place(1, 1), Place(0, 0)):
        assert broken(OWN, scratch, names=("f",), place=place) == []
    assert broken(OWN, scratch, names=("f",), place=Place(0, 1)) == ["torch.softmax"]
    found = unread(OWN, RULES, (scratch,), (SETUP,), ["f"], Place(1, 1))
    assert found.statements == {(0, 0)}, "an answer that runs without it does not need it"


@pytest.mark.parametrize(
    ("before", "answer"),
    [
        ("h = torch.softmax\nk = h\nh = None", "def f(x):\n    return k(x)"),
        ("def h(x): return torch.softmax(x, -1)\nk = h(1)\ndef h(x): pass", "f = lambda x: k"),
        ("h = torch.softmax\ndef k(x, g=h): return g(x)\nh = 1", "def f(x):\n    return k(x)"),
        (
            "k = 0\ndef keep(g):\n    global k\n    k = torch.softmax\nk = 1",
            "def f(x):\n    return k(x)",
        ),
        ("h = torch.softmax\nif False:\n    h = 1", "def f(x):\n    return h(x)"),
        ("f = torch.softmax", "def f(x, g=f):\n    return g(x)"),
        ("def h(): pass\nh.s = torch.softmax", "def f(x):\n    return h.s(x)"),
    ],
)
def test_what_is_kept_from_before_is_a_part_of_an_answer(before: str, answer: str):
    assert broken(answer, before, names=("f",), place=Place(1, 1)) == ["torch.softmax"]


def test_names_that_change_all_the_time_are_followed_for_a_while():
    many = "".join(f"a = a + b{n}\nb{n} = a\nk[{n}] = a\n" for n in range(1500))
    assert broken("def f(x): return k", many, names=("f",), place=Place(1, 1)) == []
    assert broken("def f(x): return k", f"a = sum\n{many}", names=("f",), place=Place(1, 1))


# --- names of builtins --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        "sum = 0\nfor x in y:\n    sum += x\nprint(sum)",
        "sorted = [3, 4]\ndef f(x):\n    return sorted[0]",
        "def f(sum):\n    return sum + 1",
        "def f(x):\n    sum = 0\n    return [sum + y for y in x]",
        "f = lambda sum: sum + 1",
        "def sum(x): return 1\ndef f(x): return sum(x)",
        "sum, n = 0, 1\ndef f(x):\n    return sum",
        "vars = [1]\ndef f(x):\n    return vars[0]",
        "def f(x):\n    def g(): return sum\n    sum = 1\n    return g()",
    ],
)
def test_a_students_own_name_is_not_taken_for_a_builtin(answer: str):
    assert broken(answer) == []
    assert broken(answer, names=("f",)) == []
    assert broken("def f(x): return k(x)", answer.replace("f(", "k("), names=("f",)) == []


@pytest.mark.parametrize(
    "answer",
    [
        "s = sum\nsum = 0\ndef f(x): return s(x)",
        "sum = sum\ndef f(x): return sum(x)",
        "if False:\n    sum = 0\ndef f(x): return sum(x)",
        "sum: int\ndef f(x): return sum(x)",
        "sum = 0\ndel sum\ndef f(x): return sum(x)",
        "sum = 0\ntry:\n    1 / 0\nexcept Exception as sum:\n    pass\ndef f(x): return sum(x)",
        "def f(x):\n    global sum\n    del sum\n    return sum(x)\nsum = 0",
        "for sum in []: pass\ndef f(x): return sum(x)",
        "def f(x, sum=sum):\n    return sum(x)\nsum = 1",
        "print([sum(x) for x in y])\nsum = 1\nf = 1",
    ],
)
def test_a_builtin_under_a_name_that_may_be_the_students_is_found(answer: str):
    assert "sum" in broken(answer)


@pytest.mark.parametrize(
    "cell",
    [
        "try:\n    from math import nothing as sorted\nexcept ImportError:\n    pass",
        "if False:\n    from math import floor as sorted",
        "def ready():\n    from math import floor as sorted\n    return sorted",
    ],
)
def test_an_import_that_may_not_run_hides_no_builtin(cell: str):
    assert broken(f"{cell}\ndef f(x):\n    return sorted(x)", names=("f",)) == ["sorted"]
    assert broken("def f(x):\n    return sorted(x)", cell, names=("f",), place=LAST) == ["sorted"]


def test_an_import_that_runs_gives_a_builtins_name_another_meaning():
    use = "def f(x):\n    return sorted(x)"
    for origin in ("math import floor", "statistics import mean"):
        line = f"from {origin} as sorted"
        assert broken(f"{line}\n{use}", names=("f",)) == []
        assert broken(use, line, names=("f",), place=LAST) == []
        assert broken_rules(use, RULES, (), (SETUP + line,), ["f"]) == ()


@pytest.mark.parametrize(
    ("origin", "call", "name"),
    [
        ("builtins import sorted", "max(x)", "builtins.sorted"),
        ("builtins import eval", "max('x')", "builtins.eval"),
        ("math import prod", "max(x)", "math.prod"),
        ("operator import attrgetter", "max('__dict__')(x)", "__dict__"),
        ("builtins import getattr", "max(x, 'so' + x)()", "builtins.getattr"),
    ],
)
def test_what_is_forbidden_is_found_under_a_builtins_name(origin: str, call: str, name: str):
    line, use = f"from {origin} as max", f"def f(x):\n    return {call}"
    assert name in broken(f"{line}\n{use}", names=("f",))
    assert name in broken(use, line, names=("f",), place=LAST)


@pytest.mark.parametrize(
    ("line", "part", "name"),
    [
        ("from builtins import sorted as go", "go(x)", "builtins.sorted"),
        ("import builtins as b", "b.sorted(x)", "builtins.sorted"),
        ("from math import prod as go", "go(x)", "math.prod"),
        ("from operator import methodcaller as go", "go('so' + x)(x)", "operator.methodcaller"),
    ],
)
def test_what_a_class_or_a_module_imports_is_found_where_it_is_asked_of_it(
    line: str, part: str, name: str
):
    use = f"def f(x):\n    return A.{part}"
    inside = f"class A:\n    {line}"
    assert broken(f"{inside}\n{use}", names=("f",)) == [name]
    assert broken(use, inside, names=("f",), place=LAST) == [name]
    module = f"%%writefile m.py\n{line}\n"
    assert broken(f"import m as A\n{use}", module, names=("f",)) == [name]
    first = part.partition("(")[0].partition(".")[0]
    brought = f"from m import {first} as z\ndef f(x):\n    return z{part.removeprefix(first)}"
    assert broken(brought, module, names=("f",)) == [name]
    beside = "class B:\n    from math import floor as go\ndef f(x):\n    return B.go(x)"
    assert broken(beside, names=("f",)) == []


def test_a_function_that_is_called_before_its_name_is_the_students_own_is_found():
    before = "def g(x): return sum(x)\nk = g([1])\nsum = 1"
    assert broken("def f(x): return k", before, names=("f",), place=Place(1, 1)) == ["sum"]
    own = "sum = 1\ndef g(x): return sum\nk = g([1])"
    assert broken("def f(x): return k", own, names=("f",), place=Place(1, 1)) == []


def test_whether_the_name_is_the_students_shows_when_python_has_it_no_longer():
    found = unread("1 / 0\nsum = 1", RULES, ("def f(x): return sum(x)",), (), ["f"], Place(0, 1))
    assert found.meant == {(-1, 1, "sum")} and "Python's own sum" in found.words
    found = unread("def f(x): return x", RULES, ("sum = 1",), (), ["f"], LAST)
    assert not found.meant and not found.words


# --- methods of the student's own ---------------------------------------------------------------

OPS = "class Ops:\n    @staticmethod\n    def softmax(x): return x.exp()\n"


@pytest.mark.parametrize(
    "use",
    [
        f"{OPS}def f(x): return Ops.softmax(x)",
        f"{OPS}def f(x): return Ops().softmax(x)",
        f"{OPS.replace('Ops', 'Ops(torch.nn.Module)')}def f(x): return Ops.softmax(x)",
        f"def f(x): return Ops.softmax(x)\n{OPS}",
    ],
)
def test_a_static_method_of_the_students_own_is_not_taken_for_anothers(use: str):
    assert broken(use) == []
    assert broken("def f(x): return g(x)", use.replace("f(x): ", "g(x): "), names=("f",)) == []


@pytest.mark.parametrize(
    "use",
    [
        f"{OPS}def f(Ops): return Ops.softmax(-1)",
        f"{OPS}Ops = x\ndef f(x): return Ops.softmax(-1)",
        f"{OPS}Ops.softmax = torch.Tensor.softmax\ndef f(x): return Ops.softmax(x)",
        OPS.replace("Ops", "Ops(torch.Tensor)") + "    del softmax\nf = lambda x: Ops.softmax(x)",
        OPS.replace("Ops", "Ops(metaclass=M)") + "def f(x): return Ops.softmax(x)",
        f"@other\n{OPS}def f(x): return Ops.softmax(x)",
        f"{OPS}def f(x): return Ops.other.softmax(x)",
        f"for Ops in (x,): pass\n{OPS}def f(x): return Ops.softmax(x)",
    ],
)
def test_a_method_of_what_may_be_another_is_found(use: str):
    assert "softmax" in " ".join(broken(use))


COURSE = QuestionRules(
    forbid=(
        "lab.text",
        "lab.blocks.causal_mask",
        "lab.blocks.FeedForward",
        "torch.softmax",
        "softmax",
        "torch.nn.functional.cross_entropy",
        "torch.nn.utils.clip_grad_norm_",
    )
)
DATA = "from dataclasses import dataclass\n@dataclass\nclass Parts:\n    {0}: int\n"
TUPLE = "from typing import NamedTuple\nclass Parts(NamedTuple):\n    {0}: int\n"
PAIR = "from collections import namedtuple\nParts = namedtuple('Parts', 'other, {0}')\n"
PARTS = "def f(x):\n    p = Parts({0}=x)\n    return p.{0}"
SPACE = "from types import SimpleNamespace\n"


def caught(answer: str) -> bool:
    """Whether some rule of the course's is broken."""
    return bool(broken_rules(answer, COURSE, (), (SETUP, "from lab import blocks, text")))


@pytest.mark.parametrize(
    "answer",
    [
        "def f(model):\n    return model.text",
        "def f(model):\n    return getattr(model, 'text')",
        *((kind + PARTS).format("softmax") for kind in (DATA, TUPLE, PAIR)),
        *((kind + PARTS).format("causal_mask") for kind in (DATA, TUPLE, PAIR)),
        DATA.format("cross_entropy") + "def f(many):\n    return [p.cross_entropy for p in many]",
        TUPLE.format("clip_grad_norm_") + "def f(r):\n    return r.clip_grad_norm_",
        f"{SPACE}def f(x):\n    p = SimpleNamespace(softmax=x)\n    return p.softmax",
        f"{SPACE}def f(x):\n    return SimpleNamespace(softmax=x).softmax",
        f"{OPS}own = Ops()\ndef f(x): return own.softmax(x)",
        f"{OPS}class Kid(Ops):\n    def softmax(self, x): return super().softmax(x)\n"
        "def f(x): return Kid().softmax(x)",
        f"{OPS}    __call__ = softmax\ndef f(x): return Ops()(x)",
        "class Parts:\n    class FeedForward:\n        pass\nFeedForward = Parts.FeedForward",
    ],
)
def test_a_field_of_the_students_own_is_nothing_forbidden(answer: str):
    import lab.text  # noqa: F401  (as in the process that reads answers)

    assert not caught(answer)


@pytest.mark.parametrize(
    "answer",
    [
        "def f(x): return text.train_step(x)",
        "def f(x): return [blocks][0].causal_mask(x)",
        TUPLE.format("softmax") + "def f(x):\n    g = x.softmax\n    return g(-1)",
        TUPLE.format("softmax") + "def f(p, x):\n    p = Parts(1)\n    return p.softmax(-1)",
        TUPLE.format("softmax") + "def f(x):\n    p = Parts(1)\n    p = x\n    return p.softmax",
        TUPLE.format("softmax") + "def f(x):\n    for p in x: p.softmax(-1)\n    p = Parts(1)",
        TUPLE.format("softmax") + "def f(Parts):\n    return Parts(1).softmax(-1)",
        f"{SPACE}def f(x):\n    p = SimpleNamespace(other=x)\n    return p.softmax",
        f"{OPS}class Kid(torch.Tensor):\n    def g(s, x): return super().softmax(x)",
        f"{OPS}class Kid(torch.Tensor):\n    pass\ndef f(x): return Kid(x).softmax(-1)",
        f"{OPS}own = Ops()\nown = x\ndef f(x): return own.softmax(-1)",
        f"{OPS}def f(x):\n    match x:\n        case own: return own.softmax(-1)\nown = Ops()",
        "class A:\n    call = softmax\n    def softmax(self): pass",
    ],
)
def test_what_may_be_the_librarys_is_found_beside_fields_of_that_name(answer: str):
    assert caught(answer)
