"""Libraries that an answer with rules may use: what others run or reach by a text, nobody has read.

To list what is dangerous in each library that is installed is no end of work: hundreds import or
evaluate what a text says, or read objects from bytes. So it is the other way round. The notebook's
own libraries, those that its rules name and those below may be used, but for what `forbidden` lists
of them; of all others nothing, nor what a library calls its own by an underscore.
"""

import sys
import sysconfig
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

# fmt: off
PYTHONS = frozenset({
    "__future__", "abc", "array", "ast", "asyncio", "atexit", "base64", "binascii",
    "bisect", "builtins", "bz2", "calendar", "cmath", "collections", "colorsys",
    "concurrent", "contextlib", "contextvars", "copy", "csv", "ctypes",
    "dataclasses", "datetime", "decimal", "difflib", "email", "enum", "errno",
    "fnmatch", "fractions", "functools", "gc", "glob", "graphlib",
    "gzip", "hashlib", "heapq", "hmac", "html", "inspect", "io", "itertools", "json", "keyword",
    "linecache", "locale", "logging", "lzma", "math", "mimetypes", "numbers", "operator",
    "os", "pathlib", "platform", "posixpath", "pprint", "queue", "quopri", "random", "re",
    "reprlib", "sched", "secrets", "select", "selectors", "shlex", "shutil", "signal",
    "stat", "statistics", "string", "stringprep", "struct", "sys", "tempfile",
    "textwrap", "threading", "time", "timeit", "token", "tokenize", "tomllib", "traceback",
    "tracemalloc", "types", "typing", "unicodedata", "urllib", "uuid", "warnings",
    "weakref", "zipfile", "zlib", "zoneinfo",
})
OTHERS = frozenset({
    "IPython", "PIL", "einops", "jaxtyping", "matplotlib", "numpy", "opt_einsum", "pandas",
    "pytest", "regex", "safetensors", "scipy", "seaborn", "sklearn", "torch", "tqdm",
    "typing_extensions",
})
TORCHS = frozenset({  # of its modules
    "amp", "autograd", "backends", "cpu", "cuda", "distributions", "fft", "func", "functional",
    "futures", "linalg", "masked", "mps", "nested", "nn", "ops", "optim", "overrides", "profiler",
    "quasirandom", "random", "return_types", "signal", "sparse", "special", "storage", "testing",
    "torch_version", "types", "utils", "version", "xpu",
})
TORCHS_UTILS = frozenset({"checkpoint", "data", "deterministic"})
# fmt: on


@lru_cache(maxsize=1000)
def is_others(package: str) -> bool:
    """Whether a package was installed here by Python itself or pip: it is not the course's."""
    if package in sys.stdlib_module_names:
        return True
    try:
        spec = find_spec(package)
    except (ImportError, ValueError):
        return False
    places = [*(spec.submodule_search_locations or ()), spec.origin or ""] if spec else []
    homes = {Path(sysconfig.get_path(name)) for name in ("purelib", "platlib")}
    return any(home in Path(place).parents for place in places for home in homes)
