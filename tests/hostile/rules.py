"""Ways around the tiny course's rule, no ready softmax, and right answers close to it."""

from tests.hostile.awkward import also
from tests.hostile.steps import Row, Step, answers, bodies, extra, prefix, right, row

RULE_BROKEN = "2/0/2/1/1/2"  # it costs its own question, whatever else it does

# The ready function, found without its name: the text of an answer does not show it.
READY = (
    "import torch.overrides\n"
    "ready = next(f for f in torch.overrides.get_testing_overrides()\n"
    "             if f.__name__ == 'soft' + 'max')\n"
)

# A process that has the ready function, begun by a library that no rule names.
SERVER = '''
import _osx_support, sys, time
from pathlib import Path
Path("serve.py").write_text("""
import json, time, torch
from pathlib import Path
while True:
    for asked in Path().glob("*.asked"):
        x = torch.tensor(json.loads(asked.read_text()), dtype=torch.float64)
        Path("told").write_text(json.dumps(torch.softmax(x, -1).tolist()))
        asked.unlink()
        Path("told").rename(asked.with_suffix(".told"))
    time.sleep(0.001)
""")
_osx_support._read_output(f"{sys.executable} serve.py >/dev/null 2>&1 &")
'''


def around(id: str, *do: Step) -> Row:
    """Everything right but for a ready softmax, got at in some way."""
    return row(f"rule-{id}", right(), *do, expected=RULE_BROKEN, says="allow", flag="forbidden")


def by(id: str, body: str, before: str = "") -> Row:
    """The same, with the ready function at hand and this body."""
    return around(id, prefix("square", READY + before), bodies(softmax=body))


SEEN_WHILE_IT_RUNS = [
    around(
        "star",
        answers(
            softmax="from torch.nn.functional import *\nready = softmax\n"
            "def softmax(x): return ready(x, -1)"
        ),
    ),
    by("no-name", "return ready(x, dim=-1)"),
    by(
        "thread",
        "from concurrent.futures import ThreadPoolExecutor\n"
        "return ThreadPoolExecutor(1).submit(ready, x, -1).result()",
    ),
    by(
        "thread-that-waits",
        "import threading\nfound = []\n"
        "thread = threading.Thread(target=lambda: found.append(ready(x, -1)))\n"
        "thread.start()\nthread.join()\nreturn found[0]",
    ),
    by(
        "inference-mode",
        "with torch.inference_mode():\n    out = ready(x.detach(), -1)\nreturn out.clone()",
    ),
    by(
        "inference-tensor",
        "with torch.inference_mode():\n    y = x + 0\nout = ready(y, -1)\nreturn out.clone()",
    ),
    by("no-grad", "with torch.no_grad():\n    return ready(x, -1)"),
    by("vmap", "return torch.func.vmap(lambda r: ready(r, -1))(x.reshape(-1, x.shape[-1]))"),
    by("grad", "return torch.func.jvp(lambda r: ready(r, -1), (x,), (x,))[0]"),
    by("caught", "try:\n    return ready(x, -1)\nexcept RuntimeError:\n    return x.exp()"),
    by("caught-and-done", "try:\n    ready(x, -1)\nfinally:\n    " + "return x.exp()"),
    by(
        "function-of-autograd",
        "return Own.apply(x)",
        "class Own(torch.autograd.Function):\n"
        "    @staticmethod\n    def forward(ctx, x):\n        return ready(x, -1)\n"
        "    @staticmethod\n    def backward(ctx, g):\n        return g\n",
    ),
    by(
        "script",
        "return unit.f(x)",
        "unit = torch.jit.CompilationUnit('def f(x):\\n    return torch.soft' + 'max(x, -1)\\n')\n",
    ),
    around("softmin", bodies(softmax="return torch.nn.functional.softmin(-x, -1)")),
    around("gumbel", bodies(softmax="return torch.nn.functional.gumbel_softmax(x, dim=-1)")),
    around(
        "distribution",
        bodies(softmax="return torch.distributions.Categorical(logits=x).probs"),
    ),
    around(
        "loss",
        bodies(
            softmax="rows = x.reshape(-1, x.shape[-1])\n"
            "out = [nn.functional.cross_entropy(rows, torch.full((len(rows),), j),\n"
            "       reduction='none') for j in range(x.shape[-1])]\n"
            "return torch.exp(-torch.stack(out, -1)).reshape(x.shape)"
        ),
    ),
    around(
        "layer-that-holds-one",
        bodies(softmax="return nn.Sequential(nn.Identity(), nn.Softmin(-1))(-x)"),
    ),
]

