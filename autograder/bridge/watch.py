"""Stops what a question forbids while its tests run, however it is called.

In the student's process, and there only while a question with such a rule is tested, two kinds of
things are replaced by something that takes a note and raises `Forbidden`:

- torch's operators, at the dispatcher, through which every call goes: of a function, a method or a
  compiled graph, with `out=` or in place, in any thread, inside vmap and grad, with or without
  gradients. An operator counts if the answer runs it, directly or in a function that is written in
  terms of it, as `torch.quantile` is of `torch.sort`; not if it is a step inside another
  operator's kernel. Where autograd sees no calls the two cannot be told apart, and both count
  (`autograder.bridge.below`).
- the code of Python functions, and of the methods of classes, whatever name they go by; of a module
  as a whole whatever it offers, or the module itself if it is not imported yet; for a bare name the
  functions of that name in all libraries in use.

And as nothing is stopped in another process, there is none meanwhile: those that run are ended,
and whatever starts one in Python raises `Forbidden` (`start_alone`).

What it needs of torch is bound before any student's code runs (`prepare`), and each operator's stop
is tried once: one that does not stop was undone, and counts as used. So does a call of such a
Python function that has begun before the watch; and nobody makes a copy of one (`code_kept`).

A graph that was compiled before runs torch's operators, which are stopped, but nothing of the
Python functions that it was made of. What this cannot see, besides: functions that C code offers
outside torch, a function that is written anew, and whatever undoes all of it, since it lives in the
student's own process. Reading the answer's text (`autograder.judge.search`) is the other half: it
knows those names, and the ways to such things.
"""

import builtins
import importlib.util
import sys
import types
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, NoReturn

from autograder.bridge import code_kept, loaded
from autograder.bridge.below import Below
from autograder.isolation.processes import end_all_others

# torch's ways to undo this, to reach a name by its text, to compile code or to start processes
# fmt: off
WAYS_ROUND = (
    "torch.library", "torch.package", "torch.utils.cpp_extension", "torch._C", "torch._ops",
    "torch.load", "torch.serialization", "torch.hub", "torch.jit", "torch.fx", "torch.export",
    "torch.compile", "torch.compiler", "torch._dynamo", "torch._inductor",
    "torch._higher_order_ops", "torch.onnx", "torch.multiprocessing", "torch.distributed",
    "torch.utils._python_dispatch", "torch.utils.benchmark", "torch.testing._internal",
    "torch._decomp", "torch._refs", "torch._prims", "torch._dispatch", "torch._classes",
    "torch.classes", "torch._library", "torch.ao", "torch.quantization", "torch.utils.flop_counter",
)
# fmt: on
QUALIFIERS = ("native", "safe", "masked", "sparse", "special", "linalg", "mkldnn")
BELOW_AUTOGRAD = ("CPU", "SparseCPU", "SparseCsrCPU", "QuantizedCPU", "NestedTensorCPU")
STARTS = frozenset(  # of which Python tells: what starts a process, or becomes another program
    ("os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.system", "subprocess.Popen")
)
HEARD = STARTS | code_kept.TOLD | loaded.TOLD
ALWAYS = ("Autograd", "MkldnnCPU")  # no operator takes its steps there
TENSOR = "a tensor"
# what torch calls to print a tensor, and what gives nothing without the rest of its module
PRINTING = frozenset(
    ("torch.autograd.forward_ad", name) for name in ("unpack_dual", "UnpackedDualTensor")
)
# torch's own operators once more, in Python
IN_PYTHON = ("torch._refs", "torch._refs.nn.functional", "torch._decomp.decompositions")


# before any student's code: what is needed of torch, and what names stand for
_bound: SimpleNamespace | None = None
_known: dict[str, "_Meaning"] = {}
_stopped: frozenset[str] = frozenset()
_is_alone = False  # whether no process may be started now
_gives_back = False  # whether functions get their own code back now


