# SPDX-License-Identifier: Apache-2.0
# One run per side measures no noise: no output says that nothing changed.
make_runs a
make_runs b -v slow=1.2
diff_runs a1.xtr b1.xtr --markdown - | grep -i 'call path changed\|few runs'
diff_runs a1.xtr b1.xtr --text - | grep -i 'call path changed' || echo "the text says nothing of it"
# A recording of each side is compared without a verdict. The exit status says that none is there.
basis=
diff_runs a1.xtr b1.xtr
diff_runs a1.xtr b1.xtr --top 1 | sed -n '/^GPU time by kernel/,$p'
diff_runs a1.xtr b1.xtr --json - | grep -o '"outcome": "[a-z]*"' | head -1
# A profile has no tables, and two runs of one side are no pair.
profile a1 >a.json
diff_runs a.json b1.xtr | sed -n '/^INC/,/^  only/p'
diff_runs a1.xtr,a2.xtr b1.xtr | sed -n '/^INC/,/^  only/p'
