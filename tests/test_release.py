"""The student notebooks: in sync with their sources, and nothing of an answer in them."""

import ast
import json
import re
import shutil
import sys
from pathlib import Path

import pytest

from autograder import __main__
from autograder.authoring.building import build_changed, build_instructor, read
from autograder.authoring.release import release, require_fresh
from autograder.authoring.source import (
    BEGIN_HIDDEN,
    BEGIN_SOLUTION,
    END_HIDDEN,
    END_SOLUTION,
    Source,
    read_source,
)
from autograder.common.course import Course, CourseError
from autograder.isolation import machine
from tests.conftest import CHAPTERS


def regions(source: Source) -> list[str]:
    """The text between every pair of markers: what no student may get."""
    pattern = rf"{BEGIN_SOLUTION}\n(.*?){END_SOLUTION}|{BEGIN_HIDDEN}\n(.*?){END_HIDDEN}"
    return [
        one or other
        for cell in source.cells
        for one, other in re.findall(pattern, cell.source, re.DOTALL)
    ]


def lines_worth_hiding(source: Source) -> set[str]:
    """Lines of those regions that stand nowhere in what is given out on purpose."""
    given = "\n".join(cell.source for cell in source.cells)
    for region in regions(source):
        given = given.replace(region, "")
    lines = {line.strip() for region in regions(source) for line in region.splitlines()}
    return {line for line in lines if len(line) > 12 and line not in given}


def statements(code: str) -> set[str]:
    """Every statement of some code, normalised: layout and comments do not count."""
    return {ast.unparse(node) for node in ast.walk(ast.parse(code)) if isinstance(node, ast.stmt)}


def code_cells(path: Path) -> list[str]:
    """The code of a notebook's cells."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def test_a_release_made_again_is_the_same_to_the_byte(course: Course, chapter, tmp_path):
    again = release(course, chapter, tmp_path)
    assert again.read_bytes() == course.release(chapter).read_bytes(), "run: make release"


def test_exercises_holds_the_releases_and_nothing_else(course: Course):
    found = {str(p.relative_to(course.root)) for p in (course.root / "exercises").rglob("*")}
    found = {name for name in found if ".ipynb_checkpoints" not in name}
    expected = {f"exercises/{c}" for c in CHAPTERS} | {f"exercises/{c}/{c}.ipynb" for c in CHAPTERS}
    assert found == expected


def test_no_line_of_an_answer_or_a_hidden_test_is_released(course: Course, chapter: str):
    text = course.release(chapter).read_text(encoding="utf-8")
    secret = lines_worth_hiding(read_source(course.source(chapter)))
    assert secret
    assert [line for line in secret if json.dumps(line, ensure_ascii=False)[1:-1] in text] == []
    assert "BEGIN SOLUTION" not in text and "HIDDEN" not in text


def test_no_statement_of_an_answer_or_a_hidden_test_is_released(course: Course, chapter: str):
    source = read_source(course.source(chapter))
    released = set().union(*(statements(code) for code in code_cells(course.release(chapter))))
    full = set().union(*(statements(cell.source) for cell in source.cells if cell.is_code))
    secret = {
        statement for statement in full - released if "\n" not in statement and len(statement) > 12
    }
    text = "\n".join(code_cells(course.release(chapter)))
    assert secret
    assert [statement for statement in secret if statement in text] == []


def test_every_answer_is_a_stub_that_says_so(course: Course, chapter: str):
    source = read_source(course.source(chapter))
    cells = json.loads(course.release(chapter).read_text(encoding="utf-8"))["cells"]
    by_id = {cell["id"]: "".join(cell["source"]) for cell in cells}
    for cell in source.of_kind("solution"):
        assert 'raise NotImplementedError("not answered yet' in by_id[cell.id]
    for cell in source.of_kind("manual"):
        assert by_id[cell.id].strip() == "YOUR ANSWER HERE"


def test_a_stale_release_is_refused(course: Course, chapter: str, tmp_path: Path):
    copy = Course(tmp_path)
    settings = course.root / "nbgrader_config.py"
    for path in (settings, course.source(chapter), course.release(chapter)):
        target = tmp_path / path.relative_to(course.root)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    require_fresh(copy, chapter)
    with copy.source(chapter).open("a", encoding="utf-8") as file:
        file.write("\n# one more line\n")
    with pytest.raises(CourseError, match=r"is older than .*; run: make release"):
        require_fresh(copy, chapter)
    copy.release(chapter).unlink()
    with pytest.raises(CourseError, match="is missing; run: make release"):
        require_fresh(copy, chapter)


def test_what_somebody_has_put_into_a_release_is_not_lost(course: Course, tmp_path: Path):
    chapter = CHAPTERS[0]
    folder = tmp_path / chapter
    for make in (Path.touch, Path.mkdir):
        folder.mkdir()
        make(folder / "notes for next year")
        with pytest.raises(CourseError, match="notes for next year there would be lost"):
            release(course, chapter, tmp_path)
        assert (folder / "notes for next year").exists()
        shutil.rmtree(folder)
    (folder / f"{chapter}.ipynb").mkdir(parents=True)
    with pytest.raises(CourseError, match="would be lost"):
        release(course, chapter, tmp_path)


def test_an_unchanged_instructor_notebook_is_not_written_again(course: Course, chapter: str):
    path = build_instructor(course, chapter)
    before = path.stat().st_mtime_ns
    assert build_instructor(course, chapter).stat().st_mtime_ns == before


def test_an_unknown_chapter_is_named_with_those_that_exist(course: Course):
    with pytest.raises(CourseError, match=r"no chapter '99_nothing'.*01_embedding"):
        course.select(["99_nothing"])


def test_nbgraders_folders_are_where_it_says(course: Course, tmp_path: Path):
    chapter = CHAPTERS[0]
    copy = Course(tmp_path)
    copy.source(chapter).parent.mkdir(parents=True)
    shutil.copy(course.source(chapter), copy.source(chapter))
    settings = [("source", "made"), ("release", "out")]
    lines = [f"c.CourseDirectory.{kind}_directory = {name!r}" for kind, name in settings]
    config = "\n".join(["c = get_config()", *lines])
    (tmp_path / "nbgrader_config.py").write_text(config, encoding="utf-8")
    with pytest.raises(
        CourseError, match=f"not built yet; run: python -m autograder build {chapter}"
    ):
        read(copy, chapter)
    build_changed(copy, [chapter])
    assert read(copy, chapter).folder == tmp_path / "made" / chapter
    assert copy.release(chapter) == tmp_path / "out" / chapter / f"{chapter}.ipynb"


@pytest.mark.skipif(sys.platform != "linux", reason="grading needs Linux")
def test_known_mistakes_are_tried_with_a_release_and_not_before_a_class(
    course: Course, monkeypatch: pytest.MonkeyPatch
):
    tried: list[str] = []
    monkeypatch.setattr("autograder.commands.authoring._rehearse", lambda *_: None)
    monkeypatch.setattr("autograder.authoring.building.build_instructor", lambda *_: None)
    monkeypatch.setattr(
        "autograder.authoring.release.release", lambda course, one: course.release(one)
    )
    monkeypatch.setattr(
        "autograder.authoring.trials.try_known_mistakes",
        lambda _, assignments, *__, **___: tried.extend(assignments),
    )
    assert __main__.main(["release", *CHAPTERS[:2]]) == 0
    assert tried == [*CHAPTERS[:2]] or not machine.probe().namespaces
