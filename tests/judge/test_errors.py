"""Exceptions of an answer's and of the instructor's: what they carry, what catches them, lies."""

import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autograder.bridge import errors, public
from autograder.bridge.errors import Classes, carry, read_arguments
from autograder.isolation.fork_server import ForkServer
from autograder.judge import rehearsal
from tests.bridge.ends import Names, answering, outcome, replying
from tests.judge.small_course import SETUP, Task, heard_of


@pytest.fixture
def answer(open_fork_server: ForkServer) -> Iterator[Callable[[str], Any]]:
    """answer(source) gives what looks names up there."""
    import contextlib

    with contextlib.ExitStack() as stack:
        yield lambda source: Names(stack.enter_context(answering(open_fork_server, source)))


@pytest.fixture
def task(tmp_path: Path, open_fork_server: ForkServer) -> Callable[..., Task]:
    """task(parts) makes an assignment of (id, source) and (id, source, points)."""

    def make(parts: list[tuple[Any, ...]]) -> Task:
        return Task(tmp_path, open_fork_server, [("setup", SETUP), *parts], 10.0)

    return make


CARRIES = """
import numpy as np
class Parse(ValueError):
    level = 3
    kinds = ["a", ("b", 2)]
    _hidden = 1
    __slots__ = ("line", "never")
    def __init__(self, line, text):
        super().__init__(line, (text, [1]))
        self.line, self.where = np.int64(line), {"row": line, 2: {1.5, None}}
        self.thing, self.half, self.big = object(), np.float32(0.5), 2**70
        self.many = ["x" * 100] * 10**5
    @property
    def column(self): return self.line + 1
    @property
    def bad(self): raise KeyError("no")
    @property
    def exits(self): raise SystemExit
    def method(self): pass
def parse(line): raise Parse(line, "t")
class Wrong(Exception):
    def __init__(self): Exception.__init__(self); self.args = ([self],)
def wrong(): raise Wrong
def missing(): raise ImportError("no", name="nothing")
def spelled(): compile("1 +", "cell", "exec")
"""


def failing(function: Any, *args: Any) -> Any:
    """What this raises."""
    with pytest.raises(Exception) as caught:
        function(*args)
    return caught.value


def test_an_exception_carries_what_has_a_public_name_and_is_plain(answer: Any) -> None:
    names = answer(CARRIES)
    error = failing(names.parse, 5)
    assert (error.line, error.column, error.level, error.half, error.big) == (5, 6, 3, 0.5, 2**70)
    assert type(error.line) is np.int64 and type(error.half) is np.float32
    assert error.kinds == ["a", ("b", 2)]
    assert error.where == {"row": 5, 2: {1.5, None}}
    assert error.args == (5, ("t", [1]))
    for name in ("thing", "bad", "exits", "never", "_hidden", "many", "method"):
        assert not hasattr(error, name), name
    assert isinstance(failing(names.wrong), Exception)
    assert failing(names.missing).name == "nothing"
    assert (failing(names.spelled).lineno, failing(names.spelled).filename) == (1, "cell")


BESIDE = [  # where Python would read beside the text to say where it is
    ("UnicodeDecodeError", ["utf8", b"x", -(2**45), 1 - 2**45, "x"]),
    ("UnicodeDecodeError", ["utf8", np.float64(1), -(2**45), 1 - 2**45, "x"]),
    ("UnicodeEncodeError", ["utf8", "x", -9, -8, "x"]),
    ("UnicodeTranslateError", ["x", -9, -8, "x"]),
    ("UnicodeEncodeError", ["utf8", "x", 2**62, 2**62 + 1, "x"]),
]


@pytest.mark.parametrize(("name", "args"), BESIDE)
def test_no_exception_reads_beside_its_text(name: str, args: list[Any]) -> None:
    told = {"type": "E", "kinds": [name], "home": "", "family": [["E", [f"builtins:{name}"]]]}
    for one in (told, told | {"type": name, "family": [], "home": f"builtins:{name}"}):
        made = Classes().make(one, args, "so")
        assert isinstance(made, UnicodeError) and str(made) == "so"
    right = ["utf8", "häh", 1, 2, "no such sign"]
    made = Classes().make({**told, "family": [["E", ["builtins:UnicodeEncodeError"]]]}, right, "so")
    assert str(made) == "so" and made.args == tuple(right)


