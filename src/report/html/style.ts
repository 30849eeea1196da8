import { PARTS_STYLE } from "../parts/parts-style.ts";
import { THEME_STYLE } from "../parts/theme.ts";
import { MACHINES_STYLE } from "./machines-style.ts";

/** Styles of the page of logs. */
const LOGS_STYLE = `
.log-timeline text { font-size: 11.5px; fill: var(--text); }
.log-timeline .name { text-anchor: end; } .log-timeline .end { text-anchor: end; }
.log-timeline line { stroke: var(--line); stroke-width: 1; }
.log-timeline circle { stroke: var(--bad); stroke-width: 1.5; fill: var(--page); }
.log-timeline .root { fill: var(--bad); }
pre.scroll { padding: 8px 10px; white-space: pre-wrap; overflow-wrap: anywhere; }
`;

/** The page's whole style. No url() and no import: the page's policy would refuse them anyway. */
export const STYLE = `
${THEME_STYLE}* { box-sizing: border-box; }
html { font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif;
  background: var(--page); color: var(--text); -webkit-text-size-adjust: 100%; }
body { max-width: 1200px; margin: 0 auto; padding: 24px 24px 48px; }
h1 { font-size: 1.9rem; line-height: 1.25; margin: 8px 0 16px; font-weight: 650; text-wrap: pretty;
  overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin: 40px 0 12px; padding-top: 12px; border-top: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 0 0 6px; }
section > h3 { margin-top: 16px; }
p { margin: 0 0 10px; overflow-wrap: anywhere; }
ul, ol { padding-left: 22px; margin: 0 0 12px; }
li { overflow-wrap: anywhere; }
a { color: var(--link); }
code, pre { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: .875em; }
.note, footer { color: var(--soft); font-size: .9rem; }
.hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }

nav { display: flex; flex-wrap: wrap; gap: 4px 20px; margin: 16px 0 0; font-size: .95rem; }
section { scroll-margin-top: 8px; }
#suspects > h2 { border-top: 0; margin-top: 16px; }

.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: 4px; margin-bottom: 10px; }
.tall { max-height: 75vh; overflow-y: auto; }
.wait-graph { display: block; margin: 0 auto; }
.wait-graph text { font-size: 12px; text-anchor: middle; fill: var(--text); }
.wait-graph .name { font-weight: 600; }
.wait-graph .sub { font-size: 10.5px; fill: var(--soft); }
.wait-graph .why { font-size: 11px; fill: var(--soft); }
.wait-graph .right { text-anchor: start; } .wait-graph .left { text-anchor: end; }
.ranks rect { fill: var(--wait-soft); stroke: var(--wait); stroke-width: 1.25; }
.ranks.other rect, .ranks.silent rect { fill: var(--page); stroke: var(--soft); }
.ranks.culprit rect { fill: var(--bad-soft); stroke: var(--bad); stroke-width: 3; }
.ranks.no-dump rect { stroke-dasharray: 6 4; }
.op rect { fill: var(--panel); stroke: var(--soft); stroke-width: 1; }
.edge { fill: none; stroke: var(--soft); stroke-width: 1.4; } .edge.culprit { stroke: var(--bad); stroke-width: 2; }
.edge.silent { stroke-dasharray: 6 4; } .edge.round { stroke-dasharray: 2 3; stroke-linejoin: round; }
.head { fill: var(--soft); } .head.culprit { fill: var(--bad); }
.legend { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: 4px 20px; font-size: .85rem;
  color: var(--soft); }
.key { display: inline-block; width: 22px; height: 13px; border-radius: 7px; border: 1.5px solid var(--wait);
  background: var(--wait-soft); vertical-align: -1px; }
.key.culprit { border: 3px solid var(--bad); background: var(--bad-soft); }
.key.silent { border: 1.5px dashed var(--soft); background: none; }
.key.op { border-color: var(--soft); border-radius: 2px; background: var(--panel); }

.iteration-series { margin: 20px 0 28px; } .iteration-series h3 { overflow-wrap: anywhere; }
.iteration-series h3 .note { font-weight: 400; }
.iteration-plot { display: block; width: 100%; min-width: 700px; height: auto; }
.iteration-plot text { font-size: 11px; fill: var(--text); paint-order: stroke; stroke: var(--page);
  stroke-width: 2.5px; stroke-linejoin: round; font-variant-numeric: tabular-nums; }
.iteration-plot .band text { stroke: none; }
.iteration-plot text.soft { fill: var(--soft); }
.iteration-plot .middle { text-anchor: middle; } .iteration-plot .left { text-anchor: end; }
.iteration-plot path { fill: none; }
.grid, .axis { stroke: var(--line); pointer-events: none; } .axis { stroke: var(--soft); }
.dots, .joined, .ranges, .median, .level { pointer-events: none; }
.dots { stroke: var(--wait); stroke-width: 2.2; stroke-linecap: round; } .dots.few { stroke-width: 4; }
.joined { stroke: var(--wait); stroke-width: .8; opacity: .6; }
.ranges { stroke: var(--wait); stroke-width: 1; opacity: .45; } .median { stroke: var(--wait); stroke-width: 1.2; }
.level { stroke: var(--text); stroke-width: 1.4; }
.band.slow rect { fill: var(--bad-soft); } .band.fluctuating rect { fill: var(--warn-soft); }
.iteration-plot .hatch { stroke: var(--warn); stroke-width: .7; opacity: .45; }
.iteration-plot .hit { stroke: transparent; stroke-width: 9; pointer-events: stroke; }
.change .rule { stroke-width: 1.2; } .restart .rule { stroke: var(--soft); stroke-width: 1.2; stroke-dasharray: 5 4; }
.change .slope { stroke-width: 2; stroke-dasharray: 6 3; fill: none; } .change.slower .slope { stroke: var(--bad); } .change.faster .slope { stroke: var(--good); }
.change.slower .rule { stroke: var(--bad); } .change.faster .rule { stroke: var(--good); }
.change.slower .arrow { fill: var(--bad); } .change.faster .arrow { fill: var(--good); }
.restart text { fill: var(--soft); }
.spike path { fill: var(--page); stroke: var(--warn); stroke-width: 1.8; }
.pause path { fill: var(--page); stroke: var(--soft); stroke-width: 1.2; }
.clipped path { fill: var(--wait); }
.key-plot { display: inline-block; width: 22px; min-width: 0; vertical-align: -2px; }
.iteration-table td { white-space: nowrap; font-variant-numeric: tabular-nums; }
${PARTS_STYLE}${MACHINES_STYLE}${LOGS_STYLE}
table { border-collapse: separate; border-spacing: 0; font-size: .85rem; min-width: 100%; }
th, td { padding: 4px 10px; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
thead th { position: sticky; top: 0; background: var(--panel); z-index: 2; vertical-align: bottom; }
.frontiers td { font-variant-numeric: tabular-nums; white-space: nowrap; }
.frontiers thead th { font-size: .75rem; line-height: 1.3; }
.frontiers th small { display: block; font-weight: 400; color: var(--soft); }
.frontiers th:first-child { position: sticky; left: 0; background: var(--panel); z-index: 1; white-space: nowrap;
  font-weight: 400; max-width: 260px; overflow: hidden; text-overflow: ellipsis;
  border-right: 1px solid var(--line); }
.frontiers thead th:first-child { z-index: 3; font-weight: 600; }
.frontiers .suspect > *, .frontiers .suspect > th:first-child { background: var(--bad-soft); }
.frontiers .suspect > th { box-shadow: inset 4px 0 var(--bad); }
.state { color: var(--soft); } .suspect .state { color: var(--bad); font-weight: 700; }
.lag { color: var(--bad); font-weight: 700; text-decoration: underline; text-underline-offset: 2px; }
.lag small { font-size: .8em; margin-left: 2px; }
.none { color: var(--soft); font-style: italic; } .number { text-align: right; font-variant-numeric: tabular-nums; }

summary { cursor: pointer; color: var(--link); }
details { margin-bottom: 10px; }
pre { background: var(--panel); border-radius: 4px; padding: 10px 12px; overflow: auto; max-height: 420px;
  white-space: pre-wrap; overflow-wrap: anywhere; margin: 8px 0 0; }
.fold > summary { margin-bottom: 8px; }
details > .scroll, details > ul { margin-top: 8px; }
.inputs td:first-child { overflow-wrap: anywhere; }
footer { border-top: 1px solid var(--line); margin-top: 40px; padding-top: 12px; }

@media (max-width: 640px) {
  body { padding: 12px 12px 32px; }
  h1 { font-size: 1.35rem; }
  .tall { max-height: 85vh; }
  .frontiers th:first-child { max-width: 140px; }
}
@media print {
  * { print-color-adjust: exact; }
  html { font-size: 11px; }
  body { max-width: none; padding: 0; }
  nav, .fold:not([open]) { display: none; }
  .scroll, .tall { overflow: visible; max-height: none; border: 0; }
  .wait-graph { max-width: 100%; height: auto; } .iteration-plot { min-width: 0; }
  thead th, .frontiers th:first-child { position: static; }
  .wait-graph, .iteration-plot { break-inside: avoid; }
  h2, h3 { break-after: avoid; }
  pre { max-height: none; }
}
`;
