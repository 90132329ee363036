"""What the command line and the reports say, in both languages. Rules keep their texts beside themselves."""
from __future__ import annotations

from traindx.core.text import Text

NAME = "traindx"
SAYS = Text("traindx: {what}", "traindx：{what}")

# -- levels, confidence, origins --------------------------------------------------------------------------------------

LEVEL = {"error": Text("error", "错误"), "warning": Text("warning", "警告"), "note": Text("note", "提示")}
CONFIDENCE = {"certain": Text("certain", "确定"), "likely": Text("likely", "很可能"),
              "suspected": Text("suspected", "怀疑")}
ORIGIN = {"measured": Text("measured", "实测"), "formula": Text("formula", "公式"),
          "rule of thumb": Text("rule of thumb", "经验值")}
VERDICT = {"found": Text("found", "查出"), "clear": Text("clear", "没问题"), "not-checked": Text("not checked", "没查")}

# -- the report -------------------------------------------------------------------------------------------------------

STEPS = Text("{count} step{count:|s}", "{count} 步")
IN_SECONDS = Text(" in {seconds} s", "，用时 {seconds} 秒")
EXIT = Text("exit status {status}", "退出状态 {status}")
STOPPED = Text("stopped: {how}", "中途停下：{how}")
STOPPED_BY_SIGNAL = Text("killed by {signal}", "收到 {signal} 而终止")
STOPPED_BY_MAX_STEPS = Text("stopped by --max-steps", "到 --max-steps 停下")
STOPPED_BY_ERROR = Text("ended by {error}", "因 {error} 结束")

CAUSE = Text("Cause", "病因")
EVIDENCE = Text("Evidence", "证据")
FIX = Text("Fix", "怎么改")
ALSO = Text("Also", "相关位置")
EXPLAINS = Text("Explains", "由此引起")
PROOF = Text("Proof", "对照实验")
RANKS = Text("Ranks", "进程")
ALL_RANKS = Text("{ranks} (all)", "{ranks}（全部）")
SOME_RANKS = Text("{ranks} (of {world})", "{ranks}（共 {world} 个）")
OUTCOME = {"proved": Text("proved", "已证实"), "refuted": Text("refuted", "已排除"), "undecided": Text("undecided", "无法判定")}
PROVED = Text("{outcome}: {why}", "{outcome}：{why}")
REFUTED = Text("Withdrawn after an experiment:", "经对照实验撤回：")
CONFIDENCE_IS = Text("Confidence", "把握")
IN_FUNCTION = Text("in {function}", "在 {function} 中")
EXPECTED = Text("expected: {value}", "应为：{value}")
AT_STEP = Text("step {step}", "第 {step} 步")
MORE_PLACES = Text("and {count} more", "还有 {count} 处")
EVIDENCE_ITEM = Text("{what}: {value}", "{what}：{value}")
IN_BRACKETS = Text(" ({inner})", "（{inner}）")
LIST_COMMA = Text(", ", "，")
SEMICOLON = Text("; ", "；")
COLON = Text(": ", "：")
REASON = Text("{word}: {reason}", "{word}：{reason}")
NO_PLACE = Text("no single line", "不在某一行")
NOTES_TITLE = Text("Notes", "提示")

NOTHING_FOUND = Text("No fault was found.", "没有查出问题。")
NO_TRAINING = Text("No training was seen: {why}.", "没有看到训练：{why}。")
NO_TORCH = Text("the script never imported torch", "脚本没有导入 torch")
NO_BACKWARD = Text("torch was imported, but nothing called backward or stepped an optimizer",
                   "脚本导入了 torch，但没有反向传播，优化器也没有走过一步")
NOTHING_IN_BLOCK = Text("nothing here called backward or stepped an optimizer", "这一段里没有反向传播，优化器也没有走过一步")
ENDED_EARLY = Text("the script ended before its first training step", "脚本在第一个训练步之前就结束了")
LOST_LINES = Text("{count} line{count:|s} of the recording could not be read; what is said here rests on the others.",
                  "运行记录有 {count} 行读不出来，这里的结论只依据其余部分。")
WITHDRAWN = Text("Withdrawn: {rule}, said while the script ran, does not hold for the whole run.",
                 "撤回：运行途中报告的 {rule} 对整次运行不成立。")
SUPPRESSED = Text("{count} suppressed by “# traindx: ignore” in the code: {rules}.",
                  "代码中的「# traindx: ignore」隐去了 {count} 条：{rules}。")
TALLY = Text("Rules: {found} found, {clear} clear, {unchecked} not checked",
             "规则：查出 {found}，没问题 {clear}，没查 {unchecked}")
NOT_CHECKED = Text("Not checked:", "没查的原因：")
LEFT_OUT = Text("left out by --select / --ignore", "没有选中（--select / --ignore）")
OTHER_REASONS = Text("{count} for other reasons", "其他原因 {count} 条")
REASON_COUNT = Text("{count} x {why}", "{count} 条：{why}")
MORE = Text("More: {commands}", "想看更多：{commands}")
RUN_FOLDER = Text("Record: {folder}", "运行记录：{folder}")

