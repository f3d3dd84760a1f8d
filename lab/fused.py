"""Faster stand-ins for the parts of a student's model, each used only where both agree.

`adopt` gives parts of a model that are there already (their weights, names and places in the state
dict do not change) a faster way to compute the same. It does so kind by kind: the whole model's
outputs and gradients on a padded batch are compared with the student's own, and a stand-in that
differs, or that cannot be compared, is taken back. The student's file and classes are not touched.

What is gained where (measured; `python -m lab bench --profile` shows it):
- On a processor that is not Intel's, torch's matrix product (MKL) does not use AVX-512; oneDNN,
  which torch brings as well, does.
- Torch draws dropout's coin flips one by one; here one draw of 64 random bits serves four.
- The loss takes a few rows of logits at a time, which then never leave the processor's cache.
"""

import ctypes
import math
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

AGREE = 1e-4  # largest relative difference; fp32 sums in another order differ by about 1e-6
HIDDEN = 1e30  # taken from a score that must not count; far from overflow
ROWS = 256  # of logits at a time: with a vocabulary of 10,000 they fit a processor's cache
FAILURES = (RuntimeError, TypeError, ValueError, LookupError, AttributeError, AssertionError)


@dataclass(frozen=True)
class DropIn:
    """A stand-in: whether it is used, why, and by how much it differed (relative, 0 if untried)."""

    name: str
    used: bool
    reason: str
    difference: float


# The process --------------------------------------------------------------------------------------


def prepare_process(threads: int | None) -> tuple[str, ...]:
    """Set up this process for training on a CPU; return what was set, in words.

    Args:
        threads: torch's threads; None leaves their number as it is.
    """
    done = []
    if threads is not None:
        torch.set_num_threads(threads)
        done.append(f"{threads} thread{'s' if threads > 1 else ''}")
    if _keep_freed_memory():
        done.append("freed memory is kept for the next step, not handed back to the system")
    if torch.set_flush_denormal(True):
        done.append("numbers too small for full precision count as 0")
    return tuple(done)


def _keep_freed_memory() -> bool:
    """Let glibc's malloc reuse large blocks, whose fresh pages the system would zero each time."""
    if sys.platform != "linux" or platform.libc_ver()[0] != "glibc":
        return False
    mallopt = ctypes.CDLL(None).mallopt
    trim_threshold, mmap_threshold, largest = -1, -3, 2**31 - 1  # names and numbers of malloc.h
    return bool(mallopt(mmap_threshold, largest)) and bool(mallopt(trim_threshold, largest))


# Adoption -----------------------------------------------------------------------------------------


def adopt(module: ModuleType, model: nn.Module) -> tuple[DropIn, ...]:
    """Give the model's parts faster ways to compute the same, one kind after the other.

    Each kind is kept only if the whole model's logits and gradients on a padded batch agree with
    those before, and a fully padded sentence gives finite ones. The random number generators, the
    gradients and the mode of the model stay as they were.

    Args:
        module: the student's module, whose classes the parts belong to.
        model: its Transformer; changed in place, its state dict keeps its names.
    """
    if next(model.parameters()).device.type == "cuda":
        # cuDNN's attention gives NaN gradients with a mask: pytorch issue 196678
        torch.backends.cuda.enable_cudnn_sdp(False)
    with _quiet(model):
        try:
            own = _Trial.of(model)
        except FAILURES as error:
            return _none(f"the model cannot be tried ({_sentence(error)})")
        if own.distance(_Trial.of(model)) > AGREE:
            return _none("the model gives something else each time, even without dropout")
        return tuple(_try(kind, module, model, own) for kind in KINDS)


def _none(reason: str) -> tuple[DropIn, ...]:
    return tuple(DropIn(kind.name, False, reason, 0.0) for kind in KINDS)


def _sentence(error: BaseException) -> str:
    first = (str(error).splitlines() or [""])[0]
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


