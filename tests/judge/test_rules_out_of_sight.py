"""Ways to a forbidden thing that no dotted name, call or import of it shows."""

import builtins
import functools
import inspect
import statistics
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
import torch  # noqa: F401  (a library that is not loaded holds nothing under another name)

from autograder.judge.broken_rules import broken_rules, unread
from autograder.judge.forbidden import BY_TEXT_ATTRIBUTES
from autograder.judge.rules import QuestionRules
from tests.rule_breaks import SETUP

RULES = QuestionRules(forbid=("sorted", ".sort", "torch.softmax"))
ANY = "class Any(type):\n    def __instancecheck__(cls, one): return True\n"
TYPE = "''.join(['KEEP.append(', 'sor', 'ted', ') or int'])"


def found(answer: str) -> list[str]:
    """What a question that asks for `f` finds in an answer."""
    return [hit.name for hit in broken_rules(answer, RULES, (), (SETUP,), ("f",))]


def left_out(answer: str, *others: str) -> str:
    """What the answer should do without, in words."""
    return unread(answer, RULES, others, (SETUP,), ("f",)).words


@pytest.mark.parametrize(
    "classes",
    [
        ANY + "class P(metaclass=Any):\n    __match_args__ = ('so' 'rt',)",
        "class P(list):\n    __match_args__ = ('so' 'rt',)",
        "from abc import ABC\nclass P(ABC): pass\nP.register(list)\n"
        "setattr(P, '_'.join(['_', 'match', 'args', '_', '']), (''.join(['so', 'rt']),))",
        "class A(__import__('abc').ABC): pass\nclass P(A): pass\nA.register(list)",
        "from collections import UserList as NamedTuple\nclass P(NamedTuple):\n"
        "    __match_args__ = ('so' 'rt',)",
        "P = type('P', (list,), {'_'.join(['_', 'match', 'args', '_', '']): ('so' 'rt',)})",
    ],
)
def test_a_pattern_takes_nothing_by_its_place_from_objects_of_others(classes: str):
    use = "def f(x):\n    match x:\n        case P(act): act()\n    return x"
    assert "a pattern of a class whose parts do not show" in found(f"{classes}\n{use}")


