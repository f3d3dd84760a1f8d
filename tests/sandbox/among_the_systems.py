"""Works and a course that lie below /usr, as nbgrader's exchange does."""

import functools
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from autograder.isolation import kernel
from tests.sandbox.shared import ORDINARY, become_ordinary

AMONG_THE_SYSTEMS = (
    "src/app/source",
    "local/share/nbgrader/exchange",
    "local/share/course",
    "local/etc/jupyter",
)


def _put_work(*, ordinary: bool) -> None:
    """In a child of root, for it alone: a course and an exchange below /usr, which it owns."""
    kernel.unshare(kernel.NEWNS)
    kernel.mount("", "/", "", kernel.REC | kernel.PRIVATE)
    for folder in ("/usr/src", "/usr/local/share", "/usr/local/etc"):
        kernel.mount("tmpfs", folder, "tmpfs", 0, f"uid={ORDINARY if ordinary else 0},mode=755")
    if ordinary:
        become_ordinary()
    for name in AMONG_THE_SYSTEMS:
        Path("/usr", name).mkdir(parents=True)
        Path("/usr", name, "work").write_text("a neighbour's")


def work_among_the_systems(patch: pytest.MonkeyPatch, *, ordinary: bool) -> None:
    """What is started from now on has such work below /usr, root's or an ordinary user's."""
    if os.geteuid():
        pytest.skip("needs root")
    plain: Any = getattr(subprocess.Popen, "func", subprocess.Popen)
    put = functools.partial(_put_work, ordinary=ordinary)
    patch.setattr(subprocess, "Popen", functools.partial(plain, preexec_fn=put))
