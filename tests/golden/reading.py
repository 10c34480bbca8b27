"""Golden values as they stand in values*.yaml, and the models, cards and instances that they speak of."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from models import catalog, files, load
from models.hardware import Accelerator, Cpu
from models.instance import Instance
from models.llm import Llm
from models.units import (
    BYTE_RATE,
    BYTES,
    FLOP_RATE,
    MONEY_RATE,
    REQUEST_RATE,
    SHARE,
    TIME,
    parse,
    write,
)
from models.workload import Workload
from solver import physics, units
from solver.formulas import state
from solver.physics import Device, Shape

DOCUMENTS = [files.read(path).data for path in sorted(Path(__file__).parent.glob("values*.yaml"))]
CONSTANTS: Mapping[str, Any] = next(held["constants"] for held in DOCUMENTS if "constants" in held)

Cards = Mapping[str, int]
"""Cards by name."""
Value = float | list[int] | list[float]
"""In SI units; a split of cards is a list of counts, a grid one of rates."""
Quantity = Callable[..., Value]
"""How a value follows from the inputs of an entry."""


@dataclass(frozen=True)
class Entry:
    """One golden value; ``expected`` and ``exact`` are in ``unit``."""

    id: str
    section: str
    quantity: str
    inputs: Mapping[str, Any]
    expected: Any
    unit: str
    exact: Any
    rel_tol: float
    compare: str = "approx"


ENTRIES = [Entry(**entry) for held in DOCUMENTS for entry in held["entries"]]

SIZES = {
    **{unit: parse(f"1 {unit}", BYTES) for unit in ("B", "KiB", "MiB", "GiB", "kB", "MB", "GB", "TB")},
    **{unit: parse(f"1 {unit}", TIME) for unit in ("ns", "us", "ms", "s", "min", "day")},
    **{unit: parse(f"1 {unit}/s", FLOP_RATE) for unit in ("FLOP", "MFLOP", "GFLOP", "TFLOP")},
    **{unit: parse(f"1 {unit}", BYTE_RATE) for unit in ("MB/s", "GB/s")},
    "TFLOP/s": parse("1 TFLOP/s", FLOP_RATE),
    "GiB*s": parse("1 GiB", BYTES),
    "percent": parse("1 %", SHARE),
    **dict.fromkeys(("request/s", "pair/s", "token/s", "call/s", "currency/1000 requests", "ratio", "x"), 1.0),
    **dict.fromkeys(("card", "token", "request", "prefix", "call", "step", "chunk"), 1.0),
    **dict.fromkeys(("group", "index", "instance", "scheme", "layer", "page", "segment"), 1.0),
    **dict.fromkeys(("expert", "row", "parameter", "message", "batch", "bool"), 1.0),
}
"""One of each unit of the entries, in SI units."""


def in_bytes(text: str) -> float:
    """Bytes in ``text``."""
    return parse(text, BYTES)


def in_bytes_per_s(text: str) -> float:
    """B/s in ``text``."""
    return parse(text, BYTE_RATE)


def per_second(text: str) -> float:
    """Requests/s (or handoffs/s) in ``text``."""
    return parse(text, REQUEST_RATE)


def in_seconds(text: str) -> float:
    """Seconds in ``text``."""
    return parse(text, TIME)


def share(value: str | float) -> float:
    """A share, written as one or in percent."""
    return parse(value, SHARE)


@cache
def llm(model: str) -> Llm:
    """The catalog's entry for a model of the constants, in BF16."""
    described = catalog.entry("models", CONSTANTS["models"][model]["catalog"])
    return Llm.model_validate({**(described or {}), "weights": "bf16", "kv": "bf16"})


@cache
def accelerator(card: str) -> Accelerator:
    """The catalog's entry for a card of the constants."""
    return Accelerator.model_validate(catalog.entry("accelerators", CONSTANTS["cards"][card]["catalog"]))


@cache
def cpu_socket(cpu: str) -> Cpu:
    """The catalog's entry for a CPU of the constants."""
    return Cpu.model_validate(catalog.entry("cpus", CONSTANTS["cpus"][cpu]["catalog"]))


@cache
def shape(model: str) -> Shape:
    """What a dense model costs."""
    return physics.shape_of(llm(model))


