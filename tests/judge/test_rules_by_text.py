"""Parts of libraries by which an answer with rules would get or run things by their text."""

import pytest

from autograder.judge.broken_rules import broken_rules
from autograder.judge.rules import QuestionRules

SETUP = "import numpy as np\nimport torch"
SORTING = QuestionRules(forbid=("sorted", ".sort"))


def found(text: str) -> list[str]:
    broken = broken_rules(text, SORTING, (), (SETUP,), ("f",))
    return [one.name for one in broken]


WAYS = [
    "from tqdm.utils import ObjectWrapper\ndef f(x): return ObjectWrapper.wrapper_getattr(x, T)()",
    "from tqdm import tqdm\ndef f(x): return tqdm([1], file=x).fp.wrapper_getattr(T)()",
    "from tqdm.contrib.concurrent import ensure_lock\ndef f(x):\n"
    "    with ensure_lock(x, T) as g: g()",
    "import contextlib\nclass R(contextlib.redirect_stdout):\n    _stream = T\n"
    "def f(x):\n    with R(x) as r: return r",
    "import contextlib\nR = type('R', (contextlib.redirect_stdout,), {'_stream': T})\n"
    "def f(x): return R(x)",
    "import sys\ndef f(x): return [*sys.path_importer_cache.values()][0].x(T)",
    "def f(x, finder): return finder.find_spec(T).loader",
    "from PIL import ImageMath\ndef f(x): return ImageMath.unsafe_eval(T, x=x)",
    "import PIL.features as p\ndef f(x):\n    p.modules['x'] = T, T\n"
    "    return p.version_module('x')",
    "from dataclasses import dataclass\n@dataclass(init=False)\nclass A:\n"
    "    __annotations__ = {T: int}\ndef f(x): return repr(A())",
    "from dataclasses import dataclass\n@dataclass(init=False)\nclass A:\n"
    "    for __annotations__ in ({T: int},): pass\ndef f(x): return repr(A())",
    "import dataclasses\nclass A(list): pass\ndef f(x):\n    A.__dataclass_fields__ = x\n"
    "    return dataclasses.asdict(A())",
    "import typing_extensions\n"
    "def f(x): return typing_extensions.get_annotations(x, eval_str=True)",
    "import tracemalloc\ndef f(x): return tracemalloc.Snapshot.load(T)(x)",
    "def f(x): return np.ctypeslib.load_library(T, '.')",
    "def f(x): return np.zeros(1).ctypes._ctypes.pythonapi",
    "import pytest\ndef f(x): return pytest.main([T])",
    "import matplotlib.pyplot as plt\ndef f(x):\n    plt.rcParams['figure.hooks'] = [T]\n"
    "    return plt.figure()",
    "import matplotlib.pyplot as plt\ndef f(x):\n    plt.rc('figure', hooks=[T])\n"
    "    return plt.figure()",
    "import matplotlib.pyplot as plt\ndef f(x):\n    plt.style.use('./mine.mplstyle')\n"
    "    plt.figure()",
    "import torch.nn.cpp\ndef f(x): return torch.nn.cpp.OrderedDictWrapper(x, T).cpp_dict()",
    "class P(torch.nn.ParameterDict, list): pass\ndef f(x): return P()[T]()",
    "def f(x):\n    x._all_weights = [[T]]\n    return torch.nn.RNN.all_weights.fget(x)",
    "class D(torch.distributions.Normal, list):\n    arg_constraints = {T: 1}\n"
    "def f(x): return D(0, 1)",
    "def f(x): return torch.cuda.memory.CUDAPluggableAllocator(T, 'a', 'b')",
    "class M(list):\n    def register_parameter(self, name, one): one()\n"
    "def f(x): return torch.nn.utils.prune.L1Unstructured.apply(M(x), T, 1)",
    "import opt_einsum\ndef f(x): return opt_einsum.backends.get_func(T, T)(x)",
    # a text that does not begin as it looks
    "class S(str):\n    def __radd__(self, one): return T\ndef f(x): getattr(x, 'zz' + S(1))()",
    "class S(str):\n    def __add__(self, one): return T\ndef f(x): getattr(x, S(1) + '_zz')()",
    "class S(str):\n    def __rmod__(self, one): return T\ndef f(x): getattr(x, 'zz' % S(1))()",
    "class S:\n    def __rsub__(self, one): return T\ndef f(x): return getattr(x, 'zz' - S())()",
    # what sorts, by the builtin or in C
    "class D:\n    def __dir__(self): return [3, 1]\ndef f(x): return dir(D())",
    "import json\ndef f(x): return json.dumps({one: 0 for one in x}, sort_keys=True)",
    "import json\ndef f(x, **how): return json.dumps({one: 0 for one in x}, **how)",
    "import pprint\ndef f(x): return pprint.pformat({*x})",
    "import reprlib\ndef f(x): return reprlib.repr({*x})",
]  # fmt: skip


@pytest.mark.parametrize("text", WAYS)
def test_a_part_of_a_library_that_goes_by_a_text_is_a_way_round(text: str):
    made = f"T = ''.join(['so', 'rt'])\n{text}"
    assert found(made)


@pytest.mark.parametrize(
    "text",
    [
        "from tqdm.auto import tqdm, trange\ndef f(x):\n"
        "    for i in tqdm(x, desc='a'): tqdm.write('b')",
        "import contextlib, io\ndef f(x):\n"
        "    with contextlib.redirect_stdout(io.StringIO()): print(x)",
        "from PIL import Image, ImageDraw\n"
        "def f(x): return ImageDraw.Draw(Image.fromarray(x)).line(x)",
        "class N(torch.nn.Module):\n    def __init__(self):\n"
        "        self.p = torch.nn.ParameterDict({'a': torch.nn.Parameter(torch.ones(1))})\n"
        "def f(x): return N().p['a'] if isinstance(x, torch.nn.ParameterDict) else x",
        "import matplotlib.pyplot as plt\nplt.rcParams['figure.figsize'] = (3, 2)\n"
        "plt.rcParams.update({'font.size': 8, 'axes.grid': True, 'lines.linewidth': -1})\n"
        "plt.rc('font', size=8, family=None)\nplt.style.use('seaborn-v0_8')\n"
        "def f(x):\n    with plt.rc_context({'font.size': 8}): plt.plot(x)",
        "import json, pprint\ndef f(x):\n    pprint.pprint(x)\n"
        "    return json.loads(json.dumps(x, indent=2))",
        "import sys\ndef f(x): return sys.path, x",
        "def f(x, i): return [getattr(x, 'zz' + str(i)), getattr(x, 'zz%d' % i)]",
        "from IPython.display import HTML, display\ndef f(x): return display(HTML(x))",
        "import tracemalloc\ntracemalloc.start()\ndef f(x): return tracemalloc.get_traced_memory()",
        "from dataclasses import dataclass, asdict\n@dataclass\nclass A:\n    a: int = 0\n"
        "def f(x: 'list[int]') -> dict: return asdict(A(x))",
        "def f(x): return torch.distributions.Normal(0, 1).log_prob(x)",
        "import pytest\ndef f(x):\n    with pytest.raises(ValueError): int('x')\n"
        "    return pytest.approx(x)",
    ],
)  # fmt: skip
def test_what_answers_use_of_such_libraries_is_left_alone(text: str):
    assert found(text) == []
