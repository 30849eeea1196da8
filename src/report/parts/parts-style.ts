/**
 * The style of the parts, in the colours of theme.ts. Everything stands under a class of its own, so that it can be
 * adopted beside any other style. No url() and no import: pages' policies would refuse them anyway.
 */
import { MACHINE_PLOT_STYLE } from "../html/machines-style.ts";

/** Colours and lines of the pictures of kernel timelines; the same class means the same thing in all of them. */
const TRACE_STYLE = `
.trace-plot { display: block; width: 100%; min-width: 760px; height: auto; }
.trace-plot text { font-size: 11px; fill: var(--text); font-variant-numeric: tabular-nums; }
.trace-plot text.soft { fill: var(--soft); } .trace-plot text.name { font-weight: 600; }
.trace-plot text.inside { fill: var(--page); text-anchor: middle; pointer-events: none; }
.trace-plot text.inside.on-light { fill: #16191f; }
.trace-plot .middle { text-anchor: middle; } .trace-plot .left { text-anchor: end; }
.trace-plot .matrix { fill: var(--matrix); } .trace-plot .minority { fill: var(--minority); }
.trace-plot .copy { fill: var(--copy); } .trace-plot .communication { fill: var(--comm); }
.trace-plot .launch-gap { fill: var(--late); } .trace-plot .idle { fill: var(--idle); }
.trace-plot .synchronization { fill: var(--sync); } .trace-plot .dataloader { fill: var(--loader); }
.trace-plot .memory-management { fill: var(--memory); } .trace-plot .garbage-collection { fill: var(--collect); }
.trace-plot .launch { fill: var(--launch); } .trace-plot .cpu-track { fill: var(--panel); }
.trace-plot .call { fill: transparent; } .trace-plot .call:hover { stroke: var(--text); }
.trace-plot .step-edge { stroke: var(--text); stroke-width: 1; stroke-dasharray: 3 2; fill: none; }
.trace-plot .grid, .trace-plot .axis { fill: none; }
.trace-plot .cdf { fill: none; stroke: var(--late); stroke-width: 2.4; stroke-linejoin: round; }
.trace-plot .cdf.base { stroke: var(--loader); stroke-dasharray: 7 4; } .trace-plot .cdf.one { stroke-width: .8; opacity: .55; }
.trace-plot .thin { opacity: .6; }
.trace-key { display: inline-block; width: 18px; min-width: 0; height: 12px; vertical-align: -1px; }
`;

const MONO = `ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace`;

const HEAD = `
.fl-head { border-left: 8px solid var(--tone); background: var(--tone-soft); padding: 14px 20px 12px;
  border-radius: 4px; }
.fl-head h1 { font-size: clamp(1.2rem, 0.9rem + 1.2vw, 1.8rem); line-height: 1.25; margin: 6px 0 8px; font-weight: 650; text-wrap: pretty;
  overflow-wrap: anywhere; }
.fl-bad { --tone: var(--bad); --tone-soft: var(--bad-soft); }
.fl-warn { --tone: var(--warn); --tone-soft: var(--warn-soft); }
.fl-good { --tone: var(--good); --tone-soft: var(--good-soft); }
.fl-open { --tone: var(--open); --tone-soft: var(--open-soft); }
.fl-badge { background: var(--tone); color: var(--page); font-weight: 700; letter-spacing: .06em;
  text-transform: uppercase; padding: 2px 12px; border-radius: 4px; }
.fl-about { color: var(--soft); overflow-wrap: anywhere; min-width: 0; }
.fl-effect { margin: 0 0 10px; font-size: 1.05rem; overflow-wrap: anywhere; }
.fl-facts { display: flex; flex-wrap: wrap; gap: 4px 28px; margin: 0; }
.fl-do { border: 2px solid var(--link); border-radius: 6px; padding: 12px 16px; margin: 14px 0; }
.fl-do { font-size: 1.05rem; } .fl-do-first { color: var(--link); }
.fl-do > :last-child, .fl-do .fl-note { margin-bottom: 0; }
.fl-alike { padding-left: 22px; margin: 0; }
.fl-proof > summary { cursor: pointer; font-size: 1.15rem; font-weight: 650; padding: 10px 0; color: var(--link); }
.fl-facts dt { color: var(--soft); font-size: .85rem; }
.fl-facts dd { margin: 0; font-weight: 600; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.fl-bar { width: 100px; height: 8px; vertical-align: middle; }
.fl-bar .fl-track { fill: var(--line); } .fl-bar .fl-fill { fill: var(--text); }
.fl-head .fl-bar .fl-fill { fill: var(--tone); }
.fl-line { display: flex; flex-wrap: wrap; align-items: center; gap: 6px 12px; margin: 0 0 8px; }
.fl-p { margin: 0 0 10px; overflow-wrap: anywhere; }
.fl-note { color: var(--soft); font-size: .9rem; margin: 0 0 10px; overflow-wrap: anywhere; }
.fl-hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
.fl-details { margin: 0 0 10px; } .fl-details > summary { cursor: pointer; color: var(--link); }
.fl-details[open] > summary { margin-bottom: 8px; }
.fl-link { border: 0; background: none; padding: 0; font: inherit; color: var(--link); text-decoration: underline;
  cursor: pointer; min-width: 24px; }
.fl-scroll { overflow: auto; border: 1px solid var(--line); border-radius: 4px; max-height: 60vh; }
.fl-table { border-collapse: separate; border-spacing: 0; font-size: .85rem; min-width: 100%; }
.fl-table th, .fl-table td { padding: 3px 10px; border-bottom: 1px solid var(--line); text-align: left; }
.fl-table thead th { position: sticky; top: 0; background: var(--panel); }
.fl-table .fl-number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
`;

