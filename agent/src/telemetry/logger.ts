// The agent's own log. Messages are constant sentences; variable data is in fields. Subscribers receive the records of all loggers in the
// process, after they were written.

import { type Logger, type LoggerOptions, pino } from 'pino'
import { failureOf } from '../errors.ts'

export type { Logger }

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'silent'

export interface LogOptions {
  readonly level: string
  readonly format: 'text' | 'json'
  /** Whether to colour the text form. */
  readonly color?: boolean
}

interface LogOutput {
  write(line: string): unknown
}

/** A line of the log: `timestamp` (RFC 3339), `level`, `message` and the fields. */
export type LogRecord = Readonly<Record<string, unknown>>

const subscribers = new Set<(record: LogRecord) => void>()

/** Calls the listener for every record. Returns a function that ends the subscription. */
export function subscribe(listener: (record: LogRecord) => void): () => void {
  subscribers.add(listener)
  return () => {
    subscribers.delete(listener)
  }
}

const levels: readonly LogLevel[] = ['silent', 'error', 'warn', 'info', 'debug', 'trace']

/** The level after a number of `-v` and `-q` flags. */
export function adjustedLevel(base: LogLevel, verbose: number, quiet: number): LogLevel {
  const index = Math.min(levels.length - 1, Math.max(0, levels.indexOf(base) + verbose - quiet))
  return levels[index] as LogLevel
}

/** The root logger: writes JSON or readable lines, by default to standard error, synchronously. */
export function createLogger(
  options: LogOptions,
  output: LogOutput = pino.destination({ dest: 2, sync: true }),
): Logger {
  const settings: LoggerOptions = {
    level: options.level,
    base: null,
    messageKey: 'message',
    errorKey: 'error',
    timestamp: () => `,"timestamp":"${new Date().toISOString()}"`,
    formatters: { level: (label) => ({ level: label }) },
    serializers: { error: errorFields },
  }
  return pino(settings, {
    write(line: string) {
      const record = options.format === 'text' || subscribers.size > 0 ? (JSON.parse(line) as LogRecord) : undefined
      output.write(options.format === 'text' ? `${textLine(record as LogRecord, options.color === true)}\n` : line)
      if (record !== undefined) for (const subscriber of subscribers) subscriber(record)
    },
  })
}

/** A logger that writes nothing, for tests and for commands that only check. */
export const silentLogger: Logger = pino({ level: 'silent' })

/** An error as fields: message, code, kind, status, and cause. The stack is included only for programming errors. */
function errorFields(error: unknown): unknown {
  return error instanceof Error ? { ...ownFields(error), ...failureOf(error) } : error
}

function ownFields(error: Error): Record<string, unknown> {
  const code = (error as { code?: unknown }).code
  const fields: Record<string, unknown> = { message: error.message }
  if (code !== undefined) fields['code'] = code
  if (error instanceof TypeError || error instanceof ReferenceError || error instanceof RangeError) {
    fields['stack'] = error.stack
  }
  if (error.cause !== undefined) fields['cause'] = error.cause instanceof Error ? ownFields(error.cause) : error.cause
  return fields
}

const colors: Readonly<Record<string, string>> = {
  error: '\u001b[31m',
  warn: '\u001b[33m',
  info: '\u001b[32m',
  debug: '\u001b[34m',
}

/** `2026-01-01T00:00:00.000Z  INFO sink{id=out type=http}: Healthcheck passed. status=200` */
function textLine(record: LogRecord, color: boolean): string {
  const { timestamp, level, message, ...others } = record
  const { component_id: id, component_kind: kind, component_type: type, ...ofComponent } = others
  const name = String(level).toUpperCase().padStart(5)
  const paint = color ? (colors[String(level)] ?? '') : ''
  let line = `${timestamp} ${paint}${name}${paint === '' ? '' : '\u001b[0m'}`
  // A line that the agent itself logs about a component contains only the component's id.
  const isComponents = id !== undefined && kind !== undefined
  line += isComponents ? ` ${kind}{id=${id} type=${type}}: ` : ': '
  line += message ?? ''
  for (const [key, value] of Object.entries(isComponents ? ofComponent : others))
    line += ` ${key}=${fieldText(key, value)}`
  return line
}

function fieldText(key: string, value: unknown): string {
  if (key === 'error' && typeof value === 'object' && value !== null && 'message' in value) {
    const { message, cause, stack } = value as { message: unknown; cause?: unknown; stack?: unknown }
    let text = typeof stack === 'string' ? stack : String(message)
    // The message often contains the cause already.
    for (const reason of causes(cause)) if (!text.includes(reason)) text = `${text.replace(/\.$/, '')}: ${reason}`
    return stack === undefined ? JSON.stringify(text) : text
  }
  return typeof value === 'string' && /^[\w./:@%+-]+$/.test(value) ? value : JSON.stringify(value)
}

/** The messages of an error's causes, nearest first. */
function causes(cause: unknown): string[] {
  const texts: string[] = []
  let next = cause
  while (typeof next === 'object' && next !== null && 'message' in next) {
    const { message, cause: deeper } = next as { message: unknown; cause?: unknown }
    texts.push(String(message))
    next = deeper
  }
  if (typeof next === 'string') texts.push(next)
  return texts
}
