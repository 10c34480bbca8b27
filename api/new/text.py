"""The instance file as text: what is known is filled in, what nobody can know is left blank, each with a comment."""

from dataclasses import dataclass, field

from api.new.cluster import Cluster, Group, listed
from api.new.config import Shape
from api.new.page import Page, Scalar
from models.blanks import BLANK
from models.errors import shown

WORKLOAD = "chat"
_PRICE = "of one GPU, e.g. 2.50/h"
_ACCELERATOR = "a name that `inferplan catalog accelerators` lists, e.g. H100-SXM-80GB"


@dataclass(frozen=True)
class Model:
    """The model of the file: its key there, and its name in the catalog or its shape."""

    name: str
    catalog: str | None = None
    shape: Shape | None = None
    source: str = ""


@dataclass(frozen=True)
class Demand:
    """What the file says about requests, key by key; a percentile that was asked for stands as a hard limit."""

    keys: dict[str, Scalar]
    targets: dict[str, str] = field(default_factory=dict)
    percentiles: frozenset[str] = frozenset()
    """Targets that were asked for as p95."""


def percentile_note(name: str) -> str:
    """What became of a target that was asked for as a percentile."""
    return f"{name} was asked for as p95; it stands here as a hard limit on every request, without queueing"


def write(name: str, cluster: Cluster | None, model: Model, demand: Demand) -> str:
    """The whole file."""
    page = Page()
    page.say(
        0, f"Written by `inferplan new`. Fill in what is left blank ({BLANK}); inside braces it needs quotes. Then:"
    )
    page.say(0, "inferplan check FILE, and inferplan solve FILE.")
    page.value(0, "schema", 1)
    page.value(0, "name", name)
    page.gap()
    page.key(0, "hardware")
    for remark in cluster.remarks if cluster else ():
        page.say(1, remark)
    page.say(1, "Prices: delete every `price` line and say `objective: throughput` below to plan without them.")
    page.key(1, "groups", "identical servers form a group; GPUs are counted, not named")
    for group in cluster.groups if cluster else ():
        _group(page, group)
    if cluster is None:
        _blank_group(page)
    _links(page, [group.name for group in cluster.groups] if cluster else ["gpus"])
    page.gap()
    _model(page, model)
    page.gap()
    _workload(page, model, demand)
    page.gap()
    _rest(page)
    return page.text()


def _group(page: Page, group: Group) -> None:
    page.key(2, group.name, listed(group.nodes))
    for remark in group.remarks:
        page.say(3, f"{remark[:1].upper()}{remark[1:]}.")
    _accelerator(page, group)
    page.value(3, "servers", group.servers)
    page.value(3, "per_server", group.per_server, "GPUs in one server")
    if group.accelerator is None and group.product and group.per_server > 1:
        page.value(3, "scale_up", BLANK, "link between its GPUs, e.g. NVLink-4; delete it, and units have one GPU")
    page.value(3, "price", BLANK, _PRICE)
    if group.labels:
        page.key(3, "labels", "of the nodes; carried along")
    for key, value in group.labels.items():
        page.value(4, key, value)


def _accelerator(page: Page, group: Group) -> None:
    if group.accelerator:
        page.value(3, "accelerator", group.accelerator, f"{group.named_by}: {group.product}")
        return
    if not group.product:
        page.say(3, "No label of these nodes names the GPU.")
        page.value(3, "accelerator", BLANK, _ACCELERATOR)
        return
    page.say(
        3, f"The catalog does not have {shown(group.product)} ({group.named_by}): describe it from its data sheet."
    )
    page.key(3, "accelerator")
    page.value(4, "name", group.product)
    if group.memory:
        page.value(4, "memory", f"{group.memory} MiB", "as its driver reports it, nvidia.com/gpu.memory")
    else:
        page.value(4, "memory", BLANK, "of one GPU, e.g. 80 GB")
    page.value(4, "bandwidth", BLANK, "peak of its memory, e.g. 3350 GB/s")
    page.key(4, "compute", "dense peak, not `with sparsity`; add fp8 if the GPU has it")
    page.value(5, "bf16", BLANK, "e.g. 989 TFLOP/s")


def _blank_group(page: Page) -> None:
    page.key(2, "gpus", "a name of yours; a second kind of server is a second group")
    page.value(3, "accelerator", BLANK, _ACCELERATOR)
    page.value(3, "servers", BLANK, "number of identical servers, e.g. 2")
    page.value(3, "per_server", BLANK, "GPUs in one server, e.g. 8")
    page.value(3, "price", BLANK, _PRICE)


def _links(page: Page, groups: list[str]) -> None:
    what = "of one server in one direction, e.g. 200 Gbit/s"
    if len(groups) > 1:
        page.say(1, "Handing the KV from one group to another needs a link; delete `links` if none is to cross.")
        page.key(1, "links")
        page.key(2, "network")
        page.value(3, "connects", groups)
        page.value(3, "bandwidth", BLANK, what)
        page.value(3, "per", "server", "each server has a port of its own")
        return
    page.say(1, "Without a link no KV is handed from one GPU to another. To allow it:")
    page.lines += [
        "  # links:",
        "  #   network:",
        f"  #     connects: [{groups[0]}]",
        f'  #     bandwidth: "{BLANK}"'.ljust(42) + f"  # {what}",
        "  #     per: server".ljust(42) + "  # each server has a port of its own",
    ]


def _model(page: Page, model: Model) -> None:
    page.key(0, "models")
    page.key(1, model.name, shown(model.source) if model.source else "")
    page.say(2, "tp: [1, 2, 4, 8] would keep units to so many GPUs; left out, what is best is chosen.")
    if model.shape is None:
        page.value(2, "catalog", model.catalog or BLANK, f"inferplan catalog models {model.catalog}")
        return
    for remark in model.shape.remarks:
        page.say(2, f"{remark[:1].upper()}{remark[1:]}.")
    comments = {"weights": "precision of the layers", "kv": "precision of the KV; fp8 if the engine is set so"}
    for key, value in model.shape.keys.items():
        if value is not None:
            page.value(2, key, value, comments.get(key, ""))


def _workload(page: Page, model: Model, demand: Demand) -> None:
    comments = {
        "rate": "arrivals",
        "users": "people, or programs, that ask",
        "think_time": "from an answer to the next question of the same user, e.g. 45 s",
        "input": "tokens of a request",
        "output": "tokens of an answer",
    }
    page.key(0, "workloads")
    page.key(1, WORKLOAD, "a name of yours; a second kind of request is a second entry")
    page.value(2, "model", model.name)
    for key, value in demand.keys.items():
        page.value(2, key, value, comments[key])
    if demand.targets:
        page.key(2, "targets", "hard limits on every request, without queueing")
    for key, value in demand.targets.items():
        if key in demand.percentiles:
            page.say(3, f"{percentile_note(key)}.")
        page.value(3, key, value, "first token" if key == "ttft" else "each token after the first")


def _rest(page: Page) -> None:
    page.key(0, "billing")
    page.value(1, "currency", "USD", "what the prices are in; nothing is converted")
    page.value(1, "pay", "used", "for the GPUs in the plan; reserved: for all that are listed")
    page.say(0, "To say more, take the # away:")
    page.lines += [
        "# service: {startup: 90 s, drain: 10 min}".ljust(42)
        + "  # from stopped to ready; startup backlog gone by then",
        "# objective: throughput".ljust(42) + "  # most requests/s with all GPUs; needs no price",
    ]
