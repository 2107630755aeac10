"""A stand-in for an agent: knows a hasty and a careful change for each case of ../agent, and no model is asked.

Which of them it makes depends on the case, the number of the attempt, and whether NOTES.md lies in its folder. With ROUNDS=2 it
runs the tests, and makes the careful change when they tell it that something broke. The tokens and the cost that it tells are
made up.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

CASE, NUMBER, ROUNDS = (
    os.environ["STEELYARD_CASE"],
    int(os.environ["STEELYARD_NUMBER"]),
    int(os.environ.get("ROUNDS", "1")),
)
SUM = "total = int(number) * SECONDS[unit]"
CHANGES = {
    "combined-units": {
        "hasty": (SUM, "total += int(number) * {'h': 3600, 'm': 60}[unit]"),
        "careful": (SUM, SUM.replace("=", "+=")),
    },
    "days": {
        "hasty": ('{"h": 3600', '{"d": 86400, "h": 3600'),
        "careful": (SUM, 'total = int(number) * (86400 if unit == "d" else SECONDS[unit])'),
    },
    "no-time": {
        "hasty": ("if count:", 'if count or unit == "s":'),
        "careful": ('" ".join(parts)', '" ".join(parts) or "0s"'),
    },
}
CAREFUL_AT_ONCE = {
    "combined-units": {False: {1, 3}, True: {1, 2, 3}},
    "days": {False: {2}, True: {1, 2, 4}},
    "no-time": {False: {1, 4}, True: {1, 2, 3}},
}
"""The attempts in which it is careful from the beginning: without notes, and with them."""


def change(how: str) -> None:
    """Make one of the two changes to the file as it was."""
    path.write_text(original.replace(*CHANGES[CASE][how]), "utf-8")
    print(f"made the {how} change", flush=True)


def broken() -> bool:
    """Whether a test fails that the task does not speak of."""
    ran = subprocess.run([sys.executable, "run_tests.py"], capture_output=True, text=True, check=False)
    return any(line.startswith("not ok") and "days" not in line for line in ran.stdout.splitlines())


task = sys.stdin.read()
path = Path("durations.py")
original = path.read_text("utf-8")
has_notes = Path("NOTES.md").exists()
taken = 1
change("careful" if NUMBER in CAREFUL_AT_ONCE[CASE][has_notes] else "hasty")
if ROUNDS > 1 and broken():
    taken += 1
    change("careful")
tokens = taken * (len(task) + len(original) + 200 * has_notes)
print(json.dumps({"usage": {"input_tokens": tokens, "output_tokens": 80 * taken}, "total_cost_usd": 2e-6 * tokens}))
