# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Secrets: vaulted, used for real, and then looked for in all that a run prints, logs, writes and starts."""

from __future__ import annotations

import json
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from testinfra.host import Host

from fleet import nodes
from fleet.__main__ import node_named
from fleet.config import HOST
from tests.faults.breaking import NODE, RECORD, clean_up, fleet
from tests.fleet.control import DEPLOY, INVENTORY, PROJECT, Run, run
from tests.fleet.hosts import SERVICE, ask, root
from tests.fleet.proxy import Passed, Proxy, proxy
from tests.fleet.secrecy import PROC, Held, Sampler, Secret, files, found_in, mounts, user

API_KEY, TOKEN, PASSWORD, INDEX = "API key", "Hub token", "proxy's password", "index's password"
# The files that docs/guides/security.md names: user and mode, path on the node. The key alone may be in them.
KEPT = [
    ("root", "0600", rf"{RECORD}/(next/)?sglang\.yaml"),
    ("root", "0600", rf"{RECORD}/snapshot(-[^/]+)?\.json"),
    ("sglang", "0400", rf"/run/credentials/{SERVICE}\.service/sglang\.yaml"),
]
_PYTHON = r"\S*python[\d.]*( -\w)*"
# What uv starts to build SGLang itself.
_BUILDS = r"\S*/python[\d.]* -( |$)|\S*/python[\d.]* -c "
# Who is handed a secret in the environment, which its user and root may read: what asks the network for something.
HANDED = {
    PASSWORD: rf"(\S*/)?(git|uv)\b|{_PYTHON} (-m pip|\S*/hf)\b|{_BUILDS}",
    INDEX: rf"(\S*/)?uv\b|{_PYTHON} -m pip\b|{_BUILDS}",
    TOKEN: rf"{_PYTHON} \S*/hf\b",
}
TRIED = {"sglang_trial": {"arguments": {"max-running-requests": 4}}}


@dataclass
class Operator:
    """An operator with a vault: an inventory with vaulted secrets, runs of playbooks, and what is seen meanwhile."""

    folder: Path
    proxy: Proxy
    known: dict[str, Secret]
    seen: set[Held] = field(default_factory=set)

    @property
    def mark(self) -> Path:
        """A file that is older than all that the runs write."""
        return self.folder / "mark"

    def vault(self) -> None:
        """Write the inventory, a vaulted file with the secrets in it, and the vault's password."""
        shutil.copytree(INVENTORY, self.folder / "inventory")
        (self.folder / "vault-password").write_text(secrets.token_hex(16))
        (self.folder / "vault-password").chmod(0o600)
        self.seal()

    def seal(self, slip: str = "") -> None:
        """Write the vaulted file. slip: a variable whose value ends in a newline, as `echo` leaves one."""
        index = yaml.safe_load((INVENTORY / "group_vars/sglang/main.yml").read_text())["sglang_index_url"]
        held: dict[str, Any] = {
            "sglang_api_key": self.known[API_KEY].value,
            "sglang_hub_token": self.known[TOKEN].value,
            "sglang_index_url": index.replace("://", f"://fleet:{self.known[INDEX].value}@"),
            "sglang_download_environment": {"http_proxy": self.proxy.url, "no_proxy": ""},
        }
        if slip:
            held[slip] += "\n"
        plain = self.folder / "inventory/group_vars/sglang/vault.yml"
        plain.write_text(yaml.safe_dump(held))
        run(["ansible-vault", "encrypt", *self._password(), plain]).must_pass()
        assert plain.read_text().startswith("$ANSIBLE_VAULT;")

    def _password(self) -> list[str | Path]:
        return ["--vault-password-file", self.folder / "vault-password"]

    def plays(self, book: Path | str, variables: Mapping[str, Any] | None = None, *options: str) -> Run:
        """Run a playbook at -vvvv, with a log and a cache of facts, and look at all processes meanwhile."""
        given = {"sglang_profile": "qwen3_5_397b_nvfp4", "sglang_report_to": str(self.folder / "reports")}
        words: list[str | Path] = [
            "ansible-playbook",
            book,
            "-i",
            self.folder / "inventory",
            f"--limit={NODE}",
            "-vvvv",
        ]
        extra = ["--extra-vars", json.dumps({**given, **(variables or {})})]
        env = {
            "ANSIBLE_LOG_PATH": str(self.folder / "ansible.log"),
            "ANSIBLE_CACHE_PLUGIN": "ansible.builtin.jsonfile",
            "ANSIBLE_CACHE_PLUGIN_CONNECTION": str(self.folder / "facts"),
        }
        watched = [self.node / "tmp", self.node / "root", self.node / "home", Path.home() / ".ansible"]
        with Sampler(self.known.values(), watched, self.mark) as sampler:
            done = run([*words, *self._password(), *options, *extra], env=env, timeout=1500)
        self.seen |= sampler.found
        assert sampler.rounds > (3 if done.rc == 0 else 0)  # what is refused ends within a second or two
        self.says_nothing(str(book), done.output)
        return done

    @property
    def node(self) -> Path:
        """The node's root folder, as this machine has it."""
        pid = nodes.leader(node_named(NODE))
        assert pid, f"{NODE} does not run"
        return PROC / str(pid) / "root"

    def says_nothing(self, what: str, text: str) -> None:
        """No secret stands in a text. The lines that have one are shown."""
        found = [line[:400] for line in text.splitlines() if found_in(line, self.known.values())]
        assert not found, f"{what}: a secret stands in {len(found)} lines:\n" + "\n".join(found[:10])

    def written(self) -> tuple[set[Held], set[Held]]:
        """The files that hold a secret and were written since the mark: on the controller, and on the node."""
        home = [Path.home() / ".ansible", Path.home() / ".cache", PROJECT / "reports", Path(tempfile.gettempdir())]
        here = files([*home, self.folder, Path("/var/log"), Path("/var/tmp")], self.mark, self.known.values())
        pid = nodes.leader(node_named(NODE))
        assert pid
        return here, files(mounts(pid), self.mark, self.known.values(), below=self.node)


