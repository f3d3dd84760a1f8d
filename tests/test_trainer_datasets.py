"""Corpora: what a folder of files becomes, and what is said about files that do not fit."""

import gzip
import hashlib
import socket
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.five_minutes import grammar_data
from tests.serving import served
from trainer import datasets
from trainer.datasets import MULTI30K_SPLITS, load

ENGLISH = ["a cat sleeps .", "two dogs run .", "the sea is blue ."]
FRENCH = ["un chat dort .", "deux chiens courent .", "la mer est bleue ."]


def write(folder: Path, files: dict[str, str | bytes]) -> Path:
    """Write files; those called .gz are packed."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        data = content.encode() if isinstance(content, str) else content
        (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return folder


def text(sentences: list[str]) -> str:
    return "\n".join(sentences) + "\n"


def folder_of_pairs(folder: Path, **files: str | bytes) -> Path:
    """train, valid and test in English and French; `files` replace some (train_en="...")."""
    content: dict[str, str | bytes] = {
        f"{split}.{language}": text(sentences)
        for split in ("train", "valid", "test")
        for language, sentences in (("en", ENGLISH), ("fr", FRENCH))
    }
    return write(folder, content | {name.replace("_", "."): data for name, data in files.items()})


# --- The grammar --------------------------------------------------------------------------------


def test_the_grammar_trains_on_what_the_five_minute_training_trains_on():
    corpus, data = load("grammar", pairs=600, seed=3), grammar_data(600, seed=3)
    assert corpus.train == data.train
    assert sorted([*corpus.valid, *corpus.tests["test"]]) == sorted(data.held_out)
    assert corpus.tokenised


def test_no_sentence_of_the_grammar_is_in_two_splits():
    corpus = load("grammar", pairs=600)
    for side in (0, 1):
        train, valid, test = (
            {pair[side] for pair in split}
            for split in (corpus.train, corpus.valid, corpus.tests["test"])
        )
        assert not train & valid
        assert not train & test
        assert not valid & test


def test_the_grammar_can_be_turned_round():
    forth, back = load("grammar", pairs=100), load("grammar", "fr", "en", pairs=100)
    assert [(fr, en) for en, fr in forth.train] == back.train


def test_the_grammar_knows_no_german():
    with pytest.raises(ValueError, match="languages en and fr, not 'en' and 'de'"):
        load("grammar", "en", "de")


def test_a_language_cannot_be_translated_into_itself():
    with pytest.raises(ValueError, match="both 'en'"):
        load("grammar", "en", "en")


# --- Files of one's own -------------------------------------------------------------------------


def test_a_folder_gives_its_splits(tmp_path):
    corpus = load(str(folder_of_pairs(tmp_path / "mine")))
    pairs = list(zip(ENGLISH, FRENCH, strict=True))
    assert (corpus.name, corpus.train, corpus.valid) == ("mine", pairs, pairs)
    assert corpus.tests == {"test": pairs}
    assert (corpus.tokenised, corpus.notes) == (False, ())


@pytest.mark.parametrize("name", ["valid", "val", "dev"])
def test_validation_files_go_by_three_names_and_may_be_packed(tmp_path, name):
    folder = write(
        tmp_path,
        {
            "train.en": text(ENGLISH),
            "train.fr.gz": text(FRENCH),
            f"{name}.en.gz": "one\n",
            f"{name}.fr": "un\n",
            "test_2016.en": "two\n",
            "test_2016.fr": "deux\n",
        },
    )
    corpus = load(str(folder))
    assert corpus.valid == [("one", "un")]
    assert corpus.tests == {"test_2016": [("two", "deux")]}


def test_without_validation_files_some_pairs_are_held_out_and_it_is_said(tmp_path):
    lines = [str(number) for number in range(100)]
    write(tmp_path, {"train.en": text(lines), "train.fr": text(lines)})
    corpus = load(str(tmp_path))
    assert (len(corpus.train), len(corpus.valid)) == (95, 5)
    assert sorted([*corpus.train, *corpus.valid]) == sorted(zip(lines, lines, strict=True))
    assert "no validation files: 5 of its 100 pairs are held out" in corpus.notes[0]
    assert load(str(tmp_path)).valid == corpus.valid
    assert load(str(tmp_path), seed=1).valid != corpus.valid


def test_no_more_is_held_out_than_validation_needs(tmp_path, monkeypatch):
    lines = [str(number) for number in range(100)]
    write(tmp_path, {"train.en": text(lines), "train.fr": text(lines)})
    monkeypatch.setattr(datasets, "HELD_OUT_PAIRS", 3)
    assert len(load(str(tmp_path)).valid) == 3


def test_two_files_can_be_named_by_what_they_have_in_common(tmp_path):
    write(tmp_path, {"talks.v1.en": text(ENGLISH), "talks.v1.fr.gz": text(FRENCH)})
    corpus = load(str(tmp_path / "talks.v1"), "fr", "en")
    pairs = list(zip(FRENCH, ENGLISH, strict=True))
    assert sorted([*corpus.train, *corpus.valid]) == sorted(pairs)


def test_files_named_tok_are_scored_as_they_stand_unless_raw(tmp_path):
    write(tmp_path, {"train.lc.tok.en": text(ENGLISH), "train.lc.tok.fr": text(FRENCH)})
    assert load(str(tmp_path)).tokenised
    assert not load(str(tmp_path), raw=True).tokenised


def test_lines_are_nfc_without_byte_order_mark_or_carriage_returns(tmp_path):
    folder_of_pairs(
        tmp_path,
        train_en="\ufeffone\r\n two \r\nthree",
        train_fr="cafe\u0301\ndeux\u2028moitiés\x85\x0b!\ntrois\n",
    )
    assert load(str(tmp_path)).train == [
        ("one", "caf\u00e9"),
        ("two", "deux\u2028moitiés\x85\x0b!"),
        ("three", "trois"),
    ]


def test_carriage_returns_alone_end_lines_too(tmp_path):
    folder_of_pairs(tmp_path, train_en="one\rtwo\r", train_fr="un\ndeux\n")
    assert load(str(tmp_path)).train == [("one", "un"), ("two", "deux")]


def test_different_line_counts_are_refused(tmp_path):
    folder_of_pairs(tmp_path, train_fr=text(FRENCH[:2]))
    with pytest.raises(ValueError, match=r"train\.en has 3 lines and .*train\.fr has 2"):
        load(str(tmp_path))


def test_empty_lines_are_refused_by_number(tmp_path):
    folder_of_pairs(tmp_path, valid_fr="un\n \u00a0\n\n")
    with pytest.raises(ValueError, match=r"valid\.fr, line 2: the line is empty \(2 in all\)"):
        load(str(tmp_path))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("un\nd\xe9j\xe0\ntrois\n".encode("latin-1"), r"line 2: the file is not UTF-8 \(byte 0xe9"),
        (text(FRENCH).encode("utf-16"), r"line 1: the file is not UTF-8"),
        (b"", "line 1: the file is empty"),
        (gzip.compress(text(FRENCH).encode())[:-9], "cannot be read .*fetch it again"),
    ],
    ids=["latin-1", "utf-16", "empty", "cut"],
)
def test_files_that_cannot_be_read_are_refused_by_name(tmp_path, content, said):
    folder_of_pairs(tmp_path, train_fr=content)
    with pytest.raises(ValueError, match=rf"train\.fr.*{said}"):
        load(str(tmp_path))


def test_a_missing_language_is_refused_and_what_is_there_is_listed(tmp_path):
    folder_of_pairs(tmp_path)
    with pytest.raises(ValueError, match=r"no train\.de or train\.de\.gz.*test\.en, test\.fr"):
        load(str(tmp_path), "en", "de")


def test_two_validation_corpora_are_refused(tmp_path):
    folder_of_pairs(tmp_path, dev_en="one\n", dev_fr="un\n")
    with pytest.raises(ValueError, match=r"more than one valid corpus \(dev, valid\)"):
        load(str(tmp_path))


def test_one_pair_is_too_few_to_hold_one_out(tmp_path):
    write(tmp_path, {"train.en": "one\n", "train.fr": "un\n"})
    with pytest.raises(ValueError, match="has 1 pair; 2 or more"):
        load(str(tmp_path))


def test_a_name_that_is_nothing_is_refused_with_what_there_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"no corpus 'multi30': .*grammar, multi30k, wmt14"):
        load("multi30")


def test_a_folder_without_training_files_and_a_file_are_refused(tmp_path):
    write(tmp_path, {"readme.txt": "..."})
    with pytest.raises(ValueError, match=r"has no train\.en and train\.fr.*readme\.txt"):
        load(str(tmp_path))
    with pytest.raises(ValueError, match=r"readme\.txt is a file"):
        load(str(tmp_path / "readme.txt"))


# --- Multi30k -----------------------------------------------------------------------------------


def multi30k_files(middle: str = ".lc.norm.tok", end: str = "") -> dict[str, str | bytes]:
    return {
        f"{split}{middle}.{language}{end}": text([f"{split} {one}" for one in sentences])
        for split in MULTI30K_SPLITS
        for language, sentences in (("en", ENGLISH), ("fr", FRENCH), ("de", FRENCH))
    }


@pytest.mark.parametrize("place", ["data/task1/tok", "task1/tok", "tok", "."])
@pytest.mark.parametrize("end", [".gz", ""])
def test_multi30k_is_found_in_every_layout(tmp_path, place, end):
    write(tmp_path / place, multi30k_files(end=end))
    corpus = load("multi30k", "en", "de", data_dir=tmp_path)
    assert corpus.train[0] == ("train a cat sleeps .", "train un chat dort .")
    assert corpus.valid[0][0].startswith("val ")
    assert list(corpus.tests) == ["test_2016_flickr", "test_2017_flickr"]
    assert corpus.tokenised


def test_multi30k_raw_reads_the_raw_files(tmp_path):
    write(tmp_path / "raw", multi30k_files(middle="", end=".gz"))
    corpus = load("multi30k", data_dir=tmp_path, raw=True)
    assert (len(corpus.train), corpus.tokenised) == (3, False)


def test_other_content_than_the_known_files_is_said(tmp_path):
    write(tmp_path, multi30k_files())
    (note,) = load("multi30k", data_dir=tmp_path).notes
    assert "train.lc.norm.tok.en" in note
    assert "not the published files" in note


def test_a_missing_file_of_multi30k_is_named_with_all_that_are_needed(tmp_path):
    write(tmp_path, multi30k_files())
    (tmp_path / "val.lc.norm.tok.fr").unlink()
    with pytest.raises(
        ValueError, match=r"no val\.lc\.norm\.tok\.fr .*test_2017_flickr, each with \.lc\.norm"
    ):
        load("multi30k", data_dir=tmp_path)


@pytest.mark.parametrize(("language", "why"), [("cs", "no checksums for Czech"), ("pt", "'pt'")])
def test_languages_that_multi30k_has_not_are_refused_by_name(tmp_path, language, why):
    with pytest.raises(ValueError, match=f"en, fr, de, not in .*{why}"):
        load("multi30k", "en", language, data_dir=tmp_path)


def test_a_folder_is_for_multi30k_only(tmp_path):
    with pytest.raises(ValueError, match="--data-dir is for multi30k"):
        load("grammar", data_dir=tmp_path)


@pytest.fixture
def repository(tmp_path, monkeypatch) -> Iterator[Path]:
    """A small copy of the dataset's repository on this computer, and an empty cache."""
    root = tmp_path / "repository"
    content = multi30k_files()
    for name in content:
        write(root / datasets.MULTI30K_COMMITS["tok"] / "data/task1/tok", {name: content[name]})
    sums = {
        name.replace(".lc.norm.tok", ""): hashlib.sha256(str(data).encode()).hexdigest()
        for name, data in content.items()
    }
    monkeypatch.setattr(datasets, "MULTI30K_SHA256", {"tok": sums})
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with served(root) as address:
        monkeypatch.setattr(datasets, "MULTI30K_URL", address)
        yield root


