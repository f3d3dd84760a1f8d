"""Where the parts of a course lie: one small map that every other module asks."""

import os
import re
import stat
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

ENDS = (".py", ".json")
HANDED_IN = ("submitted", "downloaded")  # as nbgrader calls what students' work is put into
IN_EXCHANGE = re.compile(r"\+\d{4}-\d\d-\d\d")  # as `nbgrader submit` calls a folder
CONTEST = "contest.json"  # lies beside the entries
PLACES = ("HOME", "JUPYTER_CONFIG_DIR", "JUPYTER_CONFIG_PATH", "JUPYTER_NO_CONFIG")
OUTDATED = {  # settings of `NbGrader` that nbgrader still takes for its `CourseDirectory`
    name: name.replace("course_directory", "root")
    for name in (
        *("db_url", "course_id", "course_directory", "source_directory", "release_directory"),
        *("submitted_directory", "autograded_directory", "feedback_directory"),
    )
}


class CourseError(Exception):
    """Something the person at the keyboard has to mend; one sentence: what, where, what to do."""


@dataclass(frozen=True)
class Course:
    """A course directory: sources in `solutions/`, notebooks where nbgrader's settings say."""

    root: Path

    @classmethod
    def find(cls, start: Path | None = None) -> "Course":
        """The course that holds `start` (by default the working directory)."""
        try:
            here = (start or Path.cwd()).resolve()
        except FileNotFoundError:
            raise CourseError(
                "The folder in which this command runs was deleted; go to the course."
            ) from None
        if found := course_above(here):
            return cls(found)
        if root := _settings(_stamped()).get("root"):
            return cls(Path(root).resolve())
        if any(map(is_course, (here, *here.parents))):
            raise CourseError(
                f"No course found: nbgrader_config.py at {here} or above it may be a student's "
                "and is not read; run the command inside the course."
            )
        raise CourseError(
            f"No course found: neither {here} nor a folder above it holds nbgrader_config.py or "
            "nbgrader_config.json; run the command inside the course."
        )

    def chapters(self) -> list[str]:
        """Names of the chapters that have a source, in order."""
        return sorted(
            folder.name
            for folder in (self.root / "solutions").glob("[0-9][0-9]_*")
            if folder.is_dir()
        )

    def assignments(self) -> list[str]:
        """Names of the assignments whose notebooks an instructor has written, in order."""
        folder = self.root / self.setting("source_directory", "source")
        return sorted({path.parent.name for path in folder.glob("[!.]*/*.ipynb")})

    def select(self, names: Sequence[str]) -> list[str]:
        """These chapters, or all; a name that is none is an error, and so is having none."""
        known = self.chapters()
        if not known and self.assignments():
            raise CourseError(
                "This command is for a course with solutions/, and here is none. In an ordinary "
                "nbgrader course `python -m autograder build` tries the tests in "
                f"{self.setting('source_directory', 'source')}/ with your own answers, and "
                "`nbgrader generate_assignment` makes a release."
            )
        for name in names:
            if name not in known:
                raise CourseError(
                    f"There is no chapter {name!r} in solutions/; the chapters are "
                    f"{', '.join(known) or '(none yet)'}."
                )
        return [name for name in known if not names or name in names]

    def source(self, chapter: str) -> Path:
        """The one text source of a chapter's exercise."""
        return self.root / "solutions" / chapter / f"{chapter}.py"

    def misconceptions(self, chapter: str) -> Path:
        """Known wrong answers, beside the source."""
        return self.root / "solutions" / chapter / "misconceptions.py"

    def variants(self, chapter: str) -> Path:
        """Right answers in other words; they test the tests."""
        return self.root / "tests" / "variants" / f"{chapter}.py"

    def instructor(self, chapter: str) -> Path:
        """The instructor's notebook, built from the source."""
        folder = self.setting("source_directory", "source")
        return self.root / folder / chapter / f"{chapter}.ipynb"

    def release(self, chapter: str) -> Path:
        """The student's notebook, committed."""
        folder = self.setting("release_directory", "release")
        return self.root / folder / chapter / f"{chapter}.ipynb"

    def setting(self, name: str, default: str, *more: Path) -> str:
        """What nbgrader's settings say of its `CourseDirectory`, see `config_files`."""
        own = [one for one in more if is_course(one) and not is_handed_in(one, [self.root])]
        found = _settings(_stamped(self.root, *own)).get(name, default)
        kind = bool if name == "groupshared" else str
        if (found != default and not isinstance(found, kind)) or "\0" in str(found):
            raise CourseError(
                f"c.CourseDirectory.{name} is {found!r} in nbgrader's settings, and should be "
                f"{'True or False' if kind is bool else 'a text'}; mend it there."
            )
        return str(found)

    def show(self, path: Path) -> str:
        """A path as a person in the course's root would write it."""
        return str(path.relative_to(self.root)) if path.is_relative_to(self.root) else str(path)


