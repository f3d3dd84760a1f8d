"""Rules see what a notebook's cells run, whatever they look like, and take nothing else for it."""

import ast
import random

import pytest
from IPython.core.inputtransformer2 import TransformerManager

from autograder.common import magics
from autograder.common.plain_python import LONGEST
from autograder.common.scopes import facts
from autograder.common.syntax import parse, read
from autograder.judge import student_cells
from autograder.judge.broken_rules import broken_rules, module_cell, unread
from autograder.judge.made_of import Place
from autograder.judge.rules import QuestionRules

SETUP = "import torch\nimport torch.nn.functional as F\nimport math\n"
RULES = QuestionRules(forbid=("torch.softmax", "sum", "sorted", "lab.decoding", "math.prod"))
LAST = Place(9, 9)


def broken(answer: str, *others: str, names: tuple[str, ...] = (), place: Place | None = None):
    """Names found in an answer."""
    found = broken_rules(answer, RULES, others, (SETUP,), names, place)
    return list(dict.fromkeys(hit.name for hit in found))


READY = "def f(x):\n    return torch.softmax(x, -1)"
OWN = "def f(x):\n    return x.exp()"


def as_prompts(text: str) -> str:
    """A cell as it looks when it is copied from a Python session."""
    first, *rest = text.split("\n")
    return "\n".join([f">>> {first}", *(f"... {line}" for line in rest)])


def as_session(text: str) -> str:
    """A cell as it looks when it is copied from an IPython session."""
    first, *rest = text.split("\n")
    return "\n".join([f"In [12]: {first}", *(f"    ...: {line}" for line in rest)])


def indented(text: str) -> str:
    """A cell that is indented as a whole."""
    return "\n".join(f"    {line}" for line in text.split("\n"))


@pytest.mark.parametrize("written", [as_prompts, as_session, indented])
def test_a_cell_that_only_a_notebook_takes_is_read(written):
    assert broken(written(READY)) == ["torch.softmax"]
    assert broken(written(READY), names=("f",)) == ["torch.softmax"]
    assert broken(written(OWN), names=("f",)) == []
    assert broken("def f(x): return g(x)", written(READY.replace("f(", "g("))) == ["torch.softmax"]
    assert facts(written(OWN)).bound == {"f"}


RUN = [
    "%time {}",
    "x = %time {}",
    "x = %timeit -n 10 -r 3 -o {}",
    "%timeit -n10 -q {}",
    "%prun -s cumulative -l 5 {}",
    "%time --no-raise-error {}",
    "%time %time {}",
    "if True:\n    if True:\n        %time y = {}\n    %time z = 1",
    "def g(y):\n    x = %time {}\n    return x\ng(1)",
    "%%time\n{}",
    "%%timeit -n 5 k = {}\nk",
    "%%timeit k = 1\n{}",
    "%%capture out\n%time {}",
    "%%prun -q {}\n1",
    "%%prun\n{}",
    "\n\n  %%time\n  {}",
    "time y = {}",
    "%precision {{{}}}",
    "%config IPCompleter.greedy = {}",
    "files = !ls {{{}}}",
    "%time \\\n  {}",
    "/print {}",
]


@pytest.mark.parametrize("cell", RUN)
def test_the_code_of_a_magic_is_read(cell: str):
    assert broken(cell.format("torch.softmax(x,-1)")) == ["torch.softmax"]
    assert broken(cell.format("torch.exp(x)")) == []


def test_code_that_a_magic_does_not_run_is_not_read():
    for cell in ("%%bash\nsum(1)", "%pip install sum(1)", "%%html\nsum(1)", "!sum(1)", "sum?"):
        assert broken(cell) == [], cell


@pytest.mark.parametrize(
    "cell",
    [
        "%config InlineBackend.figure_format = 'retina'",
        "%%writefile a.py\nx = 1",
        "%%capture\n%%writefile a.py\nx = 1",
        "!ls {folder}",
        "%matplotlib {backend}",
        "%%bash\nls",
    ],
)
def test_what_a_magic_does_in_passing_is_done_by_nobody_who_only_runs_the_code(cell: str):
    """The instructor's cells run beside the tests, where there are no files and no shell."""
    tree = parse(cell)
    assert tree is not None
    assert all(isinstance(node, ast.Pass) for node in tree.body)
    assert facts(cell).needed == facts(cell).bound == frozenset()


def test_a_statement_keeps_its_line():
    hits = broken_rules("\n%who\n!ls \\\n  -l\n%time y = sum(x)", RULES)
    assert [hit.line for hit in hits] == [5]
    assert [hit.line for hit in broken_rules("%%time\n1\nsum(x)", RULES)] == [3]


