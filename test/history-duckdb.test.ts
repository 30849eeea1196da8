import { openDuckDbHistory } from "../src/history/duckdb-history.ts";
import { historyContract } from "./history-contract.ts";

historyContract("the history in DuckDB", () => openDuckDbHistory(":memory:"));
