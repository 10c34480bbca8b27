r"""State kept as pages of $p$ tokens: only whole pages that follow each other from the start can be used again."""

import math


def page_bytes(per_token: float, page_tokens: float, pages: float = 1.0) -> float:
    r"""Bytes of $n$ pages: $n\,p\,kv$. Source: section 9.5.3 (2.25 MiB for 16 tokens)."""
    return pages * page_tokens * per_token


def page_segments(layers: float, parts: float = 2.0) -> float:
    r"""Contiguous pieces of a page when K and V of every layer are kept apart: $2 n$. Source: section 9.5.3 (72)."""
    return parts * layers


def segment_bytes(page: float, segments: float) -> float:
    r"""Bytes of one such piece. Source: section 9.5.3 (32 KiB)."""
    return page / segments


def whole_pages(tokens: float, page_tokens: float) -> float:
    r"""Pages that a prefix fills: $\lfloor n/p \rfloor$; the rest of a page cannot be used. Source: 9.5.3 (63)."""
    return float(math.floor(tokens / page_tokens))


def unused_bytes(read_pages: float, used_pages: float, page: float) -> float:
    r"""Bytes read that replace no work: $(n_{read} - n_{used})$ pages. Source: section 9.5.3 (2.25 MiB)."""
    return (read_pages - used_pages) * page


def patient_seconds(arrives: float, patience: float, recompute: float) -> float:
    r"""A request that waits ``patience`` for a page, then computes: $t$ if $t \le p$, else $p + T_c$. Section 9.5.3.

    ``arrives`` is infinite for a page that never comes. With $p = T_c$ this is at most twice the better of the two.
    """
    return arrives if arrives <= patience else patience + recompute
