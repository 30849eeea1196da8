/**
 * When did it become slow? Everything that has a known answer: `npm run eval:iterations [-- --quick]`. Prints
 * Markdown. Third-party data is read from ../shared/thirdparty where it lies, our recordings from
 * ../shared/recordings; what is not there is said and left out.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { evaluateTcpd } from "./change-points/tcpd.ts";
import { layouts, recordings } from "./iterations/from-operators.ts";
import { COMMUNICATION, COMPUTATION } from "./iterations/probe-jobs.ts";
import { table } from "./iterations/tables.ts";
import { alibaba, golden, pipemorph } from "./iterations/third-party.ts";
import { unpacked } from "./unpacked.ts";

const shared = fileURLToPath(new URL("../../shared", import.meta.url));
const thirdParty = join(shared, "thirdparty");
const isQuick = process.argv.includes("--quick");
const scale = isQuick ? 0.25 : 1;

console.log("# Iteration times, periods and change points\n");
console.log("## PipeMorph, 128 GPUs\n");
console.log(await pipemorph(thirdParty));
console.log("## Megatron-LM's golden values\n");
console.log(await golden(thirdParty));
console.log("## Alibaba's mini-batch times\n");
console.log(await alibaba(thirdParty));
console.log("## TCPD\n");
const tcpd = join(thirdParty, "changepoints-tcpd.tar.gz");
console.log(existsSync(tcpd) ? await unpacked(tcpd, evaluateTcpd) : "not here\n");
console.log("## Iteration times from operators alone: recordings\n");
console.log(await recordings(join(shared, "recordings")));
console.log("## Iteration times from operators alone: simulated layouts\n");
console.log(layouts(isQuick ? [1] : [1, 2, 3]));
console.log("## Greyhound's table 3\n");
console.log(table(COMPUTATION, 10_000, scale));
console.log("## Greyhound's table 4\n");
for (const seed of isQuick ? [20_000] : [20_000, 30_000, 40_000])
  console.log(table(COMMUNICATION, seed, scale));
