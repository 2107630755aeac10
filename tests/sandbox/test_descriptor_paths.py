"""`/dev/fd` is there for shells that ask for it, and shows a program nothing but itself and what it has started."""

from __future__ import annotations

import asyncio

import pytest

from steelyard.sandbox.levels import strongest_isolation
from steelyard.sandbox.sandbox import ZygoteSandbox
from support.toolchains import needs

LOOKS = """
echo "$(cat <(echo read)) $(echo written > >(cat); wait)"
for path in /proc/[0-9]*; do [ "$(cat $path/comm 2>/dev/null)" = bash ] || echo "sees ${path##*/}"; done
for path in /proc/1/environ /proc/1/cmdline /proc/1/fd/0 /proc/1/root /proc/1/maps; do cat "$path" 2>/dev/null && echo "reads $path"; done
for path in /proc/sys /proc/net /proc/kcore /proc/meminfo /proc/mounts /proc/cmdline /proc/sysrq-trigger; do [ -r "$path" ] && [ -s "$path" ] && echo "has $path"; done
for path in comm mem oom_score_adj coredump_filter attr/current timerslack_ns; do (echo x > "/proc/self/$path") 2>/dev/null && echo "writes $path"; done
cat /proc/self/root/etc/passwd /proc/self/root/etc/hostname 2>/dev/null && echo "reads outside"
(exec 9<>/proc/self/fd/0) 2>/dev/null && echo x >&0 2>/dev/null && echo "writes its input"
echo end
"""


async def printed(script: str, *, descriptor_paths: bool) -> str:
    sandbox = ZygoteSandbox(strongest_isolation())
    try:
        async with sandbox.workspace({"look.sh": script}, descriptor_paths=descriptor_paths) as place:
            outcome = await place.run(["bash", "look.sh"])
    finally:
        await sandbox.close()
    return outcome.stdout.decode()


@needs("bash")
@pytest.mark.skipif(not strongest_isolation().namespaces, reason="it needs a list of processes of its own")
def test_a_shell_substitutes_processes_and_sees_only_its_own() -> None:
    assert asyncio.run(printed(LOOKS, descriptor_paths=True)).split("\n") == ["read written", "end", ""]


@needs("bash")
@pytest.mark.skipif(not strongest_isolation().own_root, reason="it needs a root of its own")
def test_nobody_else_has_a_list_of_processes() -> None:
    assert asyncio.run(printed("ls /proc /dev/fd; echo end", descriptor_paths=False)) == "end\n"
