"""Fill this package's HTML templates; what students wrote is escaped wherever it is shown."""

from jinja2 import Environment, PackageLoader, StrictUndefined


def page(template: str, **values: object) -> str:
    """The template's text with these values, each of them escaped."""
    environment = Environment(
        loader=PackageLoader("autograder"), autoescape=True, undefined=StrictUndefined
    )
    return environment.get_template(template).render(**values)
