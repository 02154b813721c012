# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a checkpoint says of itself, against the profile and the launch arguments."""

from __future__ import annotations

import json
import typing as t
from pathlib import Path

import pytest
import yaml
from ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint import config
from ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint.config import Wanted
from ansible_collections.llmfleet.sglang.plugins.module_utils._checkpoint.errors import CheckpointError

PROFILES = Path(__file__).parents[3] / "playbooks" / "profiles"
QWEN = yaml.safe_load((PROFILES / "qwen3_5_397b_nvfp4.yml").read_text())["checkpoint"]["expects"]
KIMI = yaml.safe_load((PROFILES / "kimi_k2_5_int4.yml").read_text())["checkpoint"]["expects"]
LAUNCH = {"quantization": "modelopt_fp4", "tp-size": 8, "kv-cache-dtype": "fp8_e4m3"}
# The sizes are those of the model card; the form is that of Model Optimizer's exports.
TEXT = {
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 2,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 64,
    "moe_intermediate_size": 1024,
    "mtp_num_hidden_layers": 1,
}
NVFP4 = {"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": [], "kv_cache_scheme": {"type": "float"}}


def qwen(text: dict[str, t.Any] | None = None, **changes: t.Any) -> dict[str, t.Any]:
    """A configuration of the model; None takes a field out."""
    whole = {
        "architectures": ["Qwen3_5MoeForConditionalGeneration"],
        "dtype": "bfloat16",
        "text_config": {**TEXT, **(text or {})},
        "vision_config": {"depth": 27},
        "quantization_config": NVFP4,
        **changes,
    }
    return {name: value for name, value in whole.items() if value is not None}


def checked(
    whole: dict[str, t.Any] | None, beside: dict[str, t.Any] | None = None, wanted: Wanted | None = None
) -> list[str]:
    """Check and return the warnings."""
    files = {config.CONFIG: whole, config.QUANTIZATION: beside}
    contents = {name: json.dumps(value).encode() for name, value in files.items() if value is not None}
    _found, warnings = config.check(contents.get, wanted or Wanted(QWEN, LAUNCH), "nvidia/Model", "a" * 40)
    return warnings


def refusal(*arguments: t.Any, **more: t.Any) -> str:
    """Check and return why it is refused."""
    with pytest.raises(CheckpointError) as caught:
        checked(*arguments, **more)
    assert "nvidia/Model at aaaa" in str(caught.value)
    assert "Nothing that is served was changed" in str(caught.value)
    return str(caught.value)


def test_the_right_checkpoint_passes_without_a_warning() -> None:
    assert checked(qwen()) == []


def test_the_quantization_may_stand_beside_the_configuration() -> None:
    beside = {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8"}}
    assert checked(qwen(quantization_config=None), beside) == []


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"architectures": ["Qwen3MoeForCausalLM"]}, "architecture is Qwen3MoeForCausalLM in config.json, wanted is"),
        (
            {"quantization_config": {**NVFP4, "quant_algo": "MIXED_PRECISION"}},
            "quant_algo is MIXED_PRECISION in",
        ),
        (
            {"quantization_config": {**NVFP4, "quant_algo": "FP8"}},
            "launch argument quantization=modelopt_fp4 wants",
        ),
        ({"quantization_config": {"quant_method": "fp8"}}, "quant_method is fp8 in config.json, wanted is modelopt"),
        ({"quantization_config": None}, "quant_method is none in config.json, wanted is modelopt"),
        ({"vision_config": None}, "vision is false in config.json, wanted is true"),
        ({"text": {"num_attention_heads": 64}}, "num_attention_heads is 64 in config.json, wanted is 32"),
    ],
)
def test_another_checkpoint_is_refused_with_field_found_wanted_and_file(changes: dict[str, t.Any], says: str) -> None:
    assert says in refusal(qwen(**changes))


@pytest.mark.parametrize("field", ["dtype", "torch_dtype"])
def test_the_dtype_has_two_names(field: str) -> None:
    whole = {**qwen(dtype=None), field: "float16"}
    assert "dtype is float16 in config.json, wanted is bfloat16" in refusal(whole, wanted=Wanted({"dtype": "bfloat16"}))


