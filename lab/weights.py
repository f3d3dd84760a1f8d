"""Weights of a model as tensors by name, and files of them: safetensors, numbers and no code."""

import json
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save_file
from torch import Tensor, nn

from lab.files import sync_directory, sync_file


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """All tensors of the model's state, each under its first name; tied ones once."""
    kept: dict[str, Tensor] = {}
    seen: set[int] = set()
    for name, tensor in model.state_dict(keep_vars=True).items():
        if id(tensor) not in seen:
            seen.add(id(tensor))
            kept[name] = tensor.detach()
    return kept


def load_weights(model: nn.Module, weights: Mapping[str, Tensor], where: str) -> None:
    """Copy weights into a model, in place, so that what is tied stays so.

    Raises:
        ValueError: if names or shapes differ from the model's.
    """
    own = weights_of(model)
    for name in [*own, *weights]:
        if name not in weights:
            raise ValueError(f"{where} lacks {name}, which the model has")
        if name not in own:
            raise ValueError(f"{where} holds {name}, which the model has not")
        if own[name].shape != weights[name].shape:
            raise ValueError(
                f"{where}: {name} has shape {tuple(weights[name].shape)}, "
                f"the model's has {tuple(own[name].shape)}"
            )
    with torch.no_grad():
        for name, tensor in own.items():
            tensor.copy_(weights[name])


def write_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Write one safetensors file with words in its header, whole or not at all."""
    draft = path.with_name(f".{path.name}.tmp")
    save_file(own_memory(tensors), draft, dict(metadata))
    sync_file(draft)
    draft.replace(path)
    sync_directory(path.parent)


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tensors and words of a file that `write_tensors` wrote.

    Raises:
        ValueError: if it is not there, is cut, or is no safetensors file.
    """
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    content = path.read_bytes()
    tensors = parse(path, content)
    length = int.from_bytes(content[:8], "little")
    return tensors, json.loads(content[8 : 8 + length]).get("__metadata__", {})


def own_memory(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Copies on the CPU, which share no memory; safetensors takes no others."""
    return {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}


def parse(file: Path, content: bytes) -> dict[str, Tensor]:
    """The tensors in a safetensors file's content.

    Raises:
        ValueError: if it is cut, or no such file; `file` is its name.
    """
    cut = missing_bytes(content)
    if cut:
        raise ValueError(f"{file} is cut: {cut:,} bytes are missing")
    try:
        return load(content)
    except SafetensorError as error:
        raise ValueError(f"{file} is no safetensors file ({error})") from error


def missing_bytes(content: bytes) -> int:
    """How many bytes a cut safetensors file lacks by its own header; 0 if none, or not known."""
    start = 8 + int.from_bytes(content[:8], "little")
    if len(content) < 8 or start > 100_000_000:  # the format's own limit of a header
        return 0
    if len(content) < start:
        return start - len(content)
    try:
        header = json.loads(content[8:start])
        ends = [entry["data_offsets"][1] for name, entry in header.items() if name[:2] != "__"]
        return max(start + max(ends, default=0) - len(content), 0)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return 0
