"""What `urllib.parse` finds in an address, between the two ends."""

import urllib.parse
from typing import Any

import pytest

from autograder.bridge.errors import value_of
from autograder.bridge.wire import WireError

ADDRESS = "https://me@here:81/a;b?c#d"


@pytest.mark.parametrize("way", ["urlparse", "urlsplit", "urldefrag"])
def test_an_address_tells_its_parts(answer: Any, way: str) -> None:
    names = answer(
        f"from urllib.parse import {way} as read\ndef same(x): return x, x == read({ADDRESS!r})"
    )
    right: Any = getattr(urllib.parse, way)(ADDRESS)
    for got in (names.read(ADDRESS), names.same(right)[0]):
        assert got == right and type(got) is type(right) and got.geturl() == ADDRESS
    assert names.same(right)[1] is True
    if way != "urldefrag":
        assert (got.hostname, got.port, got.username) == ("here", 81, "me")


@pytest.mark.parametrize("parts", [["a"], [*"abcdefg"], [*"abcde", 5], [*"abcde", ["L"]], []])
def test_an_address_is_made_of_its_texts_alone(parts: list[Any]) -> None:
    with pytest.raises(WireError):
        value_of(["V", "ParseResult", *parts])
