"""A friendly contest: score what students handed in with one budget for all; a leaderboard.

Entries lie at FOLDER/<student>/. What is scored, and how, is the course's: a module of its own that
nbgrader_config.py names, see `contest_entry.Plug`.

    c.Contest.module = "trainer.contest"
    c.Contest.minutes = 10            # of a processor, to train
    c.Contest.answer_minutes = 2      # of a processor, for everything else
    c.Contest.memory_mb = 4096
    c.Contest.file_mb = 100           # of all files that are handed in together
    c.Contest.settings = {}           # the module's own

Entries run one after the other, so that none takes another's processor.
"""

import csv
import hashlib
import importlib
import importlib.util
import io
import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from autograder.classroom.contest_entry import Arena, Budget, Contest, Failed, Outcome, Plug, take
from autograder.classroom.journal_lock import Lock
from autograder.classroom.keeper import few
from autograder.classroom.pages import inert_page
from autograder.classroom.places import HIDDEN, SYSTEMS, kinds_in
from autograder.classroom.report_terminal import say_row
from autograder.common.course import Course, CourseError, private_folders, read_config
from autograder.common.failures import in_words
from autograder.common.names import plain, readable, say, shown
from autograder.common.spreadsheet import safe
from autograder.common.whole import require_file, write_whole
from autograder.judge.toml_tables import checked, positive, whole

KEPT, PAGE, TABLE = "contest.json", "leaderboard.html", "leaderboard.csv"
LOCK = "contest.lock"
OURS = (KEPT, PAGE, TABLE, LOCK)  # files in the folder, of which no entry may have the name
PARTS = ("PACKAGES", "FILES", "begin", "enter")
FORMAT = 1


@dataclass(frozen=True)
class Place:
    """A line of the leaderboard."""

    student: str  # as the gradebook has it
    outcome: Outcome
    rank: int | None = None  # None for an entry without a score


def run(course: Course, folder: Path, *, again: bool = False) -> Sequence[Place]:
    """Score the new entries in a folder, and write the leaderboard beside them.

    Args:
        course: names the module and the budget.
        folder: holds a folder for each student.
        again: also those that were scored before.
    """
    students = _students(folder)
    for words in few("no entry", [*_strays(folder)]):
        say(words)
    for name in OURS:
        with in_words(folder / name):
            require_file(folder / name)
    with in_words(folder):
        lock = Lock(folder / LOCK, folder)
    try:
        return _run(course, opened(course), folder, students, again=again)
    finally:
        lock.release()


def _run(
    course: Course, arena: Arena, folder: Path, students: Sequence[str], *, again: bool
) -> Sequence[Place]:
    """The same, while no other run writes there."""
    kept = {} if again else _read_kept(folder / KEPT)
    rules = _digest_of_rules(arena)
    outcomes: dict[str, Outcome] = {}
    say(f"{len(students)} entries, each with {arena.budget.seconds / 60:g} minutes of a processor")
    for number, student in enumerate(students, start=1):
        name = plain(student)
        key, enter = _entry(arena, folder / student, rules)
        before = kept.get(name)
        if before is None or before[0] != key:
            say(f"{number} of {len(students)}: {readable(name)} ...")
            kept[name] = before = key, enter()
            say_row(f"  {_in_words(before[1])}")
            _write_kept(folder / KEPT, kept)
        outcomes[name] = before[1]
    places = ranked(outcomes)
    _print(places)
    write(folder, arena.budget, places)
    say(f"\nleaderboard: {course.show(folder / PAGE)} and {TABLE}")
    return places


def opened(course: Course) -> Arena:
    """The arena that nbgrader_config.py describes."""
    where = course.root / "nbgrader_config.py"
    told = dict(read_config(course.root).get("Contest", {}))
    name, settings = told.pop("module", None), told.pop("settings", {})
    if not isinstance(name, str) or not isinstance(settings, dict):
        raise CourseError(
            f"{where} names no contest; add a line such as "
            '`c.Contest.module = "trainer.contest"`, and settings as a dictionary if it has any.'
        )
    kinds = {field.name: whole if field.type is int else positive for field in fields(Budget)}
    budget = Budget(**checked(where, "c.Contest", told, kinds))
    plug = _plug(course, name)
    contest = _begun(plug, settings, course.root)
    packages = [name.partition(".")[0], *plug.PACKAGES]
    readable_ones = [path for one in dict.fromkeys(packages) for path in _places_of(one)]
    return Arena(plug, contest, readable_ones, budget, private_folders(course), settings)


