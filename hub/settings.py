"""What course.toml says of a hub's course, each mistake in it in one sentence."""

import csv
import os
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

FILE = "course.toml"
NAME = re.compile(r"[a-z_][a-z0-9_-]{0,31}")  # of an account, as useradd takes it
COURSE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")  # a folder's name and a part of an address
NEEDED = ("course", "folder", "account", "instructors", "students")
OPTIONAL: dict[str, Any] = {
    "helpers": [],
    "exchange": "/usr/local/share/nbgrader/exchange",
    "address": "http://:80",
    "certificate": "",  # of that address, and its key: files, for https
    "key": "",
    "inner_ports": [801, 802, 803],  # of the hub, its proxy, formgrader
    "environment": "",  # of the course; by default its .venv
    "proxy": "",  # its program; by default in node_modules
}
LISTS = ("instructors", "helpers")


class HubError(Exception):
    """Something the person at the keyboard has to mend; one sentence: what, where, what to do."""


@dataclass(frozen=True)
class Hub:
    """A hub's course: where it lies, and who takes part."""

    root: Path
    course: str
    folder: Path
    account: str
    instructors: tuple[str, ...]
    helpers: tuple[str, ...]
    students: tuple[str, ...]
    table: Path | None  # of students, where they stand in one
    exchange: Path
    address: str
    certificate: str
    key: str
    inner_ports: tuple[int, ...]
    environment: Path
    proxy: Path

    @property
    def graders(self) -> tuple[str, ...]:
        """Who may use formgrader."""
        return tuple(dict.fromkeys((*self.instructors, *self.helpers)))

    @property
    def people(self) -> tuple[str, ...]:
        """Who may log in."""
        return tuple(dict.fromkeys((*self.graders, *self.students)))

    @property
    def state(self) -> Path:
        """What the hub itself keeps, for root alone."""
        return self.root / "state"

    def jupyter(self, kind: str) -> Path:
        """Jupyter's settings for one kind of server."""
        return self.root / "jupyter" / kind


def read(root: Path) -> Hub:
    """Read course.toml in a hub's folder."""
    path = root / FILE
    try:
        said = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise HubError(f"There is no {path}: copy the course's folder hub/ and edit it.") from None
    except (OSError, UnicodeError, RecursionError, tomllib.TOMLDecodeError) as error:
        raise HubError(f"{path} cannot be read: {error}.") from error
    _look_at_fields(path, said)
    said = OPTIONAL | said
    _look_at_address(path, said)
    people = {name: _names(path, name, said[name]) for name in LISTS}
    people["students"] = _students(path, said["students"])
    _look_at_people(path, said["account"], people)
    folder = Path(said["folder"])
    proxy = root / "node_modules" / ".bin" / "configurable-http-proxy"
    return Hub(
        root=root,
        course=said["course"],
        table=root / said["students"] if isinstance(said["students"], str) else None,
        folder=folder,
        account=said["account"],
        exchange=Path(said["exchange"]),
        address=said["address"],
        certificate=said["certificate"],
        key=said["key"],
        inner_ports=_ports(path, said["inner_ports"]),
        environment=Path(said["environment"] or folder / ".venv"),
        proxy=Path(said["proxy"] or proxy),
        **people,
    )


def _look_at_fields(path: Path, said: dict[str, Any]) -> None:
    """No field is missing, unknown or of another type."""
    for name in NEEDED:
        if not said.get(name):
            raise HubError(f"{path} does not say `{name}`.")
    for name, value in said.items():
        if name not in (*NEEDED, *OPTIONAL):
            known = ", ".join((*NEEDED, *OPTIONAL))
            raise HubError(f"{path}: there is no setting `{name}`; there are {known}.")
        if name not in (*LISTS, "students", "inner_ports") and not isinstance(value, str):
            raise HubError(f"{path}: `{name}` is to be a text in quotes.")
    for name in ("folder", "exchange", "environment", "proxy", "certificate", "key"):
        value = said.get(name, "")
        if (value or (name == "exchange" and name in said)) and not _is_whole(value):
            raise HubError(f"{path}: `{name}` is to be a whole path, from / on, and not / alone.")
    if not COURSE.fullmatch(said["course"]):
        raise HubError(f"{path}: `course` may hold letters, digits, - _ and . only.")


