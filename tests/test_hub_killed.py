"""A hub that is killed leaves nothing behind that would stand in the next one's way."""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from autograder.isolation.machine import FIRST_UID
from tests import hubs
from tests.hubs import FORMGRADER, NoHub, Person, Site, wait_for


@pytest.fixture
def machine() -> Iterator[Site]:
    """A machine on which no hub runs yet."""
    try:
        with hubs.machine() as machine:
            yield machine
    except NoHub as error:
        pytest.skip(str(error))


def running() -> Iterator[tuple[int, int, str]]:
    """Every process that has not ended: its number, its parent's, and its command."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state, parent, *_ = (folder / "stat").read_text().rpartition(")")[2].split()
            if state != "Z":
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                yield int(folder.name), int(parent), command


def test_proxy_and_formgrader_end_with_a_hub_that_is_killed(machine: Site):
    with machine.running() as hub:
        started = {number: what for number, parent, what in running() if parent == hub.pid}
        names = ("configurable-http-proxy", "jupyterhub-singleuser")
        assert all(any(name in what for what in started.values()) for name in names), started
        os.kill(hub.pid, signal.SIGKILL)
        hub.wait()
        wait_for(
            lambda: started.keys().isdisjoint(number for number, _, _ in running()),
            "what the hub has started has ended",
        )
        with machine.running():
            ines = Person(machine, "ines")
            wait_for(lambda: ines.get(f"{FORMGRADER}/").ok, "formgrader answers again")


def test_machines_beside_each_other_have_other_accounts():
    """One that ends kills what its accounts run: of another hub that would be servers in use."""
    numbers = [hubs.first_account(port) + i for port in hubs.PORTS for i in range(hubs.MOST)]
    assert len({*numbers}) == len(numbers) and max(numbers) < FIRST_UID
    assert len(hubs.PEOPLE) <= hubs.MOST
