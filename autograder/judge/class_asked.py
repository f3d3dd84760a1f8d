"""What a test asks by `type(x)`, `vars(Dog)` or `f.__wrapped__`: what holds at an answer's end.

Here an answer's object is of a class that nobody has written, so that `type(d) is Dog` would be
false, a class of an answer's is none, and a function lacks what Python writes down of it.
"""

import ast
import dataclasses
import inspect
import types
from collections.abc import Callable, Iterator
from typing import Any

from autograder.bridge.public import public_name
from autograder.bridge.stand_ins import CODE, DATACLASSES, FORWARDED, remote_of

ASKS, OWN = "asks ", "own "  # begin names that no cell can write
OF_OBJECTS = ("__class__",)
HAVE_CLASSES = ("object", "class", "module")
OF_CLASSES = ("__bases__", "__base__", "__mro__", "__dict__", "__slots__", "__match_args__")
OF_CLASSES += ("__annotations__", "__dataclass_fields__")
OF_FUNCTIONS = ("__wrapped__", "__closure__", "__self__", "__func__")
FUNCTIONS = (types.FunctionType, types.MethodType, types.BuiltinFunctionType)
METHODS = FORWARDED - {"__call__"} | {"__init__"}  # of a class: `Vector.__add__(v, w)`
DESCRIPTORS = (property, classmethod, staticmethod)


def of_answers(tree: ast.Module) -> ast.Module:
    """A cell's text, in which the functions of `ASKING` are asked for classes.

    In its own classes, but for a `TestCase`, nothing but the call `Vector.__add__(v, w)`: from
    their code others read what the objects may have (`bridge/shapes.py`).
    """
    for node, asking in reversed([*_to_change(tree)]):  # what lies within comes first
        for name, part in ast.iter_fields(node):
            if isinstance(part, list):
                part[:] = map(asking, part)
            else:
                setattr(node, name, asking(part))
    return tree


def _to_change(tree: ast.AST) -> Iterator[tuple[ast.AST, Callable[[Any], Any]]]:
    left: list[tuple[ast.AST, Callable[[Any], Any]]] = [(tree, _asking)]
    while left:
        node, asking = left.pop()
        if isinstance(node, ast.pattern):  # `case Color.RED`: no place for a call
            continue
        yield node, asking
        if isinstance(node, ast.ClassDef) and "TestCase" not in map(_name, node.bases):
            asking = _in_a_class
        left += ((part, asking) for part in ast.iter_child_nodes(node))


def _in_a_class(node: Any) -> Any:
    """The same in a class of the cell's own, of which little is changed."""
    called = node.func if isinstance(node, ast.Call) else None
    if not isinstance(called, ast.Attribute) or called.attr not in METHODS:
        return node
    if isinstance(called.value, ast.Name):  # no `super()`
        node.func = _called(OWN + called.attr, called, [called.value])
    return node


def _name(node: ast.expr) -> str:
    return getattr(node, "id", getattr(node, "attr", ""))


def _asking(node: Any) -> Any:
    """A call of one of them for `type(x)`, and where `x.__class__` is read."""
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
        asked = node.attr in METHODS or node.attr in OF_OBJECTS + OF_CLASSES + OF_FUNCTIONS
        return _called(OWN + node.attr, node, [node.value]) if asked else node
    if not isinstance(node, ast.Call) or len(node.args) != 1:
        return node
    name = _name(node.func)
    if name not in NAMES or isinstance(node.args[0], ast.Starred):
        return node
    if node.keywords and name != dataclasses.replace.__name__:
        return node
    made = _called(ASKS, node, [node.func, *node.args])  # whatever is there by this name
    made.keywords = node.keywords
    return made


def _called(name: str, place: ast.expr, args: list[ast.expr]) -> ast.Call:
    function = ast.copy_location(ast.Name(name, ast.Load()), place)
    return ast.copy_location(ast.Call(function, args, []), place)


def _asks(function: Any, value: Any, **named: Any) -> Any:
    """What one of the functions of `OF_VALUES` says of an answer's object; else what it says."""
    if remote_of(value) is not None:
        if getattr(function, "__module__", "") == "asyncio.coroutines":
            function = getattr(inspect, function.__name__, function)  # which knows the same
        for known, asked in OF_VALUES:
            if function is known and (found := asked(value, **named)) is not None:
                return found
    return function(value, **named)


