"""What rules forbid is found in answers, however it is spelt and wherever it stands."""

import importlib
import random

import pytest

from autograder.judge.broken_rules import broken_rules, statements, unread
from autograder.judge.rules import QuestionRules

SETUP = "import math\nimport torch\nimport torch.nn.functional as F\nfrom torch import Tensor\n"
RULES = QuestionRules(forbid=("torch.softmax", "torch.nn.Softmax", "sorted", "torch.linalg"))


def broken(answer: str, rules: QuestionRules = RULES, others: tuple[str, ...] = ()) -> list[str]:
    """Names found in an answer."""
    return [hit.name for hit in broken_rules(answer, rules, others, (SETUP,))]


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        ("def f(x):\n    return torch.softmax(x, -1)", "torch.softmax"),
        ("import torch as t\nf = lambda x: t.softmax(x, -1)", "torch.softmax"),
        ("def f(x):\n    return F.softmax(x, -1)", "torch.nn.functional.softmax"),
        ("from torch import softmax as s\ndef f(x): return s(x, -1)", "torch.softmax"),
        ("def f(x):\n    from torch import softmax as s\n    return s(x, -1)", "torch.softmax"),
        ("from torch.nn import functional as g\ng.softmax", "torch.nn.functional.softmax"),
        ("def f(x): return x.softmax(-1)", ".softmax"),
        ("def f(x): return x.softmax_(-1)", ".softmax_"),
        ("class A:\n    def softmax(self): pass\ndef f(x): return x.softmax(-1)", ".softmax"),
        ("t = torch\nu = t\ndef f(x): return u.softmax(x, -1)", "torch.softmax"),
        ("a, b = torch, 1\na.softmax", "torch.softmax"),
        ("torch.ops.aten.softmax.int", "torch.ops.aten.softmax"),
        ("torch.Tensor.softmax", "torch.Tensor.softmax"),
        ("torch.nn.Softmax(-1)", "torch.nn.Softmax"),
        ("torch.linalg.inv(x)", "torch.linalg.inv"),
        ("from torch.linalg import inv\ninv(x)", "torch.linalg.inv"),
        ("def f(x): return getattr(torch, 'softmax')(x)", "torch.softmax"),
        ("def f(x): return getattr(torch, 'soft' + 'max')(x)", "torch.softmax"),
        ("def f(x): return getattr(torch, f'soft{chr(109)}ax')(x)", "getattr with a computed name"),
        ("getattr(x, 'softmax')", "softmax"),
        ("getattr(x, ''.join(['a', 'b']))", "getattr with a computed name"),
        ("getattr(torch, " + "+".join(["'s'"] * 400) + ")", "getattr with a computed name"),
        ("torch.__dict__['softmax']", "__dict__"),
        ("vars(torch)['softmax']", "vars"),
        ("globals()['torch'].tanh", "globals"),
        ("eval('torch.' + 'softmax')", "eval"),
        ("exec('x = 1')", "exec"),
        ("compile('1', '', 'eval')", "compile"),
        ("__import__('torch')", "__import__"),
        ("import importlib\nimportlib.import_module('torch')", "importlib.import_module"),
        ("from importlib import import_module as i\ni('torch')", "importlib.import_module"),
        ("import builtins\nbuiltins.eval('1')", "builtins.eval"),
        ("__builtins__['eval']('1')", "eval"),
        ("__builtins__.sorted(x)", "__builtins__"),
        ("import sys\nsys.meta_path[2].find_spec('torch')", "sys.meta_path"),
        ("exit._ip.ex('1')", "_ip"),
        ("import sys\nsys.modules['torch']", "sys.modules"),
        ("import operator\noperator.attrgetter('softmax')(torch)", "softmax"),
        ("import operator\noperator.attrgetter(name)(torch)", "operator.attrgetter"),
        ("get_ipython().run_cell('1')", "get_ipython"),
        ("import glob\nglob.os.sys.modules['builtins'].sorted", "glob.os.sys.modules"),
        ("from glob import os\nos.popen('x')", "glob.os.popen"),
        ("import random\nrandom._os.popen('x')", "random._os.popen"),
        ("import gzip\ngzip.builtins.eval('1')", "gzip.builtins.eval"),
        ("import enum\nenum.bltns.getattr(x, 'so' + 'rt')", "enum.bltns.getattr"),
        ("from enum import bltns as b\nb.getattr(x, 'so' + 'rt')", "enum.bltns.getattr"),
        ("def f(m):\n    match m:\n        case object(bltns=b): pass", "bltns"),
        ("torch.ops.aten.__getattr__('soft' + 'max')", "__getattr__"),
        ("def f(x, op): return op.decompose(x)", "decompose"),
        ("def f(x, g=lambda sorted: 1): return sorted(x)", "sorted"),
        ("def f(x): return sorted(x)", "sorted"),
        ("s = sorted\ndef f(x): return s(x)", "sorted"),
        ("sorted = sorted\ndef f(x): return sorted(x)", "sorted"),
        ("def f(x, sorted=sorted): return sorted(x)", "sorted"),
        ("[sorted for sorted in [sorted]]", "sorted"),
        ("from builtins import sorted as s\ns([1])", "builtins.sorted"),
        ("class A:\n    def sorted(self): pass\nsorted([1])", "sorted"),
        ("%time y = sorted(x)", "sorted"),
        ("%%time\ny = torch.softmax(x, -1)", "torch.softmax"),
        ("from torch import *\ndef f(x): return softmax(x, -1)", "softmax"),
        ("functools.reduce(getattr, ['soft' + 'max'], torch)", "getattr with a computed name"),
        ("g = getattr\ng(torch, name)", "getattr with a computed name"),
        ("getattr(*[torch, 'softmax'])", "getattr with a computed name"),
        ("getattr(torch)", "getattr with a computed name"),
        ("from builtins import getattr as g\ng(torch, name)", "builtins.getattr"),
        ("match x:\n    case object(softmax=f):\n        f(-1)", ".softmax"),
        ("torch._C._DisableTorchDispatch()", "torch._C._DisableTorchDispatch"),
        ("from torch import _C as c\nc._DisableTorchDispatch()", "torch._C._DisableTorchDispatch"),
        ("[torch][0]._C", "_C"),
        ("import torch.library as l\nl.Library('aten', 'IMPL')", "torch.library.Library"),
        ("import autograder.bridge.student as s\ns.SHELL", "autograder.bridge.student.SHELL"),
        ("print.__self__.eval('1')", "__self__"),
        ("f.__code__", "__code__"),
        ("__loader__.load_module('torch')", "load_module"),
        ("import pkgutil\npkgutil.resolve_name('torch:softmax')", "pkgutil.resolve_name"),
        (
            "from torch.nn import functional as F2\nd = {'f': F2.softmax}",
            "torch.nn.functional.softmax",
        ),
        ("@torch.softmax\ndef f(x): pass", "torch.softmax"),
        ("class A(torch.nn.Softmax): pass", "torch.nn.Softmax"),
        ("def f(x, s=lambda y: torch.softmax(y, -1)): return s(x)", "torch.softmax"),
        ("from torch import softmax", "torch.softmax"),
        ("import subprocess as s\ns.Popen(['python'])", "subprocess.Popen"),
        ("import os\nos.posix_spawn('/bin/sh', [], {})", "os.posix_spawn"),
        ("from os import fork\nfork()", "os.fork"),
        ("import multiprocessing as m\nm.Pool()", "multiprocessing.Pool"),
        (
            "import concurrent.futures as c\nc.ProcessPoolExecutor()",
            "concurrent.futures.ProcessPoolExecutor",
        ),
        ("import asyncio\nasyncio.create_subprocess_exec('a')", "asyncio.create_subprocess_exec"),
        ("import pydoc\npydoc.locate('torch.' + 'softmax')", "pydoc.locate"),
        (
            "from IPython.core.interactiveshell import InteractiveShell as I\nI.instance().ex('1')",
            "IPython.core.interactiveshell.InteractiveShell.instance",
        ),
        ("import string\nstring.Formatter().get_field('0.a', [x], {})", "string.Formatter"),
        ("torch.jit.script(layer)", "torch.jit.script"),
        ("import torch.fx as fx\nfx.symbolic_trace(layer)", "torch.fx.symbolic_trace"),
        ("torch.compile(layer)", "torch.compile"),
        ("torch.load('f.pt')", "torch.load"),
        ("torch.library.Library.impl = lambda *a: None", "torch.library.Library.impl"),
        ("torch.softmax = mine", "torch.softmax"),
        ("del torch.softmax", "torch.softmax"),
    ],
)
def test_a_forbidden_name_is_found_however_it_is_spelt(answer: str, name: str):
    assert name in broken(answer)


