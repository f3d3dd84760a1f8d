"""Workers side by side: what comes back, what is lost, and that nothing stays behind."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from autograder.common.course import CourseError
from autograder.isolation import parts as parts_module
from autograder.isolation.batch import Batch, Entry, Work
from autograder.isolation.outcomes import Doubtful, Lost, Unwell
from autograder.isolation.parts import Parts
from autograder.isolation.pool import Pool
from tests.sandbox.shared import below, wait_until

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="workers are forked")

ROOT = Path(__file__).parents[1]
LONG = 60.0  # seconds; no task here comes near it


class State:
    """What a fork server has ready."""

    def __init__(self, farewell: str) -> None:
        self.pid = os.getpid()
        self.farewell = farewell

    def close(self) -> None:
        """Leave a sign of an orderly end."""
        if self.farewell:
            Path(self.farewell).write_text("closed")


def start(farewell: str = "") -> State:
    """Make ready."""
    return State(farewell)


def refuse() -> State:
    """Do not get ready, for a reason."""
    raise CourseError("There is no book; write it.")


def die() -> State:
    """Do not get ready, without a word."""
    os._exit(3)


def task(state: State, item: list[Any]) -> bytes:
    """Do what the item says."""
    what, *rest = item
    return ACTS[what](state, *rest) or b""


def be_unwell(_: State) -> bytes:
    """Say that the fork server cannot serve it."""
    raise Unwell("it is gone")


def sleep(_: State, seconds: float) -> bytes:
    """Take so long."""
    time.sleep(seconds)
    return b"slept"


def doubt(state: State, mark: str, others: str, second: list[Any]) -> bytes:
    """The second time: alone, and as the item says."""
    if Path(mark).exists():
        Path(mark).write_text(f"{sorted(Path(others).iterdir())}")
        return task(state, second)
    Path(mark).touch()
    return Doubtful(b"first")


def work(_: State, folder: str) -> bytes:
    """Be seen in a folder for a while."""
    with tempfile.NamedTemporaryFile(dir=folder):
        time.sleep(0.2)
    return b"worked"


def be_slow_once(_: State, mark: str) -> bytes:
    """Take too long the first time."""
    if not Path(mark).exists():
        Path(mark).touch()
        time.sleep(LONG)
    return b"in time"


def fail(_: State) -> bytes:
    """Raise something."""
    raise ValueError("no")


def send_signal(number: int) -> Callable[[State], None]:
    """Sends itself a signal."""
    return lambda _: os.kill(os.getpid(), number)


def memory(state: State) -> bytes:
    """How much the fork server has."""
    pages = Path("/proc", str(state.pid), "statm").read_text().split()
    return str(int(pages[1]) * os.sysconf("SC_PAGE_SIZE")).encode()


def kill_server(state: State) -> None:
    """End the fork server."""
    os.kill(state.pid, signal.SIGKILL)
    time.sleep(LONG)


def kill_server_once(state: State, mark: str) -> None:
    """End the fork server the first time."""
    if not Path(mark).exists():
        Path(mark).touch()
        kill_server(state)


ACTS: dict[str, Callable[..., bytes | None]] = {
    "echo": lambda _, said: str(said).encode(),
    "unwell": be_unwell,
    "sleep": sleep,
    "doubt": doubt,
    "work": work,
    "slow once": be_slow_once,
    "raise": fail,
    "exit": lambda _: sys.exit(3),
    "die": send_signal(signal.SIGKILL),
    "stop": send_signal(signal.SIGSTOP),
    "bytes": lambda _, count: bytes(count),
    "memory": memory,
    "kill server": kill_server,
    "kill server once": kill_server_once,
}


@pytest.fixture
def pool() -> Iterator[Pool]:
    """Two workers."""
    with Pool(2, start, task) as made:
        yield made


def results(pool: Pool, items: list[list[Any]], seconds: float = LONG) -> dict[str, bytes | Lost]:
    """What came back for each item."""
    return {str(item): result for item, result in pool.run(items, seconds)}


def test_every_task_has_its_own_result(pool: Pool):
    found = results(pool, [["echo", n] for n in range(30)])
    assert found == {str(["echo", n]): str(n).encode() for n in range(30)}


def test_a_slow_task_holds_up_no_other(pool: Pool):
    order = [item for item, _ in pool.run([["sleep", 1], ["echo", 1], ["echo", 2]], LONG)]
    assert order[-1] == ["sleep", 1]


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("die", "killed by signal 9"),
        ("raise", "ValueError: no"),
        ("exit", "SystemExit: 3"),
    ],
)
def test_a_worker_that_fails_costs_its_own_task(pool: Pool, what: str, words: str):
    found = results(pool, [["echo", 1], [what], ["echo", 2]])
    lost = found.pop(str([what]))
    assert isinstance(lost, Lost)
    assert words in lost.reason and not lost.its_own
    assert found == {str(["echo", 1]): b"1", str(["echo", 2]): b"2"}


@pytest.mark.parametrize("what", [["sleep", 1000], ["stop"]])
def test_a_worker_that_hangs_is_killed(pool: Pool, what: list[Any]):
    results(pool, [["echo", 0]])  # warm now
    found = results(pool, [what, ["echo", 1]], seconds=2)
    words = "the grading process took longer than 2 seconds"
    assert found[str(what)] == Lost(words, its_own=True)
    assert found[str(["echo", 1])] == b"1"


def test_who_took_too_long_is_tried_once_more_alone(pool: Pool, tmp_path: Path):
    results(pool, [["echo", 0]])  # warm now
    slow = ["slow once", str(tmp_path / "mark")]
    found = list(pool.run([slow, ["echo", 1], ["echo", 2]], 3))
    assert found[-1] == (slow, b"in time")


def test_a_large_result_comes_whole_and_a_huge_one_does_not(pool: Pool):
    found = results(pool, [["bytes", 20 << 20], ["bytes", 65 << 20]])
    assert found[str(["bytes", 20 << 20])] == bytes(20 << 20)
    assert found[str(["bytes", 65 << 20])] == Lost(
        "the grading process gave a result of more than 64 MB"
    )


def test_tasks_are_read_as_workers_get_free(pool: Pool):
    read = []

    def tasks() -> Iterator[list[Any]]:
        for number in range(100):
            read.append(number)
            yield ["echo", number]

    for done, _ in enumerate(pool.run(tasks(), LONG)):
        assert len(read) <= done + 4  # one is done and not looked at yet, two run


def test_memory_is_flat_in_the_number_of_tasks(pool: Pool):
    def memory() -> int:
        [found] = results(pool, [["memory"]]).values()
        assert isinstance(found, bytes)
        return int(found)

    results(pool, [["bytes", 1 << 20]] * 10)
    before = memory()
    for _ in pool.run((["bytes", 1 << 20] for _ in range(200)), LONG):
        pass
    assert memory() - before < 2 << 20


def test_a_run_that_is_left_early_ends_its_workers(pool: Pool):
    before = below(os.getpid())
    for _ in pool.run([["echo", 1], ["sleep", 1000]], LONG):
        break
    assert results(pool, [["echo", 2]]) == {str(["echo", 2]): b"2"}
    pool.close()
    wait_until(lambda: below(os.getpid()) <= before)


def test_a_warm_process_that_is_killed_comes_back(pool: Pool, tmp_path: Path):
    items = [["echo", 1], ["kill server once", str(tmp_path / "done")], ["echo", 2]]
    assert list(results(pool, items).values()).count(b"") == 1


def test_a_task_that_always_kills_the_warm_process_is_given_up(pool: Pool):
    found = results(pool, [["kill server"], ["echo", 1]])
    lost = found[str(["kill server"])]
    assert isinstance(lost, Lost)
    assert "warm process" in lost.reason and not lost.its_own


def test_who_ends_the_warm_process_costs_nobody_else(pool: Pool):
    items = [[["echo", n], ["kill server"]][n % 3 == 2] for n in range(15)]
    found = list(pool.run(items, LONG))
    assert len(found) == 15
    for item, outcome in found:
        assert isinstance(outcome, Lost) == (item == ["kill server"]), (item, outcome)


def test_several_who_end_the_warm_process_one_after_the_other_cost_nobody_else(pool: Pool):
    found = list(pool.run([*[["kill server"]] * 5, ["echo", 1]], LONG))
    assert [outcome for item, outcome in found if item == ["echo", 1]] == [b"1"]


def test_a_task_that_finds_the_warm_process_unwell_is_done_again_once(pool: Pool):
    items = [["unwell"], ["echo", 1], ["unwell"], ["echo", 2], ["echo", 3]]
    found = list(pool.run(items, LONG))
    lost = [outcome for item, outcome in found if item == ["unwell"]]
    assert [type(outcome) for outcome in lost] == [Lost, Lost]
    assert all(
        "no warm process (it is gone)" in one.reason for one in lost if isinstance(one, Lost)
    )
    assert sorted(o for _, o in found if isinstance(o, bytes)) == [b"1", b"2", b"3"]


@pytest.mark.parametrize(
    ("second", "counts"),
    [(["echo", 2], b"2"), (["raise"], b"first"), (["die"], b"first"), (["unwell"], b"first")],
)
def test_a_result_in_doubt_is_made_once_more_alone_after_all_others(
    pool: Pool, tmp_path: Path, second: list[Any], counts: bytes
):
    mark, others = tmp_path / "mark", tmp_path / "others"
    others.mkdir()
    doubt = ["doubt", str(mark), str(others), second]
    found = list(pool.run([doubt, *([["work", str(others)]] * 6)], LONG))
    assert [outcome for _, outcome in found] == [b"worked"] * 6 + [counts]
    assert type(found[-1][1]) is (Doubtful if counts == b"first" else bytes)
    assert mark.read_text() == "[]"


def test_two_results_in_doubt_are_made_one_after_the_other(pool: Pool, tmp_path: Path):
    (tmp_path / "others").mkdir()
    again = ["doubt", str(tmp_path / "2"), str(tmp_path), ["echo", 4]]
    items = [["doubt", str(tmp_path / n), str(tmp_path / "others"), again] for n in ("0", "1")]
    found = [outcome for _, outcome in pool.run(items, LONG)]
    assert found == [b"first", b"4"]  # still in doubt the second time: that counts


def test_the_warm_process_comes_back_only_so_often(pool: Pool):
    items = [["kill server"] for _ in range(20)]
    found = [result for _, result in pool.run(items, LONG)]
    assert len(found) == 20
    assert all(isinstance(result, Lost) for result in found)


def test_the_state_is_closed_at_the_end(tmp_path: Path):
    sign = tmp_path / "sign"
    with Pool(1, start, task, [str(sign)]) as made:
        results(made, [["echo", 1]])
    assert sign.read_text() == "closed"


def test_a_start_that_fails_is_told():
    with pytest.raises(CourseError, match="There is no book"):
        results(Pool(1, refuse, task), [["echo", 1]])
    with pytest.raises(CourseError, match="did not start: it ended"):
        results(Pool(1, die, task), [["echo", 1]])


def test_functions_that_cannot_be_imported_are_refused():
    with pytest.raises(ValueError, match="cannot be imported"):
        Pool(1, start, lambda state, item: b"")


def test_a_platform_without_fork_is_told(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delattr(os, "fork")
    with pytest.raises(CourseError, match="fork"):
        Pool(1, start, task)


def look() -> list[str]:
    """What a fork server finds before it is the caller's."""
    return [*os.environ, *sys.path]


