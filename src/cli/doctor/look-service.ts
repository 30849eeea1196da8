/** What the service says of itself, asked as an agent or a reader would. */
import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { parseFields } from "../../base/json.ts";
import { errorText } from "../../base/errors.ts";
import type { AgentSeen, HealthSeen, ServiceSeen } from "./service.ts";

export interface Access {
  readonly token: string | null;
  /** PEM. */
  readonly ca: string | null;
  readonly timeoutMs: number;
}

const MOST_BYTES = 4 << 20;

/** `isGuessed`: nobody said that a service runs at this address, so that nothing there is no fault. */
export async function lookAtService(
  url: string,
  isGuessed: boolean,
  access: Access,
): Promise<ServiceSeen> {
  const nothing = {
    url,
    asked: url,
    isGuessed,
    failure: null,
    status: 0,
    health: null,
    readStatus: 0,
    hasToken: access.token !== null,
    agents: null,
    clockOffsetMs: null,
  };
  try {
    const askedMs = Date.now();
    const { status, json } = await get(`${url}/healthz`, { ...access, token: null });
    const halfwayMs = (askedMs + Date.now()) / 2;
    const health = json as HealthSeen | null;
    const isOurs = health !== null && ("status" in health || "error" in health);
    if (!isOurs) return { ...nothing, status, ...(isGuessed ? { url: null } : {}) };
    const read = await get(`${url}/api/v1/agents`, access);
    const listed = read.status === 200 ? (read.json as { readonly agents?: AgentSeen[] }) : null;
    return {
      ...nothing,
      status,
      health,
      readStatus: read.status,
      agents: listed?.agents ?? null,
      clockOffsetMs: health.nowMs === undefined ? null : health.nowMs - halfwayMs,
    };
  } catch (error) {
    return isGuessed ? { ...nothing, url: null } : { ...nothing, failure: errorText(error) };
  }
}

interface Got {
  readonly status: number;
  /** null where it is no JSON. */
  readonly json: unknown;
}

async function get(url: string, { token, ca, timeoutMs }: Access): Promise<Got> {
  const request = url.startsWith("https:") ? httpsRequest : httpRequest;
  const headers = token === null ? {} : { authorization: `Bearer ${token}` };
  const options = { headers, timeout: timeoutMs, agent: false, ...(ca === null ? {} : { ca }) };
  return await new Promise((resolve, reject) => {
    const call = request(url, options, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part: string) => {
        text += part;
        if (text.length > MOST_BYTES) call.destroy(new Error("its answer is too long"));
      });
      response.on("error", reject);
      response.on("end", () =>
        resolve({ status: response.statusCode ?? 0, json: parseFields(text) }),
      );
    });
    // Of the whole: an answer that comes byte by byte must not hold us up.
    const late = setTimeout(
      () => call.destroy(new Error(`no answer within ${timeoutMs / 1000} s`)),
      timeoutMs,
    );
    call.on("error", reject).on("close", () => clearTimeout(late));
    call.end();
  });
}
