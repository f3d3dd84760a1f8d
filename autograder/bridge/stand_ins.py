"""Stand-ins for objects of the other end: what they are made of, and what their uses call there."""

import dataclasses
import inspect
import types
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from autograder.bridge.arrays import is_true
from autograder.bridge.awaited import AWAIT, OF_ASYNC, forwarding
from autograder.bridge.library import LEAVES
from autograder.bridge.signatures import ANY, BY_NAME, checked

if TYPE_CHECKING:
    from autograder.bridge.peer import Peer

UNARY = ("neg", "pos", "abs", "invert", "len", "iter", "next", "reversed", "bool", "repr", "str")
NUMBERS = ("int", "float", "index", "complex", "round", "trunc", "floor", "ceil")
BINARY = ("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor")
BINARY += ("lshift", "rshift")
REFLECTED = (*(f"r{name}" for name in BINARY), "divmod", "rdivmod")
IN_PLACE = tuple(f"i{name}" for name in BINARY)
ARITHMETIC = frozenset(f"__{name}__" for name in (*BINARY, *REFLECTED, *IN_PLACE))
COMPARE = ("eq", "ne", "lt", "le", "gt", "ge")
ITEMS = ("getitem", "setitem", "delitem", "contains", "enter", "exit", "call", "format")
ITEMS += ("bytes", "get", "set", "delete", "set_name")  # the last: of a class's attribute
ITEMS += OF_ASYNC
MAX_LABEL = 120
MAX_NAME = 100
MAX_CLASSES = 1000  # of stand-ins, each of another kind
MAX_LINEAGE = 10  # public classes of which one of an answer's is made
FORWARDED = frozenset(
    f"__{name}__" for name in (*UNARY, *NUMBERS, *BINARY, *REFLECTED, *IN_PLACE, *COMPARE, *ITEMS)
)
HOME = {"__module__": "answer"}  # what messages say of where a class is
YOURS = "yours"  # says of an attribute that whoever sets it keeps it: the test's object has none
OF_VALUE = "(value)"  # after the name of what is done with a plain value, in labels
LEFT_BY = "__exit__("  # how the name begins by which it is told of an error, with its class
CODE = (inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction)
DATACLASSES = (dataclasses.is_dataclass, dataclasses.fields, dataclasses.asdict)
DATACLASSES += (dataclasses.astuple,)  # what a test asks by these, the other end finds out
OF_CLASSES = frozenset(("__iter__", "__len__", "__getitem__", "__contains__", "__reversed__"))
TOLD = ("k", "dunders", "public", "homes", "base", "methods", "fields", "type", "hash", "draws")


def small(value: Any) -> int:
    """A number that fits into a message; 0 for anything else."""
    return value if type(value) is int and -(2**63) <= value < 2**63 else 0


class Remote:
    """Where an object really is; kept on its stand-in as `_remote`."""

    def __init__(self, peer: "Peer", told: dict[str, Any]) -> None:
        self.peer = peer
        self.number = small(told["n"])
        self.kind = str(told["k"])[:20]
        self.type_name = str(told["type"])[:100]
        self.name = str(told.get("name") or self.type_name)[:100]
        self.qualified = str(told.get("qualified") or "")[:100]  # its name with where it is defined
        self.classes = tuple(n for n in told.get("classes") or () if type(n) is int)[:50]
        self.parents = tuple(n for n in told.get("parents") or () if type(n) is int)[:50]
        self.bases: tuple[type, ...] = ()  # public classes of which its own is made, if it is one
        self.is_bare = False  # whether it has no attributes here
        self.steps: list[Any] = []  # of an iterator, where a value is due
        self.due = ""  # what each of them has to be
        self.taken = 0  # how many of them `next` has given
        self.is_over = False  # whether there are no more
        self.told = {part: told.get(part) for part in TOLD}
        self.base: type | None = None  # the class of Python's own that its class is made of
        self.body: Any = None  # its contents, as they were when so many messages had crossed:
        self.fresh = -1
        self.made: Any = None  # the stand-in, if it is a number or tuple: weak tables take none
        self.twins: tuple[type, ...] = ()  # classes here whose objects theirs has as well
        self.origins: tuple[str, ...] = ()  # how a test came by it, never what it says itself
        self.test = 0  # the recording in which it was looked up last
        self.own: dict[str, Any] = {}  # attributes that an answer has given to what a test has

    @property
    def called(self) -> str:
        """What a person is told that it is: of arrays only those of objects do not cross."""
        return "array of objects" if self.type_name == "ndarray" else self.type_name

    @property
    def label(self) -> str:
        """What a test's uses of it go by."""
        label = "|".join(self.origins) or self.kind
        return label if len(label) <= MAX_LABEL else f"{label[:60]}…{label[-50:]}"

    def use(self, name: str) -> str:
        """The label of a use of one of its attributes."""
        return "|".join(f"{way}.{name}" for way in ways(self.label))

    def came(self, origin: str) -> None:
        """A test came by it in this way, too; what gives itself goes by no further name."""
        for way in ways(origin):
            by_itself = any(way.startswith(f"{own}.") for own in self.origins)
            if way and way not in self.origins and not by_itself and len(self.origins) < 3:
                self.origins += (way,)

    def goes_on(self, count: int) -> bool:
        """Whether there is a step after so many; asks the other end for it if it is the next."""
        while len(self.steps) <= count and not self.is_over:
            try:
                self.steps.append(self.peer.step(self, self.due))
            except StopIteration:
                self.is_over = True
        return count < len(self.steps)

    def __del__(self) -> None:
        self.peer.drop(self.number)


