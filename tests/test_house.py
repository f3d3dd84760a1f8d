"""The house: which room may know which, and what every file says of itself."""

import ast
import re
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import distributions, packages_distributions
from pathlib import Path

import pytest

from autograder.classroom import arrival_times, contest, watch_board
from tests.conftest import LONG_WORK, ROOT, SLOW

OWN = {"lab", "trainer", "benchmarks", "autograder", "hub", "solutions", "tests"}
KNOW_TORCH = {"bridge", "judge"}  # tensors cross from one process to the other
FLOORS = {  # of the grader; each may import from itself and from those that are named
    "common": set[str](),
    "isolation": {"common"},
    "bridge": {"common", "isolation"},
    "judge": {"common", "isolation", "bridge"},
    "authoring": {"common", "isolation", "bridge", "judge"},
    "checking": {"common", "isolation", "bridge", "judge"},
    "classroom": {"common", "isolation", "bridge", "judge", "authoring"},
    "cluster": {"common", "isolation", "judge", "authoring", "classroom"},
    "commands": {"common", "isolation", "authoring", "checking", "classroom", "cluster"},
}
MAY_IMPORT = {
    "lab": {"lab"},
    "trainer": {"lab", "trainer"},
    "benchmarks": {"lab", "trainer", "benchmarks"},
    "autograder": {"autograder"},
    "hub": {"hub"},
    "solutions": {"lab"},
}
LONGEST = 500  # lines of a module in a room that keeps to it
LISTS = ("hostile", "variants", "wrong")  # folders of data: attacks and answers, one by one


def tracked(pattern: str) -> list[Path]:
    """Files under version control that match a pattern."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", pattern],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


# What IPython calls its reading of cells, which is the grader's as well.
IPYTHONS = re.compile(r"\b(inputtransformer2|TransformerManager|token_transformers)\b")
OPERATORS = re.compile(r'"[a-z0-9_.|]+"')


@cache
def tree_of(path: Path) -> ast.Module:
    """A module's text, parsed once for all tests."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imports(path: Path) -> set[str]:
    """Top-level names of everything a module imports."""
    found = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").split(".")[0])
    return found


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_rooms_import_only_what_they_may(room: str):
    files = tracked(f"{room}/**.py")
    assert files
    for path in files:
        assert imports(path) & OWN <= MAY_IMPORT[room], path


