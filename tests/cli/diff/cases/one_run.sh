# SPDX-License-Identifier: Apache-2.0
# One run per side measures no noise: no output says that nothing changed.
make_runs a
make_runs b -v slow=1.2
diff_runs a1.xtr b1.xtr --markdown - | grep -i 'call path changed\|few runs'
diff_runs a1.xtr b1.xtr --text - | grep -i 'call path changed' || echo "the text says nothing of it"
