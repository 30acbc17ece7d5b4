"""transformers and bench_llm_model on the same random checkpoints, in one run: logits, decode, prompt, loading.

    python3 bench/peers/llm.py [--shapes NAME[:LAYERS],...] [--folder DIR] [--program FILE] [--device cuda]
                               [--quantize fp8|int8|int4|all] [--float] [--host] [--rows NAME,...]
                               [--compile-seconds S] [--seconds S]

Each shape is made on the device with transformers' own initialisation in bf16, written as sharded safetensors (to
--folder, else to /dev/shm or /tmp, whichever has room) and measured there, a row as soon as it is known:

  ours        bench_llm_model: the program's own lines, and the logits of LOGITS positions; with --quantize loaded
              and decoded once more, by those types
  eager       transformers, one token at a time with a DynamicCache, batch 1, after CONTEXT tokens
  prompt      PROMPT tokens in one call, no cache before
  graph       one token with a StaticCache, the eager kernels recorded into a CUDA graph
  compiled    the same with layers of torch.compile(fullgraph=True) in that graph: one of them is compiled and serves
              all, as PyTorch's "regional compilation" has it (all 36 layers of 8B in one took more than 80 s)
  tuned       the same with mode="max-autotune-no-cudagraphs"

A row of the peer's that takes longer than --compile-seconds is left out.

Logits have two judges: float32, the same weights run by transformers in float32, a layer widened while it runs, and
bf16, transformers as it is used. With --host ours runs on the CPU too, which multiplies bf16 weights in float: there no
rounding sends a token to another expert, so its logits are within 1e-4 however deep the model. Each error is the largest difference over the largest logit. Ours passes when it is no further from float32 than
transformers' bf16 is, for a hidden state of bf16 rounds more often than ours of f32 does. After --seconds nothing slow
is begun.
"""
import argparse
import copy
import gc
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
import transformers as tf
from transformers.core_model_loading import revert_weight_conversion

CONTEXT, STEPS, PROMPT, FIRST, LOGITS, AT_ONCE, STAGE_BYTES = 1024, 128, 4096, 64, 4, 8, 1 << 28
BEGIN = time.time()

qwen3 = dict(vocab_size=151936, head_dim=128, num_key_value_heads=8, max_position_embeddings=40960,
             rope_theta=1000000.0, rms_norm_eps=1e-6)
SHAPES = {  # config.json of Qwen/Qwen3-8B, Qwen/Qwen3-0.6B and mistralai/Mixtral-8x7B-v0.1, the last with 4 of 32 layers
    "qwen3-8b": tf.Qwen3Config(**qwen3, hidden_size=4096, intermediate_size=12288, num_hidden_layers=36,
                               num_attention_heads=32, tie_word_embeddings=False),
    "qwen3-0.6b": tf.Qwen3Config(**qwen3, hidden_size=1024, intermediate_size=3072, num_hidden_layers=28,
                                 num_attention_heads=16, tie_word_embeddings=True),
    "mixtral": tf.MixtralConfig(vocab_size=32000, hidden_size=4096, intermediate_size=14336, num_hidden_layers=4,
                                num_attention_heads=32, num_key_value_heads=8, num_local_experts=8,
                                num_experts_per_tok=2, max_position_embeddings=32768, rope_theta=1000000.0,
                                sliding_window=None, rms_norm_eps=1e-5),
    "moe": tf.MixtralConfig(vocab_size=512, hidden_size=128, intermediate_size=256, num_hidden_layers=2,
                            num_attention_heads=4, num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=2,
                            max_position_embeddings=8192, sliding_window=None),
    "tiny": tf.Qwen3Config(vocab_size=512, hidden_size=128, intermediate_size=256, num_hidden_layers=2, head_dim=32,
                           num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=8192),
}


def log(text):
    print(f"peers llm {time.time() - BEGIN:4.0f} s  {text}", flush=True)


def synchronize(device):
    if device == "cuda":
        torch.cuda.synchronize()


def best_s(device, work, repeats):
    best = 1e30
    for _ in range(repeats):
        synchronize(device)
        begin = time.perf_counter()
        work()
        synchronize(device)
        best = min(best, time.perf_counter() - begin)
    return best


# ---- checkpoints

def make(name, device, n_layers):
    config = copy.deepcopy(SHAPES[name])
    config.bos_token_id = config.eos_token_id = config.pad_token_id = None
    if n_layers:
        config.num_hidden_layers = n_layers
        if getattr(config, "layer_types", None):
            config.layer_types = config.layer_types[:n_layers]
    torch.manual_seed(1)
    with torch.device(device):
        model = tf.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    return model.eval()


