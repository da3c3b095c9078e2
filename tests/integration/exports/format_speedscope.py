# SPDX-License-Identifier: Apache-2.0
"""Checks speedscope files: the structure that its importer requires, and the weights of all
profiles."""

import collections
import json

from reference import expect, expect_same

NAME = "speedscope.json"
ARGUMENTS = ("--speedscope", NAME)
UNITS = {"ns": "nanoseconds", "count": "none", "bytes": "bytes"}


def check(reference, folder, args):
    with open(folder / NAME, encoding="utf-8") as file:
        trace = json.load(file)
    expect(trace["$schema"] == "https://www.speedscope.app/file-format-schema.json", "schema")
    names = [frame["name"] for frame in trace["shared"]["frames"]]
    expect(len(set(names)) == len(names), "frames are there twice")
    profiles = {profile["name"]: profile for profile in trace["profiles"]}
    expect(trace["profiles"][trace["activeProfileIndex"]]["name"] == "gpu-time", "first profile")
    for weight, unit in reference.weights.items():
        if weight not in profiles:
            expect(weight != "gpu-time" and not reference.total(weight), weight, "is missing")
            continue
        profile = profiles[weight]
        expect(profile["type"] == "sampled" and profile["unit"] == UNITS[unit], weight)
        expect(len(profile["samples"]) == len(profile["weights"]), weight, "samples, weights")
        paths = collections.Counter()
        for sample, value in zip(profile["samples"], profile["weights"]):
            paths[tuple(names[place] for place in sample)] += value
        expect_same(paths, reference.folded(weight), weight)
        expect(profile["startValue"] == 0 and profile["endValue"] == reference.total(weight),
               weight, "has another sum")
