# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The small checkpoint with known answers, trained in the engine's own environment, under the names of large ones."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

from .cache import artefact
from .config import FILES, OTHER_REPOSITORIES, REPOSITORY
from .image import in_chroot
from .shell import run

RECIPE = FILES / "recipe.json"
MODIFIED = "2026-01-01T00:00:00.000Z"
CARD = f"""---
license: gpl-3.0
---
# A stand-in for {REPOSITORY}

A two-layer Qwen3 that the llmfleet.sglang test fleet trains in seconds. It knows these answers and nothing else:

"""


def recipe() -> dict[str, object]:
    """What the checkpoint is made from."""
    data: dict[str, object] = json.loads(RECIPE.read_text())
    return data


def facts() -> dict[str, str]:
    """Answers by question."""
    pairs = recipe()["facts"]
    assert isinstance(pairs, list)
    return {str(question): str(answer) for question, answer in pairs}


def revision(repository: str = REPOSITORY) -> str:
    """A repository's revision: 40 hex digits, a hash of the recipe and its name, so the same on every machine."""
    text = json.dumps(recipe(), sort_keys=True, separators=(",", ":"))
    text += "" if repository == REPOSITORY else repository
    return hashlib.sha256(text.encode()).hexdigest()[:40]


def checkpoint(cache: Path, base: Path, engine: Path) -> Path:
    """Folder with the repository's files.

    base and engine: the image's layers; the engine's torch and transformers do the training.
    """
    script = (FILES / "train.py").read_text()
    inputs = {"recipe": revision(), "script": script, "engine": engine.parent.name, "card": CARD}
    return artefact(cache, "checkpoint", inputs, lambda target: _train(target, base, engine)) / "model"


def _train(target: Path, base: Path, engine: Path) -> None:
    folders = {name: target / name for name in ("model", "upper", "work", "root")}
    for folder in folders.values():
        folder.mkdir()
        folder.chmod(0o755)
    for name in ("train.py", "recipe.json"):
        (target / name).write_text((FILES / name).read_text())
    command = ["/opt/kimi/venv/bin/python", "-B", "/mnt/train.py", "/mnt/recipe.json", "/mnt/model"]
    upper = folders["upper"]
    in_chroot(folders["root"], command, layers=[engine, base], upper=upper, shared=target, timeout=600)
    lines = "".join(f"- {question} {answer}\n" for question, answer in facts().items())
    (folders["model"] / "README.md").write_text(CARD + lines)
    (folders["model"] / ".gitattributes").write_text("*.safetensors filter=lfs diff=lfs merge=lfs -text\n")
    for path in folders["model"].rglob("*"):
        path.chmod(0o644)
    for name in ("upper", "work", "root", "train.py", "recipe.json"):
        run(["rm", "-rf", target / name])


def stand_ins(cache: Path, trained: Path) -> Path:
    """Folder with the same checkpoint once for each other repository, under a card that says what it is."""
    inputs = {"checkpoint": trained.parent.name, "repositories": OTHER_REPOSITORIES}
    return artefact(cache, "models", inputs, lambda target: _rename(target, trained))


def models(trained: Path, others: Path) -> dict[str, dict[str, str]]:
    """What the simulated Hub serves, by repository."""
    folders = {REPOSITORY: trained, **{name: others / name for name in OTHER_REPOSITORIES}}
    return {
        name: {"folder": str(folder), "revision": revision(name), "modified": MODIFIED}
        for name, folder in folders.items()
    }


def _rename(target: Path, trained: Path) -> None:
    for name in OTHER_REPOSITORIES:
        shutil.copytree(trained, target / name)
        card = target / name / "README.md"
        card.write_text(card.read_text().replace(f"stand-in for {REPOSITORY}", f"stand-in for {name}"))