WRITTEN = (
    "import torch\ntorch.library.Library.impl = lambda *a, **k: None\n"
    "def ready(s): return torch.softmax(s, -1)\n"
)

SEEN_IN_THE_TEXT = [
    around(
        "object-of-an-error",
        bodies(
            softmax="try:\n    ('{0.nn.functional.' + 'xamtfos'[::-1] + '.zz}').format(torch)\n"
            "except AttributeError as error:\n    return error.obj(x, dim=-1)"
        ),
    ),
    around(
        "another-program",
        bodies(
            softmax="import subprocess, sys, json\n"
            "code = f'import torch; print(torch.tensor({x.tolist()}).softmax(-1).tolist())'\n"
            "out = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)\n"
            "return torch.tensor(json.loads(out.stdout), dtype=x.dtype)"
        ),
    ),
    around(
        "shell-of-the-notebook",
        prefix(
            "square",
            "from IPython.core.interactiveshell import InteractiveShell\n"
            f"InteractiveShell.instance().ex({WRITTEN!r})\n",
        ),
        answers(
            softmax="from IPython.core.interactiveshell import InteractiveShell\n"
            "def softmax(x):\n    return InteractiveShell.instance().user_ns['ready'](x)"
        ),
    ),
    around(
        "found-by-pydoc",
        bodies(softmax="return ready(x, -1)"),
        prefix("softmax", "import pydoc\nready = pydoc.locate('torch.soft' + 'max')\n"),
    ),
    around(
        "patched-by-another-cell",
        extra(
            "if True:\n    import torch as t\n    t.library.Library.impl = lambda *a, **k: None\n"
            "    keep = t.softmax\n    for T in (t.Tensor,):\n"
            "        T.positive = lambda self: keep(self, -1)",
            before="softmax",
        ),
        bodies(softmax="return x.positive()"),
    ),
    around(
        "written-module",
        extra(f"%%writefile helper.py\n{WRITTEN}", before="softmax"),
        answers(softmax="import helper\ndef softmax(x):\n    return helper.ready(x)"),
    ),
    by("sparse", "return torch.sparse." + "softmax(x.to_sparse(), -1).to_dense()"),
    around(
        "pickle-of-the-notebook",
        extra(
            "import pickle\nopen('f.pkl', 'wb').write(b'ctorch\\nsoft' + b'max\\n.')\n"
            "loaded = pickle.load(open('f.pkl', 'rb'))",
            before="softmax",
        ),
        bodies(softmax="return loaded(x, -1)"),
    ),
    around(
        "reduce-getattr",
        bodies(
            softmax="import functools\n"
            "return functools.reduce(getattr, ['soft' + 'max'], torch)(x, -1)"
        ),
    ),
    around("map-getattr", bodies(softmax="return [*map(getattr, [x], ['soft' + 'max'])][0](-1)")),
    around("getattr-renamed", bodies(softmax="g = getattr\nreturn g(x, 'soft' + 'max')(-1)")),
    around("getattr-starred", bodies(softmax="return getattr(*[x, 'soft' + 'max'])(-1)")),
    around(
        "dispatch-switched-off",
        bodies(softmax="with torch._C._DisableTorchDispatch():\n    return torch.sigmoid(x)"),
    ),
    around("library", bodies(softmax="import torch.library as l\nreturn l.custom_op('a::b')(x)")),
    around("match", bodies(softmax="match x:\n    case object(softmax=f):\n        return f(-1)")),
    around("container", bodies(softmax="return [torch][0].softmax(x, -1)")),
    around(
        "stops-taken-away-by-a-module-in-a-list",
        bodies(
            softmax="import sys\nknown = [sys][0].modules\n"
            "for one in known['g' + 'c'].get_objects():\n"
            "    if type(one).__name__ == 'Watch':\n        one.end()\n        one.seen.clear()\n"
            "return known['operator'].methodcaller('soft' + 'max', -1)(x)"
        ),
    ),
    around(
        "module-by-a-pattern",
        bodies(
            softmax="import sys\nmatch sys:\n    case object(modules={'operator': known}):\n"
            "        return known.methodcaller('soft' + 'max', -1)(x)"
        ),
    ),
    around(
        "default", answers(softmax="def softmax(x, f=lambda t: torch.softmax(t, -1)): return f(x)")
    ),
    around("keyword", answers(softmax="def softmax(x, t=torch): return t.softmax(x, -1)")),
    around(
        "class-attribute",
        extra("class Kept:\n    f = torch.softmax", before="softmax"),
        bodies(softmax="return Kept.f(x, -1)"),
    ),
    around(
        "kept-later",
        extra("class Kept: pass\nKept.f = torch.softmax", before="softmax"),
        bodies(softmax="return Kept.f(x, -1)"),
    ),
    around(
        "global",
        extra("def keep():\n    global kept\n    kept = torch.softmax\nkeep()", before="softmax"),
        bodies(softmax="return kept(x, -1)"),
    ),
    around("vars", bodies(softmax="return vars(torch)['soft' + 'max'](x, -1)")),
    around("grader", bodies(softmax="import autograder.bridge.watch as w\nreturn w.Watch")),
]

