"""Values of Python's own library on the line: dates, named tuples, paths, wrapped lists and so on.

What crosses is plain data under a name of `_WRITERS`. What is read is made new, by the one
constructor that belongs to the name, from parts of which each is checked first.
"""

import argparse
import array
import collections
import dataclasses
import datetime
import decimal
import fractions
import inspect
import keyword
import math
import pathlib
import re
import types
import typing
import unicodedata
import urllib.parse
import uuid
import zoneinfo
from collections.abc import Callable, ItemsView, Iterable, KeysView, ValuesView
from typing import Any

from autograder.bridge import hints, signatures
from autograder.bridge.wire import Decoder, Encoder, WireError

MAX_FIELDS = 100  # of a named tuple
MAX_NAME = 100
_ZONE = re.compile(r"[A-Za-z][A-Za-z0-9_+-]{0,40}(/[A-Za-z0-9_+-]{1,40}){0,3}")
MAX_NAMED = 500  # classes of named tuples in one test, each with functions of its own
MAX_PATTERN = 1000  # characters of one that stands where a text is due
MAX_MAPS = 1000  # in a chain: looking up a key takes a step for each
ADDRESSES = (urllib.parse.ParseResult, urllib.parse.SplitResult, urllib.parse.DefragResult)
CODES = "bBhHiIlLqQfd"  # of an array's numbers; not "u", whose numbers may be no characters
HOLDERS = (
    *(collections.UserDict, collections.UserList, collections.UserString, collections.ChainMap),
    *(types.MappingProxyType, types.SimpleNamespace, argparse.Namespace, array.array, memoryview),
)
Namespaces = types.SimpleNamespace | argparse.Namespace
_LOOKED_AT: dict[str, Callable[[Any], Any]] = {  # a table of what a view of one shows
    "keys": lambda view: dict.fromkeys(view),
    "values": lambda view: dict(enumerate(view)),
    "items": lambda view: dict(view),
}
_VIEWS = {
    type(getattr(kind(), part)()): (part, kind)
    for kind in (dict, collections.OrderedDict)
    for part in _LOOKED_AT
}


def is_view(value: Any) -> bool:
    """Whether this is a table's own view of its keys, values or pairs."""
    return type(value) in _VIEWS


def view_node(encoder: Encoder, value: Any) -> Any:
    """The node of such a view, as it is now."""
    part, kind = _VIEWS[type(value)]
    return ["V", type(value).__name__, encoder.node(kind(_LOOKED_AT[part](value)))]


def _viewer(part: str, kind: type) -> Callable[[Decoder, list[Any]], Any]:
    """What reads a view of a table's."""
    return lambda decoder, parts: getattr(_of(decoder, kind, *parts), part)()


def pattern_node(value: re.Pattern[Any]) -> Any:
    """The node of a pattern where a text is due, which `re` takes as well; None if it is long."""
    is_text = type(value.pattern) is str and len(value.pattern) <= MAX_PATTERN
    return ["V", "Pattern", value.pattern, value.flags & ~re.DEBUG] if is_text else None


def node(encoder: Encoder, value: Any) -> Any:
    """The node of a value of the library's; None for anything else."""
    kind = type(value)
    if kind in _WRITERS:
        parts = _WRITERS[kind](encoder, value)
        return None if parts is None else ["V", kind.__name__, *parts]
    named = fields_of(kind)
    if named is not None and len(named[1]) == tuple.__len__(value):
        return ["NT", named[0], list(named[1]), *map(encoder.node, tuple.__iter__(value))]
    return None


def read(decoder: Decoder, tag: Any, parts: list[Any]) -> Any:
    """The value of a node that `node` wrote; None if it is no such node."""
    if tag == "NT":
        name, names, *values = parts
        return tuple.__new__(named_tuple(name, names, len(values)), decoder.values(values))
    if tag != "V":
        return None
    reader = _READERS.get(parts[0]) if isinstance(parts[0], str) else None
    if reader is None:
        raise WireError("a message holds a value of unknown kind")
    return reader(decoder, parts[1:])


