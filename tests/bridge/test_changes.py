"""What a protected call may change, and what is remembered of it."""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

from autograder.bridge.reference import Left, expectations
from autograder.bridge.stand_ins import FORWARDED
from autograder.bridge.wire import WireError
from autograder.common.results import Crossing, Opaque, Raised
from autograder.judge.guard import Guard
from tests.bridge.ends import (
    of_tests,
    protected,
    raised_of,
)

TRAIN = """
def train(model, batch, others):
    model.weight.data.zero_()
    batch.zero_()
    others.append(1)
    return batch.sum()
"""


def test_a_call_changes_what_the_references_call_changed_and_nothing_else(answer: Any) -> None:
    import torch

    names = protected(answer, TRAIN, [("train", ("Module",))])
    model, batch, others = torch.nn.Linear(2, 2), torch.ones(2), [0]
    with names._peer.recording() as crossings:
        assert names.train(model, batch, others) == 0
    assert model.weight.eq(0).all()
    assert batch.tolist() == [1, 1]
    assert others == [0]
    assert sorted(crossings[0].changed) == ["Module", "Tensor@1", "list@2"]
    names = protected(answer, TRAIN, [("train", ("Tensor@1", "list@2"))])
    model = torch.nn.Linear(2, 2)
    before = model.weight.detach().clone()
    with names._peer.recording():
        names.train(model, batch, others)
    assert torch.equal(model.weight, before)
    assert batch.tolist() == [0, 0]
    assert others == [0, 1]


def test_only_what_stands_where_the_reference_changed_something_may_change(answer: Any) -> None:
    source = "def both(*given, more=None):\n    for one in [*given, *(more or [])]: one.append(1)\n"
    for places in ((), ("0",), ("1",), ("0", "1"), ("more.1",), ("2.0.0",)):
        names = protected(answer, source, [("both", tuple(f"list@{place}" for place in places))])
        a, b, c, d, deep = [], [], [], [], ([[]],)
        with names._peer.recording():
            names.both(a, b, deep[0], more=(c, d))
        found = {"0": a, "1": b, "2": deep[0][1:], "more.0": c, "more.1": d}
        arguments = {place.partition(".")[0] for place in places}  # in all parts of these it may
        changed = {place for place, value in found.items() if value}
        assert changed == {place for place in found if place.partition(".")[0] in arguments}


def test_an_answer_changes_the_input_instead_of_the_output(answer: Any) -> None:
    names = protected(answer, "def axpy(a, x, y): x[:] = 0", [("axpy", ("ndarray@2",))])
    x, y = np.ones(2), np.ones(2)
    with names._peer.recording() as crossings:
        names.axpy(2.0, x, y)
    assert x.tolist() == [1, 1]
    assert crossings[0].changed == ("ndarray@1",)


def test_what_may_change_is_said_call_by_call(answer: Any) -> None:
    source = "def add(xs): xs.append(1)\ndef look(xs): xs.append(2)\n"
    told = [("look", ()), ("add", ("list@0",)), ("add", ()), ("add", ("list@0",))]
    names = protected(answer, source, told)
    for _ in range(2):  # each test begins anew
        found = []
        with names._peer.recording():
            for name in ("add", "look", "add", "add", "add", "look"):
                xs: list[int] = []
                getattr(names, name)(xs)
                found.append(xs)
        assert found == [[1], [], [], [1], [1], []]


def test_a_class_of_the_answers_own_is_held_against_what_the_reference_makes(answer: Any) -> None:
    source = "class Mine:\n    def __call__(self, xs): xs.append(1)\ndef make(): return Mine()\n"
    told = [("make", ()), ("make()", ("list@0",)), ("make()", ())]
    names = protected(answer, source, told)
    one: list[int] = []
    two: list[int] = []
    with names._peer.recording():
        mine = names.make()
        mine(one)
        mine(two)
        mine(two)
    assert (one, two) == ([1], [])


def labels(names: Any, use: Callable[[Any], Any]) -> list[str]:
    """What a transcript calls the things that a test does."""
    with names._peer.recording() as crossings:
        use(names)
    return [crossing.what for crossing in crossings]


