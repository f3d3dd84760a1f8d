"""Learning rates by closed form, and optimisers whose state has names, so that it can be kept."""

import math
from collections.abc import Iterable, Mapping
from typing import Any, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn

from trainer.configs import TrainConfig

# a, b, c of each iteration of `orthogonal`, as published (Amsel et al. 2025, algorithm 1)
POLAR_EXPRESS = (
    (8.28721201814563, -23.595886519098837, 17.300387312530933),
    (4.107059111542203, -2.9478499167379106, 0.5448431082926601),
    (3.9486908534822946, -2.908902115962949, 0.5518191394370137),
    (3.3184196573706015, -2.488488024314874, 0.51004894012372),
    (2.300652019954817, -1.6689039845747493, 0.4188073119525673),
)
# The polynomials grow without bound just above 1, where rounding can put a singular value: so they
# are stretched by this much (the authors' own measure, for bfloat16).
MARGIN = 1.01


def rate_share(config: TrainConfig, step: int, used: float) -> float:
    """The share of the peak rate that this update is made with.

    Args:
        config: names the schedule and the length of the warm-up.
        step: number of the update, from 1.
        used: share of the budget that is used up before it, 0 to 1; what the cosine goes by.

    Source: Vaswani et al. (2017), section 5.3, for the inverse square root; Loshchilov and Hutter
    (2017), equation 5, for the cosine.

    Raises:
        ValueError: if the step is below 1.
    """
    if step < 1:
        said = f"step ({step}) must be at least 1"
        raise ValueError(said)
    if config.warmup_share:
        warm = min(used / config.warmup_share, 1.0)
    else:
        warm = min(step / config.warmup, 1.0)
    if config.schedule == "cosine":
        return warm * (1 + math.cos(math.pi * min(max(used, 0.0), 1.0))) / 2
    return warm * min(math.sqrt(config.warmup / step), 1.0)


class Muon(torch.optim.Optimizer):
    """Momentum whose directions are made orthogonal: for matrices within a network.

    An update of a matrix is U V^T of its momentum's singular value decomposition U S V^T, nearly,
    times the square root of rows / columns where that is above 1. Newton-Schulz iterations give it
    by matrix products alone, here for all matrices of one shape at once. (torch.optim.Muon takes
    them one by one and knows one polynomial only.)

    Args:
        parameters: matrices.
        rate: the learning rate.
        momentum: share of the old momentum in the new.
        weight_decay: a share of this times the rate is taken off the weights at each step.
        iterations: of Newton-Schulz, 1 to 5.
        dtype: what the iterations compute in.

    Source: Keller Jordan (2024), https://kellerjordan.github.io/posts/muon; the polynomials are
    Amsel et al.'s (2025, arXiv 2505.16932), one for each iteration.
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        rate: float,
        momentum: float,
        weight_decay: float,
        iterations: int,
        dtype: torch.dtype,
    ) -> None:
        super().__init__(parameters, {"lr": rate})
        self.momentum, self.weight_decay = momentum, weight_decay
        self.iterations, self.dtype = iterations, dtype

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Update all matrices that have a gradient."""
        for group in self.param_groups:
            by_shape: dict[tuple[int, ...], list[Tensor]] = {}
            for matrix in group["params"]:
                if matrix.grad is not None:
                    by_shape.setdefault(tuple(sorted(matrix.shape)), []).append(matrix)
            for matrices in by_shape.values():
                directions = orthogonal(
                    torch.stack([_wide(self._ahead(matrix)) for matrix in matrices]),
                    self.iterations,
                    self.dtype,
                )
                for matrix, direction in zip(matrices, directions, strict=True):
                    rows, columns = matrix.shape
                    matrix.mul_(1 - group["lr"] * self.weight_decay)
                    upright = direction if rows <= columns else direction.T
                    matrix.add_(upright, alpha=-group["lr"] * math.sqrt(max(1.0, rows / columns)))

    def _ahead(self, matrix: Tensor) -> Tensor:
        """The momentum after this step, looked at from one step on (Nesterov)."""
        gradient, state = cast(Tensor, matrix.grad), self.state[matrix]
        if not state:
            state["momentum"] = torch.zeros_like(gradient)
        state["momentum"].lerp_(gradient, 1 - self.momentum)
        return gradient.lerp(state["momentum"], self.momentum)


def _wide(matrix: Tensor) -> Tensor:
    return matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T


def orthogonal(
    matrices: Float[Tensor, "k r c"], iterations: int, dtype: torch.dtype = torch.float32
) -> Float[Tensor, "k r c"]:
    """Near the matrices with the same singular vectors whose singular values are all 1; r <= c.

    With A = X X^T, each iteration takes X to a X + b A X + c A A X. The more iterations, the
    smaller the singular values that come near 1.

    Source: Amsel et al. (2025), algorithm 1.
    """
    # singular values at most 1 / MARGIN
    x = matrices / (MARGIN * matrices.norm(dim=(1, 2), keepdim=True) + 1e-7)
    x = x.to(dtype)
    for published in POLAR_EXPRESS[:iterations]:
        a, b, c = (k / MARGIN**power for k, power in zip(published, (1, 3, 5), strict=True))
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.to(matrices.dtype)


