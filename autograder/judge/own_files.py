"""Modules that ran from a student's own files, beside what the student's cells show of them."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from autograder.bridge.loaded import MOST, MOST_TEXT
from autograder.judge import student_cells
from autograder.judge.broken_rules import module_cell

MAX_NAME = 200
UNSHOWN = (
    "your answer needs a module whose file holds something else than your cells show; write the "
    "answer so that its own text shows what it calls"
)


def modules_told(told: Any) -> dict[str, bytes | None]:
    """What a student's process says of its modules, whatever it is: names, each with its text."""
    found: dict[str, bytes | None] = {}
    for pair in told[:MOST] if isinstance(told, list) else ():
        name, text = pair if isinstance(pair, list) and len(pair) == 2 else ("", None)
        if type(name) is str and 0 < len(name) <= MAX_NAME:
            found[name] = text if type(text) is bytes and len(text) <= MOST_TEXT else None
    return found


def unshown(
    loaded: Mapping[str, bytes | None], cells: Iterable[str], files: Iterable[tuple[str, bytes]]
) -> tuple[list[str], frozenset[str]]:
    """What a reader of a student's cells has not seen of the modules that ran.

    Args:
        loaded: names of modules, each with the text that ran, if there is one.
        cells: of the notebook.
        files: that lay beside it.

    Returns:
        Modules as cells that write them, and names of those that cannot be read.
    """
    if not loaded:
        return [], frozenset()
    shown = {_plain(text.encode("utf-8", "replace")) for cell in cells for text in _written(cell)}
    shown |= {_plain(content) for name, content in files if name.endswith(".py")}
    left = {
        name: text for name, text in loaded.items() if text is None or _plain(text) not in shown
    }
    dark = {name for name, text in left.items() if not _is_readable(text)}
    read = [module_cell(_file(name), left[name] or b"") for name in sorted(left.keys() - dark)]
    return read, frozenset(dark)


def _plain(content: bytes) -> bytes:
    return content.replace(b"\r\n", b"\n").strip()


def _written(cell: str) -> Collection[str]:
    return student_cells.texts_written(cell)


def _is_readable(content: bytes | None) -> bool:
    return content is not None and student_cells.module_text(content) is not None


def _file(name: str) -> str:
    parts = [part if part.isidentifier() else "module" for part in name.split(".")]
    return "/".join(parts) + ".py"
