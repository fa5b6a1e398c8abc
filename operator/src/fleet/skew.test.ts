import { version } from '@penstock/agent/program'
import { expect, test } from 'vitest'
import { minAgentVersion } from '../render/manifest.ts'
import { isApart, skewText } from './skew.ts'

test.each([
  ['0.3.0', '0.3.9', false],
  ['0.3.0', '0.4.2', false],
  ['0.4.0', '0.3.9', false],
  ['0.3.0', '0.5.0', true],
  ['0.5.0', '0.3.0', true],
  ['0.10.0', '0.9.0', false],
  ['0.10.0', '0.8.0', true],
  ['1.3.0', '0.3.0', true],
  ['0.3.0-rc.1', '0.4.0+build', false],
  ['v0.3.0', '0.5.0', true],
  ['0.3.0', '', false],
  ['0.3.0', 'unknown', false],
])('%s and %s: too far apart is %s', (one, other, apart) => {
  expect(isApart(one, other)).toBe(apart)
})

test('agents with distant versions are counted by version', () => {
  expect(skewText('0.5.0', ['0.5.0', '0.4.1', ''])).toBeUndefined()
  expect(skewText('0.5.0', ['0.3.1', '0.5.0', '0.2.0', '0.3.1'])).toBe(
    "3 agents run version 0.2.0, 0.3.1, which differs by more than one minor version from the operator's 0.5.0. This is not supported: install one minor version after the other.",
  )
  expect(skewText('0.9.0', ['0.1.0', '0.2.0', '0.3.0', '0.4.0', '0.5.0'])).toContain('0.1.0, 0.2.0, 0.3.0, others')
})

test('an agent of the previous release accepts bundles of this operator', () => {
  const minorOf = (text: string) => text.split('.').slice(0, 2).map(Number) as [number, number]
  const [major, minor] = minorOf(version)
  const [neededMajor, neededMinor] = minorOf(minAgentVersion)
  expect(neededMajor).toBe(major)
  // Nothing was released before 0.1.
  expect(neededMinor).toBeLessThanOrEqual(Math.max(major === 0 ? 1 : 0, minor - 1))
})
