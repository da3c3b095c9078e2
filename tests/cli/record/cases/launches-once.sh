# SPDX-License-Identifier: Apache-2.0
# A launch counts once, however often its log defines the function that made it.
cat >rows <<'END'
stack main MAIN
call 1 1 cuLaunchKernel main 1000 10
kernel 1 1 one 2000 10
flush API
api cuLaunchKernel
flush API
api cuLaunchKernel
call 2 1 cuLaunchKernel main 3000 10
kernel 2 1 one 4000 10
END
"$xtrace" record -o trace sh -c '"$1/make_log" script trace/one.xtr <rows' sh "$bin"
