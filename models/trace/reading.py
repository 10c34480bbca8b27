"""Reads a trace of requests: `read(path)`; every line is checked, and what is wrong is told with its line."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Literal

import numpy as np

from models.errors import BadInput, Problem, nearest, shown
from models.trace.chunks import Codes, Store, Trace, joined
from models.trace.layouts import LAYOUTS, Layout, changed, detected
from models.trace.opening import lines
from models.trace.records import Refused, Request, requests
from models.trace.sessions import Prefixes

PEEKED = 50
"""Lines at the beginning that tell the format."""
TOLD = 20
"""Problems that are told; the others are counted."""
CHUNK = 2**20
"""Blocks of a chunk, about; or a quarter as many requests."""
MOST_SORTED = 5_000_000
"""Requests that `sort` puts in order."""
MICROSECOND_DIGITS = 6
"""Times are kept to the microsecond, so that equal steps of a file stay equal as floats."""


@dataclass(frozen=True)
class Options:
    """How a trace is read."""

    format: str | None = None
    """A name of LAYOUTS; None: the first lines tell."""
    block_tokens: int | None = None
    """Tokens of a block; None: the format's."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Field (time, input, output, blocks, session) -> its name in the file."""
    time_unit: str | None = None
    """s, ms, us or ns; None: the format's."""
    partial: Literal["count", "drop"] = "count"
    """Whether a last block that is not full is kept as a block, or belongs to no block."""
    skip_bad: bool = False
    """Lines that are wrong are left out and counted."""
    sort: bool = False
    """Requests are put in the order of their times."""
    spread: bool = False
    """Requests of one time are spread evenly until the next time that there is."""
    sessions: bool = False
    """Blocks are made of sessions: a turn begins with the input and the output of the turn before it."""


def read(path: Path, how: Options | None = None, watch: Callable[[int], None] | None = None) -> Trace:
    """The trace in a file: plain, gzip, xz or bzip2; `-` is standard input.

    ``watch`` is told now and then how many requests were read. Raises BadInput with the first problems, each with its
    line, and how many more there are.
    """
    how = how or Options()
    with lines(path) as numbered:
        begin = list(islice(numbered, PEEKED))
        layout = _layout([text for _, text in begin], how)
        if how.sessions and layout.block_tokens is None:
            raise BadInput([Problem("--sessions", "needs the size of a block", None, "--block-tokens N")])
        needed = {**({"session": ""} if how.sessions else {}), **how.columns}
        found = requests(chain(begin, numbered), layout, needed)
        return _Builder(layout, how, watch).of(found)


def trace_of(requests: Iterable[tuple[float, int, int, list[int] | None]], block_tokens: int | None = None) -> Trace:
    """The trace of requests that are at hand: time in s, input and output tokens, ids of blocks or None.

    Raises BadInput where times fall, or some have blocks and others none; what a file has checked is not checked again.
    """
    layout = Layout("made", "jsonl", {}, block_tokens=block_tokens)
    made = (Request(*request, None, line) for line, request in enumerate(requests, 1))
    return _Builder(layout, Options(), None).of(made)


def _layout(begin: list[bytes], how: Options) -> Layout:
    if how.format is not None and how.format not in LAYOUTS:
        guess = nearest(how.format, LAYOUTS)
        said = f"not a format that is read; {guess}".rstrip("; ")
        raise BadInput([Problem("--format", said, how.format, ", ".join(LAYOUTS))])
    guessed = detected(begin)
    layout = guessed if how.format is None else LAYOUTS[how.format]
    if layout.kind != guessed.kind:
        kinds = {"jsonl": "JSON, one object a line", "csv": "CSV"}
        raise BadInput([Problem("--format", f"the file is not {kinds[layout.kind]}", how.format, guessed.name, 1)])
    return changed(layout, how.columns, how.time_unit, how.block_tokens)


