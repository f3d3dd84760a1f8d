"""The page on running the course: each command on it is run, each name is read as it says."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from autograder import __main__ as command_line
from autograder.classroom import unzip
from tests import hubs, load_drill
from tests.conftest import ROOT
from tests.dask_cluster import SETTINGS, free_port
from tests.hubs import wait_for
from tests.nbgraders_commands import nbgrader
from tests.small_course import (
    NAME,
    RIGHT,
    at_home,
    by_hand,
    hand_in,
    make_class,
    make_course,
    release,
    run,
)
from tests.test_answers import SOURCE
from tests.test_requests import ask, listed
from tests.watched import Exchange
from tests.zipping import zipped

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="grading needs Linux")
PAGE = ROOT / "book" / "running.md"
TEXT = PAGE.read_text(encoding="utf-8")
SHELL = ("", "shell", "bash", "sh")  # languages of blocks that hold commands
OURS = ("autograder", "tests.load_drill")
CHAPTER, OWN = "03_attention", "17_my_topic"


def section(title: str) -> str:
    """A section of the page."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL)
    assert found, title
    return found[1]


def commands(text: str) -> Iterator[str]:
    """What stands in blocks of commands, without comments and the folder of programs."""
    text = re.sub(r"\\\n\s*", "", text)  # a line that is continued
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
TITLES = [title for title in re.findall(r"^## (.*)$", TEXT, re.M) if [*commands(section(title))]]


class Said:
    """The commands of one section of the page, for a test that runs them all."""

    def __init__(self, title: str) -> None:
        """Nothing has been run."""
        self.left = list(dict.fromkeys(commands(section(title))))

    def take(self, begin: str, **instead: str) -> list[str]:
        """The next command that begins so, in words, of which some are replaced."""
        found = next((one for one in self.left if f"{one} ".startswith(f"{begin} ")), None)
        assert found, f"there is no {begin!r} in {self.left}"
        self.left.remove(found)
        swap = {CHAPTER: NAME} | {one.replace("__", "-"): to for one, to in instead.items()}
        return [swap.get(word, word) for word in shlex.split(found)]

    def own(self, root: Path, begin: str, **instead: str) -> None:
        """Run the next of the grader's commands that begins so."""
        assert run(root, *self.take(f"autograder {begin}".strip(), **instead)[1:]) == 0


@pytest.fixture
def said(request: pytest.FixtureRequest) -> Iterator[Said]:
    """The commands of a section; whatever a test does not run of them fails it."""
    found = Said(request.param)
    yield found
    assert not found.left, f"nothing runs {found.left}"


def of_section(title: str) -> pytest.MarkDecorator:
    """Marks the test that runs all commands of a section."""
    return pytest.mark.parametrize("said", [title], indirect=True)


def recipe(words: Sequence[str]) -> list[list[str]]:
    """What `make` would run of Python's modules; all of it, where it is to release."""
    stale = ["-W", "nbgrader_config.py"] if "release" in words else []
    command = [*words, "-n", *stale]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    lines = [shlex.split(line.lstrip("@")) for line in done.stdout.splitlines()]
    return [line[2:] for line in lines if line[1:2] == ["-m"] and line[2] in OURS]


def test_commands_are_found():
    assert len(ALL) >= 30
    assert list(commands("x\n\n    .venv/bin/python -m autograder a  # b\n")) == ["autograder a"]
    assert list(commands("```shell\nmake b\n```\n```toml\nc = 1\n```\n")) == ["make b"]
    before = TEXT[: TEXT.index("\n## ")]
    assert not list(commands(before)), "a command in no section is run by nothing"


@pytest.mark.parametrize("title", TITLES)
def test_each_section_with_commands_has_the_test_that_runs_them(title: str):
    marks = [
        mark.args
        for test in globals().values()
        for mark in getattr(test, "pytestmark", [])
        if mark.name == "parametrize"
    ]
    assert ("said", [title]) in marks


def test_a_command_that_is_not_run_is_noticed():
    said = Said("Questions about a grade")
    with pytest.raises(AssertionError, match="there is no 'autograder request' in"):
        said.take("autograder request")
    assert said.take("autograder requests") == ["autograder", "requests"]
    assert len(said.left) == 1, "the fixture fails on it"


@pytest.mark.parametrize("command", [one for one in ALL if one.startswith("autograder ")])
def test_a_command_of_the_grader_has_these_options(command: str):
    words = shlex.split(command)[1:]
    options = command_line._parser().parse_args(words)
    assert options.run.__name__ == words[0]


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


def own_course(root: Path) -> None:
    """This course's settings, and one chapter of one's own."""
    folder = root / "solutions" / OWN
    folder.mkdir(parents=True)
    shutil.copy(ROOT / "nbgrader_config.py", root)
    (folder / f"{OWN}.py").write_text(SOURCE, encoding="utf-8")


