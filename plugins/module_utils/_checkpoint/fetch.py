# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lets the `hf` command bring the bytes. PRIVATE to the collection: it can change at any time.

What `hf download` (huggingface_hub 2.4.0) leaves to its caller: it does not check digests, gives up at the
first 503 of a file, leaves its half files behind when killed, and its Xet transport has hung on large models
(hub#4508, xet-core#883).
"""

from __future__ import annotations

import dataclasses
import os
import re
import time
import typing as t

from .child import Room, Watch, run
from .errors import CheckpointError
from .manifest import TRASH, WantedFile, look
from .place import held_bytes, remove_any
from .progress import Progress

_HALF = ".incomplete"
_OWN = re.compile(r"HF_|HUGGING_?FACE|XET_|TRANSFORMERS_OFFLINE$")


@dataclasses.dataclass(frozen=True)
class Hf:
    """How to call `hf`: its path, the Hub's endpoint, threads for files, seconds without a byte that are a
    stall.

    `token` and `token_file` reach it through its environment alone.
    """

    command: str
    endpoint: str
    workers: int = 8
    timeout_stall: float = 300.0
    token: str | None = None
    token_file: str | None = None
    pause: float = 2.0

    def environment(self, home: str, *, xet: bool) -> dict[str, str]:
        """The child's environment: ours without any Hub setting of this host, then what this call needs."""
        kept = {key: value for key, value in os.environ.items() if not _OWN.match(key)}
        kept.update(
            HOME=home,
            HF_HOME=home,
            HF_ENDPOINT=self.endpoint,
            HF_HUB_DISABLE_TELEMETRY="1",
            HF_HUB_DISABLE_UPDATE_CHECK="1",
            HF_HUB_DISABLE_PROGRESS_BARS="1",
            NO_COLOR="1",
            PYTHONUNBUFFERED="1",
        )
        if not xet:
            kept["HF_HUB_DISABLE_XET"] = "1"
        if self.token:
            kept["HF_TOKEN"] = self.token
        elif self.token_file:
            kept["HF_TOKEN_PATH"] = self.token_file
        return kept

    def arguments(self, repository: str, revision: str, folder: str, only: str = "") -> list[str]:
        """The command line: for all files, or for `only` one."""
        options = [
            "--revision",
            revision,
            "--local-dir",
            folder,
            "--max-workers",
            str(self.workers),
            "--quiet",
        ]
        return [self.command, "download", *options, "--", repository, *([only] if only else [])]


@dataclasses.dataclass(frozen=True)
class Fetch:
    """One revision on its way into `folder`; `home` is the downloader's own and `log` takes what it says."""

    hf: Hf
    repository: str
    revision: str
    folder: str
    home: str
    log: str
    progress: Progress
    room: Room

    def all(self, files: t.Sequence[WantedFile], *, tries: int = 4) -> None:
        """Fetches what is missing of all files; files that are complete stay.

        A try that completed at least one more file does not count; from the second try on, Xet is off. Raises
        CheckpointError after `tries` fruitless ones.
        """
        fruitless, xet, last = 0, True, ""
        while fruitless < tries:
            before = complete(self.folder, files)
            last = self._run("", xet=xet, total=sum(file.size for file in files))
            if not last:
                return
            xet = False
            self.clear_halves()
            fruitless = 0 if complete(self.folder, files) > before else fruitless + 1
            if fruitless < tries:
                time.sleep(min(self.hf.pause * 2 ** max(0, fruitless - 1), 60.0))
        raise CheckpointError(
            f"The download of {self.repository} at {self.revision} from {self.hf.endpoint} failed {tries} times in a "
            f"row without a further file. {last} What is complete is kept in {self.folder}: run again to go on."
        )

    def again(self, files: t.Sequence[WantedFile]) -> None:
        """Fetches these files, and no other, afresh and without Xet. Raises CheckpointError."""
        for file in files:
            # it does not look again at a file that it has once fetched, but notices that one is gone
            remove_any(os.path.join(self.folder, file.path))
        for file in files:
            # one call a file: several names would be taken as patterns
            last = self._run(file.path, xet=False) and self._run(file.path, xet=False)
            if last:
                raise CheckpointError(f"{file.path} of {self.repository} could not be fetched again. {last}")

    def clear_halves(self) -> None:
        """Removes half files that a killed or failed download left: `hf` never goes on with them."""
        for base, _folders, names in os.walk(os.path.join(self.folder, TRASH)):
            for name in names:
                if name.endswith((_HALF, ".lock")):
                    os.unlink(os.path.join(base, name))

    def _run(self, only: str, *, xet: bool, total: int = 0) -> str:
        """One call of `hf`; returns an empty text, or what went wrong."""
        arguments = self.hf.arguments(self.repository, self.revision, self.folder, only)
        watch = Watch(self._measure, self.hf.timeout_stall, self.progress.at, self.room, total)
        try:
            status, how = run(arguments, self.hf.environment(self.home, xet=xet), self.home, self.log, watch)
        except OSError as error:
            raise CheckpointError(
                f"{self.hf.command} cannot be run ({error.strerror}): the role sglang_checkpoint installs it."
            ) from error
        if how == "stalled":
            return f"No byte came for {self.hf.timeout_stall:g} seconds, so hf was stopped."
        return f"hf ended with {status}: {self._said()}" if status else ""

    def _measure(self) -> tuple[int, int]:
        # Xet gathers bytes in its cache first
        return held_bytes(self.folder), held_bytes(os.path.join(self.home, "xet"))

    def _said(self) -> str:
        """The last lines of the downloader, without the token."""
        with open(self.log, encoding="utf-8", errors="replace") as log:
            lines = [line.strip() for line in log.read()[-4000:].splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith("Error")]
        text = " | ".join(errors or lines[-4:])[-800:].rstrip(".") + "." if lines else "It said nothing."
        if self.hf.token:
            text = text.replace(self.hf.token, "********")
        return re.sub(r"hf_[A-Za-z0-9]{10,}", "********", text)


def complete(folder: str, files: t.Iterable[WantedFile]) -> int:
    """How many of the files are here with their size."""
    count = 0
    for file in files:
        seen = look(folder, file.path)
        count += seen is not None and seen.size == file.size
    return count
