"""A word that leads to the glossary says what it means when the pointer rests on it."""

from __future__ import annotations

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

PAGE = "glossary"
TERM = "std-term"  # Sphinx marks with it what {term} made


def say_on_hover(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Give each link of a page to a term of the glossary the term's definition as its title."""
    links = [link for link in doctree.findall(nodes.reference) if is_term(link)]
    if not links:
        return
    said = definitions(app.env)
    for link in links:
        id = link.get("refuri", "").partition("#")[2] or link.get("refid", "")
        if id in said:
            link["reftitle"] = said[id]


def is_term(link: nodes.reference) -> bool:
    """Say whether a link was written as {term}."""
    return any(TERM in inner["classes"] for inner in link.findall(nodes.inline))


def definitions(env: BuildEnvironment) -> dict[str, str]:
    """Return what the glossary says, by the id of each term; its first paragraph alone."""
    if PAGE not in env.found_docs:
        return {}
    said = {}
    for item in env.get_doctree(PAGE).findall(nodes.definition_list_item):
        paragraphs = list(item.findall(nodes.paragraph))
        for term in item.findall(nodes.term):
            for id in term["ids"]:
                said[id] = " ".join(paragraphs[0].astext().split())
    return said
