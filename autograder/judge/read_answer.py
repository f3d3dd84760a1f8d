"""A student's cells taken apart for the searches in one answer, and what its names stand for."""

import ast
import builtins
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from autograder.bridge.watch import WAYS_ROUND
from autograder.common.syntax import parse
from autograder.common.trees import walk
from autograder.common.written import written
from autograder.judge import expressions, student_cells
from autograder.judge.expressions import Bindings
from autograder.judge.forbidden import is_installed, is_module_somewhere
from autograder.judge.made_of import Moment, Part, Patches, Place, Uses, parts_of
from autograder.judge.renamed import (
    HARMLESS,
    MOST_ABOVE,
    may_rename_fields,
    mixes,
    sets_unseen,
)
from autograder.judge.search import NOTHING, Mine, Own, Search, is_home
from autograder.judge.shown_types import is_plain_base
from autograder.judge.statement import Statement

CLOSED = ("object", "Module", "NamedTuple", "Generic")  # that let nobody else's objects pass
HOMES = ("typing", "torch.nn", "typing_extensions")


@dataclass(frozen=True)
class Read:
    """A student's statements, and which of them an answer is made of."""

    everything: Sequence[Part]
    own: Sequence[Part]
    given: Sequence[Bindings]  # of the instructor's cells
    before: Sequence[Part]  # what names of it stood for before they were given to something else
    begin: Mapping[int, Moment]  # by the id of a part: when what it defines may be called first
    moments: Mapping[int, Moment]  # by the id of a part: when it runs
    dark: Sequence[int]  # other cells of which there may be more than is read
    shown: frozenset[str]  # modules that cells write
    hidden: frozenset[str]  # those whose text cannot be read

    def search(
        self, forbid: tuple[str, ...], allow: tuple[str, ...], parts: Sequence[Part]
    ) -> Search:
        """A search in these statements."""
        held = [part.holds for part in parts]
        names = frozenset().union(*(one.own for one in held))
        members = frozenset().union(*(one.members for one in held))
        fields = frozenset().union(*(one.fields for one in held))
        given = frozenset(name for one in self.given for name, _ in one.imports)
        origins = (origin for one in self.given for _, origin in one.imports)
        inner = [bindings for part in parts for bindings in _inside(part)]
        held = expressions.aliases(inner)
        everywhere = frozenset(name for part in self.everything for name in part.holds.givens)
        own = Own(
            *(names, given, members, fields, self._classes, self._givens, self._closed),
            self._last,
            *(held, frozenset(one.partition(".")[0] for one in origins), *self._types, everywhere),
            self._homes,
        )
        aliases = _aliases(self.given, parts)
        for origins in aliases.values():  # imported from where it was imported
            lasts = {origin.rpartition(".")[2] for origin in origins}
            origins.update(*(held.get(last, ()) for last in lasts))
        return Search(forbid, allow, aliases, own)

    def mine(self, part: Part) -> Mine:
        """Names that stand for something of the student's in a statement."""
        if part.modules:
            return self._in_files.get(part.cell, NOTHING)
        if not self._meanings and not self._instead:
            return NOTHING
        now = self.moments[id(part)]
        later = self.begin.get(id(part), now)
        found = [(name, first) for name, (first, _, _) in self._meanings.items()]
        return Mine(
            frozenset(name for name, first in found if first < now),
            frozenset(name for name, first in found if first < later),
            frozenset(name for name, (first, _, _) in self._instead.items() if first < now),
        )

    def meant(self, names: Collection[str]) -> Iterator[tuple[int, int, str]]:
        """Where names of builtins that a student's cells use are first given to something else."""
        for name in self._used.intersection(names, self._meanings):
            _, cell, statement = self._meanings[name]
            yield cell, statement, name

    def instead(self) -> Iterator[tuple[int, int, str]]:
        """Where names of modules that a student's cells use are first given to something else."""
        for name in self._used & self._instead.keys():
            _, cell, statement = self._instead[name]
            yield cell, statement, name

    @cached_property
    def _used(self) -> frozenset[str]:
        """Names that statements of cells use: also one that no answer needs does something."""
        cells = (part for part in self.everything if not part.modules)
        return frozenset(name for part in cells for name in part.holds.uses)

    @cached_property
    def _meanings(self) -> dict[str, tuple[Moment, int, int]]:
        """Builtins' names that are given to something of the student's, and where first."""
        found: dict[str, tuple[Moment, int, int]] = {}
        lost = set[str]()
        for part in self.everything:
            lost |= part.holds.loses
            if not part.modules:
                here = (self.moments[id(part)], part.cell, part.statement)
                for name in part.holds.binds:
                    if hasattr(builtins, name):
                        found[name] = min(here, found.get(name, here))
        return {name: where for name, where in found.items() if name not in lost}

    @cached_property
    def _instead(self) -> dict[str, tuple[Moment, int, int]]:
        """Names of modules that are given to something of the student's for good, and where first.

        Not one that several of the instructor's cells import: the last may give it back.
        """
        count = Counter(name for one in self.given for name in {name for name, _ in one.imports})
        known = {name for part in self.everything for name, _ in part.holds.bindings.imports}
        found: dict[str, tuple[Moment, int, int]] = {}
        lost = set[str]()
        for part in self.everything:
            made = part.holds.bindings
            lost |= part.holds.loses
            lost |= {name for name, origin in made.imports if is_module_somewhere(origin)}
            lost |= {name for name, value in made.assigned if value.root in known | count.keys()}
            # whether a loop's name, say, was given anything is asked once it ran: see `instead`
            for name in () if part.modules else part.holds.top_level - {"*"}:
                here = (self.moments[id(part)], part.cell, part.statement)
                found[name] = min(here, found.get(name, here))
        if "*" in known:  # which may give any name back
            return {}
        return {n: where for n, where in found.items() if count[n] == 1 and n not in lost}

    @cached_property
    def _in_files(self) -> dict[int, Mine]:
        """The same for modules, by the cells that write them."""
        found: dict[int, set[str]] = {}
        for part in self.everything:
            if part.modules and not part.holds.loses:
                names = {name for name in part.holds.binds if hasattr(builtins, name)}
                found.setdefault(part.cell, set()).update(names - part.holds.uses.keys())
        return {cell: Mine(frozenset(), frozenset(names)) for cell, names in found.items()}

    @cached_property
    def _classes(self) -> dict[str, frozenset[str]]:
        """Members of the student's own classes, whose names stand for nothing else."""
        made = [(part.holds, self._brought(part.holds)) for part in self.everything]
        count = Counter(name for one, brought in made for name in one.names - brought)
        held = [(name, one) for one, brought in made for name in one.binds - brought]
        once = {name: one for name, one in held if count[name] == 1}
        once |= {name: one for name, one in self._inner_classes() if not count[name]}
        found = {name: one.tuple_class for name, one in once.items() if one.tuple_class}
        for _ in range(MOST_ABOVE):
            before = len(found)
            for name, one in once.items():
                node = one.plain_class
                above = [written(base) for base in node.bases] if node else []
                if node and all(b.rpartition(".")[2] in HARMLESS or b in found for b in above):
                    found[name] = one.members.union(*(found.get(base, ()) for base in above))
            if len(found) == before:
                break
        return found

    def _inner_classes(self) -> Iterator[tuple[str, Statement]]:
        """Classes that stand in functions or classes, if they are the only ones of their names."""
        nodes = [node for part in self.everything for node in part.holds.of_kind(ast.ClassDef)]
        count = Counter(node.name for node in nodes)
        yield from ((node.name, Statement(node)) for node in nodes if count[node.name] == 1)

    @cached_property
    def _homes(self) -> dict[str, frozenset[str]]:
        """The student's own modules that define classes, by the names of these."""
        return {
            node.name: part.modules
            for part in self.everything
            for node in part.holds.tree.body
            if part.modules and isinstance(node, ast.ClassDef)
        }

    def _brought(self, holds: Statement) -> frozenset[str]:
        """Names of classes that a statement imports from the student's own modules of these."""
        (node,) = holds.tree.body
        imports = holds.bindings.imports if isinstance(node, ast.ImportFrom) else ()
        return frozenset(name for name, origin in imports if is_home(self._homes, name, origin))

    @cached_property
    def _closed(self) -> frozenset[str]:
        """The student's own classes of which only what they have made is an instance."""
        count = Counter(name for part in self.everything for name in part.holds.names)
        once = [
            part.holds for part in self.everything if all(count[n] == 1 for n in part.holds.binds)
        ]
        found = {name for one in once if one.tuple_class for name in one.binds}
        for _ in range(MOST_ABOVE):
            before = len(found)
            nodes = [node for one in once if (node := one.plain_class) is not None]
            known = {
                node.name for node in nodes if all(self._is_closed(b, found) for b in node.bases)
            }
            found |= known
            if len(found) == before:
                break
        return frozenset(found)

    @property
    def _last(self) -> frozenset[str]:
        """Those of them of which the student makes no other class."""
        nodes = (node for part in self.everything for node in part.holds.of_kind(ast.ClassDef))
        return self._closed - {
            name.id
            for n in nodes
            for b in n.bases
            for name in walk(b)
            if isinstance(name, ast.Name)
        }

    def _is_closed(self, base: ast.expr, found: Collection[str]) -> bool:
        """Whether nobody else's objects pass for instances of what is made of this class."""
        name = written(base).partition("[")[0].rpartition(".")[2]
        if name in found or (name in CLOSED and name not in self._bound):
            return True
        if hasattr(builtins, name):
            kind = getattr(builtins, name)
            return isinstance(kind, type) and issubclass(kind, BaseException)
        imported = {alias for one in self.given for alias, _ in one.imports}
        return isinstance(base, ast.Name) and name not in self._bound | imported  # the instructor's

    @cached_property
    def _bound(self) -> frozenset[str]:
        """Names that the student's statements bind, but for `CLOSED` where these come from."""
        found = set[str]()
        for part in self.everything:
            imports = part.holds.bindings.imports
            same = {
                name for name in CLOSED for home in HOMES if (name, f"{home}.{name}") in imports
            }
            found |= part.holds.top_level - same
        return frozenset(found)

    @cached_property
    def _types(self) -> tuple[bool, bool, frozenset[str]]:
        """Whether there may be classes of classes; whether types that are texts are evaluated.

        Fields that may have other names than are shown count as the first. And which names are
        classes' alone.
        """
        held = [part.holds for part in self.everything]
        origins = {origin for one in held for _, origin in one.bindings.imports}
        words = origins.union(*(one.attributes for one in held))
        evaluates = "functools.*" in words or any("singledispatch" in word for word in words)
        classes = {node.name for one in held for node in one.of_kind(ast.ClassDef)}
        count = Counter(name for one in held for name, all in one.givens.items() for _ in all)
        alone = frozenset(name for name in classes if count[name] == 1)
        bases = [base for one in held for node in one.of_kind(ast.ClassDef) for base in node.bases]
        given = {name for name in self._givens if name not in alone}
        known = _aliases(self.given, self.everything)
        bases += [base for one in held for given in one.bases_given for base in given]
        makes = not all(is_plain_base(base, known, given) for base in bases)
        makes |= mixes(held, known) or may_rename_fields(held, known, classes)
        makes |= sets_unseen(held, classes)
        return makes, evaluates, alone

    @cached_property
    def _givens(self) -> dict[str, list[ast.expr | None]]:
        """What the student's names are set to."""
        found: dict[str, list[ast.expr | None]] = {}
        imported = set[tuple[str, str]]()
        for part in self.everything:
            (node,) = part.holds.tree.body
            is_import = isinstance(node, ast.Import | ast.ImportFrom)
            imports = frozenset(part.holds.bindings.imports if is_import else ())
            # what is imported anew, or from where it was defined, stays the same
            same = self._brought(part.holds).union(name for name, _ in imports & imported)
            imported |= imports
            for name, values in part.holds.givens.items():
                found.setdefault(name, []).extend(() if name in same else values)
        return found


