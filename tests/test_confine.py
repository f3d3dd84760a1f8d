"""What the trusted process can do once it is walled in: run tests, and nothing to anybody else."""

import functools
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from autograder.isolation import machine
from autograder.isolation.outcomes import Lost
from autograder.isolation.parts import Parts
from autograder.isolation.pool import Pool
from tests.sandbox.among_the_systems import AMONG_THE_SYSTEMS, work_among_the_systems
from tests.sandbox.shared import become_ordinary, secretive

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is for Linux")

HERE = Path(__file__).parent
LONG = 60.0


def start() -> dict[str, Any]:
    """What the fork server has ready."""
    return {"pid": os.getpid()}


def pack(item: list[Any]) -> tuple[Any, bytes]:
    """What crosses: the item, and bytes apart."""
    return item, b"bytes of " + str(item[0]).encode()


def task(state: dict[str, Any], item: list[Any], data: bytes, *, parts: Parts) -> bytes:
    """Run what the item says, as a student might who got hold of this process."""
    names: dict[str, Any] = {"data": data, "parts": parts}
    try:
        exec(str(item[1]), names)
        answer = names["answer"]
    except Exception as error:  # noqa: BLE001  (the test looks at it)
        answer = f"{type(error).__name__}: {error}"
    return json.dumps(answer).encode()


@pytest.fixture(scope="module", params=["root", "user"])
def pool(request: pytest.FixtureRequest) -> Iterator[Pool]:
    """Two workers at a time, for root and for an ordinary user."""
    root = os.geteuid() == 0
    if request.param == "root" and not root:
        pytest.skip("needs root")
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "user" and root:
            ordinary = functools.partial(subprocess.Popen, preexec_fn=become_ordinary)
            patch.setattr(subprocess, "Popen", ordinary)
        found = machine.probe()
        if not found.namespaces:
            pytest.skip(" ".join(found.missing))
        with Pool(2, start, task, pack=pack, readable=[str(HERE)], parts=True) as made:
            with secretive():
                made.start()
            yield made


def run(pool: Pool, *codes: str) -> list[Any]:
    """What `answer` is after each code, one worker each."""
    found: dict[int, Any] = {}
    tasks: list[list[Any]] = [[n, code] for n, code in enumerate(codes)]
    for item, outcome in pool.run(tasks, LONG):
        assert not isinstance(outcome, Lost) or "killed" in outcome.reason, outcome
        found[item[0]] = None if isinstance(outcome, Lost) else json.loads(outcome)
    return [found[n] for n in range(len(codes))]


def test_bytes_arrive_apart(pool: Pool):
    assert run(pool, "answer = data.decode()", "answer = data.decode()") == [
        "bytes of 0",
        "bytes of 1",
    ]


def test_no_folder_of_the_machine_is_there(pool: Pool, tmp_path: Path):
    (tmp_path / "gradebook.db").write_text("grades")
    look = f"""
import os
answer = [
    os.path.exists({str(tmp_path)!r}),
    sorted(os.listdir({str(HERE.parent)!r})),
    os.listdir("/etc/..") == os.listdir("/"),
]
"""
    (told,) = run(pool, look)
    assert told[0] is False
    assert set(told[1]) <= {"autograder", "tests", Path(sys.prefix).name}
    assert told[2] is True


@pytest.mark.parametrize("who", ["root", "user"])
def test_no_work_is_there_that_lies_among_the_systems_folders(
    who: str, monkeypatch: pytest.MonkeyPatch
):
    work_among_the_systems(monkeypatch, ordinary=who == "user")
    private = ["/usr/local/share/course"]
    paths = [f"/usr/{name}/work" for name in AMONG_THE_SYSTEMS]
    look = f"import os; answer = [os.path.exists('/usr/bin'), *filter(os.path.exists, {paths})]"
    with Pool(1, start, task, pack=pack, readable=[str(HERE)], private=private, parts=True) as made:
        assert run(made, look) == [[True]]


def test_nothing_can_be_written_but_scratch(pool: Pool):
    write = """
import os, sys
from pathlib import Path
answer = []
places = [*sys.path, "/", "/usr", "/etc", "/dev", "/dev/shm", sys.prefix, "/proc/sys/kernel"]
for place in [place for place in places if place]:
    try:
        Path(place, "owned").write_text("x")
        answer.append(place)
    except OSError:
        pass
for name in ("/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/self/oom_score_adj"):
    try:
        Path(name).write_text("x" if "oom" not in name else "-900")
        answer.append(name)
    except OSError:
        pass
"""
    assert run(pool, write) == [["/dev/shm"]]  # which is scratch


def test_the_instructors_umask_stays_outside(pool: Pool):
    assert run(pool, "import os; answer = [os.umask(0), os.listdir('/etc') != []]") == [
        [0o022, True]
    ]


