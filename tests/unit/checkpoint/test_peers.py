# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From host to host: real rsync daemons on addresses of the loopback, which die, stall, spoil and are full."""

from __future__ import annotations

import dataclasses
import json
import socket
import subprocess
import threading
import typing as t
from pathlib import Path

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint import peers as module
from ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint.config import Wanted
from ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint.errors import CheckpointError
from ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint.fanout import sources
from ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint.manifest import MANIFEST, STAMP

from tests.unit.checkpoint.case import Case
from tests.unit.checkpoint.daemon import SECRET, Daemon, free_port, peers, server
from tests.unit.checkpoint.hub_server import HubServer, wait_for

SHARD = "model-00002-of-00002.safetensors"


@dataclasses.dataclass
class Site:
    """Hosts on addresses of the loopback; the first has the checkpoint."""

    first: Case
    port: int
    daemons: list[Daemon] = dataclasses.field(default_factory=list)
    digest: str = ""

    def host(self, name: str) -> Case:
        """Another host, with nothing on it."""
        root = self.first.root / name
        root.mkdir()
        return dataclasses.replace(self.first, root=root)

    def serve(self, address: str, folder: Path | None = None, **changes: t.Any) -> Daemon:
        """Give a folder, the first host's by default, on an address."""
        home = self.first.root / f"daemon-{address}"
        daemon = Daemon(server(address, self.port, **changes), folder or self.first.target, home)
        self.daemons.append(daemon)
        return daemon

    def peers(self, *addresses: str, **changes: t.Any) -> module.Peers:
        """Whom to ask."""
        return peers(addresses, self.port, self.digest, **changes)


@pytest.fixture
def site(case: Case, hub: HubServer) -> t.Iterator[Site]:
    """A site whose first host has the checkpoint; the Hub is gone."""
    found = Site(case, free_port())
    found.digest = case.deploy().manifest_digest
    hub.close()
    hub.requests.clear()
    yield found
    for daemon in found.daemons:
        daemon.close()


def test_a_host_takes_everything_from_another_and_verifies_it(site: Site, hub: HubServer) -> None:
    site.serve("127.0.0.2")
    host = site.host("b")
    outcome = host.ensure(peers=site.peers("127.0.0.2"))
    assert outcome.changed and outcome.complete
    assert host.served() == hub.files
    assert outcome.manifest_digest == site.digest
    assert outcome.taken_from == ["127.0.0.2"]
    assert outcome.bytes_hashed == outcome.bytes
    assert "taken from 127.0.0.2" in outcome.message
    assert hub.requests == []
    assert not Path(host.place.staging).exists()
    again = host.ensure(peers=site.peers("127.0.0.2"))
    assert (again.changed, again.bytes_hashed) == (False, 0)


def test_a_host_that_does_not_serve_is_passed_over(site: Site, hub: HubServer) -> None:
    site.serve("127.0.0.3")
    host = site.host("b")
    assert host.ensure(peers=site.peers("127.0.0.2", "127.0.0.3")).taken_from == ["127.0.0.3"]


def test_a_host_that_dies_in_the_middle_is_replaced_and_what_came_stays(site: Site, hub: HubServer) -> None:
    # one small file comes at once, the large one takes minutes
    slow = site.serve("127.0.0.2", limit=1024 * 8)
    site.serve("127.0.0.3")
    host = site.host("b")
    files = Path(host.place.files)
    died = threading.Event()

    def die() -> None:
        wait_for(lambda: (files / "config.json").exists() and list(files.glob(".model-*")), 60)
        slow.close()
        died.set()

    thread = threading.Thread(target=die)
    thread.start()
    outcome = host.ensure(peers=site.peers("127.0.0.2", "127.0.0.3"))
    thread.join(10)
    assert died.is_set()
    assert outcome.taken_from == ["127.0.0.2", "127.0.0.3"][-len(outcome.taken_from) :]
    assert outcome.taken_from[-1] == "127.0.0.3"
    assert host.served() == hub.files


def test_a_host_that_falls_silent_is_given_up(site: Site, hub: HubServer) -> None:
    site.serve("127.0.0.3")
    with socket.create_server(("127.0.0.2", site.port)):
        host = site.host("b")
        outcome = host.ensure(peers=site.peers("127.0.0.2", "127.0.0.3", stall=1.0))
    assert outcome.taken_from == ["127.0.0.3"]
    assert host.served() == hub.files


