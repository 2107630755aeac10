"""Whether one run is worse than another.

In come two sides, made of attempts, baselines or counts; out come a comparison by threshold, the decision of a gate, and plans.
The tests are exact and take their seed as a parameter. Nothing here touches a file or the clock.
"""
