/** Ranks and machines by name. */
import type { VNode } from "preact";
import { rankWords } from "../../src/base/text.ts";

export function Rank({ rank }: { readonly rank: number }): VNode {
  return <span class="num nowrap">rank {rank}</span>;
}

/** "ranks 0–7" */
export function Ranks({ ranks }: { readonly ranks: readonly number[] }): VNode {
  // A suspect may cover ten thousand ranks: ranges are made of the first thousands only.
  const words = ranks.length === 0 ? "no rank" : rankWords(ranks.slice(0, 20_000));
  return <span class="num">{words}</span>;
}

/** Names are strangers' and may be long: cut, with the rest in the title. */
export function Machine({ name }: { readonly name: string | null }): VNode {
  if (name === null) return <span class="soft">machine unknown</span>;
  const shown = name.slice(0, 200);
  return (
    <span class="machine cut" title={shown}>
      {shown}
    </span>
  );
}

export function Machines({
  names,
  most = 6,
}: {
  readonly names: readonly string[];
  readonly most?: number;
}): VNode {
  return (
    <span class="machines">
      {names.slice(0, most).map((name) => (
        <Machine key={name} name={name} />
      ))}
      {names.length > most && <span class="soft">and {names.length - most} more</span>}
    </span>
  );
}
