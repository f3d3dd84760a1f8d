"""The table of the places where the code departs from the paper.

    ```{departures}
    ```

reads every solutions/*/*.py for comments of the form `# departs: why. paper: test_name`, which may
go on over the comment lines directly below, and shows for each one the notebook, the function, the
reason, and the test (in tests/test_fidelity.py) of what the paper does.
"""

from __future__ import annotations

import ast
import io
import tokenize
from dataclasses import dataclass
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from .fresh import always_read_again

MARK = "# departs:"
HEAD = ("Notebook", "Where", "What and why", "Test of the paper's way")
EMPTY = (
    "So far the code follows the paper everywhere: no solution carries a mark of departure. "
    "When one does, it appears here by itself."
)


@dataclass(frozen=True)
class Departure:
    """One place where the code does not do what the paper says."""

    notebook: str
    name: str
    why: str
    test: str  # of the paper's variant; empty if the comment names none


def find_departures(root: Path) -> list[Departure]:
    """Return the departures of all solutions below a project's root, in reading order."""
    found: list[Departure] = []
    for path in sorted((root / "solutions").glob("*/*.py")):
        found += departures_in(path.read_text(encoding="utf-8"), path.parent.name)
    return found


def departures_in(source: str, notebook: str) -> list[Departure]:
    """Return the departures of one source file."""
    if MARK not in source:
        return []
    comments = comment_lines(source)
    tree = ast.parse(source)
    return [
        Departure(notebook, enclosing(tree, line), *split(reason(comments, line)))
        for line, (_, text) in comments.items()
        if text.startswith(MARK)
    ]


def comment_lines(source: str) -> dict[int, tuple[int, str]]:
    """Return each comment's line, column (-1 after code on the same line) and text."""
    lines = {}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            alone = not token.line[: token.start[1]].strip()
            lines[token.start[0]] = (token.start[1] if alone else -1, token.string)
    return lines


def reason(comments: dict[int, tuple[int, str]], line: int) -> str:
    """Return the text of a mark, with the comment lines directly below it in the same column."""
    column, text = comments[line]
    parts = [text.removeprefix(MARK).strip()]
    while column >= 0 and comments.get(line + 1, (-1, ""))[0] == column:
        line += 1
        following = comments[line][1]
        if following.startswith((MARK, "# %%", "###")):
            break
        parts.append(following.lstrip("# "))
    return " ".join(parts)


def split(text: str) -> tuple[str, str]:
    """Return the reason and the test's name, which stands after "paper:"."""
    why, _, test = text.partition("paper:")
    return why.strip(), test.strip()


def enclosing(tree: ast.Module, line: int) -> str:
    """Return the dotted name of the function or class around a line or right below it."""
    scopes = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    around = [s for s in scopes if s.lineno <= line <= (s.end_lineno or s.lineno)]
    if around:
        return ".".join(s.name for s in sorted(around, key=lambda s: s.lineno))
    below = [s for s in scopes if line < s.lineno <= line + 3]
    return below[0].name if below else "the notebook as a whole"


class Departures(SphinxDirective):
    """The table of departures, read from the sources at each build."""

    def run(self) -> list[nodes.Node]:
        """Return the table, or one sentence when there is nothing to list."""
        always_read_again(self.env)
        found = find_departures(Path(self.env.srcdir).parent)
        return [table(found)] if found else [nodes.paragraph("", EMPTY)]


def table(found: list[Departure]) -> nodes.table:
    """Return a table with one row a departure."""
    head = nodes.row("", *(entry(nodes.Text(t)) for t in HEAD))
    rows = [
        nodes.row(
            "",
            entry(nodes.literal("", d.notebook)),
            entry(nodes.literal("", d.name)),
            entry(nodes.Text(d.why)),
            entry(nodes.literal("", d.test)),
        )
        for d in found
    ]
    group = nodes.tgroup(
        "",
        *(nodes.colspec(colwidth=width) for width in (15, 25, 35, 25)),
        nodes.thead("", head),
        nodes.tbody("", *rows),
        cols=4,
    )
    return nodes.table("", group)


def entry(content: nodes.Node) -> nodes.entry:
    """Return one cell of a table."""
    return nodes.entry("", nodes.paragraph("", "", content))
