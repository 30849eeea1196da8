/** One service, its own database: every lease is ours, and documents lie beside the history. */
import type { History } from "../../../history/history.ts";
import type { Coordinator, Lease } from "../../wire/transport.ts";

const PREFIX = "job/";

export function embeddedCoordinator(history: History): Coordinator {
  return {
    async list() {
      const keys = await history.documentKeys(PREFIX);
      return keys.map((key) => key.slice(PREFIX.length));
    },
    read: (job) => history.document(PREFIX + job),
    claim(job) {
      const lease: Lease = {
        job,
        isHeld: true,
        write: (document) => history.putDocument(PREFIX + job, document),
        onLost: () => undefined,
        release: () => Promise.resolve(),
      };
      return Promise.resolve(lease);
    },
    close: () => Promise.resolve(),
  };
}
