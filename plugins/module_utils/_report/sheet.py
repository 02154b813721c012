# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The style sheet of a report, light and dark. Private to the collection.

Colours are named once for each theme. Every text has a contrast of 4.5 to 1 and more on what it stands on, and no
meaning hangs on a colour alone.
"""

from __future__ import annotations

LIGHT = {
    "page": "#ffffff",
    "raised": "#f4f6f8",
    "text": "#1b1f24",
    "faint": "#57606a",
    "line": "#d0d7de",
    "link": "#0a58b0",
    "good": "#116329",
    "good-back": "#dcf5e3",
    "warn": "#7a4b00",
    "warn-back": "#fdf0d0",
    "bad": "#a4111f",
    "bad-back": "#fde4e4",
    "calm": "#424a53",
    "calm-back": "#e9edf1",
    "prepare": "#b9c6d4",
    "wait": "#dfe5eb",
    "ready": "#c9b98f",
    "drain": "#8fb7e8",
    "stop": "#d98324",
    "start": "#3f7fca",
    "back": "#8a63c9",
    "prove": "#3c9a5f",
    "record": "#8ccaa3",
    "down": "#c4232f",
    "before": "#9aa7b5",
    "now": "#3f7fca",
    "run": "#0b2545",
}
DARK = {
    "page": "#12161b",
    "raised": "#1b2128",
    "text": "#e4e9ee",
    "faint": "#9aa6b2",
    "line": "#343c45",
    "link": "#7ab4f5",
    "good": "#7fdc9b",
    "good-back": "#153322",
    "warn": "#f0c268",
    "warn-back": "#3a2c0c",
    "bad": "#ff9a9a",
    "bad-back": "#451a1d",
    "calm": "#c0c9d2",
    "calm-back": "#2a323a",
    "prepare": "#4a5866",
    "wait": "#2f3841",
    "ready": "#7d7049",
    "drain": "#34608f",
    "stop": "#c97f2d",
    "start": "#4a8fdc",
    "back": "#a184dd",
    "prove": "#45a86b",
    "record": "#2f6b47",
    "down": "#f0545f",
    "before": "#66737f",
    "now": "#4a8fdc",
    "run": "#e8f1fb",
}

_RULES = """
*{box-sizing:border-box}
html{color-scheme:light dark;-webkit-text-size-adjust:100%;text-size-adjust:100%}
body{margin:0;background:var(--page);color:var(--text);font:15px/1.5 system-ui,sans-serif}
main{max-width:1180px;margin:0 auto;padding:20px 24px 48px}
h1{font-size:1.5rem;line-height:1.25;margin:0 0 6px;overflow-wrap:anywhere}
h2{font-size:1.15rem;margin:36px 0 10px;padding-top:14px;border-top:1px solid var(--line)}
h3{font-size:1rem;margin:20px 0 6px;overflow-wrap:anywhere}
p{margin:6px 0;overflow-wrap:anywhere}
a{color:var(--link)}
code,pre,.mono{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:.88em}
pre{white-space:pre-wrap;overflow-wrap:anywhere;background:var(--raised);border:1px solid var(--line);border-radius:6px;
 padding:10px 12px;margin:8px 0}
.faint{color:var(--faint)}
.lines{white-space:pre-line}
.about{color:var(--faint);margin:0 0 12px}
.tiles{display:flex;flex-wrap:wrap;gap:10px;margin:14px 0}
.tile{border:1px solid var(--line);border-radius:8px;padding:8px 14px;background:var(--raised);min-width:104px}
.tile b{display:block;font-size:1.3rem;line-height:1.3}
.tile span{color:var(--faint);font-size:.87rem}
.note{border-left:4px solid var(--warn);background:var(--warn-back);color:var(--warn);padding:8px 12px;margin:10px 0;
 border-radius:0 6px 6px 0;overflow-wrap:anywhere}
