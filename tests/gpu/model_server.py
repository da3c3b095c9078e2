#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A small model server, for serving.py: HTTP requests run a model on the GPU, eagerly or as a graph.

    model_server.py [--backend torch|simulated] [--port N]

| request | runs |
| --- | --- |
| GET /eager | the model, one launch after the other |
| GET /graph | the same as a CUDA graph |
| GET /slow?ms=N | the same as /eager, and waits N ms in between |

Each request is an NVTX range `request`. Listens on 127.0.0.1 only. Prints {"port", "pid"} when it is
ready. Ends when its standard input does, and prints how many requests it has answered.
"""

import argparse
import ctypes
import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlparse

LAYERS = 12
SLOW_MS_MAX = 5000


class Nvtx:
    """The program's side of NVTX 3: asks the tool in NVTX_INJECTION64_PATH for its functions."""

    CORE, CALLBACKS = 1, 1
    SIZE, PUSH_A, POP = 16, 9, 11
    GET_TABLE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint32, ctypes.POINTER(ctypes.c_void_p),
                                 ctypes.POINTER(ctypes.c_uint))
    GET_EXPORT = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)

    class Callbacks(ctypes.Structure):
        _fields_ = [("bytes", ctypes.c_size_t), ("get_table", ctypes.c_void_p)]

    def __init__(self):
        self.functions = (ctypes.c_void_p * self.SIZE)()
        base = ctypes.addressof(self.functions)
        self.places = (ctypes.c_void_p * self.SIZE)(None, *(base + 8 * i for i in range(1, self.SIZE)))
        self.get_table = self.GET_TABLE(self.give_table)
        self.callbacks = self.Callbacks(ctypes.sizeof(self.Callbacks),
                                        ctypes.cast(self.get_table, ctypes.c_void_p))
        self.get_export = self.GET_EXPORT(
            lambda kind: ctypes.addressof(self.callbacks) if kind == self.CALLBACKS else None)
        path = os.environ.get("NVTX_INJECTION64_PATH")
        if path:
            ctypes.CDLL(path).InitializeInjectionNvtx2(self.get_export)
        push, pop = self.functions[self.PUSH_A], self.functions[self.POP]
        self.push = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p)(push) if push else lambda _: 0
        self.pop = ctypes.CFUNCTYPE(ctypes.c_int)(pop) if pop else lambda: 0

    def give_table(self, module, table_out, size_out):
        if module != self.CORE:
            return 0
        table_out[0], size_out[0] = ctypes.addressof(self.places), self.SIZE
        return 1


class SimulatedBackend:
    """Launches through the driver API, as the simulated GPU has no runtime API."""

    BYTES = 4096
    PTX = (b".version 7.0\n.target sm_70\n.address_size 64\n"
           b".visible .entry attention_kernel() { ret; }\n.visible .entry feed_forward_kernel() { ret; }\n\0")

    def __init__(self):
        nvtx = Nvtx()
        self.push, self.pop = lambda: nvtx.push(b"request"), nvtx.pop
        self.driver = ctypes.CDLL("libcuda.so.1")
        self.context, module = ctypes.c_void_p(), ctypes.c_void_p()
        self.stream, self.memory = ctypes.c_void_p(), ctypes.c_uint64()
        self.call("cuInit", 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), 0)
        self.use_thread()
        self.call("cuModuleLoadData", ctypes.byref(module), self.PTX)
        self.kernels = []
        for name in (b"attention_kernel", b"feed_forward_kernel"):
            self.kernels.append(ctypes.c_void_p())
            self.call("cuModuleGetFunction", ctypes.byref(self.kernels[-1]), module, name)
        self.call("cuStreamCreate", ctypes.byref(self.stream), 1)
        self.call("cuMemAlloc_v2", ctypes.byref(self.memory), self.BYTES)
        self.host = ctypes.create_string_buffer(self.BYTES)
        self.graph = self.capture()

    def call(self, name, *arguments):
        error = getattr(self.driver, name)(*arguments)
        if error:
            raise RuntimeError("%s: error %d" % (name, error))

    def use_thread(self):
        self.call("cuCtxSetCurrent", self.context)

    def launch(self, kernel):
        self.call("cuLaunchKernel", kernel, 32, 1, 1, 128, 1, 1, 0, self.stream, None, None)

    def attention(self):
        self.launch(self.kernels[0])

    def feed_forward(self):
        self.launch(self.kernels[1])

    def layers(self, begin, end):
        for _ in range(begin, end):
            self.attention()
            self.feed_forward()

    def capture(self):
        graph, instance = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuStreamBeginCapture_v2", self.stream, 1)
        self.layers(0, LAYERS)
        self.call("cuStreamEndCapture", self.stream, ctypes.byref(graph))
        self.call("cuGraphInstantiateWithFlags", ctypes.byref(instance), graph, ctypes.c_uint64(0))
        return instance

    def load_input(self):
        self.call("cuMemcpyHtoDAsync_v2", self.memory, self.host, ctypes.c_size_t(self.BYTES), self.stream)

    def replay(self):
        self.call("cuGraphLaunch", self.graph, self.stream)

    def read_output(self):
        self.call("cuMemcpyDtoHAsync_v2", self.host, self.memory, ctypes.c_size_t(self.BYTES), self.stream)
        self.call("cuStreamSynchronize", self.stream)


