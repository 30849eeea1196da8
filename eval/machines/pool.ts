/** Work in processes of their own, as many as there are cores for. */
import { fork, type ChildProcess } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { InputOf, Order, OutputOf, WorkName } from "./work.ts";

const WORKER = fileURLToPath(new URL("./worker.ts", import.meta.url));

export class Pool {
  readonly #children: readonly ChildProcess[];

  constructor(workers: number) {
    this.#children = Array.from({ length: workers }, () =>
      fork(WORKER, [], {
        execArgv: ["--max-old-space-size=6144", "--import", "tsx"],
        // NaN and infinity are answers.
        serialization: "advanced",
      }),
    );
  }

  /** Outcomes in the order of the inputs. `most`: no more processes than that at once. */
  async run<Name extends WorkName>(
    name: Name,
    inputs: readonly InputOf<Name>[],
    most: number = this.#children.length,
  ): Promise<OutputOf<Name>[]> {
    const outcomes: OutputOf<Name>[] = [];
    const started = performance.now();
    let next = 0;
    let done = 0;
    const lane = async (child: ChildProcess): Promise<void> => {
      while (next < inputs.length) {
        const at = next++;
        outcomes[at] = (await ask(child, { name, input: inputs[at]! })) as OutputOf<Name>;
        done++;
        if (done % Math.ceil(inputs.length / 20) === 0)
          console.error(
            `${name}: ${done} of ${inputs.length}, ${Math.round((performance.now() - started) / 1000)} s`,
          );
      }
    };
    await Promise.all(this.#children.slice(0, most).map(lane));
    return outcomes;
  }

  close(): void {
    for (const child of this.#children) child.disconnect();
  }
}

async function ask(child: ChildProcess, order: Order): Promise<unknown> {
  return await new Promise((resolve, reject) => {
    const failed = (code: number | null): void =>
      reject(new Error(`a worker ended with ${code} over ${JSON.stringify(order)}`));
    child.once("exit", failed);
    child.once("message", (outcome) => {
      child.off("exit", failed);
      resolve(outcome);
    });
    child.send(order);
  });
}
