# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A mirror and worktrees of real local Git repositories."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.llmfleet.sglang.plugins.module_utils._progress.report import Progress
from ansible_collections.llmfleet.sglang.plugins.module_utils._release import source

from tests.unit.release.repository import Repository


@pytest.fixture
def upstream(tmp_path: Path) -> Repository:
    """An upstream with one tagged commit and one after it."""
    repository = Repository(tmp_path / "upstream")
    repository.commit("first")
    repository.git("tag", "--annotate", "v0.5.23", "--message", "0.5.23")
    repository.commit("second")
    return repository


@pytest.fixture
def mirror(tmp_path: Path, upstream: Repository) -> Path:
    """A mirror of it."""
    path = tmp_path / "host" / "mirror" / "sglang.git"
    source.update(path, upstream.url)
    return path


def test_a_mirror_holds_every_commit_and_its_version(mirror: Path, upstream: Repository) -> None:
    first, second = (upstream.git("rev-parse", name) for name in ("v0.5.23^{commit}", "main"))
    assert source.has_commit(mirror, first)
    assert source.has_commit(mirror, second)
    assert source.describe(mirror, first) == "v0.5.23"
    assert source.describe(mirror, second) == f"v0.5.23-1-g{second[:7]}"
    assert source.show(mirror, first, "python/pyproject.toml") == "first"
    assert not (mirror.parent / "sglang.git.partial").exists()


def test_a_version_may_be_a_light_tag(mirror: Path, upstream: Repository) -> None:
    upstream.git("tag", "v0.5.24")
    source.update(mirror, upstream.url)
    assert source.describe(mirror, upstream.git("rev-parse", "main")) == "v0.5.24"


def test_a_commit_that_is_nowhere_is_not_there(mirror: Path, upstream: Repository, tmp_path: Path) -> None:
    assert not source.has_commit(mirror, "0" * 40)
    assert not source.has_commit(tmp_path / "no-mirror", "0" * 40)
    # A tree is no commit, though Git has the object.
    assert not source.has_commit(mirror, upstream.git("rev-parse", "main^{tree}"))


def test_a_commit_that_came_later_is_fetched(mirror: Path, upstream: Repository) -> None:
    later = upstream.commit("third")
    assert not source.has_commit(mirror, later)
    source.update(mirror, upstream.url)
    assert source.has_commit(mirror, later)


def test_a_branch_that_was_moved_takes_no_release_away(mirror: Path, upstream: Repository, tmp_path: Path) -> None:
    built = upstream.git("rev-parse", "main")
    source.add_worktree(mirror, built, tmp_path / "release" / "src")
    upstream.git("reset", "--quiet", "--hard", "v0.5.23")
    moved = upstream.commit("another second")
    upstream.git("tag", "--force", "--annotate", "v0.5.23", "--message", "moved", moved)
    source.update(mirror, upstream.url)
    source.run_git(["--git-dir", str(mirror), "gc", "--quiet", "--prune=now"])
    assert source.has_commit(mirror, moved)
    assert source.describe(mirror, moved) == "v0.5.23"
    assert source.has_commit(mirror, built)


def test_the_mirror_follows_an_upstream_that_moved_to_another_address(
    mirror: Path, upstream: Repository, tmp_path: Path
) -> None:
    upstream.folder.rename(tmp_path / "elsewhere")
    with pytest.raises(source.GitError):
        source.update(mirror, upstream.url)
    source.update(mirror, f"file://{tmp_path / 'elsewhere'}")
    assert origin(mirror) == f"file://{tmp_path / 'elsewhere'}"


def origin(mirror: Path) -> str:
    """The address that the mirror's configuration has."""
    return source.run_git(["--git-dir", str(mirror), "remote", "get-url", "origin"]).strip()


def test_an_address_that_does_not_answer_is_not_kept(mirror: Path, upstream: Repository, tmp_path: Path) -> None:
    for bundle in (None, tmp_path / "none.bundle"):
        with pytest.raises(source.GitError):
            source.update(mirror, f"file://{tmp_path}/none.git", bundle=bundle)
        assert origin(mirror) == upstream.url


def test_a_branch_that_upstream_removed_goes_and_comes_to_nothing_else(mirror: Path, upstream: Repository) -> None:
    upstream.git("branch", "gone")
    source.update(mirror, upstream.url)
    upstream.git("branch", "--delete", "gone")
    source.update(mirror, upstream.url)
    names = source.run_git(["--git-dir", str(mirror), "for-each-ref", "--format=%(refname)"]).split()
    assert names == ["refs/heads/main", "refs/tags/v0.5.23"]


def test_an_upstream_that_is_not_there_leaves_no_mirror(tmp_path: Path) -> None:
    path = tmp_path / "mirror" / "sglang.git"
    with pytest.raises(source.GitError, match=r"git clone .*no-such-repository"):
        source.update(path, f"file://{tmp_path}/no-such-repository")
    assert not path.exists()


def test_a_clone_that_died_is_started_afresh(tmp_path: Path, upstream: Repository) -> None:
    path = tmp_path / "mirror" / "sglang.git"
    partial = path.with_name("sglang.git.partial")
    partial.mkdir(parents=True)
    (partial / "HEAD").write_text("ref: refs/heads/ma")
    source.update(path, upstream.url)
    assert source.has_commit(path, upstream.git("rev-parse", "main"))
    assert not partial.exists()