def _try(kind: "_Kind", module: ModuleType, model: nn.Module, own: "_Trial") -> DropIn:
    obstacle = kind.obstacle(model)
    if obstacle:
        return DropIn(kind.name, False, obstacle, 0.0)
    parts = [part for part in model.modules() if kind.fits(module, part)]
    if not parts:
        return DropIn(kind.name, False, "the model has no such part", 0.0)
    classes = [type(part) for part in parts]
    for part in parts:
        part.__class__ = subclass(kind.stand_in, type(part))
    try:
        difference = own.distance(_Trial.of(model))
        finite = _finite_for_padding(model)
    except FAILURES as error:
        difference, finite, failure = float("inf"), False, _sentence(error)
    else:
        failure = "" if finite else "a fully padded sentence gives numbers that are not finite"
    if finite and difference <= AGREE:
        return DropIn(kind.name, True, kind.gain, difference)
    for part, before in zip(parts, classes, strict=True):
        part.__class__ = before
    reason = failure or f"it differs from the module's own by {difference:.1g} (relative)"
    return DropIn(kind.name, False, reason, difference)


@cache
def subclass(stand_in: type, own: type) -> type:
    """The student's class with the stand-in's forward; an instance can change to it and back."""
    return type(f"Fused{own.__name__}", (stand_in, own), {})


@contextmanager
def _quiet(model: nn.Module) -> Iterator[None]:
    """Full precision, no dropout, no trace: restore modes, gradients and generators afterwards."""
    modes = [(part, part.training) for part in model.modules()]
    drops = [(part, part.p) for part in model.modules() if isinstance(part, nn.Dropout)]
    gradients = [(parameter, parameter.grad) for parameter in model.parameters()]
    backends = cast(Any, torch.backends)  # its stubs do not know mkldnn.matmul
    products = backends.cuda.matmul, backends.mkldnn.matmul
    precisions = [product.fp32_precision for product in products]
    devices = [parameter.device for parameter in model.parameters() if parameter.is_cuda]
    with torch.random.fork_rng(set(devices)), torch.enable_grad():
        try:
            for product in products:
                product.fp32_precision = "ieee"
            model.train()
            for part, _ in drops:
                part.p = 0.0
            yield
        finally:
            for product, precision in zip(products, precisions, strict=True):
                product.fp32_precision = precision
            for part, mode in modes:
                part.training = mode
            for part, p in drops:
                part.p = p
            for parameter, gradient in gradients:
                parameter.grad = gradient


@dataclass(frozen=True)
class _Trial:
    """What the whole model gives on one padded batch: logits of real places, and gradients."""

    numbers: tuple[Tensor, ...]

    @classmethod
    def of(cls, model: nn.Module) -> "_Trial":
        """Run the model forwards and backwards on a batch whose rows have different lengths."""
        source, target, pad_id = _batch(model)
        logits, gradients = _run(model, source, target, pad_id)
        return cls((logits[target != pad_id], *gradients))

    def distance(self, other: "_Trial") -> float:
        """The largest relative difference of a tensor; infinite where one is not finite.

        A gradient that is 0 but for rounding is measured against a thousandth of the largest.
        """
        logits, largest = self.numbers[0].norm(), max(n.norm() for n in self.numbers[1:])
        floors = [logits] + [1e-3 * largest] * (len(self.numbers) - 1)
        shares = [
            ((theirs - ours).norm() / torch.maximum(ours.norm(), floor)).item()
            for ours, theirs, floor in zip(self.numbers, other.numbers, floors, strict=True)
        ]
        return max(share if share == share else float("inf") for share in shares)


def _batch(model: nn.Module) -> tuple[Tensor, Tensor, int]:
    """Four padded pairs of random ids, on the model's device; the same for every trial."""
    pad_id = int(cast(Any, model).pad_id)
    weights = cast(Any, model)
    device = next(model.parameters()).device
    generator = torch.Generator().manual_seed(1)
    sides = []
    for weight, lengths in (
        (weights.source_embedding.weight, (7, 5, 2, 6)),
        (weights.target_embedding.weight, (6, 8, 3, 1)),
    ):
        ids = torch.randint(len(weight) - 1, (len(lengths), max(lengths)), generator=generator)
        ids += ids >= pad_id  # no real token is padding
        places = torch.arange(max(lengths))
        sides.append(ids.masked_fill(places >= torch.tensor(lengths)[:, None], pad_id).to(device))
    return sides[0], sides[1], pad_id


