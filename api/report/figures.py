"""The charts of the report as plain plotly JSON: `{"data": [...], "layout": {...}}`, equal to the plan's numbers.

Colours are of middle lightness, for dark and light pages alike; what is marked is marked in words too.
"""

import html
from typing import Any

from api import answer, words
from api.backlog import curve, end
from models.errors import shown
from models.instance import Instance
from models.plan import Drain, Memory, Plan, Pool, Resource
from models.units import GIB

Figure = dict[str, Any]

BLUE, AMBER, GREEN, PURPLE, RED = "#3b82d0", "#d98a1f", "#2f9e7a", "#8a63c9", "#d9465c"
GREY, PALE = "#8793a3", "rgba(135,147,163,0.3)"
MEMORY = (("weights", PURPLE), ("kv", AMBER), ("buffers", GREEN), ("experts", BLUE), ("free", PALE))
MOST_BARS, FEW = 60, 24
"""Bars of a chart, and as many as are shown even when they are empty; the table beside it has every row."""


def figures(plan: Plan, instance: Instance) -> dict[str, Figure]:
    """The charts that this plan has, by name: `memory`, `utilisation`, `backlog`, `schemes`."""
    made = {
        "memory": _memory(plan),
        "utilisation": _utilisation(plan),
        "backlog": _backlog(plan, instance),
        "schemes": _schemes(plan, instance),
    }
    return {name: figure for name, figure in made.items() if figure is not None}


def memory_of(pool: Pool) -> Memory | None:
    """Memory of one GPU of the pool, where it was computed."""
    return pool.memory


def by_fullness(plan: Plan) -> list[Resource]:
    """Resources, those that bind first, then the fullest."""
    return sorted(plan.resources, key=lambda row: (not row.binding, -row.utilisation))


def charted(plan: Plan) -> list[Resource]:
    """Resources that the chart has room for: all of a few, of many those in use."""
    rows = by_fullness(plan)
    return [row for row in rows if len(rows) <= FEW or row.demand > 0][:MOST_BARS]


def amounts(row: Resource) -> tuple[str, str]:
    """Demand and capacity in units that people use."""
    scale, unit = {"B/s": (1e9, "GB/s"), "B": (GIB, "GiB")}.get(row.unit, (1.0, row.unit))
    return words.number(row.demand / scale, 4), f"{words.number(row.capacity / scale, 4)} {unit}"


def _memory(plan: Plan) -> Figure | None:
    known = [(pool.name, memory) for pool in plan.pools if (memory := memory_of(pool)) is not None][:MOST_BARS]
    if not known:
        return None
    names = [name for name, _ in known]
    data = []
    for part, colour in MEMORY:
        values = [float(getattr(memory, part)) for _, memory in known]
        if any(values) or part == "free":
            label = "KV" if part == "kv" else part
            hover = [
                f"{_text(name)}<br>{label}: {value / GIB:,.4g} of {memory.capacity / GIB:,.4g} GiB<br>{_exact(value)} B"
                for (name, memory), value in zip(known, values, strict=True)
            ]
            data.append(_bars(names, [value / GIB for value in values], colour, hover, name=label))
    layout = _layout(names, "GiB of one GPU")
    layout.update(barmode="stack", showlegend=True, legend=_legend())
    layout["height"] += 34
    return {"data": data, "layout": layout}


def _utilisation(plan: Plan) -> Figure | None:
    rows = charted(plan)
    if not rows:
        return None
    names = [row.name for row in rows]
    shares = [100.0 * row.utilisation for row in rows]
    hover = [
        f"{_text(row.name)}<br>{_exact(row.demand)} of {_exact(row.capacity)} {row.unit}<br>{_exact(share)} %"
        + ("<br>binds: full when the plan gives its most" if row.binding else "")
        for row, share in zip(rows, shares, strict=True)
    ]
    label = [f"{share:.1f} %" + (" binds" if row.binding else "") for row, share in zip(rows, shares, strict=True)]
    colours = [RED if row.binding else BLUE for row in rows]
    layout = _layout(names, "% used at the stated arrivals")
    layout["xaxis"].update(range=[0, max(100.0, *shares) * 1.55], tickvals=[0, 25, 50, 75, 100])
    layout["shapes"] = [_line(100.0, GREY)]
    return {"data": [_bars(names, shares, colours, hover, text=label)], "layout": layout}


