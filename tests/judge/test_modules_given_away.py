"""A module's name that a student gives to something else: it has to be that, or nothing."""

from typing import Any

import pytest

RIGHT = "def total(xs):\n    found = 0\n    for x in xs: found += x\n    return found"
BY_MODULES = "def total(xs, m=sys):\n    return m.modules['buil' 'tins'].sum(xs)"
IN_LIST = "def total(xs):\n    return [sys][0].modules['builtins'].sum(xs)"
PROGRAM = (
    "def total(xs):\n    return int([os][0].popen(f'expr {xs[0]} + {xs[1]} + {xs[2]}').read())"
)
WITH_OS = "def total(xs):\n    return [sys, os][0].modules['builtins'].sum(xs)"
WITH_SYS = PROGRAM.replace("[os][0]", "[os, sys][0]")
OWN = "def total(xs):\n    found = [sys][0] - 3\n    for x in xs: found += x\n    return found"


CELLS = [
    ("look", "WANTED = 6"),
    ("star", "import sys\nimport os"),
    ("total", RIGHT),
    ("t_total", "assert total([1, 2, 3]) == WANTED", 3),
]


@pytest.mark.parametrize(
    ("above", "below", "answer", "points"),
    [
        ("", "raise ValueError\nsys = 3", BY_MODULES, 0),
        ("", "raise ValueError\nsys = 3", IN_LIST, 0),
        ("", "raise ValueError\nos = 3", PROGRAM, 0),
        ("", "sys, os = 1 / 0", WITH_OS, 0),  # two names by one statement
        ("", "sys, os = 1 / 0", WITH_SYS, 0),
        ("", "from time import nothing as sys", IN_LIST, 0),
        ("", "sys = sys.nothing", BY_MODULES, 0),
        ("", "", f"sys = 1 / 0\n{IN_LIST}", 0),
        ("sys = 3", "", IN_LIST, 0),  # and the instructor's import gives it back
        ("sys = 3", "", BY_MODULES, 0),
        ("", "sys = 3", IN_LIST, 0),  # and no other look gives it back
        ("", "sys = 3", OWN, 3),
        ("", "", f"sys = 3\n{OWN}", 3),
        ("", "sys = len(sys.path) * 0 + 3", OWN, 3),
        ("", "from math import tau as sys\nsys = 3", OWN, 3),
        ("", "for sys in (1, 2, 3): pass", OWN, 3),
        ("", "with open('/dev/null'):\n    sys = 3", OWN, 3),
        ("", "if (sys := 3): pass", OWN, 3),
        ("", "first, *(sys, os) = [1, 3, 4]", OWN, 3),
        ("", "try:\n    sys = 3\nfinally:\n    pass", OWN, 3),
        ("", "for sys in (): pass", IN_LIST, 0),
        ("", "while False:\n    sys = 3", IN_LIST, 0),
        ("", "if not sys:\n    os = 3", PROGRAM, 0),
        ("", "for sys in (os.sys,): pass", IN_LIST, 0),
        ("", "for sys in {os.path.os.sys}: pass", IN_LIST, 0),
        ("", "try:\n    1 / 0\nexcept ZeroDivisionError as sys:\n    pass", IN_LIST, 0),
        ("", "", f"if True:\n    1 / 0\n    sys = 3\n{IN_LIST}", 0),
        (
            "",
            "",
            "if True:\n    def total(xs):\n        return [sys][0].modules['buil' 'tins']"
            ".sum(xs)\n    1 / 0\n    sys = 3",
            0,
        ),
    ],
)
def test_a_modules_name_given_away_is_no_way_to_the_module(
    task: Any, above: str, below: str, answer: str, points: float
) -> None:
    made = task(CELLS)
    made.added = {id: cell for id, cell in (("look", above), ("star", below)) if cell}
    assert made.scores(total=answer) == {"t_total": points}


REACH = "box[0].modules['buil' 'tins'].sum"
BOXED = "def total(xs): return xs and KEPT[0](xs)"


@pytest.mark.parametrize(
    ("above", "answer"),
    [
        # the statement that reaches it is none that the answer uses by a name
        ("sys = 1 / 0", "KEPT.append([sys][0].modules['buil' 'tins'].sum)"),
        ("for sys in (): pass", "KEPT.append([sys][0].modules['buil' 'tins'].sum)"),
        ("exec = 1 / 0", "exec('KEPT.append(su' 'm)')"),
        ("1 / 0\ndef exec(text): pass", "exec('KEPT.append(su' 'm)')"),
        ("exec = 1 / 0", "import __main__\ndel __main__.exec\nexec('KEPT.append(su' 'm)')"),
        ("exec = print", "import __main__\ndel __main__.exec\nexec('KEPT.append(su' 'm)')"),
        # a look at a name's kind asks nothing that cells may have changed
        ("import types\ntypes.ModuleType = int\nfor sys in (): pass", IN_LIST),
        # what only shows a module, by a name that is given to something else
        ("for print in [box.append]: pass", f"print(sys)\nKEPT.append({REACH})"),
        ("(dir := box.append)", f"dir(sys)\nKEPT.append({REACH})"),
        (
            "def s():\n    global print\n    print = box.append\ns()",
            f"print(sys)\nKEPT.append({REACH})",
        ),
        ("", f"class K:\n    type = box.append\n    type(sys)\nKEPT.append({REACH})"),
        ("try:\n    def help(x): box.append(x)\nfinally: pass", f"help(sys)\nKEPT.append({REACH})"),
        ("match box.append:\n    case print: pass", f"print(sys)\nKEPT.append({REACH})"),
    ],
)
def test_what_no_answer_uses_by_a_name_reaches_no_builtin(
    task: Any, above: str, answer: str
) -> None:
    made = task(CELLS)
    made.added = {"star": "\n".join(["KEPT = []", "box = []", above])}
    answer = answer if answer == IN_LIST else f"{answer}\n{BOXED}"
    assert made.scores(total=answer) == {"t_total": 0}


@pytest.mark.parametrize(
    "above",
    [
        "print = [].append\nprint(5)",
        "exec = print\nexec(5)",
        "def vars(x): return x\nORDER.append(vars(1))",
        "for type in (1, 2): pass",
        "import sys\nprint(sys, sys.version)",
    ],
)
def test_names_of_builtins_given_to_something_else_cost_nothing(task: Any, above: str) -> None:
    made = task(
        [
            ("look", "WANTED = 6"),
            ("total", RIGHT),
            ("t_total", "assert total([1, 2, 3]) == WANTED", 3),
        ]
    )
    made.added = {"look": f"ORDER = []\n{above}"}
    assert made.scores(total=f"{RIGHT} + (0 if ORDER else 0)") == {"t_total": 3}
