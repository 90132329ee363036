"""What ``traindx runs`` says, in both languages."""
from __future__ import annotations

from traindx.core.text import Text

ABOUT = Text("what ran, with which code, settings, seeds and data; what came of it",
             "跑过什么：用了哪版代码、什么配置、种子和数据，得到了什么")
DETAILS = Text("Every `traindx run` leaves a folder in runs/. These commands read, compare, conclude, export, repeat "
               "and remove them.",
               "每次 `traindx run` 都会在 runs/ 里留下一个文件夹。这些命令用来查看、比较、写结论、导出、复现和删除。")
LIST = Text("list the runs", "列出所有运行")
SHOW = Text("everything about one run", "一次运行的全部信息")
DIFF = Text("what changed between two runs, and only that", "两次运行之间变了什么（只列变化）")
COMPARE = Text("several runs side by side; a gain against the spread over seeds",
               "几次运行放在一起比；把提升和种子间的散布对照")
NOTE = Text("write the three-line conclusion of a run", "写一次运行的三行结论")
EXPORT = Text("the curves as CSV, TensorBoard or Parquet files", "把曲线导出成 CSV、TensorBoard 或 Parquet")
RM = Text("remove runs, after asking", "删除运行（会先询问）")
GC = Text("remove what is left of runs that never trained", "清理那些没训练起来的运行留下的东西")
REPRODUCE = Text("run it again from its record in a scratch folder and compare the curves",
                 "按记录在临时文件夹里重跑一遍，逐步比较曲线")

OPT_DIR = Text("where the runs are (default: runs)", "运行记录放在哪里（默认 runs）")
OPT_JSON = Text("as JSON on stdout", "以 JSON 输出到 stdout")
OPT_STATUS = Text("only those: running, finished, failed, killed", "只看某种状态：running、finished、failed、killed")
OPT_NAME = Text("only runs whose name fits this pattern", "只看名字符合这个通配符的运行")
OPT_OPEN = Text("only runs without a conclusion", "只看还没写结论的")
OPT_SORT = Text("order (default: started)", "排序方式（默认按开始时间）")
OPT_LIMIT = Text("show at most N", "最多显示 N 条")
OPT_RUN = Text("name of a run, the beginning of it, its folder, or “last”",
               "运行的名字、名字的开头、它的文件夹，或者 last")
OPT_HTML = Text("write the overlaid curves as one HTML page", "把叠放的曲线写成一个 HTML 页面")
OPT_PAGE = Text("also write it as one HTML page, with the curves", "同时写成一个带曲线的 HTML 页面")
OPT_BEST = Text("what was best", "最好的是什么")
OPT_FAILED = Text("which hypothesis failed", "失败的假设是什么")
OPT_NEXT = Text("what to do next", "下一步做什么")
OPT_CSV = Text("write the curves as CSV", "把曲线写成 CSV")
OPT_TENSORBOARD = Text("write the curves as TensorBoard event files into this folder",
                       "把曲线写成 TensorBoard 事件文件，放进这个文件夹")
OPT_PARQUET = Text("write the curves as Parquet (needs pyarrow)", "把曲线写成 Parquet（需要 pyarrow）")
OPT_YES = Text("do not ask", "不再询问")
OPT_OLDER = Text("also runs without a conclusion that began more than DAYS ago",
                 "也清理 DAYS 天以前开始、没写结论的运行")
OPT_KEEP = Text("keep the scratch folder", "保留临时文件夹")

NO_RUNS = Text("There is no run in {folder}.", "{folder} 里没有运行记录。")
NO_SUCH_RUN = Text("no such run: {name} (looked in {folder}).{near} All: traindx runs list",
                   "找不到这次运行：{name}（在 {folder} 里找过）。{near}全部运行：traindx runs list")
