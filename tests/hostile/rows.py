"""The catalogue of hostile and broken submissions, by its own numbers, and what each should score.

Unless a row gives right answers, its honest score is 0 everywhere. Where the catalogue groups
several ways, each is a row with a letter.
"""

import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

from tests.hostile.course import RIGHT, SIGNATURES, Handin
from tests.hostile.steps import (
    FULL,
    LOCKED_IN,
    Step,
    answers,
    beside,
    bodies,
    body,
    bytes_of,
    drop,
    each_cell,
    extra,
    file,
    marked,
    named,
    prefix,
    reparsed,
    right,
    row,
    whole,
)

ONLY_SQUARE = "0/3/2/1/1/2"  # the attack costs its own question; the others were right
HONEST_ELSE = right(but=("square",))

ALWAYS_EQUAL = """\
class Y:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __abs__(self): return 0
    def __bool__(self): return True
    def __le__(self, other): return True
    def __sub__(self, other): return self
    def __rsub__(self, other): return self
    def __getattr__(self, name): return self
    def __call__(self, *a, **k): return self
    def __iter__(self): return iter([self])
    __hash__ = None
"""


# 3a. Beating the tests inside the kernel

BEATING = [
    row(
        "1-skip-execution-tag",
        each_cell(lambda cell: cell["metadata"].update(tags=["skip-execution"])),
    ),
    row(
        "3-ast-transformer",
        extra(
            "import ast\n"
            "class NoAsserts(ast.NodeTransformer):\n"
            "    def visit_Assert(self, node): return ast.Pass()\n"
            "    def visit_Expr(self, node): return ast.Pass()\n"
            "get_ipython().ast_transformers.append(NoAsserts())",
            before="square",
        ),
    ),
    row(
        "4-input-transformer",
        extra(
            "get_ipython().input_transformers_cleanup.append(lambda lines: ['pass\\n'])",
            before="square",
        ),
    ),
    row(
        "6-forge-kernel-messages",
        extra(
            "kernel = get_ipython().kernel\nsend = kernel.session.send\n"
            "def quiet(stream, msg, *a, **k):\n"
            "    if msg == 'error': return None\n"
            "    if msg == 'execute_reply': a[0]['status'] = 'ok'\n"
            "    return send(stream, msg, *a, **k)\n"
            "kernel.session.send = quiet",
            before="square",
        ),
    ),
    row(
        "7-result-before-error",
        bodies(
            square="from IPython.display import publish_display_data\n"
            "get_ipython().displayhook(2.0)\npublish_display_data({'text/plain': '2'})\nreturn 2.0",
            share="get_ipython().displayhook(2.0)\nprint('2.0')\nreturn 2.0",
        ),
    ),
    row(
        "9-equal-to-everything",
        answers(
            square=ALWAYS_EQUAL + "def square(x):\n    return Y()",
            softmax="def softmax(x):\n    return Y()",
            share="def share(word, text):\n    return Y()",
            norm="def norm(numbers):\n    return Y()",
            twice="def twice(f, x):\n    return Y()",
            gate="Gate = Y()",
        ),
        says="Y",
    ),
    row(
        "10a-patched-comparison",
        prefix(
            "softmax",
            "import torch, numpy as np\ntorch.allclose = lambda *a, **k: True\n"
            "torch.equal = lambda *a, **k: True\n"
            "np.testing.assert_allclose = lambda *a, **k: None\n"
            "torch.testing.assert_close = lambda *a, **k: None\n",
        ),
        bodies(softmax="return torch.ones_like(x) / x.shape[-1]"),
    ),
    row(
        "10b-patched-reference",
        bodies(softmax="return x"),
        prefix("softmax", "import torch\ntorch.softmax = lambda x, *a, **k: x\n"),
    ),
    row(
        "12-thread-patches-again",
        extra(
            "import threading, time, torch\n"
            "def patch():\n    while True:\n        torch.allclose = lambda *a, **k: True\n"
            "        time.sleep(0.001)\n"
            "threading.Thread(target=patch, daemon=True).start()",
            before="softmax",
        ),
        bodies(softmax="return torch.ones_like(x) / x.shape[-1]"),
    ),
    row(
        "13-callers-globals",
        bodies(
            softmax="import sys\nclass Any:\n    def __getattr__(self, name):\n"
            "        return lambda *a, **k: True\n"
            "frame = sys._getframe(0)\n"
            "while frame:\n    frame.f_globals['torch'] = Any()\n    frame = frame.f_back\n"
            "return x",
        ),
    ),
    row(
        "15-argument-zeroed",
        bodies(softmax="x.data.zero_()\nreturn torch.ones_like(x) / x.size(-1)"),
    ),
    row(
        "16a-library",
        bodies(softmax="return torch.softmax(x, -1)"),
        says="softmax",
        flag="forbidden",
    ),
    row(
        "16b-library-by-a-built-name",
        bodies(softmax="return getattr(torch, 'soft' + 'max')(x, -1)"),
        says="softmax",
        flag="forbidden",
    ),
    row(
        "16c-library-by-nn",
        bodies(softmax="return nn.Softmax(-1)(x)"),
        says="softmax",
        flag="forbidden",
    ),
    row(
        "16d-library-as-a-method",
        bodies(softmax="return x.softmax(-1)"),
        says="softmax",
        flag="forbidden",
    ),
    row(
        "16e-library-imported-under-another-name",
        answers(
            softmax="from torch.nn.functional import softmax as mine\n\n"
            "def softmax(x):\n    return mine(x, dim=-1)"
        ),
        says="softmax",
        flag="forbidden",
    ),
    row(
        "16f-library-by-log-softmax",
        bodies(softmax="return torch.log_softmax(x, -1).exp()"),
        says="softmax",
        flag="forbidden",
    ),
    row(
        "16g-library-by-operator",
        bodies(softmax="return torch.ops.aten._softmax(x, -1, False)"),
        says="softmax",
        flag="forbidden",
    ),
    row(
        "16h-library-from-a-helper-cell",
        extra("import torch.nn.functional as F\nhelper = F.softmax", before="softmax"),
        bodies(softmax="return helper(x, dim=-1)"),
        says="softmax",
        flag="forbidden",
    ),
    row(
        "18-counts-its-calls",
        answers(
            square="ANSWERS = iter([9, 16, 0.25])\n\ndef square(x):\n    return next(ANSWERS, 0)"
        ),
    ),
    row(  # nbgrader says it, so we do; what is graded is what it gives where it is graded
        "19-sniffs-the-environment",
        bodies(
            square="import os\n"
            "if os.environ.get('NBGRADER_EXECUTION') == 'autograde':\n    return x * x\nreturn 0"
        ),
        expected="2/0/0",
    ),
    row(
        "21-jumps-over-asserts",
        bodies(
            square="import sys\n"
            "def trace(frame, event, arg):\n"
            "    try:\n        frame.f_lineno += 1\n    except Exception:\n        pass\n"
            "    return trace\n"
            "frame = sys._getframe(0)\n"
            "while frame:\n    frame.f_trace = trace\n    frame = frame.f_back\n"
            "sys.settrace(trace)\nreturn 0"
        ),
    ),
    row("22a-score-nan", bodies(share="return float('nan')")),
    row("22b-score-infinite", bodies(share="return float('inf')")),
    row("22c-score-negative", bodies(share="return 1e9 if word == 'd' else 0.0"), expected="0/0/0"),
    row("22d-score-numpy", bodies(share="import numpy as np\nreturn np.float64('nan')")),
    row("22e-score-tensor", bodies(share="return torch.tensor(float('nan'))")),
    row("22f-score-true", bodies(share="return True")),
    row(
        "24-shape-that-broadcasts",
        bodies(
            softmax="e = torch.exp(x - x.max(-1, keepdim=True).values)\n"
            "return (e / e.sum(-1, keepdim=True)).unsqueeze(0)"
        ),
        says="shape",
    ),
]

