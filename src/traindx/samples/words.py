"""What ``traindx data`` says, in both languages."""
from __future__ import annotations

from traindx.core.text import Text, same

TITLE = Text("traindx data: {script}", "traindx 数据：{script}")
SPLITS = Text("What reached the model", "模型真正拿到的数据")
SPLIT = Text("Split", "划分")
SAMPLES = Text("samples", "样本")
BATCHES = Text("batches", "batch")
SHAPE = Text("one sample", "单个样本")
KIND = Text("looks like", "看起来是")
LABELS = Text("labels", "标签")
FROM = Text("comes from", "来自")
KINDS = {
    "image": Text("image", "图像"), "wave": Text("waveform", "波形"), "text": Text("token ids", "词元 id"),
    "table": Text("table row", "表格的一行"),
    "matrix": Text("matrix", "矩阵"), "numbers": Text("numbers", "数值"), "": Text("unknown", "未知")}
LABEL_KINDS = {"classes": Text("class ids", "类别 id"), "values": Text("values", "数值"), "other": Text("of another shape", "其他形状"),
               "none": Text("none seen", "没有看到")}
NAMES = {"train": Text("train", "训练集"), "validation": Text("validation", "验证集")}
PASS_CUT = Text("the pass was not seen to its end", "这一遍没有看完")
REVIEW = Text("Samples to review", "逐个查看的样本")
KEYS = Text("Keys: → or j next, ← or k back, 1 fine, 2 wrong label, 3 bad input, 4 unsure, 0 no mark, s save the marks.",
            "按键：→ 或 j 下一个，← 或 k 上一个，1 没问题，2 标签错，3 输入坏，4 拿不准，0 取消标记，s 保存标记。")
SAVE = Text("Save the marks", "保存标记")
MARKS = (Text("no mark", "未标记"), Text("fine", "没问题"), Text("wrong label", "标签错"), Text("bad input", "输入坏"), Text("unsure", "拿不准"))
LABEL = Text("label", "标签")
RANGE = Text("values {low} .. {high}", "取值 {low} .. {high}")
TOO_LARGE = Text("too large to be shown: {shape}", "太大，不显示：{shape}")
NOT_DECODED = Text("no tokenizer was seen: ids", "没有看到分词器（tokenizer）：显示 id")
CLASSES = Text("Classes", "类别分布")
TAIL = Text("tail: less than a fifth of a class's mean count (rule of thumb)", "长尾：不到平均每类样本数的五分之一（经验值）")
VALUES = Text("{count} value{count:|s}, {low} .. {high}, mean {mean}, standard deviation {std} (measured)",
              "{count} 个值，{low} .. {high}，均值 {mean}，标准差 {std}（实测）")
COPIES = Text("Duplicates", "重复样本")
EXACT = Text("equal samples", "完全相同")
NEAR = Text("nearly equal samples", "几乎相同")
NONE = Text("none", "没有")
WITHIN = Text("within {split}", "{split}内部")
ACROSS = Text("in {second} that are also in {first}", "{second}里、{first}也有的")
OF = Text("{count} of {total} (measured)", "{total} 个里有 {count} 个（实测）")
NOT_TOLD = Text("not checked: {why}", "没查（{why}）")
CONFLICTS = Text("One sample, two labels", "同一个样本，两个标签")
CONFLICT = Text("{first} is {a}, its copy {second} is {b}", "{first} 标为 {a}，与它相同的 {second} 标为 {b}")
SUSPECTS = Text("Labels to check", "值得复查的标签")
BY_NEIGHBOURS = Text("the naive way: the {k} nearest other sample{k:|s} vote (cleanlab is not installed: pip install 'traindx[data]')",
                     "朴素做法：最近的 {k} 个其他样本投票（没装 cleanlab：pip install 'traindx[data]'）")
