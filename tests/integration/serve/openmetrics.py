# SPDX-License-Identifier: Apache-2.0
"""A strict reader of OpenMetrics 1.0 text, as far as xtrace uses it."""

import re

NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|$)')
SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\d+(?:\.\d+)?)")
ESCAPES = {'\\"': '"', "\\\\": "\\", "\\n": "\n"}


def labels_of(text):
    labels, at = {}, 0
    while at < len(text):
        found = LABEL.match(text, at)
        assert found and found[1] not in labels, text
        labels[found[1]] = re.sub(r"\\.", lambda escape: ESCAPES[escape[0]], found[2])
        at = found.end()
    return labels


def read(text):
    """A list of (name, labels, value). Checks everything that the standard demands."""
    assert text.endswith("\n# EOF\n"), text[-80:]
    samples, families, family, types = [], set(), None, {}
    for line in text[:-len("# EOF\n")].splitlines():
        if line.startswith("# "):
            _, keyword, name, rest = line.split(" ", 3)
            assert NAME.fullmatch(name), line
            if keyword == "TYPE":
                assert name not in families, "a family must not occur twice: " + line
                families.add(name)
                family, types[name] = name, rest
            assert name == family and keyword in ("TYPE", "UNIT", "HELP"), line
            assert keyword != "UNIT" or name.endswith("_" + rest), line
            continue
        found = SAMPLE.fullmatch(line)
        assert found, line
        suffix = "_total" if types[family] == "counter" else ""
        assert found[1] == family + suffix, "%s in family %s" % (line, family)
        samples.append((found[1], labels_of(found[2] or ""), float(found[3])))
    keys = [(name, tuple(sorted(labels.items()))) for name, labels, _ in samples]
    assert len(set(keys)) == len(keys), "a series must not occur twice"
    return samples