@LINUX
@of_section("Submissions through nbgrader's exchange")
def test_work_goes_through_the_exchange_and_back(said: Said, tmp_path: Path):
    root, home, shared = (tmp_path / name for name in ("course", "ada", "exchange"))
    own_course(root)
    home.mkdir()
    shared.mkdir(mode=0o777)
    with (root / "nbgrader_config.py").open("a") as config:
        config.write(f'c.Exchange.root = "{shared}"\nc.ExchangeCollect.check_owner = False\n')

    def teacher(begin: str) -> None:
        nbgrader(root, *(OWN if word == NAME else word for word in said.take(begin)[1:]))

    def student(command: str) -> None:
        words = said.take(f"nbgrader {command}")
        assert words[2:] == [NAME, "--course=graded-transformer"]
        at_home(home, shared, command, "ada", OWN, "graded-transformer")

    for words in recipe(said.take("make release")):
        assert run(root, *words[1:]) == 0
    teacher("nbgrader release_assignment")
    student("fetch_assignment")
    student("submit")
    teacher("nbgrader collect")
    for words in recipe(said.take("make grade")):
        assert run(root, *words[1:]) == 0
    teacher("nbgrader release_feedback")
    student("fetch_feedback")
    (page,) = home.glob(f"{OWN}/feedback/*/{OWN}.html")
    assert "0 of 3" in page.read_text(encoding="utf-8")


@LINUX
@of_section("Submissions from an LMS")
def test_work_from_an_lms_is_collected_graded_and_brought_back(said: Said, tmp_path: Path):
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
    nbgrader(tmp_path, *said.take("nbgrader zip_collect")[1:])
    assert run(tmp_path, "grade") == 0
    said.own(tmp_path, "export")
    assert "Anne Adamins" in (tmp_path / "moodle.csv").read_text(encoding="utf-8-sig")
    assert "Anne Adamins" in (tmp_path / "grades.csv").read_text(encoding="utf-8-sig")


@LINUX
@of_section("Grading as work arrives")
def test_a_watcher_grades_what_arrives(said: Said, tmp_path: Path, capsys: Any):
    exchange = Exchange(tmp_path)
    exchange.submit("ada", RIGHT)
    with running([sys.executable, "-m", *said.take("autograder watch")], exchange.root):
        wait_for(lambda: exchange.page("ada"), "the feedback is released")
        said.own(exchange.root, "watch --status")
    assert "ada" in capsys.readouterr().out


@LINUX
@of_section("Late work and extensions")
def test_more_time_is_given_and_told(said: Said, tmp_path: Path):
    make_class(tmp_path)
    assert run(tmp_path, "grade") == 0
    said.own(tmp_path, "extend")
    said.own(tmp_path, "history")
    assert "extension" in (tmp_path / "audit.csv").read_text(encoding="utf-8-sig")


@of_section("A hub")
def test_a_hub_is_made_of_what_is_there_and_its_own_commands_run(said: Said, tmp_path: Path):
    # what a system brings along
    for program in ("useradd", "install", "install", "cp", "cp", "python3", "unzip"):
        said.take(f"sudo {program}")
    said.take("sudo update-ca-certificates")
    said.take("sudo -u grader git clone")
    tasks = said.take("sudo -u grader make -C /srv/course")[6:]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert tasks and all(f"\n{task}: " in makefile for task in tasks)
    pip = said.take("sudo /opt/hub/.venv/bin/pip install")
    files = [word.removeprefix("/srv/course/") for word in pip if word.startswith("/srv/course/")]
    assert len(files) == 2 and all((ROOT / name).is_file() for name in files)
    said.take("sudo openssl")
    assert all(path.is_file() for path in hubs.certified(tmp_path)), "by the page's command"
    said.take("cd")
    # test_hub.py has `prepare` and `run` by its site, and asks it to `check`
    ran = Path(hubs.__file__).read_text("utf-8") + (ROOT / "tests/test_hub.py").read_text("utf-8")
    for command in ("prepare", "check", "run"):
        said.take(f"sudo hub/.venv/bin/python -m hub {command}")
        assert f'"-m", "hub", "{command}"' in ran


@of_section("PostgreSQL")
def test_the_driver_that_is_installed_is_the_one_of_the_address(said: Said):
    _, _, name = said.take("pip install")
    assert f"postgresql+{name.removesuffix('-binary')}://" in section("PostgreSQL")


@LINUX
@of_section("Several machines by ssh")
def test_parts_of_a_class_come_home(said: Said, tmp_path: Path):
    home, one, two = (tmp_path / name for name in ("home", "one", "two"))
    make_class(home)
    for other in (one, two):
        shutil.copytree(home, other)
        config = other / "nbgrader_config.py"
        config.write_text(config.read_text().replace(str(home), str(other)))
        said.own(other, "grade --no-report --shard")
    for other in (one, two):
        _, there, here = said.take("scp")
        assert there.startswith(f"{other.name}:course/")
        shutil.copy(other / there.rpartition("/")[2], home / here)
    said.own(home, "merge")
    said.own(home, "report")
    assert "ada" in (home / "grades.csv").read_text(encoding="utf-8-sig")


