"""Looks for forbidden names in the statements of a student's."""

import ast
import builtins
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from autograder.common.trees import walk
from autograder.judge import expressions
from autograder.judge.expressions import Dotted, named_parts, origins_of
from autograder.judge.forbidden import (
    BY_TEXT,
    BY_TEXT_ATTRIBUTES,
    NO_BASES,
    PLAIN,
    SET_BY_TEXT,
    TOLD,
    Forbidden,
    covers,
    is_module_somewhere,
    is_pythons,
)
from autograder.judge.plain_uses import (
    is_by_name,
    namespaces_shown,
    own_by_name,
    plain_uses,
    states_of_self,
)
from autograder.judge.shown_types import is_shown, makes_text
from autograder.judge.statement import SETTERS, Statement

TYPED = (ast.arg, ast.AnnAssign, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
# what a search looks at; what is got from a name comes before the name
LOOKED_AT = (ast.Call, ast.Attribute, ast.Name, ast.Subscript, ast.MatchClass, *TYPED)
# A module's name, as some loaders take it.
MODULE = re.compile(r"(?:\w+://)?([^\W\d]\w*(?:\.\w+)*)")
COMPUTED = "getattr with a computed name"
SET_COMPUTED = "setattr with a computed name"
COMPUTED_TYPE = "a type that is a computed text"
BY_PLACE = "a pattern of a class whose parts do not show"
AS_VALUE = " as a value"  # a module, of which any code may take what it wants
AS_SET = " to set it to something else"  # a part of Python's library, which goes by it
JOINING = {"__add__", "__radd__", "__rmod__"}  # by which an object says what a text with it gives
ASKING = {"getattr", "hasattr", "print", "type", "dir", "help", "setattr", "delattr"}
MATCHED = {"str", "bytes", "bytearray", "int", "float", "bool"}  # as a whole, by Python itself
MATCHED |= {"list", "tuple", "dict", "set", "frozenset"}


@dataclass(frozen=True)
class Own:
    """What a student defined in the cells looked at."""

    names: frozenset[str]  # at their top level, if they are no builtin's
    given: frozenset[str]  # that the instructor's cells import
    members: frozenset[str]  # methods and attributes of the student's own classes
    fields: frozenset[str]  # these, and other names under which objects hold something
    classes: Mapping[str, frozenset[str]]  # classes that are only that, and their members
    givens: Mapping[str, Sequence[ast.expr | None]]  # what names are set to
    closed: frozenset[str]  # of these classes, those whose only objects are what they have made
    last: frozenset[str]  # of these, those of which the student makes no other class
    held: Mapping[str, set[str]]  # what classes and modules import, by the names that it has there
    packages: frozenset[str]  # that the instructor's cells import
    makes_types: bool  # whether there may be classes of classes, or fields that are renamed
    evaluates: bool  # whether a text that is a type may be evaluated
    kinds: frozenset[str]  # names of classes that statements define, and of nothing else
    bound: frozenset[str]  # names that are bound anywhere, in whatever way, builtins' among them
    homes: Mapping[str, frozenset[str]]  # modules that define classes, by the names of these


@dataclass(frozen=True)
class Mine:
    """Builtins' names that stand for something of the student's; beside them, modules' names."""

    now: frozenset[str]  # where a statement runs
    later: frozenset[str]  # where a function in it is called
    modules: frozenset[str] = frozenset()  # where it runs, and where a function in it is called


NOTHING = Mine(frozenset(), frozenset())


@dataclass(frozen=True)
class Search:
    """Looks for forbidden names in statements."""

    forbid: tuple[str, ...]
    allow: tuple[str, ...]
    aliases: Mapping[str, set[str]]
    own: Own

    @cached_property
    def rule(self) -> Forbidden:
        """The names that are forbidden."""
        return Forbidden(self.forbid, self.allow, self.own.fields, self.own.packages)

    def of(self, holds: Statement, mine: Mine = NOTHING) -> list[tuple[str, int]]:
        """Forbidden names that a statement mentions, and where."""
        if not self._may_find(holds):
            return []
        taken = {True: mine.now, False: mine.later}
        # nodes inside a dotted name that is judged as a whole; and of a call that is
        judged = {id(call.func) for call in holds.getattrs}
        judged |= {*plain_uses(holds, self.aliases, self.own.makes_types)}
        judged |= {*namespaces_shown(holds, self.own.bound, self.aliases)}
        judged |= {*states_of_self(holds, self.own.last, self.own.bound)}
        found = []
        for node in holds.of_kind(*LOOKED_AT):
            chain = isinstance(node, ast.Attribute)
            done = id(node) in judged or (chain and self._allowed(node))
            names = [] if done else [*self._mentions(node, holds, taken)]
            if not done and isinstance(node, TYPED):
                names += self._asides(node)
            if chain and (done or names) and isinstance(node.value, ast.Attribute | ast.Name):
                judged.add(id(node.value))
            found += [(name, getattr(node, "lineno", 0)) for name in names]
        found += self._handed_on(holds, taken, mine)
        by_name = ((name, space.lineno) for space, name in own_by_name(holds))
        found += [(name, line) for name, line in by_name if self.rule.forbids_word(name)]
        line = getattr(holds.tree.body[0], "lineno", 0)
        found += [(name, line) for name in TOLD.intersection(holds.givens) - {*self.allow}]
        return sorted(set(found), key=lambda hit: (hit[1], hit[0]))

    def _may_find(self, holds: Statement) -> bool:
        """Whether a statement has any name that is forbidden somewhere; most have none."""
        return bool(
            holds.getattrs
            or not holds.read.isdisjoint(self._bare)
            or not holds.attributes.isdisjoint(BY_TEXT_ATTRIBUTES)
            or not holds.sets.isdisjoint(SET_BY_TEXT)
            or not TOLD.isdisjoint(holds.givens)
            or any(
                is_pythons(one.of(o))
                for one in holds.dotted
                for o in self.aliases.get(one.root, ())
            )
            or any(next(self._set_by_text(call), None) for call in holds.of_kind(ast.Call))
            or any(map(self.rule.forbids_method, holds.attributes))
            or any(self._leads_to_forbidden(name) for name in holds.dotted)
            or any(next(self._modules_in(call), None) for call in holds.of_kind(ast.Call))
            or any(map(self._star_hit, holds.read) if "*" in self.aliases else ())
            or not holds.attributes.isdisjoint(self.own.held)
            or any(node.patterns for node in holds.of_kind(ast.MatchClass))
            or any(next(self._asides(node), None) for node in holds.of_kind(*TYPED))
            or any(self._modules_of(node, holds) for node in holds.values)
        )

    @cached_property
    def _bare(self) -> frozenset[str]:
        """Names that may be forbidden as they stand."""
        named = {name for name in self.aliases if self._leads_to_forbidden(Dotted(name, ""))}
        return frozenset({*self.forbid, *BY_TEXT, "getattr", *named})

    def _leads_to_forbidden(self, name: Dotted) -> bool:
        return any(self.rule.forbids(name.of(origin)) for origin in self.aliases.get(name.root, ()))

    def imported(self, holds: Statement, asked: Collection[str]) -> Iterator[tuple[str, int]]:
        """Forbidden things that are imported under a name that the question asks for."""
        for node in holds.tree.body:
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    if alias.name == "*":
                        taken = [name for name in asked if name not in self.own.names]
                    else:
                        taken = [alias.name] if (alias.asname or alias.name) in asked else []
                    origins = [f"{node.module}.{name}" for name in taken]
                    yield from ((one, node.lineno) for one in origins if self.rule.forbids(one))

    def _allowed(self, node: ast.Attribute) -> bool:
        origins = origins_of(node, self.aliases)
        if origins and origins <= PLAIN:
            return True
        return any(covers(entry, origin) for entry in self.allow for origin in origins)

    def _mentions(
        self, node: ast.AST, holds: Statement, taken: Mapping[bool, Collection[str]]
    ) -> Iterator[str]:
        if isinstance(node, ast.Call):
            if not self._is_taken(node.func, holds, taken):
                yield from self._by_text(node, holds)
                yield from self._modules_in(node)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            yield from self._attribute(node, holds)
        elif isinstance(node, ast.Attribute):  # set to something else, or deleted
            origins = origins_of(node, self.aliases)
            yield from sorted(origin for origin in origins if self.rule.forbids(origin))
            yield from (f"{one}{AS_SET}" for one in sorted(origins) if is_pythons(one))
            if node.attr in SET_BY_TEXT and node.attr not in self.allow:
                yield node.attr
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            if not self._is_taken(node, holds, taken):
                yield from self._name(node, id(node) in holds.free)
        elif isinstance(node, ast.Subscript):
            yield from self._item(node)
        elif isinstance(node, ast.MatchClass):
            yield from self._pattern(node)

    def _pattern(self, node: ast.MatchClass) -> Iterator[str]:
        """What a pattern takes from an object, by its name or by its place."""
        if node.patterns and not self._shows_parts(node.cls):
            yield BY_PLACE
        names = [name for name in node.kwd_attrs if name not in self.allow]
        yield from (name for name in names if name in BY_TEXT_ATTRIBUTES)
        yield from (f".{name}" for name in names if self.rule.forbids_method(name))

    def _asides(self, node: ast.AST) -> Iterator[str]:
        """What types lead to, though they run nothing by themselves."""
        if isinstance(node, ast.ClassDef):
            yield from self._defaults(node)
            yield from self._bases(node.bases)
        given = [getattr(node, name, None) for name in ("annotation", "returns")]
        if any(one is not None and self._is_made_text(one) for one in given):
            yield COMPUTED_TYPE

    def _bases(self, bases: Iterable[ast.expr]) -> Iterator[str]:
        """Classes whose methods get what a class that is made of them names."""
        for origin in sorted(set().union(*(origins_of(one, self.aliases) for one in bases))):
            if origin.rpartition(".")[2] in NO_BASES:
                yield f"a class made of {origin}"

    def _defaults(self, node: ast.ClassDef) -> Iterator[str]:
        """What a class may inherit under a name with a type alone, as a field's default."""
        if node.name in self.own.classes:
            return
        types = (one for one in node.body if isinstance(one, ast.AnnAssign) and not one.value)
        names = (getattr(one.target, "id", "") for one in types)
        yield from (name for name in names if self.rule.forbids_word(name))

    def _is_made_text(self, given: ast.expr) -> bool:
        """Whether an expression, or what its names are set to, makes a text."""
        if self.own.evaluates and not is_shown(
            given, self.aliases, self.own.givens, self.own.kinds
        ):
            return True
        parts = [part for part in walk(given) if isinstance(part, ast.expr)]
        named = (part.id for part in parts if isinstance(part, ast.Name))
        return not self._made_texts.isdisjoint(named) or any(
            makes_text(part, self.aliases) for part in parts
        )

    @cached_property
    def _made_texts(self) -> frozenset[str]:
        """Names that are set to a text which is computed, or which calls something."""
        shown = ((name, one) for name, values in self.own.givens.items() for one in values if one)
        return frozenset(
            name
            for name, one in shown
            if makes_text(one, self.aliases) or "(" in (expressions.text(one) or "")
        )

    def _shows_parts(self, kind: ast.expr) -> bool:
        """Whether a pattern's class says by its text what is taken from an object, and of whom."""
        if not isinstance(kind, ast.Name) or kind.id in self.aliases:
            origins = origins_of(kind, self.aliases)
            return bool(origins) and all(origin.startswith("ast.") for origin in origins)
        if kind.id in self.own.names:
            return kind.id in self.own.closed
        return kind.id in MATCHED - self.own.bound or not hasattr(builtins, kind.id)

    def _is_taken(
        self, node: ast.AST, holds: Statement, taken: Mapping[bool, Collection[str]]
    ) -> bool:
        """Whether a builtin's name stands for something of the student's here, not forbidden."""
        at_once, name = holds.free.get(id(node)), getattr(node, "id", "")
        if at_once is None or name not in taken[at_once]:
            return False
        return not any(map(self.rule.forbids, self.aliases.get(name, ())))

    def _name(self, node: ast.Name, free: bool) -> Iterator[str]:
        origins = self.aliases.get(node.id, set())
        yield from sorted(origin for origin in origins if self.rule.forbids(origin))
        if not free or node.id in self.own.names or node.id in self.allow:
            return
        # a student's import may fail, or never run: those that surely do are in `Mine`
        if origins and (node.id in self.own.given or not hasattr(builtins, node.id)):
            return
        if node.id in self.forbid or node.id in BY_TEXT or self._star_hit(node.id):
            yield node.id
        elif node.id == "getattr":  # handed on, to be called with who knows what
            yield COMPUTED

    def _held(self, node: ast.Attribute) -> set[str]:
        """What this is, if a class or a module of the student's imports what its name ends in."""
        found, ends = set[str](), ""
        part: ast.AST = node
        for _ in range(expressions.MOST_DOTS):
            if not isinstance(part, ast.Attribute):
                break
            found |= {f"{origin}{ends}" for origin in self.own.held.get(part.attr, ())}
            part, ends = part.value, f".{part.attr}{ends}"
        return found

    def _star_hit(self, name: str) -> bool:
        """Whether an import of * brought a forbidden function under its bare name."""
        modules = [origin.removesuffix(".*") for origin in self.aliases.get("*", ())]
        return any(self.rule.forbids(f"{module}.{name}") for module in modules)

    def _modules_of(self, node: ast.expr, holds: Statement) -> list[str]:
        """Modules for which a dotted name may stand, that may not be used by whatever way."""
        root = expressions.begin(node)
        if root is None or not self._is_known(root, holds):
            return []
        origins = origins_of(node, self.aliases)
        if root is node and root.id not in self.aliases:
            stars = self.aliases.get("*", ())
            origins = {f"{one.removesuffix('.*')}.{root.id}" for one in stars}
        found = filter(is_module_somewhere, origins)
        return sorted(one for one in found if not any(covers(entry, one) for entry in self.allow))

    def _is_known(self, root: ast.Name, holds: Statement) -> bool:
        """Whether a name stands for what is known of it, and not for a parameter or the like."""
        made = holds.bindings
        given = (name for name, value in made.assigned if value.root in self.aliases)
        return id(root) in holds.free or root.id in {*given, *(name for name, _ in made.imports)}

    def _handed_on(
        self, holds: Statement, taken: Mapping[bool, Collection[str]], mine: Mine
    ) -> Iterator[tuple[str, int]]:
        """Modules that are put or given somewhere else: who has one reaches all that is in it."""
        asked = {
            id(call.args[0])
            for call in holds.of_kind(ast.Call)
            if call.args
            and isinstance(call.func, ast.Name)
            and call.func.id in ASKING - self.own.bound
            and id(call.func) in holds.free
            and not self._is_taken(call.func, holds, taken)
        }
        for node in holds.values:
            root = expressions.begin(node)
            is_mine = id(root) in holds.free and getattr(root, "id", "") in mine.modules
            names = [] if is_mine or id(node) in asked else self._modules_of(node, holds)
            yield from ((f"the module {name}{AS_VALUE}", node.lineno) for name in names)

    def _attribute(self, node: ast.Attribute, holds: Statement) -> Iterator[str]:
        origins = origins_of(node, self.aliases)
        for origin in sorted(origins | self._held(node)):
            if self.rule.forbids(origin):
                yield origin
        if node.attr in BY_TEXT_ATTRIBUTES and node.attr not in self.allow:
            yield node.attr
        if not origins and self._method(node, holds):
            yield f".{node.attr}"

    def _method(self, node: ast.Attribute, holds: Statement) -> bool:
        """Whether this is a forbidden method of some value, not one of the student's own."""
        return self.rule.forbids_method(node.attr) and not self._is_mine(
            node.value, node.attr, holds
        )

    def _is_mine(self, value: ast.expr, name: str, holds: Statement) -> bool:
        """Whether a value is surely an object or class of the student's own that has this name."""
        if not isinstance(value, ast.Name):
            return self._makes(value, name, holds)
        if value.id in ("self", "cls") and name in self.own.members:
            return True
        free = id(value) in holds.free
        if free and name in self.own.classes.get(value.id, ()):
            return self._is_of_top(value.id)
        given = (self.own.givens if free else holds.givens).get(value.id, ())
        return bool(given) and all(one and self._makes(one, name, holds) for one in given)

    def _makes(self, value: ast.expr, name: str, holds: Statement) -> bool:
        """Whether this makes an object of a class of the student's own, or a namespace."""
        if not isinstance(value, ast.Call):
            return False
        called = getattr(value.func, "id", "") or self._class_of_module(value.func, holds)
        (top,) = holds.tree.body
        if called == "super" and not value.args and called not in self.own.bound:
            called = getattr(top, "name", "")
        if "types.SimpleNamespace" in origins_of(value.func, self.aliases):
            return name in {word.arg for word in value.keywords}
        once = len(self.own.givens.get(called, ())) == 1
        if id(value.func) in holds.free and not self._is_of_top(called):
            return False
        return once and name in self.own.classes.get(called, ())

    def _is_of_top(self, name: str) -> bool:
        """Whether a class's name is the student's outside of a function, too."""
        return name in self.own.names or hasattr(builtins, name)

    def _class_of_module(self, node: ast.expr, holds: Statement) -> str:
        """The name of a class that is taken from the student's own module which defines it."""
        if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
            return ""
        origins, module = origins_of(node, self.aliases), node.value
        is_module = id(module) in holds.free and len(self.own.givens.get(module.id, ())) == 1
        homes = all(is_home(self.own.homes, node.attr, origin) for origin in origins)
        return node.attr if origins and is_module and homes else ""

    def _by_text(self, node: ast.Call, holds: Statement) -> Iterator[str]:
        """getattr and the like: a name that is computed, or spelt out and forbidden."""
        yield from self._set_by_text(node)
        if expressions.called(node) in ("type", "new_class"):
            yield from self._bases(part for given in node.args for part in _parts_of(given))
        if is_by_name(node, self.aliases):
            yield from (text for text in named_parts(node) or () if self.rule.forbids_word(text))
        if not expressions.is_getattr(node):
            return
        texts = self._spelt(node.args[1], holds) if len(node.args) > 1 else None
        if texts is None:
            is_fine = self._is_begun_well(node) or self._is_of_self(node, holds)
            if "getattr" not in self.allow and not is_fine:
                yield COMPUTED
            return
        first = node.args[0]
        for text in texts:
            origins = {f"{origin}.{text}" for origin in origins_of(first, self.aliases)}
            yield from sorted(origin for origin in origins if self.rule.forbids(origin))
            method = self.rule.forbids_method(text) and not self._is_mine(first, text, holds)
            if (not origins and method) or text in BY_TEXT_ATTRIBUTES:
                yield text

    def _set_by_text(self, node: ast.Call) -> Iterator[str]:
        """What `setattr` and the like are told to set: such a name, or of a library one unseen."""
        if expressions.called(node) not in SETTERS:
            return
        texts = [expressions.text(given) for given in node.args[:2]]
        yield from (one for one in texts if one in SET_BY_TEXT and one not in self.allow)
        origins = {one for given in node.args[:1] for one in origins_of(given, self.aliases)}
        is_librarys = bool(origins)
        yield from (f"{one}{AS_SET}" for one in sorted(origins) if is_pythons(f"{one}."))
        if is_librarys and not any(texts) and "setattr" not in self.allow:
            yield SET_COMPUTED

    def _is_begun_well(self, node: ast.Call) -> bool:
        """Whether a computed name of a value begins, or ends, as nothing that is forbidden does."""
        if len(node.args) < 2 or isinstance(node.args[0], ast.Starred):
            return False
        if origins_of(node.args[0], self.aliases) or not JOINING.isdisjoint(self.own.members):
            return False
        name = node.args[1]
        return self.rule.leads_nowhere(expressions.prefix(name), expressions.suffix(name))

    def _is_of_self(self, node: ast.Call, holds: Statement) -> bool:
        """Whether this asks an object of the student's own class for a part of it.

        What is forbidden has to be stopped where it runs, too: somebody may call the method of
        something else.
        """
        (top,) = holds.tree.body
        asked = node.args[0] if len(node.args) > 1 else None
        if not isinstance(asked, ast.Name) or asked.id != "self" or id(asked) in holds.free:
            return False
        is_given = any(value is not None for value in holds.givens.get("self", ()))
        return (
            getattr(top, "name", "") in self.own.classes
            and not is_given
            and self.rule.is_all_stopped
        )

    def _modules_in(self, node: ast.Call) -> Iterator[str]:
        """Modules that may not be used, and that a call may load by the texts it is handed."""
        shown = getattr(node.func, "id", "") in {"print"} - self.own.bound
        given = [] if shown else node.args
        texts = map(expressions.text, (*given, *(word.value for word in node.keywords)))
        named = [match[1] for text in texts if text and (match := MODULE.fullmatch(text))]
        yield from filter(self.rule.forbids_loading, named)

    def _spelt(self, node: ast.expr, holds: Statement) -> list[str] | None:
        """The names that a text may be; None if it is computed."""
        either = isinstance(node, ast.IfExp)
        given: Sequence[ast.expr | None] = [node.body, node.orelse] if either else [node]
        if isinstance(node, ast.Name):
            if not self.own.givens.keys().isdisjoint(("zip", "enumerate")):
                return None
            given = (self.own.givens if id(node) in holds.free else holds.givens).get(node.id, ())
        texts = [one and expressions.text(one) for one in given]
        found = [text for text in texts if isinstance(text, str)]
        return found if found and len(found) == len(texts) else None

    def _item(self, node: ast.Subscript) -> Iterator[str]:
        """Something["name"] on the dictionary of a module."""
        text = expressions.text(node.slice)
        holder = node.value.id if isinstance(node.value, ast.Name) else ""
        if holder == "__builtins__" and (text is None or text in BY_TEXT or text in self.forbid):
            yield text or holder


def is_home(homes: Mapping[str, frozenset[str]], name: str, origin: str) -> bool:
    """Whether this is what a module that defines a class of this name offers by it."""
    module, _, last = origin.rpartition(".")
    return last == name and {*module.split(".")} <= homes.get(name, frozenset())


def _parts_of(node: ast.expr) -> list[ast.expr]:
    return [node, *getattr(node, "elts", ())]
