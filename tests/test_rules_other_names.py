"""What a chapter's question forbids is stopped under the names by which torch offers it, too."""

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from autograder.bridge.watch import Forbidden, Watch
from autograder.judge.rules import read_rules

SOLUTIONS = Path(__file__).parent.parent / "solutions"
ATEN = torch.ops.aten
ONE, NONE = [1, 1], [0, 0]
PICTURE, KERNEL = torch.ones(1, 1, 3, 3), torch.ones(1, 1, 2, 2)
SOLID, CORE = PICTURE[:, :, None], KERNEL[:, :, None]
TOKENS, MEAN = torch.ones(3, 4, 1), torch.ones(3, 1)
SQUARE = torch.eye(3) * 2

CALLS: dict[tuple[str, str], dict[str, Callable[[], Any]]] = {
    ("13_pictures", "hard-attention"): {
        "thnn": lambda: ATEN.thnn_conv2d(PICTURE, KERNEL, [2, 2], None, ONE, NONE),
        "slow_conv2d": lambda: ATEN._slow_conv2d_forward(
            PICTURE, KERNEL, [2, 2], None, ONE, NONE
        ),
        "slow_conv3d": lambda: ATEN.slow_conv3d(SOLID, CORE, [1, 2, 2], None),
        "dilated": lambda: ATEN.slow_conv_dilated2d(PICTURE, KERNEL, [2, 2], None),
        "transposed": lambda: ATEN.slow_conv_transpose2d(PICTURE, KERNEL, [2, 2], None),
        "backward": lambda: ATEN.convolution_backward(
            KERNEL, PICTURE, KERNEL, None, ONE, NONE, ONE, False, NONE, 1, [True] * 3
        ),
    },
    ("05_layer_norm", "norm-backward"): {
        "group": lambda: ATEN.native_group_norm_backward(
            TOKENS, TOKENS, MEAN, MEAN, None, 3, 4, 1, 1, [True, False, False]
        ),
        "batch": lambda: ATEN.native_batch_norm_backward(
            TOKENS, TOKENS, None, None, None, MEAN[:1, 0].expand(4), MEAN[:1, 0].expand(4),
            True, 1e-5, [True, False, False],
        ),
    },
    ("02_positional_encoding", "shift-matrix"): {
        "inv_ex": lambda: torch.linalg.inv_ex(SQUARE),
        "tensorinv": lambda: torch.linalg.tensorinv(SQUARE, ind=1),
        "cholesky": lambda: torch.cholesky_inverse(SQUARE),
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("question", "name"), [(where, name) for where, calls in CALLS.items() for name in calls]
)
def test_a_forbidden_computation_has_no_name_that_is_allowed(
    question: tuple[str, str], name: str
) -> None:
    chapter, id = question
    watch = Watch(_forbidden(chapter, id))
    try:
        with pytest.raises(Forbidden):
            CALLS[question][name]()
    finally:
        watch.end()
    CALLS[question][name]()


def _forbidden(chapter: str, id: str) -> tuple[str, ...]:
    path = SOLUTIONS / chapter / "rules.toml"
    questions = tomllib.loads(path.read_text(encoding="utf-8"))
    return read_rules(path, chapter, questions).for_question(id).operations_forbidden
