"""Loads of experts: tokens that each expert of each layer received, in one or several scenarios."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from models.errors import BadInput, Problem
from models.experts.layout import Layout

MOST_LAYERS = 2048
MOST_EXPERTS = 16_384
MOST_SCENARIOS = 256


@dataclass(frozen=True)
class Loads:
    """Tokens of every expert.

    names: of the scenarios.
    tokens: shape (scenarios, layers, experts), all above 0 and finite.
    weights: of the scenarios, shape (scenarios,), above 0; they add up to 1.
    """

    names: tuple[str, ...]
    tokens: np.ndarray
    weights: np.ndarray

    @property
    def layers(self) -> int:
        """Layers with experts."""
        return int(self.tokens.shape[1])

    @property
    def experts(self) -> int:
        """Logical experts of a layer."""
        return int(self.tokens.shape[2])

    @property
    def scenarios(self) -> int:
        """How many load patterns there are."""
        return int(self.tokens.shape[0])

    def alone(self, index: int) -> "Loads":
        """One scenario as loads of its own."""
        return Loads((self.names[index],), self.tokens[index : index + 1], np.ones(1))


def loads(arrays: Mapping[str, np.ndarray], weights: Sequence[float] | None = None, place: str = "LOADS") -> Loads:
    """Checked loads from arrays of shape (layers, experts). Raises BadInput with every number that does not fit."""
    problems: list[Problem] = []
    if not arrays:
        raise BadInput([Problem(place, "no array of loads", None, "layers x experts, one array or several")])
    if len(arrays) > MOST_SCENARIOS:
        raise BadInput([Problem(place, "too many scenarios", str(len(arrays)), f"at most {MOST_SCENARIOS}")])
    made: dict[str, np.ndarray] = {}
    for name, array in arrays.items():
        where = f"{place}[{name}]" if len(arrays) > 1 else place
        matrix = _matrix(array, where, problems)
        if matrix is not None:
            made[name] = matrix
    if not problems:
        shapes = {name: matrix.shape for name, matrix in made.items()}
        first = next(iter(shapes))
        for name, shape in shapes.items():
            if shape != shapes[first]:
                said = f"{shape[0]} x {shape[1]}, but {first} is {shapes[first][0]} x {shapes[first][1]}"
                problems.append(Problem(f"{place}[{name}]", f"scenarios of different shapes: {said}"))
    share = _weights(weights, len(arrays), problems)
    if problems:
        raise BadInput(problems[:20])
    return Loads(tuple(made), np.stack(list(made.values())), share)


def _matrix(array: np.ndarray, place: str, problems: list[Problem]) -> np.ndarray | None:
    """The array as floats, or None and a problem."""
    if array.dtype.kind not in "iufb" or array.ndim != 2 or 0 in array.shape:
        kind = f"{array.dtype} of shape {' x '.join(map(str, array.shape)) or 'scalar'}"
        problems.append(Problem(place, f"not a table of loads: {kind}", None, "numbers, layers x experts"))
        return None
    layers, experts = array.shape
    if layers > MOST_LAYERS or experts > MOST_EXPERTS:
        problems.append(Problem(place, "too large", f"{layers} x {experts}", f"{MOST_LAYERS} x {MOST_EXPERTS}"))
        return None
    matrix = np.ascontiguousarray(array, dtype=np.float64)
    wrong = ~(np.isfinite(matrix) & (matrix > 0))
    if wrong.any():
        layer, expert = (int(i) for i in np.argwhere(wrong)[0])
        value, more = matrix[layer, expert], int(wrong.sum()) - 1
        message = "load of zero, negative or not a number" + (f", and {more} more" if more else "")
        problems.append(Problem(f"{place}[{layer},{expert}]", message, f"{value:g}", "a number above 0"))
        return None
    if float(matrix.min()) < 1e-290:
        problems.append(Problem(place, "loads too small to add up", f"{matrix.min():g}", "1e-290 or more"))
        return None
    if float(matrix.max()) > 1e300 / experts:
        problems.append(Problem(place, "loads too large to add up", f"{matrix.max():g}", "below 1e290"))
        return None
    return matrix


def _weights(weights: Sequence[float] | None, count: int, problems: list[Problem]) -> np.ndarray:
    if weights is None:
        return np.full(count, 1.0 / count)
    if len(weights) != count:
        message = f"{len(weights)} weights for {count} scenarios"
        problems.append(Problem("--weights", message, None, "one weight for each scenario"))
        return np.full(count, 1.0 / count)
    share = np.asarray(weights, dtype=np.float64)
    if not (np.isfinite(share).all() and (share > 0).all()):
        problems.append(Problem("--weights", "a weight that is not above 0", str(list(weights)), "numbers above 0"))
        return np.full(count, 1.0 / count)
    return np.asarray(share / share.sum(), dtype=np.float64)


def check_fit(experts: int, layout: Layout) -> None:
    """Whether every expert has a slot, and whether an engine can fill all. Raises BadInput with the numbers."""
    usable = sum(min(s, experts) for s in layout.slots)
    if usable < experts:
        message = f"{layout.total} slots on {layout.cards} cards cannot hold {experts} experts"
        raise BadInput([Problem("--slots", message, str(layout.total), f"{experts} slots or more")])
    if layout.engine and layout.widest > experts:
        message = f"{layout.widest} slots a card for {experts} experts leave slots empty, which engines cannot"
        most = experts * layout.cards
        raise BadInput([Problem("--slots", message, str(layout.total), f"at most {most} slots")])
