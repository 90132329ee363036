"""The bill: the sources' figures come out, and every closed formula agrees with a naive twin or with the model itself."""
from __future__ import annotations

import json
import math

import pytest

from traindx.errors import UsageError
from traindx.estimate.bill import OPTIMIZERS, States, inference_of, states_of, total
from traindx.estimate.configs import config_from
from traindx.estimate.gpus import MEMORY, gpu_named, size_of
from traindx.estimate.shapes import LLAMA, Shape, Work, activations_of, kv_cache_of, lora_of, parameters_of


@pytest.mark.parametrize(("parameters", "precision", "expected"), [
    (7e9, "half", 112e9), (7e9, "fp32", 112e9), (1.5e9, "half", 24e9), (1.5e9, "fp32", 24e9)])
def test_sixteen_bytes_a_parameter_for_adam_either_way(parameters, precision, expected):
    assert total(states_of(States(parameters, precision))) == expected


def test_weights_alone_are_two_bytes_each():
    assert total(inference_of(7e9, "half")) == 14e9


@pytest.mark.parametrize("name", ["sgd", "momentum", "adam", "adamw", "adamw-foreach"])
def test_state_is_what_torch_keeps(name):
    import torch
    w = torch.nn.Parameter(torch.zeros(300, 200))
    make = {"sgd": lambda: torch.optim.SGD([w], 0.1), "momentum": lambda: torch.optim.SGD([w], 0.1, momentum=0.9),
            "adam": lambda: torch.optim.Adam([w]), "adamw": lambda: torch.optim.AdamW([w]),
            "adamw-foreach": lambda: torch.optim.AdamW([w], foreach=True)}[name]
    optimizer = make()
    w.grad = torch.ones_like(w)
    optimizer.step()
    kept = sum(t.nbytes for state in optimizer.state.values() for t in state.values() if torch.is_tensor(t) and t.numel() > 1)
    assert kept == OPTIMIZERS[name].state * w.numel()


def test_adafactor_keeps_a_hundredth_at_a_thousand_by_a_thousand():
    import torch
    w = torch.nn.Parameter(torch.zeros(1000, 1000))
    optimizer = torch.optim.Adafactor([w])
    w.grad = torch.ones_like(w)
    optimizer.step()
    kept = sum(t.nbytes for state in optimizer.state.values() for t in state.values() if torch.is_tensor(t) and t.numel() > 1)
    assert kept / w.numel() == pytest.approx(OPTIMIZERS["adafactor"].state, rel=0.25)


def test_muon_keeps_one_moment_of_matrices():
    import torch
    if not hasattr(torch.optim, "Muon"):
        pytest.skip("this torch has no Muon")
    w = torch.nn.Parameter(torch.zeros(64, 64))
    optimizer = torch.optim.Muon([w])
    w.grad = torch.ones_like(w)
    optimizer.step()
    kept = sum(t.nbytes for state in optimizer.state.values() for t in state.values() if torch.is_tensor(t) and t.numel() > 1)
    assert kept == OPTIMIZERS["muon"].state * w.numel()
    lines = states_of(States(1e9, "fp32", "muon", not_matrices=1e8))
    assert total(lines, "optimizer") == 4e9 + 4e8


def test_sharding_divides_what_it_shards():
    whole = {c: total(states_of(States(1e9)), c) for c in ("parameters", "gradients", "optimizer")}
    assert whole == {"parameters": 2e9, "gradients": 2e9, "optimizer": 12e9}
    for sharding, divided in {"zero1": ("optimizer",), "zero2": ("optimizer", "gradients"),
                              "zero3": tuple(whole), "fsdp": tuple(whole)}.items():
        lines = states_of(States(1e9, sharding=sharding, ranks=8))
        assert {c: total(lines, c) for c in whole} == {c: size / (8 if c in divided else 1) for c, size in whole.items()}
    gathered = states_of(States(1e9, sharding="fsdp", ranks=8, largest=5e7))
    assert total(gathered, "temporaries") == 2 * 2 * 5e7
    assert total(states_of(States(1e9, sharding="zero3", ranks=1))) == 16e9


