"""Values of the libraries on the line: they arrive as they were, and lying parts are refused."""

import array
import collections
import datetime
import gc
import json
import pathlib
import random
import subprocess
import sys
import types
import uuid
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

from autograder.bridge import library
from autograder.bridge.wire import WireError
from autograder.isolation.fork_server import ForkServer
from autograder.judge.guard import Guard
from tests.bridge.ends import Names, answering, outcome, replying, unbelieving

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture
def answer(open_fork_server: ForkServer) -> Iterator[Callable[[str], Any]]:
    """answer(source) runs it; tests believe no operator of its objects, as where there is none."""
    yield from unbelieving(open_fork_server)


class Point(NamedTuple):
    """A result with names."""

    x: int
    y: Any = None


EAST = datetime.timezone(datetime.timedelta(hours=2), "east")
RECORDS = np.array([(1, 2.5, "a"), (2, 0.5, "bc")], [("n", "i4"), ("part", "f8"), ("word", "U2")])
PAIRS = np.array([([1, 2], True)], [("pair", "i8", (2,)), ("ok", "?")])
LIBRARY: dict[str, Any] = {
    "datetime.date(2024, 2, 29)": datetime.date(2024, 2, 29),
    "datetime.time(1, 2, 3, 4)": datetime.time(1, 2, 3, 4),
    "datetime.time(1, tzinfo=EAST)": datetime.time(1, tzinfo=EAST),
    "datetime.datetime(2024, 1, 2, tzinfo=UTC)": datetime.datetime(2024, 1, 2, tzinfo=datetime.UTC),
    "datetime.datetime(2024, 1, 2, fold=1)": datetime.datetime(2024, 1, 2, fold=1),
    "datetime.timedelta(-1, 2, 3)": datetime.timedelta(-1, 2, 3),
    "UTC": datetime.UTC,
    "EAST": EAST,
    "uuid.UUID(int=2**100)": uuid.UUID(int=2**100),
    "pathlib.PurePosixPath('/a/b.txt')": pathlib.PurePosixPath("/a/b.txt"),
    "pathlib.PureWindowsPath('c:/a')": pathlib.PureWindowsPath("c:/a"),
    "types.MappingProxyType({'a': [1]})": types.MappingProxyType({"a": [1]}),
    "types.SimpleNamespace(a=1, b=[2])": types.SimpleNamespace(a=1, b=[2]),
    "C.ChainMap({'a': 1}, {'a': 2, 'b': 3})": collections.ChainMap({"a": 1}, {"a": 2, "b": 3}),
    "C.UserDict(a=1)": collections.UserDict(a=1),
    "C.UserList([1, 2])": collections.UserList([1, 2]),
    "C.UserString('ab')": collections.UserString("ab"),
    "array.array('d', [1, 2])": array.array("d", [1, 2]),
    "memoryview(b'abc')": memoryview(b"abc"),
    "memoryview(array.array('i', [1, 2]))": memoryview(array.array("i", [1, 2])),
    "np.datetime64('2024-01-02')": np.datetime64("2024-01-02"),
    "np.timedelta64(3, 'h')": np.timedelta64(3, "h"),
}
ARRAYS: dict[str, Any] = {
    "np.array(['2024-01-02', 'NaT'], 'M8[D]')": np.array(["2024-01-02", "NaT"], "M8[D]"),
    "np.array([3], 'm8[25s]')": np.array([3], "m8[25s]"),
    "np.array(['a', 'bcd'])": np.array(["a", "bcd"]),
    "np.array([b'a', b'bcd'])": np.array([b"a", b"bcd"]),
    "RECORDS": RECORDS,
    "RECORDS[::-1]": RECORDS[::-1],
    "RECORDS[0]": RECORDS[0],
    "PAIRS": PAIRS,
    "np.array(['a'], '>U3')": np.array(["a"], "U3"),
}
MAKE = f"""
import array, datetime, pathlib, types, uuid, collections as C, numpy as np
from typing import NamedTuple
UTC = datetime.timezone.utc
EAST = datetime.timezone(datetime.timedelta(hours=2), "east")
RECORDS = np.array([(1, 2.5, "a"), (2, 0.5, "bc")], [("n", "i4"), ("part", "f8"), ("word", "U2")])
PAIRS = np.array([([1, 2], True)], [("pair", "i8", (2,)), ("ok", "?")])
made = {{ {", ".join(f"{text!r}: lambda: {text}" for text in LIBRARY | ARRAYS)} }}
def make(text): return made[text]()
def same(x): return x
def alike(text, x): return make(text) == x, type(x) is type(make(text))
"""


