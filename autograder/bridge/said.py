"""What the grader leaves out or sets back while a notebook runs, in words for the student.

A student's process tells only a code and a short name; the words stand here, so that nothing it
tells can carry a text of its own.
"""

import re
from typing import Any

MOST = 10  # of one cell, or of the calls between two
NAME = re.compile(r"[A-Za-z_0-9.%-]{1,40}")
GRADED = "when the notebook is graded"
WORDS = {
    "line-magic": f"%{{name}} is left out {GRADED}.",
    "cell-magic": f"%%{{name}} is left out {GRADED}, with the rest of its cell.",
    "shell": f"Shell commands are left out {GRADED}.",
    "cuda": (
        f"There is no GPU {GRADED}; write device = 'cuda' if torch.cuda.is_available() else 'cpu'."
    ),
    "default-dtype": (
        "torch.set_default_dtype is set back after each cell; give the dtype where it is needed."
    ),
    "default-device": (
        "torch.set_default_device is set back after each cell; give the device where it is needed."
    ),
}


def words_of(code: str, name: str = "") -> str:
    """The sentence for a code; empty if there is none, or if the name is no name."""
    words = WORDS.get(code, "")
    if "{name}" in words and not NAME.fullmatch(name):
        return ""
    return words.replace("{name}", name)


def sentences(told: Any) -> list[str]:
    """The sentences for what a student's process told, whatever it is: pairs of code and name."""
    found: dict[str, None] = {}
    for pair in told[:MOST] if isinstance(told, list) else ():
        if isinstance(pair, list | tuple) and len(pair) == 2:
            code, name = pair
            if type(code) is str and type(name) is str:
                found[words_of(code, name)] = None
    return [words for words in found if words]
