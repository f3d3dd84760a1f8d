"""Tables whose keys are objects of an answer's: members of enumerations, points, hands of cards."""

import pytest

from tests.judge.small_course import heard_of, rehearsed

CARDS = """import collections
import enum
from dataclasses import dataclass
from typing import NamedTuple

class Suit(enum.Enum):
    H = 1
    S = 2

@dataclass(frozen=True)
class Spot:
    x: int
    y: int

class Pair(NamedTuple):
    a: int
    b: int

class Coin:
    def __init__(self, cents): self.cents = cents
    def __eq__(self, other): return isinstance(other, Coin) and self.cents == other.cents
    def __hash__(self): return hash(self.cents)

def hand(): return [Suit.H, Suit.S, Suit.H]
def spots(): return [Spot(1, 2), Spot(0, 0), Spot(1, 2)]
def count(things):
    found = {}
    for one in things: found[one] = found.get(one, 0) + 1
    return found
def tally(things): return collections.Counter(things)
def grouped(things):
    found = collections.defaultdict(list)
    for place, one in enumerate(things): found[one].append(place)
    return found
def by_pair(things): return {(one, "n"): n for one, n in count(things).items()}
def deep(things): return {"all": count(things), "size": len(things)}
def coins(cents): return count([Coin(n) for n in cents])
"""

TESTS = [
    "assert count(hand()) == {Suit.H: 2, Suit.S: 1}",
    "assert count([Suit.S]) == {Suit.S: 1} and count([]) == {}",
    "assert count(hand())[Suit.H] == 2 and count(hand()).get(Suit.S) == 1",
    "found = count(hand())\nassert Suit.H in found and len(found) == 2",
    "assert {suit.name: n for suit, n in count(hand()).items()} == {'H': 2, 'S': 1}",
    "assert sorted(count(hand()).values()) == [1, 2]",
    "assert count(spots()) == {Spot(1, 2): 2, Spot(0, 0): 1}",
    "assert count(spots())[Spot(1, 2)] == 2",
    "assert count([Pair(1, 2), Pair(1, 2)]) == {Pair(1, 2): 2}",
    "assert coins([5, 5, 10])[Coin(5)] == 2",
    "assert coins([5, 5, 10]) == {Coin(5): 2, Coin(10): 1}",
    "assert tally(hand()) == {Suit.H: 2, Suit.S: 1}",
    "assert tally(hand()).most_common(1)[0][1] == 2",
    "assert grouped(hand())[Suit.H] == [0, 2]",
    "assert by_pair(hand())[(Suit.H, 'n')] == 2",
    "assert deep(hand()) == {'all': {Suit.H: 2, Suit.S: 1}, 'size': 3}",
    "assert abs(sum(count(hand()).values()) - 3) < 1e-9",
]
LIAR = """
class Liar:
    def __eq__(self, other): return True
    def __hash__(self): return 1
    def __sub__(self, other): return 0
    def __rsub__(self, other): return 0
    def __radd__(self, other): return 0
    def __lt__(self, other): return True
    def __getitem__(self, key): return Liar()
    def __len__(self): return 2
    def __iter__(self): return iter([1, 2])
    def items(self): return [(Suit.H, 2), (Suit.S, 1)]
"""
OBJECTS = {  # instead of tables; no count is one
    "each entry": "def count(things): return {one: Liar() for one in things}\n",
    "the table": "def count(things): return Liar()\n",
    "nothing": "def count(things): return {}\n",
    "each is one": "def count(things): return {one: 1 for one in things}\n",
}


def graded(task, answer: str, test: str, reference: str = CARDS):
    made = rehearsed(task([("own", reference), ("t_own", test, 1)]))
    return made.scores(own=answer)["t_own"]


@pytest.mark.parametrize("test", TESTS)
def test_what_the_reference_gives_is_right(task, test: str):
    assert graded(task, CARDS, test) == 1


@pytest.mark.parametrize("test", [t for t in TESTS if "count(hand" in t and "len(" not in t])
@pytest.mark.parametrize("kind", OBJECTS)
def test_no_object_passes_for_a_count(task, kind: str, test: str):
    assert graded(task, CARDS + LIAR + OBJECTS[kind], test) == 0


def test_how_many_entries_there_are_is_said(task):
    made = task([("own", CARDS), ("t_own", "assert count(spots())[Spot(1, 2)] == 2", 1)])
    made.known = heard_of(made)
    wrong = CARDS.replace("return found", "return {**dict.fromkeys(found, 1), Spot(3, 3): 1}", 1)
    assert "Yours has 3 entries, expected 2." in made.verdicts(own=wrong)["t_own"].told


SHOWN = {  # tables that show another's entries
    "a proxy": "types.MappingProxyType({})",
    "a chain": "collections.ChainMap({{}}, {})",
    "a copy": "collections.UserDict({})",
}


@pytest.mark.parametrize("shown", SHOWN)
@pytest.mark.parametrize(
    ("entries", "score"), [("counted(things)", 1), ("dict.fromkeys(things, Liar())", 0)]
)
def test_a_table_that_shows_the_entries_is_one(task, shown: str, entries: str, score: int):
    answer = f"import types\ndef count(things): return {SHOWN[shown].format(entries)}\n"
    test = "assert count(hand())[Suit.H] == 2 and len(count(hand())) == 2"
    assert graded(task, f"{CARDS}counted = count\n{LIAR}{answer}", test) == score
