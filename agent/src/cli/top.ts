// `top`: a live table of the components of a running agent. On a terminal the table is redrawn in place, fits the width and reacts to
// keys; elsewhere, each snapshot is printed in full after the previous one.

import { globTest } from '../api/tap.ts'
import { pause } from '../clock.ts'
import { exitCodes } from '../command-line/exit-codes.ts'
import { type Flags, flagHelp, parseFlags } from '../command-line/flags.ts'
import { helpText } from '../command-line/help.ts'
import { LiveScreen } from '../command-line/live-screen.ts'
import { PenstockError } from '../errors.ts'
import { styled } from '../formats/pretty.ts'
import { isRedrawn, sheetOf } from '../terminal.ts'
import { interrupted } from '../timing/wait.ts'
import { agentUrl, clientFlags, getJson } from './agent-client.ts'
import { AgentTopScreen } from './top-screen.ts'
import { colored, type Row, rowsOf, type TopSnapshot, tableLines, titleOf, waitLines } from './top-table.ts'

export const flagTable = {
  interval: {
    type: 'string',
    number: 'any',
    short: 'i',
    value: 'MS',
    minimum: 100,
    help: 'Refresh interval in milliseconds (1000).',
  },
  'human-metrics': { type: 'boolean', short: 'H', help: 'Short numbers: 12.3k, 4.5 MB.' },
  components: {
    type: 'string',
    multiple: true,
    short: 'c',
    value: 'PATTERN',
    help: 'Components to show. May be repeated.',
  },
  once: { type: 'boolean', help: 'Print one table and exit.' },
  output: {
    type: 'string',
    short: 'o',
    oneOf: ['table', 'json'],
    help: 'Format of the output (table); json prints one line per refresh.',
  },
  ...clientFlags,
  help: { type: 'boolean', short: 'h', help: 'Print this text.' },
} as const satisfies Flags

const usage = `Usage: penstock-agent top [FLAGS]

Shows the activity of a running agent's components: events in and out per second, errors, buffers. On a terminal, keys select a component (up, down), show its details (Enter; Escape goes back), sort (left, right, r), filter (/), pause (p) and quit (q).`

export async function run(argv: readonly string[]): Promise<number> {
  const { flags, words } = parseFlags(argv, flagTable)
  if (flags.help) {
    process.stdout.write(helpText(`${usage}\n\nFlags:\n${flagHelp(flagTable)}\n`))
    return exitCodes.ok
  }
  if (words.length > 0) throw new PenstockError('PEN_USAGE', `"${words[0]}" is not a flag of top.`)
  const url = agentUrl(flags.url)
  const patterns = flags.components.flatMap((list) => list.split(',')).map(globTest)
  const shown = ({ component_id: id }: Row) => patterns.length === 0 || patterns.some((matches) => matches(id))
  const isLive = isRedrawn(process.stdout) && !flags.once && flags.output !== 'json'
  const drawing = new AgentTopScreen(flags['human-metrics'])
  using screen = isLive ? new LiveScreen(drawing) : undefined
  const signal = screen === undefined ? interrupted() : AbortSignal.any([interrupted(), screen.quit])
  let isLost = false
  let before: { readonly look: TopSnapshot; readonly at: number } | undefined

  for (;;) {
    try {
      const look = (await getJson(url, '/v1/components', signal)) as TopSnapshot
      const at = performance.now()
      const rows = rowsOf(look, before && { look: before.look, seconds: (at - before.at) / 1000 }).filter(shown)
      if (screen !== undefined) {
        drawing.look(look, rows)
        screen.draw()
      }
      // A rate needs two snapshots, so the first snapshot is not printed if it would stay visible.
      else if (before !== undefined) {
        process.stdout.write(
          flags.output === 'json' ? `${jsonOf(look, rows)}\n` : printed(look, rows, flags['human-metrics']),
        )
        if (flags.once) return exitCodes.ok
      }
      before = { look, at }
      isLost = false
    } catch (error) {
      if (signal.aborted) return exitCodes.ok
      if (before === undefined || flags.once || flags['no-reconnect']) throw error
      if (screen === undefined) {
        if (!isLost) process.stderr.write('The connection was lost; trying again.\n')
      } else {
        drawing.say('The connection was lost; trying again.')
        screen.draw()
      }
      isLost = true
    }
    await pause(flags.interval ?? 1000, signal) // the signal is checked below
    if (signal.aborted) return exitCodes.ok
  }
}

const jsonOf = ({ components: _, ...look }: TopSnapshot, rows: readonly Row[]) =>
  JSON.stringify({ ...look, components: rows })

function printed(look: TopSnapshot, rows: readonly Row[], isHuman: boolean): string {
  const sheet = sheetOf(process.stdout)
  const { heading, lines } = tableLines(rows, { isHuman, sheet })
  const table = [
    titleOf(look, rows, sheet),
    styled(heading, 'bold', sheet.color),
    ...lines.map((line, index) => colored(rows[index], line, sheet)),
    ...waitLines(rows, sheet),
  ]
  return `${table.join('\n')}\n\n`
}
