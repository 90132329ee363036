"""What ``traindx env`` says, in both languages."""
from __future__ import annotations

from traindx.core.text import Text

OLD_PYTHON = Text("Python {version} is too old: traindx and current torch need 3.10 or newer.",
                  "Python {version} 太旧：traindx 和现在的 torch 都要求 3.10 或更新。")
FIX_PYTHON = Text("Make a virtual environment with a newer Python: python3.11 -m venv .venv",
                  "用更新的 Python 建一个虚拟环境：python3.11 -m venv .venv")
NO_TORCH = Text("torch cannot be imported: {error}", "导入 torch 失败：{error}")
FIX_TORCH = Text("Install it in this environment ({executable} -m pip install torch); the selector on pytorch.org "
                 "names the build for your driver.",
                 "在这个环境里安装（{executable} -m pip install torch）；pytorch.org 的选择器会告诉你该用哪个构建。")
PROOF_RAISED = Text("{device} does not work: one step of a small training failed there ({error}).",
                    "{device} 用不了：在上面跑一步小训练就出错（{error}）。")
PROOF_CRASHED = Text("{device} does not work: one step of a small training killed the process ({error}).",
                     "{device} 用不了：在上面跑一步小训练，进程就崩溃了（{error}）。")
PROOF_HUNG = Text("{device} does not work: one step of a small training did not come back ({error}).",
                  "{device} 用不了：在上面跑一步小训练，一直没有返回（{error}）。")
PROOF_WRONG = Text("{device} computes wrongly: {what}.", "{device} 算错了：{what}。")
SUMS_WRONG = Text("softmax does not sum to 1", "softmax 的和不是 1")
STEP_WRONG = Text("a step left the weights unmoved or not finite", "走一步之后权重没有动，或者不再是有限值")
FIX_PROOF = Text("Check the driver and the torch build below; after a driver update restart the machine. Train on "
                 "another device until this passes.",
                 "先核对驱动和 torch 的构建；更新驱动后要重启机器。这一步通过之前，先用别的设备训练。")
CPU_BUILD = Text("There is a GPU ({gpu}) with a working driver {driver}, but this torch ({version}) is a CPU build: "
                 "training runs on the CPU.",
                 "机器上有 GPU（{gpu}），驱动 {driver} 也正常，但装的 torch（{version}）是 CPU 版：训练只会跑在 CPU "
                 "上。")
FIX_CPU_BUILD = Text("Reinstall torch for CUDA {cuda} or older, as the selector on pytorch.org writes it (pip install "
                     "torch --index-url .../whl/cuXXX).",
                     "按 pytorch.org 的选择器重装支持 CUDA {cuda} 或更旧版本的 torch（pip install torch --index-url "
                     ".../whl/cuXXX）。")
FIX_CPU_BUILD_AMD = Text("Reinstall torch for ROCm, as the selector on pytorch.org writes it (pip install torch "
                         "--index-url .../whl/rocmX.Y).",
                         "按 pytorch.org 的选择器重装 ROCm 版的 torch（pip install torch --index-url "
                         ".../whl/rocmX.Y）。")
OTHER_BUILD = Text("The GPU is from {vendor} ({gpu}), but this torch ({version}) is built for {built}.",
                   "GPU 是 {vendor} 的（{gpu}），而装的 torch（{version}）是为 {built} 构建的。")
OLD_DRIVER = Text("The NVIDIA driver {driver} is too old for this torch, which is built for CUDA {cuda}: it needs "
                  "{minimum} or newer.",
                  "NVIDIA 驱动 {driver} 太旧，带不动为 CUDA {cuda} 构建的这个 torch：至少要 {minimum}。")
FIX_OLD_DRIVER = Text("Update the driver, or install a torch built for CUDA {served}.",
                      "更新驱动，或者改装为 CUDA {served} 构建的 torch。")
FIX_OLD_DRIVER_ONLY = Text("Update the driver.", "更新驱动。")
MINOR_DRIVER = Text("The NVIDIA driver {driver} is older than the one that CUDA {cuda} came with ({shipped}). Ordinary "
                    "kernels run; "
                    "kernels compiled on the spot (torch.compile, Triton, some extensions) may fail with “unsupported "
                    "toolchain”.",
                    "NVIDIA 驱动 {driver} 比 CUDA {cuda} 自带的（{shipped}）旧。普通算子能跑；"
                    "现场编译的算子（torch.compile、Triton、某些扩展）"
                    "可能报错「unsupported toolchain」。")
