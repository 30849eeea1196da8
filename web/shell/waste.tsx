import type { VNode } from "preact";
import { useWaste } from "./price.ts";

/** "12.5 GPU-hours · $31.30" */
export function Waste({ gpuMs }: { readonly gpuMs: number }): VNode {
  const { hours, money } = useWaste(gpuMs);
  return (
    <span class="num nowrap">
      {hours} <span class="soft">·</span> {money}
    </span>
  );
}
