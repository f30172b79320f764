"""Inputs that `sql` and `explain` share: a statement, and files to read as tables."""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sparkshed.cli.errors import CliError
from sparkshed.sql.errors import listing
from sparkshed.sql.outline import outline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMATS = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
}
_COMPRESSED = (".gz", ".bz2", ".zst")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the shared inputs."""
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("file", nargs="?", metavar="FILE", help="file with one SQL statement; - reads stdin")
    source.add_argument("-e", dest="query", metavar="QUERY", help="the statement itself")
    parser.add_argument(
        "--table",
        action="append",
        default=[],
        type=table_argument,
        metavar="NAME=PATH",
        help="read a parquet, csv or json file, or a folder of them, as a table; may be repeated",
    )
    parser.add_argument("--master", default="local[*]", help="Spark master (default: %(default)s)")


def table_argument(text: str) -> tuple[str, Path]:
    """Split `name=path`.

    >>> table_argument("cam1=data/cam1.parquet")[0]
    'cam1'
    """
    name, equals, path = text.partition("=")
    if not (name.isidentifier() and equals and path):
        msg = f"{text!r} is not NAME=PATH, such as cam1=data/cam1.parquet; names are of letters, digits and _"
        raise argparse.ArgumentTypeError(msg)
    return name, Path(path)


def statement(args: argparse.Namespace) -> str:
    """The statement of `-e`, of the file or of stdin, without a semicolon at its end.

    Raises:
        CliError: If the file cannot be read, or there is no statement.
        ShedError: If a hint cannot be right.
    """
    if args.query is not None:
        text = args.query
    elif args.file == "-":
        text = sys.stdin.read()
    else:
        try:
            text = Path(args.file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            msg = f"cannot read {args.file}: {error}"
            raise CliError(msg) from error
    text = text.strip().rstrip(";").rstrip()
    if not text:
        msg = "the statement is empty"
        raise CliError(msg)
    # A mistake in the hint is found before Spark starts; what else is wrong Spark says.
    with suppress(IndexError, KeyError):
        outline(text)
    return str(text)


def check(args: argparse.Namespace) -> None:
    """Refuse tables that cannot be read, and names that are given twice, before Spark starts."""
    for _, path in args.table:
        format_of(path)
    names = [name.lower() for name, _ in (*args.table, *args.stream)]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        msg = f"{listing(twice)} is given twice; each table or stream has a name of its own"
        raise CliError(msg)


def format_of(path: Path) -> str:
    """Spark's name for the format of a file, or of the files in a folder.

    Raises:
        CliError: If there is no such path, or no known format.
    """
    if not path.exists():
        msg = f"{path} does not exist"
        raise CliError(msg)
    by_name = _by_name(path)
    if by_name is None and path.is_dir():
        files = sorted(p for p in path.rglob("*") if p.is_file() and not p.name.startswith(("_", ".")))
        found = sorted({name for name in map(_by_name, files) if name})
        if len(found) > 1:
            msg = f"{path} holds files of several formats ({', '.join(found)}); give a folder of one"
            raise CliError(msg)
        by_name = found[0] if found else None
    if by_name is None:
        msg = f"{path}: unknown format; known are {', '.join(FORMATS)}, and folders of such files"
        raise CliError(msg)
    return by_name


def output_format(path: Path, *, folder: bool = False) -> str:
    """Spark's name for the format of an output; a folder without an ending is of parquet files."""
    known = FORMATS.get(path.suffix.lower(), "parquet" if folder and not path.suffix else None)
    if known is None:
        msg = f"{path}: unknown format; known are {', '.join(FORMATS)}"
        raise CliError(msg)
    return known


def _by_name(path: Path) -> str | None:
    name = path.with_suffix("") if path.suffix in _COMPRESSED else path
    return FORMATS.get(name.suffix.lower())


def read_table(spark: SparkSession, path: Path) -> DataFrame:
    """Read a file or a folder. A csv file has a header; its types are inferred."""
    name = format_of(path)
    reader = spark.read.format(name)
    if name == "csv":
        reader = reader.option("header", True).option("inferSchema", True)
    return reader.load(str(path.resolve()))


def register_tables(spark: SparkSession, tables: list[tuple[str, Path]]) -> None:
    """Make each table readable by its name."""
    for name, path in tables:
        read_table(spark, path).createOrReplaceTempView(name)
