"""No library runs a text of an answer's where the tests run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

AT_HOME = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
SCRIPT = """
import code, codeop, cProfile, logging.config, os, pickle, runpy, subprocess, sys, timeit
import sympy, types, yaml
from autograder.judge.texts import run_no_texts
from autograder.judge.space import BrokenCell

run_no_texts(["x**2", "pass", "numpy"])  # of one assignment
run_no_texts(["x = 7", "-c print(7)"])  # of another that is graded in the same run
from sympy import parse_expr

x = sympy.Symbol("x")
def settings(handler):
    try:
        logging.config.dictConfig({"version": 1, "handlers": {"h": handler}})
    except ValueError as error:
        raise error.__cause__
try:
    found = {call}
except BrokenCell as error:
    found = "refused"
print(found)
"""


@pytest.mark.parametrize(
    ("call", "found"),
    [
        ("sympy.sympify('x**3')", "refused"),
        ("sympy.S('x**3')", "refused"),
        ("sympy.parse_expr('x**3')", "refused"),
        ("parse_expr(s='x**3')", "refused"),
        ("sympy.lambdify('x', 'x**3')(2)", "refused"),
        ("timeit.timeit('print(1)', number=1)", "refused"),
        ("pickle.loads(b'N.')", "refused"),
        ("pickle.Unpickler(open('/dev/null', 'rb'))", "refused"),
        ("type('Own', (pickle.Unpickler,), {})(None)", "refused"),
        ("type('Own', (pickle.Unpickler,), {}).__name__", "Own"),
        ("timeit.Timer('print(1)').timeit(1)", "refused"),
        ("code.InteractiveInterpreter({}).runsource('print(1)')", "refused"),
        ("codeop.compile_command('print(1)')", "refused"),
        ("cProfile.Profile().runctx('print(1)', {}, {})", "refused"),
        ("runpy._run_code('print(1)', {})", "refused"),
        ("yaml.load('!!python/object/apply:builtins.exec [print(1)]', yaml.Loader)", "refused"),
        ("yaml.unsafe_load('!!python/name:builtins.exec')", "refused"),
        ("settings({'()': 'builtins.print'})", "refused"),
        ("os.system('true')", "refused"),
        ("os.popen('true')", "refused"),
        ("subprocess.run('true', shell=True)", "refused"),
        ("subprocess.run(iter(['sh', '-c', 'true']))", "refused"),
        ("subprocess.run([sys.executable, '-c', 'print(2)'])", "refused"),
        ("subprocess.run([sys.executable], input=b'print(2)')", "refused"),
        ("subprocess.check_output([sys.executable, '-c', 'print(7)'])", r"b'7\n'"),
        ("bool(__import__('platform').processor()) in (True, False)", "True"),
        ("settings({'()': 'logging.os.system', 'command': ':'})", "refused"),
        ("settings({'class': 'logging.StreamHandler', 'stream': 'ext://sys.stdout'})", "None"),
        ("yaml.load('a: [1]', yaml.Loader)", "{'a': [1]}"),
        ("code.InteractiveInterpreter(vars()).runsource('x = 7') or x", "7"),
        ("timeit.Timer(lambda: x).timeit(1) < 1", "True"),
        ("sympy.sympify('x**2')", "x**2"),
        ("sympy.sympify(4) + x", "x + 4"),
        ("sympy.lambdify(x, x**3, modules='numpy')(2)", "8"),
        ("timeit.timeit('pass', number=1) < 1", "True"),
    ],
)
def test_only_texts_of_the_instructors_are_evaluated(call: str, found: str) -> None:
    command = [sys.executable, "-c", SCRIPT.replace("{call}", call)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == found, done.stderr


OTHERS = """
import _pickle, asyncio, importlib.abc, inspect, io, jinja2, marshal, os, pickle, shelve, typing
from IPython.core.interactiveshell import InteractiveShell
from autograder.judge.texts import run_no_texts
from autograder.judge.space import BrokenCell

N = pickle.dumps(None)
class Joblibs(pickle._Unpickler): pass
class Loading(importlib.abc.InspectLoader): pass
class Hinted:
    a: "int"
    b: "typing.Optional['float']"
class Asking:
    a: "print(1)"
async def start():
    await (await asyncio.create_subprocess_exec("true")).wait()
run_no_texts(["{{ x }}", "x = 7"])
for call in CALLS:
    try:
        print(eval(call))
    except BrokenCell:
        print("refused")
