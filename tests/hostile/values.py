"""Values that lie: false tensors, shapes and layouts, what is changed in place, what is rounded.

And right answers that look like them, which keep their points.
"""

from tests.hostile.attacks import forged
from tests.hostile.steps import FULL, Row, answers, bodies, extra, right, row

NO_SOFTMAX = "2/0/2/1/1/2"
NO_GATE = "2/3/2/1/1/0"
FAKE = """\
class Fake:
    dtype, device, requires_grad, is_leaf, ndim = torch.float64, torch.device("cpu"), False, True, 2
    layout, grad, is_sparse, data_ptr = torch.strided, None, False, lambda self: 4096
    def __init__(self, shape=(), *more): self.shape = torch.Size(shape)
    def size(self, *axis): return self.shape
    def detach(self): return self
    def double(self): return torch.empty((0, *self.shape), dtype=torch.float64)
    def __getattr__(self, name):
        if name.startswith("__"): raise AttributeError(name)
        return lambda *parts, **named: self
    def __len__(self): return 1
    def __iter__(self): return iter([self])
    def __getitem__(self, place): return self
    def __eq__(self, other): return self
    def __bool__(self): return True
    __sub__ = __add__ = __mul__ = __eq__
"""


def fake(module: str, name: str) -> Row:
    """Results that claim to be of this public class, for two questions."""
    claim = f"import {module}\nFake.__module__, Fake.__qualname__ = {module!r}, {name!r}\n"
    claim += f"{module}.{name} = Fake\n"
    return row(
        f"value-fake-{name.lower()}",
        right(),
        extra(FAKE + claim, before="square"),
        bodies(softmax="return Fake(x.shape)", gate="return Fake(x.shape)"),
        expected="2/0/2/1/1/0",
    )


FAKES = [
    fake("torch.nn", "Parameter"),
    fake("torch.nn", "Buffer"),
    fake("torch.nn.parameter", "UninitializedParameter"),
    fake("torch", "Tensor"),
    fake("torch", "Size"),
    fake("torch", "Generator"),
    fake("torch.nn.utils.rnn", "PackedSequence"),
    fake("numpy", "ndarray"),
    row(
        "value-fake-class-attribute",
        right(but=("softmax",)),
        bodies(
            softmax="class Fake:\n    __class__ = nn.Parameter\n"
            "    shape, dtype = x.shape, x.dtype\n    def sum(self, *axes): return torch.ones(2)\n"
            "return Fake()"
        ),
        expected=NO_SOFTMAX,
    ),
    row(
        "value-fake-parameter-of-a-module",
        right(but=("gate",)),
        extra(FAKE, before="square"),
        bodies(gate="self.linear._parameters['weight'] = Fake((4, 4))\nreturn torch.zeros_like(x)"),
        expected=NO_GATE,
    ),
]
SHAPES = [
    forged(f"value-{id}", f"{{'r': ['X', 0], 'x': [[{entry}]]}}, {data}", times=3)
    for id, entry, data in (
        ("empty-of-a-false-shape", "'float64', [0, 2**40], None, 0, 0, None", "b''"),
        ("empty-whose-size-overflows", "'float64', [2**39, 2**39, 0], None, 0, 0, None", "b''"),
        ("steps-back", "'float64', [2], [-1], 0, 0, None", "b'x' * 16"),
        ("steps-beyond", "'float64', [2], [2**62], 0, 0, None", "b'x' * 16"),
        ("whole-numbers-with-gradient", "'int64', [2], None, 0, 3, None", "b'x' * 16"),
        (
            "gradient-of-another-shape",
            "'float64', [2], None, 0, 3, ['float64', [1], None, 1, 2, None]",
            "b'x' * 16, b'x' * 8",
        ),
    )
]
SHAPES += [
    forged("value-generator-beyond-its-numbers", "{'r': ['GEN', 0]}, b'\\x01' * 5056", times=3),
    forged("value-fraction-of-nothing", "{'r': ['FR', 1, 0]}", times=3),
    forged("value-endless-decimal", "{'r': ['DC', '1E+999999999']}", times=3),
]
E = "e = torch.exp(x - x.max(-1, keepdim=True).values)\nout = e / e.sum(-1, keepdim=True)\n"


def softmax(id: str, text: str, expected: str = NO_SOFTMAX, says: str = "") -> Row:
    """A right softmax with something odd done to it, or to its input."""
    answer = bodies(softmax=E + text)
    return row(f"value-{id}", right(but=("softmax",)), answer, expected=expected, says=says)