@lru_cache(maxsize=2)  # the two searches in an answer begin with the same
def read_answer(
    answer: str,
    forbid: tuple[str, ...],
    others: tuple[str, ...],
    imports: tuple[str, ...],
    names: frozenset[str],
    place: Place | None,
) -> Read | None:
    """Take a student's cells apart; arguments as for `broken_rules`. None if that is too much."""
    bound, known = locked_names(imports)
    packages = {name.partition(".")[0] for name in (*forbid, *WAYS_ROUND) if "." in name} - {""}
    everything = list(parts_of(answer, others))
    try:
        patches = Patches(packages, _aliases(bound, everything))
    except expressions.TooMuch:
        return None
    uses = Uses(everything, place, len(others), patches, packages | known)
    begin = uses.of(names)
    before: list[Part] = []
    if uses.dropped:
        whole = Uses(everything, None, len(others), patches, packages | known).of(names)
        before = [everything[number] for number in sorted(whole.keys() - begin.keys())]
    files = [file for text in others if (file := student_cells.file(text))]
    cells = [student_cells.cell(text) for text in others]
    return Read(
        everything,
        [everything[number] for number in sorted(begin)],
        bound,
        before,
        {id(everything[number]): moment for number, moment in begin.items()},
        {id(part): uses.moments[number] for number, part in enumerate(everything)},
        [cell for cell, taken in enumerate(cells) if taken is not None and taken.more],
        frozenset().union(*(file.modules for file in files)),
        frozenset().union(*(file.modules for file in files if file.is_dark)),
    )


