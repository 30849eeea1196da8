/** Read-only links: "#/link/…" opens one incident for anybody who has it. The token stays in the tab. */
import { links } from "../shell/address.ts";
import { useToken } from "./token.ts";

/** The address that stands for it, or the same where it is no link. */
export function takeLink(hash: string): string {
  const [, link] = /^#\/link\/(fl1\.[\w-]+\.[\w-]+)$/.exec(hash) ?? [];
  const incident = link === undefined ? null : incidentOf(link);
  if (link === undefined || incident === null) return hash;
  useToken(link, "read");
  const place = links.incident(incident);
  // The link must not be copied from the address, nor stay in the browser's history.
  history.replaceState(null, "", place);
  return place;
}

/** Which incident it says it is of; the service checks it. */
export function incidentOf(link: string): string | null {
  try {
    const text = (link.split(".")[1] ?? "").replaceAll("-", "+").replaceAll("_", "/");
    const [incident] = JSON.parse(atob(text)) as unknown[];
    return typeof incident === "string" ? incident : null;
  } catch {
    return null;
  }
}
