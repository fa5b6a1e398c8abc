// Numbers at their limits: 0 is rejected, or its meaning is declared; the smallest and the largest permitted number work. The tables
// cover every number that a component, the global settings or the unit tests of a configuration declare.

import { expect, test } from 'vitest'
import { optionsOf } from '../config/component-options.ts'
import { globalOptions } from '../config/globals.ts'
import { testOptions } from '../config/unit-test-shape.ts'
import { components } from '../registry.ts'
import { explained } from './messages.ts'
import { objectSchema } from './options.ts'
import { violationsOf } from './violations.ts'
import { isTable, membersOf, type Schema, variantsOf } from './walk.ts'

interface NumberPlace {
  readonly name: string
  readonly schema: Schema
}

function* numbersIn(schema: Schema, name: string): Generator<NumberPlace> {
  if (schema['type'] === 'integer' || schema['type'] === 'number') yield { name, schema }
  for (const [key, member] of Object.entries(membersOf(schema))) yield* numbersIn(member, `${name}.${key}`)
  for (const variant of variantsOf(schema) ?? []) yield* numbersIn(variant, name)
  const { items, additionalProperties: others } = schema
  if (isTable(items)) yield* numbersIn(items, `${name}[]`)
  if (isTable(others)) yield* numbersIn(others, `${name}.*`)
}

const roots: readonly (readonly [string, Schema])[] = [
  ['globals', objectSchema(globalOptions)],
  ['tests', objectSchema(testOptions)],
  ...components.map((each) => [`${each.kind} ${each.type}`, optionsOf(each).schema] as const),
]
const numbers = roots.flatMap(([name, schema]) => [...numbersIn(schema, name)])
const takes = (schema: Schema, value: unknown) => violationsOf(schema, value).length === 0
const isBounded = ({ schema }: NumberPlace) =>
  schema['minimum'] !== undefined || schema['exclusiveMinimum'] !== undefined
const named = (places: readonly NumberPlace[]) => [...new Set(places.map(({ name }) => name))]

test('a number that may be 0 declares the meaning of 0', () => {
  expect(numbers.length).toBeGreaterThan(350)
  const silent = numbers.filter(
    (place) => isBounded(place) && takes(place.schema, 0) && typeof place.schema['x-zero'] !== 'string',
  )
  // The size of a disk buffer has its own minimum, which the check of sinks enforces.
  const diskBuffers = components.filter(({ kind }) => kind === 'sink').map(({ type }) => `sink ${type}.buffer.max_size`)
  expect(named(silent)).toEqual(diskBuffers)
})

test('only quantiles and bucket limits may be negative, and their components check them', () => {
  expect(new Set(named(numbers.filter((place) => !isBounded(place))))).toEqual(
    new Set([
      'sink remote_write_metrics.buckets[]',
      'sink remote_write_metrics.quantiles[]',
      'sink tsdb_metrics.quantiles[]',
    ]),
  )
})

test('options reject infinity and NaN', () => {
  const values = [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
  expect(named(numbers.filter(({ schema }) => values.some((value) => takes(schema, value))))).toEqual([])
})

test.each(named(numbers.filter((place) => !takes(place.schema, 0))))(
  '%s: the rejection of 0 states the expected value',
  (name) => {
    for (const { schema } of numbers.filter((place) => place.name === name && !takes(place.schema, 0))) {
      const [problem, ...others] = explained(violationsOf(schema, 0), schema)
      expect(others).toEqual([])
      expect(problem?.message).toMatch(/must be|greater than|positive|expected/)
    }
  },
)