def test_a_host_that_spoils_what_it_gives_is_found_out_and_that_file_taken_from_another(
    site: Site, hub: HubServer, tmp_path: Path
) -> None:
    bad = tmp_path / "bad"
    subprocess.run(["cp", "-a", str(site.first.target), str(bad)], check=True)
    content = bytearray((bad / SHARD).read_bytes())
    content[-1] ^= 1
    (bad / SHARD).write_bytes(content)
    site.serve("127.0.0.2", bad)
    site.serve("127.0.0.3")
    host = site.host("b")
    outcome = host.ensure(peers=site.peers("127.0.0.2", "127.0.0.3"))
    assert [problem["file"] for problem in outcome.fetched_again] == [SHARD]
    assert outcome.taken_from == ["127.0.0.2", "127.0.0.3"]
    assert host.served() == hub.files


def test_a_site_that_spoils_everything_fails_and_nothing_is_linked(site: Site, tmp_path: Path) -> None:
    bad = tmp_path / "bad"
    subprocess.run(["cp", "-a", str(site.first.target), str(bad)], check=True)
    (bad / "config.json").write_bytes(b"x" * (bad / "config.json").stat().st_size)
    site.serve("127.0.0.2", bad)
    host = site.host("b")
    with pytest.raises(CheckpointError, match=r"fetched twice from other hosts: config\.json: expected sha256"):
        host.ensure(peers=site.peers("127.0.0.2"))
    assert not host.path.is_symlink()


def test_a_manifest_other_than_the_seeds_is_not_taken(site: Site, tmp_path: Path) -> None:
    bad = tmp_path / "bad"
    subprocess.run(["cp", "-a", str(site.first.target), str(bad)], check=True)
    manifest = json.loads((bad / MANIFEST).read_text())
    manifest["files"] = manifest["files"][:1]
    (bad / MANIFEST).write_text(json.dumps(manifest))
    site.serve("127.0.0.2", bad)
    host = site.host("b")
    with pytest.raises(CheckpointError, match="No host of this site gave org/model"):
        host.ensure(peers=site.peers("127.0.0.2", patience=1.0))
    assert not (Path(host.place.files) / "config.json").exists()


def test_a_wrong_secret_gets_nothing(site: Site) -> None:
    site.serve("127.0.0.2")
    host = site.host("b")
    with pytest.raises(CheckpointError, match=r"127\.0\.0\.2 rsync ended with 5: .*auth failed"):
        host.ensure(peers=site.peers("127.0.0.2", patience=1.0, secret="wrong"))


def test_an_address_that_is_no_peer_gets_nothing(site: Site) -> None:
    site.serve("127.0.0.2", peers=("192.0.2.1",))
    host = site.host("b")
    with pytest.raises(CheckpointError, match=r"127\.0\.0\.2 rsync ended with 5: .*(access denied|Unknown module)"):
        host.ensure(peers=site.peers("127.0.0.2", patience=1.0))


def test_nobody_there_is_said_with_the_port_and_the_way_out(site: Site) -> None:
    host = site.host("b")
    with pytest.raises(CheckpointError) as caught:
        host.ensure(peers=site.peers("127.0.0.2", patience=0.5))
    assert "127.0.0.2 does not serve (yet)" in str(caught.value)
    assert f"port {site.port}" in str(caught.value)
    assert "sglang_checkpoint_driver" in str(caught.value)
    assert not Path(host.place.home, "secret").exists()


def test_a_failed_fetch_of_the_seed_is_said_at_once(site: Site) -> None:
    host = site.host("b")
    with pytest.raises(CheckpointError, match="fetching it from the Hub failed"):
        host.ensure(peers=dataclasses.replace(site.peers("127.0.0.2"), manifest_digest=""))


