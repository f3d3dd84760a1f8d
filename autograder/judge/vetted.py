"""Libraries that an answer with rules may use: what others run or reach by a text, nobody has read.

To list what is dangerous in each library that is installed is no end of work: hundreds import or
evaluate what a text says, or read objects from bytes. So it is the other way round. The notebook's
own libraries, those that its rules name and those below may be used, but for what `forbidden` lists
of them and `BY_TEXT_PARTS`; of all others nothing, nor what a library calls its own by an
underscore. A test goes over the texts of those that are installed, and knows each place in which
one imports, evaluates or gets something by a text.
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
OTHERS = frozenset({  # not those that go by texts in so many places, as pandas does
    "IPython", "PIL", "einops", "jaxtyping", "matplotlib", "numpy", "pytest", "regex",
    "safetensors", "scipy", "torch", "tqdm", "typing_extensions",
})
BY_TEXT_PARTS = (  # of these and of Python's, and of libraries that a notebook may import
    "PIL.ImageDraw2", "PIL.ImageMath", "PIL.features", "einops.tests",
    "matplotlib.backend_bases.get_registered_canvas_class", "matplotlib.pyplot.rc",
    "matplotlib.pyplot.style", "matplotlib.rc", "matplotlib.rc_file", "matplotlib.sphinxext",
    "matplotlib.style", "matplotlib.testing", "numpy.ctypeslib", "numpy.lib.add_newdoc",
    "numpy.testing.overrides",
    "opt_einsum.backends", "pandas.compat", "pandas.core", "pandas.io", "pandas.HDFStore",
    "pandas.read_hdf", "pytest.Config", "pytest.Pytester", "pytest.console_main", "pytest.main",
    "scipy.LowLevelCallable", "scipy.stats.rv_continuous", "scipy.stats.rv_discrete",
    "sklearn.feature_selection.RFE", "sklearn.feature_selection.RFECV",
    "sklearn.feature_selection.SelectFromModel", "sys.path_importer_cache",
    "torch.cuda.CUDAPluggableAllocator", "torch.cuda.memory.CUDAPluggableAllocator",
    "torch.nn.cpp", "torch.nn.utils.prune", "torch.xpu.memory.XPUPluggableAllocator",
    "torch.utils.generate_methods_for_privateuse1_backend",
    "torch.utils.rename_privateuse1_backend",  # `torch.get_device_module` goes by that name
    "torch.xpu.XPUPluggableAllocator", "tqdm.cli", "tqdm.contrib.concurrent.ensure_lock",
    "tqdm.utils", "tracemalloc.Snapshot", "tracemalloc.take_snapshot",
    "typing_extensions.get_annotations",
)
TORCHS = frozenset({  # of its modules
    "amp", "autograd", "backends", "cpu", "cuda", "distributions", "fft", "func", "functional",
    "futures", "linalg", "masked", "mps", "nested", "nn", "ops", "optim", "profiler",
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
