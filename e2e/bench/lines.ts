// The standard line of the benchmarks: a JSON object of 11 members (6 short strings, a message, 3 numbers, an object of 2) in
// a CRI line. One line in fifty contains non-ASCII text or escapes. The lines are the same in every run.

import { closeSync, mkdirSync, openSync, renameSync, statSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'

const services = ['checkout', 'cart-api', 'payments', 'frontend', 'shipping']
const levels = ['info', 'info', 'info', 'warn', 'error']
const regions = ['eu-west-1', 'us-east-2', 'ap-south-1']
const messages = [
  'order accepted and queued',
  'cache miss, read from store',
  'retry of upstream request',
  'session renewed for user',
]
const unusual = ['größe überschritten für Nutzer', 'quoted \\"text\\" and \\ttab in it']

/** The JSON text of a line, by number. */
export function jsonLine(index: number): string {
  const message = index % 50 === 49 ? pick(unusual, index / 50) : pick(messages, index)
  const id = (index * 2_654_435_761) % 4_294_967_296
  return (
    `{"ts":"2026-01-01T10:${pad(Math.floor(index / 60) % 60)}:${pad(index % 60)}.123Z","level":"${pick(levels, index)}",` +
    `"service":"${pick(services, index)}","region":"${pick(regions, index)}","request_id":"${id.toString(16).padStart(8, '0')}-4f1c",` +
    `"trace":"${((id ^ 0x5bd1) >>> 0).toString(16).padStart(12, '0')}","message":"${message}","status":${200 + (index % 5) * 100},` +
    `"bytes":${1000 + (index % 9000)},"duration":${(index % 977) / 8 + 0.0625},"http":{"method":"GET","path":"/api/items/${index % 1000}"}}`
  )
}

/** The line in the format of the container runtime. */
export function criLine(index: number): string {
  const second = Math.floor(index / 10_000)
  const time = `2026-01-01T${pad(10 + (Math.floor(second / 3600) % 12))}:${pad(Math.floor(second / 60) % 60)}:${pad(second % 60)}`
  return `${time}.${String(100_000_000 + (index % 10_000) * 89_999)}Z stdout F ${jsonLine(index)}`
}

/** A web server's line in common log format. */
export function commonLine(index: number): string {
  return `10.0.${index % 256}.${(index * 7) % 256} - user${index % 100} [01/Jan/2026:10:${pad(Math.floor(index / 60) % 60)}:${pad(index % 60)} +0000] "GET /api/items/${index % 1000} HTTP/1.1" ${200 + (index % 5) * 100} ${1000 + (index % 9000)}`
}

function pick(items: readonly string[], index: number): string {
  return items[Math.floor(index) % items.length] as string
}

function pad(value: number): string {
  return value < 10 ? `0${value}` : String(value)
}

/** Creates a file with this many lines unless it exists. Returns its size in bytes. */
export function linesFile(path: string, count: number, line: (index: number) => string): number {
  const there = statSync(path, { throwIfNoEntry: false })
  if (there !== undefined) return there.size
  mkdirSync(dirname(path), { recursive: true })
  const file = openSync(`${path}.new`, 'w')
  for (let index = 0; index < count; ) {
    let text = ''
    for (const end = Math.min(count, index + 2000); index < end; index++) text += `${line(index)}\n`
    writeSync(file, text)
  }
  closeSync(file)
  renameSync(`${path}.new`, path)
  return statSync(path).size
}
