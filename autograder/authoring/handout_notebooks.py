"""The notebooks of a hand-out: released, up to date, and with them what `check` has to know."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autograder.authoring.building import build_changed, read, source_folder
from autograder.authoring.release import require_fresh
from autograder.common import handed_out
from autograder.common.course import Course, CourseError
from autograder.common.failures import in_words
from autograder.judge.assignment import Assignment
from autograder.judge.markers import read_markers
from autograder.judge.parcel import Unreadable
from autograder.judge.raw_cells import read_cells
from autograder.judge.rules import Rules

NOTEBOOKS = "exercises"  # the folder in the hand-out; where `lab assemble` looks, too
FIRST = "fetch-what-is-missing"  # the id of the cell for hosted services


@dataclass(frozen=True)
class Released:
    """An assignment as students get it."""

    name: str
    files: dict[str, bytes]  # path with the assignment's folder -> content
    rules: Rules = field(default_factory=Rules)

    def notebooks(self) -> dict[str, bytes]:
        """The contents of its notebooks, by their names without .ipynb."""
        return {Path(path).stem: self.files[path] for path in self.files if _is_notebook(path)}

    def code(self) -> Iterator[str]:
        """The texts of all code cells."""
        for content in self.notebooks().values():
            for cell in json.loads(content)["cells"]:
                if cell["cell_type"] == "code":
                    yield "".join(cell["source"])


def released(course: Course, fetch: str = "") -> tuple[list[Released], list[str]]:
    """The assignments that were released, and notes; raises CourseError if one is out of date.

    Args:
        course: with text sources, or with nbgrader's notebooks alone.
        fetch: the text of a first cell for notebooks; by default there is none.
    """
    home = course.release("x").parents[1]
    names = course.chapters() or sorted(path.name for path in home.glob("*") if path.is_dir())
    for name in course.chapters():
        require_fresh(course, name)
    found, notes = [], []
    for name in names:
        one = _assignment(course, name, home / name, notes)
        if one.notebooks():
            found.append(one if not fetch else _with_first(one, fetch))
    if not found:
        raise CourseError(
            f"There is nothing to hand out: {course.show(home)}/ holds no notebooks; run: "
            "nbgrader generate_assignment NAME"
        )
    return found, notes


def kept_of(one: Released) -> dict[str, bytes]:
    """What a hand-out keeps of an assignment for `check`, by the path in it."""
    files: dict[str, bytes] = {}
    for name, content in one.notebooks().items():
        cells = read_cells(content, name)[0]
        texts = sorted({handed_out.digest(cell.source) for cell in cells})
        answers = [c.grade_id for c in cells if c.marks.get("solution") and not c.marks.get("task")]
        place = f"{handed_out.WITHIN}/{one.name}/{name}"
        files[f"{place}{handed_out.TEXTS}"] = "".join(f"{text}\n" for text in texts).encode()
        files[f"{place}{handed_out.RULES}"] = _written(one.rules, answers).encode()
    return files


def _written(rules: Rules, answers: Sequence[str]) -> str:
    """What these questions do not allow, as a rules.toml: nothing on lateness, files or time."""
    lines: list[str] = []
    for id in answers:
        question = rules.for_question(id)
        if question.forbid:
            lines += [
                f"[{json.dumps(id)}]",
                f"forbid = {json.dumps(question.forbid)}",
                f"allow = {json.dumps(question.allow)}",
            ]
    return "".join(f"{line}\n" for line in lines)


def _assignment(course: Course, name: str, folder: Path, notes: list[str]) -> Released:
    """One assignment: its files, compared with what its source gives today."""
    with in_words(folder):
        files = {
            f"{name}/{path.relative_to(folder).as_posix()}": path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file() and not _is_private(path.relative_to(folder))
        }
    found = Released(name, files)
    if not found.notebooks():
        return found
    _demand_no_marks(course, folder, found, [path for path in files if _is_unstripped(path)])
    if not source_folder(course, name).is_dir() and not course.source(name).is_file():
        _demand_no_marks(course, folder, found, filter(_is_notebook, files))
        notes.append(
            f"{course.show(folder)} is handed out as it lies there: its source, with which it "
            f"could be compared, is not in {course.show(source_folder(course, name))}."
        )
        return found
    build_changed(course, [name])
    assignment = read(course, name)
    _compare(course, folder, found, assignment)
    _demand_no_list(course, folder, found, assignment)
    return Released(name, files, assignment.rules)


def _demand_no_marks(course: Course, folder: Path, found: Released, paths: Iterable[str]) -> None:
    """Refuse a file that was never stripped: where there is no source, marks still tell."""
    markers = read_markers(course.root)
    for path in paths:
        text = found.files[path].decode("utf-8", "replace")
        for mark, _ in (markers.solution, markers.hidden, markers.scheme):
            if mark in text:
                raise CourseError(
                    f"{course.show(folder.parent / path)} holds {mark}, so it is no release; "
                    "put there what nbgrader generate_assignment makes."
                )


def _compare(course: Course, folder: Path, found: Released, assignment: Assignment) -> None:
    """Refuse a release that says anything else than its source makes it say."""
    notebooks = found.notebooks()
    for notebook in assignment.notebooks:
        path = folder / f"{notebook.name}.ipynb"
        try:
            cells = read_cells(notebooks.pop(notebook.name, b""), path.name)[0]
        except Unreadable:
            cells = ()
        if [cell.source for cell in cells] != [cell.stub for cell in notebook.cells]:
            raise CourseError(
                f"{course.show(path)} is not what its source gives today; "
                f"{_run(course, assignment)}"
            )
    for name in notebooks:
        raise CourseError(
            f"{course.show(folder / name)}.ipynb has no source; {_run(course, assignment)}"
        )


def _demand_no_list(course: Course, folder: Path, found: Released, assignment: Assignment) -> None:
    """Refuse the list of who handed in when, which nbgrader copies from beside the notebooks."""
    listed, source = assignment.rules.late.listed, assignment.folder.resolve()
    if listed is None or not listed.resolve().is_relative_to(source):
        return
    inside = listed.resolve().relative_to(source)
    if f"{assignment.name}/{inside.as_posix()}" in found.files:
        raise CourseError(
            f"{course.show(folder / inside)} tells every student when everybody handed in; delete "
            f'it there, move {course.show(listed)} and write times = "../{inside.name}" in '
            "rules.toml."
        )


def _run(course: Course, assignment: Assignment) -> str:
    if course.source(assignment.name).is_file():
        return "run: make release"
    return f"run: nbgrader generate_assignment {assignment.name} --force"


def _with_first(one: Released, text: str) -> Released:
    """The assignment with one more cell at the top of its notebooks."""
    files = dict(one.files)
    for path in filter(_is_notebook, files):
        content = json.loads(files[path])
        cell: dict[str, Any] = {"cell_type": "code", "execution_count": None, "metadata": {}}
        cell |= {"outputs": [], "source": text.splitlines(keepends=True)}
        if (content["nbformat"], content["nbformat_minor"]) >= (4, 5):
            cell["id"] = FIRST
        content["cells"].insert(0, cell)
        written = json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False)
        files[path] = f"{written}\n".encode()
    return Released(one.name, files, one.rules)


def _is_notebook(path: str) -> bool:
    return path.endswith(".ipynb") and path.count("/") == 1


def _is_unstripped(path: str) -> bool:
    """Whether a file that nothing is cut from may hold marked cells."""
    return path.lower().endswith((".ipynb", ".py")) and not _is_notebook(path)


def _is_private(inside: Path) -> bool:
    return any(part.startswith((".", "__pycache__")) for part in inside.parts)
