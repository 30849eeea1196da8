/** Colours and lines of the pictures of kernel timelines; the same class means the same thing in all of them. */
export const TRACE_STYLE = `
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
