"""Tensors and modules on the line: values cross, parameters stay in step, gradients flow.

A module stays with its owner; the other end gets a stand-in with the same tree of parameters and
buffers. Before each request and each reply the two ends exchange what changed in them. A call that
crosses becomes one node of the asking end's autograd graph, whose backward asks for the product
with the Jacobian.
"""

import abc
import contextlib
import ctypes
import types
import weakref
from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch._C._functorch import is_functorch_wrapped_tensor
from torch.nn import Module, Parameter  # by name: an answer may put something else there
from torch.nn.modules.lazy import LazyModuleMixin
from torch.nn.parameter import is_lazy
from torch.utils.weak import WeakTensorKeyDictionary

from autograder.bridge import codecs, layers, rng, views, watch
from autograder.bridge.arrays import is_shape
from autograder.bridge.public import public, public_name
from autograder.bridge.settings import Settings
from autograder.bridge.stand_ins import FORWARDED, Remote, compared
from autograder.bridge.wire import WireError, reading

if TYPE_CHECKING:
    from autograder.bridge.incoming import Incoming
    from autograder.bridge.outgoing import Outgoing
    from autograder.bridge.peer import Peer

DTYPES = {
    str(kind).removeprefix("torch."): kind
    for kind in (
        *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
        *(torch.float16, torch.bfloat16, torch.float32, torch.float64),
        *(torch.complex64, torch.complex128),
    )
}
NAMES = {kind: name for name, kind in DTYPES.items()}
LOOSE = 0  # number of the module that holds loose parameters
MAX_SPREAD = 16  # how much larger than its entries a tensor's memory may be
MAX_LAID = 16_000_000  # entries of memory up to which a tensor may be spread at all
CURE = "give an ordinary (dense) tensor on the CPU"
DATA = tuple(f"torch.utils.data.{name}" for name in ("dataset", "dataloader", "sampler"))
MAX_MODULES = 100_000  # in a tree, one that stands in two places counted twice


ORDINARY = (Tensor, Parameter)  # themselves, and no class made of them
_memcmp = ctypes.CDLL(None).memcmp
_memcmp.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t)

Lent = tuple[weakref.ref[Module], Tensor, int]


