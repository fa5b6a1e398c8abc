// Code that is generated once objects with the same keys are frequent must behave like the code before.

import { expect, test } from 'vitest'
import { noMetadata } from '../event/log.ts'
import type { ValueObject } from '../event/value.ts'
import { isFailure } from './function.ts'
import { compileProgram } from './program.ts'

const rounds = 20

/** The program's output for each event, repeated over many rounds. */
function runOften(source: string, events: readonly ValueObject[]): unknown[] {
  const compiled = compileProgram(source)
  if (!compiled.ok) throw new Error(compiled.rendered)
  let results: unknown[] = []
  let first: unknown[] | undefined
  for (let round = 0; round < rounds; round++) {
    results = events.map((event) => {
      const result = compiled.program.run({ ...event }, noMetadata, true)
      return isFailure(result) ? result.message : JSON.parse(JSON.stringify(compiled.program.frame.root))
    })
    first ??= results
    expect(results).toEqual(first)
  }
  return results
}

test('map_keys with a closure that only uses the key', () => {
  const events = [{ a: 1, b: { c: 2 } }, { b: 1 }, {}, { ärger: 1, 'x y': 2 }]
  expect(runOften('. = map_keys(.) -> |key| { upcase(key) }', events)).toEqual([
    { A: 1, B: { c: 2 } },
    { B: 1 },
    {},
    { ÄRGER: 1, 'X Y': 2 },
  ])
})

test('map_keys with equal new keys, keys like indexes, and special keys', () => {
  const source =
    '. = map_keys(.) -> |key| { if key == "pro" { "__proto__" } else if key == "n" { "0" } else { "same" } }'
  const [equal, others] = runOften(source, [
    { a: 1, b: 2 },
    { n: 1, pro: 2, z: 3 },
  ]) as [object, object]
  expect(equal).toEqual({ same: 2 })
  expect(Object.keys(others).sort()).toEqual(['0', '__proto__', 'same'])
})

test('map_keys of an object with a removed field', () => {
  expect(runOften('del(.b)\n. = map_keys(.) -> |key| { key + "!" }', [{ a: 1, b: 2, c: 3 }])).toEqual([
    { 'a!': 1, 'c!': 3 },
  ])
})

test('map_keys with a closure that depends on the event, or fails', () => {
  expect(runOften('. = map_keys(.) -> |key| { string!(.prefix) + key }', [{ prefix: 'x' }, { prefix: 'y' }])).toEqual([
    { xprefix: 'x' },
    { yprefix: 'y' },
  ])
  const [message] = runOften('. = map_keys(.) -> |key| { string!(parse_json!(key)) }', [{ a: 1 }])
  expect(message).toContain('unable to parse json')
})

test('for_each visits the present fields in the order of their names', () => {
  const source =
    'names = []\ndel(.b)\nfor_each(.) -> |key, value| { names = push(names, [key, value]) }\n.names = names'
  expect(runOften(source, [{ c: 3, b: 2, a: 1 }, { z: null }])).toEqual([
    {
      c: 3,
      a: 1,
      names: [
        ['a', 1],
        ['c', 3],
      ],
    },
    { z: null, names: [['z', null]] },
  ])
})