@pytest.mark.parametrize(
    "answer",
    [
        "def f(x):\n    e = torch.exp(x - x.max())\n    return e / e.sum()",
        "def softmax(x): return x.exp() / x.exp().sum()\ndef f(x): return softmax(x)",
        "def f(x):\n    softmax = x.exp()\n    return softmax / softmax.sum()",
        "class A:\n    def softmax(self, x): return x\n    def go(self, x): return self.softmax(x)",
        "class A:\n    def __init__(self): self.softmax = 1\n    def go(self): return self.softmax",
        "def f(model): return model.eval()",
        "def f(model): return [torch.trace(m.weight) for m in model.modules()]",
        "import re\nP = re.compile('a')",
        "def sorted(x): return x\ndef f(x): return sorted(x)",
        "def f(x):\n    sorted = list(x)\n    return sorted",
        "def f(x, eval=None): return eval",
        "'torch.softmax'  # torch.softmax",
        "def f(x): return getattr(x, 'shape')",
        "def f(x): return getattr(x, 'sh' + 'ape')",
        "from torch import softmax\ndef f(x): return x.exp()",
        "def getattr(x, y): return x\ngetattr(1, y)",
        "x.sort()",
        "hasattr(torch, name)",
        "def f(:\n torch.softmax",
        "",
    ],
)
def test_what_is_not_forbidden_is_left_alone(answer: str):
    assert broken(answer) == []


