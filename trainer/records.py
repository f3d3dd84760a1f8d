"""Records of results: what was measured, when, by which command, on which machine."""

import json
import os
import platform
import shlex
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

PACKAGES = ("torch", "tokenizers", "sacrebleu", "safetensors", "numpy")
CPUINFO = Path("/proc/cpuinfo")
NUMBERS = (("family", "cpu family"), ("model", "model"))  # of a processor


def hardware() -> dict[str, Any]:
    """The processor, how many threads torch uses of how many cores, and the GPUs."""
    gpus = range(torch.cuda.device_count() if torch.cuda.is_available() else 0)
    return {
        "cpu": processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "gpu": [torch.cuda.get_device_name(number) for number in gpus],
    }


def versions(*more: str) -> dict[str, str]:
    """Versions of Python and of the packages that results depend on.

    Args:
        more: further packages; those that are not installed are left out.
    """
    found = {"python": platform.python_version()}
    for name in (*PACKAGES, *more):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def command_line() -> str:
    """The command that runs, as one would type it."""
    module = getattr(sys.modules["__main__"], "__spec__", None)
    program = ["-m", module.name.removesuffix(".__main__")] if module else sys.argv[:1]
    return shlex.join(["python", *program, *sys.argv[1:]])


def head() -> dict[str, Any]:
    """What every record begins with: date, command, hardware and versions."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": command_line(),
        "hardware": hardware(),
        "versions": versions(),
    }


def append(path: Path, record: Mapping[str, Any]) -> None:
    """Append a record as a line of JSON, headed by `head`.

    Raises:
        ValueError: if there is no such directory.
    """
    if not path.parent.is_dir():
        raise ValueError(f"there is no directory {path.parent} for the record {path.name}")
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps({**head(), **record}, ensure_ascii=False) + "\n")


def processor(path: Path = CPUINFO) -> str:
    """The processor's name; Linux tells it in a file only.

    Several kinds may go by one name, as on virtual machines: their numbers tell them apart.
    """
    if not path.is_file():
        return platform.processor() or platform.machine()
    first = path.read_text(encoding="utf-8").partition("\n\n")[0]
    parts = (line.partition(":") for line in first.splitlines())
    told = {name.strip(): value.strip() for name, _, value in parts}
    if "model name" not in told:
        return platform.processor() or platform.machine()
    numbers = [f"{name} {told[key]}" for name, key in NUMBERS if key in told]
    return told["model name"] + (f" ({', '.join(numbers)})" if numbers else "")
