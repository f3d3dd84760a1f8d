"""Modules that ran from a student's own files, beside what the student's cells show of them."""

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from autograder.bridge.loaded import MOST, MOST_TEXT
from autograder.judge import student_cells
from autograder.judge.broken_rules import module_cell

MAX_NAME = 200
MOST_TRIES = 1_000_000  # of putting a piece to a place
UNSHOWN = (
    "your answer needs a module whose file holds something else than your cells show; write the "
    "answer so that its own text shows what it calls"
)
TOO_MANY = f"your notebook loads more modules of its own than are looked at ({MOST})"


def modules_told(told: Any) -> set[tuple[str, bytes | None]]:
    """What a student's process says of its modules, whatever it is: names, each with a text."""
    found = set[tuple[str, bytes | None]]()
    for pair in told[: MOST + 1] if isinstance(told, list) else ():
        name, text = pair if isinstance(pair, list) and len(pair) == 2 else ("", None)
        if type(name) is str and 0 < len(name) <= MAX_NAME:
            found.add((name, text if type(text) is bytes and len(text) <= MOST_TEXT else None))
    return found


def unshown(
    loaded: Collection[tuple[str, bytes | None]],
    cells: Sequence[str],
    files: Iterable[tuple[str, bytes]],
) -> tuple[list[str], frozenset[str]]:
    """What a reader of a student's cells has not seen of the modules that ran.

    Args:
        loaded: names of modules, each with the text that ran, if there is one.
        cells: of the notebook.
        files: that lay beside it.

    Returns:
        Modules whose texts cells show, but not under these names, as cells that write them whole;
        and names of those of which nothing is shown.
    """
    if not loaded:
        return [], frozenset()
    beside = [(Path(name), content) for name, content in files if name.endswith(".py")]
    shown = [({*path.parent.parts, path.stem}, _plain(content)) for path, content in beside]
    written = (file for cell in cells if (file := student_cells.file(cell)) is not None)
    shown += [({*one.modules}, _plain(one.text.encode("utf-8", "replace"))) for one in written]
    pieces = {text for cell in cells for text in student_cells.texts_shown(cell)}
    pieces |= {student_cells.module_text(content) or "" for _, content in beside}
    read: list[str] = []
    dark: set[str] = set()
    for name, content in sorted(loaded, key=lambda one: (one[0], one[1] or b"")):
        text = None if content is None else student_cells.module_text(content)
        if text is None or content is None:
            dark.add(name)
            continue
        names, plain = {*name.split(".")}, _plain(content)
        if plain and not any(names <= parts and plain == other for parts, other in shown):
            if _is_made_of(text, pieces):
                read.append(module_cell(_path(name), content))
            else:
                dark.add(name)
    return read, frozenset(dark)


def packages_shown(
    loaded: Collection[tuple[str, bytes | None]], dark: Collection[str]
) -> frozenset[str]:
    """First parts of the names of modules that ran, where all of each was read."""
    hidden = {name.partition(".")[0] for name in dark}
    return frozenset(name.partition(".")[0] for name, _ in loaded) - hidden


def _plain(content: bytes) -> bytes:
    return content.replace(b"\r\n", b"\n").strip()


def _is_made_of(text: str, pieces: Collection[str]) -> bool:
    """Whether a text is one of these, or some of them, one after the other."""
    inside = [piece for piece in pieces if piece.strip("\n") and piece in text]
    whole = text.strip()
    if any(piece.strip() == whole for piece in inside):
        return True
    inside.append("\n")
    todo, seen = [0], {0}
    for _ in range(MOST_TRIES // len(inside)):
        if not todo or len(text) in seen:
            break
        at = todo.pop()
        ends = {at + len(piece) for piece in inside if text.startswith(piece, at)}
        todo += ends - seen
        seen |= ends
    return len(text) in seen


def _path(name: str) -> str:
    parts = [part if part.isidentifier() else "module" for part in name.split(".")]
    return "/".join(parts) + ".py"
