# SPDX-License-Identifier: Apache-2.0
# Three threads and three streams on two devices. A log counts once if its directory is given too.
mkdir xtrace.data
make_log threads xtrace.data/host.4321.xtr
merge --folded all.folded --chrome all.json
cat all.folded
check_chrome all.json all.folded
merge xtrace.data xtrace.data/ xtrace.data/host.4321.xtr --folded -
grep _name all.json