def test_a_host_that_is_full_is_waited_for(site: Site, hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    site.serve("127.0.0.2", limit=1024 * 8)
    one, other = site.host("b"), site.host("c")
    errors: list[BaseException] = []

    def take() -> None:
        try:
            one.ensure(peers=site.peers("127.0.0.2", stall=300.0))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=take, daemon=True)
    thread.start()
    wait_for(lambda: list(Path(one.place.files).glob(".model-*")), 60)
    said: list[str] = []
    ask = module.PeerFetch._ask

    def listen(self: module.PeerFetch, *arguments: t.Any) -> str:
        answer = ask(self, *arguments)
        said.append(answer)
        if answer == module._BUSY:
            site.daemons[0].close()
            site.serve("127.0.0.3")
        return answer

    monkeypatch.setattr(module.PeerFetch, "_ask", listen)
    outcome = other.ensure(peers=site.peers("127.0.0.2", "127.0.0.3"))
    assert module._BUSY in said
    assert outcome.taken_from == ["127.0.0.3"]


def test_the_stamp_and_the_downloaders_trash_are_not_given(site: Site, tmp_path: Path) -> None:
    (site.first.target / ".cache").mkdir()
    (site.first.target / ".cache" / "x").write_text("trash")
    site.serve("127.0.0.2")
    secret = tmp_path / "secret"
    secret.write_text(f"{SECRET}\n")
    secret.chmod(0o600)
    goal = tmp_path / "all"
    words = ["rsync", "-r", "--no-motd", f"--password-file={secret}"]
    url = f"rsync://llmfleet@127.0.0.2:{site.port}/checkpoint/"
    subprocess.run([*words, url, str(goal)], check=True, timeout=60)
    assert (goal / MANIFEST).exists()
    assert not (goal / STAMP).exists()
    assert not (goal / ".cache").exists()
    back = subprocess.run([*words, str(secret), url], check=False, capture_output=True, text=True, timeout=60)
    assert "read only" in back.stderr
    listed = subprocess.run([*words, url.rpartition("checkpoint")[0]], check=True, capture_output=True, timeout=60)
    assert listed.stdout == b""


def test_half_files_of_a_killed_rsync_are_removed(site: Site, hub: HubServer) -> None:
    site.serve("127.0.0.2")
    host = site.host("b")
    half = Path(host.place.files) / f".{SHARD}.a1B2c3"
    half.parent.mkdir(parents=True)
    half.write_bytes(b"half")
    host.ensure(peers=site.peers("127.0.0.2"))
    assert host.served() == hub.files


def test_only_the_half_files_of_rsync_are_removed(site: Site, tmp_path: Path) -> None:
    fetch = module.PeerFetch(
        site.peers(), "o/m", "a", str(tmp_path / "f"), "", "", t.cast(t.Any, None), t.cast(t.Any, None)
    )
    fetch._paths = {".env.sample", "model", ".model.config", "in/a.json"}
    names = (".env.sample", ".model.config", ".mine.abcdef", "in/.a.json.toolong", ".a.json.abcdef")
    gone = (".model.a1B2c3", "in/.a.json.a1B2c3", "..env.sample.a1B2c3", "..model.config.a1B2c3")
    for name in (*names, *gone):
        (tmp_path / "f" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "f" / name).touch()
    fetch.clear_halves()
    found = {str(path.relative_to(tmp_path / "f")) for path in (tmp_path / "f").rglob("*") if path.is_file()}
    assert found == set(names)


@pytest.mark.parametrize("size", [0, 120_000])
def test_check_mode_of_what_other_hosts_give_asks_no_hub(site: Site, hub: HubServer, size: int) -> None:
    host = site.host("b")
    outcome = host.ensure(peers=site.peers("127.0.0.2", size=size), check=True)
    assert outcome.changed and not outcome.complete
    assert outcome.message == f"{'120.00 kB' if size else 'The files'} would be taken from other hosts and verified"
    assert outcome.warnings == []
    assert hub.requests == []
    assert host.everything() == {}
    refused = host.ensure(peers=site.peers("127.0.0.2", size=size), check=True, reserve=1 << 60).warnings
    assert "A real run would be refused" in refused[0]


def test_check_mode_of_a_damaged_copy_asks_no_hub_either(site: Site, hub: HubServer) -> None:
    host = site.host("b")
    site.serve("127.0.0.2")
    host.ensure(peers=site.peers("127.0.0.2"))
    (host.target / "config.json").write_bytes(b"")
    wanted = Wanted({"quant_method": "none"})
    outcome = host.ensure(peers=site.peers("127.0.0.2"), check=True, wanted=wanted)
    assert [row["file"] for row in outcome.to_download] == ["config.json"]
    assert outcome.warnings == []
    assert hub.requests == []


