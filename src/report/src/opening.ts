/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The opening view of the page: the frames of the flame graph and the time in view.
 */
import { lateProcessOf, type Report } from './data';
import type { Span } from './times';
import { noFilter, type Tree } from './tree';
import { type View, wholeView } from './views';

const NEAR_SHARE = 0.5; /* of the GPU time that must be under the user's code */
const STEPS_MAX = 10; /* in view */

/* Returns the view of the flame graph. Without lines of the user, all frames say more. */
export function usualViewOf(report: Report, tree: Tree): View {
	const place = report.comparison ? -1 : report.weights.findIndex(({ name }) => name === 'gpu-time');
	const isOwn = tree.name.map((name, n) => Number(n > 0 && tree.ownNames.has(tree.names[name])));

	if (place < 0 || !tree.ownNames.size) return wholeView;
	const sums = tree.sums(place, noFilter);
	const ownNs = tree.matchedTotal(Uint8Array.from(isOwn), sums, 0);

	return ownNs && ownNs >= NEAR_SHARE * sums.total[0] ? { ...wholeView, keep: 'near' } : wholeView;
}

/*
 * Returns the time from the first to the last steady step, or null without steps. If there are
 * many, returns that of the median step and its two neighbours: their kernels are wide enough to
 * read. The steps are those of the late process, or else of the first one that has any.
 */
export function steadyPart(report: Report): Span | null {
	const all = report.summary.steps?.rows.filter((step) => step.kind === 'steady') ?? [];
	const late = report.summary.processes[lateProcessOf(report)]?.label;
	const { process, device } = all.find((step) => step.process === late) ?? all[0] ?? {};
	const steps = all.filter((step) => step.process === process && step.device === device).sort((a, b) => a.start_ns - b.start_ns);
	const byLength = [...steps].sort((a, b) => a.wall_ns - b.wall_ns);
	const middle = steps.indexOf(byLength[(byLength.length - 1) >> 1]);
	const shown = steps.length > STEPS_MAX ? steps.slice(Math.max(middle - 1, 0), middle + 2) : steps;
	const last = shown[shown.length - 1];

	return last ? { fromNs: shown[0].start_ns, untilNs: last.start_ns + last.wall_ns } : null;
}