def test_an_exception_has_its_notes(answer: Any) -> None:
    names = answer(
        "def read(text):\n    try:\n        return int(text)\n    except ValueError as error:\n"
        "        error.add_note(f'while reading {text}')\n        raise\n"
        "class Odd(Exception):\n    __notes__ = 7\ndef odd():\n    error = Odd()\n"
        "    error.__notes__ = {len: 1}\n    raise error\n"
    )
    assert failing(names.read, "q").__notes__ == ["while reading q"]
    assert not hasattr(failing(names.odd), "__notes__")


def test_what_an_exception_carries_is_data_read_once_as_it_leaves(answer: Any) -> None:
    names = answer(
        "class E(Exception):\n    asked = 0\n    @property\n    def n(self):\n"
        "        E.asked += 1\n        return E.asked\n    @property\n"
        "    def f(self): return len\n    @property\n    def raised(self): return 9\n"
        "def fail(): raise E"
    )
    error = failing(names.fail)
    assert error.n == error.n
    assert not hasattr(error, "f")
    assert error.raised.type_name == "E"


LIES = [
    {"line": ["L"] + [1] * 10**5},
    {"line": ["A", "float64", [1], 0]},
    {"line": ["H", {"n": 1, "k": "object", "type": "x"}]},
    {"line": ["Y", 1]},
    {"line": ["PUB", "builtins:eval"]},
    {"line": ["O", "Raised", "E", "t", 0, "", ["T"]]},
    {"line": ["R", 0]},
    {"line": ["AS", "object", "00"]},
    {"__class__": 5},
    {"with_traceback": 5},
    {"args": 5},
]


@pytest.mark.parametrize("carries", LIES, ids=lambda one: repr(one)[:40])
def test_lies_about_what_an_exception_carries_are_left_out(carries: Any) -> None:
    told = {"id": 1, "type": "E", "kinds": ["ValueError"], "text": "t", "args": ["t"]}
    error = outcome(replying({"e": told | {"carries": carries}}))
    assert type(error) is ValueError or type(error).__name__ == "E"
    assert not hasattr(error, "line")
    assert error.args == ("t",)
    assert callable(error.with_traceback)


def test_arguments_that_cannot_be_read_leave_the_text() -> None:
    told = {"id": 1, "type": "E", "kinds": ["ValueError"], "text": "t"}
    for args in ([["H", {}]], [["L"] + [0] * 10**6], [["PUB", "builtins:eval"]], [{}]):
        error = outcome(replying({"e": told | {"args": args}}))
        assert isinstance(error, ValueError)
        assert str(error) == "t"


def test_an_exception_of_numpys_is_caught_as_itself(answer: Any) -> None:
    names = answer(
        "import numpy as np\nclass Own(np.linalg.LinAlgError): pass\n"
        "def invert(x): return np.linalg.inv(x)\ndef own(): raise Own('so')\n"
        "def axis(): return np.ones(2).sum(5)\n"
    )
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        names.invert(np.zeros((2, 2)))
    with pytest.raises(np.linalg.LinAlgError, match="so"):
        names.own()
    with pytest.raises(np.exceptions.AxisError, match="out of bounds") as caught:
        names.axis()
    assert caught.value.axis == 5


def test_no_code_of_the_instructors_runs_with_what_an_answer_tells() -> None:
    ran: list[str] = []

    class TooBig(ValueError):
        def __new__(cls, *args: Any) -> Any:
            ran.append("new")
            return super().__new__(cls)

        def __init__(self, *args: Any) -> None:
            ran.append("init")

        def __str__(self) -> str:
            ran.append("str")
            return "own"

        def __setattr__(self, name: str, value: Any) -> None:
            ran.append(name)

        @property
        def size(self) -> int:
            ran.append("size")
            return 1

        def method(self) -> int:
            return 2

    told = {"id": 1, "type": "x", "kinds": [], "text": "its text", "args": ["a", ["T", 1]]}
    told["family"] = [["Mine", [1]], ["TooBig", ["builtins:KeyError"]]]
    carries = {"size": 7, "method": 5, "line": 3, "raised": 1, "__class__": 1, "_x": 1, "mro": 2}
    classes = Classes()
    classes.given = {"TooBig": TooBig}.get
    error: Any = classes.make(told, read_arguments(told["args"], "its text"), "its text")
    carry(error, carries)
    assert issubclass(type(error), TooBig) and not issubclass(type(error), KeyError)
    assert (str(error), error.args, error.size, error.line) == ("its text", ("a", (1,)), 7, 3)
    assert not hasattr(error, "_x") and not hasattr(error, "raised")
    assert ran == []


