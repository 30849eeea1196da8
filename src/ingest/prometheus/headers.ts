/** The headers of all requests to a server. */
import { UserError } from "../../base/errors.ts";
import { headerFault } from "./http.ts";

/** `base` loses its credentials: it may be shown. */
export function headersOf(
  base: URL,
  given: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const headers: Record<string, string> = { "user-agent": "faultline" };
  for (const [name, value] of Object.entries(given)) {
    check(name, value);
    headers[name.toLowerCase()] = value;
  }
  if (base.username !== "") {
    const login = `${decoded(base.username)}:${decoded(base.password)}`;
    headers["authorization"] ??= `Basic ${Buffer.from(login).toString("base64")}`;
    base.username = base.password = "";
  }
  return headers;
}

/** Shows the name only, on one line: the value may be a secret. */
function check(name: string, value: string): void {
  const hint = "Write it as --header 'Authorization: Bearer …', on one line.";
  const fault = headerFault(name, value);
  if (fault === "name") {
    throw new UserError(`--header: ${JSON.stringify(name)} is no name of a header`, hint, 2);
  }
  if (fault === "value") {
    const what = "a line break or another character that headers cannot have";
    throw new UserError(`--header ${name}: its value has ${what}`, hint, 2);
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // A plain percent sign: a password that nobody encoded.
    return text;
  }
}
