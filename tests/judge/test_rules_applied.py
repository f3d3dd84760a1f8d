"""What an answer may not use: costs its question, and no other's."""

from dataclasses import replace
from typing import Any

import pytest

from autograder.authoring.processes import fork_server_order
from autograder.common.results import TestRun
from autograder.judge import budget
from autograder.judge.questions import Lacks
from autograder.judge.rules import QuestionRules, Rules
from autograder.judge.work import Work
from tests.judge.small_course import (
    ALL,
    CHAIN,
)


def test_a_forbidden_name_costs_its_question(task: Any) -> None:
    verdicts = task(CHAIN).verdicts(total="def total(xs):\n    return sum(xs)")
    assert verdicts["t_total"].status == "forbidden"
    assert "sum" in verdicts["t_total"].told
    assert verdicts["t_total"].score == 0
    assert verdicts["t_norm"].score == 2


def test_a_forbidden_operation_costs_its_question_however_it_is_called(task: Any) -> None:
    small = task(
        [
            ("total", "def total(x):\n    e = x.exp()\n    return e / e.sum()"),
            ("t_total", "assert abs(float(total(torch.zeros(4)).sum()) - 1) < 1e-6", 2),
        ]
    )
    assert small.scores() == {"t_total": 2}
    verdict = small.verdicts(total="def total(x):\n    return torch.nn.Softmax(-1)(x)")["t_total"]
    assert (verdict.status, verdict.score) == ("forbidden", 0)
    assert "softmax" in verdict.told


READS = """\
def total(xs):
    import json
    from pathlib import Path
    return json.loads(Path("data/sums.json").read_text())[str(xs)] + float(open("one.csv").read())
"""


FROM_MINE = "from mine import add\n\ndef total(xs):\n    return add(xs)"


ADDS = b"def add(xs):\n    found = 0\n    for x in xs: found += x\n    return found\n"


def test_whatever_is_stopped_is_looked_up_before_any_line_of_a_students(task: Any) -> None:
    made = task([("total", "def total(xs):\n    return max(xs)"), ("t_total", "total([1])", 1)])
    rules = QuestionRules(forbid=("sorted",))  # which stops more than it names
    asked = replace(made.assignment, rules=Rules(questions={"total": rules}))
    order = fork_server_order([asked], sandboxed=False)
    assert rules.operations_forbidden
    assert {*rules.forbid, *rules.operations_forbidden} <= {*order["watched"]}


def test_an_answer_may_read_the_files_that_the_rules_allow(task: Any) -> None:
    made = task(CHAIN)
    made.beside = {"data/sums.json": b'{"[1, 2, 3]": 5}', "one.csv": b"1", "mine.py": ADDS}
    assert made.scores(total=READS)["t_total"] == 0
    allowed = replace(made.assignment.rules, files=("*.csv", "data/*", "*.py"))
    made.assignment = replace(made.assignment, rules=allowed)
    assert made.scores(total=READS)["t_total"] == 3
    assert made.scores(total=FROM_MINE)["t_total"] == 3
    made.beside = {"mine.py": b"def add(xs):\n    return sum(xs)\n"}
    verdict = made.verdicts(total=FROM_MINE)["t_total"]
    assert verdict.status == "forbidden" and "of your mine.py" in verdict.told


def test_a_file_that_cannot_be_laid_out_costs_nothing(task: Any) -> None:
    made = task(CHAIN)
    made.beside = {"x" * 200 + ".csv": b"1"}
    allowed = replace(made.assignment.rules, files=("*",))
    made.assignment = replace(made.assignment, rules=allowed)
    assert made.scores() == ALL


NEEDED = "def total(xs):\n    return ready(xs)"


@pytest.mark.parametrize(
    "cell",
    [
        "exec('ready = su' + 'm')",
        "def keep(f):\n    global ready\n    ready = f\nkeep(sum)",
        "vars(__import__('builtins'))['ready'] = sum",
    ],
)
def test_an_answer_that_needs_what_nobody_can_read_has_no_points(task: Any, cell: str) -> None:
    made = task([("look", "1"), *CHAIN])
    verdicts = made.verdicts(look=cell, total=NEEDED)
    assert verdicts["t_total"].status == "forbidden"
    assert "cannot be read before it runs; write the answer" in verdicts["t_total"].told
    assert verdicts["t_norm"].score == 2
    assert made.scores(look=cell) == ALL, "who does not need it loses nothing"


PLUS = "def total(xs):\n    return xs[0] + xs[1] + xs[2]\n"