def _run(
    model: nn.Module, source: Int[Tensor, "B M"], target: Int[Tensor, "B N"], pad_id: int
) -> tuple[Float[Tensor, "B N V"], list[Tensor]]:
    """Logits, and the gradients of a loss that no two logits enter in the same way."""
    model.zero_grad(set_to_none=True)
    logits = model(source, target)
    generator = torch.Generator().manual_seed(2)
    weights = torch.randn(logits.shape, generator=generator).to(logits)
    (logits * weights)[target != pad_id].sum().backward()
    gradients = [
        torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        for parameter in model.parameters()
    ]
    return logits.detach(), gradients


def _finite_for_padding(model: nn.Module) -> bool:
    """Whether a fully padded source, and a fully padded pair, leave every number finite."""
    source, target, pad_id = _batch(model)
    source[1:3] = pad_id
    target[2] = pad_id
    logits, gradients = _run(model, source, target, pad_id)
    return all(bool(numbers.isfinite().all()) for numbers in (logits, *gradients))


# Linear maps --------------------------------------------------------------------------------------


@cache
def slow_matrix_product() -> bool:
    """Whether torch's own matrix product leaves this processor's AVX-512 unused, unlike oneDNN.

    MKL takes its AVX-512 path on Intel's processors only. (A rule, not a stopwatch: the same
    machine must choose the same way each time, or a resumed training would differ in the last bit.)
    """
    if not _onednn(torch.float32) or not torch.backends.mkl.is_available():
        return False
    wide = torch.backends.cpu.get_cpu_capability().startswith("AVX512")
    cpuinfo = Path("/proc/cpuinfo")
    return wide and cpuinfo.is_file() and "GenuineIntel" not in cpuinfo.read_text(encoding="utf-8")


@cache
def _onednn(factors: torch.dtype) -> bool:
    """Whether oneDNN's product can be called here, with factors of this type."""
    if not torch.backends.mkldnn.is_available():
        return False
    if not hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        return False
    half = factors == torch.bfloat16 and torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return factors == torch.float32 or half


def _on_cpu(*tensors: Tensor) -> bool:
    """Whether the kernels here may be called: fp32 numbers on a CPU, and no compiler at work."""
    return not torch.compiler.is_compiling() and all(
        tensor.dtype == torch.float32 and tensor.device.type == "cpu" for tensor in tensors
    )


def _factors() -> torch.dtype:
    """What factors of matrix products are rounded to: bf16 under autocast on a CPU, else not."""
    if torch.is_autocast_enabled("cpu"):
        return torch.get_autocast_dtype("cpu")
    return torch.float32


def _product(
    x: Float[Tensor, "... d"],
    weight: Float[Tensor, "n d"],
    bias: Float[Tensor, "n"] | None = None,
    then: str = "none",  # or "relu"
) -> Float[Tensor, "... n"]:
    """x @ weight.T + bias by oneDNN, in the factors' type; no gradients."""
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, then, [], "")


def _map(
    x: Tensor, weight: Tensor, bias: Tensor | None, relu: bool
) -> tuple[Float[Tensor, "... n"], Tensor, Tensor]:
    """relu(x @ weight.T + bias) in fp32, and the two factors as they were rounded."""
    factors = _factors()
    rounded, matrix = x.to(factors), weight.to(factors)
    bias = None if bias is None else bias.to(factors)
    return _product(rounded, matrix, bias, "relu" if relu else "none").float(), rounded, matrix


