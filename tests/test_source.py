"""Exercise sources: what is read from them, and what a broken one is told."""

import json
from pathlib import Path

import pytest

from autograder.authoring.source import SourceError, digest_of, made_from, notebook, read_source
from autograder.common.course import Course

SOUND = '''\
# %% [markdown]
# # 9 Sums
# %% setup
from math import fsum
# %% [markdown]
# ## 9.1 Adding   (5 points, about 10 minutes, difficulty 1 of 5)
# Add two numbers.
# %% solution="add" export
def add(a, b):
    """The sum."""
    ### BEGIN SOLUTION
    return a + b
    ### END SOLUTION
# %% test="add-values" points=3
assert add(2, 3) == 5, "2 and 3 make 5"
### BEGIN HIDDEN TESTS
assert add(20, 30) == 50, "20 and 30 make 50"
### END HIDDEN TESTS
# %% [markdown] manual="add-why" points=2
# ### BEGIN SOLUTION
# Because.
# ### END SOLUTION
'''


@pytest.fixture
def write(tmp_path: Path):
    """Write a source and return its path."""

    def write_text(text: str) -> Path:
        path = tmp_path / "09_sums.py"
        path.write_text(text, encoding="utf-8")
        return path

    return write_text


def test_a_sound_source_is_read_whole(write):
    source = read_source(write(SOUND))
    assert [cell.kind for cell in source.cells] == [
        *("text", "setup", "text", "solution", "test", "manual")
    ]
    assert source.solution("add").export
    assert source.tests_of("add") == ["add-values"]
    (question,) = source.questions()
    assert (question.number, question.title, question.points) == ("9.1", "Adding", 5)
    assert question.graded == ("add-values", "add-why")


def test_the_notebook_has_nbgraders_marks(write):
    cells = json.loads(notebook(read_source(write(SOUND))))["cells"]
    marks = {cell["id"]: cell["metadata"].get("nbgrader") for cell in cells}
    assert marks["add-values"] == {
        "grade": True,
        "grade_id": "add-values",
        "locked": True,
        "points": 3,
        "schema_version": 3,
        "solution": False,
        "task": False,
    }
    assert marks["add"]["solution"] and not marks["add"]["grade"]
    assert marks["add-why"]["solution"] and marks["add-why"]["grade"]
    assert marks["setup"]["locked"]
    assert next(cell for cell in cells if cell["id"] == "add")["metadata"]["tags"] == ["export"]


def test_the_same_source_gives_the_same_bytes(write):
    path = write(SOUND)
    assert notebook(read_source(path)) == notebook(read_source(path))


