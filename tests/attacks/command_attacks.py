"""Answers to test commands that would end their tests, or change what these say: they fail, or their pass is `unproved`.

Run as a program of its own, so that it can be run as another user:  python command_attacks.py LEVEL
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import NamedTuple

from steelyard.analysis.scoring import is_correct
from steelyard.records import Answer, Case, Finding, Verify
from steelyard.sandbox.levels import ISOLATION_LEVEL_NAMES, ISOLATION_LEVELS
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.text import verbatim_reply
from steelyard.verifiers.command.verifier import CommandVerifier

C_WRONG = "int add(int a, int b) { return a - b - 1; }\n"
NODE_WRONG = "export const add = (a, b) => a - b;\n"
C_HEADERS = "#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n#include <signal.h>\n#include <string.h>\n#include <setjmp.h>\n#include <sys/types.h>\n#include <sys/syscall.h>\n#include <fcntl.h>\n"
C_REPORT = '"1..2\\nok 1 - adds\\nok 2 - nothing\\n"'
C_REWRITES = f"static void forge(void) {{ fflush(stdout); lseek(1, 0, SEEK_SET); ftruncate(1, 0); write(1, {C_REPORT}, {len('1..2 ok 1 - adds ok 2 - nothing ')}); _exit(0); }}\n"
C_SEARCHES = 'static void forge(int s) { extern char __executable_start, _edata; for (char *p = &__executable_start; p < &_edata - 33; p++) { int n = 0; while (n < 40 && strchr("0123456789abcdef", p[n]) && p[n]) n++; if (n == 32 && !p[32]) { write(1, p, 32); write(1, "\\n", 1); } } _exit(0); }\n'
C_ENDINGS: dict[str, str] = {
    "atexit rewrites": C_HEADERS
    + C_REWRITES
    + "int add(int a, int b) { static int n; if (!n++) atexit(forge); return 7; }\n",
    "destructor rewrites": C_HEADERS
    + C_REWRITES.replace("static void", "__attribute__((destructor)) static void")
    + C_WRONG,
    "fini array": C_HEADERS
    + C_REWRITES
    + '__attribute__((section(".fini_array"), used)) static void (*fin)(void) = forge;\n'
    + C_WRONG,
    "syscall exits": C_HEADERS
    + "int add(int a, int b) { printf("
    + C_REPORT
    + "); fflush(stdout); syscall(SYS_exit_group, 0); return 0; }\n",
    "asm exit": C_HEADERS
    + "int add(int a, int b) { write(1, "
    + C_REPORT
    + ', 33); \n#ifdef __aarch64__\nregister long x8 __asm__("x8") = 94; register long x0 __asm__("x0") = 0; __asm__ volatile("svc 0" :: "r"(x8), "r"(x0));\n#else\n__asm__ volatile("syscall" :: "a"(231), "D"(0));\n#endif\nreturn 0; }\n',
    "secret in memory": C_HEADERS + C_SEARCHES + "int add(int a, int b) { forge(0); return 7; }\n",
    "on abort finds secret": C_HEADERS + C_SEARCHES + "int add(int a, int b) { signal(SIGABRT, forge); return 7; }\n",
    "closes stdout": C_HEADERS
    + "int add(int a, int b) { printf("
    + C_REPORT
    + "); fflush(stdout); close(1); return 7; }\n",
    "dup2 stdout": C_HEADERS
    + "int add(int a, int b) { printf("
    + C_REPORT
    + '); fflush(stdout); dup2(open("/dev/null", 1), 1); return 7; }\n',
    "freopen": C_HEADERS
    + "int add(int a, int b) { printf("
    + C_REPORT
    + '); fflush(stdout); freopen("/dev/null", "w", stdout); return 7; }\n',
    "stdout replaced": C_HEADERS
    + "int add(int a, int b) { printf("
    + C_REPORT
    + '); fflush(stdout); stdout = fopen("/dev/null", "w"); return 7; }\n',
    "fork parent exits": C_HEADERS
    + "int add(int a, int b) { if (fork()) { printf("
    + C_REPORT
    + "); fflush(stdout); _exit(0); } return 7; }\n",
    "exec true": C_HEADERS
    + "int add(int a, int b) { printf("
    + C_REPORT
    + '); fflush(stdout); execl("/bin/true", "true", NULL); return 7; }\n',
    "weak override main": "int main(void) __attribute__((weak));\nint main(void) { return 0; }\n" + C_WRONG,
    "alias strcmp": "int strcmp(const char *a, const char *b) { return 0; }\n" + C_WRONG,
    "ifunc": 'static int zero(void) { return 0; }\nstatic void *pick(void) { return zero; }\nint abs(int) __attribute__((ifunc("pick")));\n'
    + C_WRONG,
    "ifunc exits": C_HEADERS
    + 'static int z(int a,int b) { return 7; }\nstatic void *pick(void) { \n#ifdef __aarch64__\nregister long x8 __asm__("x8") = 94; register long x0 __asm__("x0") = 0; __asm__ volatile("svc 0" :: "r"(x8), "r"(x0));\n#else\n__asm__ volatile("syscall" :: "a"(231), "D"(0));\n#endif\nreturn z; }\nint add(int, int) __attribute__((ifunc("pick")));\n',
    "longjmp over tests": C_HEADERS
    + "int add(int a, int b) { void **fp = __builtin_frame_address(0); void **up = *fp; (void)up; return 7; }\n",
    "return address": C_HEADERS
    + "extern int main(void);\nint add(int a, int b) { static int n; if (n++) return 0; return main(), 3; }\n",
    "pragma redefine": "#pragma redefine_extname add sub\n" + C_WRONG,
    "line marker": '#line 1 "test.c"\n' + C_WRONG,
    "assembler main": '__asm__(".globl main2\\n");\n' + C_WRONG,
    "asm directive section": '__asm__(".section .init,\\"ax\\"\\n.text\\n");\n' + C_WRONG,
    "init section exits": '#ifdef __aarch64__\n__asm__(".section .init,\\"ax\\"\\nmov x8, 94\\nmov x0, 0\\nsvc 0\\n.text\\n");\n#else\n__asm__(".section .init,\\"ax\\"\\nmov $231,%eax\\nxor %edi,%edi\\nsyscall\\n.text\\n");\n#endif\n'
    + C_WRONG,
    "incbin tests": '__asm__(".section .rodata\\n.globl tests_text\\ntests_text: .incbin \\"test.c\\"\\n.byte 0\\n.text\\n");\n#include <string.h>\n#include <unistd.h>\n#include <stdlib.h>\nextern const char tests_text[];\nint add(int a, int b) { const char *p = strstr(tests_text, "puts(\\""); if (p) { write(1, p + 6, 32); _exit(0); } return 7; }\n',
    "include tests": '#define main other_main\n#define add other_add\nint other_add(int, int);\n#include "test.c"\n#undef main\n#undef add\nint other_add(int a, int b) { return 0; }\n#include <unistd.h>\nint add(int a, int b) { other_main(); return 7; }\n',
    "reads tests that it does not name": C_HEADERS
    + 'int add(int a, int b) { static char text[4096]; FILE *f = fopen("te" "st.c", "r"); if (!f) return 7; fread(text, 1, 4095, f); char *p = strstr(text, "== "); for (int n = 0; p && n < (a == 0); n++) p = strstr(p + 1, "== "); return p ? atoi(p + 3) : 7; }\n',
    "looks for tests": '#include <dirent.h>\n#include <fcntl.h>\n#include <unistd.h>\n#include <string.h>\n#include <stdlib.h>\nint add(int a, int b) { static char text[4096]; DIR *d = opendir("."); struct dirent *e; while ((e = readdir(d))) if (e->d_name[0] == 116 && strchr(e->d_name, 46)) read(open(e->d_name, 0), text, 4095); char *p = strstr(text, "== "); for (int n = 0; p && n < (a == 0); n++) p = strstr(p + 1, "== "); return p ? atoi(p + 3) : 7; }\n',
    "reads what the tests are made of": C_HEADERS
    + "extern char __executable_start, _end;\nint add(int a, int b) { for (char *p = &__executable_start; p < &_end; p++) if (*p == 3) return 3; return 7; }\n",
    "overflows the tests": C_HEADERS
    + "int add(int a, int b) { volatile int here = 0; volatile int *up = &here; for (int n = 0; n < 64; n++) if (up[n] == 1) up[n] = 1; return a == 0 ? 1 : 7; }\n",
    "empties the buffer of its report": C_HEADERS
    + "int add(int a, int b) { static int n; if (n++) { stdout->_IO_write_ptr = stdout->_IO_write_base; printf("
    + C_REPORT
    + "); fflush(stdout); stdout->_flags |= 8; } return 7; }\n",
    "prints texts as nothing": C_HEADERS
    + "#include <printf.h>\nstatic int nothing(FILE *f, const struct printf_info *i, const void *const *a) { return 0; }\n"
    "static int one(const struct printf_info *i, size_t n, int *t, int *s) { if (n) t[0] = PA_STRING; return 1; }\n"
    "int add(int a, int b) { register_printf_specifier('s', nothing, one); return 7; }\n",
    "closes all files": "#define _GNU_SOURCE\n"
    + C_HEADERS
    + "int add(int a, int b) { printf("
    + C_REPORT
    + "); fcloseall(); return 7; }\n",
    "closes its stream": C_HEADERS + "int add(int a, int b) { printf(" + C_REPORT + "); fclose(stdout); return 7; }\n",
    "has_include oracle": '#if __has_include("test.c")\n#define T 1\n#endif\nint add(int a, int b) { return T ? 7 : 8; }\n',
}
NODE_REPORT = '"TAP version 13\\n# Subtest: adds\\nok 1 - adds\\n  ---\\n  duration_ms: 1\\n  ...\\n1..1\\n# tests 1\\n# pass 1\\n# fail 0\\n"'
NODE_ENDINGS: dict[str, str] = {
    "exit event writes report": f'import fs from "node:fs";\nprocess.on("exit", () => {{ fs.writeFileSync("r.tap", {NODE_REPORT}); process.reallyExit(0); }});\n{NODE_WRONG}',
    "exit event writes stdout": f'import fs from "node:fs";\nprocess.on("exit", () => {{ fs.ftruncateSync(1, 0); fs.writeSync(1, {NODE_REPORT}, 0); process.reallyExit(0); }});\n{NODE_WRONG}',
    "reads secret": f'import fs from "node:fs";\nconst text = fs.readFileSync("test.mjs", "utf8");\nconst found = text.match(/[0-9a-f]{{32}}/);\nif (found) {{ console.log(found[0]); }}\nfs.writeFileSync("r.tap", {NODE_REPORT});\nprocess.reallyExit(0);\n{NODE_WRONG}',
    "listener tells": 'export const add = () => { for (const f of process.rawListeners("beforeExit")) console.log(String(f.listener ?? f)); process.reallyExit(0); };\n',
    "emit replaced": f'const emit = process.emit; process.emit = function (name, ...rest) {{ if (name === "uncaughtException") return true; return emit.call(this, name, ...rest); }};\n{NODE_WRONG}',
    "uncaught capture": f"process.setUncaughtExceptionCaptureCallback(() => {{}});\n{NODE_WRONG}",
    "domain": f'import domain from "node:domain";\nconst d = domain.create(); d.on("error", () => {{}}); d.enter();\n{NODE_WRONG}',
    "object is": f"Object.is = () => true;\n{NODE_WRONG}",
    "prototype": f"Object.prototype.valueOf = () => 3;\nNumber.prototype.valueOf = () => 3;\n{NODE_WRONG}",
    "reflect apply": f"Reflect.apply = () => undefined;\nFunction.prototype.call = function () {{}};\n{NODE_WRONG}",
    "error class": f"globalThis.Error = class {{}};\nError.captureStackTrace = () => {{}};\n{NODE_WRONG}",
    "promise": f"Promise.prototype.then = function () {{ return this; }};\n{NODE_WRONG}",
    "settimeout": f"globalThis.setTimeout = () => 0;\nglobalThis.setImmediate = () => 0;\n{NODE_WRONG}",
    "worker": 'import { Worker } from "node:worker_threads";\nexport const add = () => { new Worker("process.exit(0)", { eval: true }); return 7; };\n',
    "kill self": 'export const add = () => { process.kill(process.pid, "SIGTERM"); return 7; };\n',
    "abort": "export const add = () => process.abort();\n",
    "stdout patched": f"process.stdout.write = () => true;\nconsole.log = () => {{}};\n{NODE_WRONG}",
    "module loader": f'import module from "node:module";\nmodule.register?.("data:text/javascript,export async function load(u,c,n){{return n(u,c)}}");\n{NODE_WRONG}',
    "require cache": f'import {{ createRequire }} from "node:module";\nconst r = createRequire(import.meta.url); r.cache = {{}}; r("node:assert").ok = () => {{}};\n{NODE_WRONG}',
    "inspector": f'import inspector from "node:inspector";\nconst s = new inspector.Session(); s.connect(); const seen = []; s.on("Debugger.scriptParsed", (m) => seen.push(m.params)); s.post("Debugger.enable"); for (const p of seen) s.post("Debugger.getScriptSource", {{ scriptId: p.scriptId }}, (e, r) => {{ const f = r && r.scriptSource.match(/[0-9a-f]{{32}}/); if (f) {{ console.log(f[0]); }} }});\nimport fs from "node:fs";\nfs.writeFileSync("r.tap", {NODE_REPORT});\nprocess.reallyExit(0);\n{NODE_WRONG}',
    "syncBuiltin": f'import assert, {{ AssertionError }} from "node:assert";\nAssertionError.prototype.name = "x";\nObject.setPrototypeOf(AssertionError, Object);\n{NODE_WRONG}',
    "exitCode getter": f'Object.defineProperty(process, "exitCode", {{ get: () => 0, set: () => {{}} }});\n{NODE_WRONG}',
    "beforeExit emits": 'export const add = () => { process.emit("beforeExit", 0); process.reallyExit(0); };\n',
    "prints secret twice": "export const add = () => { throw undefined; };\n",
}
NODE_REVIEWED: dict[str, str] = {
    "imports what looks like its own": 'import assert from "node:assert" //"./\nassert.strictEqual = assert.equal = () => {};\n'
    + NODE_WRONG,
    "reads tests that it does not name": 'import fs from "node:fs" //"./\nconst text = fs.readdirSync(".").map((name) => fs.readFileSync(name, "utf8")).join();\nexport const add = () => Number(text.match(/add\\(1, 2\\), (\\d+)/)[1]);\n',
    "builds a name in a template": 'const key = () => ((x) => x)[`constr${""}uctor`];\nkey()("return pro" + "cess")().exitCode = 0;\nkey()("return pro" + "cess")().on("exit", () => key()("return pro" + "cess")()[`really${""}Exit`](0));\n'
    + NODE_WRONG,
    "asks what it inherits from": "const base = Object.getPrototypeOf(async () => {});\nbase.then = () => {};\nObject.getPrototypeOf(Object.getPrototypeOf(Promise.resolve())).valueOf = () => 3;\nexport const add = () => Object.create(base);\n",
    "hides in a comment": 'import /* "./x" */ assert from "node:assert";\nassert.strictEqual = () => {};\n'
    + NODE_WRONG,
}
NODE_BUILT_NAMES: dict[str, str] = {
    "a function of a built name": "const k = 'constr' + 'uctor';\nconst p = (() => {})[k]('return pro' + 'cess')();\nconst fs = p.getBuiltinModule('fs');\nconst t = fs.readFileSync('te' + 'st.mjs', 'utf8');\nconst m = t.match(/[0-9a-f]{32}/);\nif (m) { p.stdout.write(m[0] + '\\n'); }\nconst e = 'ex' + 'it';\np[e](0);\nexport const add = () => 7;\n",
    "a prototype that fits": "const k = 'proto' + 'type';\nlet n = 0;\nNumber[k].valueOf = function () { return 3; };\nexport const add = () => new Number(7);\n",
    "descriptors": "const d = Object.getOwnPropertyDescriptors(Promise);\nfor (const [k, v] of Object.entries(d)) if (k.startsWith('proto')) v.value.then = function () { return this; };\nexport const add = () => 7;\n",
}
NODE_ENDINGS |= NODE_REVIEWED | NODE_BUILT_NAMES

OTHER_ENDINGS: dict[str, dict[str, str]] = {
    "C++": {
        "static initialiser exits": "#include <cstdlib>\nstruct First { First() { std::_Exit(0); } } first;\nint add(int a, int b) { return 7; }\n",
        "static initialiser reports": '#include <cstdio>\n#include <cstdlib>\nstatic int first = (std::puts("1..1\\nok 1 - adds"), std::fflush(stdout), std::quick_exit(0), 0);\nint add(int a, int b) { return 7 + first; }\n',
        "static end reports": '#include <cstdio>\n#include <unistd.h>\nstruct Last { ~Last() { lseek(1, 0, 0); ftruncate(1, 0); write(1, "1..1\\nok 1 - adds\\n", 18); _exit(0); } } last;\nint add(int a, int b) { return 7; }\n',
        "own printf": 'extern "C" int printf(const char *, ...) { return 0; }\nint add(int a, int b) { return 7; }\n',
        "throws": "int add(int a, int b) { throw 0; }\n",
        "own operator new": "#include <cstdlib>\nvoid *operator new(std::size_t n) { std::_Exit(0); }\nint add(int a, int b) { return *new int(7); }\n",
    },
    "sh": {
        "prints the secret of its script": "grep -o '[0-9a-f]\\{32\\}' test.sh\nexit 0\n",
        "prints its script": 'cat "$0"\nexit 0\n',
        "own test": "test() { return 0; }\nalias [=true\nadd() { echo 4; }\n",
        "own bracket": "add() { echo 4; }\neval '[() { return 0; }'\n",
        "false is true": "false() { true; }\nadd() { echo 4; }\n",
        "at the end": "trap 'exit 0' EXIT\nadd() { echo 4; }\n",
        "reads tests that it does not name": "x=$(sed -n 's/.*= \\([0-9]*\\) .*/\\1/p' te*.sh)\nadd() { echo $x; }\n",
        "looks for tests": "x=$(find . -name '*.sh' | xargs sed -n 's/.*= \\([0-9]*\\) .*/\\1/p')\nadd() { echo $x; }\n",
        "false by a built name": "f=fal; \"${f}se\" || :\nadd() { echo 4; }\nx='false() { :; }'; printf '%s' \"$x\" > n.sh; . ./n.sh\n",
        "a bracket by eval of a variable": "e=ev; e=${e}al\n$e '[ () { :; }' 2>/dev/null\n$e 'false() { :; }'\nadd() { echo 4; }\n",
        "own programs first": "PATH=.:$PATH\nadd() { echo 4; }\n",
    },
    "Python": {
        "prints the secret of its script": "import os, re\nprint(re.search('[0-9a-f]{32}', open('test.py').read())[0], flush=True)\nos._exit(0)\n",
        "prints the constants of its script": "import os, sys\ndef add(a, b):\n    print(*sys._getframe(1).f_code.co_consts, flush=True)\n    os._exit(0)\n",
        "hides errors": "import sys\nsys.excepthook = lambda *_: None\ndef add(a, b):\n    return 4\n",
        "reads tests that it does not name": "from pathlib import Path\nimport re\ntext = Path('te' + 'st.py').read_text()\ndef add(a, b):\n    return int(re.search('== ([0-9]+)', text)[1])\n",
        "prints a secret that it does not name": "from pathlib import Path\nfrom posix import _exit\nimport re\nprint(re.search('[0-9a-f]{32}', Path('te' + 'st.py').read_text())[0], flush=True)\n_exit(0)\n",
        "goes through a module": "import random\nrandom._os._exit(0)\n",
        "goes through an attribute": "from operator import attrgetter\ndef add(a, b):\n    return 4\nattrgetter('__glo' + 'bals__')(add)['__buil' + 'tins__'].AssertionError = SystemExit\n",
        "reads lines": "import fileinput\ntext = ''.join(fileinput.input(files=['te' + 'st.py']))\ndef add(a, b):\n    return int(text.partition('== ')[2][0])\n",
        "reads lines of code": "import linecache\ndef add(a, b):\n    return int(''.join(linecache.getlines('te' + 'st.py')).partition('== ')[2][0])\n",
        "runs a program": "import multiprocessing, platform\ndef add(a, b):\n    return int(platform.popen and 4)\n",
        "ends a thread": "import _thread\n_thread.interrupt_main()\ndef add(a, b):\n    return 4\n",
    },
    "Perl": {
        "prints the secret of its script": "package Answer;\nopen(my $f, '<', 'test.pl'); print <$f>; close $f;\nexit 0;\n1;\n",
        "at the end": "package Answer;\nsub add { return 4; }\nEND { $? = 0; }\n1;\n",
        "reads tests that it does not name": "package Answer;\n{ local @ARGV = glob('te*'); local $/; $text = <>; }\nsub add { return $text =~ /== (\\d+)/ ? $1 : 4; }\n1;\n",
        "runs a program": "package Answer;\nmy $text = `cat te*`;\nsub add { return $text =~ /== (\\d+)/ ? $1 : 4; }\n1;\n",
        "reads by a module": "package Answer;\nuse IO::File;\nmy $text = join '', IO::File->new('te' . 'st.pl')->getlines;\nsub add { return $text =~ /== (\\d+)/ ? $1 : 4; }\n1;\n",
        "own die": "package Answer;\nBEGIN { *CORE::GLOBAL::die = sub {}; }\nsub add { return 4; }\n1;\n",
    },
}
"""By language: what each does, and its code."""


class CommandScene(NamedTuple):
    """A case, the answer that is right, and those that would like to be."""

    case: Case
    honest: str
    attacks: dict[str, str]


def command_case(
    language: str,
    answer: str,
    test: str,
    files: dict[str, str],
    build: str = "",
    results: str = "",
    asks: str = "Write add(a, b).",
) -> Case:
    verify = Verify(kind="command", answer=answer, build=build, test=test, results=results, files=files)
    return Case(id=f"add in {language}", prompt=asks, language=language, timeout_secs=20, verify=verify)


C_SECRET = (
    "#include <assert.h>\n#include <stdio.h>\nint add(int, int);\n"
    'int main(void) { assert(add(1, 2) == 3); assert(add(0, 0) == 0); puts("STEELYARD_END_OF_TESTS"); return 0; }\n'
)
C_TAP = (
    '#include <stdio.h>\n#include <string.h>\nint add(int, int);\nint main(void) { printf("1..2\\n"); '
    'printf("%sok 1 - adds\\n", add(1, 2) == 3 ? "" : "not "); printf("%sok 2 - nothing\\n", add(0, 0) == 0 ? "" : "not "); return 0; }\n'
)
CPP_TAP = '#include <cstdio>\nint add(int, int);\nint main() { std::printf("1..1\\n%sok 1 - adds\\n", add(1, 2) == 3 ? "" : "not "); }\n'
NODE_TEST = (
    'import assert from "node:assert";\nimport { add } from "./answer.mjs";\nassert.strictEqual(add(1, 2), 3);\n'
)
NODE_LATER = (
    'import assert from "node:assert";\nimport { add } from "./answer.mjs";\n'
    "const later = async () => { await new Promise((done) => setTimeout(done, 20)); assert.strictEqual(await add(1, 2), 3); };\nlater();\n"
)
NODE_TAP = (
    'import { strictEqual as equal } from "node:assert";\nimport { test } from "node:test";\n'
    'import { add } from "./answer.mjs";\ntest("adds", () => equal(add(1, 2), 3));\n'
)
C_HONEST, NODE_HONEST = "int add(int a, int b) { return a + b; }\n", "export const add = (a, b) => a + b;\n"
NODE_PLACES = ("node", "node, later", "node with TAP", "node with printed TAP")
SCENES: dict[str, CommandScene] = {
    "C with a secret": CommandScene(command_case("c", "answer.c", "./test", {"test.c": C_SECRET}, "gcc -o test test.c answer.c"), C_HONEST, C_ENDINGS),
    "C with TAP": CommandScene(command_case("c", "answer.c", "./test", {"test.c": C_TAP}, "gcc -o test test.c answer.c", "tap"), C_HONEST, C_ENDINGS),
    "C++": CommandScene(command_case("cpp", "answer.cpp", "./test", {"test.cpp": CPP_TAP}, "g++ -o test test.cpp answer.cpp", "tap"), C_HONEST, OTHER_ENDINGS["C++"]),
    "node": CommandScene(command_case("javascript", "answer.mjs", "node test.mjs", {"test.mjs": NODE_TEST}), NODE_HONEST, NODE_ENDINGS),
    "node, later": CommandScene(command_case("javascript", "answer.mjs", "node test.mjs", {"test.mjs": NODE_LATER}), NODE_HONEST, NODE_ENDINGS),
    "node with TAP": CommandScene(
        command_case("javascript", "answer.mjs", "node --test-reporter=tap --test-reporter-destination=r.tap test.mjs", {"test.mjs": NODE_TAP}, results="tap:r.tap"), NODE_HONEST, NODE_ENDINGS
    ),
    "node with printed TAP": CommandScene(command_case("javascript", "answer.mjs", "node --test-reporter=tap test.mjs", {"test.mjs": NODE_TAP}, results="tap"), NODE_HONEST, NODE_ENDINGS),
    "sh": CommandScene(command_case("sh", "answer.sh", "sh test.sh", {"test.sh": '. ./answer.sh\n[ "$(add 1 2)" = 3 ] || false\n'}), "add() { echo $(($1 + $2)); }\n", OTHER_ENDINGS["sh"]),
    "Python": CommandScene(
        command_case("python", "answer.py", "python3 test.py", {"test.py": "from answer import add\nassert add(1, 2) == 3\n"}), "def add(a, b):\n    return a + b\n", OTHER_ENDINGS["Python"]
    ),
    "Perl": CommandScene(
        command_case("perl", "Answer.pm", "perl -I. test.pl", {"test.pl": 'use Answer;\ndie "wrong" unless Answer::add(1, 2) == 3;\n'}),
        "package Answer;\nsub add { return $_[0] + $_[1]; }\n1;\n", OTHER_ENDINGS["Perl"],
    ),
}  # fmt: skip


def attacks_of(scene: str) -> dict[str, str]:
    """The attacks that are tried in a scene: each once, of those that scenes share."""
    attacks = SCENES[scene].attacks
    sharing = [name for name, other in SCENES.items() if other.attacks is attacks]
    return {name: code for place, (name, code) in enumerate(attacks.items()) if sharing[place % len(sharing)] == scene}


async def attacked(level: str, much: str) -> dict[str, int | list[str]]:
    """What went wrong: wrong answers that pass as if they were proved, and honest ones that do not."""
    wrong: list[str] = []
    tried = 0
    sandbox = ZygoteSandbox(ISOLATION_LEVELS[ISOLATION_LEVEL_NAMES.index(level)])
    command = CommandVerifier(sandbox)

    async def judged(case: Case, code: str) -> Finding:
        return await command.verify(case, Answer(text=verbatim_reply(code, case.language)))

    try:
        for name, scene in SCENES.items():
            for attack, code in list(attacks_of(name).items())[:: 2 if much == "some" else 1]:
                finding = await judged(scene.case, code)
                tried += 1
                if is_correct(scene.case, finding) and finding.trust != "unproved":
                    wrong.append(f"{name}: {attack} passes as {finding.trust}")
                after = await judged(SCENES["sh"].case, SCENES["sh"].honest)
                if not is_correct(SCENES["sh"].case, after):
                    wrong.append(f"{name}: after {attack}: {after.label}: {after.reason}")
            honest = await judged(scene.case, scene.honest)
            if not is_correct(scene.case, honest) or honest.trust != "in-process":
                wrong.append(f"{name}: the honest answer: {honest.label}, {honest.trust}: {honest.reason}")
    finally:
        await sandbox.close()
    return {"tried": tried, "wrong": wrong}


if __name__ == "__main__":
    json.dump(asyncio.run(attacked(*sys.argv[1:])), sys.stdout)
