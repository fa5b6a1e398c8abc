// `tap`: shows a sample of the events that pass through a running agent.

import { pause } from '../clock.ts'
import { exitCodes } from '../command-line/exit-codes.ts'
import { type Flags, flagHelp, parseFlags } from '../command-line/flags.ts'
import { helpText } from '../command-line/help.ts'
import { PenstockError } from '../errors.ts'
import { interrupted } from '../timing/wait.ts'
import { agentUrl, clientFlags, getLines, parsed } from './agent-client.ts'
import { defaultTapForm, type TapLine, tapFormatter, tapForms } from './tap-format.ts'

export const flagTable = {
  'outputs-of': {
    type: 'string',
    multiple: true,
    value: 'PATTERN',
    help: 'Components whose outputs to show, like PATTERN.',
  },
  'inputs-of': { type: 'string', multiple: true, value: 'PATTERN', help: 'Components whose inputs to show.' },
  interval: {
    type: 'string',
    number: 'any',
    short: 'i',
    value: 'MS',
    minimum: 10,
    help: 'Sampling interval in milliseconds (500).',
  },
  limit: {
    type: 'string',
    number: 'any',
    short: 'l',
    value: 'N',
    minimum: 1,
    help: 'Maximum number of events per sample (100).',
  },
  format: {
    type: 'string',
    short: 'f',
    oneOf: tapForms,
    help: 'Format of the events (pretty on a terminal, otherwise json).',
  },
  meta: { type: 'boolean', short: 'm', help: 'Show which component each event comes from.' },
  quiet: { type: 'boolean', short: 'q', help: 'Show only events, no notices.' },
  'duration-ms': { type: 'string', number: 'any', short: 'd', value: 'MS', help: 'Exit after this many milliseconds.' },
  ...clientFlags,
  help: { type: 'boolean', short: 'h', help: 'Print this text.' },
} as const satisfies Flags

const reconnectMs = 1000

export async function run(argv: readonly string[]): Promise<number> {
  const { flags, words } = parseFlags(argv, flagTable)
  if (flags.help) {
    const usage =
      'Usage: penstock-agent tap [PATTERN…] [FLAGS]\n\nShows a sample of the events that pass through a running agent. A PATTERN selects the components whose outputs are shown (*).'
    process.stdout.write(helpText(`${usage}\n\nFlags:\n${flagHelp(flagTable)}\n`))
    return exitCodes.ok
  }
  const url = agentUrl(flags.url)
  const query = new URLSearchParams()
  for (const pattern of [...words, ...flags['outputs-of']]) query.append('outputs_of', pattern)
  for (const pattern of flags['inputs-of']) query.append('inputs_of', pattern)
  if (flags.interval !== undefined) query.set('interval', String(flags.interval))
  if (flags.limit !== undefined) query.set('limit', String(flags.limit))
  const format = await tapFormatter(flags.format ?? defaultTapForm(), flags.meta)
  const duration = flags['duration-ms']
  const over = duration === undefined ? [] : [AbortSignal.timeout(duration)]
  const signal = AbortSignal.any([interrupted(), ...over])

  let connected = false
  let isLost = false
  for (;;) {
    try {
      for await (const line of getLines(url, `/v1/tap?${query}`, signal)) {
        const received = parsed(url, line) as TapLine & { readonly message?: string }
        connected = true
        isLost = false
        if (received.kind === 'event') process.stdout.write(`${format(received, line)}\n`)
        else if (!flags.quiet) process.stderr.write(`${received.message}\n`)
      }
    } catch (error) {
      if (signal.aborted) return exitCodes.ok
      const lost = error instanceof PenstockError && error.code === 'PEN_UNAVAILABLE'
      if (!lost || !connected || flags['no-reconnect']) throw error
    }
    if (signal.aborted) return exitCodes.ok
    if (flags['no-reconnect']) throw new PenstockError('PEN_UNAVAILABLE', 'The connection to the agent was lost.')
    if (connected && !isLost && !flags.quiet) process.stderr.write('[tap] The connection was lost; trying again.\n')
    isLost = true
    await pause(reconnectMs, signal) // the loop ends at the next connection attempt
  }
}