def test_what_is_called_goes_by_the_name_that_the_test_uses(answer: Any) -> None:
    names = answer(
        "def sort(xs): xs.sort()\n"
        "def copied(xs): xs.clear(); return []\n"
        "copied.__name__ = copied.__qualname__ = 'sort'\n"
        "class Bag:\n    def look(self, xs): xs.clear()\n"
        "    def __len__(self): return 1\n    def more(self): return Bag()\n"
        "Bag.__name__ = 'sort'\n"
        "def make(): return Bag()\n"
    )
    names._peer.protect = True
    names._peer.allowed = [("sort", ("list@0",))]
    xs = [2, 1]
    assert labels(names, lambda n: (n.sort(xs), n.copied(xs))) == ["sort", "copied"]
    assert xs == [1, 2]

    def use(names: Any) -> None:
        bag = names.Bag()
        len(bag)
        bag.look([])
        names.make().more().look([])

    assert labels(names, use) == [
        *("Bag", "Bag.__len__", "get Bag.look", "Bag.look"),
        *("make", "get make().more", "make().more"),
        *("get make().more().look", "make().more().look"),
    ]


def test_what_goes_by_two_names_has_the_rights_of_neither(answer: Any) -> None:
    names = protected(
        answer,
        "def sort(xs): xs.clear()\ncopied = sort\nclass One:\n    run = staticmethod(sort)\n"
        "one = One()\ndef first(): return one\ndef second(): return one\n",
        [
            *(("sort", ("list@0",)), ("copied", ()), ("first", ()), ("second", ())),
            *(("first().run", ("list@0",)), ("second().run", ())),
        ],
    )
    a, b = [1], [1]
    with names._peer.recording():
        sort, copied = names.sort, names.copied
        sort(a)
        copied(b)
        assert b == [1]
        one, two = names.first(), names.second()
        two.run(b)
        assert b == [1]
        assert one is two
    with names._peer.recording():
        names._peer.named(sort, "sort")
        sort(a)
    assert a == []


BAG = """
class Bag:
    def __setattr__(self, name, value):
        value.clear()
        object.__setattr__(self, name, value)
    def __delattr__(self, name): self.items.append(3)
    def __deepcopy__(self, memo):
        self.items.append(4)
        return self
"""


def test_what_setting_deleting_and_copying_changes_is_recorded_and_kept_away(answer: Any) -> None:
    names = answer(BAG)
    data = [1]
    with names._peer.recording() as crossings:
        bag = names.Bag()
        bag.items = data
    assert data == []
    assert [(c.what, c.changed) for c in crossings][1:] == [("set Bag.items", ("list@0",))]
    names._peer.protect = True
    for allowed, wanted in (((), [1]), ([("set Bag.items", ("list@0",))], [])):
        names._peer.allowed = allowed
        data = [1]
        with names._peer.recording():
            bag = names.Bag()
            bag.items = data
        assert data == wanted


def test_what_changes_nothing_and_is_no_call_is_in_no_transcript(answer: Any) -> None:
    names = answer("class Bag: pass")

    def use(names: Any) -> None:
        bag = names.Bag()
        bag.items = [1]
        del bag.items

    assert labels(names, use) == ["Bag"]


def test_the_end_of_an_iterator_comes_from_nothing_but_its_next_step(answer: Any) -> None:
    names = answer(
        "def prime(n): raise StopIteration\n"
        "class Fake:\n    def __getitem__(self, n): raise StopIteration\n"
        "    def __len__(self): raise StopIteration\n"
        "def count():\n    yield 1\n"
        "def passed_on(step): return step()\n"
    )
    with pytest.raises(RuntimeError, match="StopIteration"):
        all(map(names.prime, [2, 3]))
    with pytest.raises(RuntimeError, match="StopIteration"):
        list(names.Fake()[n] for n in range(2))  # noqa: C400
    with pytest.raises(RuntimeError, match="StopIteration"):
        list(map(len, [names.Fake()]))
    with pytest.raises(RuntimeError, match="StopIteration") as caught:
        list(map(names.passed_on, [of_tests("def f(): raise StopIteration")["f"]]))
    assert list(names.count()) == [1]
    with pytest.raises(RuntimeError) as caught:
        names.prime(1)
    assert raised_of(caught.value).type_name == "StopIteration"


def test_an_answer_meets_the_end_of_a_generator_that_a_test_hands_over(answer: Any) -> None:
    names = answer(
        "def drain(g):\n    found = [next(g)]\n    try:\n"
        "        while True: found.append(g.send(found[-1] + 1))\n"
        "    except StopIteration as end: return found, end.value\n"
    )
    count = of_tests("def count():\n    x = yield 1\n    x = yield 2 * x\n    return 3 * x")[
        "count"
    ]
    assert names.drain(count()) == ([1, 4], 15)


