# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a text gives an expected answer, and whether it can be read at all. PRIVATE to the collection.

A model whose kernels are broken often begins rightly: the expected word alone, followed by what is none, is no answer.
"""

from __future__ import annotations

import re
import unicodedata

# Characters: a known answer is a sentence or two, and smoke prompts allow some hundred tokens at most.
LONGEST = 1000
# The repetition check looks no further than this; it takes longer the longer the text is.
LOOKED_AT = 4000
# One character over and over. Rules, dots and digits ("100000000") are long in good answers too.
ONE_CHARACTER = re.compile(r"([^\s\d\-=_*#.~])\1{7,}|(\S)\2{79,}")
# Words over and over ("Paris Paris Paris Paris"), and the same without blanks.
WORDS = re.compile(r"\b(\w+(?:\W+\w+){0,3})(?:\W+\1\b){3,}")
SYLLABLES = re.compile(r"([^\W\d]\w{1,19}?)\1{5,}")
# Tokens as a broken detokenizer leaves them: byte-level BPE writes a blank as Ġ and a line's end as Ċ, SentencePiece ▁.
TOKENS = re.compile(r"[ĠĊ▁]")
MOST_TOKENS = 2
LONG = 20  # characters, rules and tables left out, from which the share of letters says something
RULES = "-=_*#.~|"
SCRIPTS = {"CJK": "EAST ASIAN", "HIRAGANA": "EAST ASIAN", "KATAKANA": "EAST ASIAN", "HANGUL": "EAST ASIAN"}
MOST_SCRIPTS = 2
THINKING = re.compile(r"^.*</think>", re.DOTALL)
MARKUP = re.compile(r"[*_`]+")
NOT_BEFORE = r"(?:\b(?:not|never|neither|nor|cannot be|isn'?t|wasn'?t)\s+(?:the\s+|in\s+|actually\s+|really\s+)?)"
NOT_AFTER = r"(?:\s+(?:(?:is|was)\s+(?:not|never)|isn'?t|wasn'?t)\b(?!\s+(?:only|just|merely)\b))"


def plain(text: str) -> str:
    """The answer without what was thought before it, and without Markdown's marks."""
    return MARKUP.sub("", THINKING.sub("", text)).replace("\u2019", "'").strip()


def contains(text: str, expected: str) -> bool:
    """Whether the expected words stand in the text as whole words, whatever their case and spacing, and not denied."""
    words = r"\s+".join(re.escape(word) for word in plain(expected).split())
    for found in re.finditer(rf"({NOT_BEFORE})?(?<!\w){words}(?!\w)({NOT_AFTER})?", plain(text), re.IGNORECASE):
        if not any(found.groups()):
            return True
    return False


def is_garbage(text: str) -> bool:
    """Text as broken kernels make it: the same over and over (V(!!!!)), or what nobody can read."""
    answer = THINKING.sub("", text)[:LOOKED_AT]
    marks = "".join(answer.split())
    if (len(marks) >= 4 and len(set(marks)) == 1) or not any(mark.isalnum() for mark in marks):
        return True
    folded = answer.casefold()
    told = [mark for mark in marks if mark not in RULES]
    return (
        any(pattern.search(folded) for pattern in (ONE_CHARACTER, WORDS, SYLLABLES))
        # An answer cut off at its last token may end within a character.
        or "\ufffd" in answer.rstrip("\ufffd\n ")
        or len(TOKENS.findall(answer)) > MOST_TOKENS
        or len(_scripts(answer)) > MOST_SCRIPTS
        or (len(told) >= LONG and 2 * sum(mark.isalnum() for mark in told) < len(told))
    )


def _scripts(text: str) -> set[str]:
    """The scripts of its letters; those that Japanese, Chinese and Korean mix are one."""
    names = (unicodedata.name(mark, "").split(" ", 1)[0].split("-", 1)[0] for mark in set(text) if mark.isalpha())
    return {SCRIPTS.get(name, name) for name in names if name and name.isalpha()}
