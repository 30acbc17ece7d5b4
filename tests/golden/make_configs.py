"""config.json of every family as transformers writes it, and what transformers makes of it, for
tests/test_model_config.c.

Run: python make_configs.py > configs_4.json     with transformers==4.57.1 (PyPI; torch is not needed)
     python make_configs.py > configs_5.json     with transformers==5.0.0
"""
import json
import pathlib
import tempfile

import transformers as tf

SIZES = dict(hidden_size=64, num_hidden_layers=4, num_attention_heads=8, num_key_value_heads=2, intermediate_size=96,
             vocab_size=320, max_position_embeddings=4096, eos_token_id=[5, 6])
LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=1024)
YARN = dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=1024)
MOE = dict(num_experts=16, num_experts_per_tok=4, moe_intermediate_size=24, decoder_sparse_step=2, mlp_only_layers=[3],
           norm_topk_prob=True)
CONFIGS = [
    tf.GPT2Config(n_embd=48, n_layer=3, n_head=4),
    tf.LlamaConfig(**SIZES),
    tf.LlamaConfig(**SIZES, tie_word_embeddings=True, attention_bias=True, head_dim=16),
    tf.LlamaConfig(**SIZES, rope_theta=5e5, rope_scaling=dict(LLAMA3)),
    tf.LlamaConfig(**SIZES, rope_scaling=dict(rope_type="linear", factor=2.0)),
    tf.LlamaConfig(**SIZES, rope_scaling=dict(rope_type="dynamic", factor=2.0)),
    tf.MistralConfig(**SIZES),
    tf.MistralConfig(**SIZES, sliding_window=None),
    tf.MixtralConfig(**SIZES),
    tf.MixtralConfig(**SIZES, sliding_window=64),
    tf.Qwen2Config(**SIZES),
    tf.Qwen2Config(**SIZES, use_sliding_window=True, sliding_window=32, max_window_layers=2),
    tf.Qwen3Config(**SIZES),
    tf.Qwen3Config(**SIZES, use_sliding_window=True, sliding_window=32, max_window_layers=1),
    tf.Qwen3Config(**SIZES, rope_theta=1e6, rope_scaling=dict(YARN)),
    tf.Qwen3MoeConfig(**SIZES, **MOE),
    tf.Qwen3MoeConfig(**SIZES, use_sliding_window=True, sliding_window=32),
]


def first(config, *names):
    return next((getattr(config, name) for name in names if getattr(config, name, None) is not None), 0)


def meaning(c):
    layers = first(c, "num_hidden_layers", "n_layer")
    window = first(c, "sliding_window")
    types = getattr(c, "layer_types", None)
    slides = [bool(window) and (types is None or types[l] == "sliding_attention") for l in range(layers)]
    experts = first(c, "num_experts", "num_local_experts") if c.model_type in ("mixtral", "qwen3_moe") else 0
    step, dense = first(c, "decoder_sparse_step") or 1, first(c, "mlp_only_layers") or []
    rope = getattr(c, "rope_parameters", None) or getattr(c, "rope_scaling", None) or {}
    gpt2 = c.model_type == "gpt2"
    return dict(
        family=c.model_type, n_layers=layers, d_model=first(c, "hidden_size"), n_heads=first(c, "num_attention_heads"),
        n_kv_heads=first(c, "num_key_value_heads", "n_head"),
        d_head=first(c, "head_dim") or c.hidden_size // c.num_attention_heads,
        d_ff=first(c, "intermediate_size") or 4 * c.hidden_size, vocab_size=c.vocab_size,
        max_positions=c.max_position_embeddings, norm_eps=first(c, "rms_norm_eps", "layer_norm_epsilon"),
        tied_head=c.tie_word_embeddings, sliding_window=window if any(slides) else 0, layer_slides=slides,
        n_experts=experts, n_experts_used=first(c, "num_experts_per_tok") if experts else 0,
        layer_has_experts=[bool(experts) and (l + 1) % step == 0 and l not in dense for l in range(layers)],
        rope="none" if gpt2 else rope.get("rope_type", "default"),
        rope_theta=0 if gpt2 else rope.get("rope_theta") or c.rope_theta, rope_factor=rope.get("factor", 1),
        eos=c.eos_token_id if isinstance(c.eos_token_id, list) else [c.eos_token_id])


def written(config):
    with tempfile.TemporaryDirectory() as folder:
        config.save_pretrained(folder)
        return json.loads(pathlib.Path(folder, "config.json").read_text())


print("[")
print(",\n".join(json.dumps(dict(config=written(c), want=meaning(c))) for c in CONFIGS))
print("]")
