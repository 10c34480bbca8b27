"""Candidates without those that another is at least as good as, and names for what is left."""

from collections.abc import Iterable
from dataclasses import replace

from solver.candidate import Candidate


def named(candidates: Iterable[Candidate]) -> list[Candidate]:
    """``candidates`` with names: the label, and what sets it apart where several share one."""
    listed = list(candidates)
    shared: dict[str, list[int]] = {}
    for index, candidate in enumerate(listed):
        shared.setdefault(candidate.label, []).append(index)
    for label, indices in shared.items():
        for number, index in enumerate(indices, 1):
            name = label if len(indices) == 1 else f"{label}/{number}"
            listed[index] = replace(listed[index], name=name)
    return listed


def prune(candidates: Iterable[Candidate], same_size: bool) -> list[Candidate]:
    """``candidates`` without those that another is at least as good as in every respect.

    The first of equals stays. With ``same_size`` only units of the same schemes and size are compared, since a limit
    may name a scheme or count units. Dropping a dominated unit never changes the optimum: each use can be replaced.
    """
    kept: list[Candidate] = []
    for new in candidates:
        if new.shared is None and any(_dominates(old, new, same_size) for old in kept):
            continue
        kept = [old for old in kept if old.shared is not None or not _dominates(new, old, same_size)]
        kept.append(new)
    return named(kept)


def _dominates(a: Candidate, b: Candidate, same_size: bool) -> bool:
    """Whether units of ``a`` do what one unit of ``b`` does, with no more of anything.

    A smaller ``a`` may take the place of a larger ``b`` several times over; with ``same_size`` only one for one, since
    something counts units.
    """
    if (a.stage, a.group, a.model) != (b.stage, b.group, b.model) or a.measured != b.measured:
        return False
    if a.shared is not None or b.shared is not None:
        return False  # one use of a unit says nothing about the others
    if (a.beside or b.beside) and (a.cards, a.block, a.beside) != (b.cards, b.block, b.beside):
        return False  # GPUs of several places: only like for like
    times = b.cards // a.cards
    if times < 1 or (times != 1 and same_size) or not _in_place(a, times, b):
        return False
    if a.schemes != b.schemes and (same_size or a.stage != "both"):
        return False
    if a.startup > b.startup or a.price * times > b.price * (1.0 + 1e-12) or not set(b.needs) <= set(a.needs):
        return False
    if a.room * times < b.room * (1.0 - 1e-12):
        return False
    if any(a.first.get(name, 0.0) > seconds for name, seconds in b.first.items()) or not _lighter(a, b):
        return False
    return all(_covered(a, k, b, times) for k in range(len(a.resources)))


def _in_place(a: Candidate, times: int, b: Candidate) -> bool:
    """Whether so many units of ``a`` stand in the room of one unit of ``b``, block by block."""
    return (b.cards // b.block) * (b.block // a.block) >= times * (a.cards // a.block)


def _lighter(a: Candidate, b: Candidate) -> bool:
    """Whether ``a`` sends no more between its stages."""
    return all(
        share <= b.charges.get(name, {}).get(channel, 0.0)
        for name, shares in a.charges.items()
        if name in b.demand
        for channel, share in shares.items()
    )


def _covered(a: Candidate, k: int, b: Candidate, times: int) -> bool:
    """Whether some resource of ``b`` is at least as busy as resource ``k`` of ``a``, whatever the mix of requests.

    Up to the last digits: dividing by a batch and multiplying again does not always give the same number.
    """
    mine = a.needs
    return any(
        all(mine[name][k] <= times * need[other] * (1.0 + 1e-12) for name, need in b.needs.items())
        for other in range(len(b.resources))
    )
