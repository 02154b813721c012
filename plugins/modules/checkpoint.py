#!/usr/bin/python
# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: checkpoint
short_description: Bring a Hugging Face checkpoint to a host, complete and verified
version_added: 0.1.0
description:
  - Makes sure that a checkpoint lies on the host at one pinned revision, every file of it with the size
    and the digest that the Hub names, and that O(path) is a link to it.
  - The C(hf) command fetches into a staging folder, every file is read and compared, then the folder is
    renamed and the link is flipped. Until then nothing that is served has changed. A file that is wrong is
    fetched again alone, once. Other revisions and other files are never touched.
  - A manifest and a stamp are kept with the files. While size, modification time and inode of every file
    are as they were when it was verified, a further run reads none of them and asks nothing of the network.
  - A copy that is complete on the host is used even if the Hub cannot be reached.
  - The checkpoint's own configuration is compared with O(expects) and O(launch_arguments) before anything large
    is fetched and before the link is flipped. One that is quantized in another way, of another architecture, or of
    sizes that the cards cannot share is refused.
  - With O(source=peers) the files come from other hosts that have them, and with O(serve) this host gives them to
    others in turn.
author:
  - llmfleet engineers (@llmfleet)
requirements:
  - On the host, Python 3.9 or newer, and the C(hf) command of huggingface_hub.
extends_documentation_fragment:
  - llmfleet.sglang.attributes
  - llmfleet.sglang.attributes.actiongroup_sglang
  - llmfleet.sglang.fanout
attributes:
  check_mode:
    support: full
    details:
      - Asks the Hub for the list of files if there is no manifest yet. If it cannot be reached, that is a
        warning, and a change is predicted. With O(source=peers) it is not asked.
      - Compares sizes and reads no contents, so damage that keeps the size is not foreseen.
  diff_mode:
    support: partial
    details:
      - Shows where the link points, before and after, and the files that are fetched with their sizes.
  idempotent:
    support: full
    details:
      - Reading the files again, by O(verify=full) or because the stamp no longer fits, is no change.
options:
  repository:
    description: The repository on the Hub, as V(owner/name).
    type: str
    required: true
  revision:
    description:
      - The revision to have, as the 40 lower-case hex digits of a commit.
      - Branches and tags are refused, since they move.
    type: str
    required: true
  endpoint:
    description: Where the Hub or its mirror answers.
    type: str
    default: https://huggingface.co
  path:
    description:
      - The link that the engine is given as its model path.
      - If anything other than a link lies there, the module refuses.
    type: path
    required: true
  store:
    description:
      - The folder in which revisions are kept side by side, each as C(<owner--name>/<revision>).
      - Without it, C(.checkpoints) beside O(path).
    type: path
  source:
    description:
      - V(hub) fetches what is missing from O(endpoint), V(peers) from the hosts in O(peers).
      - V(here) fetches nothing. What lies in its place is read, unless the stamp vouches for it, and has to be right.
    type: str
    choices: [hub, peers, here]
    default: hub
  optional:
    description: With O(source=here), says in RV(complete) whether all of it is here and right, instead of failing. What
      changed since it was verified, or never was, is read if every file is there with its size.
    type: bool
    default: false
  expects:
    description:
      - What the checkpoint's C(config.json) and C(hf_quant_config.json) have to say, each of V(architecture),
        V(quant_method) (V(none) if not quantized), V(quant_algo), V(weight_bits), V(dtype), V(vision), V(mtp) and
        V(sizes) (a map). A list allows any of its values; what is left out may be anything.
    type: dict
    default: {}
  launch_arguments:
    description: The engine's launch arguments, of which those that say how many cards share the model and how it is
      quantized are compared.
    type: dict
    default: {}
  io_class:
    description: The I/O scheduling class of the work on this host. V(none) leaves it as it is.
    type: str
    choices: [idle, best-effort, none]
    default: none
  hf:
    description: The C(hf) command on the host. Needed with O(source=hub).
    type: path
  workers:
    description: Files that C(hf) fetches at the same time.
    type: int
    default: 8
  threads:
    description: Files that are read at the same time when verifying. V(0) means one for each core, at most
      16.
    type: int
    default: 0
  token:
    description:
      - A token of the Hub, for repositories that are private or gated.
      - It reaches C(hf) through the environment and is written nowhere.
    type: str
  token_file:
    description: A file on the host that holds such a token.
    type: path
  timeout_stall:
    description: Seconds without a further byte after which C(hf) is stopped and started again without Xet.
    type: int
    default: 300
  reserve:
    description: Bytes that have to stay free on the file system of O(store).
    type: int
    default: 1073741824
  owner:
    description:
      - The user who shall own files and folders; the service's own user should not, so that it can read
        and not write.
      - Without it, the user who runs the module owns what is new, and the rest stays as it is.
    type: str
  group:
    description: The group that shall own files and folders.
    type: str
  verify:
    description: V(stamp) reads only what changed since it was verified, V(full) reads every file again.
    type: str
    choices: [stamp, full]
    default: stamp
  environment:
    description:
      - Environment for the download, such as a proxy. It may hold secrets and is never logged.
      - A task's own C(environment) would stand in the command line of the remote shell.
    type: dict
    default: {}
  progress_file:
    description:
      - A file that, during the work, says how far it is (phase, bytes done, bytes in all, rate, seconds
        left), as JSON. It is removed in the end.
      - Without it, one of a name that nobody can guess, which is read and printed while the task runs.
    type: path