def start_after(seen: list[str]) -> "Seen":
    """Make ready with what was found."""
    return Seen(seen)


class Seen:
    """What was found, first and then."""

    def __init__(self, seen: list[str]) -> None:
        kept = [os.environ.get(name) for name in ("OMP_NUM_THREADS", "NBGRADER_EXECUTION")]
        self.told = json.dumps([seen, [*os.environ, *sys.path], kept])


def tell(state: Seen, item: None) -> bytes:
    """What was found."""
    return state.told.encode()


def test_what_is_made_first_knows_nothing_of_the_caller(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SECRET_OF_THE_TEACHER", "x")
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.syspath_prepend("/teachers/own/folder")
    with Pool(1, start_after, tell, first=look) as made:
        [(_, told)] = made.run([None], LONG)
    assert isinstance(told, bytes)
    first, then, kept = json.loads(told)
    both = {"SECRET_OF_THE_TEACHER", "/teachers/own/folder"}
    assert both.isdisjoint(first)
    assert both <= set(then)
    assert kept == ["1", "autograde"]  # libraries have counted already


def in_parts(state: State, item: list[Any], *, parts: Parts) -> bytes:
    """Do parts, each a name and what happens in it; how those ended that are left out."""
    parts_module.SPARE = 0.3
    folder, todo = item
    Path(tempfile.mkstemp(dir=folder)[1]).write_text(str(len(list(Path(folder).iterdir()))))
    for name, what in todo:
        if name not in parts.without:
            with parts.under_way(name, 0.2):
                _end(what)
            _end(what.removeprefix("afterwards "))
    return json.dumps(parts.without).encode()


def _end(what: str) -> None:
    """End this process, or hang, in the way that is named."""
    if what == "spin":
        sum(range(10**12))  # C code that no handler of Python's interrupts
    if what == "wait":
        signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals))
        time.sleep(LONG)
    if what.startswith("SIG"):
        os.kill(os.getpid(), signal.Signals[what])


