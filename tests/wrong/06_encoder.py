"""Wrong answers to the exercise on the encoder that nobody gets a name for; all must lose."""

import torch

from lab.answers import variant


@variant("encoder", target="Encoder.forward")
def norm_in_training_only(self, x, mask=None):
    for layer in self.layers:
        x = layer(x, mask)
    return self.norm(x) if self.norm is not None and self.training else x


@variant("padding-leak")
def first_feature_only(encode, x, lengths):
    real = torch.arange(x.shape[1]) < lengths[:, None]
    changed = torch.where(real[..., None], x, torch.randn_like(x))
    difference = encode(x, real[:, None, :]) - encode(changed, real[:, None, :])
    return difference[real][:, 0].abs().max().item()


@variant("padding-leak")
def largest_with_its_sign(encode, x, lengths):
    real = torch.arange(x.shape[1]) < lengths[:, None]
    changed = torch.where(real[..., None], x, torch.randn_like(x))
    difference = encode(x, real[:, None, :]) - encode(changed, real[:, None, :])
    return difference[real].max().item()


@variant("padding-leak")
def first_column_of_the_padding_only(encode, x, lengths):
    positions = torch.arange(x.shape[1])
    real = positions < lengths[:, None]
    first = positions == lengths[:, None]
    changed = torch.where(first[..., None], torch.randn_like(x), x)
    difference = encode(x, real[:, None, :]) - encode(changed, real[:, None, :])
    return difference[real].abs().max().item()
