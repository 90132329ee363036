"""The lines that the time goes to, each as a finding: where, why, what to write instead."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from traindx.core.amounts import duration, percent
from traindx.core.findings import Evidence, Finding, Judged, Level
from traindx.core.observed import Site
from traindx.core.speed import Bottleneck, Spent
from traindx.core.text import EMPTY, Text, same
from traindx.speed.reading import LOGGERS, growth_of, lines_of, site_of
from traindx.speed.source import carried_at
from traindx.speed.verdict import Measured, waits

Json = Any
WORTH = 0.05  # of a step, from which a line is worth a warning
SEEN = 0.02  # from which it is worth a note
WORTH_TELLING = 0.1  # of fetching, from which a line is named
HANDING_OVER = 1e-3  # seconds, of a batch from a worker to the training (rule of thumb)
EACH_STEP = 0.9  # calls a step, from which something happens in every step

SLOW_FETCH = Text("Fetching waits for its data", "取数据太慢")
FETCH = Text("This line is {of} of fetching a batch, and fetching {share} of a step{calls}.",
             "取一个 batch 的时间有 {of} 花在这一行；取数据占每步的 {share}{calls}。")
CALLING = Text("; it is in {name}", "；具体在 {name} 里")
FIX_ITEM = Text("Do it once and keep the result (before training, or in a cache), or load ahead with num_workers.",
                "只做一次并存下结果（训练前做好，或者缓存），或者用 num_workers 提前加载。")
FIX_COLLATE = Text("Build the batch with whole-tensor operations (torch.stack, numpy), or let workers do it (num_workers).",
                   "用整块张量的操作拼 batch（torch.stack、numpy），或者交给 worker（num_workers）。")
FIX_BY_HAND = Text("Do it once and keep the result (before the loop), build the batch with whole-tensor operations, or put it into a Dataset "
                   "and let a DataLoader's workers make batches ahead.",
                   "只做一次并存下结果（放在循环之前），用整块张量的操作拼 batch，或者写成 Dataset，让 DataLoader 的 worker 提前准备好 batch。")
FIX_LITTLE = Text("Do it once and keep the result (before the loop), or build the batch with whole-tensor operations.",
                  "只做一次并存下结果（放在循环之前），或者用整块张量的操作拼 batch。")
IN_LOOP = Text("A DataLoader is built in the loop", "DataLoader 在循环里构造")
MADE = Text("{count} loader{count:|s} {count:was|were} begun on this line in {steps} step{steps:|s}; fetching, with that, is {share} of a step.",
            "这一行在 {steps} 步里启动了 {count} 次 loader；连同它，取数据占每步的 {share}。")
FIX_LOOP = Text("Build it once before the loop and iterate over it.", "在循环之前构造一次，然后遍历它。")
READ = Text("A value is read out of a tensor in every step", "每一步都从张量里读数值")
READS = Text("This line reads {count} value{count:|s} a step: {each} a step, {share} of it{gpu}.",
             "这一行每步读 {count} 个数值：每步 {each}，占 {share}{gpu}。")
ON_GPU = Text(". On this CPU nothing is waited for; on a GPU each read waits until all queued work is done",
              "。在这台 CPU 上不用等；在 GPU 上，每次读取都要等排队的计算全部做完")
FIX_READ = Text("Keep tensors (add up loss.detach()) and read every so many steps.", "保留张量（累加 loss.detach()），隔若干步再读。")
LOGS = Text("Logging takes a part of every step", "写日志占了每步的一部分")
LOGGED = Text("This line logs {count} time{count:|s} a step: {each}, {share} of a step.",
              "这一行每步写 {count} 次日志：{each}，占每步的 {share}。")
LOGGED_BY = Text("This line logs through {name}: {share} of a step.", "这一行通过 {name} 写日志：占每步的 {share}。")
FIX_LOG = Text("Log every so many steps, images rarely, and write from another thread or process.",
               "隔若干步再写，图片少写，写文件交给别的线程或进程。")
OPS = Text("Many small operations", "大量细碎的算子")
MANY = Text("This line runs {count} operation{count:|s} a step, of {all} in all; on average an operation takes {each}.",
            "这一行每步执行 {count} 个算子（共 {all} 个）；平均每个算子 {each}。")
FIX_OPS = Text("Do the loop's work in one operation on a larger tensor (stack, matmul, bmm, einsum), take a larger batch, or try torch.compile.",
               "把循环里的计算合成一次大张量操作（stack、matmul、bmm、einsum），加大 batch，或者试试 torch.compile。")
PYTHON = Text("Python between the operations", "算子之间的 Python")
PYTHON_LINE = Text("This line is {share} of a step, outside of any forward, backward or update{calls}.",
                   "这一行占每步的 {share}，不在前向、反向或参数更新里{calls}。")
FIX_PYTHON = Text("Take it out of the loop, or do it on whole tensors.", "把它移出循环，或者改成整块张量的操作。")
GROWS = Text("The graph grows with every step", "计算图一步步变大")
GROWING = Text("The backward went through {first} node{first:|s} of the graph at first, and through {last} later: each step takes longer "
               "than the one before{variable}.",
               "反向传播起初经过 {first} 个节点，后来是 {last} 个：一步比一步慢{variable}。")
VARIABLE = Text(". The variable {name} carries it on", "。是变量 {name} 把它带了下去")
FIX_GRAPH = Text("Detach what is carried over (h = h.detach(), total += loss.item()) and drop retain_graph=True.",
                 "把要传下去的张量断开（h = h.detach()，total += loss.item()），并去掉 retain_graph=True。")
SHARE = Text("share of a step", "占每步的比例")
OF_FETCH = Text("share of fetching", "占取数据的比例")
SECONDS = Text("time a step", "每步的时间")
COUNT = Text("times a step", "每步次数")
NODES_NOW = Text("nodes in the graph of the backward", "反向传播的计算图节点数")
STEADY = Text("the same at every step", "每一步都一样")


def findings_of(profile: Json, seen: Measured, verdict: Bottleneck, fetching: Json = None) -> list[Judged]:
    """Warnings first, by their share of the step. ``fetching``: a profile with the fetching in the program's own process, where that of
    ``profile`` is done by workers."""
    grows = list(_graph(profile))
    found = [*grows, *_loops(profile, seen), *_fetching(fetching or profile, seen, verdict), *_reads(profile, seen),
             *_logs(profile, seen), *([] if grows else _operations(profile, seen, verdict)), *_python(profile, seen)]
    return sorted(found, key=lambda judged: judged.level != "warning")


def _judged(rule: str, title: Text, level: Level, finding: Finding) -> Judged:
    return Judged(rule, level, title, finding)


def _calls(spent: Spent) -> Text:
    return CALLING.fill(name=spent.calls) if spent.calls else EMPTY


def _fetching(profile: Json, seen: Measured, verdict: Bottleneck) -> Iterator[Judged]:
    share = seen.share("input")
    made = {(site.file, site.line) for site, _ in _restarted(profile)}  # that is told as such
    lines = [line for line in lines_of(profile, ("input",)) if (line.site.file, line.site.line) not in made]
    if not (waits(seen) or verdict == "input-bound") or not lines or lines[0].share < WORTH_TELLING:
        return
    top, also = lines[0], [line.site for line in lines[1:3] if line.share > 0.1]
    collates = "collate" in top.site.function.lower() or top.site.function == ((profile["loader"].get("collate") or {}).get("function"))
    evidence = (Evidence(OF_FETCH, round(top.share, 3)), Evidence(SHARE, round(share, 3)), Evidence(SECONDS, seen.seconds["input"], unit="s"))
    by_hand = FIX_LITTLE if seen.seconds["input"] < HANDING_OVER else FIX_BY_HAND
    fix = by_hand if not profile["loader"]["batches"] else FIX_COLLATE if collates else FIX_ITEM
    yield _judged("speed/input-bound", SLOW_FETCH, "warning" if verdict == "input-bound" else "note", Finding(
        FETCH.fill(of=percent(top.share), share=percent(share), calls=_calls(top)), fix, top.site, tuple(also),
        evidence))


def _loops(profile: Json, seen: Measured) -> Iterator[Judged]:
    share = seen.share("input")
    for site, starts in _restarted(profile):
        yield _judged("speed/loader-in-loop", IN_LOOP, "warning" if share > WORTH else "note", Finding(
            MADE.fill(count=starts, steps=profile["steps"], share=percent(share)), FIX_LOOP, site,
            evidence=(Evidence(COUNT, round(starts / profile["steps"], 2)), Evidence(SHARE, round(share, 3)))))


def _restarted(profile: Json) -> list[tuple[Site, int]]:
    """Lines whose loader is begun for every step or two, and how often it was."""
    found = [(site_of(row["site"]), row["starts"]) for row in profile["loader"]["begun"]]
    return [(site, starts) for site, starts in found if site is not None and site.line and starts >= max(4, 0.5 * profile["steps"])]


def _rows(profile: Json, phase: str) -> Iterator[tuple[Site, float, float]]:
    """Line, calls a step, seconds a step; the most seconds first."""
    for row in sorted(profile["calls"].get(phase, ()), key=lambda row: -row["seconds"]):
        site = site_of(row["site"])
        if site is not None:
            yield site, row["calls"] / profile["steps"], row["seconds"] / profile["steps"]


def _reads(profile: Json, seen: Measured) -> Iterator[Judged]:
    for site, count, seconds in _rows(profile, "sync"):
        if count < EACH_STEP:
            continue
        share = seconds / seen.step
        yield _judged("speed/sync-every-step", READ, "warning" if share > WORTH else "note", Finding(
            READS.fill(count=_whole(count), each=duration(seconds), share=percent(share), gpu=ON_GPU if seen.device == "cpu" else EMPTY),
            FIX_READ, site, evidence=(Evidence(COUNT, round(count, 1)), Evidence(SECONDS, seconds, unit="s"), Evidence(SHARE, round(share, 4)))))


def _logs(profile: Json, seen: Measured) -> Iterator[Judged]:
    told = set()
    for site, count, seconds in _rows(profile, "logging"):
        share = seconds / seen.step
        if share > SEEN:
            told.add(site)
            yield _judged("speed/logging-every-step", LOGS, "warning" if share > WORTH else "note", Finding(
                LOGGED.fill(count=_whole(count), each=duration(seconds), share=percent(share)), FIX_LOG, site,
                evidence=(Evidence(COUNT, round(count, 2)), Evidence(SECONDS, seconds, unit="s"), Evidence(SHARE, round(share, 3)))))
    for line in lines_of(profile):
        if line.phase == "host" and line.share > WORTH and line.calls.partition(".")[0] in LOGGERS and line.site not in told:
            yield _judged("speed/logging-every-step", LOGS, "warning", Finding(
                LOGGED_BY.fill(name=line.calls, share=percent(line.share)), FIX_LOG, line.site,
                evidence=(Evidence(SHARE, round(line.share, 3)),)))


def _operations(profile: Json, seen: Measured, verdict: Bottleneck) -> Iterator[Judged]:
    lines = (profile.get("operations") or {}).get("lines") or []
    each = seen.seconds_an_op
    working = seen.share("compute") + seen.share("optimizer")
    if verdict != "overhead-bound" or not lines or each is None or not seen.ops or working < 0.4:
        return
    top, *others = sorted(lines, key=lambda row: -row["count"])
    also = tuple(site for row in others[:2] if row["count"] > 0.1 * seen.ops and (site := site_of(row["site"])))
    yield _judged("speed/many-small-operations", OPS, "warning", Finding(
        MANY.fill(count=round(top["count"]), all=round(seen.ops), each=duration(each)), FIX_OPS, site_of(top["site"]), also,
        (Evidence(Text("operations a step, by this line", "这一行每步的算子数"), round(top["count"])),
         Evidence(Text("time an operation takes on average", "平均每个算子的时间"), each, unit="s"))))


def _python(profile: Json, seen: Measured) -> Iterator[Judged]:
    """Only where the host's share, without operations and logging, is worth it."""
    share = seen.share("host")
    host = sum(line.share for line in lines_of(profile) if line.phase == "host") or 1.0
    for line in lines_of(profile):
        if line.phase != "host" or line.calls.partition(".")[0] in LOGGERS or share < 2 * WORTH:
            continue
        own = line.share / host * share
        if own > 2 * WORTH:
            yield _judged("speed/python-between-operations", PYTHON, "warning" if own > 0.2 else "note", Finding(
                PYTHON_LINE.fill(share=percent(own), calls=_calls(line)), FIX_PYTHON, line.site, evidence=(Evidence(SHARE, round(own, 3)),)))
        return


def _graph(profile: Json) -> Iterator[Judged]:
    nodes = growth_of(profile)
    if nodes is None:
        return
    grown = profile.get("grown") or {}
    backward = site_of(profile["backward"]["site"])
    carried = carried_at(grown["file"], grown["name"], _shown(grown["file"], backward)) if grown.get("name") else None
    where = carried or backward
    yield _judged("memory/graph-kept", GROWS, "warning", Finding(
        GROWING.fill(first=nodes[0], last=nodes[-1],
                     variable=VARIABLE.fill(name=grown["name"]) if grown.get("name") else EMPTY),
        FIX_GRAPH, where, (backward,) if backward and backward != where else (),
        (Evidence(NODES_NOW, same(f"{nodes[0]} -> {nodes[-1]}"), STEADY),)))


def _shown(file: str, like: Site | None) -> str:
    """The file as the sites of this run show it."""
    return like.file if like is not None and file.endswith(like.file) else file.rpartition("/")[2]


def _whole(count: float) -> str:
    return f"{count:.0f}" if count >= 1 else f"{count:.1f}"
