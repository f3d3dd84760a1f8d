"""The rules an instructor sets: read with a clear word, and found in answers however spelt."""

import importlib
import random
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from autograder.common.course import CourseError
from autograder.common.times import moment
from autograder.judge.broken_rules import broken_rules, statements, unread
from autograder.judge.lateness import Late
from autograder.judge.rules import QuestionRules, read_rules

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
        ("__loader__.load_module('torch')", "__loader__"),
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
        "x = torch.rand(3)\nprint(torch.softmax(x, -1), F.softmax(x, -1))",
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


def test_names_for_the_watcher_of_operations():
    names = ("torch.softmax", "sorted", ".sort", "softmax", "torch.linalg", "torch.softmax")
    rules = QuestionRules(names, ("torch.linalg.norm",))
    assert rules.operations_forbidden == ("torch.softmax", ".sort", "softmax")


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
    "answer",
    [
        "torch._transformer_encoder_layer_fwd(x)",
        "torch.nn.TransformerEncoderLayer(8, 1)",
        "torch.nn.TransformerDecoderLayer(8, 1)",
    ],
)
def test_a_layer_that_normalizes_within_is_no_layer_norm(answer: str):
    path = Path(__file__).parents[1] / "solutions/05_layer_norm/rules.toml"
    rules = read_rules(path, "05_layer_norm", ["layer-norm", "feed-forward"])
    assert broken(answer, rules.for_question("layer-norm"))


@pytest.mark.parametrize("answer", ["F.nll_loss(x, y)", "torch.nn.NLLLoss()(x, y)"])
def test_a_loss_that_chooses_and_averages_is_no_loss_of_ones_own(answer: str):
    path = Path(__file__).parents[1] / "solutions/08_teacher_forcing/rules.toml"
    questions = ["label-smoothed-loss", "clip-gradients", "train-step"]
    assert broken(answer, read_rules(path, path.parent.name, questions).for_question(questions[0]))


def write(folder: Path, text: str) -> Path:
    """A rules.toml with this text."""
    path = folder / "rules.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_without_a_file_everything_is_allowed(tmp_path: Path):
    rules = read_rules(tmp_path / "rules.toml", "week", ["squares"])
    assert rules.for_question("squares") == QuestionRules()
    assert rules.late.policy == "none"
    assert not rules.allows_file("data.csv")


def test_a_question_adds_to_the_defaults(tmp_path: Path):
    path = write(
        tmp_path,
        '[defaults]\nforbid = ["eval"]\nseconds = 5\n'
        '["squares"]\nforbid = ["sorted"]\nmemory_mb = 100\n'
        '[files]\nallow = ["*.csv", "data/*"]\n',
    )
    rules = read_rules(path, "week", ["squares", "cubes"])
    assert rules.for_question("squares") == QuestionRules(("eval", "sorted"), (), 5, 100)
    assert rules.for_question("cubes") == QuestionRules(("eval",), (), 5, 4096)
    assert rules.allows_file("a.csv") and rules.allows_file("data/a.txt")
    assert not rules.allows_file("csv.py")


def test_a_files_name_is_compared_as_it_is_composed(tmp_path: Path):
    one, two = "gr\u00f6\u00dfe", "gro\u0308\u00dfe"
    path = write(tmp_path, f'[files]\nallow = ["{one}.csv", "{two}.py", "*.[t\u00f6]xt"]\n')
    rules = read_rules(path, "week", [])
    for name in (one, two):
        assert all(
            rules.allows_file(f"{name}.{kind}") for kind in ("csv", "py", "txt", "o\u0308xt")
        )
        assert rules.file_as(f"{name}.csv") == f"{one}.csv"
        assert rules.file_as(f"{name}.py") == f"{two}.py"
        assert rules.file_as(f"{name}.txt") == f"{one}.txt"
    assert not rules.allows_file("gr\u00f6se.csv")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[", "is no TOML"),
        ("[squars]", "perhaps squares was meant"),
        ("seconds = 3", "should be a table|neither a solution cell"),
        ("[defaults]\nsecond = 3", "no setting second.*perhaps seconds was meant"),
        ("[defaults]\nseconds = '3'", "seconds of .defaults. is '3'; write a number above 0"),
        ("[defaults]\nseconds = true", "write a number above 0"),
        ("[defaults]\nseconds = nan", "write a number above 0"),
        ("[defaults]\nseconds = -1", "write a number above 0"),
        ("[defaults]\nseconds = 1e308", "of a day at most"),
        ("[defaults]\nmemory_mb = 1.5", "whole number"),
        ("a = " + "[" * 3000 + "]" * 3000, "is no TOML"),
        ("[squares]\nforbid = 'sorted'", "a list of names"),
        ("[squares]\nforbid = [1]", "a list of names"),
        ("[late]\npolicy = 'never'", "one of none, zero, per-day"),
        ("[late]\npolicy = 'zero'", "no due"),
        ("[late]\npolicy = 'per-day'\ndue = 2026-03-01T00:00:00Z", "no rate"),
        ("[late]\ndue = 2026-03-01T00:00:00", "an offset"),
        ("[late]\ndue = 'soon'", "an offset"),
        ("[late]\nrate = 2", "from 0 to 1"),
        ("[late]\ntrust_timestamp = 1", "true or false"),
        ("[late]\ntimes = 'nowhere.csv'", "nowhere.csv is missing"),
        ("[files]\nallow = 3", "a list of names"),
    ],
)
def test_a_bad_file_is_refused_in_one_sentence(tmp_path: Path, text: str, words: str):
    with pytest.raises(CourseError, match=words) as caught:
        read_rules(write(tmp_path, text), "week", ["squares"])
    assert "\n" not in str(caught.value)


