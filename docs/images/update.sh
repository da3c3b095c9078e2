#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Takes the screenshots of the README again: one page as it opens, light and dark. Needs Chromium.
# usage: docs/images/update.sh [XTRACE [FOLDER]]
set -eu
cd "$(dirname "$0")/../.."

xtrace=${1:-build/bin/xtrace}
folder=${2:-docs/images}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

"$xtrace" report --quiet --no-open -o "$scratch/page.html" samples/traces/h100-training.xtr >/dev/null
for theme in dark:0 light:1; do
	chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1280,1480 \
		--force-device-scale-factor=1 --blink-settings=preferredColorScheme="${theme#*:}" \
		--virtual-time-budget=3000 --screenshot="$folder/report-${theme%:*}.png" \
		"file://$scratch/page.html" 2>/dev/null
done
