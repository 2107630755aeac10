"""Durations as people write them."""

SECONDS = {"h": 3600, "m": 60, "s": 1}


def parse(text):
    """The seconds in a text such as `1h 30m`."""
    total = 0
    for part in text.split():
        number, unit = part[:-1], part[-1]
        total = int(number) * SECONDS[unit]
    return total


def show(seconds):
    """The same the other way round, largest unit first."""
    parts = []
    for unit, length in SECONDS.items():
        count, seconds = divmod(seconds, length)
        if count:
            parts.append(f"{count}{unit}")
    return " ".join(parts)
