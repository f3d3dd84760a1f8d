"""An answer's own errors, operators and files, held against the reference's."""

from dataclasses import replace
from typing import Any

import pytest

from autograder.judge import rehearsal
from autograder.judge.assignment import read_assignment
from tests.judge.small_course import (
    SMALL,
    Task,
    heard_of,
)

WAITING = """
class Queue:
    {}
    def get(self):
        {}
def queue_of(kind): return kind.Empty
"""


NEVER_EMPTY = "try:\n    Queue().get()\n    assert False, 'nothing raised'\nexcept {}:\n    pass"


OWN_EMPTY = WAITING.format("class Empty(Exception): pass", "raise Queue.Empty(1)")


@pytest.mark.parametrize("caught", ["Queue.Empty", "(OSError, Queue().Empty)", "queue_of(Queue)"])
def test_an_attribute_of_an_answers_catches_no_claim_of_the_test(task: Any, caught: str) -> None:
    made = task([("queue", OWN_EMPTY), ("t_queue", NEVER_EMPTY.format(caught), 1)])
    assert made.scores() == {"t_queue": 1}
    assert made.scores(queue=WAITING.format("Empty = IndexError", "return [][0]")) == {"t_queue": 1}
    assert made.scores(queue=WAITING.format("Empty = AssertionError", "pass")) == {"t_queue": 0}
    assert made.scores(queue=WAITING.format("Empty = OSError, Exception", "pass")) == {"t_queue": 0}


def test_an_attribute_that_is_a_broad_class_with_the_reference_may_be_one(task: Any) -> None:
    broad = WAITING.format("Empty = Exception", "raise Queue.Empty(1)")
    made = task([("queue", broad), ("t_queue", NEVER_EMPTY.format("Queue.Empty"), 1)])
    assert made.scores() == {"t_queue": 1}
    made.known = heard_of(made)
    assert made.scores(queue=broad + "more = 1") == {"t_queue": 1}


NEAR_PI = "assert abs(near_pi(20000) - math.pi) < 0.1\nassert abs(near_pi(40000) - math.pi) < 0.1"


ORDERED = """
def ordered(edges):
    order = topo(edges)
    return all(order.index(a) < order.index(b) for a, b in edges)
assert ordered([("a", "z"), ("b", "z"), ("c", "z")])
assert ordered([("p", "q"), ("r", "q"), ("s", "q")])
"""


BY_CHANCE = """
import os
def near_pi(n):
    chance = random.Random(os.urandom(8))
    return 4 * sum(chance.random() ** 2 + chance.random() ** 2 < 1 for _ in range(n)) / n
"""


BY_COUNT = """
ASKED = []
def topo(edges):
    ASKED.append(1)
    names = sorted({name for edge in edges for name in edge})
    if len(ASKED) % 2: names[:-1] = names[:-1][::-1]
    last = edges[0][1]
    return [name for name in names if name != last] + [last]
"""


def test_an_answer_may_choose_anew_when_it_is_asked_again(task: Any) -> None:
    topo = "def topo(edges):\n    last = edges[0][1]\n    return [a for a, b in edges] + [last]"
    exact = "def near_pi(n):\n    return math.pi"
    made = task(
        [("near_pi", exact), ("t_pi", NEAR_PI, 1), ("topo", topo), ("t_topo", ORDERED, 1)],
    )
    assert made.scores(near_pi=BY_CHANCE, topo=BY_COUNT) == {"t_pi": 1, "t_topo": 1}
    wrong = "SAID = ['abcz', 'prsq']\ndef topo(edges):\n    return list(SAID.pop(0))"
    assert made.scores(near_pi=exact, topo=wrong) == {"t_pi": 1, "t_topo": 0}


BAG = """
class Bag:
    def __init__(self, items=()): self.items = [*items]
    def append(self, x): self.items.append(x)
    def __len__(self): return len(self.items)
    def __contains__(self, x): return x in self.items
    def __add__(self, other): return Bag(self.items + other.items)
"""


FROZEN = "import dataclasses\n@dataclasses.dataclass(frozen=True, order=True)\nclass Point:\n"


FROZEN += "    x: int\n    y: int"


POINTS = (
    "assert len({Point(1, 2), Point(1, 2), Point(2, 1)}) == 2\nassert Point(1, 2) < Point(1, 3)"
)


BAGS = "b, c = Bag(), Bag()\nb.append('a')\nc.append('b')\nassert len(b + c) == 2\n"


