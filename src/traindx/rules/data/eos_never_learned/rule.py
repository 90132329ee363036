"""The end token is never a target.

What it is:
The token that ends a sequence is also the one that fills rows up, and the loss leaves the filler out. With it goes the one place where
the model would have learned to stop.

Why it is silent:
All other tokens are learned, and the loss looks as it should: ending well is one token among many.

What you see:
Generation never stops: it runs on to the maximum length, often repeating itself.

Look-alikes:
A model of fixed windows that never generates needs no end. Where the end has a token of its own and only the filler is left out, the
end is learned.

Fix:
Give the filler a token of its own, or leave out only what comes after the first end token.

Before:
    tokenizer.pad_token = tokenizer.eos_token
After:
    tokenizer.add_special_tokens({"pad_token": "<pad>"})

Experiment:
Count how often the end token is among the targets that are not ignored.

Source:
Counted on the targets of the loss calls; which token means the end is read from the program's names or the model's configuration.
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.ending import EndToken
from traindx.core.text import Text
from traindx.signals.where import pointing

ZH = """结束符从来不是目标

是什么：
表示序列结束的词元同时也用来补齐，而损失会忽略填充。这样一来，模型唯一能学会「停下来」的地方也一起没了。

为什么不报错：
其他词元都在正常学习，损失看上去也正常：结束只是许多词元中的一个。

你会看到：
生成停不下来：一直跑到最大长度，还常常重复自己。

容易混淆的情况：
只处理固定窗口、从不生成的模型不需要结束符。结束符有自己的编号、只忽略填充时，结束是学得到的。

怎么改：
给填充单独一个词元，或者只忽略第一个结束符之后的部分。

改前：
    tokenizer.pad_token = tokenizer.eos_token
改后：
    tokenizer.add_special_tokens({"pad_token": "<pad>"})

对照实验：
数一数：没有忽略的目标里，结束符出现了几次。

来源：
在损失调用的目标上计数；哪个词元表示结束，取自程序里的名字或模型的配置。
"""
LEVEL = "warning"
STEP = 2

ROWS = 8  # rows that end in filler, before anything is said
SHARE = 0.9

CAUSE = Text("{name} ({token}) also fills the rows up and is left out of the loss: in {rows} row{rows:|s} that end, it was never a target.",
             "{name}（{token}）也用来填充，损失又忽略填充：{rows} 条有结尾的序列里，它一次也没有当过目标。")
FIX = Text("Use another token for padding, or keep the first end token of each row among the targets.",
           "换一个词元来填充，或者在每条序列的目标里保留第一个结束符。")
BECAUSE = Text("that this token ends a sequence is read from its name", "「这个词元表示结束」是从名字判断的")
TAUGHT = Text("targets that are the end token", "目标里的结束符个数")


def check(tokens: list[EndToken]) -> Iterator[Finding]:
    for seen in tokens:
        if seen.taught == 0 and seen.rows >= ROWS and seen.left_out >= SHARE * seen.rows:
            where, also = pointing(seen.made_at, seen.site, seen.named_at)
            yield Finding(
                cause=CAUSE.fill(name=seen.name, token=seen.token, rows=seen.rows), fix=FIX, where=where, also=also, confidence="likely",
                because=BECAUSE, evidence=(Evidence(TAUGHT, seen.taught, f"{seen.rows}", step=seen.step),), first_step=seen.step)
