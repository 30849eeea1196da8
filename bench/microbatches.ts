/**
 * How long the exact micro-batch allocation takes (npm run bench:microbatches). Greyhound's Table 5: 35.93 s for 512
 * replicas with a solver; ours is to stay below 1 ms for 512 and 50 ms for 16,384.
 */
import { seeded } from "../src/base/random.ts";
import { allocateMicroBatches } from "../src/mitigate/microbatches.ts";

const PAPER_S: Readonly<Record<number, number>> = {
  16: 0.01,
  32: 0.01,
  64: 0.01,
  128: 0.11,
  256: 6.78,
  512: 35.93,
};
const ROUNDS = 50;

console.log(
  "| replicas | micro-batches | first call, ms | median, ms | worst, ms | Greyhound, ms |",
);
console.log("|---|---|---|---|---|---|");
for (const replicas of [16, 32, 64, 128, 256, 512, 2048, 16_384]) {
  const random = seeded(replicas);
  const total = 16 * replicas;
  const spans: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const timesMs = Float64Array.from({ length: replicas }, () =>
      random() < 0.1 ? 100 * (1 + 2 * random()) : 100 * (1 + 0.02 * random()),
    );
    const fixedMs = timesMs.map((time) => 7 * time);
    const start = performance.now();
    allocateMicroBatches({ timesMs, fixedMs, total });
    spans.push(performance.now() - start);
  }
  const first = spans[0]!;
  spans.sort((a, b) => a - b);
  const paper = PAPER_S[replicas];
  console.log(
    `| ${replicas} | ${total} | ${first.toFixed(3)} | ${spans[ROUNDS >> 1]!.toFixed(3)} | ${spans[ROUNDS - 1]!.toFixed(3)} | ${paper === undefined ? "–" : 1000 * paper} |`,
  );
}
