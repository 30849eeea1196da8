/** The thread in which all jobs of a service are judged. */
import { parentPort } from "node:worker_threads";
import { errorText } from "../../../base/errors.ts";
import { JudgeHost } from "./judge-host.ts";
import type { FromThread, ToThread } from "./judge-thread.ts";

const port = parentPort!;
const hosts = new Map<number, JudgeHost>();

port.on("message", ({ job, message }: ToThread) => {
  if (message === null) {
    hosts.delete(job);
    return;
  }
  let host = hosts.get(job);
  if (!host) hosts.set(job, (host = new JudgeHost()));
  try {
    const said = host.take(message);
    if (said.length > 0) port.postMessage({ job, said } satisfies FromThread);
  } catch (error) {
    // Other jobs are judged on.
    hosts.delete(job);
    port.postMessage({ job, failed: errorText(error) } satisfies FromThread);
  }
});
