/** Draws the wait graph: who waits, in which operator, and who is not there. */
import { count, cutText, ranges, rankWords } from "../../base/text.ts";
import type { Job } from "../../model/job.ts";
import { html, type Markup } from "./escape.ts";
import type { Layout, PlacedEdge, PlacedNode } from "./wait-graph-layout.ts";
import { callName, type OpNode, type RankNode, type RankStatus } from "./wait-graph-nodes.ts";
import { ABSENCES, type Absence, type WaitOp } from "../../model/wait-ops.ts";

export const ABSENCE_WORDS: Readonly<Record<Absence, string>> = {
  silent: "no dump",
  "not-enqueued": "never issued",
  behind: "is behind",
};

export function drawGraph(job: Job, layout: Layout): Markup {
  const { nodes, edges } = layout;
  const [width, height] = [px(layout.width), px(layout.height)];
  const drawn = nodes.map((placed, index) =>
    placed.node.kind === "op"
      ? [drawOp(placed, placed.node), drawAbsences(layout, index)]
      : drawRanks(job, placed, placed.node),
  );
  return html`<svg
    class="wait-graph"
    role="img"
    aria-labelledby="graph-title graph-desc"
    width="${width}"
    height="${height}"
    viewBox="0 0 ${width} ${height}"
  >
    <title id="graph-title">Who waits for whom</title>
    <desc id="graph-desc">${describe(layout)}</desc>
    <defs>${arrowHead("arrow", "head")} ${arrowHead("arrow-culprit", "head culprit")}</defs>
    ${edges.map((edge) => drawEdge(layout, edge))} ${drawn}
  </svg>`;
}

function describe({ nodes, edges }: Layout): string {
  const blamed = nodes.flatMap(({ node }) =>
    node.kind === "ranks" && node.status === "culprit" ? node.ranks : [],
  );
  const end =
    blamed.length > 0 ? `the arrows lead to ${rankWords(blamed)}` : "no rank is suspected";
  return `${count(nodes.length, "node")} and ${count(edges.length, "arrow")}; ${end}. The list below says the same in words.`;
}

function arrowHead(id: string, style: string): Markup {
  return html`<marker
    id="${id}"
    viewBox="0 0 8 8"
    refX="8"
    refY="4"
    markerWidth="8"
    markerHeight="8"
    markerUnits="userSpaceOnUse"
    orient="auto"
  >
    <path class="${style}" d="M0 0 8 4 0 8z" />
  </marker>`;
}

function drawEdge({ nodes }: Layout, { from, to, why, laneX }: PlacedEdge): Markup {
  const [a, b] = [nodes[from]!, nodes[to]!];
  const toCulprit = b.node.kind === "ranks" && b.node.status === "culprit";
  const style = `edge${toCulprit ? " culprit" : ""}${why === "silent" ? " silent" : ""}${laneX === null ? "" : " round"}`;
  const [x1, y1, x2, y2] = [centre(a), a.y + a.height, centre(b), b.y];
  const half = (y1 + y2) / 2;
  const d =
    laneX === null
      ? `M${px(x1)} ${px(y1)}C${px(x1)} ${px(half)} ${px(x2)} ${px(half)} ${px(x2)} ${px(y2)}`
      : `M${px(x1)} ${px(y1)}V${px(y1 + 12)}H${px(laneX)}V${px(y2 - 16)}H${px(x2)}V${px(y2)}`;
  const head = toCulprit ? "arrow-culprit" : "arrow";
  return html`<path class="${style}" d="${d}" marker-end="url(#${head})" />`;
}

/** Why somebody is absent, in words below the operator, on the side that its arrows leave free. */
function drawAbsences({ nodes, edges }: Layout, op: number): Markup[] {
  const { y, height } = nodes[op]!;
  const middle = centre(nodes[op]!);
  const leaving = edges.filter(({ from }) => from === op);
  const turns = leaving.map(({ to, laneX }) => (laneX ?? centre(nodes[to]!)) - middle);
  const toLeft = turns.some((dx) => dx < -1);
  const toRight = turns.some((dx) => dx > 1);
  const whys = ABSENCES.filter((why) => leaving.some((edge) => edge.why === why));
  const side = toLeft && toRight ? "between" : toRight ? "left" : "right";
  const x = middle + { between: 0, left: -7, right: 7 }[side];
  // Arrows that part leave room between them only farther down.
  const first = y + height + (side === "between" ? 43 - LINE * (whys.length - 1) : 14);
  return whys.map((why, i) => {
    const words = ABSENCE_WORDS[why];
    return html`<text class="why ${side}" x="${px(x)}" y="${px(first + LINE * i)}">${words}</text>`;
  });
}

