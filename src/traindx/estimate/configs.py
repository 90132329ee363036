"""A Hugging Face ``config.json`` on disk -> the sizes of the transformer."""
from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from traindx.core.text import Text
from traindx.errors import UsageError, reason
from traindx.estimate.shapes import FAMILIES, GPT2, Shape

ALIASES: dict[str, tuple[str, ...]] = {
    "layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_decoder_layers"),
    "hidden": ("hidden_size", "n_embd", "d_model", "dim", "model_dim"),
    "heads": ("num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads"),
    "vocab": ("vocab_size",),
    "feed_forward": ("intermediate_size", "n_inner", "ffn_dim", "d_ff", "hidden_dim", "ffn_hidden_size"),
    "kv_heads": ("num_key_value_heads", "num_kv_heads", "n_kv_heads"),
    "head_size": ("head_dim", "d_kv"),
    "positions": ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len"),
    "experts": ("num_local_experts", "num_experts", "n_routed_experts"),
}
UNTIED = ("llama", "mistral", "mixtral", "gpt_neox", "qwen2", "qwen3")  # unless the config says otherwise

_CANNOT_READ = Text("{file} cannot be read: {problem}", "读不了 {file}：{problem}")
_NOT_JSON = Text("{file} is not the JSON of a model config: {problem}", "{file} 不是模型配置的 JSON：{problem}")
_NOT_AN_OBJECT = Text("an object was expected, but it holds {kind}", "应当是一个对象，现在是 {kind}")
_TOO_LITTLE = Text("{file}: the architecture {kind!r} is not known, and its config names neither layers nor hidden size. "
                   "What is there: {known}. Give --params, or --layers and --hidden.",
                   "{file}：不认识架构 {kind!r}，配置里也没有层数和隐藏维度。配置里有：{known}。请给出 --params，或 --layers 和 --hidden。")
_BAD_SIZE = Text("{file}: {key} must be a whole number above 0, but is {value!r}",
                 "{file}：{key} 应当是大于 0 的整数，现在是 {value!r}")
UNKNOWN_ARCHITECTURE = Text(
    "The architecture {kind!r} is not known here: counted as a GPT-like transformer of {layers} layer{layers:|s} of width {hidden}; the number "
    "of parameters may be off by tens of percent. Give --params to set it.",
    "不认识架构 {kind!r}：按 {layers} 层、宽 {hidden} 的 GPT 类 Transformer 计算，参数量可能有几十个百分点的偏差。可用 --params 指定。")


@dataclass(frozen=True)
class Config:
    """``known`` is False where the shape is a guess by the sizes alone."""

    shape: Shape
    kind: str
    known: bool


def config_from(file: Path) -> Config:
    """Reads the config. Raises UsageError where it is no config, or says too little."""
    values = _read(file)
    kind = str(values.get("model_type") or next(iter(values.get("architectures") or ["?"])))
    inner = values.get("text_config")
    sizes = _sizes(inner if isinstance(inner, dict) and "hidden_size" in inner else values, file)
    if "layers" not in sizes or "hidden" not in sizes:
        raise UsageError(_TOO_LITTLE.fill(file=file, kind=kind, known=", ".join(sorted(values)) or "-"))
    family = FAMILIES.get(kind)
    tied = values.get("tie_word_embeddings", kind not in UNTIED)
    if kind == "opt":
        sizes["positions"] = sizes.get("positions", 0) + 2  # its table begins at 2
    if family and kind != "mixtral":
        sizes.pop("experts", None)
    tied = bool(tied) or kind in ("bert", "roberta", "distilbert")
    return Config(Shape(**sizes, tied=tied, family=family or GPT2), kind, family is not None)  # type: ignore[arg-type]


def _read(file: Path) -> dict[str, Any]:
    try:
        values = json.loads((file / "config.json" if file.is_dir() else file).read_text(encoding="utf-8"))
    except OSError as problem:
        raise UsageError(_CANNOT_READ.fill(file=file, problem=reason(problem))) from None
    except ValueError as problem:
        raise UsageError(_NOT_JSON.fill(file=file, problem=problem)) from None
    if not isinstance(values, dict):
        raise UsageError(_NOT_JSON.fill(file=file, problem=_NOT_AN_OBJECT.fill(kind=type(values).__name__)))
    return values


def _sizes(values: dict[str, Any], file: Path) -> dict[str, int]:
    sizes = {}
    for name, keys in ALIASES.items():
        key = next((key for key in keys if values.get(key) is not None), None)
        if key is None:
            continue
        value = values[key]
        if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
            raise UsageError(_BAD_SIZE.fill(file=file, key=key, value=value))
        sizes[name] = value
    return sizes
