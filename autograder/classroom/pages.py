"""Fill this package's HTML templates; what students wrote is escaped wherever it is shown."""

import re
from functools import cache
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from autograder.classroom.rebuild import harmless
from autograder.common.whole import require_file

# For pages that repeat what a student wrote: nothing may run or be fetched, whatever slips through.
POLICY = (
    '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
    "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'\">"
)
# Of light pages, the book's indigo among them; nbgrader's page of feedback has them too.
COLOURS = {"soft": "#5a6472", "good": "#1b7f5c", "fair": "#9a6700", "accent": "#3a4fa3"}
STAMP = re.compile(rb'<meta name="made-of" content="(\w+)">')
STAMPED_WITHIN = 200  # bytes from the beginning of a page


def page(template: str, **values: object) -> str:
    """The template's text with these values, each of them escaped.

    No sign in one commands anything, or turns the reading direction of what stands beside it.
    """
    return harmless(_environment().get_template(template).render(**values))


def prepare(template: str) -> None:
    """Read a template now, when there is time, and not with the first page."""
    _environment().get_template(template)


def inert_page(template: str, **values: object) -> str:
    """A page that a browser shows without running or fetching anything."""
    return page(template, **values).replace("<head>", f"<head>\n{POLICY}", 1)


def stamped(text: str, stamp: str) -> str:
    """The page with a sign in it of what it was made of."""
    return text.replace("<head>", f'<head>\n<meta name="made-of" content="{stamp}">', 1)


def made_of(path: Path) -> str:
    """That sign of a page on the disk; empty if there is no page, or none of ours."""
    try:
        require_file(path)
        with path.open("rb") as file:
            found = STAMP.search(file.read(STAMPED_WITHIN))
    except OSError:
        return ""
    return found[1].decode() if found else ""


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("autograder.classroom"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals["colours"] = COLOURS
    return made
