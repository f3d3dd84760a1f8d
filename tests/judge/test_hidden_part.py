"""Nothing of the hidden part of a test is told or met elsewhere."""

from typing import Any

import pytest

from autograder.judge import rehearsal
from tests.judge.small_course import (
    HIDDEN_PART,
    heard_of,
)


def test_which_numbers_a_test_draws_cannot_be_known_from_its_name(task: Any) -> None:
    drawn = "random.seed('t_f')\nfirst = random.random()\n"
    test = "x = random.random()\nassert f(x) == x"
    made = task([("f", "def f(x):\n    return x"), ("t_f", test, 1)])
    assert made.scores(f=drawn + "def f(x):\n    return first") == {"t_f": 0}


TEST_HIDDEN = """\
assert f(1) == 1, 'f(1) should be 1'
### BEGIN HIDDEN TESTS
assert f(77) == 77, f'secret {f(77) + 72}'
### END HIDDEN TESTS
"""


def test_a_failure_in_a_hidden_line_is_not_shown(task: Any) -> None:
    made = task([("f", "def f(x):\n    return x"), ("t_f", TEST_HIDDEN, 1)])
    seen = made.verdicts(f="def f(x):\n    return 0")["t_f"]
    assert not seen.hidden
    assert "f(1) should be 1" in seen.told
    hidden = made.verdicts(f="def f(x):\n    return min(x, 5)")["t_f"]
    assert hidden.hidden
    assert "77" not in hidden.told
    assert hidden.score == 0


ENDINGS = """\
import os
def f(x):
    if x == 77:
        open('kept', 'w').write('x')
    elif x == 2 and os.path.exists('kept'):
        {}
    return x if x in (1, 77) else -1
"""


@pytest.mark.parametrize(
    "end", ["os._exit(3)", "os.kill(os.getpid(), 11)", "raise NotImplementedError", "return 0"]
)
def test_how_a_visible_test_ends_after_a_hidden_one_tells_nothing(task: Any, end: str) -> None:
    after = "assert f(2) == 2, f'f(2) is {f(2)}'"
    made = task([("f", "def f(x):\n    return x"), ("t_f", TEST_HIDDEN, 1), ("t_g", after, 1)])
    told = made.verdicts(f=ENDINGS.format(end))
    assert told["t_f"].score == 1
    assert (told["t_g"].score, told["t_g"].status) == (0, "failed")
    assert told["t_g"].told == "A test failed: f(2) is -1"


CALLS_BACK = """\
def inside(x):
    assert 0 <= x <= 1, f'f is asked between 0 and 1 only, not at {x}'
    return x
assert f(inside, 1) == 1
### BEGIN HIDDEN TESTS
assert f(abs, 77) == 77
### END HIDDEN TESTS
"""


KEEPS_IT = """\
kept = []
def f(of, x):
    kept.append(of)
    try:
        kept[0](x)
    except AssertionError:
        pass
    return of(x)
"""


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("where", ["seen", "hidden"])
def test_a_test_that_takes_names_from_one_with_a_hidden_part_accuses_nobody(
    task: Any, where: str, shared: bool
) -> None:
    seen, hidden = ("cc = 3", "pass") if where == "seen" else ("pass", "cc = 3")
    second = [("g", "def g(x):\n    return x")] if shared else []
    made = task(
        [
            ("f", "def f(x):\n    return x + 1"),
            ("t_one", f"{seen}\nassert f(1) == 2" + HIDDEN_PART.format(hidden), 1),
            *second,
            ("t_two", "assert f(cc) == 4, 'f(3) is 4'", 1),
        ]
    )
    assert made.scores() == {"t_one": 1, "t_two": 1}
    told = made.verdicts(f="def f(x):\n    return 2 if x == 1 else 7")["t_two"]
    assert told.score == 0 and "NameError" not in told.told + told.said
    assert ("f(3) is 4" in told.told) == (where == "seen"), told


def test_a_claim_of_the_visible_part_that_is_met_in_the_hidden_one_is_hidden(task: Any) -> None:
    made = task([("f", "def f(of, x):\n    return of(x)"), ("t_f", CALLS_BACK, 1)])
    assert made.scores() == {"t_f": 1}
    told = made.verdicts(f=KEEPS_IT)["t_f"]
    assert told.hidden
    assert told.score == 0
    assert "77" not in told.told
    seen = made.verdicts(f=KEEPS_IT.replace("kept[0](x)", "of(5)"))["t_f"]
    assert not seen.hidden
    assert "not at 5" in seen.told


