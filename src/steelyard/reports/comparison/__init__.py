"""Reports of comparisons: the threshold rule, the decision of a gate, and the plan for one.

Comes in: what the room `comparison` worked out. Goes out: text, Markdown and JSON.
Nothing here decides anything.
"""