# Pieces of cells, each begins after a |
PIECES = """x = 1
|    y = 2
|if x:
|def f(a):
|%time z = 3
|    %time w = 4
|!ls
|        !ls \\
  -l
|v = %time 5
|u = !ls
|'''
|(
|)
|% 24
|x?
|%%time
|>>> a
|... b
|In [1]: c
|   ...: d
|
|\t
|# %who
|?x
|/f a b
|,f a b
|x = 'a
|f(x,
  %time)
|else:
|%
|x = %
|\\
|@f
"""


def _dumped(text: str | None) -> str:
    tree = None if text is None else parse_plain(text)
    return "" if tree is None else ast.dump(tree)


def parse_plain(text: str) -> ast.Module | None:
    """The tree of what is Python already."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):
        return None


def test_prompts_and_magics_are_found_where_ipython_finds_them():
    drawn, same, pieces = random.Random(3), 0, PIECES.split("|")
    for _ in range(1500):
        cell = "".join(drawn.choices(pieces, k=drawn.randrange(1, 9)))
        try:
            wanted = _dumped(TransformerManager().transform_cell(cell))
        except Exception:  # noqa: BLE001  (then the notebook does not run it)
            wanted = ""
        lines, _ = magics._cleaned(cell)
        found = "".join(lines) if magics._cell_call(lines) else magics._plain(lines)
        if not magics._cell_call(lines):
            assert _dumped(found) == wanted, cell
            same += bool(wanted)
    assert same > 150


def test_what_is_too_long_or_too_deep_to_be_read_is_no_answer():
    deep = "x = " + "-" * 90_000 + "1\n"
    for more in (deep, "#" * LONGEST + "\n", "a" + ".a" * 300 + "\n", f"%time {deep}"):
        (hit,) = broken_rules(f"{more}{READY}", RULES)
        assert "too long, or nested too deep" in hit.words
        assert read(more)[1]
        found = unread("def f(x): return g(x)", RULES, ("1", more), (SETUP,), ["f"], LAST)
        assert found.statements == {(1, -1)}
    assert broken("def f(:\n sum") == [] and not read("def f(:")[1]


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
        "lab.training",
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
    return bool(broken_rules(answer, COURSE, (), (SETUP, "from lab import blocks, training")))


@pytest.mark.parametrize(
    "answer",
    [
        "def f(model):\n    return model.training",
        "def f(model):\n    return getattr(model, 'training')",
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
    import lab.training  # noqa: F401  (as in the process that reads answers)

    assert not caught(answer)


@pytest.mark.parametrize(
    "answer",
    [
        "def f(x): return training.train_step(x)",
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


# --- files --------------------------------------------------------------------------------------

TEXT = "import torch\ndef ready(s): return torch.softmax(s, -1)\n"
FIRST = [
    "%%writefile helper.py -a",
    "%%writefile 'helper.py'",
    '%%writefile -a "helper.py"',
    "%%file --append ./helper.py",
    ">>> %%writefile helper.py  ",
    "%%writefile {name}",
    "%%writefile $name",
    "%%writefile {'help' + 'er'}.py",
    "%%capture\n%%writefile helper.py",
    "%%time\n%%writefile helper.py",
]


@pytest.mark.parametrize("first", FIRST)
def test_a_module_is_read_however_its_file_is_named(first: str):
    for answer in ("import helper\nf = lambda x: helper.ready(x)", "from helper import ready as f"):
        assert broken(answer, f"{first}\n{TEXT}") == ["torch.softmax"], answer
        own = f"{first}\ndef ready(s): return s.exp()\n"
        assert broken(answer, own) == []
        assert (
            not unread(answer, RULES, (own,), (SETUP,), ["f"]).modules
            or "{" in first
            or "$" in first
        )
    assert broken(OWN, f"{first}\n{TEXT}") == []


def test_a_module_is_read_in_the_encoding_that_it_names():
    answer = "import helper\nf = lambda x: helper.ready(x)"
    for name in ("latin-1", "utf-8", "ascii", "cp1252"):
        cell = f"%%writefile helper.py\n# -*- coding: {name} -*-\n{TEXT}"
        assert broken(answer, cell) == ["torch.softmax"]
        own = f"%%writefile helper.py\n# coding: {name}\nname = 1\ndef ready(s): return s.exp()"
        assert not unread(answer, RULES, (own,), (SETUP,), ["f"]).modules
    for name in ("utf-7", "unicode_escape", "no-such"):
        hides = f"%%writefile helper.py\n# coding: {name}\n# +AAo-x\ndef ready(s): return s.exp()"
        assert unread(answer, RULES, (hides,), (SETUP,), ["f"]).modules == {"helper"}


def test_a_module_that_was_handed_in_is_read_as_python_reads_it():
    answer = "from helper import ready as f"
    for text in (
        "# coding: latin-1\nä = 1\n",
        "\n# coding: latin-1\nx = 'ä'\n",
        "from lab.a import b\n",
    ):
        for body, found in ((TEXT, ["torch.softmax"]), ("def ready(s): return s\n", [])):
            content = f"{text}{body}".encode("latin-1" if "coding" in text else "utf-8")
            cell = module_cell("helper.py", content)
            assert broken(answer, cell) == found
            assert not unread(answer, RULES, (cell,), (SETUP,), ["f"]).modules
    hides = module_cell("helper.py", f"# coding: utf-7\n{TEXT}".encode())
    assert unread(answer, RULES, (hides,), (SETUP,), ["f"]).modules == {"helper"}
    decoding = module_cell("helper.py", b"from lab.decoding import greedy as ready\nk = ready\n")
    assert "lab.decoding.greedy" in broken(answer, decoding)
    odd = module_cell("help'er.py", TEXT.encode())
    assert broken("from other import ready as f", odd) == ["torch.softmax"]


def test_files_that_are_no_modules_are_left_alone():
    assert student_cells.file("%%writefile notes.txt\nsum") is None
    assert student_cells.file("print('%%writefile a.py')") is None
    assert broken(OWN, "%%writefile notes.txt\nsum(x)") == []


# --- ways that are no names ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        ("f.__code__ = g", "__code__"),
        ("g = (x for x in y)\ncode = g.gi_code.replace(co_consts=())", "gi_code"),
        ("import types\ntypes.CodeType.replace(a)", "types.CodeType.replace"),
        ("import dataclasses\ndataclasses._create_fn('f', [], ['x'])", "dataclasses._create_fn"),
        ("import numpy as np\nnp.testing.rundocs('a.py')", "numpy.testing.rundocs"),
        ("from numpy.testing import runstring as r\nr('x', {})", "numpy.testing.runstring"),
        (
            "import numpy.testing\nnumpy.testing._private.utils.runstring('x', {})",
            "numpy.testing._private.utils.runstring",
        ),
        (
            "from functools import singledispatch as d\n@d\ndef f(x): pass\n"
            "@f.register\ndef _(x: 'eval(k) or int'): pass",
            "eval",
        ),
        ("__annotations__['x'] = 'e' + 'val(1)'", "__annotations__"),
        ("f.__annotations__ = {'x': 'e' + 'val(1)'}", "__annotations__"),
        (
            "from functools import singledispatch\nf = singledispatch(len)\n"
            "f.register(torch.Tensor, torch.softmax)",
            "torch.softmax",
        ),
    ],
)
def test_a_way_to_code_by_its_text_is_found(answer: str, name: str):
    assert name in broken(answer)


@pytest.mark.parametrize(
    "answer",
    [
        "import numpy as np\nnp.testing.assert_allclose(f(1), 1)",
        "from functools import singledispatch\n@singledispatch\ndef f(x): return x\n"
        "@f.register\ndef _(x: 'int') -> 'int': return x + 1",
        "import dataclasses\n@dataclasses.dataclass\nclass A:\n    x: 'int' = 1\n"
        "a = dataclasses.replace(A(), x=2)",
        "def f(text): return text.replace('code', '')",
        "class A:\n    def __init__(self): self.register_buffer('code', 1)",
    ],
)
def test_what_only_looks_like_such_a_way_is_left_alone(answer: str):
    assert broken(answer) == []


CLASS = "class A:\n    def __init__(self, x):\n        {}\n"


@pytest.mark.parametrize(
    "line",
    [
        "for name in ('w_q', 'w_k'): getattr(self, name)",
        "x = [getattr(self, name) for name in ['w_q', 'w_k']]",
        "for name, start in (('bias', 0), ('gain', 1)): getattr(self, name)",
        "for name, start in zip(('bias', 'gain'), x): getattr(self, name)",
        "for i, name in enumerate(('bias', 'gain')): getattr(self, name)",
        "getattr(self, f'norm{x}')",
        "getattr(self, 'norm' + str(x))",
        "import operator\n        operator.attrgetter('log_p', 'a.b')(x)",
        "from operator import methodcaller\n        methodcaller('mean', -1, keepdim=True)(x)",
        "vars(self).update(eps=x)",
        "self.__dict__.update(eps=x)",
        "import gc\n        gc.collect()",
        "from gc import collect\n        collect()",
    ],
)
def test_a_name_that_is_spelt_out_is_read(line: str):
    assert broken(CLASS.format(line)) == []


@pytest.mark.parametrize(
    "line",
    [
        "for name in ('exp', 'softmax'): getattr(x, name)",
        "for name in ('exp', 'prod'): getattr(math, name)",
        "for name in ('exp', x): getattr(self, name)",
        "for name in ('exp', *x): getattr(self, name)",
        "for name in ('exp',):\n            name = x\n            getattr(self, name)",
        "for name in ('exp',):\n            name += x\n            getattr(self, name)",
        "for name in x: getattr(self, name)",
        "for name, y in (('exp', 1), x): getattr(self, name)",
        "(lambda name: getattr(self, name))(x)\n        name = 'exp'",
        "getattr(x, f'soft{x}')",
        "getattr(x, f'_soft{x}')",
        "getattr(x, f'__{x}')",
        "getattr(torch, f'norm{x}')",
        "getattr(x, f'{x}')",
        "getattr(x, f'mod{x}')",
        "def zip(*a): return x\n        for name, y in zip(('a',), x): getattr(self, name)",
        "import operator\n        operator.attrgetter('softmax')(x)",
        "import operator\n        operator.attrgetter('nn.functional.softmax')(torch)",
        "import operator, sys\n        operator.attrgetter('modules')(sys)",
        "import operator\n        operator.attrgetter(x)(x)",
        "import operator\n        operator.attrgetter(*x)(x)",
        "import operator\n        map(operator.attrgetter, x)",
        "from operator import methodcaller\n        methodcaller('softmax', -1)(x)",
        "vars(x).update(eps=x)",
        "y = vars(self)",
        "vars(self).pop('a')",
        "import gc\n        gc.get_objects()",
        "import gc\n        gc.collect.__self__",
    ],
)
def test_a_name_that_is_not_spelt_out_or_forbidden_is_found(line: str):
    assert broken(CLASS.format(line))


TYPED = "from jaxtyping import Float\nimport jaxtyping as jt\nfrom torch import Tensor\n"


@pytest.mark.parametrize(
    "use",
    [
        "def f(x: Float[Tensor, '... d_model']) -> Float[Tensor, 'n #d 2*k+1'] | None: return x",
        "def f(x: jt.Float[Tensor, '']): return isinstance(x, Float[Tensor, '*b n-1'])",
        "Row = Float[Tensor, 'b _ ?n d=4 k//2']\ndef f(x: Row): return x",
    ],
)
def test_a_shape_is_no_code(use: str):
    assert broken(TYPED + use) == []


@pytest.mark.parametrize(
    "use",
    [
        "isinstance(x, Float[Tensor, '(k.append(1)or(1))'])",
        "isinstance(x, Float[Tensor, '{k.append(1)}'])",
        "isinstance(x, Float[Tensor, 'a.b'])",
        "isinstance(x, Float[Tensor, text])",
        "isinstance(x, Float[Tensor, '[a]'.replace('a', 'b')])",
        "isinstance(x, jt.Float[Tensor, '(1)'])",
        "K = Float\nisinstance(x, K[Tensor, '(1)'])",
        "isinstance(x, [Float][0][Tensor, '(1)'])",
        "isinstance(x, [jt][0].Float[Tensor, '(1)'])",
        "isinstance(x, Float.__getitem__((Tensor, '(1)')))",
    ],
)
def test_a_shape_in_which_code_may_be_is_evaluation(use: str):
    assert "jaxtyping" in " ".join(broken(TYPED + use))


@pytest.mark.parametrize(
    "use",
    [
        "load('lab.decoding').greedy_decode",
        "load('lab.' + 'decoding.x')",
        "load(name='module://lab.decoding')",
        "load('math.prod')",
        "load('importlib.util')",
        "import pytest\npytest.importorskip(x)",
        "from pytest import importorskip as load\nload(x)",
        "from matplotlib.backends.registry import backend_registry as b\nb.load_backend_module(x)",
    ],
)
def test_a_module_that_is_loaded_by_its_names_text_is_found(use: str):
    assert broken(use)


@pytest.mark.parametrize(
    "use",
    [
        "print('lab.decoding')",
        "raise ValueError('lab.decoding is not there')",
        "x.get('sorted')",
        "x.get('code.0')",
        "x.load('decoding', 'lab', 'encoder.lab.decoding')",
        "import pytest\npytest.approx(1)",
    ],
)
def test_a_text_that_is_no_modules_name_is_left_alone(use: str):
    assert broken(use) == []


def test_what_no_stop_is_known_for_is_left_out_of_the_answer():
    def left(cell: str) -> set[tuple[int, int]]:
        return set(unread("def f(x): return k[0](x)", RULES, (cell,), (SETUP,), ["f"]).statements)

    assert left("k = []\nk.append(math.prod)") == {(0, 1)}
    assert left("f.register(list)(math.prod)") == {(0, 0)}
    assert left("k = []\nk.append(torch.softmax)") == set(), "which is stopped while it runs"
    assert left("k = []\nk.append(math.exp)") == set()
