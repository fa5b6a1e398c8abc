// `penstock-agent remap`: runs a program on lines of JSON, or interactively. The outcome of a program affects the exit
// code only with `--strict`; a program that does not compile exits with 78.

import { createReadStream, readFileSync } from 'node:fs'
import { stdin, stdout } from 'node:process'
import { createInterface, type Interface } from 'node:readline/promises'
import type { Readable } from 'node:stream'
import { exitCodes } from '../command-line/exit-codes.ts'
import { type Flags, flagHelp, parseFlags } from '../command-line/flags.ts'
import { helpText } from '../command-line/help.ts'
import { errorText, fileReason, PenstockError } from '../errors.ts'
import { noMetadata } from '../event/log.ts'
import { isObject, type Value, type ValueObject } from '../event/value.ts'
import { isFailedJson, parseJson, writeJson } from '../formats/json.ts'
import { findZone, zoneName } from '../formats/timezone.ts'
import { printable } from '../printable.ts'
import { named, positionOfByte } from '../remap/diagnostics.ts'
import { explainProgram } from '../remap/explain.ts'
import { isFailure } from '../remap/function.ts'
import { type CompileOptions, compileProgram, type Program } from '../remap/program.ts'
import { fromTagged, type Tagged, toTagged } from '../remap/tagged.ts'
import { valueText } from '../remap/text.ts'
import { historyFile, prompt } from './repl.ts'

export const flags = {
  program: { type: 'string', short: 'p', value: 'FILE', help: 'File with the program.' },
  input: {
    type: 'string',
    short: 'i',
    value: 'FILE',
    help: 'File with events, one JSON object per line (standard input).',
  },
  'print-object': { type: 'boolean', short: 'o', help: 'Print the changed event instead of the result.' },
  json: {
    type: 'boolean',
    help: "Print JSON, one value a line, for other programs (the language's own notation).",
    replacedBy: 'typed',
  },
  typed: { type: 'boolean', help: 'Read and print values with their kinds, and print the outcome of each run.' },
  timezone: { type: 'string', short: 'tz', value: 'ZONE', help: 'Time zone of dates without one (UTC).' },
  network: { type: 'boolean', help: 'Allow functions that use the network, like `remap.network: true`.' },
  explain: {
    type: 'boolean',
    help: 'Print the inferred kinds and the fallible expressions, without running the program.',
  },
  strict: { type: 'boolean', help: 'Exit with code 1 if the program failed on a line.' },
  'no-history': {
    type: 'boolean',
    env: 'PENSTOCK_REMAP_NO_HISTORY',
    help: "Do not save the prompt's history.",
  },
  runtime: { type: 'string', value: 'ast', oneOf: ['ast'], help: 'Accepted for compatibility.' },
  help: { type: 'boolean', short: 'h', help: 'Print this text.' },
} as const satisfies Flags

export async function run(argv: readonly string[]): Promise<number> {
  const { flags: given, words } = parseFlags(argv, flags)
  if (given.help) {
    const usage = [
      'Usage: penstock-agent remap [PROGRAM] [FLAGS]',
      '',
      'Runs a program on each line of JSON. Without a program it opens a prompt; type `help` there.',
      `The prompt keeps its history in ${historyFile()}, except for lines that begin with a space.`,
    ].join('\n')
    stdout.write(helpText(`${usage}\n\nFlags:\n${flagHelp(flags)}\n`))
    return exitCodes.ok
  }
  const source = programIn(words, given.program)
  const timezone = zoneName(given.timezone ?? 'UTC')
  if (findZone(timezone) === undefined) {
    const expected = 'a name of the time zone database, such as `Europe/Paris`, or `local`'
    throw new PenstockError('PEN_USAGE', `--timezone is "${timezone}"; it must be ${expected}.`)
  }
  const options: CompileOptions = { timezone, network: given.network, log: logLine }
  if (source === undefined) {
    if (given.explain) throw new PenstockError('PEN_USAGE', '--explain needs a program, or a file with --program.')
    const events = given.input === undefined ? [] : eventsOf(given.input)
    await prompt({ ...options, events, history: !given['no-history'] })
    return exitCodes.ok
  }
  const compiled = compileProgram(source, { ...options, keepResult: true })
  if (!compiled.ok) {
    process.stderr.write(given.program === undefined ? compiled.rendered : named(compiled.rendered, given.program))
    if (given.typed) {
      const codes = compiled.diagnostics.map((diagnostic) => diagnostic.code)
      stdout.write(`${JSON.stringify({ compile_error: codes })}\n`)
    }
    return exitCodes.config
  }
  if (compiled.renderedWarnings !== '') process.stderr.write(compiled.renderedWarnings)
  if (given.explain) {
    stdout.write(explainProgram(source, compiled.program))
    return exitCodes.ok
  }
  const warnings = compiled.warnings.map((warning) => warning.code)
  const print: Print = {
    what: given['print-object'] ? 'event' : 'result',
    textOf: given.json ? writeJson : valueText,
  }
  const input = given.input === undefined ? stdin : createReadStream(given.input)
  if (input === stdin && stdin.isTTY)
    process.stderr.write('Type events, one JSON object per line. Ctrl-D ends them, and --input FILE reads a file.\n')
  let failed = false
  let count = 0
  try {
    for await (const line of linesOf(input)) {
      if (line.trim() === '') continue
      count++
      const isOk = given.typed
        ? runTyped(compiled.program, line, warnings)
        : runLine(source, compiled.program, line, count, print)
      failed ||= !isOk
    }
  } catch (error) {
    const name = given.input === undefined ? '' : ` ${given.input}`
    throw new PenstockError('PEN_IO', `The input${name} cannot be read: ${fileReason(error)}.`, { cause: error })
  }
  return failed && given.strict ? 1 : exitCodes.ok
}

