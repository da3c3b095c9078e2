#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Takes the screenshots of the README again: one page, light and dark. Needs Chromium.
# usage: docs/images/update.sh [XTRACE]
set -eu
cd "$(dirname "$0")/../.."

xtrace=${1:-build/bin/xtrace}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

"$xtrace" report --quiet --no-open --python only --hide module.py --from 5.8s -o "$scratch/page.html" \
	samples/traces/h100-training.xtr >/dev/null
for theme in dark:0 light:1; do
	chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1280,1480 \
		--force-device-scale-factor=1 --blink-settings=preferredColorScheme="${theme#*:}" \
		--virtual-time-budget=3000 --screenshot="docs/images/report-${theme%:*}.png" \
		"file://$scratch/page.html" 2>/dev/null
done
