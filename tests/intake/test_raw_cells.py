"""The cells of a notebook are read within bounds: any bytes end in cells or in a reason."""

import json
import random
from pathlib import Path

import pytest

from autograder.judge.assignment import Assignment, Notebook, read_assignment
from tests.intake.handing_in import (
    CHAPTER,
    NAME,
    Cells,
    id_of,
    put,
    random_json,
    read,
    right,
    script,
    solved,
)


@pytest.mark.parametrize("source", [{"a": 1}, 7, None, ["a", 3], "x" * 300_000])
def test_an_unreadable_cell_costs_only_itself(
    box: Path, assignment: Assignment, week: Notebook, source: object
):
    content = solved(week)
    cell = next(cell for cell in content["cells"] if id_of(cell) == "masks")
    cell["source"] = source
    found = script(box, assignment, content)
    assert list(found.damaged) == ["masks"] and "cannot be read" in found.damaged["masks"]
    assert found.answers["scores"] == week.cell("scores").source


@pytest.mark.parametrize(
    ("picture", "kept"),
    [
        (
            "data:image/png;base64," + "iVBO/+" * 50_000,
            "See\n![p](data:image/png;base64,) Because.",
        ),
        (
            "data:image/png;base64,\n" + ("iVBO/+" * 12 + "\r\n") * 4_000 + "iV==",
            "See\n![p](data:image/png;base64,) Because.",
        ),
        (
            "data:image/png;base64," + ("iVBO/+" * 12 + "\n  ") * 4_000 + "Because\nit is",
            "See\n![p](data:image/png;base64,\n  Because\nit is) Because.",
        ),
        ("data:words," + "word\n" * 60_000, ""),
        ("word " * 60_000, ""),
    ],
)
def test_a_written_answer_that_is_too_long_is_said_to_be_and_loses_its_pictures_first(
    box: Path, tmp_path: Path, picture: str, kept: str
):
    folder = tmp_path / "source" / CHAPTER
    folder.mkdir(parents=True)
    marks = {"grade": True, "locked": False, "solution": True, "schema_version": 3, "points": 2}
    metadata = {"nbgrader": marks | {"grade_id": "why"}}
    cells = [{"cell_type": "markdown", "metadata": metadata, "source": "YOUR ANSWER HERE"}]
    content = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 0}
    (folder / NAME).write_text(json.dumps(content), encoding="utf-8")
    assignment = read_assignment(folder)
    cells[0] = cells[0] | {"source": f"See\n![p]({picture}) Because."}
    found = script(box, assignment, content)
    assert found.answers["why"] == kept
    (note,), (flag,) = found.notes, found.flags
    assert flag.words == note and "The cell why" in note and "longer than 200,000" in note


def test_many_pasted_pictures_are_left_out_before_a_notebook_is_too_long(
    box: Path, assignment: Assignment, week: Notebook
):
    content = solved(week)
    picture = "data:image/png;base64," + "iVBO/+" * 31_000
    pasted = {"cell_type": "markdown", "metadata": {}, "source": f"See ![p]({picture})"}
    few = script(box, assignment, {"cells": [*content["cells"], pasted]})
    assert few.extra[-1][2] == pasted["source"] and not few.notes
    found = script(box, assignment, {"cells": [*content["cells"], *[pasted] * 11]})
    assert right(found, week)
    assert [source for _, _, source in found.extra] == ["See ![p](data:image/png;base64,)"] * 11
    assert found.notes[0].endswith("all of them the notebook is longer than 2 million characters.")


