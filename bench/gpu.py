# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of tracers on a GPU: every workload under every tracer, in alternating rounds.

The tables below have a row for each workload and each tracer. Only results of the same round are
compared. Ratios and differences are computed within a round; their median and spread are shown.
"""

import glob
import json
import os
import re
import shutil
import statistics
import tempfile
import time

import children
import tables
from children import Failed

BARE, FLOOR, CALLBACK = "bare", "cupti kernels", "cupti kernels, callback"


class Workload:
    """A program, its command line, and the values in its output."""

    def __init__(self, name, unit, command, figures, limit_s=60, short=()):
        self.name = name
        self.unit = unit
        self.command = command  # a function of the places that returns a list
        self.figures = figures  # of the output: {"value": …}, "done" and "launches" if known
        self.limit_s = limit_s
        self.short = list(short)  # arguments of a short run, for tracers that need it


class Tracer:
    """How to run a program under a tracer. All output goes to the directory of the run."""

    def __init__(self, name, environment=None, prefix=None, arguments=(), only=None, rounds=None,
                 short=False, output=None, limit_s=None):
        self.name = name
        self.environment = environment or (lambda places, directory: {})
        self.prefix = prefix or (lambda places, directory: [])
        self.arguments = list(arguments)
        self.only = only  # names of workloads (None: all)
        self.rounds = rounds  # maximum (None: all)
        self.short = short
        self.output = output  # pattern of the trace files
        self.limit_s = limit_s


def launches_figures(done):
    report = done.report()
    return {
        "value": statistics.median(report["issue_ns"]),
        "done": statistics.median(report["done_ns"]),
        "launches": report["launches"],
        "peak_mib": report["peak_kib"] / 1024,
        "end_ns": report["end_ns"],
    }


def torch_figures(done):
    report = done.report()
    return {
        "value": statistics.median(report["step_ms"]),
        "steps": report["steps"],
        "peak_mib": report["peak_kib"] / 1024,
        "trace_bytes": report.get("trace_bytes"),
        "end_ns": report["end_ns"],
    }


def llm_figures(done):
    speeds = [float(speed) for speed in re.findall(r"([0-9.]+) tokens/s", done.said)]
    if not speeds:
        raise Failed("printed no tokens/s")
    return {"value": 1e6 / statistics.mean(speeds)}


WORKLOADS = (
    Workload(
        "launch loop",
        "ns/launch",
        lambda places: [places.program("bench_launches"), "--depth", "29"],
        launches_figures,
        short=("--batches", "20"),
    ),
    Workload(
        "PyTorch step",
        "ms/step",
        lambda places: ["python3", places.script("torch_step.py"), "--samples", places.samples],
        torch_figures,
        limit_s=120,
        short=("--batches", "4", "--steps", "4"),
    ),
    Workload(
        "4 threads",
        "ns/launch",
        lambda places: [places.program("bench_launches"), "--threads", "4", "--depth", "29"],
        launches_figures,
    ),
    Workload(
        "graph of 10",
        "ns/replay",
        lambda places: [places.program("bench_launches"), "--graph", "10", "--depth", "29"]
        + ["--launches", "100"],
        launches_figures,
    ),
    Workload(
        "inference loop",
        "us/token",
        lambda places: [places.sample, "--layers", "8", "--dim", "128", "--tokens", "200"],
        llm_figures,
    ),
)


def floor_tracer(name, level, only=None, settings=None):
    return Tracer(
        name,
        lambda places, directory: {
            "CUDA_INJECTION64_PATH": places.floor,
            "XTRACE_BENCH_FLOOR": level,
            "XTRACE_BENCH_FLOOR_COUNT": os.path.join(directory, "count"),
            **(settings or {}),
        },
        only=only,
    )


def buffer_tracer(kib):
    """The floor with another buffer size than the tracer's."""
    return floor_tracer(f"cupti kernels, {kib} KiB buffers", "kernel",
                        ("launch loop", "4 threads"), {"XTRACE_BENCH_FLOOR_BUFFER_KIB": str(kib)})


def xtrace_tracer(name, settings, only=None):
    return Tracer(
        name,
        lambda places, directory: {
            "CUDA_INJECTION64_PATH": places.injected,
            "NVTX_INJECTION64_PATH": places.injected,
            "XTRACE_DATA": directory,
            **settings,
        },
        only=only,
        output="*.xtr",
    )


def nsys_tracer(name, options, **more):
    return Tracer(
        name,
        prefix=lambda places, directory: [places.nsys, "profile", "--trace=cuda", *options]
        + ["--force-overwrite=true", "-o", os.path.join(directory, "nsys")],
        output="nsys.*",  # .qdstrm if the converter to .nsys-rep is missing
        limit_s=120,
        **more,
    )


