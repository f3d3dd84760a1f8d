"""Which names are forbidden: what a rule's entries cover, and ways to reach a name by its text."""

import builtins
import importlib.util
import inspect
import sys
import types
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.machinery import PathFinder
from typing import Any

from autograder.bridge.watch import WAYS_ROUND, is_method, is_module, is_stopped
from autograder.judge.own_modules import leads_round
from autograder.judge.vetted import (
    BY_TEXT_PARTS,
    OTHERS,
    PYTHONS,
    TORCHS,
    TORCHS_UTILS,
    is_others,
)

# What reaches a name by its text, runs text, looks into other code, or could undo the stops.
# fmt: off
BY_TEXT = frozenset({
    "eval", "exec", "compile", "globals", "locals", "vars", "get_ipython",
    "breakpoint",  # which calls what the environment says
    "__annotations__", "__import__", "__loader__", "__spec__", "__builtins__",
})
BY_TEXT_MODULES = (
    "importlib", "imp", "pkgutil", "zipimport", "runpy", "builtins", "ctypes", "cffi", "gc",
    "_ctypes", "_cffi_backend", "__main__",
    "inspect", "dis", "pickle", "dill", "cloudpickle", "marshal", "code", "codeop", "cProfile",
    "profile", "greenlet", "trace", "bdb", "pdb", "unittest.mock", "autograder", "IPython",
    "ipykernel", "pydoc", "doctest", "rlcompleter", "shelve", "joblib", "logging.config", "_string",
    "sympy", "numexpr", "jinja2", "bltns", "jaxtyping",
    # what such modules are made of
    "_pickle", "_frozen_importlib", "_frozen_importlib_external", "_imp", "_xxsubinterpreters",
    "_interpreters", "annotationlib",
    "numba", "jax", "tensorflow", *WAYS_ROUND,
)
LIBRARIES = (  # Python's and others: parts that call, import or evaluate what a text says
    "optparse", "cgitb", "turtle", "tkinter", "dbm", "distutils", "lib2to3", "modulefinder",
    "urllib.request", "xml.sax", "xml.dom.domreg", "gettext.c2py", "unittest.TestCase",
    "unittest.case", "unittest.loader", "enum.global_enum", "sys.breakpointhook",
    "sys.displayhook", "sys.__breakpointhook__", "ast.iter_child_nodes",
    "ast.copy_location", "ast.iter_fields", "pstats", "site", "sysconfig", "mako",
    "tornado", "yaml",
    "fsspec", "lark", "traitlets", "typing_extensions.get_type_hints", "attr.resolve_types",
    "typing_extensions.evaluate_forward_ref", "typing_extensions.ForwardRef", "attrs.resolve_types",
    "pygments", "pkg_resources", "setuptools", "sqlalchemy", "alembic", "nbconvert", "nbformat",
    "nbgrader", "jupyter_client", "debugpy", "executing", "stack_data", "jedi", "pluggy",
    "networkx.utils.decorators", "networkx.utils.argmap", "torch._utils", "pip", "six", "copyreg",
    "beartype._util", "beartype._cave", "torch._export", "torch._functorch", "torch._subclasses",
    "torch._custom_op", "torch._jit_internal", "torch.CompilationUnit", "torch._import_dotted_name",
)
ANYWHERE = (  # by their own names alone, as other modules hold them: pathlib.attrgetter
    "attrgetter", "methodcaller", "import_module", "get_type_hints", "FunctionType", "CodeType",
    "exec_", "Popen", "check_call", "check_output", "call_subprocess", "subprocess_run_helper",
    "subprocess_run_for_testing",
)
PROGRAMS = (  # another process, which nothing watches
    "subprocess", "_posixsubprocess", "multiprocessing", "concurrent.futures.process",
    "concurrent.futures.ProcessPoolExecutor", "pty", "posix", "asyncio.subprocess",
    "asyncio.create_subprocess_exec", "asyncio.create_subprocess_shell", "webbrowser", "pexpect",
    "asyncio.unix_events", "asyncio.base_subprocess", "pipes", "mailcap", "imaplib", "venv",
    "ensurepip", "http.server", "psutil", "ptyprocess", "platform._syscmd_ver",
    "platform._syscmd_file", "uuid._get_command_stdout", "torch.utils.collect_env",
    *(f"os.{name}" for name in (
        "fork", "forkpty", "system", "popen", "posix_spawn", "posix_spawnp",
        "execl", "execle", "execlp", "execlpe", "execv", "execve", "execvp", "execvpe",
        "spawnl", "spawnle", "spawnlp", "spawnlpe", "spawnv", "spawnve", "spawnvp", "spawnvpe",
    )),
)
LOADERS = (  # which may read objects from a file, if they are asked to
    "numpy.load", "numpy.lib.format.read_array", "numpy.lib.npyio.load", "numpy.lib.npyio.NpzFile",
)
DRAWING = ("rcParams", "rcParamsDefault", "RcParams", "rc_context")  # a setting names functions
ASKED = (  # which get parts by names that they are given, or start processes, if asked to
    "functools.update_wrapper", "functools.wraps", "dataclasses.dataclass",
    "dataclasses.make_dataclass", "torch.utils.data.DataLoader", "torch.utils.data.dataloader",
    *DRAWING,
)
BY_TEXT_FUNCTIONS = (
    "operator.attrgetter", "operator.methodcaller", "sys.modules", "sys._getframe",
    "sys._current_frames", "sys.meta_path", "sys.path_hooks", "sys.settrace", "sys.setprofile",
    "threading.settrace",
    "threading.setprofile", "threading.settrace_all_threads", "threading.setprofile_all_threads",
    "sys.monitoring", "sys.addaudithook", "timeit.timeit", "timeit.repeat", "timeit.Timer",
    "timeit._globals", "fromnumeric._sum_",  # builtins by another name
    "types.FunctionType", "types.CodeType", "typing.get_type_hints", "typing.ForwardRef",
    "typing._eval_type",
    "timeit.main", "torch.utils.data.datapipes",
    "string.Formatter", "unittest.TestLoader", "unittest.defaultTestLoader", "unittest.main",
    "pandas.eval", "pandas.read_pickle", *LOADERS, "numpy.f2py", "dataclasses._create_fn",
    "dataclasses._FuncBuilder", "numpy.testing.runstring", "numpy.testing.rundocs",
    "numpy.testing.measure", "numpy.testing._private", "numpy.ma.core._frommethod",
    "numpy.ma.core._arraymethod", "numpy.ma.core._convert2ma", "numpy.ma.extras",
    "traitlets.import_item", "traitlets.utils.importstring", "xmlrpc.server",
    "pytest.importorskip", "pytest.MonkeyPatch", "_pytest", "matplotlib.backends", *PROGRAMS,
    *LIBRARIES, *ANYWHERE, *ASKED,
)
BY_NAME = frozenset({"operator.attrgetter", "operator.methodcaller"})
# of such modules, and harmless
PLAIN = frozenset({
    "gc.collect", "gc.enable", "gc.disable", "yaml.safe_load",
    *(f"IPython.display.{name}" for name in ("HTML", "Markdown", "clear_output", "display")),
})
IN_TERMS_OF = {  # parts of Python's library that call C functions, which are not seen to run
    "heapq": ("queue.PriorityQueue", "asyncio.PriorityQueue", "sched.scheduler"),
    "sorted": (
        "heapq.nlargest", "heapq.nsmallest", ".most_common", "dir", "json.dumps", "json.dump",
        "json.JSONEncoder", "pprint.pformat", "pprint.pprint", "pprint.pp", "pprint.PrettyPrinter",
        "pprint.saferepr", "reprlib", "statistics.quantiles", "statistics.median",
        "statistics.median_low", "statistics.median_high", "statistics.median_grouped",
        "difflib.get_close_matches", "email.utils.decode_params", "shutil.get_archive_formats",
        "shutil.get_unpack_formats", "shutil.make_archive",
    ),
}
# of these, what Python calls where no name of it is written: of a counter's text it is the order
CALLED_FOR_IT = {"sorted": ("collections.Counter.most_common",)}
BY_TEXT_ATTRIBUTES = frozenset({
    "__dict__", "__builtins__", "__globals__", "__getattribute__", "__subclasses__", "__import__",
    "__loader__", "__spec__", "__self__", "__code__", "__closure__", "__mro__", "__base__",
    "__bases__", "mro", "__reduce__", "__reduce_ex__", "__getstate__",
    "f_back", "f_builtins", "f_globals", "f_locals",
    "tb_frame", "gi_frame", "cr_frame", "ag_frame", "_C", "custom_op",
    "gi_code", "cr_code", "ag_code", "f_code", "__annotations__",
    "_evaluate", "__forward_code__",  # of a type that is a text
    "obj",  # of an error: what has no such attribute, as when `str.format` looked for it by a text
    "__getattr__", "decompose", "_op_dk", "py_impl", "redispatch",  # operators by their text
    "__torch_dispatch__",  # called where operators are not stopped by themselves
    "builtins", "bltns", "sys", "_sys",  # as other modules hold them
    "_ip", "user_ns", "user_global_ns",
    "_convert_", "_convert", "__match_args__",
    "subprocess_exec", "subprocess_shell", "run_cell", "run_line_magic", "run_cell_magic",
    "find_spec", "find_module", "load_module", "exec_module",  # of what imports
    "wrapper_getattr", "wrapper_setattr", "all_weights", "_construct_argparser",
    "ctypes", "_ctypes",  # of an array
    "fget",  # what a library's property asks, asked of anything
})
NO_BASES = frozenset({"ParameterDict", "redirect_stdout", "redirect_stderr"})  # that get by a text
# by which classes are told what is to be got from their objects, or evaluated
TOLD = frozenset({"__annotations__", "__dataclass_fields__", "arg_constraints", "_all_weights"})
TOLD |= {"__torch_function__", "__torch_dispatch__"}  # or is handed what others ask of a tensor
SET_BY_TEXT = frozenset(name for name in BY_TEXT_ATTRIBUTES if name.startswith("__"))
SPECIAL = SET_BY_TEXT  # also as `from operator import __dict__`
SET_BY_TEXT |= {"num_workers", "multiprocessing_context"}  # of a loader
SET_BY_TEXT |= TOLD
SET_BY_TEXT |= {"__class__"}  # a library's object would pass for one of the student's
# fmt: on
SETTINGS = ("sys.stdout", "sys.stderr", "sys.stdin", "sys.argv", "os.environ", "sys.ps1")
WAYS = frozenset({*BY_TEXT_MODULES, *BY_TEXT_FUNCTIONS})
WORDS = frozenset({*BY_TEXT, *BY_TEXT_ATTRIBUTES, "getattr"})
WORDS |= {part for way in WAYS for part in way.split(".")}
LONGEST_WAY = max(way.count(".") + 1 for way in WAYS)
ORDINARY = frozenset({"trace", "profile", "code"})  # modules, but of libraries plain functions


