# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Combinations that are known to fail, as data, held against a deployment. Private to the collection.

A rule set is a map with `name`, `applies` (a condition that all of its rules share) and `rules`; each rule has `id`,
`severity` (refuse or warn), `when`, `message`, `advice`, `source`, and `versions` where it holds for a range only.
playbooks/rules/README.md says what a condition can be.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._deployment import flags, versions

REFUSE, WARN = "refuse", "warn"
_SEVERITIES = (REFUSE, WARN)
_TEXTS = ("id", "severity", "message", "advice", "source")
_RULE = {*_TEXTS, "when", "versions"}


@dataclass(frozen=True)
class Finding:
    """A rule that holds. `evidence` is what in the deployment made it hold; `accepted` is the operator's word."""

    id: str
    severity: str
    message: str
    advice: str
    source: str
    evidence: list[str]
    text: str
    accepted: bool = False

    def as_dict(self) -> dict[str, Any]:
        return dict(asdict(self))


@dataclass(frozen=True)
class Case:
    """What a condition is held against.

    facts: what the deployment itself does not say, such as the checkpoint's own configuration, as nested maps.
    """

    deployment: Mapping[str, Any]
    facts: Mapping[str, Any]


def findings(
    deployment: Mapping[str, Any],
    sets: Iterable[Mapping[str, Any]],
    facts: Mapping[str, Any] | None = None,
    accepted: Collection[str] = (),
) -> list[Finding]:
    """Return every rule of `sets` that holds for a resolved deployment, those that refuse first.

    Raises ValueError for a rule set that cannot be read, and for an accepted identifier that no rule has.
    """
    sets = list(sets)
    wrong = [problem for one in sets for problem in problems(one)]
    if wrong:
        raise ValueError("\n".join(wrong))
    known = {rule["id"] for one in sets for rule in one["rules"]}
    unknown = sorted(set(accepted) - known)
    if unknown:
        raise ValueError(f"there is no rule named {', '.join(unknown)}; there are: {', '.join(sorted(known))}")
    case, found = Case(deployment, facts or {}), []
    for one in sets:
        if not holds(one.get("applies", {}), case):
            continue
        for rule in one["rules"]:
            in_range = versions.matches(deployment["build"]["version"], rule.get("versions", ""))
            if in_range and holds(rule["when"], case):
                found.append(_finding(rule, case, accepted))
    return sorted(found, key=lambda finding: _SEVERITIES.index(finding.severity))


def _finding(rule: Mapping[str, Any], case: Case, accepted: Collection[str]) -> Finding:
    words = {key: " ".join(str(rule[key]).split()) for key in _TEXTS}
    evidence = _evidence(rule["when"], case)
    seen = f" ({', '.join(evidence)})" if evidence else ""
    text = f"[{words['id']}] {words['message']}{seen} {words['advice']} Source: {words['source']}."
    return Finding(evidence=evidence, text=text, accepted=rule["id"] in accepted, **words)


def _evidence(condition: Mapping[str, Any], case: Case) -> list[str]:
    """Return what a condition looked at, as it stands in the deployment: arguments and variables that are set."""
    found: list[str] = []
    launch = case.deployment["launch"]
    for flag in condition.get("arguments", {}):
        value = launch["arguments"].get(flags.canonical(flag))
        if value is not None:
            found.append(f"--{flags.canonical(flag)}" if value is True else f"--{flags.canonical(flag)} {value}")
    for name in condition.get("environment", {}):
        if name in launch["environment"]:
            found.append(f"{name}={launch['environment'][name]}")
    for branch in condition.get("any", []):
        if holds(branch, case):
            found += _evidence(branch, case)
    return list(dict.fromkeys(found))


def holds(condition: Mapping[str, Any], case: Case) -> bool:
    """Tell whether all parts of a condition hold; an empty one does."""
    return all(_PARTS[key](wanted, case) for key, wanted in condition.items())


def _capability(wanted: Any, case: Case) -> bool:
    have = str(case.deployment["gpus"].get("compute_capability", ""))
    return have == str(wanted) or have.partition(".")[0] == str(wanted)


def _repository(wanted: Any, case: Case) -> bool:
    return re.search(wanted, case.deployment["checkpoint"]["repository"], re.IGNORECASE) is not None


def _arguments(wanted: Any, case: Case) -> bool:
    have = case.deployment["launch"]["arguments"]
    return all(_value(one, have.get(flags.canonical(flag))) for flag, one in wanted.items())


def _environment(wanted: Any, case: Case) -> bool:
    have = case.deployment["launch"]["environment"]
    return all(_value(one, have.get(name)) for name, one in wanted.items())