class Tensors:
    """What one end knows of tensors and modules."""

    def __init__(self, peer: "Peer") -> None:
        self.peer = peer
        self.mine: dict[int, Module] = {}  # modules of ours that the other end knows
        self.theirs: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        self.building = 0  # how deep we are in a tree of stand-ins that is being made
        self.last: dict[tuple[int, int, str], Any] = {}  # what the other end has in each place
        self.places: dict[int, tuple[int, int, str]] = {}  # id of a parameter -> its place
        self.graphs: dict[int, tuple[list[Tensor], list[Tensor], list[Any]]] = {}
        self.classes: dict[Any, type] = {}
        self.bases: dict[str, type] = {}  # the library's, by the names that messages have for them
        self.told: dict[tuple[Any, ...], dict[str, Any]] = {}  # of each class, and its size
        self.settings = Settings(peer)
        self.others: Module | None = None  # holds their loose parameters
        self.lent: dict[tuple[int, str], Lent] = {}  # tensors read from attributes of theirs
        # what stands in modules of theirs and lies in a test's own value, by its id
        self.kept_away: set[tuple[int, int, str]] = (
            set()
        )  # changes of theirs that were not made here
        self.laid: weakref.WeakValueDictionary[int, Tensor] = weakref.WeakValueDictionary()
        # what was made here for modules of theirs, and in which memory: by identity, as tables of
        # numbers are what the other end makes of them
        self.made: WeakTensorKeyDictionary = WeakTensorKeyDictionary()
        # of each tensor the gradient that the other end knows, and whether it said that this is
        # the one it knew before, changed in place
        self.gradients: WeakTensorKeyDictionary = WeakTensorKeyDictionary()

    def mode(self) -> bool:
        """Whether gradients are recorded now."""
        return torch.is_grad_enabled()

    def set_mode(self, mode: bool) -> None:
        """Record gradients or not."""
        torch.set_grad_enabled(mode)

    def knows(self, value: Any) -> bool:
        """Whether this is a tensor or a generator of random numbers."""
        return isinstance(value, Tensor | torch.Generator)

    def snapshot(self, value: Any) -> Any:
        """A copy without history; a generator stands for itself."""
        return value.detach().clone() if isinstance(value, Tensor) else None

    def overwrite(self, ours: Any, fresh: Any) -> None:
        """Change a tensor (and its gradient) or a generator of ours in place."""
        if isinstance(ours, torch.Generator):
            ours.set_state(fresh.get_state())
            return
        if not _is_tensor(fresh):
            raise WireError("a message puts something else in the place of a tensor")
        is_input = ours.is_leaf and ours.requires_grad
        history = fresh.requires_grad and not fresh.is_leaf and not is_input
        with torch.set_grad_enabled(torch.is_grad_enabled() and history):
            if ours.shape != fresh.shape or ours.dtype != fresh.dtype:
                _reform(ours, fresh)
            ours.copy_(fresh)
        if ours.is_leaf and fresh.is_leaf:
            ours.requires_grad_(fresh.requires_grad)
            self._pass_gradient(ours, fresh)

    def double(self, ours: Any) -> Any:
        """Another tensor or generator like ours, to be overwritten in its place."""
        if isinstance(ours, torch.Generator):
            return torch.Generator()
        made = ours.detach().clone().requires_grad_(ours.requires_grad)
        return made if ours.is_leaf else made * 1

    def node(self, encoder: Any, value: Any) -> Any:
        """The node of a tensor or of something of torch's; None for anything else."""
        if isinstance(value, Tensor):
            return self._tensor_node(encoder, value)
        if isinstance(value, torch.dtype):
            if value not in NAMES:
                raise WireError(f"{value} cannot be handed over: use a kind of number like float32")
            return ["TD", NAMES[value]]
        if isinstance(value, torch.device):
            return ["DV", str(value)]
        if isinstance(value, torch.Size):
            return ["TS", *value]
        if isinstance(value, torch.Generator) and value.device.type == "cpu":
            encoder.keep(value)
            return ["GEN", encoder.frame.add(_bytes(value.get_state()))]
        return None

    def _tensor_node(self, encoder: Any, value: Tensor) -> Any:
        place = self._place(value)
        if place is not None:
            side, number, name = place
            return ["PS", side, number, name]
        check(value)
        encoder.message.tensors.append(value)
        entry = len(encoder.message.tensors) - 1
        if isinstance(value, Parameter):
            return self._loose(value, entry)
        encoder.keep(value)
        return ["X", entry]

    def _loose(self, value: Parameter, entry: int) -> Any:
        """A parameter that stands in no module is shared as well: optimisers change it later."""
        own = self.mine.setdefault(LOOSE, Module())
        name = str(len(own._parameters))
        own._parameters[name] = value
        self.places[id(value)] = (0, LOOSE, name)
        self.last[0, LOOSE, name] = self._now((0, LOOSE, name), value)
        self.last[0, LOOSE, "/"], self.last[0, LOOSE, ""] = (), True
        return ["LP", name, entry]

    def other(self, incoming: "Incoming", tag: Any, parts: list[Any]) -> Any:
        """Read a node that `node` wrote."""
        if tag == "PS":
            module = self._module(1 - parts[0], parts[1])
            return module._parameters[parts[2]]
        if tag == "LP":
            return self._take_loose(incoming.tensor(parts[1]), str(parts[0]))
        if tag == "TD":
            return DTYPES[parts[0]]
        if tag == "DV":
            return torch.device(str(parts[0])[:20])
        if tag == "TS":
            if not is_shape(parts):
                raise WireError("a message holds a shape that is none")
            return torch.Size(parts)
        if tag == "GEN":
            generator = torch.Generator()
            generator.set_state(rng.torch_state(incoming.buffer(parts[0])))
            return incoming.keep(generator)
        raise WireError(f"a message has a part of unknown kind {str(tag)[:20]!r}")

    def _take_loose(self, value: Tensor, name: str) -> Parameter:
        if not isinstance(value, Parameter):
            raise WireError("a message holds a parameter that is none")
        if self.others is None:
            self.others = Module()
        self.theirs[LOOSE] = self.others
        self.others._parameters[name] = self._makes(value)
        self._settle(LOOSE, name, value)
        self.last[1, LOOSE, "/"], self.last[1, LOOSE, ""] = (), True
        return value

    def write(self, message: "Outgoing", value: Tensor) -> list[Any]:
        """The entry of a tensor in a message's list."""
        check(value)
        grad = gradient_of(value)
        flags = value.requires_grad + 2 * value.is_leaf + 4 * isinstance(value, Parameter)
        flags += 8 * (self._place(value) is not None)
        if grad is not None:
            flags += 16 * (self._known_gradient(value)[0] is grad)
            self.gradients[value] = grad, False
        return self._entry(message, value, flags, grad)

    def _entry(
        self, message: "Outgoing", value: Tensor, flags: int, grad: Tensor | None
    ) -> list[Any]:
        plain = value.detach()
        return [
            NAMES[plain.dtype],
            list(plain.shape),
            None if plain.is_contiguous() else list(plain.stride()),
            message.frame.add(_bytes(plain)),
            flags,
            None if grad is None else self._entry(message, grad, 2, None),
        ]

    def read(self, incoming: "Incoming", entries: Any, graph: Any, message: Any) -> list[Any]:
        """The tensors of a message; those of a reply that carry a history join our graph."""
        read = [self._read(incoming, entry) for entry in entries or []]
        if graph is not None and (type(graph) is not int or graph <= 0):
            raise WireError("a message names a graph by no number")
        tensors = [
            _leafed(tensor, entry[4]) for tensor, entry in zip(read, entries or [], strict=True)
        ]
        if graph is not None and message is not None and torch.is_grad_enabled():
            self._join(tensors, entries, graph, message)
        elif message is None:
            incoming.inputs = [
                tensor
                for tensor, entry in zip(read, entries or [], strict=True)
                if tensor.requires_grad and not entry[4] & 8
            ]
        return tensors

    def _read(self, incoming: "Incoming", entry: Any) -> Tensor:
        *plain, flags, grad = entry
        if type(flags) is not int or not 0 <= flags < 32:
            raise WireError("a message holds a tensor of unknown kind")
        made = self._dense(incoming, *plain)
        if flags & 1 and not (made.is_floating_point() or made.is_complex()):
            raise WireError("a message holds a tensor of whole numbers that wants a gradient")
        if flags & 4:
            made = Parameter(made, requires_grad=bool(flags & 1))
        else:
            made.requires_grad_(bool(flags & 1))
        if grad is not None:
            *plain, _, deeper = grad
            gradient = self._dense(incoming, *plain)
            fits = (gradient.shape, gradient.dtype) == (made.shape, made.dtype)
            if deeper is not None or not fits or not made.requires_grad:
                raise WireError("a message holds a gradient that does not fit its tensor")
            made.grad = gradient
            self.gradients[made] = gradient, bool(flags & 16)
        return made

    def _known_gradient(self, value: Tensor) -> tuple[Tensor | None, bool]:
        found: Any = self.gradients.get(value)
        return found or (None, False)

    def _pass_gradient(self, ours: Tensor, fresh: Tensor) -> None:
        """Give ours the gradient that came: in place, where it was changed in place over there."""
        came, kept = self._known_gradient(fresh)
        known, _ = self._known_gradient(ours)
        is_one = kept and known is ours.grad
        if is_one and known is not None and came is not None and _fits(known, came):
            with torch.no_grad():
                known.copy_(came)
        else:
            ours.grad = fresh.grad
        if ours.grad is not None:
            self.gradients[ours] = ours.grad, False

    def _dense(
        self, incoming: "Incoming", name: Any, shape: Any, strides: Any, place: Any
    ) -> Tensor:
        """A tensor from its description, every part of which is checked."""
        if name not in DTYPES or not is_shape(shape):
            raise WireError("a message holds a tensor of unknown kind")
        if strides is not None and not is_strides(strides, shape):
            raise WireError("a message holds a tensor of a layout that is none")
        return _tensor(DTYPES[name], shape, strides, incoming.buffer(place))

    def is_constant(self, value: Any) -> bool:
        """Whether this is a tensor without history."""
        return isinstance(value, Tensor) and not value.requires_grad

    # --- gradients ----------------------------------------------------------------------------

    def remember(self, incoming: "Incoming", reply: "Outgoing") -> int | None:
        """Keep the graph of what a call gives, if it has one; its number."""
        outputs = [t for t in reply.tensors if t.requires_grad and not t.is_leaf]
        if not outputs:
            return None
        number = self.peer.next_number
        self.peer.next_number += 1
        inputs = incoming.inputs
        self.graphs[number] = (outputs, inputs, list(self._parameters()))
        return number

    def vjp(self, graph: int, gradients: tuple) -> list[Any]:
        """Gradients for the tensors that were handed in, then [place, gradient] of parameters."""
        with reading():
            outputs, inputs, places = self.graphs[graph]
            pairs = [(o, g) for o, g in zip(outputs, gradients, strict=True) if g is not None]
        if not all(_is_tensor(gradient) for _, gradient in pairs):
            raise WireError("a message holds a gradient that is none")
        parameters = [parameter for _, parameter in places]
        wanted = [*inputs, *parameters]
        if not pairs or not wanted:
            return [[None] * len(inputs), []]
        found = torch.autograd.grad(
            [output for output, _ in pairs],
            wanted,
            [gradient for _, gradient in pairs],
            retain_graph=True,
            allow_unused=True,
        )
        named = [
            (place, gradient)
            for (place, _), gradient in zip(places, found[len(inputs) :], strict=True)
            if gradient is not None
        ]
        return [list(found[: len(inputs)]), [[list(place), g] for place, g in named]]

    def forget(self, number: int) -> None:
        """The other end does not need this module or graph any more."""
        self.graphs.pop(number, None)
        module = self.mine.pop(number, None)
        if module is not None:
            for name in (*module._parameters, *module._buffers, "/", "", layers.SLOT):
                self.last.pop((0, number, name), None)

    def _join(self, tensors: list[Any], entries: list[Any], graph: int, message: Any) -> None:
        """Make the tensors that came back nodes of our own graph."""
        lead = [place for place, entry in enumerate(entries) if entry[4] & 3 == 1]
        inputs = [t for t in message.tensors if t.requires_grad and self._place(t) is None]
        places = list(self._parameters())
        needed = [*inputs, *(parameter for _, parameter in places)]
        held = Graph(self.peer, graph)
        names = [place for place, _ in places]
        results = [tensors[place].detach() for place in lead]
        if not needed:
            joined: Any = [result.requires_grad_() for result in results]
        else:
            joined = Crossed.apply(held, names, results, *needed)
        for place, result in zip(lead, joined, strict=True):
            tensors[place] = result

    def _parameters(self) -> Iterator[tuple[tuple[int, int, str], Parameter]]:
        """Parameters of all shared modules that want gradients, each once, with their places."""
        seen: set[int] = set()
        for side, number, module in self._shared():
            for name, parameter in module._parameters.items():
                if parameter is None or id(parameter) in seen or not parameter.requires_grad:
                    continue
                seen.add(id(parameter))
                yield self._place(parameter) or (side, number, name), parameter

    # --- modules ------------------------------------------------------------------------------

    def is_module(self, value: Any) -> bool:
        """Whether this is a module."""
        return isinstance(value, Module)

    def describe(self, encoder: Any, module: Module) -> dict[str, Any]:
        """What the other end needs to make a stand-in of a module of ours."""
        number, kind = self.peer.give(module), type(module)
        told: dict[str, Any] = self._class_told(kind) | {
            "training": module.training,
            "classes": self.peer.class_numbers(kind.__mro__[:-1]),
        }
        if self._is_layer(0, module):
            told["there"] = self.last[0, number, layers.SLOT] = layers.is_computed_there(module)
        self.mine[number] = module
        try:
            return told | self._parts(encoder, number, module)
        except WireError:
            self.forget(number)  # the other end never hears of it
            raise

    def _class_told(self, kind: type) -> dict[str, Any]:
        """What is told of a module's class; looked up again once that has got more."""
        kinds = kind.__mro__[:-1]
        key = (kind, *(len(vars(one)) for one in kinds))
        if key not in self.told:
            base = next((one for one in kinds if public_name(one)), Module)
            own = [one for one in kinds[: kinds.index(base)] if one is not base]
            names = {name: value for one in reversed(own) for name, value in vars(one).items()}
            shown = {name: value for name, value in names.items() if not name.startswith("_")}
            self.told[key] = {
                "base": next((public_name(one) for one in kinds if may_be_base(one)), None),
                "methods": sorted(name for name, value in shown.items() if callable(value)),
                "fields": sorted(name for name, value in shown.items() if not callable(value)),
                "dunders": sorted(FORWARDED.intersection(names) - {"__call__", "__repr__"}),
            }
        return self.told[key]

    def _parts(self, encoder: Any, number: int, module: Module) -> dict[str, Any]:
        told: dict[str, Any] = {}
        told["params"] = [
            [name, self._value(encoder, 0, number, name, parameter)]
            for name, parameter in module._parameters.items()
        ]
        told["buffers"] = [
            [
                name,
                self._value(encoder, 0, number, name, buffer),
                name not in module._non_persistent_buffers_set,
            ]
            for name, buffer in module._buffers.items()
        ]
        told["children"] = [[n, encoder.node(child)] for n, child in module._modules.items()]
        self.last[0, number, "/"] = self._kids(module)
        self.last[0, number, ""] = module.training
        return told

    def _value(self, encoder: Any, side: int, number: int, name: str, value: Any) -> Any:
        """The node of a parameter or buffer in its place; the other end will have this value."""
        if value is None:
            self.last[side, number, name] = None
            return None
        check(value)
        known = self._place(value)
        self.last[side, number, name] = self._now((side, number, name), value)
        if known is not None and known != (side, number, name):
            return ["PS", *known]
        if isinstance(value, Parameter):
            self.places[id(value)] = (side, number, name)
        encoder.message.tensors.append(value)
        return ["X", len(encoder.message.tensors) - 1]

    def stand_in(self, incoming: "Incoming", told: dict[str, Any], known: Any) -> Any:
        """The stand-in of a module of the other end."""
        made: Any = known if known is self.theirs.get(_number(told)) else None
        if made is None:
            made = object.__new__(self.class_of(told))
            Module.__init__(made)
            made.__dict__["_remote"] = Remote(self.peer, told)
        number = made.__dict__["_remote"].number
        self.theirs[number] = made
        self.building += 1
        try:
            self._furnish(incoming, made, number, told)
        finally:
            self.building -= 1
        if not self.building:  # a part of another is looked through with that
            _count(made, [], {})
        return made

    def _furnish(self, incoming: "Incoming", made: Any, number: int, told: dict[str, Any]) -> None:
        """Fill a module's stand-in with what the other end told."""
        for name, node in told["params"]:
            fresh, slot = self._stand_in_value(incoming, node), (1, number, str(name))
            value = self._kept(incoming, made._parameters.get(name), fresh, slot)
            made._parameters[str(name)] = value
            self._settle(number, str(name), value)
        for name, node, persistent in told["buffers"]:
            fresh, slot = self._stand_in_value(incoming, node), (1, number, str(name))
            value = self._kept(incoming, made._buffers.get(name), fresh, slot)
            made._buffers[str(name)] = value
            self.last[1, number, name] = bits(made._buffers[name])
            if not persistent:
                made._non_persistent_buffers_set.add(name)
        for name, node in told["children"]:
            made._modules[str(name)] = _child(self._part(incoming, made, name, node))
        for part, table in zip(("params", "buffers", "children"), _tables(made), strict=True):
            for name in table.keys() - {str(entry[0]) for entry in told[part]}:
                del table[name]
        made.__dict__["training"] = bool(told["training"])
        made.__dict__["_here"] = self.peer.is_free and told.get("there") is True
        self.last[1, number, "/"] = self._kids(made)
        self.last[1, number, ""] = made.training

    def _part(self, incoming: "Incoming", module: Any, name: Any, node: Any) -> Any:
        """What stands in a module's place; it goes by the module's label and its own name."""
        remote = module.__dict__.get("_remote")
        before = incoming.origin
        if remote is not None:
            remote.came(before)
            incoming.origin = remote.use(name)
        try:
            return incoming.value(node)
        finally:
            incoming.origin = before

    def _kept(self, incoming: "Incoming", old: Any, fresh: Any, slot: tuple[int, int, str]) -> Any:
        """The tensor that a test may hold already, brought up to date; or the new one."""
        if not isinstance(old, Tensor) or not isinstance(fresh, Tensor) or old is fresh:
            return fresh
        if (type(old), old.shape, old.dtype) != (type(fresh), fresh.shape, fresh.dtype):
            return fresh
        if not old.is_leaf or self._place(fresh) is not None:
            return fresh
        if self._place(old) not in (None, slot):  # another module's, which is not written to
            return fresh
        if not self.is_theirs(old) and bits(old) == bits(fresh):  # in which nothing has changed
            return old
        if not self._may_write(incoming, slot, old):
            return fresh
        self._fill(old, fresh)
        old.requires_grad_(fresh.requires_grad)
        self._pass_gradient(old, fresh)
        return old

    def is_theirs(self, value: Tensor) -> bool:
        """Whether a tensor was made here for a module of theirs, and lies in memory of its own."""
        if value not in self.made or self.laid.get(id(value)) is value:
            return False
        same = self.made[value] == views.owner_of(value)
        return same or not views.is_used_elsewhere(value)  # as after `model.double()`

    def _makes(self, value: Any) -> Any:
        """Remember that a tensor was made for a module of theirs; the tensor."""
        if isinstance(value, Tensor) and self.laid.get(id(value)) is not value:
            self.made[value] = views.owner_of(value)
        return value

    def _may_write(self, incoming: "Incoming", slot: tuple[int, int, str], old: Tensor) -> bool:
        """Whether what stands in a module may be written to.

        In a module of theirs a test may have put a tensor of its own, or an answer the test's: to
        change that is to change a value of ours.
        """
        if slot[0] == 0 or self.peer.is_free or self.is_theirs(old):
            return True
        if self.laid.get(id(old)) is old:  # to whose memory `_fill` does not write
            return True
        self.peer.changing.note("Module")
        return not self.peer.changing.protects(incoming.call, "Module", old)

    def lay(self, value: Tensor, whole: Any, part: Any, is_theirs: bool) -> None:
        """Have a parameter or buffer of theirs lie in another tensor, if both hold the same."""
        own = views.view(whole, part)
        if own is None or (value.dtype, value.shape) != (own.dtype, own.shape):
            return
        if _bytes(value.detach()) != _bytes(own):
            return
        value.data = own
        if not is_theirs or self.laid.get(id(whole)) is whole:
            self.laid[id(value)] = value

    def _fill(self, old: Tensor, fresh: Tensor) -> None:
        """Bring what stands in a module up to date, in place; never a value that a test holds."""
        if self.laid.get(id(old)) is not old:
            old.data.copy_(fresh.data)
        elif _bytes(old.detach()) != _bytes(fresh.detach()):
            self._move(old, fresh)

    def _move(self, old: Tensor, fresh: Tensor) -> None:
        """Have a tensor that stands in a module lie where a new one does."""
        old.data = fresh.data
        self.laid.pop(id(old), None)
        if old in self.made:
            self._makes(old)

    def _stand_in_value(self, incoming: "Incoming", node: Any) -> Any:
        if node is None:
            return None
        if node[0] not in ("X", "PS"):  # never a value that a test handed over
            raise WireError("a message holds a module with a parameter that is none")
        found = incoming.tensor(node[1]) if node[0] == "X" else incoming.value(node)
        if not _is_tensor(found):
            raise WireError("a message holds a module with a parameter that is none")
        return self._makes(found) if node[0] == "X" else found

    def _settle(self, number: int, name: str, value: Any) -> None:
        if isinstance(value, Parameter) and self._place(value) is None:
            self.places[id(value)] = (1, number, name)
        self.last[1, number, name] = self._now((1, number, name), value)

    def class_of(self, told: dict[str, Any]) -> type:
        """The class of a module's stand-in, with the special methods that are believed now."""
        base = self._base(told.get("base"))
        methods, named = _names(told.get("methods")), _names(told.get("fields"))
        dunders = self.peer.forwarded(told)
        key = (base, methods, named, dunders)
        if key not in self.classes:
            body: dict[str, Any] = {"__getattr__": _get_attribute, "__setattr__": _set_attribute}
            body |= {"__deepcopy__": _deep_copy, "__repr__": _show, "__hash__": object.__hash__}
            body |= {"__new__": _made_anew(base), "__copy__": _copy}
            body |= {name: property(_remote_value(name)) for name in named}
            body |= {name: _remote_method(name) for name in (*methods, *dunders)}
            body |= compared(dunders)
            body["forward"] = _forward if base is layers.Linear else _remote_method(None)
            self.classes[key] = type(base.__name__, (base,), body)
        return self.classes[key]

    def _base(self, name: Any) -> type:
        """The class of the library's that a stand-in is made of."""
        if type(name) is str and name in self.bases:
            return self.bases[name]
        base = public(name, False) if name else Module
        if not may_be_base(base):
            raise WireError("a message names a module's class that is none")
        if type(name) is str:
            self.bases[name] = base
        return base

    def lend(self, module: Module, number: int, name: str, value: Any) -> None:
        """Keep an eye on a plain tensor of a module of theirs: a test may change it in place."""
        if isinstance(value, Tensor) and self._place(value) is None and not value.is_inference():
            self.lent[number, name] = weakref.ref(module), value, value._version

    def tell_again(self) -> None:
        """What a call has changed in its copies of ours, the next one gets as ours is."""
        for slot in self.kept_away:
            self.last.pop(slot, None)
        self.kept_away.clear()

    def give_back(self) -> None:
        """Bring what was changed in such tensors to the module they were read from."""
        for (number, name), (module, value, version) in list(self.lent.items()):
            if module() is None:
                del self.lent[number, name]
            elif value._version != version:
                self.lent[number, name] = module, value, value._version
                with contextlib.suppress(Exception):  # a property takes no new value
                    self.peer.put(number, name, value)

    # --- keeping in step ----------------------------------------------------------------------

    def state_out(self, message: "Outgoing") -> dict[str, Any]:
        """What changed here since the other end last heard: parameters, buffers, gradients."""
        shared = [part for part in self._shared() if not self._is_as_told(*part)]
        if not shared:
            return self._state([], [], [])
        before = self.last.copy(), self.places.copy()
        try:
            return self._changed_state(message, shared)
        except WireError:  # none of it is sent; what is odd costs this one message
            self.last, self.places = before
            self.last |= self._odd_places()
            raise

    def _odd_places(self) -> dict[tuple[int, int, str], str]:
        return {
            (side, number, name): words
            for side, number, module in self._shared()
            for table in (module._parameters, module._buffers)
            for name, value in table.items()
            if value is not None and (words := _odd(value))
        }

    def _is_as_told(self, side: int, number: int, module: Module) -> bool:
        """Whether a module is surely as the other end knows it; most are in most messages."""
        last, places = self.last, self.places
        if last.get((side, number, "")) != module.training:
            return False
        kids = self._kids(module) if module._modules else ()
        if last.get((side, number, "/"), ()) != kids:
            return False
        if self._is_layer(side, module):
            there = layers.is_computed_there(module)
            if last.get((side, number, layers.SLOT), False) is not there:
                return False
        for table in (module._parameters, module._buffers):
            for name, value in table.items():
                slot = (side, number, name)
                if value is None:
                    if last.get(slot, bits) is not None:
                        return False
                    continue
                # the first is much faster, and true of nearly all
                is_parameter = type(value) is Parameter or isinstance(value, Parameter)
                own = slot if is_parameter else None
                if places.get(id(value)) != own or not _has_bits(value, last.get(slot)):
                    return False
        return True

    def _changed_state(
        self, message: "Outgoing", shared: Sequence[tuple[int, int, Any]]
    ) -> dict[str, Any]:
        news: list[Any] = []
        modes: list[Any] = []
        structure: list[Any] = []
        there: list[Any] = []
        for side, number, module in shared:
            for table in (module._parameters, module._buffers):
                for name, value in table.items():
                    slot = (side, number, name)
                    now = self._now(slot, value)
                    if isinstance(now, str) and self.last.get(slot) == now:
                        continue  # the other end was told that it is odd
                    if isinstance(value, Parameter) and self._place(value) is None:
                        self.places[id(value)] = slot
                        news.append([*slot, {"new": self.write(message, value)}])
                        self.last[slot] = now
                    elif self.last.get(slot, bits) != now:
                        self.last[slot] = now
                        news.append([*slot, self._news(message, slot, value)])
            kids = self._kids(module)
            if self.last.get((side, number, "/")) != kids:
                self.last[side, number, "/"] = kids
                nodes = [[n, message.encoder.node(c)] for n, c in module._modules.items()]
                structure.append([side, number, nodes])
            if self.last.get((side, number, "")) != module.training:
                self.last[side, number, ""] = module.training
                modes.append([side, number, module.training])
            if self._is_layer(side, module):
                now = self.last[side, number, layers.SLOT] = layers.is_computed_there(module)
                there.append([number, now])
        return self._state(news, modes, structure) | ({"there": there} if there else {})

    def _is_layer(self, side: int, module: Module) -> bool:
        """Whether this is a layer of a test's that an answer's process may compute."""
        return side == 0 and type(module) is layers.Linear and not self.peer.is_free

    def _state(self, news: list[Any], modes: list[Any], structure: list[Any]) -> dict[str, Any]:
        return {
            "m": news,
            "mode": modes,
            "kids": structure,
            "grad": torch.is_grad_enabled(),
            "kind": NAMES[torch.get_default_dtype()],
        }

    def _now(self, slot: tuple[int, int, str], value: Any) -> Any:
        """What tells whether a place holds something new: bits, whose parameter, or what is odd."""
        if value is None:
            return None
        shared = self._place(value)
        return shared if shared not in (None, slot) else _odd(value) or bits(value)

    def _news(self, message: "Outgoing", slot: tuple[int, int, str], value: Any) -> Any:
        if value is None:
            return None
        shared = self._place(value)
        if shared not in (None, slot):
            return {"same": list(shared)}  # two places hold one parameter
        return self.write(message, value)

    def state_in(self, incoming: "Incoming", state: Any) -> None:
        """Bring our modules into the state of the other end's."""
        if not isinstance(state, dict):
            return
        ask = isinstance(incoming.frame.tree, dict) and "op" in incoming.frame.tree
        if ask:
            torch.set_grad_enabled(bool(state.get("grad")))
            if self.peer.is_free:
                _reset(DTYPES.get(str(state.get("kind")), torch.float32))
        for side, number, name, entry in state.get("m") or []:
            module = self._module(1 - side, number, missing=True)
            if module is None or type(name) is not str:
                continue
            slot = (1 - side, number, name)
            if self._keeps_out(incoming, side, module):
                self.kept_away.add(slot)
            else:
                self._update(incoming, module, slot, entry)
            table = module._parameters if name in module._parameters else module._buffers
            self.last[slot] = self._now(slot, table.get(name))
        for number, here in (state.get("there") or []) if self.peer.is_free else []:
            if (module := self.theirs.get(number)) is not None:
                module.__dict__["_here"] = here is True
        for side, number, training in state.get("mode") or []:
            module = self._module(1 - side, number, missing=True)
            if module is None:
                continue
            if self._keeps_out(incoming, side, module):
                self.kept_away.add((0, number, ""))
            else:
                module.__dict__["training"] = bool(training)
            self.last[1 - side, number, ""] = module.training

    def _keeps_out(self, incoming: "Incoming", side: Any, module: Module) -> bool:
        """Whether a change of this module stays out of ours; if it is ours, it is noted."""
        if not side or self.peer.changing.is_copy(module):
            return False
        self.peer.changing.note("Module")
        return self.peer.changing.protects(incoming.call, "Module", module)

    def structure_in(self, incoming: "Incoming", state: Any) -> None:
        """Put modules in the places where the other end has put them."""
        for side, number, nodes in (state or {}).get("kids") or []:
            module = self._module(1 - side, number, missing=True)
            if module is None:
                continue
            kids = {
                str(name): _child(self._part(incoming, module, name, node)) for name, node in nodes
            }
            if self._keeps_out(incoming, side, module):
                self.kept_away.add((0, number, "/"))
            else:
                module._modules.clear()
                module._modules.update(kids)
                _count(module, [], {})
            self.last[1 - side, number, "/"] = self._kids(module)

    def _kids(self, module: Module) -> tuple[Any, ...]:
        """What tells which modules stand in a module's places."""
        return tuple((name, id(child)) for name, child in module._modules.items())

    def _update(
        self, incoming: "Incoming", module: Any, slot: tuple[int, int, str], entry: Any
    ) -> None:
        name = slot[2]
        table = module._parameters if name in module._parameters else module._buffers
        old = table.get(name)
        if isinstance(entry, dict) and "new" in entry:
            fresh = self._read(incoming, entry["new"])
            module._parameters[name] = self._makes(fresh) if slot[0] else fresh
            self.places[id(fresh)] = slot
            return
        if isinstance(entry, dict):
            side, number, other = entry["same"]
            table[name] = self._module(1 - side, number)._parameters[other]
            return
        fresh = None if entry is None else self._read(incoming, entry)
        if (
            old is None
            or fresh is None
            or self._place(old) not in (None, slot)
            or not self._may_write(incoming, slot, old)
        ):
            if name not in table and isinstance(fresh, Parameter):
                table = module._parameters
            table[name] = self._makes(fresh) if slot[0] else fresh
            return
        if old.shape == fresh.shape and old.dtype == fresh.dtype:
            self._fill(old, fresh)
        else:
            self._move(old, fresh)
        old.requires_grad_(fresh.requires_grad)
        if old.is_leaf:
            self._pass_gradient(old, fresh)

    def _shared(self) -> list[tuple[int, int, Any]]:
        """All modules that both ends know: (0, number, ours) and (1, number, theirs)."""
        ours = [(0, number, module) for number, module in self.mine.items()]
        return ours + [(1, number, module) for number, module in list(self.theirs.items())]

    def held(self) -> Iterator[tuple[int, int, str, Tensor]]:
        """What stands in modules that both ends know, with its places."""
        for side, number, module in self._shared():
            for table in (module._parameters, module._buffers):
                for name, value in table.items():
                    if value is not None:
                        yield side, number, name, value

    def at(self, side: Any, number: Any, name: Any) -> Tensor | None:
        """What stands in such a place, with the side as the other end sees it."""
        module = self._module(1 - side, number, missing=True)
        if module is None:
            return None
        value = module._parameters.get(name)
        return module._buffers.get(name) if value is None else value

    def _module(self, side: Any, number: Any, missing: bool = False) -> Any:
        table: Any = self.theirs if side == 1 else self.mine
        module = table.get(number)
        if module is None and not missing:
            raise WireError("a message names a module that is gone")
        return module

    def _place(self, value: Tensor) -> tuple[int, int, str] | None:
        """Where a parameter stands in a shared module, if it does."""
        place = self.places.get(id(value))
        if place is None:
            return None
        module = self._module(place[0], place[1], missing=True)
        if module is None or module._parameters.get(place[2]) is not value:
            del self.places[id(value)]
            return None
        return place


