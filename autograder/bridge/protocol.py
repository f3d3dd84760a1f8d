"""The protocol."""

MAX_NESTED = 400  # calls into each other
FRAMES = 30  # of ours, at most, that one such call puts on the stack


LIBRARIES = frozenset(("numpy", "torch"))  # whose values cross as such