@dataclass(frozen=True)
class Forbidden:
    """The names that the rules of a question forbid."""

    forbid: tuple[str, ...]
    allow: tuple[str, ...]
    fields: Collection[str]  # names under which the student's own objects hold something
    packages: Collection[str] = ()  # that the notebook itself imports

    def forbids(self, origin: str) -> bool:
        """Whether the rules forbid this full dotted name."""
        if any(covers(entry, origin) for entry in self.allow):
            return False
        return any(map(self._forbids, {origin, real_name(origin)}))

    def _forbids(self, origin: str) -> bool:
        if any(part in SPECIAL for part in origin.split(".")[1:]):
            return True
        taken = {*self.forbid, *BY_TEXT, "getattr"}  # of Python's own
        if origin == "builtins" or origin.startswith("builtins."):
            return origin.removeprefix("builtins.") in taken
        if is_way_round(origin) or leads_round(origin):
            return True
        if not taken.isdisjoint(builtins_called(origin)):
            return True
        if not is_vetted(origin) and origin.partition(".")[0] not in self._known:
            return True
        return any(covers(entry, origin) or is_same(entry, origin) for entry in self.forbid)

    def forbids_method(self, name: str) -> bool:
        """Whether a value's attribute of this name may be something forbidden."""
        bare = name.strip("_") or name
        if {f".{name}", f".{bare}", name, bare} & set(self.allow):
            return False
        return any(
            last == bare
            and ("." in entry or not hasattr(builtins, entry))
            and not is_stopped_alone(entry, bare, name in self.fields)
            for entry, last in self._lasts
        )

    @cached_property
    def _known(self) -> frozenset[str]:
        """Packages that the notebook or its rules name, but for torch, of which modules count."""
        named = (name.partition(".")[0] for name in (*self.forbid, *self.allow))
        return frozenset((*self.packages, *named)) - {"torch"}

    @cached_property
    def _lasts(self) -> list[tuple[str, str]]:
        """What is forbidden, with the last part of its name."""
        return [(entry, entry.rpartition(".")[2]) for entry in self.forbid]

    def forbids_loading(self, name: str) -> bool:
        """Whether this is a module that is forbidden, or one that evaluates texts."""
        first, dot, _ = name.partition(".")
        covered = [one for one in self.forbid if name == one or name.startswith(f"{one}.")]
        if any("." in one or is_installed(one) for one in covered):
            return True
        return bool(dot) and first in BY_TEXT_MODULES and first not in ORDINARY

    def leads_nowhere(self, begun: str, ended: str) -> bool:
        """Whether nothing that is forbidden has a name that begins so, or none one that ends so."""
        parts = {*WORDS, *(part for entry in self.forbid for part in entry.split("."))}
        words = {part.strip("_") for part in parts}
        first, last = begun.lstrip("_"), ended.rstrip("_")
        begins = any(w.startswith(first) or w == begun.strip("_") for w in words)
        ends = any(w.endswith(last) or w == ended.strip("_") for w in words)
        return bool(first and not begins) or bool(last and not ends)

    def forbids_word(self, text: str) -> bool:
        """Whether this name reaches something forbidden of whatever has it."""
        ways = text.lstrip("_") in WORDS or text in WORDS
        return (ways and text not in self.allow) or self.forbids_method(text)

    @cached_property
    def is_all_stopped(self) -> bool:
        """Whether all that is forbidden is stopped while the answer runs."""
        return all(map(is_stopped, self.forbid))


