"""Corpora by name or path: the grammar's sentences, Multi30k, WMT 2014, or two line-aligned files.

Every corpus comes as pairs of sentences, in Unicode's NFC, split into what to train on, what to
choose with, and tests. Files that do not fit together are refused in one sentence that names the
file and the line.
"""

import gzip
import hashlib
import http.client
import importlib
import os
import tempfile
import unicodedata
import urllib.error
import urllib.request
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, overload

from tqdm import tqdm

from lab.corpus import sentence_pairs, split_pairs

NAMES = ("grammar", "multi30k", "wmt14")
HELD_OUT = 0.05  # share of the pairs that a corpus without validation files lends to validation
HELD_OUT_PAIRS = 1000  # and at most so many

Pair = tuple[str, str]


@dataclass(frozen=True)
class Corpus:
    """Pairs (source, target) to train on, to choose with, and to measure with.

    Attributes:
        tests: name -> pairs, such as "test_2016_flickr"; empty if the corpus has none.
        tokenised: whether words and punctuation stand apart already, as papers score Multi30k.
        notes: what somebody who reports a result should know, in sentences.
    """

    name: str
    source_language: str
    target_language: str
    train: Sequence[Pair]
    valid: Sequence[Pair]
    tests: Mapping[str, Sequence[Pair]] = field(default_factory=dict)
    tokenised: bool = False
    notes: tuple[str, ...] = ()


def load(
    data: str,
    source: str = "en",
    target: str = "fr",
    *,
    data_dir: Path | None = None,
    raw: bool = False,
    seed: int = 0,
    pairs: int = 60_000,
) -> Corpus:
    """Load a corpus.

    Args:
        data: "grammar", "multi30k", "wmt14"; or a folder with train.en, train.fr, valid.en, ...
            (val or dev will do for valid; test files are optional; plain or .gz); or what two
            such files have in common before their language: "corpora/europarl".
        source: language to translate from, as the files are named.
        target: language to translate into.
        data_dir: where the files of Multi30k lie; downloaded without it.
        raw: Multi30k as it was written; by default its tokenised, lower-cased files. Files of
            one's own count as tokenised if they are named so (train.tok.en), unless `raw`.
        seed: which sentences the grammar makes, and which pairs are held out.
        pairs: how many sentences the grammar makes.

    Raises:
        ValueError: if there is no such corpus or language, or its files do not fit together.
    """
    if source == target:
        raise ValueError(f"source and target language are both {source!r}; they must differ")
    if data_dir is not None and data != "multi30k":
        raise ValueError(f"--data-dir is for multi30k; {data!r} has no files there")
    if data == "grammar":
        return _grammar(source, target, pairs, seed)
    if data == "multi30k":
        return _multi30k(source, target, data_dir, raw)
    if data == "wmt14":
        return _wmt14(source, target)
    return _from_path(Path(data), source, target, raw, seed)


def _grammar(source: str, target: str, pairs: int, seed: int) -> Corpus:
    """The same training pairs as `lab.five_minutes.grammar_data`; the held-out ones are halved."""
    if {source, target} != {"en", "fr"}:
        raise ValueError(f"grammar has the languages en and fr, not {source!r} and {target!r}")
    both = sentence_pairs(pairs, seed)
    train, held_out = split_pairs(both, HELD_OUT, seed)
    valid, test = split_pairs(held_out, 0.5, seed)
    if source == "fr":
        train, valid, test = ([(fr, en) for en, fr in part] for part in (train, valid, test))
    return Corpus("grammar", source, target, train, valid, {"test": test}, tokenised=True)


# --- Multi30k -----------------------------------------------------------------------------------