def compute() -> None:
    """A small computation that would use threads if it could."""
    torch.mm(torch.ones(64, 64), torch.ones(64, 64))


class Graph:
    """Holds a graph at the other end for as long as ours may need it."""

    def __init__(self, peer: "Peer", number: int) -> None:
        self.peer = peer
        self.number = number

    def __del__(self) -> None:
        self.peer.drop(self.number)


class Crossed(torch.autograd.Function):
    """One call that crossed, as a node of the autograd graph."""

    @staticmethod
    def forward(ctx: Any, graph: Graph, names: list, results: list, *needed: Tensor):
        """Give the results that the other end has computed already."""
        ctx.graph, ctx.names = graph, names
        ctx.shapes = [tensor.shape for tensor in needed]
        ctx.set_materialize_grads(False)
        return tuple(results)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor | None):
        """Ask the other end for the products."""
        answered = ctx.graph.peer.gradients(ctx.graph.number, gradients)
        with reading():
            inputs, named = answered
            # sides are named as the other end sees them
            by_place = {(1 - side, number, name): g for (side, number, name), g in named}
            found = [*inputs, *(by_place.get(tuple(name)) for name in ctx.names)]
            for gradient, shape in zip(found, ctx.shapes, strict=True):
                if gradient is not None and not (_is_tensor(gradient) and gradient.shape == shape):
                    raise WireError("a message holds a gradient that does not fit its tensor")
        return (None, None, None, *found)