def ways(label: str) -> list[str]:
    """The ways by which a test came to what this label is of."""
    start = "get " if label.startswith("get ") else ""
    return [f"{start}{way}" for way in label.removeprefix(start).split("|")]


def remote_of(value: Any) -> Remote | None:
    """The remote side of a stand-in; None for anything else."""
    if type(value) in LEAVES:
        return None
    try:
        found = object.__getattribute__(value, "_remote")
    except AttributeError:
        return None
    return found if type(found) is Remote else None


class StandIn:
    """Stands for an object of the other end: every use of it is a call there."""

    __slots__ = ()
    _remote: Remote

    def __getattr__(self, name: str) -> Any:
        remote = object.__getattribute__(self, "_remote")
        if name in remote.own:
            return remote.own[name]
        if name == "__name__":
            return remote.name
        if name == "__qualname__" and remote.qualified:
            return remote.qualified
        if remote.is_bare or (name.startswith("__") and name.endswith("__")):
            raise AttributeError(name)
        found = remote.peer.get(remote.number, name, remote.use(name))
        if remote.peer.is_free and remote.told["draws"] is True:
            remote.own[name] = found  # of random numbers: thousands may be drawn, one by one
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        remote = self._remote
        if name in remote.own or remote.peer.put(remote.number, name, value) == YOURS:
            remote.own[name] = value
            remote.peer.marked[remote.number] = self

    def __delattr__(self, name: str) -> None:
        if self._remote.own.pop(name, self) is self:
            self._remote.peer.remove(self._remote.number, name)

    def __copy__(self) -> Any:
        if self._remote.kind != "object":  # functions and classes are not copied
            return self
        return self._remote.peer.duplicate(self._remote.number, "__copy__")

    def __deepcopy__(self, memo: dict) -> Any:
        if self._remote.kind != "object":
            return self
        return self._remote.peer.duplicate(self._remote.number)

    def __repr__(self) -> str:
        return f"<{self._remote.kind} {self._remote.name} of the answer>"


class Held(StandIn):
    """One that is nothing else, and so needs no dictionary.

    `functools.wraps` would copy what that holds, and a wrapper would pass for the wrapped.
    """

    __slots__ = ("__weakref__", "_remote")


class Steps(Held):
    """Stands for an iterator of the other end where a value is due: its steps are a list's parts.

    Each is asked for once, when a test gets to it, has to be a value, and is the same ever after,
    however often a test goes through them.
    """

    __slots__ = ()

    def __iter__(self) -> Iterator[Any]:
        count = 0
        while self._remote.goes_on(count):
            yield self._remote.steps[count]
            count += 1

    def __next__(self) -> Any:
        remote = self._remote
        if not remote.goes_on(remote.taken):
            raise StopIteration
        remote.taken += 1
        return remote.steps[remote.taken - 1]


class StandInClass(Held):
    """Stands for a class of the other end."""

    __slots__ = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        remote = self._remote
        return remote.peer.call(remote.number, None, args, kwargs, remote.label)

    def __getitem__(self, key: Any) -> Any:
        """A generic class for objects of one kind, as `Box[int]`."""
        remote = self._remote
        name = "__class_getitem__"
        try:
            return remote.peer.call(remote.number, name, (key,), {}, remote.use(name))
        except (AttributeError, PermissionError) as error:
            raise TypeError(f"type {remote.name!r} is not subscriptable") from error

    __iter__ = None  # which Python would make of the above

    def __instancecheck__(self, value: Any) -> bool:
        if issubclass(type(value), self._remote.twins):
            return True
        remote = remote_of(value)
        return remote is not None and self._remote.number in remote.classes

    def __subclasscheck__(self, kind: Any) -> bool:
        remote = remote_of(kind)
        if remote is None and not isinstance(kind, type):
            raise TypeError("issubclass() arg 1 must be a class")
        if remote is None:
            return issubclass(kind, self._remote.twins)
        return self._remote.number in remote.parents

    def __dir__(self) -> Any:
        return _dir(self)

    def __repr__(self) -> str:
        return f"<class '__main__.{self._remote.qualified or self._remote.name}'>"

    @property
    def __signature__(self) -> Any:
        return _signature(self)

    @property
    def __members__(self) -> Any:
        return _asked(self, "__members__")

    @property
    def __abstractmethods__(self) -> Any:
        return _asked(self, "__abstractmethods__")

    @property
    def __bases__(self) -> tuple[type, ...]:
        return self._remote.bases

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        raise TypeError(
            f"no class can be made of {self._remote.name}, which is in another process; use its "
            "objects"
        )


