// Arithmetic for figures: means, parts of a series, rounding.

export const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length

export const firstThird = (values: readonly number[]) => values.slice(0, third(values))
export const lastThird = (values: readonly number[]) => values.slice(-third(values))
const third = (values: readonly number[]) => Math.max(1, Math.floor(values.length / 3))

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other)
  const middle = sorted.length / 2
  return sorted.length % 2 === 1
    ? (sorted[Math.floor(middle)] as number)
    : ((sorted[middle - 1] as number) + (sorted[middle] as number)) / 2
}

/** The quantile of the values. */
export function percentile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((one, other) => one - other)
  return sorted[Math.max(0, Math.ceil(sorted.length * part) - 1)] as number
}

export function round(value: number, places = 3): number {
  return Math.round(value * 10 ** places) / 10 ** places
}

/** The reason why figures are invalid: a line did not arrive exactly once, or the run failed. */
export function faults(figures: object): string | undefined {
  const { lost = 0, doubled = 0, problem } = figures as { lost?: number; doubled?: number; problem?: string }
  if (problem !== undefined) return problem
  if (lost === 0 && doubled === 0) return undefined
  return `Lost lines: ${lost}. Lines delivered again: ${doubled}.`
}
