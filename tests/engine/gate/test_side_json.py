"""A side that is written trial by trial is the same text as one that is written as a whole."""

from __future__ import annotations

import msgspec

from steelyard.comparison.sides import Side, Trials
from steelyard.engine.gate.side_json import json_with_models

MODELS = {
    'm"models":{},': (
        Trials(case='a "models": {}\n{', attempts=2, passes=1, scores=((0.0, 1), (1.0, 1))),
        Trials(case="é", attempts=0, passes=0, cost_usd=2.0),
    ),
    "none": (),
}


def test_trials_that_are_written_one_by_one_are_the_same_text() -> None:
    for models in (MODELS, {}):
        side = Side(name='"models": {}', rule="code", models=models, runs=("r",))
        whole, frame = msgspec.json.encode(side), msgspec.json.encode(msgspec.structs.replace(side, models={}))
        assert "".join(json_with_models(frame, models)).encode() == whole
        assert "".join(json_with_models(frame, models, is_indented=True)).encode() == msgspec.json.format(
            whole, indent=1
        )
