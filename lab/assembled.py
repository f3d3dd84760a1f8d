"""A module that `python -m lab assemble` made: import it, ask what is answered, build its model."""

import importlib.util
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

import torch
from torch import nn


class Incomplete(ValueError):
    """The module lacks something that training cannot do without."""


def load_module(path: Path) -> ModuleType:
    """Import a module file such as `my_transformer.py`.

    Raises:
        Incomplete: if the file is not there, cannot be imported or has no Transformer.
    """
    digest = sha256(str(path.resolve()).encode()).hexdigest()
    name = f"{path.stem}_{digest[:8]}"  # its own, whatever others are called
    spec = importlib.util.spec_from_file_location(name, path) if path.is_file() else None
    if spec is None or spec.loader is None:
        raise Incomplete(f"there is no module {path}; python -m lab assemble makes one")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where torch.compile looks for it
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise Incomplete(f"{path} cannot be imported ({type(error).__name__}: {error})") from error
    for name in ("Transformer", "sinusoidal_encoding"):
        if not hasattr(module, name):
            raise Incomplete(f"{path} has no {name}; python -m lab assemble says what is missing")
    return module


def build(
    module: ModuleType,
    vocabularies: tuple[int, int],
    max_len: int,
    pad_id: int,
    sizes: Mapping[str, Any],
    seed: int,
) -> nn.Module:
    """Build the module's Transformer, and initialise it if the module says how.

    Args:
        module: an assembled module.
        vocabularies: numbers of ids of source and target.
        max_len: rows of the table of positions.
        pad_id: id of padding, in both languages.
        sizes: further arguments of the constructor: d_model, num_layers and the like.
        seed: decides the first weights.

    Raises:
        Incomplete: if a part that the model is made of is not answered yet.
    """
    torch.manual_seed(seed)
    with answers_needed():
        encoding = module.sinusoidal_encoding(max_len, sizes["d_model"])
        model = module.Transformer(*vocabularies, encoding, pad_id=pad_id, **sizes)
    if own(module, "initialise", nn.Linear(2, 2)):
        module.initialise(model)
    return model


def own(module: ModuleType | None, name: str, *trial: Any) -> Callable[..., Any] | None:
    """The module's function of this name, if it is there and answers a trial call."""
    function = getattr(module, name, None)
    try:
        if function is not None:
            function(*trial)
    except NotImplementedError:
        return None
    return function


@contextmanager
def answers_needed() -> Iterator[None]:
    """Say which answer is missing where a stub stops the work."""
    try:
        yield
    except NotImplementedError as error:
        raise Incomplete(f"{_origin(error.__traceback__)} is not answered yet") from error


def _origin(traceback: TracebackType | None) -> str:
    """Name of the function that raised an error."""
    name = ""
    while traceback is not None:
        name, traceback = traceback.tb_frame.f_code.co_qualname, traceback.tb_next
    return name
