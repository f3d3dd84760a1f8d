"""What nbgrader's settings say of a release: what is cut from cells, what stands there instead."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.common.course import CourseError, read_config

IGNORED = (".ipynb_checkpoints", "*.pyc", "__pycache__", "feedback")  # unless a course says else


@dataclass(frozen=True)
class Markers:
    """The settings of nbgrader that decide what a release shows."""

    code_stub: str = "# YOUR CODE HERE\nraise NotImplementedError()"
    text_stub: str = "YOUR ANSWER HERE"
    solution: tuple[str, str] = ("BEGIN SOLUTION", "END SOLUTION")
    hidden: tuple[str, str] = ("BEGIN HIDDEN TESTS", "END HIDDEN TESTS")
    scheme: tuple[str, str] = ("BEGIN MARK SCHEME", "END MARK SCHEME")
    header: Path | None = None
    footer: Path | None = None
    stand_in: bool = False  # c.Autograder.reference_stands_in
    ignored: tuple[str, ...] = IGNORED  # c.CourseDirectory.ignore


def read_markers(root: Path) -> Markers:
    """The course's settings, as nbgrader has them."""
    config = read_config(root)
    standard = Markers()
    around = [_text(config, "IncludeHeaderFooter", name, "") for name in ("header", "footer")]
    header, footer = (root / path if path else None for path in around)
    return Markers(
        _code_stub(config, standard.code_stub),
        _text(config, "ClearSolutions", "text_stub", standard.text_stub),
        _pair(config, "ClearSolutions", "solution_delimeter", standard.solution),
        markers_of_hidden(config),
        _pair(config, "ClearMarkScheme", "mark_scheme_delimeter", standard.scheme),
        header,
        footer,
        bool(config.get("Autograder", {}).get("reference_stands_in", False)),
        _ignored(config),
    )


def _said(config: Any, table: str, name: str, standard: Any) -> Any:
    """What a setting says, or what it makes of the standard, as by `.append("hidden_*")`."""
    from traitlets.config.loader import LazyConfigValue  # whoever has read settings has it

    said = config.get(table, {}).get(name, standard)
    return said.get_value(standard) if isinstance(said, LazyConfigValue) else said


def _text(config: Any, table: str, name: str, standard: str) -> str:
    said = _said(config, table, name, standard)
    if not isinstance(said, str):
        raise _odd(table, name, said, "a text")
    return said


def _code_stub(config: Any, standard: str) -> str:
    said = _said(config, "ClearSolutions", "code_stub", {"python": standard})
    stub = said.get("python", standard) if isinstance(said, dict) else said
    if not isinstance(stub, str):
        raise _odd("ClearSolutions", "code_stub", said, "a text for each language")
    return stub


def _ignored(config: Any) -> tuple[str, ...]:
    said = _said(config, "CourseDirectory", "ignore", [*IGNORED])
    if not isinstance(said, list | tuple) or not all(isinstance(one, str) for one in said):
        raise _odd("CourseDirectory", "ignore", said, "a list of texts")
    return tuple(said)


def _odd(table: str, name: str, said: object, due: str) -> CourseError:
    return CourseError(
        f"c.{table}.{name} is {said!r} in nbgrader's settings, and should be {due}; mend it there."
    )


def markers_of_hidden(config: Any) -> tuple[str, str]:
    """What stands in a line that begins a hidden part, and in one that ends it."""
    return _pair(config, "ClearHiddenTests", "test_delimeter", Markers().hidden)


def _pair(config: Any, table: str, name: str, standard: tuple[str, str]) -> tuple[str, str]:
    begin, end = (f"{side}_{name}" for side in ("begin", "end"))
    return _text(config, table, begin, standard[0]), _text(config, table, end, standard[1])