def may_use(value: Any, name: str | None) -> bool | None:
    """Of a module its call, its settings and what its own class adds; None for anything else."""
    if isinstance(value, types.BuiltinMethodType) and isinstance(value.__self__, Tensor):
        return name in (None, "__call__")
    if not isinstance(value, Module):
        return None
    if name is None or name in ("forward", "__deepcopy__"):
        return True
    return not (name.startswith("_") or hasattr(Module, name) or _is_librarys(type(value), name))


def _is_librarys(kind: type, name: str) -> bool:
    """Whether a module has this of one of the library's classes: that runs where it is used."""
    found = next((one for one in kind.__mro__ if name in vars(one)), None)
    return found is not None and public_name(found) is not None


def may_give(value: Any) -> bool:
    """Whether an object of torch's may be handed to an answer."""
    if isinstance(value, types.BuiltinMethodType) and isinstance(value.__self__, Tensor):
        return True
    kind = type(value).__module__
    return isinstance(value, Module) or kind.startswith(("torch.optim", "torch.utils.data"))


def check(value: Tensor) -> None:
    """Refuse a tensor that is no ordinary one, or has a gradient that is none, by its name."""
    words = _odd(value)
    if words:
        raise WireError(f"{words} cannot be handed over: {CURE}")


def _odd(value: Tensor) -> str:
    """What is odd about a tensor or its gradient, in words."""
    words = _oddity(value)
    grad = None if words else gradient_of(value)
    if grad is not None and (odd := _oddity(grad)):
        words = f"a tensor whose gradient is {odd}"
    return words


