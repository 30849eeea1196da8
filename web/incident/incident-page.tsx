import type { VNode } from "preact";

export function IncidentPage({ id }: { readonly id: string }): VNode {
  return <p>{id}</p>;
}
