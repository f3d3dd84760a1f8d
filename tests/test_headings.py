"""Which line of a notebook's prose a question goes by, on every page."""

import pytest
from nbformat.v4 import new_markdown_cell

from autograder.classroom.feedback import page
from autograder.common import headings
from autograder.common.results import NotebookResult
from autograder.judge.assignment import Cell, Notebook
from tests.test_feedback import shown

CODE = "Use it so:\n\n{0}python\n# three times five\nmul(3, 5)\n{1}\n"


@pytest.mark.parametrize(
    ("markdown", "title"),
    [
        ("## 1 Add (2 points)\n\nText.", "1 Add"),
        (CODE.format("```", "```"), ""),
        (CODE.format("~~~~", "~~~~~"), ""),
        (CODE.format("   ```", "```"), ""),
        (CODE.format("````", "```") + "## in the block still", ""),
        (CODE.format("~~~", "```") + "## in the block still", ""),
        (CODE.format("```", "```") + "## 2 Mul", "2 Mul"),
        ("## 1 Add\n```in one line``` and\n## 2 Mul", "2 Mul"),
        ("#no heading\n\n#\n\nnor this", ""),
        ("# 3 Sums\n\nThe chapter.\n\n## 3.1 Add\n\n### Hint", "3.1 Add"),
        ("# 3 Sums\n\n### 3.1 Add", "3.1 Add"),
        ("## 1 Add\n\n## 2 Mul", "2 Mul"),
        ("# PS 1\n\n# Problem 1", "Problem 1"),
        ("## 1 Add (4 points)\n\n### 1a Two (2 points)\n\n## Hint", "1a Two"),
        ("# 3 Sums", "3 Sums"),
        ("# `a` (b)  \r\nc", "`a` (b)"),
    ],
)
def test_a_question_goes_by_its_heading(markdown: str, title: str):
    assert headings.title(markdown) == title


def test_no_line_in_a_block_of_code_heads_a_question_on_any_page():
    code = CODE.format("```", "```")
    cells = [
        Cell("", "markdown", "markdown", text, text, 0, {}, str(number))
        for number, text in enumerate(("## 2 Mul (3 points)", code))
    ]
    cells.append(Cell("mul", "solution", "code", "", "", 0, {}, "2"))
    notebook = Notebook("ps1", tuple(cells), {})
    html = page(NotebookResult("ps1", answers={"mul": "def mul(a, b): ..."}), notebook, "ada")
    assert "2 Mul" in html and "three times" not in html
    assert "<h2>" not in shown(new_markdown_cell(code))
    assert "<h2>2 Mul</h2>" in shown(new_markdown_cell(f"## 2 Mul\n\n{code}"))
