# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The environment that an instance's engine runs in. Private to the collection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Below the release's folder of the unit's cache: each is a variable that the engine or a compiler of its reads.
_CACHES = {
    "XDG_CACHE_HOME": "",
    "HF_HOME": "/huggingface",
    "TRITON_CACHE_DIR": "/triton",
    "TORCHINDUCTOR_CACHE_DIR": "/inductor",
    "FLASHINFER_WORKSPACE_BASE": "",
    "SGLANG_CACHE_DIR": "/sglang",
    "SGLANG_JIT_CACHE_DIR": "/sglang/jit",
    "SGLANG_DG_CACHE_DIR": "/sglang/deep_gemm",
    "CUDA_CACHE_PATH": "/nv",
    "TILELANG_CACHE_DIR": "/tilelang",
    "TVM_FFI_CACHE_DIR": "/tvm_ffi",
}


def of_service(deployment: Mapping[str, Any], release: Mapping[str, Any], logging: str = "") -> dict[str, Any]:
    """Return the variables in the order in which they stand in the unit, and thereby in its state.

    Every folder that the engine and its compilers write to is absolute and the service user's; the compilers' caches
    are a release's own, so that no stale kernel survives an upgrade. logging: the path of a logging configuration, if
    any.
    """
    service = deployment["service"]
    cache = f"/var/cache/{service}/{release['id']}"
    return {
        "HOME": f"/var/lib/{service}",
        "PATH": f"{release['path']}/venv/bin:/usr/local/cuda/bin:/usr/local/bin:/usr/bin:/bin",
        "CUDA_HOME": "/usr/local/cuda",
        **{name: cache + folder for name, folder in _CACHES.items()},
        "HF_HUB_OFFLINE": "1",
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        **({"SGLANG_LOGGING_CONFIG_PATH": logging} if logging else {}),
        **(release.get("compilers") or {}),
        **deployment["launch"]["environment"],
    }
