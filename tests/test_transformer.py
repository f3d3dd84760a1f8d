"""The assembled model: in sync with the notebooks, and equal to torch's own Transformer."""

import ast
import importlib
import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from autograder.authoring.source import notebook, read_source
from lab.assemble import FIRST_LINE, PARTS, Assembly, assemble
from lab.check import draw
from tests.conftest import CHAPTERS, COURSE

transformer = importlib.import_module("solutions.transformer")

MODULE = Path("solutions/transformer.py")
D, H, D_FF, LAYERS, PAD = 12, 3, 20, 2, 5
SOURCE_VOCAB, TARGET_VOCAB = 11, 13
LENGTHS = [7, 4, 6], [5, 6, 3]  # of three source and three target sentences


# the file


@pytest.fixture(scope="session")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    """The module as the sources give it today."""
    folder = tmp_path_factory.mktemp("course")
    for chapter in CHAPTERS:
        path = folder / "build" / "source" / chapter / f"{chapter}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(notebook(read_source(COURSE.source(chapter))), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return assemble(Path("build/source"), MODULE)


def test_the_known_parts_are_those_that_the_sources_export():
    exported = {}
    for chapter in CHAPTERS:
        cells = read_source(COURSE.source(chapter)).of_kind("solution")
        found = {cell.id: tuple(_definitions(cell.source)) for cell in cells if cell.export}
        if found:
            exported[chapter] = found
    assert exported == PARTS


def test_the_committed_module_is_what_the_sources_give(reference):
    assert reference.problems == ()
    assert reference.answered == reference.parts
    assert (COURSE.root / MODULE).read_text(encoding="utf-8") == reference.text, (
        f"{MODULE} is stale; run: python -m lab assemble build/source --out {MODULE}"
    )


@pytest.mark.parametrize("task", [["check"], ["format", "--check"]])
def test_the_references_make_a_module_in_the_houses_format(reference, tmp_path, task):
    out = tmp_path / "transformer.py"
    out.write_text(reference.text, encoding="utf-8")
    project = str(COURSE.root / "pyproject.toml")
    ruff = [sys.executable, "-m", "ruff", *task, "--config", project, str(out)]
    done = subprocess.run(ruff, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_of_the_released_notebooks_every_part_is_named_as_unanswered():
    assembly = assemble(COURSE.root / "exercises", MODULE)
    parts = [name for questions in PARTS.values() for names in questions.values() for name in names]
    assert assembly.answered == 0
    assert sorted(line.split(": ")[1].split(" is ")[0] for line in assembly.problems) == sorted(
        parts
    )
    assert assembly.text.startswith(FIRST_LINE)
    exec(assembly.text, {"__name__": "unanswered"})


def test_the_module_imports_neither_the_lab_nor_the_autograder():
    tree = ast.parse((COURSE.root / MODULE).read_text(encoding="utf-8"))
    modules = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    modules += [
        one.name for node in ast.walk(tree) if isinstance(node, ast.Import) for one in node.names
    ]
    assert {module.split(".")[0] for module in modules} <= {
        "math",
        "collections",
        "torch",
        "jaxtyping",
    }


def _definitions(source: str) -> list[str]:
    nodes = ast.parse(source).body
    return [node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)]


# the model against torch's


def make_model(*, norm_first: bool, vocabularies: tuple[int, int], tied: bool, dtype: torch.dtype):
    """A model without dropout whose gains and biases are far from 1 and 0."""
    encoding = transformer.sinusoidal_encoding(9, D)
    model = transformer.Transformer(
        *vocabularies,
        encoding,
        d_model=D,
        num_layers=LAYERS,
        num_heads=H,
        d_ff=D_FF,
        dropout=0.0,
        pad_id=PAD,
        norm_first=norm_first,
        tied=tied,
    ).to(dtype)
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            parameter.copy_(draw(parameter.shape, seed=number, dtype=dtype) / 3)
    return model


def small_model(*, norm_first: bool = False):
    """Two vocabularies, so that a mix-up of source and target would fail."""
    return make_model(
        norm_first=norm_first,
        vocabularies=(SOURCE_VOCAB, TARGET_VOCAB),
        tied=True,
        dtype=torch.float64,
    )