def config_files(*folders: Path) -> list[Path]:
    """Where nbgrader looks for settings, as far as a file is there; the last counts most.

    Those are Jupyter's places (`jupyter --paths`), then a course's own folders.
    """
    return [*_jupyters_files(*map(os.environ.get, PLACES)), *filter(Path.is_file, _own(folders))]


def is_course(folder: Path) -> bool:
    """Whether a folder has settings of its own: where they are, a course begins."""
    return any(map(Path.is_file, _own([folder])))


def course_above(here: Path) -> Path | None:
    """The nearest course that holds a folder; what students have handed in is none.

    Its settings are a program: they would run with all that the person at the keyboard may do.
    """
    found: list[Path] = []  # outer courses first
    for folder in reversed([here, *here.parents]):
        if is_course(folder) and not is_handed_in(folder, found):
            found.append(folder)
    return found[-1] if found else None


def is_handed_in(folder: Path, around: Iterable[Path]) -> bool:
    """Whether students may have made what lies in a folder.

    So it is where courses around it have students' work put, in nbgrader's exchange, in an entry of
    a contest, and where all accounts may write and another has written the settings.
    """
    inside = [folder, *folder.parents]
    return (
        any(_holds_work(outer, folder) for outer in around)
        or any(IN_EXCHANGE.search(one.name) for one in inside)
        or any(one.name == "inbound" and (one.parent / "outbound").is_dir() for one in inside)
        or any((one / CONTEST).is_file() for one in inside[1:])
        or _is_for_all(folder)
    )


def _holds_work(course: Path, folder: Path) -> bool:
    """Whether a folder in a course lies where its settings have students' work put."""
    if not folder.is_relative_to(course):
        return False
    names = [*HANDED_IN]
    with suppress(CourseError):  # it is said where that course is asked for
        config = _config(_stamped(course))
        names += [str(_of_course(config).get("submitted_directory", ""))]
        names += [str(config.ZipCollectApp.get("downloaded_directory", ""))]
    inside = folder.relative_to(course).parts[:-1]  # a class may lie in a folder of its own
    for parts in (Path(name).parts for name in names if name):
        runs = (inside[start : start + len(parts)] for start in range(len(inside)))
        if parts in runs or folder.is_relative_to(course.joinpath(*parts)):
            return True
    return False


def _is_for_all(folder: Path) -> bool:
    """Whether everybody may write into a folder, as into /tmp, and its settings are not our own."""
    if not hasattr(os, "geteuid") or not folder.stat().st_mode & stat.S_IWOTH:
        return False
    owners = {path.stat().st_uid for path in filter(Path.is_file, _own([folder]))}
    return not owners <= {0, os.geteuid()}


def _own(folders: Iterable[Path]) -> Iterator[Path]:
    return (folder / f"nbgrader_config{end}" for folder in folders for end in ENDS)


@lru_cache(maxsize=8)
def _jupyters_files(*_: str | None) -> list[Path]:
    """Those in Jupyter's places, which the environment names."""
    from jupyter_core.paths import jupyter_config_path

    folders = [Path(folder) for folder in reversed(jupyter_config_path())]
    names = [f"{name}{end}" for name in ("jupyter_config", "nbgrader_config") for end in ENDS]
    found = [folder / name for name in names for folder in folders]
    found.sort(key=lambda path: (path.stem, folders.index(path.parent)))
    return [path for path in found if path.is_file()]


