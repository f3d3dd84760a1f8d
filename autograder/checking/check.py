"""A student's own check: run a notebook, show each visible test in the words of the feedback.

The notebook runs on the student's machine in a Python of its own, without sandbox and kernel. A
cell that hangs or ends that Python is left out; the others run again in a new one.
"""

import json
import os
import queue
import secrets
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from tqdm import tqdm

from autograder.checking import runner
from autograder.checking.allowed import not_allowed
from autograder.common import headings
from autograder.common.course import CourseError
from autograder.common.names import open_streams, say
from autograder.common.results import Raised, Status, TestRun, Verdict
from autograder.judge.diagnose import told
from autograder.judge.parcel import Unreadable, read_file
from autograder.judge.raw_cells import read_cells

SECONDS = 60.0  # for one cell
STARTING = 120.0  # for Python itself, on a slow disk
LONGEST = 10_000_000  # bytes of one answer
WROTE = "it wrote to files that it did not open."
WIDTH = 96  # of what is printed
LINE = 60  # characters of a line of source
TITLE = 46  # characters of a question's title in the table
UNTOUCHED = ("YOUR ANSWER HERE", "YOUR CODE HERE")
HIDDEN_TESTS = (
    "These are the visible tests. When your notebook is graded, hidden tests run too, with other "
    "sizes and numbers; they can take points that are within reach here."
)


@dataclass(frozen=True)
class Cell:
    """A cell of the student's notebook."""

    name: str  # grade_id, or its number in the notebook
    kind: str  # "test", "solution", "manual" (graded by hand), "code" or "text"
    source: str
    points: float = 0.0
    is_code: bool = True
    damage: str = ""  # why its text cannot be used


@dataclass
class Question:
    """The cells under one heading."""

    title: str
    cells: list[Cell] = field(default_factory=list[Cell])

    def of_kind(self, *kinds: str) -> list[Cell]:
        """Its cells of these kinds."""
        return [cell for cell in self.cells if cell.kind in kinds]


@dataclass(frozen=True)
class Outcome:
    """How running a cell ended."""

    status: Status
    value: float | None = None  # of its last line, if that is a number
    message: str = ""
    raised: Raised | None = None
    is_stub: bool = False  # it ended at a `raise NotImplementedError` of a cell's own


def run(path: Path, seconds: float = SECONDS) -> int:
    """Check a notebook and print what came of it; 0 if all visible tests pass, 1 if some fail.

    Raises CourseError if the file cannot be read.
    """
    questions, notes = read(path)
    cells = [cell for question in questions for cell in question.cells if cell.is_code]
    outcomes = run_cells(cells, path.resolve().parent, seconds)
    broken, note = not_allowed(path, cells)
    verdicts = judge(cells, outcomes, broken)
    notes += [note] if note else []
    for line in lines(path.name, questions, outcomes, verdicts):
        say(line)
    for note in notes:
        say(_wrapped(f"Note: {note}"))
    return 0 if all(verdict.status == "passed" for verdict in verdicts.values()) else 1


def read(path: Path) -> tuple[list[Question], list[str]]:
    """The questions of a student's notebook, and what was odd about the file."""
    _demand_notebook(path)
    try:
        raw, notes = read_cells(read_file(path.resolve()), path.name)
    except Unreadable as error:
        raise CourseError(
            f"{path} cannot be checked: {error}; open it in Jupyter and save it, or download the "
            "exercise once more and paste your answers into it."
        ) from error
    questions = [Question("")]
    names: set[str] = set()
    for number, one in enumerate(raw, 1):
        cell = _cell(number, one, names)
        title = headings.title(cell.source) if cell.kind == "text" else ""
        if title:
            questions.append(Question(title))
        questions[-1].cells.append(cell)
    if not any(question.of_kind("test") for question in questions):
        raise CourseError(
            f"{path} holds no tests; is it the course's notebook? If its test cells were deleted, "
            "download the exercise once more and paste your answers into it."
        )
    return questions, notes


