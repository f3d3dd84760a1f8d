"""What travels to a worker once: the grader's text, and of the course what grading needs.

That is the instructor's copies, files beside them, the modules that notebooks import and what known
mistakes give. Nothing of any student: no submission, no gradebook, no setting of nbgrader's (which
may hold a password), no list of who handed in when.
"""

import hashlib
import io
import json
import pickle
import platform
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autograder.authoring.known import kept_shelf, parts
from autograder.authoring.processes import fingerprints, imports
from autograder.common.course import Course, CourseError
from autograder.judge.fingerprint import PACKAGE, own_places
from autograder.judge.lateness import Late

if TYPE_CHECKING:
    from autograder.judge.assignment import Assignment

MOST = 200_000_000  # bytes of it, before it is compressed
NAMED = 3  # differences in one sentence
ORDER, READ = "order.json", "assignments"


@dataclass(frozen=True)
class Unpacked:
    """What has travelled, where it arrived."""

    course: Course
    assignments: dict[str, "Assignment"]
    sandboxed: bool


def pack(course: Course, assignments: Mapping[str, "Assignment"], *, sandboxed: bool) -> bytes:
    """A zip archive of all that grading these assignments needs."""
    stripped = {name: _stripped(one) for name, one in assignments.items()}
    files: dict[str, bytes] = {
        ORDER: json.dumps({"sandboxed": sandboxed}).encode(),
        READ: pickle.dumps(stripped),
    }
    for where, path in _travelling(course, assignments):
        if where not in files and path.is_file():
            files[where] = path.read_bytes()
    size = sum(map(len, files.values()))
    if size > MOST:
        raise CourseError(
            f"What grading needs is {size >> 20} MB, and at most {MOST >> 20} MB travel to a "
            "worker; move what no test needs out of the folders of the course's own modules."
        )
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for where, content in files.items():
            archive.writestr(where, content)
    return packed.getvalue()


def unpacked(folder: Path) -> Unpacked:
    """What `pack` made, once the archive lies open in a folder; the course's modules can be had."""
    root = folder / "course"
    order = json.loads((folder / ORDER).read_text(encoding="utf-8"))
    read = pickle.loads((folder / READ).read_bytes())  # written by the caller, as all of the kit
    sys.path.append(str(root))
    assignments = {name: _placed(one, root / "files" / name) for name, one in read.items()}
    return Unpacked(Course(root), assignments, order["sandboxed"])


def _stripped(assignment: "Assignment") -> "Assignment":
    """Without when others handed in, and with files named as they lie in the assignment."""
    inside = [
        tuple(path.relative_to(assignment.folder) for path in paths)
        for paths in (assignment.files, assignment.released)
    ]
    rules = replace(assignment.rules, late=Late())
    return replace(assignment, rules=rules, files=inside[0], released=inside[1], folder=Path())


def _placed(assignment: "Assignment", folder: Path) -> "Assignment":
    """With its files where they have arrived."""
    files, released = (
        tuple(folder / path for path in paths) for paths in (assignment.files, assignment.released)
    )
    return replace(assignment, files=files, released=released, folder=folder)


def _travelling(
    course: Course, assignments: Mapping[str, "Assignment"]
) -> Iterator[tuple[str, Path]]:
    """Where each file goes, and where it lies."""
    for path in _texts(PACKAGE):
        yield f"grader/{PACKAGE.name}/{path.relative_to(PACKAGE).as_posix()}", path
    cache = Path("build") / "fingerprints.json"
    yield f"course/{cache.as_posix()}", course.root / cache
    for name, one in assignments.items():
        for path in one.files:
            yield f"course/files/{name}/{path.relative_to(one.folder).as_posix()}", path
        for path in parts(course, name):
            yield f"course/{path.relative_to(course.root).as_posix()}", path
    for name, version in fingerprints(course, assignments).items():
        if shelf := kept_shelf(course, name, version):
            yield f"course/{shelf.path.relative_to(course.root).as_posix()}", shelf.path
    for path, within in _modules(assignments):
        yield f"course/{path.relative_to(within).as_posix()}", path


def _texts(folder: Path) -> Iterator[Path]:
    """All files below a folder but what Python makes of them and what is hidden."""
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder).parts
        hidden = any(part == "__pycache__" or part.startswith(".") for part in inside)
        if path.is_file() and not hidden:
            yield path


def _tops(assignments: Mapping[str, "Assignment"]) -> list[str]:
    names = {name.partition(".")[0] for one in assignments.values() for name in imports(one)}
    return sorted(names - set(sys.stdlib_module_names))


def _modules(assignments: Mapping[str, "Assignment"]) -> Iterator[tuple[Path, Path]]:
    """The files of modules that were not installed, each with the folder it is imported from."""
    for top in _tops(assignments):
        for place in own_places(top):
            for path in _texts(place) if place.is_dir() else [place]:
                yield path, place.parent


def account(course: Course, assignments: Mapping[str, "Assignment"]) -> dict[str, Any]:
    """What grades depend on, here: the same where a grade would be the same; fit for JSON."""
    own: dict[str, str] = {PACKAGE.name: _digest(_texts(PACKAGE), PACKAGE)}
    for top in _tops(assignments):
        for place in own_places(top):
            files = _texts(place) if place.is_dir() else [place]
            own[top] = own.get(top, "") + _digest(files, place)
    return {
        "prints": fingerprints(course, assignments),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "own": own,
        "first": _tops(assignments),
        "libraries": _libraries(),
    }


def _libraries() -> dict[str, str]:
    """The version of each library that is installed; of several the one that is imported."""
    found: dict[str, str] = {}
    for one in metadata.distributions():
        found.setdefault(one.name.lower(), one.version)
    return found


def differences(mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[str]:
    """In what a worker's account differs from one's own, if a grade may; empty if none can."""
    if theirs["prints"] == mine["prints"]:
        return []
    found = []
    if theirs["python"] != mine["python"]:
        found.append(f"Python {theirs['python']}, and here it is {mine['python']}")
    if theirs["own"].get(PACKAGE.name) != mine["own"][PACKAGE.name]:
        found.append("another version of the grader")
    for name, digest in mine["own"].items():
        if name != PACKAGE.name and theirs["own"].get(name) != digest:
            found.append(f"another version of the course's own module {name}")
    found += _other_libraries(mine, theirs["libraries"])
    return found[:NAMED] or ["something else than here that grades depend on"]


def _other_libraries(mine: Mapping[str, Any], there: Mapping[str, str]) -> list[str]:
    """Those that notebooks import come first, then other versions, then what is not there."""
    here = mine["libraries"]
    first = {name.lower() for name in mine["first"]}
    differing = [name for name in sorted(here) if there.get(name) != here[name]]
    differing.sort(key=lambda name: (name not in first, name not in there))  # stable
    return [
        f"{name} {there[name]}, and here it is {here[name]}" if there.get(name) else f"no {name}"
        for name in differing
    ]


def _digest(paths: Iterable[Path], below: Path) -> str:
    found = hashlib.sha256()
    for path in paths:
        name = path.name if path == below else path.relative_to(below).as_posix()
        found.update(json.dumps([name, hashlib.sha256(path.read_bytes()).hexdigest()]).encode())
    return found.hexdigest()
