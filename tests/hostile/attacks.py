"""Attacks of kinds that the catalogue does not have.

On the line between the processes, on values, on what a test hands over, on words and pages, and
from one test to the next.
"""

import os

from tests.hostile.course import QUESTIONS, RIGHT, SIGNATURES
from tests.hostile.rows import (
    ALWAYS_EQUAL,
    HONEST_ELSE,
    ONLY_SQUARE,
    READ_LINKS,
    SLOW,
    _link,
)
from tests.hostile.steps import (
    FULL,
    LOCKED_IN,
    ZERO,
    Row,
    answers,
    beside,
    bodies,
    body,
    drop,
    each_cell,
    extra,
    file,
    named,
    prefix,
    right,
    row,
    whole,
)


def alone(id: str, text: str, says: str = "", flag: str = "") -> Row:
    """An attack in the body of square; everything else is right and has to stay so."""
    return row(id, HONEST_ELSE, bodies(square=text), expected=ONLY_SQUARE, says=says, flag=flag)


def nothing(id: str, text: str, before: str | None = "square") -> Row:
    """An attack in a cell of its own, and no answer to anything."""
    return row(id, extra(text, before=before))


def everywhere(text: str, before: str = "") -> dict[str, str]:
    """The same body in every function."""
    names = [name for name in QUESTIONS if name != "gate"]
    return {name: before + body(name, text) for name in names}


# The line between the processes

PEERS = "import gc, json, os, socket, struct, sys\n"
FIND = (
    PEERS + "peers = [o for o in gc.get_objects() if type(o).__name__ == 'Peer']\n"
    "def say(tree, *buffers):\n"
    "    text = json.dumps(tree).encode()\n"
    "    frame = struct.pack('!II', len(text), len(buffers))\n"
    "    frame += struct.pack(f'!{len(buffers)}Q', *map(len, buffers)) + text + b''.join(buffers)\n"
    "    for fd in range(3, 100):\n"
    "        try:\n            socket.socket(fileno=os.dup(fd)).sendall(frame)\n"
    "        except Exception:\n            pass\n"
)


def forged(id: str, *trees: str, times: int = 1) -> Row:
    """Frames of the student's own making on everything that looks like the line."""
    text = FIND + "".join(f"for _ in range({times}):\n    say({tree})\n" for tree in trees)
    return row(
        f"line-{id}",
        HONEST_ELSE,
        bodies(square=text + "return 0"),
        expected=ONLY_SQUARE,
    )


RAW = (
    "import os\nfor fd in range(3, 100):\n    try:\n        os.write(fd, {bytes})\n"
    "    except OSError:\n        pass\nreturn 0"
)
LINE = [
    alone("line-garbage", RAW.format(bytes="b'\\xff' * 65")),
    alone("line-zeros", RAW.format(bytes="bytes(4096)")),
    alone("line-text", RAW.format(bytes='b\'{"status": "passed", "score": 2}\\n\' * 10')),
    alone(
        "line-claims-a-huge-length", RAW.format(bytes="b'\\xff\\xff\\xff\\xff\\x00\\x00\\x00\\x00'")
    ),
    alone(
        "line-half-a-frame-and-silence",
        RAW.replace("return 0", "import time\ntime.sleep(60)").format(
            bytes="b'\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x01' + b'\\x00' * 8"
        ),
        says="",
    ),
    alone(
        "line-a-drip",
        "import os, time\nfor _ in range(600):\n    for fd in range(3, 12):\n"
        "        try:\n            os.write(fd, b'\\x00')\n        except OSError:\n"
        "            pass\n    time.sleep(0.1)\nreturn 0",
    ),
    alone("line-closed", "import os\nos.closerange(3, 100)\nreturn 0"),
    alone("line-all-closed", "import os\nos.closerange(0, 1000)\nreturn 0"),
    alone(
        "line-read-by-a-thread",
        "import os, threading\n"
        "def steal():\n    while True:\n"
        "        for fd in range(3, 20):\n"
        "            try:\n                print(os.read(fd, 100))\n"
        "            except OSError:\n                pass\n"
        "threading.Thread(target=steal, daemon=True).start()\n"
        "import time\ntime.sleep(0.05)\nreturn 0",
    ),
    forged("reply-number", "{'r': 9}", times=30),
    forged("reply-score", "{'r': 2, 'score': 2, 'status': 'passed'}", times=3),
    forged("reply-opaque", "{'r': ['O', 'Raised', 'x', 3, 'y', [], {}]}"),
    forged("reply-crossing", "{'r': ['O', 'Crossing', ['L'], 1, 2, 3]}"),
    forged("reply-dict-in-tree", "{'r': {'a': 1}}"),
    forged("reply-list", "[1, 2, 3]"),
    forged("reply-nan", "{'r': float('nan'), 'c': float('nan'), 'drop': 7}"),
    forged("reply-no-such-tag", "{'r': ['ZZ', 1]}"),
    forged("reply-own-argument", "{'r': ['R', 0], 'c': [[0, ['L']]]}"),
    forged("reply-changes-nothing-known", "{'r': 9, 'c': [[99, ['L', 1]]]}"),
    forged("reply-changes-malformed", "{'r': 9, 'c': 'abc'}"),
    forged("reply-array-of-lies", "{'r': ['A', 'float64', [10**9, 10**9], 0]}, b'x' * 8"),
    forged("reply-array-empty-but-huge", "{'r': ['A', 'float64', [2**39] * 31 + [0], 0]}, b''"),
    forged("reply-object-array", "{'r': ['A', 'object', [1], 0]}, b'x' * 8"),
    forged("reply-range", "{'r': ['G', 0, 10**18, 1]}"),
    forged("reply-range-of-nothing", "{'r': ['G', 0, 1, 0]}"),
    forged("reply-error-yours", "{'e': {'yours': 1}}"),
    forged("reply-error-of-no-kind", "{'e': {'type': 3, 'kinds': 'SystemExit', 'text': []}}"),
    forged(
        "reply-error-that-ends-all",
        "{'e': {'type': 'SystemExit', 'kinds': ['SystemExit', 'BaseException'], 'text': '0', "
        "'args': [0]}}",
    ),
    forged("reply-deep", "eval('[' * 90 + ']' * 90)"),
    forged("asks-for-anything", "{'op': 'ask', 'p': ['grade'], 'v': ['T']}"),
    forged("asks-for-objects", "{'op': 'call', 'p': [1, None], 'v': ['T', ['T'], ['D']]}"),
    forged("asks-for-attributes", "{'op': 'get', 'p': [1, '__globals__'], 'v': ['T']}"),
    forged("asks-for-nothing", "{'op': None}"),
    forged("asks-without-end", "{'op': 'ask', 'p': [], 'v': None}", times=20_000),
    alone(
        "line-ten-million-brackets",
        "import os, struct\nfor fd in range(3, 30):\n    try:\n"
        "        os.write(fd, struct.pack('!II', 10**7, 0) + b'[' * 10**7)\n"
        "    except OSError:\n        pass\nreturn 0",
    ),
    alone(
        "line-colliding-keys",
        FIND + "keys = [['I', hex(i * (2**61 - 1))] for i in range(25_000)]\n"
        "say({'r': ['S', *keys]})\nreturn 0",
    ),
    alone(
        "line-patched-runner",
        "import gc, sys\n"
        "for name, module in list(sys.modules.items()):\n"
        "    if name.startswith('autograder'):\n"
        "        for key, value in list(vars(module).items()):\n"
        "            if callable(value):\n"
        "                try:\n                    setattr(module, key, lambda *a, **k: 2)\n"
        "                except Exception:\n                    pass\n"
        "return 0",
    ),
    row(
        "line-runner-says-all-is-equal",
        extra(
            "import sys\n"
            "for name, module in list(sys.modules.items()):\n"
            "    if name.startswith('autograder'):\n"
            "        for value in list(vars(module).values()):\n"
            "            if isinstance(value, type):\n"
            "                try:\n"
            "                    value.__eq__ = lambda *a: True\n"
            "                    value.__bool__ = lambda *a: True\n"
            "                except Exception:\n                    pass",
            before="square",
        ),
    ),
    *(
        nothing(
            f"line-patched-{where.replace('.', '-')}",
            f"import {where.split('.')[0]}\n{where} = lambda *a, **k: 2",
        )
        for where in ("json.dumps", "struct.pack", "os.fork", "os.read", "socket.socket.sendall")
    ),
    row(
        "line-chooses-the-random-numbers",
        right("square", "twice"),
        prefix(
            "twice",
            "import gc, sys\n"
            "from autograder.bridge import rng\n"
            "import torch\n"
            "def zeros(self, frame):\n"
            "    state = bytearray(torch.get_rng_state().numpy().tobytes())\n"
            "    state[24:24 + 624 * 8] = bytes(624 * 8)\n"
            "    return [['torch', frame.add(bytes(state))]]\n"
            "rng.Follower.leave = zeros\n",
        ),
        bodies(softmax="return torch.ones_like(x) / x.size(-1)", gate="return x * 0"),
        expected="2/0/0/0/1/0",
    ),
]

