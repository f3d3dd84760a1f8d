"""Digits that people wrote: 1,797 grey pictures of 8 x 8 pixels, and which digit each one is.

Data: E. Alpaydin and C. Kaynak, "Optical Recognition of Handwritten Digits", UCI Machine Learning
Repository (1998), https://doi.org/10.24432/C50P49, under CC BY 4.0. It is the part for tests, which
scikit-learn brings along too; the library itself offers answers to many questions, and stays out.
"""

from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

_FILE = Path(__file__).with_name("digits.npz")
_WHITE = 16  # the largest number of a pixel in the file


def handwritten() -> tuple[Float[Tensor, "n 1 8 8"], Int[Tensor, "n"]]:
    """The pictures, pixels from 0 to 1, and the digits."""
    with np.load(_FILE) as data:
        pictures = torch.from_numpy(data["images"]).unsqueeze(1) / _WHITE
        return pictures, torch.from_numpy(data["answers"]).long()
