"""Known answers to a question, right and wrong, read as data and put in a student's place.

The files hold functions and classes marked with `@misconception(...)` or `@variant(...)`; they are
read by syntax tree and never imported, so what they say must be literal.
"""

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

from autograder.authoring.source import Cell, Source
from autograder.common.course import CourseError

Definition = ast.FunctionDef | ast.ClassDef
MARKS = {  # each with the keywords that it has to have, and those that it may have
    "misconception": (("id", "fails", "read"), ("target",)),
    "variant": ((), ("target",)),
}


@dataclass(frozen=True)
class Answer:
    """A known answer: the code, the question it answers and what should come of it."""

    name: str
    question: str  # id of the solution cell
    code: str  # the definition, without decorator and docstring
    target: str | None = None
    id: str = ""
    message: str = ""
    fails: tuple[str, ...] = ()
    read: str = ""

    @property
    def is_wrong(self) -> bool:
        """Whether this is a misconception."""
        return bool(self.id)


def read_answers(path: Path, source: Source) -> list[Answer]:
    """The marked answers of one file, checked against the source they belong to."""
    if not path.is_file():
        return []
    text = path.read_text(encoding="utf-8")
    try:
        body = ast.parse(text).body
    except SyntaxError as error:
        raise CourseError(f"{path}, line {error.lineno}: no Python ({error.msg}).") from error
    answers = [
        _answer(path, text, node)
        for node in body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.decorator_list
    ]
    for answer in answers:
        _check(path, answer, source)
    _check_ids(path, answers)
    return answers


def answered(source: Source, answers: Iterable[Answer]) -> Source:
    """The source with some of its solutions replaced by these answers."""
    by_question: dict[str, list[Answer]] = {}
    for answer in answers:
        by_question.setdefault(answer.question, []).append(answer)
    cells = []
    for cell in source.cells:
        if cell.kind == "solution":
            for answer in by_question.get(cell.id, []):
                cell = splice(cell, answer)
        cells.append(cell)
    return Source(source.path, tuple(cells), source.digest)


def splice(cell: Cell, answer: Answer) -> Cell:
    """The solution cell with one definition replaced by the answer's, under the same name."""
    target = _find(ast.parse(cell.source), answer.target or _only_definition(cell))
    if target is None:
        raise CourseError(
            f"Answer {answer.name}: the cell {cell.id} defines no {answer.target or 'function'}; "
            "correct target=."
        )
    lines = cell.source.splitlines()
    start = min([target.lineno, *(node.lineno for node in target.decorator_list)]) - 1
    code = indent(_renamed(answer, target.name), " " * target.col_offset)
    replaced = [*lines[:start], *code.splitlines(), *lines[target.end_lineno :]]
    return Cell(cell.kind, "\n".join(replaced), cell.line, cell.id, cell.points, cell.export)


def _renamed(answer: Answer, name: str) -> str:
    """The answer's code with its own name (in its body too) changed to the target's."""
    code = ast.parse(answer.code)
    own = answer.name
    spots = []
    for node in ast.walk(code):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == own:
            keyword = "def " if isinstance(node, ast.FunctionDef) else "class "
            spots.append((node.lineno, node.col_offset + len(keyword)))
        elif isinstance(node, ast.Name) and node.id == own:
            spots.append((node.lineno, node.col_offset))
    lines = answer.code.splitlines()
    for number, column in sorted(spots, reverse=True):
        line = lines[number - 1].encode()  # syntax trees count columns in bytes
        lines[number - 1] = (
            line[:column] + name.encode() + line[column + len(own.encode()) :]
        ).decode()
    return "\n".join(lines)


def _answer(path: Path, text: str, node: Definition) -> Answer:
    where = f"{path}, line {node.lineno}, {node.name}"
    mark, question, given = _mark(where, node.decorator_list[0])
    message = ast.get_docstring(node) or ""
    if mark == "misconception" and not message:
        raise CourseError(f"{where}: a misconception needs a docstring, its message.")
    return Answer(
        name=node.name,
        question=question,
        code=_code(text, node),
        target=given.get("target"),
        id=given.get("id", ""),
        message=" ".join(message.split()) if mark == "misconception" else "",
        fails=tuple(given.get("fails", ())),
        read=given.get("read", ""),
    )


def _mark(where: str, mark: ast.expr) -> tuple[str, str, dict[str, Any]]:
    """A mark's name, the question it names, and its keywords."""
    name = ast.unparse(mark.func) if isinstance(mark, ast.Call) else ""
    if not (isinstance(mark, ast.Call) and mark.args and name in MARKS):
        raise CourseError(f"{where}: mark it @misconception(question, ...) or @variant(question).")
    try:
        question = ast.literal_eval(mark.args[0])
        given = {str(word.arg): ast.literal_eval(word.value) for word in mark.keywords}
    except ValueError as error:
        raise CourseError(f"{where}: the marks' arguments should be plain literals.") from error
    needed, allowed = MARKS[name]
    if lacking := [word for word in needed if not given.get(word)]:
        raise CourseError(f"{where}: a {name} needs {lacking[0]}=.")
    if unknown := given.keys() - {*needed, *allowed}:
        raise CourseError(f"{where}: a {name} has no {min(unknown)}=.")
    if isinstance(given.get("fails"), str):
        raise CourseError(f"{where}: fails= should be a list, [{given['fails']!r}].")
    return name, question, given


def _code(text: str, node: Definition) -> str:
    """The definition's text without decorators and docstring."""
    lines = text.splitlines()
    body = node.body
    if ast.get_docstring(node) is not None:
        docstring = body[0]
        kept = [
            *lines[node.lineno - 1 : docstring.lineno - 1],
            *lines[docstring.end_lineno : node.end_lineno],
        ]
    else:
        kept = lines[node.lineno - 1 : node.end_lineno]
    return dedent("\n".join(kept))


def _check(path: Path, answer: Answer, source: Source) -> None:
    questions = [cell.id for cell in source.of_kind("solution")]
    if answer.question not in questions:
        raise CourseError(
            f"{path}, {answer.name}: there is no solution {answer.question!r} in "
            f"{source.path.name}; the solutions are {', '.join(questions)}."
        )
    tests = source.tests_of(answer.question)
    for test in answer.fails:
        if test not in tests:
            raise CourseError(
                f"{path}, {answer.name}: fails= names {test!r}, which is no test of "
                f"{answer.question}; its tests are {', '.join(tests)}."
            )


def _check_ids(path: Path, answers: Iterable[Answer]) -> None:
    names: dict[str, str] = {}
    for answer in filter(lambda one: one.is_wrong, answers):
        if answer.id in names:
            raise CourseError(
                f"{path}, {answer.name}: the id {answer.id!r} is that of {names[answer.id]} "
                "already; give it one of its own."
            )
        names[answer.id] = answer.name


def _only_definition(cell: Cell) -> str:
    names = [
        node.name
        for node in ast.parse(cell.source).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    ]
    if len(names) != 1:
        raise CourseError(
            f"The cell {cell.id} defines {', '.join(names)}; an answer to it needs target=."
        )
    return names[0]


def _find(tree: ast.Module, dotted: str) -> Definition | None:
    body, found = tree.body, None
    for name in dotted.split("."):
        found = next(
            (
                node
                for node in body
                if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name
            ),
            None,
        )
        if found is None:
            return None
        body = found.body
    return found
