// Renders the results of the simulations of adaptive concurrency as a reference page with plots. The SVG output is reproducible.

import type { Page } from '../schema/reference.ts'
import { destinations, type Second, simulate } from '../testing/adaptive-simulation.ts'

const width = 720
const height = 240
const left = 48
const bottom = 32
const top = 28
const right = 48

/** The page and its plots, by path below the reference. */
export async function adaptivePlots(): Promise<{ readonly page: Page; readonly files: ReadonlyMap<string, string> }> {
  const files = new Map<string, string>()
  const parts: string[] = []
  for (const [name, destination] of Object.entries(destinations)) {
    const seconds = await simulate(destination)
    const file = `adaptive-concurrency-${name}.svg`
    files.set(file, plot(destination.name, seconds))
    parts.push(`## ${destination.name}`, destination.description, `![${destination.name}](${file})`, numbers(seconds))
  }
  const summary = 'How `request.concurrency: adaptive` behaves, in simulations.'
  const text = [
    '# Adaptive concurrency',
    summary,
    'The limit rises by one per average round trip while all permits are in use and round trips do not become longer. When they become longer by more than `rtt_deviation_scale` deviations, or the destination rejects requests temporarily, the limit is multiplied by `decrease_ratio`. The plots show the limit (blue, left scale) and delivered requests per second (grey, right scale) with the default options.',
    ...parts,
  ].join('\n\n')
  const file = 'adaptive-concurrency.md'
  return {
    page: { names: ['adaptive-concurrency'], file, section: 'Behaviour', summary, text: `${text}\n` },
    files,
  }
}

/** The average limit and deliveries in each sixth of the time. */
function numbers(seconds: readonly Second[]): string {
  const length = seconds.length / 6
  return Array.from({ length: 6 }, (_, part) => {
    const slice = seconds.slice(part * length, (part + 1) * length)
    const mean = (of: keyof Second) => (slice.reduce((sum, second) => sum + second[of], 0) / slice.length).toFixed(1)
    return `- seconds ${part * length} to ${(part + 1) * length}: limit ${mean('limit')}, ${mean('delivered')} delivered and ${mean('refused')} rejected per second`
  }).join('\n')
}

function plot(title: string, seconds: readonly Second[]): string {
  const limits = seconds.map(({ limit }) => limit)
  const rates = seconds.map(({ delivered }) => delivered)
  const highest = { limit: roundUp(Math.max(...limits)), rate: roundUp(Math.max(...rates)) }
  const x = (second: number) => left + ((width - left - right) * second) / seconds.length
  const y = (value: number, max: number) => height - bottom - ((height - bottom - top) * value) / max
  const line = (values: readonly number[], max: number) =>
    values.map((value, second) => `${x(second + 1).toFixed(1)},${y(value, max).toFixed(1)}`).join(' ')
  const label = (at: number, down: number, text: string, anchor: string) =>
    `<text x="${at.toFixed(1)}" y="${down.toFixed(1)}" text-anchor="${anchor}">${text}</text>`
  const steps = [0, 0.25, 0.5, 0.75, 1]
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="11">`,
    `<title>${title}</title>`,
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    label(left, 16, `${title}: limit (blue), delivered per second (grey)`, 'start'),
    ...steps.flatMap((part) => [
      `<path d="M${left} ${y(part, 1).toFixed(1)}H${width - right}" stroke="#dddddd"/>`,
      label(left - 6, y(part, 1) + 4, String(highest.limit * part), 'end'),
      label(width - right + 6, y(part, 1) + 4, String(highest.rate * part), 'start'),
      label(x(seconds.length * part), height - 12, `${seconds.length * part} s`, 'middle'),
    ]),
    `<polyline fill="none" stroke="#aaaaaa" points="${line(rates, highest.rate)}"/>`,
    `<polyline fill="none" stroke="#1f5fbf" stroke-width="2" points="${line(limits, highest.limit)}"/>`,
    '</svg>',
  ].join('\n')}\n`
}

/** The next larger number that is suitable for four grid lines. */
function roundUp(value: number): number {
  const step = value > 100 ? 100 : value > 20 ? 20 : 4
  return Math.max(step, Math.ceil(value / step) * step)
}
