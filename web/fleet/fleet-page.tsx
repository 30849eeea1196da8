import type { VNode } from "preact";

export function FleetPage(): VNode {
  return <p></p>;
}
