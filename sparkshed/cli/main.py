"""The entry point: arguments in, exit code out.

Exit codes: 0 done; 1 a check or a run failed; 2 the request itself is wrong; 130 ended by Ctrl-C.
"""

from __future__ import annotations

import argparse
import importlib
import os
import re
import sys
import warnings
from collections.abc import Sequence
from importlib.metadata import version

from sparkshed.cli.errors import CliError

#: Each command is a module of this package; the text is its line in the help.
COMMANDS = {
    "doctor": "check Java, Python, packages, workers and the state store",
    "demo": "three live camera streams, with a burst that is shed, beside shedding at random",
    "sql": "run a statement over files, or over folders as streams",
    "explain": "show the plan of a statement",
    "monitor": "watch a streaming join that runs in any process",
    "report": "write what a streaming join did as an HTML page",
    "bench": "time the join beside plain Spark",
    "experiment": "run an experiment of the papers on a virtual clock",
    "completion": "print a script that completes commands and options in a shell",
}


def build_parser(chosen: str | None) -> argparse.ArgumentParser:
    """The parser of the command and its sub-commands.

    Args:
        chosen: The sub-command that will run. Only its module is imported, so that `doctor` runs
            where packages that the others need are missing.
    """
    parser = argparse.ArgumentParser(prog="sparkshed", description="Multi-way windowed joins on Spark SQL.")
    parser.add_argument("--version", action="version", version=f"sparkshed {version('sparkshed')}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, text in COMMANDS.items():
        command = commands.add_parser(name, help=text)
        if name == chosen:
            module = importlib.import_module(f"sparkshed.cli.{name}")
            command.description, command.epilog = module.__doc__, module.EXAMPLES
            command.formatter_class = argparse.RawDescriptionHelpFormatter
            module.add_arguments(command)
            command.set_defaults(run=module.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit code."""
    argv = sys.argv[1:] if argv is None else argv
    chosen = next((word for word in argv if not word.startswith("-")), None)
    args = build_parser(chosen).parse_args(argv)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = tell
            return int(args.run(args))
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read the output has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if not is_request_error(error):
            raise
        print(f"error: {words_of(error)}", file=sys.stderr)
        return 2


def words_of(error: Exception) -> str:
    r"""What an error says, without the plan that Spark adds to it.

    >>> words_of(ValueError("[TABLE_OR_VIEW_NOT_FOUND] no `bb`; line 1 pos 14;\n'Project [*]\n+- 'Un"))
    '[TABLE_OR_VIEW_NOT_FOUND] no `bb`; line 1 pos 14'
    """
    return re.split(r";\n'?[A-Z]\w+ ", str(error), maxsplit=1)[0]


def tell(message: Warning | str, *_: object) -> None:
    """Print a warning to whoever typed the command, who has no use for lines of code."""
    print(f"warning: {message}", file=sys.stderr)


def is_request_error(error: Exception) -> bool:
    """Whether the user's request is at fault, so that a traceback would only be in the way."""
    if isinstance(error, CliError):
        return True
    import sparkshed

    if isinstance(error, sparkshed.ShedError):
        return True
    try:
        from pyspark.errors import AnalysisException
    except ModuleNotFoundError:
        return False
    return isinstance(error, AnalysisException)


if __name__ == "__main__":
    sys.exit(main())