def prepare(names: Iterable[str] = ()) -> None:
    """Bind what is needed of torch, if it is imported; call this before any student's code.

    Args:
        names: that are going to be watched. What they stand for is looked up once.
    """
    global _bound
    if _bound is None and "torch" in sys.modules:
        torch = sys.modules["torch"]
        library, c = torch.library.Library, torch._C
        _bound = SimpleNamespace(
            Library=library,
            begin=library.__init__,
            impl=library.impl,
            destroy=library._destroy,
            get_kernel=torch.library.get_kernel,
            operators=_by_computation(c._dispatch_get_all_op_names()),
            twins=_twins(),
            steps={},
            has_kernel=c._dispatch_has_computed_kernel_for_dispatch_key,
            schema=c._get_schema,
            overload=c._get_operation_overload,
            ones=torch.ones,
            inference_mode=torch.inference_mode,
            below=Below(),
        )
    for name in names:
        code_kept.know(_known.setdefault(name, _Meaning(name)).functions())
        if _bound is not None and _torchs(name):
            for overload in _bound.operators.get(bare(name.rpartition(".")[2]), ()):
                _bound.steps.setdefault(overload, _Steps(_bound, overload))


def hear_of_starts() -> None:
    """Hear from now on what starts processes, copies or loads code; before any student's code."""
    loaded.prepare()
    sys.addaudithook(_hear)


def _hear(event: str, told: tuple) -> None:
    if event not in HEARD:  # nearly all: Python tells of each `id()`
        return
    loaded.hear(event, told)
    if event in STARTS and _is_alone:
        raise NotStarted("this question does not allow to start a program or process")
    if not _gives_back and code_kept.copies(event, told):
        raise Forbidden("what a question does not allow is not copied; write it yourself")


def start_alone() -> bool:
    """End the other processes of this sandbox, and let none be started until a watch ends.

    Returns whether there were any.
    """
    global _is_alone
    _is_alone = True
    return end_all_others()


def stopped() -> frozenset[str]:
    """What torch's operators compute that are stopped now."""
    return _stopped


class Forbidden(RuntimeError):
    """The question does not allow this call."""


class NotStarted(Forbidden, PermissionError):
    """Nor this program: a library that asks one in passing does without, as where there is none."""