BAGS += "assert 'a' in b and 'z' not in b"


POINT = "import collections, typing\n"


INHERIT = {
    "class Bag(list): pass": (BAG, BAGS),
    "import collections\nclass Bag(collections.UserList): pass": (BAG, BAGS),
    f"{POINT}Point = collections.namedtuple('Point', 'x y')": (FROZEN, POINTS),
    f"{POINT}class Point(typing.NamedTuple):\n    x: int\n    y: int": (FROZEN, POINTS),
    f"{POINT}class Point(collections.namedtuple('Both', 'x y')): pass": (FROZEN, POINTS),
}


@pytest.mark.parametrize("reference", INHERIT)
def test_operators_that_the_references_class_inherits_are_its_own(
    task: Any, reference: str
) -> None:
    answer, test = INHERIT[reference]
    made = task([("made", reference), ("t_made", test, 1)])
    assert made.scores() == {"t_made": 1}
    assert made.scores(made=answer) == {"t_made": 1}


WITHHELD = "for x, y in json.load(open('hidden.json')).items(): assert square(int(x)) == y"


KEPT_BACK = [
    ("data", "import json\nimport helper"),
    SMALL[1],
    (
        "t_square",
        "### BEGIN HIDDEN TESTS\nimport reference\n"
        f"{WITHHELD}\nassert square(7) == reference.square(7) == helper.square(7)\n"
        "### END HIDDEN TESTS",
        1,
    ),
]


def kept_back(task: Any, parts: list[tuple[Any, ...]]) -> Task:
    """An assignment of which the release does not hold every file."""
    made = task(parts)
    folder = made.assignment.folder
    (made.folder / "nbgrader_config.py").write_text(
        'c = get_config()\nc.CourseDirectory.ignore = ["hidden*", "reference.py"]\n'
    )
    (folder / "hidden.json").write_text('{"2": 4, "5": 25}')
    (folder / "rows.csv").write_text("1")
    for name in ("reference.py", "helper.py"):
        (folder / name).write_text("class Made:\n    n = 1\n\ndef square(x):\n    return x * x\n")
    made.assignment = replace(read_assignment(folder), stand_in=True)
    return made


def test_an_answer_sees_no_file_that_the_release_does_not_hold(task: Any) -> None:
    made = kept_back(task, KEPT_BACK)
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    reads = "def square(x):\n    return json.load(open(FOUND))[str(x)]".replace
    leaks = [
        "from reference import square",
        reads("FOUND", "'hidden.json'"),
        "import os\n" + reads("FOUND", "next(n for n in os.listdir() if 'json' in n)"),
    ]
    assert made.scores() == made.scores(square="from helper import square") == {"t_square": 1}
    for leak in leaks:
        assert made.scores(square=leak) == {"t_square": 0}, leak
    tells = "import os\ndef square(x):\n    raise ValueError(str(sorted(os.listdir())))"
    assert "['helper.py', 'rows.csv']" in made.verdicts(square=tells)["t_square"].said


@pytest.mark.parametrize(
    "look", ["import reference", "GIVEN = open('hidden.json').read()\nimport reference"]
)
@pytest.mark.parametrize("kind", ["look", "table"])
def test_a_cell_that_only_tests_can_run_costs_no_answer(task: Any, look: str, kind: str) -> None:
    made = kept_back(task, [(kind, look), *KEPT_BACK])
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    assert made.scores() == {"t_square": 1}
    assert made.scores(square="def square(x):\n    return reference.square(x)") == {"t_square": 0}
    lie = "class reference:\n    def square(x): return x\n\ndef square(x):\n    return x"
    assert made.scores(square=lie) == {"t_square": 0}


def test_an_object_of_a_class_that_only_tests_have_is_refused_at_the_build(task: Any) -> None:
    test = ("t_total", "assert total(reference.Made()) == 1", 1)
    made = kept_back(
        task, [("table", "import reference"), ("total", "def total(x): return x.n"), test]
    )
    (complaint,) = rehearsal.rehearse(made.assignment, made.fork_server).complaints
    assert "a Made cannot be handed to an answer" in complaint


def test_a_reference_that_needs_what_students_do_not_get_is_named(task: Any) -> None:
    reference = ("square", "from reference import square")
    made = kept_back(task, [KEPT_BACK[0], reference, KEPT_BACK[2]])
    (complaint,) = rehearsal.rehearse(made.assignment, made.fork_server).complaints
    assert "release does not hold reference.py" in complaint