def _backlog(plan: Plan, instance: Instance) -> Figure | None:
    points, drain = curve(plan, instance), plan.drain
    if drain is None or not points or max(waiting for _, waiting in points) <= 0:
        return None
    times, waiting = [time for time, _ in points], [height for _, height in points]
    last = max(end(plan), times[-1])
    if drain.drained_s is not None and last > times[-1]:  # gone, and gone it stays
        times, waiting = [*times, last], [*waiting, 0.0]
    area = {
        "type": "scatter",
        "mode": "lines+markers",
        "x": times,
        "y": waiting,
        "fill": "tozeroy",
        "fillcolor": "rgba(59,130,208,0.18)",
        "line": {"color": BLUE, "width": 3},
        "marker": {"color": BLUE, "size": 7},
        "hoverinfo": "text",
        "hovertext": [
            f"second {_exact(time)}<br>{_exact(height)} requests wait"
            for time, height in zip(times, waiting, strict=True)
        ],
    }
    layout = _plain()
    layout["height"] = 300
    layout["xaxis"].update(title={"text": "seconds from the start of startup"}, range=[0, last * 1.06])
    layout["yaxis"].update(title={"text": "requests waiting"}, range=[0, max(waiting) * 1.22], automargin=True)
    layout["shapes"], layout["annotations"] = _moments(drain, last)
    return {"data": [area], "layout": layout}


def _moments(drain: Drain, last: float) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Lines for what happens when, each with its words at a height of its own, towards the middle of the chart."""
    moments = [(drain.ready_s, "all ready", GREY, 1.0), (drain.drained_s, "gone", GREEN, 0.84)]
    moments.append((drain.deadline_s, "deadline", RED, 0.92))
    known = [(time, text, colour, height) for time, text, colour, height in moments if time is not None]
    lines = [_line(time, colour) for time, _, colour, _ in known]
    notes = [
        {
            "x": time,
            "y": height,
            "yref": "paper",
            "text": f"{text} {time:.4g} s",
            "showarrow": False,
            "xanchor": "right" if time > 0.8 * last else "left",
            "xshift": -4 if time > 0.8 * last else 4,
        }
        for time, text, _, height in known
    ]
    return lines, notes


def _schemes(plan: Plan, instance: Instance) -> Figure | None:
    if not plan.alternatives:
        return None
    rows = [("this plan", plan.throughput or 0.0, BLUE, plan.scheme or "")] if plan.pools else []
    for row in plan.alternatives:
        name = row.scheme + (" (not allowed)" if row.excluded else "")
        colour = PALE if row.excluded else GREEN if row.reason is None else GREY
        rows.append((name, row.throughput or 0.0, colour, answer.because(row, plan)))
    names, rates = [name for name, *_ in rows], [rate for _, rate, *_ in rows]
    hover = [f"{_text(name)}: {_exact(rate)} requests/s<br>{_text(text)}" for name, rate, _, text in rows]
    label = [words.rate(rate or None) for rate in rates]
    layout = _layout(names, "requests/s at most")
    layout["xaxis"]["range"] = [0, max(*rates, instance.rate) * 1.2]
    layout["shapes"] = [_line(instance.rate, RED)]
    note = {"x": instance.rate, "y": 1.0, "yref": "paper", "yanchor": "bottom", "showarrow": False}
    layout["annotations"] = [{**note, "text": f"{words.rate(instance.rate)} requests/s arrive"}]
    layout["margin"]["t"] = 26
    layout["height"] += 20
    return {"data": [_bars(names, rates, [colour for _, _, colour, _ in rows], hover, text=label)], "layout": layout}


def _bars(names: list[str], values: list[float], colour: str | list[str], hover: list[str], **more: Any) -> Figure:
    labelled = {"textposition": "outside", "cliponaxis": False} if "text" in more else {}
    bars = {"type": "bar", "orientation": "h", "y": names, "x": values, "marker": {"color": colour}}
    return {**bars, "hoverinfo": "text", "hovertext": hover, **labelled, **more}


def _layout(names: list[str], unit: str) -> Figure:
    """Of horizontal bars, the first at the top. Names are categories whatever they look like, and may be long."""
    layout = _plain()
    layout["height"] = 70 + 30 * len(names)
    layout["xaxis"].update(title={"text": unit}, rangemode="tozero", tickangle=0)
    layout["yaxis"].update(type="category", autorange="reversed", tickvals=names, automargin=True, showgrid=False)
    layout["yaxis"]["ticktext"] = [_text(shown(name, 44)).replace(",", ",<br>") for name in names]
    return layout


def _plain() -> Figure:
    return {
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "system-ui, sans-serif", "size": 12},
        "margin": {"l": 8, "r": 12, "t": 8, "b": 44},
        "showlegend": False,
        "dragmode": False,
        "bargap": 0.35,
        "xaxis": {"fixedrange": True, "zeroline": False, "automargin": True},
        "yaxis": {"fixedrange": True, "zeroline": False, "ticksuffix": " "},
    }


def _legend() -> dict[str, Any]:
    return {"orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom", "traceorder": "normal"}


def _line(at: float, colour: str) -> dict[str, Any]:
    """A dashed line over the whole height of the chart."""
    line = {"color": colour, "width": 1.5, "dash": "dash"}
    return {"type": "line", "x0": at, "x1": at, "xref": "x", "yref": "paper", "y0": 0, "y1": 1, "line": line}


def _exact(value: float) -> str:
    return f"{value:,.10g}"


def _text(text: str) -> str:
    """Text of the user's for plotly, which reads a few HTML tags in labels."""
    return html.escape(shown(text, 200), quote=False)
