"""Results of neural operations by torch in float64, for tests/test_nn*.c.

    python3.11 -m venv venv && venv/bin/pip install torch==2.15.0 numpy==2.4.6
    venv/bin/python tests/golden/make_nn.py

nn/NAME.npy holds one result each, rounded to float32. Inputs are not stored: the tests make them by the same rule,
rint(127 lcg(seed)) / 128 * scale + offset, which F32, F16 and BF16 hold exactly.
"""
import os
import sys

import numpy as np
import torch
import torch.nn.functional as F

from golden_set import lcg

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "nn")
torch.set_default_dtype(torch.float64)


def values(seed, *shape, scale=1.0, offset=0.0):
    x = np.rint(127 * lcg(seed, int(np.prod(shape)))) / 128 * scale + offset
    return torch.from_numpy(x.reshape(shape))


def save(name, x):
    with open(os.path.join(HERE, name + ".npy"), "wb") as file:
        x = np.ascontiguousarray(x.detach().numpy(), dtype="<f4")
        np.lib.format.write_array(file, x, version=(1, 0), allow_pickle=False)


def rms(x, eps):
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + eps)


def snake(x, alpha):
    return x + torch.sin(alpha * x) ** 2 / alpha


ACTIVATIONS = [lambda x: x, F.relu, F.silu, F.gelu, lambda x: F.gelu(x, approximate="tanh"), torch.sigmoid, torch.tanh,
               lambda x: F.leaky_relu(x, 0.25), lambda x: F.relu(x) ** 2]


def pointwise():
    x, bias = values(1, 5, 37, scale=8), values(2, 37)
    up, residual, alpha = values(3, 5, 37), values(4, 5, 37), values(5, 3, scale=0.5, offset=1)
    save("activations", torch.stack([f(x + bias) for f in ACTIVATIONS]))
    save("swiglu", F.silu(x) * up)
    save("geglu", F.gelu(x + bias) * up + residual)
    signals, channels = values(6, 2, 3, 41, scale=4), values(7, 3)
    save("snake", snake(signals + channels[:, None], alpha[:, None]))


def norms():
    x, residual = values(1, 6, 100), values(2, 6, 100)
    w, b, many = values(3, 100, scale=0.5, offset=1), values(4, 100), values(5, 3, 200)
    save("rms", rms(x, 1e-6) * w)
    save("rms_sum", x + residual)
    save("rms_residual", rms(x + residual, 1e-6) * w)
    save("layer", F.layer_norm(x, [100], w, b))
    save("l2", F.normalize(x, eps=1e-6))
    rows = many.repeat_interleave(2, 0)
    save("ada_layer", F.layer_norm(x, [100]) * (1 + rows[:, :100]) + rows[:, 100:])
    y, gamma, beta, alpha = values(6, 2, 12, 50), values(7, 12), values(8, 12), values(9, 12, scale=0.5, offset=1)
    style = values(10, 2, 24)
    save("group", F.group_norm(y, 3, gamma, beta))
    save("instance", F.instance_norm(y))
    adain = F.instance_norm(y) * (1 + style[:, :12, None]) + style[:, 12:, None]
    save("adain_snake", snake(adain, alpha[:, None]))
    channels = F.layer_norm(y.transpose(1, 2), [12], gamma, beta).transpose(1, 2)
    save("channels", F.leaky_relu(channels, 0.2))


def tokens():
    table, positions = values(1, 11, 40), values(2, 6, 40)
    ids = torch.tensor([[3, 10, 0, 7, 7, 1], [0, 2, 4, 6, 8, 10]])
    save("embed", F.embedding(ids, table) + positions)
    save("embed_bag", F.embedding_bag(ids, table, mode="mean"))


def turned(x, positions, frequencies, interleaved):
    half = len(frequencies)
    angle = positions[:, None, None] * frequencies
    i = torch.arange(half) * 2 if interleaved else torch.arange(half)
    j = i + 1 if interleaved else i + half
    y = x.clone()
    y[..., i] = x[..., i] * torch.cos(angle) - x[..., j] * torch.sin(angle)
    y[..., j] = x[..., j] * torch.cos(angle) + x[..., i] * torch.sin(angle)
    return y


def rope():
    x, bias = values(1, 7, 5 * 24), values(2, 5 * 24)
    positions = torch.tensor([0, 1, 5, 17, 100, 3, 2]).double()
    frequencies = torch.from_numpy((10000.0 ** (-np.arange(12) / 12)).astype(np.float32).astype(np.float64))
    heads = x.reshape(7, 5, 24)
    save("rope", turned(heads, positions, frequencies, False))
    save("rope_interleaved", turned(heads, positions, frequencies[:8], True))
    q, k, v = (x + bias).reshape(7, 5, 24).split([3, 1, 1], 1)
    save("qkv_q", turned(q, positions, frequencies, False))
    save("qkv_k", turned(k, positions, frequencies, False))
    save("qkv_v", v)


