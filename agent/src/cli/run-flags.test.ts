// Each flag of `run` has an effect, or is rejected: bundle flags without a bundle, configuration flags with one.

import { expect, expectTypeOf, test } from 'vitest'
import type { BundleFlags } from '../bundle/mode.ts'
import { type Flag, parseFlags } from '../command-line/flags.ts'
import { flagTable } from './run-flags.ts'

type Table = typeof flagTable
/** Flags that have no effect without a bundle. */
type OfBundles = { [K in keyof Table]: Table[K] extends { needs: string } ? K : never }[keyof Table]

const all = Object.entries<Flag>(flagTable).filter(([name]) => name !== 'bundle')

function given(name: string, flag: Flag): string[] {
  if (flag.type === 'boolean') return [`--${name}`]
  return [`--${name}`, flag.oneOf?.[0] ?? (flag.number !== undefined ? String(flag.minimum ?? 0) : 'text')]
}

/** A flag with all flags that it requires. */
function chainOf(name: string, flag: Flag): string[] {
  const { needs } = flag
  return [...(needs === undefined ? [] : chainOf(needs, flagTable[needs as keyof Table] as Flag)), ...given(name, flag)]
}

test('the flags for bundles are those that require a bundle', () => {
  expectTypeOf<Exclude<keyof BundleFlags, 'bundle'>>().toEqualTypeOf<OfBundles>()
  const chains = all.filter(([, { needs }]) => needs !== undefined).map(([name, flag]) => chainOf(name, flag))
  expect(chains.length).toBeGreaterThan(15)
  expect(chains.filter(([first]) => first !== '--bundle')).toEqual([])
})

test.each(all)('--%s takes effect, or is refused with the reason', (name, flag) => {
  const alone = () => parseFlags(given(name, flag), flagTable)
  const withBundle = () => parseFlags(['--bundle', 'folder', ...given(name, flag)], flagTable)
  const complete = () => parseFlags(chainOf(name, flag), flagTable).flags
  if (flag.needs !== undefined) expect(alone).toThrow(`--${name} needs --${flag.needs}; without it, it has no effect.`)
  else expect(alone).not.toThrow()
  if (flag.replacedBy !== undefined) expect(withBundle).toThrow(`--${name} has no effect with --bundle.`)
  expect(Object.keys(complete())).toContain(name)
})

test('an environment variable is refused like its flag, with its own name', () => {
  for (const [name, flag] of all) {
    if (flag.env === undefined || (flag.needs === undefined && flag.replacedBy === undefined)) continue
    process.env[flag.env] = flag.oneOf?.[0] ?? (flag.number !== undefined ? '1' : 'true')
    try {
      const argv = flag.replacedBy === undefined ? [] : [`--${flag.replacedBy}`, 'folder']
      expect(() => parseFlags(argv, flagTable), name).toThrow(flag.env)
    } finally {
      delete process.env[flag.env]
    }
  }
})

test('an empty text from a template counts as no value', () => {
  expect(parseFlags(['--lease', '', '--api-address='], flagTable).flags.bundle).toBeUndefined()
})