@pytest.fixture(scope="module")
def operator(node: Host, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    """An operator in front of a fresh node, who has deployed, looked, tried, stopped, started and gone back."""
    if root(node, "ls -A /opt/sglang /var/lib/llmfleet /models 2>/dev/null || true").split():
        fleet("reset", NODE)
    signs = {API_KEY: "", TOKEN: "", PASSWORD: "/", INDEX: ""}
    known = {name: Secret.of(name, sign) for name, sign in signs.items()}
    with proxy(HOST, known[PASSWORD].value) as one:
        operator = Operator(tmp_path_factory.mktemp("operator"), one, known)
        operator.vault()
        operator.mark.touch()
        yield operator
    clean_up(node)


def test_a_deployment_from_nothing(node: Host, operator: Operator) -> None:
    done = operator.plays(DEPLOY).must_pass()
    assert "***" in done.output or "VALUE_SPECIFIED_IN_NO_LOG_PARAMETER" in done.output  # it did tell much
    assert ask(node, key=operator.known[API_KEY].value)[0] == 200
    assert ask(node, key="another")[0] == 401
    reports = operator.folder / "reports"
    assert list(reports.glob("*.html")) and (reports / "latest.json").is_file()


def test_the_secrets_were_used(operator: Operator) -> None:
    def by(agent: str) -> list[Passed]:
        return [one for one in operator.proxy.passed if re.match(agent, one.agent)]

    assert by("git/"), operator.proxy.passed
    assert by("pip/|uv/"), operator.proxy.passed
    assert any(one.authorization == f"Bearer {operator.known[TOKEN].value}" for one in operator.proxy.passed)
    assert any(one.authorization.startswith("Basic ") for one in by("pip/|uv/")), operator.proxy.passed


@pytest.mark.parametrize(
    ("book", "variables", "options"),
    [
        (DEPLOY.name, {}, []),
        ("status.yml", {}, []),
        ("trial.yml", TRIED, ["--check", "--diff"]),
        ("stop.yml", {}, []),
        ("start.yml", {}, []),
        ("rollback.yml", {}, ["--diff"]),
    ],
)
def test_other_playbooks(operator: Operator, book: str, variables: dict[str, Any], options: list[str]) -> None:
    operator.plays(PROJECT / "playbooks" / book, variables, *options).must_pass()


@pytest.mark.parametrize("wrong", [{"sglang_commit": "0" * 40}, {"sglang_build_overrides": "torch==0.0.1"}])
def test_what_git_and_uv_say_when_they_fail(operator: Operator, wrong: dict[str, Any]) -> None:
    asked = len(operator.proxy.passed)
    assert operator.plays(DEPLOY, wrong).rc != 0
    assert len(operator.proxy.passed) > asked


@pytest.mark.parametrize(
    ("slip", "book", "variables"),
    [
        ("sglang_api_key", DEPLOY.name, {}),
        ("sglang_hub_token", DEPLOY.name, {}),
        ("sglang_index_url", DEPLOY.name, {}),
        ("sglang_hub_token", "pin.yml", {"sglang_pin": ["checkpoint"]}),
    ],
)
def test_a_secret_that_ends_in_a_newline(operator: Operator, slip: str, book: str, variables: dict[str, Any]) -> None:
    asked = len(operator.proxy.passed)
    operator.seal(slip)
    try:
        more = {"sglang_pins": str(operator.folder / "pins.yml")} if book == "pin.yml" else {}
        done = operator.plays(PROJECT / "playbooks" / book, {**variables, **more})
    finally:
        operator.seal()
    assert done.rc != 0
    assert f"{slip} ends in a newline" in " ".join(done.output.split())
    assert len(operator.proxy.passed) == asked  # nothing was asked with it


def test_journal(node: Host, operator: Operator) -> None:
    journal = root(node, "journalctl --no-pager --output=verbose")
    assert SERVICE in journal and "Invoked with" in journal
    operator.says_nothing("the node's journal", journal)


def test_processes(operator: Operator) -> None:
    by_kind = {where: {one for one in operator.seen if one.where == where} for where in ("cmdline", "environ", "file")}
    assert by_kind["cmdline"] == set()
    unfit = {one for one in by_kind["environ"] if not re.match(HANDED.get(one.secret, "(?!)"), one.what)}
    assert unfit == set(), "\n".join(map(str, sorted(unfit)))
    assert {one.secret for one in by_kind["environ"]} == {PASSWORD, INDEX, TOKEN}  # the sampler sees what there is
    assert by_kind["file"] == set(), "\n".join(map(str, sorted(by_kind["file"])))


def test_files(operator: Operator) -> None:
    here, there = operator.written()
    assert here == set(), "\n".join(map(str, sorted(here)))
    names = operator.node / "etc/passwd"
    unfit = set()
    for one in there:
        number, mode = one.who.split()
        fits = any(
            (user(number, names), mode) == (who, allowed) and re.fullmatch(path, one.what)
            for who, allowed, path in KEPT
        )
        if one.secret != API_KEY or not fits:
            unfit.add(one)
    assert unfit == set(), "\n".join(map(str, sorted(unfit)))
    assert {one.what for one in there} >= {f"{RECORD}/sglang.yaml"}  # it sees what there is
