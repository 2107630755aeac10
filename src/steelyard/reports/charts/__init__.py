"""Charts of runs and tiers: figures come in, charts go out as data, drawn as SVG or exported as Vega-Lite.

Nothing here reads files or measures text on a screen, so a chart is the same bytes on every machine.
"""
