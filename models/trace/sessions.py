"""Blocks made of sessions, for traces that name the session of a request and no blocks."""

from models.errors import Problem
from models.trace.records import Refused, Request


class Prefixes:
    """Blocks of turns: a turn begins with the input and the output of the turn before it in its session.

    A turn that is shorter than those two together does not continue them: it shares nothing. Blocks are new when a turn
    first reads them, those of an answer too, and a last block that is not full is the next turn's no more. What is kept
    grows with the sessions and the blocks of their last turns.
    """

    def __init__(self, block_tokens: int) -> None:
        self._size = block_tokens
        self._next = 0
        self._last: dict[str, tuple[int, int, list[int]]] = {}

    def blocks(self, request: Request) -> list[int]:
        """Ids of the blocks of a request. Raises Refused where it names blocks of its own."""
        if request.blocks is not None:
            said = "has blocks of its own; sessions are not needed"
            raise Refused(Problem("blocks", said, None, "the trace without --sessions", request.line))
        taken, given, before = self._last.get(request.session or "", (0, 0, []))
        ids: list[int] = []
        if request.session is not None and request.input >= taken + given:
            ids = before[: taken // self._size]
        fresh = -(-request.input // self._size) - len(ids)
        ids = [*ids, *range(self._next, self._next + fresh)]
        self._next += fresh
        if request.session is not None:
            self._last[request.session] = (request.input, request.output, ids)
        return ids