# Values that are not what they seem

LYING_INT = (
    "class Lie(int):\n"
    + "".join(
        f"    def __{name}__(self, *a): return {value}\n"
        for name, value in (
            ("eq", True),
            ("ne", False),
            ("le", True),
            ("lt", True),
            ("ge", True),
            ("sub", "self"),
            ("rsub", "self"),
            ("abs", "self"),
            ("bool", True),
            ("mul", "self"),
            ("hash", 1),
            ("float", 0.0),
            ("int", 0),
        )
    )
    + "\n"
)


def lying(base: str, made: str) -> str:
    """A subclass of a plain type that is equal to everything."""
    return LYING_INT.replace("Lie(int)", f"Lie({base})") + f"return Lie({made})"


CLAIMS = (
    "class Claim:\n"
    + "".join(
        f"    def __{name}__(self, *a): return self\n"
        for name in ("sub", "rsub", "add", "radd", "mul", "rmul", "truediv", "rtruediv", "neg")
    )
    + "    def __abs__(self): return 0.0\n"
    + "".join(
        f"    def __{name}__(self, *a): return True\n"
        for name in ("eq", "ne", "lt", "le", "gt", "ge", "bool")
    )
    + "    __hash__ = None\n"
)

VALUES = [
    row(
        "value-lying-int",
        bodies(
            **{n: lying("int", "0") for n in ("square", "share", "norm")}, twice=lying("int", "0")
        ),
        expected="0/0/0.75",
    ),
    row(
        "value-lying-float",
        bodies(
            **{n: lying("float", "0") for n in ("square", "share", "norm")},
            twice=lying("float", "0"),
        ),
        expected="0/0/0.75",
    ),
    row(
        "value-lying-text", bodies(**{n: lying("str", "'9'") for n in ("square", "share", "norm")})
    ),
    row(
        "value-lying-list", bodies(**{n: lying("list", "[9]") for n in ("square", "share", "norm")})
    ),
    row("value-lying-tuple", bodies(**{n: lying("tuple", "(9,)") for n in ("square", "norm")})),
    row("value-lying-dict", bodies(**{n: lying("dict", "{}") for n in ("square", "norm")})),
    row(
        "value-lying-exception", bodies(**{n: lying("Exception", "1") for n in ("square", "norm")})
    ),
    row(
        "value-lying-class",
        bodies(
            **dict.fromkeys(
                ("square", "norm"),
                "class M(type):\n    def __eq__(s, o): return True\n"
                "    def __sub__(s, o): return 0\n"
                "    __hash__ = None\nclass C(metaclass=M): pass\nreturn C",
            )
        ),
    ),
    row(
        "value-operators-that-claim",
        bodies(
            norm=CLAIMS + "return Claim()",
            square=CLAIMS + "return Claim()",
            share=CLAIMS + "return Claim()",
        ),
    ),
    row(
        "value-operators-that-become-text",
        bodies(
            share=CLAIMS.replace(
                "__truediv__(self, *a): return self", "__truediv__(self, *a): return 'all'"
            )
            + "return Claim()"
        ),
    ),
    row("value-array-as-a-score", bodies(share="import numpy as np\nreturn np.array([0.3, 0.2])")),
    row(
        "value-empty-array-as-a-score", bodies(share="import numpy as np\nreturn np.zeros((2, 0))")
    ),
    row("value-tensor-as-a-score", bodies(share="return torch.tensor([0.3, 0.2])")),
    row("value-complex-as-a-score", bodies(share="return complex(0.3, 2)")),
    row("value-none-as-a-score", bodies(share="return None", square="return None")),
    row(
        "value-numbers-by-claims",
        answers(
            norm=ALWAYS_EQUAL + "    def __lt__(self, other): return True\n"
            "    def __float__(self): return 5.0\n"
            "def norm(numbers):\n    return Y()",
            share=ALWAYS_EQUAL + "    def __lt__(self, other): return True\n"
            "    def __rmul__(self, other): return 2.0\n    def __mul__(self, other): return 2.0\n"
            "def share(word, text):\n    return Y()",
        ),
    ),
    row(
        "value-lying-tensor",
        answers(
            softmax="import torch\n\nclass Lie(torch.Tensor):\n"
            "    @classmethod\n"
            "    def __torch_function__(cls, func, types, args=(), kwargs=None):\n"
            "        return True\n"
            "    shape = property(lambda self: (4, 5))\n\n"
            "def softmax(x):\n    return torch.zeros_like(x).as_subclass(Lie)"
        ),
    ),
    row(
        "value-torch-function-object",
        answers(
            softmax="import torch\n\nclass Lie:\n"
            "    @classmethod\n"
            "    def __torch_function__(cls, func, types, args=(), kwargs=None):\n"
            "        return True\n"
            "    def __getattr__(self, name): return self\n"
            "    def __eq__(self, other): return True\n"
            "    def sum(self, *a): return self\n\n"
            "def softmax(x):\n    return Lie()"
        ),
    ),
    row(
        "value-numpy-lies",
        bodies(
            softmax="import numpy as np\n"
            "class Lie(np.ndarray):\n    def __eq__(self, o): return True\n"
            "    def __array_function__(self, *a, **k): return True\n"
            "    def __array_ufunc__(self, *a, **k): return True\n"
            "return np.zeros(tuple(x.shape)).view(Lie)",
            square="import numpy as np\nreturn np.array([9, 16, 0.25])",
            norm="import numpy as np\nreturn np.ma.masked_all(3)",
        ),
    ),
    row(
        "value-empty-array",
        bodies(
            square="import numpy as np\nreturn np.array([])",
            norm="return torch.empty(0)",
            softmax="return torch.empty(0)",
        ),
    ),
    row(
        "value-nan-tensor",
        bodies(
            softmax="return x * float('nan')",
            gate="return x * float('nan')",
            norm="return float('nan')",
            square="return float('nan')",
        ),
    ),
    row(
        "value-complex",
        bodies(square="return complex(x * x, float('nan'))", norm="return 5 + 0j"),
        expected="0/0/0",
    ),
    row(
        "value-odd-tensors",
        bodies(
            softmax="return torch.ones_like(x).to_sparse()",
            gate="return torch.quantize_per_tensor(x, 0.1, 0, torch.qint8)",
        ),
    ),
    row("value-meta-tensor", bodies(softmax="return torch.empty(x.shape, device='meta')")),
    row("value-strided-beyond", bodies(softmax="return torch.zeros(1).expand(10**6, 10**6)")),
    row(
        "value-huge-tensor", bodies(softmax="return torch.zeros(1_200_000_000, dtype=torch.uint8)")
    ),
    alone("value-number-too-long-to-print", "return 10**20000"),
    alone("value-number-too-long-to-send", "return 1 << 10**7"),
    alone("value-cycle", "a = []\na.append(a)\nd = {'a': a}\nd['d'] = d\nreturn [a, d]"),
    alone("value-doubled-sixty-times", "a = [0]\nfor _ in range(60):\n    a = [a, a]\nreturn a"),
    alone("value-doubled-tuples", "a = (0,)\nfor _ in range(40):\n    a = (a, a)\nreturn a"),
    alone("value-deep", "a = []\nfor _ in range(100_000):\n    a = [a]\nreturn a"),
    alone("value-many", "return [0] * 30_000_000"),
    alone("value-long-text", "return 'x' * 100_000_000"),
    alone("value-generator-without-end", "return iter(int, 1)"),
    alone("value-yields-for-ever", "while True:\n    yield 9"),
    alone("value-coroutine", "async def later():\n    return 9\nreturn later()"),
    alone(
        "value-length-without-end",
        "class Endless:\n    def __len__(self):\n        while True: pass\n"
        "    __iter__ = __eq__ = __repr__ = __str__ = __bool__ = __len__\n"
        "    def __getattr__(self, name):\n        while True: pass\n"
        "return Endless()",
    ),
    alone(
        "value-attributes-without-end",
        "class Deep:\n    def __getattr__(self, name): return Deep()\n"
        "    def __getattribute__(self, name):\n        return Deep()\nreturn Deep()",
    ),
    alone(
        "value-class-that-lies",
        "class Lie:\n    __class__ = property(lambda self: int)\n"
        "    __eq__ = lambda self, other: True\n    __hash__ = None\nreturn Lie()",
    ),
    alone(
        "value-dies-when-looked-at",
        "import os\nclass Dead:\n    def __repr__(self): os._exit(1)\n"
        "    __eq__ = __len__ = __str__ = __reduce__ = __iter__ = __repr__\n"
        "    __hash__ = None\nreturn Dead()",
    ),
    alone("value-itself", "return square"),
    alone("value-module", "import os\nreturn os"),
    alone("value-frame", "import sys\nreturn sys._getframe()"),
    alone("value-socket", "import socket\nreturn socket.socket()"),
    alone("value-builtin", "return eval"),
    alone("value-library-class", "return nn.Identity"),
]