MULTI30K_LANGUAGES = ("en", "fr", "de")
MULTI30K_SPLITS = ("train", "val", "test_2016_flickr", "test_2017_flickr")
# Elliott et al., 2016 and 2017. Commits are fixed, since the repository has two versions of the
# English training sentences.
MULTI30K_URL = "https://raw.githubusercontent.com/multi30k/dataset"
MULTI30K_COMMITS = {
    "raw": "c9be912dc05a3ebf9ae5bb5f7f58c1791cda43ab",
    "tok": "7bee46bc74186b4b6254603143610f730d40bf66",
}
MULTI30K_SHA256 = {  # of the text, unpacked
    "raw": {
        "train.en": "460a15fbd157e34a7a9957ee388c1ca247fe47af3ef25fb50442af6c274e0fc6",
        "train.fr": "5925a3c18f1587b6b54b87743106e6e8ab93618edb6f65d19eac0621f853a10d",
        "train.de": "2c2b73fd2b548fbcde3a875e0a78d6ee94d498bfdee6bd3eae3945779e9ddf72",
        "val.en": "1f2a23d992769b5b3d209b0a10dd0b77c08cceb1f20dfb97ed0aafa49d107227",
        "val.fr": "5304e444d842e962b2dda4d816b70b22a1765b15401642b7ca37a67477e708dc",
        "val.de": "660e09eb7e1da2f856ea13ee5ad3cf6d36b3d5b0b733c857e94c5747a3dfc660",
        "test_2016_flickr.en": "399a4382932c1aadd3ceb9bef1008d388a64c76d4ae4e9d4728c6f4301cac182",
        "test_2016_flickr.fr": "cb3160d69b002bb638e66cc7612fcd56cb0af82eadc9c142dedc438afb885ef6",
        "test_2016_flickr.de": "4be6b5b3236b79c25475c6bb829800a7ce559e9ba7a1f6c2394fe4d40be46d16",
        "test_2017_flickr.en": "ce1450ddc5ab0834502579d77a170849952e15a2938b34cc503bdc25ebb4fb98",
        "test_2017_flickr.fr": "6f3764e31dac41e9455e612958bcfd4e877c5e15cd66df2c2b2be6d9bd83e5b6",
        "test_2017_flickr.de": "c3078bc3b36808bf9d20eb2347ed6137016179ef59ec0d2b9b8ecc3fb2880081",
    },
    "tok": {
        "train.en": "08925f8e0572bcd5a006702fc5fe20e2d77c6917d4eebd576fc20de6693c2119",
        "train.fr": "8fa41bb718412bcb7c5dfa58603842810a01543eae86a51279f9886b901266e1",
        "train.de": "cb5a23529b65ec2061f1dc446192a9c37382b63cc75f81a0be59d34894b3a505",
        "val.en": "46573ce391ae227f1c72f873392436a20ef18e0a6d518098cfbd70b77c8572ec",
        "val.fr": "b303e301aa21fe7822a846b2b3fb2d5a1121ec807cd5b1d006fb7b2b5507168a",
        "val.de": "97232bd273eceb7207f689527386a97e4be2616b18ada47576bdaf96c8ae1f00",
        "test_2016_flickr.en": "5b7f32627cf99eced828311b955dae9800bb52bc8b91cf8b6526829e605b29d2",
        "test_2016_flickr.fr": "1463bd5960f9bfe098ec3cd752d3df0c49c84dc646fb518964a29232658cd836",
        "test_2016_flickr.de": "c6a33d39d48f9f510de147651316cd9d918e09ad0219df734a2f16b6baccacc4",
        "test_2017_flickr.en": "c9d1dfd7a26add989382e534af235af9f0f658b2a30e7eb0efdaf142496ee54f",
        "test_2017_flickr.fr": "c0583117a47b31e8a6c6a97cfe8de153e462074668f4e994764fcc80b21d33b4",
        "test_2017_flickr.de": "02067e4a9402786a4fcb8c1b6f4307e4a5073ced64800abead5273b54f5f31f6",
    },
}


