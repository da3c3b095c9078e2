#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Installs a wheel of the build tree into a new environment, and uses everything it offers.

Everything is recorded on the simulated GPU.
"""
import argparse
import base64
import csv
import hashlib
import html
import os
import pathlib
import platform
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile

SOURCE = pathlib.Path(__file__).resolve().parents[3]
options = None
SHARED = None  # folder of the environment, the wheel and a recording
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(SOURCE / "tests/integration/python")}


def run(*command, status=0, **settings):
    settings.setdefault("env", ENVIRONMENT)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, **settings)
    if done.returncode != status:
        raise AssertionError(f"{command} ended with {done.returncode}: {done.stdout[-2000:]}")
    return done.stdout


def build(out, tree):
    wheel = run(sys.executable, SOURCE / "tools/wheel/build.py", "--glibc",
                platform.libc_ver()[1], tree, out, env={**ENVIRONMENT, "SOURCE_DATE_EPOCH": "0"})
    return pathlib.Path(wheel.strip())


def setUpModule():
    global SHARED, wheel, python, xtrace, sample
    SHARED = tempfile.TemporaryDirectory()
    top = pathlib.Path(SHARED.name)
    run("cmake", "--install", options.build, "--prefix", top / "tree")
    wheel = build(top / "dist", top / "tree")
    run(sys.executable, "-m", "venv", top / "venv")
    python, xtrace = str(top / "venv/bin/python"), str(top / "venv/bin/xtrace")
    run(python, "-m", "pip", "--disable-pip-version-check", "install", "--no-index", wheel)
    sample = top / "venv/share/xtrace/samples/llm_inference"
    run(xtrace, "record", "--simulate", sample, "--tokens", "2", cwd=top)


def tearDownModule():
    SHARED.cleanup()


class Test(unittest.TestCase):
    def setUp(self):
        self.top = pathlib.Path(SHARED.name)

    def record(self, *arguments):
        """Records parts.py. Returns the numbers of its launches that were recorded."""
        with tempfile.TemporaryDirectory() as folder:
            run(xtrace, "record", "--simulate", "-o", f"{folder}/trace", *arguments, python,
                "-W", "error", SOURCE / "tests/integration/wheel/parts.py")
            return self.grids(f"{folder}/trace")

    def grids(self, trace):
        return eval(self.run_python(
            f"rows = xtrace_gpu.load({trace!r}).query('SELECT grid_x FROM gpu_work w JOIN shape s'"
            " ' ON s.id = w.shape_id ORDER BY grid_x')\n"
            "print([row['grid_x'] for row in rows])"))

    def run_python(self, text, **settings):
        return run(python, "-c", "import xtrace_gpu\n" + text, cwd=self.top, **settings)

    def test_same_bytes(self):
        again = build(self.top / "again", self.top / "tree")
        self.assertEqual(wheel.read_bytes(), again.read_bytes())

    def test_record_of_files(self):
        with zipfile.ZipFile(wheel) as file:
            info = [name for name in file.namelist() if name.endswith("/RECORD")]
            rows = list(csv.reader(file.read(info[0]).decode().splitlines()))
            self.assertEqual(sorted(row[0] for row in rows), sorted(file.namelist()))
            for name, digest, size in rows:
                if name != info[0]:
                    content = file.read(name)
                    found = base64.urlsafe_b64encode(hashlib.sha256(content).digest())
                    self.assertEqual(digest, "sha256=" + found.rstrip(b"=").decode(), name)
                    self.assertEqual(int(size), len(content), name)

    def test_refuses_new_glibc(self):
        text = run(sys.executable, SOURCE / "tools/wheel/build.py", "--glibc", "2.2",
                   self.top / "tree", self.top / "never", status=1)
        self.assertRegex(text, "needs .* of glibc 2")
        self.assertFalse((self.top / "never").exists())

    def test_commands(self):
        version = run(xtrace, "version")
        self.assertIn(wheel.name.split("-")[1], version)
        self.assertEqual(run(xtrace + "-merge", "--version"), run(xtrace, "merge", "--version"))
        self.assertEqual(run(python, "-m", "xtrace_gpu", "version"), version)
        self.assertEqual({path.name for path in (self.top / "venv/bin").glob("xtrace*")},
                         {"xtrace", "xtrace-merge"})
        self.assertIn("GPU time", run(xtrace, "report", "--text", cwd=self.top))

    def test_python_of_a_script(self):
        script = self.top / "which.py"
        script.write_text("import sys; print(sys.argv, sys.prefix)")
        text = run(python, "-m", "xtrace_gpu", "record", "-s", "-o", "none", "which.py", "-x",
                   cwd=self.top)
        self.assertIn(f"['which.py', '-x'] {self.top}/venv\n", text)
        # Without activation of the environment, too.
        text = run(xtrace, "record", "-s", "-o", "none", "which.py", cwd=self.top)
        self.assertIn(f"['which.py'] {self.top}/venv\n", text)
        chosen = {**ENVIRONMENT, "XTRACE_INTERPRETER": sys.executable}
        text = run(xtrace, "record", "-s", "-o", "none", "which.py", cwd=self.top, env=chosen)
        self.assertIn(f"['which.py'] {sys.prefix}\n", text)

    def test_options(self):
        self.run_python("""
