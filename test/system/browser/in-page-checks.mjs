// Run inside the page: what somebody who cannot see well, or has no mouse, would stumble over. Returns a sentence each.
export default () => {
  const problems = [];
  const say = (element, what) => {
    const name = element.id
      ? `#${element.id}`
      : (element.className?.baseVal ?? element.className ?? "");
    const text = (element.textContent ?? "").trim().replace(/\s+/g, " ").slice(0, 40);
    problems.push(
      `<${element.tagName.toLowerCase()} ${String(name).slice(0, 40)}> "${text}": ${what}`,
    );
  };
  const isShown = (element) =>
    element.checkVisibility({ opacityProperty: true, visibilityProperty: true }) &&
    element.getClientRects().length > 0;
  /** Clipped to a pixel on purpose: for screen readers only. */
  const isForReaders = (element) => {
    for (let at = element; at instanceof Element; at = at.parentElement) {
      const { width, height } = at.getBoundingClientRect();
      const { position, overflow } = getComputedStyle(at);
      if (position === "absolute" && overflow === "hidden" && width <= 2 && height <= 2)
        return true;
    }
    return false;
  };
  const all = [...document.querySelectorAll("body *")].filter(isShown);

  // Names.
  const textOf = (ids) =>
    ids
      .split(/\s+/)
      .map((id) => document.getElementById(id)?.textContent ?? "")
      .join(" ");
  const nameOf = (element) =>
    [
      element.getAttribute("aria-label"),
      element.hasAttribute("aria-labelledby") && textOf(element.getAttribute("aria-labelledby")),
      [...(element.labels ?? [])].map((label) => label.textContent).join(" "),
      element.tagName === "IMG" ? element.getAttribute("alt") : null,
      element.querySelector?.(":scope > title")?.textContent,
      /^(INPUT|SELECT|TEXTAREA|CANVAS)$/.test(element.tagName) ? "" : element.textContent,
      element.getAttribute("title"),
    ]
      .filter((name) => typeof name === "string" && name.trim() !== "")
      .join(" ");
  const WORKS =
    "a[href], button, input, select, textarea, summary, [tabindex], [role=button], [role=link], [role=tab]";
  for (const element of all) {
    if (element.matches(WORKS) && nameOf(element) === "") say(element, "has no name");
    if (
      !element.closest("[aria-hidden=true]") &&
      element.matches("img, canvas, [role=img], [role=grid], [role=dialog], [role=group]") &&
      nameOf(element) === ""
    )
      say(element, "is a picture or a group without a name");
    if (element.tabIndex > 0) say(element, "changes the order of focus (tabindex > 0)");
    if (element.matches("button, [role=button], select") && !element.disabled) {
      const { width, height } = element.getBoundingClientRect();
      if (width < 24 || height < 22)
        say(element, `is too small to hit: ${width.toFixed(0)}×${height.toFixed(0)}`);
    }
    for (const name of ["aria-labelledby", "aria-describedby", "aria-controls", "for"])
      for (const id of (element.getAttribute(name) ?? "").split(/\s+/).filter(Boolean))
        if (!document.getElementById(id)) say(element, `${name} names ${id}, which is not there`);
    if (element.matches("[role=button]:not([tabindex]):not(button), [onclick]:not(button):not(a)"))
      say(element, "cannot be reached by the keyboard");
    if (
      element.matches("[aria-hidden=true]") &&
      element.querySelector(WORKS.replace("[tabindex]", "[tabindex='0']"))
    )
      say(element, "hides something that takes focus");
  }
  const ids = new Map();
  for (const { id } of document.querySelectorAll("[id]")) ids.set(id, (ids.get(id) ?? 0) + 1);
  for (const [id, count] of ids) if (count > 1) problems.push(`${count} elements are called ${id}`);

  // Structure.
  if (!document.documentElement.lang) problems.push("the page has no language");
  if (document.title.trim() === "") problems.push("the page has no title");
  const mains = all.filter((element) => element.matches("main"));
  if (mains.length !== 1) problems.push(`${mains.length} main parts`);
  const headings = all.filter((element) => element.matches("h1, h2, h3, h4, h5, h6"));
  const h1 = headings.filter((element) => element.tagName === "H1").length;
  if (h1 !== 1) problems.push(`${h1} headings of the first level`);
  let level = 0;
  for (const heading of headings) {
    const at = Number(heading.tagName[1]);
    if (at > level + 1 && level > 0) say(heading, `h${at} follows h${level}`);
    level = at;
  }
  for (const table of all.filter((element) => element.matches("table")))
    if (!table.querySelector("th")) say(table, "has no headers");

  // Contrast (WCAG 1.4.3): 4.5, or 3 for large text.
  const probe = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const known = new Map();
  const rgba = (colour) => {
    if (!known.has(colour)) {
      probe.clearRect(0, 0, 1, 1);
      probe.fillStyle = colour;
      probe.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = probe.getImageData(0, 0, 1, 1).data;
      known.set(colour, [r, g, b, a / 255]);
    }
    return known.get(colour);
  };
  const over = ([r, g, b, a], [R, G, B]) => [
    r * a + R * (1 - a),
    g * a + G * (1 - a),
    b * a + B * (1 - a),
    1,
  ];
  const behind = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) {
      const { backgroundColor, backgroundImage } = getComputedStyle(at);
      if (backgroundImage !== "none") return null;
      layers.push(rgba(backgroundColor));
      if (rgba(backgroundColor)[3] === 1) break;
    }
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    return layers
      .reverse()
      .reduce((under, layer) => over(layer, under), dark ? [18, 18, 18, 1] : [255, 255, 255, 1]);
  };
  const light = ([r, g, b]) => {
    const [R, G, B] = [r, g, b].map((value) => {
      const v = value / 255;
      return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * R + 0.7152 * G + 0.0722 * B;
  };
  for (const element of all) {
    const hasText = [...element.childNodes].some(
      (node) => node.nodeType === 3 && node.textContent.trim() !== "",
    );
    if (
      !hasText ||
      element.closest(":disabled, [aria-disabled=true], [aria-hidden=true]") ||
      isForReaders(element)
    )
      continue;
    const style = getComputedStyle(element);
    const isSvg = element instanceof SVGElement;
    const back = behind(isSvg ? element.ownerSVGElement : element);
    if (!back) continue;
    // Text of a drawing may stand on a filled shape: only text on the page itself can be judged.
    if (isSvg && element.closest(".sb-inside, .ranks, .lane, .runs")) continue;
    let opacity = 1;
    for (let at = element; at; at = at.parentElement)
      opacity *= Number(getComputedStyle(at).opacity);
    const [r, g, b, a] = rgba(isSvg ? style.fill : style.color);
    const front = over([r, g, b, a * opacity], back);
    const [one, two] = [light(front), light(back)].sort((x, y) => y - x);
    const ratio = (one + 0.05) / (two + 0.05);
    const size = parseFloat(style.fontSize);
    const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (isLarge ? 3 : 4.5))
      say(element, `contrast ${ratio.toFixed(2)} (${style.color} at ${size}px)`);
  }
  if (document.documentElement.scrollWidth > innerWidth + 1)
    problems.push(
      `the page scrolls sideways: ${document.documentElement.scrollWidth} > ${innerWidth}`,
    );
  return [...new Set(problems)].slice(0, 40);
};