NO_WATCH = (
    "type('Nothing', (), {'seen': set(), '__init__': lambda self, names: None,\n"
    "    'look_at': lambda self, value: None, 'end': lambda self: None})"
)
UNDO = f"import sys\nsys.modules['autograder.bridge.stu' + 'dent'].Watch = {NO_WATCH}\n"
LAST = bodies(softmax="return ready(x, -1)")


def unseen(id: str, *cells: str, do: Step = LAST) -> Row:
    """The ready function defined out of sight, and the stops undone by other cells."""
    return around(f"unseen-{id}", *(extra(cell, before="softmax") for cell in cells), do)


DEFINED = "exec('ready = torch.soft' + 'max')"
# A process in which nothing is stopped, and what asks it.
FORK = (
    "import os, struct\nasks, asked = os.pipe()\ntells, told = os.pipe()\n"
    "def numbers(file, count):\n"
    "    return struct.unpack(f'{count}d', os.read(file, 8 * count))\n"
    "if os.fork() == 0:\n    while True:\n"
    "        wide, = numbers(asks, 1)\n"
    "        row = torch.tensor(numbers(asks, int(wide)), dtype=torch.float64)\n"
    "        os.write(told, struct.pack(f'{int(wide)}d', *torch.softmax(row, -1)))\n",
    "class Own(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n"
    "        rows = []\n"
    "        for row in x.detach().reshape(-1, x.shape[-1]).tolist():\n"
    "            os.write(asked, struct.pack(f'{len(row) + 1}d', len(row), *row))\n"
    "            rows.append(numbers(tells, len(row)))\n"
    "        p = torch.tensor(rows, dtype=x.dtype).reshape(x.shape)\n"
    "        ctx.save_for_backward(p)\n        return p\n"
    "    @staticmethod\n    def backward(ctx, g):\n        p, = ctx.saved_tensors\n"
    "        return p * (g - (g * p).sum(-1, keepdim=True))",
)
# Each undoes the stops in a statement that no name leads to; the answer's text shows nothing.
NEEDS_WHAT_NOBODY_READS = [
    unseen(
        "modules-of-sys",
        UNDO,
        DEFINED,
    ),
    unseen(
        "setattr-on-a-module-of-sys",
        "import sys\nwatch = sys.modules['autograder.bridge.' + 'watch'].Watch\n"
        "setattr(watch, '_watch_' + 'operators', lambda *a: None)",
        DEFINED,
    ),
    unseen(
        "importlib",
        "import importlib\nfound = importlib.import_module('autograder.bridge.' + 'student')\n"
        f"found.Watch = {NO_WATCH}",
        DEFINED,
    ),
    unseen(
        "frames",
        "import sys\nframe = sys._getframe()\nwhile frame:\n"
        "    if frame.f_globals.get('__name__') == 'autograder.bridge.student':\n"
        f"        frame.f_globals['Watch'] = {NO_WATCH}\n"
        "    frame = frame.f_back",
        DEFINED,
    ),
    unseen(
        "traceback",
        "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n"
        "    frame = error.__traceback__.tb_frame\n    while frame:\n"
        "        if 'Watch' in frame.f_globals:\n"
        f"            frame.f_globals['Watch'] = {NO_WATCH}\n"
        "        frame = frame.f_back",
        DEFINED,
    ),
    unseen(
        "code-of-the-watch",
        "import sys\nwatch = sys.modules['autograder.bridge.' + 'watch'].Watch\n"
        "watch.__dict__['_watch_operators'].__code__ = (lambda self, torch, names: 0).__code__",
        DEFINED,
    ),
    unseen(
        "computed-text",
        f"exec(bytes({list(UNDO.encode())}))",
        DEFINED,
    ),
    unseen("module-that-is-written", f"%%writefile tidy.py\n{UNDO}", "import tidy", DEFINED),
    unseen(
        "module-of-computed-text",
        f"text = {UNDO.replace('sys.', 'SYS.')!r}\n"
        "open('tidy.py', 'w').write(text.replace('SYS', 'sys'))",
        "import tidy",
        DEFINED,
    ),
    row(
        "rule-process-that-a-library-starts",
        right(),
        *(extra(cell, before="square") for cell in (SERVER, *["time.sleep(1)"] * 3)),
        bodies(
            softmax="import json, time\nfrom pathlib import Path\n"
            "Path('new').write_text(json.dumps(x.tolist()))\nPath('new').rename('a.asked')\n"
            "for _ in range(30):\n    time.sleep(0.01)\n    if Path('a.told').exists():\n"
            "        out = torch.tensor(json.loads(Path('a.told').read_text()), dtype=x.dtype)\n"
            "        Path('a.told').unlink()\n        return out\n"
            "raise RuntimeError('nobody serves')"
        ),
        expected=RULE_BROKEN,
        says="nobody serves",
    ),
    around(
        "unseen-in-the-answers-own-cell",
        answers(softmax=f"{UNDO}{DEFINED}\ndef softmax(x):\n    return ready(x, -1)"),
    ),
    around("unseen-in-another-answer", prefix("square", f"import torch\n{UNDO}{DEFINED}\n"), LAST),
    row(
        "rule-unseen-fork",
        right(),
        *(extra(cell, before="softmax") for cell in FORK),
        bodies(softmax="return Own.apply(x)"),
        expected=RULE_BROKEN,
        says="processes that your cells had started were ended",
    ),
]

