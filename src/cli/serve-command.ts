/** Options and help of `faultline serve`. */
import type { Command } from "commander";
import { port } from "./arguments.ts";
import { seconds } from "./duration.ts";
import type { ServeCliFlags } from "./serve.ts";
import type { Io } from "./io.ts";

export function addServe(io: Io, program: Command, setStatus: (status: number) => void): void {
  program
    .command("serve")
    .description(
      "the live service: follows running jobs through their agents and names what is at fault",
    )
    .option("--config <file>", "JSON: tokens, TLS, alerts, actions, … (docs/guides/serve.md)")
    .option("--host <name>", "address to listen on (default 127.0.0.1)")
    .option(
      "--port <n>",
      "port for agents, the page and Prometheus (default 7077; 0: any free port)",
      port,
    )
    .option("--data <dir>", "data folder (default ~/.local/share/faultline)")
    .option("--history <where>", "a DuckDB file, or clickhouse://user:password@host:8123/database")
    .option("--nats <url>", "share jobs with other services over NATS JetStream: nats://a,b,c")
    .option("--prometheus <url>", "also watch machines, with the metrics of this server")
    .option(
      "--match <labels>",
      "which machines, as PromQL label matchers: cluster='a',job=~'dcgm|node'",
    )
    .option("--alertmanager <url...>", "send incidents to these Alertmanagers")
    .option("--hang <time>", "no progress for this long is a hang (default 30s)", seconds)
    .option("--allowed-hosts <name...>", "host names that clients may use")
    .option("--tls-cert <file>", "TLS certificate with its chain, PEM")
    .option("--tls-key <file>", "TLS private key, PEM")
    .option("--public-read", "reading needs no token")
    .option("--insecure", "listen beyond loopback without tokens: anyone may read and send")
    .option("--json", "print one JSON document per line on stdout")
    .option("--quiet", "no remarks on stderr")
    .addHelpText("after", EXAMPLES)
    .action(async (flags: ServeCliFlags) => {
      const { runServe } = await import("./serve.ts");
      setStatus(await runServe(io, flags, program.version() ?? ""));
    });
}

const EXAMPLES = `
Agents on the machines of a job (faultline agent --server URL) report how long iterations take and keep everything else.
When iterations get longer, the service fetches single operators until it knows what is at fault. When the job hangs or
a process dies, it collects the evidence and diagnoses it. Incidents survive a restart.

Examples:
  faultline serve                                          everything on this machine, no configuration
  faultline serve --alertmanager http://alertmanager:9093 --prometheus http://prometheus:9090 --match 'job=~"dcgm|node"'
  faultline serve --config /etc/faultline.json --host 0.0.0.0
  faultline serve --nats nats://n1,n2,n3 --history clickhouse://faultline:secret@ch:8123/faultline
  faultline simulate --live http://127.0.0.1:7077 --gpus 64    a job to rehearse on
  curl -s http://127.0.0.1:7077/api/v1/incidents?open=true | jq .`;
