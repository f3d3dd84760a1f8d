"""The contest: one budget for all, no answer in the sandbox, and nobody stops the others."""

import csv
import json
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from autograder.__main__ import main
from autograder.classroom import contest
from autograder.classroom.contest_entry import Budget, Outcome
from autograder.common.course import Course, CourseError
from autograder.isolation import machine

SECRET = "a word that only the right answers hold"
# A module of contests whose entries are programs: what they print is what they answer.
PLUG = """
    from pathlib import Path
    from types import SimpleNamespace
    PACKAGES, FILES = (), ("entry.py", "note.txt")
    def begin(settings, root):
        right = (root / "answers.txt").read_text().splitlines()
        def kind(names):
            if "entry.py" not in names:
                raise ValueError("hand in entry.py")
            return "a program"
        def score(said):
            assert len(said) == len(right)
            while said[0] == "score me for ever":
                pass
            if said[0] == "score me and die":
                raise RecursionError
            if said[0].removeprefix("score me ") in ("nan", "inf", "-inf"):
                return {"right": float(said[0].removeprefix("score me "))}
            return {"right": 100 * sum(map(str.__eq__, said, right)) / len(right)}
        given = {"questions.txt": "\\n".join(str(len(line)) for line in right).encode()}
        return SimpleNamespace(given=given, right=right, kind=kind, score=score)
    def enter(folder, *, seconds):
        names = {"folder": folder, "seconds": seconds}
        exec((folder / "entry" / "entry.py").read_text(), names)
        return names["said"]
"""
HALF = f"said = [{SECRET!r}, 'no']"
SPY = f"""
    import os
    from pathlib import Path
    found = []
    for top, _, files in os.walk({{top!r}}):
        for name in files:
            try:
                text = Path(top, name).read_text(errors="replace")
            except OSError:
                continue
            if name == "answers.txt" or {SECRET!r}.replace("word", "w" + "ord") in text:
                found += [line for line in text.splitlines()]
    said = (found + ["", ""])[:2]
"""
HOSTILE = {  # what it does: why it has no score
    "loops": ("while True: pass", "longer than the budget|of CPU"),
    "sleeps": ("import time\nwhile True: time.sleep(1000)", "longer than the budget"),
    "leaves": ("import os\nos._exit(0)", "exited with status 0; try it"),
    "dies": ("import os\nos.kill(os.getpid(), 11)", "killed by signal 11"),
    "raises": ("raise RuntimeError('\\x1b[2J on purpose')", r"RuntimeError: \\x1b\[2J on purpose"),
    "says_too_little": ("said = ['one']", "gave 1 lines for 2 questions"),
    "says_too_much": ("said = ['x' * (17 << 20), '']", "more text than a contest reads"),
    "lies": ("import os\nos.write(3, b'L' + b'\\xff' * 9)", "more text than a contest reads"),
    "mumbles": ("import os\nos.write(3, b'?\\0\\0\\0\\0')", "gave no reason"),
    "breathes": ("import os\nos.write(3, b'R\\0\\0\\0\\2 \\n')", "gave no reason"),
    "grows": ("said = ['x' * (8 << 30)]", "more memory"),
    "forks": (
        "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
        "budget|CPU|memory|killed|ended",
    ),
    "refuses": ("raise ValueError('=1+1')", "=1\\+1"),
}


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Course]:
    """A course whose contest gives three seconds of a processor."""
    if not machine.probe().namespaces:
        pytest.skip(" ".join(machine.probe().missing))
    root = tmp_path_factory.mktemp("course")
    (root / "program_contest.py").write_text(textwrap.dedent(PLUG))
    (root / "answers.txt").write_text(f"{SECRET}\nyes\n")
    (root / "nbgrader_config.py").write_text(
        "c = get_config()\nc.Contest.module = 'program_contest'\nc.Contest.minutes = 0.03\n"
        "c.Contest.answer_minutes = 0.02\nc.Contest.file_mb = 1\nc.Contest.memory_mb = 1024\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.path", [*sys.path])
        yield Course(root)


def hand_in(folder: Path, student: str, program: str) -> Path:
    """An entry; its file."""
    path = folder / student / "entry.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(program))
    return path


