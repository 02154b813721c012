#!/usr/bin/python
# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Edit Python source by structure."""

from __future__ import annotations

DOCUMENTATION = r"""
module: python_source
short_description: Edit Python source by structure
version_added: 0.1.0
description:
  - Adds entries to dict literals and terms to C(or) gates in Python source, and takes them back.
  - Places are found by name and structure with the standard library's C(ast), never by line or by pattern. Text is
    spliced at the places found; every other byte is kept, as are encoding, line endings, comments and file mode.
  - Before anything is written, the new text is parsed, its tree is compared with the old tree plus exactly the change
    that was asked for, and it is compiled. For a gate, the names that the new term needs are shown to exist.
  - All files are written, or none, also when the module is killed half way. The next run repairs or restores.
  - What was written, and what it replaced, is kept in C(.python_source.json) in O(root). With it,
    O(edits[].state=absent) gives back the exact bytes of before.
options:
  root:
    description:
      - Folder that the patterns C(within) start from, or one file.
      - For a source checkout of SGLang this is its folder C(python), for an installation C(site-packages).
    type: path
    required: true
  on_conflict:
    description: What to do about a conflict for edits that do not say it themselves, see O(edits[].on_conflict).
    type: str
    choices: [fail, keep]
    default: fail
  edits:
    description: The edits, all done or none.
    type: list
    elements: dict
    required: true
    suboptions:
      id:
        description: Name of the edit. It is known under this name in the record, so keep it when the edit changes.
        type: str
        required: true
      reason:
        description: Why the edit is made. Returned as it is.
        type: str
        default: ""
      state:
        description:
          - With V(present), the edit stands in the source afterwards, by us or by upstream.
          - With V(absent), what this module wrote is taken back. What stood there before it is left alone.
        type: str
        choices: [present, absent]
        default: present
      on_conflict:
        description:
          - What to do when the place has another meaning already, for example the key with another value.
          - With V(fail), the module fails. With V(keep), what is there stays, and is reported.
          - If left out, O(on_conflict) of the module counts.
        type: str
        choices: [fail, keep]
      optional:
        description: Whether it is fine that the place does not exist, or that it is not clear which one is meant.
        type: bool
        default: false
      since:
        description: First version of the source that has the place. Only used in messages.
        type: str
        default: ""
      dict_entry:
        description: Give a dict literal one more entry. Exactly one of this and O(edits[].gate) is needed.
        type: dict
        suboptions:
          name:
            description:
              - Names that the dict literal is assigned to, any of them. A name may be qualified, C(Class.NAME).
              - The literal may stand at module level, in a class or in a function, but only once in all files.
            type: list
            elements: str
            required: true
          within:
            description:
              - Patterns relative to O(root), C(**) included, of the files to look into.
              - All Python files below O(root), if left out. Not used if O(root) is a file.
            type: list
            elements: str
            default: []
          key:
            description: The key, a Python expression, for example V(12) or V("'sm120'").
            type: str
            required: true
          value:
            description:
              - The value, a Python expression. Its names have to be defined in that file, on every way to the dict.
            type: str
          like:
            description: In place of O(edits[].dict_entry.value), the key of an entry whose value is copied.
            type: str
      gate:
        description: Give the C(or) of some terms one more term.
        type: dict
        suboptions:
          all_of:
            description:
              - The terms that mark the right C(or), in any order; there may be others.
              - With one term, a place where it is tested alone counts, and becomes an C(or). C(not term) does not
                count, since one more term there would turn the test around for others.
            type: list
            elements: str
            required: true
          within:
            description: As O(edits[].dict_entry.within).
            type: list
            elements: str
            default: []
          function:
            description: Functions that the gate stands in, any of them. May be qualified, C(Class.method).
            type: list
            elements: str
            default: []
          add:
            description: The new term.
            type: str
            required: true
          like:
            description:
              - The term that the new one is made like, the last of O(edits[].gate.all_of) if left out.
              - The two differ in one word, such as C(sm100) and C(sm120). What the file does to define and import this
                one is copied for the new one, with the word changed, or, where there is none, the number that a
                capability is compared with by C(==) or C(in). Where anything else may be about the old one, such as
                C(>= 10) or a string, the edit is refused.
              - What stands in for it where an import failed or there is no GPU, C(None), C(False) or a function that
                returns that, is copied as it is.
            type: str
extends_documentation_fragment:
  - llmfleet.sglang.attributes
  - llmfleet.sglang.attributes.actiongroup_sglang
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
    details:
      - One unified diff per file. Source code and edits are no secrets; put none into them.
  idempotent:
    support: full
    details:
      - A second run changes no byte and no modification time.
requirements:
  - A Python that parses the source, on the target. Set C(ansible_python_interpreter) to the source's own one.
notes:
  - Replaces files as Ansible's own file modules do. Mode, owner and SELinux context are kept; hard links are broken,
    so that a file shared with a cache stays as it is there.
  - Changes of a dict that would undo an edit are looked for in all files of O(edits[].dict_entry.within), not in
    others.
  - A link to a file inside O(root) is followed. One that leads out of it is refused, since others may share that file.
author:
  - llmfleet engineers (@llmfleet)
seealso:
  - module: llmfleet.sglang.capability_gates_info
"""

