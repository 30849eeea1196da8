/** Small plots of machines: the alarm colour is the machine's own, the colour of those who wait is its peers'. */
export const MACHINE_PLOT_STYLE = `
.small-plots { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 260px), 1fr));
  gap: 14px 18px; margin-bottom: 12px; }
.small-plots > div { min-width: 0; max-width: 360px; display: flex; flex-direction: column; }
.small-plots p { margin: 0; font-size: .9rem; line-height: 1.3; }
.small-plots .note { font-size: .85rem; }
.machine-plot { display: block; width: 100%; height: auto; }
.small-plots .machine-plot { margin-top: auto; }
.machine-plot text { font-size: 10px; fill: var(--soft); font-variant-numeric: tabular-nums; }
.machine-plot text.alarm { fill: var(--bad); font-weight: 650; }
.machine-plot text.halo { paint-order: stroke; stroke: var(--page); stroke-width: 3px; stroke-linejoin: round; }
.machine-plot .middle { text-anchor: middle; } .machine-plot .left { text-anchor: end; }
.machine-plot path { fill: none; } .machine-plot .unlike { fill: var(--bad-soft); }
.machine-plot .onset { stroke: var(--bad); stroke-width: 1; stroke-dasharray: 2 2; }
.machine-plot .peers { fill: var(--wait); fill-opacity: .28; }
.machine-plot .peers-middle { stroke: var(--wait); stroke-width: 1.2; stroke-linejoin: round; stroke-linecap: round; }
.machine-plot .own { stroke: var(--bad); stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }
.machine-key { display: inline-block; width: 22px; height: 12px; vertical-align: -1px; }
`;

/** The rest of the page of machines. */
export const MACHINES_STYLE = `
.machine { border: 1px solid var(--line); border-left: 5px solid var(--bad); border-radius: 4px;
  padding: 14px 16px; margin-bottom: 16px; scroll-margin-top: 8px; min-width: 0; }
.machine h3 { font-size: 1.3rem; overflow-wrap: anywhere; } .machine > :last-child { margin-bottom: 0; }
.machine .fl-facts { margin-bottom: 12px; gap: 6px 30px; } .machine .fl-bar .fl-fill { fill: var(--bad); }
.machine .why { margin-bottom: 12px; font-size: 1.02rem; }
.when { display: block; width: 200px; height: 12px; } .when .track { fill: var(--line); }
.when .fill { fill: var(--bad); }
.machine-table td { font-variant-numeric: tabular-nums; overflow-wrap: anywhere; min-width: 70px; }
.machine-table th, .machine-table time { white-space: nowrap; }
@media print { .machine, .small-plots > div { break-inside: avoid; } }
`;
