#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the recipes of docs/CONTAINERS.md on the simulated GPU.

Stand-ins for docker and srun check their options and run the command. The build's own folders take
the place of /opt/xtrace. tools/container/check.py runs the Pod in real containers.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD_DIR = os.path.abspath(sys.argv.pop(1))
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(SOURCE, "tools", "container"))
sys.dont_write_bytecode = True

import recipes  # noqa: E402

XTRACE = os.path.join(BUILD_DIR, "bin", "xtrace")
SAMPLE = os.path.join(BUILD_DIR, "bin", "samples", "llm_inference")
SIMULATOR = os.path.join(BUILD_DIR, "lib", "xtrace", "simgpu")

DOCKER = r"""#!/bin/sh
# docker run: checks the options, and runs the command where the volumes are.
set -eu
[ "$1" = run ]
shift
while :; do
	case $1 in
	--rm) shift ;;
	--gpus) [ "$2" = all ]; shift 2 ;;
	--user) [ "$2" = "$(id -u):$(id -g)" ]; shift 2 ;;
	-e) export "$2"; shift 2 ;;
	-v)
		case $2 in
		*:/traces) traces=${2%:/traces} ;;
		/opt/xtrace:/opt/xtrace:ro) ;;
		*) exit 3 ;;
		esac
		shift 2
		;;
	-*) exit 3 ;;
	*) break ;;
	esac
done
[ "$1" = my-image ]
[ "$NVIDIA_DRIVER_CAPABILITIES" = compute,utility ]
shift
[ -d "$traces" ] # docker would create it for root
for part; do
	shift
	case $part in
	/traces/*) part=$traces/${part#/traces/} ;;
	esac
	set -- "$@" "$part"
done
exec "$@"
"""

SRUN = r"""#!/bin/sh
# Runs all tasks on this machine.
for rank in 0 1 2 3 4 5 6 7; do
	SLURM_PROCID=$rank "$@" &
	tasks="${tasks:-} $!"
done
for task in $tasks; do
	wait "$task" || exit 1
done
"""


class Recipes(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        for name, text in (("docker", DOCKER), ("srun", SRUN)):
            self.add_program(name, text)
        self.add_program("python3", '#!/bin/sh\n[ "$*" = train.py ] && exec %s --tokens 4\n' % SAMPLE)
        self.env = {**os.environ, "PATH": os.path.join(self.folder, "bin") + ":" + os.environ["PATH"],
                    "LD_LIBRARY_PATH": SIMULATOR, "XTRACE_CUPTI": SIMULATOR + "/libcupti.so",
                    "BROWSER": "true"}
        for name in [name for name in self.env if name.startswith("SLURM_")]:
            del self.env[name]

    def add_program(self, name, text):
        path = os.path.join(self.folder, "bin", name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o755)

    def shell(self, script, **env):
        """Runs a recipe, with the build in the place of /opt/xtrace. Returns its output."""
        script = script.replace("/opt/xtrace/bin/xtrace", XTRACE)
        result = subprocess.run(["sh", "-euc", script], cwd=self.folder, env={**self.env, **env},
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(result.returncode, 0, result.stdout)
        return result.stdout

    def launches(self, *data):
        text = self.shell("%s report --text --all %s" % (XTRACE, " ".join(data)))
        (line,) = [line for line in text.splitlines() if line.startswith("  launches ")]
        return int(line.split()[1].replace(",", ""))

    def recorded_environment(self):
        """The variables that `xtrace record` sets."""
        output = self.shell("%s record -q --no-torch-trace -o recorded env" % XTRACE)
        pairs = dict(line.split("=", 1) for line in output.splitlines() if "=" in line)
        return {name: value for name, value in pairs.items()
                if self.env.get(name) != value and name not in ("_", "PWD", "OLDPWD", "SHLVL")}

    def test_docker(self):
        (script,) = recipes.blocks("Docker")
        self.shell(script)
        self.assertEqual(self.launches("traces/run"), 288)
        self.assertTrue(os.path.exists(os.path.join(self.folder, "traces/run/report.html")))

    def test_slurm_records_each_rank(self):
        job, after = recipes.blocks("Slurm")
        self.assertTrue(job.startswith("#!/bin/sh\n#SBATCH "))
        self.shell(job, SLURM_JOB_ID="4711")
        self.assertEqual(sorted(os.listdir(os.path.join(self.folder, "traces/4711"))),
                         [str(rank) for rank in range(8)])
        self.assertEqual(self.launches("traces/4711/*"), 8 * 288)
        self.shell(after)
        self.assertTrue(os.path.exists(os.path.join(self.folder, "report.html")))
        self.assertTrue(os.path.exists(os.path.join(self.folder, "traces/4711/0/report.html")))

    def test_pod_has_the_variables_that_record_sets(self):
        pod, _ = recipes.pod()
        (main,) = pod["spec"]["containers"]
        own = recipes.environment(main)
        del own["NVIDIA_DRIVER_CAPABILITIES"]  # for the container runtime
        recorded = self.recorded_environment()
        self.assertEqual(set(own), set(recorded))
        for name in ("CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"):
            self.assertEqual(own[name], recorded[name].replace(BUILD_DIR, "/opt/xtrace"))
        self.assertEqual(recorded["XTRACE_DATA"], os.path.join(self.folder, "recorded"))

    def test_env_prints_what_record_sets(self):
        data = os.path.join(self.folder, "recorded")
        printed = json.loads(self.shell("%s env --format json -o recorded" % XTRACE))
        recorded = self.recorded_environment()
        self.assertEqual(printed, recorded)
        lines = self.shell("%s env --format docker -o %s" % (XTRACE, data)).splitlines()
        self.assertEqual(dict(line.split("=", 1) for line in lines if not line.startswith("#")),
                         recorded)

    def test_volumes_of_the_pod_exist(self):
        pod, complete = recipes.pod()
        spec = pod["spec"]
        names = {volume["name"] for volume in spec["volumes"]}
        containers = spec["initContainers"] + spec["containers"]
        self.assertEqual({mount["name"] for container in containers
                          for mount in container["volumeMounts"]}, names)
        (main,) = spec["containers"]
        self.assertIn(" --embed-symbols %s\n" % recipes.environment(main)["XTRACE_DATA"], complete[2])
        self.assertIn(" ".join(main["command"]) + " & child=$!\n", complete[2])

    def test_links_of_the_image_exist(self):
        script, _ = recipes.blocks("An image with xtrace")
        for word in script.split():
            if word.startswith("tools/"):
                self.assertTrue(os.path.exists(os.path.join(SOURCE, word)), word)


if __name__ == "__main__":
    unittest.main(verbosity=2)
