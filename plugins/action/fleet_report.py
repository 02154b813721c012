# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Action: write what became of a fleet as a page and as JSON, on the controller. No host is connected to."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import yaml
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from ansible_collections.llmfleet.sglang.plugins.filter.launch import rule_sets
from ansible_collections.llmfleet.sglang.plugins.module_utils._host import fleet_report
from ansible_collections.llmfleet.sglang.plugins.module_utils._launch import rules
from ansible_collections.llmfleet.sglang.plugins.module_utils._report import files, hide, model, override
from ansible_collections.llmfleet.sglang.plugins.plugin_utils import _owner

display = Display()
# What a report reads of each host; to look at more would template variables that are nobody's business here.
FACTS = (
    "sglang_deployment",
    "sglang_prepared",
    "sglang_verdict",
    "sglang_drain_tasks",
    "sglang_undrain_tasks",
    "sglang_drain_state",
    "sglang_noted",
    "sglang_service_plan",
    "sglang_build_release",
    "sglang_without_trial",
    "sglang_tried",
    "sglang_trial",
    "sglang_trial_base",
    "sglang_trial_result",
    "sglang_benchmark_measure",
    "sglang_benchmark_result",
    "sglang_preflight_result",
    "sglang_accepted_rules",
    *hide.NAMES,
)
# They are a step of an operator's work, and not the end of one.
WITHOUT = ("stop", "start")
# Their playbooks print no recap.
SAY = ("trial", "benchmark")


class ActionModule(ActionBase):  # type: ignore[misc]
    """Writes the report; see the documentation of the module of the same name."""

    _supports_check_mode = True
    _requires_connection = False

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        """Return where the report is."""
        result: dict[str, Any] = {**super().run(tmp, task_vars), "changed": False, "paths": [], "words": ""}
        _valid, given = self.validate_argument_spec(
            argument_spec={
                "folder": {"type": "str", "default": files.DEFAULT},
                "kind": {"type": "str", "choices": list(model.KINDS)},
            }
        )
        try:
            return {**result, **self._report(given, task_vars or {})}
        except Exception as error:  # a fault in here must not hide from an operator what became of the fleet
            display.warning(f"There is no report, for it could not be made: {type(error).__name__}: {error}.")
            return result

    def _report(self, given: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
        hosts = [str(one) for one in known.get("ansible_play_hosts_all") or []]
        facts = {host: host_facts(known["hostvars"][host]) for host in hosts}
        kind = given["kind"] or model.kind_of(hosts, facts)
        if kind in WITHOUT:
            return {}
        said = self._said(kind, facts)
        sources = [str(one) for one in known.get("ansible_inventory_sources") or []]
        place = files.folder(str(given["folder"]), Path.cwd())
        wrong = files.hindrance(place, sources) if given["folder"] else ""
        if wrong:
            display.warning(f"There is no report: {wrong}. Name another folder: sglang_report_to.")
        if wrong or not given["folder"]:
            return {"words": "\n".join(said)}
        run = self._about(kind, sources)
        report = model.report(run, hosts, facts, known.get("ansible_play_hosts") or [], findings_of(facts, kind))
        written = self._write(place, report)
        return {**written, "words": "\n".join([*said, *filter(None, [written.get("words", "")])])}

    def _said(self, kind: str, facts: Mapping[str, Mapping[str, Any]]) -> list[str]:
        """What has to be said beside where the report is; a recap says it itself."""
        if kind not in SAY:
            return []
        known = {host: one for host, one in facts.items() if "sglang_deployment" in one}
        prepared = [one for one in known.values() if (one.get("sglang_prepared") or {}).get("done")]
        would = kind == "trial" and self._task.check_mode
        secrets = {each for one in known.values() for each in hide.known(one)}
        tried = [f"It would try {model.tried(one)}." for one in prepared if would]
        said: list[str] = hide.everywhere(tried + override.lines(list(known), known), secrets)
        return said

    def _about(self, kind: str, sources: Sequence[str]) -> model.Run:
        owner = _owner.this_run(os.getppid())
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        check = bool(self._task.check_mode)
        return model.Run(kind, files.fleet_name(sources), now, owner["run"], owner["owner"], version(), check)

    def _write(self, place: Path, report: Mapping[str, Any]) -> dict[str, Any]:
        if self._task.check_mode:
            paths = [str(place / name) for name in files.names(report)]
            return {"paths": paths, "words": f"The report would be written to {place}."}
        try:
            paths = [str(path) for path in files.write(place, report)]
        except OSError as error:
            display.warning(f"There is no report, since {place} cannot be written to: {error}.")
            return {}
        return {"paths": paths, "words": f"Report: {paths[0]}"}


def host_facts(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a report reads of a host, as plain data; a secret that cannot be opened is in no report either."""
    found: dict[str, Any] = {}
    for name in FACTS:
        try:
            if name in variables:
                found[name] = plain(variables[name])
        except Exception as error:
            if name not in hide.NAMES:
                raise
            display.vvv(f"{name} cannot be worked out, and cannot be in the report then: {type(error).__name__}")
    return found


def plain(value: Any) -> Any:
    """Return a value without the marks that Ansible puts on it."""
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if value is None or isinstance(value, bool):
        return value
    for kind in (int, float):
        if isinstance(value, kind):
            return kind(value)
    return str(value)


def findings_of(facts: Mapping[str, Mapping[str, Any]], kind: str) -> dict[str, list[dict[str, Any]]]:
    """Return by host what preflight found there and what the rules say of its deployment."""
    sets, found = rule_sets(), {}
    for host, one in facts.items():
        of_rules = _of_rules(host, facts, kind, sets) if "sglang_deployment" in one else []
        found[host] = fleet_report.host_report(one.get("sglang_preflight_result") or {}, of_rules)["findings"]
    return found


def _of_rules(
    host: str, facts: Mapping[str, Mapping[str, Any]], kind: str, sets: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return the rules' findings, judged by what the run itself knew of trials and was told to accept."""
    one = facts[host]
    overridden = bool(override.told_by(one))
    accepted = [*(one.get("sglang_accepted_rules") or []), *([override.RULE] if overridden else [])]
    # What is on trial needs no win, and where nobody asked for one nothing can be said of it.
    needed = overridden or (kind != "trial" and override.looked(one))
    won = override.facts(host, list(facts), facts)
    found = [each.as_dict() for each in rules.findings(one["sglang_deployment"], sets, won, accepted)]
    return [each for each in found if needed or each["id"] != override.RULE]


def version() -> str:
    """Return the collection's version, from what it is installed with or from its source."""
    root = Path(__file__).resolve().parents[2]
    try:
        text = next(one for one in (root / "MANIFEST.json", root / "galaxy.yml") if one.exists()).read_text("utf-8")
        content = yaml.safe_load(text)
        return str((content.get("collection_info") or content)["version"])
    except (StopIteration, OSError, KeyError, AttributeError, yaml.YAMLError):
        return ""
