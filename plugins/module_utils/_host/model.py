# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What of a checkpoint's config.json bears on memory and on how a model is split. PRIVATE to the collection.

The keys are those of Hugging Face's configurations. A multimodal model keeps its text part under C(text_config).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Bytes of one value, by the launch argument's word; others (auto, bfloat16) take two.
VALUE_BYTES = {"fp8_e4m3": 1.0, "fp8_e5m2": 1.0, "fp4_e2m1": 0.5}
EXPERTS = ("num_experts", "n_routed_experts", "num_local_experts")


@dataclass(frozen=True)
class Model:
    """Sizes of a transformer. `latent`: values a token and layer of multi-head latent attention, 0 without.

    layers: those with attention; linear attention keeps a state of fixed size a request instead, which is not counted.
    """

    heads: int
    kv_heads: int
    head_size: int
    layers: int
    latent: int = 0
    experts: int = 0

    def kv_bytes(self, tensor_parallel: int, kind: str) -> tuple[float, str]:
        """Bytes that one token takes in one card's KV cache, and how that was worked out."""
        size = VALUE_BYTES.get(kind, 2.0)
        if self.latent:
            return self.layers * self.latent * size, f"{self.layers} layers x {self.latent} x {size:g}"
        heads = max(1, self.kv_heads // tensor_parallel)
        words = f"{self.layers} layers x 2 x {heads} KV heads x {self.head_size} x {size:g}"
        return self.layers * 2 * heads * self.head_size * size, words


def model_of(config: Mapping[str, Any]) -> Model | None:
    """The model that a config.json describes; None where it lacks what is needed."""
    text = config.get("text_config")
    told = text if isinstance(text, Mapping) else config
    heads, layers = _whole(told, "num_attention_heads"), _whole(told, "num_hidden_layers")
    if not heads or not layers:
        return None
    rank = _whole(told, "kv_lora_rank")
    return Model(
        heads=heads,
        kv_heads=0 if rank else _whole(told, "num_key_value_heads") or heads,
        head_size=_whole(told, "head_dim") or _whole(told, "hidden_size") // heads,
        layers=_attention_layers(told, layers),
        latent=rank + _whole(told, "qk_rope_head_dim") if rank else 0,
        experts=next((found for found in (_whole(told, name) for name in EXPERTS) if found), 0),
    )


def _attention_layers(told: Mapping[str, Any], layers: int) -> int:
    kinds = told.get("layer_types")
    if isinstance(kinds, list) and kinds:
        return sum("linear" not in str(kind) for kind in kinds)
    every = _whole(told, "full_attention_interval")
    return layers // every if every else layers


def _whole(told: Mapping[str, Any], name: str) -> int:
    value = told.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