def test_without_a_list_nothing_is_forbidden():
    assert broken("eval('torch.softmax')", QuestionRules()) == []


def test_allow_takes_names_out_again():
    rules = QuestionRules(("torch.linalg", "softmax", "sorted"), ("torch.linalg.norm", "getattr"))
    assert broken("torch.linalg.norm(x)", rules) == []
    assert broken("torch.linalg.inv(x)", rules) == ["torch.linalg.inv"]
    assert broken("getattr(x, name)", rules) == []
    assert broken("import numpy as np\nnp.softmax(x)", rules) == ["numpy.softmax"]
    assert broken("x.softmax(-1)", QuestionRules((".softmax",))) == [".softmax"]
    assert broken("torch.softmax(x, -1)", QuestionRules((".softmax",))) == []


def test_the_words_say_what_where_and_what_to_do():
    (hit,) = broken_rules("import torch\n\ny = torch.softmax(x, -1)", RULES)
    assert hit.line == 3
    assert hit.words == (
        "your answer calls torch.softmax (line 3), which this question does not allow; "
        "write it yourself"
    )
    (hit,) = broken_rules("import torch\nfast = torch.compile(mine)", RULES)
    assert hit.words.endswith("since what it runs or reaches cannot be seen; do without it")
    (hit,) = broken_rules("def f(error): return error.obj", RULES, (), (SETUP,))
    assert hit.words.endswith("since what it runs or reaches cannot be seen; do without it")


PICKS = """\
class Layer(torch.nn.Module):
    names = ("w_q", "w_k")
    def pick(self, name):
        return getattr(self, name)
    def forward(self, x):
        return [self.pick(name)(x) for name in self.names]
"""


def test_an_object_of_ones_own_may_be_asked_by_a_name_that_is_computed():
    importlib.import_module("torch")  # what is stopped is known of what is in use
    stopped = QuestionRules(("torch.softmax", "torch.nn.MultiheadAttention"), ())
    assert broken(PICKS, stopped) == []
    unseen = QuestionRules(("torch.softmax", "sorted"), ())
    assert broken(PICKS, unseen) == ["getattr with a computed name"]
    for other in (
        PICKS.replace("self, name)\n", "x, name)\n"),
        PICKS.replace("        return getattr", "        self = torch\n        return getattr"),
        "def pick(self, name):\n    return getattr(self, name)",
        "self = torch\nclass Layer:\n    w = getattr(self, name)",
        PICKS.replace("torch.nn.Module", "torch.Tensor"),
        PICKS.replace("torch.nn.Module", "type(torch)"),
    ):
        assert broken(other, stopped) == ["getattr with a computed name"], other


def test_a_helper_cell_is_searched_if_the_answer_uses_it():
    helper = "def helper(x): return torch.softmax(x, -1)"
    middle = "def middle(x): return helper(x)"
    assert broken("def f(x): return middle(x)", others=(helper, middle)) == ["torch.softmax"]
    assert broken("def f(x): return x", others=(helper, middle)) == []
    (hit,) = broken_rules("helper(x)", RULES, (helper,), (SETUP,))
    assert "line 1 of another cell of yours" in hit.words