@pytest.mark.parametrize(
    "answer",
    [
        "import torch.overrides as o\ndef f(x): return [*o.get_testing_overrides()][0](x)",
        "import torch.overrides as o\ndef f(x): return [*o.get_ignored_functions()][0](x)",
        "import torch\ndef f(x):\n    torch.utils.rename_privateuse1_backend('serialization')\n"
        "    return torch.get_device_module('serialization').load(x)",
        "from torch.overrides import resolve_name as n\ndef f(x): return n(x)",
        "from torch.overrides import TorchFunctionMode as M\nclass N(M): pass\n"
        "def f(x): return N()",
        "class T(torch.Tensor):\n    def __torch_function__(cls, g, *more): pass\n"
        "def f(x): return repr(x.as_subclass(T))",
        "class T(torch.Tensor):\n    __torch_dispatch__ = g\ndef f(x): return x.as_subclass(T)",
        "import functools as t\ndef f(x): t.update_wrapper(Catch(), x, (name,), ())",
        "import functools as t\ndef f(x): t.update_wrapper(Catch(), x, assigned=(name,))",
        "from functools import partial, wraps as w\ndef f(x): return partial(w, assigned=name)(x)",
        "from functools import wraps\ndef f(x): return wraps(*[x, (name,)])(Catch())",
        "from dataclasses import *\ndef f(x): return make_dataclass('D', [name], bases=(list,))",
        "import dataclasses\ndef f(x): return dataclasses.dataclass(type('D', (list,), parts))",
        "from dataclasses import dataclass\n@dataclass\nclass D(list):\n    sort: object\n"
        "def f(x): return fields(D)",
        "import typing_extensions as t\ndef f(x): return t.get_type_hints(A)",
        "import sys\ndef f(x): return sys.displayhook.shell.ev(name)(x)",
        # what other modules hold under another name, or have from there
        "from torch.cuda.memory import signature as s\ndef g(x: T): pass\n"
        "def f(x): return s(g, eval_str=True).parameters['x'].annotation(x)",
        "import torch\ndef f(x): return torch.cuda.tunable.mp.Process(target=g).start()",
        "from torch.utils.data.distributed import dist as d\ndef f(x): return d.rpc.rpc_sync(x, g)",
        "import locale\ndef f(x):\n    locale.encodings.__path__.append('.')\n    x.decode(name)",
        "import numpy as np\ndef f(x):\n"
        "    return [*np.testing.overrides.get_overridable_numpy_ufuncs()][0](x)",
        "import optparse\ndef f(x): return optparse.Values.ensure_value(x, name, 1)()",
        "import ast\ndef f(x): return dict(ast.iter_fields(x))",
        "import urllib.request as u\ndef f(x): u.OpenerDirector._call_chain(0, {1: [x]}, 1, name)",
        "import xml.sax\nDO = xml.sax.make_parser([name])\ndef f(x): return DO(x)",
        "import dbm\nDO = dbm.open(name, 'n')\ndef f(x): return DO(x)",
        "import unittest\ndef f(x): return unittest.TestCase(name).debug()",
        "import numpy.ma.core as m\ndef f(x): return m._arraymethod(name)(x)",
        "import torch\ndef f(x): return torch._utils._import_dotted_name(name)(x)",
        "import yaml\ndef f(x): return yaml.unsafe_load(name)(x)",
        "from mako.template import Template\ndef f(x): return Template(name).render(x=x)",
        "from tornado.util import import_object\ndef f(x): return import_object(name)(x)",
        "from pygments.lexers import load_lexer_from_file as r\ndef f(x): return r(name).go(x)",
        "import imaplib\nclass S(imaplib.IMAP4_stream): pass\ndef f(x): return S(x)",
        "import pipes\ndef f(x): return pipes.Template().open(name, 'w')",
        "import uuid\ndef f(x): return uuid._get_command_stdout(name)",
        "import psutil\ndef f(x): return psutil.Popen([name])",
        "from torch.utils.collect_env import run\ndef f(x): return run([name])",
        "from torch.utils.data import DataLoader\n"
        "def f(x): return next(iter(DataLoader([x], num_workers=1, multiprocessing_context=name)))",
        "from torch.utils.data import DataLoader\n"
        "def f(x):\n    d = DataLoader([x])\n    d.num_workers = 1\n    return next(iter(d))",
        "def f(x):\n    try: ('{0.' + name + '.zz}').format(x)\n"
        "    except AttributeError as error: return error.obj()",
        "import typing\ndef f(x): return typing.List[name].__args__[0]._evaluate({}, {}, set())(x)",
        "import typing\ndef f(x): return typing._eval_type(list[name], {}, {})(x)",
        "import types, math\nclass N(types.ModuleType, Fields): pass\nmath.__class__ = N\n"
        "def f(x): return astuple(math)[0](x)",
        "import types, math\nclass N(types.ModuleType, Fields): pass\n"
        "setattr(math, '__class__', N)\ndef f(x): return astuple(math)[0](x)",
        "import torch\ndef f(x):\n    setattr(torch, name, x)\n    return x",
        "from pathlib import attrgetter as get\ndef f(x): return get(name)(x)",
        "from mpmath.libmp.backend import exec_\ndef f(x): return exec_(name, {})",
        "from filelock import import_module as load\ndef f(x): return load(name)",
        "from matplotlib.testing import subprocess_run_helper as go\ndef f(x): return go(name)",
        "from pip._internal.cli.main import main\ndef f(x): return main(name)",
        "import dis\ndef f(x): return type(f)(dis.Bytecode(KEPT).codeobj, {})(x)",
        "import sys\ndef f(x): sys.monitoring.register_callback(1, 2, print)",
        "import sys\ndef f(x): sys.addaudithook(print)",
        "import threading as t\ndef f(x): t.setprofile_all_threads(print)",
        "from greenlet import greenlet\ndef f(x): return greenlet(g).switch(x)",
    ],
)
def test_what_gets_a_part_or_starts_a_program_by_a_text_is_found(answer: str):
    assert found(answer)


