"""A tiny course written by code, with a canary in every hidden test, and submissions to it.

The canaries are drawn anew for each course: a word, a whole number and a decimal number that stand
in the hidden tests' source, in what they pass to an answer and in what they expect. Whoever finds
one of them in something a student gets has found a leak.
"""

import copy
import json
import random
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

CHAPTER = "tiny"
QUESTIONS = ("square", "softmax", "share", "norm", "twice", "gate")
POINTS = {
    "t_square": 2,
    "t_softmax": 3,
    "t_partial": 2,
    "t_norm": 1,
    "t_twice": 1,
    "t_gate": 2,
}
STUB = "# YOUR CODE HERE\nraise NotImplementedError()"
HIDDEN = re.compile(r"### BEGIN HIDDEN TESTS.*?### END HIDDEN TESTS\n?", re.DOTALL)

RULES = """\
# Rules of the tiny course: short limits, and an answer may not be the library's own. Of what hangs
# each round takes all that it may; the plain questions, which most of it is in, may take less.
# Nothing hangs in `gate`: what has to import a lot belongs there.
[defaults]
seconds = 1.5
memory_mb = 1500

[square]
seconds = 0.5

[share]
seconds = 0.5

[norm]
seconds = 0.5

[twice]
seconds = 0.5

[gate]
seconds = 8

[softmax]
forbid = ["torch.softmax", "torch.nn.functional.softmax", "torch.nn.Softmax", "torch.log_softmax"]
"""

# What each solution cell holds around the answer: the signature is the course's, the body is not.
SIGNATURES = {
    "square": 'def square(x):\n    """The square of a number."""\n',
    "softmax": 'def softmax(x):\n    """Softmax over the last axis."""\n',
    "share": 'def share(word, text):\n    """Which part of a text\'s words is this word."""\n',
    "norm": 'def norm(numbers):\n    """The Euclidean length; use square."""\n',
    "twice": 'def twice(f, x):\n    """f(f(x))"""\n',
    "gate": (
        'class Gate(nn.Module):\n    """x times the sigmoid of a linear map of x."""\n\n'
        "    def __init__(self, size):\n        super().__init__()\n"
        "        self.linear = nn.Linear(size, size)\n\n    def forward(self, x):\n"
    ),
}
BODIES = {
    "square": "return x * x",
    "softmax": (
        "e = torch.exp(x - x.max(-1, keepdim=True).values)\nreturn e / e.sum(-1, keepdim=True)"
    ),
    "share": "words = text.split()\nreturn words.count(word) / len(words) if words else 0.0",
    "norm": "return math.sqrt(sum(square(number) for number in numbers))",
    "twice": "return f(f(x))",
    "gate": "return x * torch.sigmoid(self.linear(x))",
}
IMPORTS = "import math\n\nimport torch\nfrom torch import nn"


def _indented(question: str, text: str) -> str:
    pad = " " * (8 if question == "gate" else 4)
    return SIGNATURES[question] + "\n".join(pad + line for line in text.splitlines())


#: The right answer to each question, as a student would leave it.
RIGHT = {question: _indented(question, BODIES[question]) for question in QUESTIONS}


def _stub(question: str) -> str:
    return _indented(question, STUB)


def _solved(question: str) -> str:
    return _indented(question, f"### BEGIN SOLUTION\n{BODIES[question]}\n### END SOLUTION")


@dataclass(frozen=True)
class Canaries:
    """What must never reach a student: drawn at random, so that no text holds it by chance."""

    word: str = field(default_factory=lambda: "canary" + secrets.token_hex(6))
    number: int = field(default_factory=lambda: random.SystemRandom().randrange(10**8, 10**9))
    decimal: float = field(
        default_factory=lambda: random.SystemRandom().randrange(10**5, 10**6) + 0.25
    )

    @cached_property
    def spellings(self) -> tuple[str, ...]:
        """Each canary in the ways a program might print it."""
        reversed_word = self.word[::-1]
        return (
            self.word,
            self.word.upper(),
            reversed_word,
            self.word.encode().hex(),
            str(self.number),
            str(self.number**2),
            hex(self.number),
            repr(self.decimal),
        )

    def found_in(self, text: str | bytes) -> list[str]:
        """The spellings that this text holds."""
        if isinstance(text, bytes):
            text = text.decode("utf-8", "replace")
        return [spelling for spelling in self.spellings if spelling in text]