@lru_cache(maxsize=64)
def locked_names(imports: tuple[str, ...]) -> tuple[Sequence[Bindings], frozenset[str]]:
    """What names the instructor's cells bind to what, and the packages that they import."""
    trees = [tree for text in imports if (tree := parse(text))]
    bound = [expressions.bindings(walk(tree)) for tree in trees]
    origins = [origin for one in bound for _, origin in one.imports]
    return bound, frozenset(origin.partition(".")[0] for origin in origins)


def _aliases(given: Sequence[Bindings], parts: Sequence[Part]) -> dict[str, set[str]]:
    return expressions.aliases([*given, *(part.holds.bindings for part in parts)])


def _inside(part: Part) -> Iterator[Bindings]:
    """What a module of the student's, or a class, gives names that are asked of it."""
    if part.modules:
        yield part.holds.bindings
    for node in part.holds.of_kind(ast.ClassDef):
        yield expressions.bindings(node.body)


def modules_unread(read: Read) -> set[str]:
    """Modules that the student's text imports, that are not installed, and whose text is not seen.

    A cell that writes nothing but plain texts, and names a module's file, shows its text.
    """
    cells: dict[int, list[Part]] = {}
    for part in read.everything:
        cells.setdefault(part.cell, []).append(part)
    seen = set(read.shown)
    hidden, named = set(read.hidden), set(read.hidden)
    for parts in cells.values():
        whole = [part.holds for part in parts if part.statement >= 0]
        files = {name for one in whole for name in one.files}
        named |= files
        if files and (written := [given for one in whole for given in one.handed]):
            plain = (
                expressions.text(n) is not None or isinstance(n, ast.Constant) for n in written
            )
            (seen if all(plain) else hidden).update(files)
        seen.update(name for part in parts for name in part.modules)  # of one of any name, too
    found = {name for part in read.everything for name in part.holds.packages}
    # without `sys.modules.keys()`: to go through all of these writes to the memory of each
    unseen = {name for name in found - (seen - hidden) if name not in sys.modules}
    return {name for name in unseen if name in named or not is_installed(name)}
