"""Settings for all unit tests."""

from __future__ import annotations

from hypothesis import settings

# No deadline for one example: a machine under load is no failure. Reproducible: what fails here fails everywhere.
settings.register_profile("llmfleet", deadline=None, derandomize=True)
settings.load_profile("llmfleet")
