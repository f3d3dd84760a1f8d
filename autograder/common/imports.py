"""What a cell imports at its top level, and cells that import what another lacks."""

import ast
from functools import lru_cache

from autograder.common.scopes import facts
from autograder.common.syntax import IMPORTS, parse
from autograder.common.written import written


def only_tries_imports(node: ast.Try) -> bool:
    """Whether a `try` does nothing but import, and set names to constants."""
    blocks = [node.body, node.orelse, node.finalbody, *(one.body for one in node.handlers)]
    inside = [one for block in blocks for one in block]
    return any(isinstance(one, IMPORTS) for one in inside) and all(
        isinstance(one, (*IMPORTS, ast.Pass))
        or (isinstance(one, ast.Assign) and isinstance(one.value, ast.Constant))
        for one in inside
    )


@lru_cache(maxsize=2000)
def imports_something(source: str) -> bool:
    """Whether a cell may import anything at its top level; of most tests no more is asked."""
    body = (parse(source) or ast.Module([], [])).body
    return any(isinstance(node, (*IMPORTS, ast.Try)) for node in body)


@lru_cache(maxsize=2000)
def imported_where_missing(
    source: str, needed: frozenset[str], bound: frozenset[str] = frozenset()
) -> str:
    """A cell that imports what another imports at its top level, where a name of that is missing.

    Of what is bound elsewhere a part may be missing: `xml.dom` where there is `import xml`. The
    cell uses no other names, so that nothing else an answer defines has a part in it.
    """
    found: list[str] = []
    for node in (parse(source) or ast.Module([], [])).body:
        if isinstance(node, IMPORTS):
            for alias in node.names:
                is_part = isinstance(node, ast.Import) and "." in alias.name and not alias.asname
                found += _alias_where_missing(node, alias, needed | bound if is_part else needed)
        elif isinstance(node, ast.Try) and only_tries_imports(node):
            names = facts(written(node)).bound & needed
            found += [_where_missing(name, written(node)) for name in sorted(names)[:1]]
    return "\n".join(found)


def _alias_where_missing(
    node: ast.Import | ast.ImportFrom, alias: ast.alias, needed: frozenset[str]
) -> list[str]:
    names, aliases = {alias.asname or alias.name.partition(".")[0]}, [alias]
    if isinstance(node, ast.ImportFrom):
        names = {*needed} if alias.name == "*" else {alias.asname or alias.name}
        aliases = [ast.alias(name) for name in sorted(names)] if alias.name == "*" else [alias]
    if not names & needed:
        return []
    texts: list[tuple[str, str]] = []
    for one in aliases:
        made = ast.Import([one])
        if isinstance(node, ast.ImportFrom):
            made = ast.ImportFrom(node.module, [one], node.level)
        texts.append((one.asname or one.name, written(made)))
    return [_where_missing(name, text) for name, text in texts]


def _where_missing(name: str, text: str) -> str:
    lines = "\n        ".join(text.splitlines())
    lacks = "(NameError, AttributeError)" if "." in name else "NameError"
    return (
        f"try:\n    {name}\nexcept {lacks}:\n    try:\n        {lines}\n"
        "    except ImportError:\n        pass"
    )
