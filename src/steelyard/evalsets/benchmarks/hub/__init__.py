"""Datasets as eval sets: folders of tables, and `hf:` names, from the hub or from its library's cache.

In comes a folder or a name such as `hf:openai/gsm8k:main:test`.
Out come the paths of files on this machine that hold its rows, or one sentence that says why there are none.
"""
