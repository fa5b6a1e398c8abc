// Converts samples for destinations without distributions: to statistics, or to counts in buckets.

export interface RatedSample {
  readonly value: number
  readonly rate: number
}

export interface Statistics {
  readonly min: number
  readonly max: number
  readonly median: number
  readonly avg: number
  readonly sum: number
  readonly count: number
  /** One value for each requested quantile. */
  readonly quantiles: readonly { readonly quantile: number; readonly value: number }[]
}

/** The message for invalid quantiles. */
export const quantilesProblem = 'Quantiles must be in range [0.0,1.0]'

/** The statistics of samples; undefined if all rates are zero. */
export function statisticsOf(samples: readonly RatedSample[], quantiles: readonly number[]): Statistics | undefined {
  const sorted = samples.filter(({ rate }) => rate > 0).sort((left, right) => left.value - right.value)
  const first = sorted[0]
  const last = sorted.at(-1)
  if (first === undefined || last === undefined) return undefined
  let count = 0
  let sum = 0
  const ranks = sorted.map(({ value, rate }) => {
    count += rate
    sum += value * rate
    return count
  })
  const valueAt = (quantile: number): number => {
    // The value at a rank. Ranks start at 1, and halves are rounded up.
    const rank = Math.max(Math.round(quantile * count), 1)
    const index = ranks.findIndex((ranked) => ranked >= rank)
    return (sorted[index] ?? last).value
  }
  return {
    min: first.value,
    max: last.value,
    median: valueAt(0.5),
    avg: sorted.length === 1 ? first.value : sum / count,
    sum,
    count,
    quantiles: quantiles.map((quantile) => ({ quantile, value: valueAt(quantile) })),
  }
}

/** Counts the samples in each bucket (not cumulative). Samples above the last limit count only in `count` and `sum`. */
export function bucketsOf(
  samples: readonly RatedSample[],
  limits: readonly number[],
): { buckets: { upperLimit: number; count: number }[]; count: number; sum: number } {
  const buckets = limits.map((upperLimit) => ({ upperLimit, count: 0 }))
  let count = 0
  let sum = 0
  for (const { value, rate } of samples) {
    count += rate
    sum += value * rate
    const bucket = buckets.find(({ upperLimit }) => value <= upperLimit)
    if (bucket !== undefined) bucket.count += rate
  }
  return { buckets, count, sum }
}
