/** Opens the controller's port; what hinders it is said in a line, with what to do about it. */
import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { UserError } from "../../base/errors.ts";

/** The port in the end: with 0 the system chooses one. */
export async function listenOn(server: Server, host: string, port: number): Promise<number> {
  if (!(Number.isInteger(port) && port >= 0 && port <= 65_535))
    throw new UserError(`there is no port ${port}`, "give a --port of 0 to 65535", 2);
  server.listen(port, host);
  await once(server, "listening").catch((error: unknown) => {
    const why = error instanceof Error ? error.message : String(error);
    throw new UserError(`cannot listen on ${host}, port ${port}: ${why}`, remedyOf(error));
  });
  return (server.address() as AddressInfo).port;
}

function remedyOf(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  if (code === "EADDRINUSE") return "give another --port";
  if (code === "EACCES") return "give a --port from 1024";
  // No such name, or an address of another machine.
  return "give a --host of this machine, such as 127.0.0.1 or 0.0.0.0";
}