@pytest.fixture(scope="module")
def made(open_fork_server: ForkServer) -> Iterator[Any]:
    """What makes values of the libraries."""
    with answering(open_fork_server, MAKE) as student:
        student.peer.policy = Guard()
        yield Names(student)


@pytest.mark.parametrize("text", LIBRARY)
def test_a_value_of_the_library_is_equal_on_both_sides(made: Any, text: str) -> None:
    value = LIBRARY[text]
    got = made.make(text)
    assert got == value
    assert type(got) is type(value)
    assert made.same(value) == value
    assert tuple(made.alike(text, value)) == (True, True)


def test_times_keep_their_zone_and_fold(made: Any) -> None:
    assert made.make("EAST").tzname(None) == "east"
    assert made.make("UTC") is datetime.UTC
    assert made.make("datetime.datetime(2024, 1, 2, fold=1)").fold == 1


@pytest.mark.parametrize("text", ARRAYS)
def test_an_array_of_any_plain_kind_is_equal_on_both_sides(made: Any, text: str) -> None:
    value = ARRAYS[text]
    for got in (made.make(text), made.same(value)):
        assert type(got) is type(value)
        assert got.dtype == value.dtype
        np.testing.assert_array_equal(got, value)


def test_numbers_that_are_longer_than_others_arrive_as_they_are(answer: Any) -> None:
    names = answer(
        "import numpy as np\nlong = np.longdouble(1) / 3\nmany = np.ones(2, np.longdouble) / 3\n"
        "pair = np.ones(2, np.clongdouble)\ndef same(x): return [x]\n"
    )
    assert type(names.long) is np.longdouble
    assert names.long == np.longdouble(1) / 3
    assert (names.many == names.long).all()
    assert names.pair.dtype == np.clongdouble
    assert names.same(np.dtype("longdouble")) == [np.dtype("longdouble")]


LAID = {
    "np.arange(4).reshape(2, 2).view(np.matrix)": np.arange(4).reshape(2, 2).view(np.matrix),
    "np.arange(6).reshape(2, 3).T": np.arange(6).reshape(2, 3).T,
    "np.asfortranarray(np.ones((2, 3, 4)) * [1, 2, 3, 4])": np.asfortranarray(
        np.ones((2, 3, 4)) * [1, 2, 3, 4]
    ),
    "np.broadcast_to(np.arange(3.0), (2, 3))": np.broadcast_to(np.arange(3.0), (2, 3)),
    "np.lib.stride_tricks.sliding_window_view(np.arange(4), 2)": (
        np.lib.stride_tricks.sliding_window_view(np.arange(4), 2)
    ),
}


@pytest.mark.parametrize("text", LAID)
def test_an_array_keeps_its_class_and_order_and_stays_read_only(answer: Any, text: str) -> None:
    names = answer(f"import numpy as np\ndef make(): return {text}\ndef same(x): return [x * 1, x]")
    value = LAID[text]
    for got in (names.make(), names.same(value)[0]):
        assert type(got) is type(value)
        by_columns = value.flags.f_contiguous and not value.flags.c_contiguous
        assert (got.flags.f_contiguous and not got.flags.c_contiguous) == by_columns
        np.testing.assert_array_equal(got, value)
    assert names.same(value)[1] is value
    assert names.make().flags.writeable is value.flags.writeable


def test_a_read_only_array_of_an_answers_shows_what_the_answer_changes(answer: Any) -> None:
    names = answer(
        "import numpy as np\nnumbers = np.zeros(2)\nshown = np.broadcast_to(numbers, (3, 2))\n"
        "def show(): return shown\ndef change(): numbers[:] = 7\n"
    )
    with names._peer.recording():
        shown = names.show()
        names.change()
        assert (shown == 7).all() or (shown == 0).all()
        assert not shown.flags.writeable


def test_a_masked_array_is_refused_in_words(answer: Any) -> None:
    names = answer("import numpy as np\ndef mask(x): return np.ma.masked_equal(x, 1)")
    with pytest.raises(TypeError, match="its mask would be lost"):
        names.mask(np.arange(3))


