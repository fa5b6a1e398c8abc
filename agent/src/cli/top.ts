// `top`: a live table of what the components of a running agent do. On a terminal it is redrawn in place and no wider than that; else
// each look is printed below the one before, whole.

import { setTimeout as sleep } from 'node:timers/promises'
import type { ComponentView } from '../api/components.ts'
import { globTest } from '../api/tap.ts'
import { exitCodes } from '../command-line/exit-codes.ts'
import { type Flags, flagHelp, parseFlags } from '../command-line/flags.ts'
import { PenstockError } from '../errors.ts'
import { styled } from '../formats/pretty.ts'
import { type Sheet, sheetOf } from '../terminal.ts'
import { interrupted } from '../timing/wait.ts'
import { agentUrl, clientFlags, getJson } from './agent-client.ts'

export const flagTable = {
  interval: {
    type: 'string',
    number: 'any',
    short: 'i',
    value: 'MS',
    minimum: 100,
    help: 'Milliseconds between two looks (1000).',
  },
  'human-metrics': { type: 'boolean', short: 'H', help: 'Short numbers: 12.3k, 4.5 MB.' },
  components: {
    type: 'string',
    multiple: true,
    short: 'c',
    value: 'PATTERN',
    help: 'Components to show. May be repeated.',
  },
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
  const { flags, words } = parseFlags(argv, flagTable)
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
          sheet: sheetOf(process.stdout),
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

/** Those that a narrow terminal leaves out, the first one first. */
const expendable = ['TYPE', 'BYTES', 'BUSY', 'KIND', 'BUFFER']

const columns = ['ID', 'KIND', 'TYPE', 'IN', 'IN/s', 'OUT', 'OUT/s', 'BYTES', 'ERRORS', 'DISCARDED', 'BUSY', 'BUFFER']

function table(
  look: Look,
  before: Look | undefined,
  seconds: number,
  { human, shown, sheet }: { human: boolean; shown: (id: string) => boolean; sheet: Sheet },
): string {
  const old = new Map(before?.components.map((component) => [component.component_id, component]))
  const number = (value: number) => (human ? short(value) : String(Math.round(value)))
  const rate = (now: number, then: number | undefined) =>
    then === undefined || seconds === 0 ? '-' : number(Math.max(0, now - then) / seconds)
  const seen = look.components.filter((component) => shown(component.component_id))
  // On a terminal, the Pipeline of all components stands above them once.
  const common = sheet.columns === undefined ? '' : commonPrefix(seen.map((component) => component.component_id))
  const rows = seen.map((component) => {
    const then = old.get(component.component_id)
    const bytes =
      component.component_kind === 'source'
        ? component.received_bytes_total
        : component.component_kind === 'sink'
          ? component.sent_bytes_total
          : component.sent_event_bytes_total
    return [
      component.component_id.slice(common.length),
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
  const kept = fitting(widths, sheet.columns)
  const line = (cells: readonly string[]) =>
    kept
      .map((index) => {
        const [cell = '', width = 0] = [cells[index], widths[index]]
        return index < 3 ? cell.padEnd(width) : cell.padStart(width)
      })
      .join('  ')
      .trimEnd()
      .slice(0, sheet.columns)
  const of = common === '' ? '' : `, ${common.slice(0, -1)}`
  const title = `penstock-agent ${look.version} on ${look.hostname}${of}, up ${Math.round(look.uptime_seconds)} s`
  return [
    title.slice(0, sheet.columns),
    styled(line(columns), 'bold', sheet.color),
    ...rows.map((row, index) =>
      (seen[index]?.errors_total ?? 0) > 0 ? styled(line(row), 'red', sheet.color) : line(row),
    ),
  ].join('\n')
}

/** The namespace and Pipeline that all ids begin with, up to the last slash; empty if they share none. */
function commonPrefix([first = '', ...others]: readonly string[]): string {
  const prefix = first.slice(0, first.lastIndexOf('/') + 1)
  return others.length > 0 && others.every((id) => id.lastIndexOf('/') + 1 === prefix.length && id.startsWith(prefix))
    ? prefix
    : ''
}

/** The columns of a table that have room, by their index. */
function fitting(widths: readonly number[], room = Number.POSITIVE_INFINITY): readonly number[] {
  let kept = columns.map((_, index) => index)
  for (const name of expendable) {
    if (kept.reduce((sum, index) => sum + 2 + (widths[index] as number), -2) <= room) break
    kept = kept.filter((index) => columns[index] !== name)
  }
  return kept
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
