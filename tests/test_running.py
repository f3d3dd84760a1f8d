"""The page on running the course: each command on it is run by a test, and each name is read so."""

import json
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from autograder import __main__ as command_line
from autograder.classroom import unzip
from tests.conftest import ROOT
from tests.nbgraders_commands import nbgrader
from tests.small_course import NAME, RIGHT, hand_in, make_course, release, run
from tests.test_answers import SOURCE
from tests.zipping import zipped

PAGE = ROOT / "book" / "running.md"
TEXT = PAGE.read_text(encoding="utf-8")
SHELL = ("", "shell", "bash", "sh")  # languages of blocks that hold commands
HERE = "test_running.py::"
# How a command begins, and the test that runs it; of several that fit the longest counts.
RUN_BY = {
    "make release": "test_release.py::test_a_release_made_again_is_the_same_to_the_byte",
    "make grade": "test_grade_command.py",
    "make load": "test_cluster.py",
    "nbgrader release_assignment": "test_exchange_users.py",
    "nbgrader fetch_assignment": "test_exchange_users.py",
    "nbgrader submit": "test_exchange_users.py",
    "nbgrader fetch_feedback": "test_exchange_users.py",
    "nbgrader collect": "test_exchange_users.py",
    "nbgrader release_feedback": "test_exchange_users.py",
    "nbgrader zip_collect": f"{HERE}test_work_from_an_lms_is_collected_graded_and_brought_back",
    "autograder export": f"{HERE}test_work_from_an_lms_is_collected_graded_and_brought_back",
    "autograder watch": "test_watching.py::test_the_status_says_what_is_going_on",
    "autograder extend": "test_extensions.py",
    "autograder history": "test_extensions.py::test_everybodys_history_in_one_list_and_as_a_table",
    "autograder grade --no-report --shard": "test_shards.py",
    "autograder grade --on": "test_cluster.py",
    "autograder merge": "test_shards.py",
    "autograder report": "test_shards.py",
    "autograder requests": "test_requests.py",
    "autograder build": f"{HERE}test_a_chapter_of_ones_own_comes_to_be_by_the_pages_commands",
    "autograder mutants": f"{HERE}test_a_chapter_of_ones_own_comes_to_be_by_the_pages_commands",
    "autograder release": f"{HERE}test_a_chapter_of_ones_own_comes_to_be_by_the_pages_commands",
    "autograder check": f"{HERE}test_a_chapter_of_ones_own_comes_to_be_by_the_pages_commands",
    "dask scheduler": "test_cluster.py",
    "dask worker": "test_cluster.py",
    "while true; do dask worker": "test_cluster.py",
}
HUBS = "test_hub.py"  # runs what the section on a hub says, where there is one
OTHERS = ("pip install", "scp", "openssl", "export", "sudo", "systemctl", "adduser")  # not ours