def test_a_checkpoint_without_layers_for_mtp_is_refused_where_they_are_wanted() -> None:
    says = refusal(qwen(text={"mtp_num_hidden_layers": 0}), wanted=Wanted({"mtp": True}))
    assert "mtp is false in config.json, wanted is true" in says


def test_a_list_allows_any_of_its_values() -> None:
    wanted = Wanted({"quant_algo": ["FP8", "NVFP4"], "architecture": ["A", "Qwen3_5MoeForConditionalGeneration"]})
    assert checked(qwen(), wanted=wanted) == []
    assert "wanted is A, B" in refusal(qwen(), wanted=Wanted({"architecture": ["A", "B"]}))


@pytest.mark.parametrize(
    ("text", "arguments", "says"),
    [
        ({}, {"tp-size": 12}, "num_attention_heads is 32 in config.json, and 12 cards are to share it"),
        ({"num_key_value_heads": 3}, {"tp-size": 8}, "num_key_value_heads is 3"),
        ({"linear_num_value_heads": 12}, {"tp-size": 8}, "linear_num_value_heads is 12"),
        ({"hidden_size": 4100}, {"tp-size": 8}, "hidden_size is 4100"),
        ({"moe_intermediate_size": 1030}, {"tp-size": 8}, "moe_intermediate_size is 1030"),
        ({"moe_intermediate_size": 1088}, {"tp-size": 8}, "a share of 136 is no multiple of 16"),
    ],
)
def test_sizes_that_the_cards_cannot_share_are_refused(
    text: dict[str, t.Any], arguments: dict[str, t.Any], says: str
) -> None:
    assert says in refusal(qwen(text=text), wanted=Wanted({}, arguments))


def test_key_value_heads_that_are_fewer_than_the_cards_are_copied() -> None:
    assert checked(qwen(text={"num_key_value_heads": 2}), wanted=Wanted({}, {"tp-size": 8})) == []


def test_expert_parallel_leaves_an_expert_whole_and_data_parallel_attention_the_heads() -> None:
    text = {"moe_intermediate_size": 1088, "num_attention_heads": 12, "num_key_value_heads": 12}
    arguments = {"tp-size": 8, "ep-size": 8, "dp-size": 8, "enable-dp-attention": True}
    wanted = Wanted({}, arguments)
    assert checked(qwen(text={**text, "linear_num_key_heads": 1, "linear_num_value_heads": 1}), wanted=wanted) == []


def test_int4_of_compressed_tensors() -> None:
    quantization = {
        "quant_method": "compressed-tensors",
        "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "int", "group_size": 32}}},
    }
    whole = {
        "architectures": ["KimiK25ForConditionalGeneration"],
        "text_config": {
            "dtype": "bfloat16",
            "moe_intermediate_size": 2048,
            "num_nextn_predict_layers": 0,
            "quantization_config": quantization,
        },
        "vision_config": {"patch_size": 14},
    }
    wanted = Wanted(KIMI, {"tp-size": 8})
    assert checked(whole, wanted=wanted) == []
    quantization["config_groups"]["group_0"]["weights"]["num_bits"] = 8  # type: ignore[index]
    assert "weight_bits is 8 in config.json, wanted is 4" in refusal(whole, wanted=wanted)


def test_files_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(CheckpointError, match=r"quant_algo is NVFP4 in config\.json and FP8 in hf_quant_config\.json"):
        checked(qwen(), {"quantization": {"quant_algo": "FP8"}})


@pytest.mark.parametrize("content", [b"", b"[]", b"\xff"])
def test_what_is_no_configuration_is_refused(content: bytes) -> None:
    with pytest.raises(CheckpointError, match=r"config\.json of the checkpoint is no JSON"):
        config.check({config.CONFIG: content}.get, Wanted(QWEN), "nvidia/Model", "a" * 40)