def test_lateness_costs_by_the_day_begun(tmp_path: Path):
    text = '[late]\npolicy = "per-day"\nrate = 0.25\ngrace_hours = 2\ndue = 2026-03-01T12:00:00Z\n'
    text += "trust_timestamp = true\n"
    late = read_rules(write(tmp_path, text), "week", []).late
    due = moment("2026-03-01T12:00:00+00:00")
    assert late.seconds_late("a", due + 7200) == 0
    assert late.penalty(8, late.seconds_late("a", due + 7201)) == 2
    assert late.penalty(8, late.seconds_late("a", due + 86401)) == 4
    assert late.penalty(8, late.seconds_late("a", due + 10 * 86400)) == 8
    assert late.penalty(8, late.seconds_late("a", None)) == 0


def test_the_lms_knows_better_than_the_folder(tmp_path: Path):
    rows = "student,assignment,submitted\na,week,2026-03-02T12:00:00+00:00\na,other,2026-04-01\n"
    (tmp_path / "times.csv").write_text(rows, encoding="utf-8")
    text = '[late]\npolicy = "zero"\ndue = 2026-03-01T12:00:00Z\ntimes = "times.csv"\n'
    late = read_rules(write(tmp_path, text), "week", []).late
    assert late.penalty(3, late.seconds_late("a", 0)) == 3
    assert late.penalty(3, late.seconds_late("b", 0)) == 0
    assert late.penalty(3, late.seconds_late("c", 1e12)) == 0  # a disk's clock is no witness
    assert "of 2 submissions (b, c); they count as in time" in late.unknown(["a", "b", "c"])
    assert late.unknown(["a"]) == replace(late, policy="none").unknown(["c"]) == ""
    assert replace(late, trust_timestamp=True).unknown(["c"]) == ""
    (tmp_path / "times.csv").write_text("who,when\na,b\n", encoding="utf-8")
    with pytest.raises(CourseError, match="line 2: expected the columns"):
        read_rules(tmp_path / "rules.toml", "week", [])
    (tmp_path / "times.csv").write_text("submitted,student\n2026-03-02\n", encoding="utf-8")
    with pytest.raises(CourseError, match="line 2: expected the columns"):
        read_rules(tmp_path / "rules.toml", "week", [])
    for content in (rows.replace("a,", "Müller,").encode("latin-1"), b"a," + b"x" * 200_000):
        (tmp_path / "times.csv").write_bytes(content)
        with pytest.raises(CourseError, match="save it as CSV in UTF-8"):
            read_rules(tmp_path / "rules.toml", "week", [])


@pytest.mark.parametrize("line", ["zoe", "zoe,week", "zoe,week, "])
def test_who_has_no_time_in_the_list_is_named_and_the_others_are_graded(tmp_path: Path, line: str):
    rows = f"student,assignment,submitted\n{line}\nada,week,2026-03-02T12:00:00+00:00\n"
    (tmp_path / "times.csv").write_text(rows, encoding="utf-8")
    text = '[late]\npolicy = "zero"\ndue = 2026-03-01T12:00:00Z\ntimes = "times.csv"\n'
    late = read_rules(write(tmp_path, text), "week", []).late
    assert set(late.times) == {"ada"} and "(zoe)" in late.unknown(["ada", "zoe"])