QUEUE = """\
class Queue:
    def __init__(self): self.data = []
    def push(self, x): self.data.append(x)
    def pop(self): return self.data.pop(0)
    def empty(self): return not self.data
    def size(self): return len(self.data)
"""


DRAINED = """\
q = Queue()
q.push(1)
while not q.empty():
    q.pop()
assert q.size() == 0
### BEGIN HIDDEN TESTS
for number in range(63):
    q.push(number)
assert q.size() == 63
### END HIDDEN TESTS
"""


ENDLESS = """\
class Queue:
    asked = 0
    def push(self, x): pass
    def pop(self): return -1
    def empty(self):
        self.asked += 1
        return self.asked > {}
    def size(self): return -1
"""


def test_more_calls_than_the_visible_part_has_meet_no_value_of_the_hidden_one(task: Any) -> None:
    made = task([("queue", QUEUE), ("t_queue", DRAINED, 1)])
    made.known = heard_of(made)
    for asked in (31, 32, 33):
        verdict = made.verdicts(queue=ENDLESS.format(asked))["t_queue"]
        assert not verdict.hidden and "63" not in verdict.told, verdict.told
    hidden = made.verdicts(queue=QUEUE.replace("append(x)", "extend([x, x][not self.data :])"))
    assert hidden["t_queue"].hidden and "63" not in hidden["t_queue"].told


SPANS = """\
from __future__ import annotations
def twice(x: 1 / 0): return 2 * f(x)
f(0)
for x in (1, 2):
    f(x)
    ### BEGIN HIDDEN TESTS
    f(3)
    ### END HIDDEN TESTS
def late(x: 1 / 0): return x
f(4)
twice(f(2)) / {points}
"""


def test_a_cell_in_two_parts_runs_as_one(task: Any) -> None:
    made = task([("f", "def f(x):\n    return x"), ("t_f", SPANS.format(points=4), 1)])
    (run,) = rehearsal.runs(made.assignment, {}, made.fork_server, ["f"]).values()
    assert run.score == 1
    assert [call.outcome for call in run.transcript if not call.hidden] == [0]
    assert [call.outcome for call in run.transcript if call.hidden] == [1, 3, 2, 3, 4, 2, 2]
    wrong = made.verdicts(f="def f(x):\n    if x == 4: raise ValueError\n    return x")["t_f"]
    assert wrong.hidden and wrong.score == 0


def test_a_test_without_a_hidden_part_is_visible_to_its_last_line(task: Any) -> None:
    made = task([("f", "def f(x):\n    return x"), ("t_f", "assert f(1) == 1\nf(2) / 2", 1)])
    (run,) = rehearsal.runs(made.assignment, {}, made.fork_server, ["f"]).values()
    assert [call.hidden for call in run.transcript] == [False, False]


RUNS_IT = """\
def total(xs):
    if {when}:
        torch.distributions.Categorical(logits=torch.zeros(2)).probs
    found = 0
    for x in xs: found += x
    return found
"""


def test_a_visible_test_that_is_lost_by_what_a_hidden_one_runs_leans_on_it(task: Any) -> None:
    """So a page that may not tell of hidden tests yet tells nothing of it, either."""
    hidden = TEST_HIDDEN.replace("f(1)", "total([1])").replace("f(77)", "total([77])")
    parts = [
        ("total", "def total(xs):\n    found = 0\n    for x in xs: found += x\n    return found"),
        ("t_seen", "assert total([2, 3]) == 5", 1),
        ("t_more", hidden, 2),
    ]
    made = task(parts)
    told = made.verdicts(total=RUNS_IT.format(when="77 in xs"))
    assert {(v.status, v.leans) for v in told.values()} == {("forbidden", True)}
    told = made.verdicts(total="def total(xs):\n    return sum(xs)")  # to be read in its text
    assert {(v.status, v.leans) for v in told.values()} == {("forbidden", False)}
    assert not any(v.leans for v in made.verdicts().values())