def _stamped(*folders: Path) -> tuple[tuple[Path, int], ...]:
    """The files of settings, each with the time of its last change."""
    files = config_files(*dict.fromkeys(folders))
    return tuple((path, path.stat().st_mtime_ns) for path in files)


def _settings(files: tuple[tuple[Path, int], ...]) -> Mapping[str, Any]:
    return _of_course(_config(files))


@lru_cache(maxsize=8)
def _config(files: tuple[tuple[Path, int], ...]) -> Any:
    return _read(path for path, _ in files)


def _of_course(config: Any) -> Mapping[str, Any]:
    """What settings say of nbgrader's course directory."""
    outdated = {
        new: config.NbGrader[old] for old, new in OUTDATED.items() if old in config.NbGrader
    }
    return {**outdated, **config.CourseDirectory}


def read_config(root: Path) -> Any:
    """A course's settings for nbgrader, as nbgrader reads them; may raise CourseError."""
    return _read(config_files(root))


def private_folders(course: Course) -> list[str]:
    """Where works, answers and grades lie, which no sandbox shows wherever that is.

    Of an account that is not root all of its home: on some machines that lies below /usr.
    """
    exchange = ""
    with suppress(CourseError, OSError):  # it is said where the settings are asked for
        exchange = read_config(course.root).get("Exchange", {}).get("root", "")
    found = [str(course.root), *([exchange] if isinstance(exchange, str) and exchange else [])]
    with suppress(OSError, RuntimeError, AttributeError):  # no home, or no accounts
        home = Path.home()
        found += [str(home)] if 0 != home.stat().st_uid == os.geteuid() else []
    return found


def _read(files: Iterable[Path]) -> Any:
    from traitlets.config.loader import Config, JSONFileConfigLoader, PyFileConfigLoader

    config: Any = Config()
    for path in files:
        loader = JSONFileConfigLoader if path.suffix == ".json" else PyFileConfigLoader
        try:
            config.merge(_sound(loader(path.name, path=str(path.parent)).load_config()))
        except (Exception, SystemExit) as error:
            frames = traceback.extract_tb(error.__traceback__)
            lines = [frame.lineno for frame in frames if frame.filename == str(path)]
            line = error.lineno if isinstance(error, SyntaxError) else (lines or [None])[-1]
            where = f"line {line}: " if line else ""
            said = str(getattr(error, "msg", error)).partition("\n")[0]
            raise CourseError(
                f"{path} cannot be read ({where}{type(error).__name__}: {said}); mend it."
            ) from error
    return config


def _sound(told: Any) -> Any:
    """A file's settings; ValueError where JSON has something else in a section's place."""
    for name, section in told.items():
        if not isinstance(section, type(told)):
            raise ValueError(f"{name} is no section of settings")
    return told


def without_effect(config: Any, root: Path | None = None) -> Iterator[str]:
    """Settings of nbgrader's own that say something and that nobody reads here, in words.

    Args:
        config: the settings.
        root: the course's folder, for a command that is not nbgrader's own.
    """
    named = _of_course(config).get("root")
    if root and isinstance(named, str) and Path(named).resolve() != root:
        yield (
            f"c.CourseDirectory.root in nbgrader's settings is {named}: nbgrader's own commands "
            f"work there, and this one in {root}, where its settings lie."
        )
    for name in ("LateSubmissionPlugin", "AssignLatePenalties"):
        if config.get(name):
            yield (
                f"c.{name} in nbgrader's settings has no effect: what lateness costs stands under "
                "[late] in rules.toml, and goes by no time that a student can set."
            )
    if config.get("Autograde", {}).get("exclude_overwriting"):
        yield (
            "c.Autograde.exclude_overwriting in nbgrader's settings has no effect: of files that "
            "you hand out yours count; [files] in rules.toml says which others may be handed in."
        )
