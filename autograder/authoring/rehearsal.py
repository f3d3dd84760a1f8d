"""Rehearse a course's tests: the reference has to pass them, the untouched release has to fail."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from autograder.authoring.asked_here import asked_here
from autograder.authoring.building import read
from autograder.authoring.processes import (
    REHEARSAL,
    State,
    can_fork,
    cores,
    fingerprints,
    fork_server_order,
    start_bare,
    start_warm,
    tell_trying,
    warm_order,
)
from autograder.common.course import Course, private_folders
from autograder.common.failures import in_words
from autograder.common.whole import require_file, write_whole
from autograder.judge.markers import read_markers

MOST_COMPLAINTS = 10  # that are shown


@dataclass(frozen=True)
class Rehearsed:
    """How a course's tests went with the reference and with the untouched release."""

    notes: tuple[str, ...] = ()  # a sentence for each test that does not run as it should
    unable: int = 0  # of these, how many give wrong points

    def words(self) -> str:
        """What follows from it for the class; empty if all is well."""
        if not self.unable:
            return ""
        return (
            f"{self.unable} of the tests do not run as they should (see above); whoever fails "
            "one is told that it is no fault of theirs. Mend them and grade again."
        )


def rehearsed(course: Course, chapters: Sequence[str]) -> Rehearsed:
    """Rehearse what has changed since it was rehearsed last."""
    complaints = rehearse(course, chapters)
    notes = [*complaints, *handed_out(course, chapters), *asked_in(course, chapters)]
    return Rehearsed(tuple(notes[:MOST_COMPLAINTS]), len(complaints))


def handed_out(course: Course, chapters: Sequence[str]) -> Iterator[str]:
    """Lists of who handed in when that nbgrader puts into a release, and what to do."""
    ignored = read_markers(course.root).ignored
    for name in chapters:
        one = read(course, name)
        path = one.rules.late.listed
        if path is None or path.resolve().parent != one.folder:
            continue
        if not any(fnmatchcase(path.name, pattern) for pattern in ignored):
            yield (
                f"{course.show(path)} lies in the assignment's folder, and nbgrader "
                "generate_assignment hands that out: every student could read when everybody "
                f'handed in. Move it, and write times = "../{path.name}" in rules.toml.'
            )


def asked_in(course: Course, chapters: Sequence[str]) -> list[str]:
    """Each test that asks something of the wrong process."""
    return [one for name in chapters for one in asked_here(read(course, name))]


def rehearse(course: Course, chapters: Sequence[str]) -> list[str]:
    """Grade the reference and the untouched release; what does not come out as it should.

    What was rehearsed once is not again until something changes that grades depend on.
    """
    from autograder.isolation import machine
    from autograder.isolation.pool import Pool

    if not can_fork():
        return []  # nothing can be graded here, so nothing can be tried
    assignments = {name: read(course, name) for name in chapters}
    prints = fingerprints(course, assignments)
    todo = {name: prints[name] for name in chapters if _rehearsed(course, name)[0] != prints[name]}
    if not todo:
        return []
    tell_trying(todo, "your own answers, and with none")
    complaints: list[str] = []
    able = machine.probe().namespaces
    private = private_folders(course)
    firsts = [fork_server_order([assignments[name] for name in todo], able, private, many=False)]
    arguments = warm_order(course, assignments, todo)
    readable = firsts[0]["readable"] if able else None
    walls = {"readable": readable, "private": private}
    pool = Pool(cores(), start_warm, rehearse_one, arguments, start_bare, firsts, **walls)
    with pool:
        for name, outcome in pool.run(iter(todo), REHEARSAL):
            lost = {"complaints": [getattr(outcome, "reason", "")], "costs": {}}
            found = json.loads(outcome) if isinstance(outcome, bytes) else lost
            said = found["complaints"]
            complaints += [one if name in one else f"{name}: {one}" for one in said]
            if not said:
                mark = _mark(course, name)
                with in_words(mark):
                    write_whole(mark, json.dumps([prints[name], found["costs"]]))
    return complaints


def costs(course: Course, chapter: str) -> dict[str, tuple[int, float]]:
    """Of each test, when it was rehearsed: the calls that it made, and seconds of work."""
    found = _rehearsed(course, chapter)[1]
    return {test: (int(calls), float(work)) for test, (calls, work) in found.items()}


def _mark(course: Course, chapter: str) -> Path:
    return course.root / "build" / "rehearsed" / f"{chapter}.json"


def _rehearsed(course: Course, chapter: str) -> tuple[str, dict[str, list[float]]]:
    """What a chapter was rehearsed with, and what its tests cost; nothing if it was not."""
    try:
        require_file(_mark(course, chapter))
        made, found = json.loads(_mark(course, chapter).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return "", {}
    return made, found


def rehearse_one(state: State, chapter: str) -> bytes:
    """Rehearse one chapter; runs in a process of its own."""
    from autograder.isolation.outcomes import doubted
    from autograder.judge import rehearsal

    found = rehearsal.rehearse(state.assignments[chapter], state.fork_server)
    return doubted(json.dumps(asdict(found)).encode())
