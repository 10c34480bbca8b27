"""Long work in a thread of its own: Ctrl-C and SIGTERM ask it to stop, and progress goes to standard error."""

import contextlib
import gc
import os
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import TextIO, TypeVar

from solver.limits import Limits, Stop

Result = TypeVar("Result")
FIRST, EVERY = 2.0, 2.0
"""Seconds before the first line of progress, and between lines."""


def interruptible(work: Callable[[], Result], limits: Limits) -> Result:
    """The result of ``work``, which looks at ``limits.stop``; what it raises is raised here."""
    gc.freeze()
    gc.enable()
    stop = limits.stop = Stop()
    done: list[Result] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(work())
        except BaseException as error:
            failed.append(error)

    def ask(_: int, __: FrameType | None) -> None:
        stop.ask()

    thread = threading.Thread(target=run, daemon=True)
    try:
        out = os.fdopen(os.dup(2), "w")  # the solver may close standard error for a while
    except OSError:  # there is none
        out = open(os.devnull, "w")  # noqa: SIM115 - closed below
    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        thread.start()
        _wait(thread, limits, out)
    finally:
        out.close()
        for number, handler in before.items():
            signal.signal(number, handler)
    if failed:
        raise failed[0]
    return done[0]


def _wait(thread: threading.Thread, limits: Limits, out: TextIO) -> None:
    began = time.monotonic()
    said = began + FIRST - EVERY
    while thread.is_alive():
        thread.join(0.1)
        if time.monotonic() - said >= EVERY and thread.is_alive():
            said = time.monotonic()
            with contextlib.suppress(OSError):
                print(f"inferplan: {said - began:.0f} s  {limits.progress}", file=out, flush=True)
