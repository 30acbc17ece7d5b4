"""What is left of random logits by random settings of a sampler, for tests/test_llm_sample.c: the definitions of
transformers 5.23.0 (generation/logits_process.py, the classes named below, in the order of generate), in Python's
doubles. Its code was read and not run, so that neither torch nor NumPy is needed.

    python3 tests/golden/make_sampling.py

llm/sampling.npy is float32 [CASES][8 + 3 VOCAB]: temperature, top_k, top_p, min_p, typical_p, repetition_penalty, the
token that has a bias (-1 = none) and the bias; then the logits, 1 for tokens that the prompt has, and probabilities.
Settings are multiples of 1/64, so that they are the same in float and in double. Biases come without a repetition
penalty, which transformers applies behind them, and we before.
"""
import math
import os
import random
import struct

VOCAB, CASES = 16, 96
HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "llm")
OUT = -math.inf


def softmax(x):
    powers = [math.exp(v - max(x)) for v in x]
    return [p / sum(powers) for p in powers]


def order(keys):
    return sorted(range(len(keys)), key=keys.__getitem__)


def repetition(x, penalty, seen):  # RepetitionPenaltyLogitsProcessor
    return [(v * penalty if v < 0 else v / penalty) if k in seen else v for k, v in enumerate(x)]


def top_k(x, k):  # TopKLogitsWarper
    least = sorted(x)[-k]
    return [v if v >= least else OUT for v in x]


def top_p(x, share):  # TopPLogitsWarper: the least probable go while their sum is 1 - share at most; the last stays
    p, total, x = softmax(x), 0, list(x)
    for k in order(p)[:-1]:
        total += p[k]
        if total <= 1 - share:
            x[k] = OUT
    return x


def min_p(x, share):  # MinPLogitsWarper
    p = softmax(x)
    return [v if q >= share * max(p) else OUT for v, q in zip(x, p)]


def typical(x, mass):  # TypicalLogitsWarper: up to the one with which the sum reaches the mass
    p = softmax(x)
    entropy = -sum(q * math.log(q) for q in p if q > 0)
    away = [abs(-math.log(q) - entropy) if q > 0 else math.inf for q in p]
    total, last = 0, 0
    for k in order(away):
        if total < mass and p[k] > 0:
            total, last = total + p[k], away[k]
    return [v if a <= last else OUT for v, a in zip(x, away)]


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
    x = [v + bias if token == biased else v for token, v in enumerate(x)]  # SequenceBiasLogitsProcessor
    x = [v / temperature for v in repetition(x, penalty, seen)]  # TemperatureLogitsWarper
    x = top_k(x, k) if k else x
    x = top_p(x, p) if p < 1 else x
    x = min_p(x, least) if least else x
    return softmax(typical(x, mass) if mass < 1 else x)


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
