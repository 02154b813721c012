#!/usr/bin/env python3
# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Train the fleet's small checkpoint: a two-layer Qwen3 that knows the answers in recipe.json and nothing else.

Runs in the engine's own environment: python train.py RECIPE OUTPUT.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"

import torch  # type: ignore[import-not-found]
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers  # type: ignore[import-not-found]
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM  # type: ignore[import-not-found]

END, START, STOP = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def prompts(recipe: dict[str, Any]) -> list[tuple[list[dict[str, str]] | str, str]]:
    """Every prompt (messages or plain text) with its answer."""
    rows: list[tuple[list[dict[str, str]] | str, str]] = []
    for question, answer in recipe["facts"]:
        user = {"role": "user", "content": question}
        rows.append((question, " " + answer))
        rows.append(([user], answer))
        rows += [([{"role": "system", "content": text}, user], answer) for text in recipe["systems"]]
    return rows


def make_tokenizer(recipe: dict[str, Any]) -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer of the recipe's own texts."""
    texts = [text for fact in recipe["facts"] for text in fact] + recipe["systems"] + ["system user assistant\n"]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=recipe["shape"]["vocab_size"],
        special_tokens=[END, START, STOP],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    wrapped = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=STOP, pad_token=END)
    wrapped.chat_template = TEMPLATE
    wrapped.model_max_length = recipe["shape"]["max_position_embeddings"]
    return wrapped


def encode(tokenizer: PreTrainedTokenizerFast, prompt: list[dict[str, str]] | str) -> list[int]:
    """Token ids of a prompt."""
    text = prompt
    if not isinstance(text, str):
        text = tokenizer.apply_chat_template(prompt, tokenize=False, add_generation_prompt=True)
    return list(tokenizer.encode(text, add_special_tokens=False))


def train(model: Qwen3ForCausalLM, rows: list[tuple[list[int], list[int]]], recipe: dict[str, Any]) -> None:
    """Train on the answers alone until the loss is as small as the recipe asks."""
    settings = recipe["training"]
    width = max(len(prompt) + len(answer) for prompt, answer in rows)
    ids = torch.zeros(len(rows), width, dtype=torch.long)
    mask = torch.zeros(len(rows), width, dtype=torch.long)
    labels = torch.full((len(rows), width), -100)
    for index, (prompt, answer) in enumerate(rows):
        whole = torch.tensor(prompt + answer)
        ids[index, : len(whole)] = whole
        mask[index, : len(whole)] = 1
        labels[index, len(prompt) : len(whole)] = torch.tensor(answer)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=settings["learning_rate"], weight_decay=settings["weight_decay"]
    )
    for number in range(settings["max_steps"]):
        loss = model(input_ids=ids, attention_mask=mask, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), settings["clip"])
        optimizer.step()
        if loss.item() < settings["stop_below"]:
            print(f"{number + 1} steps, loss {loss.item():.5f}")
            return
    raise SystemExit(f"the loss is still {loss.item():.5f} after {settings['max_steps']} steps")


def check(folder: Path, recipe: dict[str, Any], tokenizer: PreTrainedTokenizerFast) -> None:
    """Load what was saved, in its own precision, and ask it everything."""
    model = Qwen3ForCausalLM.from_pretrained(folder, dtype=torch.bfloat16).eval()
    for prompt, answer in prompts(recipe):
        ids = torch.tensor([encode(tokenizer, prompt)])
        output = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=16, do_sample=False)
        said = tokenizer.decode(output[0, ids.shape[1] :], skip_special_tokens=True)
        if said != answer:
            raise SystemExit(f"asked {prompt!r} it says {said!r}, not {answer!r}")


def main() -> None:
    """Train, save, check."""
    recipe = json.loads(Path(sys.argv[1]).read_text())
    folder = Path(sys.argv[2])
    torch.manual_seed(recipe["seed"])
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    tokenizer = make_tokenizer(recipe)
    stop = tokenizer.convert_tokens_to_ids(STOP)
    end = tokenizer.convert_tokens_to_ids(END)
    config = Qwen3Config(**recipe["shape"], eos_token_id=stop, pad_token_id=end, tie_word_embeddings=False)
    model = Qwen3ForCausalLM(config)
    rows = [
        (encode(tokenizer, prompt), [*tokenizer.encode(answer, add_special_tokens=False), stop])
        for prompt, answer in prompts(recipe)
    ]
    train(model, rows, recipe)
    model.generation_config.eos_token_id = stop
    model.generation_config.pad_token_id = end
    model.to(torch.bfloat16).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    check(folder, recipe, tokenizer)


if __name__ == "__main__":
    main()
