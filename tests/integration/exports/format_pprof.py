# SPDX-License-Identifier: Apache-2.0
"""Checks pprof profiles with Google's protobuf for Python, and with pprof if Go is installed."""

import collections
import gzip
import re
import shutil
import subprocess
import sys

from reference import RANK_WEIGHTS, expect, expect_same

NAME = "profile.pb.gz"
ARGUMENTS = ("--pprof", NAME)
UNITS = {"ns": "nanoseconds", "count": "count", "bytes": "bytes"}


def check(reference, folder, args):
    sys.path.insert(0, str(args.proto))
    import profile_pb2

    profile = profile_pb2.Profile()
    with gzip.open(folder / NAME) as file:
        profile.ParseFromString(file.read())
    strings = profile.string_table
    expect(strings[0] == "" and len(set(strings)) == len(strings), "strings")
    types = [(strings[t.type], strings[t.unit]) for t in profile.sample_type]
    expect(types == [(weight, UNITS[unit]) for weight, unit in reference.weights.items()], types)
    expect(strings[profile.default_sample_type] == "gpu-time", "default type")
    locations = check_references(profile)
    several = len(reference.logs) > 1
    by = ("--by", "process") if several else ()
    # If one log has calls, the samples of its process have no label.
    only = reference.summary["processes"][0]["label"] if reference.traced_count == 1 else None
    for place, weight in enumerate(reference.weights):
        paths = collections.Counter()
        for sample in profile.sample:
            labels = {strings[label.key]: strings[label.str] for label in sample.label}
            path = [labels.get("process", only)] if several else []
            path += [name for i in reversed(sample.location_id) for name in locations[i]]
            paths[tuple(path)] += sample.value[place]
        wanted = collections.Counter()
        files = [strings[function.filename] for function in profile.function]
        # Ranks are compared path by path, with their ranges: without them, the sums are others.
        nvtx = () if weight in RANK_WEIGHTS else ("--nvtx", "off")
        for path, value in reference.folded(weight, *nvtx, *by).items():
            wanted[tuple(without_folders(name, files) for name in path
                         if not name.startswith("[NVTX "))] += value
        expect_same(+paths, +wanted, weight)
    check_labels(reference, profile, "device", lambda root: root.strip("[]"))
    check_labels(reference, profile, "thread", lambda root: root)
    check_with_pprof(reference, folder)


def check_references(profile):
    """Returns the functions of each location, outermost first. Inlined functions follow their
    caller. Each reference must have exactly one target.
    """
    mappings = {mapping.id: mapping for mapping in profile.mapping}
    functions = {function.id: function for function in profile.function}
    locations = {location.id: [name_of(profile.string_table, functions[line.function_id],
                                       0 if location.mapping_id else line.line)
                               for line in reversed(location.line)]
                 for location in profile.location}
    for ids, rows in ((mappings, profile.mapping), (functions, profile.function),
                      (locations, profile.location)):
        expect(len(ids) == len(rows) and 0 not in ids, "ids are not unique")
    for location in profile.location:
        expect(not location.mapping_id or mappings[location.mapping_id].memory_start <=
               location.address < mappings[location.mapping_id].memory_limit,
               "a location lies outside its mapping")
        expect(location.line and all(functions[line.function_id].filename
                                     for line in location.line if line.line), "a line of no file")
    return locations


def check_labels(reference, profile, key, label_of_root):
    strings = profile.string_table
    found = collections.Counter()
    for sample in profile.sample:
        for label in sample.label:
            if strings[label.key] == key:
                found[strings[label.str]] += sample.value[0]
    wanted = collections.Counter()
    for path, value in reference.folded("gpu-time", "--by", key).items():
        wanted[label_of_root(path[0])] += value
    # Values without a thread or device have no label.
    wanted = {root: value for root, value in wanted.items() if not root.strip("[").startswith("unknown")}
    expect_same(+found, +collections.Counter(wanted), f"label {key}")


def name_of(strings, function, line):
    """The name as in a path. Python functions, which have no mapping, include file and line."""
    name, file = strings[function.name], strings[function.filename].rsplit("/", 1)[-1]
    return "%s (%s%s)" % (name, file, ":%d" % line if line else "") if file and line else name


def without_folders(name, files):
    """Paths show folders only to distinguish files of one name. Here the whole file name is given,
    and must be in those folders.
    """
    found = re.search(r"\(([^()]*/)([^/()]+):(\d+)\)$", name)
    if not found:
        return name
    expect(any(file.endswith("/" + found[1] + found[2]) for file in files), name, "is of no file")
    return "%s(%s:%s)" % (name[:found.start()], found[2], found[3])


def check_with_pprof(reference, folder):
    if not shutil.which("go"):
        return
    done = subprocess.run(["go", "tool", "pprof", "-top", "-unit=ns", str(folder / NAME)],
                          capture_output=True, text=True, cwd=folder)
    total = re.search(r"of (\d+)(?:ns)? total", done.stdout)
    expect(total and int(total[1]) == reference.total(), "pprof says:", done.stdout[:300],
           done.stderr[:300])