def _doc(self: StandIn) -> str | None:
    """What the other end has written to explain it; a test's own tells it of functions alone."""
    remote = self._remote
    if remote.is_bare or (remote.peer.is_free and remote.kind != "function"):
        return None
    found = remote.peer.get(remote.number, "__doc__", remote.use("__doc__"))
    return found if type(found) is str else None


DOC = {"__doc__": property(_doc)}


def _held(self: StandIn) -> Any:
    """What an object of an answer's holds, by name, as `vars` asks it."""
    return _asked(self, "__dict__")


def _signature(self: StandIn) -> Any:
    return ANY if self._remote.peer.is_free else checked(_asked(self, "__signature__"))


def _of_signature(name: str) -> property:
    return property(lambda self: BY_NAME[name](checked(_asked(self, "__signature__"))))


def _asked(self: StandIn, name: str) -> Any:
    """What an answer's end says of an object of its own; a test's says nothing of that."""
    remote = self._remote
    if remote.is_bare or remote.peer.is_free:
        raise AttributeError(name)
    return remote.peer.get(remote.number, name, remote.use(name))


def _dir(self: StandIn) -> Any:
    """Its names, of which an answer's end has a list."""
    remote = self._remote
    is_asked = not remote.is_bare and not remote.peer.is_free
    return _asked(self, "__dir__") if is_asked else object.__dir__(self)


OF_OBJECTS = {"__dict__": property(_held), "__dir__": _dir}
# `inspect` takes what has a __get__ and no signature for a builtin
OF_FUNCTIONS = {"__signature__": property(_signature)}
OF_FUNCTIONS |= {name: _of_signature(name) for name in BY_NAME}


class Kind(type):
    """The class of stand-ins' classes, which shows each as the one that it stands for."""

    __shown__: str  # no name that an object of an answer's could have

    def __repr__(cls) -> str:
        return f"<class '{cls.__shown__}'>"


def make_class_class(names: tuple[str, ...]) -> type:
    """A class of stand-ins for classes which have these special methods, as enumerations do."""
    body = {name: forward(name) for name in names} | HOME | DOC
    return type("type", (StandInClass,), {**body, "__slots__": ()})


def class_name(told: dict[str, Any], classes: dict[Any, type]) -> str:
    """What messages call an object of the other end: its class's name, if it is one."""
    name = str(told.get("type"))
    is_name = name.isidentifier() and len(name) <= MAX_NAME
    return name if is_name and len(classes) < MAX_CLASSES else "object"


def make_class(
    names: tuple[str, ...], seen: Any, name: str, hashed: Any, what: str, shown: str
) -> type:
    """A class of stand-ins that forwards these special methods, and goes by this name.

    Args:
        names: the special methods.
        seen: the class that they pass for.
        name: that they go by.
        hashed: how they are hashed.
        what: they stand for: "object", "callable" or "function", which is bound as Python does it.
        shown: the name of the class that they stand for, with where it is.
    """
    body: dict[str, Any] = {name: forward(name) for name in names} | HOME | DOC
    body |= OF_OBJECTS if what == "object" else OF_FUNCTIONS
    body |= compared(names) | {"__slots__": ()}
    body["__hash__"] = hashed
    if AWAIT in names:
        body |= forwarding(body[AWAIT], seen is types.CoroutineType)
    if "__next__" in names:  # `itertools.tee` copies an iterator that says that it can be
        body["__copy__"] = property(_no_copy)
    if isinstance(seen, type):
        body["__class__"] = property(lambda self: seen)
    if what == "function":
        body["__get__"] = _bound
    if {"__call__", "__get__"}.issubset(names):
        body["__signature__"] = property(_signature)
    return Kind(name, (Held,), body | {"__shown__": shown})


