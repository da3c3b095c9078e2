# SPDX-License-Identifier: Apache-2.0
"""The second half of the cases of process_test.py: threads and stacks, limits, forbidden and
removed resources, processes that Python creates.
"""

import glob
import os
import re
import shutil
import stat
import subprocess
import sys

BARE, PRELOADED, INJECTED = "bare", "preloaded", "injected"
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, *[os.pardir] * 3)


class MoreCases:
    # ---- threads and stacks

    def case_short_threads(self):
        self.check(self.life("short_threads"), kernels=10000, hows=(INJECTED,))

    def case_many_threads(self):
        """Threads that launch at the same time are recorded, even if they need more buffers than
        exist."""
        self.check(self.life("many_threads"), kernels=900, hows=(INJECTED,))
        self.check(self.life("many_threads", "together"), kernels=6000, hows=(INJECTED,))

    def case_tiny_stacks(self):
        self.check(self.life("tiny_stacks"), kernels=20)

    def case_small_stacks(self):
        """Tracing adds little to the stack that a launch needs, and records a launch on 3 KB."""
        done = self.run(BARE, [self.args.stack_need, self.args.inject, "1536"])
        assert done.status == 0, done.stdout.decode() + done.stderr
        # The driver of an H100 needs 6,400 bytes: there the tracer adds nothing.
        done = self.run(BARE, [self.args.stack_need, self.args.inject, "64"],
                        environment={"XTRACE_SIMGPU_STACK_BYTES": "5600"})
        assert done.status == 0, done.stdout.decode() + done.stderr
        self.last = self.run(INJECTED, [self.args.stack_need, "--child", "2", "3072"])
        self.check_log(self.last.files(".xtr")[0], closed=True, kernels=2010)
        assert self.account("stacks.lost") == 0 and self.account("stacks.walked") > 0

    def case_cancelled(self):
        """The tracer contains no cancellation point."""
        bare = self.check(self.life("cancelled"), kernels=2001)
        assert bare.stdout == b"2000 launches, cancelled\n", bare.stdout

    def case_last_thread(self):
        """The process ends although threads of the tracer still run."""
        for how in ([], ["other"]):
            assert self.check(self.life("last_thread", *how), kernels=0).status == 0

    def case_main_has_ended(self):
        """After the main thread has ended, libraries and threads are recorded as before."""
        for how, status, name in ([], 4, "late_kernel"), (["begin"], 5, "kernel"):
            assert self.check(self.life("main_has_ended", *how), kernels=5).status == status
            done = self.dump("--kind", "STRING", self.last.files(".xtr")[0])
            assert "text=%s\n" % name in done.stdout, done.stdout
            assert self.account("names.lost") == 0
        # Uses of CUPTI can be detected.
        self.check(self.life("main_has_ended", "begin"), kernels=5)

    def case_launching_handlers(self):
        """Handlers that interrupt the tracer are tested in unit.inject.call."""
        bare = self.check(self.life("launching_handlers"))
        assert b"as it was" in bare.stdout, bare.stdout

    def case_coroutines(self):
        bare = self.check(self.life("coroutines"), kernels=40 * 20 + 1)
        assert bare.stdout == b"40 coroutines ended\n", bare.stdout

    def case_greenlets(self):
        """Greenlets copy their stacks away and back. The test finds invalid reads and stale cache
        entries."""
        for python in (sys.executable, "/usr/bin/python3"):
            found = subprocess.run([python, "-c", "import greenlet"], capture_output=True, check=False)
            if not found.returncode:
                break
        else:
            self.skip("there is no Python here that has greenlet")
        bare = self.check([python, os.path.join(HERE, "greenlets.py")], kernels=500)
        assert bare.stdout == b"20 0\n", bare.stdout
        done = self.dump("--kind", "ACCOUNT", self.last.files(".xtr")[0]).stdout
        for name in ("stacks.mismatched", "python.unreadable"):
            values = re.findall(r"%s\b.*value=(\d+)" % re.escape(name), done)
            assert values and values[-1] == "0", (name, values)

    def case_several_contexts(self):
        self.check(self.life("several_contexts"), kernels=17)

    def case_renewed_contexts(self):
        self.check(self.life("renewed_contexts"), kernels=14)

    def case_late_cuda(self):
        self.check(self.life("late_cuda"), kernels=5)

    def case_closed_library(self):
        """The driver is opened, used and closed, repeatedly."""
        bare = self.check([self.args.loads, "libcuda.so.1", "5"], kernels=20)
        assert bare.stdout == b"0 failures\n" * 5, bare.stdout

    # ---- what a process has

    def case_attributes(self):
        bare = self.check(self.life("attributes"), kernels=3)
        assert b"signal 12: handler 1" in bare.stdout and b"umask 027" in bare.stdout, bare.stdout

    def case_maps(self):
        bare = self.check(self.life("maps"), kernels=22000, hows=(INJECTED,))
        assert bare.stdout == b"mappings are as they were\n", bare.stdout

    def case_fork_handlers(self):
        self.check(self.life("fork_handlers"), kernels=1)

    # ---- limits

    def case_no_descriptors(self):
        self.check(self.life("no_descriptors"), logs=0, said=1, hows=(PRELOADED,))
        assert "cannot record this process" in self.last.said[0], self.last.said

    def case_no_more_descriptors(self):
        self.check(self.life("no_more_descriptors"), kernels=306, said=None)

    def case_limited_memory(self):
        """From almost none to enough: recorded, declined, or recorded with counted losses. The
        program is not affected.
        """
        for mebibytes in (1, 8, 16, 24, 40, 64, 100, 200, 400):
            self.weak(self.life("limited_memory", str(mebibytes)))

    def case_no_more_memory(self):
        self.weak(self.life("no_more_memory"))

    def weak(self, command, **options):
        """The program runs normally. If there is a log, it is valid; if there is none, a message
        says so."""
        bare = self.run("bare", command, **options)
        run = self.run(PRELOADED, command, **options)
        self.same(run, bare)
        logs = run.files(".xtr")
        assert logs or run.said, "no log and no message"
        for log in logs:
            done = self.dump("--check", "--allow-open", log)
            odd = [line for line in done.stdout.splitlines()
                   if "violation" in line and "violation: missing:" not in line]
            assert not odd, (command, odd)
            if "closed" not in done.stdout.splitlines()[-1]:
                assert run.said, "an unclosed log and no message"
        return run

    # ---- what is forbidden or taken away

    def case_forbidden_calls(self):
        """Kernels still have their names."""
        self.check(self.life("forbidden_calls"), kernels=5)
        done = self.dump("--kind", "STRING", self.last.files(".xtr")[0])
        assert "text=kernel\n" in done.stdout, done.stdout

    def case_forbidden_files(self):
        run = self.weak(self.life("forbidden_files"))
        assert any("cannot write the log" in line for line in run.said), run.said

    def case_allowed_calls(self):
        """A filter for all threads kills at calls that are not documented."""
        with open(os.path.join(ROOT, "docs", "LIMITS.md"), encoding="utf-8") as file:
            text = re.search(r"\n## System calls\n.*?\n\n((?:    [^\n]*\n)+)", file.read(), re.S)[1]
        command = self.life("allowed_calls", *text.split(), "brk", "clone", "clone3", "exit_group",
                            "rseq", "rt_sigaction", "set_robust_list")
        bare = self.check(command, kernels=305)
        assert (bare.status, bare.stdout) == (0, b"done\n"), bare.stdout
        # At its end, the process writes to its CPU sampler, which needs no further call.
        run = self.run(INJECTED, command, environment={"XTRACE_CPU": "99"})
        self.same(run, bare)

    def case_deleted_output(self):
        """If the log cannot be written any more, a message says so."""
        self.check(self.life("deleted_output"), logs=0, said=1)
        assert "was deleted" in self.last.said[0], self.last.said

    def case_new_root(self):
        if os.geteuid():
            self.skip("only root can change the root")
        empty = os.path.join(self.folder, "empty")
        os.mkdir(empty)
        self.check(self.life("new_root", "early", empty), logs=0, said=1,
                   hows=(PRELOADED,))
        assert not os.listdir(empty) and "cannot record this process" in self.last.said[0], self.last.said
        self.check(self.life("new_root", "late", empty), kernels=10, spools="any", said=None)
        assert not os.listdir(empty)

    def case_read_only(self):
        """A read-only file system, and a full one."""
        folder = os.path.join(self.folder, "mounted")
        os.mkdir(folder)
        for options, expected in (("size=64k", ""), ("size=64k,ro", "cannot create a log in")):
            run = 'mount -t tmpfs -o %s tmpfs "$0" && exec "$@"' % options
            command = ["unshare", "-m", "sh", "-c", run, folder, *self.life("full_disk")]
            if subprocess.run([*command[:6], "true"], capture_output=True, check=False).returncode:
                self.skip("nothing can be mounted here")
            data = {"XTRACE_DATA": os.path.join(folder, "data")}
            bare = self.run("bare", command, environment=data)
            run = self.run(INJECTED, command, environment=data)
            self.same(run, bare)
            assert bare.stdout == b"done\n" and expected in "".join(run.said), run.said

    def case_full_for_a_while(self):
        """If the disk is full for a second, rings and buffers keep the events."""
        self.check(self.life("full_for_a_while", "500"), kernels=1500, said=2, hows=(PRELOADED,))
        first, second = self.last.said
        assert "cannot write the log: File too large" in first, first
        assert "succeeds again" in second, second
        assert self.account("calls.seen") == self.account("calls.written"), "calls are lost"

    def full_to_the_end(self, launches):
        """Returns the messages of the merge after it has recovered the rest."""
        bare = self.check(self.life("full_to_the_end", launches), closed=False, said=2,
                          hows=(PRELOADED,))
        assert "cannot write the log: File too large" in self.last.said[0], self.last.said
        assert "a write failed; the rest is in the .spool file" in self.last.said[1]
        self.is_quick(10, bare)
        log, = self.last.files(".xtr")
        merged = subprocess.run([self.args.merge, log], capture_output=True, text=True, check=False)
        assert "its process could not write the end of the log" in merged.stderr, merged.stderr
        assert "killed" not in merged.stdout + merged.stderr, merged.stdout + merged.stderr
        self.check_log(log, closed=True)
        return merged

    def case_full_to_the_end(self):
        """The content of the crash buffer is recovered once, and the process does not count as
        killed."""
        self.full_to_the_end("500")
        assert self.account("calls.written") == self.account("calls.seen"), "calls are lost"
        assert self.account("kernels.written") == 510, self.account("kernels.written")

    def case_full_at_full_speed(self):
        """Launches that find no room are dropped at once and counted."""
        merged = self.full_to_the_end("60000")
        assert merged.returncode and "degraded" in merged.stdout, merged.stdout
        lost = self.account("calls.lost.ring_full")
        assert lost > 0, lost
        assert self.account("calls.written") + lost == self.account("calls.seen"), lost

    def case_clock_steps(self):
        self.check(self.life("clock_steps"), kernels=25)

    def case_setuid(self):
        """A setuid program of another user is not recorded, without a message."""
        if os.geteuid():
            self.skip("only root can make a program that is another user's")
        os.chmod(self.folder, 0o755)
        program = os.path.join(self.folder, "loads")
        shutil.copy(self.args.loads, program)
        libraries = os.path.join(self.folder, "libraries")
        shutil.copytree(self.args.simgpu, libraries, symlinks=True)
        tracer = shutil.copy(self.args.inject, self.folder)
        for path in [program, tracer, libraries, *glob.glob(libraries + "/*")]:
            os.chmod(path, 0o755)
        data = os.path.join(self.folder, "data")
        environment = {"CUDA_INJECTION64_PATH": tracer, "LD_PRELOAD": tracer, "XTRACE_DATA": data,
                       "XTRACE_CUPTI": os.path.join(libraries, "libcupti.so"),
                       "LD_LIBRARY_PATH": libraries}
        os.mkdir(data)
        os.chmod(data, 0o777)
        for mode, logs in ((0o4755, 0), (0o755, 1)):
            os.chmod(program, mode)
            try:
                done = subprocess.run([program, os.path.join(libraries, "libcuda.so.1"), "1"],
                                      env=environment, capture_output=True, text=True,
                                      check=False, user=65534, group=65534, extra_groups=[],
                                      cwd="/")
            except PermissionError as error:
                self.skip(f"the folder is not to be read by others: {error}")
            if "Permission denied" in done.stderr or done.returncode != 5:
                assert mode != 0o755, done
                self.skip("the folder is not to be read by others: " + done.stderr + done.stdout)
            assert done.stdout == "0 failures\n" and len(os.listdir(data)) == logs, \
                (oct(mode), done, os.listdir(data))

    # ---- files of others

    def case_planted_links(self):
        """Links at the paths of the log or its crash buffer are not followed, and their targets
        stay."""
        precious = os.path.join(self.folder, "precious")
        for planted in (".xtr", ".xtr.spool"):
            with open(precious, "w", encoding="utf-8") as file:
                file.write("precious\n")
            folder = os.path.join(self.folder, "planted" + planted)
            os.mkdir(folder, 0o755)
            host = os.uname().nodename
            # Only the program knows its pid, so it plants the link itself.
            script = 'ln -s "$1" "$2/$3.$$%s" && exec "$4" main_return' % planted
            command = ["/bin/sh", "-c", script, "sh", precious, folder, host, self.args.life]
            run = self.run(INJECTED, command, environment={"XTRACE_DATA": folder})
            assert run.status == 7, run.stderr
            with open(precious, encoding="utf-8") as file:
                assert file.read() == "precious\n", planted
            for name in os.listdir(folder):
                path = os.path.join(folder, name)
                if not os.path.islink(path):
                    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600, name

        if os.geteuid() == 0:  # only root can make a link for another user
            self.planted_folder()

    def planted_folder(self):
        """The folder is a link that another user has made."""
        elsewhere, link = (os.path.join(self.folder, name) for name in ("elsewhere", "linked"))
        os.mkdir(elsewhere, 0o777)
        os.symlink(elsewhere, link)
        os.lchown(link, 65534, 65534)
        run = self.run(INJECTED, self.life("main_return"), environment={"XTRACE_DATA": link})
        assert run.status == 7, run.stderr
        assert not os.listdir(elsewhere), os.listdir(elsewhere)
        assert any("a link of another user" in line for line in run.said), run.said
        os.lchown(link, 0, 0)
        assert self.run(INJECTED, self.life("main_return"),
                        environment={"XTRACE_DATA": link}).status == 7
        assert len(os.listdir(elsewhere)) == 1, os.listdir(elsewhere)

    def case_private_files(self):
        """With any umask, only the owner can read log, crash buffer and folder."""
        old = os.umask(0)
        try:
            self.check(self.life("abort"), closed=False, hows=(INJECTED,))
        finally:
            os.umask(old)
        modes = {stat.S_IMODE(os.stat(path).st_mode) for path in self.last.files("")}
        assert modes == {0o600}, modes
        assert stat.S_IMODE(os.stat(self.last.data).st_mode) == 0o700

    # ---- processes as Python makes them

    def case_multiprocessing_fork(self):
        """These children end by _exit(), right after their work."""
        self.check([sys.executable, os.path.join(HERE, "multiple.py"), "fork"], logs=None)
        logs = self.last.files(".xtr")
        kernels = [re.search(r"(\d+) kernels", self.dump("--check", log).stdout) for log in logs]
        assert 1 <= len(logs) <= 2 and sum(int(found[1]) for found in kernels) == 10, kernels

    def case_multiprocessing_spawn(self):
        self.check([sys.executable, os.path.join(HERE, "multiple.py"), "spawn"], logs=None)
        assert 2 <= len(self.last.files(".xtr")) <= 3, self.last.files("")

    def case_process_tree(self):
        self.check([sys.executable, os.path.join(HERE, "multiple.py"), "tree"], logs=3)

    # ---- the debug log

    def case_debug_log(self):
        """XTRACE_DEBUG writes a file beside the log, and nothing that the program could see."""
        def lines():
            files = self.last.files(".xtr.debug")
            assert len(files) == 1, files
            assert stat.S_IMODE(os.stat(files[0]).st_mode) == 0o600
            with open(files[0], encoding="utf-8") as text:
                return text.read()

        self.check(self.life("descriptors"))
        assert not self.last.files(".debug")
        self.check(self.life("main_return"), kernels=5, environment={"XTRACE_DEBUG": "all"})
        found = set(re.findall(r"^\d+\.\d{6} (\w+) ", lines(), re.M))
        assert found >= {"process", "writer", "cupti", "stack", "python", "memory"}, found
        assert "process recording starts\n" in lines() and "writer  log: closed\n" in lines()
        self.check(self.life("descriptors"), environment={"XTRACE_DEBUG": "cupti,process"})
        assert set(re.findall(r"^\S+ (\w+) ", lines(), re.M)) == {"process", "cupti"}
        self.check(self.life("main_return"), kernels=5, said=1,
                   environment={"XTRACE_DEBUG": "stack,writr"})
        assert self.last.said == ["xtrace: cannot use 'writr' in XTRACE_DEBUG: unknown domain; "
                                  "did you mean 'writer'?\n"], self.last.said
        assert set(re.findall(r"^\S+ (\w+) ", lines(), re.M)) == {"stack"}
