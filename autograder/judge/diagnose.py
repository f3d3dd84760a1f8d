"""Say what went wrong with an answer: for its student, for the instructor, and which mistake it is.

The words for a student come from four places only: the test's author, the book of known mistakes,
his own source, and, in visible tests, the values that he can see himself. Of a hidden test neither
inputs nor outcomes are repeated, not even his own: an answer might return what it was given. Nor
are they where the reference stood in for another answer: what it gives a hidden test may expect.
"""

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from autograder.common.results import (
    PASSED_ON,
    Crossing,
    Opaque,
    Raised,
    TestRun,
    Transcript,
    Verdict,
)
from autograder.common.syntax import parse
from autograder.judge.differences import call_in_words, keep, kept, same_call
from autograder.judge.missing import UNDEFINED, missing

LONGEST = 300  # characters of a message that is repeated
LONGEST_LINE = 100  # of a line of source
UNANSWERED = "Not answered yet."
UNWRITTEN = "A part of your answer is not written yet: your code stopped with NotImplementedError"
STOPPED = "Your code stopped with an error"
TRY = "Try it with inputs of your own, edge cases among them."
BROKEN_TEST = (
    "This test could not be run. That is no fault of yours; your instructor has to look at it."
)
NO_TEXT = re.compile(r"\x1b\[[0-9;]*m|[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
CHANGED = "Your code changes what it was handed; the caller still needs it as it was."
GAPS = re.compile(r"…(\s*…)+")  # values that are left out side by side
LEADING_GAP = re.compile(r"^…[:,]\s*")
REPORTED = re.compile(r"assert|check|expect|fail|raise|verify", re.IGNORECASE)


class TestCell(Protocol):
    """What has to be known of a test's cell."""

    __test__ = False  # for pytest: not a test class

    @property
    def grade_id(self) -> str:
        """The test's name."""
        ...

    @property
    def source(self) -> str:
        """Its source, hidden tests included."""
        ...

    @property
    def points(self) -> float:
        """What it is worth."""
        ...


@dataclass(frozen=True)
class Known:
    """A mistake that is known, and what answers with it give in each test of its question.

    The transcripts are those of `differences.keep`.
    """

    id: str
    name: str
    message: str  # for the student: names the mistake and what the result shows
    read: str = ""  # "page#label" in the book
    fails: tuple[str, ...] = ()  # the tests that fail by it
    transcripts: Mapping[str, Transcript] = field(default_factory=dict)  # by test
    ends: Mapping[str, str] = field(default_factory=dict)  # by test, see `ending`


@dataclass(frozen=True)
class Named:
    """A known mistake that agrees with what an answer gave."""

    known: Known
    others: tuple[Known, ...] = ()  # mistakes with another message that agree as well
    passes: bool = False  # whether the answer passes a test that the mistake fails

    @property
    def sure(self) -> bool:
        """Whether no other mistake agrees as well, and no other test speaks against this one."""
        return not (self.others or self.passes)


def told(
    run: TestRun,
    cell: TestCell,
    reference: Transcript | None,
    known: Sequence[Known],
    *,
    answers: Mapping[str, str] | None = None,
    runs: Sequence[TestRun] = (),
) -> Verdict:
    """Put in words how a test went.

    Args:
        run: how it went.
        cell: the test's cell.
        reference: what the reference gives in the same test; None if that is not known.
        known: the mistakes that are known for the test's question.
        answers: the student's source by grade_id, to quote the line that stopped.
        runs: how all tests of the notebook went; what they say together names a mistake better.
    """
    named = None
    run = replace(run, transcript=keep(run.transcript), raised=kept(run.raised))
    reference = None if reference is None else keep(reference)
    if run.status in ("failed", "error"):
        named = name_misconception(run, known, reference, runs)
    sentences = _for_student(run, cell, _visible(reference), answers or {})
    return Verdict(
        test=run.test,
        status=run.status,
        score=run.score,
        points=cell.points,
        told=clean(_joined([*sentences[:1], _message(named)] if named else sentences)),
        said=clean(_for_instructor(run, reference, named)),
        hidden=run.in_hidden and run.status != "passed",
        misconception=named.known.id if named else "",
        read=named.known.read if named else "",
        stood_in=run.stood_in,
        seconds=run.seconds,
    )


def name_misconception(
    run: TestRun,
    known: Iterable[Known],
    reference: Transcript | None,
    runs: Sequence[TestRun] = (),
) -> Named | None:
    """The known mistake that gives what this answer gave, in all calls that the test made.

    If several do, those are left that agree in most tests and end most of them with the same
    words; of these the one that fails the same tests; of these the first, which is then no more
    than probable. So is one that fails a test which the answer passes.
    """
    if reference is None:
        return None
    run = replace(run, transcript=keep(run.transcript))
    as_wanted = agrees(run.transcript, keep(reference))
    able = [one for one in known if _gives(one, run, by_end_only=as_wanted)]
    passed = {other.test for other in runs if other.status == "passed"}
    if len(able) < 2:
        return Named(able[0], (), not passed.isdisjoint(able[0].fails)) if able else None
    tests = {test for one in able for test in one.transcripts} - {run.test}
    others = [
        replace(other, transcript=keep(other.transcript)) for other in runs if other.test in tests
    ]
    best = max(_likeness(one, [run, *others]) for one in able)
    able = [one for one in able if _likeness(one, [run, *others]) == best]
    failed = {other.test for other in runs if other.status in ("failed", "error")}
    exact = [one for one in able if set(one.fails) == failed]
    first, *rest = exact or able
    also = tuple(one for one in rest if one.message != first.message)
    return Named(first, also, not passed.isdisjoint(first.fails))


def agrees(theirs: Transcript, ours: Transcript) -> bool:
    """Whether the calls of the first went as those of the second, up to the end of the first."""
    return len(theirs) <= len(ours) and all(map(same_call, theirs, ours))


def ending(run: TestRun) -> str:
    """How a test ended, for comparison where all calls went as they should; empty if it passed."""
    if run.status == "passed":
        return ""
    return f"{run.status}\n{run.error}\n{run.message}"


def first_difference(theirs: Transcript, ours: Transcript) -> tuple[Crossing, Crossing] | None:
    """The first call that went another way than it should, and how it should have gone."""
    for one, other in zip(theirs, ours, strict=False):
        if one.what != other.what:
            return None  # no longer the same calls, since the test took another way
        if not same_call(one, other):
            return one, other
    return None


def claims(source: str) -> list[list[str]]:
    """First lines of what a test's author says when it fails, cut where values are put in."""
    tree = parse(source)
    if tree is None:
        return []
    spoken = [part for node in ast.walk(tree) for part in _spoken(node)]
    bound = _bound(tree)
    names = [part.id for part in spoken if isinstance(part, ast.Name)]
    spoken += [value for name in names for value in bound.get(name, [])]
    found = [parts for part in spoken for parts in _strings(part)]
    return [parts for parts in found if len("".join(parts)) > 8]


def claim_of(message: str, source: str, *, hidden: bool) -> str:
    """What a test's author claims in a failure's message; empty if it is not his.

    In a visible test the first line as it is; in a hidden one only the words that are his own.
    """
    first = message.strip().partition("\n")[0]
    fitting = [parts for parts in claims(source) if _fits(first, parts)]
    if not fitting:
        return ""
    if not hidden:
        return first
    words = "…".join(max(fitting, key=lambda parts: len("".join(parts))))
    return LEADING_GAP.sub("", GAPS.sub("…", words)).strip()


def _visible(reference: Transcript | None) -> Transcript | None:
    """What the reference gives before a test's hidden part: a loop of the answer's own length may
    make more calls than the visible part has with the reference."""
    return None if reference is None else tuple(call for call in reference if not call.hidden)


def _fits(text: str, parts: Sequence[str]) -> bool:
    """Whether a text consists of these parts, in this order, with anything between them."""
    first, *others = parts
    if not others:
        return text == first
    if not text.startswith(first):
        return False
    place, last = len(first), others.pop()
    for part in others:
        place = text.find(part, place) + len(part)
        if place < len(part):
            return False
    return text.endswith(last) and len(text) - len(last) >= place


def _gives(one: Known, run: TestRun, *, by_end_only: bool) -> bool:
    """Whether a mistake gives what the run gave, and not just what is right."""
    transcript = one.transcripts.get(run.test)
    if transcript is None or not agrees(run.transcript, transcript):
        return False
    return not by_end_only or one.ends.get(run.test, "") == ending(run)


def _likeness(one: Known, runs: Sequence[TestRun]) -> tuple[int, int]:
    """In how many tests a mistake gives what these runs gave, and ends as they ended."""
    alike = [
        run
        for run in runs
        if run.test in one.transcripts and agrees(run.transcript, one.transcripts[run.test])
    ]
    return len(alike), sum(one.ends.get(run.test, "") == ending(run) for run in alike)


def _for_student(
    run: TestRun, cell: TestCell, reference: Transcript | None, answers: Mapping[str, str]
) -> list[str]:
    """Sentences for the student, the most important first; why one that passed gives less."""
    if run.status == "passed":
        return [run.message] if run.message else []
    if run.status == "test-error":
        return [BROKEN_TEST]
    if run.status == "unanswered":
        return [_unanswered(run)]
    if run.status in ("timeout", "died", "forbidden"):
        return [_ended(run)]
    return _of_failure(run, cell, reference, answers)


def _of_failure(
    run: TestRun, cell: TestCell, reference: Transcript | None, answers: Mapping[str, str]
) -> list[str]:
    """Sentences on a test that ran and did not pass."""
    if run.raised is not None and run.status == "error":
        unseen = stopped_unseen((run.raised.type_name, *run.raised.bases), hidden=run.in_hidden)
        return [unseen if _is_unseen(run) else _stopped(run.raised, answers)]
    if run.message == CHANGED:
        return [CHANGED]
    claim = claim_of(run.message, cell.source, hidden=_is_unseen(run))
    if _is_unseen(run):
        return [claim or ("A hidden test failed." if run.in_hidden else "A test failed.")]
    detail = _detail(run, reference) if not claim or run.message.strip() == claim else _rest(run)
    told = [words for words in (claim, detail) if words]
    return told or [_of_end(run)]


def _of_end(run: TestRun) -> str:
    """How a test ended of which neither its claim nor a difference tells anything."""
    if run.error == "NameError" and UNDEFINED.match(run.message):
        return missing("" if _is_unseen(run) else run.message)
    if run.error in ("", "AssertionError"):
        return f"A test failed: {_first_line(run.message)}" if run.message else "A test failed."
    what = f"{run.error}: {_first_line(run.message)}"
    if _passed_on(run):
        if run.error == "PermissionError":  # it may not do that with what it got
            return f"Your code stopped with {what}"
        return f"A function that your code was handed could not use what it was called with: {what}"
    return f"What your code gave could not be used: the test stopped with {what}"


def _is_unseen(run: TestRun) -> bool:
    """Whether values and texts of a test are not for its student: they may be those of a hidden
    one, or of the reference's answer to another question."""
    return run.in_hidden or bool(run.stood_in)


def stopped_unseen(kinds: Iterable[str], *, hidden: bool) -> str:
    """What is told of an exception that could carry a value: neither its text nor its type.

    Args:
        kinds: the names of its class and of that class's bases.
        hidden: whether a hidden test met it.
    """
    where = " in a hidden test" if hidden else ""
    if "NotImplementedError" in kinds:
        return f"{UNWRITTEN}{where}."
    return f"{STOPPED}{where}. {TRY}"


def _unanswered(run: TestRun) -> str:
    """What is missing; without an exception the message is the grader's own."""
    if not run.error and run.message:
        return f"Not answered: {_first_line(run.message)}"
    is_missing = run.error == "NameError" and not (run.raised and _is_unseen(run))
    return missing("" if _is_unseen(run) else run.message) if is_missing else UNANSWERED


def _detail(run: TestRun, reference: Transcript | None) -> str:
    """How a call went other than it should: the last before the failure, else the first."""
    if reference is None:
        return ""
    given = run.transcript
    if _passed_on(run):
        given = given[:-1]  # the test's message says why
    last = len(given) - 1
    pair = first_difference(given, reference)
    if pair and last < len(reference) and given[last].what == reference[last].what:
        ended = given[last], reference[last]
        pair = pair if same_call(*ended) else ended
    return call_in_words(*pair) if pair else ""


def _passed_on(run: TestRun) -> bool:
    """Whether a test ended with what its own function raised when the answer called it."""
    return run.transcript[-1:] != () and run.transcript[-1].outcome == Opaque(PASSED_ON, run.error)


def _rest(run: TestRun) -> str:
    """The lines of a visible failure after its claim."""
    rest = run.message.strip().partition("\n")[2]
    return _cut(" ".join(rest.split()), LONGEST)


def _ended(run: TestRun) -> str:
    """Words for code that did not come back; in a hidden test the end itself could be a message."""
    plain = {
        "timeout": "Your code did not finish in time",
        "died": "Your code ended the process in which it was tested",
        "forbidden": "Your code uses something that is not allowed here",
    }[run.status]
    reason = "" if _is_unseen(run) else _first_line(run.message)
    return f"{plain}: {reason}" if reason else f"{plain}."


def _stopped(raised: Raised, answers: Mapping[str, str]) -> str:
    words = f"Your code stopped with {raised.type_name}"
    if raised.message:
        words += f": {_first_line(raised.message)}"
    return f"{words.rstrip('.')}{_quoted(raised, answers)}."


def _quoted(raised: Raised, answers: Mapping[str, str]) -> str:
    """Where in his own cell it stopped, with the line itself."""
    lines = answers.get(raised.cell, "").splitlines()
    if not 1 <= raised.line <= len(lines):
        return ""
    place = f" (line {raised.line} of your answer"
    return f"{place}: `{_cut(lines[raised.line - 1].strip(), LONGEST_LINE)}`)"


def _for_instructor(run: TestRun, reference: Transcript | None, named: Named | None) -> str:
    if run.status == "passed":
        return ""
    words = [f"{run.status}:"]
    if run.error or run.message:
        words.append(": ".join(filter(None, (run.error, _cut(run.message.strip(), LONGEST)))))
    if run.raised is not None:
        line = f", line {run.raised.line} of {run.raised.cell}" if run.raised.line else ""
        words.append(f"(raised by the answer: {run.raised.type_name}{line})")
    if detail := _detail(run, reference):
        words.append(f"[{detail}]")
    if named is not None:
        words.append(f"[{'agrees' if named.sure else 'may agree'} with {_title(named.known)}]")
    return " ".join(words)


def _title(known: Known) -> str:
    return f"{known.id} {known.name}".strip()


def _message(named: Named) -> str:
    return named.known.message if named.sure else f"Probably: {named.known.message}"


def _joined(sentences: Iterable[str]) -> str:
    """Sentences side by side, each with its full stop."""
    whole = [text.strip() for text in sentences if text.strip()]
    ended = [text if text.endswith((".", "!", "?", "…")) else f"{text}." for text in whole]
    return " ".join(ended) if len(whole) > 1 else "".join(whole)


def clean(text: str) -> str:
    """Without control characters and halves of characters, which no file could hold."""
    return NO_TEXT.sub("", text)


def _first_line(text: str) -> str:
    return _cut(text.strip().partition("\n")[0], LONGEST)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"


def _spoken(node: ast.AST) -> list[ast.expr]:
    """The parts of a statement or call that are shown when it fails."""
    if isinstance(node, ast.Assert):
        return [node.msg] if node.msg else []
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
        return list(node.exc.args)
    if isinstance(node, ast.Call) and REPORTED.search(_last_name(node.func)):
        return [*node.args, *(word.value for word in node.keywords)]
    return []


def _last_name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _bound(tree: ast.Module) -> dict[str, list[ast.expr]]:
    """The expressions that a test's names stand for, loops over what is written out included."""
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                _bind(target, node.value, found)
        elif isinstance(node, ast.For | ast.comprehension):
            for value in _written_out(node.iter):
                _bind(node.target, value, found)
    return found


def _written_out(walked: ast.expr) -> list[ast.expr]:
    """What a loop over a literal tuple or list meets, or over the items of a literal dictionary."""
    match walked:
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            return elements
        case ast.Call(func=ast.Attribute(value=ast.Dict(keys=keys, values=values), attr="items")):
            pairs = zip(keys, values, strict=True)
            return [ast.Tuple([key, value], ast.Load()) for key, value in pairs if key is not None]
    return []


def _bind(target: ast.expr, value: ast.expr, found: dict[str, list[ast.expr]]) -> None:
    if isinstance(target, ast.Name):
        found.setdefault(target.id, []).append(value)
    elif isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List):
        for one, other in zip(target.elts, value.elts, strict=False):
            _bind(one, other, found)


def _strings(part: ast.AST) -> list[list[str]]:
    """The strings in an expression, without those that are handed on to another function."""
    if isinstance(part, ast.Constant) and isinstance(part.value, str):
        return [[part.value.strip().partition("\n")[0]]]
    if isinstance(part, ast.JoinedStr):
        return [_fixed_parts(part)]
    if isinstance(part, ast.Call | ast.Lambda):
        return []
    return [found for child in ast.iter_child_nodes(part) for found in _strings(child)]


def _fixed_parts(node: ast.JoinedStr) -> list[str]:
    """The fixed parts of an f-string's first line, one more than it has values."""
    parts = [""]
    for value in node.values:
        text = value.value if isinstance(value, ast.Constant) else None
        if text is None:
            parts.append("")
            continue
        line, end, _ = str(text).partition("\n")
        parts[-1] += line
        if end:
            break
    return parts
