"""Words from picture to picture are counted right, and no chapter has too many without one."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import pytest

from tests.picture_gaps import BOOK, MOST, chapters, gaps

IMPORTS = """
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from lab import plots
from lab.blocks import Encoder, EncoderLayer, LayerNorm
"""

PAGE = """---
kernelspec: {name: python3}
---

# One

Three short words.

```{code-cell} python
:tags: [hide-input]
image = "figure: these are no words"
```

```{trap} A title
*One often reads* this.
```

```{dropdown} Answer
folded away
```

```{code-cell} python
---
mystnb:
  image:
    alt: "A line."
---
plt.show()
```

## Two

Five words with $x = y$ only {term}`here`.

```{anywidget} explorers/one.mjs
{"words": ["a"]}
```

    indented code

| a | table |

## Check yourself

What is asked is not counted.
"""


def test_words_are_counted_from_picture_to_picture():
    assert [(one.words, one.heading) for one in gaps(PAGE)] == [(7, "One"), (5, "One"), (0, "Two")]


def test_a_gap_begins_on_the_line_of_its_picture():
    lines = PAGE.splitlines()
    for one in gaps(PAGE)[1:]:
        assert lines[one.line - 1].startswith("```{")


def test_a_picture_s_options_may_stand_in_one_line():
    page = "One.\n```{code-cell} python\n---\nmystnb: {image: {alt: x}}\n---\n```\nTwo words.\n"
    assert [one.words for one in gaps(page)] == [1, 2]


@pytest.mark.parametrize("page", chapters(), ids=lambda page: page.stem)
def test_no_chapter_has_too_many_words_without_a_picture(page: Path):
    longest = max(one.words for one in gaps(page.read_text(encoding="utf-8")))
    assert longest <= MOST, "python -m tests.picture_gaps shows where"


def test_gradient_against_depth_has_what_its_picture_argues_with():
    """Chapter 6: both orders, every layer, named axes that begin at 0."""
    text = (BOOK / "06_encoder.md").read_text(encoding="utf-8")
    cells = re.findall(r"^```\{code-cell\} python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    known: dict[str, Any] = {"plt": SimpleNamespace(show=lambda: None)}
    exec(IMPORTS, known)
    for sign in ("def gradients", "by_layer, "):
        (cell,) = (one for one in cells if sign in one)
        exec(cell.rpartition("---\n")[2], known)
    ax = known["ax"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("layer", "norm of the gradient")
    assert ax.get_ylim()[0] == 0
    assert [line.get_label() for line in ax.get_lines()] == ["post-norm", "pre-norm"]
    post, pre = (line.get_ydata() for line in ax.get_lines())
    assert len(post) == len(pre) == 24
    assert pre[-1] < 0.7 * pre[0] < post[-1]
    plt.close("all")