for options, why in ((["--html", "x.html"], "cannot use --html"), (["--help"], "cannot use --help"),
                     (["-o", "x.db"], "cannot use -o"), (["other"], "'other' is no option"),
                     (["--bogus"], "cannot use --bogus"), (["--sqli=x"], "cannot use --sqli"),
                     (["-ox.db"], "cannot use -ox.db"), (["--embed-symbols"], "cannot use --embed"),
                     (["--from", "2s", "other.xtr"], "'other.xtr' is no option"),
                     (["--from"], "option '--from' needs a value")):
    for function in xtrace_gpu.load, xtrace_gpu.report:
        try:
            function("xtrace.data", *options)
        except xtrace_gpu.Error as error:
            assert str(error).startswith(why), error
        else:
            raise AssertionError(options)
assert len(xtrace_gpu.load("xtrace.data", "--top", 1).summary["kernels"]["rows"]) == 1
""")

    def test_names(self):
        self.run_python("""
tables = xtrace_gpu.load()
assert repr(tables).startswith("<tables: findings, "), tables
assert isinstance(tables["work"][:3], xtrace_gpu.Table) and len(tables["work"][:3]) == 3
assert "print() shows it as text" in repr(xtrace_gpu.report())
assert xtrace_gpu.__version__[0].isdigit()
for get, kind, why in ((lambda: tables["top_kernel"], KeyError, "did you mean top_kernels?"),
                       (lambda: tables.query("SELECT x FROM y"), xtrace_gpu.Error, "no such table")):
    try:
        get()
    except kind as error:
        assert why in str(error), error
    else:
        raise AssertionError(why)
""")

    def test_recording(self):
        self.assertEqual(self.record("--paused"), [1, 3, 5, 7, 9])
        self.assertEqual(self.record(), list(range(1, 11)))

    def test_recording_that_goes_on(self):
        text = run(xtrace, "record", "-q", "-s", "-o", "live", python, "-c", """
import sys, time, xtrace_gpu
import gpu
gpu.launch()
deadline = time.monotonic() + 20
while not xtrace_gpu.load("live")["work"] and time.monotonic() < deadline:
    time.sleep(0.1)
print(len(xtrace_gpu.load("live")["work"]), "k" in str(xtrace_gpu.report("live")))
""", cwd=self.top)
        self.assertEqual(text, "1 True\n")

    def test_recording_does_nothing_elsewhere(self):
        self.run_python("import os\nbefore = dict(os.environ)\n"
                        "with xtrace_gpu.recording():\n    assert dict(os.environ) == before")

    def test_recording_only_warns(self):
        text = self.run_python(
            "import xtrace_gpu._recording as part, warnings\n"
            "part._state = lambda: 'controlled'\n"
            "with xtrace_gpu.recording(): print('in the body')",
            env={**ENVIRONMENT, "XTRACE_DATA": "/nowhere", "XTRACE_START": "paused"})
        self.assertRegex(text, r"RuntimeWarning: .+\n(.*\n)*in the body")

    def test_recording_without_recovery_file(self):
        # The tracer is mapped, as CUDA_INJECTION64_PATH does, and has no recovery file.
        folder = self.top / "lost"
        folder.mkdir()
        library = folder / "libxtrace_inject.so"
        library.write_bytes(b"x" * 4096)
        text = self.run_python(
            f"import mmap\nfile = open({str(library)!r}, 'r+b')\n"
            "mapping = mmap.mmap(file.fileno(), 0)\n"
            "with xtrace_gpu.recording(): print('in the body')",
            env={**ENVIRONMENT, "XTRACE_DATA": "/nowhere", "XTRACE_START": "paused"})
        self.assertRegex(text, r"RuntimeWarning: cannot start .* no recovery file(.*\n)*in the body")

    def test_recording_of_functions(self):
        text = self.run_python("""
import asyncio, os, warnings
import xtrace_gpu._recording as part
part._switch = lambda command: print(command)
os.environ.update(XTRACE_DATA="/nowhere", XTRACE_START="paused")
@xtrace_gpu.recording
def plain():
    print("plain")
@xtrace_gpu.recording
async def coroutine():
    await asyncio.sleep(0)
    print("coroutine")
plain()
asyncio.run(coroutine())
warnings.simplefilter("error")
try:
    @xtrace_gpu.recording
    def generator():
        yield
except RuntimeWarning as warning:
    print(warning)
