"""Parameters, activations, logits and key-value cache of a transformer from its sizes. Plain arithmetic.

Activations follow Korthikanti et al. 2022 ("Reducing Activation Recomputation in Large Transformer Models"), counted per tensor that
autograd keeps, so that precision, dropout, grouped heads and gated layers can differ.
"""
from __future__ import annotations

from dataclasses import dataclass

from traindx.core.memory import Line
from traindx.core.text import Text


@dataclass(frozen=True)
class Family:
    """How a family of transformers is built, as far as its number of parameters goes."""

    gated: bool = False  # three matrices in the feed-forward layer instead of two
    bias: bool = True  # in all linear layers
    qkv_bias: bool = False  # only there
    norm: int = 2  # vectors a norm: weight and bias, or weight
    norms: int = 2  # a layer
    final_norm: bool = True
    first_norm: bool = False  # after the embedding
    head_norm: bool = False  # on query and key of each head
    positions: bool = False
    types: int = 0  # token type embeddings
    pooler: bool = False


GPT2 = Family(positions=True)
LLAMA = Family(gated=True, bias=False, norm=1)
BERT = Family(positions=True, final_norm=False, first_norm=True, types=2, pooler=True)
FAMILIES: dict[str, Family] = {
    "gpt2": GPT2, "llama": LLAMA, "mistral": LLAMA, "mixtral": LLAMA, "gemma": LLAMA,
    "qwen2": Family(gated=True, bias=False, qkv_bias=True, norm=1), "qwen3": Family(gated=True, bias=False, norm=1, head_norm=True),
    "bert": BERT, "roberta": BERT, "distilbert": Family(positions=True, final_norm=False, first_norm=True),
    "gpt_neox": Family(), "opt": GPT2,
}


@dataclass(frozen=True)
class Shape:
    """Sizes of a transformer. ``feed_forward`` None is four times ``hidden``; ``kv_heads`` None is ``heads``; ``experts`` share a router."""

    layers: int
    hidden: int
    heads: int = 1
    vocab: int = 0
    feed_forward: int | None = None
    kv_heads: int | None = None
    head_size: int | None = None
    positions: int = 0
    experts: int = 1
    tied: bool = True
    family: Family = GPT2

    @property
    def wide(self) -> int:
        return 4 * self.hidden if self.feed_forward is None else self.feed_forward

    @property
    def each_head(self) -> int:
        return self.head_size or self.hidden // max(self.heads, 1)

    @property
    def keys(self) -> int:
        """Width of the keys (and of the values)."""
        return (self.kv_heads or self.heads) * self.each_head


def parameters_of(shape: Shape) -> int:
    """All of them; exact for the families named."""
    return embeddings_of(shape) + shape.layers * layer_of(shape) + _around(shape)


def embeddings_of(shape: Shape) -> int:
    """Token, position and type embeddings, and a head of its own where it is not tied."""
    rows = shape.vocab * (1 if shape.tied else 2) + shape.family.types + (shape.positions if shape.family.positions else 0)
    return rows * shape.hidden


def layer_of(shape: Shape) -> int:
    """One layer."""
    family, h, q, kv, f = shape.family, shape.hidden, shape.heads * shape.each_head, shape.keys, shape.wide
    attention = h * (q + 2 * kv) + q * h + (family.bias or family.qkv_bias) * (q + 2 * kv) + family.bias * h
    matrices = 3 if family.gated else 2
    feed = shape.experts * (matrices * h * f + family.bias * ((matrices - 1) * f + h))
    router = shape.experts * h if shape.experts > 1 else 0
    return attention + feed + router + family.norms * family.norm * h + family.head_norm * 2 * shape.each_head


def _around(shape: Shape) -> int:
    family, h = shape.family, shape.hidden
    return (family.final_norm + family.first_norm) * family.norm * h + family.pooler * (h * h + h)