def run_cells(cells: Sequence[Cell], folder: Path, seconds: float) -> dict[str, Outcome]:
    """Run the cells in order, in `folder`; a cell that is lost costs no other."""
    outcomes: dict[str, Outcome] = {}
    sound: list[Cell] = []  # those that came back, to be run again in a new Python
    python: _Python | None = None
    try:
        for cell in tqdm(cells, desc="running", unit="cell", leave=False, disable=None):
            if python is None:
                python = _renewed(folder, sound, seconds)
            outcomes[cell.name] = outcome = python.run(cell, seconds)
            if outcome.status in ("timeout", "died"):
                python.close()
                python = None
            else:
                sound.append(cell)
    finally:
        if python is not None:
            python.close()
    return outcomes


def judge(
    cells: Sequence[Cell], outcomes: dict[str, Outcome], broken: Mapping[str, str]
) -> dict[str, Verdict]:
    """A verdict on each test, in the words of the feedback.

    Args:
        cells: the notebook's code.
        outcomes: how each cell ended.
        broken: test -> the words for a rule that its answer breaks.
    """
    answers = {cell.name: cell.source for cell in cells if cell.kind != "test"}
    verdicts: dict[str, Verdict] = {}
    untouched = False  # whether the answer above still stops as it was handed out
    for cell in cells:
        if cell.kind == "solution":
            untouched = outcomes[cell.name].is_stub
        elif cell.kind == "test":
            run = _test_run(cell, outcomes[cell.name], answers, untouched)
            if cell.name in broken:
                run = TestRun(cell.name, "forbidden", 0.0, message=broken[cell.name])
            verdicts[cell.name] = told(
                run,
                _ForWords(cell.name, cell.source, cell.points),
                None,
                (),
                answers=answers,
            )
    return verdicts


def lines(
    name: str,
    questions: Sequence[Question],
    outcomes: dict[str, Outcome],
    verdicts: dict[str, Verdict],
) -> Iterable[str]:
    """What is printed: tests by question, then points by question."""
    passed = sum(verdict.status == "passed" for verdict in verdicts.values())
    yield f"{name}: {passed} of {len(verdicts)} visible tests pass"
    for question in questions:
        trouble = list(_trouble(question, outcomes))
        if not trouble and not question.of_kind("test", "manual"):
            continue
        yield ""
        yield question.title or "Before the first heading"
        for words in trouble:
            yield _wrapped(words, "  ")
        for cell in question.of_kind("test", "manual"):
            yield from _shown(cell, verdicts.get(cell.name))
    yield ""
    yield from _table(questions, verdicts)
    yield ""
    yield _wrapped(HIDDEN_TESTS)


def main(arguments: Sequence[str] | None = None) -> int:
    """`python -m autograder.checking.check NOTEBOOK`; 2 and one sentence if it cannot be read."""
    open_streams()
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if len(given) != 1:
            raise CourseError("Name one notebook: python -m autograder check NOTEBOOK.")
        return run(Path(given[0]))
    except CourseError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


@dataclass(frozen=True)
class _ForWords:
    """What finding words needs of a test's cell."""

    grade_id: str
    source: str
    points: float


