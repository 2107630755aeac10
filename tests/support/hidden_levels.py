"""A machine that lacks what isolation levels are made of: a program is started under a filter that refuses their system calls.

python -m support.hidden_levels full,bubblewrap,landlock COMMAND...
"""

import os
import sys

from steelyard.sandbox.kernel import (
    BPF_JUMP_ANY_BIT,
    BPF_JUMP_EQUAL,
    BPF_LOAD,
    BPF_RETURN,
    CPU_ARCHITECTURE,
    EVERY_NAMESPACE,
    SECCOMP_ARGS_OFFSET,
    SECCOMP_RET_ALLOW,
    SECCOMP_RET_ERRNO,
    BpfInstruction,
    filter_prologue,
    install_filter,
    pack_filter,
)

EPERM, ENOSYS = 1, 38
UNSHARE, CLONE, CLONE3, LANDLOCK = {
    "x86_64": (272, 56, 435, 444),
    "aarch64": (97, 220, 435, 444),
}[CPU_ARCHITECTURE]


def hide(levels: set[str]) -> None:
    """From now on this process and its children have none of these levels."""
    program = filter_prologue()

    def refuse(number: int, error: int) -> list[BpfInstruction]:
        return [(BPF_JUMP_EQUAL, 0, 1, number), (BPF_RETURN, 0, 0, SECCOMP_RET_ERRNO | error)]

    if "full" in levels:  # ours are made by `unshare`
        program += refuse(UNSHARE, EPERM)
    if "bubblewrap" in levels:  # those of bwrap by `clone`
        program += refuse(CLONE3, ENOSYS)
        program += [
            (BPF_JUMP_EQUAL, 0, 4, CLONE),
            (BPF_LOAD, 0, 0, SECCOMP_ARGS_OFFSET),
            (BPF_JUMP_ANY_BIT, 0, 1, EVERY_NAMESPACE),
            (BPF_RETURN, 0, 0, SECCOMP_RET_ERRNO | EPERM),
            (BPF_RETURN, 0, 0, SECCOMP_RET_ALLOW),
        ]
    if "landlock" in levels:
        program += refuse(LANDLOCK, ENOSYS)
    install_filter(pack_filter([*program, (BPF_RETURN, 0, 0, SECCOMP_RET_ALLOW)]))


if __name__ == "__main__":
    hide(set(sys.argv[1].split(",")))
    os.execvp(sys.argv[2], sys.argv[2:])
