"""What grading finds out, as plain data: what ran, what it gave, what it is worth, what to say."""

from dataclasses import dataclass, field
from typing import Any, Literal

Status = Literal[
    "passed",
    "failed",  # the test's own claim does not hold
    "error",  # the answer raised an exception
    "timeout",
    "died",  # the process of the answer ended (signal, exit, memory)
    "unanswered",  # the stub is still there, or nothing is defined
    "forbidden",  # a rule of the instructor's was broken
    "test-error",  # the test itself is broken: an instructor has to look
]


Texts = dict[str, str]

PASSED_ON = "exception"  # the kind of what a test's own function raised when it was called
INSTANCE = "instance"  # the kind of a real object of a class of the instructor's


@dataclass(frozen=True)
class Opaque:
    """Stands in a transcript for an object, of which nothing more is known."""

    kind: str  # "function", "class", "module", "object", `INSTANCE` or `PASSED_ON`
    type_name: str


@dataclass(frozen=True)
class Raised:
    """An exception that the student's code raised."""

    type_name: str
    message: str
    line: int = 0  # in the student's own cell; 0 if unknown
    cell: str = ""  # grade_id of that cell
    bases: tuple[str, ...] = ()  # names of its base classes, nearest first


@dataclass(frozen=True)
class Crossing:
    """One call from a test into the student's code: what went in, what came out."""

    what: str  # "softmax", "Layer.forward", "get num_heads"
    arguments: tuple[Any, ...]
    outcome: Any  # plain values, arrays, tensors, Opaque; or Raised
    changed: tuple[str, ...] = ()  # what it changed in place: "Module", "Tensor@1" (argument 1)
    hidden: bool = False  # whether the test's hidden part had begun
    drew: tuple[str, ...] = ()  # of which libraries it drew random numbers


Transcript = tuple[Crossing, ...]


@dataclass(frozen=True)
class TestRun:
    """How one test cell went, before anything is put in words."""

    __test__ = False  # for pytest: not a test class

    test: str  # grade_id of the cell
    status: Status
    score: float  # points earned, 0 to the cell's points
    error: str = ""  # name of the exception that ended the test cell
    message: str = ""  # its text, in full; may hold values of hidden tests
    raised: Raised | None = None  # set if it began in the student's code
    in_hidden: bool = False  # whether it happened after ### BEGIN HIDDEN TESTS
    transcript: Transcript = ()
    beside: Transcript = ()  # what came from the answer otherwise than by calls, in outline
    stood_in: tuple[str, ...] = ()  # names for which the reference stood in
    seconds: float = 0.0  # on the wall
    calls: int = 0  # messages that the test sent to the answer's process
    work: float = 0.0  # seconds that processors worked for it, here and there


@dataclass(frozen=True)
class Verdict:
    """What a test cell is worth, and what is said of it. JSON only."""

    test: str
    status: Status
    score: float
    points: float
    told: str = ""  # for the student: one or two sentences, nothing of a hidden test
    said: str = ""  # for the instructor
    hidden: bool = False  # it failed in the hidden part
    misconception: str = ""  # id of the one that agrees with what the answer gave
    read: str = ""  # "page#label" in the book
    stood_in: tuple[str, ...] = ()
    seconds: float = 0.0
    leans: bool = False  # how it ends may go by what hidden tests of other questions found


@dataclass(frozen=True)
class NotebookResult:
    """One notebook of a submission."""

    name: str  # without .ipynb
    verdicts: tuple[Verdict, ...] = ()
    answers: Texts = field(default_factory=Texts)  # grade_id -> the student's source
    outputs: Texts = field(default_factory=Texts)  # grade_id -> text printed when it ran
    extra: tuple[tuple[str, str, str], ...] = ()  # (grade_id it follows, "code"|"markdown", source)
    notes: tuple[str, ...] = ()  # what was odd: a doubled cell, an ignored magic, a renamed file
    by_tests: tuple[str, ...] = ()  # the same, noted while tests ran: it may go by hidden ones
    reason: str = ""  # why the whole notebook is 0; empty if its tests ran
    pictures: str = ""  # a digest of those in its cells, which are not kept; empty if none


@dataclass(frozen=True)
class Flag:
    """Something a person should look at."""

    kind: Literal["timeout", "forbidden", "tampering", "similar", "file", "died", "late", "unsure"]
    where: str  # notebook/grade_id
    words: str


@dataclass(frozen=True)
class Cost:
    """What grading a submission took."""

    judge: float = 0.0  # seconds of processor time in the process that tests
    answers: float = 0.0  # in those of the answers
    calls: int = 0  # messages to these


@dataclass(frozen=True)
class Result:
    """How grading one submission of one assignment ended. JSON only."""

    student: str
    assignment: str
    key: str  # sha256 of everything the grade depends on
    notebooks: tuple[NotebookResult, ...] = ()
    flags: tuple[Flag, ...] = ()
    reason: str = ""  # why the submission is 0 as a whole; empty if tests ran
    seconds: float = 0.0  # wall time of grading it
    cost: Cost = Cost()
