"""Sides as JSON, written trial by trial: as a whole those of a hundred thousand cases take as much memory as the sides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from steelyard.comparison.sides import Trials


def json_with_models(
    frame: bytes, models: Mapping[str, Sequence[Trials]], *, is_indented: bool = False
) -> Iterator[str]:
    """The JSON of an object whose `models` are empty in `frame`, with these instead.

    >>> "".join(json_with_models(b'{"models":{},"rule":"code"}', {"m": [Trials(case="a", attempts=2, passes=1)]}))
    '{"models":{"m":[{"case":"a","attempts":2,"passes":1}]},"rule":"code"}'
    """
    colon = ": " if is_indented else ":"
    breaks = [f"\n{' ' * depth}" if is_indented else "" for depth in range(4)]
    if is_indented:
        frame = msgspec.json.format(frame, indent=1)
    # a quotation mark within a text is escaped, so no text holds this
    before, key, after = frame.decode().partition(f'"models"{colon}{{')
    yield before + key
    encode = msgspec.json.Encoder().encode
    for place, (model, cases) in enumerate(models.items()):
        yield f"{',' if place else ''}{breaks[2]}{encode(model).decode()}{colon}["
        for number, trials in enumerate(cases):
            written = encode(trials)
            if is_indented:
                written = msgspec.json.format(written, indent=1)
            yield ("," if number else "") + breaks[3] + written.decode().replace("\n", breaks[3])
        yield f"{breaks[2] if cases else ''}]"
    yield (breaks[1] if models else "") + after
