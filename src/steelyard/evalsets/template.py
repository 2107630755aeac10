"""Prompts with blanks to fill, whatever their author put there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import msgspec
from msgspec.structs import replace

from steelyard.errors import InputError
from steelyard.records import Message
from steelyard.text import printable

MAX_RENDERED_PROMPT_CHARACTERS = 10 << 20
"""Characters of a prompt once it is filled in."""
MAX_TEMPLATE_LOOP_ROUNDS = 10_000
"""Rounds of all the loops of one prompt."""
MAX_TEMPLATE_TOKENS = 50_000
"""Words of a template; Jinja's time and memory grow with them."""
ALLOWED_TEMPLATE_FILTERS = (
    "capitalize",
    "default",
    "first",
    "last",
    "length",
    "lower",
    "string",
    "title",
    "trim",
    "upper",
)


def rendered_prompt(prompt: str | tuple[Message, ...], values: dict[str, Any]) -> str | tuple[Message, ...]:
    """The prompt with `{{name}}` filled in; variables, if and for are all that a prompt needs."""
    from jinja2 import StrictUndefined, TemplateError, nodes
    from jinja2.sandbox import SandboxedEnvironment

    steps = 0

    def counted(items: Iterable[Any]) -> Iterator[Any]:
        nonlocal steps
        for item in items:
            steps += 1
            if steps > MAX_TEMPLATE_LOOP_ROUNDS:
                raise InputError(f"its loops take more than {MAX_TEMPLATE_LOOP_ROUNDS} rounds")
            yield item

    environment = SandboxedEnvironment(undefined=StrictUndefined, keep_trailing_newline=True)
    environment.globals.clear()
    environment.filters = {name: environment.filters[name] for name in ALLOWED_TEMPLATE_FILTERS}
    environment.filters |= {"(counted)": counted, "tojson": lambda value: msgspec.json.encode(value).decode()}
    # nothing that calls, defines, joins or multiplies: a template costs no more than its length and its rounds
    plain = nodes.Output, nodes.TemplateData, nodes.Const, nodes.Name, nodes.Getattr, nodes.Getitem, nodes.Slice
    logic = nodes.If, nodes.CondExpr, nodes.And, nodes.Or, nodes.Not, nodes.Compare, nodes.Operand, nodes.Test
    other = nodes.For, nodes.Filter, nodes.Keyword

    def render(text: str) -> str:
        try:
            if sum(1 for _ in islice(environment.lex(text), MAX_TEMPLATE_TOKENS)) == MAX_TEMPLATE_TOKENS:
                raise InputError(f"too long a template; use fewer than {MAX_TEMPLATE_TOKENS} words in its tags")
            tree = environment.parse(text)
            for node in tree.find_all(nodes.Node):
                is_target = isinstance(node, nodes.Tuple) and node.ctx == "store"
                if not (isinstance(node, (*plain, *logic, *other)) or is_target) or getattr(node, "recursive", False):
                    raise InputError(f"a prompt may use variables, if, for and filters, but no {type(node).__name__}")
            for loop in list(tree.find_all(nodes.For)):
                loop.iter = nodes.Filter(loop.iter, "(counted)", [], [], None, None, lineno=loop.lineno)
            tree.set_environment(environment)
            pieces, size = [], 0
            for piece in environment.from_string(tree).generate(values):
                pieces.append(piece)
                size += len(piece)
                if size > MAX_RENDERED_PROMPT_CHARACTERS:
                    raise InputError(
                        f"longer than {MAX_RENDERED_PROMPT_CHARACTERS >> 20} MB once its variables are filled in"
                    )
            return "".join(pieces)
        except (
            TemplateError,
            SyntaxError,
            TypeError,
            ValueError,
            ArithmeticError,
            RecursionError,
            MemoryError,
        ) as error:
            known = ", ".join(sorted(values))[:200]
            raise InputError(f"cannot be filled in: {printable(str(error))[:200]} (vars: {known})") from None

    if isinstance(prompt, str):
        return render(prompt)
    return tuple(replace(message, content=render(message.content)) for message in prompt)
