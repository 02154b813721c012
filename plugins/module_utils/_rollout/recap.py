# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What became of each host in a rollout, and whether it goes on. Private to the collection.

Read from facts of each host: sglang_prepared (done, message), set when its preparation ended; sglang_verdict
(serves, changed, checked, model, address; or restored, message; or drained, or kept; or, where going back, a stop or
a start was asked for, asked, done, changed, checked, message), which is "does not serve" from the moment when its
cut-over begins; sglang_left_out, whether it is marked as drained by us at the end. A host that is lost says nothing
more, so what was set last is what is believed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._report import timeline
from ansible_collections.llmfleet.sglang.plugins.module_utils._trial import gate

Vars = Mapping[str, Any]
_LEFT_OUT = "It is out of the load balancer still: the next deployment or start that it serves after puts it back."


@dataclass(frozen=True)
class Fate:
    """A host's fate. state: what a recap prints; failed: whether it counts against the failures that are allowed."""

    host: str
    state: str
    message: str
    failed: bool


def fate(host: str, variables: Vars, alive: bool) -> Fate:
    """Conclude from a host's facts. alive: whether Ansible still reaches it."""
    found = _fate(host, variables, alive)
    left_out = variables.get("sglang_left_out") or {}
    more = [] if found.state == "stopped" else [timeline.down_words(variables.get("sglang_noted") or {})]
    if found.state != "drained" and (left_out.get("stat") or {}).get("exists"):
        more.append(_LEFT_OUT)
    # A message may go on over many lines, of which the recap shows the first.
    first, *rest = found.message.split("\n")
    return replace(found, message="\n".join([" ".join(filter(None, [first, *more])), *rest]))


def _fate(host: str, variables: Vars, alive: bool) -> Fate:
    verdict, prepared = variables.get("sglang_verdict"), variables.get("sglang_prepared")
    if verdict is not None:
        return _cut_over(host, verdict, alive)
    if not alive:
        return Fate(host, "unreachable", "It cannot be reached. Nothing was stopped there.", True)
    if prepared is not None and not prepared["done"]:
        return Fate(host, "not prepared", f"{prepared['message']} Nothing was stopped there.", True)
    return Fate(host, "untouched", "It serves what it served before: the rollout did not come to it.", False)


def _cut_over(host: str, verdict: Vars, alive: bool) -> Fate:
    if verdict.get("drained"):
        message = f"It serves, and gets no requests, for it could not be undrained: {verdict['drained']}"
        return Fate(host, "drained", message, True)
    if verdict.get("asked"):
        return _asked(host, verdict, alive)
    if verdict.get("serves"):
        return _serving(host, verdict)
    message = str(verdict.get("message", ""))
    if verdict.get("restored"):
        return Fate(host, "went back", message, True)
    if "restored" not in verdict and not alive:
        return _lost(host)
    return Fate(host, "broken", message, True)


def _asked(host: str, verdict: Vars, alive: bool) -> Fate:
    """What rollback.yml, stop.yml and start.yml were asked for; asked: its word when it is done."""
    message = str(verdict.get("message", ""))
    if verdict.get("done"):
        done = "to change" if verdict.get("checked") else str(verdict["asked"])
        return Fate(host, done if verdict.get("changed") else "unchanged", message, False)
    if verdict.get("restored"):
        return Fate(host, "untouched", message, True)
    if not alive:
        return _lost(host)
    return Fate(host, "broken" if verdict["asked"] == "went back" else f"not {verdict['asked']}", message, True)


def _lost(host: str) -> Fate:
    message = (
        "It was lost while it was cut over, and what serves there is not known. When it is back: status.yml says "
        "what serves, and the next deployment goes on from there."
    )
    return Fate(host, "lost", message, True)


def _serving(host: str, verdict: Vars) -> Fate:
    changed, checked = verdict.get("changed"), verdict.get("checked")
    what = f"{verdict.get('model', 'The model')} at {verdict.get('address', 'its address')}"
    if verdict.get("kept"):
        return Fate(host, "new", f"Serves {what}, and could not go back with its batch: {verdict['kept']}", True)
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
        f"{one.host}: not prepared, for the reason above. Nothing was stopped there."
        if one.state == "not prepared"
        else f"{one.host}: {one.state}: {one.message}"
        for one in fates(hosts, hostvars, alive)
        if one.failed
    ]


def recap(hosts: Sequence[str], hostvars: Mapping[str, Vars], alive: Collection[str], report: str = "") -> str:
    """Return a line for each host: its name, its state, and in a sentence what that means.

    report: where the report of the run is, in words, for a line of its own.
    """
    found = fates(hosts, hostvars, alive)
    width = max((len(one.host) for one in found), default=0)
    wide = max((len(one.state) for one in found), default=0)
    lines = [f"{one.host:{width}}  {one.state:{wide}}  {_first_line(one.message)}".rstrip() for one in found]
    lines += gate.overridden([one.host for one in found], hostvars)
    return "\n".join([*lines, *([report] if report else [])])


def _first_line(message: str) -> str:
    return (message.strip().splitlines() or [""])[0]