FIX_MINOR_DRIVER = Text("Update the driver if you compile kernels.", "要现场编译算子的话，就更新驱动。")
DRIVER_BROKEN = Text("The NVIDIA driver is installed but does not answer: {error}",
                     "NVIDIA 驱动装了，但没有响应：{error}")
FIX_DRIVER_BROKEN = Text("Restart the machine (after an update the loaded kernel module no longer fits the library); "
                         "in a container, start it with GPU access.",
                         "重启机器（更新之后，已加载的内核模块和库对不上）；在容器里，启动时要给它 GPU。")
NO_DEVICE = Text("torch is built for CUDA {cuda} and a driver ({driver}) is there, but torch sees no GPU: {error}",
                 "torch 为 CUDA {cuda} 构建，驱动（{driver}）也有，torch 却看不到 GPU：{error}")
NO_WORDS = Text("it gives no reason", "它没有说原因")
FIX_NO_DEVICE = Text("Look at the reason above; CUDA_VISIBLE_DEVICES must name a device, a container needs GPU access.",
                     "看上面的原因；CUDA_VISIBLE_DEVICES 要指到存在的设备，容器要有 GPU 权限。")
ERRORS = {  # CUDA runtime error numbers that have one usual cause
    "802": Text("Start the fabric manager of this NVSwitch machine: systemctl start nvidia-fabricmanager.",
                "这台机器有 NVSwitch，先启动 fabric manager：systemctl start nvidia-fabricmanager。"),
    "803": Text("The driver's library and its kernel module have different versions: restart the machine, or in a "
                "container match the host's driver.",
                "驱动的库和内核模块版本不一致：重启机器；在容器里，要和宿主机的驱动一致。"),
    "804": Text("A forward-compatibility package is in use on a GPU that does not support it: remove cuda-compat from "
                "LD_LIBRARY_PATH or update the driver.",
                "这块 GPU 不支持正在用的向前兼容包（forward compatibility）：把 cuda-compat 从 LD_LIBRARY_PATH 里去掉，或者更新驱动。"),
    "999": Text("Reload the module (rmmod nvidia_uvm; modprobe nvidia_uvm) or restart: this follows a suspended "
                "machine.",
                "重新加载模块（rmmod nvidia_uvm; modprobe nvidia_uvm）或重启：机器休眠后常见。"),
}
NO_GPU = Text("torch is built for {built}, but there is no such GPU or no driver here: training runs on the CPU.",
              "torch 是为 {built} 构建的，但这里没有这样的 GPU 或驱动：训练会跑在 CPU 上。")
FIX_NO_GPU = Text("Fine where it is meant; else install the driver.", "本来就打算用 CPU 的话没问题；否则装上驱动。")
HIDDEN = Text("{variable}={value!r} hides every GPU.", "{variable}={value!r} 把所有 GPU 都藏起来了。")
FIX_HIDDEN = Text("unset {variable}, where that is not meant.", "如果不是有意的，就 unset {variable}。")
BAD_INDEX = Text("CUDA_VISIBLE_DEVICES={value} names GPU {index}, but there are only {count} (0 to {last}): it and all "
                 "after it are not seen.",
                 "CUDA_VISIBLE_DEVICES={value} 里有 GPU {index}，但一共只有 {count} 块（0 到 {last}）："
                 "它和它之后的都看不到。")
FIX_BAD_INDEX = Text("Name devices from 0 to {last}.", "写 0 到 {last} 之间的设备。")
ARCHITECTURE = Text("The kernels of this torch ({built}) do not run on {name} (compute capability {capability}): “no "
                    "kernel image is available”.",
                    "这个 torch 的算子（{built}）在 {name}（计算能力 {capability}）上跑不了：会报错「no kernel image is available」。")
ARCHITECTURE_AMD = Text("The kernels of this torch ({built}) do not run on {name} ({capability}).",
                        "这个 torch 的算子（{built}）在 {name}（{capability}）上跑不了。")