def test_of_another_cell_only_what_the_answer_uses_is_searched():
    cell = (
        "def helper(x): return x\n"
        "print(helper(torch.softmax(x, -1)))\n"
        "def other(x): return torch.softmax(x, -1)\n"
    )
    assert broken("def f(x): return helper(x)", others=(cell,)) == []
    assert broken("def f(x): return other(x)", others=(cell,)) == ["torch.softmax"]
    inside = ("if True:\n    k.s = F.softmax", "for g in (F.softmax,):\n    setattr(k, 's', g)")
    for kept in (*inside, "def put():\n    k.s = F.softmax\nput()"):
        assert broken("def f(x): return k", others=(f"k = {{}}\n{kept}",)), kept
    for kept in ("k.s = torch.softmax", "k['s'] = torch.softmax", "setattr(k, 's', F.softmax)"):
        assert len(broken("def f(x): return k", others=(f"k = {{}}\n{kept}",))) == 1, kept
    hidden = "def g():\n    global kept\n    kept = torch.softmax"
    assert broken("def f(x): return kept(x)", others=(hidden,))


PATCHES = [
    "if True:\n    import torch as t\n    k = t.softmax\n"
    "    for T in (t.Tensor,):\n        T.positive = lambda self: k(self, -1)",
    "T = torch.Tensor\nT.positive = lambda self: self.softmax(-1)",
    "from torch import *\nTensor.positive = lambda self: self.softmax(-1)",
    "setattr(torch.Tensor, 'positive', F.softmax)",
    "type.__setattr__(torch.Tensor, 'positive', F.softmax)",
    "torch.__dict__['exp'] = F.softmax",
    "vars(torch).update(exp=F.softmax)",
    "vars(torch)['exp'] = F.softmax",
    "torch.nn.__dict__.update(exp=F.softmax)",
    "def go():\n    Tensor.positive = F.softmax\ngo()",
    "torch.library.Library.impl = lambda *a, **k: None",
    "from unittest.mock import patch\npatch('torch.exp', F.softmax).start()",
]


@pytest.mark.parametrize("cell", PATCHES)
def test_what_is_set_inside_a_library_is_a_part_of_every_answer(cell: str):
    assert broken("def f(x): return x.positive()", others=(cell,))


@pytest.mark.parametrize(
    "cell",
    [
        "torch.backends.cudnn.deterministic = True",
        "def demo(x):\n    torch.backends.cudnn.allow_tf32 = False\n    return x.softmax(-1)",
        "print(len(vars(torch)), list(torch.__dict__)[:3])",
        "def look(): return vars(torch)",
        "torch.layer_norm = mine",
        "m = torch.nn.Softmax(-1)\nm.note = torch.softmax",
        "class A:\n    def go(self): self.s = torch.softmax",
    ],
)
def test_a_patch_costs_only_where_what_it_holds_is_forbidden(cell: str):
    assert broken("def f(x): return torch.exp(x)", others=(cell,)) == []


@pytest.mark.parametrize(
    "cell",
    [
        "%%writefile helper.py\nimport torch\ndef ready(s): return torch.softmax(s, -1)\n",
        "%%file -a helper.py\ndef ready(s): return s.softmax(-1)\n",
        "open('helper.py', 'w').write('def ready(s): return s.softmax(-1)')",
        "import pathlib as p\np.Path(n).write_text('def ready(s): return s.softmax(-1)')",
    ],
)
def test_a_module_that_a_cell_writes_is_searched_if_the_answer_imports_it(cell: str):
    for answer in ("import helper\nf = lambda x: helper.ready(x)", "from helper import ready as f"):
        assert ".softmax" in " ".join(broken(answer, others=(cell,)))
    assert broken("def f(x): return torch.exp(x)", others=(cell,)) == []
    assert broken("import torch.nn\ndef f(x): return torch.exp(x)", others=(cell,)) == []


def test_what_is_written_and_is_no_module_is_left_alone():
    cells = ("open('notes.txt', 'w').write('softmax')", "%%writefile notes.txt\ntorch.softmax\n")
    assert broken("import helper\nhelper.f()", others=cells) == []


