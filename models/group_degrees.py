"""Degrees stated at a group of which no model can be cut by any."""

from collections.abc import Iterator
from typing import Any

from models.divided import expert_count
from models.errors import Problem
from models.plain import entries, is_whole, mapping, problem
from models.shapes import divides

NOT = {
    "tp": "divides the heads and widths of a model",
    "pp": "is at most the layers of a model",
    "ep": "divides the experts of a model",
}


def check(data: dict[str, Any]) -> Iterator[Problem]:
    """A list of degrees of a group is a filter: it may hold some that do not fit, but not only those."""
    models = [llm for _, llm in entries(mapping(data.get("models")))]
    for name, group in entries(mapping(mapping(data.get("hardware")).get("groups"))):
        for key, what in NOT.items():
            listed = group.get(key)
            if not isinstance(listed, list) or not listed or not all(is_whole(d) and d > 0 for d in listed):
                continue
            cut = [llm for llm in models if key != "ep" or expert_count(llm)]
            if cut and not any(_fits(key, degree, llm) for degree in listed for llm in cut):
                fitting = ", ".join(str(d) for d in range(1, 65) if any(_fits(key, d, llm) for llm in cut))
                stated = ", ".join(map(str, listed))
                path = ("hardware", "groups", name, key)
                yield problem(path, f"none of these {what}", stated, f"one of {fitting}, or no {key}")


def _fits(key: str, degree: int, llm: dict[str, Any]) -> bool:
    """Whether a model can be cut so; also where its own keys are wrong, which is told elsewhere."""
    if key == "tp":
        return divides(degree, llm)
    if key == "pp":
        layers = llm.get("num_hidden_layers")
        return not is_whole(layers) or degree <= layers
    experts = expert_count(llm)
    if degree == 1 or experts is None:
        return degree == 1  # nothing to spread
    return degree <= experts and (llm.get("expert_loads") is not None or experts % degree == 0)
