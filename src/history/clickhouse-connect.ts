/** The way to a ClickHouse server: its address, its client, its errors in one sentence. */
import { Readable } from "node:stream";
import type { ClickHouseClient } from "@clickhouse/client";
import { UserError } from "../base/errors.ts";
import { cutText, harmless } from "../base/text.ts";
import { RowReader } from "./row-binary.ts";

export interface ClickHouseConnection {
  /** For errors; without the password. */
  readonly name: string;
  command(sql: string): Promise<void>;
  /** Resolves when the server has the rows. */
  insert(table: string, rows: Buffer): Promise<void>;
  select<T>(sql: string, row: (reader: RowReader) => T): Promise<T[]>;
  close(): Promise<void>;
}

/** The server said no, with its own code: unlike a server that is not there. */
export class ClickHouseRefusal extends Error {
  readonly code: string;
  constructor(message: string, code: string) {
    super(message);
    this.name = "ClickHouseRefusal";
    this.code = code;
  }
}

const MOST_ANSWER_BYTES = 512 << 20;

interface ClickHouseAddress {
  readonly url: string;
  readonly username: string;
  readonly password: string;
  readonly database: string;
  readonly name: string;
}

export function parseClickHouseUrl(text: string): ClickHouseAddress {
  const hint = "clickhouse://user:password@host:8123/database, or clickhouses:// for TLS";
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw new UserError("history: not an address of ClickHouse", hint, 2);
  }
  const isTls = url.protocol === "clickhouses:";
  if (!isTls && url.protocol !== "clickhouse:") {
    throw new UserError(`history: ${harmless(url.protocol)} is not known`, hint, 2);
  }
  if (url.hostname === "") throw new UserError("history: the address names no host", hint, 2);
  if (url.search !== "" || url.hash !== "") {
    throw new UserError("history: an address of ClickHouse has no ? or #", hint, 2);
  }
  const parts = [url.pathname.replace(/^\//, ""), url.username, url.password];
  let decoded: string[];
  try {
    decoded = parts.map(decodeURIComponent);
  } catch {
    throw new UserError(
      "history: a % in the address stands for nothing",
      `write it as %25; ${hint}`,
      2,
    );
  }
  const [database = "", username = "", password = ""] = decoded;
  const host = `${url.hostname}:${url.port === "" ? (isTls ? 8443 : 8123) : url.port}`;
  return {
    url: `${isTls ? "https" : "http"}://${host}`,
    username: username === "" ? "default" : username,
    password,
    database: database === "" ? "default" : database,
    name: `ClickHouse at ${host}`,
  };
}

export async function connectClickHouse(
  address: ClickHouseAddress,
  timeoutMs: number,
): Promise<ClickHouseConnection> {
  const { name } = address;
  const { createClient, ClickHouseLogLevel } = await import("@clickhouse/client");
  const client: ClickHouseClient = createClient({
    url: address.url,
    username: address.username,
    password: address.password,
    database: address.database,
    request_timeout: timeoutMs,
    application: "faultline",
    log: { level: ClickHouseLogLevel.OFF },
    clickhouse_settings: {
      // The whole answer before its first byte: an error half-way would otherwise look like data.
      wait_end_of_query: 1,
      // A name in a question may be long.
      max_query_size: String(64 << 20),
    },
  });

  async function exec(query: string, values?: Buffer): Promise<Buffer> {
    try {
      const { stream } = await client.exec(
        values === undefined ? { query } : { query, values: Readable.from([values]) },
      );
      const chunks: Buffer[] = [];
      let length = 0;
      for await (const chunk of stream) {
        const bytes = chunk as Buffer;
        length += bytes.length;
        if (length > MOST_ANSWER_BYTES) throw new Error("the answer is too large");
        chunks.push(bytes);
      }
      return Buffer.concat(chunks, length);
    } catch (error) {
      throw inOneSentence(name, error);
    }
  }

  return {
    name,
    async command(sql) {
      await exec(sql);
    },
    async insert(table, rows) {
      await exec(`INSERT INTO ${table} FORMAT RowBinary`, rows);
    },
    async select(sql, row) {
      const reader = new RowReader(await exec(`${sql} FORMAT RowBinary`));
      const rows = [];
      try {
        while (!reader.isAtEnd) rows.push(row(reader));
      } catch (error) {
        throw inOneSentence(name, error);
      }
      return rows;
    },
    close: async () => await client.close(),
  };
}

function inOneSentence(name: string, error: unknown): Error {
  const text = error instanceof Error ? error.message || error.name : String(error);
  const given = error instanceof Error && "code" in error ? String(error.code) : "";
  // The client does not know how servers of 2018 write their codes.
  const code = /^Code: (\d+)/.exec(text)?.[1] ?? given;
  const first = text
    .split(/\n|, Stack trace|, e\.what\(\)/, 1)[0]!
    .replace(/^Code: \d+, e\.displayText\(\) = DB::Exception: /, "");
  const said = cutText(harmless(first === "" ? code : first), 300);
  const sentence = `${name}: ${said}`;
  return /^\d+$/.test(code) ? new ClickHouseRefusal(sentence, code) : new Error(sentence);
}