def covers(entry: str, origin: str) -> bool:
    """Whether an entry names this function, a module above it, or anything called like it."""
    if origin == entry or origin.startswith(f"{entry}."):
        return True
    return "." not in entry and not hasattr(builtins, entry) and origin.endswith(f".{entry}")


@lru_cache(maxsize=10_000)
def is_vetted(origin: str) -> bool:
    """Whether answers may use what this full dotted name stands for at all: see `vetted`."""
    first, *rest = origin.split(".")
    if first not in {*PYTHONS, *OTHERS} and is_others(first):
        return False
    if first != "torch" or not rest or not is_module_somewhere(f"torch.{rest[0]}"):
        return True
    if rest[0] != "utils" or len(rest) < 2 or not is_module_somewhere(f"torch.utils.{rest[1]}"):
        return rest[0] in TORCHS
    return rest[1] in TORCHS_UTILS


@lru_cache(maxsize=10_000)
def is_pythons(origin: str) -> bool:
    """Whether this is a part of a module of Python's library, and none that is there to be set."""
    first, dot, _ = origin.partition(".")
    return bool(dot) and first in sys.stdlib_module_names and origin not in SETTINGS


def leads_to_programs(entry: str) -> bool:
    """Whether who may use this may start another program or process."""
    return any(covers(entry, program) or covers(program, entry) for program in PROGRAMS)


