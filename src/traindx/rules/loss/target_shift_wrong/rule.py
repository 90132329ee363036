"""A language model's targets are shifted by the wrong number of steps.

What it is:
At each step a language model must predict the next token. Either its targets were not shifted, so that it predicts the token that it is
given; or they were shifted by the data and once more inside the model (Hugging Face models shift ``labels`` themselves). Or the shift
is right, but the model may look ahead: without a causal mask it is shown the token that it must predict.

Why it is silent:
Shapes fit either way, and the loss falls: copying is easy, and the token after the next can be guessed a little.

What you see:
A loss that falls to about 0 at once (not shifted), or one that looks as usual (shifted twice); generated text is nonsense in both cases.

Look-alikes:
Autoencoders and masked language models predict their own input, but see both sides of it. A decoder under teacher forcing gets the target
shifted by one. Models with several heads predict later tokens besides the next.

Fix:
Shift exactly once.

Before:
    {"input_ids": chunk[:-1], "labels": chunk[1:]}   # and GPT2LMHeadModel shifts again
After:
    {"input_ids": chunk, "labels": chunk}

Experiment:
Compare the model's guesses with the next token: with the right shift that accuracy follows the loss.

Source:
Counted: targets that equal the model's input k steps later. Transformers documentation ("labels are shifted inside the model").
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed import Site
from traindx.core.observed.ops import OpTrace
from traindx.core.observed.tokens import TokenTargets
from traindx.core.text import Text
from traindx.signals.op_graph import PASSING, OpGraph
from traindx.signals.where import pointing

ZH = """语言模型的目标移位错了

是什么：
语言模型每一步要预测下一个词元。要么目标没有移位，它预测的就是刚给它的那个词元；要么数据里移了一次，模型内部又移了一次
（Hugging Face 的模型会自己移 ``labels``）。也可能移位是对的，模型却看得到后面：没有因果掩码，要预测的词元就摆在眼前。

为什么不报错：
两种情况形状都对得上，损失也会下降：照抄很容易，隔一个的词元也能猜中一点。

你会看到：
没移位：损失很快降到 0 附近；移了两次：损失看着正常。但生成的文本都不成样子。

容易混淆的情况：
自编码器和掩码语言模型预测的就是自己的输入，但它们两边都看得到。教师强制下，解码器的输入和目标正好差一步。
有多个输出头的模型，除了下一个词元还会预测更后面的。

怎么改：
只移一次。

改前：
    {"input_ids": chunk[:-1], "labels": chunk[1:]}   # GPT2LMHeadModel 还会再移一次
改后：
    {"input_ids": chunk, "labels": chunk}

对照实验：
拿模型的猜测和下一个词元比：移位正确时，准确率会跟着损失走。

来源：
实测：目标与 k 步之后的模型输入相等的比例。Transformers 文档（labels 在模型内部移位）。
"""
LEVEL = "error"
STEP = 2
EXPLAINS = ("loss/initial-loss-off", "curve/*", "data/labels-misaligned", "data/duplicates")

UNSHIFTED = Text("The targets are the model's own input, not shifted: at each step it predicts the token that it has just been given.",
                 "目标就是模型自己的输入，没有移位：每一步预测的都是刚给它的词元。")
TWICE = Text("The targets equal the input two steps later: they were shifted twice, so the model learns to skip a token.",
             "目标等于两步之后的输入：移了两次，模型学的是跳过一个词元。")
SEEN = Text("the model is shown the token that it must predict: its outputs change with the next token (no causal mask), so it need only copy it.",
            "模型看得到它要预测的词元：下一个词元一换，输出就跟着变（没有因果掩码），所以照抄就行。")
FIX_SEEN = Text("Let step t attend to steps 0 .. t only: is_causal=True, or a mask with -inf above the diagonal.",
                "让第 t 步只看第 0 .. t 步：用 is_causal=True，或在对角线以上填 -inf 的掩码。")
CHANGED = Text("outputs after the next token was exchanged, in a second run of one batch", "把一个 batch 再跑一遍、换掉下一个词元之后的输出")
MOVED, STAYS = Text("changed", "变了"), Text("unchanged", "不变")
FIX_UNSHIFTED = Text("Compare the output at step t with the token at t + 1: logits[:, :-1] against tokens[:, 1:].",
                     "让第 t 步的输出对准第 t + 1 个词元：logits[:, :-1] 对 tokens[:, 1:]。")
FIX_TWICE = Text("Shift only once: give a model that shifts inside labels equal to its input ids.",
                 "只移一次：模型内部会移位的话，labels 就直接用输入的 id。")
EQUAL = Text("share of targets that equal the input {k} step{k:|s} later", "目标与 {k} 步之后的输入相等的比例")
NEXT = Text("about 100 % for k = 1", "k = 1 时接近 100 %")
SAME, OTHER = 0.98, 0.9
CUTS = frozenset(("__getitem__", "narrow", "select"))


def check(tokens: list[TokenTargets], traces: list[OpTrace] | None) -> Iterator[Finding]:
    cut = next((place for trace in traces or [] if (place := _cut_out_at(OpGraph(trace)))), None)
    training = [seen for seen in tokens if seen.grad and seen.equal]
    if (ahead := next((seen for seen in training if seen.sees_next), None)) is not None:
        yield _of_look_ahead(ahead, cut)
        return
    if any(_equal(seen, 1) >= OTHER for seen in training):
        return  # some head does predict the next token
    twice = [seen for seen in training if _equal(seen, 2) >= SAME and _equal(seen, 0) < OTHER]
    unshifted = [seen for seen in training if _equal(seen, 0) >= SAME and _equal(seen, 2) < OTHER]
    if unshifted and any(seen.causal for seen in unshifted) and len(unshifted) == len(training):
        yield _finding(unshifted[0], 0, cut)
    elif twice and len(twice) == len(training):
        yield _finding(twice[0], 2, cut)


def _of_look_ahead(seen: TokenTargets, cut: Site | None) -> Finding:
    where, also = pointing(seen.sees_at, seen.site, cut, seen.made_at)
    return Finding(cause=SEEN, fix=FIX_SEEN, where=where, also=also, evidence=(Evidence(CHANGED, MOVED, STAYS, step=seen.step),),
                   first_step=seen.step)


def _equal(seen: TokenTargets, offset: int) -> float:
    return (seen.equal or {}).get(offset, 0.0)


def _cut_out_at(graph: OpGraph) -> Site | None:
    """The line that cut the targets out of a longer sequence, where the trace reaches back to it."""
    for loss in graph.trace.ops:
        if loss.name in ("cross_entropy", "nll_loss") and len(loss.inputs) > 1:
            maker = graph.maker(loss.inputs[1])
            while maker is not None and maker.name in PASSING and maker.inputs:
                if maker.name in CUTS and maker.site is not None:
                    return maker.site
                maker = graph.maker(maker.inputs[0])
    return None


def _finding(seen: TokenTargets, offset: int, cut: Site | None) -> Finding:
    where, also = pointing(seen.site, cut, seen.made_at)
    return Finding(
        cause=TWICE if offset else UNSHIFTED, fix=FIX_TWICE if offset else FIX_UNSHIFTED, where=where, also=also,
        evidence=tuple(Evidence(EQUAL.fill(k=k), f"{100 * share:.0f} %", NEXT, step=seen.step)
                       for k, share in sorted((seen.equal or {}).items())), first_step=seen.step)
