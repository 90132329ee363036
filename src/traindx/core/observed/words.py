"""What the kinds of observation are called where a reader is told that none was seen."""
from __future__ import annotations

import re

from traindx.core.text import Text, same

_WORDS = {
    "BackwardCall": Text("a backward pass", "反向传播"),
    "BatchMixing": Text("a model replayed on parts of a batch", "拿一部分 batch 重放模型"),
    "BatchNormSeen": Text("a BatchNorm in training", "训练中的 BatchNorm"),
    "ClipUse": Text("gradient clipping", "梯度裁剪"),
    "Compiled": Text("a compiled model", "编译过的模型"),
    "DepthProfile": Text("gradients by depth", "各层的梯度"),
    "Drift": Text("weights followed over many steps", "对权重的长期跟踪"),
    "DropInEval": Text("functional dropout in eval mode", "推理模式下的函数式 dropout"),
    "Ended": Text("the end of the program", "程序的结束"),
    "EqualUnits": Text("weights that began alike", "初值完全相同的权重"),
    "Evaluation": Text("an evaluation pass", "评估过程"),
    "EvaluationDraws": Text("a forward without gradients between steps", "两步之间不带梯度的前向"),
    "Fed": Text("rows that a model was fed with", "喂给模型的样本"),
    "FileRead": Text("a file read by torch.load", "用 torch.load 读的文件"),
    "FileSaved": Text("a file written by torch.save", "用 torch.save 写的文件"),
    "FiniteSummary": Text("a check for NaN and infinity", "对 NaN 和无穷的检查"),
    "FirstWeights": Text("the input of the first layer", "第一层的输入"),
    "FlagMissed": Text("requires_grad set where it does nothing", "设错地方的 requires_grad"),
    "ForwardPass": Text("a forward of a module", "模块的前向"),
    "ForwardSeen": Text("a forward of a module", "模块的前向"),
    "FrozenNorms": Text("a frozen BatchNorm", "冻结的 BatchNorm"),
    "GradientUse": Text("an optimizer step", "优化器更新"),
    "GraphReach": Text("a backward with retain_graph", "带 retain_graph 的反向传播"),
    "HalfGradients": Text("float16 gradients", "float16 的梯度"),
    "HalfPrecision": Text("a float16 autocast", "float16 的 autocast"),
    "Labels": Text("labels that came with training rows", "训练样本的标签"),
    "LeadSizes": Text("batches of different sizes", "大小不同的 batch"),
    "Leaves": Text("trainable tensors", "可训练的张量"),
    "LoaderMade": Text("a DataLoader", "DataLoader"),
    "LoaderTime": Text("a DataLoader with several batches", "走过多个 batch 的 DataLoader"),
    "LossCall": Text("a call of a torch loss function", "对 torch 损失函数的调用"),
    "ModelSeen": Text("a module that was called", "有调用的模块"),
    "ModuleBuilt": Text("a module built inside a forward", "在 forward 里新建的模块"),
    "ModulePlaces": Text("a sequence or attention module", "序列或注意力模块"),
    "NonFiniteFed": Text("NaN or infinity in the data", "数据里的 NaN 或无穷"),
    "Nonfinite": Text("NaN or infinity", "NaN 或无穷"),
    "NormGap": Text("the statistics of a BatchNorm", "BatchNorm 的统计量"),
    "OpTrace": Text("tensor operations of a training step", "训练步里的张量运算"),
    "OptimizerMade": Text("an optimizer", "优化器"),
    "PassUse": Text("a backward pass", "反向传播"),
    "PinnedUnits": Text("a sigmoid or tanh layer", "sigmoid 或 tanh 层"),
    "RateSeen": Text("a learning rate", "学习率"),
    "Reads": Text("values read out of tensors", "从张量里读出的数"),
    "Rebuilt": Text("an optimizer built again", "重新建过的优化器"),
    "Reseeded": Text("a random generator seeded again and again", "反复设置的随机种子"),
    "ResultsAlive": Text("results kept over many steps", "保留了很多步的结果"),
    "ScalerFitted": Text("a fitted scikit-learn scaler", "拟合过的 scikit-learn 缩放器"),
    "ScalerUse": Text("a GradScaler", "GradScaler"),
    "SchedulerMade": Text("a learning-rate scheduler", "学习率调度器"),
    "SecondName": Text("weights kept under a second name", "用另一个名字留存的权重"),
    "SeedsAtStart": Text("the building of a model", "模型的构建"),
    "StateLoaded": Text("a checkpoint that was loaded", "载入的检查点"),
    "StuckWeights": Text("half-precision weights in an optimizer", "优化器里的半精度权重"),
    "TrainedInMode": Text("a module that was trained", "训练过的模块"),
    "UnitsSeen": Text("a ReLU layer", "ReLU 层"),
    "UpdateSeen": Text("a parameter update that could be measured", "能测量的参数更新"),
    "WeightsLoaded": Text("a call of load_state_dict", "对 load_state_dict 的调用"),
    "Window": Text("a training step", "训练步"),
    "Written": Text("a parameter written to by hand", "手工改写的参数"),
}


def words_for(kind: type) -> Text:
    """The name of a kind in words; its class name, taken apart, where it has none here."""
    return _WORDS.get(kind.__name__) or same(re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind.__name__).lower())
