import { expect, it } from "vitest";
import type { Job } from "../model/job.ts";
import type { Method } from "../model/method.ts";
import { ask } from "./diagnose.ts";

it("lets others have their turn between two methods: the live service must answer its agents", async () => {
  const turns: string[] = [];
  const methodOf = (name: string): Method => ({
    id: "slow/judge",
    applies: () => true,
    run() {
      turns.push(name);
      setImmediate(() => turns.push(`answered after ${name}`));
      return [];
    },
  });
  const env = { signal: new AbortController().signal, progress: () => undefined };
  await ask({} as Job, env, [methodOf("first"), methodOf("second")]);
  expect(turns).toEqual(["first", "answered after first", "second"]);
});
