/** Styles of the page of logs. */
export const LOGS_STYLE = `
.log-timeline text { font-size: 11.5px; fill: var(--text); }
.log-timeline .name { text-anchor: end; } .log-timeline .end { text-anchor: end; }
.log-timeline line { stroke: var(--line); stroke-width: 1; }
.log-timeline circle { stroke: var(--bad); stroke-width: 1.5; fill: var(--page); }
.log-timeline .root { fill: var(--bad); }
pre.scroll { padding: 8px 10px; white-space: pre-wrap; overflow-wrap: anywhere; }
`;
