import type { VNode } from "preact";

export function JobPage({ job }: { readonly job: string }): VNode {
  return <p>{job}</p>;
}