def test_a_claim_of_the_test_that_an_answer_keeps_to_itself_is_remembered(answer: Any) -> None:
    names = answer(
        "def walk(f):\n    try: f(1)\n    except Exception: pass\n"
        "def own(f):\n    try: f()\n    except AssertionError: pass\n"
        "def fails(): assert False\n"
    )
    space = of_tests("def f(x): assert x == 2, 'two'\ndef g(): fails()\n")
    with names._peer.recording():
        names.walk(space["f"])
        failed = names._peer.failed
        assert isinstance(failed, AssertionError)
        assert str(failed) == "two"
    space["fails"] = names.fails
    with names._peer.recording():
        assert names._peer.failed is None
        names.own(space["g"])
        assert names._peer.failed is None  # the answer's own


CHECKS = """
left = [1, 2]
def looks(x): left[x + 5]
def claims(x):
    assert {}[x] is None
    return 1
def on_purpose(x):
    if x not in left:
        raise ValueError("not there")
def early(x):
    if x in left:
        return
    left.remove(x)
class Spy:
    def __call__(self, x): return left[x]
    def take(self, x): left.remove(x)
def computes(x): return 1 / (x - 7)
steps = lambda x: left[x]
def two(x, y): left.append(x)
spy = Spy()
take = spy.take
"""


KEPT = [("looks", "IndexError"), ("claims", "KeyError"), ("early", "ValueError")]


KEPT += [("on_purpose", "ValueError")]


KEPT += [(name, "") for name in ("spy", "take", "computes", "steps", "two")]


@pytest.mark.parametrize(("name", "error"), KEPT)
def test_what_a_check_of_the_test_raises_is_remembered_if_the_reference_does_not_keep_it(
    answer: Any, name: str, error: str
) -> None:
    source = (
        "def walk(f):\n    for n in (7, 8):\n        try: f(n)\n        except Exception: pass\n"
    )
    names, label = answer(source), f"kept {error}"
    with names._peer.recording() as crossings:
        names.walk(of_tests(CHECKS)[name])
        assert names._peer.failed is None
    assert crossings[0].changed == ((label,) if error else ())
    names._peer.protect = True
    for allowed in ((), (label,)):
        names._peer.allowed = [("walk", allowed)]
        with names._peer.recording():
            names.walk(of_tests(CHECKS)[name])
            assert type(names._peer.failed).__name__ == (
                error if error and not allowed else "NoneType"
            )


def test_what_is_believed_follows_the_policy_in_force(answer: Any) -> None:
    names = answer(
        "class N:\n    def __sub__(self, other): return 0.0\n"
        "from torch import nn\n"
        "class M(nn.Module):\n    def __sub__(self, other): return 0.0\n"
    )
    for made in (names.N(), names.M()):
        names._peer.policy = Guard()
        with pytest.raises(TypeError, match="unsupported operand"):
            _ = made - 1
        names._peer.policy = Guard(frozenset({"__sub__"}))
        assert made - 1 == 0


FAKE = """
class Fake:
    def __len__(self): return 2
    def __iter__(self): return iter(())
    def allclose(self, other): return True
class Steps:
    def __iter__(self): return self
    def __next__(self): raise StopIteration
    def allclose(self, other): return True
def plain(x): return Fake()
def inside(x): return [1, Fake()]
def kind(x): return Fake
def function(x): return lambda: 1
def steps(x): return Steps()
def lazy(x): return (2 * n for n in x)
def views(x): return [{1: 2}.keys(), {1: 2}.values(), {1: 2}.items()]
class Holder:
    def __init__(self): self.value = Fake()
"""


def test_an_object_where_the_reference_gives_a_value_is_refused(answer: Any) -> None:
    names = answer(FAKE)
    asked = ("plain", "inside", "kind", "function", "steps", "lazy", "views")
    names.plain(1)  # without a reference nothing is expected
    names._peer.expected = [*((name, "value") for name in asked)]
    names._peer.expected += [("Holder", "object"), ("get Holder.value", "value")]
    with names._peer.recording():
        for name in ("plain", "inside", "kind", "function"):
            with pytest.raises(TypeError, match="where a value was expected"):
                getattr(names, name)([1])
        with pytest.raises(TypeError, match="gave a Fake where a value was expected"):
            _ = names.Holder().value
        steps = names.steps([1])
        assert list(steps) == []
        assert not hasattr(steps, "allclose")
        assert list(names.lazy([1, 2])) == [2, 4]
        assert [[*view] for view in names.views([])] == [[1], [2], [(1, 2)]]
    names._peer.expected = [("plain", "object"), ("plain", "value")]
    with names._peer.recording():
        names.plain(1)
        for _ in range(2):
            with pytest.raises(TypeError):
                names.plain(1)


