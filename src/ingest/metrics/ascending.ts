/** Columns of several devices, put into the order of time: for the rare samples that do not come so. */
export interface Columns {
  readonly start: Uint32Array;
  readonly timeS: Float64Array;
  readonly value: Float64Array;
}

/** Sorts by time within each device; of samples of one time the first to come stays. */
export function ascending({ start, timeS, value }: Columns): Columns {
  const kept = start.slice();
  let at = 0;
  for (let k = 0; k + 1 < start.length; k++) {
    sortByTime(timeS, value, start[k]!, start[k + 1]!);
    kept[k] = at;
    for (let i = start[k]!; i < start[k + 1]!; i++) {
      if (at > kept[k]! && timeS[i]! <= timeS[at - 1]!) continue;
      timeS[at] = timeS[i]!;
      value[at++] = value[i]!;
    }
  }
  kept[start.length - 1] = at;
  return { start: kept, timeS: timeS.slice(0, at), value: value.slice(0, at) };
}

/** Nearly always sorted already. */
function sortByTime(timeS: Float64Array, value: Float64Array, from: number, to: number): void {
  let isSorted = true;
  for (let i = from + 1; i < to && isSorted; i++) isSorted = timeS[i]! >= timeS[i - 1]!;
  if (isSorted) return;
  const order = Array.from({ length: to - from }, (_, i) => from + i).sort(
    (a, b) => timeS[a]! - timeS[b]! || a - b,
  );
  const times = order.map((i) => timeS[i]!);
  const values = order.map((i) => value[i]!);
  times.forEach((time, i) => (timeS[from + i] = time));
  values.forEach((held, i) => (value[from + i] = held));
}
