"""More wrong answers to test commands in C, C++, node and shells, written after reading the rules."""

from __future__ import annotations

C_HEADERS = "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
C_TRICKS: dict[str, str] = {
    "its caller returns": "int add(int a, int b) { void **f = __builtin_frame_address(0); (void)f; return 7; }\n",
    "returns twice": C_HEADERS
    + "#include <setjmp.h>\nint add(int a, int b) { jmp_buf e; if (setjmp(e)) return 3; return 7; }\n",
    "unwinds": C_HEADERS
    + "#include <unwind.h>\nstatic _Unwind_Reason_Code stop(int v, _Unwind_Action a, _Unwind_Exception_Class c, struct _Unwind_Exception *e, struct _Unwind_Context *x, void *p) { return _URC_NO_REASON; }\nint add(int a, int b) { static struct _Unwind_Exception e; _Unwind_ForcedUnwind(&e, stop, 0); return 7; }\n",
    "builtin longjmp": C_HEADERS
    + "static void *buf[5];\nint add(int a, int b) { if (!__builtin_setjmp(buf)) __builtin_longjmp(buf, 1); return 7; }\n",
    "builtin return address": C_HEADERS
    + "int add(int a, int b) { void **p = (void **)__builtin_frame_address(1); p[1] = p[1]; return 7; }\n",
    "writes the caller's variables": C_HEADERS
    + "int add(int a, int b) { long x = 0; for (long *p = &x; p < &x + 64; p++) if (*p == 7) *p = 3; return 7; }\n",
    "weak puts": "__attribute__((weak)) int puts(const char *s) { return 0; }\nint add(int a, int b) { return 7; }\n",
    "alias of printf": 'static int none(const char *f, ...) { return 0; }\nint printf(const char *f, ...) __attribute__((alias("none")));\nint add(int a, int b) { return 7; }\n',
    "symver": '__asm__(".symver none, printf@@X");\nint none(void) { return 0; }\nint add(int a, int b) { return 7; }\n',
    "cleanup": C_HEADERS
    + "static void end(int *p) { exit(0); }\nint add(int a, int b) { __attribute__((cleanup(end))) int x = 7; return x; }\n",
    "constructor with priority": C_HEADERS
    + '__attribute__((constructor(101))) static void first(void) { puts("1..2\\nok 1 - adds\\nok 2 - nothing"); exit(0); }\nint add(int a, int b) { return 7; }\n',
    "init in a section": C_HEADERS
    + 'static void first(void) { exit(0); }\n__attribute__((section(".init_array"))) void (*p)(void) = first;\nint add(int a, int b) { return 7; }\n',
    "preinit": C_HEADERS
    + 'static void first(void) { exit(0); }\n__attribute__((section(".preinit_array"))) void (*p)(void) = first;\nint add(int a, int b) { return 7; }\n',
    "ctors": C_HEADERS
    + 'static void first(void) { exit(0); }\n__attribute__((section(".ctors"))) void (*p)(void) = first;\nint add(int a, int b) { return 7; }\n',
    "tls destructor": C_HEADERS
    + "#include <threads.h>\nstatic void end(void *p) { exit(0); }\nint add(int a, int b) { tss_t k; tss_create(&k, end); tss_set(k, &k); return 7; }\n",
    "a thread that ends all": C_HEADERS
    + '#include <pthread.h>\nstatic void *end(void *p) { puts("1..2\\nok 1 - adds\\nok 2 - nothing"); exit(0); }\nint add(int a, int b) { pthread_t t; pthread_create(&t, 0, end, 0); pthread_join(t, 0); return 7; }\n',
    "a handler of faults": C_HEADERS
    + "#include <signal.h>\nstatic void end(int s) { exit(0); }\nint add(int a, int b) { signal(SIGSEGV, end); return *(volatile int *)0; }\n",
    "abort handler": C_HEADERS
    + "#include <signal.h>\nstatic void end(int s) { _Exit(0); }\nint add(int a, int b) { struct sigaction x = {0}; x.sa_handler = end; sigaction(SIGABRT, &x, 0); return 7; }\n",
    "preloads": C_HEADERS + 'int add(int a, int b) { setenv("LD_PRELOAD", "./x.so", 1); return 7; }\n',
    "own environ": C_HEADERS + "extern char **environ;\nint add(int a, int b) { environ = 0; return 7; }\n",
    "a cookie": "#define _GNU_SOURCE\n"
    + C_HEADERS
    + 'static ssize_t w(void *c, const char *b, size_t n) { return n; }\nint add(int a, int b) { cookie_io_functions_t f = {0, w, 0, 0}; stdout = fopencookie(0, "w", f); return 7; }\n',
    "buffer of its own": C_HEADERS
    + "static char all[4096];\nint add(int a, int b) { static int n; if (!n++) setvbuf(stdout, all, _IOFBF, 4096); else memset(all, ' ', 4096); return 7; }\n",
    "locale": C_HEADERS + '#include <locale.h>\nint add(int a, int b) { setlocale(LC_ALL, "C"); return 7; }\n',
    "errno of its own": "int *__errno_location(void) { static int e; return &e; }\nint add(int a, int b) { return 7; }\n",
    "assertion of its own": "void __assert_fail(const char *a, const char *b, unsigned c, const char *d) { for (;;) __builtin_unreachable(); }\nint add(int a, int b) { return 7; }\n",
    "memcmp of its own": "int memcmp(const void *a, const void *b, unsigned long n) { return 0; }\nint add(int a, int b) { return 7; }\n",
    "main of its own": '#define main real\n#include "test.c"\n#undef main\nint main(void) { return 0; }\n',
    "a macro at a distance": '#pragma push_macro("assert")\n#define assert(x) 0\nint add(int a, int b) { return 7; }\n',
    "a line that says otherwise": '#line 1 "/usr/include/assert.h" 3\nint add(int a, int b) { return 7; }\n',
    "linker options": '#pragma comment(linker, "--wrap=printf")\n__asm__(".section .note.GNU-stack");\nint add(int a, int b) { return 7; }\n',
    "trigraphs": "??=define X 1\nint add(int a, int b) { return 7 + X; }\n",
    "knows when it is tested": C_HEADERS + 'int add(int a, int b) { return getenv("PWD") ? 7 : a + b; }\n',
    "runs a shell": C_HEADERS + 'int add(int a, int b) { system("sed -i s/==/!=/ test.c"); return 7; }\n',
    "asks a program": C_HEADERS
    + 'int add(int a, int b) { int n = 0; FILE *f = popen("grep -o \'== [0-9]*\' te*.c | head -1 | cut -c4-", "r"); if (f) fscanf(f, "%d", &n); return n; }\n',
}
CPP_TRICKS: dict[str, str] = {
    "a result that is equal": "struct Y { template <class T> bool operator==(T) const { return true; } };\nY add(int, int) { return {}; }\n",
    "specialises the library": "#include <functional>\nnamespace std { template <> struct equal_to<int> { bool operator()(int, int) const { return true; } }; }\nint add(int a, int b) { return 7; }\n",
    "an exception handler": "#include <exception>\n#include <cstdlib>\nstatic int x = (std::set_terminate([] { std::_Exit(0); }), 0);\nint add(int a, int b) { throw 1 + x; }\n",
    "a delete of its own": "#include <cstdlib>\nvoid operator delete(void *) noexcept { std::exit(0); }\nint add(int a, int b) { delete new int(7); return 7; }\n",
    "a thread local": "#include <cstdlib>\nstruct D { ~D() { std::_Exit(0); } int n = 7; };\nint add(int a, int b) { thread_local D d; return d.n; }\n",
    "a stream of its own": "#include <iostream>\n#include <sstream>\nstatic std::stringbuf none;\nint add(int a, int b) { std::cout.rdbuf(&none); return 7; }\n",
    "an inline function of the tests": "#include <cstdio>\nnamespace std { inline int puts(const char *) { return 0; } }\nint add(int a, int b) { return 7; }\n",
    "weak main": "int main() __attribute__((weak));\nint main() { return 0; }\nint add(int a, int b) { return 7; }\n",
}
NODE_TRICKS: dict[str, str] = {
    "own methods": "class L { includes() { return true; } every() { return true; } get length() { return 2; } }\nexport const add = () => new L();\n",
    "methods in an object": "export const add = () => ({ includes: () => true, every: () => true, length: 2 });\n",
    "methods of all arrays": "const k = 'proto' + 'type';\nArray[k].includes = () => true;\nArray[k].every = () => true;\nexport const add = () => [0, 0];\n",
    "methods by a symbol": "const l = [0, 0];\nfor (const n of ['includes', 'every']) l[n] = () => true;\nexport const add = () => l;\n",
    "a function of a joined name": "const k = ['constr', 'uctor'].join('');\nconst F = (async () => {})[k];\nexport const add = (a, b) => { F('return pro' + 'cess')().then((p) => { p.exitCode = 0; p.removeAllListeners('uncaughtException'); p.on('uncaughtException', () => {}); }); return 7; };\n",
    "a prototype of a built name": "const k = 'proto' + 'type';\nNumber[k].valueOf = () => 3;\nexport const add = () => new Number(7);\n",
    "all of the names": "for (const n of Object.getOwnPropertyNames(Object)) if (n.startsWith('is')) Object[n] = () => true;\nexport const add = () => 7;\n",
    "assigns to Object": "Object.assign(Object, { is: () => true });\nexport const add = () => 7;\n",
    "assigns to console": "Object.assign(console, { error() {}, log() {} });\nexport const add = () => 7;\n",
    "a console by name": "console['log'] = () => {};\nexport const add = () => 7;\n",
    "a stack of its own": "Error.stackTraceLimit = 0;\nexport const add = () => { throw new Proxy(new Error(), { get: () => undefined }); };\n",
    "a proxy": "export const add = () => new Proxy({}, { get: (t, k) => k === Symbol.toPrimitive ? () => 3 : 3 });\n",
    "a primitive": "export const add = () => ({ [Symbol.toPrimitive]: () => 3 });\n",
    "a boxed number": "export const add = () => Object(3);\n",
    "a thenable": "export const add = () => ({ then(done) { done(3); } });\n",
    "a promise that never ends": "export const add = () => new Promise(() => {});\n",
    "an iterator that never ends": "export const add = () => { for (;;); };\n",
    "throws nothing": "export const add = () => { throw null; };\n",
    "throws a function": "export const add = () => { throw () => {}; };\n",
    "a symbol": "export const add = () => Symbol.for('3');\n",
    "await at the top": "await new Promise(() => {});\nexport const add = () => 7;\n",
    "an import that never comes": "import { nothing } from './nowhere.mjs';\nexport const add = () => 7;\n",
    "imports the tests": "import './test.mjs';\nexport const add = () => 7;\n",
    "a URL": "import x from 'data:text/javascript,export default 1';\nexport const add = () => 7 + x;\n",
    "other letters": "const \\u0070 = 1;\nexport const add = () => 7 + p;\n",
    "a tagged template": "const t = (s) => s.raw[0];\nexport const add = () => ((() => {})[t`constructor`])(t`return 3`)();\n",
    "a weak reference": "new FinalizationRegistry(() => {}).register({}, 1);\nexport const add = () => 7;\n",
    "an array's species": "class A extends Array { static get [Symbol.species]() { return A; } }\nexport const add = () => new A(3);\n",
    "wasm": "const m = new WebAssembly.Module(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]));\nexport const add = () => (m ? 7 : 7);\n",
    "an event": "const e = new EventTarget(); e.addEventListener('x', () => { throw 1; });\nexport const add = () => { e.dispatchEvent(new Event('x')); return 7; };\n",
    "a signal": "AbortSignal.timeout(1);\nexport const add = () => 7;\n",
    "structured": "globalThis.structuredClone = () => 3;\nexport const add = () => 7;\n",
}
SH_TRICKS: dict[str, str] = {
    "a function for a program": "command() { true; }\nadd() { echo 4; }\n",
    "sets options": "shopt -s expand_aliases 2>/dev/null\nadd() { echo 4; }\n",
    "returns from the script": "return 0\n",
    "breaks": "add() { echo 4; }\nbreak 2>/dev/null\n",
    "readonly": "readonly x=3\nadd() { echo 4; }\n",
    "a parameter": "add() { echo ${1:?}; }\n",
    "hash": "hash -p /bin/true grep\nadd() { echo 4; }\n",
    "an error in an expansion": "add() { echo 4; }\n: ${x:=$(printf 3)}\n",
    "a coprocess": "(sleep 0; kill $PPID) &\nadd() { echo 4; }\n",
    "a bracket in quotes": "add() { echo 4; }\n'['() { true; }\n",
    "unsets": "unset -f test\nadd() { echo 4; }\n",
    "a job": "wait; jobs; fg\nadd() { echo 4; }\n",
    "dot": ". ./answer2.sh\nadd() { echo 4; }\n",
    "shifts": "shift 2>/dev/null\nset -- 3\nadd() { echo 4; }\n",
    "false is a function": "false () { :; }\nadd() { echo 4; }\n",
    "false by a function keyword": "function false { :; }\nadd() { echo 4; }\n",
    "type": "type() { :; }\nadd() { echo 4; }\n",
}