@contextmanager
def running(command: list[str], where: Path, **more: str) -> Iterator[None]:
    """Inside, a command runs; at the end nothing of what it has started."""
    paths = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    process = subprocess.Popen(
        command,
        cwd=where,
        env={**os.environ, **more, "PATH": paths},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@LINUX
@of_section("A cluster")
def test_a_cluster_is_started_by_hand_in_the_open_and_by_certificates(said: Said, tmp_path: Path):
    root = tmp_path / "course"
    make_class(root)
    files = [word for word in said.take("pip install") if word.endswith(".txt")]
    assert len(files) == 4 and all((ROOT / name).is_file() for name in files)
    settings = dict(word.split("=") for word in said.take("export")[1:])
    assert settings == SETTINGS
    grade_on_cluster(said, root, "dask", "tcp", "while true; do dask worker", settings)
    for _ in range(3):
        subprocess.run(said.take("openssl"), cwd=root, check=True, capture_output=True)
    for _ in range(3):
        name, _, file = said.take("export")[1].partition("=")
        settings[name] = file
    assert run(root, "grade") == 0, "what was graded on a cluster is graded"
    shutil.rmtree(root / "submitted" / "bela")
    hand_in(root, "emil", RIGHT)
    grade_on_cluster(said, root, "tls", "tls", "dask worker", settings)


def grade_on_cluster(
    said: Said, root: Path, on: str, scheme: str, worker: str, settings: dict[str, str]
) -> None:
    """Start a scheduler and its worker by the page's commands, and grade by its command."""
    port = str(free_port())
    here = f"127.0.0.1:{port}"

    def there(words: list[str]) -> list[str]:
        swap = {"10.0.0.5": "127.0.0.1", "4": "1"}
        return [swap.get(word, word).replace("10.0.0.5:8786", here) for word in words]

    scheduler = there(said.take("dask scheduler"))
    if "--host" not in scheduler:
        scheduler += ["--host", f"{scheme}://127.0.0.1"]
    text = " ".join(there(said.take(worker)))
    grade = there(said.take(f"autograder grade --on {on}://10.0.0.5:8786"))
    before = (root / "gradebook.journal.jsonl").read_bytes() if on == "tls" else b""
    with ExitStack() as stack:
        stack.enter_context(running([*scheduler, "--port", port], root, **settings))
        stack.enter_context(running(["sh", "-c", text], root, **settings))
        command = [sys.executable, "-m", *grade]
        done = subprocess.run(
            command, cwd=root, env={**os.environ, **settings}, capture_output=True, text=True
        )
    assert done.returncode == 0, done.stderr
    assert (root / "gradebook.journal.jsonl").read_bytes() != before


@of_section("Ten thousand submissions")
def test_the_load_has_these_options(said: Said):
    # test_load_drill.py runs it, with three
    ((module, *words),) = recipe(said.take("make load"))
    assert module == load_drill.__name__
    assert load_drill.read_options(words).students == 10_000
    ((module, *words),) = recipe(said.take("make load"))
    options = load_drill.read_options(words)
    assert (options.students, options.kills) == (300, 5) and options.plot


@LINUX
@of_section("Questions about a grade")
def test_a_question_is_listed_and_answered(said: Said, tmp_path: Path, capsys: Any):
    make_course(tmp_path)
    release(tmp_path)
    cell = re.search(r"```md\n(.*?)```", section("Questions about a grade"), re.S)
    assert cell
    ask(tmp_path, "ada", cell[1])
    assert run(tmp_path, "grade") == 0
    capsys.readouterr()
    said.own(tmp_path, "requests")
    (number,) = re.findall(r"\b[0-9a-f]{10}\b", capsys.readouterr().out)
    said.own(tmp_path, "requests 3f2a91c0de --answer", **{"3f2a91c0de": number})
    said_now = (tmp_path / "feedback" / "ada" / NAME / "numbers.html").read_text(encoding="utf-8")
    assert "the point is yours" in said_now
    assert number in listed(tmp_path, capsys, "--answered")


@LINUX
@of_section("Feedback after grading by hand")
def test_points_by_hand_reach_the_student(said: Said, tmp_path: Path):
    exchange = Exchange(tmp_path)
    exchange.submit("ada", RIGHT | {"why": "Because."})
    nbgrader(exchange.root, "collect", NAME)
    assert run(exchange.root, "grade") == 0
    by_hand(exchange.root, "ada", 2)
    said.own(exchange.root, "report")
    nbgrader(exchange.root, *said.take("nbgrader release_feedback")[1:])
    assert "8 of 17" in exchange.page("ada")


@of_section("Your own exercise")
def test_a_chapter_of_ones_own_comes_to_be_by_the_pages_commands(said: Said, tmp_path: Path):
    own_course(tmp_path)
    for command in ("build", "mutants", "release"):
        said.own(tmp_path, command)
    assert run(tmp_path, *said.take("autograder check")[1:]) == 1, "nothing is answered yet"
    notebook = tmp_path / "exercises" / OWN / f"{OWN}.ipynb"
    assert "HIDDEN" not in json.dumps(json.loads(notebook.read_text(encoding="utf-8")))