def _oddity(value: Tensor) -> str:
    """What is odd about a tensor, in words; empty for entries in memory, of a kind that crosses."""
    if is_lazy(value):
        return "a module whose parameters are uninitialised until the first call"
    if is_functorch_wrapped_tensor(value):
        return "a tensor inside of torch.vmap or torch.func"
    if _dispatch_of(type(value)) is not _dispatch_of(Tensor):
        return f"a tensor of the special class {type(value).__name__[:50]}"
    if value.is_nested:
        return "a nested tensor"
    if value.is_quantized:
        return "a quantized tensor"
    if value.layout is not torch.strided:
        return f"a tensor of the layout {value.layout}"
    if not value.is_cpu:
        return f"a tensor on the device {value.device}"
    if value.dtype not in NAMES:
        return f"a tensor of the kind {value.dtype}"
    return ""


def _dispatch_of(kind: Any) -> Any:
    return kind.__torch_dispatch__


def _fits(ours: Tensor, fresh: Tensor) -> bool:
    """Whether a tensor can be written over another: no entries of that share their memory."""
    return ours.shape == fresh.shape and 0 not in ours.stride()


def gradient_of(value: Tensor) -> Tensor | None:
    """A leaf's gradient, if it has one."""
    return value.grad if value.is_leaf and value.requires_grad else None


