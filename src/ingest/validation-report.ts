/** What a rank measured when it was asked to test its GPU and links (model/validation.ts), as the probe writes it. */
import { MAX_RANKS, type Rank } from "../model/ids.ts";
import type { Defect } from "../model/reading.ts";
import type { GemmTest, TransferTest, ValidationReport } from "../model/validation.ts";
import { type Fields, fieldsOf, jsonOf } from "../base/json.ts";
import type { Head, Reader } from "./reader.ts";
import { wholeFile } from "./whole-file.ts";

const FORMAT = "validation-report";
const SCHEMA = "faultline.validation/1";
/** A rank of a group of thousands takes part in a handful of transfers: a report is some kilobytes. */
const MAX_BYTES = 64 * 1024 * 1024;

export const validationReport: Reader = {
  format: FORMAT,
  sniff: ({ text }: Head) =>
    /^\s*\{/.test(text) && /"schema"\s*:\s*"faultline\.validation\//.test(text),
  open: (file) =>
    wholeFile(MAX_BYTES, (bytes) => {
      const defects: Defect[] = [];
      const report = parse(file, bytes, (what) => void defects.push({ file, what }));
      return {
        file,
        format: FORMAT,
        rank: report?.rank ?? null,
        records: report ? report.gemm.length + report.transfers.length : 0,
        defects,
        ...(report ? { validations: [report] } : {}),
      };
    }),
};

function parse(
  file: string,
  bytes: Buffer | null,
  say: (what: string) => void,
): ValidationReport | null {
  if (bytes === null) {
    say("a validation report of more than 64 MB: not read");
    return null;
  }
  const json = jsonOf(bytes.toString("utf8"));
  if (json === undefined) {
    say("the validation report is cut off or not JSON");
    return null;
  }
  const root = fieldsOf(json);
  if (!root) {
    say("the validation report is not a JSON object");
    return null;
  }
  if (root["schema"] !== SCHEMA) {
    say(`a validation report of schema ${words(root["schema"])}; this Faultline reads ${SCHEMA}`);
    return null;
  }
  const rank = rankOf(root["rank"]);
  if (rank === null) {
    say("the validation report names no rank");
    return null;
  }
  const gemm = read(root["gemm"], gemmOf);
  const transfers = read(root["transfers"], transferOf);
  const bad = gemm.bad + transfers.bad;
  if (bad > 0) say(`${bad} of the validation report's measurements cannot be read`);
  // What the probe could not do: a member that did not come, a link that was too slow.
  const remark = text(root["remark"]);
  if (remark !== "") say(remark);
  const group = Array.isArray(root["group"]) ? root["group"].map(rankOf) : [];
  return {
    file,
    rank,
    host: text(root["host"]),
    device: text(root["device"]),
    iteration: amount(root["iteration"]),
    timeMs: amount(root["timeMs"]),
    ...(amount(root["tookMs"]) === null ? {} : { tookMs: amount(root["tookMs"])! }),
    group: group.filter((member) => member !== null),
    gemm: gemm.list,
    transfers: transfers.list,
  };
}

function read<T>(value: unknown, one: (fields: Fields) => T | null): { list: T[]; bad: number } {
  const given: readonly unknown[] = Array.isArray(value) ? value : [];
  const list = given.flatMap((item) => {
    const fields = fieldsOf(item);
    return (fields && one(fields)) ?? [];
  });
  return { list, bad: given.length - list.length };
}

function gemmOf(fields: Fields): GemmTest | null {
  const [m, n, k] = [amount(fields["m"]), amount(fields["n"]), amount(fields["k"])];
  const ms = times(fields["ms"]);
  if (m === null || n === null || k === null || ms === null) return null;
  return { dtype: text(fields["dtype"]), m, n, k, ms };
}

function transferOf(fields: Fields): TransferTest | null {
  const { topology } = fields as { topology?: unknown };
  const [from, to] = [rankOf(fields["from"]), rankOf(fields["to"])];
  const [pass, bytes] = [amount(fields["pass"]), amount(fields["bytes"])];
  const ms = times(fields["ms"]);
  if (topology !== "ring" && topology !== "tree" && topology !== "rail") return null;
  if (from === null || to === null || pass === null || bytes === null || ms === null) return null;
  const iteration = amount(fields["iteration"]);
  return { topology, pass, from, to, bytes, ms, ...(iteration === null ? {} : { iteration }) };
}

function times(value: unknown): number[] | null {
  if (!Array.isArray(value) || value.length === 0) return null;
  const ms = value.map(amount);
  return ms.every((one): one is number => one !== null && one > 0) ? ms : null;
}

function amount(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : null;
}

function rankOf(value: unknown): Rank | null {
  const rank = amount(value);
  return rank !== null && Number.isInteger(rank) && rank < MAX_RANKS ? rank : null;
}

function text(value: unknown): string {
  return typeof value === "string" ? value.slice(0, 256) : "";
}

function words(value: unknown): string {
  return typeof value === "string" ? value.slice(0, 40) : "that it does not name";
}