MONITORS = Text("Monitors", "监控量")
MONITOR_LAST = Text("last", "最后")
MONITOR_RANGE = Text("range", "范围")
MONITOR_BAND = Text("usual", "正常范围")
MONITOR_STATE = Text("state", "状态")
INSIDE = Text("inside", "正常")
BELOW = Text("below in {share} %", "{share} % 偏低")
ABOVE = Text("above in {share} %", "{share} % 偏高")
NONFINITE = Text("NaN/Inf in {count}", "{count} 次 NaN/Inf")
FALLS = Text("falls", "下降")
RISES = Text("rises", "上升")
FLAT = Text("flat", "不降")

# -- while it runs ----------------------------------------------------------------------------------------------------

LIVE = Text("traindx: step {step}: {level} {rule}: {title}{place}",
            "traindx：第 {step} 步：{level} {rule}：{title}{place}")
LIVE_PLACE = Text(" ({place})", "（{place}）")

# -- the HTML page ----------------------------------------------------------------------------------------------------

HTML_TITLE = Text("traindx report: {script}", "traindx 报告：{script}")
HTML_FINDINGS = Text("Findings", "诊断结论")
HTML_CURVES = Text("Curves", "曲线")
HTML_VERDICTS = Text("Every rule", "每条规则")
HTML_RULE = Text("Rule", "规则")
HTML_VERDICT = Text("Verdict", "结论")
HTML_WHY = Text("Why", "原因")
HTML_VALUE = Text("Value", "数值")
HTML_EXPECTED = Text("Sound runs show", "正常应为")
HTML_ORIGIN = Text("Origin", "来源")
HTML_STEP = Text("step", "步")
HTML_NO_CURVES = Text("No curve was recorded.", "没有记录到曲线。")
HTML_SUPPRESSED = Text("Suppressed in the code", "在代码中隐去")
HTML_OTHER_LANGUAGE = Text("中文", "English")
HTML_ALARM = Text("step {step}: {what}. {meaning} (rule of thumb)", "第 {step} 步：{what}。{meaning}（经验值）")

# -- commands ---------------------------------------------------------------------------------------------------------

ABOUT = Text("Find out why a PyTorch training does not work: "
             "watch the unmodified script, name the cause, with file and line.",
             "找出 PyTorch 训练为什么不对：脚本一行不改，看着它跑，说出病因，指到文件和行号。")
RUN_ABOUT = Text("watch a training script and name what is wrong with it", "看着训练脚本运行，说出它哪里有问题")
EXPLAIN_ABOUT = Text("the page of one rule", "一条规则的说明页")
RULES_ABOUT = Text("list every rule", "列出所有规则")
RUN_DETAILS = Text(
    "Runs the script as python would (same arguments, output and exit status) and reports on stderr when it ends. "
    "Options stand before the script; everything after it is the script's own.",
    "像 python 一样运行脚本（参数、输出、退出状态都不变），结束后在 stderr 上给出报告。"
    "选项写在脚本之前；脚本之后的都归脚本。")
OPT_MODULE = Text("run a module, as python -m does", "运行模块，同 python -m")
OPT_NETWORK = Text("let the script use the network", "允许脚本访问网络")
OPT_SCRIPT = Text("the training script, then its own arguments", "训练脚本，后面是它自己的参数")
OPT_JSON = Text("write the report as JSON; - for stdout (the script's own stdout then goes to stderr)",
                "把报告写成 JSON；- 表示 stdout（此时脚本的 stdout 改走 stderr）")
OPT_HTML = Text("write the report as one HTML page with the curves", "把报告写成一个带曲线的 HTML 页面")
OPT_SARIF = Text("write the report as SARIF 2.1.0 for code scanning", "把报告写成 SARIF 2.1.0，供代码扫描使用")
OPT_LANG = Text("language of the report (default: from the locale)", "报告的语言（默认看系统语言）")
OPT_SELECT = Text("judge these rules only: family/slug, family, or a pattern; repeat or separate by commas",
                  "只查这些规则：family/slug、family 或带通配符的名字；可重复，可用逗号分隔")
OPT_IGNORE = Text("leave these rules out", "不查这些规则")
OPT_FAIL_ON = Text("status 3 when such a finding is there and the script itself succeeded (default: never)",
                   "脚本自己成功、却有这一级的结论时，以状态 3 结束（默认 never，从不）")
