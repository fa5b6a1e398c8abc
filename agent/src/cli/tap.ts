// `tap`: shows a sample of the events that pass through a running agent.

import { setTimeout as sleep } from 'node:timers/promises'
import { PenstockError } from '../errors.ts'
import { isObject, type Value } from '../event/value.ts'
import { isFailedJson, parseJson } from '../formats/json.ts'
import { writeLogfmt } from '../formats/logfmt.ts'
import { agentUrl, clientFlags, getLines, interrupted } from './agent-client.ts'
import { type Flags, flagHelp, parseArgs } from './args.ts'
import { exitCodes } from './exit-codes.ts'

export const flagTable = {
  'outputs-of': { type: 'list', value: 'PATTERN', help: 'Components whose outputs are shown; same as PATTERN.' },
  'inputs-of': { type: 'list', value: 'PATTERN', help: 'Components whose inputs are shown.' },
  interval: { type: 'number', short: 'i', value: 'MS', minimum: 10, help: 'Milliseconds of a sample (500).' },
  limit: { type: 'number', short: 'l', value: 'N', minimum: 1, help: 'Most events in a sample (100).' },
  format: { type: 'string', short: 'f', oneOf: ['json', 'yaml', 'logfmt'], help: 'Form of the events (json).' },
  meta: { type: 'boolean', short: 'm', help: 'Show with each event which component it comes from.' },
  quiet: { type: 'boolean', short: 'q', help: 'Show events only, no notices.' },
  'duration-ms': { type: 'number', short: 'd', value: 'MS', help: 'End after so many milliseconds.' },
  ...clientFlags,
  help: { type: 'boolean', short: 'h', help: 'Print this text.' },
} as const satisfies Flags

const reconnectMs = 1000

interface TapLine {
  readonly kind: string
  readonly message?: string
  readonly output?: string
  readonly component_id?: string
  readonly component_kind?: string
  readonly component_type?: string
}

export async function run(argv: readonly string[]): Promise<number> {
  const { flags, words } = parseArgs(argv, flagTable)
  if (flags.help) {
    const usage = 'Usage: penstock-agent tap [PATTERN…] [FLAGS]\n\nA PATTERN names outputs of components; * by default.'
    process.stdout.write(`${usage}\n\nFlags:\n${flagHelp(flagTable)}\n`)
    return exitCodes.ok
  }
  const url = agentUrl(flags.url)
  const query = new URLSearchParams()
  for (const pattern of [...words, ...flags['outputs-of']]) query.append('outputs_of', pattern)
  for (const pattern of flags['inputs-of']) query.append('inputs_of', pattern)
  if (flags.interval !== undefined) query.set('interval', String(flags.interval))
  if (flags.limit !== undefined) query.set('limit', String(flags.limit))
  const format = await formatter(flags.format ?? 'json', flags.meta)
  const duration = flags['duration-ms']
  const over = duration === undefined ? [] : [AbortSignal.timeout(duration)]
  const signal = AbortSignal.any([interrupted(), ...over])

  let connected = false
  for (;;) {
    try {
      for await (const line of getLines(url, `/v1/tap?${query}`, signal)) {
        connected = true
        const parsed = JSON.parse(line) as TapLine
        if (parsed.kind === 'event') process.stdout.write(`${format(parsed, line)}\n`)
        else if (!flags.quiet) process.stderr.write(`${parsed.message}\n`)
      }
    } catch (error) {
      if (signal.aborted) return exitCodes.ok
      const lost = error instanceof PenstockError && error.code === 'PEN_UNAVAILABLE'
      if (!lost || !connected || flags['no-reconnect']) throw error
    }
    if (signal.aborted) return exitCodes.ok
    if (flags['no-reconnect']) throw new PenstockError('PEN_UNAVAILABLE', 'The connection to the agent was lost.')
    if (connected && !flags.quiet) process.stderr.write('[tap] The connection was lost; trying again.\n')
    await sleep(reconnectMs, undefined, { signal }).catch(() => {}) // the signal ends the loop at the next connection
  }
}

type Format = (line: TapLine, text: string) => string

async function formatter(name: string, meta: boolean): Promise<Format> {
  const event = await eventFormatter(name)
  if (!meta) return (_line, text) => event(eventText(text))
  if (name === 'json') return (line, text) => `${JSON.stringify(metaOf(line)).slice(0, -1)},"event":${eventText(text)}}`
  return (line, text) => {
    const { output, component_kind: kind, component_type: type } = line
    return `[${kind} ${output} (${type})]${name === 'yaml' ? '\n' : ' '}${event(eventText(text))}`
  }
}

function metaOf({ output, component_id, component_kind, component_type }: TapLine): object {
  return { output, component_id, component_kind, component_type }
}

/** The event as the agent wrote it, numbers to the last digit: it is the last member of its line. */
function eventText(line: string): string {
  return line.slice(line.indexOf(',"event":') + ',"event":'.length, -1)
}

async function eventFormatter(name: string): Promise<(text: string) => string> {
  if (name === 'json') return (text) => text
  if (name === 'logfmt') {
    return (text) => {
      const value = parseJson(text)
      return !isFailedJson(value) && isObject(value as Value) ? writeLogfmt(value as { [key: string]: Value }) : text
    }
  }
  const { stringify } = await import('yaml')
  return (text) => `---\n${stringify(JSON.parse(text)).trimEnd()}`
}
