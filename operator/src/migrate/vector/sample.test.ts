// The transform `sample`: the values of a field that the old agent chooses, and the field with the rate.

import { expect, test } from 'vitest'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import { convertVector } from './convert.ts'

const convert = (options: object) => {
  const config = {
    sources: { in: { type: 'file', include: ['/srv/x.log'] } },
    transforms: { t: { type: 'sample', inputs: ['in'], ...options } },
    sinks: { out: { type: 'console', inputs: ['t'], encoding: { codec: 'json' } } },
  }
  return converted(convertVector, [{ file: 'vector.json', text: JSON.stringify(config, null, 1) }])
}

// The hashes of `gate` and `penstock` without a sign: 15022656440422116196 (0.814 of all) and 10408716306318244616 (0.564 of all).
test.each([
  { options: { rate: 4 }, id: 'gate', sample_rate: '4' },
  { options: { rate: 10 }, id: 'gate', sample_rate: undefined },
  { options: { rate: 8 }, id: 'penstock', sample_rate: '8' },
  { options: { rate: 16 }, id: 'penstock', sample_rate: undefined },
  { options: { ratio: 0.82 }, id: 'gate', sample_rate: '0.82' },
  { options: { ratio: 0.81 }, id: 'gate', sample_rate: undefined },
  { options: { ratio: 0.57 }, id: 'penstock', sample_rate: '0.57' },
  { options: { ratio: 0.3 }, id: 'penstock', sample_rate: undefined },
  { options: { ratio: 1 }, id: 'gate', sample_rate: '1' },
])('$options of the values of a field: $id', async ({ options, id, sample_rate }) => {
  const { document, gaps, resource } = convert({ ...options, key_field: 'trace.id' })
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  withTest(document, resource, { trace: { id } }, sample_rate === undefined ? undefined : { sample_rate })
  expect(await lint(String(document))).toEqual([])
})

test.each([
  { about: 'in another field', options: { rate: 1, sample_rate_key: 'a.b' }, expected: { a: { b: '1' } } },
  { about: 'in no field', options: { rate: 1, sample_rate_key: '' }, expected: { sample_rate: null } },
  { about: 'with groups', options: { rate: 1, group_by: '{{ n }}' }, expected: { sample_rate: '1' } },
  {
    about: 'not in events that are excluded',
    options: { rate: 1_000_000, exclude: '.n == 1' },
    expected: { n: 1, sample_rate: null },
  },
  {
    about: 'not in events that a program which can fail excludes',
    options: { rate: 1_000_000, exclude: 'to_int!(.n) == 1' },
    expected: { n: 1, sample_rate: null },
  },
])('the rate is $about', async ({ options, expected }) => {
  const { document, resource } = convert(options)
  withTest(document, resource, { n: 1 }, expected)
  expect(await lint(String(document))).toEqual([])
})

test.each([{ rate: 2, ratio: 0.5 }, { rate: 0 }, { ratio: 2 }, { rate: 1.5 }, {}])('%j is not valid', (options) => {
  const { gaps } = convert(options)
  expect(gaps.map(({ reason }) => reason)).toContain('the options of `sample` are not valid')
})

test.each([
  { about: 'a hash of the message', options: { rate: 4 }, event: { message: 'gate' }, expected: { sample_rate: '4' } },
  { about: 'a hash that is not chosen', options: { rate: 10 }, event: { message: 'gate' }, expected: undefined },
  {
    about: 'a text in the list, which gets no rate',
    options: { rate: 10, pass_list: ['^ga', "it's"] },
    event: { message: 'gate' },
    expected: { message: 'gate' },
  },
  {
    about: 'another field',
    options: { rate: 10, key_field: 'a.b', pass_list: ['g$'] },
    event: { a: { b: 'gate' }, message: 'g' },
    expected: undefined,
  },
])('the old name `sampler`: $about', async ({ options, event, expected }) => {
  const config = {
    sources: { in: { type: 'stdin' } },
    transforms: { t: { type: 'sampler', inputs: ['in'], ...options } },
    sinks: { out: { type: 'blackhole', inputs: ['t'] } },
  }
  const { document, resource, gaps } = converted(convertVector, [{ file: 'v.json', text: JSON.stringify(config) }])
  expect(gaps.map(({ isReplaced }) => isReplaced)).toEqual([true])
  withTest(document, resource, event, expected)
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})
