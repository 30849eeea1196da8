/** Whether it resolves in time. A process that was busy hears of answers late: then it listens once more. */
export async function answersWithin(answer: Promise<unknown>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    const askedMs = performance.now();
    timer = setTimeout(() => {
      if (performance.now() - askedMs < 1.5 * ms) resolve(false);
      else timer = setTimeout(resolve, ms, false);
    }, ms);
  });
  try {
    return await Promise.race([
      answer.then(
        () => true,
        () => false,
      ),
      late,
    ]);
  } finally {
    clearTimeout(timer);
  }
}
