"""Values on the line: what goes in comes out, and what is malformed is refused in time."""

import collections
import contextlib
import decimal
import fractions
import json
import random
import struct
from typing import Any

import pytest

from autograder.bridge import wire
from autograder.bridge.wire import HEAD, Decoder, Encoder, Frame, WireError, read_frame
from autograder.common.results import Crossing, Opaque, Raised


def carried(value: Any) -> Any:
    """A value after it has crossed."""
    frame = Frame()
    frame.tree = Encoder(frame).node(value)
    return Decoder(received(b"".join(bytes(piece) for piece in frame.pieces()))).value(
        received(b"".join(bytes(piece) for piece in frame.pieces())).tree
    )


def received(raw: bytes) -> Frame:
    """A frame from its bytes."""
    left = bytearray(raw)

    def read(size: int) -> bytes:
        if size > len(left):
            raise EOFError
        part = bytes(left[:size])
        del left[:size]
        return part

    return read_frame(read)


def decoded(tree: Any, *buffers: bytes) -> Any:
    """What a hostile tree gives."""
    return Decoder(Frame(tree, list(buffers))).value(tree)


PLAIN = [
    *(None, True, False, 0, -1, 2**63 - 1, -(2**63), 2**63, -(2**200), 1.5, -0.0, float("inf")),
    *("", "a\0b", "\ud800", "é𝄞", b"", b"\0\xff", bytearray(b"ab"), 1 + 2j, ..., NotImplemented),
    *((), (1,), ((), [], {}), [1, [2, [3]]], {"a": [1]}, {1: 2, (1, 2): 3, None: 4}),
    *({1, 2}, frozenset(["a"]), range(2, 20, 3), range(10**15), slice(1, None, -2)),
    *(collections.Counter("abca"), collections.deque([1, 2]), collections.OrderedDict(b=1, a=2)),
    *(fractions.Fraction(-3, 7), decimal.Decimal("1.50"), decimal.Decimal("-Infinity")),
    *(Opaque("function", "f"), Raised("KeyError", "'x'", 3, "cell", ("KeyError",))),
    Crossing("f", (1,), [2], ("list",)),
]


@pytest.mark.parametrize("value", PLAIN, ids=repr)
def test_a_plain_value_arrives_as_it_was(value: Any) -> None:
    arrived = carried(value)
    assert arrived == value
    assert type(arrived) is type(value)


def test_minus_zero_and_nan_keep_their_bits() -> None:
    assert str(carried(-0.0)) == "-0.0"
    assert str(carried([float("nan")])) == "[nan]"


def test_the_order_of_a_dictionary_is_kept() -> None:
    assert list(carried({"b": 1, "a": 2, "c": 3})) == ["b", "a", "c"]


def test_what_is_one_object_stays_one_object() -> None:
    inner: list[int] = [1]
    arrived = carried([inner, inner, {"x": inner}])
    assert arrived[0] is arrived[1] is arrived[2]["x"]


HOLDERS: list[Any] = [collections.deque([1]), collections.Counter("a"), collections.defaultdict()]
HOLDERS += [collections.OrderedDict(a=1), bytearray(b"a"), [1], {1: 2}, {1}]


@pytest.mark.parametrize("value", HOLDERS, ids=lambda value: type(value).__name__)
def test_whatever_can_be_changed_stays_one_object(value: Any) -> None:
    arrived = carried([value, (value,)])
    assert arrived[0] is arrived[1][0]
    assert (arrived[0], type(arrived[0])) == (value, type(value))


def test_a_bounded_queue_arrives_as_one() -> None:
    arrived = carried(collections.deque([1, 2, 3], maxlen=2))
    assert (list(arrived), arrived.maxlen) == ([2, 3], 2)
    own: Any = collections.deque()
    own.append(own)
    arrived = carried(own)
    assert arrived[0] is arrived


def test_a_list_that_holds_itself_arrives() -> None:
    value: list[Any] = [1]
    value.append(value)
    arrived = carried(value)
    assert arrived[1] is arrived