""")
        self.assertEqual(text.split(), ["start", "plain", "stop", "start", "coroutine", "stop",
                                        *"generator is a generator: use 'with recording():' in it"
                                        .split()])

    def test_recording_in_a_child(self):
        """The child has its own recording, although its parent was in a body and held the lock."""
        text = self.run_python("""
import os, sys
import xtrace_gpu._recording as part
part._switch = lambda command: print(command, flush=True)
os.environ.update(XTRACE_DATA="/nowhere", XTRACE_START="paused")
with xtrace_gpu.recording():
    with part._lock:
        child = os.fork()
    if not child:
        with xtrace_gpu.recording():
            print("child", flush=True)
        os._exit(0)
    os.waitpid(child, 0)
""", timeout=60)
        self.assertEqual(text.split(), ["start", "start", "child", "stop", "stop"])

    def test_odd_folder_of_tables(self):
        folder = self.top / "a#b?c%41"
        folder.mkdir()
        self.run_python("assert xtrace_gpu.load()['work']",
                        env={**ENVIRONMENT, "TMPDIR": str(folder)})

    def test_tables(self):
        self.run_python("""
tables = xtrace_gpu.load()
top = tables["top_kernels"]
assert isinstance(top, list) and isinstance(top[0], dict), top
assert sum(row["gpu_time_ns"] for row in top) == tables.summary["totals"]["gpu_time_ns"] > 0
assert len(tables["work"]) == sum(row["count"] for row in top)
assert [row["rule"] for row in tables["findings"]] == [
    row["rule"] for row in tables.summary["findings"]["rows"]]
assert "findings" in list(tables) and len(tables) == len(list(tables)) > 20
assert all(isinstance(tables[name], xtrace_gpu.Table) for name in tables)
assert tables.query("SELECT 1 AS a, ? AS b", [2]) == [{"a": 1, "b": 2}]
assert top._repr_html_().count("<tr>") == min(len(top), 20) + 1
half = xtrace_gpu.load("xtrace.data", "--filter", "matmul")
assert 0 < len(half["work"]) < len(tables["work"])
try:
    tables["nothing"]
    raise AssertionError
except KeyError:
    pass
try:
    tables.query("DELETE FROM gpu_work")
    raise AssertionError
except Exception as error:
    assert "readonly" in str(error), error
""")

    def test_pandas(self):
        """A stand-in takes the call, because the environment has no pandas."""
        text = self.run_python("xtrace_gpu.load()['work'].to_pandas()", status=1)
        self.assertIn("No module named 'pandas'", text)
        self.run_python("""
import sys, types
sys.modules["pandas"] = types.SimpleNamespace(
    DataFrame=types.SimpleNamespace(from_records=lambda rows: ("frame", list(rows))))
work = xtrace_gpu.load()["work"]
assert work.to_pandas() == ("frame", list(work)) and "duration_ns" in work[0]
""")

    def test_report(self):
        page = self.run_python("""
report = xtrace_gpu.report("xtrace.data", height=500)
report.save("page.html")
assert "GPU time" in str(report)
print(report._repr_html_())
""")
        found = re.fullmatch(r'<iframe srcdoc="([^"]*)" width="100%" height="500" [^>]*>'
                             r"</iframe>\n", page)
        self.assertEqual(html.unescape(found.group(1)), (self.top / "page.html").read_text())

    def test_errors(self):
        self.run_python("""
for use in xtrace_gpu.load, xtrace_gpu.report:
    for arguments in ["missing"], ["xtrace.data", "--from", "never"], ["-x"]:
        try:
            use(*arguments)
            raise AssertionError(arguments)
        except xtrace_gpu.Error as error:
            assert not str(error).startswith("xtrace") and "\\n" not in str(error), error
""")

    def test_other_systems(self):
        said = self.run_python("""
import platform, sys
from xtrace_gpu._program import why_not_started
def say(**facts):
    for name, value in facts.items():
        setattr(platform, name, lambda value=value: value)
    print(why_not_started(OSError(8, "Exec format error", "/bin/xtrace")))
say()
say(libc_ver=("glibc", "2.17"))
say(libc_ver=("", ""))
say(machine="riscv64")
sys.platform = "darwin"
say(system="Darwin")
""").splitlines()
        for line, pattern in zip(said, ("cannot start /bin/xtrace: Exec format error",
                                        "needs glibc 2.28 or newer, and this is 2.17",
                                        "musl", "and this is riscv64", "and this is Darwin")):
            self.assertIn(pattern, line)
        self.assertEqual(len(said), 5)

    def test_missing_program(self):
        env = {"PYTHONPATH": str(SOURCE / "tools/wheel"), "PATH": "/nowhere"}
        text = run(sys.executable, "-m", "xtrace_gpu", "version", status=1, env=env)
        self.assertEqual(text, "xtrace: the program xtrace is missing: install it with "
                               "'pip install xtrace-gpu'\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    options, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