class _Linear(torch.autograd.Function):
    """relu(x @ weight.T + bias), the ReLU if wanted, by oneDNN forwards and backwards."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, relu: bool) -> Tensor:
        """Return (..., n) for x (..., d) and weight (n, d)."""
        y, rounded, matrix = _map(x, weight, bias, relu)
        ctx.save_for_backward(rounded, matrix, y if relu else None)
        ctx.with_bias = bias is not None
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of x, weight and bias."""
        x, weight, y = ctx.saved_tensors
        g = gradients[0].reshape(-1, weight.shape[0])  # (rows, n)
        if y is not None:
            g = torch.ops.aten.threshold_backward(g, y.reshape(g.shape), 0)
        of_x = of_weight = of_bias = None
        rounded = g.to(weight.dtype)
        if ctx.needs_input_grad[0]:
            of_x = _product(rounded, weight.t()).float().reshape(x.shape)
        if ctx.needs_input_grad[1]:
            of_weight = _weight_gradient(x.reshape(-1, x.shape[-1]), rounded).float()
        if ctx.with_bias and ctx.needs_input_grad[2]:
            of_bias = g.sum(0)
        return of_x, of_weight, of_bias, None


def _weight_gradient(x: Float[Tensor, "r d"], g: Float[Tensor, "r n"]) -> Float[Tensor, "n d"]:
    """g.T @ x; oneDNN copies its first factor if that is transposed, so that is the smaller one."""
    if x.dtype != torch.float32:
        return g.t() @ x  # torch leaves these types to oneDNN, which then copies nothing
    return _product(g.t(), x.t()) if g.shape[1] <= x.shape[1] else _product(x.t(), g.t()).t()


def linear(
    x: Float[Tensor, "... d"],
    weight: Float[Tensor, "n d"],
    bias: Float[Tensor, "n"] | None = None,
    *,
    relu: bool = False,
) -> Float[Tensor, "... n"]:
    """x @ weight.T + bias, then a ReLU if wanted; by oneDNN where torch's own product is slower.

    Under autocast on a CPU the factors are rounded to its type, the result is fp32 all the same.
    """
    half = _factors() != torch.float32
    if _on_cpu(x, weight) and (slow_matrix_product() or half) and _onednn(_factors()):
        if torch.is_grad_enabled():
            return cast(Tensor, _Linear.apply(x, weight, bias, relu))
        return _map(x, weight, bias, relu)[0]
    y = F.linear(x, weight, bias)
    return F.relu(y) if relu else y


# Stand-ins: each forward computes what the student's class of that name computes ------------------


class _FusedLinear:
    """nn.Linear."""

    weight: Tensor
    bias: Tensor | None

    def forward(self, x: Float[Tensor, "... d"]) -> Float[Tensor, "... n"]:
        """The same map."""
        return linear(x, self.weight, self.bias)


class _FusedEmbedding:
    """TokenEmbedding: one look-up whose backward does not sort the ids."""

    weight: Tensor
    d_model: int

    def forward(self, ids: Int[Tensor, "B N"]) -> Float[Tensor, "B N d_model"]:
        """The scaled vectors."""
        return F.embedding(ids, self.weight) * self.weight.shape[1] ** 0.5


class _FusedLayerNorm:
    """LayerNorm: torch's, in one pass."""

    gain: Tensor
    bias: Tensor
    eps: float

    def forward(self, x: Float[Tensor, "... d_model"]) -> Float[Tensor, "... d_model"]:
        """The normalised tokens."""
        return F.layer_norm(x, self.gain.shape, self.gain, self.bias, self.eps)


class _FusedFeedForward:
    """FeedForward: the ReLU within the first map."""

    inner: nn.Linear
    outer: nn.Linear

    def forward(self, x: Float[Tensor, "... d_model"]) -> Float[Tensor, "... d_model"]:
        """The same network."""
        hidden = linear(x, self.inner.weight, self.inner.bias, relu=True)
        return linear(hidden, self.outer.weight, self.outer.bias)


