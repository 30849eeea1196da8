import { openDuckDbHistory } from "../src/history/duckdb-history.ts";
import { historyContract } from "./support/history-contract.ts";

historyContract("the history in DuckDB", () => openDuckDbHistory(":memory:"));
