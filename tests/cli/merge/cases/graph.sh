# SPDX-License-Identifier: Apache-2.0
# Kernels of a graph: several per call, before and after it in the file, at the same time.
make_log graph graph.xtr
merge graph.xtr --folded graph.folded --chrome graph.json
cat graph.folded
check_chrome graph.json graph.folded
grep graph_node graph.json
