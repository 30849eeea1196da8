/**
 * All the page's JavaScript: the copy buttons, on a narrow screen the culprit in the middle of the
 * graph's window, and what is folded in a section unfolds when a link leads there. Without it everything can still be read.
 */
export const SCRIPT = `
document.documentElement.classList.add("js");
const culprit = document.querySelector(".wait-graph .ranks.culprit");
if (culprit) {
  const box = culprit.closest(".scroll");
  box.scrollLeft = culprit.getBBox().x + culprit.getBBox().width / 2 - box.clientWidth / 2;
}
const unfold = () => {
  const fold = document.querySelector("section:target > .fold, section:has(:target) > .fold");
  if (fold) fold.open = true;
};
addEventListener("hashchange", unfold);
unfold();
document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-copy]");
  if (!button) return;
  try {
    await navigator.clipboard.writeText(button.previousElementSibling.textContent);
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(button.previousElementSibling);
  }
});
`;
