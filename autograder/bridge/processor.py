"""What the processor is, asked while that can be: in a sandbox /proc tells nothing of it."""

import sys


def know_processor() -> None:
    """Let torch, where it was imported, ask now; some of its operations fail without the answer."""
    if "torch" in sys.modules:
        sys.modules["torch"].cpu.get_capabilities()