def by_student(places) -> dict[str, contest.Place]:
    return {place.student: place for place in places}


def test_no_entry_stops_the_others(course: Course, tmp_path: Path):
    hand_in(tmp_path, "ada", HALF)
    for name, (program, _) in HOSTILE.items():
        hand_in(tmp_path, name, program)
    hand_in(tmp_path, "zoe", HALF.replace("no", "yes"))
    places = contest.run(course, tmp_path)
    assert [place.student for place in places[:2]] == ["zoe", "ada"]
    assert places[0].outcome.scores == {"right": 100.0}
    assert places[1].outcome.scores == {"right": 50.0}
    found = by_student(places)
    for name, (_, words) in HOSTILE.items():
        assert found[name].rank is None, name
        assert re.search(words, found[name].outcome.failed), found[name]
    assert "\x1b" not in (tmp_path / contest.PAGE).read_text()


BURNS = "import time\nwhile time.process_time() < 0.5: pass\n"
SAYS = f"""
    import os, struct
    body = b"{SECRET}\\nno"
    os.write(3, struct.pack("!cI", b"L", len(body)) + body)
"""
BUSY = {  # half a second of a processor, and how it might go unseen
    "itself": BURNS + HALF,
    "ends_at_once": BURNS + textwrap.dedent(SAYS) + "os._exit(0)",
    "has_it_done": "import os, time\n"
    "if os.fork():\n    while True: time.sleep(0.01)\n" + BURNS + textwrap.dedent(SAYS),
    "had_it_done": "import os\nif os.fork() == 0:\n    if os.fork():\n        os._exit(0)\n"
    + textwrap.indent(BURNS + textwrap.dedent(SAYS), "    ")
    + "    os._exit(0)\nos.wait()\nimport time\nwhile True: time.sleep(0.01)",
}


@pytest.mark.parametrize("how", BUSY)
def test_the_table_has_all_the_time_that_an_entry_took(
    course: Course, tmp_path: Path, monkeypatch, how: str
):
    monkeypatch.setattr(Budget, "seconds", 600.0)  # on a busy machine it sleeps for long
    hand_in(tmp_path, "ada", BUSY[how])
    (place,) = contest.run(course, tmp_path)
    assert place.outcome.scores == {"right": 50.0}, place.outcome.failed
    assert place.outcome.seconds >= 0.4


def test_an_answer_that_takes_scoring_without_end_fails_alone(
    course: Course, tmp_path: Path, monkeypatch
):
    monkeypatch.setattr("autograder.classroom.contest_entry.SCORING", 1)
    hand_in(tmp_path, "ada", HALF)
    hand_in(tmp_path, "costly", "said = ['score me for ever', '']")
    hand_in(tmp_path, "fatal", "said = ['score me and die', '']")
    found = by_student(contest.run(course, tmp_path))
    assert found["ada"].outcome.scores == {"right": 50.0}
    assert found["costly"].outcome.failed == "what it said could not be scored"
    assert found["fatal"].outcome.failed == "what it said could not be scored"


@pytest.mark.parametrize("score", ["nan", "inf", "-inf"])
def test_a_score_that_is_no_finite_number_is_none(course: Course, tmp_path: Path, score: str):
    hand_in(tmp_path, "ada", HALF)
    hand_in(tmp_path, "odd", f"said = ['score me {score}', '']")
    hand_in(tmp_path, "zoe", HALF.replace("no", "yes"))
    places = contest.run(course, tmp_path)
    assert [(place.student, place.rank) for place in places] == [
        ("zoe", 1),
        ("ada", 2),
        ("odd", None),
    ]
    assert places[2].outcome.failed == f"what it said has no score: its right is {score}"


def test_two_runs_in_one_folder_do_not_meet(course: Course, tmp_path: Path):
    hand_in(tmp_path, "ada", HALF)
    code = "import sys\nfrom pathlib import Path\nfrom autograder.classroom import contest\n"
    code += "contest.opened = lambda course: print(flush=True) or sys.stdin.read()\n"
    code += "from autograder.common.course import Course\n"
    code += f"contest.run(Course(Path({str(course.root)!r})), Path({str(tmp_path)!r}))"
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout
        other.stdout.readline()
        with pytest.raises(CourseError, match=f"process {other.pid}.*is at work"):
            contest.run(course, tmp_path)
        other.kill()
    assert by_student(contest.run(course, tmp_path))["ada"].rank == 1


