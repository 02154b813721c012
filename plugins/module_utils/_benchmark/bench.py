# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One run of the engine's own bench_serving, as the service user, and what it measured. Private to the collection.

The API key goes by the environment (OPENAI_API_KEY, which bench_serving sends as bearer token), never by argv.
"""

from __future__ import annotations

# pylint: disable=ansible-bad-function # logic without Ansible: no module here whose run_command it could call
import contextlib
import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable

from ansible_collections.llmfleet.sglang.plugins.module_utils._benchmark.record import Run, Shape
from ansible_collections.llmfleet.sglang.plugins.module_utils._host import bearer
from ansible_collections.llmfleet.sglang.plugins.module_utils._host.command import SEARCH_PATH

# By these names bench_serving takes the key; OPENAI_API_KEY alone is sent as "Bearer".
KEY_VARIABLES = ("OPENAI_API_KEY", "API_KEY")
# Of the service itself, not of who measures it.
_SERVICES_OWN = ("LLMFLEET_STATE", "NOTIFY_SOCKET", "INVOCATION_ID", "JOURNAL_STREAM", "CREDENTIALS_DIRECTORY")
LAST_LINES = 8
LOOK_EVERY = 1.0
DEATH_SECONDS = 20.0
RESULT = "result.jsonl"


class BenchFailed(RuntimeError):
    """bench_serving gave no figures; the message says why, with the end of what it printed."""


class Abandoned(BenchFailed):
    """Nobody waits for the figures any more."""


@dataclass(frozen=True)
class Target:
    """What is measured and how it is reached.

    python: the release's interpreter; model: the checkpoint's folder, where the tokenizer lies; environ: the running
    service's own environment; user: who measures, "" for whoever runs this; serves: whether the process is still there
    that is measured; over: why nobody waits for the figures any more, "" while somebody does.
    """

    python: str
    host: str
    port: int
    model: str
    environ: Mapping[str, str]
    user: str = ""
    api_key: str = ""
    serves: Callable[[], bool] = field(default=lambda: True)
    over: Callable[[], str] = field(default=lambda: "")


def argv(target: Target, shape: Shape, seed: int, output: str) -> list[str]:
    """Return the command. seed: another one in each run, or the second would find the first one's prompts cached."""
    return [
        target.python,
        *("-m", "sglang.bench_serving", "--backend", "sglang"),
        *("--host", target.host, "--port", str(target.port)),
        *("--model", target.model, "--tokenizer", target.model),
        *("--dataset-name", "random-ids", "--random-range-ratio", "1"),
        *("--random-input-len", str(shape.input_tokens), "--random-output-len", str(shape.output_tokens)),
        *("--num-prompts", str(shape.requests), "--max-concurrency", str(shape.concurrency)),
        *("--seed", str(seed), "--flush-cache", "--disable-tqdm", "--output-file", output),
    ]