@pytest.mark.parametrize(
    ("changes", "beside", "says"),
    [
        (
            {"quantization_config": [1]},
            None,
            "quantization_config in config.json of the checkpoint is a list, and an object",
        ),
        ({"quantization_config": "fp4"}, None, "quantization_config in config.json of the checkpoint is a text"),
        ({"text_config": []}, None, "text_config in config.json of the checkpoint is a list"),
        (
            {"text_config": {"quantization_config": 1}, "quantization_config": None},
            None,
            "text_config.quantization_config",
        ),
        ({"architectures": 1}, None, "architectures in config.json of the checkpoint is a whole number, and a list"),
        ({"architectures": [None]}, None, "architectures in config.json of the checkpoint holds null, and a text"),
        ({"dtype": {}}, None, "dtype in config.json of the checkpoint is an object"),
        ({"quantization_config": {"config_groups": [1]}}, None, "quantization_config.config_groups in config.json"),
        (
            {"quantization_config": {"config_groups": {"g": 1}}},
            None,
            "config_groups in config.json of the checkpoint holds",
        ),
        (
            {"quantization_config": {"config_groups": {"g": {"weights": {"num_bits": [4]}}}}},
            None,
            "quantization_config.config_groups.g.weights.num_bits in config.json of the checkpoint is a list",
        ),
        (
            {"quantization_config": {"quant_algo": True}},
            None,
            "quant_algo in config.json of the checkpoint is true or false",
        ),
        ({"quantization_config": {"ignore": "lm_head"}}, None, "quantization_config.ignore in config.json"),
        ({}, {"quantization": []}, "quantization in hf_quant_config.json of the checkpoint is a list"),
    ],
)
def test_a_field_of_an_odd_type_is_refused_with_file_and_field(
    changes: dict[str, t.Any], beside: dict[str, t.Any] | None, says: str
) -> None:
    with pytest.raises(CheckpointError, match=r"belongs there: pin another revision") as caught:
        checked({**qwen(), **changes}, beside)
    assert says in str(caught.value)


def test_a_configuration_nested_too_deeply_is_refused() -> None:
    content = b'{"a":' * 100_000 + b"1" + b"}" * 100_000
    with pytest.raises(CheckpointError, match=r"config\.json of the checkpoint is nested too deeply"):
        config.check({config.CONFIG: content}.get, Wanted(QWEN), "nvidia/Model", "a" * 40)


def test_a_repository_without_a_configuration_is_refused_where_something_is_expected() -> None:
    assert "it has no config.json" in refusal(None)
    assert checked(None, wanted=Wanted({}, LAUNCH)) == []


def test_an_fp8_cache_without_scales_is_a_warning() -> None:
    plain = {key: value for key, value in NVFP4.items() if key != "kv_cache_scheme"}
    [warning] = checked(qwen(quantization_config=plain))
    assert "kv-cache-dtype is fp8_e4m3" in warning
    assert checked(qwen(quantization_config=plain), wanted=Wanted(QWEN, {**LAUNCH, "kv-cache-dtype": "auto"})) == []


@pytest.mark.parametrize(("excluded", "warned"), [(["mtp.layers.0*"], True), (["mtp*"], False), (["mtp.fc"], False)])
def test_speculative_decoding_with_a_head_that_is_not_excluded_is_a_warning(excluded: list[str], warned: bool) -> None:
    wanted = Wanted(QWEN, {**LAUNCH, "speculative-algorithm": "NEXTN"})
    warnings = checked(qwen(quantization_config={**NVFP4, "ignore": excluded}), wanted=wanted)
    assert bool([one for one in warnings if "mtp.fc" in one]) == warned


@pytest.mark.parametrize("path", sorted(PROFILES.glob("*.yml")), ids=lambda path: path.stem)
def test_every_profile_says_what_its_checkpoint_has_to_be(path: Path) -> None:
    profile = yaml.safe_load(path.read_text())
    expects = profile["checkpoint"]["expects"]
    assert {"architecture", "quant_method"} <= set(expects) <= set(config.EXPECTED)