def only(model: nn.Module, kind: str) -> Any:
    (found,) = [
        module for module in model.modules() if isinstance(module, getattr(transformer, kind))
    ]
    return found


def embedding_weights(model: nn.Module) -> tuple[Any, Any]:
    """Of the source and of the target, in the order in which a model holds them."""
    kind = transformer.TokenEmbedding
    found = [module.weight for module in model.modules() if isinstance(module, kind)]
    return found[0], found[-1]


def torchs_own(model: nn.Module, norm_first: bool, dtype: torch.dtype) -> nn.Transformer:
    """torch.nn.Transformer with the model's weights, and with final norms for pre-norm only."""
    settings = {"dropout": 0.0, "batch_first": True, "norm_first": norm_first, "dtype": dtype}
    theirs = nn.Transformer(
        D,
        H,
        custom_encoder=nn.TransformerEncoder(
            nn.TransformerEncoderLayer(D, H, D_FF, **settings),
            LAYERS,
            nn.LayerNorm(D, dtype=dtype) if norm_first else None,
            enable_nested_tensor=False,
        ),
        custom_decoder=nn.TransformerDecoder(
            nn.TransformerDecoderLayer(D, H, D_FF, **settings),
            LAYERS,
            nn.LayerNorm(D, dtype=dtype) if norm_first else None,
        ),
        batch_first=True,
    )
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.zero_()  # what the model does not have: biases in attention
        for _, own, other, part in shared(model, theirs):
            other[part].copy_(own)
    return theirs


Shared = tuple[str, nn.Parameter, nn.Parameter, slice]


def shared(model, theirs: nn.Transformer) -> Iterator[Shared]:
    """Each weight of the model's stacks, and torch's weight of which it is a part."""
    stacks = [(only(model, "Encoder"), theirs.encoder), (only(model, "Decoder"), theirs.decoder)]
    for own, other in stacks:
        for own_layer, other_layer in zip(own.layers, other.layers, strict=True):
            yield from shared_of_layer(own_layer, other_layer)
        if other.norm is not None:
            yield from shared_of_norm("final norm", own.norm, other.norm)
        else:
            assert own.norm is None


def shared_of_layer(own, other) -> Iterator[Shared]:
    everything = slice(None)
    attentions = {"self_attention": "self_attn", "cross_attention": "multihead_attn"}
    for name, torchs_name in attentions.items():
        if hasattr(own, name):
            mine, theirs = getattr(own, name), getattr(other, torchs_name)
            for number, matrix in enumerate((mine.w_q, mine.w_k, mine.w_v)):
                rows = slice(number * D, (number + 1) * D)
                yield f"{name}, {number}", matrix.weight, theirs.in_proj_weight, rows
            yield f"{name}, output", mine.w_o.weight, theirs.out_proj.weight, everything
    for name, torchs_name in {"inner": "linear1", "outer": "linear2"}.items():
        mine, theirs = getattr(own.feed_forward, name), getattr(other, torchs_name)
        yield f"{name} weight", mine.weight, theirs.weight, everything
        yield f"{name} bias", mine.bias, theirs.bias, everything
    for name in ("norm1", "norm2", "norm3"):
        if hasattr(own, name):
            yield from shared_of_norm(name, getattr(own, name), getattr(other, name))


def shared_of_norm(name: str, own, other) -> Iterator[Shared]:
    yield f"{name} gain", own.gain, other.weight, slice(None)
    yield f"{name} bias", own.bias, other.bias, slice(None)


