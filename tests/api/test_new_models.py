"""`inferplan new --model config.json`: what a Hugging Face configuration says, and what of it is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from api.cli import main
from api.new.config import KNOWN, understand
from models import catalog
from models.llm import published

DEMAND = ("--rate", "5/s", "--input", "2000", "--output", "300")
LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_act": "silu",
    "num_hidden_layers": 32,
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "rope_scaling": {"factor": 8.0, "rope_type": "llama3"},
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
MIXTRAL = {**LLAMA, "model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2, "sliding_window": None}
QWEN3 = {**LLAMA, "model_type": "qwen3", "head_dim": 128, "sliding_window": None, "use_sliding_window": False}
QWEN3_MOE = {**QWEN3, "model_type": "qwen3_moe", "num_experts": 128, "num_experts_per_tok": 8}
QWEN3_MOE["moe_intermediate_size"] = 1536
DEEPSEEK = {
    **{key: value for key, value in LLAMA.items() if key != "head_dim"},
    **{"model_type": "deepseek_v3", "num_attention_heads": 128, "num_key_value_heads": 128},
    **{"kv_lora_rank": 512, "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128},
    **{"n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8, "moe_intermediate_size": 2048},
    **{"first_k_dense_replace": 3, "moe_layer_freq": 1, "n_group": 8, "topk_group": 4, "topk_method": "noaux_tc"},
    "quantization_config": {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128]},
}
MISTRAL = {**LLAMA, "model_type": "mistral", "sliding_window": 4096}
GEMMA_3: dict[str, Any] = {
    **{"architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3", "torch_dtype": "bfloat16"},
    "text_config": {
        **{"head_dim": 128, "hidden_size": 5376, "intermediate_size": 21504, "model_type": "gemma3_text"},
        **{"num_attention_heads": 32, "num_hidden_layers": 62, "num_key_value_heads": 16, "sliding_window": 1024},
        **{"query_pre_attn_scalar": 168, "rope_scaling": {"factor": 8.0, "rope_type": "linear"}},
    },
    "vision_config": {},
}
GPT_OSS = {
    **{"architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss", "attention_bias": True, "head_dim": 64},
    **{"num_hidden_layers": 36, "hidden_size": 2880, "intermediate_size": 2880, "vocab_size": 201088},
    **{"num_attention_heads": 64, "num_key_value_heads": 8, "num_local_experts": 128, "num_experts_per_tok": 4},
    **{"experts_per_token": 4, "sliding_window": 128, "max_position_embeddings": 131072},
    "layer_types": ["sliding_attention", "full_attention"] * 18,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn"]},
}
QWEN3_NEXT = {
    **{"model_type": "qwen3_next", "num_hidden_layers": 48, "hidden_size": 2048, "head_dim": 256, "vocab_size": 151936},
    **{"num_attention_heads": 16, "num_key_value_heads": 2, "intermediate_size": 5120, "num_experts": 512},
    **{"num_experts_per_tok": 10, "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512},
    **{"decoder_sparse_step": 1, "mlp_only_layers": [], "full_attention_interval": 4, "linear_conv_kernel_dim": 4},
    **{"linear_num_key_heads": 16, "linear_num_value_heads": 32, "linear_key_head_dim": 128},
    **{"linear_value_head_dim": 128, "tie_word_embeddings": False, "torch_dtype": "bfloat16"},
    "max_position_embeddings": 262144,
}


def shape(config: dict[str, Any]) -> dict[str, Any]:
    found, problems = understand(config, "config.json")
    assert not problems
    assert found is not None
    return found.keys


def refused(config: dict[str, Any]) -> dict[str, str]:
    found, problems = understand(config, "config.json")
    assert found is None
    return {problem.path.removeprefix("config.json "): problem.message for problem in problems}


def test_a_dense_model() -> None:
    assert shape(LLAMA) == {
        "model_type": "llama",
        "num_hidden_layers": 32,
        "hidden_size": 4096,
        "num_attention_heads": 32,
        "intermediate_size": 14336,
        "vocab_size": 128256,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "tie_word_embeddings": False,
        "max_position_embeddings": 131072,
        "weights": "bf16",
        "kv": "bf16",
    }


def test_what_a_configuration_leaves_out() -> None:
    bare = {key: LLAMA[key] for key in LLAMA if key not in ("num_key_value_heads", "tie_word_embeddings")}
    assert shape(bare)["num_key_value_heads"] == 32
    assert shape(bare)["tie_word_embeddings"] is False
    assert shape({**bare, "model_type": "gemma"})["tie_word_embeddings"] is True
    assert shape({**LLAMA, "head_dim": 160})["head_dim"] == 160
    assert shape({**LLAMA, "head_dim": None})["head_dim"] == 128
    assert "does not divide" in refused({**LLAMA, "hidden_size": 4097})["head_dim"]
    assert shape(QWEN3)["qk_norm"] is True
    assert "qk_norm" not in shape(LLAMA)


def test_mixtures_of_experts() -> None:
    assert shape(MIXTRAL)["num_local_experts"] == 8
    moe = shape(QWEN3_MOE)
    assert (moe["num_experts"], moe["decoder_sparse_step"], moe["mlp_only_layers"]) == (128, 1, [])
    assert moe["qk_norm"] is True
    shared = {**QWEN3_MOE, "model_type": "qwen2_moe", "moe_intermediate_size": 2560}
    assert shape({**shared, "shared_expert_intermediate_size": 20480})["n_shared_experts"] == 8
    assert "shared" in refused({**shared, "shared_expert_intermediate_size": 20481})["shared_expert_intermediate_size"]


def test_latent_attention() -> None:
    found = shape(DEEPSEEK)
    assert found["head_dim"] == 192
    assert found["weights"] == "fp8"
    assert (found["kv_lora_rank"], found["q_lora_rank"], found["v_head_dim"]) == (512, 1536, 128)
    assert "q_lora_rank" not in shape({**DEEPSEEK, "q_lora_rank": None})
    assert set(refused({**DEEPSEEK, "kv_lora_rank": None, "n_routed_experts": None})) == {
        "kv_lora_rank",
        "n_routed_experts",
    }


def test_the_text_part_of_a_model_that_sees() -> None:
    inner = {key: value for key, value in LLAMA.items() if key not in ("torch_dtype", "tie_word_embeddings")}
    outer = {"model_type": "llava", "text_config": inner, "vision_config": {}, "dtype": "bfloat16"}
    found, problems = understand({**outer, "tie_word_embeddings": True}, "config.json")
    assert not problems
    assert found is not None
    assert found.keys["tie_word_embeddings"] is True
    assert found.remarks == ("only the text part of the model is planned",)
    assert set(refused({**outer, "text_config": {"model_type": "llama4_text"}})) == {"text_config.model_type"}


@pytest.mark.parametrize(
    ("scheme", "weights"),
    [
        (None, "bf16"),
        ({"quant_method": "fp8"}, "fp8"),
        ({"quant_method": "modelopt", "quant_algo": "FP8"}, "fp8"),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"a": {"weights": {"num_bits": 8, "type": "float"}}},
            },
            "fp8",
        ),
    ],
)
def test_precisions(scheme: Any, weights: str) -> None:
    assert shape({**LLAMA, "quantization_config": scheme})["weights"] == weights


@pytest.mark.parametrize(
    "scheme",
    [
        {},
        [],
        "fp8",
        {"quant_method": "awq", "bits": 4},
        {"quant_method": "mxfp4"},
        {"quant_method": "modelopt", "quant_algo": "NVFP4"},
        {"quant_method": "compressed-tensors"},
        {"quant_method": "compressed-tensors", "config_groups": {"a": None}},
        {"quant_method": "compressed-tensors", "config_groups": {"a": {"weights": {"num_bits": 4, "type": "int"}}}},
    ],
)
def test_other_quantizations_are_named(scheme: Any) -> None:
    assert set(refused({**LLAMA, "quantization_config": scheme})) == {"quantization_config"}


def test_dtypes() -> None:
    for key in ("torch_dtype", "dtype"):
        assert shape({**LLAMA, "torch_dtype": None, key: "float16"})["weights"] == "bf16"
    assert "torch_dtype" in refused({**LLAMA, "torch_dtype": "float8_e4m3fn"})
    for dtype, words in ((None, "taken as bf16"), ("float32", "16 bits")):
        found, _ = understand({**LLAMA, "torch_dtype": dtype}, "config.json")
        assert found is not None
        assert words in found.remarks[0]


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"model_type": "llamma"}, "model_type"),
        ({"model_type": None}, "model_type"),
        ({"model_type": ["llama"]}, "model_type"),
        ({"sliding_window": 4096}, "sliding_window"),
        ({"layer_types": ["full_attention", "sliding_attention"]}, "layer_types"),
        ({"layer_types": 3}, "layer_types"),
        ({"num_experts": 8}, "num_experts"),
        ({"n_routed_experts": 8}, "n_routed_experts"),
        ({"kv_lora_rank": 512}, "kv_lora_rank"),
        ({"index_topk": 2048}, "index_topk"),
        ({"num_kv_shared_layers": 2}, "num_kv_shared_layers"),
        ({"hidden_size": None}, "hidden_size"),
        ({"hidden_size": "4096"}, "hidden_size"),
        ({"hidden_size": 4096.0}, "hidden_size"),
        ({"num_hidden_layers": True}, "num_hidden_layers"),
        ({"num_hidden_layers": 10**40}, "num_hidden_layers"),
        ({"vocab_size": {"a": 1}}, "vocab_size"),
        ({"tie_word_embeddings": "yes"}, "tie_word_embeddings"),
    ],
)
def test_what_is_not_understood_is_named(change: dict[str, Any], key: str) -> None:
    assert set(refused({**LLAMA, **change})) == {key}


def test_windows_that_hide_nothing_are_no_windows() -> None:
    assert shape({**LLAMA, "layer_types": ["full_attention"] * 32})
    assert shape({**LLAMA, "sliding_window": 262144})
    assert shape({**QWEN3, "sliding_window": 4096})
    assert "sliding_window" not in shape({**QWEN3, "sliding_window": 4096})


def test_windows() -> None:
    assert shape({**MISTRAL, "sliding_window": None}).get("sliding_window") is None
    assert shape(MISTRAL)["sliding_window"] == 4096
    slides = {**QWEN3, "sliding_window": 4096, "use_sliding_window": True}
    assert set(refused(slides)) == {"max_window_layers"}
    assert "sliding_window" not in shape({**slides, "max_window_layers": 32})
    found = shape({**slides, "max_window_layers": 30})
    assert found["layer_types"] == ["full_attention"] * 30 + ["sliding_attention"] * 2
    assert shape({**slides, "max_window_layers": 0}).get("layer_types") is None
    assert set(refused({**slides, "max_window_layers": "30"})) == {"max_window_layers"}
    assert set(refused({**QWEN3_MOE, "sliding_window": 4096, "use_sliding_window": True})) == {"sliding_window"}


def test_gemma_3_leaves_its_pattern_and_vocabulary_to_defaults() -> None:
    found, problems = understand(GEMMA_3, "config.json")
    assert not problems
    assert found is not None
    entry = catalog.entry("models", "gemma-3-27b-it")
    assert entry is not None
    same = set(entry) - {"name", "repository", "source"}
    assert {key: found.keys[key] for key in same} == {key: entry[key] for key in same}
    assert any("262208" in remark for remark in found.remarks)
    inner = {**GEMMA_3["text_config"], "_sliding_window_pattern": 4}
    assert shape({**GEMMA_3, "text_config": inner})["sliding_window_pattern"] == 4
    listed = ["sliding_attention"] * 61 + ["full_attention"]
    assert shape({**GEMMA_3, "text_config": {**inner, "layer_types": listed}})["sliding_window_pattern"] == 62


def test_gpt_oss_lists_its_layers() -> None:
    found, problems = understand(GPT_OSS, "config.json")
    assert not problems
    assert found is not None
    entry = catalog.entry("models", "gpt-oss-120b")
    assert entry is not None
    same = set(entry) - {"name", "repository", "source", "qk_norm", "quantization_config"}
    assert {key: found.keys[key] for key in same} == {key: entry[key] for key in same}
    assert found.keys["weights"] == "int4"
    assert any("MXFP4" in remark for remark in found.remarks)
    uneven = ["full_attention", "sliding_attention", "sliding_attention"] * 12
    assert shape({**GPT_OSS, "layer_types": uneven})["layer_types"] == uneven
    assert set(refused({**GPT_OSS, "layer_types": ["chunked_attention"] * 36})) == {"layer_types"}
    assert set(refused({**GPT_OSS, "sliding_window": None})) == {"sliding_window"}


def test_linear_layers() -> None:
    found = shape(QWEN3_NEXT)
    assert (found["full_attention_interval"], found["attn_output_gate"], found["n_shared_experts"]) == (4, True, 1)
    assert "layer_types" not in found
    by_default = {key: value for key, value in QWEN3_NEXT.items() if key != "full_attention_interval"}
    assert shape(by_default) == found
    listed = (["linear_attention"] * 3 + ["full_attention"]) * 12
    assert shape({**QWEN3_NEXT, "layer_types": listed}) == found
    missing = refused({**QWEN3_NEXT, "linear_key_head_dim": None, "linear_conv_kernel_dim": None})
    assert set(missing) == {"linear_key_head_dim", "linear_conv_kernel_dim"}
    assert set(refused({**QWEN3, "layer_types": listed})) == {"layer_types"}


@pytest.mark.parametrize("name", catalog.names("models"))
def test_the_catalog_reads_as_a_configuration(name: str) -> None:
    """Catalog entries keep the keys of config.json, so they must come out as they are."""
    entry = catalog.entry("models", name)
    assert entry is not None
    shared = entry.get("n_shared_experts", 0) * entry.get("moe_intermediate_size", 0)  # as Qwen says it
    found = shape({**entry, "shared_expert_intermediate_size": shared or None})
    same = set(entry) - {"name", "repository", "source", "quantization_config", "qk_norm", "num_nextn_predict_layers"}
    assert {key: found[key] for key in same} == {key: entry[key] for key in same}
    assert found.get("qk_norm", False) is entry["qk_norm"]
    assert found["weights"] == published(entry.get("quantization_config"))


@pytest.mark.parametrize("kind", sorted(KNOWN))
def test_every_known_architecture_is_read(kind: str) -> None:
    linear = {key: QWEN3_NEXT[key] for key in QWEN3_NEXT if key.startswith("linear_")}
    every = {**DEEPSEEK, **QWEN3_MOE, **linear, "num_local_experts": 8, "model_type": kind}
    found, problems = understand(every, "config.json")
    keys = {problem.path.removeprefix("config.json ") for problem in problems}
    assert found or keys == {"num_experts", "num_local_experts", "n_routed_experts", "kv_lora_rank"}


# --- through the command ----------------------------------------------------------------------------


def outcome(capsys: pytest.CaptureFixture[str], *words: str | Path) -> tuple[int, Any]:
    code = main([str(word) for word in (*words, *DEMAND, "--json")])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("as_folder", [True, False])
def test_a_file_or_its_folder(capsys: pytest.CaptureFixture[str], tmp_path: Path, as_folder: bool) -> None:
    folder = tmp_path / "My Model (v2)"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(LLAMA))
    code, document = outcome(capsys, "new", "--model", folder if as_folder else folder / "config.json")
    assert code == 0
    assert document["instance"]["models"] == {"my-model-v2": shape(LLAMA)}
    assert document["instance"]["workloads"]["chat"]["model"] == "my-model-v2"


def test_a_model_is_called_after_its_repository_in_a_cache(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    snapshot = tmp_path / "hub" / "models--acme--Big-Model-7B" / "snapshots" / ("0a" * 20)
    snapshot.mkdir(parents=True)
    (tmp_path / "blob").write_text(json.dumps(LLAMA))
    (snapshot / "config.json").symlink_to(tmp_path / "blob")
    code, document = outcome(capsys, "new", "--model", snapshot)
    assert code == 0
    assert list(document["instance"]["models"]) == ["big-model-7b"]


@pytest.mark.parametrize(
    ("change", "key"),
    [({"num_hidden_layers": -3}, "num_hidden_layers"), ({"num_key_value_heads": 5}, "num_key_value_heads")],
)
def test_numbers_out_of_bounds(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, change: dict[str, Any], key: str
) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**LLAMA, **change}))
    code, document = outcome(capsys, "new", "--model", path)
    assert code == 2
    [problem] = document["error"]["problems"]
    assert str(path) in problem["path"]
    assert key in problem["path"]


def test_problems_name_the_file_and_key(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": "llama"}))
    code, document = outcome(capsys, "new", "--model", path)
    assert code == 2
    assert {problem["path"] for problem in document["error"]["problems"]} == {
        f"config.json {key}"
        for key in ("num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size", "vocab_size")
    }
