"""Whether an answer keeps to the rules of its question, and what nobody can read of it."""

import ast
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from autograder.bridge.watch import is_seen
from autograder.common.syntax import read
from autograder.common.written import written
from autograder.judge import student_cells
from autograder.judge.forbidden import (
    BY_TEXT,
    BY_TEXT_ATTRIBUTES,
    SET_BY_TEXT,
    covers,
    is_vetted,
    is_way_round,
)
from autograder.judge.made_of import UNKNOWN, Part, Place
from autograder.judge.own_modules import leads_round
from autograder.judge.read_answer import Read, modules_unread, read_answer
from autograder.judge.rules import QuestionRules
from autograder.judge.search import AS_SET, AS_VALUE
from autograder.judge.statement import Import, Statement

ALL = -1  # statements of a cell
ENCODING = re.compile(r"\A((?:.*\n)?[ \t\f]*)#.*coding[:=].*")  # what names a module's
MAX_READ = 400_000  # characters of one student's code that are searched


@dataclass(frozen=True)
class Broken:
    """A rule that an answer breaks."""

    name: str
    line: int
    words: str  # for the student


def broken_rules(
    answer: str,
    rules: QuestionRules,
    others: Sequence[str] = (),
    imports: Sequence[str] = (),
    names: Collection[str] = (),
    place: Place | None = None,
) -> tuple[Broken, ...]:
    """Forbidden names that an answer uses, in the order of its lines.

    Args:
        answer: the answer's source.
        rules: what holds for its question.
        others: the student's own further cells; of those only what the answer uses is searched.
        imports: the instructor's cells; their imports say what a name stands for.
        names: what the question asks for. Then of the answer, too, only what these use is searched:
            a student may compare an answer with the ready function. Without them all of it counts.
        place: where the answer stands. Then what another cell made counts only if it is still what
            a name stands for when it is used. Without it all that has the name counts.
    """
    forbid = rules.forbidden
    if not forbid:
        return ()
    if len(answer) + sum(map(len, others)) > MAX_READ:
        words = f"your notebook holds more code than is read ({MAX_READ:,} characters)"
        return (Broken("too much code", 0, words),)
    taken = student_cells.cell(answer)
    if taken is None:
        return ()
    if taken.more:
        words = "your answer is too long, or nested too deep, to be read before it runs"
        return (Broken("too much code", 0, words),)
    asked = names or _only_imported(taken.statements)
    read = read_answer(answer, forbid, tuple(others), tuple(imports), frozenset(names), place)
    if read is None:
        words = "your notebook gives what it imports more names than can be followed"
        return (Broken("too many names", 0, words),)
    search = read.search(forbid, rules.allow, read.own)
    found = {}
    for part in read.own:
        mine = read.mine(part)
        for name, line in [*search.imported(part.holds, asked), *search.of(part.holds, mine)]:
            found.setdefault((name, part.where), _broken(name, line, part.where, rules))
    return tuple(found.values())


@dataclass(frozen=True)
class Unread:
    """What could change how an answer runs, and was not searched: it is no part of the answer."""

    statements: frozenset[tuple[int, int]]  # (which other cell, which statement); -1: the answer's
    modules: frozenset[str]  # that are imported, and whose text nobody can read
    words: str  # for the student whose answer needs them
    meant: frozenset[tuple[int, int, str]] = frozenset()
    """Statements that give a builtin's name, which may not be used, another meaning."""
    instead: frozenset[tuple[int, int, str]] = frozenset()
    """Those that give the name of a module of the instructor's to something else."""


def unread(
    answer: str,
    rules: QuestionRules,
    others: Sequence[str] = (),
    imports: Sequence[str] = (),
    names: Collection[str] = (),
    place: Place | None = None,
    ran: Collection[str] = (),
) -> Unread:
    """What an answer in which `broken_rules` finds nothing should do without.

    That is what can give a name a meaning out of sight, take a stop away or ask another process,
    uses of what no stop is known for, or that run before anything is stopped and may leave in a
    file what they have got, and what a name stood for before it was given to something else;
    arguments as for `broken_rules`, and packages of which all that ran was read. To have it in a
    notebook breaks no rule: only running the answer without it shows whether the answer needs it.
    """
    forbid = rules.forbidden
    read = None
    if forbid and student_cells.cell(answer) is not None:
        read = read_answer(answer, forbid, tuple(others), tuple(imports), frozenset(names), place)
    if read is None:
        return Unread(frozenset(), frozenset(), "")
    hits = _hits_unread(read, forbid, rules.allow)
    modules = modules_unread(read) - {*ran}
    for part, _ in hits:
        if part.statement < 0:
            modules |= part.modules - {UNKNOWN}
    meant = frozenset(read.meant({*forbid, *BY_TEXT, "getattr"} - {*rules.allow}))
    said = [f"{name} (line {line}{part.where or ' of its cell'})" for part, (name, line) in hits]
    said += [f"the module {name}" for name in sorted(modules)]
    instead = _handed_on_as_own(read, rules)
    said += ["a cell that is too long or nested too deep" for _ in read.dark]
    said += [f"Python's own {name}" for _, _, name in sorted(meant)]
    said += [f"the module {name} as a value" for _, _, name in sorted(instead)]
    out = {(part.cell, part.statement) for part, _ in hits if part.statement >= 0}
    return Unread(
        frozenset(out | {(cell, ALL) for cell in read.dark}),
        frozenset(modules),
        f"your answer needs what {said[0]} does, which cannot be read before it runs; write the "
        "answer so that its own text shows what it calls"
        if said
        else "",
        meant,
        instead,
    )