def test_a_list_of_times_has_names_as_they_are_or_as_people_read_them():
    times = {"DOM\\user": 1.0, "M\\xfcller": 2.0}
    late = Late("zero", datetime(2026, 3, 1, tzinfo=UTC), times=times)
    assert late.handed_in("DOM\\user", None) == 1.0
    assert late.handed_in("M\udcfcller", None) == 2.0
    assert late.handed_in("ada", 3.0) is None


def test_a_list_of_times_may_write_a_name_in_another_way_than_its_folder():
    late = Late("zero", datetime(2026, 3, 1, tzinfo=UTC), times={"j\u00f3zef": 5.0})
    assert late.handed_in("jo\u0301zef", None) == 5.0
    assert late.unknown(["jo\u0301zef"]) == ""
    shared = replace(late, shared=frozenset(["j\u00f3zef"]))  # another folder has it as it is
    assert (shared.handed_in("j\u00f3zef", None), shared.handed_in("jo\u0301zef", None)) == (
        5,
        None,
    )
    both = Late("zero", late.due, times={"j\u00f3zef": 5.0, "jo\u0301zef": 6.0})
    assert (both.handed_in("j\u00f3zef", None), both.handed_in("jo\u0301zef", None)) == (5, 6)


def test_times_are_read_as_nbgrader_writes_them():
    assert moment("2015-02-02 15:58:23.948203 UTC\n") == moment("2015-02-02T15:58:23.948203+00:00")
    assert Late().penalty(5, 100) == 0


@pytest.mark.parametrize(
    ("told", "hour"),
    [
        *(("2026-03-05 10:00:00.000000 UTC", 10), ("2026-03-05 10:00:00 GMT", 10)),
        *(("2026-03-05 10:00:00.000000 CET", 9), ("2026-03-05 10:00:00 EST", 15)),
        *(("2026-03-05 10:00:00.000000 +0100", 9), ("2026-03-05 10:00:00 +01", 9)),
        *(("2026-03-05 10:00:00 Europe/Berlin", 9), ("2026-03-05 10:00:00 Z", 10)),
        *(("2026-3-5 9:00", 9), ("2026-03-05T10:00:00+01:00", 9)),
        *(("2026-03-05 10:00 UTC+3", 7), ("2026-03-05 10:00:00 GMT-5", 15)),
        *(("2026-03-05 10:00 Etc/GMT-3", 7), ("2026-03-05 10:00 Singapore", 2)),
    ],
)
def test_a_time_is_read_with_any_zone_that_can_be_told(told: str, hour: int):
    assert moment(told) == datetime(2026, 3, 5, hour, tzinfo=UTC).timestamp()


def test_a_short_name_of_a_zone_is_read_where_it_is_one_zones_at_that_time():
    noon = datetime(2026, 7, 5, 12, tzinfo=UTC).timestamp()
    for told in ("2026-07-05 14:00 CEST", "2026-07-05 08:00 EDT", "2026-07-05 05:00 PDT"):
        assert moment(told) == noon
    assert moment("2026-07-05 13:00 CET") == noon  # it says winter's time, as Algiers has it


@pytest.fixture
def in_india(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine whose own zone is called IST."""
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="this system sets no zone for a process")
def test_the_zone_of_the_machine_plays_no_part(in_india: None):
    assert time.localtime().tm_zone == "IST"
    with pytest.raises(ValueError, match="more than one"):
        moment("2026-07-05 12:00 IST")
    assert moment("2026-07-05 12:00") == datetime(2026, 7, 5, 12, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    "told", ["", "yesterday", "10:00", "2026-03-05 10:00:00 CEST", "2026-03-05 10:00:00 ../UTC"]
)
def test_a_time_that_cannot_be_told_is_none(told: str):
    with pytest.raises(ValueError):
        moment(told)


def test_rules_may_begin_with_the_mark_that_some_editors_write(tmp_path: Path):
    write(tmp_path, "").write_bytes(b"\xef\xbb\xbf[defaults]\nseconds = 7\n")
    assert read_rules(tmp_path / "rules.toml", "week", []).defaults.seconds == 7


def test_pythons_own_classes_in_terms_of_a_forbidden_module_are_forbidden_with_it():
    rules = QuestionRules(forbid=("heapq.heappush",))
    answer = "from queue import PriorityQueue\ndef f(xs):\n    q = PriorityQueue()\n    return q"
    assert broken_rules(answer, rules, (), (), ["f"])
    assert broken_rules(answer.replace("Priority", "Lifo"), rules, (), (), ["f"]) == ()
    allowed = QuestionRules(forbid=("heapq.heappush",), allow=("queue.PriorityQueue",))
    assert broken_rules(answer, allowed, (), (), ["f"]) == ()
