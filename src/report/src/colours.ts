/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frame colours: a hue per kind, varied by name so that neighbours differ.
 */
import type { FrameKind } from './tree';

interface Tone {
	hue: number;
	spread: number; /* variation of the hue between names */
	saturation: number;
}

const tones: Record<FrameKind, Tone> = {
	kernel: { hue: 24, spread: 18, saturation: 82 },
	copy: { hue: 208, spread: 16, saturation: 68 },
	memory: { hue: 272, spread: 14, saturation: 48 },
	idle: { hue: 220, spread: 8, saturation: 10 },
	range: { hue: 158, spread: 14, saturation: 45 },
	module: { hue: 312, spread: 14, saturation: 54 },
	api: { hue: 46, spread: 6, saturation: 72 },
	mark: { hue: 220, spread: 10, saturation: 14 },
	python: { hue: 96, spread: 22, saturation: 38 },
	code: { hue: 215, spread: 26, saturation: 32 },
	state: { hue: 350, spread: 24, saturation: 42 },
};

/* FNV-1a */
export function hashOf(text: string): number {
	let hash = 0x811c9dc5;

	for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
	return hash >>> 0;
}

/* stronger: by so many percent farther from the background. */
export function frameColour(name: string, kind: FrameKind, dark: boolean, stronger = 0): string {
	const tone = tones[kind];
	const h = hashOf(name) / 2 ** 32;
	const hue = tone.hue + (h - 0.5) * tone.spread;
	const step = ((h * 997) % 1) * 5;
	const lightness = dark ? 30 + step + stronger / 4 : 80 + step - stronger;
	const saturation = dark ? tone.saturation * 0.62 : tone.saturation;

	return `hsl(${hue.toFixed(0)} ${saturation.toFixed(0)}% ${lightness.toFixed(1)}%)`;
}

/*
 * Comparison colours: blue (less) through grey (same) to red (more). Red and blue of similar
 * lightness stay distinct with any colour blindness. The label also shows the sign.
 */
const changes = {
	light: { same: [232, 235, 239], more: [244, 112, 88], less: [92, 160, 226] },
	dark: { same: [44, 51, 60], more: [178, 62, 46], less: [42, 104, 172] },
};

/* Returns the change relative to the larger side, from -1 (gone) to 1 (new). */
export function changeOf(base: number, now: number): number {
	const larger = Math.max(base, now);

	return larger ? (now - base) / larger : 0;
}

const CHANGE_SEEN = 0.005; /* smaller changes are grey */
const CHANGE_FULL = 0.25; /* larger changes have full colour */

export function changeColour(change: number, dark: boolean): string {
	const { same, more, less } = changes[dark ? 'dark' : 'light'];
	const size = Math.abs(change);
	const strength = size < CHANGE_SEEN ? 0 : Math.min(size / CHANGE_FULL, 1) ** 0.6;
	const end = change > 0 ? more : less;

	return `rgb(${same.map((value, i) => Math.round(value + (end[i] - value) * strength)).join(' ')})`;
}

export const kindNames: [FrameKind, string][] = [
	['code', 'code'],
	['python', 'Python'],
	['api', 'CUDA API'],
	['kernel', 'kernel'],
	['copy', 'copy or memset'],
	['memory', 'memory'],
	['idle', 'idle'],
	['range', 'NVTX range'],
	['module', 'PyTorch module'],
	['state', 'thread state'],
	['mark', 'other'],
];

/* Idle classes, in the order of report.idle_classes. */
export const idleColours = {
	light: ['#e0785f', '#c96aa8', '#6fae9b', '#b58863', '#d3a13f', '#8f80d6', '#cfd5dd', '#93a9c4', '#8d8d8d'],
	dark: ['#c2604a', '#a9528c', '#4f8877', '#8f6a4b', '#ad8330', '#7467b8', '#3c444f', '#5f7591', '#6f6f6f'],
};

/* States of sampled threads, in the order of report.cpu_states. */
export const cpuColours = {
	light: ['#d5d9df', '#8fce8a', '#6fbfae', '#8db4e8', '#ec9a8b', '#cdd3dc', '#c7a0e0', '#f0b866', '#e6cf6a', '#b4bcc8', '#bfe0a0'],
	dark: ['#3a414b', '#3f7a3c', '#2f7566', '#3b649c', '#9c4a3c', '#454d59', '#6f4a8c', '#94682a', '#857526', '#596270', '#5d7f3c'],
};

export const trackColours = {
	light: { kernel: '#3f7fd9', copy: '#57b6c9', collective: '#c78a3f', memory: '#8a6fc7' },
	dark: { kernel: '#4f86d4', copy: '#3d93a6', collective: '#a8742f', memory: '#8068b5' },
};

/* Ranks in collectives. The lightness tells the two apart without colour vision. */
export const waitColours = {
	light: { waiting: '#6aa2e2', late: '#983000' },
	dark: { waiting: '#3f78bd', late: '#ffb454' },
};