def _type_of(value: Any) -> Any:
    return _told(value, "__class__") if any(_has(value, one) for one in HAVE_CLASSES) else None


def _is_function(kind: str) -> Callable[[Any], bool]:
    return lambda value: _has(value, "function") and value._remote.type_name == kind


def _is_so(function: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """What a function of `inspect` finds at the answer's end."""
    name = f"__{function.__name__}__"
    return lambda value: _has(value, "function") and _told(value, name) is True


def _is_abstract(value: Any) -> bool:
    return _has(value, "class") and _told(value, f"__{inspect.isabstract.__name__}__") is True


def _of_dataclasses(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """What it finds of an answer's dataclass, or an object of one, at the answer's end."""
    name = f"__{function.__name__}__"
    kinds = ("object", "class")
    return lambda value: _told(value, name) if any(_has(value, kind) for kind in kinds) else None


def _replaced(value: Any, **others: Any) -> Any:
    """An object of an answer's dataclass with other values of some fields."""
    remote, name = value._remote, "__replace__"
    asks = f"__{dataclasses.is_dataclass.__name__}__"
    if not _has(value, "object") or _told(value, asks) is not True:
        return None
    return remote.peer.call(remote.number, name, (), others, remote.use(name))


OF_VALUES: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    (type, _type_of),
    (vars, lambda value: _told(value, "__dict__") if _has(value, "class") else None),
    (inspect.isclass, lambda value: _has(value, "class")),
    (inspect.isfunction, _is_function("function")),
    (inspect.ismethod, _is_function("method")),
    *((known, _is_so(known)) for known in CODE),
    (inspect.isabstract, _is_abstract),
    *((known, _of_dataclasses(known)) for known in DATACLASSES),
    (dataclasses.replace, _replaced),
)
NAMES = frozenset(known.__name__ for known, _ in OF_VALUES)


def _own(name: str, *of: str) -> Any:
    def own(value: Any) -> Any:
        is_asked = any(_has(value, kind) for kind in of)
        return _told(value, name) if is_asked else getattr(value, name)

    return own


def _method(name: str) -> Any:
    """A special method as it stands in an answer's class, where the reference's class has it.

    Of an object's it is `__init__` alone, which makes it anew; the others a stand-in has.
    """

    def method(value: Any) -> Any:
        remote = remote_of(value)
        makes = name == "__init__" and any(_has(value, one) for one in HAVE_CLASSES)
        if remote is None or not (makes or _has(value, "class")):
            return getattr(value, name)
        if not makes and not remote.peer.policy.believes(name):
            return getattr(value, name)
        return lambda *args, **named: remote.peer.call(
            remote.number, name, args, named, remote.use(name)
        )

    return method


def _is_instance(value: Any, kinds: Any) -> bool:
    """As `isinstance`, which knows of an answer's classes, functions and properties."""
    if isinstance(value, kinds):
        return True
    remote = remote_of(value)
    if remote is None:
        return False
    if type(kinds) is tuple:
        return any(_is_instance(value, kind) for kind in kinds)
    if kinds is type:
        return _has(value, "class")
    if kinds in FUNCTIONS:
        return _has(value, "function") and remote.type_name == kinds.__name__
    return kinds in DESCRIPTORS and _type_of(value) is kinds


def _has(value: Any, kind: str) -> bool:
    """Whether a value stands for an object, or a class, of an answer's."""
    remote = remote_of(value)
    return remote is not None and remote.kind == kind and not remote.is_bare


def _told(value: Any, name: str) -> Any:
    """What the other end says; for a class that both ends have, as `object`, that of here."""
    remote = value._remote
    found = remote.peer.get(remote.number, name, remote.use(name))
    return tuple(map(_here, found)) if type(found) is tuple else _here(found)


def _here(kind: Any) -> Any:
    remote = remote_of(kind)
    twins = () if remote is None or remote.kind != "class" else remote.twins
    return next((twin for twin in twins if public_name(twin) is not None), kind)


ASKING = {ASKS: _asks, "isinstance": _is_instance}
ASKING |= {OWN + name: _method(name) for name in METHODS}
ASKING |= {OWN + name: _own(name, "object", "module") for name in OF_OBJECTS}
ASKING |= {OWN + name: _own(name, "class") for name in OF_CLASSES}
ASKING |= {OWN + name: _own(name, "function", "object") for name in OF_FUNCTIONS}
