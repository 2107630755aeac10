"""Whether the model writes Python as well as when `steelyard-baselines/main.json` was made; run `pytest` in this folder."""

from steelyard import Steelyard


def test_model(steelyard: Steelyard) -> None:
    """Cases, and the suite as a whole, are no worse than chance explains."""
    steelyard.run("../python-basics.toml").must_not_regress("main", margin=0.1)
