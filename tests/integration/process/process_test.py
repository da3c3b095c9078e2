#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs programs with and without the tracer: output, exit status and everything that they print
about themselves must be equal.

Each case runs without the tracer, then preloaded, then injected by the driver. Each case states
how many messages the tracer prints to stderr, in lines that begin with "xtrace: ". The
independent dumper checks the logs.
"""

import argparse
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time

from more_cases import MoreCases

SKIPPED = 77
ANY = "any"
BARE, PRELOADED, INJECTED = "bare", "preloaded", "injected"


class Run:
    """One run of a program, its output and files."""

    def __init__(self, test, how, command, *, environment=None, closed=(), file_bytes=None,
                 kill_at=None, cwd=None):
        self.how = how
        self.cwd = cwd or tempfile.mkdtemp(prefix=how + ".", dir=test.folder)
        self.data = os.path.join(self.cwd, "data")
        variables = {name: value for name, value in os.environ.items()
                     if not name.startswith(("XTRACE_", "CUDA_", "NVTX_", "LD_"))}
        variables.update(LD_LIBRARY_PATH=test.args.simgpu, XTRACE_DATA=self.data,
                         XTRACE_CUPTI=os.path.join(test.args.simgpu, "libcupti.so"),
                         XTRACE_SIMGPU_KERNEL_NS="1000:2000")
        if how == PRELOADED:
            variables["LD_PRELOAD"] = test.args.inject
        if how == INJECTED:
            variables["CUDA_INJECTION64_PATH"] = test.args.inject
        variables.update(environment or {})

        def prepare():
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python ignores these two
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            if file_bytes is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))
            for descriptor in closed:
                os.close(descriptor)

        start = time.monotonic()
        process = subprocess.Popen(command, env=variables, cwd=self.cwd, preexec_fn=prepare,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        if kill_at:
            said = process.stdout.read(len(kill_at))
            process.kill()
            self.stdout, stderr = process.communicate(timeout=30)
            self.stdout = said + self.stdout
        else:
            self.stdout, stderr = process.communicate(timeout=30)
        self.seconds = time.monotonic() - start
        self.status = process.returncode
        lines = stderr.decode().splitlines(keepends=True)
        self.said = [line for line in lines if line.startswith("xtrace: ")]
        self.stderr = "".join(line for line in lines if not line.startswith("xtrace: "))

    def files(self, ending):
        try:
            return sorted(os.path.join(self.data, name) for name in os.listdir(self.data)
                          if name.endswith(ending))
        except FileNotFoundError:
            return []


class Test(MoreCases):
    def __init__(self, args, folder):
        self.args, self.folder = args, folder

    def run(self, how, command, **options):
        return Run(self, how, command, **options)

    def skip(self, why):
        print("skipped: " + why)
        sys.exit(SKIPPED)

    def life(self, name, *arguments):
        return [self.args.life, name, *arguments]

    def same(self, run, bare):
        """Expects the same results as without the tracer."""
        where = "%s: " % run.how
        assert run.status == bare.status, "%sstatus %s, bare %s\n%s%s" % (
            where, run.status, bare.status, "".join(run.said), run.stderr)
        stdout = run.stdout.replace(run.cwd.encode(), bare.cwd.encode())
        assert stdout == bare.stdout, "%sstdout\n%s\nbare\n%s" % (
            where, stdout.decode(), bare.stdout.decode())
        assert run.stderr == bare.stderr, "%sstderr\n%s\nbare\n%s" % (
            where, run.stderr, bare.stderr)

    def dump(self, *arguments):
        return subprocess.run([sys.executable, "-B", self.args.dump, *arguments],
                              capture_output=True, text=True)

    def check_log(self, log, closed, kernels=None):
        done = self.dump("--check", *([] if closed else ["--allow-open"]), log)
        assert done.returncode == 0, done.stdout + done.stderr
        found = re.search(r"good: \d+ chunks, (\d+) calls, (\d+) kernels, (\w+)", done.stdout)
        assert found and (found[3] == "closed") == closed, done.stdout
        if kernels is not None:
            assert int(found[2]) == kernels, "%s, of %d kernels" % (done.stdout, kernels)

    def account(self, name):
        """A counter in the log of the last traced run."""
        text = self.dump("--kind", "ACCOUNT", *self.last.files(".xtr")).stdout
        return int(re.findall(r"\bname=%s\s+value=(\d+)" % re.escape(name), text)[-1])

    def check(self, command, *, kernels=None, logs=1, closed=True, said=0, spools=None,
              hows=(PRELOADED, INJECTED), **options):
        """Runs it bare and traced, and compares. kernels: expected in the log, if there is one.
        said: number of messages of the tracer; None for any.
        """
        bare = Run(self, BARE, command, **options)
        assert not bare.files("") and not bare.said, "the bare run is not bare"
        for how in hows:
            run = Run(self, how, command, **options)
            self.same(run, bare)
            assert said is None or len(run.said) == said, "%s: the tracer says:\n%s" % (how, "".join(run.said))
            assert logs is None or len(run.files(".xtr")) == logs, run.files("")
            # Only an unclosed log has a crash buffer.
            left = len(run.files(".spool"))
            assert spools is ANY or left == (spools if spools is not None else 0 if closed else logs), run.files("")
            for log in run.files(".xtr"):
                self.check_log(log, closed, kernels if logs == 1 else None)
            self.last = run
        return bare

    def is_quick(self, seconds, bare):
        """A busy machine delays the bare run, too."""
        assert self.last.seconds < seconds + 10 * bare.seconds, (self.last.seconds, bare.seconds)

    # ---- ends

    def case_main_return(self):
        assert self.check(self.life("main_return"), kernels=5).status == 7

    def case_exit_in_thread(self):
        assert self.check(self.life("exit_in_thread"), kernels=2).status == 9

    def case__exit(self):
        """Except after a raw system call, the log has the records that CUPTI still held."""
        for how in ([], ["found"], ["standard"], [self.args.plugin]):
            assert self.check(self.life("_exit", *how), kernels=5).status == 5
        for how in ([], ["by pointer"]):
            assert self.check([self.args.leaves, *how], kernels=0).status == 5
        assert self.check(self.life("_exit", "raw"), closed=False, hows=(INJECTED,)).status == 5

    def case__exit_while_launching(self):
        assert self.weak(self.life("_exit_while_launching")).status == 5

    def case_exit_while_launching(self):
        """Launches of another thread until the end are in the log, or counted by cause."""
        counted = os.path.join(self.folder, "launched")
        assert self.check(self.life("exit_while_launching", counted)).status == 5
        with open(counted, "rb") as file:
            launched = int.from_bytes(file.read(), sys.byteorder)
        lost = self.account("calls.lost.leaving") + self.account("calls.lost.after_end")
        calls = sum(int(count) for count in re.findall(
            r"^kernel_launch (\d+)", self.dump("--calls-total", self.last.files(".xtr")[0]).stdout, re.M))
        assert calls + lost == launched, (calls, lost, launched)
        assert self.account("calls.skipped") == 0

    def case__exit_in_handler(self):
        bare = self.check(self.life("_exit_in_handler", "idle"), kernels=5)
        assert bare.status == 5
        # The handler interrupted the loader, which holds a lock that the tracer needs, so nothing
        # waits.
        bare = self.check(self.life("_exit_in_handler", "loading", self.args.plugin), closed=False, said=1)
        assert bare.status == 5 and "loads a library" in self.last.said[0], self.last.said
        # In a CUDA call, nothing waits.
        slow = {"XTRACE_SIMGPU_KERNEL_NS": "20000000000:20000000000"}
        bare = self.check(self.life("_exit_in_handler", "busy"), closed=False, environment=slow)
        assert bare.status == 5
        self.is_quick(10, bare)

    def case__exit_hanging_flush(self):
        """_exit() waits for CUPTI like exit(). A second thread that ends the program meanwhile
        comes second."""
        for name in ("_exit", "_exit_twice"):
            bare = self.check(self.life(name), closed=False, said=None, hows=(INJECTED,),
                              environment={"XTRACE_SIMGPU_FAULT": "hang_flush"})
            assert bare.status == 5 and "the rest is in the .spool file" in self.last.said[-1], self.last.said
            assert len(self.last.said) == 1, self.last.said
            self.is_quick(3.5, bare)

    def case__exit_cancelled(self):
        """The process ends with the requested status, however long it takes."""
        for how in ([], ["exit"]):
            bare = self.check(self.life("_exit_cancelled", *how), closed=False, said=1, hows=(INJECTED,),
                              environment={"XTRACE_SIMGPU_FAULT": "hang_flush"})
            assert bare.status == 5 and not bare.stdout, bare.stdout

    def case__exit_on_small_stack(self):
        """A signal handler with two kilobytes of stack prints a message."""
        bare = self.check(self.life("_exit_on_small_stack", "2048"), closed=False, said=1, hows=(INJECTED,),
                          environment={"XTRACE_SIMGPU_FAULT": "hang_flush"})
        assert bare.status == 5

    def case_quick_exit(self):
        bare = self.check(self.life("quick_exit"), kernels=5)
        assert (bare.status, bare.stdout) == (6, b"at_quick_exit\n")

    def case_abort(self):
        assert self.check(self.life("abort"), closed=False).status == -signal.SIGABRT

    def case_terminate(self):
        assert self.check(self.life("terminate"), closed=False).status == -signal.SIGTERM

    def case_fault(self):
        bare = self.check(self.life("fault"), closed=False)
        assert (bare.status, bare.stdout) == (-signal.SIGSEGV, b"signal 11\n")

    def case_pthread_exit(self):
        assert self.check(self.life("pthread_exit"), kernels=6).status == 4

    def case_atexit(self):
        # The tracer's exit handler runs between these two: it records the launch of the later one
        # and counts those of the other.
        for launches in (1, 30000):
            bare = self.check(self.life("atexit", str(launches)), kernels=2)
            assert bare.stdout == b"at exit\nafter the end\n"
            assert self.account("calls.lost.after_end") == launches
            # No thread waits for a buffer that has no reader any more.
            assert self.account("buffers.waited_ns") < 500000000

    # ---- what a process sees

    def case_errno(self):
        assert b"errno" in self.check(self.life("errno")).stdout

    def case_environment(self):
        bare = self.check(self.life("environment"), environment={"SOMETHING": "of the user's"})
        assert bare.stdout.count(b"SOMETHING=of the user's") == 2
        # The driver loads the library while other threads may read the environment.
        assert b"the environment has not moved" in bare.stdout, bare.stdout
        # Preloaded, the library sets both variables, unless one is set.
        show = ["/bin/sh", "-c", "echo $CUDA_INJECTION64_PATH $NVTX_INJECTION64_PATH"]
        ours = self.args.inject.encode()
        for given, expected in (({}, ours + b" " + ours),
                                ({"NVTX_INJECTION64_PATH": "/x"}, ours + b" /x")):
            run = Run(self, PRELOADED, show, environment=given)
            assert run.stdout == expected + b"\n", run.stdout

    def case_descriptors(self):
        assert self.check(self.life("descriptors")).stdout.count(b"descriptor ") == 6

    def case_signals(self):
        self.check(self.life("signals"), kernels=8001)

    def case_exceptions(self):
        if not self.args.exceptions:
            self.skip("there is no C++ compiler")
        bare = self.check([self.args.exceptions])
        assert b"carried: CUDA error" in bare.stdout, bare.stdout
        bare = self.check([self.args.exceptions, "uncaught"], closed=False, hows=(INJECTED,))
        assert bare.status == -signal.SIGABRT and "terminate called" in bare.stderr

    # ---- children

    def case_fork(self):
        bare = self.check(self.life("fork"), kernels=5)
        assert b"status 0xb00" in bare.stdout and b"status 0xc00" in bare.stdout, bare.stdout

    def case_fork_before(self):
        for how in ([], ["_exit"]):
            assert b"the child's" in self.check(self.life("fork_before", *how), logs=2).stdout
            done = [self.dump("--check", log).stdout for log in self.last.files(".xtr")]
            assert sorted(re.findall(r"(\d+) kernels", "".join(done))) == ["2", "3"], done
            identities = [re.search(r"process\.identity\tvalue=([0-9a-f]{32})$",
                                    self.dump("--kind", "META", log).stdout, re.M).group(1)
                          for log in self.last.files(".xtr")]
            assert len(set(identities)) == 2, identities

    def case_bare_children(self):
        bare = self.check(self.life("bare_children"), kernels=5)
        expected = ["child: status %#x" % (status << 8) for status in [13] * 50 + [14, 15, 16]]
        assert bare.stdout.decode().splitlines() == expected, bare.stdout
        done = self.dump("--calls-total", self.last.files(".xtr")[0])
        assert re.search(r"^kernel_launch 5$", done.stdout, re.M), done.stdout

    def case_same_pid(self):
        """The first process of a container clones another container by hand: its memory is not the
        tracer's."""
        apart = ["unshare", "--pid", "--fork", "--mount-proc"]
        if subprocess.run([*apart, "true"], capture_output=True, check=False).returncode:
            self.skip("no namespace of pids can be made here")
        bare = self.check([*apart, *self.life("same_pid")], kernels=5)
        assert bare.stdout == b"pid 1\nchild: status 0xe00\n", bare.stdout
        done = self.dump("--calls-total", self.last.files(".xtr")[0])
        assert re.search(r"^kernel_launch 5$", done.stdout, re.M), done.stdout

    def exec_case(self, name):
        """The new program is traced too, into its own log, and inherits no descriptor."""
        bare = self.check(self.life(name), logs=2)
        assert bare.stdout.count(b"descriptor ") == 6, bare.stdout

    def case_fork_exec(self):
        self.exec_case("fork_exec")

    def case_vfork_exec(self):
        self.exec_case("vfork_exec")

    def case_posix_spawn(self):
        self.exec_case("posix_spawn")

    def case_system(self):
        assert b"system: 0x300" in self.check(self.life("system"), kernels=5).stdout

    def case_exec(self):
        # The first log was never closed, because the process became another program.
        bare = Run(self, BARE, self.life("exec"))
        for how in (PRELOADED, INJECTED):
            run = Run(self, how, self.life("exec"))
            self.same(run, bare)
            first, second = sorted(run.files(".xtr"), key=lambda name: "-2." in name)
            self.check_log(first, closed=False)
            self.check_log(second, closed=True, kernels=1)
            assert run.files(".spool") == [first + ".spool"], run.files("")

    def case_daemon(self):
        bare = self.check(self.life("daemon"), kernels=4)
        assert b"the daemon has worked" in bare.stdout, bare.stdout

    def case_fork_under_load(self):
        assert self.check(self.life("fork_under_load")).stdout == b"0 children failed\n"

    def case_fork_and_load(self):
        bare = self.check(self.life("fork_and_load", self.args.plugin), kernels=1)
        assert bare.stdout == b"0 children failed\n", bare.stdout

    def case_fork_in_loader(self):
        """Simulates a signal handler that interrupts dlopen()."""
        bare = self.check(self.life("fork_in_loader", self.args.plugin), kernels=5)
        assert bare.stdout == 400 * b"child: status 0x1100\n", bare.stdout

    # ---- descriptors, folders, disks

    def case_closefrom(self):
        """The program closes all descriptors. The tracer opens the log again, which has all
        kernels. The tracer writes nothing to the program's files.
        """
        bare = self.check(self.life("closefrom"), kernels=14)
        assert b"54 bytes" in bare.stdout, bare.stdout

    def case_full_stderr(self):
        """A message does not block the program if stderr is a full pipe."""
        wrong = {"XTRACE_API": "nonsense"}
        assert self.check(self.life("main_return"), kernels=5, said=1, environment=wrong).status == 7
        assert self.check(self.life("full_stderr"), kernels=5, environment=wrong).status == 5

    def case_other_stderr(self):
        """Messages do not go to a file or connection of the program that has descriptor 2."""
        path = os.path.join(self.folder, "file")
        wrong = {"XTRACE_API": "nonsense"}
        for arguments, hows in ((["socket"], (PRELOADED, INJECTED)), (["file", path], (PRELOADED, INJECTED)),
                                (["log", path], (PRELOADED,))):
            bare = self.check(self.life("other_stderr", *arguments), kernels=5, environment=wrong, hows=hows)
            assert (bare.status, bare.stdout) in ((5, b"\n"), (5, b"no network\n")), bare.stdout

    def case_chdir(self):
        """If the program changes its folder, the library and the log are found."""
        self.check(self.life("chdir", "/", "/usr"), kernels=2)
        # A relative path refers to the folder in which CUDA started.
        self.check(self.life("chdir", ".", "/"), kernels=2, environment={"XTRACE_DATA": "data"})
        where = os.path.join(self.folder, "relative")
        os.makedirs(where)
        os.symlink(self.args.inject, os.path.join(where, "library.so"))
        preload = {"LD_PRELOAD": "./library.so"}
        run = Run(self, BARE, self.life("chdir", "/", "/usr"), cwd=where, environment=preload)
        assert run.status == 0 and not run.said, run.said
        self.check_log(run.files(".xtr")[0], closed=True, kernels=2)
        # The same for children that start in another folder.
        run = Run(self, BARE, ["/bin/sh", "-c", "echo $CUDA_INJECTION64_PATH"], cwd=where,
                  environment=preload)
        assert run.stdout.decode() == os.path.realpath(self.args.inject) + "\n", run.stdout

    def case_full_disk(self):
        """A limit on file sizes simulates a full disk. SIGXFSZ kills a program that does not handle
        it. The part that was written is a valid log.
        """
        for file_bytes in (0, 30, 2000, 6000):
            bare = Run(self, BARE, self.life("full_disk"), file_bytes=file_bytes)
            assert bare.stdout == b"done\n"
            run = Run(self, PRELOADED, self.life("full_disk"), file_bytes=file_bytes)
            self.same(run, bare)
            # If nothing can be written, the end may time out, with a message.
            assert len([line for line in run.said if "did not finish" not in line]) <= 2, run.said
            if file_bytes < 64:
                assert len(run.said) == 1 and "cannot record this process" in run.said[0], run.said
                assert not run.files(""), run.files("")
            for log in run.files(".xtr"):
                done = self.dump("--check", "--allow-open", log)
                odd = [line for line in done.stdout.splitlines()
                       if "violation" in line and "violation: missing:" not in line]
                assert not odd, "%d bytes: %s" % (file_bytes, odd)
            for spool in run.files(".spool"):
                assert self.dump("--check", spool).returncode == 0

    def case_closed_streams(self):
        """Started with closed standard streams: the program gets their numbers, not the tracer."""
        for closed in ((0,), (1,), (0, 1, 2)):
            texts = []
            for how in (BARE, PRELOADED, INJECTED):
                report = os.path.join(self.folder, "report")
                run = Run(self, how, self.life("closed_streams", report), closed=closed)
                with open(report, encoding="utf-8") as file:
                    texts.append((run.status, run.stdout, run.stderr, file.read()))
                if how != BARE:
                    assert len(run.said) == 0, run.said
                    self.check_log(run.files(".xtr")[0], closed=True, kernels=4)
            assert texts[0] == texts[1] == texts[2], texts

    def case_killed(self):
        """The log has what was flushed. The crash buffer stays and has the rest."""
        self.check(self.life("killed"), closed=False, kill_at=b"ready\n")
        done = self.dump("--calls-total", self.last.files(".xtr")[0])
        assert done.returncode == 0, done.stderr
        assert re.search(r"^kernel_launch [1-9]", done.stdout, re.M), done.stdout
        done = self.dump("--check", self.last.files(".spool")[0])
        assert done.returncode == 0 and "good: a spool of " in done.stdout, done.stdout

    # ---- no CUDA, no CUPTI, no room, no answer

    def case_other_programs(self):
        for command in (["/bin/echo", "hello"], ["/bin/sh", "-c", "echo $0; exit 4"],
                        ["/bin/ls", "/"], ["/bin/cat", "/proc/self/status", "/not/there"],
                        [sys.executable, "-c", "import threading, sys; sys.exit(3)"]):
            if "status" in command[1]:
                command[1] = "/etc/passwd"
            self.check(command, logs=0)

    def refused(self, life, expected, said=1, **options):
        """Not traced: one message says why, and no file is left behind."""
        self.check(life, logs=0, said=said, **options)
        assert self.last.said[0].startswith("xtrace: cannot record this process: "), self.last.said
        assert expected in self.last.said[0], self.last.said
        assert self.last.said[0].count("\n") == 1

    def case_no_cupti(self):
        """Any error of CUPTI leaves the program unaffected."""
        text = os.path.join(self.folder, "libcupti.so.13")
        with open(text, "w", encoding="utf-8") as file:
            file.write("no library\n")
        for path, expected in (("/not/there/libcupti.so", "/not/there/libcupti.so"),
                               (text, "cannot load "),
                               (self.args.plugin, "lacks the function ")):
            self.refused(self.life("main_return"), expected, environment={"XTRACE_CUPTI": path})
        for fault, expected in (("version:16", "too old"),
                                ("version:140000", "is newer than the driver"),
                                ("subscriber_taken",
                                 "another tool already uses CUPTI in this process: CUPTI for other-tool"),
                                ("fail:cuptiActivityEnable", "cannot record kernels"),
                                ("fail:cuptiSubscribe", "refuses a subscription")):
            self.refused(self.life("errno" if "taken" in fault else "main_return"), expected,
                         environment={"XTRACE_SIMGPU_FAULT": fault}, hows=(INJECTED,))

    def case_many_logs(self):
        """In containers, programs often have the same pid and host name. Each log still gets its
        own name."""
        script = ('mkdir -p "$XTRACE_DATA"; for n in "" $(seq -f -%g 2 99); do '
                  ': > "$XTRACE_DATA/$1.$$$n.xtr"; done; exec "$2" main_return')
        run = Run(self, INJECTED, ["/bin/sh", "-c", script, "sh", re.sub(r"[/\s]", "_", os.uname().nodename),
                                   self.args.life])
        logs = [log for log in run.files(".xtr") if os.path.getsize(log)]
        assert run.status == 7 and not run.said, run.said
        assert len(run.files(".xtr")) == 100 and len(logs) == 1, logs
        assert re.search(r"-[0-9a-f]{16}\.xtr$", logs[0]), logs
        self.check_log(logs[0], closed=True, kernels=5)

    def case_no_directory(self):
        """The log cannot be created: below a file, in a missing folder, or with a name that is too
        long."""
        below_file = os.path.join(self.folder, "file")
        with open(below_file, "w", encoding="utf-8"):
            pass
        for data in (os.path.join(below_file, "data"), "/not/there/data", "/proc/data",
                     "/tmp/" + "x" * 300, "/tmp/" + "x/" * 3000):
            # Descriptors and environment do not change after a failed attempt.
            self.refused(self.life("descriptors"), "cannot create a log in ",
                         environment={"XTRACE_DATA": data})

    def case_hanging_flush(self):
        """The end waits for CUPTI with a timeout. The crash buffer has the records that CUPTI held."""
        bare = self.check(self.life("main_return"), closed=False, said=None, hows=(PRELOADED,),
                          environment={"XTRACE_SIMGPU_FAULT": "hang_flush"})
        assert bare.status == 7 and "the rest is in the .spool file" in self.last.said[-1], self.last.said
        self.is_quick(3.5, bare)


def main():
    parser = argparse.ArgumentParser()
    for name in ("inject", "simgpu", "dump", "merge", "leaves", "life", "loads", "plugin",
                 "stack-need"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--exceptions")
    parser.add_argument("case")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="xtrace-process.") as folder:
        try:
            getattr(Test(args, folder), "case_" + args.case)()
        except AssertionError as error:
            sys.exit("%s: %s" % (args.case, error))


if __name__ == "__main__":
    main()
