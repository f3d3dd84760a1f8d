"""The hand-out: what a student gets of a course, in a folder or in a zip file, and nothing else.

Notebooks as they are released, the course's packages as far as these import them, with the files
that pyproject.toml says lie beside their modules, `check`, and what installs all of it.
nbgrader_config.py says what there is to say, all of it optional:

    c.HandOut.name = "my-course"          # of the package; by default the course's id
    c.HandOut.packages = ["lab"]          # of the course, which its notebooks import
    c.HandOut.requirements = "needs.txt"  # what those need; by default what `check` needs
    c.HandOut.readme = "students.md"      # a text of one's own, with the signs of README.md.j2
    c.HandOut.book = "https://..."        # where the book is, for the link to it
    c.HandOut.url = "https://....zip"     # where the hand-out will be, for hosted notebook services
    c.HandOut.index = "https://..."       # where pip looks, too, when GitHub checks a notebook

The same course gives the same bytes.
"""

import hashlib
import io
import re
import shutil
import tomllib
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path, PurePosixPath
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, TemplateError

from autograder.authoring import handout_code
from autograder.authoring.handout_notebooks import NOTEBOOKS, Released, kept_of, released
from autograder.common.course import Course, CourseError, read_config
from autograder.common.failures import in_words
from autograder.common.syntax import parse
from autograder.judge.toml_tables import checked, file_name, names

NEEDED = (  # what `check` imports of others, and what runs the notebooks
    *("ipython", "traitlets", "jupyter_core", "python-dateutil", "tqdm"),
    *("jupyterlab", "ipykernel"),
)
PYTHONS = ">=3.11,<3.14"
LONG_AGO = (1980, 1, 1, 0, 0, 0)  # the first moment that a zip file knows
GRADER = Path(__file__).parents[2]  # holds the package
TEMPLATES = ("README.md", "Makefile", "pyproject.toml", "requirements.txt")
WORKFLOW = ".github/workflows/check.yml"  # where GitHub looks for what it is to run
OTHER_ARCHIVES = (".tar", ".tgz", ".tar.gz", ".tar.xz", ".tar.bz2", ".7z", ".rar")
COURSES_OWN = ("constraints.txt", "LICENSE*")


@dataclass(frozen=True)
class Settings:
    """What nbgrader_config.py says of the hand-out."""

    name: str
    packages: tuple[str, ...] = ()
    requirements: str = ""
    readme: str = ""
    book: str = ""
    url: str = ""
    index: str = ""


@dataclass(frozen=True)
class HandOut:
    """Files by their path in the hand-out, in order."""

    name: str
    files: Mapping[str, bytes]
    notes: Sequence[str] = ()  # for the instructor

    def zipped(self) -> bytes:
        """All of it in one file: the same files give the same bytes."""
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w") as archive:
            for path, content in self.files.items():
                entry = zipfile.ZipInfo(f"{self.name}/{path}", LONG_AGO)
                entry.compress_type, entry.create_system = zipfile.ZIP_DEFLATED, 3
                entry.external_attr = 0o100644 << 16
                archive.writestr(entry, content, compresslevel=9)
        return made.getvalue()

    @property
    def digest(self) -> str:
        """By which two hand-outs are compared, packed or not."""
        whole = hashlib.sha256()
        for path, content in self.files.items():
            whole.update(f"{path} {len(content)}\n".encode() + content)
        return whole.hexdigest()


def made(course: Course, commands: Sequence[str]) -> HandOut:
    """The hand-out of a course as it is today; raises CourseError if a release is out of date.

    Args:
        course: the course.
        commands: names of the modules with the grader's commands for students.
    """
    settings = _settings(course)
    fetch = _cell(settings) if settings.url and settings.packages else ""
    given, notes = released(course, fetch)
    files = {f"{NOTEBOOKS}/{path}": content for one in given for path, content in one.files.items()}
    for one in given:
        files |= kept_of(one)
    packages = {"autograder": GRADER} | dict.fromkeys(settings.packages, course.root)
    for name in settings.packages:
        if not (course.root / name).is_dir():
            raise CourseError(f"c.HandOut.packages names {name}, and the course has no {name}/.")
    code = handout_code.modules(packages, commands, _code(given))
    all_packages = sorted({path.rpartition("/")[0].replace("/", ".") for path in code})
    own = [name for name in all_packages if name.partition(".")[0] in settings.packages]
    data = _package_data(course, own)
    beside = handout_code.data(course.root, data)
    files |= {inside: path.read_bytes() for inside, path in (code | beside).items()}
    files |= _texts(course, settings, all_packages, data)
    return HandOut(settings.name, dict(sorted(files.items())), notes)


def write(found: HandOut, target: Path) -> bool:
    """Write a hand-out into a new folder or zip file; False if it is there already.

    Raises CourseError where something else is: nothing is written over.
    """
    is_zip = target.suffix.lower() == ".zip"
    if not is_zip and target.name.lower().endswith(OTHER_ARCHIVES):
        raise CourseError(f"{target}: only zip files are written; name one that ends in .zip.")
    with in_words(target):
        if target.exists() and not (target.is_dir() and not any(target.iterdir())):
            if _lies_there(found, target, is_zip):
                return False
            raise CourseError(
                f"{target} is there already and is not this hand-out; nothing was changed. Remove "
                "it or name another place."
            )
        part = target.with_name(f".{target.name}.part")
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            if is_zip:
                part.write_bytes(found.zipped())
            else:
                _unpack(found, part)
                with suppress(FileNotFoundError):
                    target.rmdir()
            part.rename(target)
        finally:
            shutil.rmtree(part, ignore_errors=True)
            if part.is_file():
                part.unlink()
    return True


def _unpack(found: HandOut, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    for path, content in found.files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)


