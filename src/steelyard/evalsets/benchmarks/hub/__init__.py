"""Datasets as eval sets: folders of tables, and `hf:` names, from the hub or from what its library left on disk.

In comes a folder or a name such as `hf:openai/gsm8k:main:test`.
Out come the paths of files on this machine that hold its rows, or one sentence why there are none.
"""
