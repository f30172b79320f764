"""What travels between driver and workers, and into logs, as JSON: configurations and tallies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from sparkshed.planner.configuration import Configuration, Harvest
from sparkshed.planner.harvest.tally import DirectionTally, Floats, HopTally, Tally
from sparkshed.planner.pace import Pace
from sparkshed.planner.slices import Span

#: Significant digits of counts; what is learned is a sample anyway.
_DIGITS = 6


def configuration_to_json(configuration: Configuration) -> dict[str, Any]:
    """The configuration as lists and numbers.

    >>> configuration_from_json(configuration_to_json(Configuration(((1,), (0,)), 0.5))).throttle
    0.5
    """
    data = {own.name: getattr(configuration, own.name) for own in fields(configuration)}
    return {**data, "pace": None if configuration.pace is None else asdict(configuration.pace)}


def configuration_from_json(data: dict[str, Any]) -> Configuration:
    """The configuration again."""
    return Configuration(
        orders=_pairs(data["orders"]),
        throttle=data["throttle"],
        dear=tuple(map(_harvest, data["dear"])),
        cheap=tuple(map(_harvest, data["cheap"])),
        mix=data["mix"],
        shred=data["shred"],
        keep=tuple(data["keep"]),
        thins=_pairs(data["thins"]),
        # Checkpoints may have been written before these were known.
        sifts=tuple(data.get("sifts", ())),
        tries=tuple(data.get("tries", ())),
        partly=tuple(None if own is None else Span(*own) for own in data.get("partly", ())),
        rear=tuple(data.get("rear", ())),
        price=data.get("price", 0.0),
        horizons=tuple(data["horizons"]),
        reserve=data["reserve"],
        pace=_pace(data.get("pace")),
    )


def _pace(data: dict[str, Any] | None) -> Pace | None:
    return None if data is None else Pace(**{**data, "promised": tuple(data["promised"])})


def _pairs(data: Sequence[Sequence[Any]]) -> tuple[tuple[Any, ...], ...]:
    return tuple(tuple(row) for row in data)


def _harvest(data: Sequence[Sequence[int]] | None) -> Harvest:
    return None if data is None else _pairs(data)


def tally_to_json(tally: Tally) -> dict[str, Any]:
    """The tally as lists and numbers, rounded.

    >>> tally_from_json(tally_to_json(Tally.empty(2, 3))).streams[1].tolist()
    [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    """
    return {
        "directions": [_direction(own) for own in tally.directions],
        "streams": [_numbers(counts) for counts in tally.streams],
    }


def tally_from_json(data: dict[str, Any]) -> Tally:
    """The tally again."""
    return Tally(
        [_direction_tally(own) for own in data["directions"]], [_floats(own) for own in data["streams"]]
    )


def _direction(own: DirectionTally) -> dict[str, Any]:
    return {
        "rows": own.rows,
        "learned": own.learned,
        "results": own.results,
        "work": own.work,
        "sifted": own.sifted,
        "harvested": own.harvested.tolist(),
        "joined": own.joined,
        "yields": [_numbers(counts) for counts in own.yields],
        "lags": [[target, _numbers(counts)] for target, counts in own.lags.items()],
        "hops": [
            [
                sorted(joined),
                target,
                hop.probes,
                hop.searches,
                *map(_numbers, (hop.pairs, hop.touched, hop.partials)),
                None if hop.sizes is None else _numbers(hop.sizes),
            ]
            for (joined, target), hop in own.hops.items()
        ],
    }


def _direction_tally(data: dict[str, Any]) -> DirectionTally:
    return DirectionTally(
        data["rows"],
        data["learned"],
        data["results"],
        data["work"],
        data.get("sifted", 0.0),
        {target: _floats(counts) for target, counts in data["lags"]},
        {
            (frozenset(joined), target): HopTally(
                probes,
                searches,
                _floats(pairs),
                _floats(touched),
                _floats(partials),
                None if sizes is None else _floats(sizes),
            )
            for joined, target, probes, searches, pairs, touched, partials, sizes in data["hops"]
        },
        _harvested(data["harvested"]),
        data.get("joined", 0.0),
        np.array(data.get("yields", ((), ())), np.float64),
    )


def _harvested(data: Sequence[Sequence[float]]) -> Floats:
    """What each kind of rows found; checkpoints may have been written before there were three of them."""
    found = np.zeros((3, 2))
    found[: len(data)] = data
    return found


def _numbers(counts: Floats) -> list[float]:
    return [float(f"{value:.{_DIGITS}g}") for value in counts.tolist()]


def _floats(data: Sequence[float]) -> Floats:
    return np.array(data, np.float64)
