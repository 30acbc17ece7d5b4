"""What torch needs for the rows of bench_nn, on the same GPU, 20 calls in a row replayed from a graph as there.

f32 is true float32 (no TF32) as ours; what cannot be captured runs as it is.
"""
import torch
import torch.nn.functional as F

CALLS, REPLAYS = 20, 9


def timed(run, calls):
    times = []
    for _ in range(REPLAYS + 2):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        run()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return sorted(times[2:])[REPLAYS // 2] * 1e3 / calls


def row(name, work, flops=0.0, size=0.0):
    try:
        for _ in range(3):
            work()
        torch.cuda.synchronize()
        how = ""
        try:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                for _ in range(CALLS):
                    work()
            us = timed(graph.replay, CALLS)
        except Exception:
            torch.cuda.synchronize()
            how = "  (no graph)"
            us = timed(lambda: [work() for _ in range(CALLS)], CALLS)
        rate = f"{flops / us / 1e6:9.2f} TFLOP/s" if flops else f"{size / us / 1e3:9.1f} GB/s"
        print(f"torch {name:<48} {us:10.2f} us  {rate}{how}", flush=True)
    except Exception as error:  # a peer that lacks an op or memory is no failure of the run
        print(f"torch {name:<48} not run: {type(error).__name__}: {str(error)[:80]}", flush=True)


def tensor(*shape, dtype=torch.bfloat16):
    return torch.rand(*shape, device="cuda", dtype=torch.float32).sub(0.5).to(dtype)


NAMES = {torch.float32: "f32", torch.bfloat16: "bf16", torch.float16: "f16"}


def norms():
    f32 = torch.float32
    x, h, w = tensor(4096, 4096), tensor(4096, 4096), tensor(4096)
    row("rms norm + residual 4096 x 4096 bf16", lambda: F.rms_norm(h.add_(x), [4096], w, 1e-5), size=4 * 2 * 4096 * 4096)
    y, g, b = tensor(1500, 1280), tensor(1280), tensor(1280)
    row("layer norm 1500 x 1280 bf16", lambda: F.layer_norm(y, [1280], g, b), size=2 * 2 * 1500 * 1280)
    s, style, alpha = tensor(1, 128, 28800, dtype=f32), tensor(1, 128, 1, dtype=f32), tensor(1, 128, 1, dtype=f32) + 1

    def adain():
        n = (1 + style) * F.instance_norm(s) + style
        return n + torch.sin(alpha * n) ** 2 / alpha

    row("instance norm, style, snake 128 x 28800 f32", adain, size=2 * 4 * 128 * 28800)
    gate, up = tensor(4096, 12288), tensor(4096, 12288)
    row("swiglu 4096 x 12288 bf16", lambda: F.silu(gate) * up, size=3 * 2 * 4096 * 12288)
    z, bias = tensor(1500, 5120), tensor(5120)
    row("bias + gelu 1500 x 5120 bf16", lambda: F.gelu(z + bias), size=2 * 2 * 1500 * 5120)


def convolution(name, channels, length, outputs, taps, stride, padding, dilation, groups, extra, dtype):
    x, bias = tensor(1, channels, length, dtype=dtype), tensor(outputs, dtype=dtype)
    if extra < 0:
        w = tensor(outputs, channels // groups, taps, dtype=dtype)
        work = lambda: F.conv1d(x, w, bias, stride, padding, dilation, groups)
    else:
        w = tensor(channels, outputs // groups, taps, dtype=dtype)
        work = lambda: F.conv_transpose1d(x, w, bias, stride, padding, extra, groups, dilation)
    steps = length if extra >= 0 else work().shape[-1]
    row(f"conv {name} {NAMES[dtype]}", work, flops=2.0 * steps * channels * outputs / groups * taps)


def convolutions():
    f32, bf16, f16 = torch.float32, torch.bfloat16, torch.float16
    for name, *shape, types in (
            ("Whisper 128 > 1280 k3, 3000", 128, 3000, 1280, 3, 1, 1, 1, 1, -1, (bf16, f32)),
            ("Whisper 1280 > 1280 k3 s2, 3000", 1280, 3000, 1280, 3, 2, 1, 1, 1, -1, (bf16, f32)),
            ("Kokoro 128 > 128 k11 d5, 28800", 128, 28800, 128, 11, 1, 25, 5, 1, -1, (f16, f32)),
            ("Kokoro 256 > 256 k7 d3, 4800", 256, 4800, 256, 7, 1, 9, 3, 1, -1, (f32,)),
            ("Kokoro 512 > 512 k3, 240", 512, 240, 512, 3, 1, 1, 1, 1, -1, (f32,)),
            ("Kokoro up 512 > 256 k20 s10, 480", 512, 480, 256, 20, 10, 5, 1, 1, 0, (f32, f16)),
            ("Kokoro pool 512 k3 s2 depthwise, 240", 512, 240, 512, 3, 2, 1, 1, 512, 1, (f32,))):
        for dtype in types:
            convolution(name, *shape, dtype)


def sequences():
    f32, f16 = torch.float32, torch.float16
    for name, inputs, hidden, batch, steps, directions, dtype in (
            ("Kokoro 640 > 2 x 256, 64 steps", 640, 256, 1, 64, 2, f32),
            ("Kokoro 640 > 2 x 256, 240 steps", 640, 256, 1, 240, 2, f32),
            ("Silero 128 > 128, 100 steps", 128, 128, 1, 100, 1, f32),
            ("512 > 512, batch 8, 100 steps", 512, 512, 8, 100, 1, f32),
            ("1024 > 1024, 100 steps", 1024, 1024, 1, 100, 1, f32), ("1024 > 1024, 100 steps", 1024, 1024, 1, 100, 1, f16)):
        net = torch.nn.LSTM(inputs, hidden, bidirectional=directions == 2).to("cuda", dtype).eval()
        x = tensor(steps, batch, inputs, dtype=dtype)
        with torch.no_grad():
            row(f"lstm {name} {NAMES[dtype]}", lambda: net(x)[0],
                flops=8.0 * steps * batch * directions * hidden * (inputs + hidden))


def experts():
    scores = tensor(4096, 128, dtype=torch.float32)

    def route():
        best, chosen = torch.softmax(scores, -1).topk(8)
        return best / best.sum(-1, keepdim=True), chosen

    row("route 4096 tokens, 8 of 128 f32", route, size=4.0 * 4096 * (128 + 16))
    x, (shares, chosen) = tensor(4096, 2048), route()

    def moves():
        order = chosen.view(-1).argsort(stable=True)
        grouped = x[order // 8]
        out = torch.zeros_like(x)
        return out.index_add_(0, order // 8, grouped * shares.view(-1)[order, None].to(x.dtype))

    row("permute, unpermute 4096 x 8 x 2048 bf16", moves, size=2.0 * 4096 * 2048 * 18)


def attentions():
    for name, heads, kv_heads, tokens, d, causal, dtype in (
            ("Whisper 20 heads of 64, 1500", 20, 20, 1500, 64, False, torch.bfloat16),
            ("Whisper 20 heads of 64, 1500", 20, 20, 1500, 64, False, torch.float32),
            ("32 on 8 heads of 128, 4096 causal", 32, 8, 4096, 128, True, torch.bfloat16)):
        q, k, v = (tensor(1, n, tokens, d, dtype=dtype) for n in (heads, kv_heads, kv_heads))
        row(f"attention {name} {NAMES[dtype]}",
            lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=heads != kv_heads),
            flops=4.0 * heads * tokens * tokens * d / (2 if causal else 1))


if __name__ == "__main__":
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name()}")
    with torch.no_grad():
        for part in (norms, convolutions, sequences, experts, attentions):
            part()
