// The smallest and the largest number of every option: a component either rejects the number or works with it. The tables cover every
// number that a component declares; all destinations and polled addresses are servers on loopback.

import { setTimeout as wait } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { AnyDeclaration, SinkDeclaration } from '../component.ts'
import { PenstockError } from '../errors.ts'
import type { LogEvent } from '../event/log.ts'
import type { MetricEvent } from '../event/metric.ts'
import { components } from '../registry.ts'
import { parseOptions } from '../schema/validate.ts'
import type { Schema } from '../schema/walk.ts'
import { exampleAt, merged, speaksToAddress } from '../testing/addressed.ts'
import { fakeDestination } from '../testing/destination.ts'
import { log, metric } from '../testing/events.ts'
import { problemsOf, startSink, startSource } from '../testing/harness.ts'
import { type OptionPlace, optionPlaces } from '../testing/option-places.ts'
import { optionsOf } from './component-options.ts'

/** The smallest and the largest value of each number in a declaration. */
function endsOf(schema: Schema): number[] {
  const isWhole = schema['type'] === 'integer'
  const { minimum, exclusiveMinimum, maximum, exclusiveMaximum } = schema as Record<string, number | undefined>
  const lowest = minimum ?? (exclusiveMinimum === undefined ? 0 : Number.MIN_VALUE)
  const highest =
    maximum ?? (exclusiveMaximum === undefined ? (isWhole ? 2 ** 62 : 1e300) : exclusiveMaximum - Number.EPSILON)
  return [lowest, ...(schema['exclusiveMinimum'] === 0 ? [0.001, 0.0123456] : []), highest]
}

/** Options of a component for each of these values. */
function endsIn(
  component: AnyDeclaration,
): { readonly name: string; readonly place: OptionPlace; readonly value: number }[] {
  return optionPlaces(component)
    .filter(({ schema }) => schema['type'] === 'integer' || schema['type'] === 'number')
    .flatMap((place) => endsOf(place.schema).map((value) => ({ name: `${place.name}: ${value}`, place, value })))
}

/** Whether a component accepts the options. */
function takes(component: AnyDeclaration, options: object): boolean {
  const checked = parseOptions(optionsOf(component).members, options)
  return (
    checked.ok && problemsOf(component.kind, component.type, options).every(({ severity }) => severity === 'warning')
  )
}

const time = '2026-01-01T00:00:00Z'
const events = ({ accepts }: SinkDeclaration): (LogEvent | MetricEvent)[] =>
  accepts.includes('log')
    ? [log({ message: 'm', timestamp: time, host: 'h', app: 'a' })]
    : [
        metric('gauge', { type: 'gauge', value: 1 }, { kind: 'absolute' }),
        metric('spread', { type: 'distribution', samples: [{ value: 1, rate: 1 }], statistic: 'histogram' }),
      ]

// The sink that needs the key of a service account is missing.
const sinks = components.filter(
  (each) => each.kind === 'sink' && speaksToAddress(each) && each.type !== 'siem_unstructured',
) as SinkDeclaration[]
const readers = components.filter(
  (each) => each.kind === 'source' && speaksToAddress(each) && each.type !== 'cloud_queue',
)

/** Undefined if the component rejects the options with a message, in its check or when it is built. */
async function unlessRefused<T>(building: Promise<T>): Promise<T | undefined> {
  try {
    return await building
  } catch (error) {
    if (error instanceof PenstockError) return undefined
    throw error
  }
}

test.each(sinks.map((component) => ({ component, type: component.type })))(
  'sink $type does its work with each number at its ends, or refuses it',
  async ({ component }) => {
    await using destination = await fakeDestination({ status: 200, body: '{"took":1,"errors":false,"items":[]}' })
    const example = exampleAt(component, `${destination.url}/`)
    const outcomeOf = async (options: object): Promise<string | undefined> => {
      if (!takes(component, options)) return undefined
      await using sink = await unlessRefused(startSink(component.type, options))
      return sink && (await Promise.race([sink.deliver(events(component)), wait(10_000, 'nothing', { ref: false })]))
    }
    const unchanged = await outcomeOf(example)
    expect(unchanged).toMatch(/^(delivered|rejected)$/)
    const found = new Map<string, string>()
    for (const { name, place, value } of endsIn(component)) {
      const outcome = await outcomeOf(merged(example, place.with(value)) as object)
      if (outcome !== undefined) found.set(name, outcome)
    }
    expect([...found].filter(([, outcome]) => outcome !== unchanged)).toEqual([])
    expect(found.size).toBeGreaterThan(20)
  },
)

test.each(readers.map((component) => ({ component, type: component.type })))(
  'source $type asks its address with each number at its ends, or refuses it',
  async ({ component }) => {
    await using server = await fakeDestination({ status: 200, body: 'Uptime: 12' })
    const example = exampleAt(component, server.url)
    let read = 0
    for (const { name, place, value } of endsIn(component)) {
      const options = merged(example, place.with(value)) as object
      if (!takes(component, options)) continue
      const before = server.requests.length
      await using source = await unlessRefused(startSource(component.type, options))
      if (source === undefined) continue
      const asked = () => server.requests.length - before + source.events.errors.length
      await expect.poll(asked, { message: name }).toBeGreaterThan(0)
      if (value > 1e6) {
        // The next poll is far in the future, so it does not happen during this test.
        for (let turn = 0; turn < 5; turn++) await (await fetch(server.url)).text()
        expect([name, server.requests.length - before - 5]).toEqual([name, 1])
      }
      await source.stop()
      read++
    }
    expect(read).toBeGreaterThan(3)
  },
)
