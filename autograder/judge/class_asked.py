"""What a test asks by `type(x)`, `Dog.__bases__` or `f.__wrapped__`: what holds at an answer's end.

Here an answer's object is of a class that nobody has written, so that `type(d) is Dog` would be
false, a class of an answer's is none, and a function lacks what Python writes down of it.
"""

import ast
from typing import Any

from autograder.bridge.public import public_name
from autograder.bridge.stand_ins import remote_of

KIND, OWN = "type of", "class's "  # begin names that no cell can write
OF_OBJECTS = ("__class__",)
OF_CLASSES = ("__bases__", "__base__", "__mro__")
OF_FUNCTIONS = ("__wrapped__",)  # a decorated one has it


def of_answers(tree: ast.Module) -> ast.Module:
    """A cell's text, in which the functions of `ASKING` are asked for classes."""
    for node in reversed([*ast.walk(tree)]):  # what lies within comes first
        for name, part in ast.iter_fields(node):
            if isinstance(part, list):
                part[:] = map(_asking, part)
            else:
                setattr(node, name, _asking(part))
    return tree


def _asking(node: Any) -> Any:
    """A call of one of these functions for `type(x)`, and where `x.__class__` is read."""
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
        asked = node.attr in OF_OBJECTS + OF_CLASSES + OF_FUNCTIONS
        return _called(OWN + node.attr, node, [node.value]) if asked else node
    if not isinstance(node, ast.Call) or node.keywords or len(node.args) != 1:
        return node
    is_type = isinstance(node.func, ast.Name) and node.func.id == "type"
    if not is_type or isinstance(node.args[0], ast.Starred):
        return node
    return _called(KIND, node, [node.func, *node.args])  # whatever `type` is there


def _called(name: str, place: ast.expr, args: list[ast.expr]) -> ast.Call:
    function = ast.copy_location(ast.Name(name, ast.Load()), place)
    return ast.copy_location(ast.Call(function, args, []), place)


def _type_of(kind: Any, value: Any) -> Any:
    is_asked = kind is type and (_has(value, "object") or _has(value, "class"))
    return _told(value, "__class__") if is_asked else kind(value)


def _own(name: str, *of: str) -> Any:
    def own(value: Any) -> Any:
        is_asked = any(_has(value, kind) for kind in of)
        return _told(value, name) if is_asked else getattr(value, name)

    return own


def _is_instance(value: Any, kinds: Any) -> bool:
    """As `isinstance`, to which an answer's class is one as well."""
    return isinstance(value, kinds) or (kinds is type and _has(value, "class"))


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


ASKING = {KIND: _type_of, "isinstance": _is_instance}
ASKING |= {OWN + name: _own(name, "object") for name in OF_OBJECTS}
ASKING |= {OWN + name: _own(name, "class") for name in OF_CLASSES}
ASKING |= {OWN + name: _own(name, "function", "object") for name in OF_FUNCTIONS}
