/** The collected tables, linked, as the model wants them. */
import type { InputShape, RankKernels, TraceGroup } from "../../model/kernels.ts";
import { linkTables } from "./link.ts";
import type { TraceCollector } from "./trace-collector.ts";
import { parseRanks, type TraceHeader } from "./trace-header.ts";

export function buildTrace(
  file: string,
  rank: number | null,
  header: TraceHeader,
  collector: TraceCollector,
  isCut: boolean,
): RankKernels {
  const { worldSize, backend, ncclVersion, host, devices } = header;
  const epochUs = Number.isNaN(collector.epochUs) ? 0 : collector.epochUs;
  const linked = linkTables(collector.tables);
  return {
    file,
    rank,
    worldSize,
    backend,
    ncclVersion,
    host,
    epochNs: header.baseNs + BigInt(Math.trunc(epochUs)) * 1000n,
    isCut,
    devices,
    names: collector.names.texts,
    ...linked,
    shapes: shapesOf(collector),
    groups: groupsOf(collector, header, linked.collectives),
    shortPythonCalls: collector.shortPythonCalls,
  };
}

function shapesOf({ shapes, lists }: TraceCollector): InputShape[] {
  return shapes.tuples.map(([dims, types]) => ({
    dims: dimsOf(parsed(lists.texts[dims!])),
    types: list(parsed(lists.texts[types!])).map((type) => (typeof type === "string" ? type : "")),
  }));
}

/** Lists of tensors nest one level deeper; they are laid out flat. */
function dimsOf(value: unknown): number[][] {
  return list(value).flatMap((dims) => {
    const sizes = list(dims);
    return sizes.some(Array.isArray) ? sizes.map(numbers) : [numbers(dims)];
  });
}

function numbers(value: unknown): number[] {
  return list(value).filter((size): size is number => typeof size === "number");
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function parsed(json: string | undefined): unknown {
  try {
    return JSON.parse(json ?? "[]");
  } catch {
    return [];
  }
}

function groupsOf(
  { groups, names, lists }: TraceCollector,
  header: TraceHeader,
  collectives: RankKernels["collectives"],
): TraceGroup[] {
  const sizes = new Int32Array(groups.tuples.length);
  for (let i = 0; i < collectives.count; i++) {
    const group = collectives.group[i]!;
    if (group >= 0) sizes[group] = collectives.groupSize[i]!;
  }
  return groups.tuples.map(([nameId, descId, ranksId], index) => {
    const name = names.texts[nameId!] ?? "";
    const known = header.groups.filter((group) => group.name === name);
    const desc = names.texts[descId!] ?? known[0]?.desc ?? "";
    const size = sizes[index]!;
    const isWorld = size > 0 && size === header.worldSize;
    const ranks =
      parseRanks(lists.texts[ranksId!] ?? "") ??
      (known.length === 1 ? known[0]!.ranks : null) ??
      (isWorld ? Array.from({ length: size }, (_, rank) => rank) : null);
    return { name: name === "" ? desc : name, desc, ranks };
  });
}
