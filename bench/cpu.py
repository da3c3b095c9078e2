# SPDX-License-Identifier: Apache-2.0
"""Measures the parts of xtrace that need no GPU.

These are the tracer's hot path, encoding and decoding of the log, and the merge by size and format.
The tracer in a process is measured on the simulated GPU.
"""

import glob
import json
import os
import sys
import tempfile
from concurrent import futures

import children
import tables
from children import Failed

DEPTHS = (8, 16, 35, 64)
DEPTH = 35
SIZES = (1_000_000, 10_000_000, 100_000_000)
EXITS = 9
STARTUPS = 400
RATE = 1_000_000
LOGS = 8  # merged together
LOG_ROUNDS = 5
LARGE = 20_000_000  # launches of one large log
LARGE_ROUNDS = 7
RANKS, RANKS_OF_SHORT_RUN = 1024, 32
RANK_LAUNCHES = 100_000

# Outputs of xtrace-merge. The first is measured at every size.
OUTPUTS = (
    ("folded", ["--folded", "/dev/null"]),
    ("Chrome JSON", ["--chrome", "/dev/null"]),
    ("summary", ["--text", "/dev/null"]),
    ("folded, gpu-exclusive", ["--weight", "gpu-exclusive", "--folded", "/dev/null"]),
    ("folded, gpu-idle", ["--weight", "gpu-idle", "--folded", "/dev/null"]),
)


