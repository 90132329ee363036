"""What ``traindx checklist`` says, in both languages."""
from __future__ import annotations

from traindx.core.text import Text

ABOUT = Text("the 20 items, ticked by evidence; what is not done is said",
             "20 条自检清单：有证据才打勾，没做的就说没做")
DETAILS = Text("Judges a run's record. What no machine can know is asked on a terminal, or given with --answer, and "
               "kept with its date.",
               "根据一次运行的记录来判断。机器没法知道的，在终端上问你，或者由你用 --answer 给出；回答连同日期一起存下来。")
OPT_RUN = Text("the run (default: the last)", "哪一次运行（默认最近一次）")
OPT_STRICT = Text("status 1 unless every item is ticked", "只要有一条没通过就以状态 1 结束")
OPT_HTML = Text("write it as an HTML page", "写成 HTML 页面")
OPT_MARKDOWN = Text("write it as Markdown, for a pull request or an appendix",
                    "写成 Markdown，可放进 pull request 或附录")
OPT_JSON = Text("write it as JSON; - for stdout", "写成 JSON；- 表示 stdout")
OPT_ANSWER = Text("answer an item: --answer 17='as in the paper, table 2'; 'no: why' fails it; repeat for more",
                  "回答某一条：--answer 17='和论文表 2 一致'；写 'no: 原因' 表示未通过；可重复")
OPT_EXAM = Text("the JSON of an exam of this script (default: exam.json in the record)",
                "这个脚本的 traindx exam 结果（JSON；默认用记录里的 exam.json）")
OPT_NO_ASK = Text("do not ask", "不询问")
BAD_ANSWER = Text("--answer {word}: write it as N='text', with N from 1 to 20",
                  "--answer {word}：应写成 N='文字'，N 从 1 到 20")
BAD_EXAM = Text("--exam {file} cannot be read as an exam's JSON", "--exam {file} 读不了：它不是 traindx exam 写的 JSON")
OTHER_EXAM = Text("--exam {file} is about {other}, and this run is of {script}", "--exam {file} 是 {other} 的，而这次运行的脚本是 {script}")
TITLE = Text("Checklist of {run}", "{run} 的自检清单")
TALLY = Text("{ticked} ticked, {failed} failed, {open} not done. Not done is safer than pretended.",
             "通过 {ticked} 条，未通过 {failed} 条，没做 {open} 条。「没做」比「假装做了」安全。")
STATES = {"ticked": Text("ticked", "通过"), "failed": Text("failed", "未通过"), "not-done": Text("not done", "没做")}
GROUPS = {1: Text("Data",
                  "数据"), 5: Text("Code",
                                 "代码"), 9: Text("Hyperparameters",
                                                "超参数"), 13: Text("Training", "训练"), 17: Text("Evaluation", "评估")}
HEADS = (Text("item", "条目"), Text("state", "状态"), Text("evidence", "证据"), Text("what settles it", "怎样确认"))
ASK = Text("Only you know these (Enter leaves one out, Ctrl-C all; begin with “no:” where it is not so):",
           "这几条只有你知道（回车跳过这一条，Ctrl-C 全部跳过；情况不是这样，就以 no: 开头）：")
ANSWERED = Text("{text} (answered on {date})", "{text}（回答于 {date}）")

TITLES = {
    1: Text("Training, validation and test set share no sample", "训练、验证、测试集没有重叠"),
    2: Text("Normalisation statistics come from the training set alone", "归一化统计量只来自训练集"),
    3: Text("Samples were looked at", "样本看过（可视化过）"),
    4: Text("The distribution of classes is known", "类别分布已知"),
    5: Text("One batch can be overfit", "能在一个 batch 上过拟合"),
    6: Text("Shapes are asserted", "形状断言齐全"),
    7: Text("Devices and dtypes are uniform", "设备与 dtype 统一"),
    8: Text("The loss fits the output layer", "损失与输出层匹配"),
    9: Text("The learning rate was swept", "学习率扫过"),
    10: Text("Batch size and learning rate were changed together", "batch 大小与学习率联动"),
    11: Text("The initialisation is explicit", "权重初始化明确"),
    12: Text("Gradients are clipped", "梯度裁剪已开"),
    13: Text("Loss, learning rate and gradient norm are recorded", "损失、学习率、梯度范数三条曲线都有记录"),
    14: Text("Seeds are set and recorded", "种子固定且记录"),
    15: Text("The best and the last checkpoint are kept", "保存最好的和最后的检查点"),
    16: Text("Training can be resumed", "可以断点续训"),
    17: Text("The metric is computed as in the paper or benchmark", "指标口径与论文或基准一致"),
    18: Text("The mean over several runs is reported", "报告多次运行的均值"),
    19: Text("An ablation changes one variable", "消融实验只改一个变量"),
    20: Text("The conclusion is written", "结论写进 notes.md"),
}
FOUND = Text("{rule} was found", "查出 {rule}")
CLEAR = Text("{rules}: clear (measured)", "{rules}：没问题（实测）")
UNCHECKED = Text("{rule}: not checked ({why})", "{rule}：没查（{why}）")
NO_REPORT = Text("the run left no report", "这次运行没有留下报告")
CLASSES = Text("{count} class{count:|es}; the rarest has {low} of {total} label{total:|s} ({share} %, measured)",
               "{count} 个类别；{total} 个标签里，最少的一类有 {low} 个（{share} %，实测）")
