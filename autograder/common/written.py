"""The text of a syntax tree, whatever it holds."""

import ast
import copy


def written(node: ast.AST) -> str:
    """What `ast.unparse` gives, also for an f-string for which it finds no quotes.

    That is one with a text inside of its braces in which a sign has to be written by a backslash,
    as a no-break space has; before Python 3.12 none may stand there.
    """
    try:
        return ast.unparse(node)
    except ValueError:
        plain = _WithoutFStrings().visit(copy.deepcopy(node))
        return ast.unparse(ast.fix_missing_locations(plain))


class _WithoutFStrings(ast.NodeTransformer):
    """Has `str.format` make what f-strings make."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        """The same as a call of `format`."""
        values: list[ast.expr] = []
        pattern = ast.Constant("".join(self._field(part, values) for part in node.values))
        return ast.Call(ast.Attribute(pattern, "format", ast.Load()), values, [])

    def _field(self, part: ast.expr, values: list[ast.expr]) -> str:
        """What stands for a part of an f-string; the values in it are added to the others."""
        if isinstance(part, ast.Constant):
            return str(part.value).replace("{", "{{").replace("}", "}}")
        assert isinstance(part, ast.FormattedValue)
        values.append(self.visit(part.value))
        converted = "" if part.conversion < 0 else f"!{chr(part.conversion)}"
        spec = part.format_spec.values if isinstance(part.format_spec, ast.JoinedStr) else ()
        told = "".join(self._field(one, values) for one in spec)
        return f"{{{converted}{':' if told else ''}{told}}}"
