import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { recognise } from "./formats.ts";
import {
  readAtAllSizes,
  readBytes,
  readCutEverywhere,
} from "../../test/support/ingest/reader-contract.ts";
import { xpuTimer } from "./xpu-timer.ts";

const of = (rank: number, more = ""): string =>
  `{${more}ip="10.0.0.4",job_name="j1",local_rank="${rank % 8}",pod_name="w-1",rank="${rank}"}`;

const SCRAPE = `# HELP exposer_scrapes_total Number of times metrics were scraped
# TYPE exposer_scrapes_total counter
exposer_scrapes_total 6174
exposer_request_latencies{quantile="0.5"} 888
# TYPE XPU_TIMER_MM_KERNEL_AVG_LATENCY gauge
XPU_TIMER_MM_KERNEL_AVG_LATENCY${of(9, 'dtype="bf16",level="7",operation="Matmul",')} 19063
XPU_TIMER_MM_KERNEL_P99_LATENCY${of(9, 'dtype="bf16",level="7",operation="Matmul",')} 2e4
XPU_TIMER_MM_KERNEL_FLOPS${of(9, 'dtype="bf16",level="7",operation="Matmul",')} 412.5
XPU_TIMER_COLL_KERNEL_BANDWIDTH${of(8, 'algorithm="RING_LL",dtype="bf16",level="3",operation="AllReduce",small="0",transport="InterNode",')} 41.7
XPU_TIMER_COLL_KERNEL_MAX_LATENCY${of(8, 'algorithm="RING_LL",dtype="bf16",level="3",operation="AllReduce",small="0",transport="InterNode",')} 90 1700000000000
XPU_TIMER_COMMON_HANG${of(9)} 1
XPU_TIMER_COMMON_HANG${of(8)} 0
XPU_TIMER_COMMON_WORK_QUEUE_SIZE${of(9)} 14
XPU_TIMER_COMMON_GC_COUNT${of(9)} 3
XPU_TIMER_COMMON_START_DUMP${of(9)} 0
`;
const read = (text: string) => readBytes(xpuTimer, "scrape.txt", text);

describe("a scrape of xpu_timer", () => {
  const scrape = read(SCRAPE).xpuTimer!;

  test("is recognised by its gauges, also behind those of the exposer", () => {
    const bytes = Buffer.from(SCRAPE);
    const head = { name: "scrape", bytes, text: bytes.toString("latin1") };
    expect(recognise(head)?.format).toBe("xpu-timer");
    const log = "starting\nXPU_TIMER_HANG_TIMEOUT=300\n";
    expect(xpuTimer.sniff({ ...head, text: log })).toBe(false);
  });

  test("tells which ranks hang, and what they queue", () => {
    expect(scrape.jobName).toBe("j1");
    expect(scrape.ranks).toMatchObject([
      { rank: 8, localRank: 0, isHung: false, ip: "10.0.0.4", pod: "w-1" },
      { rank: 9, localRank: 1, isHung: true, workQueue: 14, gcCount: 3, poolQueue: NaN },
    ]);
  });

  test("joins the gauges of a bucket into one row", () => {
    expect(scrape.kernels).toMatchObject([
      { rank: 9, kind: "matmul", level: 7, avgUs: 19063, p99Us: 20000, flops: 412.5, minUs: NaN },
      { rank: 8, kind: "collective", operation: "AllReduce", algorithm: "RING_LL", maxUs: 90 },
    ]);
    expect(scrape.kernels[1]).toMatchObject({ bandwidth: 41.7, transport: "InterNode" });
  });

  test("names lines that cannot be read", () => {
    const { defects, xpuTimer: rest } = read(`${SCRAPE}XPU_TIMER_COMMON_HANG{rank="x"} 1\n`);
    const what = "1 line cannot be read; the first is this one";
    expect(defects).toMatchObject([{ line: SCRAPE.split("\n").length, what }]);
    expect(rest!.ranks).toHaveLength(2);
  });

  test("reads the same at any chunk size, cut anywhere, and never throws", () => {
    for (const other of readAtAllSizes(xpuTimer, "scrape.txt", SCRAPE)) {
      expect(other).toEqual(read(SCRAPE));
    }
    expect(readCutEverywhere(xpuTimer, "scrape.txt", SCRAPE)).toHaveLength(SCRAPE.length + 1);
    fc.assert(
      fc.property(fc.nat(SCRAPE.length), fc.string(), (at, text) => {
        read(SCRAPE.slice(0, at) + text + SCRAPE.slice(at));
      }),
    );
  });
});
