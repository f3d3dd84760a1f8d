"""Right answers that go another way than the reference does: nothing of that costs a point."""

from typing import Any

import pytest

from autograder.judge import rehearsal
from tests.judge.small_course import heard_of

SORTS = "def sorts(d):\n    for k in d: d[k] = sorted(d[k])"
SORTED_THERE = "def sorts(d):\n    for v in d.values(): v.sort()"
BOTH = "d = {'a': [2, 1], 'b': [3]}\nsorts(d)\nassert d == {'a': [1, 2], 'b': [3]}"
FILLS = "def turn(m):\n    m[:] = [list(row) for row in zip(*m)]"
SWAPS = """
def turn(m):
    for i in range(len(m)):
        for j in range(i):
            m[i][j], m[j][i] = m[j][i], m[i][j]
"""
TURNED = "m = [[1, 2], [3, 4]]\nturn(m)\nassert m == [[1, 3], [2, 4]]"


@pytest.mark.parametrize(
    ("name", "reference", "other", "test"),
    [
        ("sorts", SORTS, SORTED_THERE, BOTH),
        ("sorts", SORTED_THERE, SORTS, BOTH),
        ("turn", FILLS, SWAPS, TURNED),
        ("turn", SWAPS, FILLS, TURNED),
    ],
)
def test_any_part_of_an_argument_may_change_where_the_reference_changes_one(
    task: Any, name: str, reference: str, other: str, test: str
) -> None:
    made = task([(name, reference), ("t", test, 1)])
    made.known = heard_of(made)
    assert made.scores(**{name: other}) == {"t": 1}


def test_another_argument_than_the_references_may_not_change(task: Any) -> None:
    adds = "def adds(xs, ys):\n    xs.extend(ys)"
    test = "xs, ys = [1], [2]\nadds(xs, ys)\nassert xs == [1] + ys"
    made = task([("adds", adds), ("t", test, 1)])
    made.known = heard_of(made)
    assert made.scores() == {"t": 1}
    assert made.scores(adds="def adds(xs, ys):\n    ys.clear()") == {"t": 0}


CONF = """
class Conf:
    def __init__(self, **kw): self._d = kw
    def __getattr__(self, name): return {how}
"""


@pytest.mark.parametrize("how", ["self._d[name]", "1 / 0", "self._d.get(name)", "name"])
def test_an_object_may_answer_for_any_name(task: Any, how: str) -> None:
    reference = "class Conf:\n    def __init__(self, lr): self.lr = lr"
    made = task([("Conf", reference), ("t", "c = Conf(lr=3)\nassert c is not None", 1)])
    assert made.scores(Conf=CONF.format(how=how)) == {"t": 1}


EVENTS = """
class Events:
    def __init__(self): self.handlers = {}
    def on(self, f): self.handlers[f] = f
    def off(self, f): del self.handlers[f]
    def fire(self, x):
        for f in list(self.handlers): f(x)
"""
LISTED = """
class Events:
    def __init__(self): self.handlers = []
    def on(self, f): self.handlers.append(f)
    def off(self, f): self.handlers.remove(f)
    def fire(self, x):
        for f in self.handlers: f(x)
"""
HEARD = """
class Part:
    def __init__(self): self.seen = []
    def got(self, x): self.seen.append(x)
p, q, e = Part(), Part(), Events()
e.on(p.got); e.on(q.got); e.fire(1)
e.off(p.got); e.fire(2)
assert (p.seen, q.seen) == ([1], [1, 2])
"""


def test_a_method_of_a_tests_object_is_one_however_often_it_is_handed_over(task: Any) -> None:
    made = task([("Events", EVENTS), ("t", HEARD, 1)])
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    assert made.scores(Events=LISTED) == {"t": 1}


NODES = """
class Node:
    def __init__(self, value, next=None): self.value, self.next = value, next
def values(node):
    return [node.value, *values(node.next)] if node else []
assert values(build(Node, [1, 2, 3])) == [1, 2, 3]
"""
FROM_THE_END = """
def build(Node, xs):
    head = None
    for x in reversed(xs): head = Node(x, head)
    return head
"""
FROM_THE_BEGINNING = """
def build(Node, xs):
    before = last = Node(None)
    for x in xs:
        last.next = Node(x)
        last = last.next
    return before.next
"""


def test_what_an_answer_makes_with_a_tests_class_is_its_own(task: Any) -> None:
    made = task([("build", FROM_THE_END), ("t", NODES, 1)])
    made.known = heard_of(made)
    assert made.scores(build=FROM_THE_BEGINNING) == {"t": 1}
    assert made.scores(build=FROM_THE_END.replace("reversed(xs)", "xs")) == {"t": 0}


VISITS = """
class Place:
    seen = False
    def __init__(self, *ways): self.ways = ways
end = Place()
assert count(Place(Place(end), end)) == 3
"""
COUNTS = """
def count(place):
    if place.seen: return 0
    place.seen = True
    return 1 + sum(count(one) for one in place.ways)
"""


def test_what_a_class_says_for_all_its_objects_can_be_set_for_one(task: Any) -> None:
    made = task([("count", COUNTS), ("t", VISITS, 1)])
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    made.known = heard_of(made)
    assert made.scores() == {"t": 1}
    assert made.scores(count=COUNTS.replace("place.seen = True", "pass")) == {"t": 0}
