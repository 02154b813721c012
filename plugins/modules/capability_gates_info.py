#!/usr/bin/python
# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""List the places of a source tree that test for a compute capability."""

from __future__ import annotations

DOCUMENTATION = r"""
module: capability_gates_info
short_description: List the places of a source tree that test for a compute capability
version_added: 0.1.0
description:
  - Reads Python source and lists the tests for compute capabilities from 9.0 on which do not treat a given chip,
    such as C(is_sm100_supported()), C(get_platform().is_sm90), C(capability >= (10, 0)), C(device_sm in (100, 103)),
    and dict literals whose keys are capabilities.
  - This tells, before a build, what a commit does not know about the cards that it is to run on.
  - One place is one boolean expression, however many capability tests it joins with C(and), C(or) and C(not); each
    condition of an C(if) and its C(elif)s, each C(case) of a C(match), each table, and each least capability that a
    function C(get_min_capability) returns is one of its own.
  - A statement that only gives a test another name which says so itself, such as C(_is_sm90 = cuda and is_sm90()), is
    no place; its uses are. So are uses of any name that says a capability, C(DEEPGEMM_BLACKWELL) for example, where the
    source defines it by a test.
  - What a test says is read from literals and from the definitions of the names in it, in the same file or in the
    others that are read. Only where there is no definition, or several that do not agree, does the name itself decide.
  - This is a heuristic. A few places are missed or listed wrongly, such as comparisons with a value that is computed
    elsewhere, capabilities in strings, and those handed on under other names. Capabilities 9.4 and 9.5, which are
    those of AMD, are left out. A test that does not treat the chip is not wrong for that.
options:
  root:
    description: Folder that the patterns O(within) start from, or one file.
    type: path
    required: true
  within:
    description: Patterns relative to O(root), C(**) included, of the files to read.
    type: list
    elements: str
    default: ["sglang/srt/**/*.py"]
  capability:
    description: Compute capability of the chip.
    type: str
    default: "12.0"
  every:
    description: Whether to list the tests that treat the chip too.
    type: bool
    default: false
  baseline:
    description: RV(gates) of another source tree, to compare with.
    type: list
    elements: dict
extends_documentation_fragment:
  - llmfleet.sglang.attributes
  - llmfleet.sglang.attributes.actiongroup_sglang
attributes:
  check_mode:
    support: full
    details:
      - Only reads.
  diff_mode:
    support: none
  idempotent:
    support: full
requirements:
  - A Python that parses the source, on the target. Set C(ansible_python_interpreter) to the source's own one.
author:
  - llmfleet engineers (@llmfleet)
seealso:
  - module: llmfleet.sglang.python_source
"""

EXAMPLES = r"""
- name: What does this commit not know about RTX PRO 6000 Blackwell
  llmfleet.sglang.capability_gates_info:
    root: /opt/sglang/releases/0123456789ab/src/python
  vars:
    ansible_python_interpreter: /opt/sglang/releases/0123456789ab/venv/bin/python
  register: audit

- name: The tests that a newer chip falls into without being meant
  ansible.builtin.debug:
    msg: "{{ audit.gates | selectattr('falls', 'eq', 'in') }}"
"""

RETURN = r"""
gates:
  description: The tests, by file and line.
  returned: success
  type: list
  elements: dict
  contains:
    file:
      description: The file, relative to O(root).
      type: str
    line:
      description: Line of the test.
      type: int
    function:
      description: Function or method that the test stands in; empty at module level.
      type: str
    expression:
      description: The test, on one line without comments.
      type: str
      sample: get_platform().is_sm90 or get_platform().is_sm100
    tests:
      description: The capability tests in it, by themselves.
      type: list
      elements: str
      sample: ["get_platform().is_sm90", "get_platform().is_sm100"]
    kind:
      description:
        - What the test is made of, joined by V(+).
        - V(predicate), V(equal), V(not_equal), V(at_least), V(above), V(below), V(at_most), V(member), V(not_member),
          V(range) or V(table).
      type: str
    capabilities:
      description: The capabilities that it names.
      type: list
      elements: str
      sample: ["9.0", "10.0"]
    falls:
      description: Whether the test is true for the chip, V(in), or false, V(out), whatever its other terms are.
      type: str
    treats:
      description: Whether the test, or the chain of V(elif) around it, mentions the chip.
      type: bool
    group:
      description:
        - What the test is about, by its file, function and text.
        - V(arguments), V(communication), V(kv_cache), V(moe), V(attention), V(gemm) or V(other).
      type: str
    fusion:
      description: Whether it has to do with fused all-reduce.
      type: bool
counts:
  description: How many tests are in each group.
  returned: success
  type: dict
  sample: {"attention": 55, "moe": 47}
appeared:
  description: The tests that O(baseline) lacks. Where only the line differs, a test is the same one; where its names
    have come to mean other capabilities, it is another one.
  returned: when O(baseline) is given
  type: list
  elements: dict
gone:
  description: The tests that only O(baseline) has.
  returned: when O(baseline) is given
  type: list
  elements: dict
"""

from collections import Counter
from dataclasses import asdict
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.llmfleet.sglang.plugins.module_utils._source.capability import audit, compare
from ansible_collections.llmfleet.sglang.plugins.module_utils._source.errors import SourceError


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "root": {"type": "path", "required": True},
            "within": {"type": "list", "elements": "str", "default": ["sglang/srt/**/*.py"]},
            "capability": {"type": "str", "default": "12.0"},
            "every": {"type": "bool", "default": False},
            "baseline": {"type": "list", "elements": "dict"},
        },
        supports_check_mode=True,
    )
    options = module.params
    try:
        sites = audit(options["root"], options["within"], options["capability"], options["every"])
        result: dict[str, Any] = {"changed": False, "gates": [asdict(site) for site in sites]}
        result["counts"] = dict(Counter(site.group for site in sites))
        if options["baseline"] is not None:
            result["appeared"], result["gone"] = compare(options["baseline"], sites)
    except SourceError as exc:
        module.fail_json(msg=str(exc))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