def _is_whole(value: str) -> bool:
    """Whether this is a path from / on, and leads to something below."""
    return (
        Path(value).is_absolute() and "\0" not in value and os.path.normpath(value).strip("/") > ""
    )


def _look_at_address(path: Path, said: dict[str, Any]) -> None:
    """Whoever says https has a certificate and its key, and whoever has them says https."""
    try:
        parts = urlsplit(said["address"])
        odd = parts.port == 0 or parts.query or parts.fragment
        scheme = "" if odd else parts.scheme
    except ValueError:
        scheme = ""
    if scheme not in ("http", "https"):
        raise HubError(
            f"{path}: `address` is to be as in https://:443, to begin with https:// or http:// and "
            "to have a port that there is, if any."
        )
    port = urlsplit(said["address"]).port or {"http": 80, "https": 443}[scheme]
    if port in _ports(path, said["inner_ports"]):
        raise HubError(f"{path}: port {port} is that of `address` and one of `inner_ports`, too.")
    if bool(said["certificate"]) != bool(said["key"]):
        raise HubError(f"{path}: `certificate` and `key` are to be given both, or none.")
    if bool(said["certificate"]) != (scheme == "https"):
        raise HubError(
            f"{path}: an `address` with https:// goes with `certificate` and `key`, one with "
            "http:// without."
        )


def _look_at_people(path: Path, account: str, people: dict[str, tuple[str, ...]]) -> None:
    """The course's account is nobody's, and no student grades."""
    _names(path, "account", [account])
    for kind, names in people.items():
        if account in names:
            raise HubError(f"{path}: {account} is the course's account and none of its {kind}.")
    if both := set(people["students"]) & {*people["instructors"], *people["helpers"]}:
        raise HubError(f"{path}: {', '.join(sorted(both))} cannot be a student and grade.")


def _names(path: Path, where: str, names: Any) -> tuple[str, ...]:
    """Names of accounts, each once."""
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise HubError(f'{path}: `{where}` is to be a list of names, as in ["ines", "jonas"].')
    for name in names:
        if not NAME.fullmatch(name) or name == "root":
            raise HubError(
                f"{path}: {name!r} in `{where}` cannot be an account: small letters, digits, - "
                "and _ only, at most 32, and not root."
            )
    return tuple(dict.fromkeys(names))


def _ports(path: Path, said: Any) -> tuple[int, ...]:
    """Three ports, by which hub, proxy and formgrader talk on this machine."""
    fine = isinstance(said, list) and len(said) == 3 and all(type(one) is int for one in said)
    if not fine or len({*said}) < 3 or not all(0 < one < 65536 for one in said):
        raise HubError(f"{path}: `inner_ports` is to be three numbers, as in [801, 802, 803].")
    return tuple(said)


def _students(path: Path, said: Any) -> tuple[str, ...]:
    """Students' names: a list, or a table's column `student`."""
    if not isinstance(said, str):
        return _names(path, "students", said)
    table = path.parent / said
    if table.exists() and not table.is_file():  # a pipe would hold up every login
        raise HubError(f"{table}, the list of students, is no file.")
    try:
        with table.open(encoding="utf-8-sig", newline="") as file:
            start = file.read(4096).partition("\n")[0]
            file.seek(0)
            sign = ";" if ";" in start else ","
            # strict: a quote that nobody has closed would take in all who stand below it
            rows = list(csv.DictReader(file, delimiter=sign, strict=True))
    except (OSError, UnicodeError, csv.Error) as error:
        raise HubError(f"{table}, the list of students, cannot be read: {error}.") from error
    if rows and "student" not in rows[0]:
        raise HubError(f"{table} has no column `student`, which holds the names of accounts.")
    names = [(row["student"] or "").strip() for row in rows]
    return _names(table, "student", [name for name in names if name])