const CARDS = `
.fl-cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 360px), 1fr)); gap: 14px;
  margin-bottom: 14px; }
.fl-cards:has(> :only-child) { grid-template-columns: 1fr; }
.fl-card { border: 1px solid var(--line); border-left: 5px solid var(--bad); border-radius: 4px; padding: 14px 16px;
  background: var(--panel); min-width: 0; }
.fl-card h3 { font-size: 1.1rem; margin: 0 0 6px; overflow-wrap: anywhere; }
.fl-card > :last-child { margin-bottom: 0; }
.fl-first { margin-bottom: 14px; border-left-width: 8px; }
.fl-first h3 { font-size: 1.5rem; line-height: 1.25; }
.fl-cards .fl-card { border-left-color: var(--soft); }
.fl-cause { border: 1px solid var(--bad); color: var(--bad); border-radius: 4px; padding: 0 8px; font-weight: 600; }
.fl-actions { padding-left: 22px; margin: 0 0 12px; } .fl-actions li { margin-bottom: 10px; overflow-wrap: anywhere; }
.fl-target { color: var(--soft); overflow-wrap: anywhere; min-width: 0; }
.fl-gain { border-left: 3px solid var(--good); padding-left: 10px; }
.fl-proposals { list-style: none; padding: 0; margin: 0 0 12px; display: grid; gap: 12px; }
.fl-proposal { border: 1px solid var(--line); border-radius: 4px; padding: 12px 16px; background: var(--panel);
  min-width: 0; }
.fl-proposal > :last-child { margin-bottom: 0; }
.fl-state { border: 1px solid var(--tone); color: var(--tone); background: var(--tone-soft); border-radius: 4px;
  padding: 0 8px; font-size: .85rem; font-weight: 600; }
.fl-line .fl-note { margin: 0; }
.fl-outcome { border-left: 3px solid var(--line); padding-left: 10px; }
.fl-data { font-family: ${MONO}; font-size: .85em; background: var(--page); border: 1px solid var(--line);
  border-radius: 4px; padding: 8px 10px; margin: 0 0 10px; max-height: 420px; overflow: auto; white-space: pre-wrap;
  overflow-wrap: anywhere; }
.fl-command { white-space: nowrap; max-width: 100%; display: inline-flex; vertical-align: bottom;
  border: 1px solid var(--line); border-radius: 4px; background: var(--panel); margin: 0 2px; }
.fl-command code { padding: 1px 8px; overflow-x: auto; font-family: ${MONO}; font-size: .875em; }
.fl-command button { display: none; flex: none; white-space: nowrap; border: 0; border-left: 1px solid var(--line); background: none;
  color: var(--link); font: inherit; font-size: .8rem; padding: 0 8px; cursor: pointer; }
.js .fl-command button, .fl-live.fl-command button { display: block; }
.fl-finding { border: 1px solid var(--line); border-radius: 4px; padding: 12px 16px; margin-bottom: 12px;
  scroll-margin-top: 8px; min-width: 0; }
.fl-finding:target, .fl-finding:focus { border-color: var(--link); box-shadow: 0 0 0 2px var(--link); outline: 0; }
.fl-finding > :last-child { margin-bottom: 0; }
.fl-finding h3 { font-weight: 400; font-size: 1rem; margin: 0 0 6px; }
.fl-finding code { font-family: ${MONO}; font-size: .875em; }
.fl-id { font-family: ${MONO}; font-weight: 700; } .fl-weight { color: var(--soft); font-size: .85rem; }
.fl-places code { display: inline-block; background: var(--panel); border-radius: 3px; padding: 0 6px;
  overflow-wrap: anywhere; }
.fl-reasoning h3 { font-size: 1rem; margin: 16px 0 6px; }
.fl-reasoning > :last-child { margin-bottom: 0; }
.fl-decided, .fl-conflicts, .fl-changes { padding-left: 22px; margin: 0 0 10px; }
.fl-decided li, .fl-conflicts li, .fl-changes li { margin-bottom: 8px; overflow-wrap: anywhere; }
.fl-decided li::marker { font-weight: 700; } .fl-decided .fl-p { margin-bottom: 2px; font-weight: 600; }
.fl-grounds { color: var(--soft); font-size: .9rem; gap: 2px 14px; }
.fl-grounds code { font-family: ${MONO}; background: var(--panel); border-radius: 3px; padding: 0 6px;
  overflow-wrap: anywhere; min-width: 0; }
.fl-conflicts .fl-cause { border-color: var(--soft); color: var(--soft); }
.fl-lacks ul { color: var(--soft); font-size: .9rem; padding-left: 22px; margin: 0 0 10px; }
.fl-lacks .fl-note { margin-bottom: 2px; }
`;

