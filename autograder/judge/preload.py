"""What libraries import only when something is used: imported once, before anything is forked."""

import re
from collections.abc import Iterable, Iterator

from autograder.bridge import STUDENT

ALWAYS = {  # by what is told of the state of random numbers; torch brings NumPy along
    "numpy": ("numpy.random",),
    "torch": ("numpy.random", "torch.utils._device"),
}
LATE = {
    r"\boptim\b": ("torch._dynamo", "torch.fx.experimental.symbolic_shapes"),
    r"\bbackward\b|\bautograd\b|\.grad\b|\brequires_grad": (
        "torch.fx.experimental.symbolic_shapes",
    ),
}


def late_modules(source: str) -> Iterator[str]:
    """Modules that a cell's code will make its libraries import; a guess, from its words."""
    for words, modules in LATE.items():
        if re.search(words, source):
            yield from modules


def late_parts(modules: Iterable[str]) -> Iterator[str]:
    """What these modules, however little is done with them, will import."""
    for library in sorted({name.partition(".")[0] for name in modules} & ALWAYS.keys()):
        yield from ALWAYS[library]


def shared(modules: Iterable[str]) -> list[str]:
    """What takes long to import, of these modules and ours, and serves tests and answers alike."""
    heavy = [name for name in modules if name.partition(".")[0] in ALWAYS]
    ours = [STUDENT]
    ours += ["autograder.bridge.tensors"] if "torch" in heavy else []
    return heavy + ours
