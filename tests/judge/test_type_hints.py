"""What a test asks of an answer's type hints."""

from typing import Any

import pytest

from autograder.judge import rehearsal
from tests.judge.small_course import HIDDEN_PART, heard_of

ANSWER = """from collections import abc
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple, Union
def first(xs: list[int], k: int) -> Optional[int]: return None
def rows(xs: List[str], d: dict[str, list[float]]) -> int | None: return None
def some(x: Union[int, str] = 3, *, y: int = 2) -> None: pass
def both(f: Callable[[int], str], g: abc.Callable[..., int]) -> abc.Iterator[int]: return iter(())
def anything(x: Any, t: Tuple[int, ...]) -> tuple[int, ...]: return ()
class Point:
    x: int
    y: Optional[str] = None
"""
TESTS = [
    "import typing\nhints = typing.get_type_hints(first)\n"
    "assert hints == {'xs': list[int], 'k': int, 'return': typing.Optional[int]}, str(hints)",
    "import inspect, typing\ns = inspect.signature(rows)\n"
    "assert s.return_annotation == (int | None)\n"
    "assert s.parameters['xs'].annotation == typing.List[str]\n"
    "assert rows.__annotations__['d'] == dict[str, list[float]]",
    "import typing\nhints = some.__annotations__\n"
    "assert hints['x'] == typing.Union[int, str] and hints['return'] is None",
    "import typing\nhints = anything.__annotations__\nassert hints['x'] is typing.Any\n"
    "assert hints['t'] == typing.Tuple[int, ...] and hints['return'] == tuple[int, ...]",
    "import typing\nfrom collections import abc\nhints = typing.get_type_hints(both)\n"
    "assert hints == {'f': typing.Callable[[int], str], 'g': abc.Callable[..., int], "
    "'return': abc.Iterator[int]}, str(hints)",
    "import typing\nassert Point.__annotations__['y'] == typing.Optional[str]",
]


@pytest.mark.parametrize("test", TESTS)
def test_what_is_made_of_classes_crosses(task: Any, test: str) -> None:
    made = task([("own", ANSWER), ("t_own", test, 1)])
    assert rehearsal.rehearse(made.assignment, made.fork_server).complaints == []
    made.known = heard_of(made)
    assert made.scores(own=ANSWER) == {"t_own": 1}
    bare = ANSWER.replace(": Any", "").replace(": list[int]", "").replace("-> int | None", "")
    bare = bare.replace(": Union[int, str]", "").replace(": Optional[str]", ": str")
    bare = bare.replace("Callable[[int], str]", "Callable[[str], str]")
    assert made.scores(own=bare) == {"t_own": 0}


FORGED = [  # a hint with a text in it, which who asks for hints would have evaluated
    "abc.Callable[['print(1)'], int]",
    "list['print(1)']",
    "Optional['print(1)']",
    "Callable[[list['print(1)']], int]",
]


@pytest.mark.parametrize("hint", FORGED)
def test_no_text_that_is_written_is_evaluated(task: Any, hint: str) -> None:
    right = "def f(x: int) -> int: return x"
    test = "import typing\nassert typing.get_type_hints(f)['return'] is int\nassert f(1) == 1"
    made = task([("own", right), ("t_own", test, 1)])
    forged = "from collections import abc\nfrom typing import Callable, Optional\n"
    forged += "def f(x: int) -> int: return x\n"
    forged += f"f.__annotations__['return'] = {hint}"
    assert made.scores(own=forged) == {"t_own": 0}


SENT = [  # what an answer's end could send for a hint
    '["Union", ["T", {}, None]]',
    '["Union", ["L", {}, None]]',
    '["Callable", ["L", ["T", {}]], None]',
    '["Callable", ["L", {}], None]',
    '["Optional", ["D", {}, 1]]',
    '["Optional", ["FS", {}]]',
    '["List", {}]',
]


@pytest.mark.parametrize("sent", SENT)
def test_no_text_that_is_sent_is_evaluated(task: Any, sent: str, tmp_path: Any) -> None:
    right = "from typing import Optional\ndef f(x: Optional[int]) -> int: return 0"
    test = "import typing\nwanted = {'x': typing.Optional[int], 'return': int}\n"
    test += "assert typing.get_type_hints(f, globals()) == wanted"
    made = task([("own", right), ("t_own", f"assert f(1) == 0\n{HIDDEN_PART.format(test)}", 1)])
    assert made.scores(own=right) == {"t_own": 1}
    left = tmp_path / "left"
    for text in ("wanted['x']", f"open({str(left)!r}, 'w')", "1 / 0"):
        forged = "import sys\nfrom typing import Optional\n"
        forged += "writers = sys.modules['autograder.bridge.library']._WRITERS\n"
        forged += f"writers[type(Optional[int])] = lambda e, v: {sent.format(repr(text))}\n{right}"
        assert made.scores(own=forged) == {"t_own": 0}
        assert not left.exists()
