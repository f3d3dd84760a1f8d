"""Collecting the module from notebooks, and what students may have done to them."""

import ast
import json
import os
import runpy
from dataclasses import replace
from pathlib import Path
from textwrap import dedent

import pytest

from lab import assemble as assembling
from lab.__main__ import main
from lab.assemble import Assembly, assemble, write

OUT = Path("my_transformer.py")
STUB = 'raise NotImplementedError("not answered yet: replace this line")'


def code(source: str, id: str = "", *, export: bool = False, test: bool = False) -> dict:
    graded = {"nbgrader": {"grade_id": id, "grade": test}} if id else {}
    tags = {"tags": ["export"]} if export else {}
    return {"cell_type": "code", "metadata": graded | tags, "source": dedent(source).strip()}


def prose(source: str) -> dict:
    return {"cell_type": "markdown", "metadata": {}, "source": source.splitlines(keepends=True)}


def save(folder: Path, name: str, *cells: dict, flat: bool = False) -> None:
    path = folder / f"{name}.ipynb" if flat else folder / name / f"{name}.ipynb"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"cells": cells, "nbformat": 4}), encoding="utf-8")


def ears(*cells: dict) -> tuple[dict, ...]:
    """The first chapter of a small course of two."""
    return (
        prose("# 1 Ears"),
        code("import math\nimport torch"),
        prose("## 1.1 Hear   (1 point)"),
        *cells,
    )


def feet(*cells: dict) -> tuple[dict, ...]:
    """Its second chapter."""
    setup = (
        "from torch import Tensor, nn\n\nfrom lab.blocks import hear\nfrom lab.check import draw"
    )
    return prose("# 2 Feet"), code(setup), prose("## 2.1 Walk   (1 point)"), *cells


HEAR = code("def hear(x):\n    return math.sqrt(x)", "hear", export=True)
WALK = code(
    """
    def walk(x):
        return hear(x)


    class Walker(nn.Module):
        pass
    """,
    "walk",
    export=True,
)