"""

EXAMPLES = r"""
- name: Have the checkpoint
  llmfleet.sglang.checkpoint:
    repository: nvidia/Qwen3.5-397B-A17B-NVFP4
    revision: "{{ pinned_revision }}"
    path: /models/qwen3_5_397b_nvfp4
    hf: /opt/sglang/tools/hf-2.4.0/bin/hf
    owner: root
    group: root
  become: true

- name: Take it from another host, and give it to others
  llmfleet.sglang.checkpoint:
    repository: nvidia/Qwen3.5-397B-A17B-NVFP4
    revision: "{{ pinned_revision }}"
    path: /models/qwen3_5_397b_nvfp4
    source: peers
    peers:
      addresses: [192.0.2.11]
      port: 8730
      secret: "{{ secret_of_this_deployment }}"
      manifest_digest: "{{ hostvars['gpu01'].fetched.manifest_digest }}"
    serve:
      address: 192.0.2.12
      port: 8730
      peers: [192.0.2.13]
      secret: "{{ secret_of_this_deployment }}"
  become: true

- name: Read every file again, for instance after a disk fault
  llmfleet.sglang.checkpoint:
    repository: nvidia/Qwen3.5-397B-A17B-NVFP4
    revision: "{{ pinned_revision }}"
    path: /models/qwen3_5_397b_nvfp4
    hf: /opt/sglang/tools/hf-2.4.0/bin/hf
    verify: full
  become: true
"""

RETURN = r"""
path:
  description: The link.
  returned: success
  type: str
target:
  description: The folder that the link points to.
  returned: success
  type: str
repository:
  description: The repository.
  returned: success
  type: str
revision:
  description: The revision.
  returned: success
  type: str
files:
  description: Number of files of the revision; V(0) if check mode could not learn it.
  returned: success
  type: int
bytes:
  description: Bytes of these files.
  returned: success
  type: int
bytes_downloaded:
  description: Bytes of the files that were fetched by this run.
  returned: success
  type: int
bytes_hashed:
  description: Bytes that were read and compared by this run.
  returned: success
  type: int
verified_at:
  description: When the files were last read and found right (UTC, ISO 8601); empty if they have not been
    yet.
  returned: success
  type: str
  sample: "2026-11-30T03:12:00Z"
manifest_digest:
  description: SHA-256 of the manifest, the same on every host; empty if there is none yet.
  returned: success
  type: str
fetched_again:
  description: The files that were wrong and were fetched again.
  returned: success
  type: list
  elements: dict
  contains: &problem
    file:
      description: Path in the checkpoint.
      type: str
    expected:
      description: What the revision says.
      type: str
    got:
      description: What was found.
      type: str
to_download:
  description: In check mode, the files that would be fetched, each with its size in bytes.
  returned: success
  type: list
  elements: dict
  contains:
    file:
      description: Path in the checkpoint.
      type: str
    size:
      description: Size in bytes.
      type: int
complete:
  description: Whether every file is here, right and in place. In check mode, whether that is so already.
  returned: success
  type: bool
taken_from:
  description: The hosts that gave files, with O(source=peers).
  returned: success
  type: list
  elements: str
message:
  description: What was found and done, in a sentence.
  returned: success
  type: str
  sample: unchanged since verified on 2026-11-30T03:12:00Z
problems:
  description: The files that are wrong.
  returned: failure
  type: list
  elements: dict
  contains: *problem
"""

import os

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint.arguments import (
    ARGUMENTS,
    build_request,
    report,
)
from ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint.ensure import ensure
from ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint.errors import CheckpointError
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.priority import reading_gives_way


def main() -> None:
    module = AnsibleModule(
        argument_spec=ARGUMENTS,
        mutually_exclusive=[("token", "token_file")],
        required_if=[("source", "hub", ["hf"]), ("source", "peers", ["peers"])],
        supports_check_mode=True,
    )
    # urllib reads proxies here, and hf inherits them.
    os.environ.update({name: str(value) for name, value in module.params["environment"].items()})
    try:
        reading_gives_way(module.params["io_class"])
        request = build_request(module.params, module.check_mode)
        outcome = ensure(request, check=module.check_mode)
    except CheckpointError as error:
        module.fail_json(msg=str(error), problems=error.problems)
    except OSError as error:
        module.fail_json(msg=f"The checkpoint could not be put in place: {error}", problems=[])
    for warning in outcome.warnings:
        module.warn(warning)
    module.exit_json(**report(request, outcome))


if __name__ == "__main__":
    main()
