"""What the reference and each known mistake give in the tests, made once and kept in build/known.

A mistake is run as if a student had handed it in. Its transcripts are stored without pickle, one
block a question, so that grading reads only the blocks that it needs.
"""

import ast
import hashlib
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autograder.authoring.answers import Answer, read_answers, splice
from autograder.authoring.source import Source, read_source
from autograder.bridge import arrays
from autograder.bridge.wire import Decoder, Encoder, Frame, WireError, read_frame
from autograder.common.course import Course, CourseError
from autograder.common.results import TestRun, Transcript
from autograder.common.whole import require_file, write_whole
from autograder.judge.diagnose import Known, ending
from autograder.judge.differences import Kept, keep

# Runs a notebook with some of its answers replaced ({solution's id: source}) and gives how these
# tests went.
Run = Callable[[Mapping[str, str], Sequence[str]], Mapping[str, TestRun]]
LONGEST_HEAD = 10_000_000


@dataclass(frozen=True)
class Block:
    """What is known of one question."""

    references: dict[str, Transcript] = field(default_factory=dict)  # by test
    known: tuple[Known, ...] = ()
    beside: dict[str, Transcript] = field(default_factory=dict)  # see `TestRun`; by test


@dataclass
class Shelf:
    """What is known of one chapter; each question is read from the file when it is asked for."""

    path: Path
    start: int  # where the blocks begin
    places: dict[str, tuple[int, int]]  # by question: where its block is, and its length
    questions: dict[str, str]  # by test
    unable: frozenset[str] = frozenset()  # tests that the reference does not pass here
    blocks: dict[str, Block] = field(default_factory=dict)

    def of(self, test: str) -> tuple[Transcript | None, tuple[Known, ...]]:
        """What the reference gives in a test, and the mistakes known for its question."""
        question = self.questions.get(test)
        if question is None:
            return None, ()
        block = self.block(question)
        return block.references.get(test), block.known

    def beside(self, test: str) -> Transcript | None:
        """What comes from the reference otherwise than by calls; None if nobody knows."""
        question = self.questions.get(test)
        return None if question is None else self.block(question).beside.get(test)

    def block(self, question: str) -> Block:
        """What is known of a question."""
        if question not in self.blocks:
            at, length = self.places[question]
            with self.path.open("rb") as file:
                file.seek(self.start + at)
                self.blocks[question] = _read_block(file.read(length))
        return self.blocks[question]


def shelf(course: Course, chapter: str, version: str, run: Run, tests: Iterable[str] = ()) -> Shelf:
    """What is known of a chapter, made now if the file is missing or stale.

    Args:
        course: the course.
        chapter: name of a chapter.
        version: of everything but the chapter's text sources that transcripts depend on, see
            `fingerprint.of`.
        run: runs the chapter's notebook with some answers replaced.
        tests: all tests of the chapter, those too for which no mistake is known.
    """
    found = kept_shelf(course, chapter, version)
    if found is None:
        put_on_shelf(course, chapter, learnt(course, chapter, version, run, tests))
        found = kept_shelf(course, chapter, version)
        assert found is not None
    return found


def learnt(
    course: Course, chapter: str, version: str, run: Run, tests: Iterable[str] = ()
) -> bytes:
    """The same as a file's content, found out now; arguments as above."""
    made, questions, unable = {}, {}, []
    if all(part.is_file() for part in parts(course, chapter)):
        source = read_source(course.source(chapter))
        made = make(source, read_answers(course.misconceptions(chapter), source), run)
        questions = {test: name for name in made for test in source.tests_of(name)}
    others = [test for test in tests if test not in questions]
    for test, went in run({}, others).items() if others else ():
        if went.status == "passed":  # a block of its own, named as the test
            made[test] = Block({test: keep(went.transcript)}, (), {test: keep(went.beside)})
            questions[test] = test
        elif went.error != "NoNumber":  # which gives full points, as nbgrader does
            unable.append(test)
    return packed(_key(course, chapter, version), questions, made, unable)


