"""The code in a model's reply.

A reply is searched from the outside in. Thinking (`<think>` and its kin) is dropped. Then the first
of these that holds something is taken: fenced blocks, blocks in tags (`<code>`, CDATA, `<python>`),
bare code with the prose around it left out. Code is handed on as written: only line endings become
plain newlines, and a block whose fence is indented (a list item) loses its common indentation.

Of several blocks, those labelled with the wanted language count; if none is, those without a
label; if there are none, any block. Sessions (`>>>`, `$`), shell commands and output count only without other code. Among the blocks that count:

1. The last block that defines all names in `defines` is the answer: corrections follow drafts.
2. If no one block does, the last block that defines each name is taken, joined in order.
3. Without `defines`, or when one of them is nowhere to be seen, blocks that define different names
   are joined, and a block that defines a name again replaces the earlier one.
4. Blocks the answer leans on come along: imports, helpers it mentions but does not define, methods
   added to its types later on. Tests, and examples that only call the answer, stay out.

Replies are hostile, so every step is linear: expressions are written so that they cannot backtrack
over more than a line's length, and Python is only asked to parse what is not absurdly long.
"""

import ast
import re
import warnings
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from steelyard.verifiers.code.block_names import BlockNames, block_names


class ExtractedCode(NamedTuple):
    """The code a reply offers as its answer."""

    code: str | None
    """None when the reply holds no code."""
    how: str
    """How it was found, or why not, in a few words for a human."""


def extract(reply: str, language: str = "", *, defines: Sequence[str] = ()) -> ExtractedCode:
    """The code in `reply`; `defines` names the functions and types that the answer must define."""
    wanted = canonical_language(language)
    reply = reply.removeprefix("\ufeff").replace("\r\n", "\n")
    if wanted == "python":  # other compilers take the mark as it is
        reply = reply.replace("\n\ufeff", "\n")
    # code about fences and think tags is itself no Markdown
    if wanted == "python" and is_python(reply):
        return ExtractedCode(tidy(reply), "whole reply")
    text = without_thinking(reply)
    if not text.strip():
        return ExtractedCode(None, "only thinking" if reply.strip() else "empty reply")
    if wanted == "python" and QUOTED_FENCE_PATTERN.search(text) and not fenced_blocks(text):
        text = QUOTE_MARK_PATTERN.sub("", text)
    if blocks := fenced_blocks(text):
        # when the prompt opened the block, the reply's first fence is the closing one
        if not blocks[0].label and not blocks[0].closed and not bare_code(blocks[0].code, wanted).code:
            before = bare_code(text[: blocks[0].start], wanted)
            if before.code:
                return before._replace(how="code before a lone fence")
        blocks = [inner for block in blocks for inner in nested_blocks(block, wanted)]
    else:
        blocks = tagged_blocks(text, wanted)
    filled = [block for block in blocks if block.code.strip()]
    if filled:
        return select_answer(filled, wanted, defines)
    return ExtractedCode(None, "empty code block") if blocks else bare_code(text, wanted)


QUOTED_FENCE_PATTERN = re.compile(r"^ {0,3}> ?(?:```|~~~)", re.MULTILINE)
QUOTE_MARK_PATTERN = re.compile(r"^ {0,3}> ?", re.MULTILINE)
"""What begins each line of a quotation in Markdown."""

# ---- languages

LANGUAGE_ALIASES = {
    "python": "py python3 py3 python2 ipython ipython3 jupyter sage",
    "rust": "rs",
    "typescript": "ts tsx mts",
    "javascript": "js jsx mjs cjs node nodejs ecmascript",
    "go": "golang",
    "c": "h",
    "cpp": "c++ cc cxx hpp hxx",
    "csharp": "c# cs",
    "java": "",
    "kotlin": "kt kts",
    "ruby": "rb",
    "haskell": "hs",
    "hcl": "tf terraform opentofu tofu tfvars",
    "shell": "sh bash zsh ksh fish powershell",
    "sql": "postgresql postgres mysql sqlite",
    "yaml": "yml",
    "markdown": "md",
    "session": "pycon python-repl console shell-session shellsession terminal doctest",
    "text": "txt plain plaintext output out stdout stderr log result results diff none",
}
LANGUAGE_BY_ALIAS = {word: name for name, words in LANGUAGE_ALIASES.items() for word in [name, *words.split()]}
NON_ANSWER_LABELS = {"session", "text", "shell"}


