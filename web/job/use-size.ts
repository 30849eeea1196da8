/** Width of an element in CSS pixels and the screen's pixel ratio; drawn again when either changes. */
import type { RefObject } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";

export interface Size {
  readonly width: number;
  readonly pixelRatio: number;
}

export function useSize(element: RefObject<HTMLElement | null>): Size | null {
  const [size, setSize] = useState<Size | null>(null);
  useLayoutEffect(() => {
    const measure = (): void => {
      const width = Math.floor(element.current?.clientWidth ?? 0);
      const pixelRatio = Math.min(3, window.devicePixelRatio || 1);
      setSize((had) =>
        had?.width === width && had.pixelRatio === pixelRatio ? had : { width, pixelRatio },
      );
    };
    measure();
    const observer = new ResizeObserver(measure);
    if (element.current) observer.observe(element.current);
    // Zooming the page changes the ratio, not always the width.
    addEventListener("resize", measure);
    return () => {
      observer.disconnect();
      removeEventListener("resize", measure);
    };
  }, []);
  return size !== null && size.width > 0 ? size : null;
}