class Watch:
    """Stops calls from when it is made until `end`."""

    def __init__(self, names: Sequence[str]) -> None:
        """Watch these names; as rules write them, `torch.softmax` or `softmax` or `.softmax`."""
        self.seen: set[str] = set()
        self._codes: dict[int, tuple[types.FunctionType, types.CodeType]] = {}
        self._library: Any = None
        self._modules: list[str] = []
        self._things: list[tuple[Any, str]] = []
        stopped: dict[int, str] = {}  # by their code
        for name in names:
            meaning = _known.get(name) or _Meaning(name)
            if meaning.is_unloaded and name not in sys.modules:
                self._modules.append(name)
                sys.modules[name] = _Stopped(name, self._stop(name))
            self._things.append((meaning.find(), name))
            for function in meaning.functions():
                stopped.setdefault(id(function.__code__), name)
                self._replace(function, self._stop(name))
        self.seen |= {stopped[id(code)] for code in code_kept.under_way() if id(code) in stopped}
        prepare()
        if _bound is not None:
            self._watch_operators(_bound, names)

    def look_at(self, value: Any) -> None:
        """Stop here if this is itself what may not be used: it would be handed over as it is."""
        for thing, name in self._things:
            if thing is value and value is not None:
                self._stop(name)()

    def end(self) -> None:
        """Let everything be as it was."""
        global _stopped, _is_alone, _gives_back
        _stopped, _is_alone, _gives_back = frozenset(), False, True
        for function, code in self._codes.values():
            function.__code__ = code
        _gives_back = False
        self._codes.clear()
        for name in self._modules:
            del sys.modules[name]
        self._modules.clear()
        if self._library is not None and _bound is not None:
            _bound.destroy(self._library)
            self._library = None

    def _stop(self, name: str) -> Callable[..., NoReturn]:
        def stop(*_: Any, **__: Any) -> NoReturn:
            self.seen.add(name)
            raise Forbidden(f"this question does not allow {name.lstrip('.')}; write it yourself")

        return stop

    def _replace(self, function: types.FunctionType, stop: Callable[..., NoReturn]) -> None:
        """Give a function other code: whoever holds the function has that as well."""
        code = function.__code__
        self._codes.setdefault(id(function), (function, code))
        function.__code__ = code_kept.that_calls(stop, code)

    def _watch_operators(self, torch: SimpleNamespace, names: Sequence[str]) -> None:
        wanted = {bare(name.rpartition(".")[2]): name for name in reversed(names) if _torchs(name)}
        twins = torch.twins if len(torch.twins) == len(_loaded(IN_PYTHON)) else _twins()
        for named in twins.values():
            for computation, name in wanted.items():
                for twin in named.get(computation, ()):
                    self._replace(twin, self._stop(name))
        global _stopped
        _stopped = frozenset(wanted)
        self._library = object.__new__(torch.Library)
        torch.begin(self._library, "aten", "IMPL")
        watched: dict[str, str] = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns of what is done here on purpose
            for computation, name in wanted.items():
                for overload in torch.operators.get(computation, ()):
                    self._watch_operator(torch, overload, self._stop(name))
                    watched[overload] = name
        for overload, name in watched.items():
            self._try_out(torch, overload, name)

    def _watch_operator(
        self, torch: SimpleNamespace, operator: str, stop: Callable[..., NoReturn]
    ) -> None:
        steps = torch.steps.get(operator) or _Steps(torch, operator)
        for key, kernel in steps.kernels.items():
            step = torch.below.stops(stop, kernel)
            torch.impl(self._library, operator, step, key, with_keyset=True)
        for key in ALWAYS:
            torch.impl(self._library, operator, stop, key)

    def _try_out(self, torch: SimpleNamespace, operator: str, name: str) -> None:
        """Call an operator once: one that is not stopped was seen to, and counts as used."""
        steps = torch.steps.get(operator) or _Steps(torch, operator)
        if steps.kinds is not None:
            with torch.inference_mode(False):  # there, not every operator's stop is met at once
                self._try(torch, operator, steps.kinds, name)

    def _try(self, torch: SimpleNamespace, operator: str, kinds: dict[str, Any], name: str) -> None:
        plain, _, overload = operator.partition(".")
        arguments = {
            argument: torch.ones((2, 2), device="cpu") if value is TENSOR else value
            for argument, value in kinds.items()
        }
        before = name in self.seen
        self.seen.discard(name)
        call, *_ = torch.overload(f"aten::{plain}", overload)
        with suppress(Exception):  # it was not stopped, whatever came of it
            call(**arguments)
        stopped = name in self.seen
        self.seen.discard(name)
        if before or not stopped:
            self.seen.add(name)