OPT_MAX_STEPS = Text("stop the script cleanly after N optimizer steps", "优化器走满 N 步后让脚本正常停下")
OPT_NAME = Text("name of the run (default: the script's)", "这次运行的名字（默认取脚本名）")
OPT_RUNS_DIR = Text("where runs are recorded (default: runs)", "运行记录放在哪里（默认 runs）")
OPT_NO_RECORD = Text("keep no record", "不留运行记录")
OPT_PROVE = Text("afterwards, prove each finding that has an experiment by re-running the script (see traindx exam)",
                 "结束后重跑脚本，逐条证实有对照实验的结论（见 traindx exam）")
OPT_MIRROR = Text("also copy the curves, while they grow, to wandb, mlflow or tensorboard (into the run folder)",
                  "边训练边把曲线同步到 wandb、mlflow 或 tensorboard（写在运行目录里）")
OPT_NO_ASK = Text("do not ask for a conclusion at the end", "结束时不询问结论")
OPT_VERSION = Text("show the version", "显示版本")
OPT_HELP = Text("show this help", "显示帮助")
OPT_RULE = Text("name of the rule, as family/slug", "规则名，写作 family/slug")
OPT_RULES_JSON = Text("as JSON on stdout", "以 JSON 输出到 stdout")

BAD_USAGE = Text("{problem}\nSee: {command} --help", "{problem}\n用法见：{command} --help")
NO_SCRIPT_GIVEN = Text("traindx run needs a script or -m MODULE, for example: traindx run train.py --epochs 3",
                       "traindx run 需要一个脚本或 -m MODULE，例如：traindx run train.py --epochs 3")
NO_SUCH_SCRIPT = Text("no such script: {script} (looked in {folder}).{hint}",
                      "找不到脚本：{script}（在 {folder} 里找过）。{hint}")
A_DIRECTORY = Text("{script} is a directory without a __main__.py, not a script.{hint}",
                   "{script} 不是脚本，而是一个没有 __main__.py 的目录。{hint}")
NOT_READABLE = Text("{script} cannot be read: {problem}", "读不了 {script}：{problem}")
HINT_SCRIPTS = Text(" Python files there: {files}", "那里的 Python 文件有：{files}")
HINT_NEAR = Text(" Did you mean {near}?", "你要找的是不是 {near}？")
UNKNOWN_RULE = Text("unknown rule {pattern!r}.{near} All names: traindx rules",
                    "没有叫 {pattern!r} 的规则。{near}全部名字见：traindx rules")
JUDGED_ELSEWHERE = Text("{rule} is judged by `traindx {command}`: what it asks is not seen in a watched run",
                        "{rule} 由 `traindx {command}` 判断：旁观一次运行看不出来")
RULE_AMBIGUOUS = Text("{pattern!r} is the slug of several rules: {names}", "有好几条规则都叫 {pattern!r}：{names}")
NO_RULE_LEFT = Text("--select and --ignore together leave no rule to judge",
                    "--select 和 --ignore 合起来一条规则也不剩")
CANNOT_WRITE = Text("{option} {file} cannot be written: {problem}", "写不了 {option} {file}：{problem}")
CANNOT_PROVE = Text("No experiment could be run: {problem}.", "对照实验跑不起来：{problem}。")
ONE_PROCESS_ONLY = Text(
    "traindx {command} runs a script as one process, and was started as one of {world} rank{world:|s}. Start it without the launcher; for "
    "several ranks there is: torchrun ... -m traindx run SCRIPT",
    "traindx {command} 只按单进程运行脚本，现在却是作为 {world} 个进程（rank）之一启动的。请不要用启动器；多进程请用：torchrun ... -m "
    "traindx run SCRIPT")
NOT_PROVED_WITH_RANKS = Text("Nothing was proved: experiments re-run a program of one process, and this one has several ranks.",
                             "没有做对照实验：实验只能重跑单进程的程序，这个程序有多个进程（rank）。")
CANNOT_RECORD = Text("traindx: {folder} cannot be written ({problem}); the run goes on unrecorded",
                     "traindx：{folder} 不可写（{problem}）；照常运行，只是不留记录")
NOT_A_COUNT = Text("argument --max-steps: must be a whole number above 0, but is {value!r}",
                   "参数 --max-steps：应当是大于 0 的整数，现在是 {value!r}")

EXPLAIN_HEAD = Text("{level}, step {step} of the diagnosis tree", "{level}，诊断树第 {step} 步")
EXPLAIN_BY = Text("; judged by traindx {command}", "；由 traindx {command} 判断")
EXPLAIN_BAD = Text("A small program with this fault (the line is marked):", "有这个毛病的小程序（出错的行有标记）：")
EXPLAIN_EXPLAINS = Text("Symptoms that it explains", "它能解释的症状")
RULES_BY = Text(" (traindx {command})", "（traindx {command}）")
RULES_FOOT = Text("{count} rule{count:|s}. The page of one: traindx explain FAMILY/SLUG",
                  "共 {count} 条规则。看某一条的说明：traindx explain FAMILY/SLUG")

# -- kept with the record ---------------------------------------------------------------------------------------------

NOTES = """\
best:
failed hypothesis:
next:
"""