TURNING = """
class Turning:
    def __init__(self, *views): self.views, self.n = views, 0
    def __iter__(self):
        self.n += 1
        return iter(self.views[min(self.n, len(self.views)) - 1])
    def __next__(self):
        self.n += 1
        if self.n > 3: raise StopIteration
        return self.n
class Near:
    def __sub__(self, other): return 0.0
def turning(): return Turning([6], [])
def near(): return iter([Near()])
def inside(): return {"a": [map(abs, [-1, -2])]}
def lazy(): return (n for n in [1, 2])
def fails(): return (1 // n for n in [1, 0])
def endless():
    n = 0
    while True: yield (n := n + 1)
"""


def test_an_iterator_where_a_list_is_due_has_the_same_parts_ever_after(answer: Any) -> None:
    names = answer(TURNING)
    asked = ("turning", "near", "inside", "lazy", "fails", "endless")
    names._peer.expected = [(name, "value") for name in asked]
    with names._peer.recording():
        turning = names.turning()
        assert list(turning) == list(turning) == [1, 2, 3]
        with pytest.raises(TypeError, match="gave a Near where a value was expected"):
            list(names.near())
        (lazy,) = names.inside()["a"]
        assert [list(lazy), sum(lazy)] == [[1, 2], 3]
        lazy = names.lazy()
        assert [next(lazy), next(lazy), next(lazy, 0), *lazy] == [1, 2, 0, 1, 2]
        assert isinstance(lazy, Iterator)
        assert lazy != [1, 2]
        with pytest.raises(TypeError, match="'generator' has no len"):
            len(lazy)  # type: ignore[arg-type]
        with pytest.raises(ZeroDivisionError):
            list(names.fails())
        assert [b for _, b in zip(range(3), names.endless(), strict=False)] == [1, 2, 3]
        names._peer.policy = Guard(FORWARDED)
        assert list(turning) == [1, 2, 3]
    with names._peer.recording():
        names._peer.expects.kinds.clear()  # as where the reference gives an iterator
        lazy = names.lazy()
        assert [list(lazy), list(lazy)] == [[1, 2], []]


def test_expectations_are_those_of_a_transcript() -> None:
    thing = Opaque("object", "Fake")
    outcomes = [1, [1, {"a": (2,)}], None, thing, [1, {"a": (thing,)}], Raised("E", "")]
    transcript = [Crossing("f", (), outcome) for outcome in outcomes]
    transcript.append(Crossing("set f.x", (), 1, ("list@0",)))
    assert [kind for _, kind in expectations(transcript)] == ["value"] * 2 + ["object"] * 4


def test_an_assertion_inside_of_with_is_told_as_it_is(answer: Any) -> None:
    names = answer(
        "class Store:\n    seen = []\n    def __enter__(self): return self\n"
        "    def __exit__(self, *told): self.seen.append(len(told)); return True\n"
        "    def get(self): return {}['x']\n"
    )
    store = names.Store()
    with pytest.raises(AssertionError, match="should be there"), store:
        raise AssertionError("should be there")
    with pytest.raises(KeyError, match="x"), store:
        store.get()
    assert store.seen == [3, 3]
    with store:
        raise ValueError
    names._peer.leaves = Left({"Store": ["(KeyError)", "", "(KeyError)"]})  # as the reference's is
    for kind, is_told in ((KeyError, True), (KeyError, False), (ValueError, False)):
        with nullcontext() if is_told else pytest.raises(kind), store:
            raise kind
    assert store.seen == [3] * 6
    names._peer.leaves = Left(None)
    with pytest.raises(WireError, match="the test raised Own"), store:
        raise type("Own", (ValueError,), {})


def test_a_model_changed_while_the_test_is_asked_belongs_to_the_call_under_way(
    answer: Any,
) -> None:
    import torch

    source = "def work(model, f):\n    model.weight.data.zero_(); f(); return 1\n"
    for kinds in ((), ("Module",)):
        names = protected(answer, source, [("work", kinds)])
        model = torch.nn.Linear(2, 2)
        seen = of_tests("def f(): seen.append(model.weight.eq(0).all().item())")
        seen |= {"seen": [], "model": model}
        with names._peer.recording():
            names.work(model, seen["f"])
        assert seen["seen"] == [bool(kinds)]


def test_an_unchanged_value_is_no_change(answer: Any) -> None:
    names = answer("def look(a, b, c):\n    return sum(a) + len(b) + c.sum()")
    names.look([1, 2], {"a": [1]}, np.ones(3))
    assert not names._peer.changed_ours
