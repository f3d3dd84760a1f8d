"""What the tests share: the course, its chapters, the built book and the graded demo class."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from autograder.course import Course, use_own_tools
from autograder.engine.zygote import Zygote

ROOT = Path(__file__).parents[1]
COURSE = Course.find(ROOT)
CHAPTERS = COURSE.chapters()

use_own_tools()


def make(target: str) -> None:
    """Run a task of the Makefile; on failure show the end of what it said."""
    done = subprocess.run(["make", target], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.fail(f"make {target} failed:\n{(done.stdout + done.stderr)[-4000:]}")


@pytest.fixture(scope="session")
def course() -> Course:
    """The course this repository holds."""
    return COURSE


@pytest.fixture(params=CHAPTERS)
def chapter(request: pytest.FixtureRequest) -> str:
    """Each chapter in turn."""
    return request.param


@pytest.fixture(scope="session")
def book_html() -> Path:
    """The built book's folder; built if it is stale."""
    make("book")
    return ROOT / "book" / "_build" / "html"


@pytest.fixture(scope="session")
def demo() -> Path:
    """The demo class's folder, made and graded if that is not done yet."""
    make("demo")
    return ROOT / "build" / "demo"


@pytest.fixture(scope="session")
def open_zygote() -> Iterator[Zygote]:
    """Where students' processes come from, without the sandbox; one for all who ask."""
    with Zygote(["torch", "numpy"], sandboxed=False) as made:
        yield made


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """For models too small to share out; on busy cores, threads wait for each other."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