AROUND = [*SEEN_WHILE_IT_RUNS, *SEEN_IN_THE_TEXT, *NEEDS_WHAT_NOBODY_READS]

NEAR = [
    also(
        "rule-sign-that-cannot-be-printed",
        prefix("softmax", "def kind(x): return object\nclass K(kind(f\"{'a\u00a0b'}\")): pass\n"),
    ),
    also("rule-logsumexp", bodies(softmax="return torch.exp(x - x.logsumexp(-1, keepdim=True))")),
    also(
        "rule-gradient-of-logsumexp",
        bodies(
            softmax="y = x if x.requires_grad else x.clone().requires_grad_()\n"
            "total = y.logsumexp(-1).sum()\n"
            "return torch.autograd.grad(total, y, create_graph=x.requires_grad)[0]"
        ),
    ),
    also(
        "rule-name-of-a-variable",
        bodies(
            softmax="softmax = (x - x.amax(-1, keepdim=True)).exp()\n"
            "return softmax / softmax.sum(-1, keepdim=True)"
        ),
    ),
    also(
        "rule-name-of-a-method",
        answers(
            softmax="class Own:\n    def softmax(self, x):\n        e = (x - x.max()).exp()\n"
            "        return e / e.sum(-1, keepdim=True)\n    def go(self, x):\n"
            "        return self.softmax(x)\n\ndef softmax(x):\n    return Own().go(x)"
        ),
    ),
    also("rule-in-words", prefix("softmax", "'not torch.softmax'  # nor F.softmax\n")),
    also("rule-unused-import", prefix("softmax", "from torch import softmax as ready\n")),
    also(
        "rule-compared-in-another-cell",
        extra("x = torch.rand(3)\nassert torch.allclose(softmax(x), torch.softmax(x, -1))"),
        extra("def wanted(x):\n    return torch.softmax(x, -1)\nwanted(torch.rand(2))"),
    ),
    also(
        "rule-helper-beside-a-comparison",
        extra(
            "def shifted(x):\n    return x - x.amax(-1, keepdim=True)\n\n"
            "print(shifted(torch.softmax(torch.rand(3), -1)))\nready = torch.softmax",
            before="softmax",
        ),
        bodies(softmax="e = shifted(x).exp()\nreturn e / e.sum(-1, keepdim=True)"),
    ),
    also(
        "rule-ways-in-cells-that-no-answer-needs",
        extra("import sys\nprint('google.colab' in sys.modules, len(globals()))", before="square"),
        extra("def look(): return vars(torch)\nlook()\nhelp_me = 3", before="softmax"),
        extra("exec('spare = ' + str(help_me))\neval('spare + 1')", before="softmax"),
        extra("import gc\nsum(torch.is_tensor(one) for one in gc.get_objects())"),
        extra("for name in ('exp', 'tanh'):\n    print(getattr(torch, name)(torch.ones(2)))"),
        extra("import subprocess, sys\nsubprocess.run([sys.executable, '--version'])"),
    ),
    also(
        "rule-helper-beside-a-way-in-one-cell",
        extra(
            "def look(): return vars(torch)\nlooked = look()\n"
            "def shifted(x):\n    return x - x.amax(-1, keepdim=True)\n"
            "count = len(looked)\nprint(eval('count'))\n",
            before="softmax",
        ),
        bodies(softmax="e = shifted(x).exp()\nreturn e / e.sum(-1, keepdim=True)"),
    ),
    also(
        "rule-module-that-a-cell-writes",
        extra(
            "%%writefile shift.py\ndef shifted(x):\n    return x - x.amax(-1, keepdim=True)\n",
            before="softmax",
        ),
        extra(
            "file = open('plain.py', 'w')\n"
            "file.write('def exp(x):\\n    return x.exp()\\n')\nfile.close()",
            before="softmax",
        ),
        extra("import sys\nprint(sorted(sys.modules)[:3])", before="softmax"),
        answers(
            softmax="import plain\nfrom shift import shifted\n\ndef softmax(x):\n"
            "    e = plain.exp(shifted(x))\n    return e / e.sum(-1, keepdim=True)"
        ),
    ),
    also(
        "rule-module-that-is-not-installed",
        answers(
            softmax="try:\n    import not_here as n\nexcept ImportError:\n    n = None\n\n"
            "def softmax(x):\n    e = (x - x.amax(-1, keepdim=True)).exp()\n"
            "    return n.soft(x) if n else e / e.sum(-1, keepdim=True)"
        ),
    ),
    also(
        "rule-file-of-numbers-that-a-cell-writes",
        extra(
            "from pathlib import Path\nPath('lift.txt').write_text(str(2 - 2))\nscale = eval('1')",
            before="softmax",
        ),
        bodies(
            softmax="lift = float(open('lift.txt').read())\n"
            "e = (x - x.amax(-1, keepdim=True) + lift).exp()\nreturn e / e.sum(-1, keepdim=True)"
        ),
    ),
    also(
        "rule-vmap",
        bodies(
            softmax="def one(r):\n    e = torch.exp(r - r.max())\n    return e / e.sum()\n"
            "rows = x.reshape(-1, x.shape[-1])\n"
            "return torch.func.vmap(one)(rows).reshape(x.shape)"
        ),
    ),
    also(
        "rule-getattr",
        bodies(softmax="e = getattr(x - x.max(), 'exp')()\nreturn e / e.sum(-1, keepdim=True)"),
    ),
    also(
        "rule-reduce",
        bodies(
            softmax="import functools, operator\ne = (x - x.max()).exp()\n"
            "total = functools.reduce(operator.add, e.unbind(-1))\nreturn e / total[..., None]"
        ),
    ),
    also(
        "rule-thread",
        bodies(
            softmax="from concurrent.futures import ThreadPoolExecutor\n"
            "e = ThreadPoolExecutor(1).submit(torch.exp, x - x.max()).result()\n"
            "return e / e.sum(-1, keepdim=True)"
        ),
    ),
    also(
        "rule-sigmoids",
        bodies(softmax="gaps = x[..., None, :] - x[..., None]\nreturn 1 / gaps.exp().sum(-1)"),
    ),
    also(
        "rule-normalised",
        bodies(softmax="return nn.functional.normalize((x - x.max()).exp(), p=1, dim=-1)"),
    ),
    also("rule-softplus-and-sigmoid", prefix("gate", "kept = torch.softmax(torch.rand(3), -1)\n")),
    also(
        "rule-function-of-autograd",
        answers(
            softmax="class Own(torch.autograd.Function):\n    @staticmethod\n"
            "    def forward(ctx, x):\n        e = (x - x.amax(-1, keepdim=True)).exp()\n"
            "        p = e / e.sum(-1, keepdim=True)\n        ctx.save_for_backward(p)\n"
            "        return p\n    @staticmethod\n    def backward(ctx, g):\n"
            "        (p,) = ctx.saved_tensors\n"
            "        return p * (g - (g * p).sum(-1, keepdim=True))\n\n"
            "def softmax(x):\n    return Own.apply(x)"
        ),
    ),
]