def profiler_tracer(name, kind):
    return Tracer(
        name,
        arguments=("--profiler", kind),
        only=("PyTorch step",),
        rounds=2,
        limit_s=120,
    )


TRACERS = (
    Tracer(BARE),
    floor_tracer(FLOOR, "kernel"),
    buffer_tracer(32),
    buffer_tracer(512),
    buffer_tracer(4096),
    floor_tracer(CALLBACK, "callback"),
    floor_tracer("cupti kernels, callback at all API", "api-all", ("graph of 10", "PyTorch step")),
    floor_tracer("cupti all work, callback", "work", ("PyTorch step", "inference loop")),
    xtrace_tracer("xtrace, native stacks", {"XTRACE_PYTHON": "off"}),
    xtrace_tracer("xtrace, native + Python", {}, ("PyTorch step",)),
    xtrace_tracer("xtrace, --api all", {"XTRACE_API": "all"}),
    nsys_tracer("nsys", ("--sample=none", "--cpuctxsw=none"), rounds=2),
    nsys_tracer(
        "nsys, CUDA backtraces",
        ("--cudabacktrace=kernel:0",),
        rounds=1,
        short=True,
        only=("launch loop", "PyTorch step"),
    ),
    nsys_tracer(
        "nsys, Python backtraces",
        ("--sample=none", "--cpuctxsw=none", "--python-backtrace=cuda"),
        rounds=2,
        only=("PyTorch step",),
    ),
    profiler_tracer("torch.profiler CUDA", "cuda"),
    profiler_tracer("torch.profiler CPU + CUDA", "cpu+cuda"),
)


def find_nsys(asked):
    """The newest nsys that runs. The one of Nsight Compute is not in PATH."""
    patterns = (
        "/opt/nvidia/nsight-systems*/*/bin/nsys",
        "/opt/nvidia/nsight-systems*/*/target-linux-x64/nsys",
        "/opt/nvidia/nsight-compute*/*/host/target-linux-x64/nsys",
        "/opt/nvidia/nsight-compute*/*/host/linux-desktop-glibc_*/nsys",
        "/usr/local/cuda*/bin/nsys",
        "/usr/local/cuda*/nsight*/**/nsys",
        "/usr/lib/nsight*/**/nsys",
    )
    candidates = [asked] if asked else [shutil.which("nsys")]
    if not asked:
        for pattern in patterns:
            candidates += sorted(glob.glob(pattern, recursive=True), reverse=True)
    if not any(candidates):
        # find fails at unreadable directories, even if it has found nsys.
        search = "find / -xdev -type f -name nsys -perm -u+x 2>/dev/null; true"
        try:
            candidates = children.run(["sh", "-c", search], 20).said.splitlines()
        except Failed:
            pass
    for path in filter(None, candidates):
        try:
            if "NVIDIA" in children.run([path, "--version"], 20).said:
                return path
        except Failed:
            continue
    return None


class Result:
    """The result of one run of one workload under one tracer."""

    def __init__(self, workload, tracer, round_number):
        self.workload = workload.name
        self.tracer = tracer.name
        self.round = round_number
        self.failure = None
        self.figures = {}


