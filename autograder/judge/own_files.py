"""Modules that ran from a student's own files, beside what the student's cells show of them."""

from collections.abc import Collection, Iterable
from pathlib import Path

from autograder.judge import student_cells
from autograder.judge.broken_rules import module_cell
from autograder.judge.forbidden import is_installed

Loaded = tuple[str, bytes | None]  # a module's name, and the text that ran, if there is one
MOST_TRIES = 1_000_000  # of putting a piece to a place
UNSHOWN = (
    "your answer needs a module whose file holds something else than your cells show; write the "
    "answer so that its own text shows what it calls"
)


def unshown(
    loaded: Collection[Loaded], cells: Iterable[str], files: Iterable[tuple[str, bytes]]
) -> tuple[list[str], frozenset[str]]:
    """What a reader of a student's cells has not seen of the modules that ran.

    Args:
        loaded: modules, each with the text that ran.
        cells: of the notebook.
        files: that lay beside it.

    Returns:
        Modules whose text is shown in pieces, or under another name, as cells that write them
        whole; and names of those of which nothing is shown.
    """
    if not loaded:
        return [], frozenset()
    whole, pieces = _texts(cells, files)
    names = {name for name, _ in loaded}
    read: list[str] = []
    dark: set[str] = set()
    for name, content in sorted(loaded, key=lambda one: (one[0], one[1] or b"")):
        text = None if content is None else student_cells.module_text(content)
        if text is None or content is None or _is_in_library(name, names):
            dark.add(name)
            continue
        plain = _plain(content)  # of a blank one there is nothing to be read
        if plain and not any(_is_called(name, path) for path in whole.get(plain, ())):
            if _is_made_of(text, pieces):
                read.append(module_cell(_file(name), content))
            else:
                dark.add(name)
    return read, frozenset(dark)


def _texts(
    cells: Iterable[str], files: Iterable[tuple[str, bytes]]
) -> tuple[dict[bytes, set[str]], set[str]]:
    """Texts of modules that are read as such, with their files' names; and all that are shown."""
    whole: dict[bytes, set[str]] = {}
    pieces: set[str] = set()
    for cell in cells:
        pieces.update(student_cells.texts_shown(cell))
        if found := student_cells.module_written(cell):
            text = _plain(found.text.encode("utf-8", "replace"))
            whole.setdefault(text, set()).add(found.path)
    for name, content in files:
        if name.endswith(".py") and (text := student_cells.module_text(content)) is not None:
            whole.setdefault(_plain(content), set()).add(name)
            pieces.add(text)
    return whole, pieces


def _is_called(name: str, path: str) -> bool:
    """Whether a module of this name is what a file of this one is read as."""
    parts = [one for one in path.removesuffix(".py").split("/") if one not in ("", ".")]
    parts = parts[:-1] if parts[-1:] == ["__init__"] else parts
    return f".{'.'.join(parts)}".endswith(f".{name}")


def _is_in_library(name: str, names: Collection[str]) -> bool:
    """Whether a module has been put into a library: of that nobody takes it for a student's.

    Packages of the instructor's lie where tests run.
    """
    package, _, _ = name.partition(".")
    is_own = package == name or package in names or Path(package).exists()
    return not is_own and is_installed(package)


def _plain(content: bytes) -> bytes:
    return content.replace(b"\r\n", b"\n").strip()


def packages_shown(loaded: Collection[Loaded], dark: Collection[str]) -> frozenset[str]:
    """First parts of the names of modules that ran, where all of each was read."""
    hidden = {name.partition(".")[0] for name in dark}
    return frozenset(name.partition(".")[0] for name, _ in loaded) - hidden


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


def _file(name: str) -> str:
    parts = [part if part.isidentifier() else "module" for part in name.split(".")]
    return "/".join(parts) + ".py"
