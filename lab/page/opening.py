"""What a page shows of a model before the model is loaded: one sentence, and one head's look."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from lab.page.plain import Sizes, logits
from lab.text import Tokenizer

CROSS = "cross_attention"


def opening(
    sentence: str,
    tokenizers: tuple[Tokenizer, Tokenizer],
    tensors: Mapping[str, Tensor],
    sizes: Sizes,
    positions: Tensor,
) -> dict[str, Any]:
    """A sentence, its greedy translation with probabilities, and the cross-attention worth seeing.

    `chosen` is the word whose look crosses most of the others': there the order of words differs.
    """
    source, target = tokenizers
    ids, written, shares = torch.tensor([source.encode(sentence)]), [target.bos_id], []
    maps: dict[str, Tensor] = {}
    while len(written) < len(positions) and written[-1] != target.eos_id:
        given = ids, torch.tensor([written])
        chances = logits(tensors, sizes, positions, *given, maps)[0, -1].softmax(-1)
        written.append(int(chances.argmax()))
        shares.append(round(chances.max().item(), 3))
    layer, head, weights = _telling({n: m[0] for n, m in maps.items() if n.endswith(CROSS)})
    places = weights.argmax(-1)[:-1]
    far = (places - 1 - torch.arange(len(places))).abs()
    far[(places == 0) | (places == ids.shape[1] - 1)] = 0  # the ends are no words
    return {
        "sentence": sentence,
        "kind": "cross",
        "layer": layer,
        "head": head,
        "chosen": int(far.argmax()) if len(far) else 0,
        "english": source.tokens(ids[0]),
        "french": target.tokens(written[1:]),
        "shares": shares,
        "weights": [[round(one, 3) for one in row] for row in weights.tolist()],
    }


def _telling(maps: Mapping[str, Tensor]) -> tuple[int, int, Tensor]:
    """Layer, head and weights (n, m) of the head that is sharpest on most different words."""

    def worth(weights: Tensor) -> float:
        different = len(set(weights.argmax(-1).tolist())) / len(weights)
        return weights.amax(-1).mean().item() * different

    heads = [
        (layer, head, weights)
        for layer, of_layer in enumerate(maps.values())
        for head, weights in enumerate(of_layer)
    ]
    return max(heads, key=lambda one: worth(one[2]))