def test_a_worktree_is_the_commit_whatever_a_dead_run_left(mirror: Path, upstream: Repository, tmp_path: Path) -> None:
    first, second = (upstream.git("rev-parse", name) for name in ("v0.5.23^{commit}", "main"))
    tree = tmp_path / "release" / "src"
    source.add_worktree(mirror, second, tree)
    (tree / "python" / "pyproject.toml").write_text("half-patched")
    (tree / "python" / "left-over.py").write_text("x")
    source.add_worktree(mirror, first, tree)
    assert (tree / "python" / "pyproject.toml").read_text() == "first"
    assert not (tree / "python" / "left-over.py").exists()
    assert source.run_git(["-C", str(tree), "rev-parse", "HEAD"]).strip() == first


def test_a_worktree_can_be_laid_out_where_one_was_removed_by_hand(
    mirror: Path, upstream: Repository, tmp_path: Path
) -> None:
    commit = upstream.git("rev-parse", "main")
    source.add_worktree(mirror, commit, tmp_path / "release" / "src")
    (tmp_path / "release").rename(tmp_path / "gone")
    source.add_worktree(mirror, commit, tmp_path / "release" / "src")
    assert (tmp_path / "release" / "src" / "python" / "pyproject.toml").read_text() == "second"


def test_without_a_version_tag_there_is_no_version(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "upstream")
    commit = repository.commit("first")
    repository.git("tag", "gateway-v0.3.1")  # another program's, as SGLang has them
    source.update(tmp_path / "mirror.git", repository.url)
    assert source.describe(tmp_path / "mirror.git", commit) == ""


def test_a_file_that_the_commit_lacks_is_named(mirror: Path, upstream: Repository) -> None:
    with pytest.raises(source.GitError, match=r"setup\.cfg"):
        source.show(mirror, upstream.git("rev-parse", "main"), "setup.cfg")


@pytest.mark.parametrize("login", ["user:hidden-word", "hidden-word"])
def test_an_error_tells_no_password(tmp_path: Path, login: str) -> None:
    with pytest.raises(source.GitError) as caught:
        source.update(tmp_path / "mirror.git", f"http://{login}@127.0.0.1:9/sglang.git")
    assert "127.0.0.1:9/sglang.git" in str(caught.value)
    assert "hidden-word" not in str(caught.value)


def test_git_does_not_read_the_configuration_of_whoever_runs_it(
    mirror: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".gitconfig").write_text("[alias]\n  shown = rev-parse HEAD\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(source.GitError, match="'shown' is not a git command"):
        source.run_git(["--git-dir", str(mirror), "shown"])


# --- a bundle in place of the repository ---


def test_a_bundle_is_as_good_as_the_repository(tmp_path: Path) -> None:
    upstream = Repository(tmp_path / "upstream")
    first = upstream.commit("[project]\n")
    upstream.git("tag", "v0.5.23")
    bundle, mirror = tmp_path / "source.bundle", tmp_path / "mirror.git"
    upstream.git("bundle", "create", str(bundle), "--all")
    nowhere = "https://nowhere.invalid/sglang.git"
    source.update(mirror, nowhere, bundle=bundle)
    assert source.has_commit(mirror, first)
    assert source.describe(mirror, first) == "v0.5.23"
    assert source.run_git(["--git-dir", str(mirror), "remote", "get-url", "origin"]).strip() == nowhere

    upstream.git("switch", "--quiet", "--create", "other")
    second = upstream.commit("[project] # 2\n")
    upstream.git("bundle", "create", str(bundle), "other", "^main")
    source.update(mirror, nowhere, bundle=bundle)
    assert source.has_commit(mirror, second)
    assert source.has_commit(mirror, first)


def test_a_bundle_that_builds_on_what_is_not_here_is_refused(tmp_path: Path) -> None:
    upstream = Repository(tmp_path / "upstream")
    upstream.commit("[project]\n")
    upstream.git("switch", "--quiet", "--create", "other")
    upstream.commit("[project] # 2\n")
    bundle = tmp_path / "source.bundle"
    upstream.git("bundle", "create", str(bundle), "other", "^main")
    with pytest.raises(source.GitError, match=r"prerequisite|failed"):
        source.update(tmp_path / "mirror.git", "https://nowhere.invalid/x", bundle=bundle)
    assert not (tmp_path / "mirror.git").exists()


class Heard(Progress):
    """A progress that remembers its phases and counts."""

    def __init__(self) -> None:
        super().__init__(None)
        self.phases: list[str] = []
        self.counts: list[tuple[int, int | None]] = []

    def phase(self, name: str, *, total: int = 0, unit: str = "", done: int = 0) -> None:
        self.phases.append(name)
        super().phase(name, total=total, unit=unit, done=done)

    def at(self, done: int, total: int | None = None) -> None:
        self.counts.append((done, total))
        super().at(done, total)


def test_a_clone_tells_how_far_it_is(tmp_path: Path) -> None:
    upstream = Repository(tmp_path / "upstream")
    upstream.commit("[project]\n")
    heard = Heard()
    source.update(tmp_path / "mirror.git", upstream.url, progress=heard)
    assert heard.phases[0] == "fetching the source"
    assert "source: receiving objects" in heard.phases
    assert heard.counts[-1][0] == heard.counts[-1][1]


def test_a_clone_that_fails_says_why_and_leaves_nothing_half(tmp_path: Path) -> None:
    with pytest.raises(source.GitError, match="does not appear to be a git repository"):
        source.update(tmp_path / "mirror.git", f"file://{tmp_path}/none.git", progress=Heard())
    assert not (tmp_path / "mirror.git").exists()
