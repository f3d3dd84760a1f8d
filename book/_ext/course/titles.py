"""How chapters are called wherever they are named: "3 Attention", as their notebooks say."""

from __future__ import annotations

import re
from pathlib import Path


def heading(page: Path) -> str:
    """Return the title of a page, as its source has it."""
    found = re.search(r"^# (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else page.stem


def numbered(page: Path) -> str:
    """Return the title with the chapter's number; a page that is no chapter has none."""
    number = re.match(r"\d+", page.stem)
    return f"{int(number[0])} {heading(page)}" if number else heading(page)
