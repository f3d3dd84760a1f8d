"""Submissions made against the process that writes: names, times, texts that are shown or stored.

Every one of these is a right submission, or loses one question by an exception; what is hostile is
how its folder is named, when it says it was written, and what stands in it.
"""

import os
from pathlib import Path

from tests.hostile.course import CHAPTER, Handin
from tests.hostile.rows import HONEST_ELSE, ONLY_SQUARE
from tests.hostile.steps import FULL, Row, Step, answers, body, extra, prefix, right, row

FOLDERS = {  # what a file system takes as a name
    "no UTF-8": os.fsdecode(b"M\xfcller"),
    "as the one before is written": "M\\xfcller",
    "two bytes of no UTF-8": os.fsdecode(b"\xff\xfe"),
    "a line end": "two\nlines",
    "terminal commands": "\x1b[2J\x1b]0;title\x07red",
    "C1": "c1\x9b31m\u0085",
    "reading direction": "\u202egnp.exe",
    "unseen": "victim\u200b",
    "a formula": "=1+1;=cmd|' -C calc'!A0",
    "quotes and a tag": "\"'><img src=x onerror=alert(1)>",
    "a part of an address": "a%2e%2e#b?c&d=e",
    "nearly the folder above": "odd..\\..\\..",
    "long": "n" * 255,
    "long too": "n" * 254 + "m",
    "long and no UTF-8": os.fsdecode(b"\xe4" * 255),
    "blanks": " a  b ",
    "what lists are cut at": "a,b;c|d\te",
    "a pattern": "[a-z]*?{b}",
    "a reserved name": "con.html",
}
SQUARE = "def square(x):\n    return x * x\n"
SPOKEN = (
    "[click](javascript:alert(1)) ![b](http://evil.example/b.png) <script>alert(2)</script> "
    "`$x$` \\x1b]0;title\\x07\\u202e ;=1+1;\\t@SUM(A1)|-2+3\\r+4"
)


def beyond_the_years(seconds: float) -> Step:
    """Give notebook and folder a time that no calendar has."""

    def put(folder: Path) -> None:
        for path in (folder / f"{CHAPTER}.ipynb", folder):
            try:
                os.utime(path, (seconds, seconds))
            except (OSError, OverflowError):  # this file system does not take it
                return

    def step(handin: Handin) -> None:
        handin.around.append(put)

    return step


PAGES: list[Row] = [
    *(row(name, right(), expected=FULL) for name in FOLDERS.values()),
    row("year-71654", right(), beyond_the_years(2_199_023_255_552), expected=FULL),
    row("year-minus", right(), beyond_the_years(-99_999_999_999), expected=FULL),
    row(
        "blank-lines",
        right(but=("square",)),
        answers(square=SQUARE + "\n " * 20_000),
        expected=FULL,
    ),
    row(
        "quotes",
        right(but=("square",)),
        answers(square=SQUARE + "#" + "'" * 190_000),
        expected=FULL,
    ),
    row(
        "assigned-in-a-row",
        HONEST_ELSE,
        answers(square="a=" * 90_000 + "1\n" + SQUARE),
        expected="?/3/2/1/1/2",
    ),
    row(
        "speaks-in-markup",
        HONEST_ELSE,
        answers(square=body("square", f'raise ValueError("{SPOKEN}")')),
        expected=ONLY_SQUARE,
        says="click",
    ),
    row(
        "names-its-exception",
        HONEST_ELSE,
        answers(
            square=body("square", f'raise type("{SPOKEN[:60]}", (Exception,), {{}})("{SPOKEN}")')
        ),
        expected=ONLY_SQUARE,
    ),
    row(
        "prints-much",
        right(),
        prefix("square", "print('\\x1b[31m;=1+1\\n' * 50_000)\n"),
        expected=FULL,
    ),
    row(
        "many-notes",
        right(),
        *(extra("\n".join(f"%m{ten}{one}" for one in range(10))) for ten in range(230)),
        expected=FULL,
    ),
    row("many-cells", right(), *(extra("\n " * 2_000) for _ in range(300)), expected=FULL),
]