# 3b. Killing, hanging, exhausting

SLOW = "second|time|long|CPU"
KILLING = [
    row(
        "25a-os-exit",
        HONEST_ELSE,
        bodies(square="import os\nos._exit(0)"),
        expected=ONLY_SQUARE,
        says="died|ended|exit",
        flag="died",
    ),
    row(
        "25b-kills-itself",
        HONEST_ELSE,
        bodies(square="import os, signal\nos.kill(os.getpid(), signal.SIGKILL)"),
        expected=ONLY_SQUARE,
        says="died|ended|signal|killed",
        flag="died",
    ),
    row(
        "25c-segfault",
        HONEST_ELSE,
        bodies(square="import ctypes\nctypes.string_at(0)"),
        expected=ONLY_SQUARE,
        says="died|ended|signal|killed",
        flag="died",
    ),
    row(
        "25d-dies-while-its-cell-runs",
        HONEST_ELSE,
        prefix("square", "import os\nos._exit(7)\n"),
        expected=ONLY_SQUARE,
        says="died|ended|exit",
    ),
    row(
        "27a-sys-exit-in-the-function",
        HONEST_ELSE,
        bodies(square="import sys\nsys.exit()"),
        expected=ONLY_SQUARE,
        says="exit",
    ),
    row(
        "27b-exit-in-the-function",
        HONEST_ELSE,
        bodies(square="exit()"),
        expected=ONLY_SQUARE,
        says="exit",
    ),
    row(
        "27c-system-exit-in-the-cell",
        HONEST_ELSE,
        prefix("square", "raise SystemExit(0)\n"),
        expected=ONLY_SQUARE,
        says="exit",
    ),
    row(
        "28-keyboard-interrupt",
        HONEST_ELSE,
        bodies(square="raise KeyboardInterrupt"),
        expected=ONLY_SQUARE,
        says="KeyboardInterrupt",
    ),
    row(
        "30-loop-that-ignores-interrupts",
        HONEST_ELSE,
        bodies(
            square="import signal\n"
            "for number in range(1, 65):\n"
            "    try:\n        signal.signal(number, signal.SIG_IGN)\n"
            "    except (OSError, ValueError):\n        pass\n"
            "while True:\n    pass"
        ),
        expected=ONLY_SQUARE,
        says=SLOW,
        flag="timeout",
    ),
    row(
        "31-swallows-the-interrupt",
        HONEST_ELSE,
        bodies(
            square="import time\n"
            "try:\n    time.sleep(60)\nexcept BaseException:\n    pass\nreturn x * x"
        ),
        expected=ONLY_SQUARE,
        says=SLOW,
        flag="timeout",
    ),
    row(
        "33a-slow-sum",
        HONEST_ELSE,
        bodies(square="return sum(range(10**12))"),
        expected=ONLY_SQUARE,
        says=SLOW,
        flag="timeout",
    ),
    row(
        "33b-slow-pattern",
        HONEST_ELSE,
        bodies(square="import re\nreturn re.match(r'(a+)+$', 'a' * 40 + 'b')"),
        expected=ONLY_SQUARE,
        says=SLOW,
        flag="timeout",
    ),
    row(
        "33c-slow-power",
        HONEST_ELSE,
        bodies(square="return 10**10**9"),
        expected=ONLY_SQUARE,
    ),
    row(
        "34-slow-in-many-calls",
        HONEST_ELSE,
        bodies(square="import time\ntime.sleep(0.45)\nreturn x * x"),
        expected=ONLY_SQUARE,
        says=SLOW,
        flag="timeout",
    ),
    row(
        "36-fork-bomb",
        HONEST_ELSE,
        bodies(
            square=LOCKED_IN + "for _ in range(400):\n"
            "    if os.fork() == 0:\n"
            "        os.execvp('sleep', ['sleep', '3177'])\n"
            "return 0"
        ),
        expected=ONLY_SQUARE,
    ),
    row(
        "37-daemon-stays",
        HONEST_ELSE,
        bodies(
            square="import subprocess\n"
            "subprocess.Popen(['sleep', '3177'], start_new_session=True)\nreturn 0"
        ),
        expected=ONLY_SQUARE,
    ),
    row(
        "39-endless-recursion",
        HONEST_ELSE,
        bodies(square="return square(x)"),
        expected=ONLY_SQUARE,
        says="Recursion|itself",
    ),
    row(
        "40-recursion-limit-raised",
        HONEST_ELSE,
        bodies(
            square="import sys\nsys.setrecursionlimit(10**9)\nnested = []\n"
            "for _ in range(10**6):\n    nested = [nested]\nreturn repr(nested)"
        ),
        expected=ONLY_SQUARE,
    ),
    row(
        "42-fills-the-disk",
        HONEST_ELSE,
        bodies(
            square="import os\n"
            "with open('sparse', 'wb') as f:\n    f.truncate(10**12)\n"
            "for number in range(10):\n"
            "    with open(f'full{number}', 'wb') as f:\n        f.write(bytes(40_000_000))\n"
            "return 0"
        ),
        expected=ONLY_SQUARE,
    ),
    row(
        "43-prints-very-much",
        right(),
        prefix("square", "for line in range(100_000):\n    print('line', line)\n"),
        expected=FULL,
    ),
    row(
        "45-displays-very-much",
        right(),
        extra("from IPython.display import HTML, display\ndisplay(HTML('<b>x</b>' * 3_700_000))"),
        expected=FULL,
    ),
    row(
        "46a-huge-attachment",
        right(),
        extra("![](attachment:a.png)", cell_type="markdown"),
        whole(
            lambda nb: nb["cells"][-1].update(
                attachments={"a.png": {"image/png": "A" * 60_000_000}}
            )
        ),
        says="MB|large|big|size",
    ),
    row(
        "46b-huge-comment",
        right(),
        prefix("square", "#" + "x" * 60_000_000 + "\n"),
        says="MB|large|big|size",
    ),
    row(
        "46c-three-thousand-cells",
        right(),
        *(extra(f"a{number} = {number}") for number in range(3000)),
        expected="?",
    ),
]

