/** Every format we read, in the order in which they are tried: the strict before the lenient. */
import { cudaGdb } from "./cuda-gdb.ts";
import { fabricTable } from "./fabric/fabric-table.ts";
import { infinibandLinks } from "./fabric/infiniband.ts";
import { kubernetesNodes } from "./fabric/kubernetes-nodes.ts";
import { lldp } from "./fabric/lldp.ts";
import { netbox } from "./fabric/netbox.ts";
import { slurmTopology } from "./fabric/slurm-topology.ts";
import { ufmLinks } from "./fabric/ufm-links.ts";
import { flightRecorder } from "./flight-recorder/reader.ts";
import { checkPattern, type ReadOptions } from "./iteration-pattern.ts";
import { kineto } from "./kineto.ts";
import { iterationTable } from "./iteration-table.ts";
import { metricApi } from "./metric-api.ts";
import { metricParquet } from "./metric-parquet.ts";
import { metricTable } from "./metric-table.ts";
import { ncclDebugLog } from "./nccl-debug-log.ts";
import { ncclInspector } from "./nccl-inspector.ts";
import { ncclRasJson } from "./nccl-ras-json.ts";
import { ncclRasText } from "./nccl-ras-text.ts";
import { openMetrics } from "./open-metrics.ts";
import { operatorsFile } from "./operators-file.ts";
import { probeRing } from "./probe-ring.ts";
import { pythonStacks } from "./python-stacks.ts";
import { rankLog, rankLogWith } from "./rank-log.ts";
import { isAnyText, isReadable } from "./rank-log/sniff.ts";
import type { Head, Reader } from "./reader.ts";
import { torchtitanJsonl } from "./torchtitan-jsonl.ts";
import { validationReport } from "./validation-report.ts";

const READERS: readonly Reader[] = [
  probeRing,
  cudaGdb,
  validationReport,
  // Before the flight recorder, whose dumps have a pg_config too.
  kineto,
  flightRecorder,
  operatorsFile,
  ncclInspector,
  ncclRasJson,
  ncclRasText,
  lldp,
  infinibandLinks,
  kubernetesNodes,
  ufmLinks,
  netbox,
  slurmTopology,
  pythonStacks,
  ncclDebugLog,
  torchtitanJsonl,
  openMetrics,
  metricApi,
  metricParquet,
  // Before the other tables: it needs a column for the machine and one for its place, and no time.
  fabricTable,
  iterationTable,
  metricTable,
  rankLog,
];

const LOG_READERS: readonly Reader[] = [ncclDebugLog, { ...rankLog, sniff: isAnyText }];

/** The readers for what the user asks; a bad pattern is a UserError. */
export function readersFor({ pattern, isOfLogs }: ReadOptions): readonly Reader[] {
  if (isOfLogs) return LOG_READERS;
  if (pattern === undefined) return READERS;
  const withPattern = rankLogWith(checkPattern(pattern));
  return READERS.map((reader) => (reader === rankLog ? withPattern : reader));
}

export function recognise(head: Head, readers = READERS): Reader | null {
  const known = readers.find((reader) => reader.sniff(head));
  if (known) return known;
  // Whatever else can be read as text is a log: `faultline logs` reads it, and so does everything else.
  return isReadable(head) ? (readers.find(({ format }) => format === "rank-log") ?? null) : null;
}