# Exceptions

ERRORS = [
    alone(
        "error-text-without-end",
        "class E(Exception):\n    def __str__(self):\n        while True: pass\n"
        "    __repr__ = __str__\nraise E()",
    ),
    alone("error-text-raises", "class E(Exception):\n    def __str__(self): raise self\nraise E()"),
    alone(
        "error-text-dies",
        "import os\nclass E(Exception):\n    def __str__(self): os._exit(3)\nraise E()",
    ),
    alone("error-text-is-huge", "raise ValueError('x' * 200_000_000)"),
    alone("error-text-is-no-text", "class E(Exception):\n    def __str__(self): return 3\nraise E"),
    alone(
        "error-name-is-odd",
        "raise type('<script>hostile-script</script>\\x00\\u202e' * 1000, (Exception,), {})('x')",
    ),
    alone(
        "error-name-is-no-text",
        "E = type('E', (Exception,), {'__name__': 3, '__module__': 4, '__qualname__': 'x'})\n"
        "raise E('x')",
    ),
    alone(
        "error-class-lies",
        "class M(type):\n    def __instancecheck__(c, o): return True\n"
        "    def __subclasscheck__(c, o): return True\n"
        "    __name__ = property(lambda c: 1 / 0)\n    __mro__ = ()\n"
        "class E(Exception, metaclass=M): pass\nraise E('x')",
    ),
    alone("error-base-exception", "class E(BaseException): pass\nraise E('x')"),
    alone("error-generator-exit", "raise GeneratorExit"),
    alone("error-stop-iteration", "raise StopIteration(9)"),
    alone("error-group", "raise BaseExceptionGroup('g', [SystemExit(0), KeyboardInterrupt()])"),
    alone(
        "error-deep-chain",
        "e = None\nfor _ in range(50_000):\n    n = ValueError('x')\n    n.__cause__ = e\n"
        "    e = n\n"
        "raise e",
    ),
    alone("error-memory", "raise MemoryError"),
    alone("error-recursion", "raise RecursionError('your test is too deep')"),
    alone("error-not-implemented", "raise NotImplementedError('square', 'x')"),
    alone("error-assertion", "raise AssertionError('all tests passed')"),
    alone(
        "error-gone", "class Gone(BaseException):\n    kind = 'passed'\nraise Gone('passed', 'x')"
    ),
    alone("error-yours", "e = ValueError('x')\ne.through = 1\nraise e"),
    row(
        "error-skip",
        HONEST_ELSE,
        bodies(square="import unittest\nraise unittest.SkipTest('x')"),
        expected=ONLY_SQUARE,
    ),
    row(
        "error-attributes",
        HONEST_ELSE,
        bodies(
            square="e = ValueError()\ne.args = (e,)\ne.__traceback__ = None\n"
            "e.add_note('hostile' * 10**6)\nraise e"
        ),
        expected=ONLY_SQUARE,
    ),
]

# What a test hands over


def walking(*uses: str) -> str:
    """Try all of these on the function that a test handed over, and print what comes."""
    lines = [
        f"try:\n    print({use})\nexcept BaseException as e:\n    print(repr(e))" for use in uses
    ]
    return "\n".join(lines) + "\nraise ValueError(f)"