@pytest.fixture(autouse=True)
def small_course(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = {"01_ears": {"hear": ("hear",)}, "02_feet": {"walk": ("walk", "Walker")}}
    monkeypatch.setattr(assembling, "PARTS", parts)


def collect(folder: Path, first: tuple[dict, ...], second: tuple[dict, ...]) -> Assembly:
    save(folder, "01_ears", *first)
    save(folder, "02_feet", *second)
    return assemble(folder, OUT)


def names(text: str) -> list[str]:
    tree = ast.parse(text)
    return [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]


# what the module looks like


def test_parts_come_in_the_books_order_with_the_imports_they_use(tmp_path):
    assembly = collect(tmp_path, ears(HEAR), feet(WALK))
    header, rest = assembly.text.split('\n"""\n')
    assert f"python -m lab assemble {tmp_path.as_posix()} --out my_transformer.py" in header
    rule = "-" * 100
    assert rest == (
        "\nimport math\n\nfrom torch import nn\n\n"
        f"{('# Chapter 1: Ears ' + rule)[:100]}\n\n\n"
        "def hear(x):\n    return math.sqrt(x)\n\n\n"
        f"{('# Chapter 2: Feet ' + rule)[:100]}\n\n\n"
        "def walk(x):\n    return hear(x)\n\n\n"
        "class Walker(nn.Module):\n    pass\n"
    )
    assert (assembly.parts, assembly.answered, assembly.problems) == (3, 3, ())


def test_the_same_notebooks_give_the_same_text(tmp_path):
    first = collect(tmp_path, ears(HEAR), feet(WALK))
    assert collect(tmp_path, ears(HEAR), feet(WALK)) == first


def test_notebooks_may_lie_flat_in_their_folder(tmp_path):
    save(tmp_path, "01_ears", *ears(HEAR), flat=True)
    save(tmp_path, "02_feet", *feet(WALK), flat=True)
    assert names(assemble(tmp_path, OUT).text) == ["hear", "walk", "Walker"]


def test_lines_for_the_tools_go_and_comments_stay(tmp_path):
    answer = """
        # covers: S1.2
        # listen
        @torch.no_grad()
        def hear(x):
            ### BEGIN SOLUTION
            # why
            return x
            ### END SOLUTION
        """
    text = collect(tmp_path, ears(code(answer, "hear", export=True)), feet(WALK)).text
    assert "\n\n\n# listen\n@torch.no_grad()\ndef hear(x):\n    # why\n    return x\n\n\n#" in text


def test_only_definitions_are_taken_not_what_a_student_tries_out(tmp_path):
    tried = code("def hear(x):\n    return x\n\nprint(hear(3))\ny = hear(4)", "hear", export=True)
    text = collect(tmp_path, ears(tried), feet(WALK)).text
    assert "print" not in text
    assert "y =" not in text


def test_long_imports_are_wrapped(tmp_path):
    letters = [f"{'n' * 12}_{letter}" for letter in "abcdefghij"]
    setup = code(f"from torch import {', '.join(letters)}")
    answer = code(f"def hear(x):\n    return {', '.join(letters)}", "hear", export=True)
    text = collect(tmp_path, (setup, answer), feet(WALK)).text
    wrapped = "".join(f"    {name},\n" for name in ["nn", *letters])
    assert f"from torch import (\n{wrapped})\n" in text


# what students do to notebooks


def test_an_unanswered_part_is_named_and_raises_when_it_is_used(tmp_path):
    walk = code(WALK["source"].replace("return hear(x)", STUB), "walk", export=True)
    assembly = collect(tmp_path, ears(HEAR), feet(walk))
    assert assembly.problems == ("chapter 2, question 2.1: walk is not answered yet",)
    assert (assembly.parts, assembly.answered) == (3, 2)
    module: dict = {}
    exec(assembly.text, module)
    with pytest.raises(NotImplementedError, match="not answered yet"):
        module["walk"](2)


def test_one_unanswered_method_makes_a_class_unanswered(tmp_path):
    methods = f"def a(self):\n        return 1\n\n    def b(self):\n        {STUB}"
    walk = code(WALK["source"].replace("pass", methods), "walk", export=True)
    assembly = collect(tmp_path, ears(HEAR), feet(walk))
    assert assembly.problems == ("chapter 2, question 2.1: Walker is not answered yet",)


def test_a_stub_line_left_below_the_answer_does_no_harm(tmp_path):
    hear = code(f"def hear(x):\n    return x\n    {STUB}", "hear", export=True)
    assert not collect(tmp_path, ears(hear), feet(WALK)).problems


def test_an_error_raised_on_purpose_is_no_stub(tmp_path):
    hear = code("def hear(x):\n    raise ValueError('too loud')", "hear", export=True)
    assert not collect(tmp_path, ears(hear), feet(WALK)).problems


def test_an_answer_is_found_by_its_id_or_its_name_when_the_tag_is_lost(tmp_path):
    by_id, by_name = code(HEAR["source"], "hear"), code(WALK["source"])
    assembly = collect(tmp_path, ears(by_id), feet(by_name))
    assert names(assembly.text) == ["hear", "walk", "Walker"]
    assert not assembly.problems


def test_an_answer_in_another_cell_counts_when_the_marked_one_is_unanswered(tmp_path):
    stub = code(f"def hear(x):\n    {STUB}", "hear", export=True)
    assembly = collect(tmp_path, ears(stub, code("def hear(x):\n    return 7")), feet(WALK))
    assert "return 7" in assembly.text
    assert not assembly.problems


def test_a_missing_notebook_is_named_and_what_needs_it_is_not_blamed(tmp_path):
    save(tmp_path, "02_feet", *feet(WALK))
    assembly = assemble(tmp_path, OUT)
    assert assembly.problems == (f"chapter 1: there is no 01_ears.ipynb in {tmp_path}",)
    assert names(assembly.text) == ["walk", "Walker"]


def test_a_notebook_beyond_the_translator_is_not_missed(tmp_path, monkeypatch):
    monkeypatch.setattr("lab.assemble.BEYOND", {"02_feet"})
    save(tmp_path, "01_ears", *ears())
    assert not any("02_feet" in problem for problem in assemble(tmp_path, OUT).problems)
    save(tmp_path, "02_feet", *feet(code("def walk(n):\n    return n +", "walk", export=True)))
    assert any(problem.startswith("chapter 2") for problem in assemble(tmp_path, OUT).problems)


@pytest.mark.parametrize("content", ["{", "[]", '{"cells": [{}]}', '{"worksheets": []}'])
def test_a_file_that_is_no_notebook_is_named(tmp_path, content):
    save(tmp_path, "02_feet", *feet(WALK))
    (tmp_path / "01_ears.ipynb").write_text(content, encoding="utf-8")
    assembly = assemble(tmp_path, OUT)
    assert assembly.problems == (f"chapter 1: {tmp_path / '01_ears.ipynb'} is no notebook",)


def test_a_cell_that_is_no_python_is_named_by_question_and_line(tmp_path):
    broken = code("import math\ndef hear(x):\n    return (x", "hear", export=True)
    assembly = collect(tmp_path, ears(broken), feet(WALK))
    (problem,) = assembly.problems
    assert problem.startswith("chapter 1, question 1.1: line 3 of the cell is no Python (")
    assert f"# hear is missing: {problem}" in assembly.text


def test_a_cell_with_two_parts_that_is_no_python_is_named_once(tmp_path):
    broken = code("def walk(x)\n    pass", "walk", export=True)  # and no Walker at all
    (problem,) = collect(tmp_path, ears(HEAR), feet(broken)).problems
    assert problem.startswith("chapter 2, question 2.1: line 1 of the cell is no Python (")


def test_problems_come_in_the_books_order(tmp_path):
    hear = code("def hear(x):\n    return louder(x)", "hear", export=True)
    walk = code(WALK["source"].replace("return hear(x)", STUB), "walk", export=True)
    assembly = collect(tmp_path, ears(hear), feet(walk))
    assert [line.split(",")[0] for line in assembly.problems] == ["chapter 1", "chapter 2"]


def test_a_deleted_answer_is_named(tmp_path):
    assembly = collect(tmp_path, ears(), feet(WALK))
    assert assembly.problems == ("chapter 1: no cell defines hear",)


def test_helpers_come_along_before_what_needs_them(tmp_path):
    helpers = """
        RATE = 3
        unused = 4


        def louder(x: Tensor):
            return RATE * x


        def idle():
            pass
        """
    imports = code("from torch import Tensor")
    hear = code("def hear(x):\n    return louder(x)", "hear", export=True)
    assembly = collect(tmp_path, ears(imports, code(helpers), hear), feet(WALK))
    assert names(assembly.text)[:2] == ["louder", "hear"]
    assert "RATE = 3\n\n\ndef louder" in assembly.text
    assert "from torch import Tensor, nn" in assembly.text
    assert "unused" not in assembly.text
    assert "idle" not in assembly.text
    assert not assembly.problems


def test_a_test_cell_lends_nothing(tmp_path):
    hear = code("def hear(x):\n    return louder(x)", "hear", export=True)
    test = code("def louder(x):\n    return x", "hear-values", test=True)
    assembly = collect(tmp_path, ears(hear, test), feet(WALK))
    assert "def louder" not in assembly.text
    assert len(assembly.problems) == 1


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        ("def hear(x):\n    return louder(x)", "louder"),
        ("def hear(x):\n    return [loud for _ in x]", "loud"),
        ("def hear(x: Loud):\n    return x", "Loud"),
        ("class Loud(Ear):\n    pass\n\n\ndef hear(x):\n    return Loud", "Ear"),
    ],
)
def test_an_undefined_name_is_named(tmp_path, answer, name):
    assembly = collect(tmp_path, ears(code(answer, "hear", export=True)), feet(WALK))
    (problem,) = assembly.problems
    assert problem.startswith("chapter 1, question 1.1: ")
    assert f"needs {name}, which the module does not have; define it in the same cell" in problem