def ranked(outcomes: Mapping[str, Outcome]) -> list[Place]:
    """The leaderboard: by the scores in their order, then by time; who has none comes last."""
    scored = [one for one in outcomes.items() if not one[1].failed]
    scored.sort(key=lambda one: ([-value for value in one[1].scores.values()], one[1].seconds))
    failed = sorted(one for one in outcomes.items() if one[1].failed)
    places = [Place(*one, rank) for rank, one in enumerate(scored, start=1)]
    return places + [Place(*one) for one in failed]


def write(folder: Path, budget: Budget, places: Sequence[Place]) -> None:
    """Write the leaderboard as a page and as a table."""
    names = score_names(places)
    with in_words(folder):
        text = inert_page("contest.html", places=places, names=names, budget=budget, show=readable)
        write_whole(folder / PAGE, text)
        table = io.StringIO()
        writer = csv.writer(table)
        writer.writerow(["rank", "student", "kind", *names, "seconds", "failed"])
        for place in places:
            one = place.outcome
            scores = [f"{one.scores[name]:.2f}" if name in one.scores else "" for name in names]
            student = safe(readable(place.student))
            seconds = "" if one.failed else f"{one.seconds:.1f}"
            row = [place.rank or "", student, one.kind, *scores, seconds, safe(one.failed)]
            writer.writerow(row)
        write_whole(folder / TABLE, table.getvalue())


def score_names(places: Sequence[Place]) -> list[str]:
    """Names of the scores, the one that decides first."""
    return list(dict.fromkeys(name for place in places for name in place.outcome.scores))


def _students(folder: Path) -> list[str]:
    if not folder.is_dir():
        raise CourseError(
            f"There is no folder {folder}; give the one that holds a folder for each student."
        )
    with in_words(folder):
        found = sorted(one.name for one in folder.iterdir() if _is_entry(one))
    if not found:
        raise CourseError(f"{folder} holds no entry; put each at {folder}/<student>/.")
    return found


def _strays(folder: Path) -> Iterator[str]:
    """What lies beside the entries and may be somebody's, in words."""
    for name, kind in kinds_in(folder):
        if name.startswith("."):
            if kind == "folder" and name not in HIDDEN:
                yield f"{shown(name)}: its name begins with a dot"
        elif kind == "file" and name not in (*OURS, *SYSTEMS):
            yield f"{shown(name)} lies in no student's folder"


def _is_entry(path: Path) -> bool:
    """Whether this is somebody's; a link is, and is refused by a sentence of its own."""
    return not path.name.startswith(".") and (path.is_dir() or path.is_symlink())


def _entry(arena: Arena, folder: Path, rules: str) -> tuple[str, Callable[[], Outcome]]:
    """What an entry is made of, as a digest, and how to find out what comes of it."""
    try:
        files = take(folder, arena.plug.FILES, arena.budget.file_mb)
    except Failed as error:
        outcome = Outcome(failed=str(error))
        return _digest([rules, outcome.failed], {}), lambda: outcome
    return _digest(rules, files), lambda: arena.enter(files, partial(_show, arena.budget.seconds))


def _digest_of_rules(arena: Arena) -> str:
    """Of all that decides what an entry scores but the entry itself."""
    said = asdict(arena.budget), list(arena.contest.right), dict(arena.settings)
    text = Path(arena.plug.__file__).read_bytes()
    return _digest(said, {**arena.contest.given, "": text})


def _digest(said: Any, files: Mapping[str, bytes]) -> str:
    found = hashlib.sha256(json.dumps(said, sort_keys=True, default=str).encode())
    for name, content in sorted(files.items()):
        found.update(json.dumps([name, len(content)]).encode() + content)
    return found.hexdigest()


def _plug(course: Course, name: str) -> Plug:
    if str(course.root) not in sys.path:
        sys.path.append(str(course.root))
    try:
        plug: Any = importlib.import_module(name)
    except Exception as error:  # the module's own, too
        raise CourseError(
            f"c.Contest.module is {name!r}, which cannot be imported ({type(error).__name__}: "
            f"{error}); name a module of the course."
        ) from error
    lacks = [part for part in PARTS if not hasattr(plug, part)]
    if lacks:
        raise CourseError(f"The module {name} has no {lacks[0]}; a contest asks for it.")
    return plug


