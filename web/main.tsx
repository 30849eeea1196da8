import { render } from "preact";
import { PARTS_STYLE } from "../src/report/parts/parts-style.ts";
import { guardText } from "../src/report/parts/plain.ts";
import { THEME_STYLE } from "../src/report/parts/theme.ts";
import "./style/base.css";
import "./style/shell.css";
import "./style/fleet.css";
import "./style/incident.css";
import { openFeed } from "./live/feed.ts";
import { followSession } from "./live/session.ts";
import { App } from "./shell/app.tsx";
import { followTheme } from "./shell/theme.ts";

// Before anything is drawn: names and log lines are strangers'.
guardText();
const shared = new CSSStyleSheet();
shared.replaceSync(`${THEME_STYLE}${PARTS_STYLE}`);
document.adoptedStyleSheets = [shared];
followTheme();
followSession();
openFeed();
render(<App />, document.getElementById("app")!);