def test_adapters_are_trained_and_the_base_is_not():
    lines = states_of(States(7e9, lora=4e7))
    assert total(lines) == 2 * 7e9 + 16 * 4e7
    four_bits = states_of(States(7e9, lora=4e7, quantized=True))
    assert total(four_bits) == pytest.approx(7e9 * 4.127 / 8 + 16 * 4e7)


def test_eight_bit_states_are_two_bytes_and_their_scales():
    assert total(states_of(States(1e9, "half", "adamw-8bit")), "optimizer") == pytest.approx(4e9 + 2e9, rel=0.01)


# -- parameters: against the models themselves -------------------------------------------------------------------------

CONFIGS = [
    ("GPT2Config", "GPT2LMHeadModel", {"n_layer": 3, "n_embd": 48, "n_head": 4, "vocab_size": 97, "n_positions": 64}),
    ("LlamaConfig", "LlamaForCausalLM", {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 8, "num_key_value_heads": 2,
                                             "intermediate_size": 160, "vocab_size": 101}),
    ("MistralConfig", "MistralForCausalLM", {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 8, "num_key_value_heads": 2,
                                                 "intermediate_size": 160, "vocab_size": 101}),
    ("Qwen2Config", "Qwen2ForCausalLM", {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 8, "num_key_value_heads": 2,
                                             "intermediate_size": 160, "vocab_size": 101}),
    ("Qwen3Config", "Qwen3ForCausalLM", {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 8, "num_key_value_heads": 2,
                                             "intermediate_size": 160, "vocab_size": 101, "head_dim": 16}),
    ("GemmaConfig", "GemmaForCausalLM", {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 1,
                                             "intermediate_size": 128, "vocab_size": 101, "head_dim": 32}),
    ("MixtralConfig", "MixtralForCausalLM", {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 8, "num_key_value_heads": 2,
                                                 "intermediate_size": 96, "vocab_size": 101, "num_local_experts": 4}),
    ("BertConfig", "BertModel", {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 101}),
    ("DistilBertConfig", "DistilBertModel", {"n_layers": 2, "dim": 64, "n_heads": 4, "hidden_dim": 128, "vocab_size": 101}),
    ("GPTNeoXConfig", "GPTNeoXForCausalLM", {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 256, "vocab_size": 101}),
    ("OPTConfig", "OPTForCausalLM", {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "ffn_dim": 256, "vocab_size": 101,
                                         "word_embed_proj_dim": 64}),
]


@pytest.mark.parametrize(("config", "model", "sizes"), CONFIGS, ids=[c[0] for c in CONFIGS])
def test_parameters_are_those_of_the_model(config, model, sizes, tmp_path):
    transformers = pytest.importorskip("transformers")
    import torch
    made = getattr(transformers, config)(**sizes)
    made.save_pretrained(tmp_path)
    with torch.device("meta"):
        real = sum(p.numel() for p in getattr(transformers, model)(made).parameters())
    read = config_from(tmp_path / "config.json")
    assert read.known and parameters_of(read.shape) == real


def test_the_published_sizes():
    seven = Shape(32, 4096, 32, 32000, feed_forward=11008, tied=False, family=LLAMA)
    assert parameters_of(seven) == 6_738_415_616
    assert parameters_of(Shape(12, 768, 12, 50257, positions=1024)) == 124_439_808


def test_kv_cache_by_a_naive_count():
    shape = Shape(32, 4096, 32, 32000, kv_heads=8, family=LLAMA)
    naive = sum(2 * 8 * 128 * 2 for _layer in range(32) for _token in range(100) for _row in range(3))
    assert kv_cache_of(shape, 3, 100).bytes == naive


