"""The shape in a Hugging Face `config.json`, in the keys of an instance file. What is not understood is named."""

from dataclasses import dataclass
from typing import Any, TypeGuard

from api.new.layers import LINEAR_LAYERS, PATTERNS, WINDOWED, said
from models.attention import FULL, LINEAR, LINEAR_KEYS, SLIDING
from models.errors import Problem, nearest, shown

DENSE = frozenset(
    {"llama", "mistral", "qwen2", "qwen3", "phi3", "granite", "gemma", "gemma2", "gemma3_text"}
    | {"qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text", "qwen3_vl_text"}
)
MIXTRAL = frozenset({"mixtral", "gpt_oss"})
QWEN_MOE = frozenset({"qwen2_moe", "qwen3_moe", "qwen3_vl_moe_text", "qwen3_next"})
DEEPSEEK = frozenset({"deepseek_v2", "deepseek_v3", "kimi_k2"})
KNOWN = DENSE | MIXTRAL | QWEN_MOE | DEEPSEEK
_QK_NORM = frozenset({"qwen3", "qwen3_moe", "qwen3_vl_text", "qwen3_vl_moe_text", "qwen3_next", "gemma3_text"})
_GATED = frozenset({"qwen3_next"})
_TIED_BY_DEFAULT = frozenset({"gemma", "gemma2", "gemma3_text"})
_DEFAULTS = {"gemma3_text": {"vocab_size": 262208, "max_position_embeddings": 131072}}
"""What its files leave out, as transformers fills it in."""
_BASE = ("num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size", "vocab_size")
_MLA = ("kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
_DEEPSEEK = ("n_routed_experts", "num_experts_per_tok", "moe_intermediate_size")
_QWEN_MOE = ("num_experts", "num_experts_per_tok", "moe_intermediate_size")
_EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts")
_FOREIGN = {
    "attention_chunk_size": "attention in chunks",
    "cross_attention_layers": "cross attention",
    "index_topk": "sparse attention",
    "layers_block_type": "layers of several kinds",
    "block_configs": "layers of several kinds",
    "num_kv_shared_layers": "KV shared between layers",
    "state_size": "state-space layers",
    "ssm_cfg": "state-space layers",
}
"""Keys of structures that an instance file cannot say."""
_INSIDE = "text_config"
_MOST_LAYERS = 10**4
_SAME_SIZE = ("bfloat16", "float16")
_NUMBER = "a whole number, as in the config.json of the model"


@dataclass(frozen=True)
class Shape:
    """A model as it stands in an instance file, and what is to be said about it."""

    keys: dict[str, Any]
    remarks: tuple[str, ...] = ()


def understand(config: dict[str, Any], place: str) -> tuple[Shape | None, list[Problem]]:
    """The shape, or every reason why there is none. Values are checked when the instance is read."""
    return _Reading(config, place).shape()


class _Reading:
    """One config.json; the part about text where it also speaks of pictures."""

    def __init__(self, config: dict[str, Any], place: str) -> None:
        self.outer = config
        inner = config.get(_INSIDE)
        self.inner = inner if isinstance(inner, dict) else config
        self.place = place if self.inner is config else f"{place} {_INSIDE}"
        self.dot = " " if self.inner is config else "."
        self.problems: list[Problem] = []
        self.remarks: list[str] = []
        if self.inner is not config:
            self.remarks.append("only the text part of the model is planned")

    def shape(self) -> tuple[Shape | None, list[Problem]]:
        kind = self.kind()
        if kind is None:
            return None, self.problems
        self.inner = {**self.inner, **self.left_out(kind)}
        keys: dict[str, Any] = {"model_type": kind, **self.needed(_BASE)}
        keys.update(self.heads(kind))
        if kind in DEEPSEEK:
            keys.update(self.deepseek())
        elif kind in QWEN_MOE:
            keys.update(self.qwen_moe())
        elif kind in MIXTRAL:
            keys.update(self.needed(("num_local_experts", "num_experts_per_tok")))
        self.refuse_foreign(kind)
        keys.update(self.attention(kind))
        tied = self.get("tie_word_embeddings")
        keys["tie_word_embeddings"] = kind in _TIED_BY_DEFAULT if tied is None else tied
        if self.inner.get("max_position_embeddings") is not None:
            keys["max_position_embeddings"] = self.inner["max_position_embeddings"]
        if kind in _QK_NORM:
            keys["qk_norm"] = True
        if kind in _GATED:
            keys["attn_output_gate"] = True
        self.check(keys)
        keys["weights"] = self.weights(kind)
        keys["kv"] = "bf16"
        return (None if self.problems else Shape(keys, tuple(self.remarks))), self.problems

    def check(self, keys: dict[str, Any]) -> None:
        """Values of the kinds that the keys have; bounds come when the instance is read."""
        for key, value in keys.items():
            if (
                key in ("model_type", "qk_norm", "attn_output_gate", "layer_types") or value is None
            ):  # None: reported, or follows from what is
                continue
            if key == "tie_word_embeddings":
                right, accepted = isinstance(value, bool), "true or false"
            elif key == "mlp_only_layers":
                right, accepted = isinstance(value, list) and all(map(_whole, value)), "a list of layer numbers"
            else:
                right, accepted = _whole(value), _NUMBER
            if not right:
                self.report(key, "not what this key holds", value, accepted)

    def report(self, key: str, message: str, value: object = None, accepted: str | None = None) -> None:
        path = f"{self.place}{self.dot}{key}"
        self.problems.append(Problem(path, message, None if value is None else shown(value), accepted))

    def get(self, key: str) -> Any:
        """A key of the text part, or of the whole where that part lacks it."""
        value = self.inner.get(key)
        return self.outer.get(key) if value is None else value

    def kind(self) -> str | None:
        """The architecture, where it is one whose shape is understood."""
        kind = self.inner.get("model_type")
        if isinstance(kind, str) and kind in KNOWN:
            return kind
        guess = nearest(kind, KNOWN) if isinstance(kind, str) else ""
        message = (
            "missing" if kind is None else "an architecture that is not understood" + (f"; {guess}" if guess else "")
        )
        self.report("model_type", message, kind, ", ".join(sorted(KNOWN)))
        return None

    def needed(self, keys: tuple[str, ...]) -> dict[str, Any]:
        found = {key: self.inner.get(key) for key in keys}
        for key, value in found.items():
            if value is None:
                self.report(key, "missing", None, _NUMBER)
        return found

    def heads(self, kind: str) -> dict[str, Any]:
        """KV heads (as many as query heads where none are stated) and the width of a head."""
        heads, hidden = self.inner.get("num_attention_heads"), self.inner.get("hidden_size")
        kv_heads = self.inner.get("num_key_value_heads")
        found = {"num_key_value_heads": heads if kv_heads is None else kv_heads}
        if kind in DEEPSEEK:
            return found
        width = self.inner.get("head_dim")
        if width is None and _count(heads) and _count(hidden):
            if hidden % heads:
                self.report("head_dim", "missing, and num_attention_heads does not divide hidden_size", None, _NUMBER)
            width = hidden // heads
        return {**found, "head_dim": width}

    def deepseek(self) -> dict[str, Any]:
        """MLA and experts; a head of keys is the part without and the part with positions."""
        found = {**self.needed(_MLA), **self.needed(_DEEPSEEK)}
        parts = (found["qk_nope_head_dim"], found["qk_rope_head_dim"])
        if all(map(_count, parts)):
            found["head_dim"] = sum(parts)
        else:
            found["head_dim"] = None
        optional = (
            "q_lora_rank",
            "n_shared_experts",
            "first_k_dense_replace",
            "moe_layer_freq",
            "n_group",
            "topk_group",
        )
        return {**found, **{key: self.inner[key] for key in optional if self.inner.get(key) is not None}}

    def qwen_moe(self) -> dict[str, Any]:
        found = self.needed(_QWEN_MOE)
        step, dense = self.inner.get("decoder_sparse_step"), self.inner.get("mlp_only_layers")
        found["decoder_sparse_step"] = 1 if step is None else step
        found["mlp_only_layers"] = [] if dense is None else dense
        shared, width = self.inner.get("shared_expert_intermediate_size"), found["moe_intermediate_size"]
        if _count(shared) and _count(width):  # one wide shared expert is as much work as several narrow ones
            if shared % width:
                accepted = "a multiple of moe_intermediate_size"
                self.report("shared_expert_intermediate_size", "cannot be said in shared experts", shared, accepted)
            found["n_shared_experts"] = shared // width
        return found

    def refuse_foreign(self, kind: str) -> None:
        """Name what an instance file cannot say about this model."""
        experts = {**dict.fromkeys(_EXPERTS, "experts"), "kv_lora_rank": "MLA"} if kind in DENSE else {}
        for key, structure in {**_FOREIGN, **experts}.items():
            if self.inner.get(key):
                self.report(
                    key, f"{structure}: not understood for {kind}", self.inner[key], "the key left out, or null"
                )

    def left_out(self, kind: str) -> dict[str, Any]:
        """Keys that files of this architecture leave to their defaults."""
        found = {key: value for key, value in _DEFAULTS.get(kind, {}).items() if self.inner.get(key) is None}
        if "vocab_size" in found:
            self.remarks.append(f"vocab_size is not stated: {found['vocab_size']}, the default of {kind}")
        return found

    def attention(self, kind: str) -> dict[str, Any]:
        """What layers see, where they do not all see everything."""
        window, most = self.inner.get("sliding_window"), self.inner.get("max_position_embeddings")
        switched = self.inner.get("use_sliding_window", not kind.startswith("qwen"))
        if not switched or (_count(window) and _count(most) and window >= most):  # hides nothing
            window = None
        if window and kind not in WINDOWED:
            self.report("sliding_window", f"not understood for {kind}", window, "null")
            return {}
        listed = self.inner.get("layer_types")
        if listed is not None:
            return self.listed(kind, listed, window)
        if kind in LINEAR_LAYERS:
            interval = self.inner.get("full_attention_interval")
            return {**self.needed(LINEAR_KEYS), "full_attention_interval": 4 if interval is None else interval}
        if not window:
            return {}
        if kind in PATTERNS:
            stated = (self.inner.get(key) for key in ("sliding_window_pattern", "_sliding_window_pattern"))
            pattern = next((value for value in stated if value is not None), PATTERNS[kind])
            return {"sliding_window": window, "sliding_window_pattern": pattern}
        if not kind.startswith("qwen"):
            return {"sliding_window": window}
        first = self.needed(("max_window_layers",))["max_window_layers"]
        layers = self.inner.get("num_hidden_layers")
        if not _whole(first) or not _count(layers) or layers > _MOST_LAYERS:
            return {"max_window_layers": first}  # its value is judged with the others
        full = min(max(0, first), layers)
        return said([FULL] * full + [SLIDING] * (layers - full), window)

    def listed(self, kind: str, listed: object, window: object) -> dict[str, Any]:
        """Layers one by one."""
        known = {FULL: True, SLIDING: kind in WINDOWED, LINEAR: kind in LINEAR_LAYERS}
        accepted = [one for one, there in known.items() if there]
        if not isinstance(listed, list) or len(listed) > _MOST_LAYERS or any(one not in accepted for one in listed):
            self.report(
                "layer_types",
                f"layers that are not understood for {kind}",
                listed,
                "a list of " + " and ".join(accepted),
            )
            return {}
        if SLIDING in listed and self.inner.get("sliding_window") is None:
            self.report("sliding_window", f"missing: layer_types has {SLIDING}", None, _NUMBER)
        seen = [FULL if one == SLIDING and not window else one for one in listed]
        linear = self.needed(LINEAR_KEYS) if LINEAR in seen else {}
        return {**linear, **said(seen, window)}

    def weights(self, kind: str) -> str:
        """Precision of the weights as they are published."""
        scheme = self.get("quantization_config")
        if scheme is None:
            return self.unquantised()
        method = scheme.get("quant_method") if isinstance(scheme, dict) else None
        if method == "fp8" or (method == "compressed-tensors" and _all_fp8(scheme)):
            return "fp8"
        if method == "modelopt" and scheme.get("quant_algo") == "FP8":
            return "fp8"
        if method == "mxfp4" and kind == "gpt_oss":
            self.remarks.append(
                "experts are published as MXFP4: all layer matrices are taken as int4; scales (1/32 B an element) and "
                "what stays in BF16 beside the experts come on top"
            )
            return "int4"
        self.problems.append(
            Problem(
                f"{self.place}{self.dot}quantization_config",
                "a quantization that is not understood",
                shown(scheme if method is None else method),
                "FP8 (quant_method: fp8, compressed-tensors or modelopt with 8-bit floats), or none",
            )
        )
        return "bf16"

    def unquantised(self) -> str:
        dtype = next((self.get(key) for key in ("torch_dtype", "dtype") if self.get(key) is not None), None)
        if dtype is None:
            self.remarks.append("neither torch_dtype nor quantization_config is stated: weights taken as bf16")
        elif dtype == "float32":
            self.remarks.append("stored as float32; engines serve it in 16 bits, so weights are taken as bf16")
        elif dtype not in _SAME_SIZE:
            self.report("torch_dtype", "a precision that is not understood", dtype, "bfloat16, float16 or float32")
        return "bf16"


def _whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**12


def _count(value: object) -> TypeGuard[int]:
    return _whole(value) and value > 0


def _all_fp8(scheme: dict[str, Any]) -> bool:
    """Whether every group of a compressed-tensors scheme holds 8-bit floats."""
    groups = scheme.get("config_groups")
    weights = (
        [one.get("weights") if isinstance(one, dict) else None for one in groups.values()]
        if isinstance(groups, dict)
        else []
    )
    return bool(weights) and all(
        isinstance(one, dict) and one.get("num_bits") == 8 and one.get("type") == "float" for one in weights
    )
