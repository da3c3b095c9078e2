#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of Python frames for repeated calls, in the interpreter that runs this script.

usage: python_cost.py BUILD_DIR/bin/bench/libbench_python_cost.so [--library DIR] [--rounds N]
                      [--only NAME]

Five measurements, in ns per call with entry and exit:
- warm: one path, calls in succession. Each frame has its own function, each three share a file.
- paths: calls from many paths of ten frames in random order.
- cold: calls from 40 paths in turn, each with about 35 native and ten Python frames. Each call
  follows the use of the given amount of memory. Rounds alternate between no recording, native
  stacks and Python stacks. The result is the mean of the middle half.
- modules: calls inside nested modules of a stand-in for PyTorch, with and without their paths. The
  stack is cached, or walked each time.
- torch: one reading of autograd's state, outside a node and inside one. The median of 15 loops.
  Needs PyTorch, but no GPU.

Prints a line for each value, and all of them as JSON at the end.
"""

import argparse
import ctypes
import json
import os
import random
import statistics
import sys
import time

CALLS = 1200000
FUNCTION = "def function_%d(rest):\n    return rest[0](rest[1:]) if rest else cost(CALLS)\n"
INNER = "def inner_%d(rest):\n    return rest[0](rest[1:]) if rest else None\n"
TORCH_READS = 1000000
COLD_PATHS = 40
COLD_OUTER = 6
OTHERS_KIB = (0, 256, 1024, 4096)
WAYS = (("nothing", 0, 0), ("native", 1, 0), ("with Python", 1, 1))

figures = []


def say(question, what, ns):
    figures.append({"question": question, "what": what, "ns": ns})
    print("Python %s, %s: %s" % (
        sys.version.split()[0], what, ", ".join("%s %.0f" % pair for pair in ns.items())), flush=True)


def make(text, number, file_number, names):
    path = "/usr/lib/python3/dist-packages/package/module_%d.py" % file_number
    exec(compile("\n" * number + text, path, "exec"), names)


def warm(library, _options):
    functions = []
    for number in range(30):
        names = {"cost": library.cost_ns, "CALLS": CALLS}
        make(FUNCTION % number, number, number // 3, names)
        functions.append(names["function_%d" % number])
    for depth in (8, 30):
        times = []
        for with_python in (0, 1):
            library.cost_take_python(with_python)
            times.append(min(functions[0](functions[1:depth]) for _ in range(2)))
        say("warm", "%d frames" % depth,
            {"native": times[0], "with Python": times[1], "Python alone": times[1] - times[0]})


def deeply(rest, function):
    return deeply(rest - 1, function) if rest else function()


def paths_ns(library, paths, calls, with_python):
    library.cost_take_python(with_python)
    for functions in (paths, calls[:2000], calls):
        start = time.thread_time_ns()
        for function in functions:
            deeply(8, function)
    return (time.thread_time_ns() - start) / len(calls)


def many_paths(library, _options):
    for count in (50, 500, 2000, 20000, 60000):
        names = {"call": ctypes.PyDLL(library._name).cost_call}
        exec(compile("\n".join("def path_%d():\n    call()" % i for i in range(count)),
                     "paths.py", "exec"), names)
        paths = [names["path_%d" % i] for i in range(count)]
        calls = random.Random(1).choices(paths, k=60000)
        times = [min(paths_ns(library, paths, calls, with_python) for _ in range(3))
                 for with_python in (0, 1)]
        say("paths", "%d paths" % count, {"Python alone": times[1] - times[0]})


def cold_chains(library):
    """The functions of each path, outermost first. The last one calls."""
    names = {"cold": library.cost_cold_ns}
    inner = []
    for number in range(COLD_OUTER + 20):
        make(INNER % number, number, number // 3, names)
        inner.append(names["inner_%d" % number])
    chains = []
    for path in range(COLD_PATHS):
        make("def leaf_%d(rest):\n    ns.append(cold(%d, others))" % (path, path), path, 90 + path, names)
        middle = [inner[COLD_OUTER + path % 13], inner[COLD_OUTER + 13 + path % 7]]
        chains.append(inner[:COLD_OUTER] + middle + [names["leaf_%d" % path]])
    return chains, names


def middle(values):
    """The mean of the middle half, which averages the clock's resolution."""
    values = sorted(values)
    return statistics.mean(values[len(values) // 4:-len(values) // 4])


def cold(library, options):
    chains, names = cold_chains(library)
    for kib in OTHERS_KIB:
        names["others"] = kib << 10
        times = {way: [] for way, _, _ in WAYS}
        for turn in range(options.rounds + 2):
            for way, is_recorded, with_python in WAYS:
                library.cost_record(is_recorded)
                library.cost_take_python(with_python)
                names["ns"] = []
                for chain in chains:
                    chain[0](chain[1:])
                if turn >= 2:
                    times[way] += names["ns"]
        library.cost_record(1)
        medians = {way: middle(times[way]) for way in times}
        medians["Python alone"] = medians["with Python"] - medians["native"]
        say("cold", "after %d KiB" % kib, medians)


def nested(module, depth):
    """A module below others, each in a list of the one outside."""
    class Inner(module.Module):
        def forward(self, call):
            return self.layers[3](call) if self.has_layers else call()

    model = Inner()
    model.has_layers = depth > 1
    if depth > 1:
        model.layers = module.ModuleList([module.Module() for _ in range(3)])
        model.layers.append(nested(module, depth - 1))
    return model


def modules(library, _options):
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "integration",
                          "python", "standin")
    if not os.path.exists(folder):
        print("modules: skipped: an installation has no stand-in for PyTorch")
        return
    sys.path.insert(0, folder)
    from torch.nn.modules import module

    library.cost_take_python(1)
    for depth in (1, 2, 4, 8):
        model = nested(module, depth)
        for what, call in (("cached", lambda: library.cost_ns(CALLS)),
                           ("walked", lambda: library.cost_walk_ns(300))):
            times = []
            for with_modules in (0, 1):
                library.cost_take_modules(with_modules)
                times.append(min(model(call) for _ in range(2)))
            say("modules", "%d modules, %s" % (depth, what),
                {"with Python": times[0], "with modules": times[1],
                 "modules alone": times[1] - times[0]})
    library.cost_take_modules(0)
    del sys.path[0]
    for name in [name for name in sys.modules if name.split(".")[0] == "torch"]:
        del sys.modules[name]


def autograd(library, _options):
    try:
        import torch
    except ImportError as error:
        print("PyTorch: skipped: %s" % error)
        return
    why_not = library.cost_begin_torch().decode()
    if why_not:
        print("PyTorch %s: skipped: %s" % (torch.__version__, why_not))
        return
    times = {}

    class Identity(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            times["in a node"] = library.cost_torch_ns(TORCH_READS)
            return grad

    y = Identity.apply(torch.ones(3, requires_grad=True)).sum()
    times["outside"] = library.cost_torch_ns(TORCH_READS)
    y.backward()
    say("torch", "PyTorch " + torch.__version__, times)


QUESTIONS = {"warm": warm, "paths": many_paths, "cold": cold, "modules": modules, "torch": autograd}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("module")
    parser.add_argument("--library", default="/nonexistent",
                        help="where an installation has libxtrace_inject.so")
    parser.add_argument("--only", choices=QUESTIONS)
    parser.add_argument("--rounds", type=int, default=50)
    options = parser.parse_args()
    library = ctypes.CDLL(options.module)
    for name in ("cost_ns", "cost_cold_ns", "cost_walk_ns", "cost_torch_ns"):
        getattr(library, name).restype = ctypes.c_double
    library.cost_begin_torch.restype = ctypes.c_char_p
    step = library.cost_begin(options.library.encode())
    if step:
        sys.exit("python_cost: step %d of the preparation failed" % step)
    for name, question in QUESTIONS.items():
        if options.only in (None, name):
            question(library, options)
    print(json.dumps({"figures": figures}))


if __name__ == "__main__":
    main()
