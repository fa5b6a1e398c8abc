// `top`: a live table of what the components of a running agent do. On a terminal it is redrawn in place; else each look is
// printed below the one before.

import { setTimeout as sleep } from 'node:timers/promises'
import type { ComponentView } from '../api/components.ts'
import { globTest } from '../api/tap.ts'
import { PenstockError } from '../errors.ts'
import { agentUrl, clientFlags, getJson, interrupted } from './agent-client.ts'
import { type Flags, flagHelp, parseArgs } from './args.ts'
import { exitCodes } from './exit-codes.ts'

export const flagTable = {
  interval: { type: 'number', short: 'i', value: 'MS', minimum: 100, help: 'Milliseconds between two looks (1000).' },
  'human-metrics': { type: 'boolean', short: 'H', help: 'Short numbers: 12.3k, 4.5 MB.' },
  components: { type: 'list', short: 'c', value: 'PATTERN', help: 'Components to show. May be repeated.' },
  ...clientFlags,
  help: { type: 'boolean', short: 'h', help: 'Print this text.' },
} as const satisfies Flags

interface Look {
  readonly version: string
  readonly hostname: string
  readonly uptime_seconds: number
  readonly components: readonly ComponentView[]
}

export async function run(argv: readonly string[]): Promise<number> {
  const { flags, words } = parseArgs(argv, flagTable)
  if (flags.help) {
    process.stdout.write(`Usage: penstock-agent top [FLAGS]\n\nFlags:\n${flagHelp(flagTable)}\n`)
    return exitCodes.ok
  }
  if (words.length > 0) throw new PenstockError('PEN_USAGE', `"${words[0]}" is not a flag of top.`)
  const url = agentUrl(flags.url)
  const signal = interrupted()
  const patterns = flags.components.flatMap((list) => list.split(',')).map(globTest)
  const shown = (id: string) => patterns.length === 0 || patterns.some((matches) => matches(id))
  const live = process.stdout.isTTY
  let before: { look: Look; at: number } | undefined

  for (;;) {
    try {
      const look = (await getJson(url, '/v1/components', signal)) as Look
      const at = performance.now()
      // A rate needs two looks, so the first is not printed where it would stay.
      if (live || before !== undefined) {
        const text = table(look, before?.look, before === undefined ? 0 : (at - before.at) / 1000, {
          human: flags['human-metrics'],
          shown,
        })
        process.stdout.write(live ? `\u001b[H\u001b[2J${text}\n` : `${text}\n\n`)
      }
      before = { look, at }
    } catch (error) {
      if (signal.aborted) return exitCodes.ok
      if (before === undefined || flags['no-reconnect']) throw error
      process.stderr.write('The connection was lost; trying again.\n')
    }
    await sleep(flags.interval ?? 1000, undefined, { signal }).catch(() => {}) // looked at below
    if (signal.aborted) return exitCodes.ok
  }
}

const columns = ['ID', 'KIND', 'TYPE', 'IN', 'IN/s', 'OUT', 'OUT/s', 'BYTES', 'ERRORS', 'DISCARDED', 'BUSY', 'BUFFER']

function table(
  look: Look,
  before: Look | undefined,
  seconds: number,
  { human, shown }: { human: boolean; shown: (id: string) => boolean },
): string {
  const old = new Map(before?.components.map((component) => [component.component_id, component]))
  const number = (value: number) => (human ? short(value) : String(Math.round(value)))
  const rate = (now: number, then: number | undefined) =>
    then === undefined || seconds === 0 ? '-' : number(Math.max(0, now - then) / seconds)
  const rows = look.components
    .filter((component) => shown(component.component_id))
    .map((component) => {
      const then = old.get(component.component_id)
      const bytes =
        component.component_kind === 'source'
          ? component.received_bytes_total
          : component.component_kind === 'sink'
            ? component.sent_bytes_total
            : component.sent_event_bytes_total
      return [
        component.component_id,
        component.component_kind,
        component.component_type,
        number(component.received_events_total),
        rate(component.received_events_total, then?.received_events_total),
        number(component.sent_events_total),
        rate(component.sent_events_total, then?.sent_events_total),
        human ? `${short(bytes)}B` : String(bytes),
        number(component.errors_total),
        number(component.discarded_events_total),
        component.utilization === undefined ? '-' : `${Math.round(component.utilization * 100)}%`,
        component.buffer_events === undefined ? '-' : number(component.buffer_events),
      ]
    })
  const widths = columns.map((name, index) =>
    Math.max(name.length, ...rows.map((row) => (row[index] as string).length)),
  )
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, index) => (index < 3 ? cell.padEnd(widths[index] as number) : cell.padStart(widths[index] as number)))
      .join('  ')
      .trimEnd()
  const title = `penstock-agent ${look.version} on ${look.hostname}, up ${Math.round(look.uptime_seconds)} s`
  return [title, line(columns), ...rows.map(line)].join('\n')
}

/** A number of at most four characters and a unit. */
function short(value: number): string {
  const units = ['', 'k', 'M', 'G', 'T', 'P']
  let unit = 0
  let rest = value
  while (rest >= 1000 && unit < units.length - 1) {
    rest /= 1000
    unit++
  }
  return `${unit === 0 || rest >= 100 ? Math.round(rest) : rest.toFixed(1)}${units[unit]}`
}