/** The program, from the argument or the file; undefined without either. */
function programIn(words: readonly string[], file: string | undefined): string | undefined {
  if (words.length > (file === undefined ? 1 : 0)) {
    throw new PenstockError(
      'PEN_USAGE',
      `Unexpected argument "${words.at(-1)}": expected one program, in quotes if it contains spaces, or a file with --program.`,
    )
  }
  if (file === undefined) return words[0]
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new PenstockError('PEN_IO', `The program file ${file} cannot be read: ${fileReason(error)}.`, {
      cause: error,
    })
  }
}

function logLine(level: string, text: string): void {
  process.stderr.write(`${level}: ${text}\n`)
}

function linesOf(input: Readable): Interface {
  return createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })
}

/** The event of a line: an object; any other value becomes its `message`. */
function eventOf(line: string): ValueObject {
  const value = parseJson(line)
  if (isFailedJson(value)) return { message: line }
  return isObject(value) ? value : { message: value }
}

/** The events of a file, for the prompt. */
function eventsOf(file: string): ValueObject[] {
  try {
    const lines = readFileSync(file, 'utf8').split('\n')
    return lines.filter((line) => line.trim() !== '').map(eventOf)
  } catch (error) {
    throw new PenstockError('PEN_IO', `The input ${file} cannot be read: ${fileReason(error)}.`, { cause: error })
  }
}

/** The part of each result that is printed, and its form. */
interface Print {
  readonly what: 'event' | 'result'
  textOf(value: Value): string
}

/** False if the program failed; standard error then shows which event it was, and the line and column in the program. */
function runLine(source: string, program: Program, line: string, count: number, print: Print): boolean {
  const result = program.run(eventOf(line), noMetadata, true)
  if (isFailure(result)) {
    const { line: row, column } = positionOfByte(source, result.place?.start ?? 0)
    const place = result.place === undefined ? '' : ` (line ${row}, column ${column} of the program)`
    process.stderr.write(`event ${count}: ${result.message.replaceAll('\n', ' ')}${place}\n`)
    return false
  }
  const text = `${print.textOf(print.what === 'event' ? program.frame.root : result)}\n`
  stdout.write(stdout.isTTY ? printable(text) : text)
  return true
}

/** Prints the outcome in the format of conformance cases; false if the program failed. */
function runTyped(program: Program, line: string, warnings: readonly number[]): boolean {
  const { text, ok } = typedOutcome(program, line, warnings)
  stdout.write(`${text}\n`)
  return ok
}

/** The outcome in the format of conformance cases. */
function typedOutcome(
  program: Program,
  line: string,
  warnings: readonly number[],
): { readonly text: string; readonly ok: boolean } {
  let event: Value
  try {
    event = fromTagged(JSON.parse(line) as Tagged)
  } catch (error) {
    return { text: JSON.stringify({ input_error: errorText(error) }), ok: false }
  }
  const shown = warnings.length === 0 ? {} : { warnings }
  const result = program.run(event as ValueObject, noMetadata, true)
  if (isFailure(result)) {
    const outcome = result.outcome === 'abort' ? { abort: result.given } : { runtime_error: result.message }
    return { text: JSON.stringify({ ...outcome, ...shown }), ok: false }
  }
  const { root, metadata } = program.frame
  const changed = Object.keys(metadata).length === 0 ? {} : { metadata: toTagged(metadata) }
  return { text: JSON.stringify({ ok: toTagged(result), event: toTagged(root), ...changed, ...shown }), ok: true }
}
