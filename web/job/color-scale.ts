/**
 * From dark to bright, for values from low to high: viridis (Smith and van der Walt), without its darkest end, which a
 * dark page would swallow. Lightness rises all the way, so it reads in any colour vision and in grey.
 */
const STOPS = [
  "#482173",
  "#433e85",
  "#38588c",
  "#2d708e",
  "#25858e",
  "#1e9b8a",
  "#51c56a",
  "#addc30",
  "#fde725",
];

export const STEPS = 256;

/** Red, green, blue by step. */
export const SCALE: readonly (readonly [number, number, number])[] = Array.from(
  { length: STEPS },
  (_, step) => {
    const at = (step / (STEPS - 1)) * (STOPS.length - 1);
    const from = Math.min(STOPS.length - 2, Math.floor(at));
    const [a, b] = [rgb(STOPS[from]!), rgb(STOPS[from + 1]!)];
    const mix = (one: number) => Math.round(a[one]! + (b[one]! - a[one]!) * (at - from));
    return [mix(0), mix(1), mix(2)];
  },
);

/** The legend's bar. */
export const SCALE_GRADIENT = `linear-gradient(to right, ${STOPS.join(", ")})`;

export function rgb(hex: string): [number, number, number] {
  let digits = hex.trim().replace(/^#/, "");
  if (digits.length === 3) digits = digits.replace(/./g, "$&$&");
  const value = Number.parseInt(digits.slice(0, 6), 16);
  if (Number.isNaN(value)) return [128, 128, 128];
  return [value >> 16, (value >> 8) & 255, value & 255];
}

/** As ImageData holds it where the lower byte comes first, which is everywhere that browsers run. */
export function packed([red, green, blue]: readonly [number, number, number]): number {
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

export function mixed(
  a: readonly [number, number, number],
  b: readonly [number, number, number],
  share: number,
): [number, number, number] {
  const mix = (one: 0 | 1 | 2) => Math.round(a[one] + (b[one] - a[one]) * share);
  return [mix(0), mix(1), mix(2)];
}

/** Relative luminance of WCAG 2, 0..1. */
export function luminance(color: readonly [number, number, number]): number {
  const linear = (part: number) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * linear(color[0]) + 0.7152 * linear(color[1]) + 0.0722 * linear(color[2]);
}
