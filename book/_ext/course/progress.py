"""A line for each page that is read: with `-q`, Sphinx says nothing but what is wrong."""

import sys

from sphinx.application import Sphinx


def say_page(app: Sphinx, docname: str, source: list[str]) -> None:
    """Name the page, and whether it has cells, which may take a while to run."""
    cells = source[0].count("{code-cell}")
    print(f"  {docname}" + (f" ({cells} cells)" if cells else ""), file=sys.stderr, flush=True)
