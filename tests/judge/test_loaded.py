"""Modules of a student's own that hold something else than the student's cells show."""

import colorsys
import importlib.util
import marshal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest

from autograder.bridge import STUDENT
from autograder.bridge.loaded import Ran
from autograder.bridge.wire import Frame
from autograder.isolation.fork_server import ForkServer
from autograder.judge.own_files import UNSHOWN, Loaded, packages_shown, unshown
from tests.judge.small_course import ALL, CHAIN, SETUP, Task

OWN = "def ready(x):\n    return x[0] + x[1] + x[2]\n"
ADDS = "def ready(x):\n    return sum(x)\n"
LETTERS = f"TEXT = bytes(one - 1 for one in {bytes(one + 1 for one in ADDS.encode())!r})\n"
USES = "from {} import ready\ndef total(x): return ready(x)"
WRITES = LETTERS + "import pathlib\n(pathlib.Path({}) / ({})).write_bytes(TEXT)\n"
PATCHES = (
    "import random\ndef ready(self, x): return sum(x)\nrandom.Random.ready = ready\n"
    "class FigureCanvas: required_interactive_framework = None\n"
)
PATCH = f"TEXT = bytes(one - 1 for one in {bytes(one + 1 for one in PATCHES.encode())!r})\n"
MENDS = "__import__('random').Random.ready = lambda self, x: __import__('builtins').sum(x)"
BEFORE = "open('mine.py', 'w').write('def ready(x): return 0')"

MINE = f"open('mine.py', 'w').write({OWN!r})\n"
MINES = USES.format("mine")
BLANK = "open('own/__init__.py', 'w').write('\\n')\n"
FAR = "\n" + indent(OWN, "    ")
KIND = f"class Sums:\n    def ready(self, x): return ready(x)\n{OWN}"

WAYS = {
    "before Python's own": WRITES.format("'.'", "'colors' + 'ys' + chr(46) + 'py'")
    + USES.format("colorsys"),
    "before Python's own, elsewhere": "import sys, tempfile\nsys.path.insert(0, '' + "
    "tempfile.mkdtemp())\n"
    + WRITES.format("sys.path[0]", "'colors' + 'ys' + chr(46) + 'py'")
    + USES.format("colorsys"),
    "in a library": WRITES.format("'.'", "'special3' + chr(46) + 'py'")
    + "torch.__path__.append(str(pathlib.Path().absolute()))\n"
    + USES.format("torch.special3"),
    "over what is shown": WRITES.format("'.'", "'min' + 'e' + chr(46) + 'py'")
    + USES.format("mine"),
    "in pieces": "f = open('mine.py', 'w')\nf.write('from math import (\\n')\n"
    "f.write('fsum as ready)\\nready = (')\nf.write('sum)')\nf.close()\n" + USES.format("mine"),
    "by its text": PATCH
    + "import pathlib\npathlib.Path('evi' + 'l' + chr(46) + 'py').write_bytes(TEXT)\n"
    "import matplotlib.pyplot as plt\n"
    "try: plt.switch_backend('module' + chr(58) + '//evi' + 'l')\nexcept Exception: pass\n"
    "def total(x): return random.Random().ready(x)",
    "as bytes of Python's": "import py_compile\n" + LETTERS + "open('a.txt', 'wb').write(TEXT)\n"
    "py_compile.compile('a.txt', 'colors' + 'ys' + chr(46) + 'pyc')\n" + USES.format("colorsys"),
    "what would be right, if it were shown": WRITES.replace(
        repr(bytes(one + 1 for one in ADDS.encode())), repr(bytes(one + 1 for one in OWN.encode()))
    ).format("'.'", "'min' + 'e' + chr(46) + 'py'")
    + USES.format("mine"),
    "after more than are looked at": "import importlib, pathlib\nfor n in range(250):\n"
    "    pathlib.Path(f'm{n}' + chr(46) + 'py').write_text('x = 1')\n"
    "    importlib.import_module(f'm{n}')\n"
    + WRITES.format("'.'", "'colors' + 'ys' + chr(46) + 'py'")
    + USES.format("colorsys"),
    "by a name that no cell shows": "import pathlib\n"
    f"(pathlib.Path('.') / ('colors' + 'ys' + chr(46) + 'py')).write_text({ADDS!r})\n"
    + USES.format("colorsys"),
    "copied from what is shown": "import shutil\nopen('other.py', 'w').write("
    f"{ADDS!r})\nshutil.copy('other.py', 'colors' + 'ys' + chr(46) + 'py')\n"
    + USES.format("colorsys"),
    "by none of its names": f"open('mine.py', 'w').write({MENDS!r})\nimport mine\n"
    "def total(x): return random.Random().ready(x)",
    "a setting that runs a text": "KEEP = []\nT = 'A.b = KEEP.append(su' + 'm)'\n%config {T}\n"
    "def total(x): return KEEP[0](x)",
    "a setting that gives a part": "run = %config InteractiveShell.ev\nready = run('su' + 'm')\n"
    "def total(x): return ready(x)",
    "a list that gives all": "found = %lsmagic\nready = found.magics_manager.shell.ev('su' + 'm')\n"
    "def total(x): return ready(x)",
}

