# SPDX-License-Identifier: Apache-2.0
"""The commands and files in docs/CONTAINERS.md, so that checks can run them as they are printed."""

import os
import re
import textwrap

import yaml

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DOCUMENT = os.path.join(SOURCE, "docs", "CONTAINERS.md")


def blocks(section):
    """Returns the indented blocks below a heading, without their indentation."""
    with open(DOCUMENT, encoding="utf-8") as file:
        parts = re.split(r"^## (.*)\n", file.read(), flags=re.MULTILINE)
    text = dict(zip(parts[1::2], parts[2::2]))[section]
    found = re.findall(r"(?:^\n)((?:    .*\n|\n(?=    ))+)", text, flags=re.MULTILINE)
    return [textwrap.dedent(block) for block in found]


def pod():
    """Returns the Pod, and the command that also completes the logs."""
    return yaml.safe_load(blocks("Kubernetes")[0]), yaml.safe_load(blocks("Kubernetes")[1])["command"]


def environment(container):
    return {entry["name"]: entry["value"] for entry in container["env"]}
