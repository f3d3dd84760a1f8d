"""A real hub on free ports: accounts, servers, the exchange; and those who use it, by its pages.

    python -m tests.hubs ETC USER COMMAND ...

runs a command as a user, from root, in a view of the file system in which ETC/passwd, ETC/group
and ETC/shadow are those of /etc: accounts with passwords, of which none stays behind.
"""

import asyncio
import ctypes
import json
import os
import pwd
import random
import shlex
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.cookiejar import Cookie
from pathlib import Path
from typing import Any

import requests
from requests.cookies import get_cookie_header
from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect

from tests.small_course import NAME, PAGE, make_course
from tests.users import BIND, NEW_MOUNTS, PRIVATE, libc, must, open_up

ROOT = Path(__file__).parents[1]
COURSE, GRADER = "small", "grader"
FORMGRADER = f"/services/{COURSE}/formgrader"
INSTRUCTORS, HELPERS = ("ines", "jonas"), ("hanna",)
STUDENTS = ("ada", "bela", "chidi")
STRANGER = "eve"  # has an account of the machine, and takes no part
PEOPLE = (GRADER, *INSTRUCTORS, *HELPERS, *STUDENTS, STRANGER)
PORTS = range(500, 1024)  # below 1024, as a hub's are to be
FIRST = 42000  # number of the first account on the first port
MOST = 10  # accounts of one machine
PASSWORD = "of all who take part"
PATIENCE = 240.0  # seconds until what does not come counts as hung
SAFE = """
c.ExchangeFactory.collect = "autograder.classroom.inbound.SafeCollect"
c.ExchangeFactory.list = "autograder.classroom.listed.SafeList"
c.ExchangeFactory.release_feedback = "autograder.classroom.outbound.SafeRelease"
c.ExportApp.plugin_class = "autograder.classroom.grade_table.GradeTable"
"""


class NoHub(Exception):
    """Why no hub can run here, in words."""


def wait_for(found: Callable[[], Any], what: str) -> Any:
    """Ask until there is something; what does not come in a long time is an error."""
    end = time.monotonic() + PATIENCE
    while not (it := found()):
        if time.monotonic() > end:
            raise TimeoutError(f"it never came to this: {what}")
        time.sleep(0.2)
    return it


