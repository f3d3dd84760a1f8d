"""Objects in the place of values where no call of the reference's says it; and right answers."""

from typing import Any

import pytest

from autograder.judge import rehearsal
from tests.judge.small_course import HIDDEN_PART, heard_of

LIAR = """
class Liar:
    def startswith(self, *_): return True
    endswith = startswith
    def __sub__(self, other): return 0.0
    __rsub__ = __truediv__ = __mod__ = __sub__
"""
ITEM = """\
class Item:
    def __init__(self, name, price): self.name, self.price = name, price
    def __sub__(self, other): return Item(self.name, self.price - getattr(other, "price", other))
"""
SHOP = ITEM + "def shop(): return [Item('tea', 3.5), Item('milk', 1.25)]"
LIED = "Item('tea', 3.5), Item(Liar(), Liar())"
IN_ITS_OWN = (
    f"{ITEM}{LIAR}class Shelf:\n    def __getitem__(self, n): return [{LIED}][n]\n"
    "def shop(): return Shelf()"
)
IN_PARTS = SHOP.replace("3.5", "Fraction(7, 2)").replace("1.25", "Fraction(5, 4)")
IN_PARTS = f"from fractions import Fraction\n{IN_PARTS}"
QUEUE = f"from collections import deque\n{ITEM}def queue(): return {{}}"
SHELF = f"\n{LIAR}class Shelf:\n    def __getitem__(self, n): return Liar()"
SEEN = "assert shop()[0].name == 'tea'"
DEAREST = ITEM + "def dearest(items): return max(items, key=lambda i: i.price), {}"
ITEMS = "items = [Item('a', 1), Item('b', {})]\n"
DEAR = f"{ITEMS.format(2)}one, found = dearest(items)\nassert one.name == 'b' and found == {{!r}}"
EACH = ITEM + "def each(items, f):\n    for i in items: f(i.price)"
TOLD = "total = []\neach([Item('a', 1)], total.append)\nassert total == [1]"
MEANT = "\ntotal = []\neach([Item('a', 1), Item('b', 4)], total.append)\n"
LOUD = ITEM + "def loud(names):\n    for n in names: yield n.upper(), Item(n, 1)"
HEARD = "assert [text for text, item in loud(['a'])] == ['A']"
WORDS = "def cut(text):\n    for w in text.split(): yield w"
SAID = "assert list(cut('a b')) == ['a', 'b']"
LIES = [  # a question's reference, a lie, what students see of the test, and what they do not
    ("shop", SHOP, IN_ITS_OWN, SEEN, "assert shop()[1].name.startswith('m')"),
    ("shop", SHOP, IN_ITS_OWN, SEEN, "assert abs(shop()[1].price - 1.25) < 1e-9"),
    (
        *("shop", SHOP, IN_ITS_OWN, SEEN),
        "assert (Item('a', 3) - 1).price == 2 and abs(shop()[1].price - 1.25) < 1e-9",
    ),
    (
        *("queue", QUEUE.format("deque([3.5, 1.25])"), QUEUE.format("Shelf()") + SHELF),
        *("queue()", "assert (Item('a', 3) - 1).price == 2 and abs(queue()[1] - 1.25) < 1e-9"),
    ),
    (
        *("shop", IN_PARTS, IN_ITS_OWN, SEEN),
        "assert (Item('a', 3) - 1).price == 2 and abs(shop()[1].price - 1.25) < 1e-9",
    ),
    (
        "dearest",
        DEAREST.format("sum(i.price for i in items)"),
        DEAREST.format("3 if len(items) == 2 and items[1].price == 2 else Liar()") + LIAR,
        DEAR.format(3),
        ITEMS.format(7.5) + "one, found = dearest(items)\n"
        "assert one.name == 'b' and abs(found - 8.5) < 1e-9",
    ),
    (
        "dearest",
        DEAREST.format("{'said': ' '.join(i.name for i in items)}"),
        DEAREST.format("{'said': Liar() if items[1].price > 2 else 'a b'}") + LIAR,
        DEAR.format({"said": "a b"}),
        ITEMS.format(7) + "assert dearest(items)[1]['said'].endswith(' b')",
    ),
    (
        *(
            "loud",
            LOUD,
            ITEM
            + LIAR
            + "def loud(names):\n    return [(Liar() if n > 'a' else 'A', n) for n in names]",
        ),
        *(HEARD, "assert [*loud(['b'])][0][0].startswith('B')"),
    ),
    (
        *("cut", WORDS, LIAR + "def cut(text): return ['a', 'b'] if text < 'b' else [Liar()]"),
        *(SAID, "assert all(w.startswith('c') for w in cut('cd'))"),
    ),
    (
        "each",
        EACH,
        EACH.replace("i.price)", "i.price if len(items) < 2 else Liar())") + LIAR,
        TOLD,
        "assert (Item('a', 3) - Item('b', 1)).price == 2"
        + MEANT
        + "assert abs(total[1] - 4) < 1e-9",
    ),
]


@pytest.mark.parametrize("part", LIES)
def test_an_object_decides_no_sum_and_no_claim_where_the_reference_has_a_value(
    task: Any, part: Any
) -> None:
    name, reference, lie, seen, hidden = part
    made = task([(name, reference), ("t", seen + HIDDEN_PART.format(hidden), 1)])
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    made.known = heard_of(made)
    assert made.scores(**{name: reference}) == {"t": 1}
    assert made.scores(**{name: lie}) == {"t": 0}


