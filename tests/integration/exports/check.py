#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports logs to every format in one run and checks each output.

An independent reader reads the output, which must match the folded stacks and the dumper to the
nanosecond. A module format_X.py has the file's NAME, the ARGUMENTS that create it, and check().
"""

import argparse
import importlib
import pathlib
import subprocess
import sys
import tempfile

import cells
import random_logs
import reference

HERE = pathlib.Path(__file__).parent


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--merge", required=True)
    parser.add_argument("--dump", required=True)
    parser.add_argument("--docs", required=True, type=pathlib.Path)
    parser.add_argument("--proto", type=pathlib.Path, help="where protoc's Python modules are")
    parser.add_argument("--format", action="append", help="of all, only these")
    parser.add_argument("--keep", help="a folder for the outputs")
    parser.add_argument("--make-log", help="the program that makes logs")
    parser.add_argument("--make", action="append", default=[], help="a log that it makes")
    parser.add_argument("--rows", type=pathlib.Path,
                        help="a folder with the rows of logs, HOST.PID[.cpu].rows")
    parser.add_argument("--make-ranks", help="the program that makes the logs of jobs")
    parser.add_argument("--job", nargs=2, metavar=("SCENARIO", "SEED"), help="a job that it makes")
    parser.add_argument("--record", help="the program that records")
    parser.add_argument("--program", help="a program that it records, on the simulated GPU")
    parser.add_argument("--random", type=int, default=0, metavar="N",
                        help="check N random recordings, one after the other")
    parser.add_argument("--first", type=int, default=1, help="the seed of the first one")
    parser.add_argument("--random-program", help="that makes random calls")
    parser.add_argument("--inject", help="for random recordings: the library")
    parser.add_argument("--simgpu", help="for random recordings: the folder of the simulated GPU")
    parser.add_argument("logs", nargs="*")
    args = parser.parse_args()
    formats = {path.stem.removeprefix("format_"): importlib.import_module(path.stem)
               for path in sorted(HERE.glob("format_*.py"))
               if not args.format or path.stem.removeprefix("format_") in args.format}
    if args.random:
        return check_random(args, formats)
    with tempfile.TemporaryDirectory() as scratch, tempfile.TemporaryDirectory() as made:
        for name in args.make:
            args.logs.append(f"{made}/{name}.xtr")
            subprocess.run([args.make_log, name, args.logs[-1]], check=True)
        for path in sorted(args.rows.glob("*.rows")) if args.rows else ():
            args.logs.append(f"{made}/{path.stem}.xtr")
            subprocess.run([args.make_log, "script", args.logs[-1], path.name.split(".")[1]],
                           input=path.read_bytes(), check=True)
        if args.job:
            subprocess.run([args.make_ranks, *args.job, made], check=True)
            args.logs += sorted(map(str, pathlib.Path(made).glob("*.xtr")))
        if args.program:
            subprocess.run([args.record, "record", "--simulate", "-o", f"{made}/data", args.program],
                           check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            args.logs += map(str, pathlib.Path(made).glob("data/*.xtr"))
        return check(args, formats, scratch)


def check_random(args, formats):
    """Stops at the first seed that fails, and prints it."""
    for seed in range(args.first, args.first + args.random):
        with tempfile.TemporaryDirectory() as scratch, tempfile.TemporaryDirectory() as made:
            args.logs = random_logs.make(args, seed, made)
            if check(args, formats, scratch):
                print(f"seed {seed}: {len(args.logs)} logs; repeat with --random 1 --first {seed}")
                return 1
    return 0


def check(args, formats, scratch):
    known = reference.Reference(args.merge, args.dump, args.logs)
    failed = 0
    folder = pathlib.Path(args.keep or scratch)
    folder.mkdir(exist_ok=True)
    arguments = []
    for module in formats.values():
        arguments += [str(folder / argument) if argument == module.NAME else argument
                      for argument in module.ARGUMENTS]
    known.run(*arguments)
    left = {path.name for path in folder.iterdir()} - {m.NAME for m in formats.values()}
    reference.expect(args.keep or not left, "left behind:", left)
    checks = {name: lambda module=module: module.check(known, folder, args)
              for name, module in formats.items()}
    if {"csv", "sqlite", "summary"} <= set(formats):
        checks["cells"] = lambda: cells.check(known, folder)
    for name, check_format in checks.items():
        try:
            check_format()
            print(f"{name}: holds")
        except (reference.Mismatch, AssertionError) as mismatch:
            print(f"{name}: {mismatch}")
            failed += 1
    return 1 if failed else 0


sys.exit(main())
