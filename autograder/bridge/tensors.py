"""Tensors and modules on the line: values cross, parameters stay in step, gradients flow.

A module stays with its owner; the other end gets a stand-in with the same tree of parameters and
buffers. Before each request and each reply the two ends exchange what changed in them. A call that
crosses becomes one node of the asking end's autograd graph, whose backward asks for the product
with the Jacobian.
"""

import contextlib
import types
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import Module, Parameter  # by name: an answer may put something else there
from torch.utils.hooks import RemovableHandle
from torch.utils.weak import WeakTensorKeyDictionary

from autograder.bridge import codecs, layers, rng, transforms, views
from autograder.bridge.arrays import is_shape
from autograder.bridge.dense import (
    DTYPES,
    NAMES,
    bits,
    bytes_of,
    check,
    fill,
    fits,
    gradient_of,
    is_strides,
    is_tensor,
    leafed,
    reform,
    tensor_of,
)
from autograder.bridge.graphs import Graphs
from autograder.bridge.hung import Hung
from autograder.bridge.in_step import InStep
from autograder.bridge.kept_on import KeptOn
from autograder.bridge.module_classes import may_be_base, may_pass_for
from autograder.bridge.modules import LOOSE, Modules
from autograder.bridge.public import public_name
from autograder.bridge.settings import Settings
from autograder.bridge.touched import HOOKS
from autograder.bridge.wire import WireError

if TYPE_CHECKING:
    from autograder.bridge.incoming import Incoming
    from autograder.bridge.outgoing import Outgoing
    from autograder.bridge.peer import Peer

Lent = tuple[weakref.ref[Module], Tensor, int]
OF_HANDLES = ("id", "remove", "__enter__", "__exit__")


class Tensors:
    """What one end knows of tensors and modules."""

    def __init__(self, peer: "Peer") -> None:
        self.peer = peer
        self.mine: dict[int, Module] = {}  # modules of ours that the other end knows
        self.theirs: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        self.last: dict[tuple[int, int, str], Any] = {}  # what the other end has in each place
        self.places: dict[int, tuple[int, int, str]] = {}  # id of a parameter -> its place
        self.is_inside, self.called_inside = transforms.is_inside, transforms.called
        self.modules = Modules(peer, self)
        self.in_step = InStep(peer, self)
        self.graphs = Graphs(peer, self)
        self.settings = Settings(peer)
        self.hung = Hung(peer)
        self.kept_on = KeptOn()
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
        if not is_tensor(fresh):
            raise WireError("a message puts something else in the place of a tensor")
        is_input = ours.is_leaf and ours.requires_grad
        history = fresh.requires_grad and not fresh.is_leaf and not is_input
        with torch.set_grad_enabled(torch.is_grad_enabled() and history):
            if ours.shape != fresh.shape or ours.dtype != fresh.dtype:
                reform(ours, fresh)
            fill(ours, fresh)
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
            return ["GEN", encoder.frame.add(bytes_of(value.get_state()))]
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
        self.last[0, LOOSE, name] = self.in_step.now((0, LOOSE, name), value)
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
        self.modules.settle(LOOSE, name, value)
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
            message.frame.add(bytes_of(plain)),
            flags,
            None if grad is None else self._entry(message, grad, 2, None),
        ]

    def read(self, incoming: "Incoming", entries: Any, graph: Any, message: Any) -> list[Any]:
        """The tensors of a message; those of a reply that carry a history join our graph."""
        read = [self._read(incoming, entry) for entry in entries or []]
        if graph is not None and (type(graph) is not int or graph <= 0):
            raise WireError("a message names a graph by no number")
        tensors = [
            leafed(tensor, entry[4]) for tensor, entry in zip(read, entries or [], strict=True)
        ]
        if graph is not None and message is not None and torch.is_grad_enabled():
            self.graphs.join(tensors, entries, graph, message)
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
        if is_one and known is not None and came is not None and fits(known, came):
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
        return tensor_of(DTYPES[name], shape, strides, incoming.buffer(place))

    def is_constant(self, value: Any) -> bool:
        """Whether this is a tensor without history."""
        return isinstance(value, Tensor) and not value.requires_grad

    def forget(self, number: int) -> None:
        """The other end does not need this module or graph any more."""
        self.graphs.kept.pop(number, None)
        module = self.mine.pop(number, None)
        if module is not None:
            for name in (*module._parameters, *module._buffers, "/", "", layers.SLOT):
                self.last.pop((0, number, name), None)

    def is_module(self, value: Any) -> bool:
        """Whether this is a module."""
        return isinstance(value, Module)

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
        if bytes_of(value.detach()) != bytes_of(own):
            return
        value.data = own
        if not is_theirs or self.laid.get(id(whole)) is whole:
            self.laid[id(value)] = value

    def _fill(self, old: Tensor, fresh: Tensor) -> None:
        """Bring what stands in a module up to date, in place; never a value that a test holds."""
        if self.laid.get(id(old)) is not old:
            old.data.copy_(fresh.data)
        elif bytes_of(old.detach()) != bytes_of(fresh.detach()):
            self._move(old, fresh)

    def _move(self, old: Tensor, fresh: Tensor) -> None:
        """Have a tensor that stands in a module lie where a new one does."""
        old.data = fresh.data
        self.laid.pop(id(old), None)
        if old in self.made:
            self._makes(old)

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


def may_use(value: Any, name: str | None) -> bool | None:
    """Of a module its call, its settings and what its own class adds, of a hook its end.

    None for anything else.
    """
    if isinstance(value, types.BuiltinMethodType) and isinstance(value.__self__, Tensor):
        return name in (None, "__call__")
    if type(value) is RemovableHandle:  # not its public `hooks_dict_ref`, which holds hooks
        return name in OF_HANDLES
    if not isinstance(value, Module):
        return None
    if name is None or name in ("forward", "__deepcopy__", *HOOKS):
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
    if type(value) is RemovableHandle:  # of a hook that the answer has put on an optimiser
        return True
    kind = type(value).__module__
    return isinstance(value, Module) or kind.startswith(("torch.optim", "torch.utils.data"))


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