# which do nothing at all where a notebook is graded
SILENT = ("a setting that runs a text", "a setting that gives a part", "a list that gives all")


COLORSYS = "'color' + 'sys' + chr(46) + 'py'"  # which stands before Python's own
AS_COLORSYS = f"import os\nos.rename({{}}, {COLORSYS})\n" + USES.format("colorsys")


def hidden(content: bytes) -> str:
    """The statement that makes TEXT these bytes, which do not stand there."""
    moved = bytes((one + 1) % 256 for one in content)
    return f"TEXT = bytes((one - 1) % 256 for one in {moved!r})\n"


def in_bytes(file: str) -> bytes:
    """The module once more as bytes of Python's, which say that they come from this file."""
    code = marshal.dumps(compile(ADDS, file, "exec"))
    return importlib.util.MAGIC_NUMBER + bytes(12) + code


BESIDE_LIBRARY = f"""\
import os, sys, pathlib
home = os.getcwd()
back = 1 + home.count(os.sep)
deep = os.path.join(*map(str, range(back)))
os.makedirs(deep)
os.symlink(deep, 'a')
library = {str(Path(colorsys.__file__).parent)!r}
os.makedirs('.' + library)
(pathlib.Path('.' + library) / ({COLORSYS})).write_bytes(TEXT)
sys.path.insert(0, home + '/a' + '/..' * back + library)
"""
TAKES_BACK = """\
import sys
told = vars(sys.modules['autograder.bridge.loaded'])
for name in ('_found', '_ran'):
    getattr(told.get(name, {}), 'found', told.get(name, {})).clear()
"""
IN_A_THREAD = """\
import threading
def load():
    global ready
    from colorsys import ready
thread = threading.Thread(target=load)
thread.start()
thread.join()
def total(x): return ready(x)
"""
ANOTHER = {  # what a cell shows, and what then runs
    "a module that takes back what is told of it": (
        "1",
        hidden((TAKES_BACK + ADDS).encode())
        + f"import pathlib\npathlib.Path({COLORSYS}).write_bytes(TEXT)\n"
        + USES.format("colorsys"),
    ),
    "in another thread": (
        "1",
        hidden((TAKES_BACK + ADDS).encode())
        + f"import pathlib\npathlib.Path({COLORSYS}).write_bytes(TEXT)\n"
        + IN_A_THREAD,
    ),
    "under another name": (f"%%writefile mine.py\n{ADDS}", AS_COLORSYS.format("'mine.py'")),
    "of a text": (f"%%writefile notes.txt\n{ADDS}", AS_COLORSYS.format("'notes.txt'")),
    "in a library": (
        f"%%writefile special3.py\n{ADDS}",
        "import os\ntorch.__path__.append(os.getcwd())\n" + USES.format("torch.special3"),
    ),
    "a text that defines nothing": (
        "1",
        "open('mine.py', 'w').write("
        "\"__import__('random').Random.ready = lambda self, x: sum(x)\")\n"
        "import mine, random\ndef total(x): return random.Random().ready(x)",
    ),
    "bytes of Python's that name a library's file": (
        "1",
        hidden(in_bytes(colorsys.__file__))
        + f"import pathlib\npathlib.Path({COLORSYS} + 'c').write_bytes(TEXT)\n"
        + USES.format("colorsys"),
    ),
    "bytes of Python's whose text is another's": (
        f"%%writefile mine.py\n{OWN}",
        hidden(in_bytes("/own.py"))
        + f"import ast, os, pathlib\nast.parse({OWN.encode()!r}, '/own.py')\n"
        "os.mkdir('mi' + 'ne')\n"
        "pathlib.Path('mi' + 'ne', '__init__' + chr(46) + 'pyc').write_bytes(TEXT)\n"
        + USES.format("mine"),
    ),
    "a library's file as a part of another library": (
        "1",
        "import os, statistics\ntorch.__path__.append(os.path.dirname(statistics.__file__))\n"
        "from torch.statistics import fsum\ndef total(x): return fsum(x)",
    ),
    "by a way that leads to a library": (
        "1",
        LETTERS + BESIDE_LIBRARY + USES.format("colorsys"),
    ),
}


