"""What Python's modules that answers with rules may use do by a text: each place was read."""

import ast
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from autograder.judge.forbidden import is_way_round
from autograder.judge.vetted import PYTHONS

BY_A_TEXT = {"exec", "eval", "compile", "__import__", "import_module", "getattr", "setattr"}
READ = {  # what asks nothing but its own objects, or by names that are written out in it
    "abc.update_abstractmethods", "ast.parse", "ast.copy_location", "ast.NodeVisitor.visit",
    "ast.NodeVisitor.visit_Constant", "ast.NodeTransformer.generic_visit",
    "collections.namedtuple", "enum.EnumType.__new__",
    "functools.total_ordering", "logging.LogRecord.__init__", "os", "reprlib.Repr.repr1",
    "shutil.copystat", "shutil.copystat.lookup", "typing", "typing.no_type_check",
    "typing.NamedTupleMeta.__new__", "warnings.catch_warnings.__init__",
    "warnings.catch_warnings.__repr__",
    # of classes of classes alone, which are held apart (`Own.makes_types`)
    "dataclasses.fields", "dataclasses.replace",
}  # fmt: skip


def files(module: str) -> list[Path]:
    home = Path(sysconfig.get_path("stdlib"))
    alone = home / f"{module}.py"
    return [alone] if alone.exists() else sorted((home / module).glob("*.py"))


def places(node: ast.AST, name: str) -> Iterator[str]:
    """The functions in which something is imported, evaluated, got or set by a text."""
    for part in ast.iter_child_nodes(node):
        inner = name
        if isinstance(part, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            inner = f"{name}.{part.name}"
        if isinstance(part, ast.Attribute) and part.attr == "modules":
            yield inner
        elif isinstance(part, ast.Call):
            called = getattr(part.func, "id", getattr(part.func, "attr", ""))
            own = called == "compile" and isinstance(part.func, ast.Attribute)
            shown = called.endswith("attr") and isinstance([*part.args, None][1], ast.Constant)
            if called in BY_A_TEXT and not (own or shown):
                yield inner
        yield from places(part, inner)


def test_what_vetted_modules_do_by_a_text_is_a_way_round_or_was_read():
    found = set[str]()
    for module in PYTHONS:
        for file in files(module):
            below = f"{module}.{file.stem}" if file.parent.name == module else module
            name = module if file.stem in ("__init__", module) else below
            if not is_way_round(name):
                found |= {*places(ast.parse(file.read_text("utf-8")), name)}
    left = {one for one in found - READ if not is_way_round(one)}
    assert len(found) > 20
    private = {one for one in left if any(p.startswith("_") for p in one.split(".")[1:])}
    assert left - private == set()
