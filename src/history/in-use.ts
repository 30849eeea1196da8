/** A store that another process, or another part of this one, has open. */
import { UserError } from "../base/errors.ts";

export class StoreInUse extends UserError {}
