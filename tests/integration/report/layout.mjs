// SPDX-License-Identifier: Apache-2.0
// Finds texts of a page that readers cannot read.
import assert from 'node:assert/strict';

// Runs in a window that is as high as the page. Returns texts that are cut off without a way to
// read them, texts that cover each other, and whether the page scrolls sideways.
function badTexts() {
	const shown = [];
	const bad = [];
	const { scrollWidth, clientWidth } = document.documentElement;
	// The part of a rectangle that the elements around it do not cut off.
	const clip = (rect, element) => {
		const box = { left: rect.left, right: rect.right, top: rect.top, bottom: rect.bottom };

		for (let around = element; around; around = around.parentElement) {
			if (getComputedStyle(around).overflowX === 'visible') continue;
			const edge = around.getBoundingClientRect();

			box.left = Math.max(box.left, edge.left);
			box.right = Math.min(box.right, edge.right);
			box.top = Math.max(box.top, edge.top);
			box.bottom = Math.min(box.bottom, edge.bottom);
		}
		return box;
	};
	// Scrolling shows the rest of other elements.
	const isCut = (element, { overflowX, overflowY }) => {
		const isHidden = (overflow) => overflow === 'hidden' || overflow === 'clip';
		const isWide = isHidden(overflowX) && element.scrollWidth > element.clientWidth + 1;
		const isHigh = isHidden(overflowY) && element.scrollHeight > element.clientHeight + 1;

		return element.clientWidth && (isWide || isHigh);
	};
	const hasMark = ({ textOverflow, webkitLineClamp }) => textOverflow === 'ellipsis' || webkitLineClamp !== 'none';

	if (scrollWidth > clientWidth) bad.push(`the page is ${scrollWidth} wide`);
	for (const element of document.querySelectorAll('body *')) {
		if (!element.checkVisibility({ opacityProperty: true, visibilityProperty: true }) || element.closest('canvas, select, .hidden, [inert]')) continue;
		const own = [...element.childNodes].filter((node) => node.nodeType === 3 && node.data.trim());
		const style = getComputedStyle(element);

		if (element.textContent.trim() && isCut(element, style) && !(hasMark(style) && element.closest('[title]')) && !element.matches('.axis, .flame-scroll, .event-scroll'))
			bad.push(`cut: ${element.className} ${element.textContent.slice(0, 60)}`);
		for (const node of own) {
			const range = document.createRange();

			range.selectNodeContents(node);
			for (const rect of range.getClientRects()) {
				const box = clip(rect, element);

				if (box.right - box.left > 2 && box.bottom - box.top > 2) shown.push({ element, box, text: node.data.trim().slice(0, 40) });
			}
		}
	}
	shown.sort((a, b) => a.box.top - b.box.top);
	for (const [i, a] of shown.entries())
		for (let j = i + 1; j < shown.length && shown[j].box.top < a.box.bottom; j++) {
			const b = shown[j];
			const width = Math.min(a.box.right, b.box.right) - Math.max(a.box.left, b.box.left);
			const height = Math.min(a.box.bottom, b.box.bottom) - b.box.top;

			if (width > 2 && height > 4 && !a.element.contains(b.element) && !b.element.contains(a.element)) bad.push(`covered: ${a.text} | ${b.text}`);
		}
	return bad;
}

// The whole page is in view, so nothing depends on where it is scrolled to.
export async function checkTextsOf(page, what) {
	const before = page.viewportSize();
	const heightOf = () => page.evaluate(() => document.documentElement.scrollHeight);

	// Some parts grow with the window.
	for (let height = 0, tries = 0; height < (await heightOf()) && tries < 5; tries++) {
		height = await heightOf();
		await page.setViewportSize({ ...before, height });
		await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
	}
	assert.deepEqual(await page.evaluate(badTexts), [], what);
	await page.setViewportSize(before);
}
