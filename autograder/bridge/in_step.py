"""Modules that both ends know, kept in step: each message tells what has changed in them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch._C import _len_torch_function_stack as _count_modes
from torch.nn import Module, Parameter  # by name: an answer may put something else there

from autograder.bridge import layers
from autograder.bridge.dense import DTYPES, EMPTY, NAMES, bits, has_bits, odd
from autograder.bridge.modules import child, count
from autograder.bridge.outline import HOLDS
from autograder.bridge.wire import WireError

if TYPE_CHECKING:
    from autograder.bridge.incoming import Incoming
    from autograder.bridge.outgoing import Outgoing
    from autograder.bridge.peer import Peer
    from autograder.bridge.tensors import Tensors


class InStep:
    """Tells what has changed in the modules, and takes over what the other end tells."""

    def __init__(self, peer: "Peer", tensors: "Tensors") -> None:
        self.peer, self.tensors = peer, tensors

    def state_out(self, message: "Outgoing") -> dict[str, Any]:
        """What changed here since the other end last heard: parameters, buffers, gradients."""
        shared = [part for part in self.tensors._shared() if not self._is_as_told(*part)]
        if not shared:
            return self._state([], [], [])
        before = self.tensors.last.copy(), self.tensors.places.copy()
        try:
            return self._changed_state(message, shared)
        except WireError:  # none of it is sent; what is odd costs this one message
            self.tensors.last, self.tensors.places = before
            self.tensors.last |= self._odd_places()
            raise

    def _odd_places(self) -> dict[tuple[int, int, str], str]:
        return {
            (side, number, name): words
            for side, number, module in self.tensors._shared()
            for table in (module._parameters, module._buffers)
            for name, value in table.items()
            if type(value) not in EMPTY and (words := odd(value))
        }

    def _is_as_told(self, side: int, number: int, module: Module) -> bool:
        """Whether a module is surely as the other end knows it; most are in most messages."""
        last, places = self.tensors.last, self.tensors.places
        if last.get((side, number, "")) != module.training:
            return False
        kids = self.kids(module) if module._modules else ()
        if last.get((side, number, "/"), ()) != kids:
            return False
        if self.is_layer(side, module):
            there = layers.is_computed_there(module)
            if last.get((side, number, layers.SLOT), False) is not there:
                return False
        for table in (module._parameters, module._buffers):
            for name, value in table.items():
                slot = (side, number, name)
                if type(value) in EMPTY:
                    if last.get(slot, bits) is not None:
                        return False
                    continue
                # the first is much faster, and true of nearly all
                is_parameter = type(value) is Parameter or isinstance(value, Parameter)
                own = slot if is_parameter else None
                if places.get(id(value)) != own or not has_bits(value, last.get(slot)):
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
                for name, held in table.items():
                    slot, value = (side, number, name), None if type(held) in EMPTY else held
                    now = self.now(slot, value)
                    if isinstance(now, str) and self.tensors.last.get(slot) == now:
                        continue  # the other end was told that it is odd
                    if isinstance(value, Parameter) and self.tensors._place(value) is None:
                        self.tensors.places[id(value)] = slot
                        news.append([*slot, {"new": self.tensors.write(message, value)}])
                        self.tensors.last[slot] = now
                    elif self.tensors.last.get(slot, bits) != now:
                        self.tensors.last[slot] = now
                        news.append([*slot, self._news(message, slot, value)])
            kids = self.kids(module)
            if self.tensors.last.get((side, number, "/")) != kids:
                self.tensors.last[side, number, "/"] = kids
                nodes = [[n, message.encoder.node(c)] for n, c in module._modules.items()]
                structure.append([side, number, nodes])
            if self.tensors.last.get((side, number, "")) != module.training:
                self.tensors.last[side, number, ""] = module.training
                modes.append([side, number, module.training])
            if self.is_layer(side, module):
                now = self.tensors.last[side, number, layers.SLOT] = layers.is_computed_there(
                    module
                )
                there.append([number, now])
        return self._state(news, modes, structure) | ({"there": there} if there else {})

    def is_layer(self, side: int, module: Module) -> bool:
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

    def now(self, slot: tuple[int, int, str], value: Any) -> Any:
        """What tells whether a place holds something new: bits, whose parameter, or what is odd."""
        if value is None:
            return None
        shared = self.tensors._place(value)
        return shared if shared not in (None, slot) else odd(value) or bits(value)

    def _news(self, message: "Outgoing", slot: tuple[int, int, str], value: Any) -> Any:
        if value is None:
            return None
        shared = self.tensors._place(value)
        if shared not in (None, slot):
            return {"same": list(shared)}  # two places hold one parameter
        return self.tensors.write(message, value)

    def state_in(self, incoming: "Incoming", state: Any) -> None:
        """Bring our modules into the state of the other end's."""
        if not isinstance(state, dict):
            return
        ask = isinstance(incoming.frame.tree, dict) and "op" in incoming.frame.tree
        if ask:
            torch.set_grad_enabled(bool(state.get("grad")))
            if self.peer.is_free:
                _reset(DTYPES.get(str(state.get("kind")), torch.float32))
        self._entries_in(incoming, state)
        for number, here in (state.get("there") or []) if self.peer.is_free else []:
            if (module := self.tensors.theirs.get(number)) is not None:
                module.__dict__["_here"] = here is True
        self._modes_in(incoming, state)

    def _entries_in(self, incoming: "Incoming", state: dict[str, Any]) -> None:
        """Parameters and buffers that the other end has changed."""
        for side, number, name, entry in state.get("m") or []:
            module = self.tensors._module(1 - side, number, missing=True)
            if module is None or type(name) is not str:
                continue
            slot = (1 - side, number, name)
            if self._keeps_out(incoming, side, module):
                self.tensors.kept_away.add(slot)
            else:
                self._update(incoming, module, slot, entry)
            table = module._parameters if name in module._parameters else module._buffers
            self.tensors.last[slot] = self.now(slot, table.get(name))
            if not side:
                self.peer.beside.note(HOLDS + name, table.get(name))

    def _modes_in(self, incoming: "Incoming", state: dict[str, Any]) -> None:
        """Modules that the other end has set to training or evaluation."""
        for side, number, training in state.get("mode") or []:
            module = self.tensors._module(1 - side, number, missing=True)
            if module is None:
                continue
            if self._keeps_out(incoming, side, module):
                self.tensors.kept_away.add((0, number, ""))
            else:
                module.__dict__["training"] = bool(training)
            self.tensors.last[1 - side, number, ""] = module.training

    def _keeps_out(self, incoming: "Incoming", side: Any, module: Module) -> bool:
        """Whether a change of this module stays out of ours; if it is ours, it is noted."""
        if not side or self.peer.changing.is_copy(module):
            return False
        self.peer.changing.note("Module")
        return self.peer.changing.protects(incoming.call, "Module", module)

    def structure_in(self, incoming: "Incoming", state: Any) -> None:
        """Put modules in the places where the other end has put them."""
        for side, number, nodes in (state or {}).get("kids") or []:
            module = self.tensors._module(1 - side, number, missing=True)
            if module is None:
                continue
            kids = {
                str(name): child(self.tensors.modules.part(incoming, module, name, node))
                for name, node in nodes
            }
            if self._keeps_out(incoming, side, module):
                self.tensors.kept_away.add((0, number, "/"))
            else:
                module._modules.clear()
                module._modules.update(kids)
                count(module, [], {})
            self.tensors.last[1 - side, number, "/"] = self.kids(module)

    def kids(self, module: Module) -> tuple[Any, ...]:
        """What tells which modules stand in a module's places."""
        return tuple((name, id(child)) for name, child in module._modules.items())

    def _update(
        self, incoming: "Incoming", module: Any, slot: tuple[int, int, str], entry: Any
    ) -> None:
        name = slot[2]
        table = module._parameters if name in module._parameters else module._buffers
        old = table.get(name)
        if isinstance(entry, dict) and "new" in entry:
            fresh = self.tensors._read(incoming, entry["new"])
            module._parameters[name] = self.tensors._makes(fresh) if slot[0] else fresh
            self.tensors.places[id(fresh)] = slot
            return
        if isinstance(entry, dict):
            side, number, other = entry["same"]
            table[name] = self.tensors._module(1 - side, number)._parameters[other]
            return
        fresh = None if entry is None else self.tensors._read(incoming, entry)
        if (
            old is None
            or fresh is None
            or self.tensors._place(old) not in (None, slot)
            or not self.tensors._may_write(incoming, slot, old)
        ):
            if name not in table and isinstance(fresh, Parameter):
                table = module._parameters
            table[name] = self.tensors._makes(fresh) if slot[0] else fresh
            return
        if old.shape == fresh.shape and old.dtype == fresh.dtype:
            self.tensors._fill(old, fresh)
        else:
            self.tensors._move(old, fresh)
        old.requires_grad_(fresh.requires_grad)
        if old.is_leaf:
            self.tensors._pass_gradient(old, fresh)


def _reset(kind: torch.dtype) -> None:
    """Undo what an answer may have set for all code after it."""
    if torch.get_default_dtype() is not kind:
        torch.set_default_dtype(kind)
    # without a mode it is the CPU, which is much faster to tell
    if _count_modes() and torch.get_default_device().type != "cpu":
        torch.set_default_device("cpu")