class _Meaning:
    """What a full dotted name stands for; looked up when this is made."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_unloaded = _is_unloaded(name)
        self.found = None if self.is_unloaded else _find(name)
        self.modules = self._below()
        self.held = [] if self.is_unloaded else list(_functions(name, self.found))
        self.held += _of_any_library(name)

    def find(self) -> Any:
        """The thing itself, if it is there by now."""
        return _find(self.name) if self.is_unloaded else self.found

    def functions(self) -> list[types.FunctionType]:
        """The Python functions in it, in modules loaded since then as well."""
        if self.is_unloaded or self.modules != self._below():
            return [*self.held, *_functions(self.name, self.find())]  # also what seems to be lent
        return self.held

    def _below(self) -> list[str]:
        return _below(self.name) if isinstance(self.found, types.ModuleType) else []


def _below(name: str) -> list[str]:
    """A module of this name and those below it that are loaded."""
    inside = f"{name}."
    return [one for one in list(sys.modules) if one == name or one.startswith(inside)]


def _loaded(names: Iterable[str]) -> list[str]:
    return [name for name in names if name in sys.modules]


def _twins() -> dict[str, dict[str, list[types.FunctionType]]]:
    """Of each module of operators in Python its functions, by what they compute."""
    found: dict[str, dict[str, list[types.FunctionType]]] = {}
    for module in _loaded(IN_PYTHON):
        named = found.setdefault(module, {})
        for name, twin in vars(sys.modules[module]).items():
            if isinstance(twin, types.FunctionType):
                named.setdefault(bare(name), []).append(twin)
    return found


class _Stopped(types.ModuleType):
    """Stands in the place of a module that may not be imported."""

    def __init__(self, name: str, stop: Callable[..., NoReturn]) -> None:
        super().__init__(name)
        self.__dict__["stop"] = stop

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__all__":  # who looks through all modules asks these
            raise AttributeError(f"module {self.__name__} has no attribute {name}")
        self.__dict__["stop"]()


class _Steps:
    """What is called below autograd when an operator runs, and what it can be tried out with."""

    def __init__(self, torch: SimpleNamespace, operator: str) -> None:
        name = f"aten::{operator}"
        self.kernels = {
            key: torch.get_kernel(name, key)
            for key in BELOW_AUTOGRAD
            if torch.has_kernel(name, key)
        }
        plain, _, overload = operator.partition(".")
        self.kinds = _arguments(torch.schema(f"aten::{plain}", overload))


def _arguments(schema: Any) -> dict[str, Any] | None:
    """Arguments to call an operator with, by name; None if it takes no tensor, or what is rare."""
    simple = {"int": 1, "float": 1.0, "bool": False, "number": 1, "str": "", "List[int]": [1]}
    given: dict[str, Any] = {}
    for argument in schema.arguments:
        kind = str(argument.type)
        if kind == "Tensor":
            given[argument.name] = TENSOR
        elif not argument.has_default_value() and not kind.startswith("Optional["):
            if kind not in simple:
                return None
            given[argument.name] = simple[kind]
        elif not argument.has_default_value():
            given[argument.name] = None
    return given if TENSOR in given.values() else None


def _torchs(name: str) -> bool:
    """Whether a rule's name may be an operator's: torch's own, or anything called so."""
    return name.startswith("torch.") or not name.rpartition(".")[0]


def bare(name: str) -> str:
    """The name of a computation, without what tells its implementations apart."""
    stripped = name.strip("_")
    first, _, rest = stripped.partition("_")
    return rest if rest and first in QUALIFIERS else stripped


def _by_computation(operators: Iterable[str]) -> dict[str, list[str]]:
    """torch's own operators, all that belong to a computation under its name."""
    found: dict[str, list[str]] = {}
    for operator in operators:
        space, _, overload = operator.partition("::")
        if space == "aten":
            found.setdefault(bare(overload.partition(".")[0]), []).append(overload)
    return found


def _functions(name: str, found: Any) -> Iterator[types.FunctionType]:
    """The Python functions in what a full dotted name stands for."""
    parts = [] if found is None else [found]
    if isinstance(found, types.ModuleType):
        parts = [part for part in _offered(name) if _is_of(part, name) and not _prints(part)]
    package = name.partition(".")[0]
    for part in parts:
        held = list(vars(part).values()) if isinstance(part, type) else [part]
        own = [one for one in held if one is part or not _is_lent(one, package)]
        yield from _own_functions(own, package)


def _is_lent(value: Any, package: str) -> bool:
    """Whether a class has this from another library, as many have `Enum.__new__` from Python."""
    home = f"{getattr(value, '__module__', '')}".partition(".")[0]
    return home != package and home in sys.modules