FIX_NEWER = Text("Install a newer torch, which is built for this GPU.", "装一个更新的 torch，它带有这块 GPU 的算子。")
FIX_OLDER = Text("This GPU is older than what this torch still serves: install an older torch, or a build for an older "
                 "CUDA.",
                 "这块 GPU 已经不在这个 torch 的支持范围内：装旧一些的 torch，或者为旧版 CUDA 构建的。")
SEVERAL = Text("There are {count} GPUs and CUDA_VISIBLE_DEVICES is not set: every program takes the first one unless "
               "it says otherwise.",
               "有 {count} 块 GPU，而 CUDA_VISIBLE_DEVICES 没有设：每个程序默认都用第一块。")
FIX_SEVERAL = Text("export CUDA_VISIBLE_DEVICES=0 (or whichever is yours)",
                   "export CUDA_VISIBLE_DEVICES=0（或者分给你的那块）")
MPS = Text("On MPS some operations have no kernel; {fallback}. Speed there says nothing about CUDA.",
           "MPS 上有些算子没有实现；{fallback}。这里测的速度不能和 CUDA 比。")
MPS_ON = Text("with PYTORCH_ENABLE_MPS_FALLBACK=1 they run on the CPU, silently and slowly",
              "设了 PYTORCH_ENABLE_MPS_FALLBACK=1，它们会悄悄退回 CPU，很慢")
MPS_OFF = Text("they raise an error unless PYTORCH_ENABLE_MPS_FALLBACK=1 is set",
               "不设 PYTORCH_ENABLE_MPS_FALLBACK=1 就会报错")
FIX_MPS = Text("Compare times only with times measured on MPS.", "只拿 MPS 上测的时间互相比较。")
TRANSLATED = Text("This Python is an Intel build that runs translated on an ARM Mac: slow, and without MPS.",
                  "这个 Python 是 Intel 版，在 ARM Mac 上靠转译运行：慢，而且用不了 MPS。")
FIX_TRANSLATED = Text("Install an arm64 Python and torch.", "装 arm64 的 Python 和 torch。")
OVERRIDE = Text("HSA_OVERRIDE_GFX_VERSION={value} makes ROCm take this GPU for another one: results may be wrong.",
                "HSA_OVERRIDE_GFX_VERSION={value} 让 ROCm 把这块 GPU 当成别的型号：结果可能是错的。")
FIX_OVERRIDE = Text("unset it if the GPU is supported by now.", "如果现在已经支持这块 GPU，就去掉它。")
BLOCKING = Text("CUDA_LAUNCH_BLOCKING={value}: every kernel is waited for. Good for finding errors, slow for training.",
                "CUDA_LAUNCH_BLOCKING={value}：每个算子都要等它跑完。适合找错，训练会慢。")
FIX_BLOCKING = Text("unset CUDA_LAUNCH_BLOCKING", "unset CUDA_LAUNCH_BLOCKING")
THREADS = Text("torch uses {threads} thread{threads:|s}, but this process may use {cores} core{cores:|s}: more threads than cores slow "
               "each other down.",
               "torch 用了 {threads} 个线程，这个进程却只能用 {cores} 个核：线程比核多，会互相拖慢。")
FIX_THREADS = Text("export OMP_NUM_THREADS={cores}", "export OMP_NUM_THREADS={cores}")
SHM = Text("/dev/shm holds {size} only: DataLoader workers pass batches through it and die with a bus error when it is "
           "full.",
           "/dev/shm 只有 {size}：DataLoader 的 worker 靠它传 batch，满了就会因总线错误（bus error）崩溃。")
FIX_SHM = Text("In a container: --shm-size 8g or --ipc=host.", "在容器里：--shm-size 8g 或 --ipc=host。")
NOT_VIRTUAL = Text("Python is the system's own, not a virtual environment: other projects change its packages.",
                   "用的是系统自带的 Python，不是虚拟环境：别的项目会改动它的包。")
FIX_VIRTUAL = Text("python -m venv .venv && source .venv/bin/activate",
                   "python -m venv .venv && source .venv/bin/activate")
TWO_TORCHES = Text("The torch that is imported is {imported} ({file}), but the installed package says {installed}: two "
                   "of them lie in each other's way.",
                   "导入的 torch 是 {imported}（{file}），而安装记录说是 {installed}：两份 torch 混在一起了。")
