"""Bits of small number types and what they mean, for tests/test_tensor.c, and small files written by the formats' own
packages, for tests/test_weights.c and test_program.c.

Run: python make_weights.py > weights_golden.h
with numpy==2.2.6 gguf==0.17.1 ml_dtypes==0.5.3 safetensors==0.6.2 (PyPI)

fp8 and bf16 by ml_dtypes, f16 by NumPy, blocks by gguf.quants. Random blocks have every bit pattern in their integers;
their f16 scales are finite. Element n of a tensor of the files is n / 4 - 3; the blocks of Q8_0 hold that rounded.
"""
import gguf
import ml_dtypes
import numpy as np
import safetensors.numpy
from gguf import GGMLQuantizationType as Type

rng = np.random.default_rng(6)


def values(floats):
    """The bits of float32."""
    return [f"0x{v:08x}" for v in np.asarray(floats, dtype=np.float32).view(np.uint32)]


def octets(data):
    return [str(b) for b in np.frombuffer(data.tobytes(), dtype=np.uint8)]


def table(name, kind, rows):
    n = 112 // (max(map(len, rows)) + 2)
    print(f"static const {kind} {name}[] = {{")
    for k in range(0, len(rows), n):
        print("    " + ", ".join(rows[k:k + n]) + ",")
    print("};\n")


def blocks(name, kind, n_blocks, scales):
    """Random blocks of `kind` with f16 scales at the byte offsets `scales`."""
    _, n_bytes = gguf.GGML_QUANT_SIZES[kind]
    data = rng.integers(0, 256, (n_blocks, n_bytes), dtype=np.uint8)
    for at in scales:
        data[:, at:at + 2] = rng.normal(0, 0.02, (n_blocks, 1)).astype(np.float16).view(np.uint8)
    out = gguf.quants.dequantize(data, kind).reshape(-1)
    table(f"{name}_bytes", "unsigned char", octets(data))
    table(f"{name}_values", "unsigned", values(out))


print("// Made by make_weights.py with numpy 2.2.6, gguf 0.17.1, ml_dtypes 0.5.3. Do not edit.\n")
every = np.arange(256, dtype=np.uint8)
table("e4m3_values", "unsigned", values(every.view(ml_dtypes.float8_e4m3fn).astype(np.float32)))
table("e5m2_values", "unsigned", values(every.view(ml_dtypes.float8_e5m2).astype(np.float32)))
edges = [0, 1, 2, 0x3ff, 0x400, 0x401, 0x3c00, 0x7bff, 0x7c00, 0x7e01, 0x7f80, 0x7f81]
some = np.unique(np.concatenate([np.array(edges), rng.integers(0, 0x8000, 40)])).astype(np.uint16)
some = np.concatenate([some, some | 0x8000])
table("half_bits", "unsigned short", [str(v) for v in some])
table("f16_values", "unsigned", values(some.view(np.float16).astype(np.float32)))
table("bf16_values", "unsigned", values(some.view(ml_dtypes.bfloat16).astype(np.float32)))
blocks("q8_0", Type.Q8_0, 2, [0])
blocks("q4_0", Type.Q4_0, 2, [0])
blocks("q4_k", Type.Q4_K, 2, [0, 2])
blocks("q6_k", Type.Q6_K, 2, [208])


def ramp(*shape):
    return (np.arange(np.prod(shape), dtype=np.float32) / 4 - 3).reshape(shape)


def write_gguf(path):
    w = gguf.GGUFWriter(path, "qwen3")
    w.add_block_count(1)
    w.add_context_length(128)
    w.add_embedding_length(32)
    w.add_feed_forward_length(64)
    w.add_head_count(4)
    w.add_head_count_kv(2)
    w.add_key_length(16)
    w.add_layer_norm_rms_eps(1e-6)
    w.add_rope_freq_base(1e6)
    w.add_tokenizer_model("gpt2")
    w.add_token_list(["a", "b", "c"])
    w.add_eos_token_id(2)
    w.add_custom_alignment(64)
    w.add_tensor("token_embd.weight", ramp(3, 32).astype(np.float16))
    w.add_tensor("output_norm.weight", ramp(32))
    w.add_tensor("blk.0.attn_q.weight", gguf.quants.quantize(ramp(2, 32), Type.BF16), raw_dtype=Type.BF16)
    w.add_tensor("blk.0.attn_k.weight", gguf.quants.quantize(ramp(2, 64), Type.Q8_0), raw_dtype=Type.Q8_0)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


write_gguf("weights.gguf")
safetensors.numpy.save_file({"f16": ramp(3, 5).astype(np.float16), "f32": ramp(2, 2, 2), "i8": ramp(4).astype(np.int8),
                             "scalar": ramp(1).reshape(()), "empty": ramp(0, 4)},
                            "weights.safetensors", metadata={"format": "np"})
