#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the bill of materials of a tree of tools/portable.sh: an SPDX 2.3 document.

  tools/portable/sbom.py TREE COMMIT DATE

TREE/share/doc/xtrace/private-libraries/packages lists the packages that were used. DATE is in UTC,
as in 2026-01-31T12:00:00Z. Fails if the licence of a library is not listed here.
"""
import argparse
import base64
import hashlib
import json
import pathlib
import re
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
# Source packages of Debian, their licences, and whether the code is part of our binaries (STATIC)
# or a file of its own (DYNAMIC). The texts are in private-libraries/copyright.*.
LIBRARIES = {
    "cjson": ("MIT", "STATIC"),
    "elfutils": ("GPL-2.0-or-later OR LGPL-3.0-or-later", "DYNAMIC"),
    "libevent": ("BSD-3-Clause AND ISC AND BSD-2-Clause", "STATIC"),
    "libiberty": ("LGPL-2.0-or-later AND GPL-2.0-or-later WITH GCC-exception-2.0", "STATIC"),
    "libunwind": ("MIT", "DYNAMIC"),
    "libzstd": ("BSD-3-Clause OR GPL-2.0-only", "STATIC"),
    "protobuf-c": ("BSD-2-Clause", "STATIC"),
    "sqlite3": ("blessing", "STATIC"),
    "xz-utils": ("LicenseRef-public-domain", "STATIC"),
    "zlib": ("Zlib", "STATIC"),
}
PUBLIC_DOMAIN = {
    "licenseId": "LicenseRef-public-domain",
    "name": "Public domain",
    "extractedText": "liblzma is in the public domain: see copyright.liblzma5.",
}
# "SHA256:… NAME_VERSION.dsc". Every source package has one such line.
DESCRIPTION = re.compile(r"SHA256:([0-9a-f]{64}) ([a-z0-9.+-]+)_(\S+)\.dsc")


def project_version():
    text = (SOURCE / "CMakeLists.txt").read_text(encoding="utf-8")
    return re.search(r"project\(xtrace VERSION ([0-9.]+)", text).group(1)


def package(name, version, licence, **more):
    return {"SPDXID": f"SPDXRef-{name}", "name": name, "versionInfo": version,
            "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
            "licenseConcluded": licence, "licenseDeclared": licence,
            "copyrightText": "NOASSERTION", **more}


def page_packages():
    """Name, version, licence and digest of the npm packages whose code is in the HTML report."""
    lock = json.loads((SOURCE / "src/report/package-lock.json").read_text(encoding="utf-8"))
    for path, entry in sorted(lock["packages"].items()):
        name = path.removeprefix("node_modules/")
        if path and not entry.get("dev") and "esbuild" not in name:
            digest = base64.b64decode(entry["integrity"].removeprefix("sha512-")).hex()
            yield name, entry["version"], entry["license"], digest


def document(packages_text, commit, date):
    version = project_version()
    found = {name: (digest, release) for digest, name, release in
             DESCRIPTION.findall(packages_text)}
    unlike = set(found) ^ set(LIBRARIES)
    if unlike:
        sys.exit(f"sbom: not both used and listed: {', '.join(sorted(unlike))}")
    packages = [package("xtrace", version, "Apache-2.0", sourceInfo=f"commit {commit}")]
    relationships = [("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-xtrace")]
    for name, (licence, linked) in sorted(LIBRARIES.items()):
        digest, release = found[name]
        packages.append(package(
            name, release, licence,
            checksums=[{"algorithm": "SHA256", "checksumValue": digest}],
            sourceInfo="The checksum is that of the .dsc of Debian's source package.",
            externalRefs=[{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                           "referenceLocator": f"pkg:deb/debian/{name}@{release}?arch=source"}]))
        relationships.append(("SPDXRef-xtrace", f"{linked}_LINK", f"SPDXRef-{name}"))
    for name, release, licence, digest in page_packages():
        identifier = "npm-" + name.removeprefix("@").replace("/", "-")
        packages.append(package(
            name, release, licence, SPDXID=f"SPDXRef-{identifier}",
            checksums=[{"algorithm": "SHA512", "checksumValue": digest}],
            externalRefs=[{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                           "referenceLocator":
                           f"pkg:npm/{name.replace('@', '%40')}@{release}"}]))
        relationships.append(("SPDXRef-xtrace", "STATIC_LINK", f"SPDXRef-{identifier}"))
    identity = hashlib.sha256((packages_text + commit).encode()).hexdigest()[:32]
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"xtrace-{version}",
        "documentNamespace": f"https://spdx.org/spdxdocs/xtrace-{version}-{identity}",
        "creationInfo": {"created": date, "creators": ["Tool: xtrace-sbom"]},
        "hasExtractedLicensingInfos": [PUBLIC_DOMAIN],
        "packages": packages,
        "relationships": [{"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b}
                          for a, kind, b in relationships],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tree", type=pathlib.Path, metavar="TREE")
    parser.add_argument("commit", metavar="COMMIT")
    parser.add_argument("date", metavar="DATE")
    options = parser.parse_args()
    packages = options.tree / "share/doc/xtrace/private-libraries/packages"
    json.dump(document(packages.read_text(encoding="utf-8"), options.commit, options.date),
              sys.stdout, indent="\t")
    print()


if __name__ == "__main__":
    main()
