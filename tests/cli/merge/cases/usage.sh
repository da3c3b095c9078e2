# SPDX-License-Identifier: Apache-2.0
# Options, their errors and --version.
merge --version
merge --help
merge --fodled x
merge --bogus
merge -x
merge --folded
merge --folded=
merge --folded - --unit s
merge --folded - --weight time
merge --folded - --unit us --weight count
merge --folded - --by device --weight cpu-wait
merge --folded - --by stream --weight peak-bytes
merge --folded - --by host
merge --folded - --graph-stacks none
merge --chrome x --by device
merge --unit us
merge --chrome x --top 3
merge --top 0
merge --top -1
merge --f x
merge -o x.pdf
merge -o - --text=-
merge -qV
merge --quiet=1
merge --folded - --chrome -
merge --folded a --chrome a
# Suggests only similar names.
merge --nope
merge --speedscope x.json
merge --tpo 3
merge --weigth count