def test_a_picture_that_was_pasted_is_said_to_be_only_in_what_was_handed_in(
    box: Path, tmp_path: Path
):
    folder = tmp_path / "source" / CHAPTER
    folder.mkdir(parents=True)
    marks = {"grade": True, "locked": False, "solution": True, "schema_version": 3, "points": 2}
    metadata = {"nbgrader": marks | {"grade_id": "why"}}
    given = {"a task.png": {"image/png": "iVBO"}}
    stub = "![](attachment:a%20task.png)\n### BEGIN SOLUTION\n### END SOLUTION"
    cells: Cells = [{"cell_type": "markdown", "metadata": metadata, "source": stub}]
    cells[0]["attachments"] = given
    content = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
    (folder / NAME).write_text(json.dumps(content), encoding="utf-8")
    assignment = read_assignment(folder)
    cells[0] = cells[0] | {"source": f"{stub} Because."}
    assert not script(box, assignment, content).notes
    pasted = {f"{number}\x1b\ud800.png": 5 for number in range(5)}
    cells[0] = cells[0] | {"attachments": {**given, "photo.png": {"image/png": "iVBO"}, **pasted}}
    cells.append({"cell_type": "markdown", "metadata": {}, "source": "x", "attachments": given})
    found = script(box, assignment, content)
    (flag,) = found.flags
    assert flag.words.startswith("The cell why: pasted pictures are only in the notebook that was")
    assert "(photo.png, 0" in flag.words and "and 3 more)" in flag.words
    assert flag.words in found.notes
    assert any(note.startswith("Cell 2: pasted pictures") for note in found.notes)


@pytest.mark.parametrize(
    "outputs",
    ["[" * 5000 + "]" * 5000, "[" + "[]," * 1_100_000 + "{}]", '[{"]": "\\"]", "outputs": []}]'],
)
def test_outputs_decide_nothing(box: Path, assignment: Assignment, week: Notebook, outputs: str):
    content = solved(week)
    for cell in content["cells"][:12]:
        cell["outputs"] = ["?"] if cell is content["cells"][9] else []
    text = json.dumps(content).replace('"outputs": ["?"]', f'"outputs" : {outputs}')
    found = script(box, assignment, text.encode())
    assert len(text) > 1 and right(found, week) and not found.notes


@pytest.mark.parametrize("torn", ['"outputs": [', '"outputs": [}', '"outputs": ["'])
def test_outputs_without_an_end_are_no_notebook(box: Path, assignment: Assignment, torn: str):
    put(box, b'{"cells": [{' + torn.encode())
    assert "no JSON text" in read(box, assignment).reason


@pytest.mark.parametrize(
    ("pasted", "meant"),
    [
        ("In [3]: k = [2, 4]", "k = [2, 4]"),
        ("\n\nIn [3]: k = 2\nIn [4]: m = 3\n", "\n\nk = 2\nm = 3\n"),
        ("# pasted\nIn [12]: k = 2", "# pasted\nk = 2"),
        ("In [1]: def f():\n   ...:     return 1\n", "def f():\n    return 1\n"),
        ("In = [0]\nx = In[0]", "In = [0]\nx = In[0]"),
    ],
)
def test_prompts_that_were_pasted_are_left_out_as_jupyter_does(
    box: Path, assignment: Assignment, week: Notebook, pasted: str, meant: str
):
    content = solved(week)
    next(cell for cell in content["cells"] if id_of(cell) == "masks")["source"] = pasted
    assert script(box, assignment, content).answers["masks"] == meant


ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-be"]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_unicode_encoding_is_read(
    box: Path, assignment: Assignment, week: Notebook, encoding: str
):
    content = json.dumps(solved(week), ensure_ascii=False).encode(encoding)
    found = script(box, assignment, content)
    assert right(found, week)
    assert bool(found.notes) == ("16" in encoding or "32" in encoding)


def test_lone_surrogates_and_stray_bytes_are_replaced_and_noted(
    box: Path, assignment: Assignment, week: Notebook
):
    content = solved(week)
    content["cells"][3]["source"] = "s = 'a\ud800b \ud83d\ude00'"
    found = script(box, assignment, content)
    assert found.answers["scores"] == "s = 'a\ufffdb \U0001f600'"
    assert "surrogates" in found.notes[0]
    text = json.dumps(solved(week)).encode().replace(b"additive_score", b"additive\xe9_score", 1)
    assert "bytes that are no UTF-8" in script(box, assignment, text).notes[0]


