"""A trained model in the numbers that a page can be sent: matrices as int8, one file.

Each row of a matrix is rounded to whole numbers from -127 to 127 times one float32. Vectors and the
table of positions stay float32. The file is a JSON object; its `data` is base64 of all float32
numbers (vectors, positions, one factor a row), then all int8 numbers, little-endian, in the order
of `tensors`.
"""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from lab.five_minutes import Recipe
from lab.kept import Kept
from lab.page.plain import Sizes, logits, shapes
from lab.text import Tokenizer

FORMAT = 1
MOST = 3_000_000  # numbers that a page takes: some 4 MB
AGREES = 1e-3  # what float32 arithmetic in another order may differ by
POSITIONS = "positions"


@dataclass(frozen=True)
class Rounded:
    """A matrix as whole numbers, and one factor a row."""

    whole: Tensor  # int8
    factors: Tensor  # float32, one a row

    @classmethod
    def of(cls, matrix: Tensor) -> "Rounded":
        """The nearest whole numbers, the largest of each row being 127."""
        factors = matrix.abs().amax(1).clamp(min=1e-12) / 127
        return cls((matrix / factors[:, None]).round().to(torch.int8), factors)

    def matrix(self) -> Tensor:
        """The float32 numbers that the page computes with."""
        return self.whole.float() * self.factors[:, None]


def sizes_of(recipe: Recipe, model: nn.Module, pad_id: int) -> Sizes:
    """What the arithmetic must know of a model."""
    eps = getattr(next(m for m in model.modules() if hasattr(m, "gain")), "eps", 1e-5)
    return Sizes(
        recipe.d_model,
        recipe.num_layers,
        recipe.num_heads,
        recipe.d_ff,
        recipe.norm_first,
        float(eps),
        pad_id,
    )


def course_tensors(model: nn.Module, sizes: Sizes, vocabularies: tuple[int, int]) -> dict:
    """The model's tensors under the names that the page knows; tied ones under each of theirs.

    Raises:
        ValueError: if the model has others than the course's Transformer, or too many numbers.
    """
    own = {name: tensor.detach().float() for name, tensor in model.state_dict().items()}
    wanted = shapes(sizes, vocabularies)
    for name in sorted(own.keys() ^ wanted.keys()):
        whose = "has" if name in own else "lacks"
        raise ValueError(f"a page knows the course's Transformer only, and this one {whose} {name}")
    for name, shape in wanted.items():
        if tuple(own[name].shape) != shape:
            raise ValueError(
                f"a page knows {name} in shape {shape} only, here it is {tuple(own[name].shape)}"
            )
    count = sum(tensor.numel() for tensor in own.values())
    if count > MOST:
        raise ValueError(f"{count:,} numbers are too many for a page; it takes {MOST:,}")
    return {name: own[name] for name in wanted}


def held_against(
    model: nn.Module, tensors: Mapping[str, Tensor], sizes: Sizes, positions: Tensor, ids: Sequence
) -> None:
    """Refuse a model that computes something else with these tensors than the page would.

    Args:
        model: in evaluation mode.
        tensors: what `course_tensors` gave.
        sizes: of the model.
        positions: the model's table.
        ids: pairs of source and target ids, to try it with.

    Raises:
        ValueError: if the logits differ.
    """
    with torch.no_grad():
        for source, target in ids:
            given = torch.tensor([source]), torch.tensor([target])
            apart = (model(*given) - logits(tensors, sizes, positions, *given)).abs().max().item()
            if not apart < AGREES:
                raise ValueError(
                    f"this Transformer computes something else than the course's: its logits are "
                    f"up to {apart:.2g} away from the page's, which would show another model"
                )


def packed(
    kept: Kept, tensors: Mapping[str, Tensor], sizes: Sizes, positions: Tensor, **more: Any
) -> dict[str, Any]:
    """What the page's file holds; `more` are further entries."""
    floats, whole, table = [positions.flatten()], [], [[POSITIONS, list(positions.shape)]]
    aliases: dict[str, str] = {}
    first: dict[int, str] = {}
    for name, tensor in tensors.items():
        if (same := first.setdefault(tensor.data_ptr(), name)) != name:
            aliases[name] = same
            continue
        table.append([name, list(tensor.shape)])
        if tensor.dim() == 2:
            rounded = Rounded.of(tensor)
            floats.append(rounded.factors)
            whole.append(rounded.whole.flatten())
        else:
            floats.append(tensor)
    data = torch.cat(floats).numpy().astype("<f4").tobytes() + torch.cat(whole).numpy().tobytes()
    return {
        "format": FORMAT,
        "sizes": asdict(sizes),
        "source": _words(kept.source),
        "target": _words(kept.target),
        "specials": {
            "unk": kept.source.unk_id,
            "bos": kept.target.bos_id,
            "eos": kept.target.eos_id,
        }
        | {"source_bos": kept.source.bos_id, "source_eos": kept.source.eos_id},
        "tensors": table,
        "aliases": aliases,
        **more,
        "sha256": hashlib.sha256(data).hexdigest(),
        "data": base64.b64encode(data).decode(),
    }


def unpacked(content: Mapping[str, Any]) -> tuple[dict[str, Tensor], Tensor]:
    """The tensors that a page computes with, and its table of positions.

    Raises:
        ValueError: if the data are not those that were written.
    """
    data = base64.b64decode(content["data"])
    if hashlib.sha256(data).hexdigest() != content["sha256"]:
        raise ValueError("the numbers of the page are damaged")
    of_matrices = sum(_whole(name, shape) for name, shape in content["tensors"])
    floats = torch.from_numpy(np.frombuffer(data[: len(data) - of_matrices], "<f4").copy())
    whole = torch.from_numpy(np.frombuffer(data[len(data) - of_matrices :], np.int8).copy())
    tensors: dict[str, Tensor] = {}
    for name, shape in content["tensors"]:
        if taken := _whole(name, shape):
            rows = Rounded(whole[:taken].view(shape), floats[: shape[0]])
            tensors[name] = rows.matrix()
            floats, whole = floats[shape[0] :], whole[taken:]
        else:
            size = int(np.prod(shape))
            tensors[name], floats = floats[:size].view(shape), floats[size:]
    tensors |= {name: tensors[same] for name, same in content["aliases"].items()}
    return tensors, tensors.pop(POSITIONS)


def read_file(text: str) -> dict[str, Any]:
    """The content of a file that `writing.weights_script` wrote."""
    return json.loads(text[text.index("{") : text.rindex("}") + 1])


def _whole(name: str, shape: Sequence[int]) -> int:
    """How many int8 numbers a tensor takes."""
    return shape[0] * shape[1] if len(shape) == 2 and name != POSITIONS else 0


def _words(tokenizer: Tokenizer) -> list[str]:
    return tokenizer.tokens(range(len(tokenizer)))
