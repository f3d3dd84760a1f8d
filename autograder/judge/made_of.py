"""Which statements of a student's notebook an answer is made of, in the order in which they run."""

import ast
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from autograder.judge import expressions, student_cells
from autograder.judge.expressions import is_namespace, origins_of
from autograder.judge.statement import CHANGERS, SETTERS, Import, Statement

UNKNOWN = "*"  # the name of a module whose text is written to a file of any name
MOST_WAYS = 50_000  # of an answer to what it uses, at the times at which it may be used


@dataclass(frozen=True)
class Place:
    """Where an answer stands among the student's other cells."""

    above: int  # so many of them stand above it
    run: int  # so many have run when it is tested


@dataclass(frozen=True)
class Part:
    """A statement at the top level of a student's cell, or of a module that a cell writes."""

    holds: Statement
    where: str  # of which cell, in words; empty for the answer's own
    cell: int = -1  # which of the other cells; -1 for the answer's own
    statement: int = -1  # which in its cell; -1 if it stands in a module
    modules: frozenset[str] = frozenset()  # that it is a part of, by the names to import them


def parts_of(answer: str, others: Sequence[str]) -> Iterator[Part]:
    """All statements of a student's: of the answer first, then of other cells and of modules."""
    cells = [(student_cells.cell(answer), "", -1)]
    named = set[str]()  # texts that are read as those of modules that have names
    for cell, text in enumerate(others):
        if file := student_cells.file(text):
            named.add(file.text)
            for statement in file.statements:
                yield Part(statement, f" of your {file.name}", cell, modules=file.modules)
        else:
            cells.append((student_cells.cell(text), " of another cell of yours", cell))
    for taken, where, cell in cells:
        if taken is not None:
            for number, statement in enumerate(taken.statements):
                yield Part(statement, where, cell, number)
            unnamed = (module for text, module in taken.written if text not in named)
            for statement in chain.from_iterable(unnamed):
                where = " of a file that you write"
                yield Part(statement, where, cell, modules=frozenset({UNKNOWN}))


Moment = tuple[int, int]  # in the order in which a notebook runs: a cell, a statement


@dataclass(frozen=True)
class Patches:
    """Finds statements that set something inside a library: every answer then uses it."""

    packages: Collection[str]
    aliases: Mapping[str, set[str]]

    def of(self, holds: Statement) -> bool:
        """Whether a statement, or a function that it defines, does so."""
        mocks = not self._mocks.isdisjoint(holds.read)
        mocks |= any(attribute.endswith("mock") for attribute in holds.attributes)
        calls = holds.of_kind(ast.Call) if mocks else ()
        return any(map(self._is_patch, holds.changes)) or any(map(self._is_patch, calls))

    @cached_property
    def _mocks(self) -> frozenset[str]:
        """Names that may lead to `mock.patch`."""
        return frozenset(n for n, found in self.aliases.items() if any("mock" in o for o in found))

    def _is_patch(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Attribute | ast.Subscript):
            return not isinstance(node.ctx, ast.Load) and self._is_theirs(node.value)
        if not isinstance(node, ast.Call):
            return False
        called = expressions.called(node)
        if any("mock.patch" in origin for origin in origins_of(node.func, self.aliases)):
            texts = {(expressions.text(given) or "").partition(".")[0] for given in node.args}
            return bool(texts & {*self.packages}) or any(map(self._is_theirs, node.args))
        if called in CHANGERS and isinstance(node.func, ast.Attribute):
            return is_namespace(node.func.value) and self._is_theirs(node.func.value)
        return called in SETTERS and any(map(self._is_theirs, node.args[:1]))

    def _is_theirs(self, node: ast.expr) -> bool:
        """Whether this is a library, or something in it."""
        while is_namespace(node) or isinstance(node, ast.Attribute | ast.Subscript):
            node = node.args[0] if isinstance(node, ast.Call) else node.value  # type: ignore
        if not isinstance(node, ast.Name):
            return False
        origins = self.aliases.get(node.id, self.aliases.get("*", ()))
        if node.id not in self.aliases and not node.id[:1].isupper():
            return False  # of what * brings, only classes are taken for theirs
        return any(origin.partition(".")[0] in self.packages for origin in origins)