@pytest.fixture
def pool_of_parts() -> Iterator[Pool]:
    """Two workers that say what they do."""
    with Pool(2, start, in_parts, parts=True) as made:
        yield made


@pytest.mark.parametrize(
    ("what", "how", "tries"),
    [
        ("spin", "timeout", 2),
        ("SIGSEGV", "died", 2),
        ("SIGKILL", "died", 3),  # by a kernel short of memory, for others' sake: once more alone
        ("wait", "timeout", 3),  # and so where others may have taken the processors
    ],
)
def test_a_part_that_ends_its_worker_is_left_out(
    pool_of_parts: Pool, tmp_path: Path, what: str, how: str, tries: int
):
    results(pool_of_parts, [[str(tmp_path), []]])  # warm now
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
    items = [
        [str(folders[0]), [["a", ""], ["b", what], ["c", ""]]],
        [str(folders[1]), [["a", ""]]],
    ]
    found = results(pool_of_parts, items, seconds=3)
    assert found == {str(items[0]): json.dumps({"b": how}).encode(), str(items[1]): b"{}"}
    in_doubt = {item: isinstance(outcome, Doubtful) for item, outcome in found.items()}
    assert in_doubt == {str(items[0]): what == "SIGKILL", str(items[1]): False}
    assert [len(list(folder.iterdir())) for folder in folders] == [tries, 1]


