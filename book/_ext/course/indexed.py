"""The index has one line for one thing: its plurals and spellings are there for the search."""

from __future__ import annotations

import re
from itertools import chain
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

Links = list[tuple[str, str]]  # what is important about each, and where it leads
Below = list[tuple[str, Links]]
Entry = tuple[str, tuple[Links, Below, Any]]

SPELLED = ((r"is(?=ation|e\b|ed\b|ing\b)", "iz"), (r"[\s_-]+", ""), (r"(?<=[^s])s\b", ""))
SHORTEST = 6  # letters; shorter ones are names, and "bos" is no plural


def alike(name: str) -> str:
    """The same for names that differ in their spelling alone."""
    if len(name) < SHORTEST:
        return name
    for pattern, instead in SPELLED:
        name = re.sub(pattern, instead, name.casefold())
    return name


def joined(entries: list[Entry]) -> list[Entry]:
    """Without near doubles: of each kind the one with most links stays, and leads to all."""
    found: dict[str, list[Entry]] = {}
    for entry in entries:
        found.setdefault(alike(entry[0]), []).append(entry)
    return [_one(same) for same in found.values()]


def _one(same: list[Entry]) -> Entry:
    name, (_, _, key) = max(same, key=lambda entry: len(entry[1][0]))
    links = chain.from_iterable(links for _, (links, _, _) in same)
    below = chain.from_iterable(below for _, (_, below, _) in same)
    return name, ([*dict.fromkeys(links)], [*below], key)


def join_doubles(
    _app: Sphinx,
    page: str,
    _template: str,
    context: dict[str, Any],
    _doctree: nodes.document | None,
) -> None:
    """Do so on the page of the index."""
    if page != "genindex":
        return
    parts = [(letter, joined(entries)) for letter, entries in context["genindexentries"]]
    context["genindexentries"] = parts
    context["genindexcounts"] = [_lines(entries) for _, entries in parts]


def _lines(entries: list[Entry]) -> int:
    return sum(1 + len(below) for _, (_, below, _) in entries)
