/** What the plug-in makes of servers that refuse, send it elsewhere or never end, and of names that are none. */
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { nameOf } from "../../../src/live/service/microbatches/requests.ts";
import { fakeJob, PLUG_IN, python, type Started } from "./processes.ts";
import { until } from "../../support/until.ts";
import { unlessThere } from "../../support/lacking.ts";
import { longTest } from "../../support/cases.ts";

interface Endpoint {
  readonly url: string;
  /** The first bytes of each connection. */
  readonly requests: string[];
  stop(): void;
}

/** A server of plain bytes: `reply` may do with a connection as it likes. */
async function serveBytes(reply: (socket: Socket) => void): Promise<Endpoint> {
  const requests: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined).on("close", () => sockets.delete(socket));
    socket.once("data", (data) => {
      requests.push(String(data));
      reply(socket);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const stop = (): void => {
    for (const socket of sockets) socket.destroy();
    server.close();
  };
  return { url: `http://127.0.0.1:${port}`, requests, stop };
}

const answerOf = (status: string, body = "", header = ""): string =>
  `HTTP/1.1 ${status}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n${header}\r\n${body}`;

const troubleOf = (job: Started): string => job.lines.at(-1)?.trouble ?? "no answer yet";

/** The trouble of a job that asks this server, and what it logs. */
async function troubleWith(endpoint: Endpoint): Promise<{ trouble: string; said: string }> {
  const job = fakeJob(endpoint.url, 100_000, 0.02, -1);
  try {
    await until(
      () => troubleOf(job) !== "no answer yet",
      () => job.said(),
    );
    // It has not given up, and asks again.
    const asked = endpoint.requests.length;
    await until(
      () => endpoint.requests.length > asked,
      () => job.said(),
    );
    for (const { counts } of job.lines) expect(counts).toEqual([4, 4, 4, 4]);
    return { trouble: troubleOf(job), said: job.said() };
  } finally {
    job.child.kill("SIGKILL");
  }
}

const whyNoPython = unlessThere(python !== null, "Python", "python3");

describe.skipIf(python === null)(`answers to the plug-in${whyNoPython}`, () => {
  it("follows no redirect: the token would go with it", async () => {
    const elsewhere = await serveBytes((socket) => socket.end(answerOf("200 OK", "{}")));
    const to = `location: ${elsewhere.url}/\r\n`;
    const controller = await serveBytes((socket) => socket.end(answerOf("302 Found", "", to)));
    const { trouble } = await troubleWith(controller);
    controller.stop();
    elsewhere.stop();
    expect(trouble).toBe("302 Found: redirects are not followed");
    expect(controller.requests[0]).toContain("Bearer secret");
    expect(elsewhere.requests).toEqual([]);
  });

  it("says the controller's reason, in a line that a terminal can take", async () => {
    const error = "\u001b[31mno \u001b]0;x\u0007room\r\n\u202e for more";
    const long = JSON.stringify({ error: "x".repeat(5000) });
    const replies: [reply: string, trouble: string][] = [
      [answerOf("429 Too Many Requests", JSON.stringify({ error })), "429 no room for more"],
      [answerOf("400 Bad Request", long), `400 ${"x".repeat(196)}`],
      [answerOf("500 \u001b[31mOops\u001b]0;x\u0007", "<html>"), "500 Oops"],
      [answerOf("503 Busy", "[".repeat(100_000)), "503 Busy"],
    ];
    for (const [reply, wanted] of replies) {
      const controller = await serveBytes((socket) => socket.end(reply));
      const { trouble, said } = await troubleWith(controller);
      controller.stop();
      expect(trouble).toBe(wanted);
      expect(said).toContain(`no plan for fake from ${controller.url} (${trouble})`);
      expect(said).not.toMatch(/[^\n\x20-\x7e]/);
    }
  });

  longTest("gives up on answers that never end", async () => {
    const drip = (socket: Socket, head: string): void => {
      socket.write(head);
      const drops = setInterval(() => socket.write(" "), 50);
      socket.on("close", () => clearInterval(drops));
    };
    const flood = (socket: Socket, head: string, rest: string): void => {
      const more = (): void => {
        while (socket.writable && socket.write(rest));
      };
      socket.on("drain", more).write(head);
      more();
    };
    const late = "no complete answer within 0.5 s";
    const replies: [reply: (socket: Socket) => void, trouble: string][] = [
      [(socket) => drip(socket, "HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n"), late],
      [(socket) => drip(socket, "HTTP/1.1 200 OK\r\nx: "), late],
      [(socket) => drip(socket, ""), late],
      [() => undefined, late],
      [
        (socket) => flood(socket, "", "HTTP/1.1 100 Continue\r\n\r\n".repeat(1000)),
        "the answer is too long",
      ],
      [
        (socket) => flood(socket, "HTTP/1.1 200 OK\r\n\r\n", " ".repeat(1 << 16)),
        "JSONDecodeError",
      ],
    ];
    for (const [reply, wanted] of replies) {
      const controller = await serveBytes(reply);
      const { trouble } = await troubleWith(controller);
      controller.stop();
      expect(trouble.split(":")[0]).toBe(wanted);
    }
  });

  it("takes the names that the controller takes, and says at the start that others are none", () => {
    const good = ["a", "0", "llama-7b_v1-2", "x".repeat(64), "A--", "a-"];
    const bad = [
      "",
      "llama-7b_v1.2",
      "A..",
      "x".repeat(65),
      "llama 7b",
      "-a",
      ".",
      "_a",
      "a/b",
      "a\n",
      "é",
      "a%20",
      "٣",
    ];
    const names = [...good, ...bad];
    const code = `import json, sys; from faultline_microbatches import MicroBatches
def why(name):
    try: MicroBatches(None, name, 4, 0, 1)
    except ValueError as error: return str(error)
print(json.dumps([why(name) for name in json.load(sys.stdin)]))`;
    const { stdout } = spawnSync(python!, ["-c", code], {
      input: JSON.stringify(names),
      encoding: "utf8",
      env: { ...process.env, PYTHONPATH: PLUG_IN, PYTHONDONTWRITEBYTECODE: "1" },
    });
    const reasons = JSON.parse(stdout) as (string | null)[];
    names.forEach((name, i) => {
      let refusal: string | null = null;
      try {
        nameOf(name, "job");
      } catch (error) {
        refusal = (error as Error).message;
      }
      expect(reasons[i]?.split(", not ")[0] ?? null, JSON.stringify(name)).toBe(refusal);
    });
    expect(reasons.filter((reason) => reason === null)).toHaveLength(good.length);
  });
});
