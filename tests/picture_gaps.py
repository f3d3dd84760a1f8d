"""How many words a reader reads from picture to picture: `python -m tests.picture_gaps`.

Counted in the chapters' sources, so that no book has to be built. Words are those of running text,
of lists and of boxes that stand open; code, formulas, tables, and what is folded away are none. A
picture is a cell that draws, an explorer, or a figure. From "Check yourself" on a chapter asks.
"""

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

BOOK = Path(__file__).parents[1] / "book"
MOST = 300  # words
FRONT = re.compile(r"\A---\n.*?^---\n", re.DOTALL | re.MULTILINE)
FENCED = re.compile(
    r"^(?P<fence>`{3,})(?P<kind>\{[\w-]+\})?[^\n]*\n(?P<body>.*?)^(?P=fence) *$",
    re.DOTALL | re.MULTILINE,
)
DRAWS = re.compile(
    r"^---\n(?:(?!---).*\n)*?.*\b(?:image|figure):", re.MULTILINE
)  # a cell's options
SHOWN = {"{anywidget}", "{translator}", "{figure}", "{image}"}
OPEN = {"{trap}", "{note}", "{tip}", "{important}", "{warning}", "{chapter-card}"}
UNREAD = re.compile(r"%|\||:|    |\([\w-]+\)=$")  # comments, tables, options, code, labels
FORMULA = re.compile(r"\$\$.*?\$\$|\$[^$\n]*\$", re.DOTALL)
MARKUP = re.compile(r"\{[\w:]+\}|<[^>\n]*>|\]\([^)\n]*\)")
WORD = re.compile(r"[^\W\d_][\w'’-]*")
PICTURE = "\N{FRAME WITH PICTURE}"


@dataclass(frozen=True)
class Gap:
    """So many words without a picture, from a line of a page on, in the part with this heading."""

    words: int
    line: int
    heading: str


def gaps(text: str) -> list[Gap]:
    """All gaps of a page, from its start to the questions at its end."""
    found: list[Gap] = []
    words, start, below, heading = 0, 1, "", ""
    for number, line in enumerate(read(text).splitlines(), 1):
        if line.startswith("#"):
            heading = line.lstrip("# ")
            below = below or heading
            if heading == "Check yourself":
                break
        elif line == PICTURE:
            found.append(Gap(words, start, below))
            words, start, below = 0, number, heading
        elif not UNREAD.match(line):
            words += len(WORD.findall(MARKUP.sub(" ", line)))
    return [*found, Gap(words, start, below)]


def read(text: str) -> str:
    """What is read of a page, and a sign for each picture; every line stays where it is."""

    def blank(match: re.Match[str]) -> str:
        return "\n" * match[0].count("\n")

    return FORMULA.sub(blank, FENCED.sub(_unfenced, FRONT.sub(blank, text)))


def _unfenced(match: re.Match[str]) -> str:
    kind, body = match["kind"], match["body"]
    if kind in OPEN:
        return f"\n{body}"
    is_picture = kind in SHOWN or (kind == "{code-cell}" and DRAWS.match(body))
    return (PICTURE if is_picture else "") + "\n" * match[0].count("\n")


def chapters() -> list[Path]:
    """The chapters' sources in their order."""
    return sorted(BOOK.glob("[0-9][0-9]_*.md"))


def rows(pages: Iterable[Path]) -> Iterator[str]:
    """A line for each page, and below it one for each gap that is too long, the longest first."""
    for page in pages:
        found = gaps(page.read_text(encoding="utf-8"))
        most = max(one.words for one in found)
        yield f"{page.stem}: {len(found) - 1} pictures, at most {most} words without one"
        for one in sorted(found, key=lambda gap: -gap.words):
            if one.words > MOST:
                yield f"  {one.words:4} words from line {one.line}: {one.heading}"


def main() -> int:
    """Print the gaps of all chapters."""
    print(*rows(chapters()), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
