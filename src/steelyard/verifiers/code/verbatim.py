"""Code in a reply that is judged as it stands."""

from __future__ import annotations

import re

VERBATIM_FENCE_MARK = " verbatim"


def verbatim_reply(code: str, language: str) -> str:
    """The code as a reply that says of itself: take all of this, and nothing else.

    >>> print(verbatim_reply("    return 1", "python"), end="")
    ```python verbatim
        return 1
    ```
    """
    longest = max(map(len, re.findall("`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}{VERBATIM_FENCE_MARK}\n{code}\n{fence}\n"


def verbatim_code(text: str) -> str | None:
    """The code of a reply that was marked, to the letter; None for any other reply."""
    head, _, rest = text.partition("\n")
    fence = head[: len(head) - len(head.lstrip("`"))]
    ending = f"\n{fence}\n"
    if len(fence) < 3 or not head.endswith(VERBATIM_FENCE_MARK) or not rest.endswith(ending):
        return None
    return rest[: -len(ending)]