def _is_tensor(value: Any) -> bool:
    """Whether this is a tensor by its memory, not by what it says of itself."""
    return issubclass(type(value), Tensor)


def _reform(ours: Tensor, fresh: Tensor) -> None:
    """Give a tensor of ours another shape or dtype in place."""
    alike = ours.dtype == fresh.dtype and ours.numel() == fresh.numel() and ours.is_contiguous()
    if alike:  # the same memory: others may look at it
        ours.as_strided_(fresh.shape, _steps(fresh.shape), ours.storage_offset())
    else:
        ours.data = fresh.detach().clone()


def _steps(shape: Sequence[int]) -> list[int]:
    """The strides of a tensor of this shape without gaps."""
    return [prod(size or 1 for size in shape[axis + 1 :]) for axis in range(len(shape))]


def bits(value: Any) -> Any:
    """What tells whether a tensor, its gradient or a generator was changed."""
    if value is None:
        return None
    if isinstance(value, torch.Generator):
        return _bytes(value.get_state())
    grad = gradient_of(value)
    return (
        value.dtype,
        tuple(value.shape),
        value.requires_grad,
        _bytes(value.detach()),
        None if grad is None else _bytes(grad.detach()),
    )


def _has_bits(value: Any, told: Any) -> bool:
    """Whether `bits(value)` is surely this, found out without a copy of the entries."""
    if type(told) is not tuple or len(told) != 5 or type(value) not in ORDINARY:
        return False
    kind, shape, requires_grad, entries, gradient = told
    try:
        if value.dtype is not kind or value.requires_grad is not requires_grad:
            return False
        if value.shape != shape or not _has_entries(value, entries):
            return False
        grad = value.grad if requires_grad and value.is_leaf else None
        if grad is None or gradient is None:
            return grad is gradient
        same = type(grad) in ORDINARY and grad.dtype is kind and grad.shape == shape
        return same and _has_entries(grad, gradient)
    except RuntimeError:  # of a kind that has no entries in memory: it is looked at in full
        return False


