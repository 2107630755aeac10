"""Makes the test runs of DeepEval: `python make_deepeval.py FOLDER`, in an environment with deepeval."""

import gzip
import json
import os
import sys
from pathlib import Path

os.environ |= {"DEEPEVAL_TELEMETRY_OPT_OUT": "YES", "DEEPEVAL_UPDATE_WARNING_OPT_IN": "", "ERROR_REPORTING": ""}

from deepeval import evaluate
from deepeval.evaluate.configs import AsyncConfig, DisplayConfig
from deepeval.metrics import BaseMetric
from deepeval.test_case import LLMTestCase
from draw import CASES, FALLS, answer, question, right_words, share, target


class Recall(BaseMetric):
    """The share of the expected words."""

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold

    def measure(self, test_case, *args, **kwargs) -> float:
        self.score = share(test_case.expected_output, test_case.actual_output)
        self.reason = f"{self.score:.0%} of the words"
        self.success = self.score >= self.threshold
        return self.score

    async def a_measure(self, test_case, *args, **kwargs) -> float:
        return self.measure(test_case)

    def is_successful(self) -> bool:
        return self.success

    @property
    def __name__(self) -> str:
        return type(self).__name__


class Brevity(Recall):
    """How much shorter than 400 characters an answer is."""

    def measure(self, test_case, *args, **kwargs) -> float:
        self.score = round(1 - len(test_case.actual_output) / 400, 3)
        self.reason = f"{len(test_case.actual_output)} characters"
        self.success = self.score >= self.threshold
        return self.score


def make(folder: Path, name: str, metrics: list, rights: list[list[int]]) -> None:
    evaluate(
        test_cases=[
            LLMTestCase(name=question(n), input=question(n), actual_output=answer(n, right), expected_output=target(n))
            for n in range(CASES)
            for right in rights[n]
        ],
        metrics=metrics,
        hyperparameters={"model": "scripted"},
        async_config=AsyncConfig(run_async=False),
        display_config=DisplayConfig(show_indicator=False, print_results=False),
    )
    raw = Path(".deepeval/.latest_test_run.json").read_bytes()
    (folder / f"{name}.json.gz").write_bytes(gzip.compress(raw, mtime=0))
    found = json.loads(raw)
    told = found.get("testRunData", found)["metricsScores"]
    print(name, [(each["metric"], sum(each["scores"]) / len(each["scores"]), each["passes"]) for each in told])


folder = Path(sys.argv[1]).absolute()
folder.mkdir(parents=True, exist_ok=True)
for side in FALLS:
    make(folder, side, [Recall(0.5)], right_words(side, 1))
for side in ("base", "fall30"):
    make(folder, f"two-{side}", [Recall(0.5), Brevity(0.5)], right_words(side, 1))
make(folder, "pass-90", [Recall(0.5)], [[18]] * CASES)
make(folder, "pass-80", [Recall(0.5)], [[16]] * CASES)
make(folder, "fail-90", [Recall(0.95)], [[18]] * CASES)
make(folder, "fail-30", [Recall(0.95)], [[6]] * CASES)