def test_what_is_not_known_is_refused() -> None:
    with pytest.raises(WireError, match="object cannot be handed over"):
        carried(object())


def test_too_deep_a_value_is_refused_where_it_is_made() -> None:
    value: list[Any] = []
    for _ in range(200):
        value = [value]
    with pytest.raises(WireError, match="nested too deeply"):
        carried(value)


# --- malformed --------------------------------------------------------------------------------

MALFORMED = [
    {},
    [],
    [[]],
    [{}],
    ["?"],
    [None],
    [["T"]],
    [1, 2],
    [True],
    ["R"],
    ["R", 0],
    ["R", -1],
    ["R", True],
    ["R", "0"],
    ["T", {}],
    ["L", ["R", 5]],
    ["D", 1],
    ["D", ["L"], 1],
    ["S", ["L"]],
    ["I", 5],
    ["I", "x"],
    ["I", "f" * 100_001],
    ["I"],
    ["B", 0],
    ["B", -1],
    ["B", None],
    ["BA"],
    ["C", 1],
    ["C", "1", 2],
    ["G", 1],
    ["G", 1, 2, 0],
    ["G", 1.5, 2, 1],
    ["SL", 1, 2, 3, 4],
    ["FS", ["L"]],
    ["CN", 1],
    ["OD", 1],
    ["CN", ["L"], 1],
    ["O"],
    ["O", "Frame"],
    ["O", "Raised"],
    ["O", ["L"], 1],
    2**70,
    ["L", 10**50],
    ["FR", 1, 0],
    ["FR", 1],
    ["FR", "1/2", 1],
    ["FR", 1, 2, 3],
    ["DC", "zz"],
    ["DC", 1],
    ["DC"],
    ["DC", "1" * 100_001],
    ["C", 1, 2, 3],
    ["DQ", {}],
    ["DQ"],
    ["DQ", -1],
    ["DQ", True, 1],
    ["DQ", 1.0],
    ["DQ", 2**63],
    ["DQ", "1"],
    ["DD"],
    ["DD", 5],
    ["DD", True],
    ["DD", ["L"]],
    ["DD", None, 1],
    ["OD", ["L"], 1],
    [["L"], 1],
]


@pytest.mark.parametrize("tree", MALFORMED, ids=lambda tree: json.dumps(tree)[:40])
def test_a_malformed_part_is_refused(tree: Any) -> None:
    with pytest.raises(WireError):
        decoded(tree)


def test_a_tree_as_deep_as_it_gets_is_refused() -> None:
    for depth in (200, 5000, 1_000_000):
        text = b'["L",' * depth + b"1" + b"]" * depth
        with pytest.raises(WireError):
            frame = received(HEAD.pack(len(text), 0) + text)
            Decoder(frame).value(frame.tree)


def test_lengths_that_are_too_large_are_refused_before_anything_is_read() -> None:
    for head in (
        HEAD.pack(2**32 - 1, 0),
        HEAD.pack(1, 2**32 - 1),
        HEAD.pack(1, 1) + struct.pack("!Q", 2**63),
        HEAD.pack(1, 2) + struct.pack("!2Q", 2**64 - 1, 2**64 - 1),
    ):
        with pytest.raises(WireError, match="larger than allowed"):
            received(head)


def test_what_is_no_text_is_refused() -> None:
    for text in (b"\xff\xfe", b"[1,", b"9" * 5000, b"", b'{"a":}'):
        with pytest.raises(WireError, match="no readable text"):
            received(HEAD.pack(len(text), 0) + text)


@pytest.mark.parametrize("text", ['"\u00e9"'.encode(), b"\xef\xbb\xbf1", b"1 2", b"1\n", b""])
def test_a_tree_is_one_text_in_ascii_and_nothing_else(text: bytes) -> None:
    with pytest.raises(WireError, match="no readable text"):
        received(HEAD.pack(len(text), 0) + text)


def test_a_buffer_cannot_be_used_twice() -> None:
    with pytest.raises(WireError, match="twice"):
        decoded(["L", ["B", 0], ["B", 0]], b"abc")