def _has_entries(value: Tensor, entries: bytes) -> bool:
    """Whether a tensor's memory holds these bytes; not sure of one that is laid out oddly."""
    plain = value.is_cpu and value.layout is torch.strided and value.is_contiguous()
    if not plain or value.is_nested or value.is_conj() or value.is_neg():
        return False
    storage, size = value.untyped_storage(), value.element_size()
    if storage.nbytes() < value.storage_offset() * size + len(entries):
        return False
    if value.numel() * size != len(entries):
        return False
    return not entries or _memcmp(value.data_ptr(), entries, len(entries)) == 0


def _bytes(value: Tensor) -> bytes:
    """The entries' bytes in reading order, whatever the layout in memory."""
    if not value.numel():
        return b""
    flat = value.resolve_conj().resolve_neg().contiguous()
    if flat.untyped_storage().nbytes() < flat.nbytes:
        raise WireError("a tensor whose memory was given up cannot be handed over")
    return ctypes.string_at(flat.data_ptr(), flat.nbytes)  # by `numpy()` it could grow no more


def _tensor(kind: torch.dtype, shape: list[int], strides: Any, data: Any) -> Tensor:
    """A tensor from its bytes, laid out in memory as it was at the other end."""
    count = prod(shape)
    if count * kind.itemsize != len(data):
        raise WireError("a message holds a tensor that does not fit its shape")
    with torch.device("cpu"):
        if not count:
            return torch.empty(shape, dtype=kind)
        raw = torch.frombuffer(bytearray(data), dtype=torch.uint8 if kind is torch.bool else kind)
    # in memory of its own, which can be resized
    made = (raw != 0 if kind is torch.bool else raw.clone()).reshape(shape)
    return made if strides is None else _laid_out(made, strides)


def is_strides(strides: Any, shape: list[int]) -> bool:
    """Whether this is a list of steps that a tensor of this shape may take through memory."""
    return (
        isinstance(strides, list)
        and len(strides) == len(shape)
        and all(type(step) is int and 0 <= step < 2**40 for step in strides)
    )


def _laid_out(made: Tensor, strides: list[int]) -> Tensor:
    """The same entries with these strides."""
    room = 1 + sum((size - 1) * step for size, step in zip(made.shape, strides, strict=True))
    if room > MAX_SPREAD * made.numel() + 1024 or room > made.numel() + MAX_LAID:
        return made
    if _overlap(made.shape, strides):
        return made
    laid = torch.zeros(room, dtype=made.dtype, device="cpu").as_strided(made.shape, strides)
    target, source = laid, made
    for axis, step in enumerate(strides):
        if step == 0:  # a repeated axis has its entries once
            target, source = target.narrow(axis, 0, 1), source.narrow(axis, 0, 1)
    target.copy_(source)
    return laid