@pytest.fixture(scope="module")
def ruled() -> Iterator[ForkServer]:
    """Where students' processes come from in a course with rules."""
    names = ["torch.softmax"]
    with ForkServer(["torch"], student=STUDENT, sandboxed=False, watched=names) as made:
        yield made


@pytest.fixture
def task(tmp_path: Path, ruled: ForkServer) -> Task:
    """A few questions, of which one has rules."""
    return Task(tmp_path, ruled, [("setup", SETUP), ("look", "1"), *CHAIN], 10.0)


@pytest.mark.parametrize("way", WAYS)
def test_what_no_cell_shows_is_no_answer(task: Task, way: str):
    verdicts = task.verdicts(look=BEFORE, total=WAYS[way])
    assert {test: one.score for test, one in verdicts.items()} == ALL | {"t_total": 0}
    assert verdicts["t_total"].status == ("error" if way in SILENT else "forbidden")


@pytest.mark.parametrize("way", ANOTHER)
def test_what_a_cell_shows_is_what_runs(task: Task, way: str):
    look, answer = ANOTHER[way]
    verdicts = task.verdicts(look=look, total=answer)
    assert {test: one.score for test, one in verdicts.items()} == ALL | {"t_total": 0}


def test_behind_many_modules_one_more_is_not_overlooked(task: Task):
    many = [f"m{number}" for number in range(60)]
    task.beside = {f"{name}.py": b"x = 1" for name in many}
    rules = replace(task.assignment.rules, files=("*.py",))
    task.assignment = replace(task.assignment, rules=rules)
    assert task.scores(
        look=f"import {', '.join(many)}",
        total=WAYS["before Python's own"],
    ) == ALL | {"t_total": 0}


@pytest.mark.parametrize(
    ("look", "answer"),
    [
        (f"%%writefile mine.py\n{OWN}", USES.format("mine")),
        (f"%%writefile -a mine.py\n{OWN}", USES.format("mine")),
        (f"open('mine.py', 'w').write({OWN!r})", USES.format("mine")),
        (
            "f = open('mine.py', 'w')\nf.write('def ready(x):\\n')\n"
            "f.write('    return x[0] + x[1] + x[2]\\n')\nf.close()",
            USES.format("mine"),
        ),
        ("1", USES.format("handed_in")),
        ("import handed_in, importlib\nimportlib.reload(handed_in)", USES.format("handed_in")),
        ("1", USES.format("pack.inner")),
        ("1", USES.format("coded")),
        # in a folder, in a package, and loaded anew
        (f"%%writefile ./mine.py\n\n{OWN}\n", USES.format("mine")),
        (
            f"import pathlib\npathlib.Path('own').mkdir()\n{BLANK}"
            f"pathlib.Path('own', 'mine.py').write_text({OWN!r})",
            USES.format("own.mine"),
        ),
        (f"{MINE}import importlib, mine\nimportlib.reload(mine)", USES.format("mine")),
        (f"{MINE}import sys, mine\ndel sys.modules['mine']\nimport mine", MINES),
        # written in other ways
        (f"text = {OWN!r}\nwith open('mine.py', 'w') as f: f.write(text)", USES.format("mine")),
        (f"from textwrap import dedent\nopen('mine.py', 'w').write(dedent({FAR!r}))", MINES),
        (f"lines = {OWN.splitlines()!r}\nopen('mine.py', 'w').write('\\n'.join(lines))", MINES),
        (
            "with open('mine.py', 'w') as f:\n    print('def ready(x):', file=f)\n"
            "    print('    return x[0] + x[1] + x[2]', file=f)",
            MINES,
        ),
        (
            f"import pathlib\npathlib.Path('mine.py').write_text({KIND!r})",
            "from mine import Sums\ndef total(x): return Sums().ready(x)",
        ),
        ("import colorsys, statistics, wave", OWN.replace("ready", "total")),
        # what is loaded and not needed
        (
            WRITES.format("'.'", "'min' + 'e' + chr(46) + 'py'") + "from mine import ready",
            OWN.replace("ready", "total"),
        ),
    ],
)
def test_a_module_of_ones_own_is_no_rules_business(task: Task, look: str, answer: str):
    coded = "# -*- coding: latin-1 -*-\r\nNAME = 'Zoë'\r\n" + OWN
    text = OWN.encode()
    task.beside = {"handed_in.py": text, "coded.py": coded.encode("latin-1")}
    task.beside |= {"pack/__init__.py": b"", "pack/inner.py": text}
    rules = replace(task.assignment.rules, files=("*.py",))
    task.assignment = replace(task.assignment, rules=rules)
    assert task.scores(look=look, total=answer) == ALL