@pytest.mark.parametrize("ending", [b"\0" * 4000, b"\n\x1a", b"\n\0\0"])
def test_what_a_crash_leaves_behind_a_notebook_is_left_out(
    box: Path, assignment: Assignment, week: Notebook, ending: bytes
):
    content = json.dumps(solved(week)).encode()
    found = script(box, assignment, content + ending)
    assert right(found, week)
    assert any("Zero bytes" in note for note in found.notes)


def test_other_notebook_formats_are_read(box: Path, assignment: Assignment, week: Notebook):
    content = solved(week)
    assert right(script(box, assignment, content | {"nbformat_minor": 99, "nbformat": 7}), week)
    assert right(script(box, assignment, content | {"metadata": {"kernelspec": "R"}}), week)
    old = [{("input" if k == "source" else k): v for k, v in c.items()} for c in content["cells"]]
    third = {"nbformat": 3, "metadata": {}, "worksheets": [{"cells": old[:9]}, {"cells": old[9:]}]}
    assert right(script(box, assignment, third), week)


def test_json_that_python_reads_leniently_is_read(
    box: Path, assignment: Assignment, week: Notebook
):
    text = json.dumps(solved(week))
    text = text.replace('"grade": false', '"grade": true, "grade": false')
    text = text.replace('"nbformat": 4', f'"nbformat": 4, "n": NaN, "big": {"9" * 5000}')
    assert right(script(box, assignment, text.encode()), week)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is not a notebook (it is no JSON text)"),
        (b"{", "is not a notebook (it is no JSON text)"),
        (b"[]", "it holds no list of cells"),
        (b"{}", "it holds no list of cells"),
        (b'"cells"', "it holds no list of cells"),
        (b'{"cells": {}}', "it holds no list of cells"),
        (b'{"worksheets": [1]}', "it holds no list of cells"),
        (b"PK\x03\x04 a zip", "it is no JSON text"),
        (b"\x00" * 1000, "it is no JSON text"),
        (b"\xff" * 1000, "it is no JSON text"),
        (b'{"a":' * 100_000, "nested too deep or too large"),
        (b"[" * 1_000_000, "nested too deep or too large"),
        (b'{"cells": [' + b"[]," * 1_100_000 + b"0]}", "nested too deep or too large"),
        (b'"' * 200_001, "it is no JSON text"),
        (b'"\\' * 200_000, "it is no JSON text"),
        (b'{"cells": [' + b"0," * 3000 + b"0]}", "holds 3001 cells; at most 2000 are read"),
        (b" " * 20_000_001, "is larger than 20 MB, its outputs included"),
    ],
)
def test_no_notebook_gives_a_reason(box: Path, assignment: Assignment, content: bytes, reason: str):
    put(box, content)
    found = read(box, assignment)
    assert found.reason.startswith(NAME) and reason in found.reason
    assert found.scripts[0].reason == found.reason


def test_too_much_text_gives_a_reason(box: Path, assignment: Assignment):
    cell = {"cell_type": "code", "source": "x" * 190_000, "metadata": {}}
    put(box, {"cells": [cell] * 30})
    assert "2 million characters" in read(box, assignment).reason


def test_nothing_that_is_handed_in_raises(box: Path, assignment: Assignment, week: Notebook):
    drawn = random.Random(7)
    real = json.dumps(solved(week), indent=1).encode()
    for number in range(400):
        kind = number % 4
        if kind == 0:
            content = drawn.randbytes(drawn.randrange(500))
        elif kind == 1:
            cells = [random_json(drawn) for _ in range(drawn.randrange(6))]
            content = json.dumps({"cells": cells}).encode()
        elif kind == 2:
            content = real[: drawn.randrange(len(real))]
        else:
            flipped = bytearray(real)
            for _ in range(drawn.randrange(1, 30)):
                flipped[drawn.randrange(len(real))] ^= 1 << drawn.randrange(8)
            content = bytes(flipped)
        put(box, content)
        found = read(box, assignment)
        assert found.reason or len(found.scripts[0].cells) >= len(week.cells)