def environment(target: Target, folder: str) -> dict[str, str]:
    """Return the environment of a run: the service's own, its folders in one that goes away again, and the key."""
    writable = ("HOME", "XDG_CACHE_HOME", "HF_HOME", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TMPDIR")
    given = {name: value for name, value in target.environ.items() if name not in (*KEY_VARIABLES, *_SERVICES_OWN)}
    offline = {"HF_HUB_OFFLINE": "1", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1"}
    # A proxy must not stand between this host and its own server.
    direct = {"NO_PROXY": "*", "no_proxy": "*"}
    if target.api_key:  # the client would quote what it cannot send
        bearer.bearer(target.api_key, "sglang_api_key")
    key = {"OPENAI_API_KEY": target.api_key} if target.api_key else {}
    return {**given, **offline, **direct, **dict.fromkeys(writable, folder), **key}


def measure(target: Target, shape: Shape, seed: int, timeout: float) -> Run:
    """Measure once. timeout: seconds. Raises BenchFailed."""
    with tempfile.TemporaryDirectory(prefix="llmfleet-benchmark-") as folder:
        output = os.path.join(folder, RESULT)
        words = argv(target, shape, seed, output)
        who = _identity(target.user, folder)
        said = _run(words, environment(target, folder), who, folder, timeout, target)
        try:
            text = Path(output).read_text(encoding="utf-8", errors="replace")
        except OSError:
            text = ""
        return figures(text, shape, redacted(said, target.api_key))


def _run(
    words: Sequence[str],
    environ: Mapping[str, str],
    who: Mapping[str, Any],
    folder: str,
    timeout: float,
    target: Target,
) -> str:
    """Run to the end, or kill all of it when that can come to nothing; return what it printed. Raises BenchFailed."""
    key = environ.get("OPENAI_API_KEY", "")
    if not os.access(words[0], os.X_OK):
        raise BenchFailed(f"{words[0]} cannot be run: it is not there, or is no program")
    # Into a file and not a pipe: a child that outlives the run would hold the pipe open.
    with open(os.path.join(folder, "printed"), "w+b") as printed:
        try:
            child = subprocess.Popen(
                [*_with_us(), *words],
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env=dict(environ),
                start_new_session=True,
                **who,
            )
        except OSError as error:
            raise BenchFailed(f"{words[0]} cannot be run: {error.strerror or error}") from error
        try:
            cut = _watched(child, timeout, target)
        finally:
            _kill(child)
        printed.seek(0)
        said = printed.read().decode("utf-8", "replace")
    if cut:
        raise BenchFailed(f"{cut}:\n{last(redacted(said, key))}")
    if child.returncode:
        raise BenchFailed(f"bench_serving ended with {child.returncode}:\n{last(redacted(said, key))}")
    return said


def _with_us() -> list[str]:
    """Return what makes the kernel end a command with the process that starts it, however that ends; of util-linux."""
    program = shutil.which("setpriv", path=SEARCH_PATH)
    return [program, "--pdeathsig", "KILL", "--"] if program else []


def _watched(child: subprocess.Popen[bytes], timeout: float, target: Target) -> str:
    """Wait for the end; return why it is not worth waiting for any longer, "" if it came. Raises Abandoned."""
    until = time.monotonic() + timeout
    while True:
        left = until - time.monotonic()
        try:
            child.wait(max(0.0, min(LOOK_EVERY, left)))
            return ""
        except subprocess.TimeoutExpired:
            if left <= LOOK_EVERY:
                return f"bench_serving did not end within {timeout:.0f} s"
            over = target.over()
            if over:
                raise Abandoned(f"bench_serving was stopped, for {over}") from None
            if not target.serves():
                return "bench_serving was stopped, for the process that it measured has ended"


def _kill(child: subprocess.Popen[bytes]) -> None:
    """End the run and whatever it started."""
    with contextlib.suppress(OSError):  # nothing of it is left
        os.killpg(child.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):  # a process that no signal ends is left behind
        child.wait(DEATH_SECONDS)


def _identity(user: str, folder: str) -> dict[str, Any]:
    """Return what makes a process another user's, and give that user the folder. Raises BenchFailed."""
    if not user:
        return {}
    try:
        entry = pwd.getpwnam(user)
    except KeyError as error:
        raise BenchFailed(f"there is no user {user}") from error
    if entry.pw_uid == os.geteuid():
        return {}
    if os.geteuid() != 0:
        raise BenchFailed(f"only root can measure as {user}: run the module with become")
    os.chown(folder, entry.pw_uid, entry.pw_gid)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": os.getgrouplist(user, entry.pw_gid)}


def figures(text: str, shape: Shape, said: str) -> Run:
    """Read the line that a run wrote. said: what it printed, for the message. Raises BenchFailed.

    Fewer answers than requests are no measurement: what fails fast would look fast.
    """
    rows = [line for line in text.splitlines() if line.strip()]
    try:
        row = json.loads(rows[-1])
        completed = int(row["completed"])
        run = Run(
            output_tokens_per_second=float(row["output_throughput"]),
            total_tokens_per_second=float(row.get("total_throughput") or 0.0),
            seconds=float(row["duration"]),
            ttft_ms=_number(row.get("median_ttft_ms")),
            tpot_ms=_number(row.get("median_tpot_ms")),
        )
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise BenchFailed(f"bench_serving wrote no figures ({error!r}):\n{last(said)}") from error
    if completed < shape.requests:
        raise BenchFailed(f"{shape.requests - completed} of {shape.requests} requests failed:\n{last(said)}")
    return run


def _number(value: Any) -> float | None:
    """Return a time; None for 0, which is what stands there where no answer had a token that could be read as text."""
    return float(value) if value else None


def redacted(text: str, key: str) -> str:
    """Return the text without the key, should the engine have printed it."""
    return text.replace(key, "***") if key else text


def last(text: str) -> str:
    """Return the last lines of what was printed, without progress bars and rulers."""
    lines = [line.rpartition("\r")[2].rstrip() for line in text.splitlines()]
    told = [line for line in lines if line.strip() and not re.fullmatch(r"[\s=\-#*]+", line)]
    return "\n".join(f"  {line[:300]}" for line in told[-LAST_LINES:]) or "  (it said nothing)"