def save_shard(tensors, path):
    """As safetensors writes it, without holding up the other threads."""
    header, at, names = {}, 0, {torch.bfloat16: "BF16", torch.float32: "F32"}
    for name, t in tensors.items():
        end = at + t.numel() * t.element_size()
        header[name] = {"dtype": names[t.dtype], "shape": list(t.shape), "data_offsets": [at, end]}
        at = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    stage = torch.empty(STAGE_BYTES, dtype=torch.uint8, pin_memory=torch.cuda.is_available())
    with open(path, "wb", buffering=0) as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for t in tensors.values():
            for part in t.contiguous().flatten().view(torch.uint8).split(STAGE_BYTES):
                bytes_left = memoryview(stage[:len(part)].copy_(part).numpy())
                while bytes_left:
                    bytes_left = bytes_left[out.write(bytes_left):]


def write(model, folder):
    """A file a layer, AT_ONCE of them in threads: save_pretrained makes a second copy of all experts first."""
    parts, files = {}, {}
    for name, tensor in model.state_dict().items():
        parts.setdefault(name.split(".")[2] if ".layers." in name else "rest", {})[name] = tensor
    if model.config.tie_word_embeddings:
        del parts["rest"]["lm_head.weight"]
    model.config.save_pretrained(folder)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        waits = []
        for k, part in enumerate(parts.values()):
            if k >= AT_ONCE:
                waits[k - AT_ONCE].result()
            part, file = revert_weight_conversion(model, part), f"model-{k + 1:05}-of-{len(parts):05}.safetensors"
            files |= dict.fromkeys(part, file)
            waits.append(pool.submit(save_shard, part, f"{folder}/{file}"))
        for wait in waits:
            wait.result()
    with open(f"{folder}/model.safetensors.index.json", "w") as out:
        json.dump({"metadata": {}, "weight_map": files}, out)


def folder_for(n_bytes, given):
    for base in [given] if given else ["/dev/shm", "/tmp"]:
        if os.path.isdir(base) and shutil.disk_usage(base).free > 1.05 * n_bytes:
            return tempfile.mkdtemp(dir=base, prefix="llm-")
    raise OSError(f"no folder has room for {n_bytes / 1e9:.1f} GB, want --folder")


# ---- transformers

def step(model, cache, token, at):
    out = model(input_ids=token, past_key_values=cache, cache_position=at, position_ids=at[None], use_cache=True)
    return out.logits[:, -1:].argmax(-1)


def filled(model, cache, ids):
    model(input_ids=ids, past_key_values=cache, cache_position=torch.arange(ids.shape[1], device=ids.device),
          use_cache=True, logits_to_keep=1)
    return cache


def static_cache(model, ids):
    """Filled, and the next position, which goes on over all runs as the cache's own count does."""
    cache = tf.StaticCache(config=model.config, max_cache_len=CONTEXT + 3 * STEPS)
    return filled(model, cache, ids), torch.tensor([CONTEXT], device=ids.device)


def eager_rate(model, device, ids):
    cache, token, n = filled(model, tf.DynamicCache(), ids), ids[:, :1], STEPS // 8

    def tokens(n):
        nonlocal token
        for _ in range(n):
            token = step(model, cache, token, torch.tensor([cache.get_seq_length()], device=ids.device))

    tokens(2)
    return n / best_s(device, lambda: tokens(n), 2)  # the second is n tokens further


def graph_rate(model, device, ids):
    return recorded_rate(model, device, *static_cache(model, ids), ids)


def recorded_rate(model, device, cache, at, ids):
    """Of a step in a CUDA graph; on the CPU as it is."""
    token = ids[:, :1].clone()

    def one():
        token.copy_(step(model, cache, token, at))
        at.add_(1)

    if device != "cuda":
        one()
        return STEPS / best_s(device, lambda: [one() for _ in range(STEPS)], 2)
    begin, stream = time.time(), torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        one(), one()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        one()
    log(f"  first steps and recording {time.time() - begin:.0f} s")
    return STEPS / best_s(device, lambda: [graph.replay() for _ in range(STEPS)], 2)


class OneLayer:
    """A layer's own part of a cache, whichever layer asks."""

    def __init__(self, layer):
        self.layer = layer

    def update(self, keys, values, *_):
        return self.layer.update(keys, values)


def compiled_rate(model, device, ids, mode):
    """All layers look alike to the compiler: the same numbers in their places, a cache of one layer."""
    cache, at = static_cache(model, ids)
    fast = torch.compile(type(model.model.layers[0]).forward, fullgraph=True, mode=mode)

    def forward_of(layer, part):
        return lambda x, past_key_values=None, **rest: fast(layer, x, past_key_values=part, **rest)

    for n, layer in enumerate(model.model.layers):
        layer.self_attn.layer_idx, layer.forward = 0, forward_of(layer, OneLayer(cache.layers[n]))
    try:
        return recorded_rate(model, device, cache, at, ids)
    finally:
        for n, layer in enumerate(model.model.layers):
            layer.self_attn.layer_idx = n
            del layer.forward
        torch._dynamo.reset()