def _multi30k(source: str, target: str, data_dir: Path | None, raw: bool) -> Corpus:
    for language in (source, target):
        if language not in MULTI30K_LANGUAGES:
            known = ", ".join(MULTI30K_LANGUAGES)
            why = ", since the course has no checksums for Czech" if language == "cs" else ""
            raise ValueError(f"multi30k can be had in {known}, not in {language!r}{why}")
    kind = "raw" if raw else "tok"
    sums = {
        f"{split}.{'' if raw else 'lc.norm.tok.'}{language}": MULTI30K_SHA256[kind][
            f"{split}.{language}"
        ]
        for split in MULTI30K_SPLITS
        for language in (source, target)
    }
    ends = " and ".join(name.removeprefix("train") for name in list(sums)[:2])
    needed = f"{', '.join(MULTI30K_SPLITS[:-1])} and {MULTI30K_SPLITS[-1]}, each with {ends}"
    if data_dir is None:
        paths = _downloaded(kind, sums, needed)
    else:
        paths = _find(data_dir, kind, list(sums), needed)
    files = iter(paths.values())
    splits = {
        split: _read_pair(*pair)
        for split, pair in zip(MULTI30K_SPLITS, zip(files, files, strict=True), strict=True)
    }
    differing = [name for name, path in paths.items() if _sha256(path) != sums[name]]
    notes = (f"{', '.join(differing)} in {data_dir}: not the published files",) if differing else ()
    train, valid = splits.pop("train"), splits.pop("val")
    return Corpus("multi30k", source, target, train, valid, splits, not raw, notes)


def _find(data_dir: Path, kind: str, names: Sequence[str], needed: str) -> dict[str, Path]:
    """The files in a folder, laid out as in the dataset's repository or flat, packed or plain."""
    places = [data_dir / "data" / "task1" / kind, data_dir / "task1" / kind, data_dir / kind]
    found: dict[str, Path] = {}
    for name in names:
        candidates = [place / (name + end) for place in [*places, data_dir] for end in (".gz", "")]
        path = next((path for path in candidates if path.is_file()), None)
        if path is None:
            raise ValueError(
                f"there is no {name} or {name}.gz in {data_dir}, nor in {kind} or "
                f"data/task1/{kind} there; multi30k needs {needed}"
            )
        found[name] = path
    return found


def _downloaded(kind: str, sums: Mapping[str, str], needed: str) -> dict[str, Path]:
    """The files in the cache, fetched from the dataset's repository where they are not there."""
    folder = cache_folder() / "multi30k" / kind
    end = ".gz" if kind == "raw" else ""  # as the repository has them
    paths = {name: folder / (name + end) for name in sums}
    for name, path in paths.items():
        if path.is_file() and _sha256(path) == sums[name]:
            continue
        url = f"{MULTI30K_URL}/{MULTI30K_COMMITS[kind]}/data/task1/{kind}/{path.name}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _fetch(url, path, sums[name])
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            raise ValueError(
                f"{url} could not be fetched ({reason}); without a network, name with --data-dir "
                f"a folder that holds {needed}"
            ) from error
    return paths


