/** Wilson's score interval at 95 %. */
export function wilson(right: number, all: number): [number, number] {
  if (all === 0) return [0, 1];
  const z = 1.96;
  const share = right / all;
  const centre = share + (z * z) / (2 * all);
  const half = z * Math.sqrt((share * (1 - share)) / all + (z * z) / (4 * all * all));
  const scale = 1 + (z * z) / all;
  return [Math.max(0, (centre - half) / scale), Math.min(1, (centre + half) / scale)];
}
