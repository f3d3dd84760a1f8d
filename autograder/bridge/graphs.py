"""Gradients across the line: a call that crosses is one node of the asking end's graph."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import Parameter  # by name: an answer may put something else there

from autograder.bridge import side_by_side
from autograder.bridge.dense import is_tensor
from autograder.bridge.once import once
from autograder.bridge.wire import WireError, reading

if TYPE_CHECKING:
    from autograder.bridge.incoming import Incoming
    from autograder.bridge.outgoing import Outgoing
    from autograder.bridge.peer import Peer
    from autograder.bridge.tensors import Tensors


class Graphs:
    """Graphs of calls that one end has answered, and nodes for those that it has asked for."""

    def __init__(self, peer: "Peer", tensors: "Tensors") -> None:
        self.peer, self.tensors = peer, tensors
        self.kept: dict[int, tuple[list[Tensor], list[Tensor], list[Any]]] = {}

    def remember(self, incoming: "Incoming", reply: "Outgoing") -> int | None:
        """Keep the graph of what a call gives, if it has one; its number."""
        outputs = [t for t in reply.tensors if t.requires_grad and not t.is_leaf]
        if not outputs:
            return None
        number = self.peer.next_number
        self.peer.next_number += 1
        inputs = incoming.inputs
        self.kept[number] = (outputs, inputs, list(self._parameters()))
        return number

    def vjp(self, graph: int, gradients: tuple) -> list[Any]:
        """Gradients for the tensors that were handed in, then [place, gradient] of parameters."""
        with reading():
            outputs, inputs, places = self.kept[graph]
            pairs = [(o, g) for o, g in zip(outputs, gradients, strict=True) if g is not None]
        if not all(is_tensor(gradient) for _, gradient in pairs):
            raise WireError("a message holds a gradient that is none")
        parameters = [parameter for _, parameter in places]
        wanted = [*inputs, *parameters]
        if not pairs or not wanted:
            return [[None] * len(inputs), []]
        found = _products([one for one, _ in pairs], [one for _, one in pairs], wanted)
        named = [
            (place, gradient)
            for (place, _), gradient in zip(places, found[len(inputs) :], strict=True)
            if gradient is not None
        ]
        return [list(found[: len(inputs)]), [[list(place), g] for place, g in named]]

    def join(self, made: list[Any], entries: list[Any], graph: int, message: Any) -> None:
        """Make the tensors that came back nodes of our own graph."""
        lead = [place for place, entry in enumerate(entries) if entry[4] & 3 == 1]
        inputs = [t for t in message.tensors if t.requires_grad and self.tensors._place(t) is None]
        places = list(self._parameters())
        needed = [*inputs, *(parameter for _, parameter in places)]
        held = Graph(self.peer, graph)
        names = [place for place, _ in places]
        results = [made[place].detach() for place in lead]
        if not needed:
            joined: Any = [result.requires_grad_() for result in results]
        else:
            joined = Crossed.apply(held, names, results, *needed)
        for place, result in zip(lead, joined, strict=True):
            made[place] = result

    def _parameters(self) -> Iterator[tuple[tuple[int, int, str], Parameter]]:
        """Parameters of all shared modules that want gradients, each once, with their places."""
        seen: set[int] = set()
        for side, number, module in self.tensors._shared():
            for name, parameter in module._parameters.items():
                if parameter is None or id(parameter) in seen or not parameter.requires_grad:
                    continue
                seen.add(id(parameter))
                yield self.tensors._place(parameter) or (side, number, name), parameter


def _products(outputs: list[Any], gradients: list[Any], wanted: list[Any]) -> tuple[Any, ...]:
    """What `torch.autograd.grad` gives, also where a part is computed anew by `checkpoint`.

    One that says `use_reentrant=True` refuses to be asked for some gradients alone.
    """
    try:
        return torch.autograd.grad(outputs, wanted, gradients, retain_graph=True, allow_unused=True)
    except RuntimeError as error:
        if "use_reentrant" not in str(error) or not all(one.is_leaf for one in wanted):
            raise
    before = [one.grad for one in wanted]
    for one in wanted:
        one.grad = None
    try:
        torch.autograd.backward(outputs, gradients, retain_graph=True)
        return tuple(one.grad for one in wanted)
    finally:
        for one, gradient in zip(wanted, before, strict=True):
            one.grad = gradient


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
        ctx.graph, ctx.names, ctx.handed = graph, names, needed
        ctx.shapes = [tensor.shape for tensor in needed]
        ctx.set_materialize_grads(False)
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None):
        """Ask the other end for the products."""
        return (None, None, None, *once(Crossed.products, ctx, gradients))

    @staticmethod
    def products(ctx: Any, gradients: side_by_side.Some) -> side_by_side.Some:
        """What the other end says of these gradients, each time of one for each result."""
        return side_by_side.spread(lambda _, parts: Crossed.product(ctx, parts), gradients)

    @staticmethod
    def product(ctx: Any, gradients: side_by_side.Some) -> list[Tensor | None]:
        """The same of gradients that are plain."""
        answered = ctx.graph.peer.gradients(ctx.graph.number, tuple(gradients))
        with reading():
            inputs, named = answered
            # sides are named as the other end sees them
            by_place = {(1 - side, number, name): g for (side, number, name), g in named}
            found = [*inputs, *(by_place.get(tuple(name)) for name in ctx.names)]
            for gradient, shape in zip(found, ctx.shapes, strict=True):
                if gradient is not None and not (is_tensor(gradient) and gradient.shape == shape):
                    raise WireError("a message holds a gradient that does not fit its tensor")
        return found
