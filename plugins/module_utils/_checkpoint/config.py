# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compares what a checkpoint says of itself with what it was chosen for. PRIVATE to the collection: it can change
at any time.

Read are `config.json` and, where a quantization was made by Model Optimizer, `hf_quant_config.json`: the two files
that SGLang decides by (srt/configs/model_config.py and srt/layers/quantization/modelopt_quant.py of 0.5.23). What the
checkpoint should be stands in the model profile (`checkpoint.expects`); how many cards share it, in the launch
arguments.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import json
import typing as t

from .errors import CheckpointError

CONFIG = "config.json"
QUANTIZATION = "hf_quant_config.json"
FILES = (CONFIG, QUANTIZATION)
# Both are a few kilobytes; what is larger is no configuration.
LARGEST = 8 << 20
NONE = "none"

EXPECTED = ("architecture", "quant_method", "quant_algo", "weight_bits", "dtype", "vision", "mtp", "sizes")
# What --quantization means for the checkpoint: the method and, where there are several, the algorithms.
_FLAGS: dict[str, tuple[str, tuple[str, ...]]] = {
    "modelopt_fp4": ("modelopt", ("NVFP4", "W4A16_NVFP4")),
    "modelopt_fp8": ("modelopt", ("FP8",)),
    "modelopt_mixed": ("modelopt", ("MIXED_PRECISION",)),
    "compressed-tensors": ("compressed-tensors", ()),
}
_HEADS = ("num_attention_heads", "linear_num_key_heads", "linear_num_value_heads")
_EXPERTS = ("moe_intermediate_size",)
_SHARDED = ("hidden_size", "intermediate_size", "shared_expert_intermediate_size")


@dataclasses.dataclass(frozen=True)
class Wanted:
    """What the profile expects (see EXPECTED; a field left out may be anything) and the launch arguments."""

    expects: t.Mapping[str, t.Any] = dataclasses.field(default_factory=dict)
    arguments: t.Mapping[str, t.Any] = dataclasses.field(default_factory=dict)

    def count(self, flag: str) -> int:
        """A parallel size among the launch arguments; 1 where there is none."""
        try:
            return max(1, int(self.arguments.get(flag) or 1))
        except (TypeError, ValueError):
            return 1


@dataclasses.dataclass(frozen=True)
class Described:
    """What a checkpoint says: the whole configuration, the language model's part of it, the quantization's."""

    whole: t.Mapping[str, t.Any]
    text: t.Mapping[str, t.Any]
    quantization: t.Mapping[str, t.Any]
    quantization_file: str

    @property
    def architectures(self) -> list[str]:
        names: list[str] = self.whole.get("architectures") or []
        return names

    @property
    def quant_method(self) -> str:
        """modelopt, compressed-tensors, fp8 … ; `none` for weights that are not quantized."""
        method = str(self.quantization.get("quant_method") or "")
        if not method and self.quant_algo:
            return "modelopt"
        return "modelopt" if method.startswith("modelopt") else method or NONE

    @property
    def quant_algo(self) -> str:
        return str(self.quantization.get("quant_algo") or "").upper()

    @property
    def weight_groups(self) -> list[t.Mapping[str, t.Any]]:
        """What compressed-tensors says of weights: num_bits, type, group_size."""
        groups: dict[str, dict[str, t.Any]] = self.quantization.get("config_groups") or {}
        return [row["weights"] for row in groups.values() if row.get("weights")]

    @property
    def group_size(self) -> int:
        """Weights along a row that share a scale; 0 where there is no such thing."""
        sizes = [self.quantization.get("group_size"), *(weights.get("group_size") for weights in self.weight_groups)]
        known = max(map(_size, sizes))
        return known or (16 if self.quant_algo.endswith("NVFP4") else 0)

    @property
    def has_kv_scales(self) -> bool:
        return bool(self.quantization.get("kv_cache_quant_algo") or self.quantization.get("kv_cache_scheme"))

    @property
    def excluded(self) -> list[str]:
        """Patterns of the modules that are not quantized."""
        rows = self.quantization.get("exclude_modules") or self.quantization.get("ignore") or []
        return [str(row) for row in rows]

    @property
    def mtp(self) -> bool:
        """Whether there are layers for multi-token prediction."""
        names = ("mtp_num_hidden_layers", "num_nextn_predict_layers", "mtp_num_layers")
        return any(bool(part.get(name)) for part in (self.text, self.whole) for name in names)

    def found(self, field: str) -> t.Any:
        """What the checkpoint says of an expected field."""
        if field == "weight_bits":
            bits = {weights.get("num_bits") or NONE for weights in self.weight_groups}
            return bits.pop() if len(bits) == 1 else sorted(map(str, bits)) or NONE
        values: dict[str, t.Callable[[], t.Any]] = {
            "architecture": lambda: self.architectures,
            "quant_method": lambda: self.quant_method,
            "quant_algo": lambda: self.quant_algo or NONE,
            "dtype": lambda: self._dtype() or NONE,
            "vision": lambda: bool(self.whole.get("vision_config")),
            "mtp": lambda: self.mtp,
        }
        return values[field]()

    def _dtype(self) -> str:
        parts = [part.get(key) for part in (self.whole, self.text) for key in ("dtype", "torch_dtype")]
        return next((str(one) for one in parts if one), "")