class _FusedAttention:
    """MultiHeadAttention: one product for the projections of one input; no weights returned."""

    num_heads: int
    w_q: nn.Linear
    w_k: nn.Linear
    w_v: nn.Linear
    w_o: nn.Linear

    def forward(
        self,
        query: Float[Tensor, "B n d_model"],
        key: Float[Tensor, "B m d_model"],
        value: Float[Tensor, "B m d_model"],
        mask: Bool[Tensor, "... #n m"] | None = None,  # True = may attend
    ) -> tuple[Float[Tensor, "B n d_model"], None]:
        """The output; nobody who calls this asks for the weights."""
        if query is key and key is value:
            wide = (_project(query, self.w_q, self.w_k, self.w_v),)
        elif key is value:
            wide = (_project(query, self.w_q), _project(key, self.w_k, self.w_v))
        else:
            wide = (_project(query, self.w_q), _project(key, self.w_k), _project(value, self.w_v))
        merged = _attend(wide, self.num_heads, mask)
        return linear(merged, self.w_o.weight, self.w_o.bias), None


def _project(x: Float[Tensor, "B n d_model"], *maps: nn.Linear) -> Float[Tensor, "B n wide"]:
    """What the maps make of x, side by side, by one matrix product."""
    if len(maps) == 1:
        return linear(x, maps[0].weight, maps[0].bias)
    bias = None if maps[0].bias is None else torch.cat([part.bias for part in maps])
    return linear(x, torch.cat([part.weight for part in maps]), bias)


def _attend(
    wide: tuple[Float[Tensor, "B N wide"], ...],
    num_heads: int,
    mask: Bool[Tensor, "... #n m"] | None,
) -> Float[Tensor, "B n d_model"]:
    """Scaled dot-product attention of queries, keys and values that lie side by side in `wide`."""
    if _on_cpu(*wide) and (mask is None or mask.dim() <= 3):
        return cast(Tensor, _Attention.apply(*_additive(mask), num_heads, *wide))
    q, k, v = _per_head(wide, num_heads)
    if mask is not None:
        # a query that sees no key may see all: some kernels would give NaN, and nobody reads it
        mask = (mask | ~mask.any(-1, keepdim=True)).unsqueeze(-3)  # the same for every head
    heads = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)  # (B, H, n, d_k)
    return heads.transpose(1, 2).flatten(-2)


def _per_head(wide: Sequence[Tensor], num_heads: int) -> list[Float[Tensor, "B H n d_k"]]:
    """Views of queries, keys and values."""
    d_k = sum(tensor.shape[-1] for tensor in wide) // (3 * num_heads)
    return [
        part
        for tensor in wide
        for part in tensor.unflatten(-1, (-1, num_heads, d_k)).permute(2, 0, 3, 1, 4).unbind(0)
    ]


def _additive(
    mask: Bool[Tensor, "... #n m"] | None,
) -> tuple[Float[Tensor, "... #n m"] | None, Float[Tensor, "... #n 1"] | None]:
    """What to add to the scores, and 0 for queries that see no key, 1 for others (None: no such).

    All layers get the same mask, so the answer stays on it.
    """
    if mask is None:
        return None, None
    kept = getattr(mask, "_graded_additive", None)
    if kept is None or kept[0] != mask._version:
        numbers = mask.to(torch.float32)
        seeing = mask.any(-1, keepdim=True)
        visible = None if bool(seeing.all()) else seeing.to(torch.float32)
        kept = (mask._version, (numbers - 1) * HIDDEN, visible)
        setattr(mask, "_graded_additive", kept)  # noqa: B010  (a tensor has no such attribute)
    return kept[1], kept[2]