def _of_any_library(name: str) -> list[types.FunctionType]:
    """The Python functions of a bare name in the libraries in use."""
    if "." in name or hasattr(builtins, name):
        return []
    found: dict[int, types.FunctionType] = {}
    for module in list(sys.modules.values()):
        held = vars(module).get(name) if type(module) is types.ModuleType else None
        if isinstance(held, types.FunctionType) or hasattr(held, "__wrapped__"):
            package = f"{getattr(held, '__module__', '')}".partition(".")[0]
            found |= {id(one): one for one in _own_functions([held], package)}
    return list(found.values())


def _offered(name: str) -> Iterator[Any]:
    """What a module and those of it that are loaded hold."""
    for module in map(sys.modules.get, _below(name)):
        if isinstance(module, types.ModuleType):
            yield from list(vars(module).values())


def _is_unloaded(name: str) -> bool:
    """Whether this is a module of a library in use, but not imported itself."""
    if name in sys.modules or name.partition(".")[0] not in sys.modules:
        return False
    with suppress(ImportError, ValueError):
        return importlib.util.find_spec(name) is not None
    return False


def is_seen(name: str) -> bool:
    """Whether the use of a forbidden name is stopped: not of what C code offers outside torch.

    Nor of a bare name, which goes for whatever library offers it, those not imported yet as well.
    """
    if "." not in name.lstrip("."):
        return False
    first, *rest = name.split(".")
    found: Any = sys.modules.get(first)
    for part in rest:
        found = getattr(found, part, None)
    return first == "torch" or not isinstance(found, types.BuiltinFunctionType)


def is_stopped(name: str) -> bool:
    """Whether the watch stops a thing of a library in use by whatever name it goes."""
    found = _find(name)
    if not isinstance(found, types.ModuleType):
        torchs = name.startswith("torch.") and found is not None and not isinstance(found, type)
        return torchs or any(True for _ in _functions(name, found))
    in_c = (part for part in vars(found).values() if isinstance(part, types.BuiltinFunctionType))
    package = name.partition(".")[0]
    if any(f"{part.__module__ or package}".partition(".")[0] == package for part in in_c):
        return False
    return any(True for _ in _functions(name, found))


def is_module(name: str) -> bool:
    """Whether this is a module of a library in use."""
    return isinstance(_find(name), types.ModuleType)


def is_method(name: str) -> bool:
    """Whether values of libraries may have a method of this name; all, if none is in use."""
    holders = (("torch", "Tensor"), ("torch.nn", "Module"), ("numpy", "ndarray"))
    kinds = [getattr(sys.modules[m], kind) for m, kind in holders if m in sys.modules]
    return not kinds or any(hasattr(kind, name) for kind in (*kinds, str, list, dict, set))


def _find(name: str) -> Any:
    """What a dotted name stands for in a library in use, its module imported if need be."""
    parts = name.split(".")
    if parts[0] not in sys.modules:
        return None
    for count in range(len(parts), 0, -1):
        with suppress(ImportError, ValueError):
            found: Any = importlib.import_module(".".join(parts[:count]))
            for part in parts[count:]:
                found = getattr(found, part, None)
            return found
    return None


def _is_of(part: Any, module: str) -> bool:
    is_one = isinstance(part, type | types.FunctionType) or hasattr(part, "__wrapped__")
    return is_one and f"{getattr(part, '__module__', '')}.".startswith(f"{module}.")


def _prints(part: Any) -> bool:
    return (part.__module__, getattr(part, "__name__", "")) in PRINTING


def _own_functions(values: Iterable[Any], package: str) -> Iterator[types.FunctionType]:
    """The functions among these, and those of their package that decorators hold."""
    for value in values:
        inner = value.fget if isinstance(value, property) else value
        inner = inner.__func__ if isinstance(inner, staticmethod | classmethod) else inner
        for _ in range(20):
            if isinstance(inner, types.FunctionType):
                yield inner
            inner = getattr(inner, "__wrapped__", None)
            if f"{getattr(inner, '__module__', '')}".partition(".")[0] != package:
                break


prepare()
