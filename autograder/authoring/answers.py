"""Known answers to a question, right and wrong, read as data and put in a student's place.

The files hold functions and classes marked with `@misconception(...)` or `@variant(...)`; they are
read by syntax tree and never imported, so what they say must be literal.
"""

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent, indent

from autograder.authoring.source import Cell, Source
from autograder.common.course import CourseError

Definition = ast.FunctionDef | ast.ClassDef


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
    answers = [
        _answer(path, text, node)
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.decorator_list
    ]
    for answer in answers:
        _check(path, answer, source)
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
    mark = node.decorator_list[0]
    where = f"{path}, line {node.lineno}, {node.name}"
    if not (isinstance(mark, ast.Call) and isinstance(mark.func, ast.Name) and mark.args):
        raise CourseError(f"{where}: mark it @misconception(question, ...) or @variant(question).")
    try:
        question = ast.literal_eval(mark.args[0])
        given = {str(word.arg): ast.literal_eval(word.value) for word in mark.keywords}
    except ValueError as error:
        raise CourseError(f"{where}: the marks' arguments should be plain literals.") from error
    message = ast.get_docstring(node) or ""
    if mark.func.id == "misconception" and not (message and given.get("id")):
        raise CourseError(f"{where}: a misconception needs an id and a docstring, its message.")
    return Answer(
        name=node.name,
        question=question,
        code=_code(text, node),
        target=given.get("target"),
        id=given.get("id", ""),
        message=" ".join(message.split()) if mark.func.id == "misconception" else "",
        fails=tuple(given.get("fails", ())),
        read=given.get("read", ""),
    )


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
    tests = [cell.id for cell in source.of_kind("test")]
    for test in answer.fails:
        if test not in tests:
            raise CourseError(f"{path}, {answer.name}: fails= names {test!r}, which is no test.")
    if answer.is_wrong and not answer.fails:
        raise CourseError(f"{path}, {answer.name}: fails= should name the tests that catch it.")


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