class Uses:
    """Finds the statements that an answer is made of, and those of other cells that it leans on."""

    def __init__(
        self,
        parts: Sequence[Part],
        place: Place | None,
        cells: int,
        patches: Patches,
        packages: Collection[str],
    ) -> None:
        """What a module outside these packages holds may be what the student wrote."""
        above = cells if place is None else place.above
        self.end: Moment = (cells + 1 if place is None else place.run + 1, -1)
        self.moments = [_when(part, above) for part in parts]
        self.parts, self.place, self.patches, self.packages = parts, place, patches, packages
        self.dropped = False  # whether a name was given to something else before it was used
        self._makers: dict[str, list[int]] = {}
        self._modules: dict[str, list[int]] = {}
        for number in sorted(range(len(parts)), key=self.moments.__getitem__):
            part = parts[number]
            for name in part.modules or part.holds.names:
                found = self._modules if part.modules else self._makers
                found.setdefault(name, []).append(number)
        self._given: dict[tuple[str, Moment], list[int]] = {}

    def of(self, names: Collection[str]) -> dict[int, Moment]:
        """The statements, and when what each defines may be called first.

        Without names, or if nothing defines them, all statements of the answer count.
        """
        mine = {number for number, part in enumerate(self.parts) if not part.where}
        stars = self._makers.get("*", [])
        todo = [*stars, *(n for name in names for n in self._giving(name, self.end))]
        if not any(n in mine for n in todo if "*" not in self.parts[n].holds.names):
            todo += mine
        todo += [n for n, part in enumerate(self.parts) if self.patches.of(part.holds)]
        found = self._followed([(number, self.end) for number in todo])
        if found is None:  # then no order is asked for
            self.place = None
            self._given.clear()
            found = self._followed([(number, self.end) for number in todo]) or {}
        return found

    def _followed(self, todo: list[tuple[int, Moment]]) -> dict[int, Moment] | None:
        """All that these use; None if there are more ways to it than are followed."""
        seen: set[tuple[int, Moment]] = set()
        asked: set[tuple[str, Moment, Moment]] = set()
        found: dict[int, Moment] = {}
        ways = 0
        while todo:
            number, when = pair = todo.pop()
            if pair in seen:
                continue
            seen.add(pair)
            found[number] = min(when, found.get(number, when))
            for name, at in self._uses(number, when):
                if (name, at, when) not in asked:
                    asked.add((name, at, when))
                    given = self._giving(name, at)
                    todo += [(one, moment) for one in given for moment in {at, when}]
                    ways += len(given)
            for node in self.parts[number].holds.imports:
                for name in _modules(node, self.packages):
                    todo += [(one, when) for one in self._modules.get(name, ())]
            if self.place is not None and ways > MOST_WAYS:
                return None
        return found

    def _uses(self, number: int, when: Moment) -> Iterator[tuple[str, Moment]]:
        """Names that a statement uses if it is called then; and when each is looked up."""
        here = when if self.place is None else self.moments[number]
        for name, at_once in self.parts[number].holds.uses.items():
            yield name, here if at_once else when

    def _giving(self, name: str, when: Moment) -> list[int]:
        """Statements that make what a name stands for at some time."""
        rows = self._makers.get(name, [])
        if self.place is None or len(rows) < 2:
            return rows
        if (name, when) not in self._given:
            self._given[name, when] = found = self._last(name, rows, when) or rows
            self.dropped |= len(found) < len(rows)
        return self._given[name, when]

    def _last(self, name: str, rows: Sequence[int], when: Moment) -> list[int]:
        """What gave a name its meaning last before this, and what changes that."""
        found: list[int] = []
        settled = False
        for number in reversed(rows):
            holds = self.parts[number].holds
            anytime = name not in holds.top_level and holds.defines  # it is set at some call
            if self.moments[number] < when and (anytime or not settled):
                found.append(number)
                settled |= name in holds.binds
        return found


def _when(part: Part, above: int) -> Moment:
    """When a statement runs, if so many of the other cells stand above the answer."""
    cell = above if part.cell < 0 else part.cell + (part.cell >= above)
    return cell, part.statement


def _modules(node: Import, packages: Collection[str]) -> Iterator[str]:
    """Names of modules that an import may load."""
    names = [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        names = [".".join(filter(None, (node.module, name))) for name in names]
    if not {name.partition(".")[0] for name in names} <= {*packages, *sys.stdlib_module_names}:
        yield UNKNOWN
    yield from (piece for name in names for piece in name.split("."))
