# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page: everything is escaped, nothing is loaded, both themes are there, and any fleet can be shown."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._report import model, page, plots, sheet
from ansible_collections.llmfleet.sglang.plugins.module_utils._report.html import Html, tag, text
from ansible_collections.llmfleet.sglang.tests.unit.report import fleet

VOID = {"meta", "br"}


class Reader(HTMLParser):
    """Reads a page: what it links to, what it loads, what is in it, and whether each element is closed."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.words = ""
        self.open: list[str] = []
        self.events: list[str] = []
        self.feed(content)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            self.events += [name] if name.startswith("on") or name in ("src", "srcset", "action", "data") else []
            self.links += [value or ""] if name in ("href", "xlink:href") else []
            self.ids += [value or ""] if name == "id" else []

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data


def shown(hosts: dict[str, dict[str, Any]]) -> Reader:
    return Reader(page.page(fleet.made(hosts)))


EVIL = "<b onclick=x>&\"'"


def test_whatever_comes_from_a_host_is_escaped() -> None:
    hosts = fleet.fleet(3, benchmarks=True)
    hosts[EVIL] = hosts.pop("gpu-01")
    noted = hosts[EVIL]["sglang_noted"]
    noted["changes"] = [{"what": EVIL, "before": EVIL, "after": EVIL}]
    noted["problems"], noted["release"], noted["served"] = [EVIL], EVIL, [EVIL]
    noted["benchmarks"][-1]["paths"][0]["evidence"] = EVIL
    hosts["gpu-02"]["sglang_verdict"]["message"] = f"{EVIL}\n</pre><script>alert(1)</script>"
    read = shown(hosts)
    assert "b" in read.names  # ours
    assert "script" not in read.names and read.events == []
    assert read.words.count(EVIL) > 8


@pytest.mark.parametrize("size", [0, 1, 3, 40])
def test_nothing_is_loaded_and_links_go_to_the_page_itself_or_to_our_guides(size: int) -> None:
    read = shown(fleet.fleet(size, benchmarks=True))
    assert not read.names & {"script", "link", "img", "iframe", "object", "embed", "base", "form", "video", "audio"}
    assert all(link.startswith((f"{page.GUIDE}/", "#")) for link in read.links)
    inside = [link[1:] for link in read.links if link.startswith("#")]
    assert set(inside) <= set(read.ids) and len(read.ids) == len(set(read.ids)) == size
    css = sheet.rules()
    assert "url(" not in css and "@import" not in css


def test_a_browser_is_told_to_load_nothing() -> None:
    assert "default-src &#x27;none&#x27;" in page.page(fleet.made({}))


def test_both_themes_have_every_colour() -> None:
    assert set(sheet.LIGHT) == set(sheet.DARK)
    css = sheet.rules()
    assert "prefers-color-scheme:dark" in css
    assert set(re.findall(r"var\(--([a-z-]+)\)", css)) <= set(sheet.LIGHT)


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (one / 12.92 if one <= 0.03928 else ((one + 0.055) / 1.055) ** 2.4 for one in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("theme", [sheet.LIGHT, sheet.DARK], ids=["light", "dark"])
@pytest.mark.parametrize(
    ("front", "back"),
    [
        *((front, back) for front in ("text", "faint", "link") for back in ("page", "raised")),
        *((one, f"{one}-back") for one in ("good", "warn", "bad", "calm")),
    ],
)
def test_every_text_can_be_read_on_what_it_stands_on(theme: dict[str, str], front: str, back: str) -> None:
    """WCAG 2.2, 1.4.3: 4.5 to 1."""
    light, dark = sorted((_luminance(theme[front]), _luminance(theme[back])), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_an_empty_fleet_is_a_page_too() -> None:
    assert "No host took part" in shown({}).words


def test_a_host_without_benchmark_findings_or_timeline() -> None:
    host = fleet.host(1, "untouched", patches=[], served=[])
    read = Reader(page.page(model.report(fleet.RUN, ["h1"], {"h1": host}, ["h1"])))
    assert "untouched" in read.words and "svg" not in read.names


def test_a_hundred_hosts_say_what_they_have_in_common_once() -> None:
    read = shown(fleet.fleet(100))
    assert read.words.count("argument --mem-fraction-static") == 1
    assert "gpu-01, gpu-02, gpu-03, gpu-04, gpu-05, gpu-06 and 93 more" in read.words
    assert "all 100" in read.words


def test_what_failed_comes_first() -> None:
    read = shown(fleet.fleet(5))
    top = read.words[: read.words.index("Prepared in")]
    assert "gpu-02: went back." in top and "gpu-03: broken." in top
    assert "5 hosts: 2 new, 1 went back, 1 broken, 1 untouched" in top


def test_the_figures_of_a_benchmark() -> None:
    hosts = fleet.fleet(1)
    fleet.measure(hosts["gpu-01"], fleet.measured(236.0))
    words = shown(hosts).words
    assert "236 tok/s" in words and "was 3740" in words and "worse -93.7%" in words
    assert "median 1000 W of 4800 W, was 3600 W" in words
    assert "not active multicast_ptr == 0" in words


def test_what_was_measured_of_another_release_says_nothing_of_this_ones_patches() -> None:
    hosts = fleet.fleet(1)
    fleet.measure(hosts["gpu-01"], fleet.measured())
    hosts["gpu-01"]["sglang_noted"]["release"] = fleet.OLD
    words = shown(hosts).words
    assert "not looked at" in words and "Faster: not measured in this run." in words


TRIAL = {
    "at": "2026-11-30T10:30:00+00:00",
    "change": {"patch_sets": ["sm120_fusion"], "arguments": {}, "environment": {}},
    "result": "worse",
    "reason": "3740 became 236 (-93.7%), beyond the threshold of 10.0%",
    "baseline_figures": {"1024 tokens in": 3740.0},
    "candidate_figures": {"1024 tokens in": 236.0},
    "kept": False,
    "restored": True,
    "facts": [
        {
            "what": "patch set sm120_fusion",
            "patched": ["fusion_gate: present in sglang/x.py, SHA-256 5f0c"],
            "active": "yes: a line of the log",
            "faster": "worse: 3740 became 236",
        }
    ],
}


def test_a_trial_says_three_things_apart() -> None:
    hosts = fleet.fleet(1)
    hosts["gpu-01"]["sglang_trial_result"] = {"trial": TRIAL}
    run = model.Run("trial", "blackwell", "2026-11-30T12:03:11+00:00")
    words = Reader(page.page(fleet.made(hosts, run))).words
    for said in ("fusion_gate: present", "yes: a line of the log", "3740 became 236", "serves the baseline again"):
        assert said in words
    # Without candidate, as after a start that failed.
    hosts["gpu-01"]["sglang_trial_result"] = {"trial": {**TRIAL, "candidate_figures": {}, "restored": False}}
    words = Reader(page.page(fleet.made(hosts, run))).words
    assert "not measured" in words and "does not serve the baseline again" in words


def test_what_is_patched_active_and_faster_stands_before_all_else() -> None:
    hosts = fleet.fleet(5, benchmarks=True)
    for one in hosts.values():
        one["sglang_trial_result"] = {"trial": TRIAL}
    run = model.Run("trial", "blackwell", "2026-11-30T12:03:11+00:00")
    words = Reader(page.page(fleet.made(hosts, run))).words
    heads = ("Trial: patched", "Patches: patched", "Cut-over", "What changed", "Throughput and power", "Host by host")
    assert [words.index(one) for one in heads] == sorted(words.index(one) for one in heads)
    # Once for all hosts with which it is the same: those that were measured, and those that were not.
    assert words.count("Patched (file, digest)") == words.count("Faster: ") == 2


def inert() -> list[dict[str, Any]]:
    """A baseline and a benchmark that is inert, with runs that scatter."""
    baseline, now = fleet.measured(3700.0)
    reason = (
        "the engine does not take the path that was to be tried (fusion: skipped). "
        "By speed: no verdict, 1024 tokens in: the runs scatter too much"
    )
    verdict = {"result": "inert", "reason": reason, "change": 0.3, "low": -0.1, "high": 0.7}
    return [baseline, {**now, "reason": "trial", "baseline": "b1", "verdict": verdict}]


@pytest.mark.parametrize("shapes", [1, 3])
def test_what_is_inert_says_why_and_not_how_fast(shapes: int) -> None:
    hosts = fleet.fleet(1)
    lines = inert()
    fleet.measure(hosts["gpu-01"], [{**one, "shapes": one["shapes"][:shapes]} for one in lines])
    hosts["gpu-01"]["sglang_trial_result"] = {"trial": {**TRIAL, "result": "inert", "reason": "It was skipped"}}
    run = model.Run("trial", "blackwell", "2026-11-30T12:03:11+00:00")
    words = Reader(page.page(fleet.made(hosts, run))).words
    assert words.count("inert the engine does not take the path that was to be tried (fusion: skipped). By speed") == 1
    assert "Faster: the change that was tried: inert, the engine does not take the path" in words
    assert "inert +" not in words
    assert "It was skipped. The host serves the baseline again." in words


@pytest.mark.parametrize("judged", [True, False])
def test_of_a_single_shape_the_reason_is_said_without_its_name_and_count(judged: bool) -> None:
    hosts = fleet.fleet(1)
    lines = [{**one, "shapes": one["shapes"][1:2]} for one in fleet.measured(236.0)]
    reason = "3740 became 236 (-93.7%), beyond the threshold of 10.0%"
    if judged:
        lines[-1] |= {"baseline": "b1", "verdict": {"result": "worse", "reason": reason, "change": -0.937}}
    fleet.measure(hosts["gpu-01"], lines)
    words = shown(hosts).words
    assert f"worse {reason}." in words and "in 1 of 1 shapes" not in words
    assert f"Faster: the release as a whole: worse, {reason}." in words


@pytest.mark.parametrize("kind", ["deployment", "compared"])
def test_what_the_measurement_found_stands_with_the_hosts_other_findings(kind: str) -> None:
    """In its row, in the table of all findings, and host by host."""
    hosts = fleet.fleet(1)
    fleet.measure(hosts["gpu-01"], fleet.measured(236.0))
    run = fleet.RUN
    if kind == "compared":
        del hosts["gpu-01"]["sglang_verdict"], hosts["gpu-01"]["sglang_benchmark_result"]
        hosts["gpu-01"]["sglang_benchmark_measure"] = False
        run = model.Run("benchmark", "blackwell", "2026-11-30T12:03:11+00:00")
    report = model.report(run, list(hosts), hosts, list(hosts), {"gpu-01": fleet.FINDINGS})
    assert [one["id"] for one in report["hosts"][0]["findings"] if one["kind"] == "benchmark"] == ["gpu_starved"]
    words = Reader(page.page(report)).words
    assert "2 warns" in words  # with preflight's own
    assert words.count("8 cards were fully used at no more than 125 of 600 W") == 2
    assert words.index("Host by host") < words.rindex("8 cards were fully used at no more than 125 of 600 W")


def test_a_hosts_findings_stand_by_severity_and_their_evidence_line_by_line() -> None:
    hosts = fleet.fleet(1)
    baseline, now = fleet.measured(236.0)
    starved = {**now["findings"][0], "evidence": "GPU-0: 100 %, 125 of 600 W\n1. a slow PCIe link"}
    fleet.measure(hosts["gpu-01"], [baseline, {**now, "findings": [starved]}])
    content = page.page(fleet.made(hosts))
    found = content[content.index("Host by host") :]
    told = [found.index(one) for one in ("The IOMMU translates", "8 cards were fully used", "Persistence mode is off")]
    assert told == sorted(told)
    assert '<div class="faint lines">GPU-0: 100 %, 125 of 600 W\n1. a slow PCIe link</div>' in found
    assert ".lines{white-space:pre-line}" in content


def test_a_starved_measurement_of_an_earlier_run_is_no_finding_of_this_one() -> None:
    hosts = fleet.fleet(1)
    hosts["gpu-01"]["sglang_noted"]["benchmarks"] = fleet.measured(236.0)
    assert "8 cards were fully used" not in shown(hosts).words


def test_a_baseline_that_a_trial_did_not_measure_is_told() -> None:
    hosts = fleet.fleet(1)
    baseline, now = fleet.measured(236.0)
    verdict = {"result": "worse", "reason": "r", "change": -0.937, "recorded": True}
    fleet.measure(hosts["gpu-01"], [baseline, {**now, "reason": "trial", "baseline": "b1", "verdict": verdict}])
    hosts["gpu-01"]["sglang_trial_result"] = {"trial": {**TRIAL, "verdict": verdict}}
    run = model.Run("trial", "blackwell", "2026-11-30T12:03:11+00:00")
    words = Reader(page.page(fleet.made(hosts, run))).words
    assert "measured 2026-11-12 08:30 UTC, a recorded benchmark and not one that the trial made." in words
    assert "The baseline is a recorded benchmark, and was not measured in this trial." in words
    assert "Faster: the change that was tried: worse" in words and "release as a whole" not in words
    assert "; utilisation of the cards 99 %:" in words
    hosts["gpu-01"]["sglang_trial_result"] = {"trial": {**TRIAL, "verdict": {**verdict, "recorded": False}}}
    hosts["gpu-01"]["sglang_noted"]["benchmarks"][-1]["verdict"] = {**verdict, "recorded": False}
    assert "a recorded benchmark" not in Reader(page.page(fleet.made(hosts, run))).words


def test_what_could_not_be_read_is_told_in_sentences() -> None:
    problems = ["b.jsonl:2 cannot be read, and is left out: torn", "No snapshot."]
    words = shown({"h1": fleet.host(1, problems=problems)}).words
    assert "left out: torn." in words and "No snapshot.." not in words


def test_older_figures_are_shown_as_such() -> None:
    hosts = fleet.fleet(1)
    hosts["gpu-01"]["sglang_noted"]["benchmarks"] = fleet.measured(236.0)
    words = shown(hosts).words
    assert "Last measured 2026-11-30 12:01 UTC, by a deployment, release" in words and "236 tok/s" in words
    assert "worse" not in words and "Throughput and power" not in words


def test_what_is_compared_alone_has_a_head_that_says_so() -> None:
    hosts = fleet.fleet(1)
    del hosts["gpu-01"]["sglang_verdict"]
    hosts["gpu-01"]["sglang_noted"]["benchmarks"] = fleet.measured(236.0)
    hosts["gpu-01"]["sglang_benchmark_measure"] = False
    run = model.Run("benchmark", "blackwell", "2026-11-30T12:03:11+00:00")
    words = Reader(page.page(fleet.made(hosts, run))).words
    assert "Throughput and power, measured before this run" in words and "was 3740" in words
    assert "worse -93.7%" in words  # as the table says
    assert "It was measured" not in words


def test_html_is_made_by_its_builder_alone() -> None:
    assert text("<", None, [tag("b", ">"), "&"]) == "&lt;<b>&gt;</b>&amp;"
    assert (
        tag("td", class_="x y", hidden=True, open=False, data_label='"<')
        == '<td class="x y" hidden data-label="&quot;&lt;"></td>'
    )
    assert tag("meta", name="a") == '<meta name="a">'
    assert isinstance(tag("p"), Html)


def test_axes_have_round_times_and_few() -> None:
    assert plots.ticks(42) == [0.0, 10.0, 20.0, 30.0, 40.0]
    for seconds in (0.5, 1, 7, 59, 61, 600, 5000, 90000, 10**6):
        assert 1 <= len(plots.ticks(seconds)) <= plots.MOST_TICKS


def test_a_benchmark_of_nothing_can_be_drawn() -> None:
    nothing: dict[str, Any] = {"median": None, "runs": []}
    assert 'width="0.00%"' in plots.throughput(nothing, None, 0.0, "x")
    still = {"points": [[0.0, 0.0]], "limit": None, "median": 0.0}
    assert "polyline" in plots.power(still, None, "x")
