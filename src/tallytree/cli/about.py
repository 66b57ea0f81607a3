"""Commands about the command itself: demo, schema, and completion, generated from the parser."""

from __future__ import annotations

from argparse import Action, ArgumentParser, Namespace, _SubParsersAction
from collections.abc import Iterator

from tallytree import demo
from tallytree.cli import reports
from tallytree.cli.arguments import option_names
from tallytree.cli.exits import Exit
from tallytree.cli.options import Commands
from tallytree.io import problem_schema

SHELLS = ("bash", "zsh", "fish")


def script(parser: ArgumentParser, shell: str) -> str:
    """Return a script that completes commands, options, choices and file names in a shell."""
    commands = _commands(parser)
    return "\n".join({"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](commands))


def _commands(parser: ArgumentParser) -> dict[str, ArgumentParser]:
    commands = next(a for a in parser._actions if isinstance(a, _SubParsersAction))
    return dict(commands.choices)


def _choices(command: ArgumentParser) -> dict[str, list[str]]:
    """Return the choices of each option, and of a positional argument (``""``)."""
    choices: dict[str, list[str]] = {}
    for action in command._actions:
        if action.choices is not None:
            for name in action.option_strings or [""]:
                choices[name] = [str(choice) for choice in action.choices]
    return choices


def _bash(commands: dict[str, ArgumentParser]) -> Iterator[str]:
    yield "_tallytree() {"
    yield '  local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" words=""'
    yield '  case "${COMP_WORDS[1]}:$before" in'
    for name, command in commands.items():
        for option, choices in _choices(command).items():
            if option:
                words = " ".join(choices)
                yield f'    {name}:{option}) COMPREPLY=($(compgen -W "{words}" -- "$word")); return;;'
    yield "  esac"
    yield '  if [ "$COMP_CWORD" -eq 1 ]; then'
    yield f'    COMPREPLY=($(compgen -W "{" ".join(commands)} --help --version" -- "$word")); return'
    yield "  fi"
    yield '  case "${COMP_WORDS[1]}" in'
    for name, command in commands.items():
        every = " ".join([*option_names(command), *_choices(command).get("", [])])
        yield f'    {name}) words="{every}";;'
    yield "  esac"
    yield '  case "$word" in'
    yield '    -*) COMPREPLY=($(compgen -W "$words" -- "$word"));;'
    yield '    *) COMPREPLY=($(compgen -f -- "$word") $(compgen -W "$words" -- "$word" | grep -v "^-"));;'
    yield "  esac"
    yield "}"
    yield "complete -o filenames -F _tallytree tallytree"


def _zsh(commands: dict[str, ArgumentParser]) -> Iterator[str]:
    yield "autoload -U +X bashcompinit && bashcompinit"
    yield from _bash(commands)


def _fish(commands: dict[str, ArgumentParser]) -> Iterator[str]:
    yield "complete -c tallytree -f -n __fish_use_subcommand"
    for name, command in commands.items():
        about = (command.description or "").partition(".")[0]
        yield f"complete -c tallytree -f -n __fish_use_subcommand -a {name} -d {_quoted(about)}"
        chosen = f"contains -- {name} (commandline -opc)[2]"
        for action in command._actions:
            yield from _fish_action(action, chosen)


def _fish_action(action: Action, chosen: str) -> Iterator[str]:
    """Complete an option, or a positional argument with choices, until one of them is present."""
    words = " ".join(map(str, action.choices or ()))
    about = f" -d {_quoted(action.help)}" if action.help else ""
    values = f" -x -a '{words}'" if words else "" if action.nargs == 0 else " -r"
    for option in action.option_strings:
        kind = f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
        yield f"complete -c tallytree -n '{chosen}' {kind}{values}{about}"
    if not action.option_strings and words:
        yield f"complete -c tallytree -n '{chosen}; and not __fish_seen_subcommand_from {words}'{values}"


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "").replace("'", "\\'") + "'"


def add(commands: Commands) -> None:
    """Declare the commands."""
    tour = commands.add("demo", _demo, "show a tour in the terminal")
    tour.add_argument("--png", metavar="FILE", help="also plot the profile (needs matplotlib)")
    commands.add("schema", _schema, "print the JSON Schema of problem files")

    def _completion(options: Namespace) -> int:
        print(script(commands.top, options.shell))
        return Exit.OK

    completion = commands.add(
        "completion",
        _completion,
        "print a shell completion script",
        "bash > ~/.local/share/bash-completion/completions/tallytree",
        "fish > ~/.config/fish/completions/tallytree.fish",
    )
    completion.add_argument("shell", choices=SHELLS)


def _demo(options: Namespace) -> int:
    demo.main([] if options.png is None else ["--png", options.png])
    return Exit.OK


def _schema(options: Namespace) -> int:
    print(reports.as_json(problem_schema()))
    return Exit.OK