def test_multi30k_is_downloaded_once_and_then_read_from_the_cache(repository, tmp_path):
    first = load("multi30k")
    assert (len(first.train), first.notes) == (3, ())
    cache = tmp_path / "cache/graded-transformer/multi30k/tok"
    assert len(list(cache.iterdir())) == 8  # and nothing half-finished beside them
    for file in repository.rglob("*.tok.*"):
        file.unlink()
    assert load("multi30k") == first


def test_a_broken_file_in_the_cache_is_fetched_again(repository, tmp_path):
    first = load("multi30k")
    broken = tmp_path / "cache/graded-transformer/multi30k/tok/train.lc.norm.tok.fr"
    broken.write_bytes(broken.read_bytes()[:20])
    assert load("multi30k") == first


def test_a_download_with_other_content_is_refused_and_not_kept(repository, tmp_path):
    (file,) = repository.rglob("train.lc.norm.tok.en")
    file.write_text("something else\n")
    with pytest.raises(ValueError, match=r"train\.lc\.norm\.tok\.en has the SHA-256 .* instead of"):
        load("multi30k")
    assert not list((tmp_path / "cache/graded-transformer/multi30k/tok").iterdir())


def test_without_a_network_the_way_out_is_one_sentence(tmp_path, monkeypatch):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))  # nobody listens
        monkeypatch.setattr(datasets, "MULTI30K_URL", f"http://127.0.0.1:{free.getsockname()[1]}")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        with pytest.raises(ValueError, match=r"could not be fetched .* --data-dir .*train, val, "):
            load("multi30k")