def parts_of(value: Any) -> list[Any]:
    """What a container holds, its keys included; nothing for anything else."""
    kind = type(value)  # what a stand-in says of its class is a claim
    if kind in LEAVES:
        return []
    if kind in _PARTS:
        return [*_PARTS[kind](value)]
    if issubclass(kind, dict):
        return [*dict.keys(value), *dict.values(value)]
    base = next((base for base in _SEQUENCES if issubclass(kind, base)), None)
    return [] if base is None else [*base.__iter__(value)]


def tables_of(value: Any) -> list[dict]:
    """The table that this is, or those of which it shows the entries; none of anything else."""
    kind = type(value)
    if kind is types.MappingProxyType:
        return [dict(value)]
    is_shown = kind in (collections.ChainMap, collections.UserDict)
    tables = _PARTS[kind](value) if is_shown else (value,)
    return [{**one} for one in tables if issubclass(type(one), dict)]


def part_at(value: Any, place: Any) -> Any:
    """A part of a tuple, list or table; None if there is none."""
    kind = type(value)
    if issubclass(kind, dict):
        return dict.get(value, place)
    base = next((base for base in (tuple, list) if issubclass(kind, base)), None)
    if base is None or type(place) is not int or place >= base.__len__(value):
        return None
    return base.__getitem__(value, place)


LEAVES = frozenset((int, float, str, bool, bytes, complex, type(None)))  # hold nothing else
_SEQUENCES = (tuple, list, set, frozenset, collections.deque)
_PARTS: dict[type, Callable[[Any], Iterable[Any]]] = {
    collections.UserDict: lambda v: [v.data],
    collections.UserList: lambda v: [v.data],
    collections.ChainMap: lambda v: v.maps,
    types.MappingProxyType: lambda v: [*v.keys(), *v.values()],
    types.SimpleNamespace: lambda v: vars(v).values(),
    argparse.Namespace: lambda v: vars(v).values(),
    **dict.fromkeys(_VIEWS, list),
}


def bare(value: Any) -> Any:
    """The plain value of an object whose class is made of one of the library's; else None.

    Of a wrapped list or table it is what the object wraps, of a number or date its value, and of
    a table that a class has made up the view that a table of Python's own would give.
    """
    kind = type(value)
    base = next((base for base in kind.__mro__ if base in _BARE), kind)
    return None if base is kind and kind not in _MADE_UP else _BARE[base](value)


def _bare_time(kind: Callable[..., Any], value: Any, *day: int) -> Any:
    *numbers, fold = _time_parts(value)
    return kind(*day, *numbers, tzinfo=value.tzinfo, fold=fold)


_MADE_UP: dict[type, Callable[[Any], Any]] = {
    KeysView: lambda v: dict.fromkeys(v).keys(),
    ValuesView: lambda v: dict(enumerate(v)).values(),
    ItemsView: lambda v: dict(v).items(),
}
_BARE: dict[type, Callable[[Any], Any]] = {
    **_MADE_UP,
    collections.UserDict: lambda v: _user(collections.UserDict(), v.data),
    collections.UserList: lambda v: _user(collections.UserList(), v.data),
    collections.UserString: lambda v: _user(collections.UserString(""), v.data),
    fractions.Fraction: lambda v: fractions.Fraction(v.numerator, v.denominator),
    decimal.Decimal: decimal.Decimal,
    datetime.datetime: lambda v: _bare_time(datetime.datetime, v, v.year, v.month, v.day),
    datetime.date: lambda v: datetime.date(v.year, v.month, v.day),  # after the one above
    datetime.time: lambda v: _bare_time(datetime.time, v),
    datetime.timedelta: lambda v: datetime.timedelta(v.days, v.seconds, v.microseconds),
    uuid.UUID: lambda v: uuid.UUID(int=v.int),
}
KEPT_AS_TEXT = frozenset(  # by these names a transcript calls numbers and dates
    f"{kind.__module__}.{kind.__qualname__}"
    for kind in _BARE
    if kind.__module__.partition(".")[0] != "collections"
)


# --- named tuples -----------------------------------------------------------------------------


