"""The kernel's calls that this Python has no name for, by way of the C library, and their flags.

The names are the kernel's: see unshare(2), setns(2), mount(2), capabilities(7) and prctl(2).
"""

import ctypes
import functools
import os
import platform
from contextlib import suppress
from pathlib import Path

NEWNS, NEWUTS, NEWIPC = 0x0002_0000, 0x0400_0000, 0x0800_0000
NEWUSER, NEWPID, NEWNET = 0x1000_0000, 0x2000_0000, 0x4000_0000
NEWCGROUP = 0x0200_0000
KNOWS_CGROUPS = Path("/proc/self/ns/cgroup").exists()  # whose names say where this runs
REST = NEWNS | NEWUTS | NEWIPC | NEWPID | NEWNET | (NEWCGROUP if KNOWS_CGROUPS else 0)
RDONLY, NOSUID, NODEV, NOEXEC, REMOUNT = 1, 2, 4, 8, 32
BIND, REC, PRIVATE, DETACH = 4096, 16384, 1 << 18, 2
PR_PDEATHSIG, PR_DUMPABLE, PR_SECCOMP, PR_CAPBSET_DROP, PR_NO_NEW_PRIVS = 1, 4, 22, 24, 38
MADV_COLLAPSE = 25
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}


@functools.cache
def libc() -> ctypes.CDLL:
    """The C library of this process."""
    return ctypes.CDLL(None, use_errno=True)


def check(result: int, what: str) -> None:
    """Raise what the kernel says if a call has failed."""
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    """Put this process, or the next child, into new namespaces."""
    check(libc().unshare(flags), "unshare")


def set_namespace(space: int) -> None:
    """Enter the namespace that this open file stands for."""
    check(libc().setns(space, 0), "setns")


def mount(source: str, target: str, kind: str, flags: int = 0, options: str = "") -> None:
    """Mount, or change how something is mounted."""
    result = libc().mount(
        source.encode(), os.fsencode(target), kind.encode(), ctypes.c_ulong(flags), options.encode()
    )
    check(result, f"mount {target}")


def pivot_root(new: str, old: str) -> None:
    """Swap the root directory for `new`; the old one is then at `old`."""
    check(libc().syscall(pivot_root_number(), new.encode(), old.encode()), "pivot_root")


def pivot_root_number() -> int:
    """The number of that call, which the C library has no function for."""
    machine = platform.machine()
    if machine not in _PIVOT_ROOT:
        raise OSError(f"no sandbox on {machine} processors")
    return _PIVOT_ROOT[machine]


def map_ids(uid: tuple[int, int], gid: tuple[int, int]) -> None:
    """Tell the new user namespace which one user it has: (inside, outside)."""
    Path("/proc/self/uid_map").write_text(f"{uid[0]} {uid[1]} 1")
    with suppress(FileNotFoundError):
        Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/gid_map").write_text(f"{gid[0]} {gid[1]} 1")


def become(uid: int) -> None:
    """Be this user from now on, in no group but its own."""
    if os.getgroups():
        os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    # Changing the user makes /proc/self root's; its uid_map has to be written yet.
    check(libc().prctl(PR_DUMPABLE, 1, 0, 0, 0), "dumpable")


def drop_capabilities() -> None:
    """Give up the rights of root's that this process has."""
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # version 3 of the call, this process
    check(libc().capset(header, (ctypes.c_uint32 * 6)()), "capset")