def describe(config: bytes, quantization: bytes | None) -> Described:
    """Reads both files. Raises CheckpointError where they are no configuration, or contradict each other."""
    whole = _object(config, CONFIG)
    text = _typed(whole, "text_config", dict, CONFIG)
    for part, name in ((whole, ""), (text or {}, "text_config.")):
        _typed(part, "architectures", list, CONFIG, name, items=str)
        for key in ("dtype", "torch_dtype"):
            _typed(part, key, str, CONFIG, name)
    inside = _typed(whole, "quantization_config", dict, CONFIG)
    if not inside and text:
        inside = _typed(text, "quantization_config", dict, CONFIG, "text_config.")
    beside = None
    if quantization is not None:
        beside = _typed(_object(quantization, QUANTIZATION), "quantization", dict, QUANTIZATION)
    _check_quantization(inside, CONFIG, "quantization_config.")
    _check_quantization(beside, QUANTIZATION, "quantization.")
    first, where = (inside, CONFIG) if inside is not None or beside is None else (beside, QUANTIZATION)
    found = Described(whole, text or whole, dict(first or {}), where)
    if inside is not None and beside is not None:
        other = str(beside.get("quant_algo") or "").upper()
        if found.quant_algo and other and found.quant_algo != other:
            raise CheckpointError(
                f"quant_algo is {found.quant_algo} in {CONFIG} and {other} in {QUANTIZATION}: the checkpoint "
                "contradicts itself. Pin another revision."
            )
        merged = {**beside, **inside}
        found = dataclasses.replace(found, quantization=merged)
    return found


def _check_quantization(part: t.Mapping[str, t.Any] | None, name: str, where: str) -> None:
    """Refuses what is of another type than the properties of Described take it for."""
    for key in ("quant_method", "quant_algo"):
        _typed(part or {}, key, str, name, where)
    for key in ("exclude_modules", "ignore"):
        _typed(part or {}, key, list, name, where, items=str)
    groups = _typed(part or {}, "config_groups", dict, name, where, items=dict) or {}
    for label, row in groups.items():
        inner = f"{where}config_groups.{label}."
        weights = _typed(row, "weights", dict, name, inner) or {}
        _typed(weights, "num_bits", int, name, f"{inner}weights.")


_KINDS = {
    dict: "an object",
    list: "a list",
    str: "a text",
    int: "a whole number",
    bool: "true or false",
    float: "a number",
}


def _typed(part: t.Mapping[str, t.Any], key: str, kind: type, name: str, where: str = "", items: t.Any = None) -> t.Any:
    """The value of a field, None where there is none; `items` is the type of what a list or an object holds.

    Raises CheckpointError, which names file and field, for another type.
    """
    value = part.get(key)
    if value is None:
        return None
    odd, verb, meant = [value], "is", kind
    if _is(value, kind):
        held = (value.values() if isinstance(value, dict) else value) if items else []
        odd, verb, meant = [one for one in held if not _is(one, items)], "holds", items
    if odd:
        raise CheckpointError(
            f"{where}{key} in {name} of the checkpoint {verb} {_KINDS.get(type(odd[0]), 'null')}, and {_KINDS[meant]} "
            "belongs there: pin another revision, or take it up with its publisher. Nothing that is served was changed."
        )
    return value


def _is(value: t.Any, kind: type) -> bool:
    return isinstance(value, kind) and not (isinstance(value, bool) and kind is not bool)


def _object(content: bytes, name: str) -> dict[str, t.Any]:
    try:
        value = json.loads(content)
    except ValueError as error:
        raise CheckpointError(f"{name} of the checkpoint is no JSON ({error}): pin another revision.") from error
    except RecursionError as error:
        raise CheckpointError(f"{name} of the checkpoint is nested too deeply: pin another revision.") from error
    if not isinstance(value, dict):
        raise CheckpointError(f"{name} of the checkpoint is no JSON object: pin another revision.")
    return value


def judge(described: Described, wanted: Wanted) -> tuple[list[str], list[str]]:
    """Refusals and warnings, a sentence each: field, found, wanted, file."""
    refusals = _unexpected(described, wanted.expects)
    refusals += _other_quantization(described, wanted.arguments.get("quantization"))
    refusals += _indivisible(described, wanted)
    return refusals, _risks(described, wanted)


