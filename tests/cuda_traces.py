"""Traces of training steps on a GPU in the form in which Kineto writes them, made by a model of a host and one stream; times are whole
microseconds. Not recorded on a GPU: names and fields are those of torch.profiler's Chrome traces (``cat``, ``pid``, ``tid``, ``correlation``).
"""
from __future__ import annotations

LAUNCH, LATENCY = 4, 3  # of a call that starts a kernel, and from its end to the kernel's begin
HOST, MAIN, BACKWARD, STREAM = 4711, 4711, 4790, 7


class Recording:
    """``now``: of the host; ``free``: when the stream is done with all that is queued."""

    def __init__(self) -> None:
        self.events: list[dict] = [
            {"ph": "M", "name": "process_name", "ts": 0, "pid": HOST, "tid": 0, "args": {"name": "python"}},
            {"ph": "X", "cat": "overhead", "name": "Activity Buffer Request", "pid": -1, "tid": 0, "ts": 1, "dur": 2000},
            {"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans", "tid": "PyTorch Profiler", "ts": 0, "dur": 10**6}]
        self.now, self.free, self.tid, self.correlation = 1000, 1000, MAIN, 0

    def host(self, kind, name, begin, **args):
        self.events.append({"ph": "X", "cat": kind, "name": name, "pid": HOST, "tid": self.tid, "ts": begin, "dur": self.now - begin,
                            "args": {"External id": len(self.events), **args}})

    def queued(self, kind, name, took, **args):
        """On the stream, behind all that is queued; the call of the runtime that queues it ends now."""
        begin = max(self.free, self.now + LATENCY)
        self.free = begin + took
        self.events.append({"ph": "X", "cat": kind, "name": name, "pid": 0, "tid": STREAM, "ts": begin, "dur": took,
                            "args": {"device": 0, "context": 1, "stream": STREAM, "correlation": self.correlation, **args}})
        self.events.append({"ph": "s", "id": self.correlation, "pid": HOST, "tid": self.tid, "ts": self.now, "cat": "ac2g", "name": "ac2g"})

    def call(self, name, took):
        self.correlation += 1
        begin, self.now = self.now, self.now + took
        self.host("cuda_runtime", name, begin, cbid=211, correlation=self.correlation)

    def python(self, took):
        self.now += took

    def op(self, name, before=6, kernel=0):
        """An operator that is busy for ``before`` on the host and starts a kernel."""
        begin = self.now
        self.now += before
        if kernel:
            self.call("cudaLaunchKernel", LAUNCH)
            self.queued("kernel", "void at::native::vectorized_elementwise_kernel<4>", kernel, grid=[64, 1, 1], block=[128, 1, 1])
        self.now += 1
        self.host("cpu_op", name, begin)

    def synchronize(self, name="cudaStreamSynchronize"):
        self.call(name, max(self.free - self.now, 0) + 5)

    def copy_to_device(self, took, pinned=False):
        begins = [self.now, self.now + 1, self.now + 2]
        self.now += 3
        self.call("cudaMemcpyAsync", 5 if pinned else took)
        self.queued("gpu_memcpy", f"Memcpy HtoD ({'Pinned' if pinned else 'Pageable'} -> Device)", took, bytes=10**6)
        if not pinned:
            self.synchronize()
        for name, begin in zip(("aten::copy_", "aten::_to_copy", "aten::to"), reversed(begins)):
            self.now += 1
            self.host("cpu_op", name, begin)

    def item(self):
        begins = [self.now, self.now + 1]
        self.now += 2
        self.call("cudaMemcpyAsync", 6)
        self.queued("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", 2, bytes=4)
        self.synchronize()
        for name, begin in zip(("aten::_local_scalar_dense", "aten::item"), reversed(begins)):
            self.now += 1
            self.host("cpu_op", name, begin)

    def annotated(self, name, work):
        begin = self.now
        work()
        self.host("user_annotation", name, begin)
        self.events.append({"ph": "X", "cat": "gpu_user_annotation", "name": name, "pid": 0, "tid": STREAM, "ts": begin, "dur": self.now - begin})

    def fetch(self, took):
        def work():
            self.python(took - 10)
            self.op("aten::stack", 9)
        self.annotated("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", work)

    def backward(self, operators, kernel):
        self.tid = BACKWARD
        for _ in range(operators):
            begin = self.now
            self.now += 2
            self.op("MmBackward0", 4, kernel)
            self.host("cpu_op", "autograd::engine::evaluate_function: MmBackward0", begin)
        self.tid = MAIN

    def update(self, kernel):
        self.annotated("Optimizer.step#AdamW.step", lambda: (self.python(10), self.op("aten::_fused_adamw_", 8, kernel)))


def recorded(step, steps=4):
    """``step(recording)`` once to warm up and ``steps`` times in a mark of its own, closed by a wait for the device: as ``traindx speed`` does."""
    one = Recording()
    for number, count in enumerate((1, steps)):
        def work(count=count):
            one.synchronize("cudaDeviceSynchronize")
            for _ in range(count):
                step(one)
            one.synchronize("cudaDeviceSynchronize")
        one.annotated(f"ProfilerStep#{number}", work)
    return {"schemaVersion": 1, "displayTimeUnit": "ms", "baseTimeNanoseconds": 0, "traceEvents": one.events}


def launch_bound(one):
    """300 operators of which each keeps the GPU busy for 2 us and the host for 20."""
    for _ in range(200):
        one.python(9)
        one.op("aten::mul", 6, 2)
    one.backward(100, 2)
    one.update(5)


def sync_bound(one):
    """Small results that are read one after the other: the GPU waits until the host has gone on."""
    for _ in range(40):
        one.op("aten::mm", 6, 60)
        one.item()
        one.python(80)
    one.update(5)


def copy_bound(one):
    """A large batch from pageable memory, and little to do with it."""
    one.fetch(100)
    one.copy_to_device(4000)
    for _ in range(10):
        one.op("aten::mm", 6, 40)
    one.backward(10, 40)
    one.update(20)


def input_bound(one):
    one.fetch(5000)
    one.copy_to_device(50)
    for _ in range(10):
        one.op("aten::mm", 6, 60)
    one.backward(10, 60)
    one.update(20)
    one.item()


def compute_bound(one):
    """Large kernels: the host is far ahead, and waits in the read of the loss."""
    one.fetch(100)
    one.copy_to_device(50, pinned=True)
    for _ in range(10):
        one.op("aten::mm", 6, 900)
    one.backward(10, 1800)
    one.update(300)
    one.item()