const STORY = `
.fl-hops { list-style: none; padding: 0; margin: 0 0 14px; display: grid; gap: 14px;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 330px), 1fr)); }
.fl-hop { border: 1px solid var(--line); border-radius: 4px; background: var(--panel); padding: 12px 14px; min-width: 0;
  display: flex; flex-direction: column; }
.fl-hop h3 { font-size: 1rem; line-height: 1.35; margin: 0 0 6px; overflow-wrap: anywhere; }
.fl-hop .fl-details { margin: 6px 0 0; }
.fl-step { display: inline-block; min-width: 1.6em; text-align: center; border-radius: 1em; background: var(--text);
  color: var(--page); font-size: .85em; font-variant-numeric: tabular-nums; }
.fl-leads { margin: auto 0 0; padding-top: 8px; text-align: right; font-weight: 650; color: var(--bad); }
.fl-ends { margin: 0 0 12px; padding: 10px 14px; border-left: 5px solid var(--bad); background: var(--bad-soft);
  border-radius: 4px; font-weight: 600; overflow-wrap: anywhere; }
.fl-story-bars { display: block; width: 100%; max-width: 480px; height: auto; }
.fl-story-bars text { font-size: 11px; fill: var(--text); font-variant-numeric: tabular-nums; }
.fl-story-bars .sb-axis { font-size: 10px; fill: var(--soft); }
.fl-story-bars .sb-left { text-anchor: end; } .fl-story-bars .sb-middle { text-anchor: middle; }
.fl-story-bars .sb-end { stroke: var(--soft); stroke-width: 1; fill: none; }
.fl-story-bars .sb-bar { fill: var(--wait); } .fl-story-bars .sb-late .sb-bar { fill: var(--bad); }
.fl-story-bars .sb-absent .sb-bar { fill: none; stroke: var(--bad); stroke-width: 1.2; stroke-dasharray: 4 3; }
.fl-story-bars .sb-before { stroke: var(--text); stroke-width: 1.5; fill: none; }
.fl-story-bars .sb-late text, .fl-story-bars .sb-absent text { fill: var(--bad); font-weight: 700; }
.fl-story-bars .sb-from { font-weight: 700; }
.fl-story-bars text.sb-inside, .fl-story-bars .sb-late text.sb-inside { fill: var(--page); font-weight: 600; }
.fl-legend { list-style: none; padding: 0; margin: 0 0 12px; display: flex; flex-wrap: wrap; gap: 4px 20px;
  font-size: .85rem; color: var(--soft); }
.fl-swatch { display: inline-block; width: 22px; height: 11px; border-radius: 2px; vertical-align: -1px; }
.fl-waits { background: var(--wait); } .fl-late { background: var(--bad); width: 10px; }
.fl-absent { border: 1.5px dashed var(--bad); }
.fl-before { width: 2px; height: 14px; background: var(--text); vertical-align: -3px; }
`;

