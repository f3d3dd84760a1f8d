"""What a test needs of a notebook it has, or the instructor reads why it cannot have it."""

from dataclasses import replace
from typing import Any

import pytest

from autograder.judge import rehearsal
from autograder.judge.assignment import read_assignment

TALLY = "seen = []\ndef note(x): seen.append(x)\ndef total(): return sum(seen)\n"


def test_what_every_cell_of_a_notebook_may_display_a_test_and_its_cells_may(
    task: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    asks = "display(half(LIMIT), include=['text/plain'])\nassert half(LIMIT) == 4"
    cells = [("look", "LIMIT = 8\ndisplay(LIMIT)"), ("half", "def half(x): return x // 2")]
    made = task([*cells, ("t_half", asks, 1)])
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    assert made.scores(half="def half(x):\n    display(x)\n    return x >> 1") == {"t_half": 1}
    assert made.scores(half="def half(x): return x") == {"t_half": 0}


def test_an_answers_own_display_is_the_answers(task: Any) -> None:
    shows = "def display(x): return f'<{x}>'"
    made = task([("display", shows), ("t_display", "assert display(1) == '<1>'", 1)])
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    assert made.scores(display="def display(x): print(x)") == {"t_display": 0}


NOTES = """class Plugin:
    known = []
    def __init_subclass__(cls):
        Plugin.known.append(cls.__name__)
"""


@pytest.mark.parametrize(
    ("notes", "answer", "asks", "said"),
    [
        (NOTES, "class Csv(Plugin): pass", "assert Plugin.known == ['Csv']", "What Plugin notes"),
        (
            "import sqlite3\nc = sqlite3.connect(':memory:')",
            "query = 'create virtual table t using fts5(x)'",
            "import sqlite3\nraise sqlite3.DatabaseError('not authorized')",
            "SQL of an answer's attaches no file",
        ),
    ],
)
def test_what_no_test_sees_is_named(
    task: Any, notes: str, answer: str, asks: str, said: str
) -> None:
    made = task([("table", notes), ("own", answer), ("t_own", asks, 1)])
    complaints = rehearsal.rehearse(made.assignment, made.fork_server).complaints
    assert any(said in one for one in complaints), complaints


@pytest.mark.parametrize("brings", ["from tally import note, total", "import tally as t"])
def test_a_module_that_an_answer_changes_is_named(task: Any, brings: str) -> None:
    of = "" if "note" in brings else "t."
    brought = [("bring", brings), ("t_bring", f"assert callable({of}note)", 1)]
    filled = [("fill", f"{of}note(2)"), ("t_fill", f"assert {of}total() == 2", 1)]
    made = task(brought + filled)
    source = made.folder / "source" / "small"
    (source / "tally.py").write_text(TALLY)
    made.assignment = replace(read_assignment(source), stand_in=True)
    (complaint,) = rehearsal.rehearse(made.assignment, made.fork_server).complaints
    assert "changes what tally, a module beside the notebook, keeps" in complaint


@pytest.mark.parametrize("asks", ["getsource(half)", "getsourcelines(half)[0]"])
def test_a_test_that_reads_an_answer_says_why_it_cannot_be_run(task: Any, asks: str) -> None:
    asks = f"import inspect\nassert 'return' in ''.join(inspect.{asks})"
    made = task([("half", "def half(x): return x // 2"), ("t_half", asks, 1)])
    (complaint,) = rehearsal.rehearse(made.assignment, made.fork_server).complaints
    assert "finds no text of an answer, which is in another process" in complaint


def test_of_a_test_that_is_wrong_in_itself_no_reason_is_made_up(task: Any) -> None:
    made = task([("half", "def half(x): return x // 2"), ("t_half", "assert half(4) == 3", 1)])
    (complaint,) = rehearsal.rehearse(made.assignment, made.fork_server).complaints
    assert complaint.endswith("(AssertionError: AssertionError).") or "half(4)" in complaint


DRAWS = "import matplotlib.pyplot as plt\nplt.plot([9, 9])\nplt.show()"
LINE = "plt.plot([1, 2], '--')\naxes = plt.gca()\n"
LINE += "def drawn():\n    plt.plot([3])\n    return plt.gca()"
ASKS = """
found = axes.get_lines()
assert len(found) == 1, f"{len(found)} lines"
assert found[0].get_linestyle() == "--", "style"
assert list(found[0].get_ydata()) == [1, 2], "data"
assert len(drawn().get_lines()) == 1, "drawn later"
"""


@pytest.mark.parametrize("above", ["look", "first"])
def test_a_cell_draws_on_no_figure_of_a_cell_above(task: Any, above: str) -> None:
    """A notebook closes what a cell has shown."""
    first = [("t_first", "assert plt", 1)] if above == "first" else []
    made = task([(above, DRAWS), *first, ("line", LINE), ("t_line", ASKS, 1)])
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    assert made.scores(line=LINE.replace("'--'", "'-'"))["t_line"] == 0


def test_a_test_draws_on_no_figure_of_another_test(task: Any) -> None:
    """Within one the next call goes on where the last one ended, as in a notebook's cell."""
    draws = "import matplotlib.pyplot as plt\ndef draw(ys):\n    plt.plot(ys)\n    return plt.gca()"
    asks = "assert [len(draw([1, 2]).lines) for _ in range(2)] == [1, 2]"
    made = task([("own", draws), ("t_one", asks, 1), ("t_two", asks, 1)])
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    assert made.scores(own=draws) == {"t_one": 1, "t_two": 1}
    afresh = draws.replace("plt.plot", "plt.figure()\n    plt.plot")
    assert made.scores(own=afresh) == {"t_one": 0, "t_two": 0}


@pytest.mark.parametrize("seed", ["", "random.seed(3)\n"])
def test_what_both_sides_draw_for_themselves_is_to_have_a_seed(task: Any, seed: str) -> None:
    draws = f"{seed}TOP = random.randint(1, 10**9)"
    made = task(
        [("look", draws), ("half", "half = TOP / 2"), ("t_half", "assert half * 2 == TOP", 1)]
    )
    complaints = rehearsal.rehearse(made.assignment, made.fork_server).complaints
    assert len(complaints) == (not seed)
    assert all("If TOP is drawn at random" in one for one in complaints)


def test_what_no_cell_draws_is_not_called_drawn(task: Any) -> None:
    cells = [("look", "random.random()"), ("data", "ENDS = [[1]]")]
    made = task([*cells, ("end", "end = ENDS[0]"), ("t_end", "assert end is ENDS[0]", 1)])
    assert not any(
        "at random" in one
        for one in rehearsal.rehearse(made.assignment, made.fork_server).complaints
    )
