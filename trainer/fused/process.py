"""What training on a CPU wants of its process."""

import ctypes
import platform
import sys

import torch


def prepare_process(threads: int | None) -> tuple[str, ...]:
    """Set up this process for training on a CPU; return what was set, in words.

    Args:
        threads: torch's threads; None leaves their number as it is.
    """
    done = []
    if threads is not None:
        torch.set_num_threads(threads)
        done.append(f"{threads} thread{'s' if threads > 1 else ''}")
    if _keep_freed_memory():
        done.append("freed memory is kept for the next step, not handed back to the system")
    if torch.set_flush_denormal(True):
        done.append("numbers too small for full precision count as 0")
    return tuple(done)


def _keep_freed_memory() -> bool:
    """Let glibc's malloc reuse large blocks, whose fresh pages the system would zero each time."""
    if sys.platform != "linux" or platform.libc_ver()[0] != "glibc":
        return False
    mallopt = ctypes.CDLL(None).mallopt
    trim_threshold, mmap_threshold, largest = -1, -3, 2**31 - 1  # names and numbers of malloc.h
    return bool(mallopt(mmap_threshold, largest)) and bool(mallopt(trim_threshold, largest))