def test_an_entry_finds_no_answer(course: Course, tmp_path: Path):
    names: dict = {}
    exec(textwrap.dedent(SPY.format(top=str(course.root))), names)
    assert SECRET in names["said"]  # outside of the sandbox it finds them
    hand_in(tmp_path, "spy", SPY.format(top="/scratch"))
    hand_in(tmp_path, "spy_in_the_course", SPY.format(top=str(course.root)))
    hand_in(tmp_path, "spy_at_its_neighbours", SPY.format(top=str(tmp_path)))
    for place in contest.run(course, tmp_path):
        assert place.outcome.scores == {"right": 0.0}, place


def test_what_is_no_plain_file_of_its_size_is_refused(course: Course, tmp_path: Path):
    hand_in(tmp_path, "ada", HALF)
    large = hand_in(tmp_path, "large", HALF)
    os.truncate(large, 2_000_000)
    both = hand_in(tmp_path, "both", HALF)
    both.with_name("note.txt").touch()
    for path in (both, both.with_name("note.txt")):
        os.truncate(path, 600_000)
    link = hand_in(tmp_path, "link", HALF).parent / "note.txt"
    link.symlink_to(course.root / "answers.txt")
    pipe = hand_in(tmp_path, "pipe", HALF).parent / "note.txt"
    os.mkfifo(pipe)
    (tmp_path / "folder").symlink_to(tmp_path / "ada")
    (tmp_path / "nothing").mkdir()
    found = by_student(contest.run(course, tmp_path))
    assert found["ada"].rank == 1
    words = {
        "large": "entry.py is larger than 1 MB",
        "both": "its files are larger than 1 MB together",
        "link": "note.txt is a link, not a file",
        "pipe": "note.txt is a pipe, not a file",
        "folder": "its folder is a link",
        "nothing": "hand in entry.py",
    }
    for name, start in words.items():
        assert found[name].outcome.failed.startswith(start), found[name]


def test_a_second_run_scores_what_is_new(course: Course, tmp_path: Path, capsys):
    hand_in(tmp_path, "ada", HALF)
    hand_in(tmp_path, "bob", "raise ValueError('not yet')")
    contest.run(course, tmp_path)
    assert "1 of 2: ada" in capsys.readouterr().out
    hand_in(tmp_path, "bob", HALF)
    hand_in(tmp_path, "cy", HALF)
    assert all(place.rank for place in contest.run(course, tmp_path))
    said = capsys.readouterr().out
    assert "ada ..." not in said and "2 of 3: bob ..." in said and "3 of 3: cy ..." in said
    contest.run(course, tmp_path)
    assert "..." not in capsys.readouterr().out
    contest.run(course, tmp_path, again=True)
    assert "1 of 3: ada ..." in capsys.readouterr().out
    module = course.root / "program_contest.py"
    module.write_text(module.read_text() + "# another way to score\n")
    contest.run(course, tmp_path)
    assert "1 of 3: ada ..." in capsys.readouterr().out


def test_what_was_scored_by_other_settings_is_scored_anew(course: Course, tmp_path: Path, capsys):
    hand_in(tmp_path, "ada", HALF)
    contest.run(course, tmp_path)
    told = course.root / "nbgrader_config.py"
    before = told.read_text()
    try:
        told.write_text(before + "c.Contest.settings = {'decides': 'exact match'}\n")
        contest.run(course, tmp_path)
        contest.run(course, tmp_path)
    finally:
        told.write_text(before)
    said = "two scores would stand in one list, each as another one decides"
    assert capsys.readouterr().out.count("ada ...") == 2, said


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "[" * 100_000,
        '{"format": 1, "all": {"ada": {"key": "", "outcome": {"scores": null}}}}',
        '{"format": 1, "all": {"ada": {"key": "", "outcome": {"scores": {"right": "x"}}}}}',
    ],
    ids=len,
)
def test_what_was_kept_and_is_damaged_is_one_sentence(course: Course, tmp_path: Path, text: str):
    hand_in(tmp_path, "ada", HALF)
    (tmp_path / contest.KEPT).write_text(text)
    with pytest.raises(CourseError, match=r"is damaged .* remove it"):
        contest.run(course, tmp_path)


