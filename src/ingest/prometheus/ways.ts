/** The ways to get one metric's samples of a span of time. Each writes what comes into the series it is given. */
import { ApiAnswerScanner } from "../metrics/api-answer.ts";
import { ExportLineScanner } from "../metrics/export-lines.ts";
import type { LabelledSeries } from "../metrics/labelled-series.ts";
import { ChunkedAnswer } from "./chunked-answer.ts";
import { ServerFailure } from "./failure.ts";
import { type Head, request, type Request, type Target } from "./http.ts";
import { type Matcher, selector } from "./matchers.ts";
import { readRequest } from "./wire.ts";

export type Way = "remote-read" | "raw" | "query-range" | "export";

/** Both ends belong to it. */
export interface Span {
  readonly startMs: number;
  readonly endMs: number;
}

export interface Wanted {
  readonly name: string;
  readonly matchers: readonly Matcher[];
  /** Of query-range. */
  readonly stepMs: number;
}

/** What the server remarks on its answer, and what of it could not be read: ends of sentences. */
export interface Taken {
  readonly bytes: number;
  readonly remarks: readonly string[];
}

type Take = (target: Target, wanted: Wanted, span: Span, series: LabelledSeries) => Promise<Taken>;

/** More points than this in a series, and query_range refuses to answer. */
const MOST_POINTS = 11_000;

const STREAMED = "application/x-streamed-protobuf";

async function takeRemoteRead(
  target: Target,
  { name, matchers }: Wanted,
  { startMs, endMs }: Span,
  series: LabelledSeries,
): Promise<Taken> {
  const ofName: Matcher = { label: "__name__", op: "=", value: name };
  const answer = new ChunkedAnswer(series, startMs, endMs);
  const asked: Request = {
    path: "/api/v1/read",
    body: readRequest([ofName, ...matchers], startMs, endMs),
    headers: {
      "content-type": "application/x-protobuf",
      "content-encoding": "snappy",
      "x-prometheus-remote-read-version": "0.1.0",
    },
  };
  const bytes = await request(target, asked, ({ type }) => {
    if (type !== STREAMED) {
      throw new ServerFailure("not-found", "it has no streamed remote read");
    }
    return (chunk) => answer.push(chunk);
  });
  answer.end();
  const remarks: string[] = [];
  if (answer.badChunks > 0) remarks.push(`${answer.badChunks} damaged chunks were left out`);
  if (answer.otherChunks > 0) remarks.push("its native histograms were left out");
  return { bytes, remarks };
}

async function takeRaw(
  target: Target,
  { name, matchers }: Wanted,
  { startMs, endMs }: Span,
  series: LabelledSeries,
): Promise<Taken> {
  // Prometheus 3 leaves out a range's start, 2 does not: one more millisecond, and we cut it ourselves.
  const query = `${selector(name, matchers)}[${endMs - startMs + 1}ms]`;
  const asked = [
    ["query", query],
    ["time", String(endMs / 1000)],
  ] as const;
  return takeAnswer(target, "/api/v1/query", asked, new ApiAnswerScanner(series, startMs / 1000));
}

async function takeQueryRange(
  target: Target,
  { name, matchers, stepMs }: Wanted,
  { startMs, endMs }: Span,
  series: LabelledSeries,
): Promise<Taken> {
  let bytes = 0;
  const remarks = new Set<string>();
  for (let at = startMs; at <= endMs; at += MOST_POINTS * stepMs) {
    const last = Math.min(at + (MOST_POINTS - 1) * stepMs, endMs);
    const asked = [
      ["query", selector(name, matchers)],
      ["start", String(at / 1000)],
      ["end", String(last / 1000)],
      ["step", String(stepMs / 1000)],
    ] as const;
    const scanner = new ApiAnswerScanner(series);
    const taken = await takeAnswer(target, "/api/v1/query_range", asked, scanner);
    bytes += taken.bytes;
    for (const remark of taken.remarks) remarks.add(remark);
  }
  return { bytes, remarks: [...remarks] };
}

async function takeAnswer(
  target: Target,
  path: string,
  query: Request["query"] & {},
  scanner: ApiAnswerScanner,
): Promise<Taken> {
  const bytes = await request(target, { path, query }, (head) => {
    expectJson(head);
    return (chunk) => scanner.push(chunk);
  });
  const { isWhole, error, warnings, isPartial, defect } = scanner.end();
  if (error !== null) throw new ServerFailure("busy", error);
  if (defect !== null) throw new ServerFailure("foreign", `its answer ${defect}`);
  if (!isWhole) throw new ServerFailure("cut", "the answer broke off");
  const partial = isPartial ? ["the server says that a part of its stores did not answer"] : [];
  return { bytes, remarks: [...partial, ...warnings.map((words) => `the server warns: ${words}`)] };
}

async function takeExport(
  target: Target,
  { name, matchers }: Wanted,
  { startMs, endMs }: Span,
  series: LabelledSeries,
): Promise<Taken> {
  const scanner = new ExportLineScanner(series);
  const query = [
    ["match[]", selector(name, matchers)],
    ["start", String(startMs / 1000)],
    ["end", String(endMs / 1000)],
  ] as const;
  const bytes = await request(target, { path: "/api/v1/export", query }, (head) => {
    expectJson(head);
    return (chunk) => scanner.push(chunk);
  });
  const { badLines, isWhole } = scanner.end();
  if (!isWhole) throw new ServerFailure("cut", "the answer broke off");
  return { bytes, remarks: badLines > 0 ? [`${badLines} lines of its export are no export`] : [] };
}

/** Of any kind: VictoriaMetrics calls raw samples and exports application/stream+json. */
function expectJson({ type }: Head): void {
  if (type === "" || type.includes("json")) return;
  const given = type === "text/html" ? "a web page" : type;
  throw new ServerFailure("foreign", `it answers with ${given}, not with the Prometheus API`);
}

export const WAYS: Readonly<Record<Way, Take>> = {
  "remote-read": takeRemoteRead,
  raw: takeRaw,
  "query-range": takeQueryRange,
  export: takeExport,
};
