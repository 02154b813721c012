# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What became of each host in a rollout, and whether it goes on. Private to the collection.

Read from facts of each host: sglang_prepared (done, message), set when its preparation ended; sglang_verdict
(serves, changed, checked, model, address, stayed; or restored, stopped, message; or drained, or kept; or, where going
back, a stop or a start was asked for, asked, done, changed, checked, message), which is "does not serve" from the
moment when its cut-over begins; sglang_noted, with whether it is marked as drained by us at the end;
sglang_drain_state (draining, drained, undrained), how far this run came with the load balancer; sglang_trial_result,
what a trial recorded. A host that is lost says nothing more, so what was set last is what is believed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._report import override, timeline
from ansible_collections.llmfleet.sglang.plugins.module_utils._trial import conclude

Vars = Mapping[str, Any]
_LEFT_OUT = "It is out of the load balancer still: the next deployment or start that it serves after puts it back."
_NO_HOOK = (
    "An earlier run began to take it out of the load balancer, and this one could not put it back: set "
    "sglang_undrain_tasks and run this again, or see by hand that it gets requests and remove {path}."
)
_AFTER_A_TRIAL = (
    "llmfleet.sglang.deploy does it, and keeps the change if it was put into the inventory before; else it brings back "
    "what served."
)
# A fact of each host where the run itself ended before it could ask them (ended.py): what had begun may not have ended.
CUT_SHORT = "sglang_cut_short"
# States of a host that serves as this run wants it.
_SERVES = ("new", "unchanged", "started", "went back")


@dataclass(frozen=True)
class Fate:
    """A host's fate.

    state: what a recap prints; failed: whether it counts against the failures that are allowed; line: what a recap
    shows of a message that goes on over many lines, "" for its first.
    """

    host: str
    state: str
    message: str
    failed: bool
    line: str = ""


def fate(host: str, variables: Vars, alive: bool) -> Fate:
    """Conclude from a host's facts. alive: whether Ansible still reaches it."""
    found = _fate(host, variables, alive)
    more = [] if found.state == "stopped" else [timeline.down_words(variables.get("sglang_noted") or {})]
    if found.state != "drained" and _is_out(variables):
        found = replace(found, failed=found.failed or _gets_none(found, variables))
        more.append(_left_out(variables))
    if found.state in _SERVES and not alive and not (variables.get("sglang_verdict") or {}).get("checked"):
        more.append("It could not be reached at the end, and is locked still: the next run takes that over.")
    # A message may go on over many lines, and what is added belongs to none of them.
    first, *rest = found.message.split("\n")
    line = " ".join(filter(None, [first, *more]))
    added = " ".join(filter(None, more))
    return replace(found, line=line, message="\n".join(filter(None, [found.message, added])) if rest else line)


def _left_out(variables: Vars) -> str:
    """What to do about a host that is marked as drained by us."""
    if variables.get("sglang_undrain_tasks"):
        return _LEFT_OUT
    return _NO_HOOK.format(path=(variables.get("sglang_noted") or {}).get("drained") or "drained.json")


def _gets_none(found: Fate, variables: Vars) -> bool:
    """Tell whether it serves by this run and gets no requests, for the run cannot put it back."""
    stopped = (variables.get("sglang_verdict") or {}).get("asked") == "stopped"
    return not (variables.get("sglang_undrain_tasks") or stopped) and found.state in _SERVES


def _is_out(variables: Vars) -> bool:
    """Tell whether our mark of a drained host is there; where it could not be looked at, whether this run made it."""
    mark = (variables.get("sglang_noted") or {}).get("drained")
    return variables.get("sglang_drain_state") in ("draining", "drained") if mark is None else bool(mark)


