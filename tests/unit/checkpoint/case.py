# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the tests of the whole way share: one host's folders, and calls of `ensure` on them."""

from __future__ import annotations

import dataclasses
import os
import typing as t
from pathlib import Path

from ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint.ensure import Outcome, Request, ensure
from ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint.fetch import Hf
from ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint.hub import Hub
from ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint.place import Place

from tests.unit.checkpoint.hub_server import REPOSITORY, REVISION, HubServer


@dataclasses.dataclass
class Case:
    """A host with its folders below `root`."""

    root: Path
    hub: HubServer
    hf: Path

    @property
    def path(self) -> Path:
        return self.root / "models" / "qwen"

    @property
    def place(self) -> Place:
        return Place(str(self.path), str(self.path.parent / ".checkpoints"), REPOSITORY, REVISION)

    @property
    def target(self) -> Path:
        return Path(self.place.target)

    def request(self, *, revision: str = REVISION, stall: float = 60.0, **changes: t.Any) -> Request:
        """A request of the small model, with short pauses."""
        request = Request(
            place=dataclasses.replace(self.place, revision=revision),
            hub=Hub(self.hub.url, tries=3, sleep=lambda seconds: None),
            hf=Hf(str(self.hf), self.hub.url, timeout_stall=stall, pause=0.05),
            reserve=0,
        )
        return dataclasses.replace(request, **changes)

    def ensure(self, *, check: bool = False, **changes: t.Any) -> Outcome:
        """One run."""
        return ensure(self.request(**changes), check=check)

    def deploy(self) -> Outcome:
        """The state after a deployment, made quickly: the files are put in their place and verified there."""
        for name, content in self.hub.files.items():
            path = self.target / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return self.ensure()

    def everything(self) -> dict[str, tuple[int, int, int]]:
        """Mode, mtime and inode of all that lies below the root: for "nothing was changed"."""
        found = {}
        for base, folders, names in os.walk(self.root):
            for name in [*folders, *names]:
                status = os.lstat(os.path.join(base, name))
                found[os.path.join(base, name)] = (status.st_mode, status.st_mtime_ns, status.st_ino)
        return found

    def served(self) -> dict[str, bytes]:
        """What an engine finds behind the link, our own records left out."""
        files = [path for path in sorted(self.path.rglob("*")) if path.is_file()]
        content = {str(path.relative_to(self.path)): path.read_bytes() for path in files}
        return {name: data for name, data in content.items() if not name.startswith(".llmfleet-")}