def _patch_sets(wanted: Any, case: Case) -> bool:
    names = {one["name"] for one in case.deployment["patch_sets"]}
    return wanted["has"] in names if "has" in wanted else wanted["lacks"] not in names


def _facts(wanted: Any, case: Case) -> bool:
    return all(_value(one, _at(case.facts, path.split("/"))) for path, one in wanted.items())


def _at(facts: Any, path: Sequence[str]) -> Any:
    for name in path:
        facts = facts.get(name) if isinstance(facts, Mapping) else None
    return facts


def _any(wanted: Any, case: Case) -> bool:
    return any(holds(one, case) for one in wanted)


def _unless(wanted: Any, case: Case) -> bool:
    return not holds(wanted, case)


_PARTS: dict[str, Callable[[Any, Case], bool]] = {
    "capability": _capability,
    "repository": _repository,
    "arguments": _arguments,
    "environment": _environment,
    "patch_sets": _patch_sets,
    "facts": _facts,
    "any": _any,
    "unless": _unless,
}


def _text(value: Any) -> str:
    return str(value).casefold()


def _number(value: Any) -> float | None:
    try:
        return None if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return None


def _value(wanted: Any, have: Any) -> bool:
    """Tell whether a value is as wanted: a value, one of a list, or a map of tests that all hold."""
    if not isinstance(wanted, Mapping):
        return have is not None and _text(have) in map(_text, wanted if isinstance(wanted, list) else [wanted])
    return all(_TESTS[test](expected, have) for test, expected in wanted.items())


def _above(limit: Any, have: Any) -> bool:
    number = _number(have)
    return number is not None and number > limit


def _below(limit: Any, have: Any) -> bool:
    number = _number(have)
    return number is not None and number < limit


# What is not set: `auto` and `not` hold for it, `set: false` asks for it, and nothing else does.
_TESTS: dict[str, Callable[[Any, Any], bool]] = {
    "set": lambda expected, have: (have is not None) == expected,
    "not": lambda expected, have: not _value(expected, have),
    "auto": lambda expected, have: (have is None or _text(have) == "auto") == expected,
    "above": _above,
    "below": _below,
    "matches": lambda expected, have: have is not None and re.search(expected, str(have), re.IGNORECASE) is not None,
}


def problems(rules: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with a rule set, a sentence each."""
    where = f"The rule set '{rules.get('name')}'"
    rows = rules.get("rules")
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        return [f"{where} has no list 'rules' of maps."]
    found = [f"{where}, applies, {text}." for text in _condition_problems(rules.get("applies", {}))]
    seen: set[str] = set()
    for row in rows:
        here = f"{where}, rule '{row.get('id')}',"
        found += [f"{here} has no text '{key}'." for key in _TEXTS if not isinstance(row.get(key), str)]
        found += [f"{here} has '{key}', which is nothing of a rule." for key in row if key not in _RULE]
        if row.get("severity") not in _SEVERITIES:
            found.append(f"{here} has a severity that is none of {', '.join(_SEVERITIES)}.")
        if row.get("id") in seen:
            found.append(f"{here} is there twice.")
        seen.add(str(row.get("id")))
        try:
            versions.check(str(row.get("versions", "")))
        except ValueError as error:
            found.append(f"{here} has a range that cannot be read: {error}.")
        if not row.get("when"):
            found.append(f"{here} has no condition, and would always hold.")
        found += [f"{here} {text}." for text in _condition_problems(row.get("when", {}))]
    return found


def _condition_problems(condition: Any) -> list[str]:
    if not isinstance(condition, Mapping):
        return [f"has a condition that is no map: {condition!r}"]
    found = [f"has the unknown condition '{key}'" for key in condition if key not in _PARTS]
    for key in ("arguments", "environment", "facts"):
        for value in condition.get(key, {}).values():
            found += _value_problems(value)
    branches = condition.get("any", []) + ([condition["unless"]] if "unless" in condition else [])
    found += [problem for branch in branches for problem in _condition_problems(branch)]
    if "patch_sets" in condition and set(condition["patch_sets"]) not in ({"has"}, {"lacks"}):
        found.append("asks of patch_sets something other than 'has' or 'lacks'")
    found += _pattern_problems(condition.get("repository", ""))
    return found


def _value_problems(value: Any) -> list[str]:
    if not isinstance(value, Mapping):
        return []
    found = [f"has the unknown test '{test}'" for test in value if test not in _TESTS]
    found += _pattern_problems(value.get("matches", ""))
    return found + (_value_problems(value["not"]) if "not" in value else [])


def _pattern_problems(pattern: Any) -> list[str]:
    try:
        re.compile(pattern)
    except (TypeError, re.error) as error:
        return [f"has the pattern {pattern!r}, which cannot be read: {error}"]
    return []
