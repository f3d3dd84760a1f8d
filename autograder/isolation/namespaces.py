"""Namespaces: how a process leaves the machine, gets into a sandbox, and gives up its rights there.

The heavy ones, around the jail, are entered once (`leave_the_machine`). Each student then gets some
of its own (`enter`), which takes milliseconds, and the student's process is brought into them
(`fork_into`, `join`), without any right (`give_up_rights`).
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from autograder.isolation import jail, kernel, machine, processes, scratch
from autograder.isolation.limits import Limits
from autograder.isolation.machine import Capabilities
from autograder.isolation.seccomp import load_filter

_UIDS = 5000
_HOST = processes.HOST.encode()


def leave_the_machine(found: Capabilities) -> None:
    """Enter namespaces without network; the next child that is forked is their process 1."""
    uid, gid = os.getuid(), os.getgid()
    kernel.unshare(kernel.REST if found.own_uid else kernel.REST | kernel.NEWUSER)
    if not found.own_uid:
        kernel.map_ids((uid, uid), (gid, gid))
    kernel.mount("", "/", "", kernel.REC | kernel.PRIVATE)


def enter(found: Capabilities, limits: Limits, slot: int) -> None:
    """Enter a student's own namespaces; the next child that is forked is their process 1."""
    uid = machine.FIRST_UID + slot % _UIDS
    processes.go_first()
    if found.own_uid and found.user_namespaces:
        kernel.become(uid)
    flags = kernel.REST | kernel.NEWUSER if found.user_namespaces else kernel.REST
    outside = (os.getuid(), os.getgid())
    kernel.unshare(flags)
    if found.user_namespaces:
        kernel.map_ids((machine.INSIDE, outside[0]), (machine.INSIDE, outside[1]))
        with suppress(OSError):
            Path("/proc/sys/user/max_user_namespaces").write_text("0")
    jail.make_scratch(limits.disk_mb, None if found.user_namespaces else uid)
    kernel.check(kernel.libc().sethostname(_HOST, len(_HOST)), "sethostname")
    kernel.mount(
        "tmpfs",
        str(processes.PACKAGE),
        "tmpfs",
        kernel.RDONLY | kernel.NOSUID | kernel.NODEV,
        "size=4k,mode=555",
    )


def own_namespaces(*, user: bool) -> list[int]:
    """This process's namespaces as open files: that of users, if wanted, and of processes first."""
    names = [*(["user"] if user else []), "pid", "mnt", "net", "ipc", "uts"]
    names += ["cgroup"] if kernel.KNOWS_CGROUPS else []
    return [os.open(f"/proc/self/ns/{name}", os.O_RDONLY | os.O_CLOEXEC) for name in names]


def fork_into(space: int, back: int | None) -> int:
    """Fork a child into a namespace of processes; `back` is this process's own, if more follow."""
    kernel.set_namespace(space)
    child = -1
    try:
        child = os.fork()
    finally:
        if child and back is not None:
            kernel.set_namespace(back)
    return child


def fork_apart(own: int) -> int:
    """Fork a child that is process 1 of a new namespace; `own` is this process's own."""
    kernel.unshare(kernel.NEWPID)
    child = -1
    try:
        child = os.fork()
    finally:
        if child:
            kernel.set_namespace(own)
    return child


def own_mounts() -> None:
    """From now on what this process mounts is seen by it alone."""
    kernel.unshare(kernel.NEWNS)


def join(spaces: Sequence[int]) -> None:
    """Enter these namespaces, that of users first."""
    with suppress(PermissionError):  # an ordinary user's groups are what they are
        os.setgroups([])
    for space in spaces:
        kernel.set_namespace(space)


def give_up_rights(found: Capabilities, slot: int, seccomp: bytes) -> None:
    """Become the student's user, with none of the rights that the namespaces gave, for good."""
    os.chdir(scratch.HOME)
    uid = machine.INSIDE if found.user_namespaces else machine.FIRST_UID + slot % _UIDS
    keep_no_right(uid if found.own_uid else None, seccomp)


def keep_no_right(uid: int | None, seccomp: bytes) -> None:
    """Become this user, if one is given, and be able to do nothing that any program may not."""
    for capability in range(64):
        if kernel.libc().prctl(kernel.PR_CAPBSET_DROP, capability, 0, 0, 0):
            break
    if uid is not None:
        kernel.become(uid)
    kernel.drop_capabilities()
    kernel.check(kernel.libc().prctl(kernel.PR_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    if seccomp:
        load_filter(seccomp)