def _overlap(shape: Sequence[int], strides: list[int]) -> bool:
    """Whether two entries may share memory, but for those of a repeated axis."""
    reach = 0
    for step, size in sorted(zip(strides, shape, strict=True)):
        if size > 1 and step:
            if step <= reach:
                return True
            reach += (size - 1) * step
    return False


def _tables(module: Module) -> tuple[dict[str, Any], ...]:
    """What a module holds by name: parameters, buffers, modules."""
    return module._parameters, module._buffers, module._modules


def _count(module: Module, above: list[Module], known: dict[int, int]) -> int:
    """How many modules a tree holds; refuses one that holds itself or never seems to end."""
    if any(module is one for one in above) or len(above) > 200:
        raise WireError("a message holds a module that holds itself")
    if id(module) not in known:
        kids = [kid for kid in module._modules.values() if isinstance(kid, Module)]
        known[id(module)] = 1 + sum(_count(kid, [*above, module], known) for kid in kids)
    if known[id(module)] > MAX_MODULES:
        raise WireError("a message holds a module with too many parts")
    return known[id(module)]


def _leafed(tensor: Tensor, flags: int) -> Tensor:
    """What was in the middle of a graph is so here, too."""
    if tensor.requires_grad and not flags & 2 and not flags & 4:
        with torch.enable_grad():
            return tensor.clone()  # not a view: it may be changed in place
    return tensor


def _names(claimed: Any) -> tuple[str, ...]:
    """Names for a stand-in's class: none that Python or the library itself goes by."""
    names = [name for name in claimed or () if isinstance(name, str) and name.isidentifier()]
    return tuple(name for name in names if not name.startswith("_"))[:500]


def may_be_base(kind: Any) -> bool:
    """Whether a stand-in of an answer's module may be of this public class.

    The library's layers, which hold nothing but parameters and settings, and the modules of
    packages that both ends import. None that C++ stands behind, that makes code of what it holds
    or starts processes, and none whose metaclass runs code when a subclass is made.
    """
    if not (isinstance(kind, type) and issubclass(kind, Module)):
        return False
    if type(kind) not in (type, abc.ABCMeta) or issubclass(kind, LazyModuleMixin):
        return False
    where = kind.__module__
    return (
        where.startswith("torch.nn.modules.") or where.partition(".")[0] != "torch"
    ) and public_name(kind) is not None


def may_pass_for(kind: type) -> bool:
    """Whether a stand-in may pass for an object of this class: optimisers and sets of data.

    These are plain objects of Python. Never a tensor, or anything else that C++ reads by its
    layout: it would take the stand-in's memory for one.
    """
    return kind.__module__.startswith("torch.optim.") or kind.__module__ in DATA


def _child(value: Any) -> Module | None:
    if value is not None and not issubclass(type(value), Module):
        raise WireError("a message holds a module with a part that is none")
    return value


def _number(told: dict[str, Any]) -> int:
    number = told["n"]
    if type(number) is not int or not LOOSE < number < 2**63:
        raise WireError("a message names a module by no number")
    return number


def _reset(kind: torch.dtype) -> None:
    """Undo what an answer may have set for all code after it."""
    if torch.get_default_dtype() is not kind:
        torch.set_default_dtype(kind)
    if torch.get_default_device().type != "cpu":
        torch.set_default_device("cpu")


def _remote_method(name: str | None) -> Callable:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        remote = self.__dict__["_remote"]
        label = remote.label if name is None else remote.use(name)
        return remote.peer.call(remote.number, name, args, kwargs, label)

    return method


def _forward(self: Any, *args: Any, **kwargs: Any) -> Any:
    """What a layer gives, worked out here if that is all the same."""
    plain = len(args) == 1 and not kwargs and type(args[0]) in ORDINARY
    if plain and self.__dict__["_here"] and watch.stopped().isdisjoint(layers.STEPS):
        return layers.compute(self, args[0])
    return _call(self, *args, **kwargs)


def _remote_value(name: str) -> Callable:
    def value(self: Any) -> Any:
        remote = self.__dict__["_remote"]
        return remote.peer.get(remote.number, name, remote.use(name))

    return value


_call = _remote_method(None)


def _get_attribute(self: Any, name: str) -> Any:
    for table in ("_parameters", "_buffers", "_modules"):
        if name in self.__dict__.get(table, ()):
            return self.__dict__[table][name]
    if name.startswith("_"):
        raise AttributeError(name)
    remote = self.__dict__["_remote"]
    value = remote.peer.get(remote.number, name, remote.use(name))
    if not remote.peer.is_free:
        remote.peer.tensors.lend(self, remote.number, name, value)
    return value


def _set_attribute(self: Any, name: str, value: Any) -> None:
    known = any(name in self.__dict__[table] for table in ("_parameters", "_buffers", "_modules"))
    if known or name == "training" or isinstance(value, Module | Parameter):
        Module.__setattr__(self, name, value)
    if name == "training" or name.startswith("_"):
        self.__dict__[name] = value
        return
    remote = self.__dict__["_remote"]
    if remote.peer.is_free:  # a test's module keeps what is no parameter to itself
        if not known and not isinstance(value, Module | Parameter):
            self.__dict__[name] = value
            remote.peer.tensors.settings.put(self, remote.number, name)
    elif not isinstance(value, Parameter) and not (known and isinstance(value, Tensor)):
        remote.peer.put(remote.number, name, value)


def _made_anew(base: type) -> Callable:
    """What makes a new object of a stand-in's class, as a slice of it is: one of the library's."""

    def make(cls: type, *args: Any, **kwargs: Any) -> Any:
        if base is Module:
            raise TypeError("make a new one by the name of its class")
        return base(*args, **kwargs)

    return make


def _copy(self: Any) -> Any:
    made = object.__new__(type(self))
    made.__dict__.update(self.__dict__)
    return made


def _deep_copy(self: Any, memo: dict) -> Any:
    remote = self.__dict__["_remote"]
    return remote.peer.duplicate(remote.number)


def _show(self: Any) -> str:
    return f"<{self.__dict__['_remote'].type_name} of the answer>"


codecs.register(
    codecs.Codec(
        library=codecs.TORCH,
        of_peer=Tensors,
        bits=bits,
        memory=views,
        may_be_base=may_be_base,
        may_pass_for=may_pass_for,
    )
)
