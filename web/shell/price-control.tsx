/** What a GPU-hour costs: one choice for every figure of money on the page. */
import type { VNode } from "preact";
import { useObservable } from "../live/observable.ts";
import { price, readPrice } from "./price.ts";

export function PriceControl(): VNode {
  const { currency, perGpuHour } = useObservable(price);
  const change = (next: { readonly currency: string; readonly perGpuHour: number }): void => {
    const read = readPrice(JSON.stringify(next));
    if (read) price.set(read);
  };
  // What was refused must not stand there as if it were used: a field that is left shows what is.
  return (
    <span class="price" role="group" aria-label="Price of a GPU-hour">
      A GPU-hour costs
      <input
        class="price-sign"
        aria-label="Currency"
        maxLength={4}
        value={currency}
        onChange={(event) => change({ currency: event.currentTarget.value, perGpuHour })}
        onBlur={(event) => (event.currentTarget.value = price.value.currency)}
      />
      <input
        class="price-figure num"
        aria-label="Price of a GPU-hour"
        type="number"
        min="0"
        max="100000"
        step="0.01"
        value={perGpuHour.toFixed(2)}
        onChange={(event) => change({ currency, perGpuHour: event.currentTarget.valueAsNumber })}
        onBlur={(event) => (event.currentTarget.value = price.value.perGpuHour.toFixed(2))}
      />
    </span>
  );
}
