"""Release, grade, feedback and report for a course of notebooks; knows nothing of its subject."""

import os
import sys

# Where `python -m` is started, files like random.py may lie: they are not meant for this program.
started = sys.argv[:1] == ["-m"] and not sys.flags.safe_path
if started and f"{sys.path[0]}{os.sep}autograder" not in __path__:
    sys.path.append(sys.path.pop(0))
