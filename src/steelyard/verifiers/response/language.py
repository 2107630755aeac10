"""The language of a response, told by its script and its commonest words."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cache, lru_cache

from steelyard.records import Evidence
from steelyard.verifiers.response.fences import fenced_texts
from steelyard.verifiers.response.judged import FAIL, PASS, ResponseCheckResult, check_result
from steelyard.verifiers.response.table import CheckTable
from steelyard.verifiers.response.unicode import normalized_unicode

MAX_LANGUAGE_SAMPLE_CHARACTERS = 20_000
"""Characters that are looked at; more would not tell more."""
MIN_SCRIPT_SHARE = 0.6
"""The part of the letters that one script must have."""
MIN_LANGUAGE_LEAD = 1.15
"""How far the likeliest language must be ahead of the next."""

SCRIPT_RANGES = {
    "latin": "A-Za-zªºÀ-ÖØ-öø-ɏ\u1e00-\u1eff",
    "cyrillic": "\u0400-\u052f",
    "greek": "\u0370-\u03ff\u1f00-\u1fff",
    "arabic": "\u0620-\u064a\u066e-\u06d3\u06fa-\u06ff\u0750-\u077f",
    "hebrew": "\u05d0-\u05ea",
    "devanagari": "\u0900-\u0963\u0971-\u097f",
    "thai": "\u0e01-\u0e3a\u0e40-\u0e4e",
    "hangul": "\u1100-\u11ff\u3131-\u318e\uac00-\ud7a3",
    "kana": "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff",
    "han": "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff",
}
SCRIPT_LETTERS = {name: re.compile(f"[{signs}]") for name, signs in SCRIPT_RANGES.items()}
SCRIPT_WORD = re.compile(f"[{''.join(SCRIPT_RANGES.values())}]+")

ASCII_WORD = re.compile("[a-z]+")

SINGLE_LANGUAGE_SCRIPTS = {"greek": "el", "hebrew": "he", "devanagari": "hi", "thai": "th", "hangul": "ko"}
"""Scripts that one language of ours is written in."""

COMMON_WORDS = {
    "en": "the of and to in is that it for was on are as with his they at be this have from or had by but not what all were we when your can said there which their will each about how up them then she many some so these would other into has more no way could my than been who its now did get come made may part is i you he an do if out a",
    "de": "der die das und ist nicht ein eine einen einem einer zu den dem des mit sich auf für es im ich sie er wir ihr auch als an nach wie aus bei nur oder aber wenn kann wird sind war haben hat werden von vom zum zur noch über so dass mir mich dir uns kein keine sehr hier dort",
    "fr": "le la les de des du un une et est pas que qui dans en pour sur au aux avec ce cette ces il elle nous vous ils elles je tu ne se sa son ses plus par mais ou où être avoir sont été fait comme tout tous leur on si bien sans peut très aussi c d l j n qu s",
    "es": "el la los las de del un una y es no que en por para con se su sus al lo como más pero o ser son está están fue ha han este esta estos estas hay muy también yo tú él ella nosotros ellos mi tu si ya sin sobre entre cuando todo todos porque donde puede hasta desde usted",
    "it": "il lo la i gli le di del della dei delle dello un uno una e è non che in per con su si al alla ai nel nella da dal come più ma o sono essere ha hanno questo questa questi anche io tu lui lei noi voi loro mi ci se molto tutto tutti quando dove può perché sul sulla già l",
    "pt": "o a os as de do da dos das um uma e é não que em no na nos nas por para com se ao à pelo pela como mais mas ou ser são está foi tem têm este esta isso isto muito também eu ele ela nós eles meu sua seu já sem sobre entre quando tudo todos porque onde pode até você",
    "nl": "de het een en van is niet dat die in op te aan met voor er zijn als ook om door ik je hij zij we wij ze naar bij maar of uit dan nog wel kan was worden wordt heeft hebben deze dit geen mijn uw haar over zo waar wat wie moet zou veel",
    "sv": "och att det är en ett i på som för med av den inte de till om har jag du vi han hon var kan från men så eller när också vid ska skulle mycket alla mig dig oss sig där här hur vad vara blir blev efter under utan detta dessa",
    "pl": "i w na z do się nie jest to że jak co o po od za dla przez ale czy był była było są ten ta te tego tej tym może być ja ty on ona my wy oni mnie go jego jej ich już tylko także lub oraz bardzo gdy który która które przy tak",
    "tr": "ve bir bu da de için ile çok ne o ben sen biz siz onlar mi mı mu mü değil var yok daha gibi olarak olan en kadar ama ya veya her şey ki sonra önce şu nasıl neden ise oldu olduğu olur bana sana onu",
    "cs": "a v na je se že to s z do o k i jak ale by jsem jsi jsou být byl byla bylo pro co který která které ten ta tak také nebo jako po za při už není jen když kde tento tato ve si mi ho jeho její jejich velmi",
    "fi": "ja on ei se että hän ne oli mutta kun niin myös tai jos kuin ovat ole minä sinä me te he tämä tässä joka jotka hyvin vain voi olla mitä miten sen siitä kanssa nyt vielä sitten minun sinun hänen mukaan",
    "id": "yang dan di ini itu dengan untuk tidak dari dalam akan pada juga saya adalah ke karena bisa ada mereka kami kita anda dia atau oleh sudah seperti lebih telah dapat tersebut sebuah satu bukan apa jika saat hanya masih",
    "vi": "và của là có không được cho người một trong đã các này với những để khi tôi bạn anh như ra đến từ về thì cũng vào nhiều rất nhưng hay đó nếu phải sẽ lại làm trên",
    "ru": "и в не на я что он с это как а то по но из у за же вы так от бы все она мы они его для или если когда уже был была было были есть быть мне меня только может очень чтобы этот эта этого который при до нет",
    "uk": "і в не на я що він з це як а то по але із у за ж ви так від би все вона ми вони його для або якщо коли вже був була було були є бути мені мене тільки може дуже щоб цей ця цього який при до немає та й",
    "bg": "и в не на аз че той с това как а по но от за ли вие така би всички тя ние те го му или ако когато вече беше са е да се ще само може много този тази който при до няма съм към си ви ми има",
    "ar": "في من على إلى أن هذا هذه التي الذي لا ما هو هي كان عن مع كل أو لم قد بعد ثم لكن إذا يكون نحن أنت أنا ذلك بين عند هل كما و",
    "fa": "در از به که این را با است برای آن یک می ها تا هم یا نیست بود شد شود اما من تو او ما شما آنها خود هر چه اگر بر کرد دارد باشد و",
}
DISTINCTIVE_LETTERS = {
    "de": "ß", "fr": "œç", "es": "ñ¿¡", "pt": "ãõ", "sv": "å", "pl": "łąęśźżć", "tr": "ğış", "cs": "řěůč", "vi": "ạảấầậắặẹếềệịọốồộớờợụứừựỳđươ",
    "ru": "ыэё", "uk": "іїєґ", "fa": "پچژگیک", "ar": "ىيكةإ",
}  # fmt: skip
"""Signs that few of the others have."""
SCRIPT_LANGUAGES = {
    "latin": ("en", "de", "fr", "es", "it", "pt", "nl", "sv", "pl", "tr", "cs", "fi", "id", "vi"),
    "cyrillic": ("ru", "uk", "bg"),
    "arabic": ("ar", "fa"),
}
KNOWN_LANGUAGES = (*sorted((*COMMON_WORDS, *SINGLE_LANGUAGE_SCRIPTS.values(), "ja", "zh")),)


@cache
def _weights(family: str) -> dict[str, tuple[tuple[str, float], ...]]:
    """Each common word with its languages; a word of many languages tells little for each."""
    owners: dict[str, list[str]] = {}
    for language in SCRIPT_LANGUAGES[family]:
        for word in dict.fromkeys(COMMON_WORDS[language].split()):
            owners.setdefault(word, []).append(language)
    return {word: tuple((owner, 1 / len(known)) for owner in known) for word, known in owners.items()}


def language_of(text: str) -> str | None:
    """The language of a text, as a code of ISO 639-1; None when it cannot be told.

    Fenced blocks are passed over. Of 66 sentences of three to ten words in the 26 languages of `KNOWN`, which the lists were
    not fitted to, 48 are told rightly, 17 not at all and one wrongly; taken together, those of 25 languages are told rightly
    and those of one not at all. So ask for a language only where replies have several sentences. Other languages of the
    same script are taken for their neighbours, or not told.

    >>> language_of("Das ist nicht der richtige Weg, aber es geht auch so.")
    'de'
    """
    text = normalized_unicode(_prose(text), "NFC").lower()
    if text.isascii():
        return _likeliest(text, "latin")
    counts = dict.fromkeys(SCRIPT_RANGES, 0)
    for letter, count in Counter(text).items():
        if script := _script(letter):
            counts[script] += count
    total = sum(counts.values())
    east = counts["han"] + counts["kana"]
    if not total:
        return None
    if east >= MIN_SCRIPT_SHARE * total / 2 and east > max(
        count for name, count in counts.items() if name not in ("han", "kana")
    ):
        return "ja" if counts["kana"] * 20 >= east else "zh"
    script = max(counts, key=lambda name: counts[name])
    if counts[script] < MIN_SCRIPT_SHARE * total:
        return None
    return SINGLE_LANGUAGE_SCRIPTS.get(script) or _likeliest(text, script)


@lru_cache(maxsize=4096)
def _script(letter: str) -> str:
    """The script that a letter belongs to; empty for what is none of ours."""
    return next((name for name, letters in SCRIPT_LETTERS.items() if letters.match(letter)), "")


def _prose(text: str) -> str:
    text = text[:MAX_LANGUAGE_SAMPLE_CHARACTERS]
    for block in reversed(fenced_texts(text)):
        text = text[: block.start] + text[block.start + len(block.body) :]
    return text


def _likeliest(text: str, script: str) -> str | None:
    weights = _weights(script)
    points = dict.fromkeys(SCRIPT_LANGUAGES[script], 0.0)
    for word, count in Counter((ASCII_WORD if text.isascii() else SCRIPT_WORD).findall(text)).items():
        for language, weight in weights.get(word, ()):
            points[language] += weight * count
    for language in () if text.isascii() else SCRIPT_LANGUAGES[script]:
        points[language] += 0.5 * min(20, sum(map(text.count, DISTINCTIVE_LETTERS.get(language, ""))))
    (first, most), (_, next_most) = sorted(points.items(), key=lambda item: (-item[1], item[0]))[:2]
    return first if most >= 1 and most >= MIN_LANGUAGE_LEAD * next_most else None


@dataclass(frozen=True)
class LanguageCheck:
    """The reply is written in one of the languages."""

    rule: str
    codes: tuple[str, ...]

    def judge(self, text: str) -> ResponseCheckResult:
        told = language_of(text)
        if told in self.codes:
            return check_result(PASS, Evidence(rule=self.rule, what=f"the reply is in {told}"))
        what = f"the reply is in {told}" if told else "the language of the reply cannot be told"
        return check_result(FAIL, Evidence(rule=self.rule, what=f"{what}, not in {' or '.join(self.codes)}"))


def language_check(table: CheckTable) -> LanguageCheck:
    """One language or several, as codes of ISO 639-1."""
    codes = table.texts("value")
    for code in codes:
        if code not in KNOWN_LANGUAGES:
            raise table.wrong("value", f'unknown language "{code[:20]}" (known: {", ".join(KNOWN_LANGUAGES)})')
    return LanguageCheck(table.path, codes)