def graders_imports(path: Path) -> Iterator[str]:
    """The grader's modules that one of them imports, wherever it does, or names in a text."""
    for node in at_run_time(tree_of(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from (one if is_module(one) else node.module for one in inner)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from (one for one in (node.value,) if is_module(one))


def at_run_time(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes of a module but those that only a type checker reads."""
    for node in ast.iter_child_nodes(tree):
        if not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            yield node
            yield from at_run_time(node)


@cache
def is_module(name: str) -> bool:
    """Whether a dotted name is a module of the grader's."""
    parts = name.split(".")
    is_dotted = parts[0] == "autograder" and all(part.isidentifier() for part in parts)
    return is_dotted and (ROOT / Path(*parts)).with_suffix(".py").is_file()


@pytest.mark.parametrize("floor", FLOORS)
def test_a_floor_of_the_grader_imports_from_those_below_it(floor: str):
    files = tracked(f"autograder/{floor}/*.py")
    assert files
    may = FLOORS[floor] | {floor}
    for path in files:
        for name in filter(is_module, graders_imports(path)):
            assert name.split(".")[1] in may, f"{path.relative_to(ROOT)} knows {name}"


def test_every_file_of_the_grader_stands_on_a_floor():
    above = {"__init__.py", "__main__.py"}
    for path in tracked("autograder/**.py"):
        assert path.parent.name in FLOORS or path.name in above, path


def within(ways: dict[str, set[str]]) -> set[str]:
    """What is imported by any of these modules."""
    return set[str]().union(*ways.values())


def test_no_imports_of_the_grader_go_in_circles():
    files = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): path
        for path in tracked("autograder/**.py")
    }
    ways = {
        name: {*filter(is_module, graders_imports(path))} - {name} for name, path in files.items()
    }
    while free := {one for one in ways if one not in within(ways) or not ways[one] & ways.keys()}:
        ways = {name: to for name, to in ways.items() if name not in free}
    circle = {name: sorted(to & ways.keys()) for name, to in ways.items()}
    assert not circle, f"these import each other: {circle}"


@pytest.mark.parametrize(
    "room", ["lab", "trainer", "benchmarks", "autograder", "hub", "book", "tests"]
)
def test_no_module_is_too_long_to_be_read_in_one_go(room: str):
    for path in tracked(f"{room}/*.py"):
        if path.parent.name in LISTS:
            continue
        assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST, path


def test_the_autograder_knows_nothing_of_transformers():
    for path in tracked("autograder/*"):
        text = path.read_text(encoding="utf-8")
        text = IPYTHONS.sub("", text).lower()
        if path.name == "ideas.py":  # torch's own names, all of them
            text = OPERATORS.sub("", text)
        for word in ("transformer", "attention", "embedding"):
            assert word not in text, f"{path.name} says {word}"
        if path.parent.name not in KNOW_TORCH:
            assert "torch" not in text, path.name


def test_every_module_says_first_what_it_is_for():
    for path in tracked("*.py"):
        if path.parent.parent.name == "solutions" and path.stem == path.parent.name:
            continue  # an exercise says it in its first cell
        first = (ast.get_docstring(tree_of(path)) or "").partition("\n")[0]
        assert first.endswith("."), f"{path}: its first line should be a sentence, not {first!r}"


def test_no_pattern_repeats_a_group_possessively():
    """Python before 3.11.5, as Debian 12 has it, matches `(?:a|b)*+` wrongly: `(?>(?:a|b)*)`."""
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for room in sorted(MAY_IMPORT)
        for path in sorted((ROOT / room).rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if re.search(r"\)(?:[*+?]|\{[\d,]+\})\+", line)
    ]
    assert found == []


def test_public_functions_are_documented():
    for path in (
        one for room in MAY_IMPORT if room != "solutions" for one in tracked(f"{room}/*.py")
    ):
        for node in public(tree_of(path)):
            assert ast.get_docstring(node), f"{path.name}: {node.name}"


def public(tree: ast.Module | ast.ClassDef) -> Iterator[ast.FunctionDef | ast.ClassDef]:
    """Functions and classes that others may use, and the methods of those classes."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield node
            if isinstance(node, ast.ClassDef):
                yield from public(node)


SETS = ("students", "instructors", "book", "hub", "developers", "cluster")  # in requirements/
NEEDS = {  # what the modules of a room, or of a floor of the grader, may import of others' packages
    "lab": SETS[:1],
    "trainer": SETS[:1],
    "autograder/checking": SETS[:1],
    "autograder": (*SETS[:2], "cluster"),
    "hub": ("students", "hub"),
    "solutions": SETS[:1],
    "": SETS,
}


def required(which: tuple[str, ...]) -> dict[str, str]:
    """The lines of some sets of requirements, by the package's name."""
    texts = [(ROOT / "requirements" / f"{one}.txt").read_text(encoding="utf-8") for one in which]
    lines = [line for text in texts for line in text.splitlines() if not line.startswith("#")]
    return {canonical(line.partition("==")[0]): line for line in lines}


def canonical(package: str) -> str:
    """A package's name as pip compares it."""
    return package.strip().lower().replace("_", "-")


@cache
def owners_of_packages() -> dict[str, list[str]]:
    """Which distributions each top-level name belongs to; looked up once for all tests."""
    return dict(packages_distributions())


@pytest.mark.parametrize("room", NEEDS)
def test_every_package_that_is_imported_is_a_requirement(room: str):
    listed, known = required(NEEDS[room]).keys(), owners_of_packages()
    for path in tracked(f"{room}/**.py" if room else "*.py"):
        for name in imports(path) - OWN - sys.stdlib_module_names - {""}:
            owners = {canonical(one) for one in known.get(name, [])}
            assert not owners or owners & listed, f"{path}: {name} of {owners}"


def test_all_that_is_installed_is_held_by_the_constraints():
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    held = dict(line.split("==") for line in text.splitlines() if "==" in line)
    held = {canonical(name): version for name, version in held.items()}
    for name, line in required(SETS).items():
        assert held[name] == line.partition("==")[2].split()[0], line
    for package in distributions(path=[sysconfig.get_path("purelib")]):  # not what those bring
        name, version = canonical(package.metadata["Name"]), package.version.partition("+")[0]
        assert held.get(name, version) == version, f"{name} {version} is installed"


def test_every_package_is_installed_but_those_for_the_repository_alone():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    listed = settings["tool"]["setuptools"]["packages"]
    rooms = ("lab", "trainer", "autograder")
    found = [path.parent for room in rooms for path in tracked(f"{room}/*__init__.py")]
    assert sorted(listed) == sorted(".".join(one.relative_to(ROOT).parts) for one in found)


def test_requirements_are_pinned_exactly_and_say_why():
    for line in required(SETS).values():
        assert re.fullmatch(r"[\w.-]+==[\w.]+ +# \S.+", line), line


def test_the_lists_of_slow_and_long_files_name_files():
    for name in (*SLOW, *LONG_WORK):
        assert (ROOT / "tests" / name).is_file(), name


def test_what_needs_the_built_book_or_a_browser_is_slow():
    for path in tracked("tests/*test_*.py"):
        needs = re.search(r"^from tests\.browsing|\(.*\bbook_html\b", path.read_text(), re.M)
        assert not needs or path.relative_to(ROOT / "tests").as_posix() in SLOW, path


def test_git_takes_in_nothing_that_a_command_leaves_in_the_course():
    left = (arrival_times.FILE, watch_board.FILE, watch_board.PAGE)
    left += (contest.KEPT, contest.PAGE, contest.TABLE, contest.LOCK, "gradebook.db", "grades.csv")
    told = subprocess.run(
        ["git", "check-ignore", *left], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert told.stdout.split() == list(left)
    assert not any(tracked(name) for name in left)


def test_the_book_is_not_built_anew_for_what_python_writes_beside_modules(tmp_path: Path):
    """Else tests that import its code have it built again while others look at it."""
    made_of = ["book/_ext/code.py", "book/page.md", "lab/page/letters.html"]
    written = ["book/_ext/__pycache__/code.pyc", "lab/page/__pycache__/opening.pyc"]
    for name in (*made_of, *written, "book/_build/html/index.html"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    rule = "asked: ; @echo $(BOOK) $(IMPORTED)"
    asked = ["env", "-u", "MAKEFLAGS", "-u", "MAKELEVEL"]  # else it says what the `make` above asks
    asked += ["make", "-f", ROOT / "Makefile", "--eval", rule, "asked"]
    told = subprocess.run(asked, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert sorted(told.stdout.split()) == made_of
