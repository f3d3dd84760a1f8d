"""The jail, a small root directory without the course: what processes in a sandbox see of files.

It is built once (`build_jail`), of the system, Python and what is named, all read-only. Each
student's process, and each worker of the pool, gets an empty disk of its own in it
(`make_scratch`).
"""

import os
import site
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from autograder.isolation import kernel, machine, processes, scratch

_SYSTEM = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "nix")
# What lies among the system's folders and is no part of it: works and courses, as nbgrader's
# exchange does where nothing else is said, and its settings, which may hold a password. Of a grader
# who is not root, processes own what he owns.
_NOT_ITS_OWN = (
    *("/usr/src", "/usr/local/src", "/usr/local/share/nbgrader", "/usr/local/etc"),
    *(f"{prefix}/etc" for prefix in {sys.prefix, sys.base_prefix}),
)
_ETC = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "alternatives", "fonts")
_DEVICES = ("null", "full", "random", "urandom")  # "zero", mapped, is memory that nobody counts
# by which libraries count processors; what else stands beside it tells how busy these are
_PROCESSORS = (
    "kernel_max",
    "online",
    "possible",
    "present",
    "cpu[0-9]*/cache",
    "cpu[0-9]*/topology",
)
_OF_PREFIX = ("bin", "lib", "lib64", "share", "pyvenv.cfg")  # never the whole: it may be the course


def build_jail(readable: Sequence[Path], private: Sequence[Path] = ()) -> None:
    """Swap the root directory for a small one with the system, Python and `readable`, read-only.

    Process 1 of the new namespaces calls it. The course is not in it unless it is named; what is
    `private` is covered where it lies among the system's folders.
    """
    processes.forget_umask()
    covered = _among_the_systems([*map(Path, _NOT_ITS_OWN), *private])
    python = _python_paths(covered)
    wanted = {path: path.resolve() for path in [*python, processes.PACKAGE, *readable]}
    wanted |= {real: real for real in wanted.values()}  # a path may lead through links
    kernel.mount("tmpfs", "/tmp", "tmpfs", kernel.NOSUID, "mode=755,size=1m")
    Path("/tmp/.host").mkdir()
    kernel.pivot_root("/tmp", "/tmp/.host")
    os.chdir("/")
    _bind_system()
    for path in covered:
        if path.is_dir():  # what holds it may be covered by now
            kernel.mount(
                "tmpfs", str(path), "tmpfs", kernel.NOSUID | kernel.NODEV, "mode=755,size=1m"
            )
    for path, real in sorted(wanted.items()):
        if Path(f"/.host{real}").exists():
            _bind(f"/.host{real}", path)
    _make_devices()
    Path("/proc").mkdir()
    try:
        kernel.mount("proc", "/proc", "proc", kernel.NOSUID | kernel.NODEV | kernel.NOEXEC)
    except OSError:  # as in most containers; `lock` hides it from the student's process
        kernel.mount("/.host/proc", "/proc", "", kernel.BIND | kernel.REC)
    kernel.check(kernel.libc().umount2(b"/.host", kernel.DETACH), "umount")
    Path("/.host").rmdir()
    _write_etc()
    with suppress(FileExistsError):  # there if Python lies below /tmp; TMPDIR is what counts
        Path("/tmp").symlink_to(f"{scratch.DISK}/tmp")
    Path(scratch.DISK).mkdir()
    _make_read_only()
    make_scratch(64)


def make_scratch(megabytes: int, uid: int | None = None) -> None:
    """Mount an empty scratch disk of this size: home, /tmp and /dev/shm."""
    options = f"mode=755,size={megabytes}m,nr_inodes={megabytes * 64 + 1024}"
    kernel.mount("tmpfs", scratch.DISK, "tmpfs", kernel.NOSUID | kernel.NODEV, options)
    for name, mode in (("home", 0o755), ("tmp", 0o1777), ("shm", 0o1777)):
        folder = Path(scratch.DISK, name)
        folder.mkdir()
        folder.chmod(mode)
        if uid is not None:
            os.chown(folder, uid, uid)
    if uid is not None:  # last: not every root may write to what belongs to somebody else
        os.chown(scratch.DISK, uid, uid)


