"""What runs an answer beside a test, for the tests of the line between them."""

import contextlib
import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from autograder.isolation.fork_server import ForkServer
from tests.bridge.ends import Names, answering, of_tests
from tests.bridge.record_ends import GIVEN, Sides


@pytest.fixture
def answer(open_fork_server: ForkServer) -> Iterator[Callable[[str], Any]]:
    """answer(source) runs it in a new process and gives what looks names up there."""
    with contextlib.ExitStack() as stack:

        def run(source: str) -> Any:
            student = stack.enter_context(answering(open_fork_server, source))
            return Names(student)

        yield run


@pytest.fixture
def both(open_fork_server: ForkServer) -> Iterator[Callable[..., None]]:
    """both(source, use) runs a test with an answer in its own process, and in this one: alike."""
    with contextlib.ExitStack() as stack:

        def run(source: str, use: Callable[..., Any], *values: Any) -> None:
            source = "import copy, collections\nimport numpy as np\n" + source
            source = "import torch\nfrom torch import nn\n" + source
            student = stack.enter_context(answering(open_fork_server, source))
            wanted = use(of_tests(source).__getitem__, *copy.deepcopy(values))
            with student.peer.recording():
                assert use(student.name, *values) == wanted

        yield run


@pytest.fixture
def sides(open_fork_server: ForkServer) -> Iterator[Callable[..., Sides]]:
    """sides(answer) gives both sides of an answer; `given` is the student's copy of the cell."""
    with contextlib.ExitStack() as stack:

        def make(answer: str, given: str = GIVEN) -> Sides:
            return Sides(stack.enter_context(answering(open_fork_server, "")), answer, given)

        yield make