def canonical_language(info: str) -> str:
    """The language an info string speaks of: `rust` for `RS,ignore`, "" when it names none."""
    found = re.match(r"[\s{.]*([\w+#./-]+)(=?)", info.lower())
    if not found or found[2]:
        return ""
    word = found[1].removeprefix("language-").removeprefix("lang-")
    # some models put the file's name where the language belongs
    return LANGUAGE_BY_ALIAS.get(word) or LANGUAGE_BY_ALIAS.get(word.rpartition(".")[2], word)


# ---- thinking

THINK_TAG_PATTERN = re.compile(r"<(/?)(?:think|thinking|thought|reasoning)[ \t]*>", re.IGNORECASE)


def without_thinking(reply: str) -> str:
    """The reply outside its think tags; a closing tag alone ends thinking the prompt had begun."""
    if not THINK_TAG_PATTERN.search(reply):
        return reply
    kept: list[str] = []
    since = depth = offset = 0
    opened = -1
    fence: OpeningFence | None = None
    tags_are_code = False
    for line in reply.split("\n"):
        tags = [tag for tag in THINK_TAG_PATTERN.finditer(line) if not is_quoted(line, tag)]
        if fence and not depth and tags:
            # a draft can break off inside its fence, but a tag in a string is not a tag
            lone = tags[0][1] and tags[0][0] == line.strip()
            if opened >= 0 or tags_are_code or not lone:
                tags_are_code, tags = True, []
        for tag in tags:
            if tag[1]:
                if not depth:
                    kept.clear()
                depth, since, fence = max(depth - 1, 0), offset + tag.end(), None
            else:
                if not depth:
                    opened = offset + tag.start()
                    kept.append(reply[since:opened])
                depth += 1
        if not depth:
            rest = line[max(since - offset, 0) :]
            fence = (None if fence.is_closed_by(rest) else fence) if fence else opening_fence(rest)
        offset += len(line) + 1
    if not depth or since > opened:
        kept.append(reply[since:])
    elif reply[:opened].rpartition("\n")[2].strip():
        # prose that mentions the tag; real thinking starts its own line
        kept.append(reply[opened:])
    return "\n".join(kept)


def is_quoted(line: str, tag: re.Match[str]) -> bool:
    """Whether the tag stands between backticks: prose about it."""
    return tag.start() > 0 and line[tag.start() - 1] == "`" == line[tag.end() : tag.end() + 1]


# ---- blocks

FENCE_OPENING_PATTERN = re.compile(r"([ \t]*)((?:[-*+]|\d{1,9}[.)])[ \t]+)?(?:</?[A-Za-z_]+>[ \t]*)*(`{3,}|~{3,})(.*)")
CLOSING_TAGS_PATTERN = re.compile(r"(?:</[A-Za-z_]+>[ \t]*)*")
REPLY_TAG_PATTERN = re.compile(r"<!\[CDATA\[|<(/?)([A-Za-z][\w+#-]*)([ \t][^<>\n]*)?>")
ANSWER_TAGS = {"answer", "final_answer", "solution", "response"}
CODE_TAGS = {"code", "pre", "source"} | LANGUAGE_BY_ALIAS.keys() - LANGUAGE_ALIASES["text"].split() - {"h"}
BLOCK_TAGS = ANSWER_TAGS | CODE_TAGS