def section(title: str) -> str:
    """A section of the page."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL)
    assert found, title
    return found[1]


def commands(text: str) -> Iterator[str]:
    """What stands in blocks of commands, without comments and the folder of programs."""
    fenced = re.compile(r"^```(\S*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    for language, block in fenced.findall(text):
        if language in SHELL:
            yield from filter(None, map(plain, block.splitlines()))
    for line in fenced.sub("", text).splitlines():
        if re.match(r" {4,}[\w.]", line) and (command := plain(line)):
            yield command


def plain(line: str) -> str:
    """A command as it is found in the table."""
    line = re.sub(r"\s+#\s.*", "", line).strip()
    return re.sub(r"^(?:\.venv/bin/)?(?:python -m (?=autograder|pip))?", "", line)


ALL = list(dict.fromkeys(commands(TEXT)))


def ran_by(command: str) -> str:
    """The test that runs a command; empty if nothing does."""
    found = [begin for begin in RUN_BY if f"{command} ".startswith(f"{begin} ")]
    return RUN_BY[max(found, key=len)] if found else ""


def test_the_page_has_commands():
    assert len(ALL) >= 30
    assert list(commands("x\n\n    .venv/bin/python -m autograder a  # b\n")) == ["autograder a"]
    assert list(commands("```shell\nmake b\n```\n```toml\nc = 1\n```\n")) == ["make b"]
    assert ran_by("autograder frobnicate") == "" == ran_by("nbgrader zip_collector x")


@pytest.mark.parametrize("command", ALL)
def test_a_command_of_the_page_is_run_by_a_test(command: str):
    if command.startswith(OTHERS) or command in list(commands(section("A hub"))):
        return
    file, _, test = ran_by(command).partition("::")
    assert file, f"no test in RUN_BY runs {command!r}"
    text = (ROOT / "tests" / file).read_text(encoding="utf-8")
    assert not test or f"def {test}(" in text
    program, name, *_ = [*command.split(), ""]
    if program in ("autograder", "nbgrader") and test == "":
        assert f'"{name}"' in text, f"{file} runs no {program} {name}"


@pytest.mark.parametrize("command", [one for one in ALL if one.startswith("autograder ")])
def test_a_command_of_the_grader_has_these_options(command: str):
    words = shlex.split(command)[1:]
    options = command_line._parser().parse_args(words)
    assert options.run.__name__ == words[0]


def test_what_the_hub_says_has_its_tests():
    assert not list(commands(section("A hub"))) or (ROOT / "tests" / HUBS).is_file()


def rows() -> list[list[str]]:
    """The table of names, without its head."""
    text = section("Submissions from an LMS")
    return [re.findall(r"`([^`]+)`", row) for row in re.findall(r"^\| \w.*`From.*$", text, re.M)]


@pytest.mark.parametrize("row", rows(), ids=[row[1] for row in rows()])
def test_a_name_that_a_system_writes_is_whose_the_page_says(row: list[str]):
    collector, name, student = row
    made = getattr(unzip, collector)(valid_ext=[".ipynb"])
    made._root = Path("/all")
    vars(made)["_released"] = {"03_attention"}
    found = made.collect(f"/all/{name}")
    assert (found["student_id"], found["file_id"]) == (student, "03_attention.ipynb")


def test_there_are_names_of_all_three_systems():
    assert {row[0] for row in rows()} == {"FromCanvas", "FromMoodle", "FromBlackboard"}


@pytest.mark.skipif(sys.platform != "linux", reason="grading needs Linux")
def test_work_from_an_lms_is_collected_graded_and_brought_back(tmp_path: Path):
    make_course(tmp_path)
    release(tmp_path)
    notebook = hand_in(tmp_path, "ada", RIGHT)
    member = "Anne Adamins_123_assignsubmission_file_/numbers.ipynb"
    archive = tmp_path / "downloaded" / NAME / "archive" / "all.zip"
    archive.parent.mkdir(parents=True)
    zipped(archive, **{member: notebook.read_bytes()})
    shutil.rmtree(tmp_path / "submitted")
    with (tmp_path / "nbgrader_config.py").open("a") as config:
        config.write(
            'c.ZipCollectApp.extractor_plugin = "autograder.classroom.unzip.SafeExtractor"\n'
        )
    collect, export = commands(section("Submissions from an LMS"))
    nbgrader(tmp_path, *collect.replace("03_attention", NAME).split()[1:])
    assert run(tmp_path, "grade") == 0
    assert run(tmp_path, *export.split()[1:]) == 0
    assert "Anne Adamins" in (tmp_path / "moodle.csv").read_text(encoding="utf-8-sig")
    assert "Anne Adamins" in (tmp_path / "grades.csv").read_text(encoding="utf-8-sig")


def test_a_chapter_of_ones_own_comes_to_be_by_the_pages_commands(tmp_path: Path):
    shutil.copy(ROOT / "nbgrader_config.py", tmp_path)
    folder = tmp_path / "solutions" / "17_my_topic"
    folder.mkdir(parents=True)
    (folder / "17_my_topic.py").write_text(SOURCE, encoding="utf-8")
    *making, check = commands(section("Your own exercise"))
    for command in making:
        assert run(tmp_path, *command.split()[1:]) == 0, command
    assert run(tmp_path, *check.split()[1:]) == 1, "nothing is answered yet"
    notebook = tmp_path / "exercises" / "17_my_topic" / "17_my_topic.ipynb"
    assert "HIDDEN" not in json.dumps(json.loads(notebook.read_text(encoding="utf-8")))