class _Python:
    """A Python of its own that runs cells one by one."""

    def __init__(self, folder: Path):
        environment = os.environ | {"MPLBACKEND": "Agg", "PYTHONIOENCODING": "utf-8"}
        environment.pop("PYTHONOPTIMIZE", None)  # without their assert every test would pass
        environment["NBGRADER_EXECUTION"] = "autograde"  # as when graded: nobody sees what is drawn
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(Path(runner.__file__).resolve())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=folder,
                env=environment,
                start_new_session=os.name == "posix",
            )
        except OSError as error:  # as a folder that a cell has removed
            raise CourseError(
                f"Python could not be started in {folder} ({error.strerror}); see that the folder "
                "is there and may be read."
            ) from error
        self._answers: queue.Queue[bytes] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        if not self._is_ready():
            self.close()
            raise CourseError(
                f"{sys.executable} could not be started in {folder}; set the course up once more."
            )

    def run(self, cell: Cell, seconds: float) -> Outcome:
        """Run one cell; afterwards this Python is of no more use if the cell was lost."""
        assert self._process.stdin is not None
        sign = secrets.token_hex(8)  # by which its answer is known from what the cell writes
        asked = json.dumps({"asked": sign, "name": cell.name, "source": cell.source})
        try:
            self._process.stdin.write(asked.encode() + b"\n")
            self._process.stdin.flush()
            answer = self._answer(seconds)
        except OSError:  # it ended between two cells
            answer = b""
        if answer is None:
            return Outcome("timeout", message=f"stopped after {seconds:g} s.")
        if not answer:
            return Outcome("died", message=self._ended())
        said = _read(answer)
        return _outcome(cell, said) if said.get("asked") == sign else Outcome("died", message=WROTE)

    def close(self) -> None:
        """End it, with all that it started."""
        if os.name == "posix":
            with suppress(ProcessLookupError, PermissionError):  # gone already
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()
        self._reader.join(5)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):  # what was still to be written has no reader
                    pipe.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        while line := self._process.stdout.readline(LONGEST):
            if line.strip():
                self._answers.put(line)
        self._answers.put(b"")

    def _is_ready(self) -> bool:
        """Wait until it is; what Python itself may print when it starts does not matter."""
        while line := self._answer(STARTING):
            if _read(line) == runner.READY:
                return True
        return False

    def _answer(self, seconds: float) -> bytes | None:
        """The next line; empty if it ended, None if time is up."""
        try:
            return self._answers.get(timeout=seconds)
        except queue.Empty:
            return None

    def _ended(self) -> str:
        try:
            status = self._process.wait(5)
        except subprocess.TimeoutExpired:
            return ""
        if status == runner.CLOSED:
            return "it closed files that it did not open."
        return f"it was ended by signal {-status}." if status < 0 else f"it left with {status}."


def _renewed(folder: Path, sound: list[Cell], seconds: float) -> _Python:
    """A new Python, in which the cells that came back ran again; if one does not now, it goes."""
    while True:
        python = _Python(folder)
        lost = next(
            (c for c in sound if python.run(c, seconds).status in ("timeout", "died")), None
        )
        if lost is None:
            return python
        python.close()
        sound.remove(lost)


def _read(line: bytes) -> dict[str, Any]:
    """What a line says; nothing if it is none of the runner's."""
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return cast(dict[str, Any], said) if isinstance(said, dict) else {}


def _outcome(cell: Cell, said: Mapping[str, Any]) -> Outcome:
    if said["ok"]:
        return Outcome("passed", said["value"])
    raised = Raised(said["type"], said["message"], said["line"], said["cell"], tuple(said["bases"]))
    failed = raised.type_name == "AssertionError" and raised.cell == cell.name
    is_stub = raised.type_name == "NotImplementedError" and said["own"]
    return Outcome("failed" if failed else "error", None, raised.message, raised, is_stub)


def _test_run(cell: Cell, outcome: Outcome, answers: dict[str, str], untouched: bool) -> TestRun:
    """The outcome of a test cell as the grader would put it."""
    raised = outcome.raised
    theirs = raised if raised is not None and raised.cell in answers else None
    status = outcome.status
    error = raised.type_name if raised else ""
    missing = raised is not None and error == "NameError" and raised.cell == cell.name
    if missing or (theirs is not None and outcome.is_stub):
        status = "unanswered"
    score = 0.0
    if status == "passed":
        score = cell.points if outcome.value is None else min(max(0.0, outcome.value), cell.points)
    return TestRun(
        test=cell.name,
        status=status,
        score=score,
        error="NotImplementedError" if missing and untouched else error,
        message=outcome.message,
        raised=theirs,
    )


def _demand_notebook(path: Path) -> None:
    """Say what is wrong with a path before it is read."""
    try:
        path.stat()
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:
        words = getattr(error, "strerror", None) or error
        raise CourseError(
            f"{str(path)[:200]} cannot be opened ({words}); give the path of a notebook that you "
            "may read."
        ) from None
    if path.is_dir():
        found = sorted(child.name for child in path.glob("*.ipynb"))
        held = f"it holds {', '.join(found[:5])}" if found else "it holds none"
        raise CourseError(f"{path} is a folder; name a notebook in it ({held}).")
    if not path.exists():
        raise CourseError(
            f"{path} does not exist; give the path of your notebook as you would open it."
        )
    if path.suffix.lower() != ".ipynb":
        raise CourseError(f"{path} is not a notebook; name a file that ends in .ipynb.")