def test_lies_about_what_an_array_is_are_refused() -> None:
    for more in ([5], ["F", "R"], [["L"]]):
        node = ["A", "int8", [2, 2], 0, *more]
        assert isinstance(outcome(replying({"r": node}, b"1234")), WireError)
    got = outcome(replying({"r": ["A", "int8", [4], 0, "FRMx"]}, b"1234"))
    assert type(got) is np.ndarray
    assert got.tolist() == [49, 50, 51, 52]


def test_a_record_array_keeps_its_attributes(answer: Any) -> None:
    names = answer(
        "import numpy as np\nr = np.rec.array([(1, 2.0)], dtype=[('a', 'i4'), ('b', 'f8')])\n"
    )
    assert names.r.a.tolist() == [1]
    assert names.r[0].b == 2.0


def test_many_numbers_of_numpys_cross_in_a_list(answer: Any) -> None:
    many = answer("import numpy as np\ndef many(n): return [np.float32(i) for i in range(n)]").many
    got = many(30_000)
    assert type(got[5]) is np.float32
    assert [int(n) for n in got] == list(range(30_000))


NAMED = """
import collections
from typing import NamedTuple
class Point(NamedTuple):
    x: int
    y: int = 2
Pair = collections.namedtuple("Pair", "first second")
def point(): return Point(1)
def pairs(): return [Pair(1, [2]), {"a": Pair(Point(3), ())}]
def look(p): return p.x, p._asdict(), type(p).__name__
def change(p): p.y.append(1); return p
def biggest(a):
    import torch
    return torch.max(torch.as_tensor(a), 0)
"""


def test_a_named_tuple_keeps_its_names(answer: Any) -> None:
    import torch  # noqa: F401  (its results are known here)

    names = answer(NAMED)
    point = names.point()
    assert (point.x, point.y) == (1, 2)
    assert point == (1, 2)
    assert type(point).__name__ == "Point"
    assert point._asdict() == {"x": 1, "y": 2}
    assert point._replace(x=5) == (5, 2)
    first, second = names.pairs()
    assert first.second == [2]
    assert second["a"].first.y == 2
    assert type(second["a"]) is type(first)
    assert isinstance(point, names.Point)
    assert not isinstance(first, names.Point)
    assert not isinstance((1, 2), names.Point)
    assert isinstance(names.Point(3), names.Point)
    assert names.Point._fields == ("x", "y")
    assert names.biggest([3, 1]).values == 3


def test_a_named_tuple_of_the_test_is_one_for_the_answer(answer: Any) -> None:
    names = answer(NAMED)
    assert names.look(Point(1, 2)) == (1, {"x": 1, "y": 2}, "Point")
    held: list[int] = []
    assert names.change(Point(1, held)).y is held
    assert held == [1]


def test_what_stands_in_a_container_of_the_library_is_looked_at(answer: Any) -> None:
    names = answer(
        "import collections, types\n"
        "class Fake: pass\n"
        "Pair = collections.namedtuple('Pair', 'a b')\n"
        "def pair(): return Pair(1, Fake())\n"
        "def user(): return collections.UserList([Fake()])\n"
        "def chain(): return collections.ChainMap({1: Fake()})\n"
        "def proxy(): return types.MappingProxyType({1: Fake()})\n"
        "def space(): return types.SimpleNamespace(a=Fake())\n"
    )
    asked = ("pair", "user", "chain", "proxy", "space")
    names._peer.expected = [(name, "value") for name in asked]
    with names._peer.recording() as crossings:
        for name in asked:
            with pytest.raises(TypeError, match="where a value was expected"):
                getattr(names, name)()
    assert len(crossings) == len(asked)


def test_a_class_of_named_tuples_made_for_each_value_is_refused_in_time() -> None:
    tree = ["L", *(["NT", f"N{n}", [f"f{n}"], 1] for n in range(library.MAX_NAMED + 10))]
    before = dict(library._MADE)
    try:
        assert isinstance(outcome(replying({"r": tree})), WireError)
        assert len(library._MADE) <= library.MAX_NAMED
    finally:
        library._MADE.clear()
        library._MADE.update(before)
        gc.collect()


