# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Does the engine fit the host: memory of the cards, parallel sizes, driver, main memory. PRIVATE to the collection."""

from __future__ import annotations

from .._deployment import versions
from .facts import Facts
from .findings import BLOCKS, INFORMS, WARNS, Finding
from .model import Model, model_of
from .wanted import Launch, Wanted

MIB, GB = 2**20, 10**9
# What SGLang takes by itself differs by version, card and model; its profiles for these cards all set the argument.
LEAST_SHM = 8 * GB  # what those who run it in containers give it (rtx6kpro wiki, qwen35-397b.md)


def check_fit(facts: Facts, wanted: Wanted) -> list[Finding]:
    """Findings on whether the engine that is to be started fits."""
    if wanted.gpu_count == 0 or not wanted.launch.on_cards:
        return []
    model = model_of(facts.model)
    return [
        *_parallel(wanted, model),
        *_memory(facts, wanted, model),
        *_cuda(facts, wanted),
        *_ram(facts, wanted),
        *_shm(facts, wanted.launch),
    ]


def _parallel(wanted: Wanted, model: Model | None) -> list[Finding]:
    launch = wanted.launch
    problems = []
    if launch.ranks > wanted.gpu_count:
        sizes = ", ".join(
            f"{name} {launch.arguments[name]}" for name in ("tp-size", "pp-size", "dp-size") if launch.has(name)
        )
        problems.append(f"{sizes} take {launch.ranks} cards, and the deployment has {wanted.gpu_count}")
    if model:
        within = launch.tensor // (launch.data if launch.has("enable-dp-attention") else 1) or 1
        if model.heads % within:
            problems.append(f"{model.heads} attention heads cannot be split over {within} cards")
        if model.kv_heads and model.kv_heads % within and within % model.kv_heads:
            problems.append(f"{model.kv_heads} KV heads can neither be split nor copied evenly over {within} cards")
        parts = int(launch.number("ep-size")) or 1
        if model.experts and model.experts % parts:
            problems.append(f"{model.experts} experts cannot be split over ep-size {parts}")
    if not problems:
        return []
    words = "; ".join(problems)
    return [
        Finding(
            "tensor_parallel",
            BLOCKS,
            f"The parallel sizes do not fit: {words}.",
            words,
            "Change them in sglang_arguments.",
        )
    ]