@cache
def per_token(model: str, form: str = "native") -> float:
    """State of one token, in bytes; MLA may be stored compact (its native form) or expanded per head."""
    described, element = llm(model), physics.BYTES["bf16"]
    layers, heads = described.num_hidden_layers, described.num_attention_heads
    latent, rope = described.kv_lora_rank, described.qk_rope_head_dim
    nope, v_dim = described.qk_nope_head_dim, described.v_head_dim
    if latent is None or rope is None or nope is None or v_dim is None:
        return state.kv_bytes_per_token_gqa(layers, described.num_key_value_heads, described.head_dim, element)
    if form == "expanded":
        return state.kv_bytes_per_token_mla_expanded(layers, heads, nope + rope, v_dim, element)
    return state.kv_bytes_per_token_mla(layers, latent, rope, element)


def kv(model: str, tokens: float, batch: float = 1.0, form: str = "native") -> float:
    """State of ``batch`` requests of ``tokens`` tokens, in bytes."""
    return state.state_bytes(tokens, per_token(model, form), batch)


def document(
    workload: str,
    cluster: Cards | None = None,
    prefill: Cards | None = None,
    decode: Cards | None = None,
    link: str = "25 GB/s",
    derate: float = 1.0,
    arrival: str = "3.5/s",
    startup: str = "10 s",
    deadline: str = "60 s",
    hourly: str = "8/h",
    qualifying: float = 1.0,
) -> str:
    """A deployment question as a user would write it; ``prefill`` and ``decode`` fix the pools to a split."""
    ins, outs = dict(prefill or {}), dict(decode or {})
    cards = cluster or {card: ins.get(card, 0) + outs.get(card, 0) for card in CONSTANTS["cards"]}
    cards = {card: count for card, count in cards.items() if count}
    described = CONSTANTS["workloads"][workload]
    efficiency = CONSTANTS["efficiency"] * derate
    price = write(parse(hourly, MONEY_RATE) / sum(cards.values()), MONEY_RATE)
    fixed = (("prefill", ins), ("decode", outs)) if ins or outs else ()
    groups = {
        card: {
            "accelerator": CONSTANTS["cards"][card]["catalog"],
            "servers": 1,
            "per_server": count,
            "price": price,
            "usable_memory": 1.0,
        }
        for card, count in cards.items()
    }
    return files.dump(
        {
            "schema": 1,
            "name": "golden",
            "hardware": {
                "groups": groups,
                "links": {
                    "rdma": {
                        "connects": list(groups),
                        "bandwidth": link,
                        "startup": "5 us",
                        "duplex": "shared",
                        "link_efficiency": 1,
                    }
                },
                "stores": {"pool": {"on": "rdma", "capacity": "64 GiB"}},
                "efficiency": {"compute": efficiency, "bandwidth": efficiency},
            },
            "models": {
                name: {"catalog": model["catalog"], "weights": "bf16", "kv": "bf16", "tp": 1}
                for name, model in CONSTANTS["models"].items()
                if name == described["model"]
            },
            "workloads": {workload: {**described, "rate": arrival, "qualifying": qualifying}},
            "service": {"startup": startup, "drain": deadline},
            "billing": {"currency": "credit", "pay": "reserved"},
            "limits": {
                "pools": [
                    {"stage": stage, "group": card, "exactly": pool.get(card, 0)}
                    for stage, pool in fixed
                    for card in groups
                ]
            },
        }
    )


@cache
def instance(text: str) -> Instance:
    """The instance in a document."""
    return load.build(files.parse(text))


@dataclass(frozen=True)
class One:
    """One card with one workload: what a stage takes there."""

    shape: Shape
    device: Device
    workload: Workload

    @property
    def batch(self) -> int:
        """Requests that share a decode step."""
        assert isinstance(self.workload.batch, int)
        return self.workload.batch

    def demand(self, kind: units.Kind) -> tuple[float, ...]:
        """Unit-seconds that a request takes of each resource of a unit of this kind."""
        return units.demand(kind, self.shape, self.device, self.workload, self.batch)

    @property
    def prefill(self) -> physics.Work:
        """The prefill of one request."""
        return physics.workload_prefill(self.shape, self.device, self.workload)

    @property
    def step(self) -> physics.Work:
        """A decode step at full batch."""
        return physics.workload_decode(self.shape, self.device, self.workload).at(self.batch)


@cache
def one(workload: str, card: str) -> One:
    """A card of a one-card instance."""
    asked = instance(document(workload, {card: 1}))
    described = asked.workloads[workload]
    cost = physics.shape_of(asked.models[described.model])
    return One(cost, units.device(asked, card, cost), described)