def _cell(number: int, raw: Any, names: set[str]) -> Cell:
    """A cell as it was handed out: what it is for is in nbgrader's marks."""
    name = raw.grade_id or f"cell {number}"
    if name in names:
        name = f"{name} (again, cell {number})"
    names.add(name)
    graded, answered = bool(raw.marks.get("grade")), bool(raw.marks.get("solution"))
    is_code = raw.cell_type == "code"
    if (graded and (answered or not is_code)) or raw.marks.get("task"):
        kind = "manual"
    elif not is_code:
        kind = "text"
    elif graded:
        kind = "test"
    else:
        kind = "solution" if answered else "code"
    return Cell(name, kind, raw.source, _points(raw.marks.get("points")), is_code, raw.damage)


def _points(value: object) -> float:
    """Points as the notebook says; what is no sensible number counts as none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0.0
    return float(value) if 0 <= value < 10_000 else 0.0


def _trouble(question: Question, outcomes: dict[str, Outcome]) -> Iterable[str]:
    """Cells of a question, tests apart, that did not run to their end."""
    for cell in question.cells:
        outcome = outcomes.get(cell.name)
        if cell.damage:
            yield f"The cell {cell.name} cannot be used: {cell.damage}."
        elif outcome is None or cell.kind == "test" or outcome.status == "passed":
            continue
        elif outcome.raised is None:
            what = "did not finish" if outcome.status == "timeout" else "ended Python"
            yield f"The cell {cell.name} {what}: {outcome.message} It was left out."
        elif not outcome.is_stub:  # that one is not answered yet
            yield _stopped(cell, outcome.raised)


def _stopped(cell: Cell, raised: Raised) -> str:
    source = cell.source.splitlines()
    place = ""
    if raised.cell == cell.name and 0 < raised.line <= len(source):
        place = f" on line {raised.line} (`{textwrap.shorten(source[raised.line - 1], LINE)}`)"
    words = f"The cell {cell.name} stopped{place} with {raised.type_name}"
    return f"{words}: {raised.message}" if raised.message else f"{words}."


def _shown(cell: Cell, verdict: Verdict | None) -> Iterable[str]:
    """One test, or one answer that is graded by hand."""
    if verdict is None:
        untouched = not cell.source.strip() or any(sign in cell.source for sign in UNTOUCHED)
        yield f"  hand  {cell.name}: {'not answered yet' if untouched else 'answered'}"
    elif verdict.status == "passed":
        part = (
            f": {verdict.score:g} of {cell.points:g} points" if verdict.score < cell.points else ""
        )
        yield f"  ok    {cell.name}{part}"
    else:
        yield f"  FAIL  {cell.name}"
        yield _wrapped(verdict.told, "        ")


def _table(questions: Sequence[Question], verdicts: dict[str, Verdict]) -> Iterable[str]:
    """Points by question: within reach as it stands, of how many, and given by hand."""
    row = "{:<46}  {:>12}  {:>6}  {:>7}"
    yield row.format("question", "within reach", "of", "by hand")
    sums = [0.0, 0.0, 0.0]
    for question in questions:
        tests = question.of_kind("test")
        values = [
            sum(verdicts[cell.name].score for cell in tests),
            sum(cell.points for cell in tests),
            sum(cell.points for cell in question.of_kind("manual")),
        ]
        if any(values):
            title = textwrap.shorten(question.title or "before the first heading", TITLE)
            yield row.format(title, *(f"{value:g}" for value in values))
            sums = [total + value for total, value in zip(sums, values, strict=True)]
    yield row.format("total", *(f"{value:g}" for value in sums))


def _wrapped(text: str, start: str = "") -> str:
    return "\n".join(
        textwrap.wrap(
            text, WIDTH, initial_indent=start, subsequent_indent=start, break_on_hyphens=False
        )
    )


if __name__ == "__main__":
    sys.exit(main())