class Optimiser:
    """One or two of torch's optimisers over named parameters, stepped together.

    AdamW updates everything, or, under Muon, whatever is no matrix inside the two stacks
    (embeddings and the output layer stay with AdamW). Matrices decay, vectors do not.

    Args:
        config: names the optimiser and its settings.
        parameters: those to train, by name, each once.
    """

    def __init__(self, config: TrainConfig, parameters: Mapping[str, nn.Parameter]) -> None:
        self.config = config
        self.parameters = dict(parameters)
        if not self.parameters:
            raise ValueError("the model has no parameter to train")
        by_muon = [name for name in parameters if config.optimiser == "muon" and self._hidden(name)]
        by_adamw = [name for name in parameters if name not in by_muon]
        self._peaks: list[tuple[torch.optim.Optimizer, float]] = []
        if by_adamw:
            self._peaks.append((self._adamw(by_adamw), config.peak_rate))
        if by_muon:
            self._peaks.append((self._muon(by_muon), config.matrix_rate or config.peak_rate))

    def step(self, share: float) -> None:
        """Update the parameters with this share of the peak rates."""
        for optimizer, peak in self._peaks:
            for group in optimizer.param_groups:
                group["lr"] = peak * share
            optimizer.step()

    def zero_grad(self) -> None:
        """Forget all gradients."""
        for parameter in self.parameters.values():
            parameter.grad = None

    def state(self) -> dict[str, Tensor]:
        """What the optimiser remembers, under "<parameter>/<what>"; empty before the first step."""
        return {
            f"{name}/{key}": torch.as_tensor(value)
            for name, parameter in self.parameters.items()
            for optimizer, _ in self._peaks
            for key, value in optimizer.state.get(parameter, {}).items()
            if value is not None
        }

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Remember what `state` wrote down.

        Raises:
            ValueError: if it is of another model or optimiser, with a parameter's name.
        """
        kept: dict[str, dict[str, Tensor]] = {}
        for full_name, value in state.items():
            name, _, key = full_name.rpartition("/")
            if name not in self.parameters:
                raise ValueError(f"the optimiser's state is of another model: it holds {name}")
            like = self.parameters[name]
            if value.dim() and value.shape != like.shape:
                raise ValueError(
                    f"the optimiser's {key} of {name} has shape {tuple(value.shape)}, "
                    f"the parameter has {tuple(like.shape)}"
                )
            # counts of steps stay where torch's optimiser puts them: on the parameter's device
            # if it is fused, else on the CPU
            device = like.device if value.dim() or self._fused else torch.device("cpu")
            kept.setdefault(name, {})[key] = value.to(device)
        for optimizer, _ in self._peaks:
            for parameter in _members(optimizer):
                optimizer.state.pop(parameter, None)
        for name, values in kept.items():
            self._owner(name).state[self.parameters[name]] = values

    def _hidden(self, name: str) -> bool:
        return self.parameters[name].dim() == 2 and name.startswith(("encoder.", "decoder."))

    def _adamw(self, names: Iterable[str]) -> torch.optim.Optimizer:
        chosen = [self.parameters[name] for name in names]
        groups: list[dict[str, Any]] = [
            {"params": [p for p in chosen if p.dim() >= 2]},
            {"params": [p for p in chosen if p.dim() < 2], "weight_decay": 0.0},
        ]
        self._fused = chosen[0].device.type in ("cpu", "cuda")
        return torch.optim.AdamW(
            [group for group in groups if group["params"]],
            lr=self.config.peak_rate,
            betas=self.config.betas,
            eps=1e-9,
            weight_decay=self.config.weight_decay,
            fused=self._fused,
        )

    def _muon(self, names: Iterable[str]) -> torch.optim.Optimizer:
        config = self.config
        chosen = [self.parameters[name] for name in names]
        half = config.precision == "bf16" or chosen[0].device.type == "cuda"
        return Muon(
            chosen,
            config.matrix_rate or config.peak_rate,
            config.momentum,
            config.weight_decay,
            config.newton_schulz,
            torch.bfloat16 if half else torch.float32,
        )

    def _owner(self, name: str) -> torch.optim.Optimizer:
        parameter = self.parameters[name]
        return next(
            optimizer
            for optimizer, _ in self._peaks
            if any(parameter is member for member in _members(optimizer))
        )


def _members(optimizer: torch.optim.Optimizer) -> list[nn.Parameter]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]