class Suite:
    def __init__(self, places, options, say):
        self.places = places
        self.options = options
        self.say = say
        self.deadline = time.monotonic() + options.seconds
        self.results = []
        self.durations = {}
        self.failures = {}
        self.has_torch = False
        self.machine = {}

    def applies(self, workload, tracer, round_number):
        if tracer.only and workload.name not in tracer.only:
            return False
        if tracer.rounds and round_number >= tracer.rounds:
            return False
        if tracer.name.startswith("nsys") and not self.places.nsys:
            return False
        if workload.name.startswith("PyTorch") and not self.has_torch:
            return False
        return self.options.wanted(workload.name, tracer.name)

    def run_one(self, workload, tracer, round_number):
        cell = (workload.name, tracer.name)
        left_s = self.deadline - time.monotonic()
        if cell in self.failures or left_s < self.durations.get(cell, 5):
            return
        result = Result(workload, tracer, round_number)
        with tempfile.TemporaryDirectory(prefix="xtrace-bench-") as directory:
            begin = time.monotonic()
            try:
                result.figures = self.measure(workload, tracer, round_number, directory)
            except Failed as failure:
                result.failure = self.failures[cell] = str(failure)
            self.durations[cell] = 1.2 * (time.monotonic() - begin)
        self.results.append(result)
        self.say(f"  {workload.name}, {tracer.name}: {result.failure or self.one_line(result)}")

    @staticmethod
    def one_line(result):
        return f"{result.figures['value']:.3f}, {result.figures['wall_s']:.1f} s in all"

    def measure(self, workload, tracer, round_number, directory):
        command = tracer.prefix(self.places, directory) + workload.command(self.places)
        command += tracer.arguments
        if tracer.short or self.options.quick:
            command += workload.short
        environment = dict(self.places.environment, **tracer.environment(self.places, directory))
        limit_s = min(tracer.limit_s or workload.limit_s, self.deadline - time.monotonic() + 10)
        done = children.run(command, limit_s, environment, directory)
        figures = workload.figures(done)
        figures.update(wall_s=done.wall_s, cpu_s=done.cpu_s)
        if "end_ns" in figures:
            figures["exit_ms"] = (done.ended_ns - figures.pop("end_ns")) / 1e6
        for word in ("xtrace: cannot record this process", "cupti_floor:"):
            if word in done.said:
                raise Failed(next(line for line in done.said.splitlines() if word in line))
        if "XTRACE_BENCH_FLOOR" in environment:
            figures["records"] = self.count_of(directory)
        if tracer.output:
            traces = glob.glob(os.path.join(directory, tracer.output))
            if not traces:
                raise Failed("left no trace")
            figures["trace_bytes"] = sum(map(os.path.getsize, traces))
            if tracer.output == "*.xtr" and round_number == 0:
                figures.update(self.look_into(traces))
        return figures

    @staticmethod
    def count_of(directory):
        try:
            with open(os.path.join(directory, "count"), encoding="ascii") as file:
                records = int(file.read().split()[0])
        except (OSError, ValueError, IndexError):
            records = 0
        if not records:
            raise Failed("CUPTI gave no records")
        return records

    def dumped(self, *arguments):
        return children.run([self.places.dump, *arguments], 60).said

    def look_into(self, traces):
        """Launches, losses and kinds of stacks in the first log of each kind."""
        account = {}
        for trace in traces:
            said = self.dumped("--format", "json", "--kind", "ACCOUNT", trace)
            last = {row["name"]: row["value"] for row in map(json.loads, said.splitlines())
                    if "value" in row}
            for name, value in last.items():
                account[name] = account.get(name, 0) + value
        said = self.dumped("--calls-total", *traces)
        totals = {name: int(count) for name, count in re.findall(r"(\w+) (\d+)", said)}
        lost = [f"{name} {value}" for name, value in account.items()
                if value and any(word in name for word in
                                 (".lost", ".dropped", ".discarded", ".mismatched", ".invalid"))]
        return {
            "account": account,
            "logged_launches": totals.get("kernel_launch", 0) + totals.get("graph_launch", 0),
            "lost": ", ".join(lost),
        }

    def describe_machine(self):
        said = children.run(
            ["uname", "-srm"], 10).said.strip()
        self.machine = {"system": said, "cores": os.cpu_count()}
        try:
            with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
                models = re.findall(r"model name\s*: (.*)", file.read())
            self.machine["cpu"] = models[0] if models else "unknown"
        except OSError:
            pass
        probes = {
            "gpu": ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
            "torch": ["python3", "-c",
                      "import torch; print(torch.__version__, torch.version.cuda); "
                      "assert torch.cuda.is_available()"],
            "xtrace": [self.places.xtrace, "--version"],
        }
        if self.places.nsys:
            probes["nsys"] = [self.places.nsys, "--version"]
        for name, command in probes.items():
            try:
                self.machine[name] = children.last_line(
                    children.run(command, 90, self.places.environment).said)
            except Failed as failure:
                self.machine[name] = f"none ({failure})"
        self.has_torch = not self.machine["torch"].startswith("none")

    def run(self):
        self.describe_machine()
        for name, what in self.machine.items():
            self.say(f"{name}: {what}")
        for round_number in range(self.options.rounds):
            if time.monotonic() >= self.deadline:
                break
            self.say(f"round {round_number + 1}")
            for workload in WORKLOADS:
                for tracer in TRACERS:
                    if self.applies(workload, tracer, round_number):
                        self.run_one(workload, tracer, round_number)

    def by_round(self, workload, tracer, figure="value"):
        """{round: value} of the runs that have it."""
        return {
            result.round: result.figures[figure]
            for result in self.results
            if result.workload == workload and result.tracer == tracer
            and result.figures.get(figure) is not None
        }

    @staticmethod
    def pairs(ours, theirs, combine):
        return [combine(ours[r], theirs[r]) for r in ours if r in theirs]

    def launches_of(self, workload, tracer):
        """Launches of a run, from the program's output or else from our log."""
        of_workload = self.figures_of(workload)
        own = [result.figures for result in self.results
               if result.workload == workload and result.tracer == tracer and result.figures]
        logged = [figures for figures in of_workload if figures.get("logged_launches")]
        if not own:
            return None
        if "launches" in own[0]:
            return own[0]["launches"]
        if not logged:
            return None
        return logged[0]["logged_launches"] * own[0].get("steps", 1) / logged[0].get("steps", 1)

    def added_ns(self, workload, over_callback):
        """Nanoseconds per launch that a tracer adds to CUPTI, from steps of many launches."""
        steps = [figures for figures in self.figures_of(workload)
                 if figures.get("steps") and figures.get("logged_launches")]
        if not steps or not over_callback:
            return None
        per_step = steps[0]["logged_launches"] / steps[0]["steps"]
        return tables.median(over_callback) * 1e6 / per_step

    def figures_of(self, workload):
        return [result.figures for result in self.results if result.workload == workload]

    def summary(self):
        rows = []
        for workload in WORKLOADS:
            for tracer in TRACERS:
                values = self.by_round(workload.name, tracer.name)
                failure = self.failures.get((workload.name, tracer.name))
                if values or failure:
                    rows.append(self.summary_row(workload, tracer, values, failure))
        return rows

    def summary_row(self, workload, tracer, values, failure):
        def against(other, combine):
            return self.pairs(values, self.by_round(workload.name, other), combine)

        def figures(name):
            return list(self.by_round(workload.name, tracer.name, name).values())

        bare_exit = tables.median(self.by_round(workload.name, BARE, "exit_ms").values())
        trace_bytes = tables.median(figures("trace_bytes"))
        launches = self.launches_of(workload.name, tracer.name)
        lost = [text for text in figures("lost") if text]
        exit_ms = tables.median(figures("exit_ms"))
        over_callback = (
            []
            if tracer.name == BARE or tracer.name.startswith("cupti")
            else against(CALLBACK, lambda a, b: a - b)
        )
        return {
            "workload": workload.name,
            "unit": workload.unit,
            "tracer": tracer.name,
            "values": list(values.values()),
            "done": figures("done"),
            "to_bare": against(BARE, lambda a, b: a / b),
            "to_floor": against(FLOOR, lambda a, b: a / b),
            "over_callback": over_callback,
            "added_ns_per_launch": self.added_ns(workload.name, over_callback),
            "trace_bytes_per_launch": trace_bytes / launches if trace_bytes and launches else None,
            "exit_ms": exit_ms,
            "exit_ms_over_bare":
                exit_ms - bare_exit if exit_ms is not None and bare_exit is not None else None,
            "peak_mib": tables.median(figures("peak_mib")),
            "lost": lost[0] if lost else "",
            "failure": failure,
        }

    def lines(self):
        lines = []
        summary = self.summary()
        for workload in WORKLOADS:
            rows = [row for row in summary if row["workload"] == workload.name]
            if not rows:
                continue
            lines += ["", f"{workload.name}, {workload.unit}: median [least most] of "
                      f"{max(len(row['values']) for row in rows)} rounds"]
            table = [["", workload.unit, "with wait", "to bare", "to kernels alone",
                      "over callback", "B/launch", "exit ms", "peak MiB"]]
            for row in rows:
                if not row["values"]:
                    continue
                table.append([
                    row["tracer"],
                    tables.with_spread(row["values"]),
                    tables.number(tables.median(row["done"])),
                    tables.ratio(tables.median(row["to_bare"])),
                    tables.ratio_with_spread(row["to_floor"]),
                    tables.with_spread(row["over_callback"]),
                    tables.number(row["trace_bytes_per_launch"]),
                    tables.number(row["exit_ms"]),
                    tables.number(row["peak_mib"]),
                ])
            lines += tables.table(table)
            lines += [f"    {row['tracer']}: {row['failure']}" for row in rows if row["failure"]]
            lines += [f"    {row['tracer']}: {row['added_ns_per_launch']:.0f} ns a launch above "
                      "CUPTI with a callback" for row in rows if row["added_ns_per_launch"]]
            lines += [f"    {row['tracer']}: lost: {row['lost']}" for row in rows if row["lost"]]
        return lines

    def as_json(self):
        return {
            "machine": self.machine,
            "summary": self.summary(),
            "runs": [vars(result) for result in self.results],
        }
