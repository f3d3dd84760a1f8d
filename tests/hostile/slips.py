"""Slips that anybody makes: each costs its own question at most, and the others keep their points.

Some are what Python's parser takes and its compiler refuses, some give what cannot be printed, some
start a second process; some are no slip at all in a notebook, and lose nothing.
"""

from tests.hostile.course import RIGHT
from tests.hostile.rows import HONEST_ELSE, ONLY_SQUARE
from tests.hostile.steps import FULL, Row, answers, bodies, extra, prefix, right, row

# A lost point is what makes the grader look at the names of the answers that failed.
SQUARE_LEFT_OPEN = HONEST_ELSE
NORM_LOST_TOO = "0/3/2/0/1/2"


def gives(id: str, text: str) -> Row:
    """A value in place of a square; everything else is right."""
    return row(f"gives-{id}", HONEST_ELSE, bodies(square=text), expected=ONLY_SQUARE)


def refused(id: str, text: str) -> Row:
    """Norm's own text is refused by the compiler; square is left open, so that names are read."""
    return row(
        f"refused-{id}",
        SQUARE_LEFT_OPEN,
        answers(norm=text),
        expected=NORM_LOST_TOO,
        says="t_norm: (error|unanswered)",
    )


def beside(id: str, text: str) -> Row:
    """A cell of one's own that the compiler refuses, and everything right."""
    return row(f"beside-{id}", right(), extra(text, before="square"), expected=FULL)


NORM = "def norm(numbers):\n    "
REFUSED = [
    refused("doubled-argument", "def norm(numbers, numbers):\n    return square(numbers[0])"),
    refused("late-global", NORM + "COUNT += 1\n    global COUNT\n    return square(COUNT)"),
    refused("nonlocal-of-nothing", NORM + "nonlocal total\n    return square(total)"),
    refused("nonlocal-at-the-top", "nonlocal square\n" + RIGHT["norm"]),
    refused("star-in-a-function", NORM + "from math import *\n    return sqrt(square(3))"),
    refused("doubled-lambda", "norm = lambda numbers, numbers: square(numbers)"),
    refused("return-at-the-top", RIGHT["norm"] + "\nreturn norm"),
    refused("walrus-in-a-class", "class A:\n    x = [y := 1 for z in [2]]\n" + RIGHT["norm"]),
    row(  # Python takes it; only to write it down again was refused
        "refused-nothing-huge-hex",
        SQUARE_LEFT_OPEN,
        answers(norm=RIGHT["norm"].replace("return", f"HUGE = 0x{'f' * 5000}\n    return")),
        expected=ONLY_SQUARE,
    ),
    beside("doubled-lambda", "scratch = lambda a, a: 1"),
    beside("late-global", "def f():\n    torch = 1\n    global torch"),
    beside("star-in-a-function", "def f():\n    from torch import *"),
    beside("a-name-without-end", "import " + "a." * 90_000 + "a"),
    beside("deep", "torch_ = " + "-" * 90_000 + "1"),
]

LOOP = "part = []\npart += [part, part]\n"
UNPRINTABLE = [
    gives("fraction", "from fractions import Fraction\nreturn Fraction(10 ** 5000, 3)"),
    gives("slice", "return slice(1, 10 ** 5000)"),
    gives("deque", "from collections import deque\nreturn deque([10 ** 5000])"),
    gives("range", "return range(10 ** 5000, 10 ** 5000 + 5)"),
    gives("key", "return {10 ** 5000: 1, (10 ** 5000,): 2, float('nan'): 3}"),
    gives("signal", "from decimal import Decimal\nreturn [Decimal('sNaN')]"),
    gives("itself", LOOP + "return part"),
    gives(
        "itself-in-a-table",
        LOOP + "from collections import OrderedDict\nreturn OrderedDict(x=part)",
    ),
    gives(
        "doubled",
        "from collections import OrderedDict\npart = [1]\nfor _ in range(40):\n"
        "    part = [part, part]\nreturn OrderedDict(x=part)",
    ),
    gives(
        "object-in-a-deque",
        "from collections import deque\n"
        "class Loops:\n    def __repr__(self):\n        while True: pass\n"
        "return deque([Loops()])",
    ),
    gives("text", "raise ValueError('\\ud800' * 10 ** 6)"),
]

FORK = "import os\npid = os.fork()\n"
FORKS = [
    row("fork-at-the-top", right(), extra(FORK, before="square"), expected=FULL),
    row(
        "fork-and-wait",
        right(),
        extra(FORK + "if pid:\n    os.waitpid(pid, 0)", before="square"),
        expected=FULL,
    ),
    row(
        "fork-that-writes-later",
        right(),
        extra(
            FORK + "if not pid:\n    import time\n    time.sleep(0.3)\n    print('late')",
            before="square",
        ),
        expected=FULL,
    ),
    row("fork-in-an-answer", HONEST_ELSE, bodies(square=FORK + "return x * x"), expected=FULL),
    row(
        "fork-of-a-terminal",
        right(),
        extra("import os\ntry:\n    os.forkpty()\nexcept OSError:\n    pass", before="square"),
        expected=FULL,
    ),
    row(
        "fork-by-the-library",
        right(),
        extra("import ctypes\nctypes.CDLL(None).fork()", before="square"),
        expected=FULL,
    ),
    row(
        "fork-of-multiprocessing",
        right(),
        extra(
            "import multiprocessing\nways = multiprocessing.get_context('fork')\n"
            "done = ways.Process(target=print)\ndone.start()\ndone.join()",
            before="square",
        ),
        expected=FULL,
    ),
    row(
        "fork-of-a-subprocess",
        right(),
        extra("import subprocess\nsubprocess.run(['true'], check=False)", before="square"),
        expected=FULL,
    ),
]

LEFT_OUT = [
    row(
        "file-written-and-imported",
        right(),
        extra("%%writefile helper.py\ndef double(x):\n    return 2 * x", before="square"),
        extra("from helper import double", before="square"),
        bodies(square="return double(x) * x / 2"),
        expected=FULL,
    ),
    row(
        "file-added-to",
        right(),
        extra("%%writefile helper.py\nONE = 1", before="square"),
        extra("import helper", before="square"),
        extra("%%writefile -a helper.py\n\nTWO = 2\n", before="square"),
        extra("import importlib\nimportlib.reload(helper)", before="square"),
        bodies(square="return x ** helper.TWO"),
        expected=FULL,
    ),
    row(
        "magics-left-out",
        right(),
        prefix("square", "%pip install nothing\n!ls\nfiles = !ls\n"),
        extra("%%bash\nrm -rf *"),
        expected=FULL,
        says="%%bash is left out",
    ),
    row(
        "cuda-asked-for",
        HONEST_ELSE,
        bodies(square="return torch.ones(1).cuda() * x"),
        expected=ONLY_SQUARE,
        says="no GPU",
    ),
    row(
        "double-by-default",
        right(),
        extra("torch.set_default_dtype(torch.float64)", before="square"),
        expected=FULL,
        says="set_default_dtype",
    ),
]

ENDLESS = [  # the test itself works in C, where nothing interrupts it
    row(
        "test-without-end",
        right(but=("norm",)),
        bodies(norm="norm.calls = getattr(norm, 'calls', 0) + 1\nreturn 5.0 ** norm.calls ** 4"),
        expected="2/3/2/0/1/2",
        says="t_norm: timeout",
        flag="timeout",
    ),
]

SLIPS = [*REFUSED, *UNPRINTABLE, *FORKS, *LEFT_OUT, *ENDLESS]
