/**
 * Where most of a role goes bad at once (a leaf switch with a pipeline stage behind it), the few that stay as they were
 * are the ones unlike their peers. Whoever did not change, while the role did and other roles did not, is sound.
 */
import { median } from "../../maths/robust.ts";
import type { Fleet } from "../../model/fleet.ts";
import type { Evidence } from "./evidence.ts";
import type { Judged } from "./judge.ts";
import { peersOf } from "./roles.ts";
import type { View } from "./views.ts";

const BEFORE_S = 300;
const EDGE_S = 20;
const MOST_ASKED = 40;
/** In units of what matters. */
const CHANGED = 1;
const UNCHANGED = 0.5;

export function withoutUnchanged(
  fleet: Fleet,
  judged: readonly Judged[],
  missing: string[],
): Judged[] {
  const others = ofAnotherJob(judged);
  if (others.length > 0) {
    missing.push(
      `${others.length} machines went on as before while the rest slowed down: another job's, it seems; give --job FILE with the job's machines`,
    );
    return withoutUnchanged(
      fleet,
      judged.filter((one) => !others.includes(one)),
      missing,
    );
  }
  if (fleet.roles.length < 2) return [...judged];
  const sound = judged.filter(({ evidence }) => {
    const asked = evidence.filter(({ decides, episode }) => decides && episode !== null);
    return asked.length > 0 && asked.length === evidence.filter(({ decides }) => decides).length
      ? asked.every((one) => peersChanged(fleet, one))
      : false;
  });
  for (const role of new Set(sound.map(({ machine }) => fleet.role[machine]!)))
    missing.push(
      `most machines of ${fleet.roles[role]!} changed together, the others of it and other stages did not: look at what they share (a switch, a rack, a file system)`,
    );
  return judged.filter((one) => !sound.includes(one));
}

/**
 * Of one machine that alone does as much as before, its share of work may have grown; several are not this job's, for all
 * machines of a job slow down together.
 */
function ofAnotherJob(judged: readonly Judged[]): Judged[] {
  const found = judged.filter(({ evidence }) => {
    const asked = evidence.filter(({ decides }) => decides);
    return (
      asked.length > 0 &&
      asked.every(
        ({ kind, deviation, machine, fromS, toS, episode }) =>
          kind === "gpu-work" &&
          deviation.direction === "high" &&
          Math.abs(change(episode!.view, machine, fromS, toS)) < UNCHANGED,
      )
    );
  });
  return found.length > 1 ? found : [];
}

function peersChanged({ role }: Fleet, { machine, fromS, toS, episode }: Evidence): boolean {
  const { view } = episode!;
  const mine = role[machine]!;
  const peers = peersOf(role, machine, MOST_ASKED);
  const others = Array.from(role.keys()).filter((m) => role[m] !== mine);
  const step = Math.max(1, Math.floor(others.length / MOST_ASKED));
  const changeOf = (machines: readonly number[]): number =>
    median(
      Float64Array.from(machines, (m) => change(view, m, fromS, toS)).filter((one) => one === one),
    );
  return (
    Math.abs(change(view, machine, fromS, toS)) < UNCHANGED &&
    Math.abs(changeOf([...peers])) > CHANGED &&
    Math.abs(changeOf(others.filter((_, i) => i % step === 0))) < UNCHANGED
  );
}

/** From before the episode to within it. */
function change(
  { grid, values, scale }: View,
  machine: number,
  fromS: number,
  toS: number,
): number {
  const { ticks, startS, stepS } = grid;
  const level = (from: number, to: number): number => {
    const first = Math.max(0, Math.floor((from - startS) / stepS));
    const last = Math.min(ticks, Math.ceil((to - startS) / stepS));
    const row = values.subarray(machine * ticks + first, machine * ticks + Math.max(first, last));
    return scale.to(median(Float64Array.from(row.filter((one) => one === one))));
  };
  const before = level(fromS - BEFORE_S, fromS - EDGE_S);
  return (level(Math.min(fromS + EDGE_S, toS - stepS), toS) - before) / scale.material;
}
