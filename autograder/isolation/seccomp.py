"""The filter of system calls (seccomp): what a process in a sandbox may ask the kernel.

Made by libseccomp where it is installed. It refuses what leads out of a sandbox, to another one, or
to memory or time that nobody counts; all else is allowed.
"""

import ctypes
import os
import signal
from collections.abc import Iterator, Sequence

from autograder.isolation import kernel

_REFUSED = (
    "ptrace process_vm_readv process_vm_writev process_madvise kcmp pidfd_getfd mount umount "
    "umount2 pivot_root chroot mount_setattr open_tree move_mount fsopen fsmount fsconfig "
    "fspick unshare setns keyctl add_key request_key bpf userfaultfd perf_event_open kexec_load "
    "kexec_file_load init_module finit_module delete_module io_uring_setup io_uring_enter "
    "io_uring_register memfd_create memfd_secret shmget msgget semget mq_open quotactl "
    "quotactl_fd swapon swapoff reboot acct open_by_handle_at name_to_handle_at fanotify_init "
    "lookup_dcookie vmsplice personality io_setup io_submit io_destroy io_cancel io_getevents "
    "io_pgetevents "
)
# What tells one sandbox of another: through a file that both can read, by watches and by what the
# kernel keeps of it in memory (locks: below); and by what the whole machine uses, or the kernel
# notes of who crashes. Libraries do without, as where a kernel has none.
_UNKNOWN = (
    "inotify_init inotify_init1 inotify_add_watch inotify_rm_watch preadv2 pwritev2 "
    "fadvise64 readahead mincore cachestat sysinfo syslog "
)
_F_GET_LOCK, _F_SET_LOCK = (5, 36), (6, 7, 37, 38)  # a process's, an open file's; also: and wait
_F_LEASES = (1024, 1025, 1026)  # set, get, and a folder's: F_NOTIFY
_F_PIPE_SIZE, _F_HINTS = 1031, (1035, 1036, 1037, 1038)  # hints of a file's life
_SOL_SOCKET, _BUFFERS = 1, (7, 8, 32, 33)  # sizes, to send and to receive; the same by force
# What makes the machine write, and wait for its disks; what a sandbox writes lies in memory.
_FLUSH = "sync syncfs fsync fdatasync sync_file_range "
_CORE_SCHEDULING = 62  # of prctl: while it runs, the other half of its processor stands still
# of prctl and of madvise: pages that hold the same become one, and /proc tells how many did
_MERGE_ALL, _MERGE = 67, 12
_INT = 0xFFFF_FFFF  # what the kernel reads of such an argument
_SHARED_ANONYMOUS = 0x21  # flags of mmap; what is dropped of it stays, and no process has it


class _Comparison(ctypes.Structure):
    """libseccomp's `struct scmp_arg_cmp`."""

    _fields_ = (
        ("arg", ctypes.c_uint),
        ("op", ctypes.c_int),
        ("a", ctypes.c_uint64),
        ("b", ctypes.c_uint64),
    )


class _Program(ctypes.Structure):
    """The kernel's `struct sock_fprog`."""

    _fields_ = (("len", ctypes.c_ushort), ("filter", ctypes.c_void_p))


_ALLOW, _PRETEND = 0x7FFF_0000, 0x0005_0000  # the second: do nothing, say that it is done
_REFUSE, _NO_SUCH_CALL = _PRETEND | 1, _PRETEND | 38  # EPERM, ENOSYS
_NOT, _MASKED = 1, 7  # comparisons: not equal; equal under a mask
_PARENT = 0x8000  # a flag of clone: it makes a child of one's parent
_AF_UNIX = 1
_Test = tuple[int, int, int, int]  # number of the argument, comparison, mask, value; or value, 0


def compile_filter() -> bytes:
    """The filter of system calls as the kernel wants it; empty where libseccomp is missing."""
    try:
        library = ctypes.CDLL("libseccomp.so.2")
    except OSError:
        return b""
    library.seccomp_init.restype = ctypes.c_void_p
    rules = ctypes.c_void_p(library.seccomp_init(_ALLOW))  # what no rule names
    for action, name, tests in _rules():
        number = library.seccomp_syscall_resolve_name(name.encode())
        if number != -1:  # -1: a call that this libseccomp has not heard of
            array = (_Comparison * len(tests))(*(_Comparison(*test) for test in tests))
            library.seccomp_rule_add_array(
                rules, ctypes.c_uint32(action), number, len(tests), array
            )
    with os.fdopen(os.memfd_create("filter"), "w+b") as file:
        failed = library.seccomp_export_bpf(rules, file.fileno())
        library.seccomp_release(rules)
        file.seek(0)
        return b"" if failed else file.read()


def _rules() -> Iterator[tuple[int, str, Sequence[_Test]]]:
    """What is done about which calls, and with which arguments."""
    yield from ((_REFUSE, name, []) for name in _REFUSED.split())
    yield from ((_NO_SUCH_CALL, name, []) for name in _UNKNOWN.split())
    yield _NO_SUCH_CALL, "clone3", []  # its flags no filter can read; libc falls back on clone
    yield from _rules_on_files()
    yield from ((_PRETEND, name, []) for name in _FLUSH.split())
    for option in (_CORE_SCHEDULING, _MERGE_ALL):
        yield _REFUSE, "prctl", [(0, _MASKED, _INT, option)]
    yield _REFUSE, "madvise", [(2, _MASKED, _INT, _MERGE)]
    yield _PRETEND, "setsid", []  # where the kernel shares the processors among sessions
    yield _REFUSE, "mmap", [(3, _MASKED, _SHARED_ANONYMOUS, _SHARED_ANONYMOUS)]
    spaces = kernel.NEWNS, kernel.NEWUTS, kernel.NEWIPC, kernel.NEWUSER, kernel.NEWPID
    for flag in (*spaces, kernel.NEWNET, kernel.NEWCGROUP, _PARENT):
        yield _REFUSE, "clone", [(0, _MASKED, flag, flag)]
    # Who ignores its children's end has the kernel reap them, and nobody counts their time.
    # A DataLoader with workers sets a handler, and does without.
    yield _PRETEND, "rt_sigaction", [(0, _MASKED, _INT, signal.SIGCHLD), (1, _NOT, 0, 0)]
    for name in ("socket", "socketpair"):
        yield _REFUSE, name, [(0, _NOT, _AF_UNIX, 0)]
    for buffer in _BUFFERS:
        on_sockets = 1, _MASKED, _INT, _SOL_SOCKET
        yield _REFUSE, "setsockopt", [on_sockets, (2, _MASKED, _INT, buffer)]


def _rules_on_files() -> Iterator[tuple[int, str, Sequence[_Test]]]:
    """By what could be told through a file that two sandboxes can read."""
    for command in (*_F_GET_LOCK, *_F_LEASES, _F_PIPE_SIZE, *_F_HINTS):
        yield _REFUSE, "fcntl", [(1, _MASKED, _INT, command)]
    yield _PRETEND, "flock", []  # libraries fail without; who is alone need lock nobody out
    for command in _F_SET_LOCK:
        yield _PRETEND, "fcntl", [(1, _MASKED, _INT, command)]


def load_filter(program: bytes) -> None:
    """Have the kernel hold this process, and all that come from it, to a compiled filter."""
    buffer = ctypes.create_string_buffer(program, len(program))
    header = _Program(len(program) // 8, ctypes.cast(buffer, ctypes.c_void_p))
    kernel.check(kernel.libc().prctl(kernel.PR_SECCOMP, 2, ctypes.byref(header), 0, 0), "seccomp")