def _handed_on_as_own(read: Read, rules: QuestionRules) -> frozenset[tuple[int, int, str]]:
    """Where names are given away that cells hand on, and may not where they are modules."""
    search = read.search(rules.forbidden, rules.allow, read.everything)
    found = set[tuple[int, int, str]]()
    cells = [part for part in read.everything if not part.modules]
    for cell, statement, name in read.instead():
        for part in (part for part in cells if name in part.holds.uses):
            mine = read.mine(part)
            less = replace(mine, modules=mine.modules - {name})
            if search.of(part.holds, mine) != search.of(part.holds, less):
                found.add((cell, statement, name))
    return frozenset(found)


def _hits_unread(
    read: Read, forbid: tuple[str, ...], allow: tuple[str, ...]
) -> list[tuple[Part, tuple[str, int]]]:
    """Statements that an answer should do without, each with the first reason for it."""
    own = {id(part) for part in read.own}
    before = {id(part) for part in read.before}
    unstopped = tuple(name for name in forbid if not is_seen(name))
    strict = read.search(forbid, allow, read.everything)
    search = replace(strict, forbid=unstopped)
    hits: dict[int, tuple[str, int]] = {}
    users: dict[str, tuple[str, int]] = {}  # names of functions that use what will be stopped
    others = [part for part in read.everything if id(part) not in own]
    for part in others:
        found = strict.of(part.holds, read.mine(part))
        # where nothing is forbidden, no part of that is
        if found and id(part) not in before and part.holds.waits:
            users |= dict.fromkeys(part.holds.binds, found[0])
            found = search.of(part.holds, read.mine(part))
            found = [hit for hit in found if not _is_torchs(hit[0])]
        if found:
            hits[id(part)] = found[0]
    _add_callers(others, hits, users)
    return [(part, hits[id(part)]) for part in others if id(part) in hits]


def _add_callers(
    parts: Sequence[Part], hits: dict[int, tuple[str, int]], users: dict[str, tuple[str, int]]
) -> None:
    """Add the statements that use such a function before anything is stopped, however deep."""
    size = -1
    while users and size < len(users):
        size = len(users)
        for part in parts:
            named = sorted(part.holds.uses.keys() & users.keys())
            if named and part.holds.waits:
                users |= dict.fromkeys(part.holds.binds - users.keys(), users[named[0]])
            elif named:
                hits.setdefault(id(part), users[named[0]])


def _is_torchs(name: str) -> bool:
    """Whether a bare name was found as torch's own, whose operators are stopped."""
    return name.startswith("torch.") and is_vetted(name) and not is_way_round(name)


def statements(source: str) -> Iterator[tuple[int, str]]:
    """A cell's statements one by one, each with its number."""
    tree = read(source, aside=True)[0] or ast.Module([], [])
    yield from ((number, written(node)) for number, node in enumerate(tree.body))


def module_cell(name: str, content: bytes) -> str:
    """A module that was handed in, as a cell that writes it."""
    text = student_cells.module_text(content)
    if text is None:
        return f"%%writefile '{name}'\n{content.decode('utf-8', 'replace')}"
    text = ENCODING.sub(r"\1#", text)  # it is text now, in no encoding
    return f"%%writefile '{name}'\n{text}"


def _broken(name: str, line: int, where: str, rules: QuestionRules) -> Broken:
    ready = any(covers(entry, name) for entry in rules.forbidden)
    is_value = name.endswith((AS_VALUE, AS_SET))
    is_way = is_value or is_way_round(name) or name in BY_TEXT_ATTRIBUTES | SET_BY_TEXT
    is_way |= not is_vetted(name) or leads_round(name)
    ending = (
        ", since what it runs or reaches cannot be seen; do without it"
        if is_way and not ready
        else "; write it yourself"
    )
    verb = "hands on" if name.endswith(AS_VALUE) else "uses" if is_value else "calls"
    called = f"your answer {verb} {name} (line {line}{where}), which this question does not allow"
    return Broken(name, line, called + ending)


def _only_imported(answer: Sequence[Statement]) -> set[str]:
    """What an answer imports if it does nothing else: then that is the answer."""
    if any(not isinstance(node, Import) for one in answer for node in one.tree.body):
        return set()
    return {name for one in answer for name in one.top_level} - {"*"}