def test_an_answer_may_be_compared_with_the_ready_function():
    answer = (
        "def f(x): return x.exp()\n"
        "wanted = torch.softmax(x, -1)\n"
        "assert torch.allclose(f(x), F.softmax(x, -1))\n"
    )
    assert broken_rules(answer, RULES, (), (SETUP,), ["f"]) == ()
    assert broken_rules("f = torch.softmax\n" + answer, RULES, (), (SETUP,), ["f"])
    assert broken_rules("def f(x): return wanted\n" + answer, RULES, (), (SETUP,), ["f"])


LOCALS = [
    "def f(x):\n    n = 1\n    return x / n",
    "def f(n):\n    return n",
    "def f(x):\n    return [n for n in x]",
    "def f(x):\n    return map(lambda n: n, x)",
]


@pytest.mark.parametrize("answer", LOCALS)
def test_a_local_name_leads_to_no_other_cell(answer: str):
    cell = "for n in (1, 2):\n    print(f(n), torch.softmax(n, -1))"
    assert not broken_rules(answer, RULES, [cell], (SETUP,), ["f"])


@pytest.mark.parametrize(
    "answer",
    [
        "def f(x):\n    return n(x)",
        "def f(x):\n    [n for n in x]\n    return n(x)",
        "def f(x, g=lambda n: 1):\n    return n(x)",
        "def f(x):\n    global n\n    n += x",
        "def f(x):\n    class A:\n        n = 1\n    return n(x)",
        "def f(x, a):\n    return [n(x) for a[n] in x]",
        "def f(x, g=n):\n    return g(x)",
        "@n\ndef f(x): pass",
        "def f(x):\n    def n2(n): return n\n    return n(x)",
        "class f:\n    def n(self): return n(self)",
        "def f(x):\n    g = lambda: (n := 1)\n    return n(x)",
    ],
)
def test_a_name_of_the_whole_notebook_leads_to_its_cell(answer: str):
    assert broken_rules(answer, RULES, ["n = torch.softmax"], (SETUP,), ["f"])


def test_what_the_question_asks_for_may_not_be_imported():
    rules = QuestionRules(("lab.blocks.Norm",))
    for answer in ("from lab.blocks import Norm", "from lab.blocks import *"):
        (hit,) = broken_rules(answer, rules, (), (), ["Norm"])
        assert hit.name == "lab.blocks.Norm"
        (hit,) = broken_rules("class Norm: pass", rules, (answer,), (), ["Norm"])[:1] or (None,)
    assert broken_rules("from lab.blocks import Norm as Other", rules, (), (), ["Norm"]) == ()
    assert broken_rules("from lab.blocks import Other", rules, (), (), ["Norm"]) == ()


ANSWER = "def f(x): return ready(x)"


def left(*cells: str, answer: str = ANSWER) -> set[tuple[int, int]]:
    """Statements that an answer has to do without."""
    return set(unread(answer, RULES, cells, (SETUP,), ["f"]).statements)


@pytest.mark.parametrize(
    ("cell", "name"),
    [
        ("exec('ready = torch.soft' + 'max')", "exec"),
        ("import sys\nsys.modules['a.b'].c = 1", "sys.modules"),
        ("k = []\nk.append(sorted)", "sorted"),
        ("def keep(g):\n    global k\n    k = g\nkeep(sorted)", "sorted"),
        ("import os\nif os.fork() == 0:\n    serve()", "os.fork"),
        ("from autograder.bridge.student import *\nRunner.watch = None", "Runner"),
        ("frame.f_back.f_globals['x'] = 1", "f_globals"),
    ],
)
def test_a_statement_that_works_out_of_sight_is_left_out_of_the_answer(cell: str, name: str):
    found = unread(ANSWER, RULES, ("first = 1", f"before = 1\n{cell}"), (SETUP,), ["f"])
    assert {place for place, _ in found.statements} == {1} and (1, 0) not in found.statements
    assert name in found.words and "cannot be read" in found.words
    own = unread(f"{cell}\n{ANSWER}", RULES, (), (SETUP,), ["f"])
    assert {place for place, _ in own.statements} == {-1}


@pytest.mark.parametrize(
    "cell",
    [
        "x = torch.rand(3)\ndef other(x): return torch.softmax(x, -1), F.softmax(x, -1)",
        "model.eval()\ngetattr(torch, 'exp')",
        "def helper(x): return x",
        "open('notes.txt', 'w').write(str(x))\nos.makedirs('a')",
        "import math, torch, json",
        "%timeit f(x)\n!pip install something",
    ],
)
def test_what_is_in_sight_or_stopped_anyway_is_not_left_out(cell: str):
    found = unread(ANSWER, RULES, (cell,), (SETUP,), ["f"])
    assert (found.statements, found.modules, found.words) == (frozenset(), frozenset(), "")