class ReplyCodeBlock(NamedTuple):
    """A stretch of the reply that is marked as code."""

    label: str
    code: str
    closed: bool
    start: int = 0
    """Where in the text its fence stands."""


class OpeningFence(NamedTuple):
    """The line that opens a block."""

    mark: str
    indentation: int
    info: str

    def is_closed_by(self, line: str) -> bool:
        """Whether this line is at least as long a fence, of the same mark, and nothing else."""
        rest = line.strip(" \t")
        after = rest.lstrip(self.mark[0])
        return (
            len(rest) - len(after) >= len(self.mark)
            and CLOSING_TAGS_PATTERN.fullmatch(after.lstrip()) is not None
            and indentation_width(line) <= self.indentation + 3
        )


def opening_fence(line: str) -> OpeningFence | None:
    """The fence this line opens, at any depth of a list."""
    if "```" not in line and "~~~" not in line:
        return None
    found = FENCE_OPENING_PATTERN.match(line)
    if not found or (found[3][0] == "`" and "`" in found[4]):
        return None
    return OpeningFence(found[3], indentation_width(found[1]) + len(found[2] or ""), found[4])


def indentation_width(line: str) -> int:
    """The columns a line is indented by."""
    return len(line[: len(line) - len(line.lstrip(" \t"))].expandtabs(4))


def fenced_blocks(text: str) -> list[ReplyCodeBlock]:
    """All fenced blocks; the last may have been cut off."""
    blocks: list[ReplyCodeBlock] = []
    fence: OpeningFence | None = None
    lines: list[str] = []
    offset = start = 0
    for line in text.split("\n"):
        if fence is None:
            fence, lines, start = opening_fence(line), [], offset
        elif fence.mark in line and fence.is_closed_by(line):
            blocks.append(ReplyCodeBlock(canonical_language(fence.info), block_body(lines, fence), True, start))
            fence = None
        else:
            lines.append(line)
        offset += len(line) + 1
    if fence:
        code = block_body(lines if lines[-1:] != [""] else lines[:-1], fence)
        # the closing fence may stand right behind the last line of code
        closed = code.rstrip().endswith(fence.mark)
        code = tidy(code.rstrip().removesuffix(fence.mark)) if closed else code
        blocks.append(ReplyCodeBlock(canonical_language(fence.info), code, closed, start))
    return blocks


def block_body(lines: list[str], fence: OpeningFence) -> str:
    """The code between two fences, out of the list item it may be in."""
    if fence.indentation:
        indentations = [line[: len(line) - len(line.lstrip())] for line in lines if line.strip()]
        low, high = min(indentations, default=""), max(indentations, default="")
        shared = next((at for at, blank in enumerate(low) if blank != high[at]), len(low))
        lines = [line[shared:] for line in lines]
    return "".join(line + "\n" for line in lines)


def nested_blocks(block: ReplyCodeBlock, wanted: str) -> list[ReplyCodeBlock]:
    """The blocks inside a block of Markdown, otherwise the block itself."""
    is_markdown = block.label == "markdown" or (not block.label and opening_fence(block.code.lstrip("\n")))
    return (is_markdown and wanted != "markdown" and fenced_blocks(block.code)) or [block]


def tagged_blocks(text: str, wanted: str) -> list[ReplyCodeBlock]:
    """Blocks between tags that start a line or follow another tag; the innermost tag counts."""
    blocks: list[ReplyCodeBlock] = []
    name = label = ""
    start = position = 0

    def add(code: str, closed: bool) -> None:
        # an answer is as often a sentence as it is code
        found = bare_code(code, wanted).code if name in ANSWER_TAGS else tidy(code)
        if found is not None:
            blocks.append(ReplyCodeBlock(label, found, closed))

    while tag := REPLY_TAG_PATTERN.search(text, position):
        position = tag.end()
        if tag[2] is None:
            end = text.find("]]>", position)
            name = name if name in CODE_TAGS else "code"
            add(text[position : end if end >= 0 else len(text)], end >= 0)
            name = label = ""
            if end < 0:
                break
            position = end + 3
        elif tag[1] and tag[2].lower() == name:
            add(text[start : tag.start()], True)
            name = label = ""
        elif not tag[1] and tag[2].lower() in BLOCK_TAGS and starts_line(text, tag):
            name, start = tag[2].lower(), position
            label = LANGUAGE_BY_ALIAS.get(name) or canonical_language((tag[3] or "").partition("=")[2].strip("\"' "))
    if name:
        add(text[start:], False)
    return blocks


