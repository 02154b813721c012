# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filters that say what benchmarks came to; the logic is in module_utils/_benchmark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark import table
from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark.record import Benchmark

HostVars = Mapping[str, Mapping[str, Any]]


def benchmark_verdict(result: Mapping[str, Any]) -> str:
    """Return the verdict of a benchmark, as the module `benchmark` returned it, with its arithmetic."""
    return table.sentence(result.get("benchmark") or {}, result.get("against"))


def _told(hosts: Sequence[str], hostvars: HostVars) -> dict[str, Mapping[str, Any]]:
    return {host: hostvars[host].get("sglang_measured") or {} for host in hosts}


def _benchmarks(told: Mapping[str, Mapping[str, Any]]) -> dict[str, list[Benchmark]]:
    return {
        host: [Benchmark.from_dict(one) for one in found.get("benchmarks", [])] for host, found in told.items() if found
    }


def benchmark_table(hosts: Sequence[str], hostvars: HostVars, of: Sequence[str] = ()) -> str:
    """Return the benchmarks of a fleet as a table. of: all hosts of the run, also those that it has lost."""
    told = _told(hosts, hostvars)
    notes = {host: list(found.get("problems", [])) for host, found in told.items()}
    notes |= {host: [table.fallen_out(hostvars[host])] for host in of if host not in told}
    return table.table(_benchmarks(told), notes)


def benchmark_report(hosts: Sequence[str], hostvars: HostVars) -> dict[str, Any]:
    """Return the benchmarks of a fleet for machines."""
    return table.report(_benchmarks(_told(hosts, hostvars)))


class FilterModule:
    """Filters of llmfleet.sglang about benchmarks."""

    def filters(self) -> dict[str, Any]:
        """Map filter names to functions."""
        return {
            "benchmark_verdict": benchmark_verdict,
            "benchmark_table": benchmark_table,
            "benchmark_report": benchmark_report,
        }
