"""GPUs of a plan: they exist or were bought, units can be built of them, pack into servers, and hold what they must.

Part of the verifier: nothing here knows the rows of the optimisation model.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from models.instance import Instance
from models.plan import Plan, Pool
from solver.conservation import over
from solver.formulas import memory
from solver.packing import packs
from solver.recomputed import built_of
from solver.topology import Topology


def cards(plan: Plan, instance: Instance, topology: Topology) -> Iterator[str]:
    """What is wrong with the GPUs: units that cannot be, more than there are, or servers that they do not pack into."""
    blocks: dict[str, Counter[int]] = {}
    names = [pool.name for pool in plan.pools]
    yield from _purchases(plan, instance)
    for filling in plan.servers:
        if filling.group not in instance.hardware.groups:
            yield f"servers[{filling.group}]: there is no such group"
    for pool in plan.pools:
        if names.count(pool.name) > 1:
            yield f"pools: {pool.name} is listed twice"
        built = built_of(plan, pool, instance, topology)
        if pool.part_of is not None:
            if reason := _no_part(pool, plan.pools):
                yield f"pools: {pool.name} {reason}"
            continue
        if pool.shares is not None:
            if not _is_use(pool, plan.pools):
                yield f"pools: {pool.name} shares units that are not there"
            if pool.measured is None and built.cut is None:
                yield f"pools: {pool.name} cannot be built like that"
            continue
        if pool.units < 1 or pool.cards != pool.units * pool.cards_per_unit:
            yield f"pools: {pool.name} has {pool.cards} cards for {pool.units} units of {pool.cards_per_unit}"
            return
        if reason := built.impossible():
            yield f"cards[{pool.group}]: {pool.name}: {reason}"
            return
        for place, size, count in built.blocks:
            blocks.setdefault(place, Counter())[size] += pool.units * count
    for name, sizes in blocks.items():
        group, there = instance.hardware.groups[name], _there(plan, instance, name)
        cards = sum(pool.cards for pool in plan.pools if pool.group == name)
        if cards > there:
            yield f"cards[{name}]: {cards} used of {there}"
        elif group.servers == "unlimited" and group.rent == "gpu":
            continue  # as many servers as units need; only their GPUs are rented
        elif any(filling.group == name for filling in plan.servers):
            yield from _filled(plan, name, sizes, there, group.per_server)
        elif not packs(sizes, -(-there // group.per_server), group.per_server):
            yield f"cards[{name}]: units do not pack into servers of {group.per_server}"


def _filled(plan: Plan, name: str, sizes: Counter[int], there: int, per_server: int) -> Iterator[str]:
    """The plan says how servers are filled: the blocks fit in each, there are so many, and they hold every unit."""
    count, room = 0, Counter[int]()
    for filling in plan.servers:
        if filling.group != name:
            continue
        count += filling.count
        if sum(int(size) * number for size, number in filling.blocks.items()) > per_server:
            yield f"servers[{name}]: blocks {filling.blocks} do not fit in a server of {per_server}"
        for size, number in filling.blocks.items():
            room[int(size)] += filling.count * number
    if count * per_server > there:
        yield f"servers[{name}]: {count} filled, {there // per_server} there"
    for block, needed in sizes.items():
        if needed > room[block]:
            yield f"servers[{name}]: room for {room[block]} blocks of {block} GPUs, {needed} are needed"


def _no_part(pool: Pool, pools: Sequence[Pool]) -> str:
    """Why a pool is no part of the units of another; "" when it is. What it takes is looked at there."""
    main = next((other for other in pools if other.name == pool.part_of and other.part_of is None), None)
    if main is None:
        return "is a part of units that are not there"
    if pool.units != main.units or pool.cards != pool.units * pool.cards_per_unit or pool.rates:
        return "does not go with the units that it is a part of"
    return ""


def _is_use(pool: Pool, pools: Sequence[Pool]) -> bool:
    """Whether a pool without GPUs is another use of one that has some."""
    owner = next((other for other in pools if other.name == pool.shares and other.shares is None), None)
    if owner is None or pool.cards != 0 or {pool.scheme, owner.scheme} != {"hybrid"}:
        return False
    keys = ("group", "model", "units", "cards_per_unit", "parallelism")
    return all(getattr(pool, key) == getattr(owner, key) for key in keys)


def _there(plan: Plan, instance: Instance, name: str) -> int:
    """GPUs of a group that are there, bought or rented."""
    return instance.hardware.groups[name].cards + sum(p.cards.get(name, 0) for p in plan.purchases)


def _purchases(plan: Plan, instance: Instance) -> Iterator[str]:
    offers, links = instance.hardware.purchases, instance.hardware.links
    for bought in plan.purchases:
        place = f"purchases[{bought.name}]"
        if bought.kind == "link step":
            step = links[bought.name].step if bought.name in links else None
            if step is None or not 0 < bought.count <= step.at_most:
                yield f"{place}: no such step of a link"
            continue
        if bought.kind == "tier":
            continue  # with the tiers
        offer = offers.get(bought.name)
        if offer is None or bought.count < 1:
            yield f"{place}: nothing of this name is for sale"
            continue
        if offer.at_most is not None and bought.count > offer.at_most:
            yield f"{place}: {bought.count} of at most {offer.at_most}"
        if bought.cards != {name: count * bought.count for name, count in offer.cards.items()}:
            yield f"{place}: brings other cards"


def held(plan: Plan, instance: Instance, topology: Topology) -> Iterator[str]:
    """Pools whose GPUs hold more than they may."""
    for pool in plan.pools:
        if pool.shares is not None or pool.part_of is not None:
            continue
        group = instance.hardware.groups[pool.group]
        usable = memory.usable_bytes(group.accelerator.memory, group.usable)
        need = 0.0 if pool.measured else built_of(plan, pool, instance, topology).needed_bytes()
        if over(need, usable):
            yield f"memory[{pool.name}]: {need:.6g} B of {usable:.6g} B"