class _Attention(torch.autograd.Function):
    """Attention by one batched product a head: for sentences faster than torch's fused kernel.

    In fp32 throughout, under autocast too: rounding would cost more time than it saves.

    The heads lie side by side in memory; a batched product reads one head of them in place.
    """

    @staticmethod
    @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
    def forward(
        ctx: Any, hidden: Tensor | None, visible: Tensor | None, num_heads: int, *wide: Tensor
    ) -> Float[Tensor, "B n d_model"]:
        """Attend; hidden and visible as `_additive` gives them."""
        q, k, v = (part.transpose(0, 1) for part in _per_head(wide, num_heads))  # (H, B, n, d_k)
        scale = q.shape[-1] ** -0.5
        p = torch.empty(*q.shape[:3], k.shape[2])  # (H, B, n, m)
        for head in range(num_heads):
            keys = k[head].transpose(1, 2)
            torch.baddbmm(p[head], q[head], keys, beta=0, alpha=scale, out=p[head])
        if hidden is not None:
            p += hidden
        p = p.softmax(-1)
        if visible is not None:
            p *= visible
        heads = torch.empty(*q.shape[:3], v.shape[-1])
        for head in range(num_heads):
            torch.bmm(p[head], v[head], out=heads[head])
        ctx.save_for_backward(p, *wide)
        return heads.permute(1, 2, 0, 3).flatten(2)

    @staticmethod
    @once_differentiable
    @torch.amp.custom_bwd(device_type="cpu")
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of what is `wide`."""
        p, *wide = ctx.saved_tensors
        num_heads = len(p)
        q, k, v = (part.transpose(0, 1) for part in _per_head(wide, num_heads))
        of_wide = [torch.empty(tensor.shape) for tensor in wide]
        of_q, of_k, of_v = (part.transpose(0, 1) for part in _per_head(of_wide, num_heads))
        g = gradients[0].unflatten(-1, (num_heads, -1)).permute(2, 0, 1, 3)  # (H, B, n, d_v)
        of_p = torch.empty_like(p)
        for head in range(num_heads):
            torch.bmm(g[head], v[head].transpose(1, 2), out=of_p[head])
            of_v[head] = torch.bmm(p[head].transpose(1, 2), g[head])
        of_scores = torch.ops.aten._softmax_backward_data(of_p, p, -1, torch.float32)
        of_scores *= q.shape[-1] ** -0.5
        for head in range(num_heads):
            of_q[head] = torch.bmm(of_scores[head], k[head])
            of_k[head] = torch.bmm(of_scores[head].transpose(1, 2), q[head])
        return None, None, None, *of_wide


class _FusedGenerator:
    """Generator: logits without a bias."""

    weight: Tensor

    def forward(self, x: Float[Tensor, "B N d_model"]) -> Float[Tensor, "B N vocab_size"]:
        """The logits."""
        return linear(x, self.weight)


class _FusedDropout:
    """nn.Dropout on a CPU, with 16 random bits an entry in place of torch's slow coin flips.

    The probability is rounded to a multiple of 2**-16 and what is kept is scaled by the rounded
    one, so that the mean is exact. The bits come from torch's own generator.
    """

    p: float
    training: bool

    def forward(self, x: Tensor) -> Tensor:
        """Zero each entry with probability p, and scale the others by 1 / (1 - p)."""
        dropped = round(self.p * 2**16)
        if not self.training or dropped == 0:
            return x
        if dropped == 2**16 or not _on_cpu(x):
            return F.dropout(x, self.p, training=True)
        return cast(Tensor, _Dropout.apply(x, dropped))


class _Dropout(torch.autograd.Function):
    """Dropout of fp32 numbers on a CPU."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, dropped: int) -> Tensor:
        """Drop each entry with probability dropped / 2**16."""
        words = torch.empty(math.ceil(x.numel() / 4), dtype=torch.int64).random_(-(2**63), None)
        bits = words.view(torch.int16)[: x.numel()].view(x.shape)  # uniform in -2**15 .. 2**15 - 1
        keep = torch.empty(x.shape)  # 0 or 1 / (1 - p)
        torch.ge(bits, dropped - 2**15, out=keep)
        ctx.keep = keep.mul_(2**16 / (2**16 - dropped))
        return x * ctx.keep

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        """Pass on what was kept, scaled."""
        return gradients[0] * ctx.keep, None


