/** Which ranks stand for the others. */
import type { Rank } from "../../model/ids.ts";
import type { OperatorTable } from "../../model/operators.ts";

/** Finding periods takes up to 0.1 s a rank; sixteen tell as much as sixteen thousand. */
const MOST = 16;

/**
 * At most sixteen sources, spread over the programs that ranks run (pipeline stages differ, ranks of one stage
 * do not), the lowest ranks of each first.
 */
export function representatives<
  T extends { readonly rank: Rank | null; readonly ops: OperatorTable },
>(sources: readonly T[]): T[] {
  if (sources.length <= MOST) return [...sources];
  const programs = new Map<number, T[]>();
  const order = [...sources].sort((a, b) => (a.rank ?? 2 ** 32) - (b.rank ?? 2 ** 32));
  for (const source of order) {
    const hash = programHash(source.ops);
    const same = programs.get(hash);
    if (same) same.push(source);
    else programs.set(hash, [source]);
  }
  const chosen: T[] = [];
  for (let turn = 0; chosen.length < MOST; turn++) {
    for (const same of programs.values()) {
      const source = same[turn];
      if (source && chosen.length < MOST) chosen.push(source);
    }
  }
  const taken = new Set(chosen);
  return sources.filter((source) => taken.has(source));
}

/** The kinds of calls without their order, which differs with where a ring begins. */
function programHash(ops: OperatorTable): number {
  const names = ops.names.map(textHash);
  const seen = new Set<number>();
  let hash = 0;
  for (let i = 0; i < ops.count; i++) {
    let call = mix(names[ops.name[i]!]!, ops.group[i]!);
    call = mix(call, ops.inputNumel[i]! | 0);
    call = mix(call, ops.outputNumel[i]! | 0);
    if (seen.has(call)) continue;
    seen.add(call);
    hash ^= mix(call, 1);
  }
  return hash;
}

function textHash(text: string): number {
  let hash = 0;
  for (let i = 0; i < text.length; i++) hash = mix(hash, text.charCodeAt(i));
  return hash;
}

function mix(hash: number, value: number): number {
  const h = Math.imul(hash ^ value, 0x9e3779b1);
  return h ^ (h >>> 15);
}