BY_CLEANLAB = Text("cleanlab, on the votes of the {k} nearest other sample{k:|s}", "cleanlab，依据最近 {k} 个其他样本的投票")
SUSPECT = Text("{where}: labelled {label}, {share} % of its neighbours say {said}", "{where}：标为 {label}，但 {share} % 的邻居是 {said}")
SUSPECTS_OF = Text("{count} candidate{count:|s} among {total} training sample{total:|s}; "
                   "the neighbours foretell {accuracy} % of all labels (measured, out of sample)",
                   "{total} 个训练样本里有 {count} 个候选；邻居能猜对 {accuracy} % 的标签（实测，样本外）")
SHIFTS = Text("Location and scale by split", "各划分的位置与尺度")
SHIFT = Text("feature {feature}: mean {a} in {first}, {b} in {second}; standard deviation {s}, {t}",
             "特征 {feature}：均值在{first}里是 {a}，在{second}里是 {b}；标准差分别是 {s} 和 {t}")
NO_SHIFT = Text("No feature lies elsewhere by more than chance and {far} standard deviation{far:|s} (rule of thumb).",
                "没有哪个特征的偏移既超出偶然、又超过 {far} 个标准差（经验值）。")
STATISTICS = Text("Where normalisation statistics came from", "归一化统计量从哪里来")
FITTED = Text("{kind} fitted on {rows} row{rows:|s} at {place}", "{kind} 在 {place} 用 {rows} 个样本拟合")
LINES = Text("statistics over rows are computed at {place}", "{place} 对样本求了统计量")
NO_STATISTICS = Text("No scaler's fit and no statistics over rows were seen; statistics written into the code as numbers are not.",
                     "没有看到归一化器（scaler）拟合，也没有看到对样本求统计量；直接写成数字的统计量看不到。")
GROUPS = Text("Groups across splits", "跨划分的同组样本")
GROUP = Text("{share} % of the files in {second} begin like one in {first}: {example}. "
             "If they are of one person, scene or recording, split by group.",
             "{second}里 {share} % 的文件名，开头与{first}的某个文件相同：{example}。如果它们出自同一个人、场景或录音，就按组划分。")
NO_FILES = Text("No file names or ids of the samples were seen.", "没有看到样本的文件名或 id。")
NO_GROUPS = Text("No file name begins alike in two splits in a way that tells a group.",
                 "两个划分之间，没有看到开头相同、像是同组的文件名。")
FINDINGS = Text("What the data rules say", "数据规则的结论")
NO_FINDING = Text("No data rule found a fault.", "数据规则没有查出问题。")
PAGE = Text("Page: {page}", "页面：{page}")
SERVING = Text("Review at {url}. Marks are saved to {file}. Ctrl-C ends.", "在 {url} 查看。标记保存到 {file}。按 Ctrl-C 结束。")
WHY = {
    "a row says too little: two samples may be alike by chance": Text(
        "a sample says too little: two may be alike by chance", "单个样本信息太少，两个相同可能只是巧合"),
    "no sampler without replacement: a row met again may be the same sample": Text(
        "no loader without replacement was seen: a sample met again may be the same one",
        "没有看到不放回抽样的 loader：再次遇到的可能就是同一个样本"),
    "too few columns: rows are near by chance": Text("too few columns: samples are near by chance", "列太少，样本靠得近可能只是巧合"),
    "the samples are too much alike for this measure": Text("the samples are too much alike for this measure", "样本彼此太像，这个度量分不开"),
    "the labels are no class ids": Text("the labels are no class ids", "标签不是类别 id"),
    "fewer than 60 labelled samples": Text("fewer than 60 labelled samples", "带标签的样本不到 60 个"),
    "one class only": Text("one class only", "只有一个类别"),
    "near samples do not foretell the label, so that they cannot judge it": Text(
        "near samples do not foretell the label, so they cannot judge it", "相近的样本猜不出标签，也就没法用来判断"),
}

NOTES = {
    "the shape of a sample varies": Text("the shape of a sample varies", "样本的形状不固定"),
    "inputs without plain tensors were not looked at": Text("inputs without plain tensors were not looked at",
                                                            "有的输入里没有普通张量，没有看"),
}


def note(words: str) -> Text:
    return NOTES.get(words, same(words))


def why(words: str) -> Text:
    return WHY.get(words, same(words))


def split_name(name: str) -> Text:
    return NAMES.get(name, same(name))
