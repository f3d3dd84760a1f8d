"""A cell as its author means it, and as the release shows it: by marked parts, as nbgrader cuts."""

from collections.abc import Sequence

from autograder.common.course import CourseError
from autograder.judge.markers import Markers


def visible_part(source: str, *pairs: tuple[str, str]) -> str:
    """A test's source without its hidden parts; one that nothing ends goes on to the end."""
    kept: list[str] = []
    until: str | None = None  # what ends the part that a line is in
    for line in source.split("\n"):
        if until is not None:
            until = None if until in line else until
            continue
        until = next((end for begin, end in pairs if begin in line), None)
        if until is None:
            kept.append(line)
    return "\n".join(kept)


def versions(
    where: str, kind: str, cell_type: str, source: str, markers: Markers
) -> tuple[str, str, tuple[tuple[int, int], ...]]:
    """A cell as its author means it, as the release shows it, and which lines are hidden."""
    solved = _regions(where, source, markers.solution)
    hidden = _regions(where, source, markers.hidden)
    if hidden and kind not in ("test", "manual"):
        raise CourseError(f"{where}: hidden tests belong in a test cell; move them there.")
    if solved and kind not in ("solution", "manual"):
        raise CourseError(f"{where}: a marked solution belongs in a solution cell; move it there.")
    if kind == "task":
        scheme = _regions(where, source, markers.scheme)
        return source, _without(source, scheme), ()
    if kind not in ("solution", "manual"):
        return source, _without(source, hidden), hidden
    stub = markers.code_stub if cell_type == "code" else markers.text_stub
    lines = source.split("\n")
    marked = {line for region in solved for line in region}
    kept = "\n".join(line for n, line in enumerate(lines, 1) if n not in marked)
    released = _with_stub(source, solved, stub) if solved else stub
    return kept, visible_part(released, markers.hidden), ()


def _regions(where: str, source: str, marks: tuple[str, str]) -> tuple[tuple[int, int], ...]:
    """First and last line of each marked part, the markers included."""
    begin, end = marks
    found, start = [], 0
    for number, line in enumerate(source.split("\n"), 1):
        if begin in line:
            if start:
                raise CourseError(f"{where}: {begin} stands twice without {end}; add the end.")
            start = number
        elif end in line and start:
            found.append((start, number))
            start = 0
    if start:
        raise CourseError(f"{where}: {begin} on line {start} has no {end}; add it.")
    return tuple(found)


def _without(source: str, regions: Sequence[tuple[int, int]]) -> str:
    lines = enumerate(source.split("\n"), 1)
    return "\n".join(
        line for n, line in lines if not any(first <= n <= last for first, last in regions)
    )


def _with_stub(source: str, regions: Sequence[tuple[int, int]], stub: str) -> str:
    """The source with each marked part replaced by the stub, indented as the marker is."""
    starts = {first for first, _ in regions}
    lines: list[str] = []
    for number, line in enumerate(source.split("\n"), 1):
        if number in starts:
            indent = line[: len(line) - len(line.lstrip())]
            lines.extend(indent + part for part in stub.split("\n"))
        elif not any(first <= number <= last for first, last in regions):
            lines.append(line)
    return "\n".join(lines)