"""
OF_OTHERS = [
    ("typing.get_type_hints(Hinted)['a']", "<class 'int'>"),
    ("typing.get_type_hints(Asking)", "refused"),
    ("inspect.get_annotations(Asking, eval_str=True)", "refused"),
    ("inspect.get_annotations(Hinted, eval_str=True)['b']", "typing.Optional[ForwardRef('float')]"),
    ("_pickle.loads(N)", "refused"),
    ("pickle._loads(N)", "refused"),
    ("pickle._Unpickler(io.BytesIO(N)).load()", "refused"),
    ("shelve.Shelf({b'a': N})['a']", "refused"),
    ("Joblibs(io.BytesIO(N)).load()", "refused"),
    ("marshal.loads(marshal.dumps(None))", "refused"),
    ("__import__('colorsys').ONE_THIRD < 1", "True"),
    ("Loading.source_to_code('x = 8')", "refused"),
    ("type(Loading.source_to_code('x = 7')).__name__", "code"),
    ("InteractiveShell().ev('print(1)')", "refused"),
    ("InteractiveShell().ex('print(1)')", "refused"),
    ("InteractiveShell().ex('x = 7')", "None"),
    ("InteractiveShell().getoutput('true')", "refused"),
    ("asyncio.run(start())", "refused"),
    ("os.spawnvp(os.P_WAIT, 'true', ['true'])", "refused"),
    ("os.posix_spawn('/bin/sh', ['sh', '-c', 'true'], {})", "refused"),
    ("jinja2.Template('{% set x = cycler %}').render()", "refused"),
    ("jinja2.Environment().from_string('{{ y }}').render()", "refused"),
    ("jinja2.Environment().compile_expression('y')()", "refused"),
    ("jinja2.Template('{{ x }}').render(x=7)", "7"),
    ("jinja2.Environment().compile_expression('x')(x=7)", "7"),
]


def test_nor_by_other_libraries_are_texts_evaluated_bytes_loaded_or_programs_started() -> None:
    script = OTHERS.replace("CALLS", repr([call for call, _ in OF_OTHERS]))
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == [found for _, found in OF_OTHERS], done.stderr


MODULES = """
import sys
from pathlib import Path
from autograder.bridge.lent import LENT
from autograder.isolation.scratch import ROOTS
from autograder.judge.space import BrokenCell
from autograder.judge.texts import run_no_texts

run_no_texts(["x = 7"])
ROOTS.append(sys.argv[1])
sys.path.insert(0, sys.argv[1])
Path(sys.argv[1], "helper.py").write_text("x = 5")
with LENT.running():
    Path(sys.argv[1], "own.py").write_text("x = 7")
    Path(sys.argv[1], "theirs.py").write_text("x = 6")
    import colorsys, helper, own
    try:
        import theirs
    except BrokenCell:
        print("refused", helper.x, own.x)
"""


def test_no_module_that_a_test_has_written_is_an_answers_text(tmp_path: Path) -> None:
    command = [sys.executable, "-c", MODULES, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "refused 5 7", done.stderr


PACKED = """
import py_compile, zipfile
def packed(name, text):
    with zipfile.ZipFile(Path(sys.argv[1], name), "w") as archive:
        archive.writestr(f"{name}_in.py", text)
    sys.path.append(str(Path(sys.argv[1], name)))
def compiled(name):
    source = Path(sys.argv[1], "source")
    source.write_text("x = 7")
    py_compile.compile(str(source), str(Path(sys.argv[1], f"{name}.pyc")))
compiled("before")
packed("old", "x = 4")
run_no_texts(["x = 7"])
with LENT.running():
    compiled("bytes")
    packed("own", "x = 7")
    packed("theirs", "x = 8")
    import before, old_in, own_in
    for name in ("theirs_in", "bytes"):
        try:
            __import__(name)
        except BrokenCell:
            print("refused", before.x, old_in.x, own_in.x)
"""


def test_no_archive_and_no_bytes_that_a_test_has_written_are_an_answers(tmp_path: Path) -> None:
    script = MODULES.partition("Path(")[0].replace('run_no_texts(["x = 7"])', "") + PACKED
    command = [sys.executable, "-c", script, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["refused 7 4 7"] * 2, done.stderr


BESIDE = """
import importlib, sys
from pathlib import Path
from autograder.judge.space import BrokenCell
from autograder.judge.texts import run_no_texts

sys.path.insert(0, sys.argv[1])
text = "def run(text, x=1): return eval(text)\\ndef two(): return run('x + 1')\\n"
for name in ("beside", "library", "loaded"):
    Path(sys.argv[1], f"{name}.py").write_text(text)
import loaded
run_no_texts(["x + 7"], ["beside", "loaded"])
for name in ("beside", "library", "loaded"):
    module = importlib.import_module(name)
    try:
        print(module.run("x + 7"), module.two(), module.run("2 * x"))
    except BrokenCell:
        print("refused", module.run("x + 7"), module.two())
"""


def test_no_module_of_the_instructors_evaluates_a_text_of_an_answers(tmp_path: Path) -> None:
    command = [sys.executable, "-c", BESIDE, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["refused 8 2", "8 2 2", "refused 8 2"], done.stderr


PROGRAMS = """
import subprocess
run_no_texts(["own.py theirs.py", "x = 7"])
with LENT.running():
    for name in ("own.py", "theirs.py"):
        Path(sys.argv[1], name).write_text("x = 7" if name == "own.py" else "x = 8")
        try:
            print(subprocess.run([sys.executable, name], cwd=sys.argv[1]).returncode)
        except BrokenCell:
            print("refused")
"""


def test_no_program_that_a_test_has_written_is_an_answers_text(tmp_path: Path) -> None:
    script = MODULES.partition("Path(")[0] + PROGRAMS
    command = [sys.executable, "-c", script, str(tmp_path)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=tmp_path, env=AT_HOME
    )
    assert done.stdout.split() == ["0", "refused"], done.stderr