TESTS = {
    "t_square": """\
assert square(3) == 9, "square(3) should be 9"
assert square(-4) == 16, "square(-4) should be 16"
assert square(0.5) == 0.25, "square(0.5) should be 0.25"
### BEGIN HIDDEN TESTS
about = "@WORD@"  # @WORD@
for number in (@NUMBER@, 7, -11, 2.5, @NUMBER@, 7):
    gap = abs(square(number) - number * number)
    assert gap <= 1e-9 * number * number, f"{about}: square({number}) is {number * number}"
### END HIDDEN TESTS
""",
    "t_softmax": """\
x = torch.tensor([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]])
out = softmax(x)
assert out.shape == x.shape, f"the shape should be {tuple(x.shape)}, got {tuple(out.shape)}"
assert torch.allclose(out.sum(-1), torch.ones(2)), "each row should sum to 1"
### BEGIN HIDDEN TESTS
about = "@WORD@"
for shape in [(4, 5), (2, 3, 7), (6,)]:
    x = torch.randn(shape, dtype=torch.float64)
    out = softmax(x)
    assert out.shape == x.shape, f"{about}: shape {tuple(out.shape)} for {tuple(x.shape)}"
    assert out.dtype == x.dtype, f"{about}: dtype {out.dtype}"
    assert torch.allclose(out, torch.softmax(x, -1)), f"{about}: {out} for {x.tolist()}"
big = torch.tensor([@DECIMAL@, @DECIMAL@ - 1, 0.0], dtype=torch.float64)
assert torch.allclose(softmax(big), torch.softmax(big, -1)), f"{about}: {big.tolist()}"
x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
weights = torch.randn(3, 4, dtype=torch.float64)
(softmax(x) * weights).sum().backward()
y = x.detach().clone().requires_grad_()
(torch.softmax(y, -1) * weights).sum().backward()
assert x.grad is not None, f"{about}: no gradient"
assert torch.allclose(x.grad, y.grad), f"{about}: gradient {x.grad.tolist()}"
### END HIDDEN TESTS
""",
    "t_partial": """\
checks = [share("a", "a b a b") == 0.5, share("c", "a b") == 0]
### BEGIN HIDDEN TESTS
checks += [share("@WORD@", "@WORD@ x y @NUMBER@") == 0.25, share("x", "") == 0]
### END HIDDEN TESTS
nearness = 1 - abs(share("d", "a b c d") - 0.25)
2 * nearness * sum(checks) / len(checks)
""",
    "t_norm": """\
assert abs(norm([3, 4]) - 5) < 1e-9, "norm([3, 4]) should be 5"
assert sum(range(round(norm([3, 4])) + 1)) == 15, "norm([3, 4]) should be 5"
### BEGIN HIDDEN TESTS
about = "@WORD@"
for numbers in ([@NUMBER@, 0], [1, 2, 2], [], [-5]):
    length = norm(numbers)
    want = math.sqrt(sum(number * number for number in numbers))
    assert abs(length - want) <= 1e-9 * want, f"{about}: norm({numbers}) is {want}"
### END HIDDEN TESTS
""",
    "t_twice": """\
assert twice(lambda x: x + 1, 3) == 5, "adding 1 twice to 3 should give 5"
### BEGIN HIDDEN TESTS
about = "@WORD@"
secret = {"@WORD@": @NUMBER@}


def steep(x):
    "@WORD@"
    return secret["@WORD@"] * x + 1


assert twice(steep, 2) == steep(steep(2)), f"{about}: {steep(steep(2))}"
layer = nn.Linear(3, 3)
x = torch.randn(2, 3)
assert torch.allclose(twice(layer, x), layer(layer(x))), f"{about}: a layer, twice"
### END HIDDEN TESTS
""",
    "t_gate": """\
gate = Gate(4)
assert gate(torch.zeros(2, 4)).shape == (2, 4), "the shape should stay"
### BEGIN HIDDEN TESTS
about = "@WORD@"
weight, bias = torch.randn(4, 4), torch.randn(4)
gate.load_state_dict({"linear.weight": weight, "linear.bias": bias})
x = torch.randn(2, 3, 4, requires_grad=True)
out = gate(x)
y = x.detach().clone().requires_grad_()
want = y * torch.sigmoid(y @ weight.T + bias)
assert out.shape == want.shape, f"{about}: shape {tuple(out.shape)}"
assert torch.allclose(out, want, atol=1e-5), f"{about}: {out}"
out.sum().backward()
want.sum().backward()
assert torch.allclose(x.grad, y.grad, atol=1e-4), f"{about}: gradient"
assert gate.linear.weight.grad is not None, f"{about}: no gradient for the weights"
### END HIDDEN TESTS
""",
}
TEST_OF = dict(zip(QUESTIONS, TESTS, strict=True))


