"""A cell's text as plain Python: parsed within bounds, and without its magics and shell lines.

This file imports nothing but Python's own library: who runs cells where no IPython is, and perhaps
no package of this one's, loads it by its path (`checking/runner.py`). Where
IPython is, `syntax.parse` reads what a cell's magics run; a text without them is then only for
words on what is no Python.
"""

import ast
import re
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

MAGIC = re.compile(r"(?P<indent>\s*+)(?P<target>[\w.,\s]+=\s*)?[%!?](?!=)")
TIMERS = re.compile(r"\s*+%{1,2}(time|timeit|prun|capture)\b(?P<rest>.*)")
LINE = re.compile(r"\r\n?|\n")
LONGEST = 200_000  # characters of a text that is read as Python
# Python's parser builds "a", "a.b", "a.b.c", ... for an import, which has no bound of its own.
GAP = r"[ \t\f]*+(?>(?:\\(?:\r\n?|\n)[ \t\f]*+)*)"
DOTTED = re.compile(rf"(?<!\w)(?>(?:\w++{GAP}\.{GAP})+)")
MOST_DOTS = 200
PIECE = re.compile(  # of a line, as far as it says whether the next one goes on with it
    r"""(?P<comment>\#.*)|(?P<triple>\"{3}|'{3})|"(?>(?:\\.|[^"\\])*)"?|'(?>(?:\\.|[^'\\])*)'?"""
    r"""|(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<goes_on>\\$)"""
)


class TooDeep(Exception):
    """A text may be Python, and run, but it is too long or too deep to be read here."""


def tree_of(source: str) -> ast.Module | None:
    """The syntax tree of plain Python; None if it is none. Raises TooDeep."""
    if len(source) > LONGEST:
        raise TooDeep
    if any(name[0].count(".") > MOST_DOTS for name in DOTTED.finditer(source)):
        raise TooDeep
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a doubtful escape is the author's business
            return ast.parse(source)
    except (SyntaxError, ValueError):
        return None
    except (ArithmeticError, RecursionError, MemoryError, SystemError) as error:
        raise TooDeep from error


def parsed(source: str) -> ast.Module | None:
    """The same; None as well if it is too long or too deep."""
    try:
        return tree_of(source)
    except TooDeep:
        return None


def without_magics(source: str) -> str:
    """The cell as Python reads it; its magics and shell lines, if it has any, do nothing.

    What is Python as it stands is given back as it stands, so that a line of an expression or a
    text that begins with % or ! is no magic.
    """
    return source if parsed(source) is not None else without_magic_lines(source)


def without_magic_lines(source: str) -> str:
    """The same of a cell that is no Python as it stands, or is too long to be tried."""
    lines = LINE.split(source)
    first = next((line.strip() for line in lines if line.strip()), "")
    if first.startswith("%%") and not TIMERS.match(first):
        return ""  # another language, or text for a program
    return "\n".join(_plain_lines(lines))


def _plain_lines(lines: Iterable[str]) -> Iterator[str]:
    """Each line as Python, where a statement begins; the others as they are."""
    before, is_magic = _Before(), False
    for line in lines:
        if is_magic:  # which went on
            is_magic = line.endswith("\\")
            yield ""
            continue
        plain = line if before.goes_on else _plain(line)
        is_magic = plain != line and line.endswith("\\")
        if not is_magic:
            before.read(plain)
        yield plain


@dataclass
class _Before:
    """What is open where a line begins."""

    brackets: int = 0
    quotes: str = ""
    backslash: bool = False

    @property
    def goes_on(self) -> bool:
        """Whether the line belongs to the statement before it."""
        return bool(self.brackets or self.quotes or self.backslash)

    def read(self, line: str) -> None:
        """Go on to the next line."""
        place, self.backslash = 0, False
        while place < len(line):
            if self.quotes:
                end = re.compile(rf"(?>(?:\\.|(?!{self.quotes}).)*){self.quotes}").match(
                    line, place
                )
                if not end:
                    return
                self.quotes, place = "", end.end()
                continue
            piece = PIECE.search(line, place)
            if not piece:
                return
            self.brackets = max(0, self.brackets + bool(piece["open"]) - bool(piece["close"]))
            self.quotes = piece["triple"] or ""
            self.backslash = bool(piece["goes_on"])
            place = piece.end()


def _plain(line: str) -> str:
    magic = MAGIC.match(line)
    if not magic:
        return re.sub(r"\?{1,2}\s*$", "", line) if re.match(r"\s*[\w.]+\?{1,2}\s*$", line) else line
    if magic["target"]:
        return f"{magic['indent']}{magic['target'].strip()} None"
    timer = TIMERS.match(line)
    rest = timer["rest"].strip() if timer else ""
    return magic["indent"] + (rest if rest and parsed(rest) else "pass")
