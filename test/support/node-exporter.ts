/** Debian's prometheus-node-exporter, and a small exporter that plays whatever it is told, on addresses of loopback. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { programPath, unlessThere } from "./lacking.ts";

const PROGRAM = programPath("prometheus-node-exporter", "node_exporter");

export const whyNoNodeExporter = unlessThere(
  PROGRAM !== null,
  "node_exporter",
  "prometheus-node-exporter",
);

export interface Running {
  stop(): Promise<void>;
}

/** Answers at http://address:port/metrics as soon as it is scraped. */
export function startNodeExporter(address: string, port: number): Running {
  const child = spawn(PROGRAM!, [`--web.listen-address=${address}:${port}`], { stdio: "ignore" });
  const kill = (): void => void child.kill("SIGKILL");
  process.once("exit", kill);
  return {
    async stop() {
      process.off("exit", kill);
      const ended = once(child, "exit");
      child.kill("SIGTERM");
      await ended;
    },
  };
}

export async function playExporter(
  address: string,
  port: number,
  text: () => string,
): Promise<Running> {
  const server = createServer((_, answer) => {
    answer.setHeader("content-type", "text/plain; version=0.0.4");
    answer.end(text());
  });
  server.listen(port, address);
  await once(server, "listening");
  return {
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