def is_stopped_alone(entry: str, bare: str, own: bool) -> bool:
    """Whether an attribute of this name is no sign that an answer uses what is forbidden.

    The stops stand behind it: so a module's name is none, nor is one that no library's values have
    and that the student gives to something else.
    """
    if entry.startswith(".") or not (is_module(entry) or (own and not is_method(bare))):
        return False
    return is_stopped(entry)


@lru_cache(maxsize=1000)
def is_way_round(origin: str) -> bool:
    """Whether this is a way to reach names by text, also as another module holds it."""
    if origin in PLAIN:
        return False
    parts = origin.split(".")
    if parts[:2] == ["torch", "ops"] and parts[2:3] not in ([], ["aten"]):
        return True  # operators that are not stopped
    if any(origin == one or origin.startswith(f"{one}.") for one in BY_TEXT_PARTS):
        return True
    if any(map(_is_private, parts[1:])) and is_others(parts[0]):
        return True  # what a library does not offer
    ordinary = () if parts[0] in sys.stdlib_module_names else ORDINARY
    for start, first in enumerate(parts):
        if start and first in ordinary:
            continue
        for one in {first, first.lstrip("_") if start else first}:  # random._os is os
            rest = parts[start + 1 : start + LONGEST_WAY]
            if any(".".join((one, *rest[:count])) in WAYS for count in range(len(rest) + 1)):
                return True
    return False


