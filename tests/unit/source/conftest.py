"""The corpus tests run when asked for: pytest tests/unit/source -m corpus."""

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Name the marker."""
    config.addinivalue_line("markers", "corpus: runs over SGLang wheels or the whole standard library")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the corpus out unless markers were asked for; pytest reports how many were deselected."""
    if config.option.markexpr:
        return
    corpus = [item for item in items if item.get_closest_marker("corpus")]
    if corpus:
        config.hook.pytest_deselected(items=corpus)
        items[:] = [item for item in items if item not in corpus]
