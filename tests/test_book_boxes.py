"""Quizzes as they are written, and pictures made lighter."""

import io
import re

import pytest
from PIL import Image, ImageChops, ImageDraw, ImageStat

from tests.book_code import boxes, pictures

QUIZ = ["- [ ] One", "  : Too few.", "- [x] Two", "  : Right. As many as", "    there are."]


def test_a_quiz_is_read_with_its_verdicts():
    one, two = boxes.read_options(QUIZ)
    assert (one.right, one.text, one.verdict) == (False, "One", "Too few.")
    assert (two.right, two.verdict) == (True, "Right. As many as there are.")


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (QUIZ[:2], "at least two answers, exactly one marked"),
        ([*QUIZ, "- [x] Three", "  : Also."], "exactly one marked"),
        ([QUIZ[0], *QUIZ[2:]], "the answer 'One' has no verdict"),
        (["Text", *QUIZ], "'Text' stands before the first answer"),
        ([*QUIZ, "* Three"], "is neither an answer"),
        ([*QUIZ, "  : Also."], "'  : Also.' is a second verdict"),
    ],
)
def test_a_quiz_that_is_not_written_so_is_refused(lines: list[str], says: str):
    with pytest.raises(ValueError, match=re.escape(says)):
        boxes.read_options(lines)


def drawn(kind: str) -> Image.Image:
    """A drawing, a smooth gradient or a drawing on nothing, 120 by 90."""
    if kind == "gradient":
        red, green = Image.linear_gradient("L"), Image.radial_gradient("L")
        blue = red.rotate(90)
        return Image.merge("RGB", (red, green, blue)).resize((120, 90))
    paper = (255, 255, 255, 0 if kind == "transparent" else 255)
    picture = Image.new("RGBA", (120, 90), paper)
    pencil = ImageDraw.Draw(picture)
    for n in range(0, 90, 6):
        pencil.line((0, n, 119, 89 - n), fill=(n, 120, 255 - n, 255), width=3)
    return picture.resize((240, 180), Image.Resampling.BICUBIC)


def png(picture: Image.Image) -> bytes:
    held = io.BytesIO()
    picture.save(held, "PNG")
    return held.getvalue()


def test_a_drawing_becomes_lighter_and_looks_the_same():
    before = png(drawn("drawing"))
    after = pictures.lighter(before)
    assert len(after) < 0.7 * len(before)
    with Image.open(io.BytesIO(before)) as one, Image.open(io.BytesIO(after)) as two:
        assert one.size == two.size
        difference = ImageChops.difference(one.convert("RGB"), two.convert("RGB"))
    assert max(ImageStat.Stat(difference).mean) <= pictures.MEAN_ERROR
    assert pictures.lighter(after) == after


@pytest.mark.parametrize("kind", ["gradient", "transparent"])
def test_a_picture_that_would_look_different_stays(kind: str):
    before = png(drawn(kind))
    assert pictures.lighter(before) == before