SEVERAL = Text("{name!r} is the beginning of several runs: {names}", "有好几次运行以 {name!r} 开头：{names}")
NOT_A_RUN = Text("{folder} is not a run folder: it has no run.json", "{folder} 不是运行记录：里面没有 run.json")
NEWER = Text("This record was written by a newer traindx (schema {schema}); it is shown as far as it is understood.",
             "这份记录由更新的 traindx 写成（schema {schema}），只能显示看得懂的部分。")
UNREADABLE = Text("{file} could not be read; what it held is left out.", "{file} 读不出来，其中的内容没有显示。")
LOST = Text("{count} line{count:|s} of the curves could not be read.", "曲线里有 {count} 行读不出来。")
KILLED = Text("killed at step {step}", "在第 {step} 步被终止")
STATES = {"running": Text("running", "运行中"), "finished": Text("finished", "完成"), "failed": Text("failed", "失败"),
          "unknown": Text("unknown", "不明")}
HEADS = {"run": Text("run",
                     "运行"), "status": Text("status",
                                           "状态"), "steps": Text("steps", "步数"), "best": Text("best", "最好"),
         "commit": Text("commit",
                        "提交"), "findings": Text("findings", "诊断"), "concluded": Text("conclusion", "结论")}
CONCLUDED = Text("written", "已写")
UNCONCLUDED = Text("unfinished", "没写")
COUNT = Text("{count} run{count:|s}, {open} without a conclusion", "共 {count} 次运行，{open} 次没写结论")

STARTED = Text("started", "开始")
SCRIPT = Text("script", "脚本")
STATUS = Text("status", "状态")
CODE = Text("code", "代码")
CONFIG = Text("settings", "配置")
SEEDS = Text("seeds", "种子")
DATA = Text("data", "数据")
ENVIRONMENT = Text("environment", "环境")
CURVES = Text("curves", "曲线")
FINDINGS = Text("findings", "诊断结论")
CONCLUSION = Text("conclusion", "结论")
EXAM = Text("What traindx exam found out", "traindx exam 查出了什么")
UNSEEDED = Text("not seeded", "没有设种子")
WHY = {"git is not installed": Text("git is not installed", "没有安装 git"),
       "not a git repository": Text("not a git repository", "不是 git 仓库"),
       "the repository has no commit yet": Text("the repository has no commit yet", "仓库里还没有提交")}
DATASET = Text("{dataset}, {size} sample{size:|s}", "{dataset}，{size} 个样本")
SUBSET = Text(", {size} of them", "，取其中 {size} 个")
CONTENT = {"whole": Text(", content {digest}",
                         "，内容指纹 {digest}"), "sampled": Text(", content {digest} (of samples)",
                                                            "，内容指纹 {digest}（抽样）")}
NO_COMMIT = Text("no commit ({why})", "没有提交（{why}）")
WITH_DIFF = Text("with uncommitted changes ({size}, sha256 {sha})", "带有未提交的改动（{size}，sha256 {sha}）")
NOT_KEPT = Text("; the diff was too big to keep whole", "；diff 太大，没有全留")
FILES_KEPT = Text("{count} file{count:|s} outside git kept", "另存了 {count} 个不在 git 里的文件")
SERIES_LINE = Text("last {last}, lowest {low} at step {step}, {points} point{points:|s}",
                   "最后 {last}，最低 {low}（第 {step} 步），{points} 个点")
CURVE_CHANGED = Text("last {last}, lowest {low}", "最后 {last}，最低 {low}")
NONE_WRITTEN = Text("none yet: traindx runs note {run}", "还没写：traindx runs note {run}")
LINES = {"best": Text("best", "最好的是什么"), "failed hypothesis": Text("failed hypothesis", "失败的假设"),
         "next": Text("next", "下一步")}
ASK = Text("Three lines while it is fresh (Enter leaves one out, Ctrl-C or a minute of silence all):",
           "趁记忆新鲜，写三行结论（回车跳过一行；按 Ctrl-C 或一分钟不动就全部跳过）：")