def sentences(vocab_size: int, lengths: list[int], seed: int) -> Tensor:
    """(3, longest) ids, padded on the right; no real token is the pad."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(vocab_size - 1, (len(lengths), max(lengths)), generator=generator)
    ids += ids >= PAD
    return ids.masked_fill(torch.arange(max(lengths)) >= torch.tensor(lengths)[:, None], PAD)


@pytest.mark.parametrize(("dtype", "atol"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
@pytest.mark.parametrize(
    ("vocabularies", "tied"),
    [((SOURCE_VOCAB, TARGET_VOCAB), True), ((13, 13), True), ((SOURCE_VOCAB, TARGET_VOCAB), False)],
)
@pytest.mark.parametrize("norm_first", [False, True])
def test_the_model_equals_torchs_in_output_and_gradients(
    norm_first, vocabularies, tied, dtype, atol
):
    model = make_model(norm_first=norm_first, vocabularies=vocabularies, tied=tied, dtype=dtype)
    theirs = torchs_own(model, norm_first, dtype)
    source = sentences(vocabularies[0], LENGTHS[0], seed=1)
    target = sentences(vocabularies[1], LENGTHS[1], seed=2)
    real = target != PAD

    # the two ends, which torch leaves to its user, on the very same parameters
    own_source, own_target = embedding_weights(model)
    own_output = only(model, "Generator").weight
    copies = {
        id(p): p.detach().clone().requires_grad_() for p in (own_source, own_target, own_output)
    }
    table = transformer.sinusoidal_encoding(9, D).to(dtype)
    expected = theirs(
        copies[id(own_source)][source] * D**0.5 + table[: source.shape[1]],
        copies[id(own_target)][target] * D**0.5 + table[: target.shape[1]],
        tgt_mask=~torch.ones(target.shape[1], target.shape[1], dtype=torch.bool).tril(),
        src_key_padding_mask=source == PAD,
        memory_key_padding_mask=source == PAD,
        tgt_key_padding_mask=target == PAD,
    )
    expected = expected @ copies[id(own_output)].T
    logits = model(source, target)
    assert logits.shape == (*target.shape, vocabularies[1])
    torch.testing.assert_close(logits[real], expected[real], atol=atol, rtol=atol)

    signal = draw(logits.shape, seed=3, dtype=dtype) * real[..., None]
    (logits * signal).sum().backward()
    (expected * signal).sum().backward()
    for name, own, other, part in shared(model, theirs):
        assert own.grad is not None
        assert other.grad is not None
        torch.testing.assert_close(
            own.grad, other.grad[part], atol=atol, rtol=atol, msg=lambda m, n=name: f"{n}: {m}"
        )
    for own in (own_source, own_target, own_output):
        assert own.grad is not None
        torch.testing.assert_close(own.grad, copies[id(own)].grad, atol=atol, rtol=atol)


@pytest.mark.parametrize(
    ("vocabularies", "tied", "matrices"),
    [((11, 13), True, 2), ((13, 13), True, 1), ((11, 13), False, 3), ((13, 13), False, 3)],
)
def test_tying_shares_the_matrices_that_have_one_vocabulary(vocabularies, tied, matrices):
    model = make_model(norm_first=False, vocabularies=vocabularies, tied=tied, dtype=torch.float64)
    shared_out = {id(weight) for weight in embedding_weights(model)}
    assert len(shared_out | {id(only(model, "Generator").weight)}) == matrices


def test_every_parameter_of_the_model_is_compared():
    model = small_model(norm_first=True)
    theirs = torchs_own(model, True, torch.float64)
    compared = {id(own) for _, own, _, _ in shared(model, theirs)}
    compared |= {id(weight) for weight in embedding_weights(model)}
    assert compared == {id(parameter) for parameter in model.parameters()}


@pytest.mark.parametrize("norm_first", [False, True])
def test_forward_is_encode_then_decode(norm_first):
    model = make_model(norm_first=norm_first, vocabularies=(11, 13), tied=True, dtype=torch.float64)
    source, target = sentences(11, LENGTHS[0], seed=1), sentences(13, LENGTHS[1], seed=2)
    memory, memory_mask = model.encode(source)
    assert memory.shape == (3, 7, D)
    torch.testing.assert_close(model.decode(target, memory, memory_mask), model(source, target))


@pytest.mark.parametrize("norm_first", [False, True])
def test_padding_and_other_sentences_change_nothing(norm_first):
    model = make_model(norm_first=norm_first, vocabularies=(11, 13), tied=True, dtype=torch.float64)
    source, target = sentences(11, LENGTHS[0], seed=1), sentences(13, LENGTHS[1], seed=2)
    together = model(source, target)
    for row, (n, m) in enumerate(zip(*LENGTHS, strict=True)):
        alone = model(source[row : row + 1, :n], target[row : row + 1, :m])
        torch.testing.assert_close(together[row : row + 1, :m], alone)


# the parts of different notebooks together

BOS, EOS = 1, 2


@pytest.mark.parametrize("norm_first", [False, True])
@torch.no_grad()
def test_cached_decoding_gives_the_same_logits_at_every_step(norm_first):
    model = small_model(norm_first=norm_first)
    source, target = sentences(SOURCE_VOCAB, LENGTHS[0], 1), sentences(TARGET_VOCAB, [6] * 3, 2)
    memory, memory_mask = model.encode(source)
    expected = model.decode(target, memory, memory_mask)
    caches = transformer.use_cache(model)
    assert len(caches) == 2 * LAYERS
    for _ in ("first translation", "next one"):
        for cache in caches:
            cache.reset()
        for position in range(6):
            token = target[:, position : position + 1]
            logits = model.decode(token, memory, memory_mask, offset=position)
            torch.testing.assert_close(logits[:, 0], expected[:, position], atol=1e-10, rtol=1e-10)


def test_greedy_decoding_of_a_batch_is_that_of_each_sentence():
    model, source = small_model(), sentences(SOURCE_VOCAB, LENGTHS[0], seed=1)
    together = transformer.greedy_decode(model, source, BOS, EOS, 8)
    alone = [
        transformer.greedy_decode(model, source[row : row + 1, :length], BOS, EOS, 8)[0]
        for row, length in enumerate(LENGTHS[0])
    ]
    assert together == alone


def test_a_beam_of_one_decodes_greedily():
    model = small_model()
    for seed in range(5):
        source = sentences(SOURCE_VOCAB, [6], seed)
        (greedy,) = transformer.greedy_decode(model, source, BOS, EOS, 8)
        found, _ = transformer.beam_search(model, source, BOS, EOS, 8, beam_size=1)
        assert found == greedy


def test_a_train_step_is_torchs_on_the_whole_model():
    ours, theirs = small_model(), small_model()
    source, target = sentences(SOURCE_VOCAB, LENGTHS[0], 1), sentences(TARGET_VOCAB, LENGTHS[1], 2)
    loss = transformer.train_step(
        ours,
        source,
        target,
        torch.optim.SGD(ours.parameters(), lr=0.1),
        PAD,
        transformer.label_smoothed_loss,
        max_norm=0.5,
    )
    expected = F.cross_entropy(
        theirs(source, target[:, :-1]).flatten(0, 1),
        target[:, 1:].flatten(),
        ignore_index=PAD,
        label_smoothing=0.1,
    )
    expected.backward()
    nn.utils.clip_grad_norm_(theirs.parameters(), 0.5)
    assert loss == pytest.approx(expected.item(), abs=1e-10)
    for own, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert other.grad is not None
        torch.testing.assert_close(own, other - 0.1 * other.grad, atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize("norm_first", [False, True])
def test_an_initialised_model_starts_out_undecided(norm_first):
    torch.manual_seed(0)
    encoding = transformer.sinusoidal_encoding(9, 64)
    model = transformer.Transformer(
        50, 300, encoding, 64, 2, 4, 96, dropout=0.0, pad_id=PAD, norm_first=norm_first
    )
    transformer.initialise(model)
    assert model.generator.weight is model.target_embedding.weight
    assert model.target_embedding.weight.std().item() == pytest.approx(1 / 8, rel=0.02)
    source, target = sentences(50, [8] * 40, seed=1), sentences(300, [9] * 40, seed=2)
    logits, labels = model(source, target[:, :-1]), target[:, 1:]
    loss = transformer.label_smoothed_loss(logits, labels, PAD).item()
    assert math.log(300) < loss < math.log(300) + 1  # as if every token were equally likely


def test_the_average_of_checkpoints_is_a_checkpoint():
    models = [small_model(), small_model()]
    with torch.no_grad():
        for parameter in models[1].parameters():
            parameter.mul_(3)
    average = transformer.average_checkpoints([model.state_dict() for model in models])
    models[1].load_state_dict(average)
    assert models[1].generator.weight is models[1].target_embedding.weight
    for once, mean in zip(models[0].parameters(), models[1].parameters(), strict=True):
        torch.testing.assert_close(mean, 2 * once)


@torch.no_grad()
def test_the_language_model_is_the_decoder_without_its_cross_attention():
    table = draw((9, 8), seed=5)
    model = transformer.LanguageModel(11, table, num_layers=2, num_heads=2, d_ff=20).double().eval()
    decoder = transformer.Decoder(
        lambda: transformer.DecoderLayer(8, 2, 20, 0.0, norm_first=True),
        2,
        transformer.LayerNorm(8),
    ).double()
    numbers = dict(model.stack.named_parameters())
    for i, (name, parameter) in enumerate(decoder.named_parameters()):
        if "cross_attention.w_o" in name:
            parameter.zero_()  # what it adds to a token is nothing
        elif "cross_attention" not in name and ".norm2" not in name:
            own = numbers[name.replace("norm3", "norm2")]
            own.add_(0.3 * draw(tuple(own.shape), seed=i))
            parameter.copy_(own)
    ids = torch.tensor([[3, 7, 1, 9, 2], [2, 0, 10, 4, 4]])
    x = model.positional_encoding(model.embedding(ids))
    x = decoder(x, draw((2, 3, 8), seed=6), transformer.causal_mask(5), None)
    assert (model(ids) - model.generator(x)).abs().max() < 1e-10


@pytest.mark.parametrize(("dtype", "atol"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
@torch.no_grad()
def test_the_captioner_with_a_given_memory_is_the_decoder(dtype: torch.dtype, atol: float):
    eyes = transformer.PatchEncoder(12, 6, 8, num_layers=1, num_heads=2, d_ff=20)
    table = draw((9, 8), seed=5)
    model = transformer.Captioner(eyes, 11, table, num_layers=2, num_heads=2, d_ff=20)
    model = model.to(dtype).eval()
    decoder = transformer.Decoder(
        lambda: transformer.DecoderLayer(8, 2, 20, 0.0, norm_first=True),
        2,
        transformer.LayerNorm(8),
    ).to(dtype)
    decoder.load_state_dict(model.decoder.state_dict())
    memory = draw((2, 7, 8), seed=6).to(dtype)
    ids = torch.tensor([[3, 7, 1, 9, 2], [2, 0, 10, 4, 4]])
    x = model.embedding(ids) + table[:5].to(dtype)
    x = decoder(x, memory, transformer.causal_mask(5), None)
    nothing_hidden = torch.ones(2, 1, 7, dtype=torch.bool)
    found = model.decode(ids, memory, nothing_hidden)
    assert (found - model.generator(x)).abs().max() < atol


@pytest.mark.parametrize(("dtype", "atol"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
@torch.no_grad()
def test_a_patch_of_one_pixel_is_a_token_and_an_embedding_a_convolution(
    dtype: torch.dtype, atol: float
):
    pictures = draw((2, 3, 4, 6), seed=1).to(dtype)
    pixels = transformer.patchify(pictures, 1)
    assert torch.equal(pixels, pictures.flatten(2).transpose(1, 2))
    layer = torch.nn.Linear(12, 5).to(dtype)
    kernel = layer.weight.view(5, 3, 2, 2)
    maps = torch.nn.functional.conv2d(pictures, kernel, layer.bias, stride=2)
    tokens = layer(transformer.patchify(pictures, 2))
    assert (tokens - maps.flatten(2).transpose(1, 2)).abs().max() < atol


@pytest.mark.unchecked  # their signatures speak of ids
@torch.no_grad()
def test_the_searches_of_a_translator_read_pictures():
    eyes = transformer.PatchEncoder(12, 6, 8, num_layers=1, num_heads=2, d_ff=20)
    model = transformer.Captioner(eyes, 11, draw((9, 8), dtype=torch.float32), 1, 2, 20)
    patches = transformer.patchify(draw((1, 3, 4, 6), dtype=torch.float32), 2)
    (written,) = transformer.greedy_decode(model, patches, 0, 1, 7)
    beam, _ = transformer.beam_search(model, patches, 0, 1, 7, beam_size=1)
    assert beam == written