def put_on_shelf(course: Course, chapter: str, content: bytes) -> None:
    """Keep what was learnt; the old file stays until the new one is whole."""
    path = _path(course, chapter)
    try:
        write_whole(path, content)
    except OSError as error:  # not by `failures`: no grade depends on what that imports
        raise CourseError(
            f"{path} cannot be written ({error.strerror or error}); make room, and move away what "
            "lies in its place or in that of its folder."
        ) from error


def kept_shelf(course: Course, chapter: str, version: str) -> Shelf | None:
    """What is known of a chapter, if it was found out for this version; nothing is made."""
    return load(_path(course, chapter), _key(course, chapter, version))


def _path(course: Course, chapter: str) -> Path:
    return course.root / "build" / "known" / f"{chapter}.bin"


def parts(course: Course, chapter: str) -> tuple[Path, Path]:
    """The files of a chapter that has known mistakes."""
    return course.source(chapter), course.misconceptions(chapter)


def make(source: Source, answers: Iterable[Answer], run: Run) -> dict[str, Block]:
    """Run the reference and every known mistake; what they give, by question."""
    return blocks(answers, *run_all(source, answers, run))


def run_all(
    source: Source, answers: Iterable[Answer], run: Run
) -> tuple[Mapping[str, TestRun], dict[str, dict[str, TestRun]]]:
    """How the tests go for the reference, and for each known mistake by its id.

    Mistakes of questions that have nothing to do with one another are handed in together.
    """
    waiting: dict[str, list[Answer]] = {}
    for answer in answers:
        if answer.is_wrong:
            waiting.setdefault(answer.question, []).append(answer)
    references = run({}, [test for name in waiting for test in source.tests_of(name)])
    for test, went in references.items():
        if went.status != "passed":
            raise CourseError(
                f"{source.path}: the reference does not pass {test} ({went.error or went.status}: "
                f"{went.message}); mend it, then try the known mistakes again."
            )
    found: dict[str, dict[str, TestRun]] = {}
    alone = _entangled(source)
    while waiting:
        first = next(iter(waiting))
        together = [first] if first in alone else [name for name in waiting if name not in alone]
        handed_in = {name: waiting[name].pop(0) for name in together}
        cells = {name: splice(source.solution(name), one) for name, one in handed_in.items()}
        tests = [test for name in together for test in source.tests_of(name)]
        went = run({name: cell.source for name, cell in cells.items()}, tests)
        for name, one in handed_in.items():
            found[one.id] = {t: went[t] for t in source.tests_of(name) if t in went}
        waiting = {name: rest for name, rest in waiting.items() if rest}
    return references, found


def blocks(
    answers: Iterable[Answer],
    references: Mapping[str, TestRun],
    found: Mapping[str, Mapping[str, TestRun]],
) -> dict[str, Block]:
    """What `run_all` found, by question."""
    made: dict[str, Block] = {}
    for answer in answers:
        if answer.is_wrong:
            before = made.get(answer.question, Block())
            tests = found[answer.id]
            right = {test: keep(references[test].transcript) for test in tests}
            beside = {test: keep(references[test].beside) for test in tests}
            made[answer.question] = Block(
                {**before.references, **right},
                (*before.known, _known(answer, tests)),
                {**before.beside, **beside},
            )
    return made


def packed(
    key: str, questions: Mapping[str, str], made: Mapping[str, Block], unable: Sequence[str] = ()
) -> bytes:
    """The content of a shelf's file."""
    written = {question: _written_block(block) for question, block in made.items()}
    places, at = {}, 0
    for question, data in written.items():
        places[question] = (at, len(data))
        at += len(data)
    head = {"key": key, "places": places, "questions": dict(questions), "unable": list(unable)}
    return json.dumps(head).encode() + b"\n" + b"".join(written.values())