SAME = Text("Nothing differs.", "没有不同。")
VARIABLES = {"code": Text("code", "代码"), "seed": Text("seed", "随机种子"), "data": Text("data", "数据"),
             "environment": Text("environment", "环境"), "argv": Text("arguments", "命令行参数")}
ONE_CHANGED = Text("One variable changed: {name}.", "只改了一个变量：{name}。")
SEVERAL_CHANGED = Text("{count} variable{count:|s} changed ({names}): a difference in the curves cannot be put down to one of "
                       "them.",
                       "一共改了 {count} 个变量（{names}）：曲线的差别不能归到其中某一个头上。")
ONLY_SEED = Text("Only the seed changed: the difference is the spread over seeds.",
                 "只换了种子：差别就是种子间的散布。")
NO_CHANGE_BUT = Text("Nothing that is recorded changed.", "记录下来的东西，一样也没有变。")
FIRST_DIFFERENT = Text("curves differ from step {step} on ({series}: {a} / {b})",
                       "曲线从第 {step} 步起不同（{series}：{a} / {b}）")
CURVES_SAME = Text("curves are identical", "曲线完全相同")
CURVES_NOT_COMPARED = Text("A recording of more than 64 MB is not compared step by step: only the last and the lowest value of each curve were.",
                           "超过 64 MB 的记录不逐步比较：每条曲线只比较了最后的值和最低的值。")
CURVES_SAME_SO_FAR = Text("curves are identical over the steps that both have", "在两者共有的步上，曲线完全相同")

GROUP = Text("group", "组")
SEED_COUNT = Text("runs", "次数")
MEAN = Text("mean", "平均")
SPREAD = Text("spread (standard deviation over seeds)", "散布（种子间的标准差）")
METRIC = Text("Compared by the lowest {metric} of each run.", "比较的是每次运行的最低 {metric}。")
GAIN = Text("{a} against {b}: difference {difference}, 95 % interval {low} .. {high} (formula: Welch): {verdict}.",
            "{a} 对 {b}：差 {difference}，95 % 区间 {low} .. {high}（公式：Welch）：{verdict}。")
INSIDE = Text("inside the noise", "在噪声之内")
OUTSIDE = Text("outside the noise", "超出了噪声")
GAIN_OF_ONE = Text("{a} against {b}: difference {difference}, 95 % interval {low} .. {high} (formula: prediction interval; one of them has one "
                   "run, whose spread is taken to be that of the other): {verdict}.",
                   "{a} 对 {b}：差 {difference}，95 % 区间 {low} .. {high}（公式：预测区间；其中一组只有一次运行，"
                   "按另一组的散布估计）：{verdict}。")
NO_SPREAD = Text("{a} against {b}: difference {difference}; with one run each the spread over seeds is not known, so "
                 "it is not known whether this is more than noise. Run both with three seeds or more.",
                 "{a} 对 {b}：差 {difference}；各只有一次运行，不知道种子间的散布，也就不知道这是不是噪声。"
                 "每组至少跑三个种子。")
PAGE_TITLE = Text("traindx: runs compared", "traindx：运行比较")

NOTHING_TO_EXPORT = Text("say where to: --csv FILE, --tensorboard FOLDER or --parquet FILE",
                         "要说明导出到哪里：--csv FILE、--tensorboard FOLDER 或 --parquet FILE")
NO_PYARROW = Text("--parquet needs pyarrow: pip install 'traindx[parquet]'",
                  "--parquet 需要 pyarrow：pip install 'traindx[parquet]'")
NO_CURVES = Text("{run} has no curves", "{run} 没有曲线")
WROTE = Text("wrote {file}", "写好了 {file}")
CANNOT_WRITE = Text("{file} cannot be written: {problem}", "写不了 {file}：{problem}")
STILL_RUNS = Text("{run} is still running", "{run} 还在运行")
REMOVE = Text("Remove {count} run{count:|s} ({size})?", "删除 {count} 次运行（{size}）？")
NOTHING_REMOVED = Text("Nothing was removed.", "什么也没删。")
REMOVED = Text("Removed {count} run{count:|s} ({size}).", "删除了 {count} 次运行（{size}）。")
NOT_ASKED = Text("Nothing was removed: this is no terminal to ask on; add --yes.",
                 "什么也没删：这里不是终端，没法询问；请加 --yes。")
