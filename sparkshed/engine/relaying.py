"""A host in one stage of a join that goes from host to host.

    router ──▶ stage 0: hop 1 on every host ──▶ stage 1: hop 2 ──▶ … ──▶ results, reports

Each stage has windows of its own, of the streams that are probed in it. What is for a later stage goes
through.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import asdict
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa

from sparkshed.engine.hopping import HopOperator, Probe
from sparkshed.engine.host import Host, Live
from sparkshed.engine.keeping import Store
from sparkshed.engine.kinds import PARTIALS, REPORT, TOLD
from sparkshed.engine.pacing import efforts_of
from sparkshed.engine.probing import Span
from sparkshed.engine.routing import Sent, as_told
from sparkshed.engine.statistics import Statistics
from sparkshed.engine.wire import few_and_large, from_blob
from sparkshed.planner.completeness import Completeness
from sparkshed.planner.harvest.tally import Tally
from sparkshed.planner.streaming import Clock, Report, StreamingPlan

#: Partial results in one blob.
_ROWS, _BYTES = 1 << 17, 8 << 20


class RelayHost(Host[HopOperator]):
    """One micro-batch of one host in one stage."""

    def __init__(
        self, plan: StreamingPlan, name: str, host: int, stage: int, store: Store, clock: Clock
    ) -> None:
        """As any host; hosts of several stages know nothing of each other."""
        self._own, self._stage = host, stage
        self._last = stage == len(plan.spec.streams) - 2
        super().__init__(plan, name, stage * plan.hosts.count + host, store, clock)

    def _anew(self) -> Live[HopOperator]:
        return Live("", HopOperator(self._plan.spec))

    def process(self, mail: Iterable[Sent]) -> Iterator[Sent | pa.RecordBatch]:
        """Make a hop; when everything was read, the state is written.

        Args:
            mail: What came for this host, in this stage or a later one.

        Returns:
            What goes on to later stages; of the last one, results and reports of all stages.
        """
        operator = self._live.operator
        before = deepcopy(operator.statistics)
        rows: dict[int, list[pa.Table]] = {}
        probes: list[tuple[Probe, dict[str, Any]]] = []
        told: dict[str, Any] = {}
        for own in mail:
            if own.stage > self._stage or own.stream == REPORT:
                yield own
            elif own.stream == TOLD:
                told = json.loads(own.blob)
            else:
                self._sort(own, rows, probes)
        self._expire(told.get("watermark"))
        began, delivered = self._clock() - self._keeper.read_seconds, 0
        for found in self._joined(rows, probes):
            delivered += found.num_rows if isinstance(found, pa.RecordBatch) else 0
            yield found
        joining = self._clock() - self._keeper.read_seconds - began
        self._keeper.add(operator, [np.arange(*newest) for newest in operator.newest])
        operator.tidy()
        self._commit()
        self.report = self._reported(operator.statistics.since(before), delivered, joining)
        if told:
            as_told(self.report, told)
        report = json.dumps(self.report.to_json()).encode()
        yield Sent(self._own, REPORT, report, len(self._plan.spec.streams) - 2)

    def _sort(
        self, own: Sent, rows: dict[int, list[pa.Table]], probes: list[tuple[Probe, dict[str, Any]]]
    ) -> None:
        """Rows are kept, or looked up, or both."""
        table = from_blob(own.blob)
        header = json.loads(own.header) if own.header else None
        if own.stream != PARTIALS and (header is None or header["kept"]):
            rows.setdefault(own.stream, []).append(table)
        if header is not None:
            spans = tuple(Span(*span) for span in header["spans"])
            probe = Probe(header["origin"], tuple(header["order"]), self._stage, spans, table)
            probes.append((probe, header))

    def _joined(
        self, rows: Mapping[int, list[pa.Table]], probes: list[tuple[Probe, dict[str, Any]]]
    ) -> Iterator[Sent | pa.RecordBatch]:
        operator = self._live.operator
        batch = {
            stream: pa.concat_tables(tables, promote_options="permissive") for stream, tables in rows.items()
        }
        headers = {id(probe): header for probe, header in probes}
        found = operator.process(batch, [probe for probe, _ in probes])
        for number, group in groupby(found, key=lambda own: id(own[0])):
            # What is found goes on before more is looked for.
            if self._last:
                yield from (operator.results(partials) for _, partials in group)
            else:
                snapshots = (operator.snapshot(partials) for _, partials in group)
                batches = (batch for table in snapshots for batch in table.to_batches())
                yield from self._onward(batches, headers[number])

    def _onward(self, batches: Iterable[pa.RecordBatch], header: Mapping[str, Any]) -> Iterator[Sent]:
        """Partial results, to every host of the next hop."""
        hosts, *rest = header["next"]
        plain = {"origin": header["origin"], "order": header["order"], "next": rest}
        for blob in few_and_large(batches, _ROWS, _BYTES):
            for host, spans in hosts:
                onward = json.dumps(plain | {"spans": spans}, separators=(",", ":"))
                yield Sent(host, PARTIALS, blob, self._stage + 1, onward)

    def _reported(self, counted: Statistics, delivered: int, joining: float) -> Report:
        """What this host did in the micro-batch."""
        operator, streams = self._live.operator, len(self._plan.spec.streams)
        return Report(
            host=self._host,
            version=0,
            throttle=1.0,
            streams=[{**asdict(own), "late": 0, "joined": 0} for own in counted.streams],
            work=[direction.work for direction in counted.directions],
            effort=sum(efforts_of(counted)),
            completeness=Completeness(delivered),
            tally=Tally.empty(streams, 0),
            rows=operator.window_rows,
            state_bytes=self._manifest.size,
            reads=self._keeper.reads,
            read_bytes=self._keeper.read_bytes,
            seconds=self._clock() - self._started,
            joining=joining,
            received=sum(own.arrived for own in counted.streams),
            met=[[*pair, *counts] for pair, counts in sorted(operator.met.items())],
        )
