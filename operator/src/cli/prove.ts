// `penstock convert --prove SAMPLE --against OUTPUT`: runs the converted Pipeline on lines that were recorded, and compares its events
// with those that the old agent made of the same lines. The comparison goes to standard error: the Pipeline is on standard output.

import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { errorText, PenstockError } from '@penstock/agent/errors'
import { stringify } from 'yaml'
import { type Comparison, compareEvents, type Difference, type EventFields } from '../migrate/compare.ts'

export const proofHelp = `  --prove SAMPLE             run the Pipeline on recorded lines, as \`penstock run --input\` does, and compare its events with OUTPUT
  --against OUTPUT           the events that the old agent made of these lines: a JSON object a line, or a list of objects
  --sink NAME                the sink whose events are compared, if there are several
  --ignore PATH              a field that may differ, such as .timestamp. May be repeated`

export interface ProofOptions {
  /** Lines, in a file. */
  readonly sample: string
  /** The old agent's events, as text, and the file for messages. */
  readonly against: { readonly file: string; readonly text: string }
  readonly sink: string | undefined
  readonly ignored: readonly string[]
}

/** A Pipeline. */
interface Converted {
  readonly spec: { readonly sinks?: readonly { readonly name: string }[] }
}

interface ProofFlags {
  readonly prove?: string | undefined
  readonly against?: string | undefined
  readonly sink?: string | undefined
  readonly ignore?: readonly string[] | undefined
}

/** What the flags ask for; undefined if they ask for no proof. */
export function proofIn({ prove: sample, against, sink, ignore }: ProofFlags): ProofOptions | undefined {
  if (sample === undefined) {
    const alone = [
      against === undefined ? '' : '--against',
      sink === undefined ? '' : '--sink',
      ignore === undefined ? '' : '--ignore',
    ].find(Boolean)
    if (alone === undefined) return undefined
    throw new PenstockError('PEN_USAGE', `\`${alone}\` needs \`--prove SAMPLE\`.`)
  }
  if (against === undefined) {
    const message = '`--prove` needs `--against OUTPUT`: the events that the old agent made of the same lines.'
    throw new PenstockError('PEN_USAGE', message)
  }
  let text: string
  try {
    text = readFileSync(against, 'utf8')
  } catch (error) {
    throw new PenstockError('PEN_USAGE', `"${against}" cannot be read: ${errorText(error)}.`, { cause: error })
  }
  return { sample, against: { file: against, text }, sink, ignored: ignore ?? [] }
}

/** Prints the comparison; gives the exit code, 1 where there are differences. */
export async function prove(converted: Converted, options: ProofOptions): Promise<number> {
  const old = eventsIn(options.against.text, options.against.file)
  const folder = mkdtempSync(join(tmpdir(), 'penstock-prove-'))
  try {
    const file = join(folder, 'pipeline.yaml')
    writeFileSync(file, stringify(withOneSink(converted, options.sink)))
    const made = eventsIn(await runOn(file, options.sample), 'the output of the Pipeline')
    const comparison = compareEvents(old, made, options.ignored)
    console.error(comparisonText(comparison, old, made))
    const { differences, onlyOld, onlyMade } = comparison
    return differences.length + onlyOld.length + onlyMade.length === 0 ? 0 : 1
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The Pipeline with the sink that is compared alone: the others would give the same events once more. */
function withOneSink(converted: Converted, wanted: string | undefined): object {
  const { spec } = converted
  const sinks = spec.sinks ?? []
  const names = sinks.map(({ name }) => name).join(', ')
  if (wanted === undefined && sinks.length > 1) {
    throw new PenstockError('PEN_USAGE', `Choose the sink to compare by \`--sink\`: the Pipeline has ${names}.`)
  }
  const kept = sinks.filter(({ name }) => wanted === undefined || name === wanted)
  if (kept.length === 0) {
    throw new PenstockError('PEN_USAGE', `The Pipeline has no sink \`${wanted ?? ''}\`; its sinks are ${names}.`)
  }
  return { ...converted, spec: { ...spec, sinks: kept } }
}

const maxOutputBytes = 256 << 20

/** What `penstock run` prints of a file; its messages if it fails. */
async function runOn(pipeline: string, sample: string): Promise<string> {
  const [, main = ''] = process.argv
  const words = ['run', pipeline, '--input', sample, '--print', '-o', 'json']
  const command = spawn(process.execPath, [...process.execArgv, main, ...words], { stdio: ['ignore', 'pipe', 'pipe'] })
  const printed: Buffer[] = []
  let bytes = 0
  command.stdout.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes <= maxOutputBytes) printed.push(chunk)
    else command.kill()
  })
  let messages = ''
  command.stderr.setEncoding('utf8').on('data', (text: string) => {
    messages = (messages + text).slice(-65_536)
  })
  const code = await new Promise<number | null>((resolve, reject) => {
    command.on('error', reject)
    command.on('close', resolve)
  })
  if (bytes > maxOutputBytes) {
    throw new PenstockError('PEN_USAGE', `The sample makes more than ${maxOutputBytes >> 20} MiB of events; take less.`)
  }
  if (code !== 0)
    throw new PenstockError('PEN_USAGE', `The Pipeline does not run on the sample.\n${messages.trimEnd()}`)
  return Buffer.concat(printed).toString('utf8')
}