TWO_NEEDED = Text("compare needs two runs or more", "compare 至少要两次运行")

# -- reproduce ---------------------------------------------------------------------------------------------------------------------

MASKED_ARGV = Text("{run} cannot be repeated: its arguments held a secret, which was not kept. Run it by hand.",
                   "{run} 没法复现：它的参数里有密钥，密钥没有存下来。请手动运行。")
NO_CODE = Text("{run} cannot be repeated: {why}", "{run} 没法复现：{why}")
DIFF_CUT = Text("its uncommitted changes were too big to keep", "它未提交的改动太大，没有存下来")
DIFF_FAILED = Text("its diff does not apply ({error})", "它的 diff 用不上（{error}）")
COMMIT_GONE = Text("commit {commit} is not in {root}", "{root} 里没有提交 {commit}")
REPOSITORY_GONE = Text("its repository {root} is gone", "它的仓库 {root} 不在了")
NO_SCRIPT = Text("its script was not kept", "它的脚本没有存下来")
RUNNING_AGAIN = Text("Running {run} again in {folder}", "在 {folder} 里重跑 {run}")
NOT_COPIED = Text("{count} file{count:|s} ({size}) of {root} {count:was|were} not copied, the largest: {some}. The script may miss them.",
                  "{root} 里有 {count} 个文件（{size}）没有复制，最大的是：{some}。脚本可能需要它们。")
MASKED_CODE = Text("Secrets in the code were masked when it was kept; the code that runs has *** there.",
                   "代码存下来时遮住了密钥；重跑的代码里是 ***。")
IDENTICAL = Text("Identical: {points} point{points:|s} of {series} curve{series:|s} agree to the last bit.",
                 "完全一致：{series} 条曲线的 {points} 个点逐位相同。")
DIFFERS = Text("Differs from step {step} on: {series} was {a}, now {b}.",
               "从第 {step} 步起不同：{series} 原来是 {a}，现在是 {b}。")
NOTHING_TO_COMPARE = Text("Nothing can be compared: the two runs have no curve in common.",
                          "没法比较：两次运行没有共同的曲线。")
REASONS = Text("Likely reasons:", "可能的原因：")
REASON_SEED = Text("not seeded: {what}", "没有设种子：{what}")
REASON_PACKAGES = Text("other packages than then: {what}", "软件包和当时不同：{what}")
REASON_TORCH = Text("other switches of torch: {what}", "torch 的设置不同：{what}")
REASON_DATA = Text("other data: {what}", "数据不同：{what}")
REASON_INPUTS = Text("the first batches differ: their order, or what is in them, depends on something that is not "
                     "fixed",
                     "最初几个 batch 就不同：顺序或内容取决于没有固定的东西")
REASON_DEVICE = Text("another device: {what}", "设备不同：{what}")
REASON_HASH = Text("PYTHONHASHSEED was not set: the order of sets of strings is another one in every process",
                   "没有设 PYTHONHASHSEED：字符串集合的顺序每个进程都不一样")
REASON_CUDA = Text("operations on the GPU whose result depends on timing: torch.use_deterministic_algorithms(True) and "
                   "CUBLAS_WORKSPACE_CONFIG=:4096:8 name or replace them (slower: often 5-30 %, rule of thumb)",
                   "GPU 上有些算子的结果取决于时序：torch.use_deterministic_algorithms(True) 加 "
                   "CUBLAS_WORKSPACE_CONFIG=:4096:8 会指出它们，或者换掉它们（会变慢，常见 5 到 30 %，经验值）")
REASON_NONE = Text("nothing recorded explains it: threads, time of day, files that the script reads",
                   "记录里没有能解释的：线程、时间、脚本读的文件")