LIES: list[Any] = [
    *(["NT"], ["NT", "A"], ["NT", "A", "x", 1], ["NT", "A", ["x"]], ["NT", "A", ["x"], 1, 2]),
    *(["NT", "A", ["_x"], 1], ["NT", "A", ["class"], 1], ["NT", "A", ["x", "x"], 1, 2]),
    *(
        ["NT", "A", ["ﬁ"], 1],
        ["NT", "1a", ["x"], 1],
        ["NT", "A(object): pass\nimport os", ["x"], 1],
    ),
    *(["NT", "A", [["L"]], 1], ["NT", ["L"], ["x"], 1], ["NT", "A", ["x=__import__('os')"], 1]),
    ["NT", "A", [f"x{n}" for n in range(101)], *range(101)],
    ["NT", "A" * 101, ["x"], 1],
    *(["V"], ["V", ["L"]], ["V", "eval", "1"], ["V", "PosixPath", "/"], ["V", {}, 1]),
    *(["V", "date", 2024, 13, 1], ["V", "date", True, 1, 1], ["V", "date", "a", 1, 1]),
    *(["V", "date", 2024, 1], ["V", "date", 10**30, 1, 1], ["V", "date", 1.0, 1, 1]),
    *(["V", "time", 1, 2, 3, 4, 5, None], ["V", "time", 1, 2, 3, 4, 0, 7], ["V", "time"]),
    *(["V", "datetime", 2024, 1, 1, 0, 0, 0, 0, 0, "UTC"], ["V", "datetime"]),
    *(["V", "timedelta", 10**18, 0, 0], ["V", "timedelta", 0.5, 0, 0], ["V", "timedelta"]),
    *(["V", "timezone", 5], ["V", "timezone", ["V", "timedelta", 2, 0, 0]], ["V", "timezone"]),
    ["V", "timezone", ["V", "timedelta", 0, 60, 0], 7],
    ["V", "timezone", ["V", "timedelta", 0, 60, 0], "a" * 101],
    *(["V", "UUID", -1], ["V", "UUID", 2**62, 1], ["V", "UUID", "a"], ["V", "UUID", True]),
    *(["V", "UUID", ["I", "f" * 40]], ["V", "PurePosixPath", 5], ["V", "PurePosixPath"]),
    *(["V", "mappingproxy", 5], ["V", "mappingproxy", ["L"]], ["V", "mappingproxy", ["CN"]]),
    *(["V", "UserDict", ["L"]], ["V", "UserList", ["D"]], ["V", "UserString", 5]),
    *(["V", "ChainMap"], ["V", "ChainMap", 5], ["V", "ChainMap", *[["D"]] * 1001]),
    ["V", "ChainMap", ["V", "UserDict", ["D"]]],
    *(["V", "SimpleNamespace", ["__array_interface__"], ["D"]], ["V", "SimpleNamespace", ["a"]]),
    *(["V", "SimpleNamespace", ["_remote"], 1], ["V", "SimpleNamespace", [5], 1]),
    *(["V", "Namespace", ["_get"], 1], ["V", "Signature"], ["V", "Signature", [], ["a b", 1]]),
    *(["V", "Signature", [], [n, k, [], []]] for n, k in (("a b", 1), ("if", 1), ("a", 7), (5, 1))),
    ["V", "Signature", [], *[["a", 1, [], []]] * 2],
    *(["V", "array", "u", 0], ["V", "array", "O", 0], ["V", "array", "dd", 0]),
    *(["V", "array", "d", 1], ["V", "array", "d", 0, 0], ["V", "array", ["L"], 0]),
    *(["V", "memoryview", "P", [1], True, 0], ["V", "memoryview", "?", [8], True, 0]),
    *(["V", "memoryview", "b", [-8], True, 0], ["V", "memoryview", "b", [4, 4], True, 0]),
    *(["V", "memoryview", "b", [2] * 33, True, 0], ["V", "memoryview", "b", 8, True, 0]),
    *(["V", "memoryview", "b", [2**39, 2**39], True, 0], ["V", "memoryview", "d", [2], True, 0]),
    *(["A", "M8[D", [1], 0], ["A", "M8[0D]", [1], 0], ["A", "M8[9999999D]", [1], 0]),
    *(["A", "O", [1], 0], ["A", "V8", [1], 0], ["A", "U0", [1], 0], ["A", "S0", [0], 2]),
    *(["A", "U2", [1], 0], ["A", "T", [1], 0], ["A", "U99999999999", [1], 0], ["A", ["L"], [1], 0]),
    *(["A", ["rec"], [1], 0], ["A", ["void", ["a", "O", []]], [1], 0], ["A", ["void", 5], [1], 0]),
    *(["A", ["void", ["__array_interface__", "f8", []]], [1], 0],),
    *(["A", ["void", ["a", "f8", [-1]]], [1], 0], ["A", ["void", ["a", "f8", 5]], [1], 0]),
    *(
        ["A", ["void", ["a", "f4", []], ["a", "f4", []]], [1], 0],
        ["A", ["x", ["a", "f8", []]], [1], 0],
    ),
    *(["A", ["void", ["a", ["void"], []]], [1], 0], ["A", ["void", ["a", "U2", []]], [1], 0]),
    *(["A", ["void", ["a", "f8", [2**20, 2**20]]], [0], 2],),
    *(["AS", "float64", "zz"], ["AS", "float64", "00"], ["AS", "float64", 5], ["AS", "float64"]),
    *(["AS", "float64", [], 0], ["AS", "object", "00"], ["AS", "U2", "00"], ["AS", ["L"], "00"]),
]


