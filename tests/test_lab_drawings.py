"""The drawings: what their captions and answers say is what they show."""

import math
from collections import Counter

import torch

from lab.drawings import (
    APART,
    COLOURS,
    HEIGHT,
    LEFT_FIRST,
    LENGTH,
    QUESTIONS,
    SHAPES,
    SIZE,
    WIDTH,
    WORDS,
    decode,
    drawings,
    encode,
    is_true,
)

SOME = drawings(400, seed=3)


def things(number: int) -> list[tuple[int, str]]:
    """The column and the colour of each thing, by the pixels."""
    picture, found = SOME.pictures[number], []
    for name, colour in COLOURS.items():
        alike = (picture - torch.tensor(colour).view(3, 1, 1)).abs().amax(0) < 0.25
        if alike.sum() >= 16:
            found.append((int(alike.any(0).nonzero()[0]), name))
    return sorted(found)


def test_a_caption_names_the_colours_from_one_side_to_the_other():
    for number, ids in enumerate(SOME.captions):
        words = decode(ids).split()
        named = [word for word in words if word in COLOURS]
        shown = [name for _, name in things(number)]
        assert named == (shown if "left" in words else shown[::-1])


def test_the_things_stand_apart_and_inside():
    for number in range(len(SOME.pictures)):
        (left, _), (right, _) = things(number)
        assert right - left >= SIZE + APART - 2  # a cross's first column is its third
        assert left >= 0 and right <= WIDTH - 2
    assert SOME.pictures.shape == (400, 3, HEIGHT, WIDTH)


def test_answers_are_those_of_the_caption():
    for answers, ids in zip(SOME.answers.tolist(), SOME.captions, strict=True):
        words = decode(ids).split()
        colours = [word for word in words if word in COLOURS]
        shapes = [word for word in words if word in SHAPES]
        assert list(COLOURS)[answers[0]] not in colours
        assert list(SHAPES)[answers[1]] not in shapes
        left = colours[0] if "left" in words else colours[1]
        assert answers[2] == int(left == min(colours, key=list(COLOURS).index))
    assert [int(column.max()) + 1 for column in SOME.answers.T] == [
        len(known) for known in QUESTIONS.values()
    ]


def test_shapes_are_six_by_six_and_differ():
    assert len(set(SHAPES.values())) == len(SHAPES)
    for lines in SHAPES.values():
        assert len(lines) == SIZE and {len(line) for line in lines} == {SIZE}


def test_chance_draws_as_often_as_it_says():
    many = drawings(3000, seed=4).captions
    words = [decode(ids).split() for ids in many]
    first = sum("left" in said for said in words) / len(words)
    assert abs(first - LEFT_FIRST) < 4 * math.sqrt(LEFT_FIRST * (1 - LEFT_FIRST) / len(words))
    scenes = Counter(" ".join(said) for said in words if "left" in said)
    assert len(scenes) == 36


def test_the_same_seed_gives_the_same_drawings():
    again = drawings(5, seed=3)
    assert torch.equal(again.captions, SOME.captions[:5])
    assert not torch.equal(drawings(5, seed=5).captions, again.captions)
    assert len(drawings(0, seed=1).captions) == 0


def test_words_become_ids_and_words_again():
    assert SOME.captions.shape == (400, LENGTH)
    assert decode(encode("<bos> a red ring <eos> left")) == "a red ring"
    assert len(set(WORDS)) == len(WORDS)


def test_a_caption_is_true_from_the_left_and_from_the_right():
    caption = decode(SOME.captions[0])
    words = caption.split()
    side = {"left": "right", "right": "left"}[words[3]]
    turned = " ".join([*words[5:], side, "of", *words[:3]])
    assert is_true(caption, 0, SOME) and is_true(turned, 0, SOME)
    assert not is_true(" ".join([*words[:3], side, *words[4:]]), 0, SOME)
    assert not is_true("", 0, SOME)
