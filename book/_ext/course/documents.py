"""The five documents as data: what each contains and where it errs, one file a document.

book/documents/NAME.toml, which belongs to the page book/NAME.md, lists in the document's order what
follows. (What they say differently from one another, between.toml, and what the paper itself gets
wrong, paper.toml, belong to book/sources.md.)

    name = "the slides"             # how the book speaks of it
    label = "S1"                    # what its items' ids begin with

    [[item]]                        # something that it contains
    id = "S1.7"
    what = "a few words"
    place = "where in it"           # optional
    later = "a chapter to come"     # optional: where an item belongs that no page treats yet

    [[error]]
    id = "E1.4"
    kind = "wrong"                  # one of KINDS
    what = "a few words"
    quote = "its words"             # "" where the fault is that something is missing
    place = "where in it"
    right = "what is so"
    effect = "what it does"         # optional: what happens to a model that is built so
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

OVERVIEW = ("between", "paper")  # what these hold stands on book/sources.md
KINDS = {
    "wrong": "wrong",
    "inconsistent": "not consistent",
    "ambiguous": "ambiguous",
    "omitted": "left out",
    "misprint": "misprint",
    "extraction": "lost when its text was copied",
    "withdrawn": "withdrawn",
}
NO_ERRORS = ("extraction", "withdrawn")  # counted apart: nobody wrote these


@dataclass
class Entry:
    """An item of a document, or an error of its, and where the course treats it."""

    id: str
    what: str
    place: str = ""
    later: str = ""  # the chapter still to come, for what belongs there
    kind: str = ""  # of an error
    quote: str = ""
    right: str = ""
    effect: str = ""
    pages: list[str] = field(default_factory=list)
    exercises: list[str] = field(default_factory=list)

    @property
    def treated(self) -> bool:
        """Whether any page or exercise treats it."""
        return bool(self.pages or self.exercises)

    @property
    def counts(self) -> bool:
        """Whether somebody made this error, other than those who copied the text or read it."""
        return self.kind not in NO_ERRORS


@dataclass
class Document:
    """One of the five, or what stands between them."""

    page: str
    name: str
    label: str
    items: list[Entry]
    errors: list[Entry]


def read_documents(root: Path) -> list[Document]:
    """Return the documents of a project, in the order of their labels, nothing tagged yet.

    Raises ValueError for a file that is not as this module says, with file and id.
    """
    files = sorted((root / "book" / "documents").glob("*.toml"))
    documents = [_read(path, path.stat().st_mtime_ns) for path in files]
    return sorted(documents, key=lambda one: (one.page == "sources", one.label))


@lru_cache
def _parsed(path: Path, _changed: int) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path.name} is no TOML: {error}") from error


def _read(path: Path, changed: int) -> Document:
    found = _parsed(path, changed)
    return Document(
        "sources" if path.stem in OVERVIEW else path.stem,
        found["name"],
        found["label"],
        [_entry(path, one, {"id", "what", "place", "later"}) for one in found.get("item", [])],
        [_error(path, one) for one in found.get("error", [])],
    )


def _entry(path: Path, one: dict[str, Any], known: set[str]) -> Entry:
    where = f"{path.name}: {one.get('id', 'an entry without id')}"
    if unknown := set(one) - known:
        raise ValueError(f"{where} has {', '.join(sorted(unknown))}; known are {sorted(known)}")
    if missing := {"id", "what"} - set(one):
        raise ValueError(f"{where} has no {' and no '.join(sorted(missing))}")
    return Entry(**one)


def _error(path: Path, one: dict[str, Any]) -> Entry:
    known = {"id", "what", "place", "later", "kind", "quote", "right", "effect"}
    error = _entry(path, one, known)
    if error.kind not in KINDS:
        raise ValueError(
            f"{path.name}: {error.id} has the kind {error.kind!r}, not one of {list(KINDS)}"
        )
    return error