def hide_processes() -> None:
    """In process 1: /proc shows from now on the processes in its namespaces alone, or nothing.

    What it counts of the whole machine, as open files, one sandbox could raise and another read.
    Nobody writes there: a process could take back that it goes first when memory runs out.
    """
    flags = kernel.NOSUID | kernel.NODEV | kernel.NOEXEC
    try:
        kernel.mount("proc", "/proc", "proc", flags, "subset=pid")
        kernel.mount("", "/proc", "", kernel.REMOUNT | kernel.BIND | kernel.RDONLY | flags)
    except OSError:
        kernel.mount(
            "tmpfs",
            "/proc",
            "tmpfs",
            kernel.RDONLY | kernel.NOSUID | kernel.NODEV,
            "size=4k,mode=555",
        )


def _among_the_systems(private: Sequence[Path]) -> list[Path]:
    """Those of these folders that lie in one of the system's, outer ones first."""
    found: set[Path] = set()
    for path in private:
        with suppress(OSError, RuntimeError):  # who may not look there need not be kept from it
            real = path.resolve()
            if len(real.parts) > 2 and real.parts[1] in _SYSTEM and real.is_dir():
                found.add(real)
    return sorted(found)


def _python_paths(covered: Sequence[Path]) -> list[Path]:
    """Where this Python and its packages lie, but for what the system's folders show."""
    prefixes = {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}
    paths = [Path(prefix) / name for prefix in prefixes for name in _OF_PREFIX]
    if site.ENABLE_USER_SITE:
        paths.append(Path(site.getusersitepackages()))
    return [path for path in paths if path.exists() and not _is_shown(path, covered)]


def _is_shown(path: Path, covered: Sequence[Path]) -> bool:
    """Whether it is there once the system's folders are."""
    return path.is_relative_to("/usr") and not any(map(path.resolve().is_relative_to, covered))


def _bind_system() -> None:
    for name in _SYSTEM:
        host, here = Path(f"/.host/{name}"), Path(f"/{name}")
        if host.is_symlink():
            here.symlink_to(host.readlink())
        elif host.is_dir():
            _bind(str(host), here)
    for name in _ETC:
        host = Path(f"/.host/etc/{name}")
        if host.exists() and not host.is_symlink():
            _bind(str(host), Path("/etc", name))
    processors = Path("/.host/sys/devices/system/cpu")
    for path in (place for name in _PROCESSORS for place in sorted(processors.glob(name))):
        with suppress(OSError):
            _bind(str(path), Path("/", path.relative_to("/.host")))


def _make_devices() -> None:
    for name in _DEVICES:
        _bind(f"/.host/dev/{name}", Path("/dev", name))
    Path("/dev/shm").symlink_to(f"{scratch.DISK}/shm")
    for name, target in (("fd", "fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        Path("/dev", name).symlink_to(f"/proc/self/{target}")


def _write_etc() -> None:
    etc = Path("/etc")
    etc.mkdir(exist_ok=True)
    (etc / "passwd").write_text(
        f"student:x:{machine.INSIDE}:{machine.INSIDE}::{scratch.HOME}:/bin/sh\n"
    )
    (etc / "group").write_text(f"student:x:{machine.INSIDE}:\n")
    (etc / "hosts").write_text("127.0.0.1 localhost\n")


def _bind(source: str, target: Path) -> None:
    if Path(source).is_dir():
        target.mkdir(parents=True, exist_ok=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
    kernel.mount(source, str(target), "", kernel.BIND | kernel.REC)


def _make_read_only() -> None:
    """Make every mount read-only, each with the flags that it has to keep."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        point = line.split()[4].encode().decode("unicode_escape")  # a space is \040
        if point != "/proc" and not point.startswith("/proc/"):
            keep = os.statvfs(point).f_flag & (kernel.NOSUID | kernel.NODEV | kernel.NOEXEC)
            kernel.mount("", point, "", kernel.REMOUNT | kernel.BIND | kernel.RDONLY | keep)
