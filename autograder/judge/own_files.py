"""Modules that ran from a student's own files, beside what the student's cells show of them."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from autograder.bridge.loaded import MOST, MOST_TEXT
from autograder.judge import student_cells
from autograder.judge.broken_rules import module_cell

MAX_NAME = 200
MOST_STEPS = 10_000
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
        Modules that were written in pieces, as cells that write them whole; and names of those of
        which nothing is shown.
    """
    if not loaded:
        return [], frozenset()
    pieces = {text for cell in cells for text in student_cells.texts_written(cell) if text.strip()}
    shown = {_plain(text.encode("utf-8", "replace")) for text in pieces}
    shown |= {_plain(content) for name, content in files if name.endswith(".py")}
    read: list[str] = []
    dark: set[str] = set()
    for name, content in sorted(loaded.items()):
        text = None if content is None else student_cells.module_text(content)
        if text is None or content is None:
            dark.add(name)
        elif _plain(content) not in shown:
            if _is_made_of(text, pieces):
                read.append(module_cell(_file(name), content))
            else:
                dark.add(name)
    return read, frozenset(dark)


def _plain(content: bytes) -> bytes:
    return content.replace(b"\r\n", b"\n").strip()


def _is_made_of(text: str, pieces: Collection[str]) -> bool:
    """Whether a text is some of these, one after the other."""
    todo, seen = [0], {0}
    for _ in range(MOST_STEPS):
        if not todo or len(text) in seen:
            break
        at = todo.pop()
        ends = {at + len(piece) for piece in pieces if text.startswith(piece, at)}
        todo += ends - seen
        seen |= ends
    return len(text) in seen


def _file(name: str) -> str:
    parts = [part if part.isidentifier() else "module" for part in name.split(".")]
    return "/".join(parts) + ".py"