def fields_of(kind: type) -> tuple[str, tuple[str, ...]] | None:
    """Name and fields of a class of named tuples that can be made anew; None for all others."""
    if not issubclass(kind, tuple):
        return None
    found = getattr(kind, "_fields", None)
    if hasattr(kind, "n_sequence_fields"):  # as time.localtime() gives
        found = getattr(kind, "__match_args__", None)
    if type(found) is not tuple or not _are_fields(found):
        return None
    name = kind.__name__
    return (name if _is_name(name) else "NamedTuple"), found


def named_tuple(name: Any, names: Any, count: int) -> Any:
    """The class of named tuples with these fields, all of which are checked."""
    if not isinstance(names, list) or len(names) != count or not _are_fields(names):
        raise WireError("a message holds a named tuple whose fields are no names")
    if not _is_name(name):
        raise WireError("a message holds a named tuple whose name is none")
    return _made(name, tuple(names))


_MADE: dict[tuple[str, tuple[str, ...]], type] = {}


def forget() -> None:
    """Begin a test: what earlier ones were given takes no room from it."""
    _MADE.clear()


def _made(name: str, names: tuple[str, ...]) -> type:
    if (name, names) not in _MADE:
        if len(_MADE) >= MAX_NAMED:
            raise WireError("there are too many kinds of named tuples")
        _MADE[name, names] = collections.namedtuple(name, names, module="answer")
    return _MADE[name, names]


def _are_fields(names: Iterable[Any]) -> bool:
    found = list(names)
    return (
        len(found) <= MAX_FIELDS
        and all(_is_name(name) and not name.startswith("_") for name in found)
        and len(set(found)) == len(found)
    )


def _is_name(name: Any) -> bool:
    """Whether this can stand in a program as it is: Python reads other forms of a letter as one."""
    return (
        type(name) is str
        and len(name) <= MAX_NAME
        and name.isidentifier()
        and not keyword.iskeyword(name)
        and unicodedata.normalize("NFKC", name) == name
    )


# --- writing ----------------------------------------------------------------------------------


def _time_parts(value: Any) -> list[Any]:
    return [value.hour, value.minute, value.second, value.microsecond, value.fold]


def _zoned(encoder: Encoder, value: Any, parts: list[Any]) -> list[Any] | None:
    """The parts of a time and its zone; None if the zone is of a class of its own."""
    zone = value.tzinfo
    if zone is not None and (type(zone) not in _WRITERS or getattr(zone, "key", "") is None):
        return None
    return [*parts, encoder.node(zone)]


def _zone(encoder: Encoder, value: datetime.timezone) -> list[Any]:
    offset, *name = value.__getinitargs__()  # type: ignore[attr-defined]
    return [encoder.node(offset), *name]


def _named_zone(encoder: Encoder, value: zoneinfo.ZoneInfo) -> list[Any] | None:
    return None if value.key is None else [value.key]


def _only_data(encoder: Encoder, value: Any) -> list[Any] | None:
    return [encoder.node(value.data)] if vars(value).keys() == {"data"} else None


def _namespace(encoder: Encoder, value: Namespaces) -> list[Any] | None:
    found = vars(value)
    if not _are_attributes(found):
        return None
    return [list(found), *map(encoder.node, found.values())]


def _chain(encoder: Encoder, value: collections.ChainMap) -> list[Any] | None:
    if vars(value).keys() != {"maps"} or not 0 < len(value.maps) <= MAX_MAPS:
        return None
    plain = all(issubclass(type(one), dict) for one in value.maps)
    return [*map(encoder.node, value.maps)] if plain else None


def _numbers(encoder: Encoder, value: array.array) -> list[Any] | None:
    code = value.typecode
    return [code, encoder.frame.add(value.tobytes())] if code in CODES else None


def _view(encoder: Encoder, value: memoryview) -> list[Any] | None:
    shape = value.shape or ()
    if value.format not in {*CODES, "c"} or 0 in shape[1:] or not shape:
        return None
    return [value.format, list(shape), value.readonly, encoder.frame.add(value.tobytes())]