def test_checksums_are_there_for_every_file_and_all_different():
    names = {f"{split}.{code}" for split in MULTI30K_SPLITS for code in ("en", "fr", "de")}
    assert all(set(sums) == names for sums in datasets.MULTI30K_SHA256.values())
    sums = [one for table in datasets.MULTI30K_SHA256.values() for one in table.values()]
    assert len(set(sums)) == 24
    assert all(len(one) == 64 for one in sums)


# --- WMT 2014 -----------------------------------------------------------------------------------


class FakeRows:
    """What `datasets.load_dataset` returns, as far as it is used."""

    def __init__(self, count: int) -> None:
        self.rows = [{"de": f" Satz {number}", "en": f"line {number}"} for number in range(count)]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index):
        return {"translation": self.rows[index]}


@pytest.fixture
def fake_library(monkeypatch) -> list[tuple[str, ...]]:
    asked: list[tuple[str, ...]] = []

    def load_dataset(name: str, config: str, *, split: str) -> FakeRows:
        asked.append((name, config, split))
        if config == "cs-en":
            raise ConnectionError("no route to the hub\nand many more lines")
        return FakeRows({"train": 2500, "validation": 4, "test": 3}[split])

    library = types.ModuleType("datasets")
    library.load_dataset = load_dataset  # pyright: ignore[reportAttributeAccessIssue]
    monkeypatch.setitem(sys.modules, "datasets", library)
    return asked


