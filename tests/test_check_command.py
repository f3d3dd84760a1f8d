"""The student's own check: every visible test in words, whatever the other cells do."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from autograder.authoring.source import read_source
from autograder.checking import check, runner
from autograder.checking.allowed import not_allowed
from autograder.common import handed_out
from autograder.common.course import Course, CourseError
from tests.conftest import CHAPTERS, ROOT

STUB = "# YOUR CODE HERE\nraise NotImplementedError('not answered yet')"


def cell(kind: str, source: str, name: str = "", points: float = 0) -> dict[str, Any]:
    """A cell as a release has it."""
    marks = {
        "grade": kind in ("test", "manual"),
        "solution": kind in ("solution", "manual"),
        "grade_id": name,
        "points": points,
    }
    return {
        "cell_type": "markdown" if kind in ("text", "manual") else "code",
        "metadata": {"nbgrader": marks} if name else {},
        "source": source,
    }


def notebook(*answers: str) -> dict[str, Any]:
    """Questions 1.1, 1.2 ...: each wants a function fN that doubles, and has a test of 2 points."""
    cells = []
    for n, answer in enumerate(answers, 1):
        cells += [
            cell("text", f"# 1\n## 1.{n} Double {n}   (2 points, about 5 minutes)\nText."),
            cell("solution", answer, f"double-{n}"),
            cell("test", f"assert f{n}(2) == 4, 'twice 2 is 4'", f"double-{n}-values", 2),
        ]
    cells.append(cell("manual", "YOUR ANSWER HERE", "why", 3))
    return {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def right(n: int) -> str:
    """A right answer."""
    return f"def f{n}(x):\n    return 2 * x"


def write(folder: Path, content: dict[str, Any], name: str = "my.ipynb") -> Path:
    """Save a notebook."""
    path = folder / name
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


@pytest.fixture
def said(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """A function: the exit status and the text of checking a notebook."""

    def checked(content: dict[str, Any], seconds: float = 60) -> tuple[int, str]:
        status = check.run(write(tmp_path, content), seconds)
        return status, " ".join(capsys.readouterr().out.split())

    return checked


def test_what_is_run_to_be_looked_at_is_not_run_where_nobody_looks(said):
    content = notebook(right(1))
    look = "from lab.predict import watched\nif watched():\n    raise RuntimeError('it was run')"
    content["cells"].insert(2, cell("code", look))
    status, text = said(content)
    assert (status, "it was run" in text) == (0, False)


def test_a_right_notebook_passes_and_hears_of_hidden_tests(said):
    status, text = said(notebook(right(1), right(2)))
    assert status == 0
    assert text.startswith("my.ipynb: 2 of 2 visible tests pass")
    assert "1.1 Double 1 ok double-1-values" in text
    assert "hand why: not answered yet" in text
    assert "1.2 Double 2 2 2 3 total 4 4 3" in text, "within reach, of, by hand"
    assert "hidden tests run too" in text


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (STUB, "Not answered yet."),
        (f"def f1(x):\n    {STUB.splitlines()[1]}", "Not answered yet."),
        ("", "The answer is missing"),
        ("def f1(x):\n    return 3 * x", "twice 2 is 4"),
        ("def f1(x):\n    y = x\n    return y.size", "stopped with AttributeError"),
        ("def f1(x):\n    y = x\n    return y.size", "(line 3 of your answer: `return y.size`)"),
        ("def f1(x, y):\n    return 2 * x", "missing 1 required positional argument"),
        ("def f1(x)\n    return 2 * x", "stopped on line 1 (`def f1(x)`) with SyntaxError"),
        ("import nowhere_at_all", "with ModuleNotFoundError: No module named 'nowhere_at_all'"),
        ("def f1(x):\n    return int(input())", "input() waits for a person"),
        ("raise SystemExit(0)", "stopped on line 1 (`raise SystemExit(0)`) with SystemExit: 0"),
        ("def f1(x):\n    import os\n    os._exit(3)", "ended the process in which it was tested"),
        ("import os\nos._exit(0)", "The cell double-1 ended Python: it left with 0."),
        ("class E(Exception):\n    __str__ = None\nraise E()", "stopped on line 3"),
    ],
)
def test_a_broken_answer_costs_its_own_question_only(said, answer: str, words: str):
    status, text = said(notebook(answer, right(2)))
    assert status == 1
    assert text.startswith("my.ipynb: 1 of 2 visible tests pass")
    assert "ok double-2-values" in text
    assert words in text
    assert "1.1 Double 1 0 2 0" in text


@pytest.mark.parametrize("answer", ["while True: pass", "def f1(x):\n    while True: pass"])
def test_an_answer_that_hangs_is_ended_and_the_others_go_on(said, answer: str):
    status, text = said(notebook(right(1), answer.replace("f1", "f2"), right(3)), seconds=5)
    assert status == 1
    assert "2 of 3 visible tests pass" in text
    assert "stopped after 5 s" in text


@pytest.mark.parametrize(
    "answer",
    [
        "print('{\"ok\": false}', flush=True)",
        "import os; os.write(1, b'noise\\n'); os.system('echo noise')",
        "import sys; sys.stdout.close(); sys.stderr = None",
        "import warnings; warnings.warn('careful')",
        "%time x = 1",
        "import asyncio\nawait asyncio.sleep(0)",
        "get_ipython().run_line_magic('time', 'x = 1')",
        "exec('def f2(x): return 2 * x')",
        "import os; os.chdir('/')",
        "%matplotlib inline",
        "import json; json.dumps = json.loads = None",
        "import os; os._exit = os.fstat = os.getpid = None",
        "import os; os.fork()",
        "import os; os.fork() and os.fork()",
    ],
)
def test_what_a_cell_prints_or_does_is_no_fault(said, answer: str):
    status, text = said(notebook(f"{answer}\n{right(1)}", right(2)))
    assert (status, text[:41]) == (0, "my.ipynb: 2 of 2 visible tests pass 1.1 D")


@pytest.mark.parametrize(
    "last",
    [
        "import math\nmath.factorial(200)",
        "class N(float):\n    def __float__(self): raise ValueError\nN(3)",
        "class N(int):\n    __float__ = None\nN(3)",
        "class N:\n    __class__ = float\nN()",
        "class N:\n    __class__ = property(lambda self: 1 / 0)\nN()",
    ],
)
def test_whatever_number_a_cell_ends_in_it_has_run(said, last: str):
    status, text = said(notebook(f"{right(1)}\n{last}", right(2)))
    assert (status, text[:41]) == (0, "my.ipynb: 2 of 2 visible tests pass 1.1 D")


@pytest.mark.parametrize("call", ["os.closerange(3, 200)", "os.close(3)"])
@pytest.mark.skipif(os.name != "posix", reason="files have such numbers on POSIX alone")
def test_a_cell_that_closes_what_is_not_its_own_is_left_out_and_named(said, call: str):
    status, text = said(notebook(f"import os\n{right(1)}\n{call}", right(2), right(3)))
    assert status == 1
    assert text.startswith("my.ipynb: 2 of 3 visible tests pass")
    assert "The cell double-1 ended Python: it closed files that it did not open." in text


WRITES = """import os
for file in range(3, 20):
    try:
        os.write(file, {line})
    except OSError:
        pass
