import { LOGS_STYLE } from "./logs-style.ts";
import { MACHINES_STYLE } from "./machines-style.ts";
import { TRACE_STYLE } from "./trace-style.ts";

/** The page's whole style. No url() and no import: the page's policy would refuse them anyway. */
export const STYLE = `
:root { color-scheme: light dark;
  --page: #ffffff; --panel: #f5f6f8; --line: #d4d8df; --text: #16191f; --soft: #545c69; --link: #0b57b0;
  --bad: #b3141d; --bad-soft: #fdecec; --warn: #8a5200; --warn-soft: #fdf3e0; --good: #17692f; --good-soft: #e7f5ea;
  --open: #4b5563; --open-soft: #eef0f3; --wait: #2f5d94; --wait-soft: #e9f0f9; }
@media screen and (prefers-color-scheme: dark) { :root {
  --page: #14171c; --panel: #1d2128; --line: #3a414c; --text: #e8eaee; --soft: #a5adba; --link: #86b7ff;
  --bad: #ff8b86; --bad-soft: #3a1a1c; --warn: #f2b866; --warn-soft: #33260f; --good: #7fd698; --good-soft: #14301d;
  --open: #b6bdc9; --open-soft: #262b33; --wait: #93bdf5; --wait-soft: #1a2a40; } }
* { box-sizing: border-box; }
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
code, pre, .id { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: .875em; }
.note, footer { color: var(--soft); font-size: .9rem; }
.hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
.line { display: flex; flex-wrap: wrap; align-items: center; gap: 6px 12px; margin: 0 0 8px; }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }

.verdict { border-left: 8px solid var(--tone); background: var(--tone-soft); padding: 18px 22px 16px;
  border-radius: 4px; }
.bad { --tone: var(--bad); --tone-soft: var(--bad-soft); }
.warn { --tone: var(--warn); --tone-soft: var(--warn-soft); }
.good { --tone: var(--good); --tone-soft: var(--good-soft); }
.open { --tone: var(--open); --tone-soft: var(--open-soft); }
.badge { background: var(--tone); color: var(--page); font-weight: 700; letter-spacing: .06em;
  text-transform: uppercase; padding: 2px 12px; border-radius: 4px; }
.job { color: var(--soft); overflow-wrap: anywhere; }
.facts { display: flex; flex-wrap: wrap; gap: 8px 36px; margin: 0; }
.facts dt { color: var(--soft); font-size: .85rem; }
.facts dd { margin: 0; font-weight: 600; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.bar { width: 100px; height: 8px; vertical-align: middle; }
.bar .track { fill: var(--line); } .bar .fill { fill: var(--text); }
.verdict .bar .fill { fill: var(--tone); }
nav { display: flex; flex-wrap: wrap; gap: 4px 20px; margin: 16px 0 0; font-size: .95rem; }
section { scroll-margin-top: 8px; }
#suspects h2 { border-top: 0; margin-top: 16px; }

.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 360px), 1fr)); gap: 14px;
  margin-bottom: 14px; }
.cards:has(> :only-child) { grid-template-columns: 1fr; }
.card { border: 1px solid var(--line); border-left: 5px solid var(--bad); border-radius: 4px; padding: 14px 16px;
  background: var(--panel); min-width: 0; }
.card h3 { font-size: 1.15rem; overflow-wrap: anywhere; } .card > :last-child { margin-bottom: 0; }
.cause { border: 1px solid var(--bad); color: var(--bad); border-radius: 4px; padding: 0 8px; font-weight: 600; }
.actions li { margin-bottom: 10px; } .target { color: var(--soft); }
.command { white-space: nowrap; max-width: 100%; display: inline-flex; vertical-align: bottom;
  border: 1px solid var(--line); border-radius: 4px; background: var(--panel); margin: 0 2px; }
.command code { padding: 1px 8px; overflow-x: auto; }
.command button { display: none; border: 0; border-left: 1px solid var(--line); background: none;
  color: var(--link); font: inherit; font-size: .8rem; padding: 0 8px; cursor: pointer; }
.js .command button { display: block; }

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
.change.slower .rule { stroke: var(--bad); } .change.faster .rule { stroke: var(--good); }
.change.slower .arrow { fill: var(--bad); } .change.faster .arrow { fill: var(--good); }
.restart text { fill: var(--soft); }
.spike path { fill: var(--page); stroke: var(--warn); stroke-width: 1.8; }
.pause path { fill: var(--page); stroke: var(--soft); stroke-width: 1.2; }
.clipped path { fill: var(--wait); }
.key-plot { display: inline-block; width: 22px; min-width: 0; vertical-align: -2px; }
.iteration-table td { white-space: nowrap; font-variant-numeric: tabular-nums; }
${TRACE_STYLE}${MACHINES_STYLE}${LOGS_STYLE}
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

.finding { border: 1px solid var(--line); border-radius: 4px; padding: 12px 16px; margin-bottom: 12px;
  scroll-margin-top: 8px; }
.finding:target { border-color: var(--link); box-shadow: 0 0 0 2px var(--link); }
.finding > :last-child { margin-bottom: 0; } .finding h3 { font-weight: 400; }
.id { font-weight: 700; font-size: 1rem; } .weight { color: var(--soft); font-size: .85rem; }
.places code { display: inline-block; background: var(--panel); border-radius: 3px; padding: 0 6px;
  overflow-wrap: anywhere; }
summary { cursor: pointer; color: var(--link); }
details { margin-bottom: 10px; }
pre { background: var(--panel); border-radius: 4px; padding: 10px 12px; overflow: auto; max-height: 420px;
  white-space: pre-wrap; overflow-wrap: anywhere; margin: 8px 0 0; }
details > .scroll, details > ul { margin-top: 8px; }
.inputs td:first-child { overflow-wrap: anywhere; }
footer { border-top: 1px solid var(--line); margin-top: 40px; padding-top: 12px; }

@media (max-width: 640px) {
  body { padding: 12px 12px 32px; }
  h1 { font-size: 1.35rem; }
  .verdict { padding: 14px; border-left-width: 6px; }
  .facts { gap: 8px 24px; }
  .command { white-space: normal; }
  .tall { max-height: 85vh; }
  .frontiers th:first-child { max-width: 140px; }
}
@media print {
  * { print-color-adjust: exact; }
  html { font-size: 11px; }
  body { max-width: none; padding: 0; }
  nav, .js .command button { display: none; }
  .scroll, .tall { overflow: visible; max-height: none; border: 0; }
  .wait-graph { max-width: 100%; height: auto; } .iteration-plot { min-width: 0; }
  thead th, .frontiers th:first-child { position: static; }
  .card, .finding, .verdict, .wait-graph, .iteration-plot { break-inside: avoid; }
  h2, h3 { break-after: avoid; }
  pre { max-height: none; }
}
`;