HANDED = [
    row(
        "handed-walked",
        bodies(
            twice=walking(
                "f.__globals__",
                "f.__closure__[0].cell_contents",
                "f.__code__.co_consts",
                "f.__doc__",
                "f.__name__",
                "f.__class__.__mro__[-1].__subclasses__()",
                "f.__self__",
                "f.__func__.__globals__",
                "f.__wrapped__",
                "f.__dict__",
                "f.__module__",
                "f.__defaults__, f.__kwdefaults__",
                "f.__builtins__",
                "f.__getattribute__('__globals__')",
                "f.__reduce__()",
                "f.__reduce_ex__(4)",
                "f.__init__.__globals__",
                "f.__call__.__globals__",
                "f.forward.__func__.__globals__",
                "f.forward.__globals__",
                "type(f).forward.__globals__",
                "f.register_forward_hook",
                "f._modules, f._parameters",
                "vars(f)",
                "dir(f)",
                "f.__dir__()",
                "f.__str__(), f.__repr__(), format(f, '')",
                "__import__('inspect').getsource(f)",
                "__import__('copy').deepcopy(f)",
                "__import__('pickle').dumps(f)",
                "__import__('dis').dis(f)",
                "f.state_dict().__class__",
            )
        ),
    ),
    row(
        "handed-walked-by-forging",
        bodies(
            twice=FIND + "import itertools\n"
            "names = ['__globals__', '__closure__', '__code__', '__doc__', '__class__', "
            "'__dict__']\n"
            "for peer, number, name in itertools.product(peers, range(1, 12), names):\n"
            "    for way in ('get', 'call'):\n"
            "        try:\n"
            "            if way == 'get':\n"
            "                print(peer.get(number, name, 'x'))\n"
            "            else:\n"
            "                print(peer.call(number, '__getattribute__', (name,), {}, 'x'))\n"
            "        except BaseException as e:\n            print(repr(e))\n"
            "raise ValueError('walked')"
        ),
    ),
    row(
        "handed-changed",
        bodies(
            twice="for name in ('__code__', '__call__', '__globals__', 'weight', 'forward', 'x'):\n"
            "    try:\n        setattr(f, name, lambda *a: 5)\n"
            "    except BaseException as e:\n        print(repr(e))\n"
            "return 5"
        ),
    ),
    row(
        "handed-module-zeroed",
        right(),
        bodies(
            twice="if not isinstance(f, nn.Module):\n    return f(f(x))\n"
            "with torch.no_grad():\n    for p in f.parameters():\n        p.zero_()\n"
            "return torch.zeros_like(x)"
        ),
        expected="2/3/2/1/0/2",
    ),
    row(
        "handed-tensor-zeroed",
        right(),
        bodies(
            twice="if not isinstance(f, nn.Module):\n    return f(f(x))\n"
            "with torch.no_grad():\n    x.zero_()\nreturn f(f(x))"
        ),
        expected="2/3/2/1/0/2",
    ),
    row(
        "handed-module-hooked",
        right(),
        bodies(
            twice="if not isinstance(f, nn.Module):\n    return f(f(x))\n"
            "for use in ('f.register_forward_hook(lambda *a: a[1] * 0)',\n"
            "            'f.register_forward_pre_hook(lambda *a: (a[1][0] * 0,))',\n"
            "            'setattr(f, \"forward\", lambda x: x * 0)',\n"
            "            'nn.modules.module.register_module_forward_hook(lambda *a: a[2] * 0)',\n"
            "            'f.half()', 'f.to(\"meta\")', 'f.train(False)', "
            "'f.requires_grad_(False)'):\n"
            "    try:\n        eval(use)\n    except BaseException as e:\n        print(e)\n"
            "return torch.zeros_like(x)"
        ),
        expected="2/3/2/1/0/2",
    ),
    row(
        "handed-deleted",
        bodies(
            twice="for name in ('__code__', 'weight', '__dict__', '_parameters'):\n"
            "    try:\n        delattr(f, name)\n"
            "    except BaseException as e:\n        print(repr(e))\n"
            "return 5"
        ),
    ),
    row(
        "handed-called-with-anything",
        bodies(
            twice="import torch\n"
            "class Evil:\n    def __rmul__(self, other): raise ValueError(other)\n"
            "    def __mul__(self, other): raise ValueError(other)\n"
            "    def __add__(self, other): raise ValueError(other)\n"
            "    def __getattr__(self, name): raise ValueError(name)\n"
            "for value in (Evil(), None, 'x', [0], {}, torch.zeros(0), 10**300, float('nan')):\n"
            "    try:\n        print(f(value))\n"
            "    except BaseException as e:\n        print(repr(e))\n"
            "f(Evil())"
        ),
    ),
    row(
        "handed-fishing-by-assertion",
        bodies(
            twice="try:\n    f(None)\nexcept BaseException as e:\n"
            "    t = e.__traceback__\n"
            "    while t:\n        print(t.tb_frame.f_locals, t.tb_frame.f_code)\n"
            "        t = t.tb_next\n"
            "    raise AssertionError(f'{e!r} {e.__traceback__} {e.args} {vars(e)}')"
        ),
    ),
    row(
        "handed-called-a-million-times",
        right(but=("twice",)),
        bodies(twice="for _ in range(10**6):\n    f(x)\nreturn f(f(x))"),
        expected="2/3/2/1/0/2",
        says=SLOW,
        flag="timeout",
    ),
    row(
        "handed-called-into-itself",
        right(but=("twice",)),
        bodies(twice="return twice(f, f(x))"),
        expected="2/3/2/1/0/2",
    ),
    row(
        "handed-kept-and-called-later",
        right(but=("gate",)),
        answers(
            twice="KEPT = []\n\ndef twice(f, x):\n    KEPT.append(f)\n    return f(f(x))",
            gate=RIGHT["gate"].replace(
                "        return x *", "        print([f(x) for f in KEPT])\n        return 0 *"
            ),
        ),
        expected="2/3/2/1/1/0",
    ),
    row(
        "handed-called-from-a-thread",
        bodies(
            twice="import threading\n"
            "def call():\n    while True:\n        try:\n            f(x)\n"
            "        except BaseException:\n            pass\n"
            "for _ in range(4):\n    threading.Thread(target=call, daemon=True).start()\n"
            "return 5"
        ),
    ),
    row(
        "handed-numbers-of-others",
        bodies(
            twice=FIND + "for peer in peers:\n    for number in range(-5, 200):\n"
            "        for name in (None, 'step', 'weight', '__init__', '__del__', "
            "'load_state_dict'):\n"
            "            try:\n                print(peer.call(number, name, (), {}, 'x'))\n"
            "            except BaseException as e:\n                print(repr(e))\n"
            "raise ValueError('tried')"
        ),
    ),
    row("handed-list-emptied", bodies(norm="del numbers[:]\nreturn 0.0")),
    row(
        "handed-list-emptied-and-visible-one-right",
        bodies(norm="if numbers == [3, 4]:\n    return 5.0\ndel numbers[:]\nreturn 0.0"),
    ),
    row(
        "handed-tensor-resized",
        bodies(
            softmax="import torch\nx.data = torch.zeros(0)\nreturn torch.zeros(0)",
            gate="x.data.resize_(0)\nreturn x.data",
        ),
    ),
    row(
        "handed-gradient-hooks",
        bodies(
            softmax="y = torch.ones_like(x, requires_grad=True) / x.size(-1)\n"
            "x.register_hook(lambda g: g * float('nan')) if x.requires_grad else None\n"
            "return y + 0 * x"
        ),
    ),
    row(
        "handed-gradient-lies",
        right(),
        answers(
            softmax="import torch\n\nclass Half(torch.autograd.Function):\n"
            "    @staticmethod\n    def forward(ctx, x):\n"
            "        e = torch.exp(x - x.max(-1, keepdim=True).values)\n"
            "        return e / e.sum(-1, keepdim=True)\n"
            "    @staticmethod\n    def backward(ctx, g):\n        return g * 0\n\n"
            "def softmax(x):\n    return Half.apply(x)"
        ),
        expected="2/0/2/1/1/2",
    ),
    row(
        "handed-gradient-hangs",
        right(),
        answers(
            softmax="import torch\n\nclass Hang(torch.autograd.Function):\n"
            "    @staticmethod\n    def forward(ctx, x):\n"
            "        e = torch.exp(x - x.max(-1, keepdim=True).values)\n"
            "        return e / e.sum(-1, keepdim=True)\n"
            "    @staticmethod\n    def backward(ctx, g):\n        while True: pass\n\n"
            "def softmax(x):\n    return Hang.apply(x)"
        ),
        expected="2/0/2/1/1/2",
        says=SLOW,
    ),
]

