"""Objects that stay with their owner: calls, comparisons, random numbers."""

import gc
import random
from typing import Any

import numpy as np
import pytest

from tests.bridge.ends import (
    GENERATORS,
    generators,
    of_tests,
)

THINGS = """
class Vector:
    kind = "vector"
    def __init__(self, *parts): self.parts = list(parts)
    def __add__(self, other): return Vector(*[a + b for a, b in zip(self.parts, other.parts)])
    def __mul__(self, k): return Vector(*[k * a for a in self.parts])
    __rmul__ = __mul__
    def __eq__(self, other): return isinstance(other, Vector) and self.parts == other.parts
    def __lt__(self, other): return sum(self.parts) < sum(other.parts)
    def __len__(self): return len(self.parts)
    def __getitem__(self, i): return self.parts[i]
    def __setitem__(self, i, v): self.parts[i] = v
    def __iter__(self): return iter(self.parts)
    def __contains__(self, v): return v in self.parts
    def __repr__(self): return f"Vector{tuple(self.parts)}"
    def __call__(self, x): return x + len(self)
    def __bool__(self): return any(self.parts)
    def __enter__(self): self.parts.append("in"); return self
    def __exit__(self, *what): self.parts.append("out"); return False
    def __format__(self, spec): return f"<{spec}>"
    @property
    def first(self): return self.parts[0]
    @staticmethod
    def zero(): return Vector(0)
def count(n):
    for i in range(n): yield i
def later(n): return (lambda x: x + n)
"""


def test_an_object_behaves_as_at_home(answer: Any) -> None:
    names = answer(THINGS)
    kind = names.Vector
    v = kind(1, 2)
    assert isinstance(v, kind)
    assert not isinstance(3, kind)
    assert list(v) == [1, 2]
    assert len(v) == 2
    assert v[1] == 2
    assert 2 in v
    assert v.first == 1
    assert repr(v) == "Vector(1, 2)"
    assert f"{v:abc}" == "<abc>"
    assert (v + kind(1, 1)).parts == [2, 3]
    assert (3 * v).parts == [3, 6]
    assert v == kind(1, 2)
    assert v != kind(1, 3)
    assert v < kind(5)
    assert v(10) == 12
    assert not kind(0)
    assert kind.zero().parts == [0]
    assert kind.kind == "vector"
    assert kind.__name__ == "Vector"
    v[0] = 9
    v.name = "changed"
    assert v.name == "changed"
    del v.name
    assert not hasattr(v, "name")
    with v as inside:
        assert inside is v
    assert v.parts == [9, 2, "in", "out"]


def test_generators_functions_and_the_librarys_iterators_stay_with_their_owner(answer: Any) -> None:
    names = answer(THINGS + "pairs = zip([1], [2])\nmade = map(str, [1, 2])\n")
    assert list(names.count(3)) == [0, 1, 2]
    assert next(names.count(3)) == 0
    assert names.later(2)(3) == 5
    assert list(names.pairs) == [(1, 2)]
    assert list(names.made) == ["1", "2"]


def test_a_data_set_of_the_answer_is_one(answer: Any) -> None:
    from torch.utils.data import DataLoader, Dataset

    names = answer(
        "from torch.utils.data import Dataset\n"
        "class Own(Dataset):\n"
        "    def __len__(self): return 4\n"
        "    def __getitem__(self, i):\n"
        "        if i >= 4: raise IndexError\n"
        "        return i * 10\n"
    )
    own = names.Own()
    assert isinstance(own, Dataset)
    assert own[2] == 20
    assert [batch.tolist() for batch in DataLoader(own, batch_size=2)] == [[0, 10], [20, 30]]


def test_calls_go_both_ways_and_nest(answer: Any) -> None:
    names = answer(
        "def twice(f, x): return f(f(x))\n"
        "def down(f, n): return 0 if n == 0 else 1 + f(f, n - 1)\n"
        "def key(words, f): return sorted(words, key=f)\n"
        "def total(numbers): return sum(numbers)\n"
        "def use(thing): thing.add(3); return thing.total, thing[1], [*thing]\n"
    )
    tests = of_tests(
        "class Thing:\n"
        "    def __init__(self): self.total = 0\n"
        "    def add(self, n): self.total += n\n"
        "    def __getitem__(self, i): return 'ab'[i]\n"
        "def f(x): return x * 3\n"
    )
    assert names.twice(tests["f"], 2) == 18
    down = names.down
    tests["down"] = lambda f, n: down(f, n)
    assert down(tests["down"], 10) == 10
    assert names.key(["bb", "a"], len) == ["a", "bb"]
    assert names.total(iter([1, 2, 3])) == 6
    assert names.use(tests["Thing"]()) == (3, "b", ["a", "b"])


