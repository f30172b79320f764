"""A plan in few words and numbers, for monitors and reports."""

from __future__ import annotations

from typing import Any

from sparkshed.planner.explain import explain_text
from sparkshed.planner.planner import Planned

_SECOND = 1_000_000


def summary_of(planned: Planned) -> dict[str, Any]:
    """What whoever looks at a running join must know of it, as lists, numbers and text."""
    physical, logical = planned.physical, planned.logical
    streaming = physical.streaming
    streams = []
    for number, stream in enumerate(logical.block.streams):
        window = logical.closed.window(number)
        streams.append(
            {
                "name": stream.name,
                "from": " ".join(stream.relation.split()),
                "time": stream.time_text,
                "window": None if window is None else window / _SECOND,
                "table": streaming is not None and streaming.static[number],
            }
        )
    return {
        "strategy": physical.strategy,
        "options": {name: str(value) for name, value in logical.hint.options.items()},
        "follows": streaming is not None and streaming.follows,
        "streams": streams,
        "orders": [
            [logical.names[stream] for stream in (origin, *order)]
            for origin, order in enumerate(logical.orders)
        ],
        "conditions": [predicate.text for predicate in logical.block.predicates],
        "bounds": list(dict.fromkeys(bound.text for bound in logical.block.bounds)),
        "hosts": 1 if streaming is None else streaming.hosts.count,
        "routing": "none" if streaming is None else streaming.hosts.routing,
        "rows": physical.spec.rows,
        "texts": {mode: explain_text([planned], mode) for mode in ("simple", "extended", "formatted")},
    }