def starts_line(text: str, tag: re.Match[str]) -> bool:
    """Whether only blanks stand between the tag and the line's start or another tag."""
    start = tag.start()
    while start and text[start - 1] in " \t":
        start -= 1
    return start == 0 or text[start - 1] in "\n>"


def tidy(code: str) -> str:
    """Code without the blank lines around it, and with one line end."""
    blank = len(code) - len(code.lstrip())
    return code[code.rfind("\n", 0, blank) + 1 :].rstrip() + "\n"


# ---- bare code

MAX_PARSED_CHARS = 200_000
MAX_PARSED_RUNS = 8
PROSE_NODES = (
    *(ast.Module, ast.Expr, ast.Name, ast.Constant, ast.Attribute, ast.Tuple, ast.AnnAssign),
    *(ast.BoolOp, ast.Compare, ast.UnaryOp, ast.BinOp, ast.IfExp, ast.Pass),
    *(ast.boolop, ast.cmpop, ast.unaryop, ast.operator, ast.expr_context),
)
PYTHON_LINE_PATTERN = re.compile(
    r"[ \t]|(?:import|from|def|class|async|if|elif|else|for|while|with|try|except|finally|match"
    r"|raise|assert|del|pass)\b|[@#\"')\]}]|[\w.]+(?:[(\[]|[ \t]*(?::[^=]*|[-+*/%&|^@])?=)"
    r"|\w+, [\w, ]+="
)
PYTHON_DEFINITION_PATTERN = re.compile(r"(?:async[ \t]+)?def[ \t]+\w+[ \t]*\(|class[ \t]+\w+[ \t]*[(:]")
CODE_LINE_PATTERNS = {
    "shell": r"#!|\w+=|\w+ ?\(\)|(?:echo|printf|for|if|while|case|set|export|cd|find|grep|awk)\b",
    "sql": r"(?i:select|insert|update|delete|create|with|alter|drop)\b",
    "hcl": r"#|//|(?:resource|data|module|variable|output|provider|locals|terraform)\b[^\n]*\{",
}
DEFAULT_CODE_LINE_PATTERN = (
    r"//|/\*|#!|#\[|#include|#define|[{\[@]|(?:package|use|using|import|require|impl|template)\b"
    r"|(?:pub|export|async|const|static|public|unsafe|extern|typedef|let|var)\b|[\w:<>*& \t]+\("
    r"|(?:fn|func|fun|function|def|class|struct|enum|trait|interface|type|mod|module|namespace)\b"
)


def bare_code(text: str, wanted: str) -> ExtractedCode:
    """Code that is in the reply without fence or tag."""
    code = bare_python(text) if wanted in ("python", "") else None
    if code is None and wanted != "python":
        code = bare_other_code(text, wanted)
    if code is None:
        return ExtractedCode(None, "no code")
    return ExtractedCode(code, "whole reply" if code == tidy(text) else "bare code amid prose")