ODD = [
    softmax("meta", "return out.to('meta')", says="device meta"),
    softmax("nested", "return torch.nested.nested_tensor([out])", says="nested tensor"),
    softmax(
        "quantized",
        "return torch.quantize_per_tensor(out.float(), 0.01, 0, torch.quint8)",
        says="quantized tensor",
    ),
    softmax("compressed-rows", "return out.to_sparse_csr()", says="layout torch.sparse_csr"),
    softmax("mkldnn", "return out.float().to_mkldnn()", says="layout torch._mkldnn"),
    softmax("eight-bits", "return out.to(torch.float8_e4m3fn)", says="float8"),
    softmax(
        "left-vmap",
        "kept = []\ntorch.vmap(lambda row: kept.append(row) or row)(out)\nreturn kept[0]",
        says="torch.vmap",
    ),
    softmax(
        "fake-mode",
        "from torch._subclasses.fake_tensor import FakeTensorMode\n"
        "with FakeTensorMode():\n    return torch.ones(2, 3)",
        says="FakeTensor",
    ),
    softmax("without-memory", "out = out.detach()\nout.untyped_storage().resize_(0)\nreturn out"),
    softmax("half-precision", "return out.half().to(x.dtype)"),
    softmax("half-precision-as-such", "return out.half()"),
    *(
        row(
            f"value-uninitialised-{id}",
            right(but=("gate",)),
            answers(
                gate="class Gate(nn.Module):\n    def __init__(self, size):\n"
                "        super().__init__()\n        self.linear = nn.LazyLinear(size)\n"
                f"    def forward(self, x):\n        return {gives}"
            ),
            expected=expected,
            says=says,
        )
        for id, gives, expected, says in (
            ("until-it-is-called", "x * torch.sigmoid(self.linear(x))", FULL, ""),
            ("result", "self.linear.weight", NO_GATE, "uninitialised until the first call"),
        )
    ),
]
IN_PLACE = [
    softmax("turns-its-input", "if x.ndim == 2: x.t_()\nreturn out"),
    softmax("gives-its-input-an-axis", "x.unsqueeze_(0)\nreturn out"),
    softmax("empties-its-input", "if not x.requires_grad: x.resize_(0)\nreturn out"),
    softmax("halves-its-input", "x.data = x.data.half()\nreturn out.to(x.dtype)"),
]
FINE = [
    softmax(
        "puts-its-input-back",
        "with torch.no_grad():\n    x.unsqueeze_(0).squeeze_(0)\nreturn out",
        FULL,
    ),
    softmax(
        "subclass",
        "class Mine(torch.Tensor): pass\nreturn out.as_subclass(Mine)",
        FULL,
    ),
    softmax("conjugate", "return torch.complex(out, out * 0).conj().real", FULL),
    softmax("negative-view", "return torch.complex(out * 0, -out).conj().imag", FULL),
]
SAYS_YES = """\
class Says({base}):
    def __eq__(self, other): return True
    def __sub__(self, other): return 0.0
    def __le__(self, other): return True
    def __abs__(self): return 0.0
    __rsub__, __ge__, __lt__, __ne__ = __sub__, __le__, __le__, lambda self, other: False
    def more(self): return 1
return Says({value})"""
MADE_OF = [
    row(
        f"value-made-of-a-{base}",
        right(but=("square",)),
        bodies(square=SAYS_YES.format(base=base, value=value)),
        expected="0/3/2/1/1/2",
    )
    for base, value in (("float", "0"), ("list", "[]"), ("str", "''"), ("tuple", "()"))
]
TOLD = "'n': 77, 'k': 'object', 'type': 'N', 'own': [], 'classes': []"
SPECIAL = "'dunders': ['__sub__', '__rsub__', '__abs__', '__le__', '__len__']"
FORGED = [
    forged(f"value-{id}", tree, times=3)
    for id, tree in (
        (
            "object-for-a-number",
            f"{{'r': ['H', {{{TOLD}, {SPECIAL}, 'plain': 'float', 'body': 0}}]}}",
        ),
        (
            "that-has-names-all-the-same",
            f"{{'r': ['H', {{{TOLD}, {SPECIAL}, 'plain': 'float', 'body': 9.0, 'bare': True}}]}}",
        ),
        ("own-that-is-no-list", "{'r': 77, 'own': 5}"),
        ("own-places-that-are-none", "{'r': 77, 'own': [[], -1, 'x', {}, 10**30, 0]}"),
        ("object-for-a-path", f"{{'r': ['H', {{{TOLD}, {SPECIAL}, 'plain': 'PosixPath'}}]}}"),
        (
            "memory-of-its-own-telling",
            "{'r': ['V', 'SimpleNamespace', ['__array_interface__'], ['D', 'data', 4096]]}",
        ),
        ("record-of-objects", "{'r': ['A', ['void', ['a', 'O', []]], [1], 0]}, b'x' * 8"),
        ("letters-beyond-all", "{'r': ['A', 'U2', [1], 0]}, b'\\xff' * 8"),
        ("names-that-are-code", "{'r': ['NT', 'A', ['x, y=print()'], 1]}"),
        (
            "exception-of-all-kinds",
            "{'e': {'id': 1, 'type': 'E', 'kinds': [], 'text': '', "
            "'args': [], 'family': [['E', ['os:system', 'builtins:SystemExit']]]}}",
        ),
    )
]
ODD.append(
    row(
        "value-list-where-points-are-worked-out",
        right(but=("share",)),
        bodies(share="import numpy\nreturn numpy.array([0.25, 0.25])"),
        expected="2/3/0/1/1/2",
        says="cannot be worked out",
    )
)
FINE.append(
    row(
        "value-number-with-a-method",
        right(),
        bodies(square="class N(float):\n    def half(self): return self / 2\nreturn N(x * x)"),
        expected=FULL,
    )
)
VALUES = [*FAKES, *SHAPES, *ODD, *IN_PLACE, *MADE_OF, *FORGED, *FINE]