/** Events in text: an object a line, or one list of objects. */
function eventsIn(text: string, file: string): readonly EventFields[] {
  const isList = text.trimStart().startsWith('[')
  const texts = isList ? [text] : text.split('\n')
  return texts.flatMap((each, index) => {
    if (each.trim() === '') return []
    const line = isList ? 1 : index + 1
    let value: unknown
    try {
      value = JSON.parse(each, exact)
    } catch (error) {
      throw new PenstockError('PEN_USAGE', `${file}:${line} is not JSON: ${(error as Error).message}.`, {
        cause: error,
      })
    }
    const events = Array.isArray(value) ? value : [value]
    for (const event of events) {
      if (typeof event === 'object' && event !== null && !Array.isArray(event)) continue
      throw new PenstockError(
        'PEN_USAGE',
        `${file}:${line} holds ${JSON.stringify(event)}, which is no event: an event is a JSON object.`,
      )
    }
    return events as EventFields[]
  })
}

/** Integers that JavaScript's numbers cannot hold stay as they are written. */
function exact(_key: string, value: unknown, context?: { readonly source?: string }): unknown {
  const source = context?.source ?? ''
  return typeof value === 'number' && /^-?\d+$/.test(source) && !Number.isSafeInteger(value) ? source : value
}

const maxShown = 10
const maxFields = 60

/** @returns lines for people: what is equal, the fields that differ with the first example of each, events without a counterpart */
function comparisonText(
  { pairs, equal, differences, onlyOld, onlyMade }: Comparison,
  old: readonly EventFields[],
  made: readonly EventFields[],
): string {
  const lines = [
    `The old agent made ${counted(old.length)}, the Pipeline ${counted(made.length)} of the same lines; ${equal} ${equal === 1 ? 'is' : 'are'} equal.`,
  ]
  if (pairs > equal) {
    lines.push('', `${counted(pairs - equal)} differ${pairs - equal === 1 ? 's' : ''}:`)
    for (const each of differences.slice(0, maxFields)) lines.push(`  ${differenceText(each)}`)
    if (differences.length > maxFields) lines.push(`  and ${differences.length - maxFields} further fields.`)
  }
  lines.push(...withoutCounterpart('Only the old agent made', onlyOld, old))
  lines.push(...withoutCounterpart('Only the Pipeline made', onlyMade, made))
  return lines.join('\n')
}

const counted = (count: number) => (count === 1 ? '1 event' : `${count} events`)

function differenceText({ path, how, count, old, made, oldAt, madeAt }: Difference): string {
  const times = `${count} time${count === 1 ? '' : 's'}`
  const where = `first in event ${oldAt + 1} of the old agent, ${madeAt + 1} of the Pipeline`
  if (how === 'only old') return `${path}: the Pipeline lacks it, ${times}: ${shown(old)} (${where})`
  if (how === 'only new') return `${path}: the Pipeline adds it, ${times}: ${shown(made)} (${where})`
  const what = how === 'other type' ? 'another type' : 'another value'
  return `${path}: ${what}, ${times}: ${shown(old)} -> ${shown(made)} (${where})`
}

function withoutCounterpart(title: string, positions: readonly number[], events: readonly EventFields[]): string[] {
  if (positions.length === 0) return []
  const rows = positions.slice(0, maxShown).map((at) => `  event ${at + 1}: ${shown(events[at], 400)}`)
  const more = positions.length > maxShown ? [`  and ${positions.length - maxShown} more.`] : []
  return ['', `${title} ${counted(positions.length)}:`, ...rows, ...more]
}

function shown(value: unknown, limit = 120): string {
  const text = JSON.stringify(value) ?? 'nothing'
  return text.length > limit ? `${text.slice(0, limit)}…` : text
}
