"""Names: which are the instructor's, and which an answer's."""

import os
import pickle
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from autograder.judge import attempts, rehearsal, testing, texts
from tests.judge.small_course import (
    CHAIN,
    HIDDEN_PART,
    SMALL,
    VEC,
)

TAKES_OVER = """
collections = __import__("collections")
WANTED = 9
try:
    import autograder.judge.attempts as w
    w.run_test = lambda student, cell, *_, **__: w.TestRun(cell.grade_id, "passed", 1.0)
    open("{mark}", "a").write(f"{{__import__('os').getpid()}} ")
except ImportError:
    pass
"""


def test_no_text_of_a_students_runs_where_the_tests_run(task: Any, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    made = task(SMALL)
    assert made.scores(look=TAKES_OVER.format(mark=mark), square="") == {"t_square": 0}
    assert attempts.run_test is testing.run_test
    assert str(os.getpid()) not in mark.read_text().split()


@pytest.mark.parametrize(
    "look",
    [
        "import collections\nWANTED = 6",  # it is the instructor's 9 that counts
        "class Any:\n    __eq__ = lambda *_: True\nWANTED = Any()",
        "",
        "WANTED = = 9",
        "del WANTED, collections",
        "raise SystemExit",
    ],
)
def test_a_name_of_an_ordinary_cell_is_the_instructors(task: Any, look: str) -> None:
    made = task(SMALL)
    assert made.scores(look=look) == {"t_square": 1}
    assert made.scores(look=look, square="def square(x):\n    return x + x") == {"t_square": 0}


LOOSE = "def is_close(a, b):\n    return (\n        a == b\n        or not a\n        != b\n    )"


TOLERANT = [
    ("look", LOOSE),
    ("one", "def one():\n    return 1"),
    ("t_one", "assert is_close(one(), 1)\nassert not is_close(1, 99)", 1),
]


def test_a_line_that_begins_with_an_operator_is_no_magic(task: Any) -> None:
    made = task(TOLERANT)
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    liar = "def is_close(a, b):\n    return b == 1\ndef one():\n    return 2"
    assert made.scores(one=liar) == {"t_one": 0}
    assert made.scores(look="def is_close(a, b):\n    return b == 1", one="one = int") == {
        "t_one": 0
    }


def test_a_magic_of_an_ordinary_cell_loses_nothing_else(task: Any) -> None:
    made = task(
        [
            ("look", "%matplotlib inline\nWANTED = 9"),
            *SMALL[1:2],
            (*SMALL[2][:1], "assert square(3) == WANTED", 1),
        ]
    )
    assert made.scores() == {"t_square": 1}


@pytest.mark.parametrize(
    ("look", "why"),
    [
        ("import no_such_module\nWANTED = 9", "ModuleNotFoundError"),
        ("WANTED = get_ipython()", "NameError"),
        ("return\nWANTED = 9", "SyntaxError"),
        ("raise SystemExit\nWANTED = 9", "SystemExit"),
    ],
)
def test_a_cell_that_does_not_run_beside_the_tests_is_refused_at_the_build(
    task: Any, look: str, why: str
) -> None:
    made = task([("look", look), *SMALL[1:2], ("t_square", "assert square(3) == WANTED", 1)])
    (complaint,) = rehearsal.rehearse(made.assignment, made.fork_server).complaints
    assert "cell" in complaint
    assert why in complaint
    liar = "WANTED = 6\ndef square(x):\n    return 6"
    assert made.verdicts(square=liar)["t_square"].status == "test-error"
    assert made.scores(square=liar, look="WANTED = 6") == {"t_square": 0}


def test_a_cell_that_fails_because_of_an_answer_is_the_answers_fault(task: Any) -> None:
    parts = [*SMALL[1:2], ("look", "NINE = square(3)"), ("t_square", "assert NINE == 9", 1)]
    made = task(parts)
    assert made.scores() == {"t_square": 1}
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    verdict = made.verdicts(square="def square(x):\n    raise ValueError\nNINE = 9")["t_square"]
    assert (verdict.score, verdict.status) == (0, "failed")


MADE_OF = [
    *CHAIN[:2],
    ("look", "weights = [square(k) for k in range(3)]"),
    ("data", "def twice(k):\n    return 2 * square(k)\nscaled = [2 * w for w in weights]"),
    *CHAIN[4:5],
    ("t_total", "assert total(weights) == 5\nassert total(scaled) == 10", 3),
    ("t_more", "assert total([twice(1), weights[1]]) == 3", 2),
]


@pytest.mark.parametrize("body", ["raise ValueError", "return 7", "return", "return [x] * x"])
def test_what_cells_make_of_a_wrong_answer_costs_no_other_question(task: Any, body: str) -> None:
    made = task(MADE_OF)
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    verdicts = made.verdicts(square=f"def square(x):\n    {body}")
    scores = {test: verdict.score for test, verdict in verdicts.items()}
    assert scores == {"t_square": 0, "t_total": 3, "t_more": 2}
    assert "weights" in verdicts["t_total"].stood_in


def test_what_a_cell_makes_of_the_answer_itself_is_never_the_references(task: Any) -> None:
    cells = [*MADE_OF, ("norm", "def norm(xs):\n    return sum(map(square, xs))")]
    made = task([*cells, ("t_norm", "assert norm([3]) == 9\nassert weights[2] == 4", 1)])
    wrong = "def total(xs):\n    return 0"
    assert made.scores(total=wrong) == {"t_square": 1, "t_total": 0, "t_more": 0, "t_norm": 1}
    wrong = "def square(x):\n    return 7"
    found = made.scores(square=wrong, norm="def norm(xs):\n    return weights[2]")
    assert found == {"t_square": 0, "t_total": 3, "t_more": 2, "t_norm": 0}


def test_a_name_that_no_cell_could_make_is_told_as_that(task: Any) -> None:
    made = task(MADE_OF)
    made.assignment = replace(made.assignment, stand_in=False)
    verdict = made.verdicts(square="def square(x):\n    raise ValueError")["t_total"]
    assert (verdict.status, verdict.score) == ("failed", 0)
    assert "weights is made by a cell that calls your code" in verdict.told


def test_what_a_cell_made_of_an_answer_is_made_anew_in_a_new_process(task: Any) -> None:
    parts = [
        ("gate", "class Gate:\n    def open(self):\n        return 4"),
        ("look", "gate = Gate()"),
        ("bad", "def bad():\n    return 1"),
        ("t_bad", "assert bad() == 1", 1),
        ("good", "def good():\n    return 2"),
        ("t_good", "assert good() == 2\nassert gate.open() == 4", 1),
    ]
    answers = {"bad": "import os\ndef bad():\n    os._exit(1)"}
    assert task(parts).scores(**answers) == {"t_bad": 0, "t_good": 1}


def test_an_instructors_import_of_everything_is_the_instructors(task: Any) -> None:
    parts = [
        ("star", "from math import *"),
        ("root", "def root(x):\n    return x ** 0.5"),
        ("t_root", "assert root(9.0) == sqrt(9.0)", 1),
    ]
    made = task(parts)
    assert made.scores() == {"t_root": 1}
    assert made.scores(root="sqrt = lambda x: 7\ndef root(x):\n    return 7") == {"t_root": 0}
    assert made.scores(star="sqrt = lambda x: 7", root="def root(x):\n    return 7") == {
        "t_root": 0
    }


def test_an_answers_import_of_everything_may_define_what_tests_use(task: Any) -> None:
    parts = [("circle", "from math import *"), ("t_circle", "assert 6.28 < tau < 6.29", 1)]
    made = task(parts)
    assert made.scores() == {"t_circle": 1}
    assert made.scores(circle="from math import tau") == {"t_circle": 1}
    assert made.scores(circle="") == {"t_circle": 0}


EVIL = """\
class Vec:
    def __init__(self, x):
        self.x = x
    def __eq__(self, other):
        return self.x == other.x
    def __repr__(self):
        return "(__import__('sys').modules.__setitem__('was_here', 1), Vec(1))[1]"
"""


EQUAL = "    def __eq__(self, other):\n        return self.x == other.x\n"


SHOWN = "    def __repr__(self):\n        return f'Vec({self.x})'\n"


@pytest.mark.parametrize(
    "test",
    [
        "assert eval(repr(Vec(1))) == Vec(1)",
        "space = {'Vec': Vec}\nexec('v = ' + repr(Vec(1)), space)\nassert space['v'] == Vec(1)",
        "import pickle\nassert pickle.loads(Vec(b'').x) is None",
    ],
)
def test_no_text_of_an_answers_is_evaluated(task: Any, test: str, monkeypatch: Any) -> None:
    for name in texts.LOADERS:
        monkeypatch.setattr(pickle, name, getattr(pickle, name))  # set back afterwards
    texts.run_no_texts(())
    made = task([("vec", VEC + EQUAL + SHOWN), ("t_vec", test, 1)])
    (complaint,) = rehearsal.rehearse(made.assignment, made.fork_server).complaints
    assert "answer" in complaint
    assert made.verdicts(vec=EVIL)["t_vec"].status in ("test-error", "failed")
    assert "was_here" not in sys.modules
    assert all(  # also for libraries, after spaces were made
        getattr(pickle, name) in (texts._refuse, texts._Refuser) for name in texts.LOADERS
    )


NO_SIGNATURE = """\
import inspect, types
def f(x): return x
inspect._signature_from_callable = lambda *_, **__: types.SimpleNamespace(
    return_annotation=int, parameters={{'x': {}}})
"""


def test_no_text_of_an_annotation_is_evaluated(task: Any) -> None:
    test = "import inspect, typing\ntyping.get_type_hints(f)\ninspect.signature(f, eval_str=True)"
    made = task([("f", "def f(x: int): return x"), ("t_f", test, 1)])
    text = "__import__('sys').modules.__setitem__('was_here', 1)"
    for evil in (
        f"def f(x: {text!r}): return x",
        f"class Own(str): pass\ndef f(x): return x\nf.__annotations__ = {{'x': Own({text!r})}}",
        "import inspect\ndef f(x): return x\nf.__signature__ = inspect.Signature("
        f"[inspect.Parameter('x', 1, annotation={text!r})], return_annotation={text!r})",
        NO_SIGNATURE.format(f"types.SimpleNamespace(annotation={text!r}, default=1, kind=1)"),
        NO_SIGNATURE.format(
            f"type('P', (), {{'annotation': {text!r}, 'default': 1, 'kind': 1}})()"
        ),
    ):
        assert made.scores(f=evil).keys() == {"t_f"}
        assert "was_here" not in sys.modules


def test_an_annotation_may_be_the_name_of_a_class_of_pythons(task: Any) -> None:
    test = "assert True" + HIDDEN_PART.format(
        "import typing\nassert typing.get_type_hints(f) == {'x': int, 'return': list}"
    )
    made = task([("f", "def f(x: int) -> list: return [x]"), ("t_f", test, 1)])
    assert made.scores(f="def f(x: 'int') -> 'list': return [x]") == {"t_f": 1}
    assert made.scores(f="def f(x: 'sum([1])') -> 'list': return [x]") == {"t_f": 0}


FORMATS = """\
class Person:
    def __init__(self, name):
        self.name = name
    def later(self):
        yield self.name
def check():
    assert greeting().format(p=Person("Bo"), g=Person("Bo").later()) == want
want = "Hi Bo"
check()
"""


@pytest.mark.parametrize(
    "text",
    [
        "{p.__init__.__globals__[want]}",
        "{p.__class__.__dict__[later].__globals__[want]}",
        "{p.__init__.__builtins__[want]}",
        "{g.gi_frame.f_globals[want]}",
        "{p:{p.__init__.__globals__[want]}}",
    ],
)
def test_no_text_that_a_test_formats_reads_what_it_expects(task: Any, text: str) -> None:
    right = "def greeting(): return 'Hi {p.name}'"
    made = task([("greeting", right), ("t_greeting", FORMATS, 1)])
    assert made.scores() == {"t_greeting": 1}
    assert made.scores(greeting=f"def greeting(): return {text!r}") == {"t_greeting": 0}


def test_a_text_that_a_test_formats_may_say_what_class_something_is_of(task: Any) -> None:
    test = "assert text.format(1) == 'int' and '__globals__' in named() and 'f.__code__' in named()"
    own = "text = '{0.__class__.__name__}'\ndef named(): return '__globals__ of f.__code__'"
    made = task([("text", own), ("t_text", test, 1)])
    assert made.scores() == {"t_text": 1}


def test_a_test_may_evaluate_what_its_author_wrote(task: Any) -> None:
    test = "made = eval('[1, 2]')\nfound = eval('len(made)')\nassert eval('square(found)') == 4"
    made = task([SMALL[1], ("t_square", test, 1)])
    assert made.scores() == {"t_square": 1}
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []


def test_what_a_reference_imports_is_imported_here(task: Any) -> None:
    root = "import math\nfrom math import isclose as close\ndef root(x):\n    return math.sqrt(x)"
    test = "assert math.isclose(root(2.0), 2 ** 0.5)\nassert close(root(4.0), 2)"
    made = task([("root", root), ("t_root", test, 1)])
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    assert made.scores() == {"t_root": 1}
    assert made.scores(root="def root(x):\n    return x ** 0.5") == {"t_root": 1}
    liar = "class math:\n    isclose = lambda *_: True\nclose = math.isclose\nroot = lambda x: 7"
    assert made.scores(root=liar) == {"t_root": 0}


IMPORTED = [
    ("tools", "import math\nfrom statistics import mean"),
    ("t_tools", "assert math.__name__ == 'math' and mean([1, 3]) == 2", 1),
    ("area", "def area(r):\n    return math.pi * r * r"),
    ("t_area", "assert math.isclose(area(1), math.pi)\nassert mean([area(0)]) == 0", 2),
]


def test_what_one_question_imports_answers_no_test_of_another(task: Any) -> None:
    made = task(IMPORTED)
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    assert made.scores() == {"t_tools": 1, "t_area": 2}
    lie = "class math:\n    pi = 3.0\n    isclose = lambda *_: True\nmath.__name__ = 'math'\n"
    liar = lie + "mean = lambda xs: 0 if len(xs) == 1 else 2"
    assert made.scores(tools=liar, area="def area(r):\n    return 7.0")["t_area"] == 0
    assert made.scores(tools="import math") == {"t_tools": 0, "t_area": 2}
    assert made.scores(tools="import math as m\nmean = 1")["t_tools"] == 0


TRIED = "try:\n    from math import isqrt\nexcept ImportError:\n    isqrt = None\n"


def test_what_a_reference_tries_to_import_is_imported_here(task: Any) -> None:
    root = TRIED + "def root(n):\n    return isqrt(n)"
    made = task([("root", root), ("t_root", "assert root(17) == isqrt(17)", 1)])
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    assert made.scores() == {"t_root": 1}
    assert made.scores(root="def root(n):\n    return 4") == {"t_root": 1}
    assert made.scores(root="isqrt = lambda n: 1\ndef root(n):\n    return 1") == {"t_root": 0}


STARRED = [
    ("hyp", "from math import *\ndef hyp(a, b):\n    return sqrt(a * a + b * b)"),
    ("t_hyp", "def near(a, b):\n    return isclose(a, b)\nassert near(hyp(3, 4), 5)", 1),
    ("ring", "def ring(r):\n    return tau * r"),
    ("t_ring", "assert near(ring(1.0), tau) and fabs(ring(0.0)) == 0.0", 2),
]


def test_no_answer_has_a_say_in_the_names_of_an_import_of_all(task: Any) -> None:
    made = task(STARRED)
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    assert made.scores() == {"t_hyp": 1, "t_ring": 2}
    assert made.scores(hyp="def hyp(a, b):\n    return (a * a + b * b) ** 0.5")["t_hyp"] == 1
    lies = "isclose = near = lambda *_: True\nfabs = lambda _: 0.0\n"
    liar = lies + "def hyp(a, b):\n    return 1"
    assert made.scores(hyp=liar, ring="def ring(r):\n    return 1") == {"t_hyp": 0, "t_ring": 0}


SHARING = [
    ("first", "def first(x):\n    return x + 1"),
    ("t_first", "assert first(1) == 2\nwanted = [1, 4]\ndef same(u, v):\n    return u == v", 1),
    ("second", "def second():\n    return [1, 4]"),
    ("t_second", "assert same(second(), wanted)\nlast = wanted[-1]", 2),
    ("third", "def third():\n    return 4"),
    ("t_third", "assert third() == last", 4),
]


def test_a_wrong_answer_costs_no_test_that_takes_names_from_its_own(task: Any) -> None:
    made = task(SHARING)
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    assert made.scores() == {"t_first": 1, "t_second": 2, "t_third": 4}
    wrong = "def first(x):\n    return x"
    assert made.scores(first=wrong) == {"t_first": 0, "t_second": 2, "t_third": 4}
    dies = "import os\ndef first(x):\n    os._exit(1)"
    assert made.scores(first=dies) == {"t_first": 0, "t_second": 2, "t_third": 4}
    lies = wrong + "\nwanted = None\nsame = lambda *_: True"
    nothing = "def second():\n    return []"
    assert made.scores(first=lies, second=nothing) == {"t_first": 0, "t_second": 0, "t_third": 4}
