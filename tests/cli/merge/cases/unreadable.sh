# SPDX-License-Identifier: Apache-2.0
# Reports unreadable inputs.
merge
merge nowhere
mkdir empty
merge empty
echo "this is no log, though it has a promising name" >fake.xtr
merge fake.xtr
: >nothing.xtr
merge nothing.xtr
merge nothing.xtr --quiet
make_log normal good.xtr
cp good.xtr newer.xtr
printf '\377' | dd of=newer.xtr bs=1 seek=8 conv=notrunc status=none
cp good.xtr broken.xtr
printf '\377' | dd of=broken.xtr bs=1 seek=30 conv=notrunc status=none
merge newer.xtr broken.xtr
# Logs of other processors.
python3 - <<'EOF'
import struct
log = bytearray(open("good.xtr", "rb").read())
struct.pack_into(">I", log, 12, 0x01020304)
open("big.xtr", "wb").write(log)
struct.pack_into("<I", log, 12, 0x01020304)
struct.pack_into("<I", log, 44, 243)
check = 2166136261
for byte in log[:60]:
    check = (check ^ byte) * 16777619 % 2**32
struct.pack_into("<I", log, 60, check)
open("other.xtr", "wb").write(log)
EOF
merge big.xtr
merge other.xtr
merge /dev/null
mkfifo pipe.xtr
merge pipe.xtr
echo "--- and one that can:"
merge fake.xtr good.xtr newer.xtr --folded - --quiet
echo "--- a copy counts once, and the larger of two is taken:"
make_log second second.xtr
cp good.xtr copy.xtr
merge good.xtr copy.xtr second.xtr ./good.xtr --folded - 2>&1
echo "--- an empty one beside others is named, and no error:"
merge nothing.xtr second.xtr --folded /dev/null 2>&1
head -c 900 good.xtr >cut.xtr
merge cut.xtr good.xtr --folded /dev/null 2>&1
