"""Modules that ran from a student's own files, beside what the student's cells show of them."""

from collections.abc import Collection, Iterable
from pathlib import Path

from autograder.judge import student_cells
from autograder.judge.broken_rules import module_cell
from autograder.judge.forbidden import is_installed

Loaded = tuple[str, bytes | None]  # a module's name, and the text that ran, if there is one
MOST_STEPS = 10_000
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
    plain = {_plain(text.encode("utf-8", "replace")) for text in pieces}
    names = {name for name, _ in loaded}
    read: list[str] = []
    dark: set[str] = set()
    for name, content in sorted(loaded, key=lambda one: (one[0], one[1] or b"")):
        text = None if content is None else student_cells.module_text(content)
        if text is None or content is None or _is_in_library(name, names):
            dark.add(name)
        elif not any(_is_called(name, path) for path in whole.get(_plain(content), ())):
            if _plain(content) in plain or _is_made_of(text, pieces):
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
        written = student_cells.texts_written(cell)
        pieces |= {text for text in written if text.strip()}
        path = student_cells.module_written(cell)
        for text in written if path else ():
            whole.setdefault(_plain(text.encode("utf-8", "replace")), set()).add(path)
    for name, content in files:
        if name.endswith(".py") and (text := student_cells.module_text(content)) is not None:
            whole.setdefault(_plain(content), set()).add(name)
            pieces |= {text} - {""}
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
