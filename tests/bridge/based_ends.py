"""Classes that an answer makes of Python's own."""

CLASSES = """
import collections, enum, pathlib
from typing import NamedTuple
class Stack(list):
    def push(self, x): self.append(x)
    def peek(self): return self[-1]
class Vocab(dict):
    def __init__(self, words=()):
        super().__init__((w, i) for i, w in enumerate(words))
        self.unknown = -1
    def lookup(self, w): return self.get(w, self.unknown)
    @classmethod
    def of(cls, text): return cls(text.split())
class Zero(dict):
    def __missing__(self, key): return 0
class Bag(collections.Counter):
    def most(self): return self.most_common(1)[0][0]
class Graph(collections.defaultdict):
    def __init__(self): super().__init__(list)
    def link(self, a, b): self[a].append(b)
class Group(set):
    def join(self, x): self.add(x)
class Queue(collections.deque):
    def put(self, x): self.append(x)
class Celsius(float):
    def to_f(self): return self * 9 / 5 + 32
class Money(int):
    unit = "EUR"
    def __repr__(self): return f"{int(self)} {self.unit}"
    def __add__(self, other): return Money(int(self) + int(other))
class Word(str):
    def vowels(self): return sum(c in 'aeiou' for c in self)
    def upper(self): return Word('UP' + str.upper(self))
class Vector(tuple):
    def __new__(cls, *parts): return super().__new__(cls, parts)
    def __add__(self, other): return Vector(*(a + b for a, b in zip(self, other)))
    def norm(self): return sum(x * x for x in self) ** 0.5
class Point(NamedTuple):
    x: int
    y: int = 0
    def norm(self): return abs(self.x) + abs(self.y)
class Plain(list): pass
class Num(enum.IntEnum):
    ONE = 1
    TWO = 2
class Color(enum.Enum):
    RED = 'r'
    BLUE = 'b'
class Level(str, enum.Enum):
    LOW = 'low'
def build(words): return Vocab(words)
def numbers(): return [Num.ONE, Num.TWO]
def double(s): return [*s, *s]
def is_stack(s): return type(s).__name__
def paint(c): return Color.BLUE if c is Color.RED else Color.RED
def some(): return [Stack([1]), Word('a')]
made = Vocab(['a'])
"""
