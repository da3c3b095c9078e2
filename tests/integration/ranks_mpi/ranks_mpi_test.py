#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records ranks under mpirun, one of which is late, and checks who is said to be late.

Open MPI polls while it waits, so the CPU runs in MPI_Allreduce all that time.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
# Ranks poll while they wait. One CPU is left for the late rank and the sampler.
RANKS = min(3, max(2, os.cpu_count()))
STEPS, LATE_MS = 40, 30
TRIES = 5  # on a busy machine, the sampler may not run
MPIRUN = ["mpirun", "--oversubscribe", "--mca", "btl", "self,vader", "-n", str(RANKS)]


def record(args, folder, late_rank):
    """Returns the summary of a job, as JSON and as text."""
    log = os.path.join(folder, str(late_rank))
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1",
                   "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    done = subprocess.run([args.xtrace, "record", "--simulate", "--quiet", "--cpu", "-o", log, *MPIRUN,
                           args.program, str(STEPS), str(late_rank), str(LATE_MS)],
                          env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=60, check=False)
    assert not done.returncode, done.stdout
    return [subprocess.run([args.merge, log, option, "-"], stdout=subprocess.PIPE, text=True,
                           check=True).stdout for option in ("--summary", "--text")]


def check_late(content, text):
    mpi, verdict = content["mpi"], content["mpi"]["verdict"]
    assert len(mpi["ranks"]) == RANKS, mpi
    assert verdict["kind"] == "rank" and "rank 1" in verdict["process"], verdict
    assert verdict["where"].startswith("prepare_batch"), verdict
    assert 0.5 * STEPS * LATE_MS < verdict["cost_ns"] / 1e6 < 1.5 * STEPS * LATE_MS, verdict
    for rank in mpi["ranks"]:
        if rank["process"] != verdict["process"]:
            assert rank["function"] == "MPI_Allreduce", rank
    assert "Collectives of MPI" in text and verdict["text"] in " ".join(text.split()), text


def main():
    parser = argparse.ArgumentParser()
    for name in ("xtrace", "merge", "program"):
        parser.add_argument("--" + name, required=True)
    args = parser.parse_args()
    if not shutil.which("mpirun"):
        return SKIPPED
    for _ in range(TRIES):
        with tempfile.TemporaryDirectory() as folder:
            summary, text = record(args, folder, 1)
        content = json.loads(summary)
        if "no CPU was free" not in content["mpi"]["verdict"]["text"]:
            check_late(content, text)
            return 0
    print("no CPU was free")
    return SKIPPED


if __name__ == "__main__":
    sys.exit(main())
