"""transformers and bench_llm_model on the same random checkpoints, in one run: logits, decode, prompt, loading.

    python3 bench/peers/llm.py [--shapes qwen3-8b,qwen3-0.6b,mixtral] [--folder DIR] [--program FILE] [--device cuda]
                               [--no-compile] [--seconds S]

Each shape is made on the device with transformers' own initialisation in bf16, written as sharded safetensors (to
--folder, else to /dev/shm or /tmp, whichever has room) and measured there:

  eager       transformers, one token at a time with a DynamicCache, batch 1, after CONTEXT tokens
  compiled    the same with a StaticCache and torch.compile(mode="reduce-overhead"), what its documentation recommends
  prompt      PROMPT tokens in one call, no cache before
  ours        bench_llm_model: the program's own lines, and the logits of LOGITS positions

Logits have two judges: float32, the same weights run by transformers in float32, and bf16, transformers as it is used.
Each error is the largest difference over the largest logit. Ours passes when it is no further from float32 than
transformers' bf16 is, for a hidden state of bf16 rounds more often than ours of f32 does. After --seconds nothing slow
is begun.
"""
import argparse
import gc
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np
import torch
import transformers as tf

CONTEXT, STEPS, WARM, PROMPT, FIRST, LOGITS = 1024, 128, 6, 4096, 64, 4
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
    "tiny": tf.Qwen3Config(vocab_size=512, hidden_size=128, intermediate_size=256, num_hidden_layers=2, head_dim=32,
                           num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=8192),
}


def log(text):
    print(f"peers llm  {text}", flush=True)


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

def make(name, device):
    config = SHAPES[name]
    config.bos_token_id = config.eos_token_id = config.pad_token_id = None
    torch.manual_seed(1)
    with torch.device(device):
        model = tf.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    return model.eval()


def folder_for(n_bytes, given):
    for base in [given] if given else ["/dev/shm", "/tmp"]:
        if os.path.isdir(base) and shutil.disk_usage(base).free > 1.2 * n_bytes:
            return tempfile.mkdtemp(dir=base, prefix="llm-")
    raise OSError(f"no folder has room for {n_bytes / 1e9:.1f} GB, want --folder")


# ---- transformers

def greedy(model, cache, token, n):
    for _ in range(n):
        at = torch.tensor([cache.get_seq_length()], device=token.device)
        out = model(input_ids=token, past_key_values=cache, cache_position=at, position_ids=at[None], use_cache=True)
        token = out.logits[:, -1:].argmax(-1)


def filled(model, cache, ids):
    with torch.no_grad():
        model(input_ids=ids, past_key_values=cache, cache_position=torch.arange(ids.shape[1], device=ids.device),
              use_cache=True, logits_to_keep=1)
    return cache


def eager_rate(model, device, ids):
    token, n = ids[:, :1], STEPS // 4
    with torch.no_grad():
        cache = filled(model, tf.DynamicCache(), ids)
        greedy(model, cache, token, 2)
        return n / best_s(device, lambda: greedy(model, cache, token, n), 2)  # the second is n tokens further


def compiled_rate(model, device, ids):
    cache = tf.StaticCache(config=model.config, max_cache_len=CONTEXT + 2 * STEPS + WARM)
    step = torch.compile(model.forward, mode="reduce-overhead", fullgraph=True)
    at = torch.tensor([CONTEXT], device=device)  # goes on over all runs, as the cache's own count does

    def tokens(n):
        token = ids[:, :1].clone()
        for _ in range(n):
            torch.compiler.cudagraph_mark_step_begin()
            out = step(input_ids=token, past_key_values=cache, cache_position=at, position_ids=at[None], use_cache=True)
            token = out.logits[:, -1:].argmax(-1).clone()
            at.add_(1)

    with torch.no_grad():
        filled(model, cache, ids)
        begin = time.time()
        tokens(WARM)
        log(f"  compiled in {time.time() - begin:.0f} s")
        return STEPS / best_s(device, lambda: tokens(STEPS), 2)


def prompt_rate(model, device):
    ids = torch.arange(PROMPT, device=device)[None] * 37 % model.config.vocab_size
    with torch.no_grad():
        return PROMPT / best_s(device, lambda: model(input_ids=ids, use_cache=True, logits_to_keep=1), 3)


def logits_of(model, ids):
    with torch.no_grad():
        return model(input_ids=ids, use_cache=False).logits[0, FIRST - 1:].float().cpu().numpy()


# ---- ours

