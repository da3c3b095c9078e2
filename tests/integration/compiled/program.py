# SPDX-License-Identifier: Apache-2.0
"""Imitates a program that uses torch.compile: writes a generated file and PyTorch's structured
log, then runs the generated code, which launches through ctypes.

usage: program.py CASE CACHE
"""

import ctypes
import json
import os
import signal
import sys
import tempfile
import time

KERNEL = b".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k() { ret; }\n\0"
NAME = "c" + "ab" + "x" * 49 + ".py"
TRACE = '  File "/src/model.py", line %d, in forward\n    x = block(x)\n' \
        '  File "/src/model.py", line %d, in block\n    return x\n'
TRACES = {
    "triton_poi_fused_gelu_0:1": [TRACE % (25, 13), TRACE % (25, 15), TRACE % (25, 13)],
    "extern_kernels.addmm:2": [TRACE % (26, 14)],
    "triton_poi_fused_gelu_0:3": [],
}
CODE = """# AOT ID: ['0_forward']
# Topologically Sorted Source Nodes: [gelu], Original ATen: [aten.gelu]
triton_poi_fused_gelu_0 = async_compile.triton('triton_poi_fused_gelu_0', '''
    def triton_(): pass
''')

class Runner:
    def call(self, args):
        # Topologically Sorted Source Nodes: [gelu, x], Original ATen: [aten.gelu]
        HANDLE triton_poi_fused_gelu_0:1
        stream0 = get_raw_stream(0)
        triton_poi_fused_gelu_0.run(stream0)
        buf1 = empty_strided_cuda((64, 10), (10, 1))
        # Topologically Sorted Source Nodes: [linear], Original ATen: [aten.t, aten.addmm]
        HANDLE extern_kernels.addmm:2
        extern_kernels.addmm(buf1)
        # Topologically Sorted Source Nodes: [], Original ATen: [aten.gelu]
        HANDLE triton_poi_fused_gelu_0:3
        triton_poi_fused_gelu_0.run(stream0)
        leftover(buf1)
"""


class Gpu:
    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        context, module, self.function = (ctypes.c_void_p() for _ in range(3))
        for result in (self.cuda.cuInit(0),
                       self.cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0),
                       self.cuda.cuCtxSetCurrent(context),
                       self.cuda.cuModuleLoadData(ctypes.byref(module), KERNEL),
                       self.cuda.cuModuleGetFunction(ctypes.byref(self.function), module, b"k")):
            if result:
                raise RuntimeError("CUDA says %d" % result)

    def run(self, *_):
        self.cuda.cuLaunchKernel(self.function, 1, 1, 1, 32, 1, 1, 0, None, None, None)

    addmm = run


class AsyncCompile:
    def __init__(self, gpu):
        self.gpu = gpu

    def triton(self, *_):
        return self.gpu


def record(pid, metadata, payload=None, number=0):
    metadata = dict(metadata, frame_id=number, frame_compile_id=0, attempt=0)
    if payload is not None:
        metadata = dict(metadata, has_payload="0")
    text = "[rank0]:V1123 10:56:01.740000 %d torch/_inductor/graph.py:2575] %s\n" % (
        pid, json.dumps(metadata))
    if payload is not None:
        text += "".join("\t%s\n" % line for line in payload.split("\n"))
    return text


def code_record(pid, path, code, number=0):
    return record(pid, {"inductor_output_code": {"filename": path, "file_path": path}}, code,
                  number)


def traces_record(pid, traces, number=0):
    artifact = {"artifact": {"name": "inductor_provenance_tracking_kernel_stack_traces",
                             "encoding": "json"}}
    return record(pid, artifact, traces if traces is None else json.dumps(traces), number)


def elsewhere(traces):
    return {name: [TRACE % (98, 99)] if lines else [] for name, lines in traces.items()}