const LOGS = `
.fl-log { margin-bottom: 16px; min-width: 0; }
.fl-log h3 { font-size: 1rem; margin: 0 0 2px; overflow-wrap: anywhere; }
.fl-log h3 code { font-family: ${MONO}; font-size: .95em; }
.fl-log .fl-note { margin-bottom: 6px; }
.fl-log ol { list-style: none; padding: 4px 0; margin: 0; border: 1px solid var(--line); border-radius: 4px;
  max-height: 60vh; overflow: auto; font-family: ${MONO}; font-size: .82rem; line-height: 1.5; }
.fl-log li { display: flex; flex-wrap: wrap; gap: 0 10px; padding: 1px 10px 1px 6px;
  border-left: 4px solid transparent; }
.fl-log .fl-key-line { border-left-color: var(--bad); background: var(--bad-soft); }
.fl-key-line .fl-text { font-weight: 700; }
.fl-mark { width: 1em; color: var(--bad); position: relative; flex: none; }
.fl-log .fl-number { min-width: 4ch; text-align: right; color: var(--soft); flex: none; }
.fl-time { color: var(--soft); white-space: nowrap; flex: none; min-width: 12ch; }
.fl-text { flex: 1 1 0; min-width: min(100%, 24ch); font: inherit; overflow-wrap: anywhere; white-space: pre-wrap;
  direction: ltr; unicode-bidi: isolate; text-align: left; }
.fl-text code { font: inherit; } .fl-long > summary { cursor: pointer; list-style: none; color: inherit; }
.fl-long > summary::-webkit-details-marker { display: none; }
.fl-more { color: var(--link); font-weight: 400; text-decoration: underline; } .fl-long[open] .fl-more { display: none; }
.fl-times { color: var(--soft); white-space: nowrap; flex: none; position: relative; }
.fl-skip { flex-basis: 100%; color: var(--soft); font-style: italic; padding: 2px 0 2px 2.4em; }
`;

/** What the html tag drew, where it stands on its own. */
const DRAWN = `
.fl-machine { margin-bottom: 14px; min-width: 0; } .fl-machine h3 { font-size: 1.1rem; margin: 0 0 8px;
  overflow-wrap: anywhere; }
.small-plots .fl-drawn { margin-top: auto; }
.fl-drawn .legend { list-style: none; padding: 0; margin: 0 0 12px; display: flex; flex-wrap: wrap; gap: 4px 20px;
  font-size: .85rem; color: var(--soft); }
.fl-drawn .note { color: var(--soft); font-size: .9rem; }
.fl-drawn p { margin: 0 0 10px; overflow-wrap: anywhere; }
.fl-drawn .scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: 4px; margin-bottom: 10px; }
.fl-drawn table { border-collapse: separate; border-spacing: 0; font-size: .85rem; min-width: 100%; }
.fl-drawn th, .fl-drawn td { padding: 4px 10px; border-bottom: 1px solid var(--line); text-align: left; }
.fl-drawn .number { text-align: right; font-variant-numeric: tabular-nums; }
.fl-drawn summary { cursor: pointer; color: var(--link); }
.fl-drawn .grid, .fl-drawn .axis { stroke: var(--line); pointer-events: none; } .fl-drawn .axis { stroke: var(--soft); }
`;

const MEDIA = `
@media (max-width: 640px) {
  .fl-head { padding: 14px; border-left-width: 6px; } .fl-head h1 { font-size: 1.35rem; }
  .fl-facts { gap: 8px 24px; } .fl-command { white-space: normal; } .fl-first h3 { font-size: 1.25rem; }
  .fl-log li { gap: 0 8px; } .fl-text { flex-basis: 100%; padding-left: 1.6em; }
}
@media print {
  .js .fl-command button { display: none; }
  .fl-log ol, .fl-scroll, .fl-data { max-height: none; overflow: visible; }
  .fl-head, .fl-card, .fl-hop, .fl-finding, .fl-decided li { break-inside: avoid; }
}
`;

export const PARTS_STYLE = `${HEAD}${CARDS}${STORY}${LOGS}${TRACE_STYLE}${MACHINE_PLOT_STYLE}${DRAWN}${MEDIA}`;
