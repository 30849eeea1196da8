/** Stacks of all processes on request, and who cannot give them. */
import { answers, ask, stacksRequest } from "../rings/control.ts";
import { isAlive, type FoundRing } from "../rings/discover.ts";

/** Has the processes write their stacks beside their rings; a line for each that did not. */
export async function requestStacks(
  rings: readonly FoundRing[],
  limitMs: number,
): Promise<string[]> {
  const lines: string[] = [];
  const python = rings.filter(({ header }) => header.writer === "python");
  const answering = python.filter((ring) => isAlive(ring) && !/^[Tt]$/.test(ring.process.state));
  for (const ring of python) {
    if (answering.includes(ring)) continue;
    const why = isAlive(ring) ? "is stopped and cannot write its stacks" : "is gone";
    lines.push(`${nameOf(ring)} ${why}`);
  }
  if (python.length === 0 && rings.length > 0)
    lines.push(
      "stacks: no ring of a Python probe here; py-spy dump --pid N takes them from outside",
    );
  const { asked, troubles } = ask(answering, stacksRequest);
  for (const { ring, why } of troubles)
    lines.push(`${nameOf(ring)}: stacks cannot be requested: ${why}`);
  for (const { ring } of await answers(asked, stacksRequest, limitMs))
    lines.push(
      `${nameOf(ring)} did not write its stacks within ${limitMs / 1000} s; try py-spy dump --pid ${ring.header.pid}`,
    );
  return lines;
}

export function nameOf({ header }: FoundRing): string {
  return header.rank < 0 ? `process ${header.pid}` : `rank ${header.rank} (process ${header.pid})`;
}