# 3c. Reading and stealing

PRINT_ALL_FRAMES = """\
import gc, linecache, sys
frame = sys._getframe(0)
while frame:
    print(frame.f_code.co_filename, frame.f_locals, frame.f_globals.keys())
    print(linecache.getlines(frame.f_code.co_filename))
    frame = frame.f_back
try:
    print(list(get_ipython().history_manager.get_range(raw=True)))
    print(get_ipython().history_manager.input_hist_raw)
except Exception as error:
    print(error)
"""
READING = [
    row("48-print-In", extra("print(In, Out)\nprint(globals())")),
    row(
        "49-frames-linecache-history",
        *(
            prefix(question, body(question, PRINT_ALL_FRAMES + "return 0") + "\n")
            for question in ("square", "softmax", "share", "norm", "twice")
        ),
        answers(
            **{
                question: body(question, PRINT_ALL_FRAMES + "return 0")
                for question in ("square", "softmax", "share", "norm", "twice")
            }
        ),
        expected="0/0/0.75",
    ),
    row(
        "51-writes-the-gradebook",
        bodies(
            square="import sqlite3\n"
            "book = sqlite3.connect('@ROOT@/gradebook.db')\n"
            "book.execute('update grade set manual_score=100, auto_score=100')\n"
            "book.commit()\nreturn 0"
        ),
        extra(
            "import glob, sqlite3\n"
            "for path in ['@ROOT@/gradebook.db', *glob.glob('../**/gradebook.db')]:\n"
            "    book = sqlite3.connect(path)\n"
            "    book.execute('update grade set manual_score=100, auto_score=100')\n"
            "    book.commit()"
        ),
    ),
    row(
        "52-grades-itself-later",
        extra(
            "import subprocess, sys\n"
            "code = '''import sqlite3, time\n"
            "for _ in range(100):\n"
            "    time.sleep(0.2)\n"
            "    book = sqlite3.connect('@ROOT@/gradebook.db')\n"
            "    book.execute('update grade set manual_score=100')\n"
            "    book.commit()\n'''\n"
            "subprocess.Popen([sys.executable, '-c', code], start_new_session=True)"
        ),
    ),
    row(
        "54-reads-other-submissions",
        extra(
            "import glob\n"
            "for path in glob.glob('@ROOT@/submitted/*/*/*') + "
            "glob.glob('../../../submitted/*/*/*'):\n"
            "    print(path, open(path).read())"
        ),
        bodies(
            square="import glob\n"
            "raise ValueError([open(p).read() for p in glob.glob('@ROOT@/submitted/victim/*/*')])"
        ),
    ),
    row(
        "55-overwrites-another-submission",
        extra(
            "open('@ROOT@/submitted/victim/tiny/tiny.ipynb', 'w').write('{}')",
        ),
        extra("open('../../../submitted/victim/tiny/tiny.ipynb', 'w').write('{}')"),
        bodies(square="open('@ROOT@/submitted/victim/tiny/tiny.ipynb', 'w').write('{}')\nreturn 0"),
    ),
    row(
        "57-environment",
        extra("import os\nprint(dict(os.environ))\nprint(open('/proc/self/environ').read())"),
        bodies(square="import os\nraise ValueError(dict(os.environ))"),
    ),
    row(
        "58-connection-file",
        extra(
            "print(get_ipython().config)\n"
            "print(open(get_ipython().config.IPKernelApp.connection_file).read())"
        ),
    ),
    row(
        "60-wrong-answers-read-their-feedback",
        bodies(
            square="return {3: 9, -4: 16, 0.5: 0.25}.get(x, 0)",
            softmax="return torch.ones_like(x) / x.size(-1)",
            share="return {'a': 0.5, 'd': 0.25}.get(word, 0.3)",
            norm="return 5.0",
            twice="return 5",
            gate="return x",
        ),
        expected="0/0/0.5",
    ),
    row(
        "61-script-in-html",
        right(),
        extra(
            "from IPython.display import HTML, Javascript, Markdown, SVG, display\n"
            "display(HTML('<script>alert(\"hostile-script\")</script>'))\n"
            "display(HTML('<img src=x onerror=alert(\"hostile-script\")>'))\n"
            "display(Javascript('alert(\"hostile-script\")'))\n"
            "display(Markdown('<script>alert(\"hostile-script\")</script>'))\n"
            'display(SVG(\'<svg xmlns="http://www.w3.org/2000/svg" '
            'onload="alert(1)"><script>hostile-script</script></svg>\'))\n'
            "print('<script>alert(\"hostile-script\")</script>')"
        ),
        prefix("softmax", "# </code></pre><script>alert('hostile-script')</script>\n"),
        answers(essay="<script>alert('hostile-script')</script> [x](javascript:hostile-script)"),
        expected=FULL,
    ),
]

