export * from "../../model/wait-ops.ts";