def test_what_the_machine_may_have_ended_is_tried_again(course: Course, tmp_path: Path, capsys):
    hand_in(tmp_path, "ada", "import os\nos.kill(os.getpid(), 9)")
    contest.run(course, tmp_path)
    contest.run(course, tmp_path)
    assert capsys.readouterr().out.count("ada ...") == 2


def test_equals_stand_by_the_next_score_then_by_time():
    outcomes = {
        "slow": Outcome("", {"first": 5.0, "then": 1.0}, 9.0),
        "quick": Outcome("", {"first": 5.0, "then": 1.0}, 2.0),
        "best": Outcome("", {"first": 5.0, "then": 2.0}, 99.0),
        "broken": Outcome(failed="why"),
    }
    places = contest.ranked(outcomes)
    assert [place.student for place in places] == ["best", "quick", "slow", "broken"]
    assert [place.rank for place in places] == [1, 2, 3, None]


def test_nothing_on_the_leaderboard_runs_or_is_a_formula(tmp_path: Path):
    outcomes = {
        "<script>a</script>": Outcome("k", {"BLEU": 1.0}, 1.0),
        "=2+2": Outcome(failed="<img src=x onerror=alert(1)>"),
        "-3+3": Outcome(failed="@SUM(A1)"),
    }
    contest.write(tmp_path, Budget(), contest.ranked(outcomes))
    page = (tmp_path / contest.PAGE).read_text()
    assert "<script" not in page and "<img" not in page and "Content-Security-Policy" in page
    for row in csv.reader((tmp_path / contest.TABLE).read_text().splitlines()):
        assert not any(cell[:1] in ("=", "+", "-", "@") for cell in row)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("", "names no contest; add a line"),
        ("c.Contest.module = 'no_such_module'", "cannot be imported"),
        ("c.Contest.module = 'json'", "has no PACKAGES"),
        ("c.Contest.module = 'json'\nc.Contest.minuets = 3", "perhaps minutes was meant"),
        ("c.Contest.module = 'json'\nc.Contest.minutes = 0", "minutes of .* is 0; write a number"),
    ],
)
def test_settings_that_describe_no_contest_are_one_sentence(
    tmp_path: Path, monkeypatch, capsys, settings: str, words: str
):
    (tmp_path / "nbgrader_config.py").write_text(f"c = get_config()\n{settings}\n")
    (tmp_path / "class" / "ada").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    with pytest.raises(CourseError, match=words):
        contest.opened(Course(tmp_path))
    assert main(["contest", "class"]) == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_a_folder_that_holds_no_entry_is_said(tmp_path: Path):
    (tmp_path / "nbgrader_config.py").write_text("")
    with pytest.raises(CourseError, match="holds no entry"):
        contest.run(Course(tmp_path), tmp_path)
    with pytest.raises(CourseError, match="There is no folder"):
        contest.run(Course(tmp_path), tmp_path / "none")


def test_what_lies_in_no_students_folder_is_named(course: Course, tmp_path: Path, capsys):
    hand_in(tmp_path, "ada", HALF)
    for name in ("kim.zip", "\x1b[2Jentry.py"):
        (tmp_path / name).touch()
    hand_in(tmp_path, ".bo", HALF)
    for _ in range(2):  # the second time the contest's own files are there
        assert [place.student for place in contest.run(course, tmp_path)] == ["ada"]
        said = capsys.readouterr().out
        assert "no entry: kim.zip lies in no student's folder" in said
        assert "no entry: .bo: its name begins with a dot" in said
        assert said.count("no entry: ") == 3 and "\x1b" not in said


def test_what_is_kept_is_plain_text(course: Course, tmp_path: Path):
    hand_in(tmp_path, "ada", HALF)
    contest.run(course, tmp_path)
    told = json.loads((tmp_path / contest.KEPT).read_text())
    assert told["all"]["ada"]["outcome"]["scores"] == {"right": 50.0}
    assert SECRET not in json.dumps(told)


