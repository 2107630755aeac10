"""What node loads before an answer, so that tests keep the assertions and the language that they know."""

from __future__ import annotations

import re
from typing import NamedTuple

from steelyard.protocols import Workspace
from steelyard.records import Case
from steelyard.text import printable
from steelyard.verifiers.command.proof import CODE_FROM_TEXT_PATTERN, has_means_to_end_tests, is_language_left_alone
from steelyard.verifiers.command.settings import CommandSettings

GUARD_FILE = ".steelyard-guard.cjs"
CHANGES_FILE = ".steelyard-changes"
GUARD_COMMAND = f'export NODE_OPTIONS="--require=$PWD/{GUARD_FILE}'
FREEZING_SOURCE = """
const assert = require("node:assert");
const test = require("node:test");
for (const held of [assert, assert.strict, assert.AssertionError, assert.AssertionError.prototype, test, ...Object.values(test)])
    if (held && (typeof held === "object" || typeof held === "function")) Object.freeze(held);
"""
WATCHING_SOURCE = """
{
    const fs = require("node:fs");
    const { writeFileSync } = fs;
    const { cwd } = process;
    const path = cwd() + "/@CHANGES@";
    const describe = Object.getOwnPropertyDescriptor, keys = Reflect.ownKeys, text = String;
    const held = [];
    for (const name of ["Object", "Function", "Array", "Number", "String", "Boolean", "Map", "Set", "Promise", "RegExp", "Date", "Math",
                        "JSON", "Symbol", "Error", "BigInt", "Reflect", "TypeError", "RangeError", "SyntaxError", "ReferenceError", "WeakMap", "WeakSet", "Proxy", "Uint8Array",
                        "Int32Array", "Float64Array", "ArrayBuffer", "Intl", "isNaN", "isFinite", "parseInt", "parseFloat", "structuredClone"]) {
        const object = globalThis[name];
        held.push(["globalThis", globalThis, name, object, undefined]);
        const owners = [[name, object], [name + ".prototype", object.prototype]];
        if (object.prototype && object.prototype[Symbol.iterator])
            owners.push([name + " iterator", Object.getPrototypeOf(new object()[Symbol.iterator]())]);
        for (const [label, owner] of owners) {
            if (!owner) continue;
            for (const key of keys(owner)) {
                const was = describe(owner, key);
                if (typeof was.value === "function" || was.get) held.push([label, owner, key, was.value, was.get]);
            }
        }
    }
    const define = Object.defineProperty, note = writeFileSync;
    for (const [label, owner, key, value, get] of held) {
        const was = describe(owner, key);
        if (!was.configurable || key === "constructor") continue;
        if (get || typeof key === "symbol" || key === "then" || label === "globalThis") {
            define(owner, key, get ? { configurable: false } : { writable: false, configurable: false });
            continue;
        }
        // an object of somebody's may still have one of its own
        define(owner, key, {
            get() { return value; },
            set(other) {
                if (this === owner) note(path, label + "." + text(key));
                else define(this, key, { value: other, writable: true, enumerable: true, configurable: true });
            },
            enumerable: was.enumerable,
            configurable: false,
        });
    }
    process.on("exit", () => {
        for (let place = 0; place < held.length; place++) {
            const [label, owner, key, value, get] = held[place];
            const is = describe(owner, key);
            if (!is || (is.get ? is.get !== get && is.get() !== value : is.value !== value)) { writeFileSync(path, label + "." + text(key)); return; }
        }
    });
}
""".replace("@CHANGES@", CHANGES_FILE)
PENDING_FILE = ".steelyard-pending"
WAITING_SOURCE = """
{
    const { createHook } = require("node:async_hooks");
    const { writeFileSync } = require("node:fs");
    const path = process.cwd() + "/@PENDING@";
    const pending = new Set();
    const add = pending.add.bind(pending), remove = pending.delete.bind(pending);
    createHook({
        init(id, type) { if (type === "PROMISE") add(id); },
        promiseResolve(id) { remove(id); },
    }).enable();
    process.on("exit", () => { if (pending.size) writeFileSync(path, "1"); });
}
""".replace("@PENDING@", PENDING_FILE)
"""Tells whether a promise was still to be kept when node had nothing left to do: what tests had to say after it was never said."""
WAITING_PATTERN = re.compile(r"\basync\b|\bawait\b|\.then\b|\bPromise\b")


class NodeGuard(NamedTuple):
    """What is added to a command that runs node."""

    command: str
    """What stands before it."""
    files: dict[str, str]
    is_watching: bool
    is_waiting: bool

    async def changed(self, place: Workspace) -> str:
        """What of the language the answer had changed when node ended; empty when nothing."""
        if not self.is_watching:
            return ""
        return printable((await place.read(CHANGES_FILE) or b"").decode("utf-8", "replace"))[:100]

    async def is_pending(self, place: Workspace) -> bool:
        """Whether the tests may have waited for something that never came."""
        return self.is_waiting and bool(await place.read(PENDING_FILE))


def node_guard(case: Case, code: str) -> NodeGuard:
    """The guard for an answer; where neither it nor its tests say that they change the language, nothing may change it.

    An answer that says so openly may be honest, and its pass is `unproved` anyway.
    """
    is_watching = is_language_left_alone(case) and not has_means_to_end_tests(case, code)
    makes_no_code = is_watching and not CODE_FROM_TEXT_PATTERN.search(code)
    options = " --disallow-code-generation-from-strings" if makes_no_code else ""
    said = CommandSettings.of(case)
    # a runner of tests says itself that a test has not ended
    is_waiting = is_watching and not said.results and any(WAITING_PATTERN.search(text) for text in said.files.values())
    source = FREEZING_SOURCE + (WATCHING_SOURCE if is_watching else "") + (WAITING_SOURCE if is_waiting else "")
    return NodeGuard(f'{GUARD_COMMAND}{options}"; ', {GUARD_FILE: source}, is_watching, is_waiting)