def bare_python(text: str) -> str | None:
    """The longest stretch of lines that look like Python and parse."""
    if is_python(text):
        return tidy(text)
    lines = text.split("\n")
    runs: list[tuple[int, int]] = []
    start: int | None = None
    for number, line in enumerate([*lines, "end"]):
        if line.strip() and not PYTHON_LINE_PATTERN.match(line):
            if start is not None:
                runs.append((start, number))
            start = None
        elif start is None and line.strip():
            start = number
    if not runs:
        return None
    # a docstring can look like prose, so the whole stretch is tried before its parts
    longest = sorted(runs, key=lambda run: run[0] - run[1])[:MAX_PARSED_RUNS]
    for first, last in [(runs[0][0], runs[-1][1]), *longest]:
        code = "\n".join(lines[first:last])
        if is_python(code):
            return tidy(code)
    # code that does not parse is an answer too, only a wrong one; no prose begins like this
    meant = next(
        (run for run in runs if any(PYTHON_DEFINITION_PATTERN.match(line) for line in lines[slice(*run)])), None
    )
    return tidy("\n".join(lines[meant[0] : runs[-1][1]])) if meant else None


def is_python(text: str) -> bool:
    """Whether the text parses, and says more than prose such as `this is fine` that parses too."""
    if len(text) > MAX_PARSED_CHARS:
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return any(not isinstance(node, PROSE_NODES) for node in ast.walk(tree))


def bare_other_code(text: str, wanted: str) -> str | None:
    """From the first line that looks like code to the last that does not read as prose."""
    lines = text.split("\n")
    code_line = re.compile(CODE_LINE_PATTERNS.get(wanted, DEFAULT_CODE_LINE_PATTERN))
    speaking = [bool(line.strip()) and not is_prose(line) for line in lines]
    begins = (number for number, line in enumerate(lines) if speaking[number] and code_line.match(line))
    first = next(begins, None)
    if first is None:
        return None
    last = max(number for number, speaks in enumerate(speaking) if speaks)
    code = "\n".join(lines[first : last + 1])
    return tidy(code) if wanted in ("shell", "sql") or re.search(r"[{};=]", code) else None


def is_prose(line: str) -> bool:
    """Whether a line that is not blank reads as a sentence or a list item."""
    words = line.split()
    if line.rstrip()[-1] in ";{}([,\\" or line.startswith(("//", "#", " ", "\t")):
        return False
    is_sentence = len(words) > 3 and all(word.strip(".,:!?'`*()").isalpha() for word in words)
    return is_sentence or words[0] in ("-", "*") or words[-1][-1] in ".!?:"


# ---- choosing

SHELL_COMMAND_PATTERN = re.compile(
    r"(?:#|\$ |(?:sudo|pip3?|python3?|uv|npm|npx|yarn|node|cargo|rustc|git|cd|mkdir|apt|apt-get"
    r"|brew|curl|wget|terraform|\./\w+|go (?:run|build|test|get|mod)|gcc|g\+\+|make)[ ])"
)


def select_answer(blocks: list[ReplyCodeBlock], wanted: str, defines: Sequence[str]) -> ExtractedCode:
    """The answer among blocks none of which is empty."""
    pool = candidate_blocks(blocks, wanted)
    language = wanted or pool[0].label
    # a single block is taken without looking at its definitions
    names = [block_names(block.code, language) for block in pool] if len(pool) > 1 else []
    taken, why = chosen_block_numbers(names, language, defines) if names else ([0], "")
    parts = [pool[number] for number in taken]
    kind = parts[0].label or "code"
    if len(parts) > 1:
        how = f"joined {len(parts)} {kind} blocks"
    elif len(pool) > 1:
        how = why or f"{kind} block {taken[0] + 1} of {len(pool)}"
    else:
        how = f"the only {kind} block"
    if not all(part.closed for part in parts):
        how = "unclosed block" if len(parts) == 1 else f"{how}, one unclosed"
    return ExtractedCode("\n".join(part.code for part in parts), how)


