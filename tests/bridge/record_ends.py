"""Classes of an instructor's, and both sides of an answer that uses them."""

from typing import Any

from autograder.common.scopes import facts
from autograder.judge.guard import Guard
from autograder.judge.space import Space

GIVEN = """
import copy, dataclasses, enum
from abc import ABC, abstractmethod
from collections import namedtuple
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple
@dataclass
class Item:
    name: str
    price: float = 0.0
    tags: list = field(default_factory=list)
    def label(self): return f"{self.name}: {self.price}"
@dataclass(frozen=True, order=True)
class Point:
    x: float
    y: float = 0.0
@dataclass(slots=True)
class Pair:
    one: object
    two: object = None
class Student:
    def __init__(self, name, grade): self.name, self.grade = name, grade
    def __eq__(self, other): return isinstance(other, Student) and self.name == other.name
    def __hash__(self): return hash(self.name)
    def __lt__(self, other): return self.grade < other.grade
class Node:
    def __init__(self, value, next=None): self.value, self.next = value, next
class Account:
    def __init__(self, owner, balance): self.owner, self._balance, self.log = owner, balance, []
    @property
    def balance(self): return self._balance
    def deposit(self, amount):
        self._balance += amount
        self.log.append(amount)
class Person:
    def __init__(self, name): self.__name = name
    def get_name(self): return self.__name
class Safe:
    def __init__(self, code): self._code, self.tries = code, 0
    def opens(self, code):
        self.tries += 1
        return code == self._code
class Shape(ABC):
    @abstractmethod
    def area(self): ...
class Square(Shape):
    def __init__(self, side): self.side = side
    @cached_property
    def area(self): return self.side ** 2
class Near:
    def __init__(self, value, by): self.value, self.by = value, by
    def __eq__(self, other): return abs(self.value - other) <= self.by
class Any_:
    def __init__(self, **named): self.__dict__.update(named)
City = namedtuple("City", "name people")
class Town(NamedTuple):
    name: str
    people: int = 0
    def double(self): return Town(self.name, 2 * self.people)
class Color(enum.Enum):
    RED = 1
    BLUE = 2
class Folder:
    def __init__(self, place): self.place = place
    def __del__(self): shutil.rmtree(self.place)
"""


class Sides:
    """A space of tests and a student's process that have run the same cell."""

    def __init__(self, student: Any, answer: str, given: str) -> None:
        self.student, self.space = student, Space(attributes=frozenset({"seen", "color"}))
        student.peer.policy = Guard()
        self.space.student = student
        self.space.prepare(GIVEN, "given")
        assert student.run("given", given, 60).ok
        assert student.run("answer", answer, 60).ok
        self.space.hand_over(facts(answer).bound - facts(GIVEN).bound)

    def test(self, source: str, allowed: Any = None, expected: Any = ()) -> list[Any]:
        """Run a test; what crossed."""
        peer = self.student.peer
        peer.protect, peer.allowed, peer.expected = allowed is not None, allowed or (), expected
        peer.changed_ours = False
        with peer.recording() as crossings:
            exec(compile(source, "<test>", "exec"), self.space, self.space)
        return crossings


ITEM = "i = Item('pen', 2.0, ['blue'])\n"