def test_a_damaged_copy_is_mended_from_another_host(site: Site, hub: HubServer) -> None:
    site.serve("127.0.0.2")
    host = site.host("b")
    host.ensure(peers=site.peers("127.0.0.2"))
    (host.target / SHARD).write_bytes(b"?")
    outcome = host.ensure(peers=site.peers("127.0.0.2"))
    assert [problem["file"] for problem in outcome.fetched_again] == [SHARD]
    assert host.served() == hub.files


def test_a_disk_that_fills_stops_it_with_the_arithmetic(
    site: Site, hub: HubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.serve("127.0.0.2", limit=1024 * 8)
    host = site.host("b")
    free = [10**9]
    monkeypatch.setattr(
        "ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint.child.free_bytes",
        lambda path: (path, free[0]),
    )
    monkeypatch.setattr(
        "ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint.ahead.placing.free_bytes",
        lambda path: (path, free[0]),
    )

    def fill() -> None:
        wait_for(lambda: list(Path(host.place.files).glob(".model-*")), 60)
        free[0] = 100

    thread = threading.Thread(target=fill)
    thread.start()
    with pytest.raises(CheckpointError, match=r"The disk fills: .* has 100 B free, 1\.00 kB shall stay free, and "):
        host.ensure(peers=site.peers("127.0.0.2", stall=300.0), reserve=1000)
    thread.join(10)
    assert not host.path.is_symlink()


def test_a_fleet_supplies_itself_and_the_hub_is_not_asked(site: Site, hub: HubServer) -> None:
    addresses = [f"127.0.0.{number}" for number in range(2, 7)]
    site.serve(addresses[0])
    hosts = {position: site.host(f"host{position}") for position in range(1, 5)}
    outcomes: dict[int, t.Any] = {}

    def take(position: int) -> None:
        order = [addresses[one] for one in sources(position, len(addresses), 1)]
        outcomes[position] = hosts[position].ensure(peers=site.peers(*order))
        site.serve(addresses[position], hosts[position].target)

    threads = [threading.Thread(target=take, args=(position,)) for position in hosts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert sorted(outcomes) == sorted(hosts)
    assert all(host.served() == hub.files for host in hosts.values())
    assert {outcome.manifest_digest for outcome in outcomes.values()} == {site.digest}
    assert hub.requests == []


# what is served


def test_nothing_secret_stands_in_a_command_line() -> None:
    one = server("127.0.0.2", 8730, limit=4 * 1024 * 1024, transfers=2)
    words = [*one.daemon("/c"), *one.properties("/c", "/s"), one.configuration("/f", "/s", "/l")]
    assert not [word for word in words if SECRET in word]
    assert "--bwlimit=2048" in words
    assert "DynamicUser=yes" in words
    assert "RuntimeMaxSec=14400" in words


def test_it_listens_on_one_address_and_knows_its_peers_by_number() -> None:
    text = server("127.0.0.2", 8730, peers=("localhost", "192.0.2.7")).configuration("/models/x", "/s", "/l")
    lines = text.splitlines()
    assert "address = 127.0.0.2" in lines
    assert [line for line in lines if line.startswith("hosts allow = ") and line.endswith(" 192.0.2.7")]
    assert "read only = yes" in lines


def test_a_name_that_is_no_address_is_said() -> None:
    with pytest.raises(CheckpointError, match=r"nowhere\.invalid is no address that this host knows"):
        server("nowhere.invalid", 8730).configuration("/f", "/s", "/l")


def test_a_receiver_that_cannot_serve_is_warned_and_a_seed_fails(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: t.Any, folder: str) -> None:
        raise CheckpointError("the port is taken")

    monkeypatch.setattr("ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint.serve.Server.start", fail)
    site.serve("127.0.0.2")
    own = server("127.0.0.9", site.port)
    outcome = site.host("b").ensure(peers=site.peers("127.0.0.2"), serve=own)
    assert outcome.complete
    assert outcome.warnings == ["the port is taken"]
    with pytest.raises(CheckpointError, match="the port is taken"):
        site.first.ensure(serve=own)
