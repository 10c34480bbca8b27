"""compare, check and catalog as text."""

from collections.abc import Mapping, Sequence
from typing import Any

from api import words
from models.told import Row, TierRow
from models.units import GIB


def compare(instance: str, rows: list[Row], tiers: Sequence[TierRow] = ()) -> str:
    """Every scheme side by side; and what each tier is worth."""
    table = [["SCHEME", "SPLIT", "GiB a request", "compute", "channel", "req/s", "drained", "cost/1000", "VERDICT"]]
    for row in rows:
        payload = None if row.payload_bytes_per_request is None else row.payload_bytes_per_request / GIB
        gone = "-" if not row.throughput else "never" if row.drained_s is None else f"second {row.drained_s:.0f}"
        table.append(
            [
                row.scheme + (" (not allowed)" if row.excluded else ""),
                ", ".join(row.built) or "none",
                words.number(payload, 4),
                words.rate(row.compute_capacity),
                words.rate(row.channel_capacity) if row.channel_capacity else "-",
                words.rate(row.throughput or None),
                gone,
                words.price(row.cost_per_1000_requests),
                row.reason or "keeps every limit",
            ]
        )
    note = " each scheme alone at its most, without the sustain and drain limits; cost at the arrivals it serves"
    shown = [f"{instance}: schemes compared", "", *words.table(table, frozenset({2, 3, 4, 5, 7})), "", note]
    return "\n".join([*shown, *(("", *_tiers(tiers)) if tiers else ())])


def _tiers(rows: Sequence[TierRow]) -> list[str]:
    """The plan with other tiers."""
    table = [["TIERS", "GPUs", "cost/h", "cost/1000", "req/s", "tokens found", "WORSE BY", "KEPT IN"]]
    for row in rows:
        places = dict.fromkeys([*row.policies, *row.pieces])
        kept = [f"{n} {row.policies.get(n, '')} {row.pieces.get(n, '') or ''}".strip() for n in places]
        bad = row.status not in ("optimal", "feasible")
        table.append(
            [
                row.name,
                "-" if row.cards is None else f"{row.cards:,}",
                words.price(row.cost_per_hour),
                words.price(row.cost_per_1000_requests),
                words.rate(row.throughput),
                "-" if row.tokens_found is None else words.percent(row.tokens_found),
                row.status if bad else "-" if row.worse is None else words.percent(row.worse),
                ", ".join(kept),
            ]
        )
    note = " each the best plan that keeps every limit; pieces (steps, drives, nodes) behind the policy"
    return [*words.table(table, frozenset({1, 2, 3, 4, 5, 6})), "", note]


def sweep(paths: list[str], rows: list[dict[str, Any]]) -> str:
    """A row for each point of the grid, and its objective as a bar; requests/s where that is the same in all."""
    values = [row["objective"] for row in rows if row["objective"] is not None]
    key = "objective" if values and max(values) > min(values) * (1.0 + 1e-6) else "throughput"
    most = max((row[key] or 0.0 for row in rows), default=0.0)
    table = [[*paths, "STATUS", "scheme", "req/s", "drained", "GPUs", "cost/h", "cost/1000", ""]]
    for row in rows:
        gone = "-" if row["drained_s"] is None else f"second {row['drained_s']:.0f}"
        bar = "█" * round(20 * row[key] / most) if row[key] else ""
        table.append(
            [
                *(row["values"][path] for path in paths),
                row["status"],
                row["scheme"] or "-",
                words.rate(row["throughput"]),
                gone,
                "-" if row["cards"] is None else f"{row['cards']:,}",
                words.price(row["cost_per_hour"]),
                words.price(row["cost_per_1000_requests"]),
                bar,
            ]
        )
    right = frozenset(range(len(paths) + 2, len(paths) + 7))
    return "\n".join(
        [
            *words.table(table, right, indent=""),
            "",
            "the bars are " + ("the objective" if key == "objective" else "requests/s"),
        ]
    )