def test_local_names_builtins_and_shapes_need_no_definition(tmp_path):
    answer = """
        def hear(x: "Float[Tensor, 'B N']"):
            def inner(y):
                return y + x + total

            total = sum(z for z in x)
            return inner(x)
        """
    hear = code(answer, "hear", export=True)
    assert not collect(tmp_path, ears(hear), feet(WALK)).problems


def test_what_comes_from_the_lab_is_a_part_or_undefined(tmp_path):
    walk = code(WALK["source"].replace("hear(x)", "draw(hear(x))"), "walk", export=True)
    (problem,) = collect(tmp_path, ears(HEAR), feet(walk)).problems
    assert problem.startswith("chapter 2, question 2.1: walk needs draw, which the module does not")


def test_a_stand_in_for_another_chapters_part_stays_behind(tmp_path):
    assembly = collect(tmp_path, ears(HEAR), feet(code("def hear(x):\n    return 0"), WALK))
    assert "return 0" not in assembly.text
    assert not assembly.problems


def test_two_helpers_of_one_name_are_a_problem(tmp_path):
    hear = code("def hear(x):\n    return helper(x)", "hear", export=True)
    walk = code(WALK["source"].replace("hear(x)", "helper(x)"), "walk", export=True)
    first, second = (code(f"def helper(x):\n    return x + {n}") for n in (1, 2))
    assembly = collect(tmp_path, ears(first, hear), feet(second, walk))
    where, other = "chapter 2, question 2.1", "chapter 1, question 1.1"
    assert assembly.problems == (f"{where}: helper means something else in {other}; rename one",)
    assert not collect(tmp_path, ears(first, hear), feet(first, walk)).problems


