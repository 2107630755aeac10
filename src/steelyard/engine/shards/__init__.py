"""One plan dealt to several machines, and what they bring merged to one run.

Comes in: cases and run folders. Goes out: the cases of a shard, or one merged run folder.
Run folders from elsewhere are not trusted.
"""