@pytest.mark.parametrize(
    "answer",
    [
        f"from functools import singledispatch as d\nT = {TYPE}\nKEEP = []\n@d\ndef g(x): pass\n"
        "@g.register\ndef _(x: T): pass",
        f"from beartype import beartype\nT = {TYPE}\nKEEP = []\n@beartype\ndef g(x: T): pass",
        "KEEP = []\ndef g(x: f'KEEP.append({NAME}) or int'): pass",
        "KEEP = []\ndef g(x: 'KEEP.append(' + NAME + ') or int'): pass",
        "KEEP = []\ndef g(x: list['KEEP.append(sorted) or int']): pass",
        "KEEP = []\ndef g() -> 'KEEP.append(sorted) or int': pass",
        "import attr\n@attr.s\nclass A: pass\nattr.resolve_types(A)",
    ],
)
def test_a_type_in_which_code_is_computed_is_left_out_of_the_answer(answer: str):
    use = "def f(x): return KEEP[0](x)"
    assert left_out(use, answer)
    assert left_out(f"{answer}\n{use}") or found(f"{answer}\n{use}")


@pytest.mark.parametrize(
    "answer",
    [
        "import functools\ndef loud(g):\n    @functools.wraps(g)\n    def h(*a): return g(*a)\n"
        "    return h\n@loud\ndef f(x): return x",
        "from functools import update_wrapper\ndef f(x): return update_wrapper(lambda: 1, x)",
        "from dataclasses import dataclass, field\n@dataclass(order=True)\nclass A:\n"
        "    x: int\n    sorted: bool = False\n    sort: int = 0\ndef f(x): return A(x)",
        "import dataclasses as d\nA = d.make_dataclass('A', ['x', 'y'])\ndef f(x): return A(x, 1)",
        "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\n    y: int\n"
        "def f(p):\n    match p:\n        case P(0, y) | int(y) | str(y): return y",
        "from typing import NamedTuple\nclass P(NamedTuple):\n    x: int\n"
        "def f(p):\n    match p:\n        case P(list(y)): return y",
        "class Bad(ValueError):\n    __match_args__ = ('why',)\nclass Worse(Bad): pass\n"
        "class Own(Theirs): pass\n"
        "def f(x):\n    match x:\n        case Worse(y) | Own(y): return y",
        "import ast\ndef f(x):\n    match x:\n        case ast.BinOp(a, op, b): return a, b",
        "def f(x):\n    match x:\n        case Theirs(y): return y",
        "from torch.utils.data import DataLoader\ndef f(x): return DataLoader(x, 2, num_workers=0)",
        "from typing import Annotated, Literal, TypeVar\nT = TypeVar('T')\nRow = list[int]\n"
        "def f(x: 'list[int]', y: Annotated[int, 'a b'] = 1, *a: Row, h: Literal['up']) -> T:\n"
        "    return x",
        "from typing_extensions import Self, override\ndef f(x: Self): return x",
        "import yaml\ndef f(x): return yaml.safe_load(x)",
        "def f(x): return open('site.csv'), open('turtle.txt')",
        "class Own:\n    def __init__(self, **given):\n"
        "        for name, one in given.items(): setattr(self, name, one)\n"
        "def f(x): return Own(obj=x).__class__",
    ],
)
def test_what_only_looks_like_such_a_way_is_left_alone(answer: str):
    assert found(answer) == []
    assert not left_out(answer)


PARTS = [
    ("total", "def total(x):\n    found = 0\n    for one in x: found += one\n    return found"),
    ("t_total", "assert total([1, 2, 3]) == 6", 3),
]