"""


@pytest.mark.parametrize(
    "line",
    [
        r"b'hello\n'",
        "b'hello'",
        r"""b'{"ok": true}\n'""",
        r"""b'{"ready": true}\n'""",
        r"b'[]\n'",
        r"b'[' * 200_000 + b'\n'",
        r"b'\xff\n'",
    ],
)
@pytest.mark.skipif(os.name != "posix", reason="files have such numbers on POSIX alone")
def test_a_cell_that_writes_to_what_is_not_its_own_is_left_out_and_named(said, line: str):
    status, text = said(notebook(right(1), WRITES.format(line=line) + right(2), right(3)))
    assert status == 1
    assert text.startswith("my.ipynb: 2 of 3 visible tests pass")
    assert f"The cell double-2 ended Python: {check.WROTE} It was left out." in text


def test_what_python_prints_when_it_starts_is_no_cells(
    said, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "sitecustomize.py").write_text("print('hello\\n[]\\nwelcome', end='', flush=True)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert said(notebook(right(1)))[0] == 0


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            "import asyncio\nasyncio.AbstractEventLoop().time()",
            "stopped on line 2 (`asyncio.AbstractEventLoop().time()`) with NotImplementedError",
        ),
        (
            "def f1(x):\n    import asyncio\n    return asyncio.AbstractEventLoop().time()",
            "Your code stopped with NotImplementedError",
        ),
    ],
)
def test_a_notimplementederror_of_a_library_is_told_and_no_untouched_answer(
    said, answer: str, words: str
):
    status, text = said(notebook(answer, right(2)))
    assert (status, text[:35]) == (1, "my.ipynb: 1 of 2 visible tests pass")
    assert words in text and "Not answered yet" not in text


def test_modules_beside_the_notebook_can_be_imported(said, tmp_path: Path):
    (tmp_path / "mine.py").write_text(right(1))
    assert said(notebook("from mine import f1"))[0] == 0


def test_a_test_that_ends_in_a_number_gives_that_many_points(said):
    content = notebook(right(1))
    content["cells"][2]["source"] = "1.5 if f1(2) == 4 else 0"
    status, text = said(content)
    assert "ok double-1-values: 1.5 of 2 points" in text
    assert status == 0


def test_a_test_that_ends_in_no_number_gives_no_points(said):
    content = notebook(right(1))
    content["cells"][2]["source"] = "float('nan')"
    assert "ok double-1-values: 0 of 2 points" in said(content)[1]


def test_a_claim_is_one_also_where_python_is_told_to_leave_claims_out(
    said, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PYTHONOPTIMIZE", "1")
    assert said(notebook("def f1(x):\n    return x"))[0] == 1


def test_a_cell_that_is_there_twice_is_run_twice(said):
    content = notebook(right(1))
    content["cells"] += content["cells"][1:3]
    status, text = said(content)
    assert status == 0
    assert "ok double-1-values (again, cell 6)" in text


def test_a_byte_order_mark_does_no_harm(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "my.ipynb"
    path.write_text(json.dumps(notebook(right(1))), encoding="utf-8-sig")
    assert check.main([str(path)]) == 0
    path.write_text(json.dumps(notebook(right(1))), encoding="utf-16")
    assert check.main([str(path)]) == 0
    assert "Jupyter writes UTF-8" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("no.ipynb", None, "does not exist; give the path"),
        (f"{'n' * 300}.ipynb", None, "cannot be opened (File name too long)"),
        ("folder", "folder", "is a folder; name a notebook in it (it holds none)"),
        ("my.py", "print()", "is not a notebook; name a file that ends in .ipynb"),
        ("my.ipynb", "", "is not a notebook (it is no JSON text); open it in Jupyter and save it"),
        ("my.ipynb", "[1]", "it holds no list of cells"),
        ("my.ipynb", "[" * 99999, "nested too deep"),
        ("my.ipynb", '{"cells": []}', "holds no tests; is it the course's notebook?"),
    ],
)
def test_a_file_that_is_no_notebook_is_one_sentence_and_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, content: str | None, words: str
):
    path = tmp_path / name
    if content == "folder":
        path.mkdir()
    elif content is not None:
        path.write_text(content)
    assert check.main([str(path)]) == 2
    said = capsys.readouterr()
    assert words in said.err
    assert said.err.startswith("error: ") and said.err.count("\n") == 1
    assert said.out == ""


def test_no_argument_says_how_it_is_used(capsys: pytest.CaptureFixture[str]):
    assert check.main([]) == 2
    assert "python -m autograder check NOTEBOOK" in capsys.readouterr().err


def test_a_folder_names_the_notebooks_in_it(tmp_path: Path):
    write(tmp_path, notebook(right(1)))
    with pytest.raises(CourseError, match=r"it holds my\.ipynb"):
        check.read(tmp_path)


@pytest.mark.parametrize("command", [("autograder", "check"), ("autograder.checking.check",)])
def test_it_runs_outside_any_course(tmp_path: Path, command: tuple[str, ...]):
    path = write(tmp_path, notebook(right(1)))
    done = subprocess.run(
        [sys.executable, "-m", *command, path.name],
        cwd=tmp_path,
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_without_ipython_magics_do_nothing_and_await_works():
    run = runner._plain()
    assert run("%matplotlib inline\nx = 1\n!ls\nx + 1", "<cell a>") == (2, None)
    assert run("%%bash\nexit 1", "<cell a>") == (None, None)
    assert run("%%time\ny = x", "<cell a>") == (None, None)
    assert run("import asyncio\nawait asyncio.sleep(0, 5)", "<cell a>") == (5, None)
    _, error = run("def f():\n    return 1 / 0\nf()", "<cell b>")
    assert runner._described(error, "<cell b>")["line"] == 2
    assert runner._described(error, "<cell b>")["type"] == "ZeroDivisionError"
    asyncio.set_event_loop(None)


def test_the_release_is_unanswered_and_half_of_it_half_right(
    course: Course, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    chapter = CHAPTERS[0]
    path = tmp_path / f"{chapter}.ipynb"
    shutil.copy(course.release(chapter), path)
    assert check.run(path) == 1
    source = read_source(course.source(chapter))
    tests = source.of_kind("test")
    text = capsys.readouterr().out
    assert text.startswith(f"{path.name}: 0 of {len(tests)} visible tests pass")
    assert text.count("Not answered yet.") == len(tests)

    first = source.of_kind("solution")[0]
    content = json.loads(path.read_text(encoding="utf-8"))
    for one in content["cells"]:
        if one["metadata"].get("nbgrader", {}).get("grade_id") == first.id:
            one["source"] = first.source
    assert check.run(write(tmp_path, content)) == 1
    text = capsys.readouterr().out
    passed = [line.split()[1] for line in text.splitlines() if line.startswith("  ok ")]
    assert passed == source.tests_of(first.id)


RULES = '[double-1]\nforbid = ["sum", "math.prod", ".count"]\n'


@pytest.mark.parametrize(
    ("answer", "before", "words"),
    [
        ("def f1(x):\n    return sum([x, x])", "", "calls sum (line 2)"),
        (
            "def f1(x):\n    return prod([2, x])",
            "from math import prod",
            "calls math.prod (line 2)",
        ),
        (
            "def f1(x):\n    return helper(x)",
            "helper = lambda x: sum([x, x])",
            "of another cell of",
        ),
        ("def f1(x):\n    return eval('2 * x')", "", "calls eval (line 2)"),
        ("def f1(x):\n    return 2 * x\nassert f1(3) == sum([3, 3])", "", ""),
        ("def f1(x):\n    return 2 * x", "sum([1])", ""),
        ("def f1(x):\n    return 2 * x", "f1 = lambda x: sum([x, x])", ""),
    ],
)
def test_a_broken_rule_is_told_in_the_words_of_grading(
    said, tmp_path: Path, answer: str, before: str, words: str
):
    (tmp_path / "rules.toml").write_text(RULES, encoding="utf-8")
    content = notebook(answer, "def f2(x):\n    return sum([x, x])")
    content["cells"].insert(0, cell("code", before))
    status, text = said(content)
    assert "ok double-2-values" in text
    assert status == bool(words)
    if words:
        assert "FAIL double-1-values Your code uses something that is not allowed here: " in text
        assert words in text and "which this question does not allow; write it yourself" in text
    else:
        assert "2 of 2 visible tests pass" in text


def test_rules_that_cannot_be_read_are_told_and_cost_nothing(said, tmp_path: Path):
    (tmp_path / "rules.toml").write_text("[double-9]\nforbid = []\n", encoding="utf-8")
    status, text = said(notebook(right(1)))
    assert status == 0
    assert "Note: What the questions do not allow was not looked for" in text


def test_the_rules_of_the_course_around_a_notebook_hold():
    """As a student would have it, in a folder of the course."""
    course = Course.find(ROOT)
    release = json.loads(course.release("03_attention").read_text(encoding="utf-8"))
    cells = [
        check.Cell(marks["grade_id"], kind, "".join(raw["source"]))
        for raw in release["cells"]
        if raw["cell_type"] == "code" and (marks := raw["metadata"].get("nbgrader", {}))
        for kind in ["test" if marks["grade"] else "solution" if marks["solution"] else "code"]
    ]
    path = ROOT / "my" / "03_attention (1).ipynb"
    assert not_allowed(path, cells) == ({}, "")
    ready = "def masked_softmax(scores, mask=None):\n    return torch.softmax(scores, -1)"
    cells = [check.Cell(c.name, c.kind, ready) if c.name == "masked-softmax" else c for c in cells]
    broken, note = not_allowed(path, cells)
    assert not note and len(broken) >= 2
    assert all(name.startswith("masked-softmax") for name in broken)
    assert all("torch.softmax (line 2)" in words for words in broken.values())


@pytest.mark.parametrize("name", ["random.py", "traitlets.py", "textwrap.py", "bdb.py"])
@pytest.mark.parametrize("inside", [True, False])
def test_a_file_named_like_a_module_of_pythons_does_no_harm(
    tmp_path: Path, name: str, inside: bool
):
    path = write(tmp_path, notebook(right(1)))
    (tmp_path / name).write_text("MINE = 1")
    done = subprocess.run(
        [sys.executable, "-m", "autograder", "check", path.name if inside else str(path)],
        cwd=tmp_path if inside else tmp_path.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("call", ["exit()", "quit()"])
def test_exit_is_named_as_what_ends_python(said, call: str):
    status, text = said(notebook(f"{right(1)}\n{call}", right(2)))
    assert status == 0
    assert "exit() ends Python; remove it" in text


def test_nobody_need_read_to_the_end(tmp_path: Path):
    path = write(tmp_path, notebook(right(1)))
    read, written = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "autograder", "check", str(path)],
        stdout=written,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(written)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_cell_that_removes_the_folder_and_ends_is_told(tmp_path: Path):
    folder = tmp_path / "week"
    folder.mkdir()
    gone = f"import os, shutil\nshutil.rmtree({str(folder)!r})\nos._exit(1)"
    cells = [check.Cell("gone", "code", gone), check.Cell("next", "code", "1")]
    with pytest.raises(CourseError, match="see that the folder is there"):
        check.run_cells(cells, folder, 30)


@pytest.mark.parametrize("kind", ["noise", "a folder", "a loop of links", "a pipe"])
def test_what_was_handed_out_and_is_damaged_is_not_known_and_ends_no_check(
    tmp_path: Path, kind: str
):
    path = tmp_path / "ps1" / "numbers.texts"
    path.parent.mkdir()
    make = {
        "noise": lambda: path.write_bytes(b"\xff\xfe\0"),
        "a folder": path.mkdir,
        "a loop of links": lambda: path.symlink_to(path.name),
        "a pipe": lambda: os.mkfifo(path),
    }
    make[kind]()
    assert handed_out.HandedOut("ps1", "numbers", tmp_path).texts() == set()
