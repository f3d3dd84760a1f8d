"""What a cell runs where it is no plain Python: by IPython's own reading of prompts and magics.

A magic that runs code is replaced by that code; all others do nothing. Who looks for all that a
cell may do has, besides, expressions that are evaluated in passing, and calls that write files.
Statements keep the lines on which they stand in the cell. The text may be anybody's: how much of it
is tokenized is bounded by its length.
"""

import ast
import re
import shlex
import tokenize
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from getopt import GetoptError, getopt
from string import Formatter
from typing import Any, cast

from IPython.core import inputtransformer2

from autograder.common.plain_python import TooDeep, tree_of

FILES = frozenset({"writefile", "file"})
OPTIONS = {"timeit": "n:r:tcp:qov:", "prun": "D:l:rs:T:q"}  # of which IPython takes them off
CODE = frozenset({"time", "capture", *OPTIONS})
AUTO = frozenset({"config", *CODE})  # that may stand without their sign
AS_IT_STANDS = frozenset({"time", *OPTIONS})  # its {names} are not replaced by their values
MOST_MAGICS = 500  # in one cell: IPython runs none that has more
MOST_NESTED = 5  # magics in the code of magics
MOST_WORK = 2 * 10**8  # of the squares of its lines' lengths: tokens may take that long
QUOTED = re.compile(r"^('.*')|(\".*\")$")  # as IPython has it
UNREADABLE = re.compile("[\0\ud800-\udfff]")
AUTOMATIC = re.compile(r"\s*(\w+)\s+(\S.*)")

_ipython: Any = inputtransformer2  # whose types are not told


@dataclass(frozen=True)
class File:
    """A file that a cell writes."""

    path: str  # empty if it is computed
    text: str


def read(source: str, *, aside: bool, nested: int = 0) -> ast.Module | None:
    """What a notebook runs for a cell; None if that is no Python.

    Args:
        source: the cell.
        aside: whether to give what magics do in passing as well.
        nested: in the code of how many magics it stands.

    Raises:
        TooDeep: what it is cannot be found out in the time for it.
    """
    lines, above = _cleaned(source)
    if lines and (call := _cell_call(lines)):
        reader = _Reader(aside, nested)
        return _below(ast.Module(reader.run(*call), []), above)
    text = _plain(lines)
    if text is None:
        return None
    reader = _Reader(aside, nested)
    tree = tree_of(text)
    if tree is None:
        name, rest = _automatic(text)
        return _below(ast.Module(reader.run(name, rest), []), above) if name in AUTO else None
    return _below(reader.expanded(tree), above)


def file_of(source: str) -> File | None:
    """The file that a cell writes, if it is there for that."""
    if not source.lstrip().startswith(("%%", ">>>", "In ")):
        return None
    lines, _ = _cleaned(source)
    name, line, body = (_cell_call(lines) if lines else None) or ("", "", "")
    return File(_path(line), body) if name in FILES else None


def _cleaned(source: str) -> tuple[list[str], int]:
    """A cell's lines without prompts and indentation, and how many were left out above them."""
    before = (source + "\n" * (not source.endswith("\n"))).splitlines(keepends=True)
    lines = before
    for transform in _ipython.TransformerManager().cleanup_transforms:
        lines = transform(lines)
    return lines, len(before) - len(lines)


def _cell_call(lines: list[str]) -> tuple[str, str, str] | None:
    """Name, first line and body of a cell magic."""
    changed: list[str] = _ipython.cell_magic(lines)
    if changed == lines:
        return None
    call: Any = ast.parse(changed[0]).body[0]
    name, line, body = (given.value for given in call.value.args)
    return name, line, body


def _below(tree: ast.Module, lines: int) -> ast.Module:
    """The same so many lines further down."""
    return ast.increment_lineno(tree, lines) if lines else tree


def _automatic(text: str) -> tuple[str, str]:
    """A magic without its sign, which IPython takes where it stands alone."""
    match = AUTOMATIC.fullmatch(text.rstrip("\n"))
    return (match[1], match[2]) if match else ("", "")


# --- lines -------------------------------------------------------------------------------------


