# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Put what the engine's parser said of launch arguments into words. Private to the collection.

The engine is the judge: what its own parser refuses is a problem. Two things that it lets pass are problems too: an
abbreviation (the next version may call it ambiguous), and JSON that it would only read while it loads the model.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._systemd.quote import launch_words

# Flags that were renamed and are no neighbours in spelling; the newer name is offered where the engine has it.
_RENAMED = {
    "cuda-graph-max-bs": "cuda-graph-max-bs-decode",
    "cuda-graph-bs": "cuda-graph-bs-decode",
    "mamba-scheduler-strategy": "mamba-radix-cache-strategy",
    "enable-ep-moe": "ep-size",
    "enable-flashinfer-moe": "moe-runner-backend",
    "enable-flashinfer-cutlass-moe": "moe-runner-backend",
    "enable-triton-kernel-moe": "moe-runner-backend",
    "enable-deepep-moe": "moe-a2a-backend",
    "nsa-prefill-backend": "dsa-prefill-backend",
    "nsa-decode-backend": "dsa-decode-backend",
}
# JSON that the parser takes as any text.
_JSON_TEXT = ("json-model-override-args", "model-loader-extra-config")
_NUMBERS = {"int": "a whole number", "float": "a number"}


@dataclass(frozen=True)
class Problem:
    """One argument that the engine does not take as it is.

    kind: unknown, ambiguous, abbreviation, choice, value, missing_value, no_value, json, removed, or together.
    flag: its name without dashes; "" when the arguments do not go together.
    """

    flag: str
    kind: str
    message: str
    advice: str

    def as_dict(self) -> dict[str, str]:
        return dict(asdict(self))


def groups(arguments: Mapping[str, Any]) -> list[list[str]]:
    """Return each argument as the words that reach argv, as the unit's ExecStart= has them."""
    return launch_words(arguments)


def problems(arguments: Mapping[str, Any], answer: Mapping[str, Any]) -> list[Problem]:
    """Return what is wrong with `arguments` (flag to value; true is a flag alone), in their order.

    answer: what `probe.ask` returned for the groups of these very arguments.
    """
    set_ones = {flag: value for flag, value in arguments.items() if value is not None and value is not False}
    known = {string: option for option in answer["options"] for string in option["strings"]}
    found = [
        problem
        for (flag, value), verdict in zip(set_ones.items(), answer["groups"])
        for problem in [_problem(flag, value, verdict, known)]
        if problem
    ]
    error = answer["whole"]["error"]
    if error and not found:
        # Each is right by itself: they exclude each other, or one is missing.
        found.append(Problem("", "together", f"The engine refuses them together: {error}.", "Change one of them."))
    return found


def notes(answer: Mapping[str, Any]) -> list[str]:
    """Return what the engine or its source says that is no fault, a sentence each."""
    said = [line.strip() for verdict in answer["groups"] for line in verdict["said"].splitlines() if line.strip()]
    unread = [
        f"Nothing in the source of SGLang {answer['version']} reads the environment variable {name}: it has no effect."
        for name in answer["unread"]
    ]
    return list(dict.fromkeys([*said, *unread]))


def text(found: Sequence[Problem], version: str) -> str:
    """Return all problems as one readable message; "" when there are none."""
    if not found:
        return ""
    head = "One launch argument is" if len(found) == 1 else f"{len(found)} launch arguments are"
    lines = [f"{number}. {one.message} {one.advice}".rstrip() for number, one in enumerate(found, 1)]
    return "\n".join([f"{head} not what SGLang {version} takes (it was asked; nothing was stopped):", *lines])


def _problem(flag: str, value: Any, verdict: Mapping[str, Any], known: Mapping[str, Any]) -> Problem | None:
    option = known.get(f"--{flag}")
    if option is None:
        return _misnamed(flag, known)
    if verdict["error"] is not None or verdict["rest"]:
        return _refused(flag, value, verdict, option, known)
    return _unread_json(flag, value, option)