class Suite:
    def __init__(self, places, options, say):
        self.places = places
        self.options = options
        self.say = say
        self.content = {}
        self.sizes = [size for size in SIZES if size <= options.launches]
        if options.quick:
            self.sizes = [20_000]

    def run(self):
        parts = (
            ("hot path", self.hot_path),
            ("Python frames", self.python_frames),
            ("log", self.log),
            ("merge", self.merge),
            ("one large log", self.one_large_log),
            ("several logs", self.several_logs),
            ("ranks", self.ranks),
            ("start", self.start),
            ("process", self.process),
        )
        for name, part in parts:
            if not self.options.wanted(name):
                continue
            with tempfile.TemporaryDirectory(prefix="xtrace-bench-") as directory:
                try:
                    part(directory)
                except Failed as failure:
                    self.say(f"{name}: {failure}")
                    self.content[name] = {"failure": str(failure)}

    def show(self, title, rows):
        self.say("")
        self.say(title)
        for line in tables.table(rows):
            self.say(line)

    def program(self, name, *arguments, limit_s=60, watch_peak=False, **more):
        command = [self.places.program(name), *map(str, arguments)]
        return children.run(command, limit_s, watch_peak=watch_peak, **more)

    def hot_path(self, _directory):
        threads = [1]
        while threads[-1] * 2 <= (os.cpu_count() or 1):
            threads.append(threads[-1] * 2)
        cases = [(depth, 1) for depth in DEPTHS] + [(DEPTH, count) for count in threads[1:]]
        if self.options.quick:
            cases = [(DEPTH, 1)]
        results = {}
        for depth, count in cases:
            done = self.program("bench_tracer", "--depth", depth, "--threads", count,
                                "--library", self.places.library)
            results[depth, count] = done.report()
        names = list(next(iter(results.values())))
        rows = [["ns each"] + [f"{depth} frames" + (f", {count} threads" if count > 1 else "")
                               for depth, count in cases]]
        for name in names:
            rows.append([name] + [tables.number(results[case][name]["ns"]) for case in cases])
        self.content["hot path"] = [
            {"depth": depth, "threads": count, "parts": parts}
            for (depth, count), parts in results.items()]
        self.show("The hot path, by stack depth and threads", rows)

    def python_frames(self, _directory):
        """Uses the interpreter that runs this script."""
        quick = ["--only", "cold", "--rounds", "1"] if self.options.quick else []
        done = children.run([sys.executable, self.places.script("python_cost.py"),
                             self.places.program("libbench_python_cost.so"),
                             "--library", self.places.library, *quick], 300)
        figures = done.report()["figures"]
        names = ["nothing", "native", "with Python", "Python alone"]
        rows = [["ns a call", *names]]
        for figure in figures:
            rows.append([figure["what"]] + [tables.number(figure["ns"].get(name)) for name in names])
        self.content["Python frames"] = figures
        self.show("Python frames: warm, many paths, and with cold caches", rows)

    def make_log(self, directory, launches):
        path = os.path.join(directory, f"{launches}.xtr")
        done = self.program("bench_log_generator", path, launches, limit_s=300)
        return path, done.report()

    def log(self, directory):
        """guard.instructions counts what a row costs."""
        _, made = self.make_log(directory, min(3_000_000, self.sizes[-1]))
        per_launch = made["bytes"] / made["launches"]
        self.content["log"] = {"bytes_per_launch": per_launch}
        self.show("The log", [["as generated", tables.number(per_launch), "B/launch"]])

    def merge(self, directory):
        rows = [["M launches/s, one core", "launches", "M/s", "peak MiB", "wall s", "log MB"]]
        results = []
        for size in self.sizes:
            path, made = self.make_log(directory, size)
            for name, arguments in OUTPUTS:
                if size == max(SIZES) and name != "folded":
                    continue
                done = children.run([self.places.merge, "--quiet", "--jobs", "1", *arguments, path], 300,
                                    watch_peak=True)
                speed = made["launches"] / done.cpu_s / 1e6
                peak_mib = done.peak_kib / 1024 if done.peak_kib else None  # None: too short to measure
                results.append({"output": name, "launches": size, "launches_per_s": speed * 1e6,
                                "peak_kib": done.peak_kib, "wall_s": done.wall_s,
                                "cpu_s": done.cpu_s, "log_bytes": made["bytes"]})
                rows.append([name, f"{size:,}", tables.number(speed),
                             tables.number(peak_mib), tables.number(done.wall_s),
                             tables.number(made["bytes"] / 1e6)])
            os.unlink(path)
        self.content["merge"] = results
        self.show("The merge, by CPU time", rows)

    def folded(self, jobs, *logs):
        """Runs the merge to folded stacks."""
        return children.run([self.places.merge, "--quiet", "--jobs", str(jobs),
                             "--folded", "/dev/null", *logs], 600, watch_peak=True)

    def jobs_row(self, name, runs, alone):
        """Runs as a row of a table, compared with those that had one job."""
        ratios = [run.wall_s / one.wall_s for run, one in zip(runs, alone)]
        return [name, tables.with_spread([run.wall_s for run in runs]),
                tables.with_spread(ratios),
                tables.number(tables.median([run.cpu_s for run in runs])),
                tables.number(max(run.peak_kib or 0 for run in runs) / 1024)]

    def one_large_log(self, directory):
        """Wall time with one and two threads, in alternating rounds."""
        launches = self.sizes[-1] if self.options.quick else min(LARGE, self.options.launches)
        path, made = self.make_log(directory, launches)
        runs = {1: [], 2: []}
        for _ in range(1 if self.options.quick else LARGE_ROUNDS):
            for count, done in runs.items():
                done.append(self.folded(count, path))
        os.unlink(path)
        self.content["one large log"] = self.results_by_jobs(runs)
        self.show("One log to folded stacks",
                  [[f"{made['launches']:,} launches", "wall s", "to one job", "CPU s", "peak MiB"],
                   *(self.jobs_row(f"--jobs {count}", done, runs[1])
                     for count, done in runs.items())])

    def ranks(self, directory):
        """Many processes of one program, as a job on many GPUs leaves them."""
        count = RANKS if self.sizes[-1] == max(SIZES) else RANKS_OF_SHORT_RUN
        launches = min(RANK_LAUNCHES, self.sizes[-1])
        paths = [os.path.join(directory, f"rank{rank}.xtr") for rank in range(1, count + 1)]
        with futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(lambda rank: self.program("bench_log_generator", paths[rank - 1], launches,
                                                    4, 6, 1, rank, limit_s=300),
                          range(1, count + 1)))
        runs = {jobs: [self.folded(jobs, *paths)] for jobs in (1, 2)}
        for path in paths:
            os.unlink(path)
        self.content["ranks"] = self.results_by_jobs(runs)
        self.show("Ranks to folded stacks",
                  [[f"{count} ranks of {launches:,} launches", "wall s", "to one job", "CPU s",
                    "peak MiB"],
                   *(self.jobs_row(f"--jobs {jobs}", done, runs[1]) for jobs, done in runs.items())])

    @staticmethod
    def results_by_jobs(runs):
        return {jobs: [{"wall_s": run.wall_s, "cpu_s": run.cpu_s, "peak_kib": run.peak_kib}
                       for run in done] for jobs, done in runs.items()}

    def several_logs(self, directory):
        """Wall time with and without --jobs, in alternating rounds."""
        launches = max(20_000, self.sizes[-1] // LOGS)
        paths = [os.path.join(directory, f"{seed}.xtr") for seed in range(1, LOGS + 1)]
        with futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(lambda seed: self.program("bench_log_generator", paths[seed - 1], launches,
                                                    4, 6, seed, limit_s=300), range(1, LOGS + 1)))
        jobs = [1]
        while jobs[-1] * 2 <= min(LOGS, max(2, os.cpu_count() or 1)):
            jobs.append(jobs[-1] * 2)
        runs = {count: [] for count in jobs}
        for _ in range(1 if self.options.quick else LOG_ROUNDS):
            for count in jobs:
                runs[count].append(self.folded(count, *paths))
        rows = [[f"{LOGS} logs of {launches:,} launches", "wall s", "to one job", "CPU s", "peak MiB"],
                *(self.jobs_row(f"--jobs {count}", done, runs[1]) for count, done in runs.items())]
        self.content["several logs"] = self.results_by_jobs(runs)
        self.show("Several logs at a time, to folded stacks", rows)

    def start(self, _directory):
        times = 10 if self.options.quick else STARTUPS
        done = self.program("bench_startup", self.places.injected, times, "/bin/true")
        report = done.report()
        rows = [["", "us"],
                ["/bin/true", tables.number(report["plain_us"])],
                ["with LD_PRELOAD", tables.number(report["preloaded_us"])]]
        self.content["start"] = report
        self.show("Start of a program that never uses CUDA, median", rows)

    def traced(self, directory, *arguments, limit_s=120, environment=None):
        """Runs the launch loop on the simulated GPU under xtrace. Returns its report and the log's account."""
        data = tempfile.mkdtemp(dir=directory)
        environment = {
            **self.places.simulated(),
            "CUDA_INJECTION64_PATH": self.places.injected,
            "XTRACE_DATA": data,
            **(environment or {}),
        }
        done = self.program("bench_launches", *arguments, limit_s=limit_s,
                            environment=environment)
        report = done.report()
        report["exit_ms"] = (done.ended_ns - report["end_ns"]) / 1e6
        logs = glob.glob(os.path.join(data, "*.xtr"))
        if not logs:
            raise Failed("left no trace")
        said = children.run([self.places.dump, "--format", "json", "--kind", "ACCOUNT", *logs],
                            120).said
        report["account"] = {row["name"]: row["value"]
                             for row in map(json.loads, said.splitlines()) if "value" in row}
        report["log_bytes"] = sum(map(os.path.getsize, logs))
        return report

    def process(self, directory):
        rows = [["", "", ""]]
        exits = [self.traced(directory)["exit_ms"]
                 for _ in range(1 if self.options.quick else EXITS)]
        rows.append(["delay at exit, median", tables.number(tables.median(exits)), "ms"])
        self.content["exit_ms"] = exits
        fast = {"XTRACE_SIMGPU_KERNEL_NS": "200:700"}
        seconds = 1 if self.options.quick else 5
        # The writer needs one processor.
        for threads in sorted({1, max(1, (os.cpu_count() or 2) - 1)}):
            report = self.traced(
                directory, "--threads", threads, "--rate", RATE, "--batches", seconds,
                "--launches", RATE // (100 if self.options.quick else 1), "--depth", 29,
                environment=fast, limit_s=300)
            lost = sum(value for name, value in report["account"].items()
                       if ".lost" in name or ".discarded" in name or ".dropped" in name)
            name = f"{threads} thread{'s' if threads > 1 else ''} at 1 M launches/s each"
            rows.append([name, f"{lost:,}", f"lost of {report['launches']:,}"])
            rows.append(["", tables.number(report["account"]["threads.waited_ns"] / 1e6),
                         "ms waited for space in a ring"])
            rows.append(["", tables.number(report["peak_kib"] / 1024), "MiB peak"])
            self.content[f"rate, {threads} threads"] = report
        self.show("In a process, on the simulated GPU", rows[1:])

    def as_json(self):
        return self.content
