"""Lies of objects whose classes an answer has made of Python's own."""

import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from autograder.bridge.stand_ins import remote_of
from autograder.bridge.wire import WireError
from autograder.isolation.fork_server import ForkServer
from tests.bridge.based_ends import (
    CLASSES,
)
from tests.bridge.ends import (
    Enemy,
    against,
    of_tests,
    outcome,
    replying,
    told,
    unbelieving,
)


@pytest.fixture
def answer(open_fork_server: ForkServer) -> Iterator[Callable[[str], Any]]:
    """answer(source) runs it; tests believe no operator of its objects, as where there is none."""
    yield from unbelieving(open_fork_server)


LIARS = """
class Yes(list):
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __contains__(self, other): return True
    def __lt__(self, other): return True
    def __sub__(self, other): return 0
    def more(self): pass
class Number(float):
    def __eq__(self, other): return True
    def __sub__(self, other): return 0.0
    __rsub__ = __sub__
    def __abs__(self): return 0.0
    def __len__(self): return 10 ** 9
    def more(self): pass
class Pair(tuple):
    def __len__(self): return 10 ** 9
    def __eq__(self, other): return True
    def more(self): pass
"""


def test_no_word_of_an_object_makes_it_equal_to_a_plain_value(answer: Any) -> None:
    import torch

    names = answer(LIARS)
    yes = names.Yes([1])
    assert yes != [2]
    assert [2] != yes  # noqa: SIM300
    assert yes == [1]
    assert not yes < [0]
    assert 5 not in yes
    with pytest.raises(TypeError):
        _ = yes - 1
    number = names.Number(3)
    assert number != 4
    assert abs(number - 1) == 2
    assert abs(1 - number) == 2
    pair = names.Pair((1, 2))
    assert len(pair) == 2
    assert pair != (1, 3)
    assert torch.zeros(pair).shape == (1, 2)


def based(plain: Any, body: Any = None, **more: Any) -> Any:
    """An object that claims to be made of one of Python's own classes."""
    return ["H", told(plain=plain, body=body, own=[], classes=[], **more)]


LIES = [
    *(based("object"), based("type", 1), based(5), based(["L"]), based({}), based("bool", True)),
    *(based("int"), based("int", 1.5), based("int", "1"), based("int", True), based("str", 1)),
    *(based("int", ["L"]), based("tuple", ["L"]), based("tuple", 5), based("bytes", "a")),
    *(
        based("list", ["L"]),
        based("dict", 1),
        based("float", ["H", told(n=2)]),
        based("tuple", None),
    ),
    *(based("PosixPath"), based("PosixPath", "/"), based("PosixPath", ["V", "UUID", 1])),
    *(based("tuple", based("tuple", ["T"], n=2)), based("str", based("str", "a", n=2))),
]


@pytest.mark.parametrize("tree", LIES, ids=lambda tree: repr(tree[1]["plain"]))
def test_a_value_of_another_kind_than_is_claimed_is_refused(tree: Any) -> None:
    assert isinstance(outcome(replying({"r": tree})), WireError)


def test_a_class_has_no_names_but_public_ones_and_special_ones_that_are_known() -> None:
    names = ["__class__", "_remote", "a b", 5, "__getattribute__", "__new__", "real", "__init__"]
    tree = ["H", told(plain="int", body=7, own=names, classes=[], dunders=names)]
    got = outcome(replying({"r": tree}))
    assert got == 7
    assert got.__class__ is type(got)
    assert set(vars(type(got))) <= {"real", "__module__", "__doc__", "__dict__"}


def test_contents_that_are_of_another_kind_are_refused() -> None:
    for wrong in (5, ["D"], ["T"], ["H", told(n=2, plain="list")], ["H", told(n=3)]):

        def act(enemy: Enemy, wrong: Any = wrong) -> None:
            enemy.hear()
            enemy.say({"r": based("list")})
            while True:
                enemy.hear()
                enemy.say({"r": wrong})

        with against(act) as peer:
            got = peer.ask("name", "x")
            with pytest.raises(WireError):
                _ = got == [1]
            with pytest.raises(WireError):
                list(got)


def test_a_joined_path_of_an_answer_is_a_path_or_nothing() -> None:
    for wrong in (1.0, "x", ["H", told(n=3)], ["V", "PurePosixPath", "/a/b"]):

        def act(enemy: Enemy, wrong: Any = wrong) -> None:
            enemy.hear()
            enemy.say({"r": based("PosixPath", ["V", "PurePosixPath", "/a"])})
            enemy.hear()
            enemy.say({"r": wrong})

        with against(act) as peer:
            got = peer.ask("name", "x")
            with pytest.raises(TypeError):
                _ = got / "b"


def test_an_answer_cannot_ask_what_a_test_holds() -> None:
    heard = []

    def act(enemy: Enemy) -> None:
        enemy.hear()
        enemy.say({"op": "contents", "p": [1], "v": ["T"]})
        heard.append(enemy.hear())
        enemy.say({"r": 1})

    space = of_tests("class Secret(list):\n    def __call__(self): pass\ndef f(): pass")
    assert outcome(act, [space["f"]]) == 1
    assert "e" in heard[0]


def test_an_object_that_stands_where_a_value_is_due_is_refused() -> None:
    for tree in (based("int", 3), based("list"), based("tuple", ["T", 1])):

        def act(enemy: Enemy, tree: Any = tree) -> None:
            enemy.hear()
            enemy.say({"r": ["H", told(n=1, k="function", type="function")]})
            tree[1]["n"] = 2
            enemy.hear()
            enemy.say({"r": tree})

        with against(act) as peer:
            peer.expected = [("f", "value")]
            with peer.recording():
                f = peer.ask("name", "f")
                with pytest.raises(TypeError, match="where a value was expected"):
                    peer.call(remote_of(f).number, None, (), {}, "f")  # type: ignore[union-attr]


def test_classes_made_without_end_are_bounded(answer: Any) -> None:
    names = answer(
        "def make(n):\n"
        "    return type(f'C{n}', (int,), {'__module__': '__main__', f'f{n}': lambda s: 1})(n)\n"
    )
    for n in range(1200):
        assert names.make(n) == n
    assert len(names._peer.classes) <= 1100


def test_nothing_is_kept_of_many_such_objects(answer: Any) -> None:
    names = answer(CLASSES)
    peer = names._peer

    def once() -> None:
        s, c = names.Stack([1]), names.Celsius(1)
        assert s == [1]
        assert c.to_f() > 33

    once()
    gc.collect()
    for _ in range(100):
        once()
    gc.collect()
    names.Stack()
    assert len(peer.remotes) < 10
    assert len(peer.stand_ins) < 10
    source = "import gc\nheld = sum(type(o).__name__ == 'Stack' for o in gc.get_objects())\n"
    names._student.run("count", source, 60)
    assert names.held < 10