_WRITERS: dict[type, Callable[[Encoder, Any], list[Any] | None]] = {
    datetime.date: lambda e, v: [v.year, v.month, v.day],
    datetime.time: lambda e, v: _zoned(e, v, _time_parts(v)),
    datetime.datetime: lambda e, v: _zoned(e, v, [v.year, v.month, v.day, *_time_parts(v)]),
    datetime.timedelta: lambda e, v: [v.days, v.seconds, v.microseconds],
    datetime.timezone: _zone,
    zoneinfo.ZoneInfo: _named_zone,
    pathlib.PurePosixPath: lambda e, v: [str(v)],
    pathlib.PureWindowsPath: lambda e, v: [str(v)],
    pathlib.PosixPath: lambda e, v: [str(v)],
    uuid.UUID: lambda e, v: [e.node(v.int)],
    **dict.fromkeys(hints.KINDS, hints.parts),
    type(typing.Any): lambda _, v: [] if v is typing.Any else None,
    type(dataclasses.MISSING): lambda _, v: [] if v is dataclasses.MISSING else None,
    collections.UserDict: _only_data,
    collections.UserList: _only_data,
    collections.UserString: _only_data,
    collections.ChainMap: _chain,
    types.MappingProxyType: lambda e, v: [e.node(dict(v))],
    types.SimpleNamespace: _namespace,
    argparse.Namespace: _namespace,
    array.array: _numbers,
    memoryview: _view,
    inspect.Signature: signatures.parts_of,
    **dict.fromkeys(ADDRESSES, lambda e, v: [*v] if all(type(p) is str for p in v) else None),
}


# --- reading ----------------------------------------------------------------------------------


def _integers(parts: list[Any], count: int) -> list[int]:
    if len(parts) != count or any(type(part) is not int for part in parts):
        raise WireError("a message holds a value whose parts are no numbers")
    return parts


def _addresses(kind: Any) -> Callable[[Decoder, list[Any]], Any]:
    """What reads an address, whose parts have more names than it has fields."""

    def read_address(_: Decoder, parts: list[Any]) -> Any:
        if len(parts) != len(kind._fields):
            raise WireError("a message holds an address without some of its parts")
        return kind(*(_text([part]) for part in parts))

    return read_address


def _of(decoder: Decoder, kinds: type | tuple[type, ...], part: Any) -> Any:
    """The value of a node, which has to be of one of these very types."""
    made = decoder.value(part)
    if type(made) not in (kinds if isinstance(kinds, tuple) else (kinds,)):
        raise WireError("a message holds a value with a part of another kind")
    return made


def _in_zone(decoder: Decoder, kind: Callable[..., Any], parts: list[Any]) -> Any:
    *numbers, fold, zone = parts
    _integers([*numbers, fold], len(numbers) + 1)
    zone = _of(decoder, (datetime.timezone, zoneinfo.ZoneInfo, type(None)), zone)
    return kind(*numbers, tzinfo=zone, fold=fold)


def _read_zone(decoder: Decoder, parts: list[Any]) -> datetime.timezone:
    offset, *name = parts
    if len(name) > 1 or any(type(one) is not str or len(one) > MAX_NAME for one in name):
        raise WireError("a message holds a zone whose name is none")
    return datetime.timezone(_of(decoder, datetime.timedelta, offset), *name)


def _read_named_zone(decoder: Decoder, parts: list[Any]) -> zoneinfo.ZoneInfo:
    """One of the zones that the machine knows; a name leads to no other file."""
    key = _text(parts)
    if not _ZONE.fullmatch(key):
        raise WireError("a message holds a zone whose name is none")
    try:
        return zoneinfo.ZoneInfo(key)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise WireError("a message holds a zone that is not known here") from error


def _text(parts: list[Any]) -> str:
    (text,) = parts
    if type(text) is not str:
        raise WireError("a message holds a value whose part is no text")
    return text


def _read_path(decoder: Decoder, parts: list[Any]) -> pathlib.Path:
    if decoder.is_wary:  # its files are those of the answer's process
        raise WireError("a message holds a path of another process")
    return pathlib.Path(_text(parts))


def _read_pattern(decoder: Decoder, parts: list[Any]) -> re.Pattern[str]:
    text, flags = parts
    (flags,) = _integers([flags], 1)
    if type(text) is not str or len(text) > MAX_PATTERN or flags & re.DEBUG:
        raise WireError("a message holds a pattern that is none")
    try:
        return re.compile(text, flags)
    except (re.error, ValueError, OverflowError, RecursionError) as error:
        raise WireError("a message holds a pattern that is none") from error