def test_what_the_answer_is_made_of_is_searched_and_not_left_out():
    assert left("exec('1')", "ready = eval('1')") == {(0, 0)}
    assert broken(ANSWER, others=("ready = eval('1')",)) == ["eval"]
    assert left("exec('1')", answer="no python (") == set()
    assert not unread(ANSWER, QuestionRules(), ("exec('1')",)).statements


MODULES = {
    "import shutil\nshutil.copy('a.txt', 'helper.py')": True,
    "open('helper.py', 'w').write(text.upper())": True,
    "%%writefile helper.py\nimport sys\nsys.modules['a'].b = 1\n": True,
    "%%writefile helper.py\ndef ready(x): return x\n": False,
    "open('helper.py', 'w').write('def ready(x): return x')": False,
    "open('helper.py', 'w').write('def ready(x): ' + 'return x')": False,
    "f = open('helper.py', 'w')\nf.write('def ready(x): return x')\nf.close()": False,
}


@pytest.mark.parametrize("cell", MODULES)
def test_a_module_whose_text_nobody_can_read_is_not_there_for_the_answer(cell: str):
    for use in (
        "import helper as h",
        "from helper import a",
        "try: import helper.a\nfinally: pass",
    ):
        found = unread(ANSWER, RULES, (cell, use), (SETUP,), ["f"])
        assert found.modules == (frozenset({"helper"}) if MODULES[cell] else frozenset()), use
    assert not left(cell, "import torch, ast")


def test_a_cell_is_taken_apart_into_its_statements():
    source = "%matplotlib inline\na = 1; b = 2\n@a\ndef f():\n    return b\n"
    assert [text for _, text in statements(source)] == [
        "pass",
        "a = 1",
        "b = 2",
        "@a\ndef f():\n    return b",
    ]
    assert list(statements("no python (")) == []


def test_any_text_ends_in_an_answer():
    drawn = random.Random(1)
    parts = ["torch", ".softmax", "(", ")", "[", "'", "\n", "    ", "def f(x):", "lambda", "=", "%"]
    for _ in range(300):
        broken("".join(drawn.choices(parts, k=30)))
    for deep in ("-" * 50_000 + "1", "x" + ".a" * 60_000, "(" * 5000, "f" + "()" * 900):
        broken(deep)


def test_code_that_is_too_long_to_search_is_not_allowed():
    (hit,) = broken_rules("f(1)", RULES, ["x = 1\n" * 100_000])
    assert "more code than is read" in hit.words
    assert broken_rules("f(1)", QuestionRules(), ["x = 1\n" * 100_000]) == ()


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        ("import _pickle\nf = _pickle.loads(b'cbuiltins')", "_pickle.loads"),
        ("from _pickle import loads\nf = loads(b'cbuiltins')", "_pickle.loads"),
        ("import _frozen_importlib as f\nf._gcd_import('x')", "_frozen_importlib._gcd_import"),
        ("import _imp\n_imp.create_builtin(x)", "_imp.create_builtin"),
        ("import numpy as np\nnp.load(x, allow_pickle=True)", "numpy.load"),
        ("import numpy as np\nnp.load(x, None, 1)", "numpy.load"),
        ("import numpy as np\nnp.load(x, **more)", "numpy.load"),
        ("from numpy import load\nload(x, allow_pickle=k)", "numpy.load"),
        ("import heapq\ndef f(x): return heapq.nlargest(len(x), x)", "heapq.nlargest"),
        ("def f(x): return Counter(x).most_common()", ".most_common"),
        ("import statistics as s\ndef f(x): return s.median_low([0, *x])", "statistics.median_low"),
        (
            "from pprint import saferepr as s\ndef f(x): return s({n: 0 for n in x})",
            "pprint.saferepr",
        ),
        (
            "import difflib\ndef f(x): return difflib.get_close_matches('a', x, 9, 0)",
            "difflib.get_close_matches",
        ),
    ],
)
def test_what_ready_parts_are_made_of_is_no_way_round(answer: str, name: str):
    assert broken(answer) == [name]


def test_a_file_of_numbers_may_be_read():
    for call in ("np.load(x)", "np.load(x, 'r')", "np.load(file=x, allow_pickle=False)"):
        assert broken(f"import numpy as np\ndef f(x): return {call}") == [], call