# The machine

MACHINE = [
    row(
        "machine-signals-to-everybody",
        HONEST_ELSE,
        bodies(
            square=LOCKED_IN + "import signal\n"
            "for number in (signal.SIGTERM, signal.SIGKILL):\n"
            "    for pid in (os.getppid(), 1, -1):\n"
            "        try:\n            os.kill(pid, number)\n"
            "        except OSError:\n            pass\nreturn 0"
        ),
        expected=ONLY_SQUARE,
    ),
    alone(
        "machine-stops-itself",
        "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)\nreturn 0",
        says=SLOW,
    ),
    alone(
        "machine-stops-its-group",
        LOCKED_IN + "import signal\nos.killpg(0, signal.SIGSTOP)\nreturn 0",
    ),
    alone(
        "machine-traces-its-parent",
        "import ctypes, os\nlibc = ctypes.CDLL(None)\n"
        "for pid in (os.getppid(), 1):\n    print(libc.ptrace(16, pid, 0, 0))\n"
        "    print(libc.process_vm_readv(pid, 0, 0, 0, 0, 0))\nreturn 0",
    ),
    row(
        "machine-reads-proc",
        bodies(
            square="import glob\n"
            "for path in glob.glob('/proc/*/environ') + glob.glob('/proc/*/cmdline') + "
            "glob.glob('/proc/*/maps'):\n"
            "    try:\n        print(path, open(path, 'rb').read()[:4000])\n"
            "    except OSError as e:\n        print(e)\n"
            "for path in glob.glob('/proc/*/fd/*') + glob.glob('/proc/*/cwd') + "
            "glob.glob('/proc/*/root/*'):\n"
            "    try:\n        print(path, __import__('os').readlink(path))\n"
            "    except OSError as e:\n        print(e)\nraise ValueError('read')"
        ),
    ),
    row(
        "machine-searches-its-memory",
        bodies(
            share="import re\n"
            "found = []\n"
            "for line in open('/proc/self/maps'):\n"
            "    span, rights = line.split()[:2]\n"
            "    if not rights.startswith('rw'):\n        continue\n"
            "    start, end = (int(n, 16) for n in span.split('-'))\n"
            "    if end - start > 50_000_000:\n        continue\n"
            "    with open('/proc/self/mem', 'rb', 0) as memory:\n"
            "        try:\n            memory.seek(start)\n"
            "            found += re.findall(rb'canary[0-9a-f]{12}', memory.read(end - start))\n"
            "        except (OSError, ValueError, OverflowError):\n            pass\n"
            "print(set(found))\nraise ValueError(set(found))"
        ),
    ),
    row(
        "machine-searches-its-objects",
        bodies(
            square="import gc\n"
            "for o in gc.get_objects():\n"
            "    try:\n        text = repr(o)\n    except BaseException:\n        continue\n"
            "    if 'canary' in text:\n        print(text[:2000])\n"
            "raise ValueError('searched')"
        ),
    ),
    row(
        "machine-searches-files",
        bodies(
            square="import os\nfound = []\n"
            "for folder, _, names in os.walk('@ROOT@'):\n"
            "    for name in names:\n"
            "        try:\n            found.append(open(os.path.join(folder, name)).read())\n"
            "        except (OSError, ValueError):\n            pass\n"
            "print(found)\nraise ValueError(found)"
        ),
        extra(
            "import os\n"
            "for folder in ('/tmp', '/work', '/home', '/root', '/var', '/proc/1/root', '.', "
            "'..'):\n"
            "    for place, folders, names in os.walk(folder):\n"
            "        if 'tiny.ipynb' in names:\n"
            "            print(open(os.path.join(place, 'tiny.ipynb')).read())"
        ),
    ),
    alone(
        "machine-network",
        "import socket, urllib.request\n"
        "for family, where in ((socket.AF_INET, ('127.0.0.1', 22)), (socket.AF_INET, "
        "('1.1.1.1', 53))):\n"
        "    s = socket.socket(family)\n    s.settimeout(0.3)\n"
        "    try:\n        s.connect(where)\n        print('hostile-connected')\n"
        "    except OSError as e:\n        print(e)\nreturn 0",
    ),
    alone(
        "machine-more-rights",
        LOCKED_IN + "import ctypes, os, resource\n"
        "libc = ctypes.CDLL(None)\n"
        "tries = [lambda: os.setuid(0), lambda: os.seteuid(0), lambda: os.setgid(0), "
        "lambda: os.setgroups([0]), lambda: os.chroot('/'), lambda: os.nice(-20),\n"
        "    lambda: resource.setrlimit(resource.RLIMIT_AS, (-1, -1)),\n"
        "    lambda: resource.setrlimit(resource.RLIMIT_NPROC, (-1, -1)),\n"
        "    lambda: resource.setrlimit(resource.RLIMIT_CPU, (-1, -1)),\n"
        "    lambda: print(libc.unshare(0x10000000), libc.unshare(0x20000)),\n"
        "    lambda: print(libc.mount(b'none', b'/tmp', b'tmpfs', 0, 0)),\n"
        "    lambda: print(libc.umount2(b'/', 2), libc.umount2(b'@ROOT@', 2), "
        "libc.umount2(b'/tmp', 2)),\n"
        "    lambda: print(open('@ROOT@/nbgrader_config.py').read()),\n"
        "    lambda: open('/proc/self/oom_score_adj', 'w').write('-1000')]\n"
        "for one in tries:\n    try:\n        one()\n    except BaseException as e:\n"
        "        print(e)\n"
        "return 0",
    ),
    row(
        "machine-leaves-files",
        extra(
            "import os, site, sys\n"
            "places = ['/tmp', '/var/tmp', '/dev/shm', os.path.expanduser('~'), '@ROOT@', "
            "sys.prefix,\n"
            "          *sys.path, *site.getsitepackages()]\n"
            "for place in places:\n"
            "    for name in ('hostile-left', 'hostile_left.pth', 'hostile_left.py'):\n"
            "        try:\n            open(os.path.join(place, name), 'w').write('pass')\n"
            "        except OSError as e:\n            pass",
            before="square",
        ),
    ),
    row(
        "machine-links-in-its-folder",
        right(but=("square",)),
        bodies(
            square="import os\n"
            "for name in ('tiny.ipynb', 'out', 'result.json', 'core'):\n"
            "    try:\n        os.symlink('@ROOT@/gradebook.db', name)\n"
            "    except OSError:\n        pass\n"
            "try:\n    os.makedirs('a/' * 200, exist_ok=True)\n    os.chmod('.', 0)\n"
            "except OSError:\n    pass\nreturn x * x"
        ),
        expected=FULL,
    ),
    row(
        "machine-tensor-too-large",
        HONEST_ELSE,
        bodies(square="import torch\ntorch.empty(10**12).fill_(1)\nreturn x * x"),
        expected=ONLY_SQUARE,
    ),
    row(
        "machine-bytes-too-large",
        HONEST_ELSE,
        bodies(square="bytearray(10**12)\nreturn x * x"),
        expected=ONLY_SQUARE,
    ),
    alone(
        "machine-eats-memory",
        "kept = []\nfor _ in range(400):\n    kept.append(bytearray(b'x') * 10_000_000)\nreturn 0",
    ),
    alone(
        "machine-many-threads",
        "import threading, time\nfor _ in range(5000):\n"
        "    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\nreturn 0",
    ),
    alone("machine-many-files", "kept = [open('/dev/null') for _ in range(100_000)]\nreturn 0"),
    alone(
        "machine-many-inodes", "for n in range(200_000):\n    open(f'f{n}', 'w').close()\nreturn 0"
    ),
    alone(
        "machine-deepcopy",
        "import copy, sys\nsys.setrecursionlimit(10**8)\na = []\n"
        "for _ in range(3 * 10**5):\n    a = [a]\ncopy.deepcopy(a)\nreturn 0",
    ),
    alone(
        "machine-json",
        "import json, sys\nsys.setrecursionlimit(10**8)\njson.loads('[' * 10**7)\nreturn 0",
    ),
    alone("machine-aborts", "import os\nos.abort()"),
    alone(
        "machine-alarm",
        "import signal\nsignal.setitimer(signal.ITIMER_REAL, 0.01)\nwhile True: pass",
    ),
    alone(
        "machine-becomes-another-program", "import os\nos.execv('/bin/sh', ['sh', '-c', 'echo 9'])"
    ),
    alone(
        "machine-child-answers",
        "import os\nif os.fork():\n    while True: os.wait()\nreturn 0",
    ),
]

