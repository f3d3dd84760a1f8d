"""Right answers that look unlike the reference: each has to get all points."""

import json
from typing import Any

from tests.hostile.course import RIGHT, SIGNATURES
from tests.hostile.rows import _as_version_3
from tests.hostile.steps import (
    FULL,
    Row,
    Step,
    answers,
    bodies,
    bytes_of,
    each_cell,
    extra,
    prefix,
    right,
    row,
    whole,
)


def also(id: str, *do: Step) -> Row:
    """The right answers, some of them in other words, and full marks."""
    return row(f"right-{id}", right(), *do, expected=FULL)


STABLE = "e = torch.exp(x - x.max(-1, keepdim=True).values)\nreturn e / e.sum(-1, keepdim=True)"

OTHER_CODE = [
    also("square-power", bodies(square="return x ** 2")),
    also(
        "square-sum-of-odds-for-whole-numbers",
        bodies(square="if x == int(x):\n    n = abs(int(x))\n    return n * n\nreturn pow(x, 2)"),
    ),
    also("square-lambda", answers(square="square = lambda x: x * x")),
    also(
        "square-partial",
        answers(
            square="from functools import partial\n\ndef power(p, x):\n    return x ** p\n\n"
            "square = partial(power, 2)"
        ),
    ),
    also(
        "square-partial-of-operator",
        answers(
            square="import operator\nfrom functools import partial\n"
            "class Twice:\n    def __call__(self, x): return operator.mul(x, x)\n"
            "square = partial(Twice())"
        ),
    ),
    also(
        "square-callable-instance",
        answers(
            square="class Square:\n    __slots__ = ('p',)\n    def __init__(self, p): self.p = p\n"
            "    def __call__(self, x): return x ** self.p\n\nsquare = Square(2)"
        ),
    ),
    also(
        "square-static-method",
        answers(
            square="class Maths:\n    @staticmethod\n    def square(x): return x * x\n\n"
            "square = Maths.square"
        ),
    ),
    also(
        "square-bound-method",
        answers(
            square="class Maths:\n    def square(self, x): return x * x\n\nsquare = Maths().square"
        ),
    ),
    also(
        "square-class-method",
        answers(
            square="class Maths:\n    @classmethod\n    def square(cls, x): return x * x\n\n"
            "square = Maths.square"
        ),
    ),
    also(
        "square-closure",
        answers(
            square="def make(p):\n    def power(x):\n        return x ** p\n    return power\n\n"
            "square = make(2)"
        ),
    ),
    also(
        "square-decorated",
        answers(
            square="import functools\n\ndef logged(f):\n    @functools.wraps(f)\n"
            "    def inner(*args, **kwargs):\n        print('calling', f.__name__, args)\n"
            "        return f(*args, **kwargs)\n    return inner\n\n@logged\ndef square(x):\n"
            "    return x * x"
        ),
    ),
    also(
        "square-cached",
        answers(
            square="from functools import lru_cache\n\n@lru_cache(maxsize=None)\ndef square(x):\n"
            "    return x * x"
        ),
    ),
    also(
        "square-star-args", answers(square="def square(*args):\n    (x,) = args\n    return x * x")
    ),
    also(
        "square-defaults-and-keywords",
        answers(square="def square(x, /, power=2, *, scale=1.0):\n    return x ** power * scale"),
    ),
    also(
        "square-numpy-number", bodies(square="import numpy as np\nreturn np.square(np.float64(x))")
    ),
    also(
        "square-numpy-whole-number", bodies(square="import numpy as np\nreturn np.asarray(x) ** 2")
    ),
    also(
        "square-tensor",
        bodies(square="import torch\nreturn torch.tensor(x, dtype=torch.float64).square()"),
    ),
    also(
        "square-fraction-as-float",
        bodies(square="from fractions import Fraction\nreturn float(Fraction(x) * Fraction(x))"),
    ),
    also("square-int-subclass", bodies(square="class N(float):\n    pass\nreturn N(x) * N(x)")),
    also("square-walrus", bodies(square="return (y := x) * y")),
    also(
        "square-match",
        bodies(
            square="match x:\n    case 0:\n        return 0\n    case int() | float():\n"
            "        return x * x\n    case _:\n        raise TypeError(x)"
        ),
    ),
    also(
        "square-try",
        bodies(
            square="try:\n    return x['value'] ** 2\nexcept TypeError:\n    return x ** 2\n"
            "finally:\n    pass"
        ),
    ),
    also(
        "square-hints",
        answers(
            square="from __future__ import annotations\n\n"
            "def square(x: int | float | Undefined) -> Undefined:\n    return x * x"
        ),
    ),
    also(
        "square-generator-inside",
        bodies(
            square="def powers():\n    yield 1\n    yield x\n    yield x * x\n*_, last = powers()\n"
            "return last"
        ),
    ),
    also(
        "square-async-helper",
        bodies(
            square="import asyncio\nasync def slowly():\n    await asyncio.sleep(0)\n"
            "    return x * x\n"
            "loop = asyncio.new_event_loop()\ntry:\n    return loop.run_until_complete(slowly())\n"
            "finally:\n    loop.close()"
        ),
    ),
    also(
        "square-thread-pool",
        bodies(
            square="from concurrent.futures import ThreadPoolExecutor\n"
            "with ThreadPoolExecutor(1) as pool:\n    return pool.submit(pow, x, 2).result()"
        ),
    ),
    also(
        "square-global-counter",
        answers(
            square="COUNT = 0\n\ndef square(x):\n    global COUNT\n    COUNT += 1\n    return x * x"
        ),
    ),
    also(
        "square-by-exec", answers(square="code = 'def square(x):\\n    return x * x'\nexec(code)")
    ),
    also(
        "square-unicode-names", bodies(square="λ = x\nquadrat_größe = λ * λ\nreturn quadrat_größe")
    ),
    also(
        "square-shadows-inside",
        bodies(square="list = [x]\nsum = list[0] * list[0]\nmax = min = sum\nreturn max"),
    ),
    also(
        "square-recursive",
        bodies(
            square="def go(n, done=0):\n    return done if n == 0 else go(n - 1, done + x / 8)\n"
            "return go(8) * x"
        ),
    ),
    also(
        "norm-loop",
        bodies(
            norm="total = 0\nfor number in numbers:\n    total += square(number)\n"
            "return total ** 0.5"
        ),
    ),
    also(
        "norm-reduce",
        bodies(
            norm="from functools import reduce\n"
            "return math.sqrt(reduce(lambda a, b: a + square(b), numbers, 0))"
        ),
    ),
    also("norm-map", bodies(norm="return math.sqrt(sum(map(square, numbers)))")),
    also("norm-hypot", bodies(norm="return math.hypot(*numbers)")),
    also(
        "norm-numpy",
        bodies(
            norm="import numpy as np\n"
            "return np.sqrt(sum(np.array([square(n) for n in numbers], float)))"
        ),
    ),
    also(
        "norm-fsum-and-sort-in-place",
        bodies(
            norm="numbers = list(numbers)\nnumbers.sort(key=abs)\n"
            "return math.sqrt(math.fsum(square(n) for n in numbers))"
        ),
    ),
    also(
        "norm-other-name-for-square",
        answers(
            norm="sq = square\n\n"
            + SIGNATURES["norm"]
            + "    return math.sqrt(sum(map(sq, numbers)))"
        ),
    ),
    also(
        "share-counter",
        bodies(
            share="from collections import Counter\ncounts = Counter(text.split())\n"
            "total = counts.total()\nreturn counts[word] / total if total else 0.0"
        ),
    ),
    also(
        "share-regex",
        bodies(
            share="import re\nwords = re.findall(r'\\S+', text)\n"
            "return sum(w == word for w in words) / max(len(words), 1)"
        ),
    ),
    also(
        "share-numpy",
        bodies(
            share="import numpy as np\nwords = np.array(text.split())\n"
            "return float(np.mean(words == word)) if len(words) else 0.0"
        ),
    ),
    also(
        "share-statistics",
        bodies(
            share="import statistics\nhits = [float(w == word) for w in text.split()]\n"
            "return statistics.fmean(hits) if hits else 0.0"
        ),
    ),
    also(
        "share-dataclass",
        answers(
            share="from dataclasses import dataclass, field\n\n@dataclass(slots=True)\n"
            "class Tally:\n"
            "    hits: int = 0\n    all: int = 0\n"
            "    seen: list[str] = field(default_factory=list)\n\n"
            + SIGNATURES["share"]
            + "    t = Tally()\n    for w in text.split():\n"
            "        t.hits += w == word\n        t.all += 1\n        t.seen.append(w)\n"
            "    return t.hits / t.all if t.all else 0.0"
        ),
    ),
    also(
        "share-namedtuple",
        bodies(
            share="from typing import NamedTuple\nclass Pair(NamedTuple):\n    hits: int\n"
            "    all: int\n"
            "words = text.split()\np = Pair(words.count(word), len(words))\n"
            "return p.hits / p.all if p.all else 0.0"
        ),
    ),
    also(
        "share-numpy-number",
        bodies(
            share="import numpy as np\nwords = text.split()\n"
            "return np.float64(words.count(word)) / len(words) if words else np.float64(0)"
        ),
    ),
    also(
        "share-pandas-free-dict",
        bodies(
            share="counts = {}\nfor w in text.split():\n    counts[w] = counts.get(w, 0) + 1\n"
            "return counts.get(word, 0) / (sum(counts.values()) or 1)"
        ),
    ),
    also(
        "softmax-loops",
        bodies(
            softmax="flat = x.reshape(-1, x.shape[-1])\nrows = []\n"
            "for i in range(flat.shape[0]):\n    top = flat[i].max()\n"
            "    e = [torch.exp(flat[i, j] - top) for j in range(flat.shape[1])]\n"
            "    total = sum(e)\n    rows.append(torch.stack([v / total for v in e]))\n"
            "return torch.stack(rows).reshape(x.shape)"
        ),
    ),
    also(
        "softmax-einsum",
        bodies(
            softmax="e = (x - x.amax(-1, keepdim=True)).exp()\n"
            "return e / torch.einsum('...i->...', e).unsqueeze(-1)"
        ),
    ),
    also("softmax-logsumexp", bodies(softmax="return (x - x.logsumexp(-1, keepdim=True)).exp()")),
    also(
        "softmax-detached-maximum",
        bodies(
            softmax="e = (x - x.detach().max(dim=-1, keepdim=True)[0]).exp()\n"
            "return e.div(e.sum(dim=-1, keepdim=True))"
        ),
    ),
    also(
        "softmax-in-place-on-a-copy",
        bodies(
            softmax="e = (x - x.amax(-1, keepdim=True)).exp()\ny = e.clone()\n"
            "y /= e.sum(-1, keepdim=True)\nreturn y"
        ),
    ),
    also(
        "softmax-numpy-maximum",
        bodies(
            softmax="import numpy as np\n"
            "top = torch.from_numpy(np.max(x.detach().numpy(), axis=-1, keepdims=True))\n"
            "e = torch.exp(x - top)\nreturn e / e.sum(-1, keepdim=True)"
        ),
    ),
    also(
        "softmax-autograd-function",
        answers(
            softmax="class S(torch.autograd.Function):\n    @staticmethod\n"
            "    def forward(ctx, x):\n"
            "        e = torch.exp(x - x.amax(-1, keepdim=True))\n"
            "        y = e / e.sum(-1, keepdim=True)\n"
            "        ctx.save_for_backward(y)\n        return y\n\n    @staticmethod\n"
            "    def backward(ctx, g):\n        (y,) = ctx.saved_tensors\n"
            "        return y * (g - (g * y).sum(-1, keepdim=True))\n\nsoftmax = S.apply"
        ),
    ),
    also(
        "softmax-module-instance",
        answers(
            softmax="class Mine(nn.Module):\n    def forward(self, x):\n"
            "        e = torch.exp(x - x.amax(-1, keepdim=True))\n"
            "        return e / e.sum(-1, keepdim=True)\n\nsoftmax = Mine()"
        ),
    ),
    also(
        "softmax-enables-gradients",
        bodies(softmax="with torch.enable_grad():\n    " + STABLE.replace("\n", "\n    ")),
    ),
    also(
        "softmax-traced-cell",
        answers(
            softmax="def softmax(x: torch.Tensor) -> torch.Tensor:\n"
            "    return _softmax(x)\n\ndef _softmax(x):\n    " + STABLE.replace("\n", "\n    ")
        ),
    ),
    also(
        "softmax-vmapped",
        bodies(
            softmax="def row(r):\n    e = torch.exp(r - r.amax())\n    return e / e.sum()\n"
            "f = row\nfor _ in range(x.dim() - 1):\n    f = torch.vmap(f)\nreturn f(x)"
        ),
    ),
    also(
        "softmax-inference-mode-for-the-maximum",
        bodies(
            softmax="with torch.no_grad():\n    top = x.amax(-1, keepdim=True)\n"
            "e = torch.exp(x - top)\nreturn e / e.sum(-1, keepdim=True)"
        ),
    ),
    also(
        "softmax-jaxtyping",
        answers(
            softmax="from jaxtyping import Float\nfrom torch import Tensor\n\n"
            "def softmax(x: Float[Tensor, '... n']) -> Float[Tensor, '... n']:\n"
            "    e = torch.exp(x - x.amax(-1, keepdim=True))\n"
            "    return e / e.sum(-1, keepdim=True)"
        ),
    ),
    also(
        "softmax-sigmoid-helper",
        answers(
            softmax="def shifted(x):\n    return x - x.amax(-1, keepdim=True)\n\n"
            "def softmax(x):\n    e = shifted(x).exp()\n    return e / e.sum(-1, keepdim=True)"
        ),
    ),
    also(
        "softmax-other-default-dtype-restored",
        bodies(
            softmax="old = torch.get_default_dtype()\ntorch.set_default_dtype(torch.float64)\n"
            "try:\n    e = torch.exp(x - x.amax(-1, keepdim=True))\n"
            "    return e / e.sum(-1, keepdim=True)\nfinally:\n    torch.set_default_dtype(old)"
        ),
    ),
    also(
        "softmax-prints-and-warns",
        bodies(
            softmax="import sys, warnings\nprint('shape', x.shape)\n"
            "print('careful', file=sys.stderr)\n"
            "warnings.warn('numerically delicate')\n" + STABLE
        ),
    ),
    also(
        "softmax-transposed-memory",
        bodies(
            softmax="y = x.transpose(0, -1).contiguous().transpose(0, -1)\n"
            "e = (y - y.amax(-1, keepdim=True)).exp()\nreturn e / e.sum(-1, keepdim=True)"
        ),
    ),
    also("twice-loop", bodies(twice="for _ in range(2):\n    x = f(x)\nreturn x")),
    also("twice-without-gradients", bodies(twice="with torch.no_grad():\n    return f(f(x))")),
    also(
        "twice-composed",
        answers(
            twice="def compose(*fs):\n    def inner(x):\n        for f in reversed(fs):\n"
            "            x = f(x)\n        return x\n    return inner\n\n"
            "def twice(f, x):\n    return compose(f, f)(x)"
        ),
    ),
    also(
        "twice-reduce",
        bodies(twice="from functools import reduce\nreturn reduce(lambda v, g: g(v), [f, f], x)"),
    ),
    also("twice-map", bodies(twice="(y,) = map(f, map(f, [x]))\nreturn y")),
    also("twice-curried", answers(twice="twice = lambda f, *a, **k: f(f(*a, **k))")),
    also(
        "gate-sequential",
        answers(
            gate="class Gate(nn.Module):\n    def __init__(self, size: int):\n"
            "        super(Gate, self).__init__()\n        self.linear = nn.Linear(size, size)\n"
            "        self.after = nn.Sequential(nn.Identity(), nn.Sigmoid())\n\n"
            "    def forward(self, x):\n        return self.after(self.linear(x)) * x"
        ),
    ),
    also(
        "gate-base-class",
        answers(
            gate="class Base(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
            "        self.linear = nn.Linear(n, n)\n\nclass Gate(Base):\n"
            "    def forward(self, x):\n        return torch.mul(x, self.weigh(x))\n\n"
            "    def weigh(self, x):\n        return 1 / (1 + torch.exp(-self.linear(x)))"
        ),
    ),
    also(
        "gate-subclassed-linear",
        answers(
            gate="class Mine(nn.Linear):\n    def forward(self, x):\n"
            "        return torch.sigmoid(x @ self.weight.T + self.bias)\n\n"
            "class Gate(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
            "        self.linear = Mine(n, n)\n\n    def forward(self, x):\n"
            "        return x * self.linear(x)"
        ),
    ),
    also(
        "gate-call-overridden",
        answers(
            gate="class Gate(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
            "        self.linear = nn.Linear(n, n)\n\n    def __call__(self, x):\n"
            "        return self.forward(x)\n\n    def forward(self, x):\n"
            "        return x * self.linear(x).sigmoid()"
        ),
    ),
    also(
        "gate-buffer-kept-out",
        answers(
            gate="class Gate(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
            "        self.linear = nn.Linear(n, n)\n"
            "        self.register_buffer('one', torch.ones(()), persistent=False)\n\n"
            "    @property\n    def size(self): return self.linear.in_features\n\n"
            "    def forward(self, x):\n        assert x.shape[-1] == self.size\n"
            "        return x * self.one * torch.sigmoid(self.linear(x))"
        ),
    ),
    also(
        "gate-parameters-by-hand",
        answers(
            gate="class Lin(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
            "        self.weight = nn.Parameter(torch.empty(n, n))\n"
            "        self.bias = nn.Parameter(torch.zeros(n))\n"
            "        nn.init.xavier_uniform_(self.weight)\n\n    def forward(self, x):\n"
            "        return torch.einsum('...i,oi->...o', x, self.weight) + self.bias\n\n"
            "class Gate(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
            "        self.linear = Lin(n)\n    def forward(self, x):\n"
            "        return x * torch.sigmoid(self.linear(x))"
        ),
    ),
    also(
        "gate-module-dict",
        answers(
            gate="class Gate(nn.Module):\n    def __init__(self, n, **unused):\n"
            "        super().__init__()\n"
            "        self.n = n\n        self.add_module('linear', nn.Linear(n, n, bias=True))\n"
            "    def forward(self, x):\n"
            "        return x * torch.sigmoid(self._modules['linear'](x))\n"
        ),
    ),
    also(
        "gate-parameter-dict",
        answers(
            gate="class Gate(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
            "        self.linear = nn.Linear(n, n)\n"
            "        self.more = nn.ParameterDict()\n    def forward(self, x):\n"
            "        p = dict(self.linear.named_parameters())\n"
            "        return x * torch.sigmoid(x @ p['weight'].T + p['bias'])\n"
        ),
    ),
    also(
        "gate-functional",
        answers(
            gate="import torch.nn.functional as F\n\n"
            + SIGNATURES["gate"]
            + "        return F.linear(x, self.linear.weight, self.linear.bias).sigmoid().mul(x)"
        ),
    ),
    also(
        "gate-glu",
        answers(
            gate="import torch.nn.functional as F\n\n"
            + SIGNATURES["gate"]
            + "        return F.glu(torch.cat([x, self.linear(x)], -1), -1)"
        ),
    ),
    also(
        "gate-extra-state",
        answers(
            gate=RIGHT["gate"] + "\n\n    def extra_repr(self):\n        return 'a gate'\n\n"
            "    def __repr__(self):\n        return 'Gate!'\n\n    def __len__(self):\n"
            "        return 0"
        ),
    ),
    also(
        "gate-slots-and-hints",
        answers(
            gate="from __future__ import annotations\nfrom typing import Final\n\n"
            "class Gate(nn.Module):\n    linear: nn.Linear\n    kind: Final = 'sigmoid'\n\n"
            "    def __init__(self, size: int) -> None:\n        super().__init__()\n"
            "        self.linear: nn.Linear = nn.Linear(size, size)\n\n"
            "    def forward(self, x: torch.Tensor) -> torch.Tensor:\n"
            "        return getattr(torch, self.kind)(self.linear(x)) * x"
        ),
    ),
    also(
        "gate-factory",
        answers(
            gate=RIGHT["gate"].replace("class Gate", "class _Gate")
            + "\n\ndef Gate(size, *more):\n    return _Gate(size)"
        ),
    ),
]