def _plain(lines: list[str]) -> str | None:
    """The text in which each magic is a call of the shell; None if it would not run."""
    if sum(len(line) ** 2 for line in lines) > MOST_WORK:
        raise TooDeep
    done: list[str] = []
    indents: list[str] = []
    for _ in range(MOST_MAGICS):
        around = [f"{indent}if 1:\n" for indent in ["", *indents[:-1]]] if indents else []
        around += [f"{indents[-1]}0\n"] if indents else []
        found = _next_special([*around, *lines], len(around))
        if found is None:
            return "".join([*done, *lines])
        candidates, indents = found
        changed = _changed(candidates, [*around, *lines])
        if changed is None:
            return None
        new, at = changed[0][len(around) :], changed[1] - len(around)
        done += [*new[: at + 1], *["\n"] * (len(lines) - len(new))]
        lines = new[at + 1 :]
    return None


def _changed(candidates: Sequence[Any], lines: list[str]) -> tuple[list[str], int] | None:
    """The lines with the first of these in Python, and the place of that line."""
    for one in sorted(candidates, key=lambda one: one.sortby()):
        try:
            return one.transform(lines), one.start_line
        except SyntaxError:
            continue
    return None


def _next_special(lines: list[str], skip: int) -> tuple[list[Any], list[str]] | None:
    """What IPython would change in the first statement that has such a thing; and its indents."""
    kinds = _ipython.TransformerManager().token_transformers
    indents: list[str] = []
    for statement in _statements(lines):
        for token in statement:
            if token.type == tokenize.INDENT:
                indents.append(token.string)
            elif token.type == tokenize.DEDENT and indents:
                indents.pop()
        if statement[-1].end[0] > skip:
            try:
                found = [one for kind in kinds if (one := kind.find([statement]))]
            except IndexError:  # IPython looks beyond a % at the end
                return None
            if found:
                return found, indents
    return None


def _statements(lines: list[str]) -> Iterator[list[tokenize.TokenInfo]]:
    """The tokens of each statement, as IPython takes them together; to the first broken one."""
    statement: list[tokenize.TokenInfo] = []
    brackets = 0
    # since Python 3.12 the tokeniser breaks on what no code can hold anyway
    whole = (UNREADABLE.sub("x", line) for line in lines)
    try:
        for token in tokenize.generate_tokens(whole.__next__):
            statement.append(token)
            if token.type == tokenize.OP and token.string in "([{":
                brackets += 1
            elif token.type == tokenize.OP and token.string in ")]}":
                brackets = max(0, brackets - 1)
            ends = token.type == tokenize.NL and not brackets
            if ends or token.type == tokenize.NEWLINE:
                yield statement
                statement = []
    except (tokenize.TokenError, SyntaxError):
        pass
    if statement:
        yield statement


# --- what magics run ---------------------------------------------------------------------------


@dataclass(frozen=True)
class _Reader:
    """Puts the code that magics run in their place."""

    aside: bool
    nested: int

    def expanded(self, tree: ast.Module) -> ast.Module:
        """The same tree without calls of the shell."""
        for node in ast.walk(tree):
            for name, value in ast.iter_fields(node):
                if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                    body = cast(list[ast.stmt], value)
                    setattr(node, name, [new for one in body for new in self._instead(one)])
        return tree

    def _instead(self, statement: ast.stmt) -> list[ast.stmt]:
        """What runs for a statement."""
        value = getattr(statement, "value", None)
        call = _asked(value) if isinstance(statement, ast.Expr | ast.Assign | ast.AnnAssign) else ()
        if not call:
            return [statement]
        body = self._code(*call)
        _all_on(body, statement)
        if isinstance(statement, ast.Expr):
            return body or [ast.copy_location(ast.Pass(), statement)]
        gives = isinstance(body[-1], ast.Expr) if body else False
        last: Any = body.pop() if gives else ast.Expr(ast.Constant(None))
        statement.value = ast.copy_location(last.value, statement)  # type: ignore[attr-defined]
        return [*body, statement]

    def _code(self, asked: str, *given: str) -> list[ast.stmt]:
        if asked == "run_line_magic":
            return self.run(given[0], given[1])
        return self._embedded(given[0]) if asked in ("system", "getoutput") else []

    def run(self, name: str, line: str, cell: str | None = None) -> list[ast.stmt]:
        """What a magic runs."""
        found = [] if name in AS_IT_STANDS else self._embedded(line)
        if name in FILES and cell is not None and self.aside:
            return [*found, _writing(File(_path(line), cell))]
        if name == "config" and self.aside:
            return [*found, *map(_given, self._read(f"cfg.{line.strip()}"))]
        if name not in CODE:
            return found
        if name != "capture":
            code = _without_options(name, line)
            if name == "prun" and cell is not None:
                return self._read(f"{code}\n{cell}")
            found += self._read(code)
        below = ast.Module(self._read(cell) if cell is not None else [], [])
        return [*found, *_below(below, 1).body]

    def _read(self, text: str) -> list[ast.stmt]:
        """The statements of a magic's code."""
        if self.nested == MOST_NESTED:
            raise TooDeep
        tree = tree_of(text) or read(text, aside=self.aside, nested=self.nested + 1)
        return tree.body if tree else []

    def _embedded(self, line: str, depth: int = 2) -> list[ast.stmt]:
        """Expressions in {}, which IPython replaces by their values."""
        found: list[ast.stmt] = []
        if not self.aside:
            return found
        try:
            for _, name, more, _ in Formatter().parse(line):
                whole = f"{name}:{more}" if more else f"{name or ''}"
                tree = tree_of(whole.strip()) or tree_of((name or "").strip())
                found += tree.body if tree else []
                found += self._embedded(more, depth - 1) if more and depth else []
        except ValueError:  # what stands before a broken one was replaced
            pass
        return found


