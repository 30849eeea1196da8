/** A process of its own: one fleet at a time. */
import { WORK, type InputOf, type OutputOf, type Order, type WorkName } from "./work.ts";

process.on("message", ({ name, input }: Order) => {
  const work = WORK[name] as (input: InputOf<WorkName>) => OutputOf<WorkName>;
  process.send!(work(input));
});