class _Builder:
    """Puts requests into chunks, one after the other."""

    def __init__(self, layout: Layout, how: Options, watch: Callable[[int], None] | None) -> None:
        self.layout, self.how, self.watch = layout, how, watch
        self.store, self.codes = Store(), Codes()
        self.bad: list[Problem] = []
        self.bad_count = self.requests = self.accesses = self.inputs = self.outputs = 0
        self.first = self.last = 0.0
        self.with_blocks: bool | None = None
        self.prefixes = Prefixes(layout.block_tokens or 0) if how.sessions else None

    def of(self, found: Iterable[Request | Problem]) -> Trace:
        good = self._checked(found)
        if self.how.sort:
            good = iter(self._sorted(good))
        if self.how.spread:
            good = _spread(good)
        batch: list[Request] = []
        blocks = 0
        for request in good:
            batch.append(request)
            blocks += len(request.blocks or ())
            if blocks >= CHUNK or len(batch) >= CHUNK // 4:
                self._put(batch)
                batch, blocks = [], 0
        if batch:
            self._put(batch)
        self._refuse()
        return Trace(
            format=self.layout.name,
            store=self.store,
            requests=self.requests,
            start=self.first,
            span=round(self.last - self.first, MICROSECOND_DIGITS),
            block_tokens=self.layout.block_tokens if self.with_blocks else None,
            accesses=self.accesses,
            distinct=len(self.codes),
            input_tokens=self.inputs,
            output_tokens=self.outputs,
            skipped=(self.bad_count, tuple(self.bad)),
        )

    def _checked(self, found: Iterable[Request | Problem]) -> Iterator[Request]:
        """Requests in order; the others become problems."""
        latest = -np.inf
        for request in found:
            if isinstance(request, Problem):
                self._note(request)
                continue
            try:
                request = self._with_blocks(request)
            except Refused as refused:
                self._note(refused.problem)
                continue
            if request.time < latest and not self.how.sort:
                value = f"{request.time:.9g} s after {latest:.9g} s"
                said = "is earlier than a line before it"
                self._note(Problem("time", said, value, "lines in the order of their times; --sort", request.line))
                continue
            latest = request.time
            yield request

    def _with_blocks(self, request: Request) -> Request:
        """The request with the blocks that count. Raises Refused where it has none and others do."""
        size = self.layout.block_tokens
        if self.prefixes is not None:
            request = request._replace(blocks=self.prefixes.blocks(request))
        if self.with_blocks is None:
            self.with_blocks = request.blocks is not None
            if self.with_blocks and size is None:
                accepted = "--block-tokens N, tokens of a block"
                raise BadInput([Problem("FILE", "has blocks, and does not tell their size", None, accepted)])
        if (request.blocks is None) is self.with_blocks:
            said = "has no blocks, and lines before it have" if self.with_blocks else "has blocks, the first line none"
            raise Refused(Problem("blocks", said, None, "blocks on every line, or on none", request.line))
        if request.blocks and size and self.how.partial == "drop" and len(request.blocks) * size > request.input:
            request = request._replace(blocks=request.blocks[:-1])
        return request

    def _sorted(self, good: Iterator[Request]) -> list[Request]:
        kept = list(islice(good, MOST_SORTED + 1))
        if len(kept) > MOST_SORTED:
            said = f"holds more than {MOST_SORTED:,} requests, too many to put in order here"
            raise BadInput([Problem("--sort", said, None, "a file that is in order")])
        return sorted(kept, key=lambda request: request.time)

    def _put(self, batch: list[Request]) -> None:
        if not self.requests:
            self.first = batch[0].time
        self.last = batch[-1].time
        self.requests += len(batch)
        if self.watch is not None:
            self.watch(self.requests)
        if self.bad_count and not self.how.skip_bad:
            return  # only problems are looked for now
        lists = [request.blocks or [] for request in batch]
        flat = np.fromiter(chain.from_iterable(lists), dtype=np.uint64, count=sum(map(len, lists)))
        times = [round(request.time - self.first, MICROSECOND_DIGITS) for request in batch]
        inputs, outputs = [request.input for request in batch], [request.output for request in batch]
        self.accesses += len(flat)
        self.inputs += sum(inputs)
        self.outputs += sum(outputs)
        self.store.put(joined(times, inputs, outputs, [len(ids) for ids in lists], self.codes.of(flat)))

    def _note(self, problem: Problem) -> None:
        self.bad_count += 1
        if len(self.bad) < TOLD:
            self.bad.append(problem)

    def _refuse(self) -> None:
        """Raises BadInput where lines are wrong, or none is right."""
        bad = list(self.bad)
        if self.bad_count > len(bad):
            count = self.bad_count - len(bad)
            bad.append(
                Problem("FILE", f"and {count:,} more lines like these", shown(count), "--skip-bad leaves them out")
            )
        if self.bad_count and not self.how.skip_bad:
            raise BadInput(bad)
        if not self.requests:
            raise BadInput([Problem("FILE", "holds no requests", None, "a line for each request"), *bad])


def _spread(found: Iterable[Request]) -> Iterator[Request]:
    """Requests of one time evenly over the time until the next; those of the last time over the step before it."""
    group: list[Request] = []
    width = 0.0
    for request in found:
        if group and request.time > group[0].time:
            width = request.time - group[0].time
            yield from _evenly(group, width)
            group = []
        group.append(request)
    yield from _evenly(group, width)


def _evenly(group: list[Request], width: float) -> Iterator[Request]:
    for i, request in enumerate(group):
        yield request._replace(time=request.time + width * i / len(group))