def cache_folder() -> Path:
    """Where downloads are kept: graded-transformer in $XDG_CACHE_HOME or ~/.cache."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    root = Path(base) if Path(base).is_absolute() else Path.home() / ".cache"
    return root / "graded-transformer"


def _fetch(url: str, path: Path, sha256: str) -> None:
    """Download one file; it gets its name only when it is whole and has the right content."""
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        part = Path(folder) / path.name
        with urllib.request.urlopen(url, timeout=30) as reply, part.open("wb") as out:
            size = int(reply.headers.get("Content-Length") or 0) or None
            with tqdm(total=size, desc=path.name, unit="B", unit_scale=True) as bar:
                while block := reply.read(1 << 16):
                    out.write(block)
                    bar.update(len(block))
        found = _sha256(part)
        if found != sha256:
            raise ValueError(
                f"{url} has the SHA-256 {found[:16]}... unpacked instead of {sha256[:16]}...; try "
                "again, or pass a folder with the right files as --data-dir"
            )
        part.replace(path)


def _sha256(path: Path) -> str:
    """Of what a file holds, unpacked if it is packed; "" if it is packed and broken."""
    try:
        return hashlib.sha256(_unpacked(path)).hexdigest()
    except ValueError:
        return ""


# --- Files --------------------------------------------------------------------------------------


def _from_path(path: Path, source: str, target: str, raw: bool, seed: int) -> Corpus:
    """A folder of files named by split and language, or two files named by language."""
    if path.is_dir():
        return _from_folder(path, source, target, raw, seed)
    if path.is_file():
        raise ValueError(
            f"{path} is a file; give its folder, or what the names of two files have in common "
            f"before .{source} and .{target}"
        )
    stems = _stems(path.parent, source), _stems(path.parent, target)
    if not any(path.name in found for found in stems):
        raise ValueError(
            f"there is no corpus {str(path)!r}: it is neither one of {', '.join(NAMES)} nor a "
            f"folder nor the beginning of {path.name}.{source} and {path.name}.{target}"
        )
    train = _read_split(path.parent, path.name, stems, (source, target))
    return _with_valid(path.name, (source, target), train, [], {}, _tokenised(path.name, raw), seed)


def _from_folder(folder: Path, source: str, target: str, raw: bool, seed: int) -> Corpus:
    stems = _stems(folder, source), _stems(folder, target)
    languages = (source, target)
    every = sorted({*stems[0], *stems[1]})
    train_stem = _only(folder, [stem for stem in every if _split_of(stem) == "train"], "train")
    if train_stem is None:
        raise ValueError(
            f"{folder} has no train.{source} and train.{target}, plain or .gz; it holds "
            f"{_listing(folder)}"
        )
    valid_stem = _only(folder, [stem for stem in every if _split_of(stem) == "valid"], "valid")
    train = _read_split(folder, train_stem, stems, languages)
    valid = [] if valid_stem is None else _read_split(folder, valid_stem, stems, languages)
    tests = {
        stem: _read_split(folder, stem, stems, languages)
        for stem in every
        if _split_of(stem) == "test"
    }
    name = folder.resolve().name
    return _with_valid(name, languages, train, valid, tests, _tokenised(train_stem, raw), seed)


def _with_valid(
    name: str,
    languages: tuple[str, str],
    train: list[Pair],
    valid: list[Pair],
    tests: dict[str, list[Pair]],
    tokenised: bool,
    seed: int,
) -> Corpus:
    """The corpus, with some training pairs held out if there is nothing to validate with."""
    notes: list[str] = []
    if tokenised:
        notes.append(f"{name}: the files are named .tok, so scores count their words as they stand")
    if not valid:
        if len(train) < 2:
            raise ValueError(f"{name} has {len(train)} pair; 2 or more are needed, to hold one out")
        count = len(train)
        share = max(1 / count, min(HELD_OUT, HELD_OUT_PAIRS / count))
        train, valid = split_pairs(train, share, seed)
        notes.append(
            f"{name} has no validation files: {len(valid):,} of its {count:,} pairs are held out"
        )
    return Corpus(name, *languages, train, valid, tests, tokenised, tuple(notes))


def _stems(folder: Path, language: str) -> dict[str, Path]:
    """What the names of a language's files begin with: train.fr.gz is "train" of "fr"."""
    found: dict[str, Path] = {}
    if not folder.is_dir():
        return found
    for path in sorted(folder.iterdir()):
        stem = path.name.removesuffix(".gz")
        if path.is_file() and stem.endswith(f".{language}"):
            found.setdefault(stem.removesuffix(f".{language}"), path)
    return found


def _split_of(stem: str) -> str:
    """Which split a file is of by the first part of its name; "" if it is of none."""
    first = stem.split(".")[0]
    if first in ("valid", "val", "dev"):
        return "valid"
    return "train" if first == "train" else "test" if first.startswith("test") else ""


def _only(folder: Path, stems: Sequence[str], split: str) -> str | None:
    if len(stems) > 1:
        raise ValueError(
            f"{folder} has more than one {split} corpus ({', '.join(stems)}); leave one of them, "
            "or name its files by what they have in common"
        )
    return stems[0] if stems else None


def _tokenised(stem: str, raw: bool) -> bool:
    return not raw and "tok" in stem.split(".")


def _read_split(
    folder: Path,
    stem: str,
    stems: tuple[dict[str, Path], dict[str, Path]],
    languages: tuple[str, str],
) -> list[Pair]:
    for language, found in zip(languages, stems, strict=True):
        if stem not in found:
            raise ValueError(
                f"there is no {stem}.{language} or {stem}.{language}.gz in {folder}; it holds "
                f"{_listing(folder)}"
            )
    return _read_pair(stems[0][stem], stems[1][stem])