class TorchBackend:
    WIDTH, ROWS = 512, 64

    def __init__(self):
        import torch
        self.torch = torch
        torch.manual_seed(1)
        self.model = torch.nn.ModuleList(
            torch.nn.Sequential(torch.nn.LayerNorm(self.WIDTH), torch.nn.Linear(self.WIDTH, self.WIDTH),
                                torch.nn.GELU()) for _ in range(LAYERS)).cuda().eval()
        self.host = torch.zeros(self.ROWS, self.WIDTH).pin_memory()
        self.input = torch.zeros(self.ROWS, self.WIDTH, device="cuda")
        self.output = self.graph_output = None
        self.load_input()
        for _ in range(3):
            self.layers(0, LAYERS)
        torch.cuda.synchronize()
        self.graph = self.capture()

    def push(self):
        self.torch.cuda.nvtx.range_push("request")

    def pop(self):
        self.torch.cuda.nvtx.range_pop()

    def use_thread(self):
        pass

    def layers(self, begin, end):
        with self.torch.no_grad():
            x = self.output if begin else self.input
            for layer in self.model[begin:end]:
                x = x + layer(x)
            self.output = x

    def capture(self):
        graph = self.torch.cuda.CUDAGraph()
        with self.torch.cuda.graph(graph):
            self.layers(0, LAYERS)
        self.graph_output = self.output
        return graph

    def load_input(self):
        self.input.copy_(self.host, non_blocking=True)

    def replay(self):
        self.graph.replay()
        self.output = self.graph_output

    def read_output(self):
        return self.output.cpu()


class Model:
    """One request at a time uses the GPU, as is usual for one model."""

    def __init__(self, backend):
        self.backend, self.lock = backend, threading.Lock()
        self.counts = {"eager": 0, "graph": 0, "slow": 0}
        self.runs = {"eager": self.eager, "graph": self.replay_graph, "slow": self.slow_forward}

    def eager(self, _):
        self.backend.layers(0, LAYERS)

    def replay_graph(self, _):
        self.backend.replay()

    def slow_forward(self, wait_s):
        self.backend.layers(0, LAYERS // 2)
        time.sleep(wait_s)
        self.backend.layers(LAYERS // 2, LAYERS)

    def answer(self, kind, wait_s):
        self.backend.push()
        try:
            with self.lock:
                self.backend.use_thread()
                self.backend.load_input()
                self.runs[kind](wait_s)
                self.backend.read_output()
                self.counts[kind] += 1
        finally:
            self.backend.pop()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # one segment for header and body
    model = None

    def do_GET(self):
        url = urlparse(self.path)
        kind = url.path.strip("/")
        if kind not in self.model.runs:
            self.send_error(404)
            return
        wait_ms = min(float(parse_qs(url.query).get("ms", ["0"])[0]), SLOW_MS_MAX)
        self.model.answer(kind, wait_ms / 1000)
        body = json.dumps({"kind": kind}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--backend", choices=("torch", "simulated"), default="torch")
    parser.add_argument("--port", type=int, default=0)
    args = parser.parse_args()
    Handler.model = Model({"torch": TorchBackend, "simulated": SimulatedBackend}[args.backend]())
    server = Server(("127.0.0.1", args.port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(json.dumps({"port": server.server_address[1], "pid": os.getpid()}), flush=True)
    sys.stdin.read()
    server.shutdown()
    with Handler.model.lock:
        print(json.dumps(Handler.model.counts), flush=True)


if __name__ == "__main__":
    main()