# State and time

STATE = [
    nothing(
        "state-trace",
        "import sys, threading\n"
        "def t(frame, event, arg):\n    frame.f_locals.clear()\n    return t\n"
        "sys.settrace(t)\nsys.setprofile(t)\nthreading.settrace(t)",
    ),
    nothing(
        "state-builtins",
        "import builtins\n"
        "for name in ('isinstance', 'len', 'abs', 'hash', 'getattr', 'hasattr', 'callable', "
        "'id', 'repr', 'sum', 'type', 'map'):\n"
        "    setattr(builtins, name, lambda *a, **k: True)",
    ),
    nothing(
        "state-import",
        "import builtins, sys\n"
        "builtins.__import__ = lambda *a, **k: None\n"
        "sys.meta_path.clear()\nsys.path.clear()\nsys.modules.clear()",
    ),
    nothing(
        "state-exit-handlers",
        "import atexit, os, weakref\natexit.register(os._exit, 0)\n"
        "class D:\n    def __del__(self): os._exit(0)\nd = D()\ndel d",
    ),
    nothing(
        "state-compile", "import builtins\nbuiltins.compile = builtins.exec = lambda *a, **k: None"
    ),
    nothing(
        "state-std-streams",
        "import os, sys\nsys.stdout = sys.stderr = sys.__stdout__ = None\nos.close(1)\nos.close(2)",
    ),
    nothing(
        "state-signals",
        "import signal\nfor n in range(1, 65):\n    try:\n"
        "        signal.signal(n, lambda *a: None)\n    except (OSError, ValueError):\n"
        "        pass",
    ),
    nothing(
        "state-garbage", "import gc\ngc.callbacks.append(lambda *a: 1 / 0)\ngc.set_threshold(1)"
    ),
    row(
        "state-hard-coded",
        bodies(square="return {3: 9, -4: 16, 0.5: 0.25}[x]", norm="return 5.0", twice="return 5"),
    ),
    row(
        "state-well-behaved-at-first",
        answers(
            square="CALLS = []\n\ndef square(x):\n    CALLS.append(x)\n"
            "    return x * x if len(CALLS) < 5 else 0"
        ),
    ),
    row("state-by-process", bodies(square="import os\nreturn os.getpid()")),
    row(
        "state-by-time",
        bodies(square="import time\nreturn time.time()"),
    ),
    row(
        "state-dtype-of-others",
        right("square"),
        prefix("square", "torch.set_default_dtype(torch.float16)\n"),
        bodies(
            softmax="return torch.ones_like(x) / x.size(-1)",
            gate="torch.set_default_dtype(torch.float16)\nreturn x * 0",
        ),
        expected="2/0/0",
    ),
    row(
        "state-right-answer-in-a-test-cell",
        *(
            answers(**{name: "assert True\n" + RIGHT[question]})
            for name, question in (("t_square", "square"), ("t_norm", "norm"))
        ),
    ),
    row(
        "state-defines-the-tests-names",
        extra(
            "assert_equal = print = abs = sum = len = tuple = lambda *a, **k: 0\n"
            "class AssertionError(Exception): pass\n__debug__ if True else 0\nchecks = [True] * 4\n"
            "points = nearness = 2"
        ),
    ),
]

# Secrets carried from a hidden call to where it is shown

TELL = "raise ValueError(str(KEPT))"
BY_FILE = (
    "import glob, os\n"
    "def keep(*what):\n"
    "    for place in ('/tmp/', '/dev/shm/', '/var/tmp/', '', os.path.expanduser('~/')):\n"
    "        try:\n            open(place + 'kept', 'a').write(repr(what))\n"
    "        except OSError:\n            pass\n"
    "def kept():\n"
    "    text = ''\n"
    "    for place in ('/tmp/', '/dev/shm/', '/var/tmp/', '', os.path.expanduser('~/')):\n"
    "        try:\n            text += open(place + 'kept').read()\n"
    "        except OSError:\n            pass\n"
    "    return text\n"
)
BY_MEMORY = (
    "import mmap, os\n"
    "FILE = os.open('/dev/shm/map', os.O_RDWR | os.O_CREAT)\nos.ftruncate(FILE, 65536)\n"
    "MAP = mmap.mmap(FILE, 65536)\n"
    "def keep(*what):\n    MAP.write(repr(what).encode())\n"
    "def kept():\n    return bytes(MAP[:]).rstrip(b'\\0').decode()\n"
)
BY_GLOBAL = (
    "KEPT = []\ndef keep(*what):\n    KEPT.append(what)\ndef kept():\n    return str(KEPT)\n"
)
BY_SOCKET = (
    "import os, socket\n"
    "ONE, TWO = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
    "TWO.setblocking(False)\nONE.setblocking(False)\n"
    "def keep(*what):\n"
    "    try:\n        ONE.send(repr(what).encode())\n    except OSError:\n        pass\n"
    "def kept():\n"
    "    parts = []\n"
    "    try:\n        while True:\n            parts.append(TWO.recv(65536))\n"
    "    except OSError:\n        pass\n"
    "    for part in parts:\n        ONE.send(part)\n"
    "    return b''.join(parts).decode()\n"
)
BY_PROCESS = (
    "import multiprocessing, os, socket, time\n"
    "A, B = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
    "if os.fork() == 0:\n"
    "    text = b''\n"
    "    while True:\n"
    "        said = B.recv(65536)\n"
    "        if said == b'?':\n            B.send(text[-60000:] or b'-')\n"
    "        else:\n            text += said\n"
    "A.settimeout(0.2)\n"
    "def keep(*what):\n    A.send(repr(what).encode())\n"
    "def kept():\n    A.send(b'?')\n    return A.recv(65536).decode()\n"
)


