"""What an answer may have changed by calling back."""

from typing import Any

import pytest

from autograder.engine.reach import may_change

CELLS = """
log, counts, limit = [], {"a": 1}, 3
class Box:
    made, all = 0, []
    def __init__(self): self.items = []
    def put(self, x): self.items.append(x)
    def count(self): Box.made += 1
    def keep(self): self.all.append(1)
    def look(self): return limit
box, double = Box(), lambda x: x * 2
def write(x): log.append(x)
def around(x): return write(x)
def named(x): globals()["log"].append(x)
def kept(x, seen=[]): seen.append(x)
def steps():
    for one in log: yield one
def local():
    mine = []
    def f(x): mine.append(x)
    return f
"""


@pytest.mark.parametrize(
    ("used", "may"),
    [
        *[("write", True), ("around", True), ("named", True), ("kept", True), ("log", True)],
        *[("log.append", True), ("box.put", True), ("box", True), ("steps()", True)],
        *[
            ("Box.count", True),
            ("Box().count", True),
            ("lambda: box", True),
            ("Box().keep", True),
            ("lambda: Box", True),
        ],
        *[
            ("double", False),
            ("lambda x: double(x)", False),
            ("lambda x: int(x)", False),
            ("local()", False),
            ("len", False),
        ],
        *[("[].append", False), ("lambda: limit", False)],
    ],
)
def test_what_leads_to_a_value_of_the_instructors_may_have_changed_it(used: str, may: bool) -> None:
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(CELLS, space)
    names = dict(space)
    exec(f"own = []\nused = {used}", space)
    assert may_change([space["used"]], names, frozenset()) is may
    assert not may_change([], names, frozenset())