class Site:
    """A machine's accounts, a course, an exchange and a hub, in one folder."""

    def __init__(self, folder: Path) -> None:
        """Make all of it but the hub's start."""
        self.folder, self.etc, self.hub = folder, folder / "etc", folder / "hub"
        self.course, self.exchange = folder / "course", folder / "exchange"
        self.sessions: list[requests.Session] = []
        ports = free_ports(4)
        self.first = first_account(ports[0])
        self._accounts()
        shutil.copytree(ROOT / "hub", self.hub, ignore=shutil.ignore_patterns("node_modules"))
        self.url = f"https://127.0.0.1:{ports[0]}"
        self.certificate, key = certified(folder)
        self._trust(self.certificate)
        (self.hub / "course.toml").write_text(
            f'course = "{COURSE}"\nfolder = "{self.course}"\naccount = "{GRADER}"\n'
            f"instructors = {json.dumps(INSTRUCTORS)}\nhelpers = {json.dumps(HELPERS)}\n"
            f'students = "students.csv"\nexchange = "{self.exchange}"\n'
            f'address = "{self.url}"\ncertificate = "{self.certificate}"\nkey = "{key}"\n'
            f'inner_ports = {ports[1:]}\nenvironment = "{sys.prefix}"\n'
            f'proxy = "{proxy()}"\n'
        )
        (self.hub / "students.csv").write_text("student\n" + "\n".join(STUDENTS) + "\n")
        make_course(self.course, hooks=True)
        with (self.course / "nbgrader_config.py").open("a") as file:
            file.write(f'{PAGE}{SAFE}c.Exchange.root = "{self.exchange}"\n')
        for path in (self.course, *self.course.rglob("*")):
            os.chown(path, self.first, self.first)
        said = self.run("root", sys.executable, "-m", "hub", "prepare", where=self.folder)
        assert "ready" in said, said

    def home(self, who: str) -> Path:
        """A person's home folder."""
        return self.folder / "home" / who

    def id(self, who: str) -> int:
        """A person's number."""
        return self.first + PEOPLE.index(who)

    def _accounts(self) -> None:
        """Accounts of the machine with a password, each with a home of its own."""
        for folder in (self.etc, self.folder / "home"):
            folder.mkdir()
        secret = hashed(PASSWORD)
        passwd, group, shadow = ["root:x:0:0::/root:/bin/sh"], ["root:x:0:"], ["root:!:1::::::"]
        for who in PEOPLE:
            id, home = self.id(who), self.home(who)
            passwd.append(f"{who}:x:{id}:{id}::{home}:/bin/sh")
            group.append(f"{who}:x:{id}:")
            shadow.append(f"{who}:{'!' if who == GRADER else secret}:19000::::::")
            home.mkdir(mode=0o700)
            settings = home / ".jupyter" / "jupyter_lab_config.py"
            settings.parent.mkdir()
            settings.write_text("c.LabApp.expose_app_in_browser = True\n")  # for a browser's test
            for path in (home, settings.parent, settings):
                os.chown(path, id, id)
        for name, lines in (("passwd", passwd), ("group", group), ("shadow", shadow)):
            (self.etc / name).write_text("\n".join([*lines, ""]))
        (self.etc / "shadow").chmod(0o600)

    def _trust(self, certificate: Path) -> None:
        """What update-ca-certificates does."""
        asked = ["openssl", "x509", "-noout", "-hash", "-in", str(certificate)]
        name = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()
        (self.etc / "certs").mkdir()
        shutil.copyfile(certificate, self.etc / "certs" / f"{name}.0")

    def command(self, who: str, *command: str) -> list[str]:
        """What runs a command as a person, where there are these accounts."""
        return [sys.executable, "-m", "tests.hubs", str(self.etc), who, *command]

    def run(self, who: str, *command: str, where: Path | None = None) -> str:
        """Run a command as a person to its end, which has to be good; what it said."""
        status, said = self.attempt(who, *command, where=where)
        assert status == 0, said
        return said

    def attempt(self, who: str, *command: str, where: Path | None = None) -> tuple[int, str]:
        """Run a command as a person; its status, and what it said."""
        place = where or (self.course if who == GRADER else self.home(who))
        done = subprocess.run(
            self.command(who, "sh", "-c", 'cd "$0" && exec "$@"', str(place), *command),
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        return done.returncode, done.stdout

    def grader(self, *command: str) -> str:
        """Run one of nbgrader's or the grader's commands as the course's account."""
        program = ["-m", "autograder"] if command[0] == "autograder" else ["-m", "nbgrader"]
        return self.run(GRADER, sys.executable, *program, *command[1:])

    @contextmanager
    def watcher(self) -> Iterator[None]:
        """Inside, works are graded as they arrive and their feedback is released."""
        with (self.folder / "watch.log").open("w") as log:
            command = self.command(
                GRADER, "sh", "-c", 'cd "$0" && exec "$@"', str(self.course), sys.executable
            )
            with subprocess.Popen(
                [*command, "-m", "autograder", "watch", "--jobs=1"],
                cwd=ROOT,
                stdout=log,
                stderr=log,
            ) as watcher:
                try:
                    yield
                finally:
                    watcher.send_signal(signal.SIGINT)

    @contextmanager
    def running(self) -> Iterator[subprocess.Popen]:
        """Inside, the hub runs; at the end nothing that it has started."""
        with (self.folder / "hub.log").open("w") as log:
            process = subprocess.Popen(
                self.command(
                    "root",
                    *("sh", "-c", 'cd "$0" && exec "$@"', str(self.folder)),
                    *(sys.executable, "-m", "hub", "run"),
                ),
                cwd=ROOT,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            try:
                self._wait_until_up(process)
                yield process
            finally:
                process.terminate()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(60)
                self._end_all(process)

    def log(self) -> str:
        """The end of what the hub said."""
        return (self.folder / "hub.log").read_text()[-6000:]

    def _wait_until_up(self, process: subprocess.Popen) -> None:
        def up() -> bool:
            if process.poll() is not None:
                raise NoHub(f"the hub has ended: {self.log()}")
            with suppress(requests.ConnectionError):
                return requests.get(
                    f"{self.url}/hub/api/", timeout=60, verify=str(self.certificate)
                ).ok
            return False

        wait_for(up, "the hub answers")

    def _end_all(self, hub: subprocess.Popen) -> None:
        """Kill the hub, its proxy, and whatever these accounts still run."""
        left = [hub.pid] if hub.poll() is None else []
        with suppress(OSError, ValueError):
            left.append(int((self.hub / "state" / "proxy.pid").read_text()))
        numbers = {self.id(who) for who in PEOPLE}
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if folder.stat().st_uid in numbers:
                    left.append(int(folder.name))
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


class Person:
    """Somebody with a browser, who has logged in; or tried to, see `there`."""

    def __init__(self, site: Site, name: str, password: str = PASSWORD) -> None:
        """Log in by the hub's form."""
        self.site, self.name = site, name
        self._session = requests.Session()
        self._session.verify = str(site.certificate)
        self._session.trust_env = False  # or a variable's certificates would count instead
        site.sessions.append(self._session)
        page = f"{site.url}/hub/login"
        self._session.get(page, timeout=PATIENCE)
        form = {"username": name, "password": password, "_xsrf": self._mark(page)}
        self.there = self._session.post(
            page, data=form, timeout=PATIENCE, allow_redirects=False
        ).is_redirect

    def _mark(self, url: str) -> str:
        """What shows that a request comes from a page of this place."""
        path = url.removeprefix(self.site.url)
        found = [one for one in self._session.cookies if one.name == "_xsrf"]
        fitting = [one for one in found if path.startswith(one.path)]
        return max(fitting, key=lambda one: len(one.path)).value or "" if fitting else ""

    def get(self, path: str) -> requests.Response:
        """A page, by whatever other pages lead to it."""
        return self._session.get(f"{self.site.url}{path}", timeout=PATIENCE)

    def ask(self, path: str, method: str = "GET", content: Any = None) -> Any:
        """What a page of one's own gets from its server: JSON, or an error with its status."""
        url = f"{self.site.url}{path}"
        answer = self._session.request(
            method,
            url,
            json=content,
            headers={"X-XSRFToken": self._mark(url), "Referer": url},
            timeout=PATIENCE,
        )
        answer.raise_for_status()
        return answer.json() if answer.content else None

    @property
    def place(self) -> str:
        """Where their server is."""
        return f"/user/{self.name}"

    def open_server(self) -> None:
        """Have the hub start one's server, and enter it."""
        self.get("/hub/spawn")

        def up() -> bool:
            page = self.get(f"{self.place}/lab")
            return page.ok and page.url.startswith(f"{self.site.url}{self.place}/")

        wait_for(up, f"{self.name}'s server is up; the hub said: {self.site.log()}")

    def assignment(self, status: str = "") -> dict[str, Any]:
        """What the list of assignments says of the one there is."""
        return self._one(self.ask(f"{self.place}/assignments?course_id={COURSE}"), status)

    def press(self, button: str) -> dict[str, Any]:
        """Press a button of that list: fetch, submit or fetch_feedback."""
        asked = {"assignment_id": NAME, "course_id": COURSE}
        told = self.ask(f"{self.place}/assignments/{button}", "POST", asked)
        return self._one(told, "submitted" if button != "fetch" else "")

    def _one(self, told: dict[str, Any], status: str) -> dict[str, Any]:
        assert told["success"], told
        found = [one for one in told["value"] if not status or one["status"] == status]
        assert len(found) >= 1, told
        return found[0]

    def answer(self, answers: dict[str, str]) -> None:
        """Write into what was fetched, as the own server's editor does, and save."""
        path = f"{self.place}/api/contents/{NAME}/numbers.ipynb"
        content = self.ask(path)["content"]
        for cell in content["cells"]:
            cell["source"] = answers.get(cell["id"], cell["source"])
        self.ask(path, "PUT", {"type": "notebook", "format": "json", "content": content})

    def feedback(self) -> str:
        """The newest page of feedback, as the own server shows it; empty if there is none yet."""
        submissions = self.press("fetch_feedback")["submissions"]
        newest = max(submissions, key=lambda one: one["timestamp"])
        if not (where := newest["local_feedback_path"]):
            return ""
        return self.get(f"{self.place}/files/{where}/numbers.html").text

    @property
    def cookies(self) -> list[Cookie]:
        """What their browser was given to keep."""
        return [*iter(self._session.cookies)]

    def token(self) -> str:
        """A token that enters one's server."""
        self.get("/hub/token")
        asked = {"note": "a browser", "scopes": ["access:servers!user"]}
        return self.ask(f"/hub/api/users/{self.name}/tokens", "POST", asked)["token"]

    def terminal(self, program: str) -> str:
        """Run a program of Python in a terminal of one's server; what it printed."""
        file = {"type": "file", "format": "text", "content": program}
        self.ask(f"{self.place}/api/contents/mine.py", "PUT", file)
        name = self.ask(f"{self.place}/api/terminals", "POST")["name"]
        line = f"{sys.executable} mine.py > mine.txt 2> mine.err; echo end-$((40 + 2))\r"
        asyncio.run(self._type(f"{self.place}/terminals/websocket/{name}", line, "end-42"))
        return self.get(f"{self.place}/files/mine.txt").text

    async def _type(self, path: str, line: str, end: str) -> None:
        """Type a line into a terminal, and wait until it shows a text."""
        url = f"{self.site.url}{path}"
        request = requests.Request("GET", url).prepare()
        cookies = get_cookie_header(self._session.cookies, request) or ""
        headers = {"Cookie": cookies, "Origin": self.site.url}
        asked = HTTPRequest(
            url.replace("http", "ws", 1), headers=headers, ca_certs=str(self.site.certificate)
        )
        line_to = await websocket_connect(asked)
        await line_to.write_message(json.dumps(["stdin", line]))
        shown = ""
        while end not in shown:
            told = await asyncio.wait_for(line_to.read_message(), PATIENCE)
            assert told is not None, f"the terminal has closed: {shown}"
            kind, *text = json.loads(told)
            shown += "".join(map(str, text)) if kind == "stdout" else ""
        line_to.close()
        while await asyncio.wait_for(line_to.read_message(), PATIENCE) is not None:
            pass  # else its socket outlives the loop, and ends as another test's warning


def press(who: Person, button: str, path: str = f"assignment/{NAME}") -> None:
    """Press a button of formgrader's."""
    who.get(f"{FORMGRADER}/")
    told = who.ask(f"{FORMGRADER}/api/{path}/{button}", "POST", {})
    assert told["success"], told


def certified(folder: Path) -> tuple[Path, Path]:
    """A certificate that vouches for itself, by the page's command, and its key."""
    text = (ROOT / "book" / "running.md").read_text(encoding="utf-8")
    (command,) = [line for line in text.splitlines() if "openssl" in line and "HUB" in line]
    found = folder / "cert.pem", folder / "key.pem"
    words = shlex.split(command.strip().removeprefix("sudo "))
    places = {f"/etc/hub/{path.name}": str(path) for path in found}
    names = ("/CN=HUB", "/CN=127.0.0.1"), ("subjectAltName=DNS:HUB", "subjectAltName=IP:127.0.0.1")
    words = [places.get(word, dict(names).get(word, word)) for word in words]
    subprocess.run(words, check=True, capture_output=True)
    return found


def first_account(port: int) -> int:
    """The first number of the accounts beside this port, which no other hub has meanwhile.

    What these accounts run is killed in the end: nobody else's, whose hub runs beside this one.
    """
    return FIRST + MOST * PORTS.index(port)


def free_ports(count: int) -> list[int]:
    """Ports nobody listens on."""
    found: list[int] = []
    for port in random.sample(PORTS, len(PORTS)):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            found.append(port)
        if len(found) == count:
            return found
    raise NoHub("there are no free ports below 1024, which root could take")


def hashed(password: str) -> str:
    """A password as /etc/shadow holds it."""
    try:
        crypt = ctypes.CDLL("libcrypt.so.1").crypt
    except OSError:
        raise NoHub("libcrypt.so.1, by which accounts' passwords are kept, is missing") from None
    crypt.restype = ctypes.c_char_p
    return crypt(password.encode(), b"$6$of-a-test$").decode()


def proxy() -> Path:
    """The hub's proxy, installed as its package-lock says; once, below build/."""
    folder = ROOT / "build" / "hub"
    program = folder / "node_modules" / ".bin" / "configurable-http-proxy"
    wanted = (ROOT / "hub" / "package-lock.json").read_bytes()
    kept = folder / "installed.json"
    if program.is_file() and kept.is_file() and kept.read_bytes() == wanted:
        return program
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copyfile(ROOT / "hub" / name, folder / name)
    from hub.prepare import npm_ci

    if said := npm_ci(folder):
        raise NoHub(f"npm could not install the hub's proxy: {said}")
    kept.write_bytes(wanted)
    return program


def why_not() -> str:
    """Why no hub can run on this machine; empty if one can."""
    if sys.platform != "linux" or os.geteuid():
        return "a hub for several accounts needs root on Linux"
    if not Path("/etc/pam.d/login").is_file():
        return "PAM, which asks for passwords, is not set up: /etc/pam.d/login is missing"
    return ""


@contextmanager
def machine() -> Iterator[Site]:
    """A machine on which a hub can run; NoHub where none can. Nothing of it stays behind."""
    if reason := why_not():
        raise NoHub(reason)
    folder = Path(tempfile.mkdtemp(prefix="hub-"))
    try:
        folder.chmod(0o755)
        made = Site(folder)
        yield made
        for session in made.sessions:
            session.close()
    finally:
        shutil.rmtree(folder)


@contextmanager
def site() -> Iterator[Site]:
    """The same, and a hub runs there."""
    with machine() as made, made.running():
        yield made


def be(etc: Path, who: str, command: list[str]) -> None:
    """Become a user where these are the accounts, and run a command."""
    must(libc.unshare(NEW_MOUNTS))
    must(libc.mount(None, b"/", None, PRIVATE, None))
    for name in ("passwd", "group", "shadow"):
        must(libc.mount(str(etc / name).encode(), f"/etc/{name}".encode(), None, BIND, None))
    if (trusted := Path(ssl.get_default_verify_paths().openssl_capath)).is_dir():
        must(libc.mount(str(etc / "certs").encode(), bytes(trusted.resolve()), None, BIND, None))
    open_up([Path(sys.base_prefix), Path(sys.prefix), ROOT])
    account = pwd.getpwnam(who)
    bin = Path(sys.prefix, "bin")
    environment = {
        "PATH": f"{bin}:/usr/local/bin:/usr/bin:/bin",
        "HOME": account.pw_dir,
        "USER": who,
        "LANG": "C.UTF-8",
        "OMP_NUM_THREADS": "1",
    }
    if who != "root":
        os.setgroups([])
        os.setgid(account.pw_gid)
        os.setuid(account.pw_uid)
    os.execvpe(command[0], command, environment)


if __name__ == "__main__":
    be(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