const LINE = 12;
/** What fits into a box, in characters. */
const MAX_NAME = 24;
const MAX_SUB = 22;
const MAX_ROLE = 26;

function drawOp(placed: PlacedNode, { ops }: OpNode): Markup {
  const names = new Set(ops.map(shortName));
  const name = names.size === 1 ? [...names][0]! : callName(ops[0]!);
  const times = ops.length > 1 ? ` ×${ops.length}` : "";
  const example = cutText(ops[0]!.what, 300);
  return drawBox(placed, {
    style: "op",
    radius: 3,
    title: ops.length === 1 ? example : `${ops.length} alike operators, for example ${example}`,
    name: `${cutText(name.length + times.length > MAX_NAME ? callName(ops[0]!) : name, MAX_NAME - times.length)}${times}`,
    sub: shortRole(ops[0]!.role),
  });
}

function drawRanks(job: Job, placed: PlacedNode, node: RankNode): Markup {
  const { ranks, status, isSilent } = node;
  const machine = ranks.length === 1 ? (job.ranks.get(ranks[0]!)?.machine ?? null) : null;
  const state = STATUS_WORDS[status];
  const one = machine === null ? state : `${state} · ${machine}`;
  return drawBox(placed, {
    style: `ranks ${status}${isSilent ? " no-dump" : ""}`,
    radius: placed.height / 2,
    title: `${rankWords(ranks)}${machine === null ? "" : ` on ${machine}`}: ${state}`,
    name: ranks.length === 1 ? `rank ${ranks[0]}` : count(ranks.length, "rank"),
    sub: ranks.length === 1 ? cutText(one, MAX_SUB) : shortRanges(ranks),
  });
}

interface Box {
  readonly style: string;
  readonly radius: number;
  readonly title: string;
  readonly name: string;
  readonly sub: string;
}

function drawBox(placed: PlacedNode, { style, radius, title, name, sub }: Box): Markup {
  const { x, y, width, height } = placed;
  const middle = px(centre(placed));
  return html`<g class="${style}">
    <title>${title}</title>
    <rect x="${px(x)}" y="${px(y)}" width="${width}" height="${height}" rx="${radius}" />
    <text class="name" x="${middle}" y="${px(y + 18)}">${name}</text>
    <text class="sub" x="${middle}" y="${px(y + 33)}">${sub}</text>
  </g>`;
}

const STATUS_WORDS: Readonly<Record<RankStatus, string>> = {
  culprit: "suspect",
  silent: "no dump",
  waiting: "waits",
  other: "not waiting",
};

/** "8–12, 14–20, …": whole parts only. */
function shortRanges(ranks: readonly number[]): string {
  const words = ranges(ranks, 6);
  if (words.length <= MAX_SUB) return words;
  const end = words.lastIndexOf(", ", MAX_SUB - 3);
  return end > 0 ? `${words.slice(0, end)}, …` : cutText(words, MAX_SUB);
}

/** "all_reduce #241"; "transfer 2 → 6". */
function shortName(op: WaitOp): string {
  const transfer = op.isP2p ? /from rank (\d+) to rank (\d+)/.exec(op.what) : null;
  if (transfer) return `transfer ${transfer[1]} → ${transfer[2]}`;
  const end = op.what.lastIndexOf(" of ");
  return end > 0 ? op.what.slice(0, end) : op.what;
}

function shortRole(role: string): string {
  if (role.length <= MAX_ROLE) return role;
  return cutText(role.replace(/_GROUP\b/i, "").replace(/_PARALLEL/i, ""), MAX_ROLE);
}

function centre({ x, width }: PlacedNode): number {
  return x + width / 2;
}

function px(value: number): string {
  return String(Math.round(value * 10) / 10);
}
