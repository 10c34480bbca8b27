"""Standard streams closed while compiled libraries run."""

import contextlib
import os
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def silenced() -> Iterator[None]:
    """Standard output and error closed meanwhile: solvers print errors that they get over; what a run found is in its
    result.
    """
    kept: list[tuple[int, int]] = []
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for stream, number in ((sys.stdout, 1), (sys.stderr, 2)):
            with contextlib.suppress(OSError, AttributeError, ValueError):  # there is none to close
                stream.flush()
                kept.append((number, os.dup(number)))
                os.dup2(nowhere, number)
        yield
    finally:
        for number, copy in kept:
            os.dup2(copy, number)
            os.close(copy)
        os.close(nowhere)