def _needs_slow_product(model: nn.Module) -> str:
    on_cpu = next(model.parameters()).device.type == "cpu"
    return (
        "" if on_cpu and slow_matrix_product() else "torch's own matrix product is no slower here"
    )


def _needs_cpu(model: nn.Module) -> str:
    on_cpu = next(model.parameters()).device.type == "cpu"
    return "" if on_cpu else "torch's own is fast on this device"


def _nothing(model: nn.Module) -> str:
    return ""


def _fits(name: str, *attributes: str) -> Callable[[ModuleType, nn.Module], bool]:
    """Whether a part is of exactly this class of the module, has these, and drops nothing."""

    def fits(module: ModuleType, part: nn.Module) -> bool:
        return (
            type(part) is getattr(module, name, None)
            and all(hasattr(part, attribute) for attribute in attributes)
            and not any(isinstance(inner, nn.Dropout) for inner in part.modules())
        )

    return fits


@dataclass(frozen=True)
class _Kind:
    """One kind of stand-in: its class, what it fits, and what is gained."""

    name: str
    stand_in: type
    fits: Callable[[ModuleType, nn.Module], bool]
    gain: str
    obstacle: Callable[[nn.Module], str] = _nothing  # why it is no use for this model; or ""


KINDS = (
    _Kind(
        "linear maps",
        _FusedLinear,
        lambda module, part: type(part) is nn.Linear,
        "oneDNN's matrix product in place of MKL's",
        _needs_slow_product,
    ),
    _Kind(
        "dropout",
        _FusedDropout,
        lambda module, part: type(part) is nn.Dropout,
        "four coin flips from one random number",
        _needs_cpu,
    ),
    _Kind(
        "embedding",
        _FusedEmbedding,
        _fits("TokenEmbedding", "weight"),
        "torch's look-up, whose backward pass is faster than an index's",
    ),
    _Kind(
        "layer norm",
        _FusedLayerNorm,
        _fits("LayerNorm", "gain", "bias", "eps"),
        "one pass in place of six",
    ),
    _Kind(
        "feed-forward",
        _FusedFeedForward,
        _fits("FeedForward", "inner", "outer"),
        "the ReLU within the first matrix product",
    ),
    _Kind(
        "attention",
        _FusedAttention,
        _fits("MultiHeadAttention", "w_q", "w_k", "w_v", "w_o", "num_heads"),
        "one product for queries, keys and values; no weights that nobody uses",
    ),
    _Kind(
        "generator",
        _FusedGenerator,
        _fits("Generator", "weight"),
        "the loss takes a few rows of logits at a time",
    ),
)


# The loss -----------------------------------------------------------------------------------------


def hidden_states(
    model: nn.Module, source: Int[Tensor, "B M"], decoder_input: Int[Tensor, "B N"]
) -> Float[Tensor, "B N d_model"]:
    """The decoder's output before the generator, so that the generator can skip the padding.

    The model may be wrapped by torch.compile or DistributedDataParallel. One without an attribute
    `generator` gives its logits; `token_loss` takes either.
    """
    inner = unwrapped(model)
    generator = getattr(inner, "generator", None)
    if not isinstance(generator, nn.Module):
        return model(source, decoder_input)
    inner.generator = nn.Identity()
    try:
        return model(source, decoder_input)
    finally:
        inner.generator = generator


def unwrapped(model: nn.Module) -> nn.Module:
    """The model itself, inside DistributedDataParallel and what torch.compile returned."""
    for wrapper in ("module", "_orig_mod"):
        model = getattr(model, wrapper, model)
    return model


