"""What fails only because answers and tests are in two processes is pointed out."""

from typing import Any

from tests.judge.small_course import HIDDEN_PART

MAKES = (
    "class Point:\n    def __init__(self): self.x = 0\ndef make():\n    return Point()\n"
    "def move(p):\n    p.x += 1"
)
MOVED = "p = make()\nmove(p)\nassert p.x == 1, 'it should have moved'"
OTHERWISE = "from types import SimpleNamespace\ndef make():\n    return SimpleNamespace(x=0)\n"
MOVES = "def move(p):\n    p.x += {}"


def _unsure(made: Any, **answers: str) -> list[str]:
    flags = made.grade(**answers).flags
    return [flag.where for flag in flags if flag.kind == "unsure"]


def test_what_fails_between_two_processes_only_is_pointed_out(task: Any) -> None:
    other = ("one", "def one():\n    return 1"), ("t_one", "assert one() == 1", 1)
    made = task([("move", MAKES), ("t_move", MOVED, 2), *other])
    right, wrong = (OTHERWISE + MOVES.format(number) for number in (1, 2))
    assert made.scores(move=right) == {"t_move": 0, "t_one": 1}  # two processes part it
    assert _unsure(made, move=right) == ["small/t_move"]
    [note] = made.grade(move=right).notebooks[0].by_tests
    assert note.startswith("t_move: it passes where") and "instructor" in note
    assert _unsure(made, move=right, one="def one():\n    return 2") == ["small/t_move"]
    for answers in ({}, {"move": wrong}, {"move": ""}, {"one": ""}):
        assert _unsure(made, **answers) == []


def test_what_a_hidden_part_or_another_look_found_is_not_pointed_out(task: Any) -> None:
    hidden = HIDDEN_PART.format("assert sums([2, 3]) == 5")
    first = ("sums", "def sums(xs):\n    return sum(xs)"), ("t_sums", f"sums([]){hidden}", 1)
    test = "assert all(x > 0 for x in up(3))"
    made = task([*first, ("up", "def up(n):\n    return [*range(1, n)]"), ("t_up", test, 2)])
    zero, nothing = "def sums(xs):\n    return 0", "def up(n):\n    return []"
    assert made.scores(sums=zero, up=nothing) == {"t_sums": 0, "t_up": 0}
    assert _unsure(made, sums=zero, up=nothing) == []