def _user(made: Any, data: Any) -> Any:
    made.data = data
    return made


def _read_chain(decoder: Decoder, parts: list[Any]) -> collections.ChainMap:
    if not 0 < len(parts) <= MAX_MAPS:
        raise WireError("a message holds a chain that is too long")
    kinds = (dict, collections.OrderedDict, collections.Counter, collections.defaultdict)
    return collections.ChainMap(*(_of(decoder, kinds, part) for part in parts))


def _read_namespace(decoder: Decoder, kind: Callable[..., Namespaces], parts: list[Any]) -> Any:
    names, *values = parts
    if not isinstance(names, list) or not _are_attributes(names) or len(names) != len(values):
        raise WireError("a message holds a namespace whose names are none")
    return kind(**dict(zip(names, decoder.values(values), strict=True)))


def _are_attributes(names: Iterable[Any]) -> bool:
    """Whether these are public names: by the others libraries ask what an object's memory is."""
    return all(_is_name(name) and not name.startswith("_") for name in names)


def _read_numbers(decoder: Decoder, parts: list[Any]) -> array.array:
    code, place = parts
    if type(code) is not str or len(code) != 1 or code not in CODES:
        raise WireError("a message holds an array of unknown kind")
    made = array.array(code)
    made.frombytes(decoder.buffer(place))
    return made


def _read_view(decoder: Decoder, parts: list[Any]) -> memoryview:
    code, shape, readonly, place = parts
    known = type(code) is str and len(code) == 1 and code in f"{CODES}c"
    sizes = isinstance(shape, list) and 0 < len(shape) <= 32 and all(map(_is_size, shape))
    if not known or not sizes:
        raise WireError("a message holds a view of unknown kind")
    data = decoder.buffer(place)
    plain: Any = memoryview(bytes(data) if readonly is True else bytearray(data))
    if not len(data):
        return plain.cast(code)
    if math.prod(shape) * plain[:0].cast(code).itemsize != len(data):
        raise WireError("a message holds a view that does not fit its shape")
    return plain.cast(code, shape)


def _is_size(size: Any) -> bool:
    return type(size) is int and 0 <= size < 2**40


_READERS: dict[str, Callable[[Decoder, list[Any]], Any]] = {
    "date": lambda d, p: datetime.date(*_integers(p, 3)),
    "time": lambda d, p: _in_zone(d, datetime.time, p),
    "datetime": lambda d, p: _in_zone(d, datetime.datetime, p),
    "timedelta": lambda d, p: datetime.timedelta(*_integers(p, 3)),
    **{kind.__name__: hints.reader(kind) for kind in hints.KINDS},
    type(typing.Any).__name__: lambda *_: typing.Any,
    type(dataclasses.MISSING).__name__: lambda *_: dataclasses.MISSING,
    "timezone": _read_zone,
    "ZoneInfo": _read_named_zone,
    "PurePosixPath": lambda d, p: pathlib.PurePosixPath(_text(p)),
    "PosixPath": _read_path,
    "PureWindowsPath": lambda d, p: pathlib.PureWindowsPath(_text(p)),
    "UUID": lambda d, p: uuid.UUID(int=_of(d, int, *p)),
    "UserDict": lambda d, p: _user(collections.UserDict(), _of(d, dict, *p)),
    "UserList": lambda d, p: _user(collections.UserList(), _of(d, list, *p)),
    "UserString": lambda d, p: collections.UserString(_of(d, str, *p)),
    "ChainMap": _read_chain,
    "mappingproxy": lambda d, p: types.MappingProxyType(_of(d, dict, *p)),
    "SimpleNamespace": lambda d, p: _read_namespace(d, types.SimpleNamespace, p),
    "Namespace": lambda d, p: _read_namespace(d, argparse.Namespace, p),
    "array": _read_numbers,
    "memoryview": _read_view,
    "Signature": signatures.read,
    "Pattern": _read_pattern,
    **{kind.__name__: _addresses(kind) for kind in ADDRESSES},
    **{kind.__name__: _viewer(*of) for kind, of in _VIEWS.items()},
}
