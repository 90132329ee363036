"""What the kinds of observation are called where a reader is told that none was seen."""
from __future__ import annotations

import re

from traindx.core.text import Text, same

_WORDS = {
    "BackwardCall": Text("a backward pass", "反向传播"),
    "Compiled": Text("a compiled model", "编译过的模型"),
    "FileRead": Text("a file read by torch.load", "用 torch.load 读的文件"),
    "FileSaved": Text("a file written by torch.save", "用 torch.save 写的文件"),
    "ForwardSeen": Text("a forward of a module", "模块的前向"),
    "LoaderMade": Text("a DataLoader", "DataLoader"),
    "LossCall": Text("a call of a torch loss function", "对 torch 损失函数的调用"),
    "ModelSeen": Text("a module that was called", "有调用的模块"),
    "OpTrace": Text("tensor operations of a training step", "训练步里的张量运算"),
    "OptimizerMade": Text("an optimizer", "优化器"),
    "SchedulerMade": Text("a learning-rate scheduler", "学习率调度器"),
    "WeightsLoaded": Text("a call of load_state_dict", "对 load_state_dict 的调用"),
    "Window": Text("a training step", "训练步"),
}


def words_for(kind: type) -> Text:
    """The name of a kind in words; its class name, taken apart, where it has none here."""
    return _WORDS.get(kind.__name__) or same(re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind.__name__).lower())
