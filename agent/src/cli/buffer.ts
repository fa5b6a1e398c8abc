// `buffer inspect PATH`: shows the content of a disk buffer without changing it.

import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { type InspectedBuffer, inspectBuffer, isBuffer } from '../buffers/disk/inspect.ts'
import { exitCodes } from '../command-line/exit-codes.ts'
import { type Flags, flagHelp, parseFlags } from '../command-line/flags.ts'
import { helpText } from '../command-line/help.ts'
import { counted } from '../counted.ts'
import { fileReason, PenstockError } from '../errors.ts'

export const flags = {
  format: {
    type: 'string',
    oneOf: ['text', 'json'],
    help: 'Format of the output (text); json prints one object per line.',
  },
  help: { type: 'boolean', short: 'h', help: 'Print this text.' },
} as const satisfies Flags

const usage = `Usage: penstock-agent buffer inspect PATH… [FLAGS]

Reads the segments, records, ids and checksums of a disk buffer without changing it; an agent may be using the buffer. PATH is the folder of the buffer, DATA_DIR/buffer/v2/SINK, or a folder above it. Exit code 74 if something is damaged or missing.
`

export async function run(argv: readonly string[]): Promise<number> {
  const { flags: given, words } = parseFlags(argv, flags)
  if (given.help) {
    process.stdout.write(helpText(`${usage}\n${flagHelp(flags)}\n`))
    return exitCodes.ok
  }
  const [action, ...paths] = words
  if (action !== 'inspect' || paths.length === 0) {
    throw new PenstockError('PEN_USAGE', 'Name a folder: penstock-agent buffer inspect PATH.')
  }
  const folders = paths.flatMap(buffersBelow)
  let damaged = false
  for (const folder of folders) {
    const found = inspected(folder)
    damaged ||= isDamaged(found)
    process.stdout.write(given.format === 'json' ? `${JSON.stringify(found)}\n` : text(found))
  }
  return damaged ? exitCodes.io : exitCodes.ok
}

function inspected(folder: string): InspectedBuffer {
  try {
    return inspectBuffer(folder)
  } catch (error) {
    if (error instanceof PenstockError) throw error
    throw new PenstockError('PEN_IO', `The disk buffer ${folder} cannot be read: ${fileReason(error)}.`, {
      cause: error,
    })
  }
}

/** The folder itself, or the buffers in its sub-folders, as in a data directory. */
function buffersBelow(path: string): string[] {
  let names: string[]
  try {
    if (isBuffer(path)) return [path]
    names = readdirSync(path)
  } catch (error) {
    throw new PenstockError('PEN_IO', `The folder ${path} cannot be read: ${fileReason(error)}.`, { cause: error })
  }
  for (const below of [path, join(path, 'v2'), join(path, 'buffer/v2')]) {
    if (statSync(below, { throwIfNoEntry: false })?.isDirectory() !== true) continue
    const found = (below === path ? names : readdirSync(below)).map((name) => join(below, name)).filter(isBuffer)
    if (found.length > 0) return found.sort()
  }
  const message = `There is no disk buffer in ${path}; expected a folder such as DATA_DIR/buffer/v2/SINK, which contains buffer.db.`
  throw new PenstockError('PEN_IO', message)
}

function isDamaged({ ledger, segments, missing_events, in_use }: InspectedBuffer): boolean {
  if (in_use) return segments.some((segment) => segment.damaged_records > 0)
  return ledger === 'damaged' || missing_events > 0 || segments.some((segment) => segment.damaged_records > 0)
}

const columns = ['SEGMENT', 'SEQUENCE', 'BYTES', 'RECORDS', 'EVENTS', 'FIRST ID', 'LAST ID', 'DAMAGED', 'OTHER BYTES']

function text(found: InspectedBuffer): string {
  const { ledger, segments } = found
  const rows = segments.map((segment) => [
    segment.file,
    String(segment.sequence),
    String(segment.bytes),
    String(segment.records),
    String(segment.events),
    segment.first_id === undefined ? '-' : String(segment.first_id),
    segment.last_id === undefined ? '-' : String(segment.last_id),
    String(segment.damaged_records),
    String(segment.other_bytes),
  ])
  const widths = columns.map((name, index) =>
    Math.max(name.length, ...rows.map((row) => (row[index] as string).length)),
  )
  const line = (cells: readonly string[]) =>
    `  ${cells.map((cell, index) => (index === 0 ? cell.padEnd(widths[0] as number) : cell.padStart(widths[index] as number))).join('  ')}\n`
  const position = ({ segment, offset }: { segment: number; offset: number }) => `segment ${segment}, byte ${offset}`
  const ledgerText =
    typeof ledger === 'string'
      ? `  Ledger: ${ledger}\n`
      : `  Done: events below id ${ledger.readId} (${position(ledger.read)})\n` +
        `  Synced: events below id ${ledger.syncedId} (${position(ledger.synced)})\n` +
        `  Written: events below id ${ledger.nextId}\n`
  const spare = found.spare_bytes === 0 ? '' : `  Spare file: ${counted(found.spare_bytes, 'byte')}\n`
  const oldest = found.oldest_at === undefined ? '' : `, the oldest written at ${found.oldest_at}`
  return (
    `${found.path}\n  ${found.in_use ? 'In use by a running agent' : 'Not in use'}\n${ledgerText}` +
    (rows.length === 0 ? '  No segments\n' : `${line(columns)}${rows.map(line).join('')}`) +
    `${spare}  Lag: ${counted(found.lag_events, 'event')} in ${counted(found.lag_bytes, 'byte')}${oldest}\n` +
    (found.missing_events === 0 ? '' : `  Missing: ${counted(found.missing_events, 'event')}\n`)
  )
}