@pytest.mark.parametrize(
    ("answer", "points"),
    [
        (
            "import typing_extensions\nclass A:\n    x: 'sum'\n"
            "DO = typing_extensions.get_type_hints(A)['x']\ndef total(x): return DO(x)",
            0.0,
        ),
        (
            "import functools\nKEEP = []\nT = ''.join(['KEEP.append(su', 'm) or int'])\n"
            "@functools.singledispatch\ndef g(x): pass\n@g.register\ndef _(x: T): pass\n"
            "def total(x): return KEEP[0](x)",
            0.0,
        ),
        (
            "import functools\n@functools.wraps(print)\ndef total(x): return x[0] + x[1] + x[2]",
            3.0,
        ),
    ],
)
def test_a_way_out_of_sight_costs_the_question(task: Any, answer: str, points: float):
    assert task(PARTS).scores(total=answer) == {"t_total": points}


@pytest.mark.parametrize(
    "answer",
    [
        "import numpy as np\ndef f(x): return np._core.fromnumeric._sum_(x)",
        "from numpy._core.fromnumeric import _sum_ as add\ndef f(x): return add(x)",
        "from numpy.core import fromnumeric\ndef f(x): return fromnumeric._sum_.__call__(x)",
        "import timeit\ndef f(x): return timeit._globals()['x']",
        "import numpy._core.numeric as n\ndef f(x): return n.fromnumeric._sum_(x)",
        "import operator\ndef f(x): return operator._abs(x)",
    ],
)
def test_a_builtin_that_a_library_holds_by_another_name_is_that_builtin(answer: str):
    rules = QuestionRules(forbid=("sum", "abs"))
    assert broken_rules(answer, rules, (), (SETUP,), ("f",))
    harmless = "import numpy as np\ndef f(x): return np.sum(x) + np.bool(x)"
    assert not broken_rules(harmless, rules, (), (SETUP,), ("f",))


