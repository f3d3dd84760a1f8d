"""Several processes under torchrun: who I am, where I compute, and what all agree on."""

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as dist

# Before any group: its functions keep the group of the moment they are imported as their default,
# DDP imports it, and a group that is kept has threads that may abort the process at its end.
import torch.distributed.nn


@dataclass(frozen=True)
class Ranks:
    """This process among those that train together; one alone is 0 of 1."""

    rank: int = 0
    world: int = 1
    local: int = 0  # number of the process on its machine

    @property
    def main(self) -> bool:
        """Whether this is the process that speaks and writes."""
        return self.rank == 0

    @classmethod
    def from_environment(cls) -> "Ranks":
        """What torchrun told this process; 0 of 1 without it.

        Raises:
            ValueError: if the environment holds only a part of it.
        """
        names = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
        given = [os.environ.get(name) for name in names]
        if not any(given):
            return cls()
        if not all(value is not None and value.isdecimal() for value in given):
            said = ", ".join(f"{name}={value}" for name, value in zip(names, given, strict=True))
            raise ValueError(
                f"the environment says {said}; start several processes with "
                "python -m torch.distributed.run --nproc-per-node N -m trainer train ..."
            )
        rank, world, local = (int(value or 0) for value in given)
        return cls(rank, world, local)


@contextmanager
def together(ranks: Ranks, device: torch.device) -> Iterator[None]:
    """Connect the processes: nccl for GPUs, gloo for CPUs; nothing to do for one alone."""
    if ranks.world == 1:
        yield
        return
    if device.type == "cuda":
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield
    finally:
        dist.destroy_process_group()
        gc.collect()  # DDP lies in cycles and holds the group, whose threads end with it


def wait_for_all(ranks: Ranks) -> None:
    """Go on only when every process is here."""
    if ranks.world > 1:
        dist.barrier()


def largest(ranks: Ranks, values: list[float], device: torch.device) -> list[float]:
    """The largest of each value over all processes."""
    if ranks.world == 1:
        return values
    shared = torch.tensor(values, dtype=torch.float64, device=device)
    dist.all_reduce(shared, dist.ReduceOp.MAX)
    return shared.tolist()


def total(ranks: Ranks, value: torch.Tensor) -> torch.Tensor:
    """The sum of a tensor over all processes, in place."""
    if ranks.world > 1:
        dist.all_reduce(value)
    return value


def find_device(name: str, local: int = 0) -> torch.device:
    """The device of this name; "auto" is a GPU if there is one.

    Args:
        name: "auto", "cpu", "cuda", "cuda:1" or "mps".
        local: number of the process on its machine; "cuda" is then the GPU of this number.

    Raises:
        ValueError: if there is no such device here.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
        name = "mps" if name == "cpu" and torch.backends.mps.is_available() else name
    kind, _, number = name.partition(":")
    if kind not in ("cpu", "cuda", "mps") or (number and not number.isdecimal()):
        raise ValueError(f"device {name!r} is not one of auto, cpu, cuda, cuda:1 (a number), mps")
    if kind == "cuda":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        index = int(number) if number else local
        if index >= count:
            raise ValueError(f"device {name!r}: torch sees {count} GPUs here; --device cpu works")
        return torch.device("cuda", index)
    if kind == "mps" and not torch.backends.mps.is_available():
        raise ValueError(f"device {name!r}: torch sees no such device here; --device cpu works")
    return torch.device(kind)