.note.bad{border-color:var(--bad);background:var(--bad-back);color:var(--bad)}
.note a{color:inherit}
.chip{display:inline-block;padding:1px 9px;border-radius:10px;font-size:.85rem;font-weight:600;white-space:nowrap}
.good{background:var(--good-back);color:var(--good)}
.warn{background:var(--warn-back);color:var(--warn)}
.bad{background:var(--bad-back);color:var(--bad)}
.calm{background:var(--calm-back);color:var(--calm)}
.scroll{overflow-x:auto;border:1px solid var(--line);border-radius:8px;margin:8px 0}
table{border-collapse:collapse;width:100%;font-size:.93rem}
th,td{text-align:left;vertical-align:top;padding:6px 10px;border-top:1px solid var(--line)}
thead th{border-top:0;color:var(--faint);font-weight:600;background:var(--raised);white-space:nowrap}
td.number{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
th.number{text-align:right}
td.keep{white-space:nowrap}
td.wide{min-width:15rem;overflow-wrap:anywhere}
td.value{min-width:9rem;max-width:24rem;overflow-wrap:anywhere}
tr.accepted td{color:var(--faint)}
details{border:1px solid var(--line);border-radius:8px;margin:8px 0;background:var(--page)}
summary{cursor:pointer;padding:8px 12px;overflow-wrap:anywhere}
details[open]>summary{border-bottom:1px solid var(--line)}
details>div{padding:4px 14px 12px}
.plot{display:block;overflow:visible}
.plot text{fill:var(--faint);font-size:12px}
.row{display:grid;grid-template-columns:minmax(7rem,13rem) minmax(0,1fr) 7.5rem;gap:2px 14px;align-items:center;
 margin:5px 0}
.shape{margin:12px 0}
.row>.name{overflow-wrap:anywhere;font-size:.93rem}
.row>.value{text-align:right;font-size:.93rem;font-variant-numeric:tabular-nums}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:4px 18px;padding:0;margin:8px 0;font-size:.87rem;
 color:var(--faint)}
.key{display:inline-block;width:14px;height:10px;margin-right:6px;border-radius:2px}
.key.s-down{height:4px;vertical-align:middle}
.grid{stroke:var(--line);stroke-width:1}
.tick{stroke:var(--faint);stroke-width:1}
.limit{stroke:var(--faint);stroke-width:1;stroke-dasharray:4 4}
.run{fill:var(--run)}
.c-now,.c-before{fill:none;stroke-width:2}
.c-now{stroke:var(--now)}
.c-before{stroke:var(--before);stroke-dasharray:6 4}
rect.s-failed{stroke:var(--down);stroke-width:2}
.key.s-failed{background:var(--page);border:2px solid var(--down)}
footer{margin-top:40px;color:var(--faint);font-size:.87rem}
@media (max-width:640px){
 main{padding:14px 14px 40px}
 .row{grid-template-columns:minmax(0,1fr) auto}
 .row>.drawn{grid-column:1/-1;order:3}
 .tile{flex:1 1 40%}
 thead{display:none}
 table,tbody,tr,td{display:block;width:100%}
 tr{border-top:1px solid var(--line);padding:6px 0}
 tbody tr:first-child{border-top:0}
 td,td.value,td.wide{border:0;padding:2px 10px;min-width:0;max-width:none;overflow-wrap:anywhere}
 td.number{text-align:left}
 td.keep{white-space:normal}
 table.compact td{display:inline-block;width:auto;padding:1px 2px 1px 10px}
 table.compact td:first-child{display:block;padding-bottom:2px}
 td.none,table.compact td.none{display:none}
 td[data-label]:not([data-label=""])::before{content:attr(data-label) ": ";color:var(--faint);
  font-family:system-ui,sans-serif;font-size:.87rem}
}
@media print{.scroll{overflow:visible}body{font-size:12px}}
"""
_FILLED = ("prepare", "wait", "ready", "drain", "stop", "start", "back", "prove", "record", "down")


def _theme(colours: dict[str, str]) -> str:
    return ":root{" + "".join(f"--{name}:{value};" for name, value in colours.items()) + "}"


def rules() -> str:
    """Return the whole sheet."""
    fills = [f"rect.s-{name}{{fill:var(--{name})}}.key.s-{name}{{background:var(--{name})}}" for name in _FILLED]
    fills += [
        f"rect.b-{name}{{fill:var(--{name})}}.key.b-{name}{{background:var(--{name})}}" for name in ("before", "now")
    ]
    dark = f"@media (prefers-color-scheme:dark){{{_theme(DARK)}}}"
    return "\n".join([_theme(LIGHT), dark, _RULES.strip(), *fills])