def test_no_library_is_asked_for_more_to_read_an_answer():
    code = (
        "import sys, torch\n"
        "from autograder.judge.broken_rules import broken_rules\n"
        "from autograder.judge.rules import QuestionRules\n"
        "before = set(sys.modules)\n"
        "text = 'import torch\\ndef f(x): return torch._inductor.lowering(torch.onnx, x)'\n"
        "broken_rules(text, QuestionRules(forbid=('sum',)), names=('f',))\n"
        "more = {name for name in set(sys.modules) - before if name.startswith('torch')}\n"
        "sys.exit(', '.join(more) or 0)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert not run.returncode, run.stderr


def things() -> Iterator[object]:
    """One of each kind of Python's own things that know a namespace."""

    def waits() -> Iterator[object]:
        yield inspect.currentframe()

    class Own:
        def method(self) -> None: ...

    waiting = waits()
    one = Own()
    one.kept = 1  # pyright: ignore[reportAttributeAccessIssue]
    yield from (statistics, waits, waits.__code__, Own, one, one.method, waiting, next(waiting))
    yield from (len, [].append, functools.partial(waits), property(len))


def test_no_special_name_of_a_thing_gives_a_namespace_unseen():
    """However Python calls it: whoever holds a namespace of a library's reaches all by a text."""
    spaces = {id(one) for kind in things() if isinstance(one := getattr(kind, "__dict__", 0), dict)}
    spaces |= {id(globals()), id(vars(statistics)), id(vars(builtins))}
    for thing in things():
        for name in set(dir(thing)) - BY_TEXT_ATTRIBUTES:
            with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
                part = getattr(thing, name, None)
            given = [part]
            if callable(part) and name.startswith("__") and name not in ("__call__", "__next__"):
                with suppress(Exception):
                    given.append(part())
            assert not any(id(one) in spaces for one in given), (type(thing), name)


@pytest.mark.parametrize(
    "use",
    [
        "import statistics\nstatistics.__getstate__()['__buil' 'tins__']",
        "import statistics\nkept = statistics.__getstate__\nkept()",
        # libraries that nobody has read, and what libraries do not offer
        "from werkzeug.utils import import_string\nimport_string(text)",
        "import pydantic\npydantic.TypeAdapter(pydantic.ImportString).validate_python(text)",
        "import mpmath\nmpmath.identify(3.0, [text])",
        "import importlib_metadata as im\nim.EntryPoint('a', text, 'g').load()",
        "from dask.utils import *\nimport_required(text, '')",
        "import encodings\nencodings.__path__.append('.')",
        "import warnings\nwarnings._getcategory(text)",
        "import timeit\ntimeit.main(['-n1', text])",
        "import numpy as np\nnp.lib.npyio.NpzFile(text, allow_pickle=True)['a']",
        "from numpy.lib._format_impl import read_array as r\nr(text, allow_pickle=True)",
        "import torch.utils.data.datapipes.utils.decoder as d\nd.basichandlers('pickle', text)",
        "import torch.utils._pytree as p\np.tree_map(text, [])",
        "import enum\nclass E(enum.Enum): x = 1\nE.__module__ = text\nenum.global_enum(E)",
        "import unittest.loader as l\nl.TestLoader().loadTestsFromName(text)",
        "import os\nos.environ['PYTHONBREAKPOINT'] = text\nbreakpoint(text)",
        "import sys\nsys.breakpointhook(text)",
        # what Python's library goes by
        "import ast\nast.AST = len\nast.dump(x)",
        "import ast\nsetattr(ast, 'AST', len)",
        # a class of classes, of which fields are asked by names that can be set
        "import dataclasses as d\n@d.dataclass\nclass M(type):\n    a: int = 0\nd.astuple(M)",
        "import dataclasses as d\n@d.dataclass\nclass M(type(int)):\n    a: int = 0\nd.astuple(M)",
        # evaluates types that are texts
        "import functools as f\nT = next(iter([text]))\n@f.singledispatch\ndef g(x): return x\n"
        "@g.register\ndef _(x: T): return x",
        "import functools as f\n@f.singledispatch\ndef g(x): return x\ndef on(T):\n"
        "    @g.register\n    def _(x: T): return x\non(text)",
        "from functools import singledispatch as s\nL = ['k()']\nT = L[0]\n@s\ndef g(x: T): pass",
        "from functools import singledispatch as s\nimport random\nT = random.choice([text])\n"
        "s(len).register(lambda x: x)\ndef h(x: T): return x",
    ],
)
def test_a_library_that_nobody_has_read_is_a_way_round(use: str):
    answer = "def f(x):\n    " + use.replace("\n", "\n    ") + "\n    return x"
    assert found(answer)
    assert left_out(f"{use}\ndef f(x): return x")


@pytest.mark.parametrize(
    "use",
    [
        "import math, random, itertools, functools, time, json, os.path, re, copy, collections.abc",
        "from torch.utils.data import DataLoader\nfrom torch.utils.checkpoint import checkpoint",
        "import torch.nn.utils.parametrize as P\nP.is_parametrized(x)",
        "from tqdm import tqdm\nfor i in tqdm(range(3)): x = x + i",
        "import numpy as np, scipy\nx = np.linalg.norm(x) * np.float64(3) + np.random.rand()",
        "from mine import helper\nx = helper.part(x)",
        "import math\nx = math.__name__, type(math), print(math)",
        "from torch import nn\nx = nn.functional.relu(nn.utils.rnn.pad_sequence([x]))",
        "import sys, io\nold, sys.stdout = sys.stdout, io.StringIO()\nsys.stdout = old",
        "from dataclasses import dataclass, replace\nfrom abc import ABC\nclass A(ABC): pass\n"
        "@dataclass\nclass D(A):\n    a: int = 0\nx = replace(D(), a=3)",
        "from zoneinfo import ZoneInfo\nfrom statistics import mean\nx = mean([x])",
        "from functools import singledispatch\nclass K: pass\nBoth = int | K\n@singledispatch\n"
        "def g(x): return x\n@g.register\ndef _(x: Both) -> 'K': return x\n"
        "@g.register\ndef _(x: list[int] | None): return x",
        "import lab.check\nx = lab.check.draw((2, 3))",
        "import os\nx = os.path.exists('a') or os.listdir(os.getcwd())",
        "import numpy.testing as t\nt.assert_allclose(x, x)",
        "import torch.nn.utils.rnn as r, torch.fft\nx = r.pad_sequence([x]), torch.fft.fft(x)",
    ],
)
def test_what_answers_may_use_of_libraries(use: str):
    assert found("def f(x):\n    " + use.replace("\n", "\n    ") + "\n    return x") == []
