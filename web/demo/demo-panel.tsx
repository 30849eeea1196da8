import type { VNode } from "preact";

export function DemoPanel(): VNode {
  return <p></p>;
}