def _listing(folder: Path) -> str:
    names = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    return ", ".join([*names[:8], "..."] if len(names) > 8 else names) or "nothing"


def _read_pair(source: Path, target: Path) -> list[Pair]:
    """Two files in which each line translates the same line of the other.

    Raises:
        ValueError: if a file is empty, has empty lines or cannot be read, or the counts differ.
    """
    lines = _lines(source), _lines(target)
    if len(lines[0]) != len(lines[1]):
        raise ValueError(
            f"{source} has {len(lines[0]):,} lines and {target} has {len(lines[1]):,}; line n of "
            "one must translate line n of the other"
        )
    for path, content in zip((source, target), lines, strict=True):
        empty = [number for number, line in enumerate(content, start=1) if not line]
        if empty:
            raise ValueError(
                f"{path}, line {empty[0]}: the line is empty ({len(empty)} in all); delete it here "
                "and in the other language"
            )
    return list(zip(*lines, strict=True))


def _lines(path: Path) -> list[str]:
    """The lines of a file without white space at their ends; a last line break ends the file."""
    content = _unpacked(path)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{path}, line {line}: the file is not UTF-8 (byte 0x{content[error.start]:02x}); save "
            "it as UTF-8"
        ) from error
    # str.splitlines would also split at U+2028 and others, which stand within sentences.
    text = unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n"))
    if not text:
        raise ValueError(f"{path}, line 1: the file is empty")
    return [line.strip() for line in text.removesuffix("\n").split("\n")]


def _unpacked(path: Path) -> bytes:
    """The bytes of a file; packed ones are told by how they begin, not by their name."""
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path} cannot be read ({error}); fetch it again") from error


# --- WMT 2014 -----------------------------------------------------------------------------------

WMT14 = "wmt/wmt14"  # at the Hugging Face hub
WMT14_LANGUAGES = ("cs", "de", "fr", "hi", "ru")  # each with English
WMT14_SPLITS = {"train": "train", "valid": "validation", "newstest2014": "test"}


def _wmt14(source: str, target: str) -> Corpus:
    other = target if source == "en" else source
    if "en" not in (source, target) or other not in WMT14_LANGUAGES:
        raise ValueError(
            f"wmt14 pairs en with one of {', '.join(WMT14_LANGUAGES)}, not {source!r} with "
            f"{target!r}"
        )
    try:
        library = importlib.import_module("datasets")
    except ImportError as error:
        raise ValueError(
            "wmt14 is read by the library datasets, which is not installed: pip install datasets"
        ) from error
    splits: dict[str, _Rows] = {}
    for name, split in WMT14_SPLITS.items():
        try:
            rows = library.load_dataset(WMT14, f"{other}-en", split=split)
        except (OSError, ValueError) as error:
            first = next(iter(str(error).splitlines()), "")
            raise ValueError(f"{WMT14} ({other}-en, {split}) cannot be had: {first}") from error
        splits[name] = _Rows(rows, source, target)
    train, valid = splits.pop("train"), splits.pop("valid")
    return Corpus("wmt14", source, target, train, valid, splits)


class _Rows(Sequence[Pair]):
    """Pairs of a data set of the library `datasets`, read from disk when asked for.

    Its empty sentences come as such; a pair of them teaches nothing, but does no harm.
    """

    def __init__(self, rows: Any, source: str, target: str) -> None:
        self._rows, self._languages = rows, (source, target)

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> Pair: ...
    @overload
    def __getitem__(self, index: slice) -> list[Pair]: ...
    def __getitem__(self, index: int | slice) -> Pair | list[Pair]:
        """One pair, or the pairs of a slice in one go, which is much faster."""
        found = self._rows[index]["translation"]
        return self._pair(found) if isinstance(index, int) else [self._pair(row) for row in found]

    def __iter__(self) -> Iterator[Pair]:
        for start in range(0, len(self), 1000):
            yield from self[start : start + 1000]

    def _pair(self, row: Mapping[str, str]) -> Pair:
        first, second = (
            unicodedata.normalize("NFC", row[code]).strip() for code in self._languages
        )
        return first, second
