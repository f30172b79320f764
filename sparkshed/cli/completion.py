"""`sparkshed completion SHELL`: completion of commands and options, for bash, zsh or fish."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

EXAMPLES = """examples:
  source <(sparkshed completion bash)          # now; put it into ~/.bashrc for good
  source <(sparkshed completion zsh)           # or into ~/.zshrc
  sparkshed completion fish | source           # or into ~/.config/fish/config.fish"""

_BASH = """_sparkshed() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" words
  case "${{COMP_WORDS[1]}}" in
{cases}
    *) words="{commands} --help --version" ;;
  esac
  if [ "$COMP_CWORD" -eq 1 ]; then words="{commands} --help --version"; fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
  case "$word" in -*) ;; *) [ "$COMP_CWORD" -gt 1 ] && COMPREPLY+=($(compgen -f -- "$word")) ;; esac
}}
complete -o filenames -F _sparkshed sparkshed
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("shell", choices=("bash", "zsh", "fish"))


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    print("\n".join(_fish()) if args.shell == "fish" else _bash(zsh=args.shell == "zsh"), end="\n")
    return 0


def _bash(*, zsh: bool) -> str:
    from sparkshed.cli.main import COMMANDS

    cases = "\n".join(f'    {name}) words="{" ".join(_words(name))}" ;;' for name in COMMANDS)
    script = _BASH.format(cases=cases, commands=" ".join(COMMANDS))
    return f"autoload -U +X bashcompinit && bashcompinit\n{script}" if zsh else script


def _fish() -> Iterator[str]:
    from sparkshed.cli.main import COMMANDS

    for name, text in COMMANDS.items():
        yield f"complete -c sparkshed -n __fish_use_subcommand -a {name} -d '{text}'"
        seen = f"__fish_seen_subcommand_from {name}"
        for word in _words(name):
            kind = (
                f"-l {word[2:]}"
                if word.startswith("--")
                else f"-o {word[1:]}"
                if word[0] == "-"
                else f"-a {word}"
            )
            yield f"complete -c sparkshed -n '{seen}' {kind}"


def _words(command: str) -> list[str]:
    """Options of a command, and what its arguments can be."""
    from sparkshed.cli.main import build_parser

    found: set[str] = set()
    if command == "experiment":
        from sparkshed.experiments.catalogue import EXPERIMENTS

        found.update(EXPERIMENTS)
    for action in build_parser(command)._actions:
        for own in (action.choices or {}).values() if isinstance(action.choices, dict) else ():
            for inner in own._actions:
                found.update(inner.option_strings)
                found.update(map(str, inner.choices or ()))
    return sorted(found)
