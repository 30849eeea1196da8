/** Whose clocks moments are written by, where they are text alone. A report is read anywhere and says UTC; a page says the viewer's. */
export interface ClockZone {
  /** "UTC", "UTC+1": what captions say of this moment, milliseconds since 1970. */
  name(this: void, ms: number): string;
  /** By how many minutes its clocks are ahead of UTC's then. */
  aheadMinutes(this: void, ms: number): number;
}

export const UTC: ClockZone = { name: () => "UTC", aheadMinutes: () => 0 };

/** The moment whose UTC fields are what the zone's clocks show. */
export function shiftedMs(ms: number, zone: ClockZone): number {
  const ahead = zone.aheadMinutes(ms);
  return Number.isFinite(ahead) ? ms + ahead * 60_000 : ms;
}