BROKEN = {
    "unreadable header": ('# %% solution="add" export', "# %% solution=add", "cannot read"),
    "misspelt kind": ("# %% setup", "# %% set-up", "cannot read the cell header"),
    "no header at the top": ("# %% [markdown]\n# # 9", "# # 9", "starts with a cell header"),
    "two cells of one name": ('manual="add-why"', 'manual="add-values"', "is used on line"),
    "a name with a space": ('solution="add"', 'solution="add it"', "lower-case letters"),
    "points in words": ("points=3", "points=three", "not a positive whole number"),
    "points of zero": ("points=3", "points=0", "not a positive whole number"),
    "points with a fraction": ("points=3", "points=2.5", "not a positive whole number"),
    "points that do not add up": ("(5 points", "(6 points", "announces 6 points"),
    "two questions of one number": (
        "# Because.\n# ### END SOLUTION",
        "# Because.\n# ### END SOLUTION\n# %% [markdown]\n"
        "# ## 9.1 More   (0 points, about 5 minutes, difficulty 1 of 5)",
        "there is a question 9.1 already",
    ),
    "a heading without labels": (
        "   (5 points, about 10 minutes, difficulty 1 of 5)",
        "",
        "the heading of add-values should read",
    ),
    "no test": (
        SOUND[SOUND.index("# %% test") : SOUND.index("# %% [markdown] manual")],
        "",
        "a solution without a test",
    ),
    "a test of another solution": ('test="add-values"', 'test="sum-values"', "starts with the id"),
    "no setup": ("# %% setup\nfrom math import fsum\n", "", "0 setup cells"),
    "no markers": ("    ### BEGIN SOLUTION\n", "", "should alternate"),
    "a marker left open": ("### END HIDDEN TESTS\n", "", "should alternate"),
    "hidden tests between misspelt marks": (
        '### BEGIN HIDDEN TESTS\nassert add(20, 30) == 50, "20 and 30 make 50"\n'
        "### END HIDDEN TESTS",
        '### BEGIN HIDDEN TEST\nassert add(20, 30) == 50, "20 and 30 make 50"\n### END HIDDEN TEST',
        "'### BEGIN HIDDEN TEST' is no mark; write one of",
    ),
    "a mark with a word too much": (
        "### BEGIN SOLUTION\n    return",
        "### BEGIN SOLUTIONS\n    return",
        "'### BEGIN SOLUTIONS' is no mark",
    ),
    "a mark with fewer signs": (
        "    ### BEGIN SOLUTION\n    return a + b\n    ### END",
        "    ## BEGIN SOLUTION\n    return a + b\n    ## END",
        "'## BEGIN SOLUTION' is no mark",
    ),
    "hidden tests in a solution": (
        "    return a + b",
        "    ### BEGIN HIDDEN TESTS\n    return a + b\n    ### END HIDDEN TESTS",
        "belongs in a test cell",
    ),
    "an answer without markers": (
        "    ### BEGIN SOLUTION\n    return a + b\n    ### END SOLUTION",
        "    return a + b",
        "the answer would be released",
    ),
    "no Python": ("return a + b", "return a +", "is no Python"),
    "a test that ends in a value": (
        '### BEGIN HIDDEN TESTS\nassert add(20, 30) == 50, "20 and 30 make 50"\n'
        "### END HIDDEN TESTS",
        "add(20, 30)",
        "reads as a partial score",
    ),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_source_is_refused_with_file_place_and_what_to_do(write, fault):
    old, new, said = BROKEN[fault]
    assert old in SOUND
    with pytest.raises(SourceError) as caught:
        read_source(write(SOUND.replace(old, new)))
    message = str(caught.value)
    assert said in message
    assert "09_sums.py" in message
    assert "\n" not in message


def test_a_source_as_a_windows_editor_saves_it_is_the_same(write):
    plain = read_source(write(SOUND))
    path = write("\ufeff" + SOUND)
    assert read_source(path).cells == plain.cells and digest_of(path) == plain.digest
    assert read_source(path, path.read_text(encoding="utf-8")).cells == plain.cells


def test_a_source_in_another_encoding_is_a_sentence(write):
    path = write(SOUND)
    path.write_bytes(SOUND.replace("Because", "Weil Vögel").encode("latin-1"))
    for read in (read_source, digest_of):
        with pytest.raises(SourceError, match="no text in UTF-8"):
            read(path)


@pytest.mark.parametrize(
    "text",
    [b"<<<<<<< HEAD\n{}", b"", b"\xff", b"[]", b'{"metadata": 5}', b"[" * 100_000, b'{"a": 1}'],
)
def test_a_built_notebook_that_was_damaged_was_made_from_nothing(tmp_path: Path, text: bytes):
    path = tmp_path / "09_sums.ipynb"
    path.write_bytes(text)
    assert made_from(path) == ""


def test_a_missing_source_is_named(tmp_path):
    with pytest.raises(SourceError, match="does not exist"):
        read_source(tmp_path / "10_nothing.py")


def test_every_exercise_keeps_the_houses_form(course: Course, chapter: str):
    source = read_source(course.source(chapter))
    questions = source.questions()
    assert 4 <= len(questions) <= 10  # a bonus and a prediction among them
    assert 18 <= sum(question.points for question in questions) <= 30
    written = [question for question in questions if not question.solutions]
    assert len(written) == 1, "one short written question"
    for cell in source.of_kind("text"):
        if "\n## " in f"\n{cell.source}" and "points, about" in cell.source:
            assert "**Objective.**" in cell.source
            is_written = any(f"## {question.number} " in cell.source for question in written)
            hints = cell.source.count("<details>")
            assert is_written or hints >= 3, f"hint, sketch, help by symptom: {cell.line}"
    for cell in source.of_kind("test"):
        assert "visible_passed()" in cell.source, cell.id
