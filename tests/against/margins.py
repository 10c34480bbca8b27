"""Documents in which what a plan tells of one more, or of a little less, can be solved for."""

import copy
from collections.abc import Iterator

from models.plan import Plan
from tests.against.told import Document, built, with_cards

SMALL = 1e-3
"""Share of the arrivals at which every promise holds, so that the most requests/s is all that counts."""


def most(document: Document) -> Document:
    """The same question with the most requests/s as its objective and next to nothing that has to be served."""
    changed = copy.deepcopy(document)
    made = built(document)
    changed["objective"] = "throughput"
    changed["service"].pop("drain", None)
    changed["limits"].pop("spare", None)
    for name, load in changed["workloads"].items():
        load["rate"] = f"{made.workloads[name].rate * SMALL!r}/s"
        load.pop("minimum_share", None)
    return changed


def one_more(document: Document, names: list[str]) -> Document | None:
    """One more GPU in each of the groups; None where no number of servers says that."""
    changed: Document | None = copy.deepcopy(document)
    for name in names:
        if changed is not None:
            changed = with_cards(changed, name, built(changed).hardware.groups[name].cards + 1)
    return changed


def wider(document: Document, link: str) -> Document:
    """One more step of a link, or one more port where it has none for sale; what is for sale stays."""
    changed = copy.deepcopy(document)
    described = changed["hardware"]["links"][link]
    step = described.get("step")
    described["ports"] = described.get("ports", 1) + (step.get("ports", 1) if step else 1)
    return changed


def fixed(document: Document, plan: Plan) -> Document | None:
    """The document with the units and purchases of the plan; None where limits cannot say that."""
    paced = any(pool.step_s for pool in plan.pools)
    if paced or document.get("measured") or any(bought.kind == "rented" for bought in plan.purchases):
        return None
    changed = copy.deepcopy(document)
    bought = {one.name: one.count for one in plan.purchases}
    for name, bundle in changed["hardware"].get("bundles", {}).items():
        bundle["at_most"] = bought.get(name, 0)
    for name, link in changed["hardware"]["links"].items():
        if "step" in link and bought.get(name):
            step, own = link.pop("step"), link.get("ports", 1)
            link["ports"] = own + bought[name] * step.get("ports", 1)
        link.pop("step", None)
    for name, group in changed["hardware"]["groups"].items():
        if group["servers"] == "unlimited":
            group["servers"] = 0
        mine = [pool for pool in plan.pools if pool.group == name]
        cuts = {(pool.parallelism.tp, pool.parallelism.pp) for pool in mine}
        if len(cuts) > 1:
            return None
        for tp, pp in cuts:
            group.update(tp=[tp], pp=[pp])
    changed["limits"]["pools"] = list(_exactly(plan, list(changed["hardware"]["groups"]), list(changed["models"])))
    return changed


def _exactly(plan: Plan, groups: list[str], models: list[str]) -> Iterator[Document]:
    for group in groups:
        for model in models:
            for key, word in (("stage", "prefill"), ("stage", "decode"), ("scheme", "replicas"), ("scheme", "chunked")):
                count = sum(
                    pool.units
                    for pool in plan.pools
                    if (pool.group, pool.model, getattr(pool, key)) == (group, model, word)
                )
                yield {key: word, "group": group, "model": model, "exactly": count}


def headroom(document: Document) -> Document:
    """The same question for the largest multiple of the arrivals."""
    return {**copy.deepcopy(document), "objective": "headroom"}


def scaled(document: Document, factor: float) -> Document:
    """Every efficiency times a factor."""
    changed = copy.deepcopy(document)
    hardware = changed["hardware"]
    for place in (hardware, *hardware["groups"].values()):
        if "efficiency" in place:
            place["efficiency"] = {key: value * factor for key, value in place["efficiency"].items()}
    return changed


def narrower(document: Document, link: str, factor: float) -> Document:
    """The bandwidth of a link times a factor."""
    changed = copy.deepcopy(document)
    before = built(document).hardware.links[link].bandwidth
    changed["hardware"]["links"][link]["bandwidth"] = f"{before * factor!r} B/s"
    return changed


def arriving(document: Document, factor: float) -> Document:
    """Every rate times a factor."""
    changed = copy.deepcopy(document)
    made = built(document)
    for name, load in changed["workloads"].items():
        load["rate"] = f"{made.workloads[name].rate * factor!r}/s"
    return changed