@pytest.mark.parametrize(
    "line",
    [
        "import timeit\nprint(timeit.timeit(lambda: total([1, 2, 3]), number=2))",
        "import inspect\nprint(inspect.signature(total))",
        "import gc\ngc.collect()",
        "print('total' in globals(), total.__code__.co_name)",
        "import doctest\ndoctest.run_docstring_examples(total, globals())",
        "if __name__ == '__main__':\n    import inspect\n    print(inspect.getsource(total))",
    ],
)
def test_a_line_beside_the_answer_costs_nothing_unless_the_answer_needs_it(
    task: Any, line: str
) -> None:
    made = task([("look", "1"), *CHAIN])
    assert made.scores(total=f"{PLUS}{line}\n") == ALL
    needs = f"exec('ready = su' + 'm')\n{NEEDED}\n{line}\n"
    assert made.verdicts(total=needs)["t_total"].status == "forbidden"


LOOKED = [
    ("look", "1"),
    ("double", "def double(x):\n    return x * 2"),
    ("t_double", "assert double(2) == 4", 1),
    *CHAIN[4:],
]


POINTS_OF_BOTH = {"t_double": 1, "t_total": 3}


def test_what_another_answer_calls_costs_only_the_answers_that_use_it(task: Any) -> None:
    made = task(LOOKED)
    keeps = "def double(x):\n    found = {}\n    found[0] = sum([x, x])\n    return found[0]"
    assert made.scores(double=keeps) == POINTS_OF_BOTH
    uses = "def total(xs):\n    return double(xs[0]) + double(xs[1])"
    assert made.verdicts(double=keeps, total=uses)["t_total"].status == "forbidden"


CALLS = [*LOOKED[:-1], ("t_total", "assert total([1, 2, double(1.5)]) == 6", 3)]


RUNS = "def double(x):\n    return x * 2 * float(torch.softmax(torch.ones(1), -1))"


def test_what_another_answer_runs_while_a_test_calls_it_costs_nothing(task: Any) -> None:
    made = task(CALLS)
    assert made.scores(double=RUNS) == POINTS_OF_BOTH
    own = "def total(xs):\n    return 6 * float(torch.nn.functional.softmin(torch.ones(1), 0))"
    leans = "def total(xs):\n    return double(xs[0]) + 4"
    through = "def total(xs):\n    return ready(xs)"
    for answer in (own, leans, through):
        verdicts = made.verdicts(look="ready = lambda xs: double(1) + 4", double=RUNS, total=answer)
        assert verdicts["t_total"].status == "forbidden", answer


BEGINS = """\
import queue, statistics, threading
ASKED, FOUND = queue.Queue(), queue.Queue()
def late():
    yield from ASKED.get()
def begin():
    FOUND.put(statistics.fmean(late()))
def double(x):
    threading.Thread(target=begin, daemon=True).start()
    return x * 2
"""


def test_a_call_that_another_answer_has_begun_is_a_use(task: Any) -> None:
    made = task(LOOKED)
    rules = {"total": QuestionRules(forbid=("statistics.fmean",))}
    made.assignment = replace(made.assignment, rules=Rules(QuestionRules(), rules))
    asks = "def total(xs):\n    ASKED.put(xs)\n    return FOUND.get(timeout=5) * 3"
    verdicts = made.verdicts(double=BEGINS, total=asks)
    assert (verdicts["t_total"].status, verdicts["t_total"].score) == ("forbidden", 0)
    assert verdicts["t_double"].status == "passed"
    own = "def total(xs):\n    return xs[0] + xs[1] + xs[2]"
    assert made.scores(total=own) == POINTS_OF_BOTH


@pytest.mark.parametrize(
    "cell",
    [
        "def total(xs):\n    return sum(xs)\nprint(total([1]))",
        "total = sum",
        "from torch import softmax as total",
        "sum = 3\nprint(sum)",
        "def sum(xs):\n    return 6",
    ],
)
def test_a_name_that_meant_something_else_before_costs_nothing(task: Any, cell: str) -> None:
    assert task(LOOKED).scores(look=cell) == POINTS_OF_BOTH


