// Function `parse_bytes`.

import { float } from '../../event/value.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'

const powers = ['', 'k', 'm', 'g', 't', 'p', 'e']

/** The power of the unit and whether it is a binary one; undefined if it is none. */
function unitOf(unit: string): { power: number; binary: boolean } | undefined {
  const match = /^([kmgtpe]?)(i?)b?$/i.exec(unit)
  if (match === null || (match[1] === '' && match[2] !== '')) return undefined
  return { power: powers.indexOf((match[1] as string).toLowerCase()), binary: match[2] !== '' }
}

export const parseBytes = defineFunction({
  name: 'parse_bytes',
  category: 'Parse',
  summary: 'Reads a size such as `3MiB` as a number of a unit.',
  parameters: [
    { name: 'value', kind: kinds.string, description: 'The text.' },
    {
      name: 'unit',
      kind: kinds.string,
      description: 'The unit of the result, one of the base: `kiB`, `MiB`, … or `kB`, `MB`, …',
    },
    {
      name: 'base',
      kind: kinds.string,
      required: false,
      default: '2',
      enum: ['2', '10'],
      description: 'What `kB`, `MB`, … stand for: powers of 1024 or of 1000.',
    },
  ],
  returns: kinds.float,
  fallible: 'always',
  errors: ['The text is not a size.', 'The unit is not one of the base.'],
  pure: true,
  examples: [
    { source: 'parse_bytes!("3072KiB", unit: "MiB")', result: '3' },
    { source: 'parse_bytes!("1MB", unit: "B", base: "10")', result: '1000000' },
    { source: 'parse_bytes("many", unit: "B") ?? 0.0', result: '0' },
  ],
  compile:
    () =>
    (text: string, unit: string, base: string): Result => {
      const target = unitOf(unit)
      if (target === undefined || !/B$/.test(unit) || (target.power > 0 && target.binary !== (base === '2'))) {
        return failure(`unknown unit format: '${unit}'`)
      }
      const match = /^([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([A-Za-z]*)$/.exec(text.trim())
      const source = match === null ? undefined : unitOf(match[2] as string)
      if (match === null || source === undefined) return failure(`unable to parse bytes: '${text}'`)
      const factor = (of: { power: number; binary: boolean }): number =>
        (base === '2' || of.binary ? 1024 : 1000) ** of.power
      return float((Number(match[1]) * factor(source)) / factor(target))
    },
})
