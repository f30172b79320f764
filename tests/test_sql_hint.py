"""The hint grammar, without Spark."""

from __future__ import annotations

import pytest

from sparkshed.sql.errors import HintError
from sparkshed.sql.hint import ShedHint, parse_hint
from sparkshed.sql.options import EVICTION, OPTIONS, STRATEGIES, Credits, Diffusion, Memory


def test_strategy_and_options() -> None:
    hint, rest = parse_hint("/*+ SHED(exact, 'basic=2 seconds', 'diffuse=atr:4', 'seed=7') */")
    assert hint == ShedHint("exact", {"basic": 2_000_000, "diffuse": Diffusion("atr", 4), "seed": 7})
    assert (hint.basic, hint.diffusion, hint.seed, hint.orders) == (2_000_000, Diffusion("atr", 4), 7, None)
    assert rest == ""


def test_defaults() -> None:
    hint = ShedHint("exact")
    assert (hint.basic, hint.diffusion, hint.seed, hint.orders) == (None, Diffusion("auto"), None, None)


@pytest.mark.parametrize(
    ("comment", "rest"),
    [
        ("/*+ SHED(exact), BROADCAST(a) */", "/*+ BROADCAST(a) */"),
        ("/*+ BROADCAST(a), SHED(exact), COALESCE(1) */", "/*+ BROADCAST(a), COALESCE(1) */"),
        ("/*+BROADCAST(a) SHED(exact)*/", "/*+ BROADCAST(a) */"),
        ("/*+ shed ( `exact` ) */", ""),
    ],
)
def test_other_hints_stay(comment: str, rest: str) -> None:
    hint, left = parse_hint(comment)
    assert hint == ShedHint("exact")
    assert left == rest


@pytest.mark.parametrize("comment", ["/*+ BROADCAST(a) */", "/*+ MERGE(a, b) */", "/*+ other */", "/*+ */"])
def test_comments_without_the_hint_are_untouched(comment: str) -> None:
    assert parse_hint(comment) == (None, comment)


@pytest.mark.parametrize(
    ("option", "text", "value"),
    [
        ("budget", "AUTO", "auto"),
        ("budget", "1", 1.0),
        ("basic", "250ms", 250_000),
        ("basic", "1.5 min", 90_000_000),
        ("adapt", "2 days", 2 * 86_400_000_000),
        ("boost", "1.5", 1.5),
        ("harvest", "greedy:best_delta", ("greedy", "best_delta")),
        ("harvest", "exhaustive", ("exhaustive", None)),
        ("order", "a:b>c; b: c > a ;", (("a", ("b", "c")), ("b", ("c", "a")))),
        ("memory", "1000", Memory(1000, "rows")),
        ("memory", "1 row", Memory(1, "rows")),
        ("memory", "1.5 KB", Memory(1536, "bytes")),
        ("sample", "0", 0.0),
        ("credits", "Learned", None),
        ("credits", "method3:0", Credits(3, 0.0)),
        ("counts", "exact", None),
        ("counts", "sketch:8", 8),
        ("adaptations", "Rate, time", ("rate", "time")),
        ("rows", "5", 5),
        ("diffuse", "hash", Diffusion("hash")),
        ("diffuse", "CTR:3", Diffusion("ctr", 3)),
        ("seed", "4", 4),
    ],
)
def test_values(option: str, text: str, value: object) -> None:
    assert OPTIONS[option].parse(text) == value


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("budget", "0"),
        ("budget", "nan"),
        ("basic", "0 ms"),
        ("basic", "-1 s"),
        ("basic", "1 fortnight"),
        ("boost", "inf"),
        ("harvest", "lagrange:best_delta"),
        ("harvest", "greedy:worst"),
        ("order", ";"),
        ("order", "a:"),
        ("memory", "0"),
        ("memory", "1 TB"),
        ("credits", "method4:0.5"),
        ("credits", "method1:1.1"),
        ("credits", "learned:0.5"),
        ("counts", "sketch:0"),
        ("counts", "exact:8"),
        ("adaptations", ""),
        ("rows", "1.5"),
        ("diffuse", "none:2"),
        ("diffuse", "hash:"),
        ("seed", "1.0"),
    ],
)
def test_bad_values(option: str, text: str) -> None:
    strategy = OPTIONS[option].strategies[0]
    with pytest.raises(HintError, match=f"`{option}`"):
        parse_hint(f"/*+ SHED({strategy}, '{option}={text}') */")


@pytest.mark.parametrize("name", OPTIONS)
def test_every_option_is_described(name: str) -> None:
    option = OPTIONS[name]
    assert option.name == name
    assert option.default and option.allowed and option.meaning
    assert set(option.strategies) <= set(STRATEGIES)


def test_only_the_exact_join_goes_from_host_to_host() -> None:
    assert parse_hint("/*+ SHED(exact, 'diffuse=ctr:3') */")[0].diffusion == Diffusion("ctr", 3)
    with pytest.raises(HintError, match="`grubjoin` decides on one host"):
        parse_hint("/*+ SHED(grubjoin, 'diffuse=ctr') */")


@pytest.mark.parametrize("strategy", EVICTION)
def test_memory_strategies_need_a_limit(strategy: str) -> None:
    with pytest.raises(HintError, match="needs a limit"):
        parse_hint(f"/*+ SHED({strategy}) */")
    hint, _ = parse_hint(f"/*+ SHED({strategy}, 'memory=64 MB', 'buffers=proportional', 'sample=auto') */")
    assert hint is not None
    assert (hint.memory, hint.evict, hint.sample) == (Memory(64 << 20, "bytes"), strategy, "auto")


@pytest.mark.parametrize(
    "comment",
    [
        "/*+ SHED(grubjoin, 'evict=lru') */",
        "/*+ SHED(gdj, 'memory=10', 'evict=lru') */",
        "/*+ SHED(exact, 'memory=10') */",
        "/*+ SHED(exact */",
        "/*+ SHED exact */",
        "/*+ SHED(exact) 'seed=1' */",
        "/*+ SHED(exact) = 3 */",
        "/*+ SHED(exact), SHED(exact) */",
        "/*+ SHED(exact, seed=1) */",
        "/*+ SHED(1) */",
        "/*+ SHDE(exact) */",
    ],
)
def test_never_ignored(comment: str) -> None:
    with pytest.raises(HintError):
        parse_hint(comment)


def test_windows_of_rows_need_their_number_and_one_host() -> None:
    hint, _ = parse_hint("/*+ SHED(dual, 'rows=400', 'diffuse=none') */")
    assert hint is not None and hint.rows == 400
    with pytest.raises(HintError, match="needs their number"):
        parse_hint("/*+ SHED(dual, 'budget=0.5') */")
    with pytest.raises(HintError, match="one host"):
        parse_hint("/*+ SHED(dual, 'rows=4', 'diffuse=hash') */")
