"""nbgrader's own tests, as its wheel holds them, with this grader in the place of nbgrader's.

    python -m tests.nbgraders_own [--part]

They run with this course's settings for nbgrader (see SETTINGS), as an instructor's config would
have them. Their instructor's notebook, of which students' submissions are copies, has no solution;
this grader needs one to try the tests with, so it gets one (see SOLUTIONS).

tests/nbgraders_own.tsv names each test that fails all the same, and why that is meant so. The
command ends with 1 if another one fails, or one on the list passes. With --part it runs those
files alone that say most of a grader, as the suite does.
"""

import argparse
import csv
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbgrader.tests.apps.base import BaseTestApp

from autograder.common.startup import use_own_tools

ROOT = Path(__file__).parents[1]
LIST = Path(__file__).with_suffix(".tsv")
FOLDER = Path(str(sys.modules[BaseTestApp.__module__].__file__)).parents[1]
SETTINGS = (
    "c.Autograde.",
    "c.GenerateFeedback.",
    "c.ZipCollectApp.",
    "c.ExchangeFactory.",
    "c.ExecutePreprocessor.",
)
SOLUTIONS = {"set_a": "a = 1", "quux": "b = 2"}
RELEASED = "apps/test_nbgrader_releasefeedback.py::TestNbGraderReleaseFeedback"
PART = (
    f"{RELEASED}::test_single_file",
    f"{RELEASED}::test_student_id_exclude",
    f"{RELEASED}::test_permissions",
    "apps/test_nbgrader_fetchfeedback.py",
    "apps/test_api.py::TestNbGraderAPI::test_get_autograded_students",
    "apps/test_api.py::TestNbGraderAPI::test_get_submission",
)
LEFT_OUT = {
    "ui-tests": "they need Galata and Node.js",
    "preprocessors/test_instantiatetests.py": "they need nbgrader's repository beside them",
    "test_auth.py": "they need requests_mock; nothing of a grader is in them",
}


def settings() -> str:
    """What nbgrader_config.py says of grading, feedback and collecting; no folders, no words."""
    lines = (ROOT / "nbgrader_config.py").read_text(encoding="utf-8").splitlines()
    kept, inside = ["c = get_config()"], False
    for line in lines:
        inside = line.startswith(SETTINGS) or (inside and line[:1] in (" ", "]", "}"))
        kept += [line] if inside else []
    return "\n".join([*kept, ""])


@pytest.fixture(autouse=True)
def solved(monkeypatch: pytest.MonkeyPatch) -> None:
    """The instructor's copy of what students get has answers; pytest takes this as a plugin's."""
    copy = BaseTestApp._copy_file

    def copied(self: Any, src: str, dest: str) -> None:
        copy(self, src, dest)
        if f"{os.sep}source{os.sep}" in dest and Path(src).name == "submitted-unchanged.ipynb":
            nb = nbformat.read(dest, as_version=4)
            for cell in nb.cells:
                cell.source = SOLUTIONS.get(cell.metadata.nbgrader.grade_id, cell.source)
            nbformat.write(nb, dest)

    monkeypatch.setattr(BaseTestApp, "_copy_file", copied)


def files() -> list[str]:
    """All of nbgrader's files of tests that can run here."""
    found = sorted(path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("test_*.py"))
    return [name for name in found if not name.startswith(tuple(LEFT_OUT))]


def outcomes(names: Sequence[str], folder: Path) -> dict[str, str]:
    """Run these files; how each test ended: passed, failed or skipped, with the first line why.

    Args:
        names: files below nbgrader/tests.
        folder: for what pytest and nbgrader write.
    """
    (folder / "config").mkdir(parents=True)
    (folder / "config" / "nbgrader_config.py").write_text(settings(), encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\n")
    paths = [str(FOLDER / name) for name in names]
    command = [
        *(sys.executable, "-m", "pytest", "-q", "-p", "tests.nbgraders_own", *paths),
        *("-p", "no:cacheprovider", f"--junitxml={folder / 'found.xml'}"),
        *("-c", str(folder / "pytest.ini"), f"--rootdir={FOLDER}", f"--basetemp={folder / 'tmp'}"),
    ]
    use_own_tools()
    environment = os.environ | {
        "JUPYTER_CONFIG_PATH": str(folder / "config"),
        "HOME": str(folder),
        "USER": os.environ.get("USER", "root"),
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    with (folder / "log").open("w") as log:
        subprocess.run(command, cwd=ROOT, env=environment, stdout=log, stderr=log, check=False)
    return read(folder / "found.xml")


def read(path: Path) -> dict[str, str]:
    """What pytest's report says of each test."""
    found: dict[str, str] = {}
    for case in ElementTree.parse(path).iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        state = "passed"
        for child in case:
            if child.tag in ("failure", "error", "skipped"):
                state = "skipped" if child.tag == "skipped" else "failed"
                state += ": " + (child.get("message") or "").partition("\n")[0]
        found[name] = state
    return found


def known() -> dict[str, str]:
    """The tests that fail, and why that is meant so."""
    with LIST.open(encoding="utf-8", newline="") as file:
        return {row["test"]: row["reason"] for row in csv.DictReader(file, delimiter="\t")}


def differences(found: Mapping[str, str]) -> list[str]:
    """What is not as the list says, a sentence each."""
    listed = known()
    failed = {name: state for name, state in found.items() if state.startswith("failed")}
    new = [f"{name} {state}" for name, state in failed.items() if name not in listed]
    old = [
        f"{name} is on the list and {found[name]}"
        for name in listed
        if name in found and name not in failed
    ]
    return new + old


def main() -> int:
    """Run them and say what is not as it should be."""
    parser = argparse.ArgumentParser(prog="python -m tests.nbgraders_own", description=__doc__)
    parser.add_argument("--part", action="store_true", help="only what the suite runs")
    parser.add_argument("files", nargs="*", help="below nbgrader/tests; by default all")
    options = parser.parse_args()
    names = options.files or (list(PART) if options.part else files())
    folder = Path(tempfile.mkdtemp(prefix="nbgraders-own-"))
    found = outcomes(names, folder)
    states = [state.partition(":")[0] for state in found.values()]
    print(", ".join(f"{states.count(state)} {state}" for state in sorted(set(states))))
    for sentence in (said := differences(found)):
        print(sentence)
    print(f"log: {folder / 'log'}")
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
