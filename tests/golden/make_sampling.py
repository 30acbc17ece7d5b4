"""What is left of random logits by random settings of a sampler, for tests/test_llm_sample.c, by the processors of
transformers 5.23.0 in the order in which its generate() has them, in doubles.

    python3.11 -m venv venv && venv/bin/pip install torch==2.15.0 transformers==5.23.0
    venv/bin/python tests/golden/make_sampling.py

llm/sampling.npy is float32 [CASES][8 + 3 VOCAB]: temperature, top_k, top_p, min_p, typical_p, repetition_penalty, the
token that has a bias (-1 = none) and the bias; then the logits, 1 for tokens that the prompt has, and probabilities.
Settings are multiples of 1/64, so that they are the same in float and in double. Biases come without a repetition
penalty, which transformers applies behind them, and we before.
"""
import os
import random
import struct

import torch
import transformers as tf

VOCAB, CASES = 16, 96
HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "llm")
model = tf.LlamaForCausalLM(tf.LlamaConfig(hidden_size=8, intermediate_size=8, num_hidden_layers=1, vocab_size=VOCAB,
                                           num_attention_heads=1))


def some(chance, low, high, off):
    return random.randrange(int(64 * low), int(64 * high)) / 64 if random.random() < chance else off


def settings():
    biased = random.random() < 0.2
    return [some(0.7, 0.25, 2, 1.0), random.randrange(1, VOCAB) if random.random() < 0.4 else 0,
            some(0.5, 0.1, 1, 1.0), some(0.4, 0.02, 0.5, 0.0), some(0.4, 0.1, 1, 1.0),
            1.0 if biased else some(0.4, 0.5, 2, 1.0), random.randrange(VOCAB) if biased else -1,
            some(1, -3, 3, 0.0) if biased else 0.0]


def probabilities(s, x, seen):
    temperature, k, p, least, mass, penalty, biased, bias = s
    # a bias by a dict of tuples: releases before 5.23 refuse token 0 in a list of lists
    config = tf.GenerationConfig(do_sample=True, temperature=temperature, top_k=k, top_p=p, min_p=least or None,
                                 typical_p=mass, repetition_penalty=penalty,
                                 sequence_bias={(biased,): bias} if biased >= 0 else None)
    prompt = torch.tensor([sorted(seen)])
    processors = model._get_logits_processor(config, input_ids_seq_length=prompt.shape[1])
    return torch.softmax(processors(prompt, torch.tensor([x], dtype=torch.float64)), dim=-1)[0].tolist()


def main():
    random.seed(19)
    rows = []
    for _ in range(CASES):
        s = settings()
        x = struct.unpack(f"<{VOCAB}f", struct.pack(f"<{VOCAB}f", *(random.gauss(0, 2.5) for _ in range(VOCAB))))
        seen = {random.randrange(VOCAB) for _ in range(5)}
        rows.append(struct.pack(f"<{8 + 3 * VOCAB}f", *s, *x, *(token in seen for token in range(VOCAB)),
                                *probabilities(s, x, seen)))
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({CASES}, {8 + 3 * VOCAB}), }}"
    head += " " * (63 - (10 + len(head)) % 64) + "\n"
    with open(os.path.join(HERE, "sampling.npy"), "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + b"".join(rows))


if __name__ == "__main__":
    main()