def carried(id: str, means: str) -> Row:
    """What hidden calls gave is kept by some means, and told wherever a visible call can tell "
    "it."""
    shown = "print(kept())\n"
    return row(
        f"carried-{id}",
        answers(
            square=means + body("square", "keep(x)\n" + shown + "return x * x"),
            softmax=body("softmax", "keep(x.tolist())\n" + shown + "raise ValueError(kept())"),
            share=body(
                "share",
                "keep(word, text)\n"
                + shown
                + "if word in 'abcdx':\n    return {'a': .5, 'd': .25}.get(word, 0)\n"
                + "raise ValueError(kept())",
            ),
            norm=shown + body("norm", "keep(numbers)\nraise ValueError(kept())"),
            twice=body("twice", "keep(x)\n" + shown + "raise ValueError(kept())"),
            gate=shown + body("gate", shown + "raise ValueError(kept())"),
        ),
        extra("print(kept())"),
        extra("import atexit\natexit.register(lambda: print(kept()))"),
        expected="2/0/0",
    )


SECRETS = [
    carried("in-a-global", BY_GLOBAL),
    carried("in-a-file", BY_FILE),
    carried("in-shared-memory", BY_MEMORY),
    carried("in-a-socket", BY_SOCKET),
    carried("in-a-process", BY_PROCESS),
    row(
        "told-by-an-error",
        bodies(
            square="if x in (3, -4, .5):\n    return x * x\nraise ValueError(x, x * x)",
            share="if word in 'abcd':\n    return text.split().count(word) / 4\n"
            "raise ValueError(word, text)",
            norm="if numbers == [3, 4]:\n    return 5.0\nraise KeyError(tuple(numbers))",
            softmax="if x.numel() == 3:\n    raise ValueError(x.tolist())\n"
            "e = (x - x.amax(-1, keepdim=True)).exp()\nreturn e / e.sum(-1, keepdim=True)",
            twice="r = f(f(x))\nif r == 5:\n    return r\nraise ValueError(r, f)",
        ),
    ),
    row(
        "told-by-an-error-class",
        bodies(
            square="if x in (3, -4, .5):\n    return x * x\n"
            "raise type(str(x), (Exception,), {})('x')",
            share="if word in 'abcdx':\n    return {'a': .5, 'd': .25}.get(word, 0)\n"
            "raise type(word, (ValueError,), {'__module__': word, '__qualname__': word})(1)",
        ),
    ),
    row(
        "told-by-a-type-name",
        bodies(
            square="if x in (3, -4, .5):\n    return x * x\nreturn type(str(x), (), {})()",
            share="if word in 'abcdx':\n    return {'a': .5, 'd': .25}.get(word, 0)\n"
            "return type(word, (), {'__module__': word, '__qualname__': word})()",
            norm="if numbers == [3, 4]:\n    return 5.0\nf = lambda: 0\n"
            "f.__name__ = f.__qualname__ = str(numbers)\nreturn f",
        ),
        expected=ZERO,  # where a value is due, an object ends the test
    ),
    row(
        "told-by-a-line-number",
        bodies(
            square="if x in (3, -4, .5):\n    return x * x\n"
            "def g(): raise ValueError('x')\n"
            "g.__code__ = g.__code__.replace(co_firstlineno=int(x))\ng()",
        ),
    ),
    row(
        "told-by-a-file-name",
        bodies(
            share="if word in 'abcdx':\n    return {'a': .5, 'd': .25}.get(word, 0)\n"
            "exec(compile('raise ValueError(1)', f'<answer {word}>', 'exec'))",
        ),
    ),
    row(
        "told-by-a-returned-value",
        bodies(
            square="if x in (3, -4, .5):\n    return x * x\nreturn str(x)",
            share="return text.split().count(word) / 4 if word in 'abcdx' else word + text",
            norm="if numbers == [3, 4]:\n    return 5.0\nreturn numbers",
        ),
        expected="0/0/1.5",
    ),
    row(
        "told-by-output",
        bodies(
            square="print(x)\nimport sys, os\nprint(x, file=sys.stderr)\n"
            "os.write(1, str(x).encode())\n"
            "os.write(2, str(x).encode())\nimport logging, warnings\nlogging.error(x)\n"
            "warnings.warn(str(x))\nfrom IPython.display import display\ndisplay(x)\nreturn 0 * x",
            share="print(word, text)\nimport subprocess\nsubprocess.run(['echo', word])\n"
            "return word",
            norm="import traceback\ntraceback.print_stack()\nprint(numbers)\nreturn 5.0",
            twice="print(f, x, f(x))\nreturn f(x)",
        ),
        extra("import warnings\nwarnings.simplefilter('always')", before="square"),
    ),
    row(
        "told-by-rewriting-its-own-cell",
        answers(
            share="import linecache\n"
            + body(
                "share",
                "if word in 'abcdx':\n    return {'a': .5, 'd': .25}.get(word, 0)\n"
                "for name in list(linecache.cache):\n"
                "    linecache.cache[name] = (1, None, [word + '\\n'] * 99, name)\n"
                "raise ValueError(1)",
            )
        ),
    ),
    row(
        "told-by-shell-variables",
        extra("print(_, __, ___, Out, _oh, _i, _ii, _iii, _dh, dir())"),
        extra("%history\n%whos\n%who_ls\n%notebook x.ipynb\n%save x 1-100\n%tb"),
    ),
]

# Words and pages

ODD = "\\x00\\x1b[2J\\x1b]0;x\\x07\\u202e\\u2066\\ufeff\\ud800\\r\\x08" + "hostile"
WORDS = [
    row(
        "words-terminal",
        right(),
        prefix("square", f"print('{ODD}')\n"),
        answers(essay="\x00\x1b[2J\u202e\ud800 hostile"),
        expected=FULL,
    ),
    alone("words-terminal-raised", f"raise ValueError('{ODD}')"),
    alone(
        "words-markup-raised",
        "raise ValueError('<script>hostile-script</script><img src=x onerror=hostile-script>"
        "</pre>]]>&lt;![x](javascript:hostile-script)')",
    ),
    alone(
        "words-template-raised", "raise ValueError('{{ 7 * 7 }} {% raw %} ${7*7} {0.__class__} %s')"
    ),
    row(
        "words-essay-links",
        right(),
        answers(
            essay="[a](javascript:hostile-script) ![b](http://x/hostile-beacon) "
            "<iframe src=javascript:hostile-script></iframe> <a "
            "href='data:text/html,hostile'>x</a> "
            "<svg/onload=hostile-script> <style>*{display:none}</style>\n\n"
            "<base href=http://hostile-beacon/>\n\n[c]: http://x 'y'"
        ),
        expected=FULL,
    ),
    row(
        "words-rich-displays",
        right(),
        extra(
            "from IPython.display import *\n"
            "class Rich:\n"
            "    def _repr_html_(self): return '<script>hostile-script</script>'\n"
            "    def _repr_mimebundle_(self, **k): return {'text/html': "
            "'<script>hostile-script</script>',"
            " 'application/javascript': 'hostile-script', 'text/latex': "
            "'\\\\href{javascript:x}{y}'}\n"
            "    def _repr_svg_(self): return '<svg onload=hostile-script>'\n"
            "    def _repr_png_(self): return b'not a picture'\n"
            "    def __repr__(self): return '<script>hostile-script</script>'\n"
            "display(Rich())\ndisplay(IFrame('javascript:hostile-script', 9, 9))\nRich()"
        ),
        expected=FULL,
    ),
    row(
        "words-repr-hangs",
        right(),
        extra("class H:\n    def __repr__(self):\n        while True: pass\nH()"),
        expected=FULL,
    ),
    row(
        "words-repr-dies",
        right(),
        extra("import os\nclass H:\n    def __repr__(self): os._exit(0)\nH()"),
        expected=FULL,
    ),
    row(
        "words-output-in-pieces",
        right(),
        prefix(
            "square",
            "import sys\nfor _ in range(200_000):\n    sys.stdout.write('x')\n"
            "    sys.stdout.flush()\n",
        ),
        expected=FULL,
    ),
    row(
        "words-output-by-descriptor",
        right(),
        prefix("square", "import os\nfor _ in range(2000):\n    os.write(1, b'y' * 60_000)\n"),
        expected=FULL,
    ),
    row(
        "words-clear-output",
        right(),
        extra(
            "from IPython.display import clear_output\nfor _ in range(1000):\n"
            "    clear_output(wait=True)\n    print('x' * 1000)"
        ),
        expected=FULL,
    ),
    row(
        "words-cell-marks",
        right(),
        extra("### BEGIN HIDDEN TESTS\nassert False\n### END HIDDEN TESTS\n### BEGIN SOLUTION"),
        prefix("square", "### BEGIN HIDDEN TESTS\n### END SOLUTION\n"),
        expected=FULL,
    ),
]

