"""What tests ask of classes and functions in Python's own ways: as in one process, and no lies."""

from typing import Any

import pytest

from autograder.judge import rehearsal
from tests.judge.small_course import HIDDEN_PART, heard_of

ORDINARY = [  # a question, an answer in other words, a test
    (
        "counted",
        "import functools\ndef counted(f):\n    @functools.wraps(f)\n"
        "    def g(*a):\n        g.calls += 1\n        return f(*a)\n"
        "    g.calls = 0\n    return g\n@functools.cache\ndef double(x): return 2 * x",
        "import functools\nclass counted:\n    calls = 0\n"
        "    def __init__(self, f): functools.update_wrapper(self, f)\n"
        "    def __call__(self, *a):\n        self.calls += 1\n"
        "        return self.__wrapped__(*a)\ndef double(x): return x + x\n"
        "double = functools.lru_cache(double)",
        "import functools\ndef add(a, b): return a + b\ncounts = counted(add)\n"
        "assert counts(1, 2) == 3 and functools.wraps(add)(lambda: 1).__wrapped__ is add\n"
        "assert counts.__wrapped__ is add and counts.calls == 1 and double.__wrapped__(4) == 8\n"
        "try:\n    double.__wrapped__.__wrapped__\n    assert False\n"
        "except AttributeError:\n    pass",
    ),
    (
        "Cat",
        "class Cat:\n    def say(self): return 'Miau'\n    @property\n    def age(self): return 1\n"
        "    @classmethod\n    def make(cls): return cls()\nclass Lion(Cat):\n"
        "    def say(self): return 'Grr'\ndef count():\n    n = 0\n    def up():\n"
        "        nonlocal n\n        n += 1\n        return n\n    return up\n"
        "def steps(): yield 1",
        "class Cat:\n    names = [{}, len]\n    class Tail: pass\n    tail = Tail()\n"
        "    def __init__(self): self.n = 1\n    def say(self): return 'Miau'\n"
        "    age = property(lambda self: self.n)\n    make = classmethod(lambda cls: cls())\n"
        "class Lion(Cat):\n    def say(self): return super().say().replace('Miau', 'Grr')\n"
        "def count():\n    ns = [0]\n    def up():\n        ns.append(ns[-1] + 1)\n"
        "        return ns[-1]\n    return up\ndef steps():\n    yield from [1]",
        "import inspect\nfrom inspect import isclass\nfrom types import FunctionType, MethodType\n"
        "assert 'say' in vars(Lion) and 'say' in Lion.__dict__ and 'age' not in Lion.__dict__\n"
        "assert isclass(Lion) and not isclass(Lion()) and isclass(int) and not isclass(len)\n"
        "assert inspect.isfunction(count) and inspect.isfunction(Cat.say) and count()() == 1\n"
        "assert not inspect.isfunction(Cat().say) and inspect.ismethod(Cat().say)\n"
        "assert inspect.isgeneratorfunction(steps) and not inspect.isgeneratorfunction(count)\n"
        "assert isinstance(count, FunctionType) and not isinstance(Cat, (FunctionType, int))\n"
        "assert isinstance(Cat().say, (FunctionType, MethodType)) and callable(Cat.say)\n"
        "assert isinstance(Cat.age, property) and isinstance(vars(Cat)['make'], classmethod)\n"
        "assert not isinstance(Cat.say, (property, staticmethod)) and not inspect.isabstract(Cat)\n"
        "c = Cat()\nassert c.say.__self__ is c and c.say.__func__ is Cat.say\n"
        "assert count().__closure__ is not None and count.__closure__ is None\n"
        "class Own:\n    a = 1\n    def vars(self, n): return n\n"
        "assert Own().vars(2) == 2 and 'a' in vars(Own) and vars(Own()) == {} == Own().__dict__",
    ),
    (
        "attempt",
        "class TooPoor(ValueError):\n    def __init__(self, n):\n"
        "        super().__init__(f'{n} too few')\n        self.n = n\n"
        "def attempt(f, *a):\n    try:\n        return f(*a), None\n"
        "    except Exception as error:\n        return None, error\n"
        "def poor(): return TooPoor(3)",
        "import sys\nclass TooPoor(ValueError):\n    def __init__(self, n): self.n = n\n"
        "    def __str__(self): return f'{self.n} too few'\n"
        "def attempt(f, *a):\n    found = [None, None]\n    try:\n        found[0] = f(*a)\n"
        "    except Exception:\n        found[1] = sys.exc_info()[1]\n    return found\n"
        "def poor(): return TooPoor(n=3)",
        "v, e = attempt(int, 'x')\nassert v is None and type(e) is ValueError and 'x' in str(e)\n"
        "try:\n    raise e\nexcept ValueError as again:\n    assert 'x' in str(again)\n"
        "else:\n    raise AssertionError('not raised')\n"
        "def bad(): raise KeyError('k')\nv, e = attempt(bad)\n"
        "try:\n    raise e\nexcept LookupError as again:\n    assert again.args == ('k',)\n"
        "try:\n    raise poor() from None\nexcept TooPoor as error:\n"
        "    assert error.n == 3 and str(error) == '3 too few' and type(error) is TooPoor\n"
        "else:\n    raise AssertionError('not raised')",
    ),
    (
        "Puppy",
        "class Dog:\n    def __init__(self, n=0): self.n = n\nclass Puppy(Dog): pass\n"
        "def born(): return Puppy(3)",
        "from dataclasses import dataclass\n@dataclass\nclass Dog:\n    n: int = 0\n"
        "Puppy = type('Puppy', (Dog,), {})\nborn = lambda: Puppy(3)",
        "d = Dog()\nassert type(born()) is Puppy and type(d) == Dog and type(d) is not Puppy\n"
        "assert d.__class__ is Dog and type(d)(5).n == d.__class__(5).n == 5\n"
        "assert type(d) in (Dog, Puppy) and {Dog: 1}[type(d)] == 1 and type(Dog) is type\n"
        "assert issubclass(type(born()), Dog) and type(born()).__name__ == 'Puppy'\n"
        "assert Puppy.__bases__ == (Dog,) and Dog.__bases__ == (object,)\n"
        "assert Puppy.__base__ is Dog and Puppy.__mro__ == (Puppy, Dog, object)\n"
        "assert isinstance(Dog, type) and not isinstance(d, type) and type(5) is int\n"
        "class Own:\n    def me(self, type=len): return self.__class__, type('ab')\n"
        "assert Own().me() == (Own, 2) and type(Own()) is Own and Own.__base__ is object\n"
        "assert type('New', (), {}).__name__ == 'New' and [*map(type, [1])] == [int]\n"
        "import unittest\nclass Kinds(unittest.TestCase):\n"
        "    def test_it(self): self.assertIs(type(born()), Puppy)\n"
        "assert Kinds('test_it').run().wasSuccessful()",
    ),
]
ORDINARY.append(
    (
        "Vector",
        "class Vector:\n    def __init__(self, x): self.x = x\n"
        "    def __add__(self, o): return Vector(self.x + o.x)\nclass Zero(Vector):\n"
        "    def __init__(self, x=0):\n        Vector.__init__(self, x)\n        self.y = -x",
        "class Vector:\n    def __init__(self, x): self.x = x\n"
        "    __add__ = lambda self, o: type(self)(self.x + o.x)\nclass Zero(Vector):\n"
        "    def __init__(self, x=0):\n        super().__init__(x)\n        self.y = 0 - x",
        "v, z = Vector(1), Zero()\nz.__init__(4)\nassert z.x == 4 and z.y == -4\n"
        "class Own:\n    def __init__(self, n): self.n = n\n"
        "    def __add__(self, o): return Own(self.n + o.n)\nclass Uses(Own):\n"
        "    both = Vector.__add__(v, v).x\n    def __init__(self, n): Own.__init__(self, n)\n"
        "    def twice(self): return Own.__add__(self, self).n\n"
        "    def ask(self):\n        z.__init__(self.n)\n        return Vector.__add__(v, z).x\n"
        "def ask(): return Vector.__add__(v, v).x\n"
        "assert Uses(3).twice() == 6 and Uses.both == ask() == 2 and Uses(5).ask() == 6",
    )
)
LOOKS = [  # a claim that holds of `Cat`, and what the answer lacks then
    ("'say' in vars(Cat)", "class Up:\n    def say(self): return 1\nclass Cat(Up): pass"),
    ("isinstance(Cat.say, property)", "class Cat:\n    say = 1"),
    ("isinstance(Cat.say, property)", "class property: pass\nclass Cat:\n    say = property()"),
    ("inspect.isclass(Cat)", "def Cat(): pass"),
    ("inspect.isfunction(Cat.say)", "class function: pass\nclass Cat:\n    say = function()"),
    ("inspect.isgeneratorfunction(Cat.say)", "class Cat:\n    say = lambda self: iter([1])"),
]
CATS = {
    "property": "class Cat:\n    @property\n    def say(self): return 1",
    "generator": "class Cat:\n    def say(self): yield 1",
    "plain": "class Cat:\n    def say(self): return 1",
}


