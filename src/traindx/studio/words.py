"""The words of the page, in both languages, by name."""
from __future__ import annotations

from traindx.core.text import Text

PAGE: dict[str, Text] = {
    # -- the head
    "tree": Text("Tree", "诊断树"), "labs": Text("Labs", "动手实验"), "rules": Text("Rules", "规则"), "runs": Text("Runs", "运行记录"),
    "views": Text("Views", "页面"), "skip": Text("Skip to the content", "跳到正文"),
    "dark": Text("Dark", "深色"), "light": Text("Light", "浅色"),
    "connected": Text("Connected again.", "已重新连上。"),
    "disconnected": Text("The studio does not answer. Trying to reconnect; start it again with: traindx studio",
                         "studio 没有回应，正在重连。要重新启动，请运行：traindx studio"),
    "loading": Text("One moment ...", "请稍等……"),
    # -- labs
    "labs-lead": Text("Each lab computes on the spot, on this machine. Move a knob, break it, and see what the curve then looks like.",
                      "每个实验都在这台机器上当场计算。动一动旋钮，把它弄坏，看看曲线会变成什么样。"),
    "no-lab": Text("There is no lab named “{name}”.", "没有名为「{name}」的实验。"),
    "all-labs": Text("All labs", "全部实验"), "beside": Text("Nearby pages", "相邻页面"), "knobs": Text("Knobs", "旋钮"),
    "reset": Text("Reset", "复位"), "another-seed": Text("Another seed", "换一个种子"),
    "see": Text("What you see", "你看到了什么"), "break": Text("Break it like this", "这样把它弄坏"),
    "then": Text("What you should now see", "现在应该看到"), "lab-rules": Text("Rules that it illustrates", "对应的规则"),
    "sources": Text("Sources", "出处"), "table": Text("Numbers", "数值"),
    # -- figures
    "behind": Text("In words and numbers", "文字说明和数值"),
    "described": Text("{title}. Across: {x}; up: {y}{log}.", "{title}。横轴：{x}；纵轴：{y}{log}。"),
    "logarithmic": Text(" (logarithmic)", "（对数）"),
    "curve-empty": Text("{name}: no finite value.", "{name}：没有有限的值。"),
    "curve-point": Text("{name}: {y} at {x}.", "{name}：在 {x} 处为 {y}。"),
    "curve-said": Text("{name}: from {first} at {from} to {last} at {to}; lowest {low} at {low_at}, highest {high} at {high_at}.",
                       "{name}：从 {from} 处的 {first} 到 {to} 处的 {last}；最低 {low}（{low_at} 处），最高 {high}（{high_at} 处）。"),
    "all-values": Text("All values", "全部数值"), "every-nth": Text("Every {n}th value", "每 {n} 个取一个"),
    # -- rules
    "rules-lead": Text("{count} causes that traindx knows, each with a small program that has it and one that has not.",
                       "traindx 认识的 {count} 种病因，每种都有一个带病的小程序和一个健康的小程序。"),
    "find-rule": Text("Find a rule", "查找规则"), "no-rule": Text("There is no rule named “{name}”.", "没有名为「{name}」的规则。"),
    "all-rules": Text("All rules", "全部规则"), "at-step": Text("judged at step {step} of the exam", "traindx exam 在第 {step} 步检查"),
    "level-error": Text("error", "错误"), "level-warning": Text("warning", "警告"), "level-note": Text("note", "提示"),
    "in-tree": Text("In the tree", "在诊断树上的位置"), "not-in-tree": Text("It hangs nowhere in the tree: it is a symptom itself.", "它不挂在树上：它本身就是症状。"),
    "in-labs": Text("In the labs", "在哪些实验里"), "commands": Text("On your own script", "用在你自己的脚本上"),
    "bad-program": Text("A program that has it", "带病的程序"), "good-program": Text("A program that has not", "健康的程序"),
    "family-shape": Text("Shapes", "形状"), "family-loss": Text("Loss and output", "损失与输出"), "family-optim": Text("The training loop", "训练循环"),
    "family-mode": Text("Modes", "模式"), "family-data": Text("Data and labels", "数据与标签"), "family-init": Text("Initialisation", "初始化"),
    "family-numeric": Text("Numerics", "数值"), "family-curve": Text("Curves", "曲线"), "family-memory": Text("Memory", "内存与显存"),
    "family-record": Text("Record", "记录"), "family-repro": Text("Reproducibility", "可复现"), "family-speed": Text("Speed", "速度"),
    "family-rank": Text("Several processes", "多进程"),
    "loaded": Text("Loaded run:", "已载入："), "unload": Text("Unload the run", "不再载入这次运行"),
}
