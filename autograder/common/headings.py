"""What a notebook's headings say of its questions."""

import re
from collections.abc import Iterable, Iterator

DEEPEST = 6  # levels of headings
FENCE = re.compile(r"`{3,}(?=[^`]*$)|~{3,}")
ANNOUNCED = re.compile(r"\([^()]*\bpoints?\b[^()]*\)$")
NUMBERED = re.compile(r"\d+(\.\d+)*\b")


def title(markdown: str, deepest: int = DEEPEST) -> str:
    """What a markdown cell is headed by, without the points it announces; empty if nothing is.

    Args:
        markdown: the cell's text.
        deepest: the last level of headings that counts.
    """
    return ANNOUNCED.sub("", heading(markdown, deepest)[1]).rstrip()


def heading(markdown: str, deepest: int = DEEPEST) -> tuple[int, str]:
    """Level and words of the heading that a markdown cell's question goes by; (0, "") if none.

    Of several that is the last one that announces points. If none does, it is the last of the
    highest level, where a single one of level 1 is the notebook's title.
    """
    found = [one for one in _headings(markdown) if one[0] <= deepest]
    if announced := [one for one in found if ANNOUNCED.search(one[1])]:
        return announced[-1]
    levels = sorted(level for level, _ in found)
    if levels[:1] == [1] and levels[1:2] != [1]:
        levels = levels[1:] or levels
    return next((one for one in reversed(found) if one[0] == levels[0]), (0, ""))


def of_notebook(texts: Iterable[str]) -> str:
    """What a notebook is called: its first markdown cell's heading of level 1; "" if it has none.

    Args:
        texts: of its markdown cells, in order.
    """
    first = next(iter(texts), "")
    return next((words for level, words in _headings(first) if level == 1), "")


def _headings(markdown: str) -> Iterator[tuple[int, str]]:
    """Level and words of each heading; a line in a block of code is none."""
    fence = ""  # what the block that is open began with
    for line in markdown.split("\n"):
        bare = line.strip()
        if fence:
            fence = "" if bare.startswith(fence) and not bare.strip(fence[0]) else fence
        elif begins := FENCE.match(bare):
            fence = begins[0]
        else:
            level = len(line) - len(line.lstrip("#"))
            words = line[level:].strip()
            if 1 <= level <= DEEPEST and line[level : level + 1].isspace() and words:
                yield level, words


def label(text: str) -> str:
    """The number that a title begins with, or all of it."""
    match = NUMBERED.match(text)
    return match.group() if match else text