def prompt_rate(model, device):
    ids = torch.arange(PROMPT, device=device)[None] * 37 % model.config.vocab_size
    return PROMPT / best_s(device, lambda: model(input_ids=ids, use_cache=True, logits_to_keep=1), 3)


def logits_of(model, ids):
    return model(input_ids=ids, use_cache=False).logits[0, FIRST - 1:].float().cpu().numpy()


def exact_logits(model, ids):
    """In float32. Only the part that runs is widened, and takes its own bits back, so a model as large as the device's
    memory has its judge there."""
    parts = [model.model.embed_tokens, *model.model.layers, model.model.norm, model.lm_head]
    hooks = [part.register_forward_pre_hook(lambda m, _: m.float() and None) for part in parts]
    hooks += [part.register_forward_hook(lambda m, *_: m.bfloat16() and None) for part in parts]
    logits = logits_of(model, ids)
    for hook in hooks:
        hook.remove()
    return logits


# ---- ours

def run_quantised(program, folder, device, types):
    out = subprocess.run([program, folder, "--backend", device, "--context", str(CONTEXT), "--tokens", str(STEPS),
                          "--quantize", types], capture_output=True, text=True, timeout=300)
    for line in out.stdout.splitlines() + out.stderr.splitlines()[-3:]:
        log(f"  ours, {types}: {line}")


def run_ours(program, folder, device, ids, judge, context=CONTEXT, prompt=PROMPT, steps=STEPS):
    """Each line as it comes, and `judge`'s word on the logits as soon as they are written; then the figures."""
    ids.numpy().astype(np.int32).tofile(f"{folder}/ids.bin")
    command = [program, folder, "--backend", device, "--context", str(context), "--tokens", str(steps), "--prompt",
               str(prompt), "--ids", f"{folder}/ids.bin", "--first", str(FIRST), "--logits", f"{folder}/logits.bin"]
    patterns = {"decode": r"decode .* ([0-9.]+) tok/s .* ([0-9.]+) GB/s", "read": r"read +([0-9.]+) GB/s",
                "prompt": r"prompt .* ([0-9.]+) tok/s"}
    good, figures = False, {key: [float("nan")] * 2 for key in patterns} | {"load": []}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as ours:
        for line in ours.stdout:
            log(f"  ours, {device}: {line.rstrip()}")
            if line.startswith("logits"):
                good = judge(np.fromfile(f"{folder}/logits.bin", np.float32).reshape(LOGITS, -1))
            for key, pattern in patterns.items():
                if found := re.match(pattern, line):
                    figures[key] = [float(x) for x in found.groups()]
            if found := re.match(r"load .* ([0-9.]+) GB/s", line):
                figures["load"].append(float(found[1]))
    return good and not ours.returncode, figures


def error(a, b):
    return np.abs(a - b).max() / np.abs(b).max()


def each(a, b):
    return " ".join(f"{error(x, y):.1e}" for x, y in zip(a, b))


def compare(name, ours, bf16, exact, in_float):
    """Products in 16 bits as near as transformers' are, in float32 within 1e-4: there no rounding sends a token to
    another expert."""
    e, peer = error(ours, exact), error(bf16, exact)
    bound = 1e-4 if in_float else peer
    same = sum(int(a.argmax() == b.argmax()) for a, b in zip(ours, exact))
    log(f"{name:<11} logits at {LOGITS} positions, of the largest: ours from f32 {e:.1e}, transformers' bf16 from f32 "
        f"{peer:.1e}, ours from it {error(ours, bf16):.1e}; same first token as f32 {same} of {LOGITS}: "
        f"{'pass' if e <= bound else 'FAIL'}")
    log(f"  at each position: ours {each(ours, exact)}, transformers' bf16 {each(bf16, exact)}")
    return e <= bound


def compare_host(name, ours, exact):
    e = error(ours, exact)
    log(f"{name:<11} logits of the CPU backend, of the largest, from f32 {e:.1e}: {'pass' if e <= 1e-4 else 'FAIL'}; "
        f"each {each(ours, exact)}")
    return e <= 1e-4


# ---- a shape

def out_of_time(*_):
    raise TimeoutError("out of time")


def peer_rate(name, row, options, work):
    """A peer's row, or NaN: its own trouble is no failure of the run."""
    if time.time() - BEGIN > options.seconds:
        log(f"{name:<11} {row}: left out after {time.time() - BEGIN:.0f} s")
        return float("nan")
    signal.signal(signal.SIGALRM, out_of_time)
    signal.alarm(options.compile_seconds)
    try:
        rate = work()
        log(f"{name:<11} transformers {row} {rate:.1f} tok/s")
        return rate
    except Exception as problem:
        log(f"{name:<11} transformers {row}: not run, {type(problem).__name__}: {str(problem)[:200]}")
        return float("nan")
    finally:
        signal.alarm(0)


