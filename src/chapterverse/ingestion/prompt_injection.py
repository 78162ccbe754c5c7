"""Detects text that addresses a language model instead of the reader.

The patterns look for an instruction, not a mention: a chapter about system prompts is not flagged.
"""

import re
from dataclasses import dataclass
from typing import Final

from chapterverse.language import sentences

ADDRESSES_ASSISTANT: Final = "addresses_assistant"


@dataclass(frozen=True, slots=True)
class _Rule:
    """A pattern in lower case. To save time, it is only searched in texts that contain one of `words`."""

    words: tuple[str, ...]
    pattern: re.Pattern[str]


def _rule(words: str, *patterns: str) -> _Rule:
    # a space in a pattern matches one or more whitespace characters
    return _Rule(tuple(words.split()), re.compile("|".join(patterns).replace(" ", r"\s++").replace(r"\s++?", r"\s*+")))


_MODEL = (
    r"(?:an? )?(?:helpful )?(?:(?:ai|artificial intelligence) (?:language )?(?:models?|assistants?|agents?|chat ?bots?)"
    r"|(?:large )?language models?)"
)
_EARLIER = r"(?:previous|prior|above|earlier|preceding|foregoing|original|system|your)"
_ORDERS = r"(?:instructions?|prompts?|directives?|directions|guidelines|rules|commands|constraints|safeguards)"
_DROP = r"(?:ignore|disregard|forget)"
_SAY = r"(?:state|say|print|output|reply|respond|answer|write|tell|declare|claim|admit)"

_RULES: Final = (
    _rule(
        "ignor disregard forget overrid bypass",
        # "ignore all previous instructions", "forget everything above", "ignore the page and state: …"
        rf"\b(?:ignore|disregard|forget|override|bypass)(?: (?:all|any|every|the|of|these|those|my)){{0,4}} {_EARLIER}"
        rf"(?: (?:and|or|system|previous|safety|given)){{0,3}} {_ORDERS}\b",
        rf"\b{_DROP} (?:everything|all|anything) (?:above|before this|you (?:were|have been|know))\b",
        rf"\b{_DROP} (?:all )?(?:the )?instructions (?:above|before this|from the (?:user|system|developer))\b",
        rf"\b{_DROP} (?:the|this|all|any|everything)\b[^.!?\n]{{0,40}} and (?:instead )?{_SAY}\b(?! a\b)",
        # the same in other languages
        r"\bignor(?:e[zr]?|a|ieren sie|iere) [^.!?\n]{1,40} (?:et|y|und|e) "
        r"(?:indique|dites|déclare|declara|di|diga|sagen sie|sage)",
    ),
    _rule("instrucciones", r"\b(?:ignor|olvid)\w* [^.!?\n]{0,40}instrucciones (?:anteriores|previas)\b"),
    _rule("instructions", r"\b(?:ignor|oubli)\w* [^.!?\n]{0,40}instructions (?:pr[eé]c[eé]dentes|ant[eé]rieures)\b"),
    _rule("anweisung befehl", r"\b(?:ignorier|vergess|vergiss)\w* [^.!?\n]{0,40}[vob]\w+igen (?:anweisung|befehl)"),
    _rule("instruções istruzioni", r"\bignor\w* [^.!?\n]{0,40}(?:instruções anteriores|istruzioni precedenti)\b"),
    _rule(
        "السابقة 指 说明 предыдущие",
        r"تجاهل التعليمات السابقة|忽略(?:之前|以上|先前|上面)的?(?:所有)?(?:指令|指示|说明)",
        r"игнорируй\w* (?:все )?предыдущие",
    ),
    # "let us state that …", "in a scenario where we say …"
    _rule(
        "state admit declare claim scenario",
        r"\blet(?:'?s| us) (?:state|admit|declare|claim)(?: that\b| to\b|:)",
        r"\bscenario where we (?:ignore|say|state|pretend|claim)\b|\bwe might state\b",
    ),
    # "you are an AI language model", "you are now in developer mode", "as an assistant, you must"
    _rule(
        "you",
        rf"\byou are (?:now )?{_MODEL}\b",
        r"\byou are now (?:in )?(?:dan|developer mode|jailbroken|unrestricted)\b",
    ),
    _rule("mode", r"\b(?:entering|activat\w+|enabl\w+) (?:\w+ ){0,2}(?:override|jailbreak|god|dan) mode\b"),
    _rule(
        "assistant model", rf"\bas (?:an? (?:helpful )?assistant|{_MODEL}),? you (?:must|should|will|shall|are to)\b"
    ),
    # "AI agents reading this", "Attention, AI assistant:"
    _rule(
        "assistant model agent bot llm",
        rf"\b(?:{_MODEL}|assistants?|llms?) (?:reading|processing|summari[sz]ing|indexing) this\b",
        rf"\b(?:attention|note|message|instructions?|dear|hey|to),? (?:(?:to|for) )?(?:all |any |the )?{_MODEL} ?[:,!]",
    ),
    # "do not tell the user", "reveal your system prompt", "your new instructions are"
    _rule(
        "user human",
        r"\b(?:do not|don'?t|never) (?:tell|inform|warn|alert|(?:reveal|mention) (?:this )?to) the (?:user|human)\b",
    ),
    _rule(
        "prompt instruct task",
        r"\b(?:reveal|print|repeat|output|leak|show|disclose) (?:me )?your (?:system|hidden|initial|secret) "
        r"(?:prompt|instructions?)\b",
        r"\byour (?:new|updated|real) (?:system prompt|system instructions?|instructions|task) (?:is|are)\b",
        r"\byou[’' ](?:ha)?ve been instructed to\b",
        r"\bbegin (?:new )?(?:system|hidden) (?:prompt|instructions?)\b",
    ),
    # markup of chat templates
    _rule("<| inst] sys>>", r"<\|(?:im_start|im_end|system|start_header_id)\|>|\[/?inst\]|<</?sys>>"),
    _rule("mode>", r"<[\\/]?system[ _]mode>"),
)