def test_endless_calls_of_each_other_end(answer: Any) -> None:
    down = answer("def down(f): return f()").down
    tests = of_tests("def again(): return down(again)")
    tests["down"] = down
    with pytest.raises(RecursionError):
        down(tests["again"])
    assert down(lambda: 3) == 3


def test_comparing_with_a_plain_value_is_no_claim_of_the_answer(answer: Any) -> None:
    names = answer(
        "class Yes:\n"
        "    def __sub__(self, other): return self\n"
        "    __rsub__ = __abs__ = __sub__\n"
        "    def __abs__(self): return self\n"
        "    def __eq__(self, other): return True\n"
        "    __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __eq__\n"
        "    __hash__ = None\n"
        "yes = Yes()\n"
    )
    yes = names.yes
    for plain in (1, 1.0, "a", None, [1], (1,), np.zeros(1)[0], True):
        assert (yes == plain) is False or not np.any(yes == plain)
        assert yes != plain
        assert plain != yes
    assert yes not in [1, 2]
    for compare in (lambda: abs(yes - 3) <= 1e-9, lambda: yes > 0, lambda: sorted([yes, 1])):
        with pytest.raises(TypeError):
            compare()


def test_a_stand_in_has_none_of_pythons_hooks(answer: Any) -> None:
    names = answer(
        "class Hooks:\n"
        "    def __array__(self, *a, **k): return [1]\n"
        "    def __torch_function__(self, *a, **k): return 1\n"
        "    def __reduce__(self): return (eval, ('1',))\n"
        "    def __index__(self): return 'text'\n"
        "    def __len__(self): return -1\n"
        "    def __hash__(self): return 7\n"
        "    def __fspath__(self): return '/etc/passwd'\n"
        "    __class__ = int\n"
        "thing = Hooks()\n"
    )
    thing = names.thing
    assert not hasattr(thing, "__array__")
    assert not hasattr(thing, "__torch_function__")
    assert not hasattr(thing, "__fspath__")
    with pytest.raises(TypeError):
        range(thing)
    with pytest.raises((ValueError, TypeError)):
        len(thing)
    with pytest.raises(TypeError):
        open(thing)  # noqa: PTH123, SIM115


DRAWS = """
import random, numpy, torch
def draw(): return random.random(), numpy.random.rand(), torch.rand(2)
def ask(f): return f()
def idle(): return 1
"""


def test_random_numbers_go_on_as_in_one_process(answer: Any) -> None:
    import torch

    names = answer(DRAWS)

    def seed() -> None:
        random.seed(3)
        GENERATORS.seed(3)
        torch.manual_seed(3)

    seed()
    own = random.random(), GENERATORS.rand(), torch.rand(2)
    seed()
    one = names.draw()
    two = names.draw()
    assert one[:2] == own[:2]
    assert torch.equal(one[2], own[2])
    assert two[0] != one[0]
    seed()
    assert names.draw()[:2] == one[:2]
    assert names.draw()[:2] == two[:2]
    before = generators()
    names.idle()
    names.ask(lambda: 1)
    assert generators() == before


WORK = """
import torch
def work(f, x):
    if x.numel() > 5: raise ValueError(x)
    return Vector(f(1)), (x * 2).sum()
"""


COUNT = """
import gc
found = [o for o in gc.get_objects() if type(o).__name__ == 'Peer'][0]
sizes = len(found.given), len(found.thrown.raised), len(found.tensors.graphs.kept)
"""


def test_nothing_is_kept_of_many_calls(answer: Any) -> None:
    import torch

    names = answer(THINGS + WORK)
    work = names.work

    def once() -> None:
        x = torch.ones(3, requires_grad=True)
        vector, total = work(lambda n: n, x)
        assert vector[0] == 1
        total.backward()
        with pytest.raises(ValueError):
            work(lambda n: n, torch.ones(6))

    for _ in range(5):
        once()
    gc.collect()
    peer = names._peer
    sizes = [len(peer.given), len(peer.numbers), len(peer.stand_ins), len(peer.tensors.last)]
    for _ in range(150):
        once()
    gc.collect()
    names.work(lambda n: n, torch.ones(3))
    now = [len(peer.given), len(peer.numbers), len(peer.stand_ins), len(peer.tensors.last)]
    assert all(b <= a + 5 for a, b in zip(sizes, now, strict=True)), (sizes, now)
    assert len(peer.thrown.raised) <= 1
    names._student.run("count", COUNT, 60)
    assert max(names.sizes) < 30
