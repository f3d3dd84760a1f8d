"""What a student's process sees: of the machine, of the course, and of other students."""

import sys
from pathlib import Path

import pytest

from autograder.isolation import scratch
from autograder.isolation.fork_server import ForkServer, Spawned
from tests.sandbox.among_the_systems import AMONG_THE_SYSTEMS, work_among_the_systems
from tests.sandbox.shared import HERE, ROOT, run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is for Linux")


def test_modules_are_warm(inside: Spawned):
    assert run(inside, "import sys; answer = 'fractions' in sys.modules")


def test_nothing_of_the_course_is_there(inside: Spawned):
    code = f"""
        from pathlib import Path
        root = Path({str(ROOT)!r})
        answer = sorted(path.name for path in root.iterdir())
    """
    there = run(inside, code)
    assert set(there) <= {"autograder", "tests", Path(sys.prefix).name}
    assert run(inside, f"import os; answer = os.listdir({str(ROOT / 'autograder')!r})") == []


def test_no_work_is_seen_that_lies_among_the_systems_folders(
    who: str, monkeypatch: pytest.MonkeyPatch
):
    work_among_the_systems(monkeypatch, ordinary=who == "user")
    private = ["/usr/local/share/course"]
    with (
        ForkServer([], [HERE], student="tests.sandbox.shared", private=private) as made,
        made.spawn() as spawned,
    ):
        paths = [f"/usr/{name}/work" for name in AMONG_THE_SYSTEMS]
        code = f"import os; answer = [*filter(os.path.exists, {paths}), os.path.exists('/usr/bin')]"
        assert run(spawned, code) == [True]


def test_what_is_named_is_read_where_all_around_it_is_private(
    who: str, monkeypatch: pytest.MonkeyPatch
):
    work_among_the_systems(monkeypatch, ordinary=who == "user")
    readable = [HERE, Path("/usr/src/app/source")]
    with (
        ForkServer([], readable, student="tests.sandbox.shared") as made,
        made.spawn() as spawned,
    ):
        code = "import os; answer = [os.listdir('/usr/src/app'), os.listdir('/usr/src/app/source')]"
        assert run(spawned, code) == [["source"], ["work"]]


def test_the_machine_has_no_more_folders_than_named(inside: Spawned):
    there = set(run(inside, "import os; answer = os.listdir('/')"))
    named = [ROOT, Path(sys.prefix), Path(sys.base_prefix)]
    allowed = {path.parts[1] for path in named} | {"usr", "bin", "sbin", "lib", "lib32", "lib64"}
    assert there <= allowed | {"libx32", "nix", "etc", "dev", "proc", "sys", "tmp", "scratch"}
    assert set(run(inside, "import os; answer = os.listdir('/etc')")).isdisjoint({"shadow", "ssh"})


def test_the_groups_that_it_is_in_have_no_names_there(inside: Spawned):
    groups = run(inside, "answer = open('/proc/self/cgroup').read()").splitlines()
    assert {line.split(":", 2)[2] for line in groups} <= {"/"}


def test_no_network(inside: Spawned):
    code = """
        import socket
        try:
            socket.create_connection(("127.0.0.1", 22), timeout=5)
        except OSError as error:
            answer = "refused"
    """
    assert run(inside, code) == "refused"
    cards = run(inside, "import os; answer = open('/proc/self/net/dev').read().count(':')")
    assert cards == 1  # the loopback, which is down


def test_no_other_process_is_seen(inside: Spawned):
    code = "import os; answer = [name for name in os.listdir('/proc') if name.isdigit()]"
    assert run(inside, code) == ["1", "2"]
    assert run(inside, "import os; os.kill(1, 9); answer = 'still there'") == "still there"
    assert "Permission" in run(inside, "open('/proc/1/mem', 'rb')")


def test_nothing_is_counted_there_that_others_use(inside: Spawned):
    names = run(inside, "import os; answer = [n for n in os.listdir('/proc') if not n.isdigit()]")
    assert set(names) <= {"self", "thread-self"}, "each tells one sandbox what another does"


