# SPDX-License-Identifier: Apache-2.0
# info.json describes the command and its result.
"$xtrace" record --simulate "$sample" --layers 1 --dim 64 --tokens 2 >/dev/null
python3 - xtrace.data/info.json <<'END'
import json, sys
info = json.load(open(sys.argv[1]))
print(sorted(info))
print(info["format"], info["format_version"], info["command"][1:], info["exit_status"])
for process in info["processes"]:
    for name in ("log", "pid", "log_bytes", "exe"):
        print(name, bool(process.pop(name)))
    print(sorted(process.items()))
END
