"""Logits and greedy tokens of tiny made-up language models of every family, by transformers in float32.

    python3.11 -m venv venv && venv/bin/pip install torch==2.15.0 transformers==5.23.0 numpy==2.4.6
    venv/bin/python tests/golden/make_llm.py [../shared/data/llm/TinyStories-656K/models/story]

For each case llm/NAME holds config.json as transformers saves it; tensors.tsv, the names and shapes that it saves;
ids.npy, int32: a prompt of PROMPT tokens and the STEPS that greedy decoding adds; logits.npy, float32 [len(AT)][vocab]:
after the prompt and further on. Weights are not stored: tests/test_llm.c makes them by the same rule. Tensor k of
tensors.tsv has the numbers of lcg(k + 1): q = rint(127 x) / 128, 7 bits and a sign, so that F32, F16, BF16 and Q8_0
hold the same weights exactly; matrices q / 4 (embeddings q), norms' weights 1 + q / 4, biases q / 4.
"""
import os
import shutil
import sys
import tempfile

import numpy as np
import torch
import transformers as tf
from safetensors import safe_open
from safetensors.torch import save_file

from golden_set import lcg

PROMPT, STEPS, AT = 20, 256, [0, 1, 15, 63, 127, 255]
HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "llm")

llama = dict(hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             vocab_size=128, max_position_embeddings=512, bos_token_id=None, eos_token_id=None, pad_token_id=None)


def rope(**parameters):
    return dict(rope_parameters=dict(rope_theta=10000.0, **parameters))


CASES = {
    "gpt2": tf.GPT2Config(n_embd=48, n_layer=2, n_head=3, n_positions=300, vocab_size=128, bos_token_id=None,
                          eos_token_id=None),
    "llama": tf.LlamaConfig(**llama, rms_norm_eps=1e-5),
    "llama_bias": tf.LlamaConfig(**llama, attention_bias=True, mlp_bias=True, tie_word_embeddings=True),
    "llama_linear": tf.LlamaConfig(**llama, **rope(rope_type="linear", factor=4.0)),
    "llama_dynamic": tf.LlamaConfig(**{**llama, "max_position_embeddings": 64},
                                    **rope(rope_type="dynamic", factor=2.0)),
    "llama_yarn": tf.LlamaConfig(**llama, **rope(rope_type="yarn", factor=8.0, original_max_position_embeddings=64)),
    "llama_llama3": tf.LlamaConfig(**llama, **rope(rope_type="llama3", factor=8.0, low_freq_factor=1.0,
                                                   high_freq_factor=4.0, original_max_position_embeddings=64)),
    "mistral": tf.MistralConfig(**llama, sliding_window=32),
    "qwen2": tf.Qwen2Config(**llama, tie_word_embeddings=True),
    "qwen2_windows": tf.Qwen2Config(**llama, use_sliding_window=True, sliding_window=32,
                                    layer_types=["sliding_attention", "full_attention"]),
    "qwen3": tf.Qwen3Config(**llama, head_dim=24, tie_word_embeddings=True),
    "qwen3_windows": tf.Qwen3Config(**llama, head_dim=16, use_sliding_window=True, sliding_window=32,
                                    max_window_layers=1),
    "mixtral": tf.MixtralConfig(**{**llama, "intermediate_size": 48}, num_local_experts=4, num_experts_per_tok=2,
                                sliding_window=None),
    "mixtral_window": tf.MixtralConfig(**{**llama, "intermediate_size": 48}, num_local_experts=4,
                                       num_experts_per_tok=2, sliding_window=32),
    "qwen3_moe": tf.Qwen3MoeConfig(**llama, head_dim=24, num_experts=8, num_experts_per_tok=3, norm_topk_prob=True,
                                   moe_intermediate_size=40, mlp_only_layers=[0]),
}


def values(name, shape, seed):
    q = np.rint(127 * lcg(seed, int(np.prod(shape)))) / 128
    embedding = any(part in name for part in ("embed_tokens", "wte", "wpe"))
    norm = len(shape) == 1 and name.endswith(".weight")
    x = q if embedding else 1 + q / 4 if norm else q / 4
    return torch.from_numpy(np.ascontiguousarray(x.reshape(shape), dtype=np.float32))


def make_weights(folder):
    """Replace the weights that transformers saved; returns (name, shape) in the order of the names."""
    path = os.path.join(folder, "model.safetensors")
    with safe_open(path, "pt") as file:
        shapes = [(name, list(file.get_slice(name).get_shape())) for name in sorted(file.keys())]
    save_file({name: values(name, shape, k + 1) for k, (name, shape) in enumerate(shapes)}, path, {"format": "pt"})
    return shapes


def greedy(model, prompt):
    ids, logits, past, step = list(prompt), [], None, torch.tensor([list(prompt)])
    with torch.no_grad():
        for n in range(STEPS):
            out = model(input_ids=step, past_key_values=past, use_cache=True)
            past, last = out.past_key_values, out.logits[0, -1].float()
            top = last.topk(2).values
            if top[0] - top[1] < 1e-4 * last.abs().max():
                print(f"  step {n}: the two largest logits are {top.tolist()}, near each other")
            if n in AT:
                logits.append(last.numpy().copy())
            ids.append(int(last.argmax()))
            step = torch.tensor([[ids[-1]]])
    return np.array(ids, dtype="<i4"), np.array(logits, dtype="<f4")


def write(folder, ids, logits):
    np.save(os.path.join(folder, "ids.npy"), ids)
    np.save(os.path.join(folder, "logits.npy"), logits)


def load(folder):
    model = tf.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    return model.eval()


def make_case(name, config):
    out = os.path.join(HERE, name)
    os.makedirs(out, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        config.dtype = torch.float32
        tf.AutoModelForCausalLM.from_config(config).save_pretrained(folder)
        shapes = make_weights(folder)
        shutil.copy(os.path.join(folder, "config.json"), out)
        with open(os.path.join(out, "tensors.tsv"), "w", newline="\n") as file:
            file.writelines(f"{tensor}\t{','.join(map(str, shape))}\n" for tensor, shape in shapes)
        prompt = np.rint(63.5 + 63.5 * lcg(1000, PROMPT)).astype(int)
        write(out, *greedy(load(folder), prompt))
    print(name, sum(int(np.prod(shape)) for _, shape in shapes), "weights")


def make_stories(folder):
    """The real model of the shared data: tokens and logits only."""
    out = os.path.join(HERE, "tinystories")
    os.makedirs(out, exist_ok=True)
    prompt = tf.AutoTokenizer.from_pretrained(folder)("Once upon a time, there was a little")["input_ids"]
    ids, logits = greedy(load(folder), prompt)
    write(out, ids, logits)
    print("tinystories", len(prompt), "tokens of prompt", prompt)


torch.manual_seed(0)
torch.set_num_threads(2)
for case, config in CASES.items():
    make_case(case, config)
if len(sys.argv) > 1:
    make_stories(sys.argv[1])