@pytest.mark.parametrize("claim, wrong", LOOKS)
def test_what_a_class_is_made_of_is_what_python_finds_there(
    task: Any, claim: str, wrong: str
) -> None:
    right = next((cat for word, cat in CATS.items() if word in claim), CATS["plain"])
    made = task([("cat", right), ("t_cat", f"import inspect\nassert {claim}", 1)])
    made.known = heard_of(made)
    assert made.scores() == {"t_cat": 1}
    assert made.scores(cat=wrong) == {"t_cat": 0}


DOG = "class Dog: pass\ndef born(): return Dog()"


@pytest.mark.parametrize("part", ORDINARY, ids=[part[0] for part in ORDINARY])
def test_a_test_that_looks_at_classes_runs_and_right_answers_pass_it(task: Any, part: Any) -> None:
    name, reference, answer, test = part
    made = task([(name, reference), (f"t_{name}", test, 2)])
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    made.known = heard_of(made)
    assert made.scores(**{name: answer}) == {f"t_{name}": 2}


POINT = "from dataclasses import dataclass, field\n@dataclass(order=True)\nclass Point:\n"
POINT += "    x: int\n    y: int = 0\n    tags: list = field(default_factory=list)\n"
POINT += "class Small:\n    __slots__ = ('a',)\n    def __init__(self, a): self.a = a"
WRONG_POINTS = [
    POINT.replace("    y: int = 0\n", "").replace("= ('a',)", "= ()\n    a = 1"),
    POINT.replace("@dataclass(order=True)\n", "").replace("= ('a',)", "= 'b'"),
    POINT.replace("y: int", "y: str").replace("__slots__", "slots"),
]
OF_POINTS = {
    "fields": "from dataclasses import MISSING, fields\n"
    "assert [f.name for f in fields(Point) if f.default is MISSING] == ['x', 'tags']\n"
    "assert [f.name for f in fields(Point)] == "
    "['x', 'y', 'tags'] and {f.name: f.type for f in fields(Point(1))}['y'] is int",
    "a table": "import dataclasses\nassert dataclasses.asdict(Point(1)) == "
    "{'x': 1, 'y': 0, 'tags': []}\nassert dataclasses.astuple(Point(2, 3)) == (2, 3, [])\n"
    "assert Point.__annotations__['y'] is int",
    "a copy": "from dataclasses import is_dataclass, replace\np = Point(1)\n"
    "assert replace(p, y=3) == Point(1, 3) and p.y == 0 and is_dataclass(Point)\n"
    "assert is_dataclass(p) and not is_dataclass(3) and 'a'.replace('a', 'b') == 'b'\n"
    "assert Point.__dataclass_fields__['y'].type is int",
    "slots": "assert Small.__slots__ == ('a',) and Point.__match_args__ == ('x', 'y', 'tags')\n"
    "assert Point.__annotations__['y'] is int",
}


