"""How what came of a submission is said on its way through a cluster, and read with suspicion."""

from autograder.isolation.outcomes import Doubtful, Lost

RESULT, IN_DOUBT, LOST, LOST_BY_ITSELF = b"R", b"D", b"L", b"l"
LONGEST = 2_000  # characters of why there is no result


class Garbled(Exception):
    """What a worker said is nothing that a worker of this grader says."""


def said_of(outcome: bytes | Lost) -> bytes:
    """One of the pool's outcomes as bytes."""
    if isinstance(outcome, Lost):
        kind = LOST_BY_ITSELF if outcome.its_own else LOST
        return kind + outcome.reason.encode(errors="replace")
    return (IN_DOUBT if isinstance(outcome, Doubtful) else RESULT) + outcome


def heard(data: object) -> bytes | Lost:
    """The outcome that a worker has sent; Garbled if it has sent something else."""
    if not isinstance(data, bytes):
        raise Garbled("it sent no bytes")
    kind, body = data[:1], data[1:]
    if kind == RESULT:
        return body
    if kind == IN_DOUBT:
        return Doubtful(body)
    if kind in (LOST, LOST_BY_ITSELF):
        reason = body[: 4 * LONGEST].decode(errors="replace")[:LONGEST]
        return Lost(reason, its_own=kind == LOST_BY_ITSELF)
    raise Garbled(f"it sent {len(data)} bytes that begin with {kind!r}")
