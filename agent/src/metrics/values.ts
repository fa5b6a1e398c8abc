// Arithmetic with metric values of the same type: the sum of two increments, and the increase since an earlier total.

import type { MetricValue } from '../event/metric.ts'

type Buckets = Extract<MetricValue, { type: 'histogram' }>['buckets']
type Samples = Extract<MetricValue, { type: 'distribution' }>['samples']

/** The sum of two values; undefined if they cannot be added, which applies to summaries and to histograms with different limits. */
export function addValues(left: MetricValue, right: MetricValue): MetricValue | undefined {
  if (left.type === 'counter' && right.type === 'counter') return { type: 'counter', value: left.value + right.value }
  if (left.type === 'gauge' && right.type === 'gauge') return { type: 'gauge', value: left.value + right.value }
  if (left.type === 'set' && right.type === 'set') {
    return { type: 'set', values: [...new Set([...left.values, ...right.values])] }
  }
  if (left.type === 'distribution' && right.type === 'distribution' && left.statistic === right.statistic) {
    return { ...left, samples: joined([...left.samples, ...right.samples]) }
  }
  if (left.type === 'histogram' && right.type === 'histogram' && sameLimits(left.buckets, right.buckets)) {
    const buckets = left.buckets.map(({ upperLimit, count }, index) => ({
      upperLimit,
      count: count + countAt(right.buckets, index),
    }))
    return { type: 'histogram', buckets, count: left.count + right.count, sum: left.sum + right.sum }
  }
  return undefined
}

/**
 * The increase from `before` to `total`; undefined if the value was reset in between.
 * Must not be called with summaries, which are not comparable.
 */
export function subtractValues(total: MetricValue, before: MetricValue): MetricValue | undefined {
  if (total.type === 'counter' && before.type === 'counter') {
    return total.value < before.value ? undefined : { type: 'counter', value: total.value - before.value }
  }
  if (total.type === 'gauge' && before.type === 'gauge') return { type: 'gauge', value: total.value - before.value }
  if (total.type === 'set' && before.type === 'set') {
    const known = new Set(before.values)
    return { type: 'set', values: [...new Set(total.values)].filter((member) => !known.has(member)) }
  }
  if (total.type === 'distribution' && before.type === 'distribution' && total.statistic === before.statistic) {
    const known = new Map(joined(before.samples).map(({ value, rate }) => [value, rate]))
    const samples = joined(total.samples)
      .map(({ value, rate }) => ({ value, rate: rate - (known.get(value) ?? 0) }))
      .filter(({ rate }) => rate > 0)
    return { ...total, samples }
  }
  if (total.type === 'histogram' && before.type === 'histogram') {
    if (!sameLimits(total.buckets, before.buckets) || total.count < before.count) return undefined
    const buckets = total.buckets.map(({ upperLimit, count }, index) => ({
      upperLimit,
      count: count - countAt(before.buckets, index),
    }))
    if (buckets.some(({ count }) => count < 0)) return undefined
    return { type: 'histogram', buckets, count: total.count - before.count, sum: total.sum - before.sum }
  }
  return undefined
}

/** Merges samples with equal values, so that the length of a running total depends on the number of values and not of events. */
function joined(samples: Samples): Samples {
  const rates = new Map<number, number>()
  for (const { value, rate } of samples) rates.set(value, (rates.get(value) ?? 0) + rate)
  if (rates.size === samples.length) return samples
  return Array.from(rates, ([value, rate]) => ({ value, rate }))
}

function sameLimits(left: Buckets, right: Buckets): boolean {
  return left.length === right.length && left.every(({ upperLimit }, index) => upperLimit === right[index]?.upperLimit)
}

function countAt(buckets: Buckets, index: number): number {
  return buckets[index]?.count ?? 0
}