@pytest.mark.parametrize("way", OF_POINTS)
def test_a_dataclass_is_asked_at_its_own_end(task: Any, way: str) -> None:
    made = task([("point", POINT), ("t_point", OF_POINTS[way], 1)])
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    made.known = heard_of(made)
    other = POINT.replace("field(default_factory=list)", "field(default_factory=lambda: [])")
    assert made.scores(point=other) == {"t_point": 1}
    assert [made.scores(point=one)["t_point"] for one in WRONG_POINTS] == [0, 0, 0]


def test_what_only_says_that_it_is_abstract_is_not(task: Any) -> None:
    right = "from abc import ABC, abstractmethod\nclass Shape(ABC):\n    @abstractmethod\n"
    right += "    def area(self): ..."
    says = "class Shape:\n    __abstractmethods__ = frozenset({'area'})\n    def area(self): ..."
    test = "import inspect\nassert inspect.isabstract(Shape)"
    made = task([("shape", right), ("t_shape", HIDDEN_PART.format(test), 1)])
    assert made.scores(shape=right) == {"t_shape": 1}
    assert made.scores(shape=says) == {"t_shape": 0}


def test_only_a_dataclass_is_copied_as_one(task: Any) -> None:
    right = "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\n"
    plain = "class P:\n    def __init__(self, x): self.x = x\n"
    plain += "    def __replace__(self, **named): return P(**named)"
    test = "import dataclasses\nassert dataclasses.replace(P(1), x=5).x == 5"
    made = task([("p", right), ("t_p", HIDDEN_PART.format(test), 1)])
    assert made.scores(p=right) == {"t_p": 1}
    assert made.scores(p=plain) == {"t_p": 0}


