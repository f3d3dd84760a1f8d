"""Drawings of two things, one left of the other, with captions, from a seed.

All that is true of a drawing is known, and so is what a caption of it must cost: nobody who sees
the drawing can guess better than the coin that decides how the caption begins.
"""

import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import SupportsInt

import torch
from jaxtyping import Float, Int
from torch import Tensor

COLOURS = {"red": (0.9, 0.2, 0.2), "green": (0.2, 0.75, 0.3), "blue": (0.25, 0.35, 0.95)}
SHAPES = {  # 6 rows of 6 pixels
    "square": ("######",) * 6,
    "ring": ("######", "######", "##..##", "##..##", "######", "######"),
    "cross": ("..##..", "..##..", "######", "######", "..##..", "..##.."),
}
SIZE = 6  # pixels, of a thing's sides
HEIGHT, WIDTH = 16, 24
APART = 4  # pixels at least, from one thing's columns to the other's
GROUND, NOISE = 0.0, 0.05  # what is around the things; how much each pixel differs by chance
LEFT_FIRST = 0.75  # how often a caption begins with the thing on the left

BOS, EOS = "<bos>", "<eos>"
WORDS = (BOS, EOS, "a", *COLOURS, *SHAPES, "left", "right", "of")
LENGTH = 10  # words of a caption, with BOS and EOS

QUESTIONS = {  # what a classifier is asked: which colour and which shape is missing, who is left
    "colour": tuple(COLOURS),
    "shape": tuple(SHAPES),
    "left of": ("the first colour is right", "the first colour is left"),
}


@dataclass(frozen=True)
class Drawings:
    """Some drawings, what is true of them, and what was said about them.

    Args:
        pictures: red, green and blue of each pixel, about 0 to 1.
        answers: for each drawing and each of `QUESTIONS`, the number of its right answer.
        captions: ids of `WORDS`, from `<bos>` to `<eos>`.
    """

    pictures: Float[Tensor, "B 3 height width"]
    answers: Int[Tensor, "B questions"]
    captions: Int[Tensor, "B words"]


def drawings(count: int, seed: int) -> Drawings:
    """Make so many; all colours and shapes are equally likely, the two things differ in both."""
    rng = random.Random(seed)
    noise = torch.randn(count, 3, HEIGHT, WIDTH, generator=torch.Generator().manual_seed(seed))
    pictures = GROUND + NOISE * noise
    answers, captions = [], []
    for picture in pictures:
        colours, shapes = rng.sample(list(COLOURS), 2), rng.sample(list(SHAPES), 2)
        start = rng.randint(0, WIDTH - 2 * SIZE - APART)
        columns = start, rng.randint(start + SIZE + APART, WIDTH - SIZE)
        for colour, shape, column in zip(colours, shapes, columns, strict=True):
            _draw(picture, colour, shape, rng.randint(0, HEIGHT - SIZE), column)
        answers.append(_answers(colours, shapes))
        left, right = (f"a {c} {s}" for c, s in zip(colours, shapes, strict=True))
        begins_left = rng.random() < LEFT_FIRST
        said = f"{left} left of {right}" if begins_left else f"{right} right of {left}"
        captions.append(encode(f"{BOS} {said} {EOS}"))
    return Drawings(
        pictures,
        torch.tensor(answers, dtype=torch.int64).view(count, len(QUESTIONS)),
        torch.stack(captions) if captions else torch.empty(0, LENGTH, dtype=torch.int64),
    )


def encode(text: str) -> Int[Tensor, "n"]:
    """The ids of a caption's words."""
    return torch.tensor([WORDS.index(word) for word in text.split()])


def decode(ids: Iterable[SupportsInt]) -> str:
    """The words with these ids up to `<eos>`; `<bos>` is left out."""
    words = [WORDS[int(i)] for i in ids]
    end = words.index(EOS) if EOS in words else len(words)
    return " ".join(word for word in words[:end] if word != BOS)


def is_true(caption: str, drawing: int, of: Drawings) -> bool:
    """Whether a caption says of a drawing what is so, from the left or from the right."""
    left, between, right = _said(decode(of.captions[drawing]))
    turned = {"left of": "right of", "right of": "left of"}[between]
    return caption in (f"{left} {between} {right}", f"{right} {turned} {left}")


def _said(caption: str) -> tuple[str, str, str]:
    """The three parts of a caption: one thing, where it is, the other."""
    words = caption.split()
    return " ".join(words[:3]), " ".join(words[3:5]), " ".join(words[5:])


def _draw(picture: Tensor, colour: str, shape: str, row: int, column: int) -> None:
    inside = torch.tensor([[pixel == "#" for pixel in line] for line in SHAPES[shape]])
    there = picture[:, row : row + SIZE, column : column + SIZE]
    change = torch.tensor(COLOURS[colour]).view(3, 1, 1) - GROUND
    there += change * inside


def _answers(colours: list[str], shapes: list[str]) -> tuple[int, int, int]:
    """The missing colour, the missing shape, and whether the colour that comes first is left."""
    order, forms = list(COLOURS), list(SHAPES)
    missing = next(i for i, colour in enumerate(order) if colour not in colours)
    absent = next(i for i, shape in enumerate(forms) if shape not in shapes)
    return missing, absent, int(order.index(colours[0]) < order.index(colours[1]))