def _split(handin: Any) -> None:
    """The first half of the answer in a cell of its own before it."""
    extra("def _times(a, b):\n    return a * b", before="square")(handin)
    handin.cell("square")["source"] = SIGNATURES["square"] + "    return _times(x, x)"


def _upgraded(minor: int) -> Step:
    def change(notebook: dict[str, Any]) -> None:
        notebook["nbformat_minor"] = minor
        for cell in notebook["cells"]:
            cell.pop("id", None)

    return whole(change)


def _executed(cell: dict[str, Any]) -> None:
    """What Jupyter leaves in a notebook that was run."""
    cell["metadata"] |= {"collapsed": False, "scrolled": True, "execution": {"a": 1}}
    if cell["cell_type"] == "code":
        cell["execution_count"] = 7
        cell["outputs"] = [
            {"output_type": "stream", "name": "stdout", "text": ["a\n", "b\n"]},
            {"output_type": "error", "ename": "E", "evalue": "x", "traceback": ["y"]},
        ]


NOTEBOOKS = [
    also("helper-cell-before", _split),
    also("helper-cell-after-uses-nothing", extra("def helper():\n    return square(2)\nhelper()")),
    also(
        "scratch-cells",
        extra("x = 3\nsquare(x)", before="t_square"),
        extra("softmax(torch.rand(3))"),
        extra("1 / 0"),
        extra("undefined_name", before="softmax"),
        extra(""),
    ),
    also(
        "scratch-markdown",
        extra("# My notes\n$x^2$", cell_type="markdown", before="softmax"),
        extra("raw", cell_type="raw"),
    ),
    also(
        "stderr",
        prefix(
            "square",
            "import sys, warnings\nprint('careful', file=sys.stderr)\nwarnings.warn('old')\n",
        ),
    ),
    also(
        "logging",
        prefix(
            "square",
            "import logging\nlogging.basicConfig(level=logging.DEBUG)\n"
            "log = logging.getLogger(__name__)\nlog.warning('x')\n",
        ),
        bodies(
            norm="log.debug('numbers %s', numbers)\n"
            "return math.sqrt(sum(square(n) for n in numbers))"
        ),
    ),
    also(
        "tqdm",
        prefix("square", "from tqdm.auto import tqdm\nfor _ in tqdm(range(3)):\n    pass\n"),
        bodies(
            norm="from tqdm import trange\nreturn math.sqrt(sum(square(numbers[i]) "
            "for i in trange(len(numbers))))"
        ),
    ),
    also(
        "magic-time",
        extra("%time square(3)"),
        extra("%%time\nsquare(3)"),
        answers(share="%%time\n" + RIGHT["share"]),
    ),
    also("magic-capture", answers(share="%%capture out\n" + RIGHT["share"])),
    also(
        "magic-matplotlib",
        prefix("square", "%matplotlib inline\n%config InlineBackend.figure_format = 'retina'\n"),
    ),
    also("magic-autoreload", prefix("square", "%load_ext autoreload\n%autoreload 2\n")),
    also("magic-timeit", extra("%timeit -n 2 -r 1 square(3)")),
    also(
        "shell",
        extra("!ls\nfiles = !ls\nprint(files)"),
        extra("%%bash\nls"),
        extra("%ls"),
        extra("?square\nsquare?\nsquare??"),
    ),
    also("await-at-the-top", prefix("square", "import asyncio\nawait asyncio.sleep(0)\n")),
    also(
        "plots",
        extra("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.title('x')\nplt.show()"),
        extra("fig, ax = plt.subplots()\nax.imshow(softmax(torch.rand(3, 3)))\nfig"),
    ),
    also(
        "displays",
        extra(
            "from IPython.display import display, Markdown, Image\ndisplay(3, [1], {})\n"
            "display(Markdown('**x**'))\nsquare(3)"
        ),
    ),
    also("guarded-input", extra("try:\n    name = input('? ')\nexcept Exception:\n    name = 'x'")),
    also(
        "main-guard",
        answers(square=RIGHT["square"] + "\n\nif __name__ == '__main__':\n    print(square(3))"),
    ),
    also("own-asserts", answers(square=RIGHT["square"] + "\n\nassert square(3) == 9\nsquare(4)")),
    also("doctest", answers(square=RIGHT["square"] + "\n\nimport doctest\ndoctest.testmod()")),
    also("threads", prefix("square", "torch.set_num_threads(2)\ntorch.manual_seed(0)\n")),
    also(
        "seeds",
        prefix(
            "softmax",
            "import random\nimport numpy as np\nrandom.seed(1)\n"
            "np.random.seed(2)\ntorch.manual_seed(3)\n",
        ),
        bodies(
            square="import random\nrandom.seed(x)\nrandom.random()\nreturn x * x",
            softmax="torch.manual_seed(0)\n" + STABLE,
        ),
    ),
    also(
        "deterministic",
        prefix(
            "gate",
            "torch.use_deterministic_algorithms(True)\n"
            "torch.backends.cudnn.benchmark = False\n"
            "torch.set_printoptions(precision=3)\n",
        ),
    ),
    also(
        "device-choice",
        prefix("square", "device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')\n"),
        bodies(softmax="x = x.to(device)\n" + STABLE),
    ),
    also(
        "imports-again",
        *(
            prefix(
                name,
                "import math, torch\nimport torch.nn as nn\n"
                "import numpy as np\nfrom typing import *\nfrom math import *\n",
            )
            for name in RIGHT
        ),
    ),
    also(
        "windows-line-ends",
        each_cell(lambda cell: cell.update(source=cell["source"].replace("\n", "\r\n"))),
    ),
    also(
        "old-mac-line-ends",
        each_cell(lambda cell: cell.update(source=cell["source"].replace("\n", "\r")), "square"),
    ),
    also(
        "tabs",
        each_cell(lambda cell: cell.update(source=cell["source"].replace("    ", "\t")), *RIGHT),
    ),
    also(
        "blanks-at-line-ends",
        each_cell(
            lambda cell: cell.update(source=cell["source"].replace("\n", "   \n") + "\n\n  \n"),
            *RIGHT,
        ),
    ),
    also(
        "form-feed-and-no-break-comment",
        prefix("square", "# \u00a0 caf\u00e9 \U0001f600 \u4f60\n\x0c\n"),
    ),
    also("ids-lost", each_cell(lambda cell: cell.pop("id"))),
    also("ids-new", each_cell(lambda cell: cell.update(id="z" + cell["id"][:20]))),
    also("marks-lost", each_cell(lambda cell: cell.update(metadata={}))),
    also(
        "marks-lost-ids-new",
        each_cell(lambda cell: cell.update(metadata={}, id="z" + cell["id"][:20])),
    ),
    also("executed", each_cell(_executed)),
    also(
        "metadata-of-tools",
        whole(
            lambda nb: nb["metadata"].update(
                {
                    "colab": {"provenance": []},
                    "accelerator": "GPU",
                    "widgets": {"x": {"state": {}}},
                    "toc": {},
                    "vscode": {"interpreter": {"hash": "x"}},
                }
            )
        ),
    ),
    *(also(f"format-4-{minor}", _upgraded(minor)) for minor in range(5)),
    also("format-3", bytes_of(_as_version_3)),
    also("one-line-json", bytes_of(lambda text: json.dumps(json.loads(text)).encode())),
    also(
        "json-not-escaped",
        prefix("square", "# é λ 你\n"),
        bytes_of(lambda text: json.dumps(json.loads(text), ensure_ascii=False).encode()),
    ),
    also(
        "answers-as-lists",
        each_cell(lambda cell: cell.update(source=cell["source"].splitlines(keepends=True))),
    ),
    also(
        "cells-moved",
        lambda handin: handin.notebook["cells"].sort(
            key=lambda cell: cell["id"] in ("about-gate",)
        ),
    ),
    also(
        "tests-run-twice",
        extra("square(3)\nassert square(3) == 9", before="t_square"),
        extra("assert square(3) == 9", before="softmax"),
    ),
    also(
        "class-in-a-helper-used-below",
        extra(
            "class Tool:\n    @classmethod\n    def mul(cls, a, b): return a * b", before="square"
        ),
        bodies(square="return Tool.mul(x, x)"),
    ),
    also(
        "answer-in-an-extra-cell",
        answers(square="# see below"),
        extra(RIGHT["square"], before="t_square"),
    ),
    also(
        "stub-line-kept-as-comment",
        answers(
            square=SIGNATURES["square"]
            + "    # YOUR CODE HERE\n    # raise NotImplementedError()\n"
            "    return x * x"
        ),
    ),
    also(
        "stub-raise-after-the-return",
        answers(
            square=SIGNATURES["square"] + "    # YOUR CODE HERE\n    return x * x\n"
            "    raise NotImplementedError()"
        ),
    ),
    also(
        "second-definition-wins",
        answers(square="def square(x):\n    return 0\n\n" + RIGHT["square"]),
    ),
    also(
        "own-copy-of-the-tests",
        extra("def test_square():\n    assert square(3) == 9\ntest_square()"),
    ),
    also("environment-set", prefix("square", "import os\nos.environ['OMP_NUM_THREADS'] = '2'\n")),
    also(
        "changes-directory-and-writes",
        prefix(
            "square",
            "import os, pathlib\npathlib.Path('out').mkdir(exist_ok=True)\nos.chdir('out')\n"
            "pathlib.Path('a.txt').write_text('x')\nprint(pathlib.Path('a.txt').read_text())\n",
        ),
    ),
    also(
        "pickles-and-deepcopies",
        extra(
            "import copy, pickle\ncopy.deepcopy(Gate(2))\npickle.loads(pickle.dumps(torch.ones(2)))"
        ),
    ),
    also(
        "trains-a-little",
        extra(
            "g = Gate(2)\nopt = torch.optim.Adam(g.parameters())\nfor _ in range(5):\n"
            "    opt.zero_grad()\n    g(torch.rand(3, 2)).sum().backward()\n    opt.step()"
        ),
    ),
    also(
        "state-dict-saved",
        extra(
            "g = Gate(2)\ntorch.save(g.state_dict(), 'g.pt')\ng.load_state_dict(torch.load('g.pt'))"
        ),
    ),
]

AWKWARD = [*OTHER_CODE, *NOTEBOOKS]
