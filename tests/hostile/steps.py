"""Steps that turn the released notebook into a submission, and the rows that are made of them."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.hostile.course import POINTS, QUESTIONS, RIGHT, SIGNATURES, Handin

Step = Callable[[Handin], None]

FULL = "2/3/2/1/1/2"
ZERO = "0/0/0"

# Said first by what would hurt a machine that it is not locked away from.
LOCKED_IN = (
    "import os\n"
    "for kind in ('pid', 'mnt'):\n"
    "    assert os.readlink(f'/proc/self/ns/{kind}') not in '@HOST@', 'not locked in'\n"
)


@dataclass(frozen=True)
class Row:
    """One submission: what the student does, and what should come of it.

    `expected` gives the points of t_square/t_softmax/t_partial/t_norm/t_twice/t_gate; left out at
    the end they are 0. A `?` is a test that may end either way; `?` alone is a submission that may
    be graded in full or be 0 with a reason. `says` is a pattern for anything that is told about
    the submission: reason, notes, flags or verdicts.
    """

    id: str
    do: tuple[Step, ...]
    expected: str = ZERO
    says: str = ""
    flag: str = ""

    @property
    def either(self) -> bool:
        """Whether it may be graded in full or be refused with a reason."""
        return self.expected == "?"

    def scores(self) -> dict[str, float]:
        """Expected points of the tests that can end only one way."""
        given = FULL if self.either else self.expected
        parts = given.split("/")
        parts += ["0"] * (len(POINTS) - len(parts))
        return {test: float(part) for test, part in zip(POINTS, parts, strict=True) if part != "?"}

    def make(self, handin: Handin) -> Handin:
        """Do what the student does."""
        for step in self.do:
            step(handin)
        return handin


def row(id: str, *do: Step, expected: str = ZERO, says: str = "", flag: str = "") -> Row:
    """A row, its steps written as arguments."""
    return Row(id, do, expected, says, flag)


def body(question: str, text: str) -> str:
    """An answer with this body under the course's signature."""
    pad = " " * (8 if question == "gate" else 4)
    return SIGNATURES[question] + "\n".join(pad + line for line in text.splitlines())


def answers(**code: str) -> Step:
    """Put code into solution cells, by grade id."""

    def step(handin: Handin) -> None:
        for question, source in code.items():
            handin.cell(question)["source"] = source

    return step


def bodies(**code: str) -> Step:
    """As `answers`, with the bodies of functions alone."""
    return answers(**{question: body(question, text) for question, text in code.items()})


def right(*questions: str, but: tuple[str, ...] = ()) -> Step:
    """The right answers to these questions, or to all."""
    return answers(
        **{name: RIGHT[name] for name in questions or QUESTIONS if name not in but},
    )


def extra(code: str, before: str | None = None, cell_type: str = "code") -> Step:
    """A cell of the student's own, at the end or before the cell with a grade id."""

    def step(handin: Handin) -> None:
        cells = handin.notebook["cells"]
        place = len(cells) if before is None else cells.index(handin.cell(before))
        cell: dict[str, Any] = {"cell_type": cell_type, "metadata": {}, "source": code}
        cell["id"] = f"extra-{len(cells)}"
        if cell_type == "code":
            cell |= {"execution_count": None, "outputs": []}
        cells.insert(place, cell)

    return step


def prefix(name: str, code: str) -> Step:
    """Code in front of what a cell holds."""

    def step(handin: Handin) -> None:
        cell = handin.cell(name)
        cell["source"] = code + cell["source"]

    return step


def drop(*names: str) -> Step:
    """Delete cells."""

    def step(handin: Handin) -> None:
        for name in names:
            handin.notebook["cells"].remove(handin.cell(name))

    return step


def each_cell(change: Callable[[dict[str, Any]], None], *names: str) -> Step:
    """Change cells, all or those named."""

    def step(handin: Handin) -> None:
        cells = [handin.cell(name) for name in names] if names else handin.notebook["cells"]
        for cell in cells:
            change(cell)

    return step


def marked(name: str, **marks: Any) -> Step:
    """Change nbgrader's marks of a cell."""
    return each_cell(lambda cell: cell["metadata"]["nbgrader"].update(marks), name)


def whole(change: Callable[[dict[str, Any]], None]) -> Step:
    """Change the notebook as a whole."""
    return lambda handin: change(handin.notebook)


def bytes_of(encode: Callable[[str], bytes]) -> Step:
    """How the notebook's text becomes the file."""

    def step(handin: Handin) -> None:
        handin.raw = encode

    return step


def named(name: str | None) -> Step:
    """The notebook's file name; None for no notebook."""

    def step(handin: Handin) -> None:
        handin.name = name

    return step


def beside(put: Callable[[Path], object]) -> Step:
    """Something else in the submission's folder."""
    return lambda handin: handin.around.append(put)


def file(name: str, content: str | bytes) -> Step:
    """A file beside the notebook."""
    data = content.encode() if isinstance(content, str) else content
    return beside(lambda folder: (folder / name).write_bytes(data) and None)


def reparsed(change: Callable[[str], str]) -> Step:
    """Change the notebook's JSON text."""
    return bytes_of(lambda text: change(text).encode())


def dumped(notebook: dict[str, Any]) -> bytes:
    """A notebook as a file holds it."""
    return json.dumps(notebook).encode()
