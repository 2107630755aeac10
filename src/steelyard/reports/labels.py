"""What labels of people say of judged rates: tables and sentences."""

from __future__ import annotations

from collections.abc import Mapping

from steelyard.analysis.estimates import Estimate
from steelyard.analysis.judged_rates import JudgedRates
from steelyard.reports.figures import model_label, rate
from steelyard.text import counted, line

SHOWN_BIAS_LEVEL = 0.05
"""The adjusted p-value up to which a bias of a judge is a sentence; JSON has all."""
BIAS_WORDS = {
    "length": "for each doubling of the length",
    "own family": "about models of its own family",
    "language": "in some language",
}


def judged_table(rates: JudgedRates) -> list[list[str]]:
    """Raw, corrected and labels-only rates beside each other, the heads first."""
    return [
        ["model", "answers", "labels", "judges say", "corrected", "labels only"],
        *(
            [
                model_label(model.model, model.tier),
                f"{model.answers:,}",
                f"{model.labels:,}",
                *map(rate, (model.raw, model.corrected, model.labels_only)),
            ]
            for model in rates.models
        ),
    ]


def _points_text(estimate: Estimate) -> str:
    """A difference of two shares in points, with its interval."""
    value, low, high = (0.0 if each is None else each * 100 for each in (estimate.value, estimate.low, estimate.high))
    return f"{value:+.1f} points [{low:+.1f}, {high:+.1f}]"


def judged_sentences(rates: JudgedRates) -> list[str]:
    """Differences between models, what a rate rests on, and how far people agree."""
    said = []
    for each in rates.differences:
        raw = "" if each.raw is None else f"; the judges say {each.raw * 100:+.1f} points"
        said.append(f"{line(each.second, 80)} against {line(each.first, 80)}: {_points_text(each.corrected)}{raw}")
    said += [
        f"{line(model_label(model.model, model.tier), 80)}: {model.reason}" for model in rates.models if model.reason
    ]
    for bias in rates.biases:
        if bias.p <= SHOWN_BIAS_LEVEL:
            what = f"for answers in {line(bias.of, 40)}" if bias.of else BIAS_WORDS[bias.by]
            said.append(
                f"{line(bias.judge, 80)} is {_points_text(bias.effect)} more lenient than people {what} (p {bias.p:.2g})"
            )
    if rates.biases and all(bias.p > SHOWN_BIAS_LEVEL for bias in rates.biases):
        tests = counted(len(rates.biases), "test")
        said.append(f"no bias of judges by length, own family or language shows in {tests}")
    if rates.agreement is not None:
        said.append(
            f"{counted(len(rates.labellers), 'person', 'people')} labelled; two who saw the same answer agree on "
            f"{rates.agreement:.0%} of them"
        )
    return said


def label_count_sentences(needed: Mapping[tuple[str, str], int | None], width: float) -> list[str]:
    """How many more labels give each model's corrected rate this width."""
    said = []
    for (model, tier), more in needed.items():
        whose = line(model_label(model, tier), 80)
        if more is None:
            said.append(
                f"{whose}: no number of labels gives a width of {width:.0%}; it takes more cases or a better judge"
            )
        elif not more:
            said.append(f"{whose}: about {width:.0%} wide already")
        else:
            said.append(f"{whose}: about {counted(more, 'more label')} for a width of {width:.0%}")
    return said