def _memory(facts: Facts, wanted: Wanted, model: Model | None) -> list[Finding]:
    """What SGLang does with mem-fraction-static: weights and KV cache together get that share of a card."""
    launch = wanted.launch
    totals = [gpu.memory_total for gpu in facts.gpus.gpus if gpu.memory_total]
    fraction = launch.number("mem-fraction-static")
    if not totals or not fraction or not wanted.models_bytes:
        return []
    card = min(totals)
    share = int(card * fraction)
    whole = -(-wanted.models_bytes // launch.split // MIB)
    offloaded = int(launch.number("cpu-offload-gb") * 1024)
    weights = max(0, whole - offloaded)
    room = share - weights
    less = f", less {offloaded} MiB in main memory" if offloaded else ""
    sum_up = (
        f"{card} MiB x {fraction:g} = {share} MiB for weights and KV cache; {wanted.models_bytes / GB:.1f} GB of "
        f"weights / {launch.split} cards = {whole} MiB{less}; "
    )
    if room <= 0:
        advice = "Take more cards (tp-size), a smaller checkpoint, or a greater mem-fraction-static."
        message = f"The weights do not fit: {sum_up}short of {-room} MiB before any KV cache."
        return [Finding("memory_fit", BLOCKS, message, sum_up, advice)]
    sum_up += f"{room} MiB left for the KV cache"
    if not model:
        return [Finding("memory_fit", INFORMS, f"Memory of a card: {sum_up}.", sum_up)]
    return [_tokens(launch, model, room, sum_up)]


def _tokens(launch: Launch, model: Model, room: int, sum_up: str) -> Finding:
    each, how = model.kv_bytes(launch.tensor, str(launch.arguments.get("kv-cache-dtype") or "auto"))
    tokens = int(room * MIB // each) if each else 0
    sum_up += f", at {how} = {each:.0f} bytes a token on a card: about {tokens} tokens"
    wish = "max-total-tokens" if launch.has("max-total-tokens") else "context-length"
    asked = int(launch.number(wish))
    if each and asked > tokens:
        message = f"The KV cache is smaller than {wish} {asked}: {sum_up}."
        return Finding(
            "memory_fit", WARNS, message, sum_up, "Take a smaller type of KV cache, more cards, or ask for less."
        )
    return Finding("memory_fit", INFORMS, f"Memory of a card: {sum_up}.", sum_up)


def least_cuda(version: str, capability: str) -> tuple[int, int]:
    """The CUDA that a driver has to run for this SGLang version, as the build's rules have it.

    CUDA of one major version runs on every driver for that major version; capability 12 came with 12.8.
    """
    try:
        older = versions.parse(version) < (0, 5, 11, 0)
    except ValueError:
        older = False
    if not older:
        return (13, 0)
    return (12, 8) if capability.partition(".")[0] == "12" else (12, 0)


def _cuda(facts: Facts, wanted: Wanted) -> list[Finding]:
    have = _version(facts.view.cuda)
    if have is None:
        return []
    built = _version(facts.releases.get(wanted.commit, ""))
    need = (built[0], 0) if built else least_cuda(wanted.sglang_version, wanted.compute_capability)
    if have >= need:
        return []
    what = "the finished release" if built else f"SGLang {wanted.sglang_version}"
    drivers = ", ".join(sorted({gpu.driver for gpu in facts.gpus.gpus}))
    return [
        Finding(
            "cuda_lane",
            BLOCKS,
            f"The driver {drivers} runs CUDA up to {facts.view.cuda}, and {what} needs {need[0]}.{need[1]}.",
            f"driver {drivers}, CUDA {facts.view.cuda}",
            f"Install a driver for CUDA {need[0]}, or an SGLang version of the driver's CUDA (sglang_version).",
        )
    ]


def _version(text: str) -> tuple[int, int] | None:
    major, _dot, minor = text.partition(".")
    return (int(major), int(minor.partition(".")[0] or 0)) if major.isdigit() else None


def _ram(facts: Facts, wanted: Wanted) -> list[Finding]:
    launch = wanted.launch
    total = facts.memory_total
    parts = {"cpu-offload-gb": 2**30, "hicache-size": GB}
    asked = {name: int(launch.number(name) * unit) * launch.ranks for name, unit in parts.items() if launch.has(name)}
    need = sum(asked.values())
    if need > total:
        words = " and ".join(f"{name} {launch.arguments[name]} on {launch.ranks} cards" for name in asked)
        message = f"{words} take {need / GB:.1f} GB of main memory, and the host has {total / GB:.1f} GB."
        return [Finding("ram", BLOCKS, message, f"{total} bytes", "Ask for less, or leave it out.")]
    if total < wanted.models_bytes:
        message = (
            f"Main memory ({total / GB:.1f} GB) is smaller than the checkpoint ({wanted.models_bytes / GB:.1f} GB): "
            "every start reads it from the disk again."
        )
        return [Finding("ram", INFORMS, message, f"{total} bytes", "Nothing needs to be done if the disk is fast.")]
    return []


def _shm(facts: Facts, launch: Launch) -> list[Finding]:
    if launch.ranks < 2:
        return []
    shm = facts.shm
    advice = "Mount a tmpfs on /dev/shm, by default half of main memory (mount -o remount,size=50% /dev/shm)."
    if shm.problem or shm.parent != shm.path or shm.read_only:
        return [
            Finding("shm", BLOCKS, "/dev/shm cannot be used; the engine's processes talk by it.", shm.parent, advice)
        ]
    if shm.total < LEAST_SHM:
        sizes = f"{shm.total / GB:.1f} GB, of which {shm.free / GB:.1f} are free"
        message = f"/dev/shm has {sizes}; give it {LEAST_SHM // GB} GB."
        return [Finding("shm", WARNS, message, f"{shm.total} bytes", advice)]
    return []
