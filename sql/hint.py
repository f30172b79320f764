"""The hint grammar: `/*+ SHED(strategy, 'option=value', …) */`."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, field
from typing import cast

from sparkshed.sql.errors import HintError, listing, suggest
from sparkshed.sql.options import (
    ADAPTATIONS,
    EVICTION,
    OPTIONS,
    STRATEGIES,
    Credits,
    Diffusion,
    Memory,
    bad_value,
)

#: Hint names that belong to Spark and are passed on without a look.
SPARK_HINTS = frozenset(
    "broadcast broadcastjoin mapjoin merge shuffle_merge mergejoin shuffle_hash shuffle_replicate_nl "
    "coalesce repartition repartition_by_range rebalance skew range_join".split()
)

#: Options that have an effect on one policy only.
_OF_POLICIES = {"credits": "gdj", "counts": "prob"}

_EXAMPLE = "Write it as /*+ SHED(grubjoin, 'budget=0.5', 'basic=2 seconds') */."
_PIECE = re.compile(
    r"""\s*(?:(?P<string>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
          |(?P<word>`[^`]*`|[A-Za-z_][\w.]*)
          |(?P<number>[-+]?[\d.]+\w*)
          |(?P<mark>[(),])
          |(?P<other>\S))""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class ShedHint:
    """A checked SHED hint: the strategy and the values of the options that were written."""

    strategy: str
    options: dict[str, object] = field(default_factory=dict)

    @property
    def diffusion(self) -> Diffusion:
        """How the join is to be spread."""
        value = self.options.get("diffuse", Diffusion("auto"))
        assert isinstance(value, Diffusion)
        return value

    @property
    def orders(self) -> tuple[tuple[str, tuple[str, ...]], ...] | None:
        """Fixed orders by stream name, or None when they are to be chosen."""
        return cast("tuple[tuple[str, tuple[str, ...]], ...] | None", self.options.get("order"))

    @property
    def basic(self) -> int | None:
        """Basic window length in microseconds, if written."""
        return cast("int | None", self.options.get("basic"))

    @property
    def budget(self) -> float | None:
        """The share of the full join's work that may be spent, None to follow the load."""
        value = self.options.get("budget", "auto")
        return None if value == "auto" else cast("float", value)

    @property
    def shred(self) -> float:
        """ω, the share of rows to learn from."""
        return cast("float", self.options.get("shred", 0.1))

    @property
    def harvest(self) -> tuple[str, str | None]:
        """The chooser of slices, and its metric if one was written."""
        return cast("tuple[str, str | None]", self.options.get("harvest", ("lagrange", None)))

    @property
    def adapt(self) -> int:
        """Δ, the adaptation interval, in microseconds."""
        return cast("int", self.options.get("adapt", 5_000_000))

    @property
    def boost(self) -> float:
        """γ, by which the throttle opens at most."""
        return cast("float", self.options.get("boost", 1.2))

    @property
    def per_stream(self) -> bool:
        """Whether time correlations are learned as one histogram per stream."""
        return self.options.get("histograms", "pairwise") == "per_stream"

    @property
    def adaptations(self) -> tuple[str, ...]:
        """What `adaptive` adapts."""
        return cast("tuple[str, ...]", self.options.get("adaptations", ADAPTATIONS))

    @property
    def follows(self) -> bool:
        """Whether z follows the load, where there is one: in streaming."""
        return self.budget is None and "rate" in self.adaptations and self.strategy not in EVICTION

    @property
    def memory(self) -> Memory | None:
        """What all windows together may hold, if that is limited."""
        return cast("Memory | None", self.options.get("memory"))

    @property
    def evict(self) -> str:
        """Who leaves when that is too little."""
        return self.strategy if self.strategy in EVICTION else cast("str", self.options.get("evict", "gdj"))

    @property
    def sample(self) -> float | str | None:
        """The drop probability in front of a limited buffer."""
        return cast("float | str | None", self.options.get("sample"))

    @property
    def credits(self) -> Credits | None:
        """The rule of the paper that gives credit in `gdj`; None to learn what credits are worth."""
        return cast("Credits | None", self.options.get("credits"))

    @property
    def sketch(self) -> int | None:
        """Counters that `prob` has for each stream; None for one for each value."""
        return cast("int | None", self.options.get("counts"))

    @property
    def rows(self) -> int | None:
        """n, the rows of each window, where windows are counted in rows."""
        return cast("int | None", self.options.get("rows"))

    @property
    def seed(self) -> int | None:
        """Seed of everything random, if written."""
        return cast("int | None", self.options.get("seed"))


@dataclass(frozen=True, slots=True)
class _HintCall:
    name: str
    arguments: tuple[tuple[str, str], ...] | None
    start: int
    end: int


def parse_hint(comment: str) -> tuple[ShedHint | None, str]:
    """Read a hint comment; returns the SHED hint in it, if any, and the comment without it.

    >>> parse_hint("/*+ SHED(grubjoin, 'basic=2 seconds') */")
    (ShedHint(strategy='grubjoin', options={'basic': 2000000}), '')
    >>> parse_hint("/*+ BROADCAST(a), SHED(exact) */")[1]
    '/*+ BROADCAST(a) */'
    """
    body = comment.removeprefix("/*+").removesuffix("*/")
    calls = _hint_calls(body)
    sheds = [call for call in calls if call.name.lower() == "shed"]
    for call in calls:
        _refuse_misspelt_name(call)
    if not sheds:
        return None, comment
    if len(sheds) > 1:
        raise two_hints()
    if not _is_readable(body, calls):
        msg = f"the hint /*+{body}*/ cannot be read. {_EXAMPLE}"
        raise HintError(msg)
    rest = [body[call.start : call.end].strip() for call in calls if call is not sheds[0]]
    return _checked(sheds[0]), f"/*+ {', '.join(rest)} */" if rest else ""


def two_hints() -> HintError:
    """The error for a SELECT with more than one SHED hint."""
    return HintError("a SELECT takes one SHED hint, but two were found. Keep one of them.")


def _is_readable(body: str, calls: list[_HintCall]) -> bool:
    """Whether there is nothing but calls with closed brackets, with or without commas between them."""
    closed = all(call.arguments is None or body[call.start : call.end].endswith(")") for call in calls)
    edges = [0, *(edge for call in calls for edge in (call.start, call.end)), len(body)]
    between = [body[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True)]
    return closed and all(not gap.strip(", \t\r\n") for gap in between)


def _hint_calls(body: str) -> list[_HintCall]:
    """Split `A(x), B C('y')` into calls with their argument pieces."""
    calls: list[_HintCall] = []
    pieces = list(_PIECE.finditer(body))
    at = 0
    while at < len(pieces):
        piece = pieces[at]
        if piece["word"] is None:
            at += 1
            continue
        name, start, end = piece["word"].strip("`"), piece.start(), piece.end()
        arguments: list[tuple[str, str]] | None = None
        if at + 1 < len(pieces) and pieces[at + 1]["mark"] == "(":
            arguments, depth, at = [], 1, at + 2
            while at < len(pieces) and depth:
                inner = pieces[at]
                depth += {"(": 1, ")": -1}.get(inner["mark"] or "", 0)
                if inner["mark"] is None and inner.lastgroup is not None:
                    if name.lower() == "shed" and arguments and pieces[at - 1]["mark"] != ",":
                        msg = f"a comma is missing before {inner[inner.lastgroup]} in SHED. {_EXAMPLE}"
                        raise HintError(msg)
                    arguments.append((inner.lastgroup, inner[inner.lastgroup]))
                end = inner.end()
                at += 1
        else:
            at += 1
        calls.append(_HintCall(name, None if arguments is None else tuple(arguments), start, end))
    return calls


def _refuse_misspelt_name(call: _HintCall) -> None:
    """A hint of another name is left alone, unless it is plainly meant to be SHED."""
    name = call.name.lower()
    if name in SPARK_HINTS or name == "shed":
        return
    first = call.arguments[0][1] if call.arguments else ""
    close = suggest(name, ["shed"]) and first.lower() in STRATEGIES
    if close or difflib.SequenceMatcher(None, name, "shed").ratio() > 0.85:
        msg = f"unknown hint `{call.name}`. Did you mean SHED({first or 'exact'})?"
        raise HintError(msg)


def _checked(call: _HintCall) -> ShedHint:
    if not call.arguments:
        msg = f"SHED needs a strategy, one of {listing(STRATEGIES)}. {_EXAMPLE}"
        raise HintError(msg)
    kind, first = call.arguments[0]
    strategy = first.strip("`\"'").lower()
    if kind == "string" and "=" in first:
        msg = f"SHED needs a strategy before the option {first}: one of {listing(STRATEGIES)}. {_EXAMPLE}"
        raise HintError(msg)
    if strategy not in STRATEGIES:
        msg = (
            f"unknown strategy `{first}` in SHED.{suggest(strategy, STRATEGIES)} "
            f"Known strategies: {listing(STRATEGIES)}."
        )
        raise HintError(msg)
    options: dict[str, object] = {}
    for kind, argument in call.arguments[1:]:
        name, value = _option(strategy, kind, argument)
        if name in options:
            msg = f"SHED option `{name}` is written twice. Keep one of them."
            raise HintError(msg)
        options[name] = value
    return _limited(_available(ShedHint(strategy, options)))


def _option(strategy: str, kind: str, argument: str) -> tuple[str, object]:
    if kind != "string" or "=" not in argument:
        msg = f"SHED option {argument} is not of the form 'name=value' (in quotes). {_EXAMPLE}"
        raise HintError(msg)
    name, _, text = argument[1:-1].partition("=")
    name, text = name.strip().lower(), text.strip()
    option = OPTIONS.get(name)
    if option is None:
        msg = f"unknown SHED option `{name}`.{suggest(name, OPTIONS)} Known options: {listing(OPTIONS)}."
        raise HintError(msg)
    if strategy not in option.strategies:
        msg = (
            f"SHED option `{name}` has no effect on `{strategy}`; it is for {listing(option.strategies)}. "
            f"Remove it or choose one of those."
        )
        raise HintError(msg)
    try:
        return name, option.parse(text)
    except ValueError:
        raise bad_value(option, text) from None


def _limited(hint: ShedHint) -> ShedHint:
    """Refuse a memory strategy without a limit, and what only a limit has an effect on."""
    if hint.memory is not None:
        for name, policy in _OF_POLICIES.items():
            if name in hint.options and hint.evict != policy:
                msg = (
                    f"SHED option `{name}` has no effect where `{hint.evict}` decides who leaves. "
                    f"Add 'evict={policy}', or remove it."
                )
                raise HintError(msg)
        return hint
    if hint.strategy in EVICTION:
        msg = (
            f"strategy `{hint.strategy}` decides which rows leave windows that are full, so it needs a "
            f"limit: write /*+ SHED({hint.strategy}, 'memory=10000') */, in rows, or 'memory=64 MB'."
        )
        raise HintError(msg)
    for name in ("buffers", "evict", "sample", *_OF_POLICIES):
        if name in hint.options:
            msg = f"SHED option `{name}` has no effect without `memory`. Add 'memory=10000', or remove it."
            raise HintError(msg)
    return hint


def _available(hint: ShedHint) -> ShedHint:
    """Refuse what would have no effect, so that nothing written is ignored."""
    if hint.strategy == "dual":
        _check_dual(hint)
    if hint.diffusion.routing == "ctr" and hint.strategy != "exact":
        msg = (
            f"SHED option `diffuse=ctr` is for `exact`: partial results go from host to host, and "
            f"`{hint.strategy}` decides on one host what a row is joined with. Use `atr` or `auto`."
        )
        raise HintError(msg)
    return hint


def _check_dual(hint: ShedHint) -> None:
    """Windows counted in rows need their number, and one host that sees all rows."""
    if hint.rows is None:
        msg = (
            "strategy `dual` joins over the last rows of each stream, and needs their number. "
            "Write it as /*+ SHED(dual, 'rows=400') */."
        )
        raise HintError(msg)
    if hint.diffusion.routing not in ("auto", "none") or hint.diffusion.hosts is not None:
        msg = (
            f"strategy `dual` runs on one host, because the last rows of a stream are those of all hosts; "
            f"`diffuse={hint.diffusion.text}` was found. Remove it."
        )
        raise HintError(msg)
