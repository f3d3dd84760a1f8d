"""Cells of a table that no spreadsheet takes for a formula."""

import re

from autograder.common.names import visible

NUMBER = re.compile(r"[-+]?\d+(\.\d+)?([eE][-+]?\d+)?")
# Where a field begins for somebody: at the start, or after what separates fields in some country,
# with quotes and blanks between; and the sign that would make a formula of it, also behind what
# keeps it from that, so that no two texts become one. A gap is taken whole, so that looking for
# them is linear.
BEGINNING = re.compile(r"([\s\"“”„,;|，；｜]+)((?:'*[=+\-@＝＋－＠﹦﹢﹣﹫])?)")
SEPARATOR = re.compile(r"[\n\r\v\f\t,;|，；｜]")


def safe(value: str) -> str:
    """A cell that no spreadsheet takes for a formula, wherever it is cut; numbers stay numbers."""
    text = visible(value)
    if NUMBER.fullmatch(text):
        return text
    return BEGINNING.sub(_quoted, f"\n{text}")[1:]


def meant(cell: str) -> str:
    """The text of which `safe` has made a cell."""
    return BEGINNING.sub(_unquoted, f"\n{cell}")[1:]


def _quoted(found: re.Match[str]) -> str:
    gap, sign = found.groups()
    return f"{gap}'{sign}" if sign and SEPARATOR.search(gap) else found[0]


def _unquoted(found: re.Match[str]) -> str:
    gap, sign = found.groups()
    return f"{gap}{sign[1:]}" if sign.startswith("'") and SEPARATOR.search(gap) else found[0]