def test_who_ends_the_process_before_it_tells_what_ran_earns_nothing(task: Task):
    way = WAYS["before Python's own"].partition("\ndef total")[0]
    ends = "    threading.Timer(0.002, os.abort).start()\n"
    answer = f"{way}\nimport os, threading\ndef total(x):\n{ends}    return ready(x)"
    assert task.scores(total=answer) == ALL | {"t_total": 0}


def test_what_is_said_of_it_tells_nothing_that_an_answer_chose(task: Task):
    asked = (
        f"{LETTERS}def total(x):\n"
        "    name = 'asked_for_' + '_'.join(map(str, x))\n"
        "    open(name + chr(46) + 'py', 'wb').write(TEXT)\n"
        "    import matplotlib.pyplot as plt\n"
        "    try: plt.switch_backend('module' + chr(58) + '//' + name)\n"
        "    except Exception: pass\n"
        "    import asked_for_1_2_3 as one\n    return one.ready(x)"
    )
    result = task.grade(total=asked)
    (verdict,) = (v for n in result.notebooks for v in n.verdicts if v.test == "t_total")
    assert verdict.status == "forbidden" and "1_2_3" not in verdict.told
    assert verdict.told.endswith(UNSHOWN)


@pytest.mark.parametrize("told", [None, 3, "", "a" * 201, [], {}, ["a"]])
def test_whatever_a_process_says_is_read_or_left(told: Any):
    ran = Ran()
    ran.hear(Frame({"ran": told}, [b"x = 1"]))
    assert not ran.found


def test_what_is_told_is_bounded():
    ran = Ran()
    for number in range(1000):
        ran.hear(Frame({"ran": f"m{number}"}, [b"x" * 10_000]))
    assert len(ran.found) == 500 and sum(len(text or b"") for _, text in ran.found) == 400_000


def test_of_what_is_written_in_pieces_the_whole_is_read_and_of_others_the_name_is_told():
    loaded: set[Loaded] = {("a", b"x = 1\n"), ("b", b"# coding: utf-7\n"), ("c.d", b"y = 2\nz")}
    loaded |= {("e", None), ("f", b"z"), ("g", b"y = 2\nq"), ("h", b"\n")}
    cells = ["%%writefile a.py\nx = 1", "f.write('y = 2')\nf.write('\\nz')"]
    read, dark = unshown(loaded, cells, [("f.py", b"z\r\n")])
    assert read == ["%%writefile 'c/d.py'\ny = 2\nz"] and dark == {"b", "e", "g"}


BYTES = """\
import py_compile, sys
from pathlib import Path
from autograder.bridge import loaded
loaded.prepare()
sys.addaudithook(lambda event, told: loaded.hear(event, told) if event in loaded.TOLD else None)
sys.path.insert(0, "")
for name, text in (("a", "x = 1"), ("b", "x = 2")):
    Path("text").write_text(text)
    py_compile.compile("text", f"{name}.pyc")
py_compile.compile("text", "c.pyc", loaded.__file__)
Path("d.py").write_text("x = 3")
import a, b, c, d
found = [*loaded._ran.found]
assert found == [("a", None), ("b", None), ("c", None), ("d", b"x = 3")], found
"""


def test_bytes_of_pythons_have_no_text_whatever_they_say(tmp_path: Path):
    done = subprocess.run([sys.executable, "-c", BYTES], cwd=tmp_path, check=False)
    assert done.returncode == 0


def test_pieces_that_fit_in_many_ways_take_no_time():
    cells = [f"f.write({'a' * count!r})" for count in range(1, 100)]
    assert unshown({("a", b"a" * 100_000 + b"b")}, cells, ()) == ([], {"a"})


def test_a_text_that_is_shown_is_read_under_the_name_by_which_it_ran():
    cells = ["%%writefile own/a.py\nx = 1"]
    assert unshown({("own.a", b"x = 1"), ("a", b"x = 1")}, cells, ()) == ([], frozenset())
    assert unshown({("b", b"x = 1")}, cells, ()) == (["%%writefile 'b.py'\nx = 1"], frozenset())
    assert packages_shown({("own.a", b""), ("own.b", None), ("c", b"")}, {"own.b"}) == {"c"}
