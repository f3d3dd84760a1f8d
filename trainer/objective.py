"""The loss that a training minimises, as a module that can be wrapped and compiled."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor, nn

from trainer.configs import TrainConfig
from trainer.fused.loss import hidden_states, token_loss

COMPILED_SHAPES = 64  # at most; beyond that torch goes on uncompiled


class Objective(nn.Module):
    """The loss of a batch as a module of its own, so that DDP and torch.compile can wrap it.

    Args:
        model: the Transformer.
        config: label smoothing, precision, and whether the output layer sees real tokens only.
        pad_id: marks what is no token.
    """

    def __init__(self, model: nn.Module, config: TrainConfig, pad_id: int) -> None:
        super().__init__()
        self.model = model
        self.config = config
        self.pad_id = pad_id
        self.states: Callable[[nn.Module, Tensor, Tensor], Tensor] = (
            hidden_states if config.fused else _logits
        )
        if config.compile:
            torch._dynamo.config.recompile_limit = COMPILED_SHAPES
            # every pair of lengths gets its own code, since there are few, padded to multiples;
            # only the number of sentences is left open
            self.states = torch.compile(self.states, dynamic=False)

    def forward(
        self, source: Int64[Tensor, "B N"], target: Int64[Tensor, "B M"]
    ) -> Float[Tensor, ""]:
        """The smoothed cross-entropy, summed over the real target tokens, in fp32."""
        config, smoothing, labels = self.config, self.config.label_smoothing, target[:, 1:]
        half = config.precision == "bf16"
        with torch.autocast(source.device.type, torch.bfloat16, enabled=half):
            states = self._states(source, target[:, :-1])
            if config.fused:
                return token_loss(self.model, states, labels, self.pad_id, smoothing)[0]
            return cross_entropy(states, labels, self.pad_id, smoothing)

    def _states(self, source: Tensor, decoder_input: Tensor) -> Tensor:
        if self.config.compile:
            for ids in (source, decoder_input):
                torch._dynamo.maybe_mark_dynamic(ids, 0)
        return self.states(self.model, source, decoder_input)


def cross_entropy(
    logits: Float[Tensor, "B M V"], labels: Int64[Tensor, "B M"], pad_id: int, smoothing: float
) -> Float[Tensor, ""]:
    """Torch's smoothed cross-entropy, summed over the labels that are no padding, in fp32."""
    return F.cross_entropy(
        logits.flatten(0, 1).float(),
        labels.flatten(),
        ignore_index=pad_id,
        label_smoothing=smoothing,
        reduction="sum",
    )


def _logits(model: nn.Module, source: Tensor, decoder_input: Tensor) -> Tensor:
    return model(source, decoder_input)
