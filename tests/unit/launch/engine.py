# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A package `sglang` with a small parser of its own, for probes that run for real in this interpreter."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._launch import check, probe

SERVER_ARGS = """
import argparse, json, logging, os

class Deprecated(argparse.Action):
    def __init__(self, option_strings, dest, nargs=0, **kwargs):
        super().__init__(option_strings, dest, nargs=nargs, **kwargs)

    def __call__(self, parser, namespace, values, option_string=None):
        raise ValueError(self.help)

class Older(Deprecated):
    def __call__(self, parser, namespace, values, option_string=None):
        logging.getLogger("sglang").warning("\\033[33m%s is deprecated.\\033[0m", option_string)

class ServerArgs:
    @staticmethod
    def add_cli_args(parser):
        add = parser.add_argument
        add("--model-path", "--model", type=str, required=True)
        add("--tensor-parallel-size", "--tp-size", type=int, default=1)
        add("--mem-fraction-static", type=float)
        add("--attention-backend", type=str, choices=["triton", "flashinfer", "trtllm_mha"])
        backends = ["pytorch", "flashinfer"] + (["oracle"] if os.environ.get("SGLANG_ORACLE") else [])
        add("--sampling-backend", choices=backends)
        add("--cuda-graph-max-bs-decode", type=int)
        add("--cuda-graph-max-bs-prefill", type=int)
        add("--cuda-graph-bs", type=int, nargs="+")
        add("--mamba-radix-cache-strategy", choices=["auto", "extra_buffer"])
        add("--sleep-on-idle", action="store_true")
        add("--enable-tf32", action=argparse.BooleanOptionalAction)
        add("--preferred-sampling-params", type=json.loads)
        add("--model-loader-extra-config", type=str, help="Extra config for the model loader.")
        add("--json-model-override-args", type=str, help="A dictionary in JSON string format.")
        add("--deepep-config", type=str, help="It can be either a string with JSON content or a file path.")
        add("--json-pattern", type=str, help="Regex pattern of JSON whitespace.")
        add("--model-checksum", nargs="?", const="")
        add("--enable-ep-moe", action=Deprecated, help="(Deprecated) use --ep-size instead")
        add("--disable-cuda-graph", action=Older)
        group = parser.add_mutually_exclusive_group()
        group.add_argument("--left", action="store_true")
        group.add_argument("--right", action="store_true")
"""


def write(root: Path, server_args: str = SERVER_ARGS, version: str = "0.5.99") -> dict[str, str]:
    """Write the package below `root`; returns the environment in which an interpreter imports it."""
    (root / "sglang" / "srt").mkdir(parents=True)
    (root / "sglang" / "__init__.py").write_text(f'__version__ = "{version}"\n')
    (root / "sglang" / "srt" / "__init__.py").write_text("")
    (root / "sglang" / "srt" / "server_args.py").write_text(server_args)
    return {"PYTHONPATH": str(root)}


def question(arguments: Mapping[str, Any], environment: dict[str, str], names: tuple[str, ...] = ()) -> probe.Question:
    """The question that the module would ask of this interpreter."""
    return probe.Question(sys.executable, check.groups(arguments), environment, names, timeout=60)
