# SPDX-License-Identifier: Apache-2.0
# Units and weights. The total in us is the total in ns, rounded down once.
make_log normal one.xtr
merge one.xtr --folded - --unit us
merge one.xtr --folded - --unit=ns
merge one.xtr --folded - --weight count
merge one.xtr --text - --all --top 1