@pytest.mark.parametrize(
    ("cell", "answer"),
    [
        ("def total(xs):\n    return sum(xs)", "1 / 0\ndef total(xs):\n    return 6"),
        ("total = sum", "if False:\n    def total(xs):\n        return 6"),
        ("total = sum", "kept = total\ndef total(xs):\n    return kept(xs)"),
        ("1", "def total(xs):\n    return sum(xs)\n1 / 0\ndef sum(xs):\n    return 5"),
        ("1", "def total(xs):\n    return sum(xs)\n[][0]\nsum = 6"),
        ("1", "def total(xs):\n    return sum(xs) if xs else eval(xs)\nsum, eval = 1 / 0"),
        ("1", "def total(xs):\n    return sum(xs) if xs else exec(xs)\nsum, exec = 1 / 0"),
        (
            "sum = 6\ndef drop():\n    global sum\n    del sum\ndrop()",
            NEEDED.replace("ready", "sum"),
        ),
        ("from __future__ import barry_as_FLUFL", "1 <> 2\ndef total(xs):\n    return sum(xs)"),
        ("1", "    def total(xs):\n        return sum(xs)"),
        (">>> def ready(xs):\n...     return sum(xs)", NEEDED),
        ("%time ready = sum", NEEDED),
        ("%config A.b = [ready := sum]", NEEDED),
        ("%%capture\n%%writefile mine.py\nready = sum", f"from mine import ready\n{NEEDED}"),
        ("%%writefile 'mine.py' -a\nready = sum", f"from mine import ready\n{NEEDED}"),
        (
            "%%writefile mine.py\n# coding: utf-7\n# +AAo-ready = sum\nready: int",
            f"from mine import ready\n{NEEDED}",
        ),
    ],
)
def test_what_runs_is_what_counts(task: Any, cell: str, answer: str) -> None:
    verdicts = task(LOOKED).verdicts(look=cell, total=answer)
    assert verdicts["t_total"].score == 0
    assert verdicts["t_double"].score == 1


@pytest.mark.parametrize(
    ("cell", "answer"),
    [
        ("sum = 0", "def total(xs):\n    return sum + xs[0] + xs[1] + xs[2]"),
        ("def sum(xs):\n    return 6", "def total(xs):\n    return sum(xs)"),
        ("1", "sum = 6\ndef total(xs):\n    return sum"),
        ("n = %time 6", "    def total(xs):\n        return n"),
        ("exec('1')\nn = %time 6", "def total(xs):\n    return n"),
        (
            "%%writefile 'mine.py'\n# coding: latin-1\nn = 6",
            "from mine import n\ntotal = lambda x: n",
        ),
        ("1", "def total(xs):\n    last = xs[2]\n    found = %time last * 2\n    return found"),
        (
            "exec('1')\ndef six(last):\n    found = %time last + last\n    return found",
            "def total(xs):\n    return six(xs[2])",
        ),
        (
            "class Ops:\n    @staticmethod\n    def softmax(n): return n * 2",
            "total = lambda x: Ops.softmax(x[2])",
        ),
    ],
)
def test_what_is_the_students_own_is_no_rules_business(task: Any, cell: str, answer: str) -> None:
    assert task(LOOKED).scores(look=cell, total=answer) == POINTS_OF_BOTH


def test_where_nobody_knows_whether_an_answer_needs_it_the_instructor_looks(
    task: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = task([("look", "1"), *CHAIN])
    monkeypatch.setattr(budget.Budget, "may_repeat", False)
    result = made.grade(look="exec('ready = su' + 'm')", total=NEEDED)
    assert {v.test: v.score for n in result.notebooks for v in n.verdicts} == ALL
    assert [flag.words[:9] for flag in result.flags if flag.kind == "forbidden"] == ["Not sure:"]


ENDS = (
    "import os\ndef total(xs):\n    try:\n        return ready(xs)\n    except NameError:\n        "
)


@pytest.mark.parametrize("end", ["os.abort()", "os.kill(os.getpid(), 9)"])
def test_who_ends_the_process_where_what_nobody_can_read_is_missing_earns_nothing(
    task: Any, end: str
) -> None:
    made = task([("look", "1"), *CHAIN])
    verdicts = made.verdicts(look="exec('ready = su' + 'm')", total=f"{ENDS}{end}")
    assert (verdicts["t_total"].status, verdicts["t_total"].score) == ("forbidden", 0)


def test_a_process_that_the_machine_has_ended_once_costs_nothing(
    task: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    look, ended = Work._read_alone, []

    def ended_once(work: Work, lacks: Lacks) -> dict[str, TestRun]:
        found = look(work, lacks)
        if not ended:
            ended.append(lacks)
            return {test: replace(run, status="died", score=0.0) for test, run in found.items()}
        return found

    monkeypatch.setattr(Work, "_read_alone", ended_once)
    own = "def total(xs):\n    return xs[0] + xs[1] + xs[2]"
    assert task([("look", "1"), *CHAIN]).scores(look="exec('ready = su' + 'm')", total=own) == ALL
    assert ended


def test_who_waits_for_ever_where_what_nobody_can_read_is_missing_earns_nothing(task: Any) -> None:
    own = "def total(xs):\n    return xs[0] + xs[1]"
    tests = [(f"t_{n}", f"assert total([1, {n}]) == {n + 1}", 1) for n in (1, 2, 3)]
    made = task([("look", "1"), ("total", own), *tests], seconds=2.0)
    waits = ENDS.replace("    try:", "    import time\n    time.sleep(0.5)\n    try:")
    verdicts = made.verdicts(look="exec('ready = su' + 'm')", total=f"{waits}while True: pass")
    assert {one.status for one in verdicts.values()} == {"forbidden"}