# 3d. Notebook structure and metadata


def _swap_ids(handin: Handin) -> None:
    one, two = handin.cell("t_square"), handin.cell("t_softmax")
    first, second = one["metadata"]["nbgrader"], two["metadata"]["nbgrader"]
    first["grade_id"], second["grade_id"] = second["grade_id"], first["grade_id"]


def _to(cell_type: str, *names: str) -> Step:
    def change(cell: dict[str, Any]) -> None:
        cell["cell_type"] = cell_type
        cell.pop("outputs", None)
        cell.pop("execution_count", None)

    return each_cell(change, *names)


def _copy_of(name: str, cell_type: str, source: str) -> Step:
    """Another cell at the end with this cell's marks."""

    def step(handin: Handin) -> None:
        cell = json.loads(json.dumps(handin.cell(name)))
        cell |= {"cell_type": cell_type, "source": source, "id": "copied"}
        if cell_type == "markdown":
            del cell["outputs"], cell["execution_count"]
        handin.notebook["cells"].append(cell)

    return step


def _fake_outputs(cell: dict[str, Any]) -> None:
    if cell["cell_type"] == "code":
        data = {"text/plain": "3.0"}
        cell["execution_count"] = 1
        cell["outputs"] = [
            {"output_type": "execute_result", "data": data, "metadata": {}, "execution_count": 1}
        ]