# n, channels, length, outputs, taps, stride, padding, dilation, groups, output_padding (-1 = not transposed)
CONVOLUTIONS = [(2, 5, 30, 7, 3, 1, 1, 1, 1, -1), (1, 20, 61, 33, 3, 2, 1, 1, 1, -1), (1, 16, 70, 24, 11, 1, 25, 5, 1, -1),
                (2, 12, 40, 18, 5, 1, 2, 1, 3, -1), (1, 22, 90, 40, 12, 6, 3, 1, 1, -1), (2, 6, 20, 6, 3, 2, 1, 1, 6, 1),
                (1, 40, 13, 36, 20, 10, 5, 1, 1, 0), (1, 18, 15, 20, 5, 3, 2, 2, 2, 1), (1, 64, 5, 70, 1, 1, 0, 1, 1, -1),
                (1, 1, 50, 1, 3, 2, 1, 1, 1, -1)]


def convolutions():
    for k, (n, channels, length, outputs, taps, stride, padding, dilation, groups, extra) in enumerate(CONVOLUTIONS):
        x, bias = values(1, n, channels, length), values(3, outputs)
        if extra < 0:
            w = values(2, outputs, channels // groups, taps, scale=0.25)
            y = F.conv1d(x, w, bias, stride, padding, dilation, groups)
        else:
            w = values(2, channels, outputs // groups, taps, scale=0.25)
            y = F.conv_transpose1d(x, w, bias, stride, padding, extra, groups, dilation)
        save(f"conv_{k}", F.gelu(y) if k == 1 else y)


# inputs, hidden, batch, steps, directions
LSTMS = [(10, 8, 1, 6, 1), (24, 33, 3, 9, 2), (40, 128, 1, 20, 2), (16, 256, 2, 12, 2)]


def lstms():
    for k, (inputs, hidden, batch, steps, directions) in enumerate(LSTMS):
        net = torch.nn.LSTM(inputs, hidden, bidirectional=directions == 2)
        for seed, p in enumerate(net.parameters()):
            p.data = values(10 + seed, *p.shape, scale=0.25)
        x = values(1, steps, batch, inputs)
        h0, c0 = values(2, directions, batch, hidden), values(3, directions, batch, hidden)
        y, (h, c) = net(x, (h0, c0) if k else None)
        save(f"lstm_{k}_out", y)
        save(f"lstm_{k}_h", h)
        save(f"lstm_{k}_c", c)
        if k == 1:
            lengths = torch.tensor([9, 4, 7])
            packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, enforce_sorted=False)
            y, (h, c) = net(packed, (h0, c0))
            save("lstm_lengths_out", torch.nn.utils.rnn.pad_packed_sequence(y)[0])
            save("lstm_lengths_h", h)


def experts():
    tokens, n, used, width, hidden = 13, 6, 2, 32, 48
    x, router = values(1, tokens, width), values(2, n, width)
    gate, up = values(3, n, hidden, width, scale=0.25), values(4, n, hidden, width, scale=0.25)
    down = values(5, n, width, hidden, scale=0.25)
    for name, sigmoid in (("softmax", False), ("sigmoid", True)):
        scores = x @ router.T
        shares = torch.sigmoid(scores) if sigmoid else torch.softmax(scores, -1)
        best, chosen = shares.topk(used)
        best = best / best.sum(-1, keepdim=True)
        save(f"moe_{name}_shares", best)
        save(f"moe_{name}_chosen", chosen)
        out = torch.zeros(tokens, width)
        for t in range(tokens):
            for j in range(used):
                e = chosen[t, j]
                out[t] += best[t, j] * (down[e] @ (F.silu(gate[e] @ x[t]) * (up[e] @ x[t])))
        save(f"moe_{name}", out)


# n, heads, kv_heads, queries, keys, d_head, causal, mask
ATTENTIONS = [(2, 3, 3, 20, 20, 16, False, None), (1, 4, 2, 70, 70, 64, True, None), (1, 2, 1, 5, 37, 40, True, None),
              (2, 2, 2, 9, 33, 64, False, "bool"), (1, 3, 3, 33, 65, 128, False, "float"),
              (1, 2, 2, 40, 40, 8, True, "window")]


def attentions():
    for k, (n, heads, kv_heads, queries, keys, d, causal, kind) in enumerate(ATTENTIONS):
        q = values(1, n, heads, queries, d, scale=2)
        key, v = (values(s, n, kv_heads, keys, d, scale=s - 1).repeat_interleave(heads // kv_heads, 1) for s in (2, 3))
        may = torch.ones(queries, keys, dtype=torch.bool)
        if causal:
            may = may.tril(keys - queries)
        if kind == "window":
            may = may & ~may.tril(keys - queries - 7)
        if kind == "bool":
            may = may & (values(4, n, 1, queries, keys) > -0.5)
        mask = values(4, queries, keys, scale=4) if kind == "float" else may
        save(f"attention_{k}", F.scaled_dot_product_attention(q, key, v, mask))


if __name__ == "__main__":
    if not torch.__version__.startswith("2.15.0"):
        sys.exit(f"torch {torch.__version__}, want 2.15.0")
    os.makedirs(HERE, exist_ok=True)
    for part in (pointwise, norms, tokens, rope, convolutions, lstms, experts, attentions):
        part()