SHARED = """\
class TooBig(ValueError):
    def __init__(self, n, most):
        super().__init__(f"{n} is too big")
        self.n, self._most = n, most
    @property
    def excess(self): return self.n - self._most
class Stop(Exception): pass
class Unused(Exception): pass
def check(n):
    if n < 0: raise Stop("below")
"""
FILL = """\
def fill(n):
    check(n)
    if n > 9: raise TooBig(n, 9)
    return n
def ask(f):
    try: return f()
    except TooBig as error: return error.args[0]
"""
CATCHES = """\
try: fill(12)
except TooBig as error: assert error.excess == 3 and error.n == 12 and str(error) == "12 is too big"
else: assert False, "nothing raised"
try: fill(-1)
except Stop as error: assert type(error) is Stop and error.args == ("below",)
def fail(): raise TooBig(1, 0)
assert ask(fail) == "1 is too big"
try: ask(lambda: fill(-1))
except TooBig: assert False
except Stop: pass
"""


@pytest.mark.parametrize("where", ["table", "look"])
def test_an_exception_of_the_instructors_is_caught_as_itself(task: Any, where: str) -> None:
    made = task([(where, SHARED), ("fill", FILL), ("t_fill", CATCHES, 2)])
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    own = "class Mine(TooBig): pass\n" + FILL.replace("raise TooBig", "raise Mine")
    for answer in (FILL, own):
        assert made.scores(fill=answer) == {"t_fill": 2}, answer
    for wrong in ("ValueError(n)", "Stop(n)", "TooBig(n, 8)"):
        assert made.scores(fill=FILL.replace("TooBig(n, 9)", wrong)) == {"t_fill": 0}


STEERS = """\
### BEGIN HIDDEN TESTS
class Private(Exception): pass
class Unused(Exception): pass
def passes(kind):
    try: fill(12)
    except kind: return True
    except Exception: return False
if passes(Private): value = 1
elif passes(first): value = 2
else: value = 3
assert value == 3
### END HIDDEN TESTS
"""


def test_no_answer_raises_what_the_reference_could_not(task: Any) -> None:
    made = task([("table", SHARED + "first = Unused"), ("fill", FILL), ("t_fill", STEERS, 2)])
    assert made.scores() == {"t_fill": 2}
    for lie in ("class Private(Exception): pass", "class Unused(Exception): pass", "pass"):
        for name in ("Private", "Unused"):
            wrong = FILL.replace("raise TooBig(n, 9)", f"raise globals().get('{name}', OSError)()")
            assert made.scores(fill=lie + "\n" + wrong) == {"t_fill": 2}, (lie, name)


UNLIKE = ["SystemExit", "KeyboardInterrupt", "GeneratorExit", "BaseException", "Halt", "Halt()"]
HALT = "class Halt(BaseException):\n    pass\n"


@pytest.mark.parametrize("kind", UNLIKE)
def test_what_is_no_exception_is_caught_by_no_except_exception(task: Any, kind: str) -> None:
    raises = "    if x < 0: raise {}\n    return x"
    right = f"{HALT}def root(x):\n{raises.format('ValueError(x)')}"
    test = "try:\n    root(-1)\n    raised = False\nexcept Exception: raised = True\nassert raised"
    made = task([("root", right), ("t_root", test, 1), ("one", "one = 1"), ("t_one", "one", 1)])
    assert made.scores() == {"t_root": 1, "t_one": 1}
    verdicts = made.verdicts(root=f"{HALT}def root(x):\n{raises.format(kind)}")
    assert (verdicts["t_root"].status, verdicts["t_root"].score) == ("error", 0)
    assert verdicts["t_one"].score == 1


@pytest.mark.parametrize("kind", ["SystemExit", "Halt"])
def test_what_is_no_exception_is_caught_by_its_class(task: Any, kind: str) -> None:
    right = f"{HALT}def halt(x):\n    raise {kind}(x)"
    test = f"try:\n    halt(3)\nexcept {kind} as error:\n    assert error.args == (3,)"
    made = task([("halt", right), ("t_halt", f"{test}\nelse: assert False", 1)])
    assert made.scores() == {"t_halt": 1}
    assert made.scores(halt=f"{HALT}def halt(x):\n    raise ValueError(x)") == {"t_halt": 0}


LEAVING = """\
import contextlib
class Failed(Exception):
    pass

class Store:
    def __init__(self): self.data = {}
    def put(self, key, value): self.data[key] = value

@contextlib.contextmanager
def undoing(store):
    before = dict(store.data)
    try:
        yield store
    except KeyError as error:
        store.data = before
        raise Failed("no such key") from error

@contextlib.contextmanager
def ignoring(*kinds):
    try:
        yield
    except kinds:
        pass

def total(n):
    return n + 1"""
