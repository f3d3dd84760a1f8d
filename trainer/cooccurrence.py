"""Embeddings learnt from counts: subwords that meet in the same pairs of sentences lie close.

A sentence and its translation are taken as one bag of subwords of both languages. How much oftener
two of them share a bag than chance would have it says which mean the same, rare ones included, for
which a few epochs of training see too few examples. It is the old idea behind word vectors from
counts, applied to pairs; the counts are of the training sentences alone.
"""

import math
import warnings

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from lab.batching import EncodedPairs
from trainer.fused.loss import unwrapped

ITERATIONS = 2  # of the randomised decomposition
MOST_PAIRS = 100_000  # that are counted; of a larger corpus, every second, third, ... pair


def set_embeddings(model: nn.Module, encoded: EncodedPairs, seed: int) -> None:
    """Turn the embeddings of a model's two languages into what the counts say; lengths stay.

    Rows of which the counts say nothing stay as they are: tokens that no sentence has, and those
    that every sentence has.

    Args:
        model: has source_embedding and target_embedding, with a `weight` each, which may be one.
        encoded: the training pairs as ids.
        seed: decides the rotation of all vectors.

    Raises:
        ValueError: if the model has no such weights, a row for each id.
    """
    weights = _tables(model, encoded)
    # in one vocabulary, ids of the target are the source's
    shared = weights[0] is weights[1]
    weights, first = (weights[:1], 0) if shared else (weights, len(weights[0]))
    counts = [len(weight) for weight in weights]
    vectors = pair_vectors(encoded, first, sum(counts), weights[0].shape[1], seed)
    with torch.no_grad():
        for weight, directions in zip(weights, vectors.split(counts), strict=True):
            new = directions.to(weight.device, weight.dtype)
            lengths = weight.norm(dim=1, keepdim=True)
            weight.copy_(torch.where(new.any(1, keepdim=True), lengths * new, weight))


def pair_vectors(
    encoded: EncodedPairs, first: int, rows: int, d_model: int, seed: int
) -> Float[Tensor, "rows d_model"]:
    """What `cooccurrence_vectors` gives for pairs of sentences, each pair a bag.

    Args:
        encoded: the pairs as ids.
        first: the row of the target's id 0; 0 where both languages share one vocabulary.
        rows: of both languages together.
        d_model: numbers a vector.
        seed: decides the rotation.
    """
    return cooccurrence_vectors(*_bags(encoded, first), rows, d_model, seed)


def cooccurrence_vectors(
    bags: Int64[Tensor, "n"], members: Int64[Tensor, "n"], rows: int, d_model: int, seed: int
) -> Float[Tensor, "rows d_model"]:
    """A vector of length 1 for each of the ids 0 .. rows - 1, or of zeros where nothing is known.

    The vectors are the ids' rows of U S**0.5, where U S V^T is the singular value decomposition,
    cut to d_model, of the matrix of positive pointwise mutual information, max(0, log p(i, j) /
    (p(i) p(j))): p(i) is the share of bags with i, and p(i, j) of those with both. They are rotated
    at random, so that no column counts more than another.

    Args:
        bags: number of a bag, from 0, for each id in it.
        members: the id; an id is in a bag at most once.
        rows: how many ids there are.
        d_model: numbers a vector.
        seed: decides the rotation.

    Source: Bullinaria and Levy (2007) for the measure; Levy, Goldberg and Dagan (2015) for the root
    of S; Littman, Dumais and Landauer (1998) for bags of two languages.
    """
    count = int(bags.max()) + 1
    present = torch.sparse_coo_tensor(
        torch.stack([bags, members]),
        torch.ones(len(bags)),
        (count, rows),
        check_invariants=False,
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR", UserWarning)  # torch's own way to multiply
        shared = torch.sparse.mm(present.t(), present).coalesce()
    own = torch.bincount(members, minlength=rows).float()
    (i, j), both = shared.indices(), shared.values()
    information = torch.log(both * count / (own[i] * own[j])).clamp(min=0.0)
    matrix = torch.sparse_coo_tensor(
        shared.indices(), information, (rows, rows), is_coalesced=True, check_invariants=False
    )
    width = min(d_model, rows)
    with torch.random.fork_rng(()):
        torch.manual_seed(seed)
        u, s, _ = torch.svd_lowrank(matrix, q=width, niter=ITERATIONS)
        rotation = torch.linalg.qr(torch.randn(d_model, d_model))[0][:width]
    known = torch.zeros(rows).index_add_(0, i, information) > 0
    vectors = (u * s.sqrt()) @ rotation
    lengths = vectors.norm(dim=1, keepdim=True)
    return torch.where(known[:, None] & (lengths > 0), vectors / lengths, 0.0)


def _tables(model: nn.Module, encoded: EncodedPairs) -> list[Tensor]:
    """Both embeddings' weights, once they are found to be tables with a row for each id."""
    whole, found = unwrapped(model), []
    for name, ids in (("source", encoded.source.ids), ("target", encoded.target.ids)):
        weight = getattr(getattr(whole, f"{name}_embedding", None), "weight", None)
        if not (isinstance(weight, Tensor) and weight.dim() == 2 and len(weight) > int(ids.max())):
            raise ValueError(
                f"the model's {name}_embedding has no weight with a row for each id, which "
                "embeddings from counts would fill; add --set first_embeddings=drawn"
            )
        found.append(weight)
    return found


def _bags(encoded: EncodedPairs, first: int) -> tuple[Int64[Tensor, "n"], Int64[Tensor, "n"]]:
    """A pair's number beside each of its ids, once; those of the target count from `first`."""
    chosen = range(0, len(encoded), math.ceil(len(encoded) / MOST_PAIRS))
    bags = [
        {*source, *(first + i for i in target)}
        for source, target in map(encoded.__getitem__, chosen)
    ]
    sizes = torch.tensor([len(bag) for bag in bags])
    members = torch.tensor([i for bag in bags for i in sorted(bag)])
    return torch.arange(len(bags)).repeat_interleave(sizes), members
