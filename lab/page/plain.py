"""The course's Transformer as plain arithmetic on named tensors, with no module's code.

It is what the page's JavaScript computes. A student's model is held against it before a page is
written, so that no page shows another model than the one it names.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

Tensors = Mapping[str, Tensor]
ATTENTION = ("w_q", "w_k", "w_v", "w_o")


@dataclass(frozen=True)
class Sizes:
    """What the arithmetic must know besides the weights."""

    d_model: int
    num_layers: int
    num_heads: int
    d_ff: int
    norm_first: bool
    eps: float
    pad_id: int


def shapes(sizes: Sizes, vocabularies: tuple[int, int]) -> dict[str, tuple[int, ...]]:
    """Name and shape of every tensor that the course's Transformer learns."""
    width = sizes.d_model
    found: dict[str, tuple[int, ...]] = {
        "source_embedding.weight": (vocabularies[0], width),
        "target_embedding.weight": (vocabularies[1], width),
        "generator.weight": (vocabularies[1], width),
    }
    attentions = {"encoder": ["self_attention"], "decoder": ["self_attention", "cross_attention"]}
    for side, names in attentions.items():
        for layer in (f"{side}.layers.{number}" for number in range(sizes.num_layers)):
            for name in names:
                found |= {f"{layer}.{name}.{part}.weight": (width, width) for part in ATTENTION}
            found |= {
                f"{layer}.feed_forward.inner.weight": (sizes.d_ff, width),
                f"{layer}.feed_forward.inner.bias": (sizes.d_ff,),
                f"{layer}.feed_forward.outer.weight": (width, sizes.d_ff),
                f"{layer}.feed_forward.outer.bias": (width,),
            }
            for number in range(1, len(names) + 2):
                found |= _norm(f"{layer}.norm{number}", width)
        if sizes.norm_first:
            found |= _norm(f"{side}.norm", width)
    return found


def logits(
    tensors: Tensors,
    sizes: Sizes,
    positions: Tensor,
    source: Tensor,
    target: Tensor,
    maps: dict[str, Tensor] | None = None,
) -> Tensor:
    """Logits (B, N, V) of the whole model; `target` is the decoder's input as it is.

    Each attention's weights (B, H, n, m) go into `maps`, if there is one, under its name.
    """
    seen = (source != sizes.pad_id)[:, None, None]  # (B, 1, 1, M)
    memory = _placed(tensors["source_embedding.weight"], positions, source)
    for number in range(sizes.num_layers):
        memory = _Layer(tensors, sizes, maps, f"encoder.layers.{number}").encode(memory, seen)
    n = target.shape[1]
    own = (target != sizes.pad_id)[:, None, None] & torch.ones(n, n, dtype=torch.bool).tril()
    x = _placed(tensors["target_embedding.weight"], positions, target)
    if sizes.norm_first:
        memory = _normed(tensors, "encoder.norm", memory, sizes.eps)
    for number in range(sizes.num_layers):
        x = _Layer(tensors, sizes, maps, f"decoder.layers.{number}").decode(x, memory, own, seen)
    if sizes.norm_first:
        x = _normed(tensors, "decoder.norm", x, sizes.eps)
    return x @ tensors["generator.weight"].T


def encoder_stages(
    tensors: Tensors, sizes: Sizes, positions: Tensor, source: Tensor, seen: Tensor
) -> list[dict[str, Tensor]]:
    """What stands before and after each sub-layer of the encoder, each (B, M, D).

    A key where `seen` (B, M) is False is hidden from all tokens.
    """
    stages: list[dict[str, Tensor]] = []
    rows = _placed(tensors["source_embedding.weight"], positions, source)
    for number in range(sizes.num_layers):
        layer = _Layer(tensors, sizes, None, f"encoder.layers.{number}", stages)
        rows = layer.encode(rows, seen[:, None, None])
    return stages


@dataclass(frozen=True)
class _Layer:
    """One layer of either side, by the name that its tensors begin with."""

    tensors: Tensors
    sizes: Sizes
    maps: dict[str, Tensor] | None
    name: str
    stages: list[dict[str, Tensor]] | None = None

    def encode(self, x: Tensor, seen: Tensor) -> Tensor:
        x = self._around("norm1", x, lambda y: self._attend("self_attention", y, y, seen))
        return self._around("norm2", x, self._feed)

    def decode(self, x: Tensor, memory: Tensor, own: Tensor, seen: Tensor) -> Tensor:
        x = self._around("norm1", x, lambda y: self._attend("self_attention", y, y, own))
        x = self._around("norm2", x, lambda y: self._attend("cross_attention", y, memory, seen))
        return self._around("norm3", x, self._feed)

    def _around(self, norm: str, x: Tensor, part) -> Tensor:
        """A part with its residual connection and its norm."""
        name, eps = f"{self.name}.{norm}", self.sizes.eps
        first = self.sizes.norm_first
        made = part(_normed(self.tensors, name, x, eps) if first else x)
        out = x + made if first else _normed(self.tensors, name, x + made, eps)
        if self.stages is not None:
            self.stages.append({"rows": x, "made": made, "sum": x + made, "out": out})
        return out

    def _attend(self, name: str, x: Tensor, keys: Tensor, mask: Tensor) -> Tensor:
        q, k, v = (
            F.linear(y, self._weight(f"{name}.{part}"))
            .unflatten(-1, (self.sizes.num_heads, -1))
            .transpose(1, 2)
            for part, y in zip(ATTENTION[:3], (x, keys, keys), strict=True)
        )
        scores = q @ k.mT / q.shape[-1] ** 0.5
        weights = scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(-1)
        if self.maps is not None:
            self.maps[f"{self.name}.{name}"] = weights * mask
        heads = (weights * mask) @ v
        return F.linear(heads.transpose(1, 2).flatten(-2), self._weight(f"{name}.w_o"))

    def _feed(self, x: Tensor) -> Tensor:
        inner, outer = "feed_forward.inner", "feed_forward.outer"
        hidden = F.linear(x, self._weight(inner), self.tensors[f"{self.name}.{inner}.bias"])
        bias = self.tensors[f"{self.name}.{outer}.bias"]
        return F.linear(hidden.relu(), self._weight(outer), bias)

    def _weight(self, name: str) -> Tensor:
        return self.tensors[f"{self.name}.{name}.weight"]


def _norm(name: str, width: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.gain": (width,), f"{name}.bias": (width,)}


def _normed(tensors: Tensors, name: str, x: Tensor, eps: float) -> Tensor:
    return F.layer_norm(x, x.shape[-1:], tensors[f"{name}.gain"], tensors[f"{name}.bias"], eps)


def _placed(table: Tensor, positions: Tensor, ids: Tensor) -> Tensor:
    return table[ids] * table.shape[1] ** 0.5 + positions[: ids.shape[1]]