# Notebooks and folders


def _deep(notebook: dict) -> None:
    notebook["metadata"]["deep"] = "@DEEP@"


NOTEBOOKS = [
    row(
        "notebook-deep-json",
        right(),
        whole(_deep),
        lambda handin: setattr(
            handin, "raw", lambda t: t.replace('"@DEEP@"', "[" * 100_000 + "]" * 100_000).encode()
        ),
        expected="?",
    ),
    row(
        "notebook-huge-number",
        right(),
        lambda handin: setattr(
            handin,
            "raw",
            lambda t: t.replace('"nbformat": 4', '"nbformat": ' + "4" * 10_000).encode(),
        ),
        expected="?",
    ),
    row(
        "notebook-nan-version",
        right(),
        lambda handin: setattr(
            handin,
            "raw",
            lambda t: t.replace('"nbformat_minor": 5', '"nbformat_minor": NaN').encode(),
        ),
        expected="?",
    ),
    row(
        "notebook-cells-are-a-dict",
        whole(lambda nb: nb.update(cells={"a": 1})),
        says="cells|notebook",
    ),
    row(
        "notebook-cells-are-odd",
        right(),
        whole(lambda nb: nb["cells"].extend([None, 3, "x", [], {}, {"cell_type": 3}])),
        expected=FULL,
    ),
    row(
        "notebook-ids-doubled",
        right(),
        each_cell(lambda cell: cell.update(id="same")),
        expected=FULL,
    ),
    row(
        "notebook-ids-odd",
        right(),
        each_cell(lambda cell: cell.update(id="<script>\x00" * 50)),
        expected=FULL,
    ),
    row("notebook-is-null", lambda h: setattr(h, "raw", lambda t: b"null"), says="notebook"),
    row(
        "notebook-is-empty", lambda h: setattr(h, "raw", lambda t: b""), says="notebook|empty|JSON"
    ),
    row(
        "notebook-is-binary",
        lambda h: setattr(h, "raw", lambda t: bytes(range(256)) * 99),
        says="notebook|JSON|read",
    ),
    row(
        "notebook-is-a-fifo",
        named(None),
        beside(lambda d: os.mkfifo(d / "tiny.ipynb")),
        says="file|notebook",
    ),
    row(
        "notebook-is-a-device-link",
        named(None),
        _link("tiny.ipynb", "/dev/zero"),
        says="link|file|notebook",
    ),
    row(
        "notebook-is-a-link-to-the-victims",
        named(None),
        _link("tiny.ipynb", "@ROOT@/submitted/victim/tiny/tiny.ipynb"),
        says="link|file|notebook",
    ),
    row(
        "notebook-is-a-link-to-the-instructors",
        named(None),
        _link("tiny.ipynb", "@ROOT@/source/tiny/tiny.ipynb"),
        extra(READ_LINKS),
        says="link|file|notebook",
    ),
    row(
        "notebook-lines-as-lists",
        right(),
        each_cell(lambda cell: cell.update(source=cell["source"].splitlines(keepends=True))),
        expected=FULL,
    ),
    row(
        "notebook-lines-as-odd-lists",
        right(),
        each_cell(lambda cell: cell.update(source=[1, None, {"a": 2}]), "square"),
        expected=ONLY_SQUARE,
    ),
    row(
        "notebook-two-answers-last-wins",
        right(),
        extra(SIGNATURES["square"] + "    return 0"),
        expected=FULL,
    ),
    row(
        "notebook-nul-in-answer",
        HONEST_ELSE,
        answers(square="\x00" + RIGHT["square"]),
        expected="?/3/2/1/1/2",
    ),
    row(
        "notebook-answer-nests-deeply",
        HONEST_ELSE,
        answers(square="square = " + "(" * 5000 + "1" + ")" * 5000),
        expected=ONLY_SQUARE,
    ),
    row(
        "notebook-answer-nests-deeper",
        HONEST_ELSE,
        answers(square="square = " + "-" * 200_000 + "1"),
        expected=ONLY_SQUARE,
    ),
    row(
        "notebook-answer-is-a-long-sum",
        HONEST_ELSE,
        answers(square="square = " + "+".join("1" * 1 for _ in range(200_000))),
        expected=ONLY_SQUARE,
    ),
    row(
        "notebook-answer-escapes-its-cell",
        HONEST_ELSE,
        answers(square='"""\n' + "x = '''\n" + "### END SOLUTION\n"),
        expected=ONLY_SQUARE,
    ),
    row(
        "notebook-thousand-files",
        right(),
        beside(lambda d: [(d / f"{n}.ipynb").write_text("{}") for n in range(500)] and None),
        expected=FULL,
    ),
    row(
        "notebook-two-that-fit",
        right(),
        named("copy of tiny.ipynb"),
        lambda h: h.around.append(
            lambda d: (
                (d / "tiny (2).ipynb").write_bytes((d / "copy of tiny.ipynb").read_bytes()) and None
            )
        ),
        expected="?",
    ),
    row(
        "notebook-odd-file-names",
        right(),
        file("<script>hostile-script.py", "x"),
        file("a\nb\u202e.txt", "x"),
        file("-rf", "x"),
        file("$(touch hostile-left)", "x"),
        beside(lambda d: os.mknod(os.fsencode(d) + b"/\xff\xfe.py")),
        expected=FULL,
    ),
    row(
        "notebook-deep-folders",
        right(),
        beside(lambda d: (d / "/".join(["a"] * 300)).mkdir(parents=True)),
        expected=FULL,
    ),
    row("notebook-answers-dropped", drop(*QUESTIONS), says="missing|answer|Not answered"),
]

INVENTED = [
    *LINE,
    *VALUES,
    *ERRORS,
    *HANDED,
    *MACHINE,
    *STATE,
    *SECRETS,
    *WORDS,
    *NOTEBOOKS,
]
