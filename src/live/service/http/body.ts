/** The body of a request, within its limits. */
import type { IncomingMessage } from "node:http";
import { Refusal } from "../view.ts";
import type { HttpLimits } from "./limits.ts";

/** Not an async iteration: leaving one destroys the socket, and the refusal would never be read. */
export function readBody(request: IncomingMessage, limits: HttpLimits): Promise<string> {
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    let bytes = 0;
    const stop = (): void => {
      clearTimeout(late);
      request.off("data", take).off("end", whole).off("error", cut).off("close", cut);
    };
    const refuse = (status: number, why: string): void => {
      stop();
      request.on("error", () => undefined);
      reject(new Refusal(status, why));
    };
    const take = (part: Buffer): void => {
      bytes += part.length;
      if (bytes > limits.bodyBytes) tooLarge();
      else parts.push(part);
    };
    const whole = (): void => {
      stop();
      resolve(Buffer.concat(parts).toString("utf8"));
    };
    const cut = (): void => refuse(400, "the body was cut off");
    const tooLarge = (): void => refuse(413, `the body is larger than ${limits.bodyBytes} bytes`);
    const late = setTimeout(() => refuse(408, "the body took too long"), limits.bodyMs);
    request.on("data", take).once("end", whole).once("error", cut).once("close", cut);
    if (Number(request.headers["content-length"] ?? 0) > limits.bodyBytes) tooLarge();
  });
}