def _bound(self: Any, owner: Any, _: Any = None) -> Any:
    return self if owner is None else types.MethodType(self, owner)


def _no_copy(self: StandIn) -> Any:
    raise AttributeError("__copy__")


def make_steps(name: str) -> type:
    """A class of stand-ins for iterators which goes by this name."""
    return type(name, (Steps,), {**HOME, "__slots__": ()})


def hashing(told: dict[str, Any], *, believed: bool) -> Any:
    """How a stand-in is hashed: by its own identity, as the other end told, or not at all."""
    if not believed or "hash" not in told or told["hash"] is None:
        return object.__hash__
    return _told_hash if type(told["hash"]) is int else None


def _told_hash(self: StandIn) -> int:
    return small(self._remote.told["hash"])


def forward(name: str) -> Callable:
    """What calls a special method of an object of the other end."""

    def forwarded(self: StandIn, *args: Any, **kwargs: Any) -> Any:
        remote = self._remote
        if not may_reckon(remote, name, args):
            return NotImplemented
        used = f"{name}{OF_VALUE}" if _is_with_value(name, args) else name
        label = remote.label if name == "__call__" else remote.use(used)
        target = None if name == "__call__" else name
        if name == "__exit__" and args[1:] and not remote.peer.is_free:
            return _left_by(self, args[1])
        return remote.peer.call(remote.number, target, args, kwargs, label)

    return forwarded


def _left_by(self: StandIn, error: BaseException | None) -> Any:
    """Tell an answer's object that a test leaves what it surrounds, and by which error, if by one.

    Where the reference's is told of none of this class it hears of none, and has no say in where
    the error goes.
    """
    remote = self._remote
    label = remote.use("__exit__" if error is None else f"{LEFT_BY}{type(error).__name__})")
    is_told = remote.peer.leaves.next(label)
    if error is None or (is_told and _may_tell(error)):
        return remote.peer.call(remote.number, "__exit__", (None, error, None), {}, label)
    remote.peer.call(remote.number, "__exit__", (None, None, None), {}, remote.use("__exit__"))
    return False


def _is_with_value(name: str, args: tuple) -> bool:
    """Whether this is arithmetic with a plain value."""
    return name in ARITHMETIC and bool(args) and remote_of(args[0]) is None


def may_reckon(remote: Remote, name: str, args: tuple) -> bool:
    """Whether an object is asked: for arithmetic with a plain value only if the reference's is.

    In `abs(x - 2.5) < 1e-9` it is handed what is expected, and decides what the difference is.
    """
    reckoned = remote.peer.reckoned
    return reckoned is None or name in reckoned or not _is_with_value(name, args)


def _may_tell(error: Any) -> bool:
    """Whether an answer's `__exit__` is told of it: not that a claim fails, nor of its own error.

    Those go on as they are; the answer cleans up.
    """
    return not isinstance(error, AssertionError) and getattr(error, "raised", None) is None


def compared(names: Iterable[str]) -> dict[str, Any]:
    """Comparisons of a stand-in: with others, and with plain values where the reference's are."""
    found: dict[str, Any] = {}
    if "__eq__" in names or "__ne__" in names:
        found["__eq__"], found["__ne__"] = _equal, _unequal
    for name in ("__lt__", "__le__", "__gt__", "__ge__"):
        if name in names:
            found[name] = _ordered(name)
    return found


def _ordered(name: str) -> Callable:
    forwarded = forward(name)

    def ordered(self: StandIn, other: Any) -> Any:
        return (
            _with_value(self, name, other) if remote_of(other) is None else forwarded(self, other)
        )

    return ordered


def _with_value(self: StandIn, name: str, other: Any) -> Any:
    """How an object compares with a plain value; it is asked where the reference's is as well.

    Elsewhere no claim makes it equal to one, nor less or greater.
    """
    remote = self._remote
    label = remote.use(f"{name}{OF_VALUE}")
    if remote.peer.is_busy or not remote.peer.compares(label):
        return NotImplemented
    return remote.peer.call(remote.number, name, (other,), {}, label)


def _equal(self: StandIn, other: Any) -> Any:
    """Whether two objects of the other end, or one and a plain value, are equal."""
    if self is other:
        return True
    remote = self._remote
    if remote_of(other) is None:
        found = _with_value(self, "__eq__", other)
    elif remote.peer.is_busy:  # whatever a message holds twice, it holds twice
        return NotImplemented
    else:
        found = remote.peer.call(remote.number, "__eq__", (other,), {}, remote.use("__eq__"))
    return found if found is NotImplemented else found is True or is_true(found)


def _unequal(self: StandIn, other: Any) -> Any:
    result = _equal(self, other)
    return result if result is NotImplemented else not result