def test_wmt14_comes_row_by_row_from_the_library(fake_library):
    corpus = load("wmt14", "en", "de")
    assert fake_library == [
        ("wmt/wmt14", "de-en", split) for split in ("train", "validation", "test")
    ]
    assert (len(corpus.train), corpus.train[7]) == (2500, ("line 7", "Satz 7"))
    assert list(corpus.train)[2499] == ("line 2499", "Satz 2499")
    assert corpus.train[1:3] == [("line 1", "Satz 1"), ("line 2", "Satz 2")]
    assert (len(corpus.valid), list(corpus.tests), corpus.tokenised) == (4, ["newstest2014"], False)
    assert load("wmt14", "de", "en").train[0] == ("Satz 0", "line 0")


def test_wmt14_knows_its_languages(fake_library):
    for source, target in (("de", "fr"), ("en", "pt")):
        with pytest.raises(ValueError, match="wmt14 pairs en with one of cs, de, fr, hi, ru"):
            load("wmt14", source, target)


def test_a_hub_that_does_not_answer_gets_one_sentence(fake_library):
    with pytest.raises(ValueError, match=r"cannot be had: no route to the hub$"):
        load("wmt14", "cs", "en")


def test_without_the_library_it_is_said_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(ValueError, match="pip install datasets"):
        load("wmt14", "en", "fr")
