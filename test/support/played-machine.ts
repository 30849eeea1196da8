/** A machine for the doctor to look at: processes, shared memory, the kernel's log, all in a folder. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runDoctor, type DoctorFlags } from "../../src/cli/doctor/doctor.ts";
import type { Line } from "../../src/cli/doctor/line.ts";
import type { UserError } from "../../src/base/errors.ts";
import { TEST_CERTIFICATE, TEST_KEY } from "./live/tls.ts";
import { thisMachine } from "../../src/live/agent/process-state.ts";

const TICKS = 4242;

export class PlayedMachine {
  readonly folder = mkdtempSync(join(tmpdir(), "faultline-doctor-"));
  readonly proc = join(this.folder, "proc");
  readonly rings = join(this.folder, "shm", "faultline-7");
  readonly kernelLog = join(this.folder, "kmsg");
  readonly data = join(this.folder, "data");
  readonly #servers: Server[] = [];
  settingsFault: UserError | null = null;

  constructor() {
    mkdirSync(this.rings, { recursive: true, mode: 0o700 });
    mkdirSync(this.data);
    writeFileSync(this.kernelLog, "");
    this.process(1, "init", {});
  }

  /** What proc(5) would say of it. */
  process(
    pid: number,
    comm: string,
    environment: Readonly<Record<string, string>>,
    commandLine: readonly string[] = [comm],
    parent = 1,
  ): { readonly pid: number; readonly startTicks: number } {
    const folder = join(this.proc, String(pid));
    mkdirSync(folder, { recursive: true });
    const words = Object.entries(environment).map(([name, value]) => `${name}=${value}\0`);
    writeFileSync(join(folder, "environ"), words.join(""));
    writeFileSync(join(folder, "comm"), `${comm}\n`);
    writeFileSync(join(folder, "cmdline"), `${commandLine.join("\0")}\0`);
    const fields = ["S", parent, ...Array<number>(17).fill(0), TICKS, 0];
    writeFileSync(join(folder, "stat"), `${pid} (${comm}) ${fields.join(" ")}\n`);
    return { pid, startTicks: TICKS };
  }

  rank(rank: number, environment: Readonly<Record<string, string>> = {}) {
    const own = { RANK: String(rank), WORLD_SIZE: "8", FAULTLINE_PROBE: "1" };
    return this.process(100 + rank, "python3", { ...own, ...environment });
  }

  /** Answers by path: a status and a body, or what is wrong with the server. */
  async serve(
    answers: Readonly<Record<string, readonly [status: number, body: unknown]>>,
    { dateMs, isTls = false }: { readonly dateMs?: number; readonly isTls?: boolean } = {},
  ): Promise<string> {
    const answer = (request: IncomingMessage, response: ServerResponse): void => {
      const path = (request.url ?? "").split("?")[0]!;
      const [status, body] = answers[path] ?? [404, { error: "there is nothing at this path" }];
      if (dateMs !== undefined) response.setHeader("date", new Date(dateMs).toUTCString());
      response.writeHead(status, { "content-type": "application/json" });
      response.end(typeof body === "string" ? body : JSON.stringify(body));
    };
    const server = isTls
      ? createTlsServer({ cert: TEST_CERTIFICATE, key: TEST_KEY }, answer)
      : createServer(answer);
    this.#servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return `http${isTls ? "s" : ""}://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  /** A service that is well, and what of it is not. */
  async service(
    health: Readonly<Record<string, unknown>> = {},
    more: {
      readonly status?: number;
      readonly agents?: readonly [number, unknown];
    } = {},
  ): Promise<string> {
    const well = { status: "ok", store: "ok", broker: "none", nowMs: Date.now() };
    return await this.serve({
      "/healthz": [more.status ?? 200, { ...well, ...health }],
      "/api/v1/agents": more.agents ?? [200, { agents: [] }],
    });
  }

  async examine(
    flags: DoctorFlags = {},
  ): Promise<{ lines: readonly Line[]; text: string; status: number }> {
    const around = {
      machine: { ...thisMachine(), proc: this.proc, sharesNumbers: true },
      shared: join(this.folder, "shm"),
      kernelLog: this.kernelLog,
      timeoutMs: 500,
      settings: { file: null, fault: this.settingsFault },
    };
    let text = "";
    let json = "";
    const io = (write: (part: string) => void) => ({
      out: { write },
      err: { write: () => undefined },
      env: {},
    });
    const all = { dir: [this.rings], data: this.data, exitCode: true, ...flags };
    const status = await runDoctor(
      io((part) => (text += part)),
      all,
      around,
    );
    await runDoctor(
      io((part) => (json += part)),
      { ...all, json: true },
      around,
    );
    const { checks } = JSON.parse(json) as { checks: Line[] };
    return { lines: checks, text, status };
  }

  close(): void {
    for (const server of this.#servers) server.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
