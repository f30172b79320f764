"""Put one operator's output where several branches of UNION ALL stood.

    SELECT p FROM <join 0> UNION ALL SELECT q FROM <join 1>      becomes

    SELECT inline(…) FROM                      one row, as the branch of its join has it
        (SELECT *, array(struct(q)) FROM       what branch 1 selects, for results of join 1
            (SELECT *, array(struct(p)) FROM   what branch 0 selects, for results of join 0
                view))

Each branch sees the names of its own relations only, and is evaluated for its own results only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sparkshed.sql.block import JOIN, JoinBlock
from sparkshed.sql.catalog import Field
from sparkshed.sql.outline import Block, Branch, Span
from sparkshed.sql.rewrite import Edit, Source, rewrite_block, selected_name
from sparkshed.sql.scope import Scope, quoted


@dataclass(frozen=True, slots=True)
class Part:
    """A hinted block that is understood, and the columns of its SELECT."""

    block: Block
    joined: JoinBlock
    scope: Scope
    fields: tuple[Field, ...]

    @property
    def branch(self) -> Branch:
        """Where it stands, as one of several."""
        assert self.block.branch is not None
        return self.block.branch


def rewrite_parts(
    parts: Sequence[Part], edit: Edit, view: str, fields: Sequence[Field], *, streaming: bool
) -> Span:
    """Replace blocks by the output of the operator that joins for all of them.

    Args:
        parts: The blocks; several are branches of one UNION ALL.
        edit: The statement.
        view: The output, with the number of the join where there are several.
        fields: The columns of the UNION ALL.
        streaming: Whether the output has one array of one struct for each stream.

    Returns:
        Where the text now stands that gives what the blocks gave.
    """
    if len(parts) == 1:
        (part,) = parts
        rewrite_block(part.block, edit, part.joined, part.scope, Source(view, view, streaming=streaming))
        return part.block.span
    text = view
    for number, part in enumerate(parts):
        source = Source(f"{view}_{number}", f"{text} AS {view}_{number}", number, streaming)
        rewrite_block(part.block, edit, part.joined, part.scope, source)
        text = f"({edit.render(part.block.span)})"
    for part in parts[1:]:
        assert part.branch.operator is not None
        edit.replace(Span(part.branch.operator.start, part.branch.span.end), "")
    edit.replace(parts[0].branch.span, _one_of(parts, f"{text} AS {view}", view, fields))
    return parts[0].branch.span


def _one_of(parts: Sequence[Part], source: str, view: str, fields: Sequence[Field]) -> str:
    """The SELECT that takes of each row what the branch of its join selects."""
    columns = range(len(fields))
    views, choices = [], []
    for number, part in enumerate(parts):
        own = f"{view}_{number}"
        names = ", ".join(f"c{column}" for column in columns)
        views.append(f"LATERAL VIEW OUTER inline({view}.{selected_name(number)}) {own} AS {names}")
        values = ", ".join(
            f"{_as(f'{own}.c{column}', part.fields[column], fields[column])} AS c{column}"
            for column in columns
        )
        choices.append(f"WHEN {number} THEN struct({values})")
    shown = ", ".join(quoted(field.name) for field in fields)
    chosen = f"inline(array(CASE {view}.{JOIN} {' '.join(choices)} END))"
    return f"SELECT {chosen} AS ({shown}) FROM {source} {' '.join(views)}"


def _as(text: str, own: Field, wanted: Field) -> str:
    return text if own.type == wanted.type else f"CAST({text} AS {wanted.type})"