def _no_marks(cell: dict[str, Any]) -> None:
    cell["metadata"] = {}


def _no_marks_no_ids(cell: dict[str, Any]) -> None:
    cell["metadata"] = {}
    cell.pop("id", None)


TEST_NAMES = ("t_square", "t_softmax", "t_partial", "t_norm", "t_twice", "t_gate")
STRUCTURE = [
    row(
        "63a-edited-test",
        *(answers(**{name: "assert True"}) for name in TEST_NAMES),
    ),
    row(
        "63b-edited-test-with-checksum",
        *(answers(**{name: "2"}) for name in TEST_NAMES),
        *(marked(name, checksum="0" * 32) for name in TEST_NAMES),
    ),
    row(
        "64-edited-read-only-cell",
        answers(
            imports="import math, torch\nfrom torch import nn\n"
            "torch.allclose = lambda *a, **k: True\ndef square(x): return x * x"
        ),
        bodies(softmax="return torch.ones_like(x) / x.size(-1)"),
    ),
    row(
        "66-answer-claims-points",
        right(),
        marked("square", grade=True, points=50),
        expected=FULL,
    ),
    row("67a-thousand-points", right(), marked("t_square", points=1000), expected=FULL),
    row("67b-minus-five-points", right(), marked("t_square", points=-5), expected=FULL),
    row("67c-thousand-points-for-nothing", marked("t_square", points=1000)),
    row("69a-tests-deleted", right(), drop(*TEST_NAMES), expected=FULL),
    row("69b-marks-deleted", right(), each_cell(_no_marks), expected=FULL),
    row("69c-marks-and-ids-deleted", right(), each_cell(_no_marks_no_ids), expected=FULL),
    row("69d-tests-deleted-for-nothing", drop(*TEST_NAMES)),
    row(
        "70-answer-deleted",
        right(),
        drop("square"),
        expected=ONLY_SQUARE,
        says="missing|no answer|not there|deleted|Not answered",
    ),
    row(
        "72-same-id-on-a-note",
        right(),
        _copy_of("square", "markdown", "My notes: it's x times x, isn't it?"),
        expected=FULL,
    ),
    row("73a-schema-99", right(), marked("square", schema_version=99), expected=FULL),
    row("73b-schema-1", right(), marked("t_square", schema_version=1), expected=FULL),
    row(
        "75a-marks-are-text",
        right(),
        each_cell(lambda cell: cell["metadata"].update(nbgrader="yes"), "square"),
        expected=FULL,
    ),
    row(
        "75b-marks-hold-lists",
        right(),
        marked("square", grade_id=["square"], points=[1], solution=[True]),
        expected=FULL,
    ),
    row(
        "75c-metadata-is-text",
        right(),
        each_cell(lambda cell: cell.update(metadata="none"), "softmax"),
        expected=FULL,
    ),
    row("76-test-ids-swapped", right(), _swap_ids, expected=FULL),
    row("78a-test-to-markdown", right(), _to("markdown", "t_square"), expected=FULL),
    row("78b-test-to-raw", right(), _to("raw", "t_softmax"), expected=FULL),
    row("78c-test-to-markdown-for-nothing", _to("markdown", *TEST_NAMES)),
    row("79-answer-to-markdown", right(), _to("markdown", "square"), expected=FULL),
    row("81-fake-outputs", each_cell(_fake_outputs)),
    row(
        "82a-wrong-kernel",
        right(),
        whole(lambda nb: nb["metadata"]["kernelspec"].update(name="nosuch")),
        expected=FULL,
    ),
    row("82b-no-kernel", right(), whole(lambda nb: nb.update(metadata={})), expected=FULL),
    row(
        "82c-language-r",
        right(),
        whole(
            lambda nb: nb.update(
                metadata={
                    "kernelspec": {"name": "ir", "language": "R", "display_name": "R"},
                    "language_info": {"name": "R"},
                }
            )
        ),
        expected=FULL,
    ),
    row(
        "84a-doubled-key",
        right(),
        reparsed(lambda text: text.replace('"grade": true', '"grade": true, "grade": false')),
        expected=FULL,
    ),
    row(
        "84b-doubled-cells-key",
        reparsed(lambda text: text.replace('"cells": [', '"cells": [], "cells": [', 1)),
    ),
    row(
        "85-reset",
        right(),
        extra("%reset -f", before="share"),
        expected=FULL,
    ),
]

