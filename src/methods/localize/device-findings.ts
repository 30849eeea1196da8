/** The ranking of devices beside what the other witnesses say, and a word where they disagree. */
import type { NewFinding } from "../../model/finding.ts";
import type { DeviceScore } from "./attribution/accumulate.ts";
import type { Attribution } from "./attribute.ts";
import type { SlowFinding, Witness } from "./slow-findings.ts";

/** Devices that are shown (the paper's K is 2). */
const SHOWN = 5;
/** Irregularities below which a ranking says nothing; and how far ahead another device must be to be a contradiction. */
const FEWEST = 4;
const AHEAD = 1.5;

export function withDevices(finding: SlowFinding, { devices, searched }: Attribution): SlowFinding {
  const shown = devices.slice(0, SHOWN).map(({ device, score, irregularities }) => ({
    kind: device.kind,
    name: device.name,
    ranks: device.ranks.length <= 16 ? device.ranks : device.ranks.slice(0, 16),
    score: Number(score.toPrecision(3)),
    irregularities,
  }));
  return { ...finding, data: { ...finding.data, devices: shown, iterationsSearched: searched } };
}

/** null where the ranking agrees, or tells too little to disagree. */
export function fromDevices(
  { devices, searched, irregularities }: Attribution,
  found: readonly NewFinding[],
  { lacks }: Witness,
): NewFinding | null {
  const [top] = devices;
  const blamed = new Set(found.flatMap(({ accuses }) => accuses.flatMap(({ ranks }) => ranks)));
  const serves = ({ device }: DeviceScore): boolean =>
    device.ranks.some((rank) => blamed.has(rank));
  if (!top || irregularities < FEWEST || 2 * top.irregularities < irregularities) return null;
  if (serves(top)) return null;
  const best = devices.find(serves);
  if (best && top.score < AHEAD * best.score) return null;
  const says = `slow iterations taken one by one speak for another device: ${top.device.name} (${top.irregularities} of ${irregularities} searches in ${searched} iterations)`;
  return {
    says,
    weight: 0.2,
    at: found[0]!.at,
    data: { fact: "other-device", disagrees: true, speaksFor: top.device.name },
    accuses: [],
    clears: [],
    lacks,
  };
}
