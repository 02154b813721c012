# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Takes a checkpoint from another host that has it. PRIVATE to the collection: it can change at any time.

rsync brings the bytes; whose they are is of no account, since the manifest is compared with a digest that comes from
the controller, and every file with the manifest.
"""

from __future__ import annotations

import dataclasses
import os
import re
import socket
import time
import typing as t

from . import manifest as records
from . import place as placing
from .child import Room, Watch, run
from .errors import CheckpointError
from .fetch import complete
from .manifest import MANIFEST, Manifest, WantedFile
from .progress import Progress
from .serve import MODULE, USER

_REFUSED = "does not serve (yet)"
_SILENT = "does not answer"
_BUSY = "has no place free"
_PROBE = 3.0
# A host that does not answer is left alone for so long: asking it costs every round a time-out.
_REST = 30.0
# The name that rsync gives to a file while it comes.
_TEMPORARY = re.compile(r"\.(.+)\.[A-Za-z0-9]{6}")


@dataclasses.dataclass(frozen=True)
class Peers:
    """Where to ask: addresses in order, the port, the deployment's secret, and the manifest's digest.

    size: bytes of all files, as who has them or lists them says, 0 if that is not known; stall: seconds without a byte
    after which a peer is given up; patience: seconds in which no peer has anything for this host, neither bytes nor a
    queue; pause: seconds between two rounds of asking.
    """

    addresses: tuple[str, ...]
    port: int
    secret: str
    manifest_digest: str
    size: int = 0
    stall: float = 60.0
    patience: float = 600.0
    pause: float = 1.0
    rsync: str = "rsync"


@dataclasses.dataclass
class PeerFetch:
    """One revision on its way from the peers into `folder`; `home` is private to this run."""

    peers: Peers
    repository: str
    revision: str
    folder: str
    home: str
    log: str
    progress: Progress
    room: Room
    served_by: list[str] = dataclasses.field(default_factory=list)
    _paths: set[str] = dataclasses.field(default_factory=set)
    _said: dict[str, str] = dataclasses.field(default_factory=dict)
    _asked: dict[str, float] = dataclasses.field(default_factory=dict)

    def manifest(self) -> tuple[WantedFile, ...]:
        """The revision's files as the seed's manifest has them. Raises CheckpointError."""
        if not self.peers.manifest_digest:
            raise CheckpointError(
                f"No host of this site has {self.repository} at {self.revision}: fetching it from the Hub failed."
            )
        target = os.path.join(self.home, MANIFEST)

        def here() -> bool:
            found = records.load_manifest(self.home, self.repository, self.revision)
            return found is not None and found.digest == self.peers.manifest_digest

        self._take(lambda: [MANIFEST], self.home, here, 0)
        found = t.cast(Manifest, records.load_manifest(self.home, self.repository, self.revision))
        os.unlink(target)
        self._paths = {file.path for file in found.files}
        return found.files

    def all(self, files: t.Sequence[WantedFile]) -> None:
        """Takes what is missing of all files; files that are complete stay. Raises CheckpointError."""
        total = sum(file.size for file in files)
        self._take(
            lambda: [file.path for file in files if complete(self.folder, [file]) == 0],
            self.folder,
            lambda: complete(self.folder, files) == len(files),
            total,
        )

    def again(self, files: t.Sequence[WantedFile]) -> None:
        """Takes these files, and no other, afresh. Raises CheckpointError."""
        for file in files:
            placing.remove_any(os.path.join(self.folder, file.path))
        # whoever gave the wrong bytes is asked last
        for address in self.served_by:
            self._said[address] = "gave wrong bytes"
        self.all(files)

    def clear_halves(self) -> None:
        """Removes half files that a killed rsync left: those that are named after a file of the manifest."""
        for base, _folders, names in os.walk(self.folder):
            inside = os.path.relpath(base, self.folder)
            for name in names:
                half = _TEMPORARY.fullmatch(name)
                path = os.path.normpath(os.path.join(inside, name))
                whole = os.path.normpath(os.path.join(inside, half.group(1))) if half else ""
                if whole in self._paths and path not in self._paths:
                    os.unlink(os.path.join(base, name))

    def _take(self, wanted: t.Callable[[], list[str]], folder: str, done: t.Callable[[], bool], total: int) -> None:
        """Asks the peers in turn until `done`; what one brought before it died stays."""
        sign = time.monotonic()
        while not done():
            for address in self._order():
                before = placing.held_bytes(folder)
                self._said[address] = self._ask(address, wanted(), folder, total)
                self._asked[address] = time.monotonic()
                if done():
                    return
                if self._said[address] == _BUSY or placing.held_bytes(folder) > before:
                    sign = time.monotonic()
            if time.monotonic() - sign > self.peers.patience:
                raise CheckpointError(self._nobody())
            time.sleep(self.peers.pause)

    def _order(self) -> list[str]:
        """The peers to ask now: in the order given, those in trouble last, the silent ones not at all for a while."""
        now = time.monotonic()
        fine = ("", _BUSY, _REFUSED)
        asked = [
            one
            for one in self.peers.addresses
            if self._said.get(one) != _SILENT or now - self._asked.get(one, -_REST) >= _REST
        ]
        return sorted(asked, key=lambda one: self._said.get(one, "") not in fine)

    def _ask(self, address: str, wanted: list[str], folder: str, total: int) -> str:
        """Takes what it can from one peer; returns an empty text, or why it ended."""
        try:
            with socket.create_connection((address, self.peers.port), timeout=_PROBE):
                pass
        except (ConnectionRefusedError, ConnectionResetError):
            return _REFUSED
        except OSError:
            return _SILENT
        secret, listing = os.path.join(self.home, "secret"), os.path.join(self.home, "wanted")
        self._write(secret, self.peers.secret + "\n")
        self._write(listing, "".join(f"{path}\0" for path in wanted))
        try:
            watch = Watch(lambda: (placing.held_bytes(folder), 0), self.peers.stall, self._tell, self.room, total)
            environment = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": self.home, "LC_ALL": "C"}
            status, how = run(self._arguments(address, secret, listing, folder), environment, "/", self.log, watch)
        except OSError as error:
            raise CheckpointError(f"{self.peers.rsync} cannot be run ({error.strerror}): install rsync.") from error
        finally:
            placing.remove_any(secret)
            placing.remove_any(listing)
        self.clear_halves()
        if how == "stalled":
            return f"sent no byte for {self.peers.stall:g} seconds"
        if status == 0:
            self.served_by.append(address)
            return ""
        with open(self.log, encoding="utf-8", errors="replace") as log:
            text = " ".join(log.read()[-800:].split())
        return _BUSY if "max connections" in text else f"rsync ended with {status}: {text}"

    def _tell(self, count: int) -> None:
        self.progress.at(count)

    def _arguments(self, address: str, secret: str, listing: str, folder: str) -> list[str]:
        host = f"[{address}]" if ":" in address else address
        options = ["--times", "--size-only", "--whole-file", "--no-motd", "--from0", f"--files-from={listing}"]
        options += [f"--password-file={secret}", f"--timeout={max(1, int(self.peers.stall))}"]
        return [
            self.peers.rsync,
            *options,
            f"rsync://{USER}@{host}:{self.peers.port}/{MODULE}/",
            f"{folder}/",
        ]

    def _write(self, path: str, text: str) -> None:
        placing.remove_any(path)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as stream:
            stream.write(text)

    def _nobody(self) -> str:
        said = "; ".join(f"{one} {self._said.get(one) or 'was asked'}" for one in self.peers.addresses)
        return (
            f"No host of this site gave {self.repository} at {self.revision} within {self.peers.patience:g} seconds, "
            f"asked on port {self.peers.port}: {said or 'there is none to ask'}. Open the port between the hosts, or "
            "set sglang_checkpoint_driver to hub, so that each host downloads for itself. What is complete is kept: "
            "run again to go on."
        )