def lora_of(shape: Shape, rank: int) -> int:
    """Adapters of a rank on every linear layer of every block: rank (inputs + outputs) each."""
    h, q, kv, f = shape.hidden, shape.heads * shape.each_head, shape.keys, shape.wide
    feed = shape.experts * (3 if shape.family.gated else 2) * (h + f)
    return shape.layers * rank * ((h + q) + 2 * (h + kv) + (q + h) + feed)


# -- activations ------------------------------------------------------------------------------------------------------

@dataclass(frozen=True)
class Work:
    """One micro-batch. ``width`` is bytes an activation: 2 in half precision and under autocast, 4 in fp32."""

    batch: int
    length: int
    width: int = 2
    flash: bool = True
    dropout: bool = False
    checkpointed: bool = False


ACTIVATIONS = Text("activations of {layers} layer{layers:|s}", "{layers} 层的激活")
KEPT = Text("inputs of {layers} checkpointed layer{layers:|s}, and one layer recomputed", "{layers} 个重计算层的输入，加上正在重算的一层")
SCORES = Text("attention scores, batch x heads x length^2, in {layers} layer{layers:|s}", "{layers} 层的注意力分数，batch × 头数 × 长度^2")
LOGITS = Text("logits, their log-softmax and the gradient, in fp32", "fp32 的 logits、log-softmax 和它们的梯度")
KV_CACHE = Text("key-value cache", "KV 缓存")


def activations_of(shape: Shape, work: Work) -> list[Line]:
    """What autograd keeps between forward and backward, and the logits with the loss. Bytes."""
    linear, scores = layer_activations(shape, work), layer_scores(shape, work)
    layers, tokens = shape.layers, work.batch * work.length
    if work.checkpointed:
        kept = work.width * tokens * shape.hidden
        lines = [Line("activations", KEPT.fill(layers=layers), layers * kept + linear + scores,
                      f"{layers} x {work.width} B x {work.batch} x {work.length} x {shape.hidden} + one layer")]
    else:
        each = linear / (tokens * shape.hidden)
        lines = [Line("activations", ACTIVATIONS.fill(layers=layers), layers * linear,
                      f"{layers} x {each:.3g} B x {work.batch} x {work.length} x {shape.hidden}")]
        if scores:
            lines.append(Line("activations", SCORES.fill(layers=layers), layers * scores,
                              f"{layers} x {_score_bytes(work):g} B x {work.batch} x {shape.heads} x {work.length}^2"))
    if shape.vocab:
        lines.append(Line("activations", LOGITS, 12 * tokens * shape.vocab, f"3 x 4 B x {work.batch} x {work.length} x {shape.vocab}"))
    return lines


def layer_activations(shape: Shape, work: Work) -> float:
    """Bytes that one layer keeps, without the attention scores."""
    h, q, kv, f = shape.hidden, shape.heads * shape.each_head, shape.keys, shape.wide
    norms, qkv_input, qkv, out_input, feed_input = 2 * h, h, q + 2 * kv, q, h
    inner = (4 if shape.family.gated else 2) * f  # what the non-linearity and the last matrix need
    masks = (2 * h) if work.dropout else 0  # one byte each
    elements = norms + qkv_input + qkv + out_input + feed_input + inner
    lse = 4 * shape.heads if work.flash else 0
    return work.batch * work.length * (work.width * elements + masks + lse)


def layer_scores(shape: Shape, work: Work) -> float:
    """Bytes of one layer's attention scores that are kept: none where attention is fused (flash)."""
    return 0.0 if work.flash else _score_bytes(work) * work.batch * shape.heads * work.length**2


def _score_bytes(work: Work) -> int:
    return 2 * work.width + 1 if work.dropout else work.width


def kv_cache_of(shape: Shape, batch: int, length: int, width: int = 2) -> Line:
    """Keys and values of every layer, for all tokens so far. Grouped heads keep fewer."""
    size = 2 * shape.layers * shape.keys * length * batch * width
    return Line("activations", KV_CACHE, size,
                f"2 x {shape.layers} x {shape.kv_heads or shape.heads} x {shape.each_head} x {length} x {batch} x {width} B")
