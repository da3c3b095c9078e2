# SPDX-License-Identifier: Apache-2.0
# A real program with embedded symbols, then without the program file, then with another program in
# its place.
cp "$make_log_program" program
./program own own.xtr
./program own bare.xtr
merge own.xtr --folded -
merge own.xtr --embed-symbols
cp own.xtr once.xtr
merge own.xtr --embed-symbols --quiet
cmp own.xtr once.xtr
rm program
merge own.xtr --folded -
echo "--- without symbols and program:"
merge bare.xtr --folded named | sed 's/0x[0-9a-f]*/ADDRESS/g'
sed 's/0x[0-9a-f]*/ADDRESS/g' named
echo "--- another program in its place:"
cp "$merge_program" program
merge bare.xtr bare.xtr own.xtr --folded - | sed 's/0x[0-9a-f]*/ADDRESS/g'