def test_two_imports_of_one_name_are_a_problem(tmp_path):
    hear = code("def hear(x):\n    return nn", "hear", export=True)
    other, same = code("import numpy as nn"), code("import torch.nn as nn")
    (problem,) = collect(tmp_path, ears(other, hear), feet(WALK)).problems
    assert "nn stands for torch.nn, but in an earlier chapter for numpy; rename one" in problem
    assert not collect(tmp_path, ears(same, hear), feet(WALK)).problems


# writing


def test_a_file_that_assemble_made_is_overwritten_and_no_other(tmp_path):
    assembly, out = collect(tmp_path, ears(HEAR), feet(WALK)), tmp_path / "out.py"
    write(assembly, out)
    write(assembly, out)
    out.write_text("my = 'work'\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"out\.py exists and is no assembled module"):
        write(assembly, out)
    assert out.read_text(encoding="utf-8") == "my = 'work'\n"


def test_a_module_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    assembly, out = collect(tmp_path, ears(HEAR), feet(WALK)), tmp_path / "out.py"
    write(assembly, out)
    before = out.read_text(encoding="utf-8")

    def full(number: int) -> None:
        raise OSError("no space left on the disk")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space left"):
        write(replace(assembly, text=f"{assembly.text}# more"), out)
    assert out.read_text(encoding="utf-8") == before


def test_the_command_writes_the_module_and_says_what_it_did(tmp_path, capsys):
    collect(tmp_path, ears(HEAR), feet(WALK))
    out = tmp_path / "out.py"
    assert main(["assemble", str(tmp_path), "--out", str(out)]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith(f"{out}: 3 of 3 parts, ")
    assert printed.err == ""
    assert runpy.run_path(str(out))["walk"](4) == 2


def test_the_command_names_what_is_missing_and_returns_1(tmp_path, capsys):
    collect(tmp_path, ears(), feet(WALK))
    out = tmp_path / "out.py"
    assert main(["assemble", str(tmp_path), "--out", str(out)]) == 1
    assert capsys.readouterr().err == (
        "chapter 1: no cell defines hear\n"
        "Answer or mend these in the notebooks, save them, and run this command again.\n"
    )
    assert names(out.read_text(encoding="utf-8")) == ["walk", "Walker"]


@pytest.mark.parametrize(
    ("folder", "message"),
    [("nowhere", "there is no directory"), ("", "holds no chapter's notebook")],
)
def test_a_folder_without_notebooks_is_refused(tmp_path, capsys, folder, message):
    out = tmp_path / "out.py"
    assert main(["assemble", str(tmp_path / folder), "--out", str(out)]) == 2
    assert message in capsys.readouterr().err
    assert not out.exists()
