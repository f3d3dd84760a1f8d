"""The text of a syntax tree, whatever it holds."""

import ast
import copy
from typing import Any, cast


def written(node: ast.AST) -> str:
    """What `ast.unparse` gives, also for an f-string for which it finds no quotes.

    That is one with a text inside of its braces in which a sign has to be written by a backslash,
    as a no-break space has; before Python 3.12 none may stand there.
    """
    try:
        return ast.unparse(node)
    except ValueError:
        return ast.unparse(ast.fix_missing_locations(_without_f_strings(copy.deepcopy(node))))


def _without_f_strings(node: Any) -> Any:
    """The same tree, in which `str.format` makes what f-strings make."""
    if isinstance(node, ast.JoinedStr):
        values: list[ast.expr] = []
        pattern = ast.Constant("".join(_field(part, values) for part in node.values))
        return ast.Call(ast.Attribute(pattern, "format", ast.Load()), values, [])
    if isinstance(node, list):
        return [_without_f_strings(part) for part in cast("list[Any]", node)]
    if isinstance(node, ast.AST):
        for name, part in ast.iter_fields(node):
            setattr(node, name, _without_f_strings(part))
    return node


def _field(part: ast.expr, values: list[ast.expr]) -> str:
    """What stands for a part of an f-string; the values in it are added to the others."""
    if isinstance(part, ast.Constant):
        return str(part.value).replace("{", "{{").replace("}", "}}")
    assert isinstance(part, ast.FormattedValue)
    values.append(_without_f_strings(part.value))
    converted = "" if part.conversion < 0 else f"!{chr(part.conversion)}"
    spec = part.format_spec.values if isinstance(part.format_spec, ast.JoinedStr) else ()
    told = "".join(_field(one, values) for one in spec)
    return f"{{{converted}{':' if told else ''}{told}}}"
