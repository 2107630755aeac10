"""Makes the results of lm-eval: `python make_lm_eval.py FOLDER [NAME ...]`, in an environment with lm-eval, not PyTorch."""

import gzip
import json
import os
import shutil
import sys
from pathlib import Path
from unittest.mock import patch

os.environ |= {"HF_DATASETS_OFFLINE": "1", "HF_HUB_OFFLINE": "1", "HF_HOME": "home"}

from draw import CASES, FALLS, answer, question, right_words, target
from lm_eval.__main__ import cli_evaluate
from lm_eval.api.model import LM
from lm_eval.api.registry import register_model


@register_model("scripted")
class Scripted(LM):
    """Answers each question as it is told."""

    def __init__(self, model: str, side: str) -> None:
        super().__init__()
        self.rights = right_words(side, 1)

    @classmethod
    def create_from_arg_string(cls, arg_string, additional_config=None):
        return cls(**dict(each.split("=") for each in arg_string.split(",")))

    @classmethod
    def create_from_arg_obj(cls, arg_dict, additional_config=None):
        return cls(**arg_dict)

    def generate_until(self, requests, **_):
        numbers = [int(request.args[0].split()[1]) - 1 for request in requests]
        return [answer(number, self.rights[number][0]) for number in numbers]

    def loglikelihood(self, requests, **_):
        raise NotImplementedError

    def loglikelihood_rolling(self, requests, **_):
        raise NotImplementedError


def make(folder: Path, name: str, task: str, side: str) -> None:
    if sys.argv[2:] and name not in sys.argv[2:]:
        return
    told = ["--model", "scripted", "--model_args", f"model=scripted,side={side}", "--tasks", task]
    told += ["--include_path", "tasks", "--log_samples", "--output_path", f"out-{name}"]
    with patch.object(sys, "argv", ["lm_eval", *told]):
        cli_evaluate()
    (results,) = Path(f"out-{name}").rglob("results_*.json")
    (samples,) = Path(f"out-{name}").rglob("samples_*.jsonl")
    (folder / name).mkdir(exist_ok=True)
    (folder / name / results.name).write_bytes(results.read_bytes())
    (folder / name / f"{samples.name}.gz").write_bytes(gzip.compress(samples.read_bytes(), mtime=0))
    print(name, json.loads(results.read_text())["results"])


folder = Path(sys.argv[1]).absolute()
folder.mkdir(parents=True, exist_ok=True)
shutil.copytree(Path(__file__).parent / "lm_eval_tasks", "tasks", dirs_exist_ok=True)
lines = [json.dumps({"question": question(n), "target": target(n)}) for n in range(CASES)]
Path("lists.jsonl").write_text("\n".join(lines) + "\n")
for side in FALLS:
    make(folder, side, "lists_f1", side)
for side in ("base", "fall30"):
    make(folder, f"error-{side}", "lists_error", side)
    make(folder, f"percent-{side}", "lists_percent", side)
    make(folder, f"both-{side}", "lists_both", side)
