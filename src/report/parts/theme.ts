/**
 * The colours of everything we draw, by what they mean. `data-theme` on the root element overrules what the system
 * prefers; paper is light, whatever was chosen. Contrast of text on page, panel and the soft tones is at least 4.5; tones differ in lightness, too, so that
 * nobody has to tell red from green.
 */
const LIGHT = `--page: #ffffff; --panel: #f5f6f8; --line: #d4d8df; --text: #16191f; --soft: #545c69; --link: #0b57b0;
  --bad: #b3141d; --bad-soft: #fdecec; --warn: #8a5200; --warn-soft: #fdf3e0; --good: #17692f; --good-soft: #e7f5ea;
  --open: #4b5563; --open-soft: #eef0f3; --wait: #2f5d94; --wait-soft: #e9f0f9;
  --matrix: #2f66ad; --minority: #7fb2e5; --copy: #8d8fa8; --comm: #e09a3a; --late: #c8202a; --idle: #e8eaee;
  --sync: #7a3fb0; --loader: #1d8a5b; --memory: #a3702a; --collect: #d2578f; --launch: #9aa3b0;`;
const DARK = `--page: #14171c; --panel: #1d2128; --line: #3a414c; --text: #e8eaee; --soft: #a5adba; --link: #86b7ff;
  --bad: #ff8b86; --bad-soft: #3a1a1c; --warn: #f2b866; --warn-soft: #33260f; --good: #7fd698; --good-soft: #14301d;
  --open: #b6bdc9; --open-soft: #262b33; --wait: #93bdf5; --wait-soft: #1a2a40;
  --matrix: #5a93dc; --minority: #a9cdf3; --copy: #a5a7bd; --comm: #e8ab55; --late: #ff6f68; --idle: #2b303a;
  --sync: #b98bea; --loader: #55c795; --memory: #d0a060; --collect: #ee8fba; --launch: #6d7683;`;

export const THEME_STYLE = `
:root { color-scheme: light dark; ${LIGHT} }
@media screen and (prefers-color-scheme: dark) { :root:not([data-theme="light"]) { ${DARK} } }
@media screen { :root[data-theme="dark"] { color-scheme: dark; ${DARK} } }
:root[data-theme="light"] { color-scheme: light; }
`;
