import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { askRas, rasAddress } from "./ras-client.ts";

const servers: Server[] = [];
const sockets: Socket[] = [];
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
  for (const server of servers.splice(0)) server.close();
});

/** Answers each line by what `say` returns for it. */
async function ras(say: (line: string, socket: Socket) => string): Promise<number> {
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on("error", () => {});
    socket.on("data", (chunk) => {
      for (const line of chunk.toString().split("\n").slice(0, -1)) socket.write(say(line, socket));
    });
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

const greet = (line: string): string | null =>
  line.startsWith("CLIENT") ? "SERVER PROTOCOL 2\n" : line.startsWith("SET") ? "OK\n" : null;
const ask = (port: number, limits = {}): ReturnType<typeof askRas> =>
  askRas({ host: "127.0.0.1", port, handshakeMs: 100, answerMs: 200, ...limits });

describe("NCCL's RAS", () => {
  it("is read to the end of its answer, however it is cut", async () => {
    const port = await ras((line, socket) => {
      const greeting = greet(line);
      if (greeting !== null) return greeting;
      setTimeout(() => socket.end("two parts"), 30);
      return "an answer in ";
    });
    const { bytes, format, defect } = await ask(port);
    expect([bytes.toString(), format, defect]).toEqual(["an answer in two parts", "json", null]);
  });

  it("keeps what came of an answer without end", async () => {
    const port = await ras((line) => greet(line) ?? "the beginning");
    const { bytes, defect } = await ask(port);
    expect(bytes.toString()).toBe("the beginning");
    expect(defect).toBe("did not finish its answer within 0.2 s");
  });

  it("does not take more than it was told to", async () => {
    const port = await ras((line) => greet(line) ?? "x".repeat(200_000));
    const { bytes, defect } = await ask(port, { mostBytes: 100_000 });
    expect(bytes.length).toBeLessThanOrEqual(200_000);
    expect(defect).toContain("longer than 100000 bytes");
  });

  it("gives up on whoever never answers, speaks otherwise, or is not there", async () => {
    const silent = await ras(() => "");
    await expect(ask(silent, { handshakeMs: 10 })).rejects.toThrow(/does not answer \(8 tried\)/);
    const other = await ras(() => "y".repeat(70_000));
    await expect(ask(other)).rejects.toThrow(/not NCCL's RAS/);
    const closes = await ras((line, socket) => {
      const greeting = greet(line);
      if (greeting === null) socket.end();
      return greeting ?? "";
    });
    await expect(ask(closes)).rejects.toThrow(/without an answer/);
    await expect(ask(1)).rejects.toThrow(/ECONNREFUSED/);
  });

  it("has addresses as NCCL_RAS_ADDR writes them", () => {
    expect(rasAddress("localhost:28028")).toEqual({ host: "localhost", port: 28_028 });
    expect(rasAddress("[fe80::1]:7000")).toEqual({ host: "fe80::1", port: 7000 });
    expect(rasAddress("node003")).toEqual({ host: "node003", port: 28_028 });
    expect(rasAddress(":7000")).toEqual({ host: "localhost", port: 7000 });
    expect(rasAddress("a:b:c")).toBeNull();
    expect(rasAddress("host:99999")).toBeNull();
  });
});