def check(found: Mapping[str, Any]) -> str:
    """What was understood of an instance."""
    lines = [f"{found['instance']}: valid", "", " TOPOLOGY"]
    topology = found["topology"]
    for group in topology["groups"]:
        lines.append(
            f"   {group['name']}: {_servers(group['servers'])} x {group['per_server']} "
            f"{group['accelerator']}, {group['usable_bytes'] / GIB:.1f} GiB usable each, "
            + ("ready by its steps" if group["startup_s"] is None else f"ready after {group['startup_s']:.4g} s")
            + ("" if group["links"] else ", on no link")
        )
    for link in topology["links"]:
        lines.append(f"   link {link['name']}: {words.gigabytes_per_second(link['capacity'])} GB/s payload")
    for store in topology["stores"]:
        kept = " for features of images" if store["for"] == "features" else ""
        lines.append(f"   store {store['name']} on {store['on']}: {words.gibibytes(store['capacity'])}{kept}")
    lines.extend(["", " MODELS"])
    for model in found["models"]:
        weights = f"{words.gibibytes(model['weight_bytes'])} of weights ({model['weights']})"
        state = f"{model['kv_bytes_per_token'] / 1024:.4g} KiB of KV a token ({model['kv']})"
        if model["sliding_layers"]:
            state += f"; {model['sliding_layers']} layers keep the last {model['sliding_window']} tokens alone"
        if model["linear_layers"]:
            state += f"; {model['linear_layers']} layers keep {model['recurrent_bytes'] / 1024**2:.4g} MiB a request"
        lines.append(f"   {model['name']}: {model['parameters'] / 1e9:.3g} B parameters, {weights}, {state}")
        if model["encoder_bytes"]:
            features = f"{model['feature_bytes_per_image'] / 2**20:.4g} MiB of features an image"
            lines.append(f"      encoder of images: {words.gibibytes(model['encoder_bytes'])} of these, {features}")
    lines.extend(["", " STAGES (one unit)"])
    rows = [["WORKLOAD", "STAGE", "GROUP", "BATCH", "compute", "memory", "unit-s a request", "req/s", "FROM"]]
    for stage in found["stages"]:
        label = stage["stage"] if stage["stage"] != "both" else stage["schemes"][0]
        label += "" if (stage["cards"] or 1) == 1 else f" {stage['cut']}"
        if stage["reason"]:
            rows.append([stage["workload"], label, stage["group"], "-", "-", "-", "-", "-", stage["reason"]])
            continue
        rows.append(
            [
                stage["workload"],
                label,
                stage["group"],
                str(stage["batch"] or "-"),
                words.seconds(stage["compute_s"]),
                words.seconds(stage["memory_s"]),
                words.number(stage["unit_seconds"], 4),
                words.rate(stage["rate"]),
                stage["provenance"],
            ]
        )
    lines.extend(words.table(rows, indent="   "))
    lines.extend(["", " ASSUMED"])
    lines.extend(words.table([[a["name"], a["value"], a["provenance"]] for a in found["assumptions"]], indent="   "))
    return "\n".join(lines)


def _servers(count: int | str) -> str:
    return words.plural(count, "server") if isinstance(count, int) else "as many servers as needed"


def catalog(kind: str | None, entries: list[dict[str, Any]], single: bool) -> str:
    """Names by kind, or one entry with the source of each number."""
    if single:
        entry = entries[0]
        sources = entry.get("sources", {})
        rows = [
            [key, _value(value), str(sources.get(key, entry.get("source", "") if key == "repository" else ""))]
            for key, value in entry.items()
            if key not in ("sources", "source", "kind_of_entry")
        ]
        return "\n".join(words.table(rows, indent=""))
    lines = []
    for name in dict.fromkeys(entry["kind_of_entry"] for entry in entries):
        lines.append(name if kind is None else f"{name}:")
        lines.extend(f"  {entry['name']}" for entry in entries if entry["kind_of_entry"] == name)
    return "\n".join(lines)


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_value(item)}" for key, item in value.items())
    return str(value)