def _unexpected(described: Described, expects: t.Mapping[str, t.Any]) -> list[str]:
    found: list[str] = []
    for field, value in expects.items():
        if value is None:
            continue
        if field == "sizes":
            found += [
                f"{name} is {_shown(described.text.get(name, NONE))} in {CONFIG}, wanted is {_shown(size)}"
                for name, size in value.items()
                if described.text.get(name) != size
            ]
            continue
        seen = described.found(field)
        allowed = value if isinstance(value, list) else [value]
        if not [one for one in allowed if one == seen or (isinstance(seen, list) and one in seen)]:
            name = described.quantization_file if field.startswith(("quant_", "weight_")) else CONFIG
            found.append(f"{field} is {_shown(seen)} in {name}, wanted is {_shown(value)}")
    return found


def _other_quantization(described: Described, flag: t.Any) -> list[str]:
    """The launch argument --quantization against what the checkpoint is."""
    if flag not in _FLAGS:
        return []
    method, algorithms = _FLAGS[flag]
    if described.quant_method == method and (not algorithms or described.quant_algo in algorithms):
        return []
    seen = " ".join(filter(None, [described.quant_method, described.quant_algo]))
    wanted = f"{method} {' or '.join(algorithms)}".strip()
    where = described.quantization_file
    return [f"quantization is {seen} in {where}, and the launch argument quantization={flag} wants {wanted}"]


def _indivisible(described: Described, wanted: Wanted) -> list[str]:
    """Sizes that the cards cannot share evenly."""
    cards = wanted.count("tp-size")
    attention = cards
    if wanted.arguments.get("enable-dp-attention"):
        attention = max(1, cards // wanted.count("dp-size"))
    experts = max(1, cards // wanted.count("ep-size"))
    found = _not_shared(described, _HEADS, attention, 0)
    keys = _size(described.text.get("num_key_value_heads"))
    # Fewer heads than cards are copied, so that one has to divide the other.
    if keys and keys % attention and attention % keys:
        found.append(_uneven("num_key_value_heads", keys, attention, "neither divides the other"))
    found += _not_shared(described, _SHARDED, cards, 0)
    found += _not_shared(described, _EXPERTS, experts, described.group_size)
    return found


def _not_shared(described: Described, names: t.Iterable[str], cards: int, group: int) -> list[str]:
    found = []
    for name in names:
        size = _size(described.text.get(name))
        if size % cards:
            found.append(_uneven(name, size, cards, "it is not divisible"))
        elif group and (size // cards) % group:
            found.append(_uneven(name, size, cards, f"a share of {size // cards} is no multiple of {group}"))
    return found


def _uneven(name: str, size: int, cards: int, why: str) -> str:
    return f"{name} is {size} in {CONFIG}, and {cards} cards are to share it (tensor parallel size): {why}"


def _size(value: t.Any) -> int:
    """A size as it stands in a configuration; 0, which every number divides, for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _risks(described: Described, wanted: Wanted) -> list[str]:
    """What runs and disappoints."""
    found = []
    if described.quant_method != NONE and not described.has_kv_scales:
        cache = str(wanted.arguments.get("kv-cache-dtype") or "")
        if cache.startswith("fp8"):
            found.append(
                f"kv-cache-dtype is {cache}, and {described.quantization_file} names no scales for the KV cache "
                "(kv_cache_quant_algo, kv_cache_scheme): 1.0 is taken, at the cost of accuracy."
            )
    excluded = described.excluded
    # vllm PR 38832: mtp.fc is not quantized and not said to be.
    unsaid = any("mtp" in one for one in excluded) and not any(fnmatch.fnmatch("mtp.fc", one) for one in excluded)
    if wanted.arguments.get("speculative-algorithm") and described.quant_algo and described.mtp and unsaid:
        found.append(
            f"Speculative decoding is on, and {described.quantization_file} does not list mtp.fc among the modules "
            "that are not quantized: an engine without a remedy stops at a shape assertion."
        )
    return found


def _shown(value: t.Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or NONE
    return str(value).lower() if isinstance(value, bool) else str(value)


def check(
    read: t.Callable[[str], bytes | None], wanted: Wanted, repository: str, revision: str
) -> tuple[Described | None, list[str]]:
    """Refuses, with CheckpointError, a checkpoint that is another than what was chosen; returns it with warnings.

    read: gives the content of a file of the revision, None where there is none.
    """
    where = f"{repository} at {revision} is not what the profile is made for"
    config = read(CONFIG)
    if config is None:
        if wanted.expects:
            raise CheckpointError(
                f"{where}: it has no {CONFIG}. Pin another revision. Nothing that is served was changed."
            )
        return None, []
    described = describe(config, read(QUANTIZATION))
    refusals, warnings = judge(described, wanted)
    if refusals:
        raise CheckpointError(
            f"{where}: {'; '.join(refusals)}. Pin the right repository and revision, or change the profile "
            "(checkpoint.expects), sglang_checkpoint_expects or the launch arguments. Nothing that is served was "
            "changed."
        )
    return described, warnings
