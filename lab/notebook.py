"""Where code runs: what is only for the eyes asks first whether there are any."""

import sys


def in_notebook() -> bool:
    """Whether this runs in a notebook's kernel, where pictures are seen; a grader has none."""
    shell = sys.modules.get("IPython")
    return shell is not None and type(shell.get_ipython()).__name__ == "ZMQInteractiveShell"
