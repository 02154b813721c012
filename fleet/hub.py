# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A simulated Hub: the part of Hugging Face's HTTP interface that `hf download` asks, and its CDN.

Simulated means: the protocol is followed, the content is the fleet's own small checkpoint. Weights
(*.safetensors) are "lfs" files, redirected to another origin as on the real Hub.
"""

from __future__ import annotations

import functools
import hashlib
import re
from http import HTTPStatus
from pathlib import Path
from urllib.parse import quote

from .config import CDN_URL
from .web import Handler

SIMULATED = "llmfleet-simulated-hub/0.1"
MODEL_PATH = re.compile(
    r"^/api/models/(?P<repo>[^/]+/[^/]+)(?:/(?P<verb>revision|tree|refs)(?:/(?P<rev>[^/]+))?)?(?:/(?P<sub>.*))?$"
)
FILE_PATH = re.compile(r"^/(?P<repo>[^/]+/[^/]+)/resolve/(?P<rev>[^/]+)/(?P<file>.+)$")


def is_large(name: str) -> bool:
    """Whether a file is kept as an lfs object."""
    return name.endswith(".safetensors")


def files_of(folder: Path) -> list[str]:
    """Names of a repository's files, relative, sorted."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def git_blob(content: bytes) -> str:
    """A git blob's object id."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def lfs_pointer(sha256: str, size: int) -> bytes:
    """The text that stands in git for an lfs object."""
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {size}\n".encode()


@functools.lru_cache(maxsize=256)
def _tree_entry(path: Path, name: str, modified: int) -> dict[str, object]:
    content = path.read_bytes()
    if not is_large(name):
        return {"type": "file", "oid": git_blob(content), "size": len(content), "path": name}
    sha256 = hashlib.sha256(content).hexdigest()
    pointer = lfs_pointer(sha256, len(content))
    lfs = {"oid": sha256, "size": len(content), "pointerSize": len(pointer)}
    return {"type": "file", "oid": git_blob(pointer), "size": len(content), "path": name, "lfs": lfs}


def tree_entry(folder: Path, name: str) -> dict[str, object]:
    """One line of the tree listing: type, oid, size, path and, for weights, lfs."""
    path = folder / name
    return _tree_entry(path, name, path.stat().st_mtime_ns)


def etag_of(entry: dict[str, object]) -> str:
    """The ETag that the Hub gives a file: the sha256 of an lfs object, the blob id of any other."""
    lfs = entry.get("lfs")
    return f'"{lfs["oid"] if isinstance(lfs, dict) else entry["oid"]}"'


class HubHandler(Handler):
    """The Hub's own origin."""

    server_version = SIMULATED

    def respond(self) -> None:
        """Answer a request for a model's description, listing or file."""
        if match := MODEL_PATH.match(self.url_path):
            self._model(match["repo"], match["verb"], match["rev"])
        elif match := FILE_PATH.match(self.url_path):
            self._file(match["repo"], match["rev"], match["file"])
        else:
            self.send_text(HTTPStatus.NOT_FOUND, "not something that this simulated Hub knows\n")

    def _refuse(self, status: int, code: str, message: str) -> None:
        self.send_text(status, f"{message}\n", {"X-Error-Code": code, "X-Error-Message": message})

    def _revision(self, repo: str, revision: str | None) -> dict[str, str] | None:
        """The model's settings, if the repository and its revision exist; else the error is sent."""
        model = self.server.settings.load().models.get(repo)
        if model is None:
            # As the real Hub does without a token: it does not tell missing from private.
            self._refuse(HTTPStatus.UNAUTHORIZED, "RepoNotFound", "Repository not found")
            return None
        if revision not in (None, "main", model["revision"]):
            self._refuse(HTTPStatus.NOT_FOUND, "RevisionNotFound", f"Invalid rev id: {revision}")
            return None
        return model

    def _model(self, repo: str, verb: str | None, revision: str | None) -> None:
        model = self._revision(repo, revision)
        if model is None:
            return
        folder = Path(model["folder"])
        if verb == "tree":
            self.send_json([tree_entry(folder, name) for name in files_of(folder)])
        elif verb == "refs":
            main = {"name": "main", "ref": "refs/heads/main", "targetCommit": model["revision"]}
            self.send_json({"branches": [main], "tags": [], "converts": []})
        else:
            siblings = [{"rfilename": name} for name in files_of(folder)]
            about = {"id": repo, "modelId": repo, "sha": model["revision"], "lastModified": model["modified"]}
            self.send_json({**about, "private": False, "gated": False, "tags": ["simulated"], "siblings": siblings})

    def _file(self, repo: str, revision: str, name: str) -> None:
        model = self._revision(repo, revision)
        if model is None:
            return
        folder = Path(model["folder"])
        if name not in files_of(folder):
            self._refuse(HTTPStatus.NOT_FOUND, "EntryNotFound", f"Entry not found: {name}")
            return
        entry = tree_entry(folder, name)
        headers = {"X-Repo-Commit": model["revision"]}
        if "lfs" in entry:
            headers |= {"X-Linked-Etag": etag_of(entry), "X-Linked-Size": str(entry["size"])}
            headers["Location"] = f"{CDN_URL}/{quote(repo)}/{quote(name)}"
            self.send_text(HTTPStatus.FOUND, "", headers)
            return
        self.send_file(folder / name, headers, etag_of(entry), flip=self._wrong(repo, name))

    def _wrong(self, repo: str, name: str) -> bool:
        return f"{repo}/{name}" in self.server.settings.faults().get("wrong_bytes", [])


class CdnHandler(HubHandler):
    """The origin that large files are redirected to."""

    server_version = "llmfleet-simulated-hub-cdn/0.1"

    def respond(self) -> None:
        """Answer with a large file."""
        owner, _slash, rest = self.url_path.lstrip("/").partition("/")
        repo, _slash, name = rest.partition("/")
        repo = f"{owner}/{repo}"
        model = self.server.settings.load().models.get(repo)
        if model is None or not is_large(name) or name not in files_of(Path(model["folder"])):
            self.send_text(HTTPStatus.NOT_FOUND, "no such object\n")
            return
        folder = Path(model["folder"])
        self.send_file(folder / name, {}, etag_of(tree_entry(folder, name)), flip=self._wrong(repo, name))