def _is_private(part: str) -> bool:
    return part.startswith("_") and not part.endswith("__")


@lru_cache(maxsize=10_000)
def is_same(entry: str, origin: str) -> bool:
    """Whether both are one package's function of one name, found in different places."""
    if "." not in entry or entry.startswith("."):
        return False
    if entry.partition(".")[0] != origin.partition(".")[0]:
        return False
    if entry.rpartition(".")[2] != origin.rpartition(".")[2].strip("_"):
        return False
    if not is_module_somewhere(entry):
        return True
    module, found = _in_use(entry), _in_use(origin)
    if module is not None and found is not None:
        return found is module
    return not is_module_somewhere(origin)  # torch.autograd.functional, torch.nn.functional


@lru_cache(maxsize=10_000)
def builtins_called(origin: str) -> tuple[str, ...]:
    """The builtins that a library in use holds under this name, as operator does `_abs`."""
    found = _in_use(origin)
    if not isinstance(found, types.BuiltinFunctionType | type):
        return ()
    return tuple(name for name, one in vars(builtins).items() if one is found)


@lru_cache(maxsize=10_000)
def real_name(origin: str) -> str:
    """The same by the name that a module in it has itself, as others hold it under other names.

    So it is with a function of those of Python's modules that reach names by texts.
    """
    first, *rest = origin.split(".")
    name, found = origin, None if origin in PLAIN else sys.modules.get(first)
    for count, part in enumerate(rest, 1):
        found = inspect.getattr_static(found, part, None)
        if isinstance(found, types.ModuleType):
            name = ".".join((found.__name__, *rest[count:]))
    home = found.__module__ if isinstance(found, types.FunctionType) else ""
    by_text = f"{home}".partition(".")[0] in BY_TEXT_MODULES
    return f"{home}.{found.__qualname__}" if found is not None and by_text else name


def _in_use(name: str) -> Any:
    """What a full dotted name stands for in libraries in use; nothing is imported to see it.

    So none is asked for it: torch, for one, answers by importing more.
    """
    first, *rest = name.split(".")
    found: Any = sys.modules.get(first)
    for part in rest:
        found = inspect.getattr_static(found, part, None)
    # torch.nn.utils.weight_norm is a function, though a module is called so as well
    return sys.modules.get(name) if found is None else found


@lru_cache(maxsize=10_000)
def is_module_somewhere(origin: str) -> bool:
    """Whether a full dotted name is a module's, in use or not; nothing is imported to see it."""
    found = _in_use(origin)
    if found is not None:
        return isinstance(found, types.ModuleType)
    first, *rest = origin.split(".")
    if not is_installed(first):
        return False
    with suppress(ImportError, ValueError):
        spec = importlib.util.find_spec(first)
        for count in range(2, len(rest) + 2):
            places = spec.submodule_search_locations if spec else None
            name = ".".join((first, *rest)[:count])
            spec = PathFinder.find_spec(name, places) if places else None
        return spec is not None
    return False


@lru_cache(maxsize=1000)
def is_installed(name: str) -> bool:
    """Whether a module of this name is there without a student's doing."""
    if name in sys.stdlib_module_names:
        return True
    with suppress(ImportError, ValueError):
        return importlib.util.find_spec(name) is not None
    return False