def _fate(host: str, variables: Vars, alive: bool) -> Fate:
    verdict, prepared = variables.get("sglang_verdict"), variables.get("sglang_prepared")
    if verdict is not None:
        found = _unended(host, variables, alive) or _cut_over(host, verdict)
        return replace(found, failed=False) if found.state == "went back" and _trial_held(variables) else found
    if not alive:
        return Fate(host, "unreachable", "It cannot be reached. This run stopped nothing there.", True)
    if prepared is not None and not prepared["done"]:
        return Fate(host, "not prepared", f"{prepared['message']} This run stopped nothing there.", True)
    return Fate(host, "untouched", "The rollout did not come to it: this run stopped nothing there.", False)


def _unended(host: str, variables: Vars, alive: bool) -> Fate | None:
    """What is known of a host that was lost, or whose run was cut short, before its cut-over had come to an end.

    None where it had: what was seen then is believed, whatever became of the connection.
    """
    if alive and not variables.get(CUT_SHORT):
        return None
    verdict, drain = variables["sglang_verdict"], variables.get("sglang_drain_state", "")
    why = "The run ended" if alive else "It, or its load balancer, could not be reached any more"
    seen = verdict.get("serves") or verdict.get("done") or "restored" in verdict
    if not seen and drain == "draining":
        return Fate(host, "untouched", f"{why} while it was drained: this run stopped nothing there.", True)
    if not seen or verdict.get("going_back"):
        return _interrupted(host, variables) if alive else _lost(host)
    if verdict.get("serves") and variables.get("sglang_undrain_tasks") and drain != "undrained":
        what = "It serves the change that was tried" if tried(variables) else "It serves"
        out = f"{what}, and {'is' if drain else 'may be'} out of the load balancer. {why} before it was put back:"
        # The same trial would be one of the change against itself, and is refused.
        way = _AFTER_A_TRIAL if tried(variables) else "the same command does it."
        return Fate(host, "drained", f"{out} {way}", True)
    return None


def _trial_held(variables: Vars) -> bool:
    """Tell whether a trial came to a good end: going back after it is what was asked for, and no failure."""
    line = (variables.get("sglang_trial_result") or {}).get("trial") or {}
    return line.get("result") in conclude.GOOD


def _cut_over(host: str, verdict: Vars) -> Fate:
    if verdict.get("drained"):
        message = f"It serves, and gets no requests, for it could not be undrained: {verdict['drained']}"
        return Fate(host, "drained", message, True)
    if verdict.get("asked"):
        return _asked(host, verdict)
    if verdict.get("serves"):
        return _serving(host, verdict)
    message = str(verdict.get("message", ""))
    if verdict.get("restored"):
        return Fate(host, "went back" if verdict.get("stopped", True) else "untouched", message, True)
    return Fate(host, "broken", message, True)


def _asked(host: str, verdict: Vars) -> Fate:
    """What rollback.yml, stop.yml and start.yml were asked for; asked: its word when it is done."""
    message = str(verdict.get("message", ""))
    if verdict.get("done"):
        done = "to change" if verdict.get("checked") else str(verdict["asked"])
        return Fate(host, done if verdict.get("changed") else "unchanged", message, False)
    if verdict.get("restored"):
        return Fate(host, "untouched", message, True)
    return Fate(host, "broken" if verdict["asked"] == "went back" else f"not {verdict['asked']}", message, True)


def _lost(host: str) -> Fate:
    message = (
        "It was lost while it was cut over, and what serves there is not known. When it is back: "
        "llmfleet.sglang.status says what serves, and the next deployment goes on from there."
    )
    return Fate(host, "lost", message, True)


def tried(variables: Vars) -> bool:
    """Tell whether a trial had begun to cut a host over, after which the same trial may be refused."""
    return bool(variables.get("sglang_trial_base")) and "sglang_verdict" in variables


def _interrupted(host: str, variables: Vars) -> Fate:
    ended = "The run ended in the middle of its cut-over, and what serves there is not known"
    if tried(variables):
        after = "It may be the change that was tried: llmfleet.sglang.deploy brings the deployment back."
        return Fate(host, "interrupted", f"{ended}: llmfleet.sglang.status says it. {after}", True)
    after = "llmfleet.sglang.status says what serves, and the same command goes on from there."
    return Fate(host, "interrupted", f"{ended}: {after}", True)


