"""Who handles the values of a library that need not be there: it is registered once it is loaded.

Nothing that carries values from end to end imports such a library, or names the modules that do.
Whoever runs an end offers a way to load these (`offer`); they are loaded when the library is, and
say then what they can do (`register`).
"""

import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from autograder.bridge.peer import Peer

TORCH = "torch"


@dataclass(frozen=True)
class Codec:
    """What is done with the values of one library."""

    library: str
    # what one end knows of such values: it tells them, reads, writes, copies and overwrites them
    of_peer: Callable[["Peer"], Any]
    bits: Callable[[Any], Any]  # what tells whether a value was changed
    memory: ModuleType  # whose memory a value lies in, and views of it
    may_be_base: Callable[[Any], bool]  # whether stand-ins of modules may be of a public class
    may_pass_for: Callable[[type], bool]  # whether stand-ins of objects may pass for one


_loaders: dict[str, Callable[[], object]] = {}
_codecs: dict[str, Codec] = {}


def offer(library: str, load: Callable[[], object]) -> None:
    """Say how to load what handles the values of a library; it has to register itself."""
    _loaders[library] = load


def register(codec: Codec) -> None:
    """Handle the values of a library from now on."""
    _codecs[codec.library] = codec


def registered(library: str = TORCH) -> Codec | None:
    """What handles the values of a library, if it is loaded already."""
    return _codecs.get(library)


def of(library: str = TORCH) -> Codec | None:
    """What handles the values of a library, where that is loaded; it is tried once.

    It cannot be had where an answer has imported the library in a sandbox that was made without.
    """
    if library not in sys.modules:
        return None
    if library not in _codecs and (load := _loaders.pop(library, None)) is not None:
        with suppress(Exception):  # or has put something else in its place
            load()
    return _codecs.get(library)


def memory() -> Any:
    """What looks into the memory of tensors, once their library is there; None before."""
    codec = _codecs.get(TORCH)
    return None if codec is None else codec.memory
