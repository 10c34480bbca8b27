"""How units may be cut over GPUs: degrees of tensor and pipeline parallelism, where their stages stand, what they send.

Tensor parallelism stays inside a server. The stages of a unit stand in one server where they fit there, else one stage
to a server, and what passes between them crosses the group's link. Units whose GPUs do not all do the same are in
:mod:`solver.layouts`.
"""

from models.hardware import Group
from models.instance import Instance
from models.llm import Llm
from models.shapes import divides
from solver import physics
from solver.cut import Cut, Leg
from solver.formulas import parallel
from solver.physics import Device, Shape
from solver.topology import Topology

MOST_STAGES = 64
"""Stages up to which it is told what would fit."""


def one(instance: Instance, topology: Topology, group: str, shape: Shape, tp: int, pp: int) -> Cut | None:
    """The cut of these degrees; None where the stages stand in servers that no link joins, or GPUs are not joined."""
    described = instance.hardware.groups[group]
    if tp > described.per_server or (tp > 1 and described.scale_up is None):
        return None
    inside = pp == 1 or (tp * pp <= described.per_server and described.scale_up is not None)
    across = None if inside else topology.hop(group)
    if not inside and across is None:
        return None
    wired = described.scale_up
    hop = (across.bandwidth, across.startup) if across else (wired.payload_bandwidth, wired.startup) if wired else None
    device = physics.device_of(instance, described, shape.precision, tp, pp, hop)
    if across is None:
        return Cut(device, tp * pp, tp, pp)
    each = (pp - 1) * parallel.activation_bytes(1.0, shape.hidden, shape.other_bytes)
    return Cut(device, tp, tp, pp, legs=(Leg(across, each),))


def cuts(instance: Instance, topology: Topology, group: str, model: str, shape: Shape) -> list[Cut]:
    """Every cut to be tried for ``model`` on ``group``: as stated, else powers of two inside a server, and at the
    widest of them, or at each for a mixture of experts, more stages where weights take most of the memory.
    """
    described, llm = instance.hardware.groups[group], instance.models[model]
    stated, found = both(described.pp, llm.pp), list[Cut]()
    degrees = tensor(described, llm)
    for tp in degrees:
        more = tp == max(degrees) or shape.routed is not None  # experts make wide TP dear, and its sums frequent
        stages = stated or (_stages(shape, llm, described, tp) if more else [1])
        made = (one(instance, topology, group, shape, tp, pp) for pp in stages)
        found.extend(cut for cut in made if cut is not None)
    return found


ROOMY = 0.5
"""Share of the memory up to which weights leave so much room for state that more stages need not be tried."""


def _stages(shape: Shape, llm: Llm, group: Group, tp: int) -> list[int]:
    """Numbers of stages to be tried: one where it holds the weights, the fewest that hold them, and the fewest that
    leave half of the memory for state.
    """
    tried: list[int] = []
    for pp in range(1, min(llm.num_hidden_layers, MOST_STAGES) + 1):
        device = Device(group.accelerator.memory * group.usable, 1.0, 1.0, 1.0, tp, pp)
        held = physics.weights_on_card(shape, device) / device.memory
        if held < 1.0 and (not tried or held <= ROOMY):
            tried.append(pp)
        if held <= ROOMY:
            break
    return tried or [1]


def tensor(group: Group, llm: Llm) -> list[int]:
    """Degrees of tensor parallelism to be tried."""
    stated = both(group.tp, llm.tp)
    shape = llm.model_dump(exclude={"handoff_state"})
    if stated is None:
        stated = [2**power for power in range(group.per_server.bit_length())]
    return [tp for tp in stated if tp <= group.per_server and divides(tp, shape)]


def both(one: list[int] | None, other: list[int] | None) -> list[int] | None:
    """Degrees that both allow; None where neither says anything."""
    if one is None or other is None:
        return one if other is None else other
    return [degree for degree in one if degree in other]


def would_fit(instance: Instance, group: str, model: str, shape: Shape) -> str:
    """The smallest cut that would hold the weights of ``model`` on GPUs of ``group``, in words; "" if there is none."""
    described, llm = instance.hardware.groups[group], instance.models[model]
    degrees = [2**power for power in range(7) if divides(2**power, llm.model_dump(exclude={"handoff_state"}))]
    best: tuple[int, int, str] | None = None
    for tp in degrees:
        for pp in range(1, min(llm.num_hidden_layers, MOST_STAGES) + 1):
            device = physics.device_of(instance, described, shape.precision, tp, pp)
            if physics.weights_on_card(shape, device) >= 0.95 * device.memory:
                continue
            if tp <= described.per_server or pp == 1:
                text = f"TP{tp}" + (f" x PP{pp}" if pp > 1 else "")
                best = min(best or (tp * pp, pp, text), (tp * pp, pp, text))
            break
    return "" if best is None else f"{best[2]} would, on {best[0]} such GPUs"
