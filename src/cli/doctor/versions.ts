/** Versions that do not go together: Node, this program, the service, its agents. */
import { type Line, linesOf, some } from "./line.ts";

export interface VersionsSeen {
  readonly node: string;
  readonly own: string;
  /** null where it did not say. */
  readonly service: string | null;
  readonly agents: readonly { readonly agent: string; readonly version: string }[];
}

const LEAST_NODE = [20, 11] as const;
const { ok, warning, broken } = linesOf("versions");

export function judgeVersions({ node, own, service, agents }: VersionsSeen): Line {
  const [major = 0, minor = 0] = node.split(".").map(Number);
  if (major < LEAST_NODE[0] || (major === LEAST_NODE[0] && minor < LEAST_NODE[1]))
    return broken(
      `Node.js ${node} is too old, ${LEAST_NODE.join(".")} is the least`,
      "nvm install 22    # or use the executable, which brings its own",
    );
  if (service !== null && service !== own)
    return warning(
      `the service is version ${service}, this program is ${own}`,
      `npm install -g faultline@${service}    # service and agents need not change together`,
    );
  const reference = service ?? own;
  const other = agents.filter(({ version }) => version !== reference);
  if (other.length > 0)
    return warning(
      `agents of another version than ${reference}: ${some(other.map(({ agent, version }) => `${agent} ${version}`))}`,
      `npm install -g faultline@${reference} && systemctl restart faultline-agent    # on those machines`,
    );
  const all = [`faultline ${own}`, ...(service === null ? [] : ["the service"])];
  const too = agents.length > 0 ? ", all agents too" : "";
  return ok(
    `${all.join(" and ")}${service === null ? "" : " are the same"}${too}; Node.js ${node}`,
  );
}
