"""What a notebook's headings say of its questions."""

import re

HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*$", re.MULTILINE)
ANNOUNCED = re.compile(r"\s*\([^()]*\bpoints?\b[^()]*\)\s*$")
NUMBERED = re.compile(r"\d+(\.\d+)*\b")


def title(markdown: str) -> str:
    """The last heading of a markdown cell, without the points it announces; empty if none."""
    headings = HEADING.findall(markdown)
    return ANNOUNCED.sub("", headings[-1]) if headings else ""


def label(text: str) -> str:
    """The number that a title begins with, or all of it."""
    match = NUMBERED.match(text)
    return match.group() if match else text