def test_scratch_is_a_workers_own(pool: Pool):
    leave = """
import os, tempfile
from pathlib import Path
places = [Path.home(), Path(tempfile.gettempdir()), Path("/dev/shm"), Path.cwd()]
if Path("/tmp").is_symlink():  # not where Python itself lies below it
    places.append(Path("/tmp"))
answer = [str(path) for place in places for path in place.iterdir()]
for place in places:
    (place / "left").write_text("x")
"""
    assert run(pool, leave, leave, leave) == [[], [], []]


def test_of_its_files_only_those_on_scratch_may_be_lent(pool: Pool):
    look = """
import tempfile
from pathlib import Path
from autograder.bridge import lent
places = [Path.home(), Path(tempfile.gettempdir()), Path.cwd()]
answer = [lent.ROOTS, all(Path(lent.ROOTS[0]) in path.resolve().parents for path in places)]
"""
    assert run(pool, look) == [[["/scratch"], True]]


def test_it_has_no_right(pool: Pool):
    rights = """
from pathlib import Path
lines = Path("/proc/self/status").read_text().splitlines()
answer = [line.split()[1] for line in lines if line.startswith(("Cap", "NoNewPrivs"))]
"""
    (told,) = run(pool, rights)
    assert set(told[:-1]) == {"0000000000000000"}
    assert told[-1] == "1"


@pytest.mark.parametrize(
    "code",
    [
        "import os; os.unshare(0x10000000)" if hasattr(os, "unshare") else "raise OSError",
        "import ctypes; l = ctypes.CDLL(None, use_errno=True)\n"
        "if l.unshare(0x10000000): raise OSError(ctypes.get_errno(), 'no')",
        "import ctypes; l = ctypes.CDLL(None, use_errno=True)\n"
        "if l.mount(b't', b'/scratch', b'tmpfs', 0, b''): raise OSError(ctypes.get_errno(), 'no')",
        "import ctypes; l = ctypes.CDLL(None, use_errno=True)\n"
        "if l.umount2(b'/proc', 2): raise OSError(ctypes.get_errno(), 'no')",
        "import os; os.chroot('/scratch')",
        "import os; os.setuid(0) if os.getuid() else os.seteuid(1)",
        "import os; os.mknod('/scratch/home/sda', 0o60600, os.makedev(8, 0))",
        "open('/proc/1/environ').read().index('COURSE')",
    ],
)
def test_it_cannot_get_out(pool: Pool, code: str):
    (told,) = run(pool, code + "\nanswer = 'out'")
    assert told != "out"


def test_there_is_no_network(pool: Pool):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        call = f"import socket; socket.create_connection(('127.0.0.1', {port}), 2); answer = 'out'"
        (told,) = run(pool, call)
    assert told != "out"


def test_no_other_process_can_be_seen_or_ended(pool: Pool):
    kill = """
import os, signal
from pathlib import Path
answer = [name.name for name in Path("/proc").iterdir() if name.name.isdigit()]
for number in [*range(2, 400), -1]:
    try:
        os.kill(number, signal.SIGKILL)
        answer.append(number)
    except OSError:
        pass
"""
    wait = "import time; time.sleep(1); answer = 'there'"
    told, other, again = run(pool, kill, wait, "answer = 'there'")
    assert told in (["1"], ["1", -1])
    assert (other, again) == ("there", "there")


def test_a_worker_that_dies_costs_itself(pool: Pool):
    die = f"import os; os.kill(os.getpid(), {int(signal.SIGSEGV)})\nos._exit(1)"
    tasks = [[0, die], [1, "answer = 1"], [2, "answer = 2"]]
    found = {item[0]: outcome for item, outcome in pool.run(tasks, LONG)}
    assert isinstance(found[0], Lost)
    assert (found[1], found[2]) == (b"1", b"2")


@pytest.mark.parametrize(
    ("end", "how"),
    [
        ("sum(range(10 ** 12))", "timeout"),
        (f"import os; os.kill(os.getpid(), {int(signal.SIGTERM)}); 1 / 0", None),  # it lives on
        ("import ctypes; ctypes.string_at(0)", "died"),
        ("import os; os.abort()", "died"),
    ],
)
def test_a_part_that_ends_a_worker_is_left_out(pool: Pool, end: str, how: str | None):
    code = f"""
from autograder.isolation import parts as module
module.SPARE = 0.2
if "one" not in parts.without:
    with parts.under_way("one", 0.2):
        {end}
answer = parts.without
"""
    told, other = run(pool, code, "answer = parts.without")
    assert told == ({"one": how} if how else "ZeroDivisionError: division by zero")
    assert other == {}


def test_it_is_limited(pool: Pool):
    look = """
import resource
answer = [resource.getrlimit(resource.RLIMIT_CPU)[0], resource.getrlimit(resource.RLIMIT_NPROC)[0]]
"""
    (told,) = run(pool, look)
    assert told in ([900, 64], [900, 1064])  # where others of the same user count: room for them


def test_what_it_says_reaches_no_terminal(capfd: pytest.CaptureFixture[str], pool: Pool):
    say = "import os; os.write(1, b'seen'); os.write(2, b'seen'); answer = 1"
    assert run(pool, say) == [1]
    assert "seen" not in "".join(capfd.readouterr())
