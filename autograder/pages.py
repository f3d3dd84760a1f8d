"""Fill this package's HTML templates; what students wrote is escaped wherever it is shown."""

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined

# For pages that repeat what a student wrote: nothing may run or be fetched, whatever slips through.
POLICY = (
    '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
    "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'\">"
)


def page(template: str, **values: object) -> str:
    """The template's text with these values, each of them escaped."""
    return _environment().get_template(template).render(**values)


def prepare(template: str) -> None:
    """Read a template now, when there is time, and not with the first page."""
    _environment().get_template(template)


def inert_page(template: str, **values: object) -> str:
    """A page that a browser shows without running or fetching anything."""
    return page(template, **values).replace("<head>", f"<head>\n{POLICY}", 1)


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("autograder"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