def _cell(cell_type: str, id: str, source: str, **marks: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    if marks:
        metadata["nbgrader"] = {
            "grade": False,
            "grade_id": id,
            "locked": False,
            "schema_version": 3,
            "solution": False,
            "task": False,
        } | marks
    cell: dict[str, Any] = {"cell_type": cell_type, "id": id.replace("_", "-")}
    cell |= {"metadata": metadata, "source": source}
    if cell_type == "code":
        cell |= {"execution_count": None, "outputs": []}
    return cell


def instructor_notebook(canaries: Canaries, tests: dict[str, str] = TESTS) -> dict[str, Any]:
    """The instructor's notebook, with solutions and hidden tests."""
    cells = [
        _cell("markdown", "intro", "# A tiny course"),
        _cell("code", "imports", IMPORTS, locked=True),
    ]
    for question, test in TEST_OF.items():
        source = tests[test].replace("@WORD@", canaries.word)
        source = source.replace("@NUMBER@", str(canaries.number))
        source = source.replace("@DECIMAL@", repr(canaries.decimal))
        cells += [
            _cell("markdown", f"about_{question}", f"## {question}"),
            _cell("code", question, _solved(question), solution=True),
            _cell("code", test, source.rstrip(), grade=True, locked=True, points=POINTS[test]),
        ]
    cells.append(
        _cell(
            "markdown",
            "essay",
            "Why does softmax sum to 1?\n\n### BEGIN SOLUTION\nIt divides.\n### END SOLUTION",
            grade=True,
            solution=True,
            points=2,
        )
    )
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {
        "cells": cells,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def released_notebook(instructor: dict[str, Any]) -> dict[str, Any]:
    """What students are given: stubs for solutions, visible tests only."""
    notebook = copy.deepcopy(instructor)
    for cell in notebook["cells"]:
        name = cell["metadata"].get("nbgrader", {}).get("grade_id")
        if name in QUESTIONS:
            cell["source"] = _stub(name)
        elif name == "essay":
            cell["source"] = "YOUR ANSWER HERE"
        else:
            cell["source"] = HIDDEN.sub("", cell["source"]).rstrip()
    return notebook


@dataclass
class Handin:
    """One submission in the making: the released notebook, and what lies around it.

    In every text `@ROOT@` becomes the class's folder and `@HOST@` this machine's namespaces, so
    that an attack that could hurt the machine can see that it is not locked in, and give up.
    """

    notebook: dict[str, Any]
    name: str | None = f"{CHAPTER}.ipynb"  # None: no notebook at all
    raw: Callable[[str], bytes] = str.encode  # the notebook's text to the file's bytes
    around: list[Callable[[Path], object]] = field(default_factory=list)

    def cell(self, name: str) -> dict[str, Any]:
        """The cell with this grade id, or of the released notebook this cell id."""
        for cell in self.notebook["cells"]:
            marks = cell["metadata"].get("nbgrader")
            if isinstance(marks, dict) and marks.get("grade_id") == name:
                return cell
        return next(c for c in self.notebook["cells"] if c.get("id") == name.replace("_", "-"))

    def write(self, folder: Path, root: Path) -> None:
        """Put the submission into submitted/<student>/<chapter>/."""
        folder.mkdir(parents=True)
        if self.name is not None:
            text = json.dumps(self.notebook, indent=1)
            text = text.replace("@ROOT@", str(root)).replace("@HOST@", host())
            (folder / self.name).write_bytes(self.raw(text))
        for put in self.around:
            put(folder)


def host() -> str:
    """The process and mount namespaces of the machine itself."""
    spaces = [Path("/proc/self/ns") / kind for kind in ("pid", "mnt")]
    return " ".join(str(space.readlink()) for space in spaces if space.is_symlink())


@dataclass(frozen=True)
class Tiny:
    """The course on disk."""

    root: Path
    canaries: Canaries
    instructor: dict[str, Any]

    @property
    def assignment(self) -> Path:
        """The folder with the instructor's notebook and its rules."""
        return self.root / "source" / CHAPTER

    def handin(self) -> Handin:
        """A fresh copy of what students are given."""
        return Handin(released_notebook(self.instructor))


def write_course(root: Path, tests: dict[str, str] = TESTS) -> Tiny:
    """Write the course under `root`, with canaries of its own."""
    canaries = Canaries()
    tiny = Tiny(root, canaries, instructor_notebook(canaries, tests))
    tiny.assignment.mkdir(parents=True)
    (root / "nbgrader_config.py").write_text(
        '"""The tiny course\'s settings."""\n\nc = get_config()\n'
        'c.CourseDirectory.course_id = "tiny"\n'
        "c.Autograder.reference_stands_in = True\n",
        encoding="utf-8",
    )
    text = json.dumps(tiny.instructor, indent=1)
    (tiny.assignment / f"{CHAPTER}.ipynb").write_text(text, encoding="utf-8")
    (tiny.assignment / "rules.toml").write_text(RULES, encoding="utf-8")
    return tiny