def candidate_blocks(blocks: list[ReplyCodeBlock], wanted: str) -> list[ReplyCodeBlock]:
    """The blocks worth choosing from: never none."""
    if not wanted:
        labels = (block.label for block in blocks if block.label not in NON_ANSWER_LABELS)
        wanted = next(filter(None, labels), "")
    serious = [block for block in blocks if not is_session(block, wanted)]
    return (
        [block for block in serious if block.label == wanted]
        or [block for block in serious if not block.label]
        or [block for block in serious if block.label not in NON_ANSWER_LABELS]
        or [block for block in serious if block.label == "text"]
        or blocks
    )


def is_session(block: ReplyCodeBlock, wanted: str) -> bool:
    """Whether the block shows someone typing at a prompt."""
    if block.code.lstrip().startswith((">>>", "In [", "$ ")):
        return True
    if wanted == "shell":
        return False
    lines = [line for line in block.code.split("\n") if line.strip()]
    return all(SHELL_COMMAND_PATTERN.match(line) for line in lines) and not all(line[0] == "#" for line in lines)


def chosen_block_numbers(names: list[BlockNames], language: str, defines: Sequence[str]) -> tuple[list[int], str]:
    """The numbers of the blocks that make up the answer, and why when it is a single one."""
    expected = {re.split(r"[.:]", name)[0] for name in defines}
    home = {name: number for number, block in enumerate(names) for name in block.bound}
    complete = [number for number, block in enumerate(names) if expected <= block.bound]
    if expected and complete:
        core, why = [complete[-1]], f"last block that defines {', '.join(defines)}"
    elif expected and expected <= home.keys():
        core, why = sorted({home[name] for name in expected}), ""
    else:
        core, why = latest_block_numbers(names), ""
    return sorted(with_supporting_blocks(core, names, language)), why


def latest_block_numbers(names: list[BlockNames]) -> list[int]:
    """The blocks that no later block defines again."""
    everything = {name for block in names for name in block.substance}
    groups: list[list[int]] = [[], []]
    for number, block in enumerate(names):
        if block.substance or (block.extended and everything.isdisjoint(block.extended)):
            groups[0].append(number)
        elif "main" in block.defined:
            groups[1].append(number)
    if not any(groups):
        groups = [list(range(len(names)))]
    seen: set[str] = set()
    core = []
    for number in (number for group in groups for number in reversed(group)):
        binds = names[number].defined if everything else names[number].bound
        if seen.isdisjoint(binds):
            core.append(number)
            seen |= binds
    return core


def with_supporting_blocks(core: Iterable[int], names: list[BlockNames], language: str) -> set[int]:
    """The core, and the blocks without which it would miss names."""
    everything = {name for block in names for name in block.substance}
    helpful = [number for number, block in enumerate(names) if block.substance or everything.isdisjoint(block.words)]
    offers = {name: number for number in helpful for name in names[number].imported}
    offers |= {name: number for number in helpful for name in names[number].assigned}
    offers |= {name: number for number in helpful for name in names[number].defined}
    extensions = defaultdict(list)
    for number, block in enumerate(names):
        for name in block.extended:
            extensions[name].append(number)
    taken: dict[int, None] = {}
    defined: set[str] = set()
    bound: set[str] = set()

    def take(number: int) -> None:
        taken[number] = None
        defined.update(names[number].defined)
        bound.update(names[number].bound, names[number].imported)

    def fits(number: int) -> bool:
        # elsewhere a second definition of a name is an error
        return number not in taken and (language in ("python", "shell") or defined.isdisjoint(names[number].defined))

    for number in core:
        take(number)
    queue = list(taken)
    for number in queue:
        needed = [offers[word] for word in names[number].words if word in offers and word not in bound]
        later = [other for name in sorted(names[number].defined) for other in extensions.pop(name, ())]
        for other in [*needed, *(other for other in later if other > number)]:
            if fits(other):
                take(other)
                queue.append(other)
    end = max(taken)
    for number in helpful:
        block = names[number]
        is_preamble = block.imported and not block.bound and not block.extended
        if number < end and is_preamble and not block.imported <= bound:
            take(number)
    return set(taken)
