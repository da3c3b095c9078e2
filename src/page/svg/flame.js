/* SPDX-License-Identifier: Apache-2.0
 * Zoom and search in the flame graph. Without scripts, the titles of the frames show all numbers. */
"use strict";
(() => {
	const svg = document.currentScript.ownerSVGElement || document.currentScript.closest("svg");
	const column = 7.3, left = 10, whole = svg.viewBox.baseVal.width - 2 * left;
	const details = svg.getElementById("details");
	const said = details.textContent;
	const frames = [...svg.querySelectorAll(".frame")].map((node) => {
		const rect = node.querySelector("rect");
		const title = node.querySelector("title").textContent;
		return {
			node, rect, title, label: node.querySelector("text"), name: title.split("\n")[0].replace("[GPU_Kernel]", ""),
			x: rect.x.baseVal.value, width: rect.width.baseVal.value,
			depth: Number(node.dataset.depth), value: Number(node.dataset.value),
		};
	});
	const total = frames.length ? frames[0].value : 0;

	function place(frame, x, width, isOutside) {
		const room = Math.floor((width - 4) / column);
		frame.node.style.display = width < 0.1 ? "none" : "";
		frame.node.classList.toggle("outside", isOutside);
		frame.rect.setAttribute("x", x);
		frame.rect.setAttribute("width", Math.max(width, 0));
		frame.label.setAttribute("x", x + 3);
		const name = frame.name.length <= room ? frame.name : frame.name.slice(0, room - 1) + "\u2026";
		frame.label.textContent = room < 3 ? "" : name;
	}

	/* Frames around the target fill the width, frames inside it grow, others are hidden. */
	function zoom(to) {
		const end = to.x + to.width, slack = 0.01;
		for (const frame of frames) {
			const around = frame.x <= to.x + slack && frame.x + frame.width >= end - slack;
			const within = frame.x >= to.x - slack && frame.x + frame.width <= end + slack;
			if (frame.depth < to.depth && around)
				place(frame, left, whole, true);
			else if (frame.depth >= to.depth && within)
				place(frame, left + (frame.x - to.x) / to.width * whole, frame.width / to.width * whole, false);
			else
				frame.node.style.display = "none";
		}
		svg.getElementById("reset").style.display = to === frames[0] ? "none" : "";
	}

	/* Frames inside a matching frame are not counted again. */
	function search(text) {
		let pattern;
		try {
			pattern = text && new RegExp(text, "i");
		} catch (error) {
			details.textContent = `${error.message}`;
			return;
		}
		const found = frames.filter((frame) => {
			const matches = pattern && frame.depth > 0 && pattern.test(frame.name);
			frame.node.classList.toggle("match", Boolean(matches));
			return matches;
		});
		let sum = 0;
		const outermost = [];
		for (const frame of found.sort((a, b) => a.depth - b.depth)) {
			if (outermost.some((o) => frame.x >= o.x - 0.01 && frame.x + frame.width <= o.x + o.width + 0.01))
				continue;
			outermost.push(frame);
			sum += frame.value;
		}
		details.textContent = pattern ? `${text}: ${found.length} frames, ${(100 * sum / total).toFixed(2)} %` : said;
	}

	function ask() {
		const text = window.prompt("Search names (regular expression):", "");
		if (text !== null)
			search(text);
	}

	for (const frame of frames) {
		frame.node.setAttribute("tabindex", "0");
		frame.node.addEventListener("click", () => zoom(frame));
		frame.node.addEventListener("mouseover", () => { details.textContent = frame.title.replace(/\n/g, "  "); });
		frame.node.addEventListener("focus", () => { details.textContent = frame.title.replace(/\n/g, "  "); });
	}
	svg.addEventListener("keydown", (event) => {
		const frame = frames.find((f) => f.node === document.activeElement);
		if (event.key === "Enter" && frame)
			zoom(frame);
		else if (event.key === "Escape") {
			search("");
			zoom(frames[0]);
		} else if (event.key === "/") {
			event.preventDefault();
			ask();
		}
	});
	for (const [id, action] of [["search", ask], ["reset", () => zoom(frames[0])]])
		svg.getElementById(id).addEventListener("click", action);
	svg.getElementById("search").style.display = frames.length ? "" : "none";
	svg.flame = { search, zoom: (name) => zoom(frames.find((f) => f.name === name)) };
})();
