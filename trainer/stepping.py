"""A model that writes token by token, with the exercises' own key-value cache where that is right.

The cache is that of the student's module (`use_cache`, chapter 9). Before it is used, its logits
step by step are compared with those of the whole target at once, at every position; where they
differ, decoding goes on without it and says so. The model comes out as it went in.
"""

import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any, cast

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from trainer.fused.adoption import FAILURES, subclass
from trainer.fused.loss import unwrapped
from trainer.fused.products import linear

AGREE = 1e-4  # largest difference of logits, relative to their size, between step by step and whole
ROOM = 16  # tokens for which a cache grows at a time


@dataclass(frozen=True)
class Way:
    """How a model decodes: with a cache or not, with which, and why not with a better one."""

    cached: bool
    fused: bool  # whether the cache is kept in place, a stand-in for the module's own
    reason: str


_ways: "weakref.WeakKeyDictionary[nn.Module, Way]" = weakref.WeakKeyDictionary()


def way(module: ModuleType, model: nn.Module) -> Way:
    """How this model decodes, found out by trying once; a fall-back is warned of once."""
    model = unwrapped(model)
    if model not in _ways:
        _ways[model] = _find_way(module, model)
        if not _ways[model].cached:
            warnings.warn(f"decoding without a cache: {_ways[model].reason}", stacklevel=3)
    return _ways[model]


def _find_way(module: ModuleType, model: nn.Module) -> Way:
    if not hasattr(module, "use_cache"):
        return Way(False, False, "the module has no use_cache")
    for fused in (False, True):  # the module's own first: it must be right before it is replaced
        try:
            difference = _stepwise_difference(module, model, fused=fused)
        except (*FAILURES, NotImplementedError) as error:
            reason = f"use_cache fails ({type(error).__name__}: {error})"
        else:
            reason = (
                f"logits step by step differ by {difference:.1g} from those of the whole target"
            )
            if difference <= AGREE:
                continue
        return Way(fused, False, reason)
    return Way(True, True, "")


@contextmanager
def ready_to_write(module: ModuleType, model: nn.Module, *, cache: bool) -> Iterator["Steps"]:
    """The model ready to write, in evaluation mode; afterwards it is as it was."""
    model = unwrapped(model)
    found = way(module, model) if cache else Way(False, False, "")
    with _as_it_was(model), torch.no_grad():
        yield Steps(module, model, found)