FIX_TWO_TORCHES = Text("pip uninstall torch until it says that there is none, then install one.",
                       "反复 pip uninstall torch，直到说没有了，再装一份。")
NO_LOCK = Text("There is no lock file: the packages that a run used cannot be installed again.",
               "没有锁文件：以后无法装回这次用的这些包。")
FIX_NO_LOCK = Text("pip freeze > requirements.txt (or uv lock, poetry lock)",
                   "pip freeze > requirements.txt（或者 uv lock、poetry lock）")
DRIFT = Text("{count} installed package{count:|s} {count:is|are} not as {file} locks them: {some}.",
             "有 {count} 个包和 {file} 里锁的版本不一样：{some}。")
ONE_DRIFT = Text("One installed package is not as {file} locks it: {some}.",
                 "有 1 个包和 {file} 里锁的版本不一样：{some}。")
DRIFT_ITEM = Text("{package} {installed} (locked: {locked})", "{package} {installed}（锁的是 {locked}）")
FIX_DRIFT = Text("Install from the lock ({command}), or lock anew what you mean to use.",
                 "按锁文件重装（{command}），或者把现在要用的版本重新锁定。")
MISSING = Text("{count} package{count:|s} of {file} {count:is|are} not installed: {some}.", "{file} 里有 {count} 个包没有安装：{some}。")
LOCK_BROKEN = Text("The lock file {file} cannot be read: {error}", "锁文件 {file} 读不了：{error}")
FIX_LOCK_BROKEN = Text("Write it anew.", "重新生成一份。")
XPU_MISSING = Text("torch is built for Intel GPUs (XPU {xpu}), but sees none.",
                   "torch 是为 Intel GPU（XPU {xpu}）构建的，但一块也看不到。")

# -- the report ---------------------------------------------------------------------------------------------------------------

ABOUT = Text("is this machine, and its lock file, sound?", "这台机器和它的锁文件靠得住吗？")
DETAILS = Text("Looks at Python, torch and its build, the driver, every device (one small training step on each, in a "
               "child process) and the lock file. "
               "Status 1 when something is broken.",
               "检查 Python、torch 及其构建、驱动和锁文件，并在每个设备上各跑一步小训练（在子进程里）。有问题时以状态 1 结束。")
OPT_JSON = Text("write the report as JSON; - for stdout", "把报告写成 JSON；- 表示 stdout")
OPT_SNAPSHOT = Text("write the facts themselves as JSON, as a run record keeps them",
                    "把查到的事实写成 JSON，和运行记录里存的一样")
OPT_LOCK = Text("the lock file to compare with (default: the nearest)", "要对照的锁文件（默认用最近的一个）")
NO_SUCH_LOCK = Text("--lock {file}: no such file", "--lock {file}：没有这个文件")
TITLE = Text("environment", "环境")
SOUND = Text("Sound: every device trains, and nothing has drifted.", "正常：每个设备都能训练，没有版本漂移。")
SOUND_BUT = Text("Nothing is broken.", "没有查出损坏的地方。")
BROKEN = Text("Broken: {count}", "有 {count} 处问题")
LEVELS = {"broken": Text("broken", "损坏"), "warning": Text("warning", "警告"), "note": Text("note", "提示")}
FIX = Text("Fix", "怎么改")
PYTHON = Text("Python", "Python")
PLATFORM = Text("Platform", "平台")
TORCH = Text("torch", "torch")
DRIVER = Text("driver", "驱动")
DEVICES = Text("Devices", "设备")
LOCK = Text("Lock file", "锁文件")
WORKS = Text("softmax sums to 1; forward, backward and step work (measured)",
             "softmax 之和为 1；前向、反向传播、更新都正常（实测）")
FAILS = Text("does not work", "用不了")
NOT_TRIED = Text("not tried", "没有试")
THREADS_OF = Text("{cores} core{cores:|s}, {threads} thread{threads:|s}", "{cores} 核，{threads} 线程")
LOCK_LINE = Text("{file}: {checked} compared, {drift} differ, {missing} missing, {unpinned} without a version",
                 "{file}：对照了 {checked} 个包，{drift} 个版本不同，{missing} 个没装，{unpinned} 个没写版本")
NONE = Text("none", "无")
