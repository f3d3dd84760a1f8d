"""What libraries import only when something is used: imported once, before anything is forked."""

import re
from collections.abc import Iterator

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