@pytest.mark.parametrize("tree", LIES, ids=lambda tree: repr(tree)[:50])
def test_lying_parts_are_refused(tree: Any) -> None:
    got = outcome(replying({"r": tree}, b"\xff" * 8, b"\xff" * 7, b""))
    assert isinstance(got, WireError), got


def test_a_namespace_of_an_answer_says_nothing_of_its_memory() -> None:
    lie = {"data": (4096, False), "shape": (1,), "typestr": "<f8", "version": 3}
    tree = ["V", "SimpleNamespace", ["__array_interface__"], ["D", *_nodes(lie)]]
    assert isinstance(outcome(replying({"r": tree})), WireError)


def _nodes(table: dict[str, Any]) -> list[Any]:
    tuples = (["T", *v] if isinstance(v, tuple) else v for v in table.values())
    return [part for pair in zip(table, tuples, strict=True) for part in pair]


def test_flags_of_other_bytes_become_flags() -> None:
    got = outcome(replying({"r": ["A", ["void", ["a", "bool", []]], [2], 0]}, b"\x07\x00"))
    assert got["a"].view("uint8").tolist() == [1, 0]


def test_trees_of_the_librarys_tags_give_a_value_or_a_refusal() -> None:
    draw = random.Random(3)
    tags = [*library._READERS, "x"]
    words = ["a", "b", "U2", "M8[D]", "d", "?", "void", "rec", "ff", ""]
    leaves = [*words, None, True, 0, 1, -1, 2**40, 0.5, []]

    def tree(depth: int) -> Any:
        if not depth or draw.random() < 0.4:
            return draw.choice(leaves)
        parts = [tree(depth - 1) for _ in range(draw.randrange(5))]
        return draw.choice(
            [["V", draw.choice(tags), *parts], ["NT", "A", ["a", "b"], *parts], ["D", *parts]]
            if draw.random() < 0.5
            else [["A", *parts], ["AS", *parts], ["L", *parts], [words, *parts]]
        )

    for _ in range(300):
        got = outcome(replying({"r": ["L", *(tree(3) for _ in range(2))]}, b"", b"abcdefgh"))
        assert isinstance(got, list | WireError), got


def test_an_argument_of_the_library_can_be_changed_in_its_lists(answer: Any) -> None:
    names = answer("def add(m): m.maps[0]['new'] = 1")
    ours = {"a": 1}
    names.add(collections.ChainMap(ours))
    assert ours == {"a": 1, "new": 1}


# --- libraries that the other end does not have -------------------------------------------------