def test_a_pattern_is_left_as_it_is(task: Any) -> None:
    test = "match born():\n    case born.__class__: raise AssertionError\n"
    test += "    case one: assert type(one) is Dog"
    made = task([("dog", DOG), ("t_dog", test, 1)])
    made.known = heard_of(made)
    assert made.scores() == {"t_dog": 1}


def test_whose_object_it_is_an_objects_own_word_does_not_say(task: Any) -> None:
    made = task([("dog", DOG), ("t_dog", "assert type(born()) is born().__class__ is Dog", 1)])
    made.known = heard_of(made)
    assert made.scores() == {"t_dog": 1}
    lies = DOG.replace("Dog()", "Cat()") + "\nclass Cat:\n    __class__ = Dog"
    assert made.scores(dog=lies) == made.scores(dog=lies.replace("= Dog", "= Cat")) == {"t_dog": 0}


def test_a_module_is_of_the_class_that_its_answer_wrote(task: Any) -> None:
    net = "class Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    net += "        self.inner, self.bend = torch.nn.Linear(2, 3), torch.nn.ReLU()\n"
    net += "    def forward(self, x): return self.bend(self.inner(x))\ndef made(): return Net()"
    claims = "net = made()\nassert type(net) is net.__class__ is Net and type(net)().bend\n"
    claims += "assert type(net).__name__ == net.__class__.__name__ == 'Net'\n"
    claims += "assert [type(part).__name__ for part in net.children()] == ['Linear', 'ReLU']\n"
    claims += "assert type(net.inner) is torch.nn.Linear and type(torch.nn.ReLU()) is torch.nn.ReLU"
    made = task([("net", net), ("t_net", claims, 1)])
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    made.known = heard_of(made)
    assert made.scores() == {"t_net": 1}
    other = net.replace("return Net()", "return Other()") + "\nclass Other(Net): pass"
    lies = other.replace("pass", "__class__ = Net")
    bent = net.replace("torch.nn.ReLU()", "torch.nn.GELU()")
    for wrong in (other, lies, bent):
        assert made.scores(net=wrong) == {"t_net": 0}


SHOWN = (
    "from torch import nn\nclass Net(nn.Module):\n    def __init__(self):\n"
    "        super().__init__()\n"
    "        self.fc = nn.Linear(2, {})"
)


def test_what_a_module_shows_is_what_its_own_process_shows(task: Any) -> None:
    claims = "assert 'in_features=2, out_features=3' in repr(Net())\n"
    claims += "assert str(Net()).startswith('Net(') and f'{Net()}'.count('Linear') == 1"
    made = task([("net", SHOWN.format(3)), ("t_net", claims, 1)])
    assert made.scores() == {"t_net": 1}
    assert made.scores(net=SHOWN.format(4)) == {"t_net": 0}
