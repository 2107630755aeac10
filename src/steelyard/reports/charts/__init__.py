"""Charts of runs and tiers, as data that is drawn as SVG.

Input: summaries, attempts and the analysis of tiers. Output: charts with the tables of their numbers.
Nothing here measures text on a screen, so a chart is the same bytes on every machine.
"""