def _begun(plug: Plug, settings: Mapping[str, Any], root: Path) -> Contest:
    """What the module makes of the settings."""
    try:
        contest = plug.begin(settings, root)
        b"".join(contest.given.values())
        list(contest.right)
    except ValueError as error:
        raise CourseError(f"The contest cannot begin: {error}; see c.Contest.settings.") from error
    except Exception as error:  # the module's own, too
        raise CourseError(
            f"The contest cannot begin: {plug.__name__}.begin gives no contest "
            f"({type(error).__name__}: {error}); see c.Contest.settings, or mend the module."
        ) from error
    return contest


def _places_of(package: str) -> Iterator[Path]:
    """Folder or file of a package, which entries may read."""
    found = importlib.util.find_spec(package)
    for place in (found and found.submodule_search_locations) or ():
        yield Path(place)
    if found and not found.submodule_search_locations and found.origin:
        yield Path(found.origin)


def _read_kept(path: Path) -> dict[str, tuple[str, Outcome]]:
    """What was scored before: for each student a digest and the outcome."""
    if not path.is_file():
        return {}
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        if told["format"] != FORMAT:
            raise ValueError(f"format {told['format']}")
        kept = {name: (one["key"], _outcome(one["outcome"])) for name, one in told["all"].items()}
        return {name: one for name, one in kept.items() if _holds(one[1])}
    except Exception as error:  # whatever is no file of ours
        raise CourseError(
            f"{path} is damaged ({type(error).__name__}: {error}); remove it to score all entries "
            "again."
        ) from error


def _outcome(told: Mapping[str, Any]) -> Outcome:
    """What is kept of an entry; a field of another kind is a TypeError."""
    found = Outcome(**told)
    for one in fields(Outcome):
        value, kept = getattr(found, one.name), getattr(Outcome(), one.name)
        if not isinstance(value, int | float if isinstance(kept, float) else type(kept)):
            raise TypeError(f"{one.name} is {value!r}")
    scores = {name: float(value) for name, value in found.scores.items()}
    return replace(found, scores=scores)


def _holds(outcome: Outcome) -> bool:
    """Whether an entry need not be scored once more."""
    is_either = bool(outcome.failed) != bool(outcome.scores)
    return is_either and not outcome.in_doubt and all(map(math.isfinite, outcome.scores.values()))


def _write_kept(path: Path, kept: Mapping[str, tuple[str, Outcome]]) -> None:
    every = {name: {"key": key, "outcome": asdict(one)} for name, (key, one) in kept.items()}
    with in_words(path):
        write_whole(path, json.dumps({"format": FORMAT, "all": every}, indent=1) + "\n")


def _show(most: float, seconds: float) -> None:
    """How far an entry is, on a terminal alone: one line, which the next one takes the place of."""
    if sys.stdout.isatty():
        print(f"  {seconds:.0f} of at most {most:.0f} s of a processor", end="\r", flush=True)


def _in_words(outcome: Outcome) -> str:
    if outcome.failed:
        return f"no score: {outcome.failed}"
    scores = ", ".join(f"{name} {value:.2f}" for name, value in outcome.scores.items())
    return f"{scores} ({outcome.seconds:.0f} s of a processor)"


def _print(places: Sequence[Place]) -> None:
    names = score_names(places)
    width = max([7, *(len(readable(place.student)) for place in places)])
    heads = "".join(f"  {name:>11}" for name in names)
    say(f"\nrank  {'student':<{width}}{heads}  {'seconds':>8}")
    for place in places:
        if place.rank is None:
            continue
        found = place.outcome.scores
        cells = (f"{found[name]:.2f}" if name in found else "" for name in names)
        scores = "".join(f"  {cell:>11}" for cell in cells)
        student = f"{readable(place.student):<{width}}"
        say_row(f"{place.rank:>4}  {student}{scores}  {place.outcome.seconds:>8.1f}")
    for place in places:
        if place.rank is None:
            say_row(f"   -  {readable(place.student):<{width}}  {place.outcome.failed}")