def peers(name, model, options):
    device = options.device
    ids = torch.randint(model.config.vocab_size, (1, CONTEXT)).to(device)
    rows = {"eager": lambda: eager_rate(model, device, ids), "prompt": lambda: prompt_rate(model, device),
            "graph": lambda: graph_rate(model, device, ids),
            "compiled": lambda: compiled_rate(model, device, ids, "default"),
            "tuned": lambda: compiled_rate(model, device, ids, "max-autotune-no-cudagraphs")}
    wanted = options.rows.split(",")
    return {row: peer_rate(name, row, options, work) for row, work in rows.items() if row in wanted}


def released(device, model=None):
    """Weights first, whoever still knows them."""
    for p in model.parameters() if model else ():
        p.data = p.data.new_empty(0)
    gc.collect()
    if device == "cuda":
        torch.cuda.empty_cache()


def measure(shape, options):
    device, begin = options.device, time.time()
    name, _, n_layers = shape.partition(":")
    model = make(name, device, int(n_layers or 0))
    n_bytes = 2 * sum(p.numel() for p in model.parameters())
    log(f"{name}, {model.config.num_hidden_layers} layers: {n_bytes / 1e9:.2f} GB made in {time.time() - begin:.1f} s")
    folder = folder_for(2 * n_bytes if options.float else n_bytes, options.folder)
    try:
        begin = time.time()
        write(copy.deepcopy(model).float() if options.float else model, folder)
        log(f"  written to {folder} in {time.time() - begin:.1f} s")
        torch.manual_seed(2)
        ids = torch.randint(model.config.vocab_size, (FIRST + LOGITS - 1,))
        bf16, exact = logits_of(model, ids[None].to(device)), exact_logits(model, ids[None].to(device))
        log("  logits of transformers, bf16 and float32")
        released(device)
        peer = peers(name, model, options)
        released(device, model)  # there may be no room for two
        good, figures = run_ours(options.program, folder, device, ids,
                                 lambda ours: compare(name, ours, bf16, exact, options.float))
        rate, read = figures["decode"]
        best = np.nanmax([r for row, r in peer.items() if row != "prompt"] or [np.nan])
        log(f"{name:<11} decode at {CONTEXT}: ours {rate:.1f} tok/s, {rate / best:.2f}x the best of theirs; {read:.0f} "
            f"GB/s, {read / figures['read'][0]:.2f} of read; prompt of {PROMPT}: ours {figures['prompt'][0]:.0f} tok/s, "
            f"{figures['prompt'][0] / peer.get('prompt', np.nan):.2f}x theirs; "
            f"load {', '.join(f'{x:.1f}' for x in figures['load'])} GB/s")
        if options.host:
            good &= run_ours(options.program, folder, "cpu", ids, lambda ours: compare_host(name, ours, exact), FIRST,
                             FIRST + LOGITS, 0)[0]
        if options.quantize:
            run_quantised(options.program, folder, device, options.quantize)
    finally:
        shutil.rmtree(folder)
    return good


def main():
    tf.utils.logging.disable_progress_bar()
    warnings.filterwarnings("ignore")  # of the compiler
    torch.set_grad_enabled(False)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", default="qwen3-8b,qwen3-0.6b,mixtral",
                        help="of " + ", ".join(SHAPES) + ", each with a number of layers where it is to have fewer")
    parser.add_argument("--folder")
    parser.add_argument("--program", default="build/bundle/bench/bench_llm_model")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--quantize", help="load ours in that type too, or all three")
    parser.add_argument("--float", action="store_true", help="the same numbers in a checkpoint of float32")
    parser.add_argument("--host", action="store_true", help="ours on the CPU too, against float32")
    parser.add_argument("--compile-seconds", type=int, default=90, help="of a row at most")
    parser.add_argument("--rows", default="eager,prompt,graph,compiled,tuned", help="of the peer")
    parser.add_argument("--seconds", type=float, default=90)
    options = parser.parse_args()
    where = torch.cuda.get_device_name() if options.device == "cuda" else "CPU"
    log(f"torch {torch.__version__}, transformers {tf.__version__}, {where}, {time.time() - BEGIN:.0f} s")
    good = True
    for shape in options.shapes.split(","):
        if time.time() - BEGIN > options.seconds:
            log(f"{shape}: left out after {time.time() - BEGIN:.0f} s")
            continue
        good &= measure(shape, options)
        log(f"  {time.time() - BEGIN:.0f} s so far")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
