"""The command that writes shell completion, from the parser itself: completion."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from steelyard.cli.options import Command, add_help_options
from steelyard.errors import ExitCode

WordsByCommand = Mapping[str, list[str]]
"""For each command, its options; under the empty name, all commands."""


def completion_command(commands: Mapping[str, Command]) -> Command:
    """The command that knows these commands, and itself."""

    def completion(options: argparse.Namespace) -> int:
        """Print shell completion for bash, zsh or fish."""
        print(SHELLS[options.shell](_words(commands)), end="")
        return ExitCode.OK

    return Command(completion, _completion_options, COMPLETION_EXAMPLES)


def _words(commands: Mapping[str, Command]) -> WordsByCommand:
    words = {"": sorted([*commands, "completion"])}
    for name, command in commands.items():
        parser = argparse.ArgumentParser(prog=name, add_help=False)
        add_help_options(parser)
        command.add_options(parser)
        words[name] = sorted(option for action in parser._actions for option in action.option_strings)
    return {**words, "completion": list(SHELLS)}


def _bash(words: WordsByCommand) -> str:
    cases = "".join(f'    {name}) words="{" ".join(options)}" ;;\n' for name, options in words.items() if name)
    return f"""\
_steelyard() {{
  local words
  case "${{COMP_WORDS[1]}}" in
{cases}    *) words="" ;;
  esac
  if [ "$COMP_CWORD" -eq 1 ]; then words="{" ".join(words[""])}"; fi
  COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _steelyard steelyard
"""


def _zsh(words: WordsByCommand) -> str:
    return f"autoload -U +X bashcompinit && bashcompinit\n{_bash(words)}"


def _fish(words: WordsByCommand) -> str:
    lines = [f"complete -c steelyard -n __fish_use_subcommand -a '{' '.join(words[''])}'"]
    for name, options in words.items():
        of = f"complete -c steelyard -n '__fish_seen_subcommand_from {name}'"
        for option in options if name else ():
            plain = option.lstrip("-")
            kind = "-a" if plain == option else "-l" if option.startswith("--") else "-s"
            lines.append(f"{of} {kind} {plain}")
    return "\n".join(lines) + "\n"


SHELLS = {"bash": _bash, "zsh": _zsh, "fish": _fish}


def _completion_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("shell", choices=SHELLS, help="the shell that completes")


COMPLETION_EXAMPLES = """\
examples:
  bash, in ~/.bashrc:                   eval "$(steelyard completion bash)"
  zsh, in ~/.zshrc after compinit:      eval "$(steelyard completion zsh)"
  fish:                                 steelyard completion fish > ~/.config/fish/completions/steelyard.fish"""