VALUES = Text("values: mean {mean}, standard deviation {std} (measured)", "连续值：均值 {mean}，标准差 {std}（实测）")
NO_LABELS = Text("no labels were seen", "没有看到标签")
EXAM_STEP = Text("exam, {step}: {verdict}", "exam 的「{step}」：{verdict}")
EXAM_NAMES = {"overfit": Text("overfit one batch", "在一个 batch 上过拟合"), "output": Text("loss and output", "损失和输出"),
              "init": Text("initialisation and normalisation", "初始化和归一化"), "resume": Text("resume", "断点续训")}
VERDICTS = {"passed": Text("passed", "通过"), "failed": Text("failed", "未通过")}
MARKED = Text("{count} sample{count:|s} looked at and marked ({marks}; {page})", "看过并标记了 {count} 个样本（{marks}；{page}）")
VIEWED = Text("the page of samples was opened on {date} ({page})", "{date} 打开过样本页面（{page}）")
NOT_VIEWED = Text("a page of samples was written on {date} ({page}); that somebody looked at it is not known",
                  "{date} 写过样本页面（{page}）；有没有人看过，不知道")
NOT_PASTED = Text("{count} assertion{count:|s} printed on {date} {count:is|are} not in the program: paste {count:it|them}",
                  "{date} 打印过 {count} 条断言，还没有粘贴到程序里")
RATE_FITS = Text("one batch size, and the learning rate {used} lies in the interval swept at it ({low} .. {high}, measured)",
                 "只有一种 batch 大小；学习率 {used} 在这个大小下扫出的区间之内（{low} .. {high}，实测）")
RATE_OUTSIDE = Text("one batch size, and the learning rate {used} lies outside of the interval swept at it ({low} .. {high}, measured)",
                    "只有一种 batch 大小；学习率 {used} 在这个大小下扫出的区间之外（{low} .. {high}，实测）")
NO_EXAM = Text("no exam of this script is known", "没有这个脚本的 traindx exam 结果")
ASSERTS = Text("{count} assertion{count:|s} about shapes, the first at {where}", "有 {count} 处形状断言，第一处在 {where}")
NO_ASSERTS = Text("no assertion about a shape in the program's own files", "程序自己的文件里没有形状断言")
DTYPE = Text("all {count} parameter{count:|s} are {dtype} (measured)", "全部 {count} 个参数都是 {dtype}（实测）")
DTYPES = Text("parameters have several dtypes: {dtypes} (measured)", "参数有几种 dtype：{dtypes}（实测）")
NO_MODEL = Text("no model was seen", "没有看到模型")
SWEPT = Text("{count} learning rate{count:|s} in the records of this script: {rates}",
             "这个脚本的记录里有 {count} 个学习率：{rates}")
EXAM_LR = Text("the exam swept it: {interval}", "exam 扫过：{interval}")
ONE_RATE = Text("only one learning rate is in the records", "记录里只有一个学习率")
TOGETHER = Text("batch sizes {batches} with learning rates {rates}", "batch 大小 {batches}，学习率 {rates}")
NOT_TOGETHER = Text("batch sizes {batches}, all with learning rate {rate}", "batch 大小 {batches}，学习率都是 {rate}")
ONE_BATCH = Text("only one batch size is in the records", "记录里只有一种 batch 大小")
INITIALISED = Text("{count} call{count:|s} of torch.nn.init, the first at {where}",
                   "有 {count} 处调用 torch.nn.init，第一处在 {where}")
LOADED = Text("weights are loaded from {file}", "权重从 {file} 加载")
DEFAULT_INIT = Text("PyTorch's defaults, nothing in the program's files sets them",
                    "用的是 PyTorch 默认值，程序文件里没有设置")
CLIPPED = Text("gradients are clipped (measured at {count} step{count:|s})", "梯度裁剪过（实测，{count} 步）")
NOT_CLIPPED = Text("no clipping was seen", "没有看到梯度裁剪")
RECORDED = Text("{loss}, {lr} and {norm} point{norm:|s} (kept by traindx)", "三条曲线分别有 {loss}、{lr}、{norm} 个点（traindx 记的）")
CURVE_MISSING = Text("missing: {names}", "缺少：{names}")
SEEDED = Text("{calls} (kept in the record)", "{calls}（已存入记录）")
UNSEEDED = Text("not seeded: {what}", "没有设种子：{what}")
NO_SEED = Text("no seed was set", "没有设种子")
SAVED = Text("best: {best}, last: {last}", "最好的：{best}；最后的：{last}")
ONE_SAVED = Text("one file only: {file}", "只有一个文件：{file}")
NONE_SAVED = Text("nothing was saved with torch.save", "没有用 torch.save 保存任何东西")
MEAN = Text("{count} run{count:|s} that differ in the seed alone: {metric} {mean} ± {spread} (standard deviation)",
            "只有种子不同的 {count} 次运行：{metric} {mean} ± {spread}（标准差）")
FEW_SEEDS = Text("{count} run{count:|s} with this code and these settings; three or more seeds make a mean",
                 "这版代码和配置只跑过 {count} 次；至少三个种子才谈得上均值")
NOTES = Text("notes.md has its three lines", "notes.md 的三行结论已写好")
NO_NOTES = Text("notes.md lacks: {names}", "notes.md 还缺：{names}")
YOURS = Text("only you can know", "只有你知道")