EXAMPLES = r"""
- name: Tell both all-reduce tables about compute capability 12
  llmfleet.sglang.python_source:
    root: /opt/sglang/releases/0123456789ab/src/python
    edits:
      - id: symm_mem_max_sizes
        on_conflict: keep
        dict_entry:
          name: [TORCH_SYMM_MEM_ALL_REDUCE_MAX_SIZES, SYMM_MEM_ALL_REDUCE_MAX_SIZES]
          within: ["sglang/srt/distributed/device_communicators/*.py"]
          key: "12"
          like: "10"
      - id: multimem_world_sizes
        on_conflict: keep
        dict_entry:
          name: [_WORLD_SIZES_MULTIMEM]
          within: ["sglang/srt/distributed/device_communicators/*.py"]
          key: "12"
          value: "[]"
  vars:
    ansible_python_interpreter: /opt/sglang/releases/0123456789ab/venv/bin/python

- name: Take the fusion gate's third term back
  llmfleet.sglang.python_source:
    root: /opt/sglang/releases/0123456789ab/src/python
    edits:
      - id: fusion_gate
        state: absent
        gate:
          all_of: [_is_sm90_supported, _is_sm100_supported]
          within: ["sglang/srt/layers/**/*.py"]
          function: [flashinfer_ar_fusion_applies, apply_flashinfer_allreduce_fusion]
          add: _is_sm120_supported
          like: _is_sm100_supported
"""

RETURN = r"""
edits:
  description: What was found for each edit, in the order given.
  returned: always, unless the edits themselves are wrong
  type: list
  elements: dict
  contains:
    id:
      description: Name of the edit.
      type: str
    state:
      description:
        - What was found, before anything was done.
        - V(absent) if it was not there; V(present) if we had put it there, maybe in an older form; V(upstream) if it
          was there before us, with the same meaning; V(conflict) if it was there with another meaning; V(not_found) if
          the place does not exist; V(ambiguous) if there are several.
      type: str
      sample: absent
    changed:
      description: Whether the source was changed for this edit.
      type: bool
    file:
      description: The file, relative to O(root), or null.
      type: str
      sample: sglang/srt/distributed/device_communicators/all_reduce_utils.py
    line:
      description: Line of the dict or gate in the file as it was found, or null.
      type: int
      sample: 3
    before:
      description: Text of the dict or gate as it was found.
      type: str
      sample: "(_is_sm90_supported or _is_sm100_supported)"
    after:
      description: Text of the dict or gate afterwards.
      type: str
    reason:
      description: Why the edit is made, as given.
      type: str
    message:
      description: Why it is in this state, where there is something to say.
      type: str
    candidates:
      description: All places that match, if there are several.
      type: list
      elements: str
files:
  description: The files that the edits concern.
  returned: always, unless the edits themselves are wrong
  type: list
  elements: dict
  contains:
    path:
      description: The file, relative to O(root).
      type: str
    before:
      description: SHA-256 of the file as it was found, 64 lower-case hex digits.
      type: str
    after:
      description: SHA-256 of the file afterwards.
      type: str
    original:
      description: SHA-256 of the file without any of our edits.
      type: str
    changed:
      description: Whether the file was changed.
      type: bool
    link:
      description: The link, relative to O(root), through which the file was found, or null.
      type: str
recovered:
  description: What was repaired or restored because an earlier run had been killed, one line each.
  returned: always, unless the edits themselves are wrong
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.llmfleet.sglang.plugins.module_utils._source.engine import run
from ansible_collections.llmfleet.sglang.plugins.module_utils._source.errors import SpecError
from ansible_collections.llmfleet.sglang.plugins.module_utils._source.spec import parse_edits

STATE = {"type": "str", "choices": ["present", "absent"], "default": "present"}
WITHIN = {"type": "list", "elements": "str", "default": []}
DICT_ENTRY = {
    "name": {"type": "list", "elements": "str", "required": True},
    "within": WITHIN,
    "key": {"type": "str", "required": True, "no_log": False},
    "value": {"type": "str"},
    "like": {"type": "str"},
}
GATE = {
    "all_of": {"type": "list", "elements": "str", "required": True},
    "within": WITHIN,
    "function": {"type": "list", "elements": "str", "default": []},
    "add": {"type": "str", "required": True},
    "like": {"type": "str"},
}
EDIT = {
    "id": {"type": "str", "required": True},
    "reason": {"type": "str", "default": ""},
    "state": STATE,
    "on_conflict": {"type": "str", "choices": ["fail", "keep"]},
    "optional": {"type": "bool", "default": False},
    "since": {"type": "str", "default": ""},
    "dict_entry": {
        "type": "dict",
        "options": DICT_ENTRY,
        "mutually_exclusive": [("value", "like")],
        "required_one_of": [("value", "like")],
    },
    "gate": {"type": "dict", "options": GATE},
}


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "root": {"type": "path", "required": True},
            "on_conflict": {"type": "str", "choices": ["fail", "keep"], "default": "fail"},
            "edits": {
                "type": "list",
                "elements": "dict",
                "required": True,
                "options": EDIT,
                "mutually_exclusive": [("dict_entry", "gate")],
                "required_one_of": [("dict_entry", "gate")],
            },
        },
        supports_check_mode=True,
    )
    try:
        edits = parse_edits(module.params["edits"], module.params["on_conflict"])
    except SpecError as exc:
        module.fail_json(msg=str(exc))
    result = run(module.params["root"], edits, module.check_mode).to_data()
    failed = result.pop("failed")
    if not module._diff:
        del result["diff"]
    if failed:
        module.fail_json(msg=f"{failed}; nothing was written", **result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
