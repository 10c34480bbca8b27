"""State read back as pages: what is whole, what to do about the first page that is not, and what to put aside.

Only pages that follow each other from the start replace work (section 9.5.3), so the first bad page decides. A page
that is late may be waited for; one that is damaged or gone never comes right; state of another version is of no use.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from solver.formulas import pages as formulas

Condition = Literal["whole", "late", "missing", "truncated", "other-version"]
Way = Literal["use", "wait", "recompute-rest", "abandon"]


@dataclass(frozen=True)
class Page:
    """A page as it was found."""

    condition: Condition = "whole"
    expected: float = 0.0
    """Seconds until a late page is there."""


@dataclass(frozen=True)
class Restored:
    """What is done with the pages of a request."""

    way: Way
    pages_used: int
    tokens_used: float
    seconds: float
    """Until all tokens have state, by waiting and computing."""
    limit: float
    """Seconds to wait at most before giving up; 0 where nothing is waited for."""
    isolate: tuple[int, ...]
    """Pages to put aside or repair afterwards, so that the next request does not meet them."""


def restore(
    pages: Sequence[Page], page_tokens: float, tokens: float, prefill: Callable[[float, float], float]
) -> Restored:
    """The quickest way to state of ``tokens`` tokens; ``prefill`` gives seconds for new tokens behind cached ones.

    Waiting is limited by what recomputing takes: whoever waits so long and then computes loses at most a factor of 2.
    """
    bad = tuple(i for i, page in enumerate(pages) if page.condition in ("missing", "truncated", "other-version"))
    if any(page.condition == "other-version" for page in pages):
        return Restored("abandon", 0, 0.0, prefill(tokens, 0.0), 0.0, bad)
    good = next((i for i, page in enumerate(pages) if page.condition != "whole"), len(pages))
    now = _rest(good, page_tokens, tokens, prefill)
    if good == len(pages):
        return Restored("use" if now == 0 else "recompute-rest", good, good * page_tokens, now, 0.0, bad)
    way: Way = "recompute-rest" if good else "abandon"
    best = Restored(way, good, good * page_tokens, now, 0.0, bad)
    reach = next((i for i, page in enumerate(pages) if page.condition in ("missing", "truncated")), len(pages))
    waited = max((page.expected for page in pages[good:reach]), default=math.inf)
    later = waited + _rest(reach, page_tokens, tokens, prefill)
    if reach > good and later < now:
        return Restored("wait", reach, reach * page_tokens, later, now, bad)
    return best


def given_up(found: Restored, arrives: float, instead: float) -> float:
    """Seconds of a request that waits as ``found`` says, when the page in truth comes at ``arrives``, or never."""
    return formulas.patient_seconds(arrives, found.limit, instead)


def _rest(used: int, page_tokens: float, tokens: float, prefill: Callable[[float, float], float]) -> float:
    missing = max(0.0, tokens - used * page_tokens)
    return prefill(missing, tokens - missing) if missing else 0.0
