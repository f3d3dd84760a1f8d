"""Of the project's rooms, students' processes reach the one that their notebooks import."""

from pathlib import Path

import pytest

from autograder.authoring.building import build_instructor
from autograder.authoring.processes import fork_server_order
from autograder.common.course import Course
from autograder.isolation import machine
from autograder.isolation.fork_server import ForkServer
from autograder.judge.assignment import read_assignment
from tests.conftest import CHAPTERS, ROOT
from tests.sandbox.shared import run

HERE = Path(__file__).parent
TRY = """
import importlib, os
answer = []
for room in {rooms}:
    try:
        importlib.import_module(room)
    except ModuleNotFoundError:
        pass
    else:
        answer.append("imported " + room)
    if os.path.exists({root!r} + "/" + room):
        answer.append("found " + room)
"""


@pytest.mark.skipif(not machine.probe().namespaces, reason="there is no sandbox here")
def test_of_the_rooms_a_students_process_reaches_lab_alone(course: Course):
    assignments = [
        read_assignment(
            build_instructor(course, chapter).parent, course.source(chapter).parent / "rules.toml"
        )
        for chapter in CHAPTERS
    ]
    order = fork_server_order(assignments, sandboxed=True)
    assert order["readable"] == [str(ROOT / "lab")]
    rooms = ["lab", "lab.check", "trainer", "trainer.decoding", "benchmarks", "solutions"]
    readable = [HERE, *map(Path, order["readable"])]
    with (
        ForkServer(["lab.check"], readable, student="tests.sandbox.shared") as fork_server,
        fork_server.spawn() as inside,
    ):
        found = run(inside, TRY.format(rooms=rooms, root=str(ROOT)))
    assert found == ["imported lab", "found lab", "imported lab.check"]