def test_a_list_cannot_be_multiplied_by_references() -> None:
    tree: list[Any] = ["L", *[1] * 1000]
    for _ in range(10):  # each level holds the one below a thousand times
        tree = ["L", tree]
    bomb: list[Any] = ["L", ["L", *[1] * 1000]]
    for place in range(1, 12):
        bomb.append(["L", *[["R", place]] * 1000])
    with pytest.raises(WireError, match="too many parts"):
        decoded(bomb)
    assert decoded(tree)[0][0] is not None


def test_a_decimal_number_of_an_answer_that_no_memory_holds_as_an_integer_is_refused() -> None:
    for text in ("1E+999999999", "1E-999999999"):
        wary = Decoder(Frame(["DC", text]))
        wary.is_wary = True
        with pytest.raises(WireError, match="too long"):
            wary.value(wary.frame.tree)
    for text in ("NaN", "-Infinity", "0.1", "1E+300"):
        assert str(decoded(["DC", text])) == text


def test_a_message_of_brackets_alone_is_refused_before_it_is_read() -> None:
    text = b"[" + b"[]," * 4_500_000 + b"[]]"
    with pytest.raises(WireError, match="too many parts"):
        received(HEAD.pack(len(text), 0) + text)


def test_a_long_range_of_an_answer_is_refused() -> None:
    tree = ["G", 0, 10**12, 1]
    wary = Decoder(Frame(tree))
    wary.is_wary = True
    with pytest.raises(WireError, match="too long"):
        wary.value(tree)
    assert len(decoded(tree)) == 10**12


def test_keys_made_to_collide_do_not_stop_the_clock() -> None:
    class Impatient(Decoder):
        asked = 0

        def mind_the_clock(self) -> None:
            self.asked += 1
            if self.asked > 2:
                raise TimeoutError

    prime = 2**61 - 1  # all its multiples have the same hash
    keys = [["I", hex(prime * number)] for number in range(100, 5000)]
    for tag, parts in (("S", keys), ("D", [x for key in keys for x in (key, 1)]), ("FS", keys)):
        tree = [tag, *parts]
        with pytest.raises(TimeoutError):
            Impatient(Frame(tree)).value(tree)


def test_flipped_bits_give_a_value_or_a_refusal_and_nothing_else() -> None:
    draw = random.Random(4)
    frame = Frame()
    frame.tree = Encoder(frame).node(PLAIN[:-3])
    raw = b"".join(bytes(piece) for piece in frame.pieces())
    for _ in range(6000):
        broken = bytearray(raw)
        for _ in range(draw.randrange(1, 4)):
            broken[draw.randrange(len(broken))] ^= 1 << draw.randrange(8)
        with contextlib.suppress(WireError, EOFError):
            got = received(bytes(broken))
            Decoder(got).value(got.tree)


def test_trees_of_all_tags_give_a_value_or_a_refusal_and_nothing_else() -> None:
    draw = random.Random(5)
    tags = ["R", "T", "L", "D", "S", "I", "B", "BA", "C", "FS", "G", "SL", "E", "NI", "FR", "DC"]
    tags += ["CN", "OD", "DQ", "DD", "O", "?"]
    words = ["", "1", "zz", "ff", "-0x1", "NaN", "1e5", "Raised", "Opaque", "\ud800"]
    leaves = [*words, None, True, 0, 1, -1, 3, 2**62, 2**70, 0.5, float("nan"), {}]

    def tree(depth: int) -> Any:
        if not depth or draw.random() < 0.3:
            return draw.choice(leaves)
        return [draw.choice(tags), *(tree(depth - 1) for _ in range(draw.randrange(4)))]

    for _ in range(20_000):
        made = tree(4)
        with contextlib.suppress(WireError):
            decoded(made, b"", b"abcd")


def test_limits_hold_for_what_is_sent_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "MAX_BYTES", 100)
    with pytest.raises(WireError, match="too large"):
        carried(bytes(101))