# 3e. Malformed files


def _as_version_3(text: str) -> bytes:
    """The notebook in nbformat 3: worksheets, and code under another name."""
    notebook = json.loads(text)
    cells = []
    for cell in notebook["cells"]:
        cell.pop("id")
        if cell["cell_type"] == "code":
            cell |= {"input": cell.pop("source"), "language": "python", "collapsed": False}
            cell |= {"prompt_number": 1, "outputs": []}
            cell.pop("execution_count")
        cells.append(cell)
    old = {"metadata": {"name": ""}, "nbformat": 3, "nbformat_minor": 0}
    return json.dumps(old | {"worksheets": [{"cells": cells, "metadata": {}}]}).encode()


MALFORMED = [
    row("87-byte-order-mark", right(), bytes_of(lambda t: t.encode("utf-8-sig")), expected=FULL),
    row("88a-utf-16", right(), bytes_of(lambda text: text.encode("utf-16")), expected="?"),
    row(
        "88b-utf-16-without-mark", right(), bytes_of(lambda t: t.encode("utf-16-le")), expected="?"
    ),
    row(
        "88c-latin-1",
        right(),
        prefix("square", "# \xe9\xe8\n"),
        bytes_of(lambda t: json.dumps(json.loads(t), ensure_ascii=False).encode("latin-1")),
        expected="?",
    ),
    row(
        "90-lone-surrogates",
        right(),
        prefix("square", "# \ud800 \udfff\n"),
        answers(essay="a \ud83d b"),
        expected=FULL,
    ),
    row(
        "91-surrogates-printed",
        right(),
        prefix("square", "print('\\ud800 \\udfff')\n"),
        expected=FULL,
    ),
    row(
        "91b-surrogates-raised",
        HONEST_ELSE,
        bodies(square="raise ValueError('\\ud800 \\x00 \\udfff')"),
        expected=ONLY_SQUARE,
        says="ValueError",
    ),
    row(
        "93-source-is-an-object",
        right(),
        each_cell(lambda cell: cell.update(source={"a": 1}), "square"),
        expected=ONLY_SQUARE,
    ),
    row("94-version-3", right(), bytes_of(_as_version_3), expected=FULL),
    row("96-minor-99", right(), whole(lambda nb: nb.update(nbformat_minor=99)), expected=FULL),
    row(
        "97-bad-mime-bundle",
        right(),
        extra(
            "from IPython.display import display\n"
            "display({'image/png': 12345}, raw=True)\n"
            "display({'application/json': float('nan')}, raw=True)\n"
            "display({1: object()}, raw=True)\n"
            "display({'text/html': ['<b>', 3]}, raw=True)"
        ),
        expected=FULL,
    ),
]