ALONE = """
import json, sys
from autograder.bridge import STUDENT
from autograder.isolation import machine
from autograder.bridge.session import Student
from autograder.judge.guard import Guard
from autograder.isolation.fork_server import ForkServer

source, uses, due = json.loads(sys.argv[1])
with ForkServer([], student=STUDENT, sandboxed=machine.probe().namespaces) as fork_server:
    student = Student(fork_server.spawn(), Guard())
    ran = student.run("cell", source, 60)
    assert ran.ok, (ran.words, ran.raised)
    student.peer.expected = [(name, "value") for name in due]
    with student.clock(60), student.peer.recording():
        found = [repr(eval(use, {"n": student.name})) for use in uses]
    assert student.run("more", "after = 1", 60).ok
    student.close()
assert not {"numpy", "torch"} & sys.modules.keys()
print(json.dumps(found))
"""


def alone(source: str, uses: dict[str, str], due: tuple[str, ...] = ()) -> None:
    """What uses of an answer give in a process that has neither of the libraries."""
    told = json.dumps([source, list(uses), due])
    command = [sys.executable, "-W", "ignore", "-c", ALONE, told]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert dict(zip(uses, json.loads(ended.stdout), strict=True)) == uses


def test_numpy_in_a_course_without_it() -> None:
    source = (
        "import numpy as np\nNumber = np.int64\n"
        "def mean(): return np.mean([1, 2])\ndef many(): return np.array([[1, 2]])\n"
        "def due(): return np.array([[1, 2]])\n"
        "def inside(): return [np.int64(3), {'a': np.float32(2)}, np.str_('x'), np.bool_(True)]\n"
        "def long(): return np.longdouble(0.5)\ndef kind(): return np.dtype('int8')\n"
        "def total(x): return float(np.sum(x))\n"
    )
    uses = {
        "n('mean')()": "1.5",
        "[list(row) for row in n('many')()]": "[[1, 2]]",
        "n('many')().sum()": "3",
        "n('due')()": "[[1, 2]]",
        "n('inside')()": "[3, {'a': 2.0}, 'x', True]",
        "n('long')()": "0.5",
        "n('kind')().name": "'int8'",
        "n('Number')(3)": "3",
        "n('total')([1, 2])": "3.0",
    }
    alone(source, uses, due=("due",))


def test_torch_in_a_course_without_it() -> None:
    source = (
        "import torch\nact = torch.relu\n"
        "class Twice(torch.nn.Module):\n    def forward(self, x): return x * 2\n"
        "model = Twice()\n"
        "def mean(): return torch.tensor([1.0, 2.0]).mean()\n"
        "def many(): return torch.ones(2, requires_grad=True)\n"
        "def due(): return torch.ones(2, requires_grad=True)\n"
        "def size(): return torch.ones(2, 3).shape\n"
        "def total(x): return torch.tensor(x).sum().item()\n"
    )
    uses = {
        "n('mean')()": "1.5",
        "list(n('many')())": "[1.0, 1.0]",
        "n('many')().tolist()": "[1.0, 1.0]",
        "n('due')()": "[1.0, 1.0]",
        "n('size')()": "(2, 3)",
        "n('model')(2)": "4",
        "n('total')([1, 2])": "3",
    }
    alone(source, uses, due=("due",))


VIEWS = """
import collections
shown = {"a": [1], "b": {2}}
def views(part): return getattr(shown, part)(), getattr(collections.OrderedDict(shown), part)()
"""


@pytest.mark.parametrize("part", ["keys", "values", "items"])
def test_a_view_of_a_table_arrives_as_one(answer: Any, part: str) -> None:
    names, shown = answer(VIEWS), {"a": [1], "b": {2}}
    own = getattr(shown, part)(), getattr(collections.OrderedDict(shown), part)()
    names._peer.expected = [("views", "value")]
    with names._peer.recording() as crossings:
        got = names.views(part)
    for view, mine in zip(got, own, strict=True):
        assert type(view) is type(mine)
        assert list(view) == list(mine)
        assert view != list(mine)
        assert (view == mine) is (part != "values")
    assert crossings[0].outcome == tuple(map(list, own))


def test_a_view_with_an_object_in_it_is_no_value(answer: Any) -> None:
    names = answer("class Fake: pass\ndef shown(): return {1: Fake()}.values()")
    names._peer.expected = [("shown", "value")]
    with names._peer.recording(), pytest.raises(TypeError, match="gave a Fake where a value"):
        names.shown()
    for node in (["V", "dict_keys", ["L", 1]], ["V", "dict_items"], ["V", "odict_keys", ["D"]]):
        with pytest.raises(WireError):
            raise outcome(replying({"r": node}))
