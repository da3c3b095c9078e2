# SPDX-License-Identifier: Apache-2.0
# What will work, with the simulated GPU in the place of a real one. The facts above it depend on
# the machine.
simulator=$(dirname "$bin")/lib/xtrace/simgpu
[ -d "$simulator" ] || simulator=$bin/../lib/xtrace/simgpu
simulator=$(cd "$simulator" && pwd)
# A build without node has no page.
page=
[ "${HAS_PAGE:-1}" = 1 ] || page='s/^  no   report in the browser$/  yes  report in the browser/
	/xtrace was built without node/d'
works() {
	status "$xtrace" doctor "$@" | sed -n -e "s|$simulator|SIMULATOR|" \
		-e "$page" -e '/^What will work/,$p'
}
mkdir scratch
export TMPDIR=$PWD/scratch
export XTRACE_START=paused XTRACE_CAPTURE_RANGE=cudaProfilerApi # not of the test programs
echo "--- no driver"
works
export LD_LIBRARY_PATH="$simulator" XTRACE_CUPTI="$simulator/libcupti.so"
echo "--- all is well"
works
"$xtrace" doctor | grep -E '^(GPU|Python|driver)' | sed -E 's/3\.[0-9.]+, .*/VERSION, PATH/'
echo "--- no Python, without Python frames"
XTRACE_INTERPRETER=/missing works
XTRACE_PYTHON=off works | sed -n 3,5p
echo "--- no libcupti"
XTRACE_CUPTI=/missing/libcupti.so works
echo "--- a driver older than libcupti"
XTRACE_SIMGPU_FAULT=version:140000 works
echo "--- no permission"
XTRACE_SIMGPU_FAULT=not_permitted works
echo "--- another tool"
XTRACE_SIMGPU_FAULT=subscriber_taken works
echo "--- nothing recorded"
XTRACE_SIMGPU_FAULT=drop_records works
echo "--- JSON"
"$xtrace" doctor --json | python3 -c "
import json, sys
report = json.load(sys.stdin)
print(report['format'], report['can_record'], report['gpus'], sorted(report['recording']))"
status "$xtrace" doctor more
ls scratch # nothing stays
echo "--- a folder for scratch files that cannot be used"
TMPDIR=/missing works | sed -n 2,3p