# 3f. Files around the notebook


def _zip_bomb(folder: Path) -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(100_000_000))
    (folder / "work.zip").write_bytes(data.getvalue())


def _link(name: str, target: str) -> Step:
    """A symbolic link; `@ROOT@` at the start means the class's folder."""

    def put(folder: Path) -> None:
        root = str(folder.parents[2])
        (folder / name).symlink_to(target.replace("@ROOT@", root))

    return beside(put)


READ_LINKS = (
    "import glob\n"
    "for path in glob.glob('*') + ['data.txt', 'stolen.ipynb', '/etc/passwd']:\n"
    "    try:\n        print(path, open(path).read())\n"
    "    except Exception as error:\n        print(error)"
)

AROUND = [
    row("99-renamed", right(), named("tiny (1).ipynb"), expected=FULL),
    row("100a-missing", named(None), says="no notebook|missing|no file|not submitted|empty|named"),
    row(
        "100b-a-directory",
        named(None),
        beside(lambda folder: (folder / "tiny.ipynb").mkdir()),
        says="directory|folder|not a file|no notebook|no file",
    ),
    row(
        "102a-link-to-passwd",
        right(),
        _link("data.txt", "/etc/passwd"),
        extra(READ_LINKS),
        expected=FULL,
    ),
    row(
        "102b-link-to-the-tests",
        right(),
        _link("stolen.ipynb", "@ROOT@/source/tiny/tiny.ipynb"),
        extra(READ_LINKS),
        expected=FULL,
    ),
    row("103a-dangling-link", right(), _link("gone.txt", "/nowhere/at/all"), expected=FULL),
    row(
        "103b-fifo",
        right(),
        beside(lambda folder: os.mkfifo(folder / "pipe")),
        beside(lambda folder: os.mkfifo(folder / "timestamp.txt")),
        expected=FULL,
    ),
    row("103c-garbage-timestamp", right(), file("timestamp.txt", b"\xff\x00soon"), expected=FULL),
    *(
        row(
            f"105-{name}-beside",
            right(),
            file(f"{name}.py", "raise ImportError('the wrong one')\n"),
            file(f"{name}.pyc", b"\x00" * 40),
            expected=FULL,
        )
        for name in ("torch", "numpy", "random", "json", "sitecustomize", "math")
    ),
    row(
        "106-settings-beside",
        right(),
        file("nbgrader_config.py", "open('@ROOT@/owned', 'w')\nraise SystemExit"),
        file("rules.toml", "[limits]\nseconds = 1000000\n"),
        file("conftest.py", "raise SystemExit"),
        file("ipython_config.py", "raise SystemExit"),
        expected=FULL,
    ),
    row("108-empty-timestamp", right(), file("timestamp.txt", ""), expected=FULL),
    row("109a-zip-bomb-beside", right(), beside(_zip_bomb), expected=FULL),
    row("109b-zip-bomb-alone", named(None), beside(_zip_bomb), says="notebook|zip|named|file"),
    row(
        "111-removes-its-folder",
        right(but=("square",)),
        bodies(
            square=LOCKED_IN + "import shutil\n"
            "shutil.rmtree('.', ignore_errors=True)\n"
            "shutil.rmtree('@ROOT@/submitted', ignore_errors=True)\nreturn x * x"
        ),
        expected=FULL,
    ),
    row("112-broken-notebook-beside", right(), file("other.ipynb", "{"), expected=FULL),
]

