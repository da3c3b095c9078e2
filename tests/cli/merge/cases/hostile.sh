# SPDX-License-Identifier: Apache-2.0
# Names that could break a format or a terminal, undefined ids, impossible times.
make_log hostile hostile.xtr
merge hostile.xtr --folded hostile.folded --chrome hostile.json --text hostile.txt --all
cat hostile.folded hostile.txt
check_chrome hostile.json hostile.folded
