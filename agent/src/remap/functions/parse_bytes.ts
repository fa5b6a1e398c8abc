// Function `parse_bytes`.

import { float } from '../../event/value.ts'
import { decimalFloat } from '../../formats/number.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'

const prefixes = 'KMGTPE'

function factor(prefix: string, binary: boolean): bigint {
  return (binary ? 1024n : 1000n) ** BigInt(prefix === '' ? 0 : prefixes.indexOf(prefix.toUpperCase()) + 1)
}

/** Factor of a result unit; undefined if the base has no such unit. */
function unitFactor(unit: string, binary: boolean): bigint | undefined {
  const match = (binary ? /^([KMGTPE]?)B$|^([KMGTPE])iB$/ : /^([kMGTPE]?)B$/).exec(unit)
  return match === null ? undefined : factor(match[1] ?? (match[2] as string), binary)
}

const size = /^[ _]*((?:[0-9][ _]*)+)(?:\.[ _]*((?:[0-9][ _]*)*))?(?:e([ _+]*)(-?)([0-9 _]*))?$/i

/** Whole bytes of a size such as `1.5 MiB`, `2e3` or `1_000k`; undefined if it is invalid or exceeds 64 bits. */
function parseSize(text: string, binary: boolean): bigint | undefined {
  const [, number, prefix, i] = /^(.*?)([kmgtpe]?)(i?)b?$/is.exec(text) as RegExpExecArray
  const match = size.exec(number as string)
  if (match === null) return undefined
  const digits = (part: string | undefined): string => (part ?? '').replace(/[ _]/g, '')
  const fraction = digits(match[2])
  const exponent = Number(`${match[4] ?? ''}${digits(match[5]) || '0'}`) - fraction.length
  const whole = BigInt(digits(match[1]) + fraction) * factor(prefix as string, binary || i !== '')
  if (exponent > 20 || exponent < -400) return exponent < 0 || whole === 0n ? 0n : undefined
  const scale = 10n ** BigInt(Math.abs(exponent))
  const bytes = exponent >= 0 ? whole * scale : (whole + scale / 2n) / scale
  return BigInt.asUintN(64, bytes) === bytes ? bytes : undefined
}

export const parseBytes = defineFunction({
  name: 'parse_bytes',
  category: 'Parse',
  summary: 'Parses a size such as `3MiB` to a number in a unit.',
  parameters: [
    { name: 'value', kind: kinds.string, description: 'The text.' },
    {
      name: 'unit',
      kind: kinds.string,
      description: 'The unit of the result. Base 2: `B`, `KiB` or `KB`, `MiB` or `MB`, …; base 10: `B`, `kB`, `MB`, …',
    },
    {
      name: 'base',
      kind: kinds.string,
      required: false,
      default: '2',
      enum: ['2', '10'],
      description: 'The meaning of `kB`, `MB`, …: powers of 1024 (`2`) or of 1000 (`10`).',
    },
  ],
  returns: kinds.float,
  fallible: 'always',
  errors: ['The text is not a size.', 'The unit does not exist in this base.'],
  pure: true,
  examples: [
    { source: 'parse_bytes!("3072KiB", unit: "MiB")', result: '3' },
    { source: 'parse_bytes!("1MB", unit: "B", base: "10")', result: '1000000' },
    {
      source: '[parse_bytes!("1.5 GB", unit: "MB"), parse_bytes!("2.666666k", unit: "B", base: "10")]',
      result: '[1536, 2667]',
    },
    {
      source: '[parse_bytes!("1_000e2", unit: "KB"), parse_bytes!("3B", unit: "kB", base: "10")]',
      result: '[97.65625, 0.003]',
    },
    { source: 'parse_bytes("1MB", unit: "kB") ?? "a unit of base 10"', result: '"a unit of base 10"' },
    { source: 'parse_bytes("many", unit: "B") ?? 0.0', result: '0' },
  ],
  compile:
    () =>
    (text: string, unit: string, base: string): Result => {
      const divisor = unitFactor(unit, base === '2')
      if (divisor === undefined) return failure(`unknown unit format: '${unit}'`)
      const bytes = text.length > 1000 ? undefined : parseSize(text, base === '2')
      if (bytes === undefined) return failure(`unable to parse bytes: '${text.slice(0, 100)}' is not a size`)
      return float(decimalFloat(bytes, divisor))
    },
})