def token_loss(
    model: nn.Module,
    hidden: Float[Tensor, "B N d_model"],
    labels: Int[Tensor, "B N"],
    pad_id: int,
    smoothing: float,
) -> tuple[Float[Tensor, ""], Int[Tensor, ""]]:
    """Label-smoothed cross-entropy, summed over the real tokens, in fp32; and their number.

    Args:
        model: its generator turns hidden states into logits; without one they are logits.
        hidden: what `hidden_states` returned.
        labels: the token to say at each place; no loss where it is pad_id.
        pad_id: the padding's id.
        smoothing: share of the label's probability that is spread evenly over all V classes.
    """
    real = labels != pad_id
    generator = getattr(unwrapped(model), "generator", None)
    if hidden.device.type == "cpu":
        hidden, labels = hidden[real], labels[real]  # (real tokens, d_model)
        own = _on_cpu(hidden) and (_factors() == torch.float32 or _onednn(_factors()))
        if own and isinstance(generator, _FusedGenerator) and _on_cpu(generator.weight):
            wanted = torch.is_grad_enabled()
            loss = _OutputLoss.apply(hidden, generator.weight, labels, smoothing, wanted)
            return cast(Tensor, loss), real.sum()
    # elsewhere all places stay: to count the real ones would make the device wait
    logits = generator(hidden) if isinstance(generator, nn.Module) else hidden
    loss = F.cross_entropy(
        logits.flatten(0, -2).float(),
        labels.flatten(),
        ignore_index=pad_id,
        label_smoothing=smoothing,
        reduction="sum",
    )
    return loss, real.sum()


class _OutputLoss(torch.autograd.Function):
    """Generator and smoothed cross-entropy in one, a few rows of logits at a time.

    With logits z = W h, p = softmax(z), label y and smoothing s, the loss of a token is
    log sum exp z - (1 - s) z_y - s mean(z), and its gradient for z is p - (1 - s) e_y - s / V.
    The mean over the classes needs no logits: mean(z) = mean(W's rows) h. Gradients are worked out
    on the way, while a block of p is at hand; the idea is Liger kernel's (arXiv 2410.10989).
    """

    @staticmethod
    def forward(
        ctx: Any, h: Tensor, weight: Tensor, labels: Tensor, smoothing: float, wanted: bool
    ) -> Float[Tensor, ""]:
        """The sum of the losses of rows h (T, d) with labels (T,); gradients only if wanted."""
        factors = _factors()
        with torch.autocast("cpu", enabled=False):
            middle = weight.mean(0)  # (d,)
            evidence = (1 - smoothing) * weight[labels] + smoothing * middle  # (T, d)
            total = -(evidence * h).sum(dtype=torch.float64)
            of_h, of_weight = torch.empty_like(h), torch.zeros(weight.t().shape)  # (T, d), (d, V)
            # logits in units of log 2, because torch computes powers of 2 faster than those of e
            matrix, rounded = weight.to(factors), (h / math.log(2)).to(factors)
            for start in range(0, len(h), ROWS):
                rows = slice(start, start + ROWS)
                z = _block_product(rounded[rows], matrix).float()  # (r, V)
                largest = z.amax(-1, keepdim=True)
                p = z.sub_(largest).exp2_()
                sums = p.sum(-1, keepdim=True)
                total += (sums.log2() + largest).sum(dtype=torch.float64) * math.log(2)
                if not wanted:
                    continue
                p = p.to(factors)
                torch.div(_block_product(p, matrix.t()), sums, out=of_h[rows])
                of_weight += _block_product((h[rows] / sums).to(factors).t(), p.t())
            if not wanted:
                return total.float()
            of_weight -= (smoothing / len(weight)) * h.sum(0)[:, None]
            of_weight = of_weight.t().contiguous()
            of_weight.index_add_(0, labels, h, alpha=smoothing - 1)
            ctx.save_for_backward(of_h - evidence, of_weight)
            return total.float()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Scale what forward kept."""
        of_h, of_weight = ctx.saved_tensors
        return gradients[0] * of_h, gradients[0] * of_weight, None, None, None


def _block_product(x: Float[Tensor, "r d"], weight: Float[Tensor, "n d"]) -> Float[Tensor, "r n"]:
    own = slow_matrix_product() or x.dtype != torch.float32
    return _product(x, weight) if own else x @ weight.t()
