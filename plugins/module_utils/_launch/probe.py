# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ask the built engine itself which launch arguments it takes. Private to the collection.

`SCRIPT` runs in the release's own interpreter: it has the engine build its parser, as `launch_server` does, and puts
each argument to it. One process, for the import takes seconds. No model is loaded.
"""

from __future__ import annotations

# pylint: disable=ansible-bad-function # logic without Ansible: no module here whose run_command it could call
import hashlib
import json
import os
import pwd
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible_collections.llmfleet.sglang.plugins.module_utils._host.files import put

# Another number makes older cache files worthless: change it with SCRIPT's answer.
SCHEMA = 1

SCRIPT = r"""
import argparse, contextlib, io, json, logging, os, re, sys, time

class Refused(Exception):
    pass

class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise Refused(message)

    def exit(self, status=0, message=None):
        raise Refused(message or "prints a text and ends")

def option(action):
    choices = action.choices
    kind = action.type
    return {
        "strings": list(action.option_strings),
        "nargs": action.nargs,
        "choices": None if choices is None else sorted(str(one) for one in choices),
        "type": "str" if kind is None else getattr(kind, "__name__", str(kind)),
        "required": bool(action.required),
        "help": str(action.help or "").strip(),
    }

def attempt(parser, words):
    said = io.StringIO()
    answer = {"error": None, "rest": [], "said": ""}
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            answer["rest"] = parser.parse_known_args(list(words))[1]
    except Refused as error:
        answer["error"] = str(error)
    except Exception as error:
        answer["error"] = str(error) or type(error).__name__
    answer["said"] = re.sub(r"\x1b\[[0-9;]*m", "", said.getvalue()).strip()
    return answer

def named_in_source(folder, names):
    missing = {name: name.encode() for name in names}
    for place, folders, files in os.walk(folder):
        folders[:] = [one for one in folders if one != "__pycache__"]
        for file in files:
            if not missing:
                return []
            if not file.endswith((".py", ".so", ".rs")):
                continue
            with open(os.path.join(place, file), "rb") as opened:
                content = opened.read()
            missing = {name: text for name, text in missing.items() if text not in content}
    return sorted(missing)

def main():
    # The answer alone goes to standard output: what the engine prints, from C too, goes with its errors.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    job = json.loads(sys.stdin.read())
    began = time.monotonic()
    import sglang
    try:
        from sglang.srt.plugins import load_plugins
    except ImportError:
        pass
    else:
        load_plugins()
    from sglang.srt.server_args import ServerArgs
    parser = Parser(prog="sglang")
    ServerArgs.add_cli_args(parser)
    # Without handlers of its own, logging writes warnings to the standard error of the moment, where they are taken.
    logging.getLogger().handlers.clear()
    options = [option(action) for action in parser._actions if action.option_strings]
    imported = time.monotonic() - began
    whole = attempt(parser, [word for group in job["groups"] for word in group])
    for action in parser._actions:
        action.required = False
    groups = [attempt(parser, group) for group in job["groups"]]
    folder = os.path.dirname(os.path.abspath(sglang.__file__))
    answer = {
        "version": str(getattr(sglang, "__version__", "")),
        "source": folder,
        "options": options,
        "groups": groups,
        "whole": whole,
        "unread": named_in_source(folder, job["names"]),
        "import_seconds": max(0.001, round(imported, 3)),  # 0 means that nobody was asked
    }
    with answers:
        json.dump(answer, answers)

main()
"""


class ProbeFailed(RuntimeError):
    """The engine's parser could not be asked; the message says what the interpreter said."""


@dataclass(frozen=True)
class Question:
    """What is asked.

    python: the release's interpreter. groups: each argument as the words that reach argv.
    environment: what the service's environment adds. names: environment variables to look for in the engine's source.
    user: who asks, "" for whoever runs this; another one takes root. timeout: seconds.
    """

    python: str
    groups: Sequence[Sequence[str]]
    environment: Mapping[str, str]
    names: Sequence[str] = ()
    user: str = ""
    timeout: float = 300

    def digest(self) -> str:
        """Identify the question: the same one has the same answer, for a finished release is never edited."""
        asked = [SCHEMA, SCRIPT, self.python, [list(group) for group in self.groups], dict(self.environment)]
        text = json.dumps([*asked, list(self.names)], sort_keys=True)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _environment(question: Question, folder: str) -> dict[str, str]:
    """The caller's environment, with every cache of an import in a folder that goes away again."""
    writable = ("HOME", "XDG_CACHE_HOME", "HF_HOME", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
    given = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    return {
        **given,
        "PYTHONDONTWRITEBYTECODE": "1",
        "HF_HUB_OFFLINE": "1",
        **question.environment,
        **dict.fromkeys((*writable, "FLASHINFER_WORKSPACE_BASE"), folder),
    }


def ask(question: Question) -> dict[str, Any]:
    """Run SCRIPT in the release's interpreter and return its answer.

    Raises ProbeFailed when the interpreter or the user is missing, the engine does not import, or the time is up.
    """
    job = {"groups": [list(group) for group in question.groups], "names": list(question.names)}
    with tempfile.TemporaryDirectory(prefix="llmfleet-arguments-") as folder:
        try:
            done = subprocess.run(
                [question.python, "-c", SCRIPT],
                input=json.dumps(job),
                capture_output=True,
                text=True,
                errors="replace",
                timeout=question.timeout,
                check=False,
                cwd=folder,
                env=_environment(question, folder),
                **_identity(question.user, folder),
            )
        except OSError as error:
            raise ProbeFailed(f"{question.python} cannot be run: {error.strerror or error}") from error
        except subprocess.TimeoutExpired as error:
            raise ProbeFailed(f"the engine did not build its parser within {question.timeout:g} s") from error
    if done.returncode:
        raise ProbeFailed(f"the engine does not build its parser:\n{_last(done.stderr)}")
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except ValueError as error:
        raise ProbeFailed(f"the engine gave no answer ({error}):\n{_last(done.stderr)}") from error
    return answer


def _identity(user: str, folder: str) -> dict[str, Any]:
    """Return what makes a process another user's, and give that user the folder. Raises ProbeFailed."""
    found = identity(user)
    if found:
        os.chown(folder, found["user"], found["group"])
    return found


def identity(user: str) -> dict[str, Any]:
    """Return what makes a process that user's; empty for "" and for whoever runs this. Raises ProbeFailed."""
    if not user:
        return {}
    try:
        entry = pwd.getpwnam(user)
    except KeyError as error:
        raise ProbeFailed(f"there is no user {user}") from error
    if entry.pw_uid == os.geteuid():
        return {}
    if os.geteuid() != 0:
        raise ProbeFailed(f"only root can ask as {user}: run the module with become")
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": os.getgrouplist(user, entry.pw_gid)}


def _last(text: str) -> str:
    return "\n".join(text.strip().splitlines()[-8:])[-2000:] or "(it said nothing)"


def remembered(path: Path, question: Question) -> dict[str, Any] | None:
    """Return the answer kept in `path` if it was to this very question; None otherwise, whatever the file holds."""
    try:
        kept = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    if isinstance(kept, dict) and kept.get("question") == question.digest() and isinstance(kept.get("answer"), dict):
        return dict(kept["answer"])
    return None


def remember(path: Path, question: Question, answer: Mapping[str, Any]) -> None:
    """Keep an answer, atomically, in a folder that is made where there is none. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    put(path, json.dumps({"question": question.digest(), "answer": dict(answer)}).encode(), mode=0o600, durable=False)
