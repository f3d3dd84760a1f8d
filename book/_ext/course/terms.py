"""Words that readers search for lead to the section that treats them (book/terms.toml).

Each becomes an entry of the index at its section; the search knows those, and leads there.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform
from sphinx.util import logging

from .fresh import always_read_again

DATA = "terms.toml"
logger = logging.getLogger(__name__)


class Terms(SphinxTransform):
    """Put a page's words into the index."""

    default_priority = 840  # before the index takes up what a page has

    def apply(self, **_: object) -> None:
        """Mark the sections; a label that the page does not have is a warning."""
        text = (Path(self.env.srcdir) / DATA).read_text(encoding="utf-8")
        wanted = tomllib.loads(text).get(self.env.docname)
        if not wanted:
            return
        always_read_again(self.env)
        for label, words in wanted.items():
            section = self._section(label)
            if section is None:
                where = f"{DATA}, [{self.env.docname}]"
                logger.warning("%s: the page has no section %s", where, label, type="course")
                continue
            # the main place of a word: others stand behind every page that has it in its text
            entries = [("single", word, section["ids"][0], "main", None) for word in words]
            section.insert(1, addnodes.index(entries=entries))  # behind the title

    def _section(self, label: str) -> nodes.section | None:
        for section in self.document.findall(nodes.section):
            if label in (*section["names"], *section["ids"]):
                return section
        return None
