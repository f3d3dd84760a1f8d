"""Fixtures that these tests share."""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from autograder.isolation.fork_server import ForkServer
from tests.judge.small_course import (
    SETUP,
    Task,
)


@pytest.fixture(scope="module")
def fork_server(open_fork_server: ForkServer) -> ForkServer:
    """Where students' processes come from, without the sandbox, which is not in question here."""
    importlib.import_module("autograder.bridge.tensors")  # here too, before any clock runs
    return open_fork_server


@pytest.fixture
def task(tmp_path: Path, fork_server: ForkServer) -> Callable[..., Task]:
    """task(parts) makes an assignment of (id, source) and (id, source, points)."""

    def make(parts: list[tuple[Any, ...]], seconds: float = 10.0) -> Task:
        return Task(tmp_path, fork_server, [("setup", SETUP), *parts], seconds)

    return make
