"""Words for a name that a test needs and that nothing has defined."""

import re

MISSING = "The answer is missing: this test needs a name that is not defined."
UNDEFINED = re.compile(r"name '(\w{1,100})' is not defined")


def missing(message: str) -> str:
    """That a name is not defined, and which one, if Python's message says it: often it is only
    misspelt.

    Args:
        message: of the NameError; empty where it is not for the student.
    """
    found = UNDEFINED.match(message)
    return MISSING.replace("a name that", f"{found[1]}, which") if found else MISSING
