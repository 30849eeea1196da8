/**
 * What an incident is drawn from. It is worked out behind the verdict and part by part, so it is asked for again until
 * the story is there; after that it stays as it is while somebody reads, until the verdict changes.
 */
import { useEffect, useRef } from "preact/hooks";
import { type Incident, type IncidentPicture, paths } from "../live/api.ts";
import { type Asked, useAsked } from "../live/use-asked.ts";

const TRY_AGAIN_MS = 2500;
/** By the viewer's clock, from the moment that a revision is first shown. */
const PATIENCE_MS = 90_000;

export interface AskedPicture extends Asked<IncidentPicture> {
  /** Whether more may come. */
  readonly isAwaited: boolean;
}

export function usePicture(incident: Incident | null): AskedPicture {
  const path = incident?.verdict ? paths.picture(incident.id) : null;
  const revision = incident?.revision ?? 0;
  const asked = useAsked<IncidentPicture>(path, [revision]);
  const first = useRef({ revision: -1, atMs: 0 });
  if (first.current.revision !== revision) first.current = { revision, atMs: Date.now() };
  const isAwaited =
    path !== null &&
    incident?.state !== "resolved" &&
    (asked.value?.story ?? null) === null &&
    Date.now() - first.current.atMs < PATIENCE_MS;
  useEffect(() => {
    if (!isAwaited || (asked.value === null && asked.error === null)) return;
    const timer = setTimeout(asked.again, TRY_AGAIN_MS);
    return () => clearTimeout(timer);
    // Each answer is an object of its own: it says that another try is over.
  }, [isAwaited, asked.value, asked.error]);
  return { ...asked, isAwaited };
}