def load(path: Path, key: str) -> Shelf | None:
    """A shelf's file, if there is one of this key."""
    try:
        require_file(path)
        with path.open("rb") as file:
            line = file.readline(LONGEST_HEAD)
        head = json.loads(line)
        if head["key"] != key:
            return None
        places = {question: (int(at), int(size)) for question, (at, size) in head["places"].items()}
        unable = frozenset(map(str, head["unable"]))
        return Shelf(path, len(line), places, dict(head["questions"]), unable)
    except (OSError, ValueError, KeyError, TypeError):  # missing, or cut off by a crash
        return None


def _known(answer: Answer, runs: Mapping[str, TestRun]) -> Known:
    return Known(
        answer.id,
        answer.name,
        answer.message,
        answer.read,
        answer.fails,
        {test: keep(run.transcript) for test, run in runs.items()},
        {test: ending(run) for test, run in runs.items()},
    )


def _entangled(source: Source) -> set[str]:
    """The questions that use a name which another question's answer defines, and those others."""
    defined: dict[str, str] = {}
    used: dict[str, set[str]] = {}
    current = ""
    for cell in source.of_kind("solution", "test"):
        current = cell.id if cell.kind == "solution" else current
        tree = ast.parse(cell.source)
        if cell.kind == "solution":
            names = [n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef)]
            defined |= dict.fromkeys(names, cell.id)
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        used.setdefault(current, set()).update(names)
    pairs = [
        (question, defined[name])
        for question, names in used.items()
        for name in names
        if name in defined and defined[name] != question
    ]
    return {question for pair in pairs for question in pair}


def _key(course: Course, chapter: str, version: str) -> str:
    digest = hashlib.sha256(version.encode())
    for path in filter(Path.is_file, parts(course, chapter)):
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


class _Writer(Encoder):
    def other(self, value: Any) -> Any:
        if isinstance(value, Kept):
            form = value.type_name, value.dtype, list(value.shape), value.gradient
            return ["K", *form, self.node(value.numbers)]
        node = arrays.node(self, value)
        return super().other(value) if node is None else node


class _Reader(Decoder):
    def other(self, tag: Any, parts: list[Any]) -> Any:
        if tag == "K":
            type_name, dtype, shape, gradient, numbers = parts
            return Kept(type_name, dtype, tuple(shape), gradient, self.value(numbers))
        if tag == "A":
            value = arrays.read(self, parts)
            self.kept.append(value)
            return value
        return super().other(tag, parts)


def _written_block(block: Block) -> bytes:
    """Two frames for each test's reference, then one a mistake: each has its own limits."""
    frames = []
    for beside, transcripts in ((False, block.references), (True, block.beside)):
        for test, transcript in transcripts.items():
            with suppress(WireError):  # too large to be kept; then it is as if nobody knew it
                frames.append(_written({(test, beside): transcript}))
    for one in block.known:
        said = one.id, one.name, one.message, one.read, one.fails
        try:
            frames.append(_written([said, dict(one.transcripts), dict(one.ends)]))
        except WireError:  # too large to be kept; such a mistake is never named
            frames.append(_written([said, {}, {}]))
    return b"".join(frames)


def _written(value: Any) -> bytes:
    frame = Frame()
    frame.tree = _Writer(frame).node(value)
    return b"".join(frame.pieces())


def _read_block(data: bytes) -> Block:
    stream = io.BytesIO(data)

    def read(size: int) -> bytes:
        found = stream.read(size)
        if len(found) != size:
            raise WireError("a file of known mistakes is cut off; delete build/known")
        return found

    references: dict[bool, dict[str, Transcript]] = {False: {}, True: {}}  # True: beside calls
    known: list[Known] = []
    while stream.tell() < len(data):
        frame = read_frame(read)
        value = _Reader(frame).value(frame.tree)
        if isinstance(value, dict):
            for (test, beside), transcript in value.items():
                references[beside][test] = transcript
        else:
            said, *more = value
            known.append(Known(*said, *more))
    return Block(references[False], tuple(known), references[True])
