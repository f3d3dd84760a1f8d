"""Files that are written whole or not at all, and their digests."""

import hashlib
import os
from pathlib import Path


def write_text(path: Path, text: str) -> None:
    """Write a file under another name, flush it to the disk, and rename it."""
    draft = path.with_name(f".{path.name}.tmp")
    with draft.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    sync_directory(path.parent)


def sync_file(path: Path) -> None:
    """Flush a file that another library wrote."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def sync_directory(path: Path) -> None:
    """Make a rename last; Windows cannot open a directory, and needs no such thing."""
    if os.name == "nt":
        return
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def digest(text: str) -> str:
    """SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()