def test_only_so_many_parts_are_left_out(pool_of_parts: Pool, tmp_path: Path):
    few = [[str(n), "SIGSEGV"] for n in range(5)]
    items = [[str(tmp_path), few], [str(tmp_path), [*few, ["5", "SIGSEGV"]]]]
    found = results(pool_of_parts, items)
    assert found[str(items[0])] == json.dumps(dict.fromkeys("01234", "died")).encode()
    lost = found[str(items[1])]
    assert isinstance(lost, Lost)
    assert "killed by signal 11" in lost.reason


@pytest.mark.parametrize(("spent", "left_out"), [(0.0, ("a", "died")), (31.0, None)])
def test_no_further_part_is_left_out_once_all_tries_took_three_times_as_long_as_one_may(
    spent: float, left_out: tuple[str, str] | None
):
    work = Work(Entry("task", spent=spent), -1, 0.0)
    work.progress.name = "a"
    batch = Batch[str](iter(()), seconds=10.0)
    assert batch.part_blamed(work, "was killed by signal 11 (SIGSEGV)") == left_out
    batch.without(work, ("a", "died"), in_doubt=False)
    assert batch.next[0].spent >= spent


def test_a_worker_that_ends_between_parts_is_lost(pool_of_parts: Pool, tmp_path: Path):
    items = [[str(tmp_path), [["a", "afterwards SIGSEGV"]]]]
    [lost] = results(pool_of_parts, items).values()
    assert isinstance(lost, Lost)
    assert "killed by signal 11" in lost.reason
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_when_the_caller_ends(number: int):
    code = f"""
        import sys; sys.path.insert(0, {str(ROOT)!r})
        from tests import test_pool
        test_pool.call_and_wait()
    """
    program = [sys.executable, "-c", textwrap.dedent(code)]
    with subprocess.Popen(
        program, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as caller:
        assert caller.stdout
        assert caller.stdout.readline() == "ready\n"
        wait_until(lambda: len(below(caller.pid)) == 3)
        mine = below(caller.pid)
        caller.send_signal(number)
    wait_until(lambda: not any(Path("/proc", str(pid)).exists() for pid in mine))


def call_and_wait() -> None:
    """Be a program with two workers that sleep, until killed."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's `&` has it ignored
    with Pool(2, start, task) as made:
        for _ in made.run([["echo", 1], ["sleep", 1000], ["sleep", 1000]], LONG):
            print("ready", flush=True)
