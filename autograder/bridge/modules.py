"""Modules as they are told, and their stand-ins: the same tree of parameters and buffers."""

from typing import TYPE_CHECKING, Any

from torch.nn import Module, Parameter  # by name: an answer may put something else there

from autograder.bridge import layers
from autograder.bridge.dense import EMPTY, bits, check, is_tensor
from autograder.bridge.module_classes import Classes, may_be_base
from autograder.bridge.outline import HOLDS
from autograder.bridge.public import public_name
from autograder.bridge.stand_ins import FORWARDED, Remote
from autograder.bridge.wire import WireError

if TYPE_CHECKING:
    from autograder.bridge.incoming import Incoming
    from autograder.bridge.peer import Peer
    from autograder.bridge.tensors import Tensors

LOOSE = 0  # number of the module that holds loose parameters
MAX_MODULES = 100_000  # in a tree, one that stands in two places counted twice


class Modules:
    """Tells the other end of modules of ours, and makes stand-ins for theirs."""

    def __init__(self, peer: "Peer", tensors: "Tensors") -> None:
        self.peer, self.tensors = peer, tensors
        self.classes = Classes(peer)
        self.building = 0  # how deep we are in a tree of stand-ins that is being made
        self.told: dict[tuple[Any, ...], dict[str, Any]] = {}  # of each class, and its size

    def describe(self, encoder: Any, module: Module) -> dict[str, Any]:
        """What the other end needs to make a stand-in of a module of ours."""
        number, kind = self.peer.give(module), type(module)
        told: dict[str, Any] = self._class_told(kind) | {
            "training": module.training,
            "classes": self.peer.class_numbers(kind.__mro__[:-1]),
        }
        if self.tensors.in_step.is_layer(0, module):
            told["there"] = self.tensors.last[0, number, layers.SLOT] = layers.is_computed_there(
                module
            )
        self.tensors.mine[number] = module
        try:
            return told | self._parts(encoder, number, module)
        except WireError:
            self.tensors.forget(number)  # the other end never hears of it
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
                "exact": may_be_base(kind),
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
        self.tensors.last[0, number, "/"] = self.tensors.in_step.kids(module)
        self.tensors.last[0, number, ""] = module.training
        return told

    def _value(self, encoder: Any, side: int, number: int, name: str, value: Any) -> Any:
        """The node of a parameter or buffer in its place; the other end will have this value."""
        if type(value) in EMPTY:
            self.tensors.last[side, number, name] = None
            return None
        check(value)
        known = self.tensors._place(value)
        self.tensors.last[side, number, name] = self.tensors.in_step.now(
            (side, number, name), value
        )
        if known is not None and known != (side, number, name):
            return ["PS", *known]
        if isinstance(value, Parameter):
            self.tensors.places[id(value)] = (side, number, name)
        encoder.message.tensors.append(value)
        return ["X", len(encoder.message.tensors) - 1]

    def stand_in(self, incoming: "Incoming", told: dict[str, Any], known: Any) -> Any:
        """The stand-in of a module of the other end."""
        made: Any = known if known is self.tensors.theirs.get(_number(told)) else None
        if made is None:
            made = object.__new__(self.classes.of(told))
            Module.__init__(made)
            made.__dict__["_remote"] = Remote(self.peer, told)
        number = made.__dict__["_remote"].number
        self.tensors.theirs[number] = made
        self.building += 1
        try:
            self._furnish(incoming, made, number, told)
        finally:
            self.building -= 1
        if not self.building:  # a part of another is looked through with that
            count(made, [], {})
        return made

    def _furnish(self, incoming: "Incoming", made: Any, number: int, told: dict[str, Any]) -> None:
        """Fill a module's stand-in with what the other end told."""
        for name, node in told["params"]:
            fresh, slot = self._stand_in_value(incoming, node), (1, number, str(name))
            value = self.tensors._kept(incoming, made._parameters.get(name), fresh, slot)
            made._parameters[str(name)] = value
            self.settle(number, str(name), value)
        for name, node, persistent in told["buffers"]:
            fresh, slot = self._stand_in_value(incoming, node), (1, number, str(name))
            value = self.tensors._kept(incoming, made._buffers.get(name), fresh, slot)
            made._buffers[str(name)] = value
            self.tensors.last[1, number, name] = bits(made._buffers[name])
            if not persistent:
                made._non_persistent_buffers_set.add(name)
        for name, node in told["children"]:
            made._modules[str(name)] = child(self.part(incoming, made, name, node))
        for part, table in zip(("params", "buffers", "children"), _tables(made), strict=True):
            for name in table.keys() - {str(entry[0]) for entry in told[part]}:
                del table[name]
        for name, value in (made._parameters | made._buffers).items():
            self.peer.beside.note(HOLDS + str(name), value)
        made.__dict__["training"] = bool(told["training"])
        made.__dict__["_here"] = self.peer.is_free and told.get("there") is True
        self.tensors.last[1, number, "/"] = self.tensors.in_step.kids(made)
        self.tensors.last[1, number, ""] = made.training

    def part(self, incoming: "Incoming", module: Any, name: Any, node: Any) -> Any:
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

    def _stand_in_value(self, incoming: "Incoming", node: Any) -> Any:
        if node is None:
            return None
        if node[0] not in ("X", "PS"):  # never a value that a test handed over
            raise WireError("a message holds a module with a parameter that is none")
        found = incoming.tensor(node[1]) if node[0] == "X" else incoming.value(node)
        if not is_tensor(found):
            raise WireError("a message holds a module with a parameter that is none")
        return self.tensors._makes(found) if node[0] == "X" else found

    def settle(self, number: int, name: str, value: Any) -> None:
        """Remember what stands in a place of theirs now."""
        if isinstance(value, Parameter) and self.tensors._place(value) is None:
            self.tensors.places[id(value)] = (1, number, name)
        self.tensors.last[1, number, name] = self.tensors.in_step.now((1, number, name), value)


def _tables(module: Module) -> tuple[dict[str, Any], ...]:
    """What a module holds by name: parameters, buffers, modules."""
    return module._parameters, module._buffers, module._modules


def count(module: Module, above: list[Module], known: dict[int, int]) -> int:
    """How many modules a tree holds; refuses one that holds itself or never seems to end."""
    if any(module is one for one in above) or len(above) > 200:
        raise WireError("a message holds a module that holds itself")
    if id(module) not in known:
        kids = [kid for kid in module._modules.values() if isinstance(kid, Module)]
        known[id(module)] = 1 + sum(count(kid, [*above, module], known) for kid in kids)
    if known[id(module)] > MAX_MODULES:
        raise WireError("a message holds a module with too many parts")
    return known[id(module)]


def child(value: Any) -> Module | None:
    """What is to stand in a module's place, which has to be a module or nothing."""
    if value is not None and not issubclass(type(value), Module):
        raise WireError("a message holds a module with a part that is none")
    return value


def _number(told: dict[str, Any]) -> int:
    number = told["n"]
    if type(number) is not int or not LOOSE < number < 2**63:
        raise WireError("a message names a module by no number")
    return number