def _given(statement: ast.stmt) -> ast.stmt:
    """What is evaluated where a setting is set, without the setting."""
    if not isinstance(statement, ast.Assign):
        return statement
    return ast.copy_location(ast.Expr(statement.value), statement)


def _asked(value: ast.expr | None) -> tuple[str, ...]:
    """What a call asks the shell for, and with what texts; nothing if it is none of those."""
    func = value.func if isinstance(value, ast.Call) else None
    if not isinstance(value, ast.Call) or not isinstance(func, ast.Attribute) or value.keywords:
        return ()
    shell = func.value.func if isinstance(func.value, ast.Call) else None
    texts = [getattr(given, "value", None) for given in value.args]
    if getattr(shell, "id", "") != "get_ipython" or not all(isinstance(t, str) for t in texts):
        return ()
    known = {"run_line_magic": 2, "system": 1, "getoutput": 1, "show_usage": 0}
    return (func.attr, *map(str, texts)) if known.get(func.attr) == len(texts) else ()


def _all_on(body: list[ast.stmt], place: ast.stmt) -> None:
    """Let all of it stand on a statement's line."""
    for node in ast.walk(ast.Module(body, [])):
        if isinstance(node, ast.stmt | ast.expr):
            ast.copy_location(node, place)


def _without_options(name: str, line: str) -> str:
    """The code in a magic's line."""
    if name == "time":
        first, _, rest = line.strip().partition(" ")
        return rest if first.startswith("--no") else line
    keeps = name == "timeit"  # the spaces of the code
    try:
        options, rest = getopt(_split(line, strict=not keeps), OPTIONS[name])
    except (GetoptError, ValueError):
        return ""
    if not keeps:
        return " ".join(rest)
    for pair in options:
        for part in pair:
            line = line.replace(part, "", 1)
    return line.lstrip()


def _split(line: str, *, strict: bool = True) -> list[str]:
    """The arguments in a magic's line, as IPython splits them."""
    pieces = shlex.shlex(line, posix=False)
    pieces.whitespace_split, pieces.commenters = True, ""
    found: list[str] = []
    try:
        found.extend(pieces)
    except ValueError:
        if strict:
            raise
        found.append(pieces.token)
    return found


def _writing(file: File) -> ast.stmt:
    """A call that writes a file."""
    text = f"open({file.path!r}, 'w').write({file.text!r})"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text).body[0]


def _path(line: str) -> str:
    """The path that the first line of `%%writefile` names; empty if nobody can say before."""
    try:
        parts = _split(line)
    except ValueError:
        return ""
    names = [part for part in parts if part != "-a" and not part.startswith("--")]
    if len(names) != 1 or re.search(r"[{}$]|^-", names[0]):
        return ""
    return names[0][1:-1] if QUOTED.match(names[0]) else names[0]
