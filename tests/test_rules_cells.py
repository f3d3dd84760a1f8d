"""Modules that cells write, and names and code that are spelt out as texts."""

import pytest

from autograder.judge import student_cells
from autograder.judge.broken_rules import module_cell, unread
from autograder.judge.rules import QuestionRules
from tests.rule_breaks import OWN, RULES, SETUP, broken

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
    decoding = module_cell(
        "helper.py", b"from trainer.decoding import greedy as ready\nk = ready\n"
    )
    assert "trainer.decoding.greedy" in broken(answer, decoding)
    odd = module_cell("help'er.py", TEXT.encode())
    assert broken("from other import ready as f", odd) == ["torch.softmax"]


def test_an_encoding_is_named_where_python_finds_it():
    answer = "import helper\nf = lambda x: helper.ready(x)"
    for first in ("\r# coding: unicode_escape", "\r\r# coding: x", "# a\r# coding: utf-7\r#"):
        text = f"{first}\r\nname = 1 # \\n    name = sorted\ndef ready(s): return s.exp()\n"
        written = f"%%writefile helper.py\n{text}"
        handed_in = module_cell("helper.py", text.encode())
        for cell in (written, handed_in):
            found = unread(answer, RULES, (cell,), (SETUP,), ["f"]).modules
            assert ("helper" in found) == (not first.startswith("\r\r")), first


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
        "load('trainer.decoding').greedy_decode",
        "load('trainer.' + 'decoding.x')",
        "load(name='module://trainer.decoding')",
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
        "print('trainer.decoding')",
        "raise ValueError('trainer.decoding is not there')",
        "x.get('sorted')",
        "x.get('code.0')",
        "x.load('decoding', 'trainer', 'encoder.trainer.decoding')",
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
    assert left("def k(x): return [torch.softmax(x)]") == set(), "which is stopped while it runs"
    assert left("torch.softmax(x, -1).numpy().tofile('a')") == {(0, 0)}, "which is before that"
    asked = "def g(x): return [torch.softmax(x)]\nclass A:\n    def h(self): return g\nA().h()(x)"
    assert left(asked) == {(0, 2)}
    assert left("k = []\nk.append(math.exp)") == set()


@pytest.mark.parametrize(
    ("use", "is_left"),
    [
        ("import numpy as np\nk = [np.linalg.lstsq]", True),
        ("from numpy.linalg import _umath_linalg as u\nk = [u.lstsq]", True),
        ("import numpy as np\nk = [np.linalg.norm]", False),
        ("def k(): return torch.linalg.lstsq", False),  # which is stopped while it runs
    ],
)
def test_a_bare_name_is_out_of_sight_in_every_library_but_torch(use: str, is_left: bool):
    rules = QuestionRules(forbid=("lstsq",))
    found = unread("def f(x): return x", rules, (use,), (SETUP,), ["f"])
    assert bool(found.statements) == is_left