def test_adapters_by_a_naive_count():
    shape = Shape(2, 64, 8, 100, feed_forward=160, kv_heads=2, family=LLAMA)
    matrices = [(64, 64), (64, 16), (64, 16), (64, 64), (64, 160), (64, 160), (160, 64)]
    assert lora_of(shape, 4) == 2 * sum(4 * (a + b) for a, b in matrices)


def test_the_papers_34_bytes_a_token_and_width():
    """Korthikanti et al.: s b h (34 + 5 a s / h) with dropout and 16-bit activations."""
    shape = Shape(1, 1024, 16)
    lines = activations_of(shape, Work(4, 512, flash=False, dropout=True))
    expected = 512 * 4 * 1024 * (34 + 5 * 16 * 512 / 1024)
    assert sum(line.bytes for line in lines) == pytest.approx(expected, rel=0.02)


def test_fused_attention_keeps_no_scores_and_checkpointing_one_layer():
    shape = Shape(24, 1024, 16, 0)
    plain = sum(line.bytes for line in activations_of(shape, Work(4, 2048, flash=False)))
    fused = sum(line.bytes for line in activations_of(shape, Work(4, 2048)))
    kept = sum(line.bytes for line in activations_of(shape, Work(4, 2048, checkpointed=True)))
    assert plain - fused == pytest.approx(24 * 2 * 4 * 16 * 2048**2, rel=0.01)
    assert kept < fused / 8


# -- cards and sizes ----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("words", "total_bytes"), [
    ("24GB", 24e9), ("24GiB", 24 * 2**30), ("a100-80", 80 * 2**30), ("A100 80GB", 80 * 2**30), ("h200", 141e9), ("RTX 4090", 24 * 2**30),
    ("NVIDIA GeForce RTX 3090", 24 * 2**30), ("1.5 TB", 1.5e12), ("h100", 80 * 2**30), ("a100", 80 * 2**30)])
def test_cards_by_name_and_by_size(words, total_bytes):
    assert gpu_named(words).total == total_bytes
    assert 0 < gpu_named(words).capacity < total_bytes


@pytest.mark.parametrize(("words", "hint"), [("a1000-80", "a100-80"), ("rtx4090", "rtx-4090"), ("h20O", "h20")])
def test_the_nearest_card_is_offered(words, hint):
    with pytest.raises(UsageError, match=hint):
        gpu_named(words)


@pytest.mark.parametrize("words", ["0GB", "5B", "99999TB", "", "-3GB", "nan", "24XB"])
def test_impossible_cards(words):
    with pytest.raises(UsageError):
        gpu_named(words)


def test_sizes_are_read_as_written():
    assert size_of("24") == 24 and size_of("2.5GB") == 2.5e9 and size_of("gpu") is None
    assert all(math.isfinite(size) and size > 5e9 for size in MEMORY.values())


# -- configs that are none ----------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("text", "message"), [
    ("{", "not the JSON"), ("[1]", "not the JSON"), ("{}", "neither layers nor hidden"), ('{"hidden_size": "big"}', "whole number"),
    ('{"hidden_size": 0, "num_hidden_layers": 2}', "whole number"), ('{"hidden_size": true}', "whole number")])
def test_bad_configs(text, message, tmp_path):
    file = tmp_path / "config.json"
    file.write_text(text)
    with pytest.raises(UsageError, match=message):
        config_from(file)


def test_no_such_config(tmp_path):
    with pytest.raises(UsageError, match="cannot be read"):
        config_from(tmp_path / "none.json")


def test_an_unknown_architecture_is_counted_by_its_sizes(tmp_path):
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"model_type": "newthing", "d_model": 512, "n_layers": 6, "vocab_size": 1000}))
    config = config_from(file)
    assert not config.known and config.kind == "newthing"
    assert parameters_of(config.shape) == pytest.approx(12 * 6 * 512**2 + 1000 * 512, rel=0.02)