IN_CLASSES = """\
class undoing:
    def __init__(self, store):
        self.store, self.before = store, {**store.data}
    def __enter__(self):
        return self.store
    def __exit__(self, kind, error, trace):
        if kind is not None and issubclass(kind, KeyError):
            self.store.data = self.before
            raise Failed(str(error)) from error

class ignoring(contextlib.suppress):
    pass
"""
LEFT = """\
store = Store()
store.put("a", 1)
try:
    with undoing(store) as same:
        same.put("a", 2)
        {}["b"]
    raise RuntimeError("nothing was raised")
except Failed as error:
    assert isinstance(error.__cause__, KeyError)
assert store.data == {"a": 1}
with ignoring(ZeroDivisionError, ValueError):
    int("x")
try:
    with ignoring(KeyError):
        int("x")
    raise RuntimeError("the error is gone")
except ValueError as error:
    assert "invalid literal" in str(error)
with ignoring(ValueError):
    assert int(f"{total(1)}") == 2"""


def test_an_answers_context_is_told_of_errors_of_the_test_as_the_references_is(task: Any) -> None:
    made = task([("leaving", LEAVING), ("t_left", LEFT, 1)])
    made.known = heard_of(made)
    assert made.scores() == {"t_left": 1}
    in_classes = LEAVING.replace("def total", f"{IN_CLASSES}\ndef total")
    assert made.scores(leaving=in_classes) == {"t_left": 1}
    for kind in ("Exception", "BaseException"):  # and hides no other
        hides = LEAVING.replace("except kinds", f"except {kind}")
        assert made.scores(leaving=hides) == {"t_left": 0}
    for given in ("None", "'two'"):
        hides = LEAVING.replace("except kinds", "except (TypeError, *kinds)")
        assert made.scores(leaving=hides.replace("n + 1", given)) == {"t_left": 0}
    assert made.scores(leaving=LEAVING.replace("store.data = before", "pass")) == {"t_left": 0}


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A package that a notebook imports, with an exception and two classes of its own."""
    made = types.ModuleType("brought")
    source = """
class NoPath(Exception):
    def __init__(self, a, b): raise RuntimeError("no code of the package's runs")
class Graph: pass
class Packed:
    __slots__ = ("a", "b", "c", "d", "e", "f", "g", "h")
"""
    exec(source, vars(made))
    monkeypatch.setitem(sys.modules, "brought", made)
    for kind in (made.NoPath, made.Graph, made.Packed):
        monkeypatch.setattr(kind, "__module__", "brought")
    monkeypatch.setattr(public, "_OPEN", set(public._OPEN))
    monkeypatch.setattr(public, "PACKAGES", set(public.PACKAGES))
    return made


def test_an_exception_of_a_package_is_caught_by_its_class(package: Any) -> None:
    assert errors.name_of(package.NoPath) == ""
    public.open_packages(["brought", "torch"])
    error = Exception.__new__(package.NoPath, 1, 4)
    told = errors.told_of(type(error))
    assert told["home"] == "brought:NoPath" and told["family"] == []
    made = errors.Classes().make(told, [1, 4], "no path")
    assert isinstance(made, package.NoPath) and str(made) == "no path" and made.args == (1, 4)
    public.open_packages(["hypothesis", "pytest", "_pytest"])  # which say "skipped" by theirs
    assert public.PACKAGES.isdisjoint(("torch", "pytest", "_pytest", "numpy", "hypothesis"))


def test_an_object_passes_for_a_packages_class_that_has_no_memory_of_its_own(package: Any) -> None:
    assert public.class_passed_for("brought:Graph", False) is None
    public.open_packages(["brought"])
    assert public.class_passed_for("brought:Graph", False) is package.Graph
    assert public.class_passed_for("brought:Packed", False) is None


def test_an_exception_of_torchs_linear_algebra_is_caught_by_its_class(task: Any) -> None:
    right = "def solve(a, b): return torch.linalg.solve(a, b)"
    test = "try:\n    solve(torch.zeros(2, 2), torch.ones(2))\n"
    test += "except torch.linalg.LinAlgError as error:\n    assert 'singular' in str(error)\n"
    test += "else:\n    raise AssertionError('nothing was raised')"
    made = task([("solve", right), ("t_solve", test, 1)])
    assert made.scores(solve=right) == {"t_solve": 1}
    assert made.scores(solve="def solve(a, b): raise RuntimeError('singular')") == {"t_solve": 0}