def test_processors_are_counted_there_and_tell_nothing_of_others(inside: Spawned):
    folder = "/sys/devices/system/cpu"
    told = run(inside, f"answer = open('{folder}/online').read()")
    assert told == Path(folder, "online").read_text()
    names = run(inside, f"import glob; answer = glob.glob('{folder}/cpu*/*')")
    left = {Path(name).name for name in names}
    assert left <= {"cache", "topology"}, "there are none that count, as cpuidle does"


def test_it_cannot_take_back_that_it_goes_first_when_memory_runs_out(inside: Spawned):
    code = """
        import glob, os, threading
        wait = threading.Event()
        threading.Thread(target=wait.wait).start()
        answer = []
        for path in [*glob.glob("/proc/*/oom_*adj"), *glob.glob("/proc/self/task/*/oom_*adj")]:
            try:
                open(path, "w").write("0")
                answer.append(path)
            except OSError:
                pass
        wait.set()
        answer.append(open("/proc/self/oom_score_adj").read().strip())
    """
    assert run(inside, code) == ["1000"]


def test_the_environment_is_bare(monkeypatch: pytest.MonkeyPatch, who: str):
    monkeypatch.setenv("SECRET_OF_THE_TEACHER", "x")
    with (
        ForkServer([], [HERE], student="tests.sandbox.shared") as made,
        made.spawn() as spawned,
    ):
        there = run(spawned, "import os; answer = dict(os.environ)")
    assert "SECRET_OF_THE_TEACHER" not in there
    assert there["HOME"] == scratch.HOME
    assert there["OMP_NUM_THREADS"] == "1"
    assert there["LANG"] == "C.UTF-8"
    assert there["NBGRADER_EXECUTION"] == "autograde", "as nbgrader says to a notebook"


def test_only_its_own_socket_is_open(inside: Spawned):
    code = """
        import os
        answer = sorted(os.readlink(f"/proc/self/fd/{fd}").split(":")[0] for fd in range(4))
        answer.append(len(os.listdir("/proc/self/fd")))
    """
    assert run(inside, code) == ["/dev/null"] * 3 + ["socket", 5]  # the fifth lists the folder


def test_no_file_of_its_servers_is_open_however_many_that_has(who: str):
    del who
    with (
        ForkServer(["tests.sandbox.many_files"], [HERE], student="tests.sandbox.shared") as made,
        made.spawn() as spawned,
    ):
        assert len(run(spawned, "import os; answer = os.listdir('/proc/self/fd')")) == 5


def test_it_can_write_at_home_only(inside: Spawned):
    code = """
        import os, tempfile
        answer = []
        for top, folders, files in os.walk("/"):
            if top == "/proc":
                folders.clear()
                continue
            if top.startswith(("/usr/", "/scratch")) or top.count("/") > 6:
                folders.clear()
            if os.access(top, os.W_OK):
                answer.append(top)
        open("notes.txt", "w").write("x")
        tempfile.NamedTemporaryFile().write(b"x")
    """
    written = run(inside, code)
    assert isinstance(written, list), written
    assert all(path.startswith("/scratch") for path in written), written
    assert run(inside, "import os; answer = os.getcwd()") == scratch.HOME


def test_the_instructors_umask_stays_outside(inside: Spawned):
    assert run(inside, "import os; answer = os.umask(0o022)") == 0o022
    closed = """
        import os
        answer = []
        for top in ("/", "/etc", "/dev", "/scratch"):
            for name in os.listdir(top):
                if not os.access(os.path.join(top, name), os.R_OK) and name != "full":
                    answer.append(os.path.join(top, name))
    """
    assert run(inside, closed) == []


def test_two_students_share_no_files(box: ForkServer):
    with box.spawn() as one, box.spawn() as two:
        for path in ("notes.txt", "$TMPDIR/x", "/dev/shm/x"):
            made = f"import os; open(os.path.expandvars('{path}'), 'w').write('x'); answer = 1"
            assert run(one, made) == 1
            look = f"import os; answer = os.path.exists(os.path.expandvars('{path}'))"
            assert run(one, look) is True
            assert run(two, look) is False


def test_two_students_share_no_abstract_sockets(box: ForkServer):
    bind = r"import socket, builtins; builtins.s = socket.socket(1); s.bind('\0here'); answer = 1"
    with box.spawn() as one, box.spawn() as two:
        assert run(one, bind) == 1
        assert run(two, bind) == 1