def _serving(host: str, verdict: Vars) -> Fate:
    changed, checked = verdict.get("changed"), verdict.get("checked")
    what = f"{verdict.get('model', 'The model')} at {verdict.get('address', 'its address')}"
    if verdict.get("kept"):
        return Fate(host, "new", f"Serves {what}, and could not go back with its batch: {verdict['kept']}", True)
    if verdict.get("stayed"):
        said = f"Serves {what}. Old releases could not be removed: {verdict['stayed']}"
        return Fate(host, "new" if changed else "unchanged", said, True)
    if changed:
        return Fate(host, *(("to change", f"Would serve {what}.") if checked else ("new", f"Serves {what}.")), False)
    seen = "Runs what is wanted; it was not asked" if checked else "Serves, and was not restarted"
    return Fate(host, "unchanged", f"{seen}: {what}.", False)


def fates(hosts: Sequence[str], hostvars: Mapping[str, Vars], alive: Collection[str]) -> list[Fate]:
    """Return the fate of each host that takes part. alive: the hosts that Ansible still reaches."""
    known = {host: hostvars[host] for host in hosts}
    return [fate(host, each, host in alive) for host, each in known.items() if "sglang_deployment" in each]


def allowed(hosts: Sequence[str], hostvars: Mapping[str, Vars]) -> int:
    """Return how many hosts of the whole fleet may fail before the rollout ends; 0 unless an operator says more."""
    given = [hostvars[host]["sglang_failures_allowed"] for host in hosts if "sglang_failures_allowed" in hostvars[host]]
    return max((int(one) for one in given), default=0)


def goes_on(hosts: Sequence[str], hostvars: Mapping[str, Vars], alive: Collection[str]) -> bool:
    """Tell whether no more hosts failed than are allowed to."""
    return sum(one.failed for one in fates(hosts, hostvars, alive)) <= allowed(hosts, hostvars)


def failures(hosts: Sequence[str], hostvars: Mapping[str, Vars], alive: Collection[str]) -> list[str]:
    """Return for each host that failed what became of it; why it could not be prepared, its own failure has said."""
    return [
        f"{one.host}: not prepared, for the reason in the recap above. This run stopped nothing there."
        if one.state == "not prepared"
        else f"{one.host}: {one.state}: {one.message}"
        for one in fates(hosts, hostvars, alive)
        if one.failed
    ]


def recap(hosts: Sequence[str], hostvars: Mapping[str, Vars], alive: Collection[str], report: str = "") -> str:
    """Return a line for each host: its name, its state, and in a sentence what that means.

    After them, how many hosts are in each state, and the release of the new ones. report: where the report of the run
    is, in words, for a line of its own.
    """
    found = fates(hosts, hostvars, alive)
    width = max((len(one.host) for one in found), default=0)
    wide = max((len(one.state) for one in found), default=0)
    lines = [
        f"{one.host:{width}}  {one.state:{wide}}  {_first_line(one.line or one.message)}".rstrip() for one in found
    ]
    lines += _tally(found) + _releases(found, hostvars)
    lines += override.lines([one.host for one in found], hostvars)
    return "\n".join([*lines, *([report] if report else [])])


def _tally(found: Sequence[Fate]) -> list[str]:
    """How many hosts are in each state, where there is more than one host."""
    states = [one.state for one in found]
    counts = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
    return [f"{len(found)} hosts: {counts}."] if len(found) > 1 else []


def _releases(found: Sequence[Fate], hostvars: Mapping[str, Vars]) -> list[str]:
    """The releases that serve where something new does, each once."""
    built = [(hostvars[one.host].get("sglang_build_release") or {}).get("id") for one in found if one.state == "new"]
    return [f"New release: {release}" for release in dict.fromkeys(filter(None, built))]


def _first_line(message: str) -> str:
    return (message.strip().splitlines() or [""])[0]
