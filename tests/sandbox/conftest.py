"""Students' processes to try: started by root and by an ordinary user, with room and without."""

import dataclasses
import functools
import os
import subprocess
from collections.abc import Iterator

import pytest

from autograder.isolation import machine
from autograder.isolation.fork_server import ForkServer, Spawned
from tests.sandbox.shared import (
    HERE,
    SMALL,
    become_ordinary,
    become_ordinary_in_a_container,
    secretive,
)


@pytest.fixture(scope="module", params=["root", "plain root", "user"])
def who(request: pytest.FixtureRequest) -> Iterator[str]:
    """Every test thrice: started by root, where root alone has namespaces, and by anybody."""
    root = os.geteuid() == 0
    if request.param != "user" and not root:
        pytest.skip("needs root")
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "user" and root:
            ordinary = functools.partial(subprocess.Popen, preexec_fn=become_ordinary)
            patch.setattr(subprocess, "Popen", ordinary)
        before = machine.probe
        before.cache_clear()
        found = machine.probe()
        if not found.namespaces:
            pytest.skip(" ".join(found.missing))
        assert found.own_uid == (request.param != "user")
        if request.param == "plain root":
            fewer = dataclasses.replace(found, user_namespaces=False)
            patch.setattr(machine, "probe", lambda: fewer)
        yield request.param
    before.cache_clear()


@pytest.fixture(scope="module")
def box(who: str) -> Iterator[ForkServer]:
    """A fork server with room to move, whoever may read what its starter writes."""
    with secretive():
        made = ForkServer(["fractions"], [HERE], student="tests.sandbox.shared")
    with made:
        yield made


@pytest.fixture(scope="module")
def small(who: str) -> Iterator[ForkServer]:
    """A fork server with tight limits."""
    with ForkServer([], [HERE], limits=SMALL, student="tests.sandbox.shared") as made:
        yield made


@pytest.fixture(scope="module")
def contained() -> Iterator[ForkServer]:
    """A fork server with tight limits, as an ordinary user of most containers has it."""
    if os.geteuid():
        pytest.skip("needs root")
    with pytest.MonkeyPatch.context() as patch:
        covered = functools.partial(subprocess.Popen, preexec_fn=become_ordinary_in_a_container)
        patch.setattr(subprocess, "Popen", covered)
        machine.probe.cache_clear()
        if not machine.probe().namespaces:
            pytest.skip(" ".join(machine.probe().missing))
        with ForkServer([], [HERE], limits=SMALL, student="tests.sandbox.shared") as made:
            yield made
    machine.probe.cache_clear()


@pytest.fixture
def inside(box: ForkServer) -> Iterator[Spawned]:
    """A student's process."""
    with box.spawn() as spawned:
        yield spawned


@pytest.fixture
def cramped(small: ForkServer) -> Iterator[Spawned]:
    """A student's process with tight limits."""
    with small.spawn() as spawned:
        yield spawned
