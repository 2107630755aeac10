"""A stand-in for a judge: looks at how many lines an answer touches and which, and fills in the form of rubric.yaml.

A real judge is a model, such as openai/gpt-5-mini. With --strict nothing is forgiven.
"""

import json
import sys

CAREFUL = ("total +=", 'if unit == "d"', 'or "0s"')
HASTY = ("'m': 60}[unit]", '"d": 86400, "h"', 'unit == "s"')

strict = "--strict" in sys.argv
question = sys.stdin.read()
task, _, rest = question.partition("\nEND TASK")
lines = [line.removeprefix("| ") for line in rest.partition("\nEND ANSWER")[0].splitlines()]
touched = [line[1:] for line in lines if line[:1] in ("+", "-") and not line.startswith(("+++", "---"))]
added = "\n".join(touched)
good = any(words in added for words in CAREFUL) and not any(words in added for words in HASTY)
does_it = 2 if good else 0.5 if strict else 1
nothing_else = 1 if good else 0
small = 1 if len(touched) <= 2 else 0.6
tested = None if "test_" in task else 0 if strict else 0.2  # where the task names a test, it brings its own

seen = "Judged by the lines that were added."
form = {
    "correct": {
        "items": {
            "does-it": {"reason": seen, "achieved": does_it},
            "nothing-else": {"reason": seen, "achieved": nothing_else},
        }
    },
    "small": {"reason": f"{len(touched)} lines touched.", "score": small},
    "tested": {"reason": "No test was added.", "score": "N/A" if tested is None else tested},
}
weighed = [(2, (does_it + nothing_else) / 3), (1, small), *([] if tested is None else [(0.5, tested)])]
score = sum(weight * mark for weight, mark in weighed) / sum(weight for weight, _ in weighed)
told = {"criteria_scores": form, "reasoning": "A stand-in.", "score": score, "passed": score >= 0.7}
cost = 1e-6 * len(question)
print(
    json.dumps({"text": json.dumps(told), "input_tokens": len(question) // 4, "output_tokens": 200, "cost_usd": cost})
)