def _lies_there(found: HandOut, target: Path, is_zip: bool) -> bool:
    if target.is_dir():
        there = {
            path.relative_to(target).as_posix(): path
            for path in target.rglob("*")
            if not path.is_dir()
        }
        return there.keys() == found.files.keys() and all(
            path.is_file() and path.read_bytes() == found.files[name]
            for name, path in there.items()
        )
    return is_zip and target.is_file() and target.read_bytes() == found.zipped()


def _settings(course: Course) -> Settings:
    where = course.root / "nbgrader_config.py"
    told = dict(read_config(course.root).get("HandOut", {}))
    kinds: dict[str, Any] = {one.name: _text for one in fields(Settings)}
    kinds |= {"packages": names, "requirements": file_name, "readme": file_name}
    found = checked(where, "c.HandOut", told, kinds)
    name = found.pop("name", "") or course.setting("course_id", "") or course.root.name
    return Settings(re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "course", **found)


def _text(value: Any) -> tuple[str | None, str]:
    return value if isinstance(value, str) and value.isprintable() else None, "a text of one line"


def _cell(settings: Settings) -> str:
    """The first cell of notebooks; it does something on a hosted service alone."""
    return (
        "# For a hosted notebook service: fetches what this notebook needs and the service lacks.\n"
        "# Where the course is set up it does nothing.\n"
        f"try:\n    import {settings.packages[0]}\nexcept ImportError:\n"
        f"    %pip install --quiet {settings.url}\n"
    ).rstrip()


def _code(given: Sequence[Released]) -> list[Any]:
    trees = (parse(text) for one in given for text in one.code())
    return [tree for tree in trees if tree is not None]


def _texts(
    course: Course,
    settings: Settings,
    all_packages: Sequence[str],
    data: Mapping[str, Sequence[str]],
) -> dict[str, bytes]:
    """What is written for students, and the course's own files for them."""
    project = _table(course, "project")
    values = {
        **{one.name: getattr(settings, one.name) for one in fields(Settings)},
        "title": project.get("description") or settings.name,
        "version": project.get("version", "0"),
        "license": project.get("license", ""),
        "python": project.get("requires-python", PYTHONS),
        "needed": _needed(course, settings),
        "all_packages": all_packages,
        "data": data,
        "is_pinned": (course.root / "constraints.txt").is_file(),
    }
    texts = {
        path.name: path.read_bytes()
        for pattern in COURSES_OWN
        for path in course.root.glob(pattern)
    }
    license = GRADER / "LICENSE"
    if course.root != GRADER and license.is_file():
        texts["LICENSE-grader"] = license.read_bytes()
    values["is_licensed"] = any(name.startswith("LICENSE") for name in texts)
    places = {name: name for name in TEMPLATES} | {WORKFLOW: Path(WORKFLOW).name}
    return texts | {
        place: _filled(course, settings, name, values).encode() for place, name in places.items()
    }


def _filled(course: Course, settings: Settings, name: str, values: Mapping[str, Any]) -> str:
    """One text for students: ours, or the course's own README."""
    environment = Environment(
        loader=PackageLoader("autograder.authoring"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    own = settings.readme if name == "README.md" else ""
    try:
        if not own:
            return environment.get_template(f"{name}.j2").render(values)
        return environment.from_string((course.root / own).read_text("utf-8")).render(values)
    except (OSError, UnicodeDecodeError, TemplateError) as error:
        raise CourseError(
            f"{own or name} cannot be read ({error}); see c.HandOut.readme."
        ) from error


def _package_data(course: Course, packages: Sequence[str]) -> dict[str, list[str]]:
    """Patterns of the files that lie beside the modules of these packages."""
    told = _table(course, "tool", "setuptools", "package-data")
    found = {name: told[name] for name in packages if name in told}
    for name, patterns in found.items():
        if not isinstance(patterns, list) or not all(map(_leads_below, patterns)):
            raise CourseError(
                f"{course.root / 'pyproject.toml'}: package-data of {name} should be a list of "
                "patterns, each of files beside its modules."
            )
    return found


def _leads_below(pattern: Any) -> bool:
    """Whether a pattern finds nothing but what lies in a package's own folder."""
    if not isinstance(pattern, str) or not pattern:
        return False
    parts = PurePosixPath(pattern.replace("\\", "/"))
    return not parts.is_absolute() and ".." not in parts.parts


def _table(course: Course, *names: str) -> dict[str, Any]:
    """A table of the course's own pyproject.toml, if it is there."""
    found: Any = _pyproject(course)
    for name in names:
        found = found.get(name, {})
        if not isinstance(found, dict):
            raise CourseError(f"{course.root / 'pyproject.toml'}: {name} should be a table.")
    return found


def _pyproject(course: Course) -> dict[str, Any]:
    """What the course's own pyproject.toml says of it."""
    path = course.root / "pyproject.toml"
    try:
        return tomllib.loads(path.read_text("utf-8")) if path.is_file() else {}
    except (ValueError, RecursionError) as error:
        raise CourseError(f"{path} is no TOML ({error}); mend that line.") from error


def _needed(course: Course, settings: Settings) -> list[tuple[str, str]]:
    """Lines of the requirements, each with the package's name alone."""
    lines = list(NEEDED)
    if settings.requirements:
        path = course.root / settings.requirements
        if not path.is_file():
            raise CourseError(f"c.HandOut.requirements names {path}, and there is no such file.")
        try:
            with in_words(path):
                lines = path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError as error:
            raise CourseError(f"{path} is no text in UTF-8 ({error}); save it as such.") from error
    lines = [line.rstrip() for line in lines if line.strip() and not line.startswith(("#", "-"))]
    return [(line, re.split(r"[^\w.-]", line, maxsplit=1)[0]) for line in lines]
