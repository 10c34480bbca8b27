"""What a plan uses of everything that there is: cards, units, links and stores; and what it buys besides."""

from typing import Literal

from models.plan import Drain, Purchase, Resource, Traffic
from solver.chosen import FULL, Chosen
from solver.data import Data
from solver.regimes import Settled
from solver.tiers import told


def charges(chosen: Chosen, at: Settled | None = None) -> dict[str, float]:
    """Share of every channel and store that is used, unused ones included; at capacity unless flows are named."""
    flows = at or chosen.settled
    used = {f"link[{name}]": 0.0 for name in chosen.data.topology.channels}
    for name, store in chosen.instance.hardware.stores.items():
        if store.holds == "state":  # what the encoder cache keeps is not told by rates
            used[f"store[{name}]"] = 0.0
        for word, bandwidth in (("write", store.write), ("read", store.read)):
            if bandwidth is not None:
                used[f"store[{name},{word}]"] = 0.0
    for r, route in enumerate(chosen.data.routes):
        for resource, share in route.charges.items():
            used[resource] += share * flows.routes[r]
    for index, candidate in chosen.used:
        for name, shares in candidate.charges.items():
            for resource, share in shares.items():
                used[resource] += share * flows.rates.get((name, index), 0.0)
    for channel, share in told.charges(chosen, flows).items():
        used[f"link[{channel}]"] += share
    return used


def capacity_of(data: Data, resource: str) -> tuple[float, str]:
    """Capacity of a channel or store, with its unit."""
    kind, _, inside = resource.partition("[")
    name = inside[:-1]
    if kind == "link":
        return data.topology.channels[name].capacity, "B/s"
    store, _, word = name.partition(",")
    described = data.instance.hardware.stores[store]
    if word:
        return (described.write if word == "write" else described.read) or 0.0, "B/s"
    return described.capacity, "B"


def resources(chosen: Chosen, drain: Drain | None) -> list[Resource]:
    """Every row that a user would name: cards, pools, links and stores, and the promises."""
    rows = []
    for name, there in chosen.there.items():
        taken, group = chosen.cards[name], chosen.instance.hardware.groups[name]
        endless = group.servers == "unlimited" and group.rent == "gpu"
        rows.append(_resource(f"cards[{name}]", taken, there, taken >= there > 0 and not endless, "cards"))
    for index, candidate in chosen.used:
        loads = chosen.busy(index, chosen.load)
        if candidate.face:
            continue
        for resource, load, busy in zip(candidate.resources, loads, chosen.busy(index), strict=True):
            count = float(chosen.counts[index])
            name = f"capacity[{candidate.name},{resource}]"
            rows.append(_resource(name, load * count, count, busy >= FULL, "units"))
    loads_of = charges(chosen, chosen.load)
    for resource, share in charges(chosen).items():
        capacity, unit = capacity_of(chosen.data, resource)
        rows.append(_resource(resource, loads_of[resource] * capacity, capacity, share >= FULL, unit))
    for name, load, full, capacity, unit in told.resources(chosen):
        rows.append(_resource(name, load, capacity, full >= FULL * capacity > 0.0, unit))
    instance, most = chosen.instance, chosen.settled.throughput
    served = sum(chosen.served(name) for name in instance.workloads)
    if instance.drops:  # what is turned away is what the units cannot do, or what does not pay
        rows.append(_resource("served", served, instance.rate, False, "requests/s"))
    else:
        rows.append(_resource("sustain", served, most, served >= FULL * most, "requests/s"))
    if drain is not None and drain.deadline_s is not None and drain.drained_s is not None:
        tight = drain.drained_s >= drain.deadline_s * FULL
        rows.append(_resource("drain", drain.drained_s, drain.deadline_s, tight, "s"))
    return rows


def _resource(name: str, demand: float, capacity: float, binding: bool, unit: str) -> Resource:
    utilisation = demand / capacity if capacity > 0 else 0.0
    return Resource(name=name, demand=demand, capacity=capacity, utilisation=utilisation, binding=binding, unit=unit)


def traffic(chosen: Chosen) -> list[Traffic]:
    """What crosses each channel at load."""
    used = charges(chosen, chosen.load)
    rows = []
    for name, channel in chosen.data.topology.channels.items():
        share = used.get(f"link[{name}]", 0.0)
        rows.append(
            Traffic(link=name, bytes_per_s=share * channel.capacity, capacity=channel.capacity, utilisation=share)
        )
    return rows


def purchases(chosen: Chosen) -> list[Purchase]:
    """What the plan buys or rents, and the steps that it adds to links."""
    hardware, found = chosen.instance.hardware, []
    for name, bundle in hardware.purchases.items():
        group = hardware.groups.get(name)
        if group is not None and group.rent == "gpu":
            count = chosen.cards[name]
            paid: float | None = sum(chosen.counts[i] * c.price_on(name) for i, c in chosen.used)
            paid = None if group.price is None and not paid else paid
        else:
            count = chosen.bundles.get(name, 0)
            paid = None if bundle.price is None else count * bundle.price
        if count:
            cards = {where: each * count for where, each in bundle.cards.items()}
            kind: Literal["bundle", "rented"] = "bundle" if group is None else "rented"
            hour = None if paid is None else 3600.0 * paid
            found.append(Purchase(name=name, kind=kind, count=count, cards=cards, per_hour=hour))
    for name, count in chosen.steps.items():
        step = hardware.links[name].step
        if count and step is not None:
            hour = 3600.0 * count * step.price
            found.append(Purchase(name=name, kind="link step", count=count, cards={}, per_hour=hour))
    for name, count, price in told.pieces(chosen):
        found.append(Purchase(name=name, kind="tier", count=count, cards={}, per_hour=3600.0 * count * price))
    return found