@contextmanager
def _as_it_was(model: nn.Module) -> Iterator[None]:
    """Evaluation mode inside; afterwards all parts are back in their places and modes."""
    parts = [(part, part.training, dict(part._modules)) for part in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for part, training, children in parts:
            part.training = training
            part._modules.update(children)


class Steps:
    """A model that is asked for the next token again and again, for R rows at once.

    The rows belong to S sources, k of them to each. A cache of the module's own, and a model
    without a cache, have every source k times; the caches in place have it once.
    """

    def __init__(self, module: ModuleType, model: nn.Module, found: Way) -> None:
        self.model = cast(Any, model)
        self.cached, self.fused = found.cached, found.fused
        self.caches: list[Any] = module.use_cache(model) if found.cached else []
        if found.cached and not self.caches:
            raise ValueError("use_cache found no attention of a decoder layer")
        if found.fused:
            for cache in self.caches:
                _keep_in_place(cache)

    def begin(self, source: Int[Tensor, "S M"]) -> None:
        """Read the sources; each has one row, still empty."""
        self.memory, self.mask = self.model.encode(source)
        self.ids = torch.zeros(len(source), 0, dtype=torch.int64, device=source.device)  # (R, n)
        self.width = 1  # k

    def logits(self, last: Int[Tensor, "R 1"]) -> Float[Tensor, "R V"]:
        """Append a token to every row; return the logits of the next ones. Padding gets -inf."""
        offset = self.ids.shape[1]
        self.ids = torch.cat([self.ids, last], dim=1)
        if self.cached:
            logits = self.model.decode(last, self.memory, self.mask, offset)
        else:
            logits = self.model.decode(self.ids, self.memory, self.mask)
        logits = logits[:, -1].float()
        logits[:, self.model.pad_id] = -float("inf")
        return logits

    def branch(self, origins: Int[Tensor, "S*k"], kept: Int[Tensor, "S"]) -> None:
        """Go on with k rows for each source that is kept; its old rows may come in any order.

        Args:
            origins: for every new row, the old row that it continues.
            kept: the sources that go on, among those that were there.
        """
        k, sources = len(origins) // len(kept), len(self.ids) // self.width
        same_sources = (len(kept), k) == (sources, self.width)
        self.ids, self.width = self.ids[origins], k
        of_sources = kept if self.fused else origins
        if not same_sources:
            self.memory, self.mask = self.memory[of_sources], self.mask[of_sources]
        for cache in self.caches:
            if cache.grows or not same_sources:
                rows = origins if cache.grows else of_sources
                if self.fused:
                    cache.select(rows)
                else:
                    cache.kept = tuple(tensor[rows] for tensor in cache.kept)


def _stepwise_difference(module: ModuleType, model: nn.Module, *, fused: bool) -> float:
    """How far logits step by step are from those of the whole target at once, relatively.

    Halfway, two of three sources go on, with two rows each that change places.
    """
    weights = cast(Any, model)
    device = next(model.parameters()).device
    generator = torch.Generator().manual_seed(1)
    classes = len(weights.target_embedding.weight)
    target = torch.randint(classes - 1, (4, 6), generator=generator)
    target += target >= weights.pad_id  # no real token is padding
    source = torch.randint(len(weights.source_embedding.weight) - 1, (3, 5), generator=generator)
    source += source >= weights.pad_id
    source[1, 3:] = weights.pad_id
    kept, origins = torch.tensor([1, 2]), torch.tensor([1, 1, 2, 2])
    swapped = torch.tensor([1, 0, 2, 2])  # the last source goes on with one of its rows twice
    target[:2, :3], target[2:, :3] = target[0, :3], target[2, :3]
    target, source = target.to(device), source.to(device)
    kept, origins, swapped = kept.to(device), origins.to(device), swapped.to(device)
    with _as_it_was(model), torch.no_grad(), torch.autocast(device.type, enabled=False):
        memory, mask = weights.encode(source)
        whole = weights.decode(target, memory[origins], mask[origins]).float()
        steps = Steps(module, model, Way(True, fused, ""))
        steps.begin(source)
        first = torch.stack([target[0], target[0], target[2]])
        differences = []
        for place in range(6):
            if place < 3:
                logits = steps.logits(first[:, place : place + 1])[origins]
            else:
                logits = steps.logits(target[:, place : place + 1])
            wanted = whole[:, place].clone()
            wanted[:, weights.pad_id] = logits[:, weights.pad_id] = 0.0
            differences.append((logits - wanted).abs().max() / wanted.abs().max())
            if place == 2:
                steps.branch(origins, kept)
            if place == 4:
                steps.branch(swapped, torch.arange(2, device=device))
                whole, target = whole[swapped], target[swapped]
    return torch.stack(differences).max().item()


# The cache in place -------------------------------------------------------------------------------


def _keep_in_place(cache: Any) -> None:
    """Give a CachedAttention, still empty, a faster way to keep its keys and values."""
    widths = [cache.w_q.weight, cache.w_k.weight, cache.w_v.weight]
    if any(part.bias is not None for part in (cache.w_q, cache.w_k, cache.w_v)):
        raise ValueError("the projections have biases")
    cache.__class__ = subclass(_GrowingCache if cache.grows else _FixedCache, type(cache))
    cache.wide = torch.cat(widths if cache.grows else widths[1:])
    cache.length, cache.keys, cache.values = 0, None, None


class _InPlace:
    """What both kinds share: keys and values (R, H, room, d_k), of which `length` are filled."""

    num_heads: int
    w_q: nn.Linear
    w_o: nn.Linear
    wide: Tensor
    length: int
    keys: Tensor
    values: Tensor

    def select(self, rows: Int[Tensor, "R"]) -> None:
        """Go on with these rows."""
        self.keys = self.keys.index_select(0, rows)
        self.values = self.values.index_select(0, rows)

    def _split(
        self, x: Float[Tensor, "B n d"], parts: int
    ) -> tuple[Float[Tensor, "B H n d_k"], ...]:
        return x.unflatten(-1, (parts, self.num_heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)

    def _attend(
        self, q: Float[Tensor, "B H n d_k"], mask: Bool[Tensor, "B 1 1 m"] | None
    ) -> Float[Tensor, "B n d_model"]:
        keys, values = self.keys[:, :, : self.length], self.values[:, :, : self.length]
        scores = q @ keys.transpose(-2, -1) / q.shape[-1] ** 0.5  # (B, H, n, m)
        if mask is not None:
            lowest = torch.finfo(scores.dtype).min
            scores.masked_fill_(~mask, lowest)
        weights = scores.softmax(-1)
        if mask is not None:
            weights.masked_fill_(~mask, 0.0)  # matters only for a row without visible keys
        heads = (weights @ values).transpose(1, 2).flatten(-2)
        return linear(heads, self.w_o.weight, self.w_o.bias)


class _GrowingCache(_InPlace):
    """Self-attention of one new token a row, to all that is kept; no copy while there is room."""

    def forward(
        self,
        query: Float[Tensor, "R 1 d"],
        key: Float[Tensor, "R 1 d"],
        value: Float[Tensor, "R 1 d"],
        mask: Bool[Tensor, "... 1 1"] | None = None,  # not looked at: no token is padding
    ) -> tuple[Float[Tensor, "R 1 d"], None]:
        """Keep the token's key and value, and return its output."""
        q, k, v = self._split(linear(query, self.wide), 3)  # (R, H, 1, d_k) each
        if self.length == 0:
            self.keys, self.values = (F.pad(new, (0, 0, 0, ROOM - 1)) for new in (k, v))
        elif self.length == self.keys.shape[2]:
            self.keys, self.values = (
                F.pad(old, (0, 0, 0, ROOM)) for old in (self.keys, self.values)
            )
        self.keys[:, :, self.length], self.values[:, :, self.length] = k.squeeze(2), v.squeeze(2)
        self.length += 1
        return self._attend(q, None), None


class _FixedCache(_InPlace):
    """Cross-attention; the rows of one source ask together, as if they were its queries."""

    def forward(
        self,
        query: Float[Tensor, "S*k 1 d"],
        key: Float[Tensor, "S m d"],
        value: Float[Tensor, "S m d"],
        mask: Bool[Tensor, "S 1 m"] | None = None,  # True = may attend
    ) -> tuple[Float[Tensor, "S*k 1 d"], None]:
        """Attend to the memory that the first call brought."""
        if self.length == 0:
            new = self._split(linear(key, self.wide), 2)  # (S, H, m, d_k) each
            self.keys, self.values = (tensor.contiguous() for tensor in new)
            self.length = key.shape[1]
        together = query.reshape(len(self.keys), -1, query.shape[-1])  # (S, k, d)
        (q,) = self._split(linear(together, self.w_q.weight), 1)
        heads = self._attend(q, None if mask is None else mask.unsqueeze(1))
        return heads.reshape(query.shape), None
