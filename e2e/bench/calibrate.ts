// The unit P: the CPU time of `JSON.parse` for the standard line as a flat string. Targets are multiples of it, so that they apply to
// any machine.

import { deflateRawSync } from 'node:zlib'
import { jsonLine } from './lines.ts'

export interface Calibration {
  /** CPU time of one `JSON.parse` of the standard line in nanoseconds. */
  readonly p_ns: number
  readonly copy_gb_per_s: number
  readonly zlib1_mb_per_s: number
}

/** CPU time of this process in seconds. */
function cpu(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e6
}

let known: Calibration | undefined

export function calibrate(): Calibration {
  if (known !== undefined) return known
  const count = 20_000
  const lines = Array.from({ length: count }, (_, index) => Buffer.from(jsonLine(index)).toString('utf8'))
  let best = Number.POSITIVE_INFINITY
  let kept = 0
  for (let round = 0; round < 12; round++) {
    const before = cpu()
    for (let index = 0; index < count; index++) {
      kept += (JSON.parse(lines[index] as string) as { status: number }).status
    }
    best = Math.min(best, ((cpu() - before) / count) * 1e9)
  }
  if (kept < 0) throw new Error('The results must be used; otherwise the engine could remove the loop.')
  const source = Buffer.alloc(64 << 20, 'penstock')
  const target = Buffer.alloc(source.length)
  let copy = 0
  for (let round = 0; round < 4; round++) {
    const before = cpu()
    source.copy(target)
    copy = Math.max(copy, source.length / 1e9 / Math.max(cpu() - before, 1e-6))
  }
  const text = Buffer.from(lines.slice(0, 4000).join('\n'))
  let deflate = 0
  for (let round = 0; round < 4; round++) {
    const before = cpu()
    deflateRawSync(text, { level: 1 })
    deflate = Math.max(deflate, text.length / 1e6 / Math.max(cpu() - before, 1e-6))
  }
  known = { p_ns: Math.round(best), copy_gb_per_s: Math.round(copy * 10) / 10, zlib1_mb_per_s: Math.round(deflate) }
  return known
}