def run_ours(program, folder, device, ids):
    ids.numpy().astype(np.int32).tofile(f"{folder}/ids.bin")
    command = [program, folder, "--backend", device, "--context", str(CONTEXT), "--tokens", str(STEPS), "--prompt",
               str(PROMPT), "--ids", f"{folder}/ids.bin", "--first", str(FIRST), "--logits", f"{folder}/logits.bin"]
    out = subprocess.run(command, capture_output=True, text=True, timeout=300)
    for line in out.stdout.splitlines() + out.stderr.splitlines()[-3:]:
        log(f"  ours: {line}")
    if out.returncode:
        return None, {}
    figures = {}
    for key, pattern in {"decode": r"^decode .* ([0-9.]+) tok/s .* ([0-9.]+) GB/s", "read": r"^read +([0-9.]+) GB/s",
                         "prompt": r"^prompt .* ([0-9.]+) tok/s"}.items():
        found = re.search(pattern, out.stdout, re.M)
        figures[key] = [float(x) for x in found.groups()] if found else [float("nan")] * 2
    figures["load"] = [float(x) for x in re.findall(r"^load .* ([0-9.]+) GB/s", out.stdout, re.M)]
    return np.fromfile(f"{folder}/logits.bin", np.float32).reshape(LOGITS, -1), figures


def error(a, b):
    return np.abs(a - b).max() / np.abs(b).max()


def compare(name, ours, bf16, exact):
    e, peer = error(ours, exact), error(bf16, exact)
    same = sum(int(a.argmax() == b.argmax()) for a, b in zip(ours, exact))
    log(f"{name:<11} logits at {LOGITS} positions, of the largest: ours from f32 {e:.1e}, transformers' bf16 from f32 "
        f"{peer:.1e}, ours from it {error(ours, bf16):.1e}; same first token as f32 {same} of {LOGITS}: "
        f"{'pass' if e <= peer else 'FAIL'}")
    return e <= peer


# ---- a shape

def measure(name, options):
    device = options.device
    begin = time.time()
    model = make(name, device)
    n_bytes = 2 * sum(p.numel() for p in model.parameters())
    log(f"{name}: {n_bytes / 1e9:.2f} GB made in {time.time() - begin:.1f} s")
    folder = folder_for(n_bytes, options.folder)
    try:
        begin = time.time()
        model.save_pretrained(folder, max_shard_size="4GB")
        log(f"  written to {folder} in {time.time() - begin:.1f} s")
        torch.manual_seed(2)
        ids = torch.randint(model.config.vocab_size, (FIRST + LOGITS - 1,))
        bf16 = logits_of(model, ids[None].to(device))
        context = torch.randint(model.config.vocab_size, (1, CONTEXT)).to(device)
        peer = {"eager": eager_rate(model, device, context), "prompt": prompt_rate(model, device), "compiled": None}
        log(f"  transformers: eager {peer['eager']:.1f} tok/s, prompt of {PROMPT} {peer['prompt']:.0f} tok/s")
        if not options.no_compile and name != "mixtral" and time.time() - BEGIN < options.seconds:
            try:
                peer["compiled"] = compiled_rate(model, device, context)
            except Exception as problem:  # the peer's own trouble is no failure of the run
                log(f"  compiled: not run, {type(problem).__name__}: {str(problem)[:200]}")
        torch._dynamo.reset()
        model = model.float()
        exact = logits_of(model, ids[None].to(device))
        del model
        gc.collect()
        if device == "cuda":
            torch.cuda.empty_cache()
        ours, figures = run_ours(options.program, folder, device, ids)
    finally:
        shutil.rmtree(folder)
    if ours is None:
        return False
    good = compare(name, ours, bf16, exact)
    rate, read = figures["decode"]
    best = max(r for r in (peer["eager"], peer["compiled"]) if r)
    compiled = f"{peer['compiled']:.1f}" if peer["compiled"] else "-"
    log(f"{name:<11} decode at {CONTEXT}: ours {rate:.1f} tok/s, eager {peer['eager']:.1f}, compiled {compiled}: "
        f"{rate / best:.2f}x the better; {read:.0f} GB/s, {read / figures['read'][0]:.2f} of read")
    log(f"{name:<11} prompt of {PROMPT}: ours {figures['prompt'][0]:.0f} tok/s, transformers {peer['prompt']:.0f}: "
        f"{figures['prompt'][0] / peer['prompt']:.2f}x; load {', '.join(f'{x:.1f}' for x in figures['load'])} GB/s")
    return good


def main():
    tf.utils.logging.disable_progress_bar()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", default="qwen3-8b,qwen3-0.6b,mixtral")
    parser.add_argument("--folder")
    parser.add_argument("--program", default="build/bundle/bench/bench_llm_model")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--seconds", type=float, default=90)
    options = parser.parse_args()
    where = torch.cuda.get_device_name() if options.device == "cuda" else "CPU"
    log(f"torch {torch.__version__}, transformers {tf.__version__}, {where}")
    good = True
    for name in options.shapes.split(","):
        if time.time() - BEGIN > options.seconds:
            log(f"{name}: left out after {time.time() - BEGIN:.0f} s")
            continue
        good &= measure(name, options)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