MONEY = """\
class Money:
    def __init__(self, n): self.n = n
    def __add__(self, o): return Money(self.n + getattr(o, "n", o))
    def __mul__(self, k): return Money(self.n * k)
    def __sub__(self, k): return Money(self.n - k)
    def __eq__(self, o): return self.n == getattr(o, "n", o)
"""
SPENDS = """\
m = Money(1)
m += 2
m *= 3
assert m == 9 and m + 1 == Money(10) and (m - 4).n == 5
"""
AS_A_NUMBER = """\
class Money(int):
    n = property(int)
    def __add__(self, o): return Money(int(self) + int(o))
    def __mul__(self, k): return Money(int(self) * k)
    def __sub__(self, k): return Money(int(self) - k)
"""
IN_PLACE = """\
    def __iadd__(self, o): self.n += getattr(o, "n", o); return self
    def __imul__(self, k): self.n *= k; return self
"""
CART = """\
class Item:
    def __init__(self, price, count): self.price, self.count = price, count
    def total(self): return self.price * self.count
"""
CARTS = CART + "def cart(): return {}\ndef best(items): return max(items, key=Item.total), 6"
PAIR = "[Item(2, 3), Item(1, 1)]"
NAMED = """\
from typing import NamedTuple
class Item(NamedTuple):
    price: int
    count: int
    def total(self): return self.price * self.count
"""
TABLE = """\
class Item(dict):
    def __init__(self, *parts): self.update(zip(('price', 'count'), parts))
    def total(self): return self['price'] * self['count']
"""
BUYS = """\
one, most = best(cart())
assert one.total() == most == 6 and sum(i.total() for i in cart()) == 7
"""
BOX = """\
class Box:
    def __init__(self, **parts): self.__dict__.update(parts)
    def say(self, word): return f"{word}!"
"""
OPENED = "b = Box(a=1)\nb.c = 2\nassert b.a == 1 and b.c == 2 and Box().say('hi') == 'hi!'"
RIGHT = [  # a question's reference, a right answer, a test
    ("Money", MONEY, MONEY + IN_PLACE, SPENDS),
    ("Money", MONEY, AS_A_NUMBER, SPENDS),
    ("Money", AS_A_NUMBER, AS_A_NUMBER.replace("n = property(int)", "n = property(float)"), SPENDS),
    ("cart", CARTS.format(PAIR), CARTS.replace(CART, NAMED).format(PAIR), BUYS),
    ("cart", CARTS.format(PAIR), CARTS.replace(CART, TABLE).format(PAIR), BUYS),
    (
        "cart",
        CARTS.format("{1: Item(1, 1), 6: Item(2, 3)}"),
        CARTS.replace(CART, NAMED).format("{i.total(): i for i in (Item(1, 1), Item(2, 3))}"),
        "assert [i.total() for i in cart().values()] == [*cart()]\n"
        "assert best(cart().values())[0].total() == 6",
    ),
    (
        "cart",
        CARTS.format(PAIR),
        CARTS.replace("def cart(): return {}", f"def cart():\n    yield from {PAIR}"),
        BUYS,
    ),
    (
        *("loud", LOUD, ITEM + "def loud(names): return [(n.upper(), Item(n, 1)) for n in names]"),
        HEARD + "\nassert [*loud(['b'])][0][0].startswith('B')",
    ),
    (
        "loud",
        LOUD,
        "import enum\nclass Name(str, enum.Enum):\n    A = 'A'\n    B = 'B'\n"
        "def loud(names): return [(Name(n.upper()), [n]) for n in names]",
        HEARD + "\nassert [*loud(['b'])][0][0].startswith('B')",
    ),
    (
        "UNITS",
        CART + "UNITS = {'one': Item(1, 1), 'two': Item(2, 1)}",
        NAMED + "UNITS = {n: Item(k, 1) for n, k in (('one', 1), ('two', 2))}",
        "assert UNITS['two'].total() == 2 and list(UNITS) == ['one', 'two']",
    ),
    ("cut", WORDS, "def cut(text): return iter(text.split())", SAID),
    (
        "day",
        "import datetime as dates\ndef day(n): return dates.datetime(2024, 2, n)",
        "import datetime as dates\nclass Day(dates.datetime):\n"
        "    def __str__(self): return self.isoformat()\n"
        "    def next(self): return self + dates.timedelta(days=1)\n"
        "def day(n): return Day(2024, 2, n)",
        "import datetime\nassert day(3) == datetime.datetime(2024, 2, 3)\n"
        "assert (day(3) - datetime.datetime(2024, 2, 1)).days == 2 and day(1) < day(2)",
    ),
    ("cut", WORDS, "cut = str.split", SAID + "\nassert all(len(w) == 1 for w in cut('c d'))"),
    (
        "Box",
        BOX,
        "class Box(dict):\n    __setattr__ = dict.__setitem__\n    def __getattr__(self, name):\n"
        "        return self[name] if name in self else lambda word: word + '!'",
        OPENED,
    ),
    (
        "Box",
        BOX,
        "class Box:\n    def __init__(self, **parts): vars(self).update(parts)\n"
        "    def __getattr__(self, name): return lambda word: word + '!'",
        OPENED,
    ),
]


@pytest.mark.parametrize("part", RIGHT)
def test_an_object_that_is_right_in_another_way_gets_its_points(task: Any, part: Any) -> None:
    name, reference, answer, hidden = part
    made = task([(name, reference), ("t", hidden + HIDDEN_PART.format(hidden), 1)])
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    made.known = heard_of(made)
    assert made.scores(**{name: answer}) == {"t": 1}