def write_model(path, lines_before):
    """The model that the traces name, or the same below other lines."""
    lines = ["    pass\n"] * lines_before + ["    return x\n"] * 24 + ["    x = block(x)\n"] * 2
    with open(path, "w") as file:
        file.writelines(lines)
    for name, traces in TRACES.items():
        TRACES[name] = [trace.replace("/src/model.py", path) for trace in traces]


def structured_log(case, path, code):
    pid = os.getpid()
    good = code_record(pid, path, code) + traces_record(pid, TRACES)
    if case == "twins":
        return good + code_record(pid, path, code, 1) + traces_record(pid, elsewhere(TRACES), 1)
    if case == "interleaved":
        return "".join((code_record(pid, path, code), code_record(pid, path + ".other", code, 1),
                        traces_record(pid, TRACES), traces_record(pid, elsewhere(TRACES), 1)))
    if case == "foreign":
        other = code_record(pid, path + ".other", code)
        return (code_record(pid, path, code) + other + traces_record(pid, elsewhere(TRACES)) +
                traces_record(pid, TRACES))
    if case == "warm":
        return code_record(pid, path, code) + traces_record(pid, None)
    if case == "broken":
        begun = code_record(pid, path, code)
        return "".join((
            begun, "V1123 10:56:01.740000 %d x.py:1] {\"inductor_output_code\": {\n" % pid,
            "\t{\n", "\x00\xff\t[] {}\n", "V\n", "[", "\n", "Z" * (17 << 20) + "\n",
            traces_record(pid, {"other:1": [TRACE % (1, 2)]}),
            traces_record(pid, [1, 2]), traces_record(pid, {"extern_kernels.addmm:2": 7}),
            record(pid, {"inductor_output_code": 1}, "x"), record(pid, {"artifact": []}, "y"),
            traces_record(pid + 1, elsewhere(TRACES)),
            "V1123 10:56:01.740000 %d x.py:1] {\"unknown\": 1, \"has_payload\": \"0\"}\n" % pid,
            "\tinductor_output_code\n",
            good, traces_record(pid, TRACES)[:150]))
    return good


def compile_model(case, cache, gpu):
    folder = os.path.join(cache, "ab")
    path = os.path.join(folder, NAME)
    os.makedirs(folder, exist_ok=True)
    if case in ("fresh", "moved"):
        write_model(os.path.join(folder, "model.py"), 3 if case == "moved" else 0)
    handle = "# unrelated" if case == "warm" else "# [Provenance debug handles]"
    code = CODE.replace("HANDLE", handle)
    with open(path, "w") as file:
        file.write(code)
    target = os.environ.get("TORCH_TRACE")
    if target:
        os.makedirs(target, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", prefix="dedicated_log_torch_trace_rank_0_",
                                         suffix=".log", dir=target, delete=False,
                                         errors="surrogateescape") as out:
            out.write(structured_log(case, path, code))
    scope = {"async_compile": AsyncCompile(gpu), "extern_kernels": gpu, "leftover": gpu.run,
             "get_raw_stream": int, "empty_strided_cuda": lambda *_: None}
    exec(compile(code, path, "exec"), scope)
    return scope["Runner"]()


def main():
    case, cache = sys.argv[1:]
    print("INDUCTOR_PROVENANCE=%s TORCH_TRACE=%s" % (os.environ.get("INDUCTOR_PROVENANCE"),
                                                     os.environ.get("TORCH_TRACE")))
    sys.stdout.flush()
    child = os.fork() if case == "processes" else None
    if child == 0:
        TRACES["extern_kernels.addmm:2"] = [TRACE % (77, 78)]
    gpu = Gpu()
    if case == "plain":
        gpu.run()
        return
    compile_model(case, cache, gpu).call([])
    if child:
        os.waitpid(child, 0)
    if case == "killed":
        time.sleep(0.5)  # until CUPTI has delivered the kernels
        os.kill(os.getpid(), signal.SIGKILL)


main()