def _misnamed(flag: str, known: Mapping[str, Any]) -> Problem:
    """Tell an abbreviation, an ambiguous one, and a name that is none; argparse takes any prefix of one flag."""
    matching = sorted(string for string in known if string.startswith(f"--{flag}"))
    renamed = _RENAMED.get(flag, "")
    offered = renamed if f"--{renamed}" in known else ""
    if len(matching) > 1:
        message = f"'{flag}' is ambiguous: it could be {_either(name[2:] for name in matching)}."
        return Problem(flag, "ambiguous", message, f"Write '{offered or matching[0][2:]}', or the one you mean.")
    if matching:
        full = matching[0][2:]
        return Problem(flag, "abbreviation", f"'{flag}' is an abbreviation of '{full}'.", f"Write '{full}'.")
    near = [offered] if offered else nearest(flag, [string[2:] for string in known if string.startswith("--")])
    advice = f"Did you mean {_either(near)}?" if near else "No flag has a name near it."
    return Problem(flag, "unknown", f"There is no launch argument '{flag}'.", advice)


def nearest(name: str, names: Sequence[str]) -> list[str]:
    """Return at most three of `names` that are near `name`, the nearest first: by letters, then by whole words."""
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.75)
    if close:
        return close
    words = set(name.split("-"))
    shared = {one: len(words & set(one.split("-"))) / len(words | set(one.split("-"))) for one in names}
    return sorted((one for one in names if shared[one] >= 0.5), key=lambda one: (-shared[one], one))[:3]


def _refused(
    flag: str, value: Any, verdict: Mapping[str, Any], option: Mapping[str, Any], known: Mapping[str, Any]
) -> Problem:
    """Say why the engine refuses the value of a flag that it has."""
    choices, said = option["choices"], _said(verdict)
    if option["nargs"] == 0:
        if value is True:
            return Problem(flag, "removed", f"The engine refuses '{flag}': {said}.", "")
        off = f" or 'no-{flag}'" if f"--no-{flag}" in known else ""
        advice = f"Set it to true, or to null to leave it out{off}."
        return Problem(flag, "no_value", f"'{flag}' takes no value, and {value!r} was given.", advice)
    if value is True and option["nargs"] != "*":
        advice = f"It takes {_either(choices)}." if choices else f"It takes {_meaning(option)}."
        return Problem(flag, "missing_value", f"'{flag}' needs a value.", advice)
    if choices and "invalid choice" in said:
        near = difflib.get_close_matches(str(value), choices, n=1)
        hint = f"Did you mean '{near[0]}'? " if near else ""
        message = f"'{flag}' cannot be {value!r}."
        return Problem(flag, "choice", message, f"{hint}It takes {_either(choices)}.")
    if option["type"] in _NUMBERS:
        message = f"'{flag}' has to be {_NUMBERS[option['type']]}, not {value!r}."
        return Problem(flag, "value", message, "")
    if _takes_json(option):
        return Problem(flag, "json", f"'{flag}' is no JSON: {_json_fault(str(value)) or said}.", _AS_JSON)
    if verdict["rest"]:
        return Problem(flag, "value", f"'{flag}' takes one value, not {value!r}.", "")
    return Problem(flag, "value", f"'{flag}' cannot be {value!r}: {said}.", "")


_AS_JSON = "Write it as JSON in single quotes, with double quotes inside."


def _said(verdict: Mapping[str, Any]) -> str:
    """What the parser said, without the name of the argument, which stands before it already."""
    if verdict["error"] is None:
        return f"{' '.join(verdict['rest'])} is left over"
    said = str(verdict["error"]).strip().rstrip(".")
    if said.startswith("argument --"):
        said = said.partition(": ")[2]
    return said


def _takes_json(option: Mapping[str, Any]) -> bool:
    about = option["help"].lower()
    return option["type"] in ("loads", "json_list_type") or ("json" in about and "regex" not in about)


def _unread_json(flag: str, value: Any, option: Mapping[str, Any]) -> Problem | None:
    """Find JSON that the parser takes as text: the engine reads it while it loads, when the old service is gone."""
    written = value.strip() if isinstance(value, str) else ""
    inline = _takes_json(option) and written.startswith(("{", "["))
    if option["type"] != "str" or not isinstance(value, str) or not (inline or flag in _JSON_TEXT):
        return None
    fault = _json_fault(written)
    return Problem(flag, "json", f"'{flag}' is no JSON: {fault}.", _AS_JSON) if fault else None


def _json_fault(written: str) -> str:
    try:
        json.loads(written)
    except ValueError as error:
        return str(error)
    return ""


def _meaning(option: Mapping[str, Any]) -> str:
    return _NUMBERS.get(option["type"], "JSON" if option["type"] == "loads" else "a value")


def _either(names: Any) -> str:
    quoted = [f"'{name}'" for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"
