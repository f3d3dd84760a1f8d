"""What students run with their own parts to look at: it is right, and changes nothing."""

from typing import Any

import torch
from torch import nn

from lab.blocks import MultiHeadAttention
from lab.own import HELD_OUT, Reader, learning_curve, reversing_map, role_sentences


def test_the_roles_stand_where_they_are_said_to():
    sentences = role_sentences(40)
    for sentence, places in sentences.items():
        words = ["<bos>", *sentence.split()]
        assert len(words) > max(places) and places[0] + 1 == places[1] < places[2]
        assert words[-1] == "." and words[places[2] + 1] == "."
    assert list(role_sentences(40)) == list(sentences)


def test_a_reader_learns_and_its_heads_are_only_switched_off_to_look():
    torch.manual_seed(0)
    reader = Reader(MultiHeadAttention(12, 2), count=HELD_OUT + 100)
    before = reader.right()
    reader.learn(steps=60)
    after = reader.right()
    assert sum(after) > sum(before) + 0.5
    kept = reader.attention.w_o.weight.clone()
    assert reader.right(off=0) != after and reader.right() == after
    assert torch.equal(reader.attention.w_o.weight, kept)
    words, weights = reader.looks("the old king helps this queen .")
    assert weights.shape == (2, len(words)) and words[3] == "king"


def test_a_stack_that_looks_back_learns_what_one_without_cannot():
    def looks_back(x: torch.Tensor, parts: nn.ModuleList) -> torch.Tensor:
        return parts[0](x.roll(2, dims=1))

    def alone(x: torch.Tensor, parts: nn.ModuleList) -> torch.Tensor:
        return parts[0](x)

    found = {}
    for stack in (looks_back, alone):
        torch.manual_seed(0)
        found[stack] = learning_curve(stack, nn.ModuleList([nn.Linear(8, 8)]), steps=200, width=8)
    assert found[looks_back][-1] < found[alone][-1] - 0.5


class OneLayer(nn.Module):
    """A decoder of one cross-attention, and of a vector for each place."""

    def __init__(self) -> None:
        super().__init__()
        layer: Any = nn.Module()
        layer.cross_attention = MultiHeadAttention(16, 2)
        self.layers: Any = nn.ModuleList([layer])

    def forward(self, x: torch.Tensor, memory: torch.Tensor, *_: object) -> torch.Tensor:
        attend = self.layers[0].cross_attention
        return attend(x, memory, memory)[0]


def test_the_map_of_a_decoder_is_that_of_its_cross_attention():
    torch.manual_seed(0)
    decoder = OneLayer()
    right, found = reversing_map(decoder, steps=3, width=16)
    assert 0 <= right <= 1 and found.shape == (2, 6, 6)
    assert torch.allclose(found.sum(-1), torch.ones(2, 6))
    hooks = decoder.layers[0].cross_attention._forward_hooks
    assert not hooks, "the hook is taken away again"