@pytest.mark.parametrize("name", [contest.KEPT, contest.PAGE, contest.TABLE, contest.LOCK])
@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_what_is_called_as_a_file_of_the_contest_is_named_before_anything_is_scored(
    course: Course, tmp_path: Path, name: str, make: Callable[[Path], None]
):
    hand_in(tmp_path, "ada", HALF)
    make(tmp_path / name)
    with pytest.raises(CourseError, match=f"{name} could not be written or read .it is a "):
        contest.run(course, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"ada", name}


KEPT = [
    {"scores": {"right": 10**400}},
    {"seconds": "long"},
    {"failed": 5},
    {"kind": ["a program"]},
    {"scores": {"right": "many"}},
    {"in_doubt": "no"},
]


@pytest.mark.parametrize("fields", KEPT)
def test_what_was_kept_and_is_of_another_kind_is_one_sentence(
    course: Course, tmp_path: Path, fields: dict[str, object]
):
    hand_in(tmp_path, "ada", HALF)
    contest.run(course, tmp_path)
    told = json.loads((tmp_path / contest.KEPT).read_text())
    told["all"]["ada"]["outcome"] |= fields
    (tmp_path / contest.KEPT).write_text(json.dumps(told))
    with pytest.raises(CourseError, match=r"is damaged .*remove it to score all entries again"):
        contest.run(course, tmp_path)


def test_entries_with_scores_of_other_names_stand_in_one_table(course: Course, tmp_path: Path):
    for student in ("ada", "bela"):
        hand_in(tmp_path, student, HALF)
    contest.run(course, tmp_path)
    told = json.loads((tmp_path / contest.KEPT).read_text())
    told["all"]["ada"]["outcome"]["scores"] = {"other": 1}
    (tmp_path / contest.KEPT).write_text(json.dumps(told))
    places = contest.run(course, tmp_path)
    assert {name for one in places for name in one.outcome.scores} == {"other", "right"}


@pytest.mark.parametrize("name", ["", ".x", "a b", "broken"])
def test_a_module_that_cannot_be_imported_is_one_sentence(tmp_path: Path, name: str):
    (tmp_path / "nbgrader_config.py").write_text(f"get_config().Contest.module = {name!r}\n")
    (tmp_path / "broken.py").write_text("def begin(:\n")
    with pytest.raises(CourseError, match="cannot be imported"):
        contest.opened(Course(tmp_path))


@pytest.mark.parametrize(
    "begin",
    [
        "open(root / 'nowhere')",
        "settings['data']",
        "1 + settings",
        "None",
        "SimpleNamespace(given={'a': 'text'}, right=['yes'])",
        "SimpleNamespace(given={}, right=3)",
    ],
)
def test_a_module_that_gives_no_contest_is_one_sentence(tmp_path: Path, monkeypatch, begin: str):
    monkeypatch.setattr("sys.path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "gives_none", raising=False)
    (tmp_path / "nbgrader_config.py").write_text("get_config().Contest.module = 'gives_none'\n")
    (tmp_path / "gives_none.py").write_text(
        "from types import SimpleNamespace\nPACKAGES, FILES, enter = (), (), print\n"
        f"def begin(settings, root):\n    return {begin}\n"
    )
    with pytest.raises(CourseError, match=r"cannot begin: gives_none\.begin gives no contest"):
        contest.opened(Course(tmp_path))


def test_files_of_which_a_module_cannot_say_what_they_are_stop_nobody_else(
    course: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    hand_in(tmp_path, "ada", HALF)
    path = hand_in(tmp_path, "bela", HALF)
    path.rename(path.with_name("note.txt"))

    def kind(names: list[str]) -> str:
        return {"entry.py": "a program"}[names[0]]

    arena = contest.opened(course)
    monkeypatch.setattr(arena.contest, "kind", kind)
    monkeypatch.setattr(contest, "opened", lambda course: arena)
    places = by_student(contest.run(course, tmp_path))
    assert places["ada"].rank == 1
    assert "cannot say what it is (KeyError: 'note.txt')" in places["bela"].outcome.failed
