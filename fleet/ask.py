# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ask each node of the demo fleet a question, and say how to look around: python3 -m fleet.ask [QUESTION]."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from typing import Any

INVENTORY = "inventories/demo"
QUESTION = "What is the capital of France?"


def inventory() -> dict[str, dict[str, Any]]:
    """Return the variables of each node, as Ansible sees them."""
    command = ["ansible-inventory", "-i", INVENTORY, "--list"]
    listed = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    hosts: dict[str, dict[str, Any]] = listed["_meta"]["hostvars"]
    return hosts


def call(variables: dict[str, Any], path: str, body: dict[str, Any] | None = None) -> Any:
    """Call a node's API and return what it says."""
    request = urllib.request.Request(
        f"http://{variables['ansible_host']}:{variables['sglang_port']}{path}",
        data=json.dumps(body).encode() if body else None,
        headers={
            "Content-Type": "application/json",
            "Authorization": f"Bearer {variables.get('sglang_api_key', '')}",
        },
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # the fleet is on this machine
    with opener.open(request, timeout=60) as answer:
        return json.load(answer)


def ask(variables: dict[str, Any], question: str) -> tuple[str, str]:
    """Send one chat prompt to a node; return the name of the model that answers, and its answer."""
    model = call(variables, "/v1/models")["data"][0]["id"]
    body = {
        "model": model,
        "messages": [{"role": "user", "content": question}],
        "max_tokens": 32,
        "temperature": 0,
        # With the profile's reasoning parser, the answer of a model that thinks first would stand elsewhere.
        "chat_template_kwargs": {"enable_thinking": False, "thinking": False},  # as Qwen and GLM call it, and Kimi
    }
    said = call(variables, "/v1/chat/completions", body)
    return model, said["choices"][0]["message"]["content"]


def main() -> int:
    """Ask, print, and say how to look around."""
    question = " ".join(sys.argv[1:]) or QUESTION
    failed = 0
    print(f"\n{question}")
    for node, variables in sorted(inventory().items()):
        try:
            model, answer = ask(variables, question)
            print(f"  {node}  {variables['ansible_host']}  {model}: {answer}")
        except (OSError, ValueError, KeyError, IndexError) as error:
            failed += 1
            print(f"  {node}  {variables['ansible_host']}  does not answer: {error}")
    print("""
Look around:  python3 -m fleet status                     what runs on each node
              python3 -m fleet ssh node1                  a shell there (sudo asks nothing)
              python3 -m fleet ssh node1 systemctl status sglang-qwen sglang-kimi
              python3 -m fleet ssh node1 sudo journalctl -u sglang-qwen
              python3 -m fleet.ask Who wrote Hamlet?      another question
End it:       make demo-down                              nothing of it stays but the cache""")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
