#!/usr/bin/python
# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the files that a Python, or a service, really imports."""

from __future__ import annotations

DOCUMENTATION = r"""
module: python_import_info
short_description: Find the files that a Python, or a service, really imports
version_added: 0.1.0
description:
  - Asks a Python where it finds a package. The package itself is not run.
  - For a service, its live processes are looked at first, also those below a shell that it starts, with the folder
    that they run in and those of their environment variables that decide on imports; what its unit says counts only if
    none of them is a Python.
  - Where a folder of the package's name, such as a checkout, stands in the way of an editable installation, the
    package's modules are looked up one by one. If all of them come from the installation, that one counts.
options:
  package:
    description: The package.
    type: str
    default: sglang
  python:
    description: The Python. Exactly one of this and O(service) is needed.
    type: path
  service:
    description: Name of the systemd unit. Looking at another user's process needs root.
    type: str
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
author:
  - llmfleet engineers (@llmfleet)
seealso:
  - module: llmfleet.sglang.python_source
"""

EXAMPLES = r"""
- name: Find the SGLang that the old service serves with
  llmfleet.sglang.python_import_info:
    service: sglang-kimi
  become: true
  register: found
"""

RETURN = r"""
python:
  description: The Python.
  returned: success
  type: str
  sample: /opt/venv/bin/python
python_version:
  description: Its version.
  returned: success
  type: str
  sample: 3.11.2
origin:
  description: The file that importing the package reads first.
  returned: success
  type: str
  sample: /opt/venv/lib/python3.11/site-packages/sglang/__init__.py
root:
  description: The folder that holds the package, for O(llmfleet.sglang.python_source#module:root).
  returned: success
  type: str
  sample: /opt/venv/lib/python3.11/site-packages
pid:
  description: The process of the service that was looked at, 0 if none.
  returned: success
  type: int
"""

from dataclasses import asdict

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.llmfleet.sglang.plugins.module_utils._source.errors import SourceError
from ansible_collections.llmfleet.sglang.plugins.module_utils._source.importing import Runner, imported, of_service


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "package": {"type": "str", "default": "sglang"},
            "python": {"type": "path"},
            "service": {"type": "str"},
        },
        mutually_exclusive=[("python", "service")],
        required_one_of=[("python", "service")],
        supports_check_mode=True,
    )
    options = module.params
    try:
        package = options["package"]
        runner = of_service(options["service"], package=package) if options["service"] else Runner(options["python"])
        found = imported(runner, package)
    except SourceError as exc:
        module.fail_json(msg=str(exc))
    module.exit_json(changed=False, **asdict(found))


if __name__ == "__main__":
    main()
