"""A ball in a bowl: gradient descent on ½ h x², where each step multiplies x by 1 - lr h."""
from __future__ import annotations

from traindx.core.text import Text, number, same
from traindx.figures import Axis, Chart, Mark, Role, Series
from traindx.labs.lab import Lab, Level, Outcome, Slider, State, Table, grid

STEPS, START = 30, 1.0
RATES = grid(0.01, 3, 41, log=True)
FOUR = (0.02, 0.5, 1.9, 2.1)  # lr h of the four curves: too small, well, large, too large


def descend(rate: float, curvature: float, steps: int = STEPS, start: float = START) -> list[float]:
    """The positions x_0 .. x_steps of gradient descent on ½ h x² (gradient h x)."""
    positions = [start]
    for _ in range(steps):
        positions.append(positions[-1] - rate * curvature * positions[-1])
    return positions


def shape_of(factor: float) -> tuple[Text, Level]:
    """The name of what a signed multiplier 1 - lr h does, and how bad it is."""
    size = abs(factor)
    if abs(size - 1) < 1e-9:
        return Text("it neither falls nor grows", "既不降也不升"), "warning"
    if size > 1:
        return Text("explodes", "爆炸"), "error"
    if factor < 0:
        return Text("oscillates, and still falls", "震荡，但还在下降"), "warning"
    if size > 0.95:
        return Text("flat: it hardly moves", "不降：几乎不动"), "warning"
    return Text("falls smoothly", "平稳下降"), "fine"


def compute(state: State) -> Outcome:
    rate, curvature = float(state["rate"]), float(state["curvature"])
    factor = 1 - rate * curvature
    name, level = shape_of(factor)
    verdict = Text("Each step multiplies the distance by |1 − {lr} × {h}| = {size} (formula): {name}. The limit is 2 / h = {limit}.",
                   "每走一步，距离乘以 |1 − {lr} × {h}| = {size}（公式）：{name}。学习率的上限是 2 / h = {limit}。")
    verdict = verdict.fill(lr=number(rate), h=number(curvature), size=number(abs(factor)), name=name, limit=number(2 / curvature))
    return Outcome(verdict, level, (_bowl(rate, curvature), _yours(rate, curvature), _four(curvature)), (_table(rate, curvature),))


def _bowl(rate: float, curvature: float) -> Chart:
    wide = 1.6
    xs = grid(-wide, wide, 65)
    walk = [x for x in descend(rate, curvature, 12) if abs(x) <= wide]
    return Chart(Text("The bowl, and the first 12 steps", "碗，和最初 12 步"), Axis(Text("parameter x", "参数 x"), range=(-wide, wide)),
                 Axis(Text("loss ½ h x²", "损失 ½ h x²")),
                 (Series(Text("the bowl", "碗"), xs, [curvature * x * x / 2 for x in xs], "muted"),
                  Series(Text("the ball", "小球"), walk, [curvature * x * x / 2 for x in walk], "main", "line+points")))


def _yours(rate: float, curvature: float) -> Chart:
    losses = [max(curvature * x * x / 2, 1e-30) for x in descend(rate, curvature)]
    return Chart(Text("Loss at each step", "每一步的损失"), Axis(Text("step", "步")), Axis(Text("loss", "损失"), log=True),
                 (Series(Text("your step size", "你的步子"), range(STEPS + 1), losses),),
                 (Mark("y", curvature * START**2 / 2, Text("start", "起点")),))


def _four(curvature: float) -> Chart:
    names = (Text("lr·h = 0.02: too small", "lr·h = 0.02：太小"), Text("0.5: well", "0.5：合适"),
             Text("1.9: large", "1.9：偏大"), Text("2.1: too large", "2.1：过大"))
    roles: tuple[Role, ...] = ("muted", "good", "other", "bad")
    curves = tuple(Series(name, range(STEPS + 1), descend(product / curvature, curvature), role)
                   for name, product, role in zip(names, FOUR, roles))
    return Chart(Text("One formula, four step sizes", "同一条式子，四种步子"), Axis(Text("step", "步")),
                 Axis(Text("parameter x", "参数 x"), range=(-4, 4)), curves)


def _table(rate: float, curvature: float) -> Table:
    positions = descend(rate, curvature, 5)
    rows = tuple((str(step), number(x), number(curvature * x * x / 2)) for step, x in enumerate(positions))
    return Table((Text("step", "步"), same("x"), Text("loss", "损失")), rows)


LAB = Lab(
    13, "bowl", Text("The bowl: one multiplier, four shapes", "一只碗：一个乘数，四种形状"),
    about=Text("Near a minimum every loss is a bowl. A step of gradient descent multiplies the distance to the bottom by "
               "1 − lr × curvature, and by nothing else. Flat, falling, oscillating and exploding are four values of this one number.",
               "在极小值附近，任何损失都像一只碗。梯度下降每走一步，离碗底的距离就乘以 1 − lr × 曲率，除此之外什么也没有发生。"
               "不降、下降、震荡、爆炸，是这一个数的四种取值。"),
    see=Text("The ball rolls down in a few steps; on the logarithmic axis the loss is a straight line.",
             "小球几步就滚到碗底；纵轴取对数，损失是一条直线。"),
    break_it=Text("Raise the learning rate until lr × h passes 1, then 2. Or leave it, and make the bowl steeper.",
                  "把学习率往上拖，让 lr × h 先过 1，再过 2。也可以不动学习率，只把碗变陡。"),
    then=Text("Past 1 the ball jumps from side to side and still comes down; past 2 every jump is wider than the last one.",
              "过了 1，小球左右横跳，但还在往下；过了 2，一跳比一跳远。"),
    rules=("optim/lr-too-high", "optim/lr-too-low", "curve/oscillating", "curve/diverging"),
    knobs=(Slider("rate", Text("Learning rate", "学习率"), RATES, RATES[24]),
           Slider("curvature", Text("Curvature h", "曲率 h"), (0.25, 0.5, 1.0, 2.0, 4.0), 1.0)),
    compute=compute)