# 3g. Honest but awkward

HONEST = [
    row(
        "114-syntax-error",
        HONEST_ELSE,
        answers(square=SIGNATURES["square"] + "    return x *"),
        expected=ONLY_SQUARE,
        says="SyntaxError|syntax",
    ),
    row(
        "115-input",
        HONEST_ELSE,
        answers(square="x = int(input('x? '))\n" + RIGHT["square"]),
        expected="?/3/2/1/1/2",
        says="input",
    ),
    row(
        "117-await-and-task",
        right(),
        prefix(
            "square",
            "import asyncio\nawait asyncio.sleep(0)\n"
            "async def chatter():\n    while True:\n        print('still here')\n"
            "        await asyncio.sleep(0.01)\n"
            "task = asyncio.ensure_future(chatter())\n",
        ),
        expected=FULL,
    ),
    row("118a-no-such-extension", right(), prefix("square", "%load_ext nosuch\n"), expected=FULL),
    row(
        "118b-pip-install",
        right(),
        prefix("square", "%pip install nosuch\n"),
        expected=FULL,
    ),
    row("120-changes-directory", right(), extra("%cd /", before="square"), expected=FULL),
    row(
        "121-warnings-are-errors",
        right(),
        prefix("square", "import warnings\nwarnings.simplefilter('error')\n"),
        expected=FULL,
    ),
    row(
        "123-default-device",
        right(),
        prefix("square", "torch.set_default_device('meta')\n"),
        expected=FULL,
    ),
    row(
        "124-gradients-off",
        right(),
        prefix("square", "torch.set_grad_enabled(False)\n"),
        expected=FULL,
    ),
    row(
        "126-names-shadowed",
        right(),
        bodies(
            softmax="e = (x - x.max(-1, keepdim=True).values).exp()\n"
            "return e / e.sum(-1, keepdim=True)",
            gate="return x * self.linear(x).sigmoid()",
            share="words = text.split()\n"
            "return words.count(word) / words.__len__() if words else 0.0",
        ),
        extra("torch = None\nlist = [1]\nlen = None\nprint = None\nabs = None"),
        expected=FULL,
    ),
    row(
        "127-thread-left",
        right(),
        prefix(
            "square",
            "import threading, time\n"
            "threading.Thread(target=lambda: time.sleep(3177), daemon=False).start()\n",
        ),
        expected=FULL,
    ),
]

LISTED = [*BEATING, *KILLING, *READING, *STRUCTURE, *MALFORMED, *AROUND, *HONEST]
