"""Commands whose `-o` takes several outputs, as in `convert IN IN2 -o OUT OUT2`, and the options that they share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

OUTPUT = ("-o", "--output")

Outputs = Annotated[
    list[str], typer.Option("--output", "-o", metavar="OUT [OUT2]", help="Files to write; - is stdout.")
]
InputFormat = Annotated[str | None, typer.Option("--from", metavar="FORMAT", help="Format of the input (guessed).")]
OutputFormat = Annotated[str | None, typer.Option("--to", metavar="FORMAT", help="Format of the output (by its name).")]


def repeat_outputs(arguments: Iterable[str], takes_value: frozenset[str]) -> list[str]:
    """`-o A B` as `-o A -o B`, the form that click can parse.

    Once inputs have been named, all that follows `-o` up to the next option is output. If `-o` comes first it takes one
    file, since what follows are the inputs.
    """
    rewritten: list[str] = []
    inputs_named = False
    state = ""  # what the next plain argument is: "" an input, "value" of an option, "output", "more" outputs
    for argument in arguments:
        is_option = argument.startswith("-") and argument != "-"
        if state == "value" or (state == "output" and not is_option):
            rewritten.append(argument)
            state = "more" if state == "output" and inputs_named else ""
        elif is_option:
            rewritten.append(argument)
            state = "output" if argument in OUTPUT else "value" if argument in takes_value else ""
        elif state == "more":
            rewritten += [OUTPUT[0], argument]
        else:
            rewritten.append(argument)
            inputs_named = True
    return rewritten


class OutputsCommand(TyperCommand):
    # Typer brings a click of its own or uses the installed one, by version: neither is named here.
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        with_value = (parameter for parameter in self.params if getattr(parameter, "is_flag", None) is False)
        takes_value = frozenset(name for parameter in with_value for name in parameter.opts)
        return super().parse_args(ctx, repeat_outputs(args, takes_value))