# "Add … to your reply": instructions that a book never gives to its readers.
_OWN_ANSWER: Final = re.compile(
    r"your\s+(?:(?:next|final|whole|entire|written)\s+)?(?:response|repl(?:y|ies)|answer)s?\b"
)
_OWN_MESSAGE: Final = re.compile(r"your\s+message\b")
_GARBLE = r"encode|encrypt|render|reverse|shuffle|scramble|jumble|rearrange|anagram|misspell"
_SHAPE = (
    rf"{_GARBLE}|add|append|attach|include|insert|integrate|incorporate|weave|embed|put|place|mention|modify|augment"
    r"|enhance|adjust|alter|change|edit|extend|expand|replace|substitute|swap|convert|translate|rewrite|write|provide"
    r"|give|deliver|present|format|phrase|make|keep|use|start|begin|end|finish|close|conclude|preface|prefix|remove|omit"
    r"|drop|strip|group|combine|join|merge|mix|introduce|capitali[sz]e|repeat|limit|direct|steer|slip|sneak|hide"
    r"|suggest|recommend|encourage|invite|urge|tease|promote|advertise"
)
_CLAUSE = r"(?:^|[,;:\"'(*>]|\b(?:and|please|then|also|now|must|should)\s)\W{0,20}"  # where an instruction may begin
_TO_ANSWER: Final = re.compile(rf"{_CLAUSE}(?:{_SHAPE})\s")
_TO_MESSAGE: Final = re.compile(rf"{_CLAUSE}(?:{_GARBLE})\s")
# If one of these is near, the text is about the answer of a program, not of an assistant.
_OF_PROGRAM: Final = re.compile(r"`|\b(?:http|headers?|status|cookies?|json|endpoints?|handlers?|quiz|server)\b")
_BREAK: Final = re.compile(r"[.!?:;]\s|\n\s*\n|\n\s*[-*#>|\d]|\|")
_REACH: Final = 160  # characters that are searched before and after the mention of an answer
_BETWEEN_PARAGRAPHS: Final = re.compile(r"\n\s*\n")


def flags_of(text: str) -> tuple[str, ...]:
    """The flags of a text: `addresses_assistant` if it gives instructions to a model."""
    return (ADDRESSES_ASSISTANT,) if _order_in(text) is not None else ()


def orders_in(text: str) -> tuple[tuple[int, int], ...]:
    """The ranges in which a text addresses an assistant: from the instruction to the end of its paragraph, because the
    dictated text comes after it."""
    breaks = [0, *(place for gap in _BETWEEN_PARAGRAPHS.finditer(text) for place in gap.span()), len(text)]
    found = []
    for start, end in zip(breaks[::2], breaks[1::2], strict=True):
        if (place := _order_in(text[start:end])) is not None:
            begins = [first for first, _ in sentences(text[start:end]) if first <= place]
            found.append((start + max(begins, default=0), end))
    return tuple(found)


def _order_in(text: str) -> int | None:
    """The start of the first instruction in a text; None if there is none."""
    small = text.lower()
    if len(small) != len(text):  # the lower case of some letters has two characters
        small = "".join(letter.lower() if len(letter.lower()) == 1 else letter for letter in text)
    places = [
        found.start()
        for rule in _RULES
        if any(word in small for word in rule.words) and (found := rule.pattern.search(small))
    ]
    places += _about_an_answer(small, _OWN_ANSWER, _TO_ANSWER)
    places += _about_an_answer(small, _OWN_MESSAGE, _TO_MESSAGE)
    return min(places, default=None)


def _about_an_answer(small: str, answer: re.Pattern[str], order: re.Pattern[str]) -> list[int]:
    """The starts of clauses that mention an answer and have an instruction about it, before or right after it."""
    found = []
    for named in answer.finditer(small):
        before = _BREAK.split(small[max(0, named.start() - _REACH) : named.start()])[-1]
        after = _BREAK.split(small[named.end() : named.end() + _REACH], maxsplit=1)[0]
        if (order.search(before) or order.match(after.lstrip(" ,"))) and not _OF_PROGRAM.search(before + after):
            found.append(named.start() - len(before))
    return found
