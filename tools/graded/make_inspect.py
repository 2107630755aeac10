"""Makes the logs of Inspect: `python make_inspect.py FOLDER [NAME ...]`, in an environment with inspect-ai."""

import gzip
import sys
from collections import Counter
from pathlib import Path

import inspect_ai
from draw import CASES, FALLS, answer, question, right_words, share, target
from inspect_ai import Task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import write_eval_log
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import Score, mean, scorer, stderr
from inspect_ai.solver import generate

EPOCHS = 3


@scorer(metrics=[mean(), stderr()])
def recall():
    async def score(state, target):
        return Score(value=share(target.text, state.output.completion), answer=state.output.completion[:11])

    return score


@scorer(metrics={"recall": [mean()], "brevity": [mean()], "clean": [mean()]})
def graded():
    async def score(state, target):
        reply = state.output.completion
        found = share(target.text, reply)
        return Score(
            value={"recall": found, "brevity": round(1 - len(reply) / 400, 3), "clean": 1 if found > 0.5 else 0}
        )

    return score


@scorer(metrics={"recall": [mean()], "brevity": [mean()], "clean": [mean()]})
def graded_otherwise():
    """The same three values, in another order than their metrics."""
    graded_score = graded()

    async def score(state, target):
        found = await graded_score(state, target)
        return Score(value={key: found.value[key] for key in ("brevity", "recall", "clean")})

    return score


@scorer(metrics=[mean(), stderr()])
def stars():
    async def score(state, target):
        return Score(value=1 + round(4 * share(target.text, state.output.completion)))

    return score


def scripted(rights: list[list[int]]):
    asked = Counter()

    def reply(messages, *_):
        number = int(messages[-1].text.split()[1]) - 1
        right = rights[number][asked[number] % len(rights[number])]
        asked[number] += 1
        output = ModelOutput.from_content("mockllm/model", answer(number, right))
        output.usage = ModelUsage(input_tokens=3, output_tokens=20, total_tokens=23)
        return output

    return get_model("mockllm/model", custom_outputs=reply)


def make(folder: Path, name: str, score, rights: list[list[int]], log_format: str = "json") -> None:
    if sys.argv[2:] and name not in sys.argv[2:]:
        return
    task = Task(
        dataset=MemoryDataset([Sample(id=n + 1, input=question(n), target=target(n)) for n in range(CASES)]),
        solver=generate(),
        scorer=score,
        name="lists",
    )
    (log,) = inspect_ai.eval(
        task,
        model=scripted(rights),
        epochs=len(rights[0]),
        log_dir="logs",
        log_format=log_format,
        log_realtime=False,
        max_samples=1,
        display="none",
    )
    written = Path(log.location.removeprefix("file://"))
    if log_format == "eval":
        written.replace(folder / f"{name}.eval")
    else:
        # the events are nine tenths of a log
        for sample in log.samples:
            sample.events = []
        write_eval_log(log, "small.json", format="json")
        written = Path("small.json")
        (folder / f"{name}.json.gz").write_bytes(gzip.compress(written.read_bytes(), mtime=0))
    print(name, log.status, [(each.name, {k: m.value for k, m in each.metrics.items()}) for each in log.results.scores])


folder = Path(sys.argv[1]).absolute()
folder.mkdir(parents=True, exist_ok=True)
for side in FALLS:
    make(folder, side, recall(), right_words(side, EPOCHS))
for side in ("base", "fall60"):
    make(folder, f"once-{side}", recall(), right_words(side, 1), log_format="eval")
for side in ("base", "fall30"):
    make(folder, f"dict-{side}", graded(), right_words(side, 1))
    make(folder, f"dict-otherwise-{side}", graded_otherwise(), right_words(side, 1))
    make(folder, f"stars-{side}", stars(), right_words(side, 1))
make(folder, "perfect", recall(), [[20]] * CASES)
