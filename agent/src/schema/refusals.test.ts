// Every rejection has a reason: any value in any option of any component results in valid options or at least one problem.

import { expect, test } from 'vitest'
import { optionsOf } from '../config/component-options.ts'
import { components } from '../registry.ts'
import { optionPlaces } from '../testing/option-places.ts'
import { parseOptions } from './validate.ts'
import { membersOf } from './walk.ts'

const values = [-1, 0, 1.5, 1e30, '', 'x', true, null, [], {}, [1], { x: 1 }, [[]]]

test('every rejection reports a problem, for any value in any option', () => {
  let refused = 0
  const silent: string[] = []
  for (const component of components) {
    const members = membersOf(optionsOf(component).schema)
    for (const place of optionPlaces(component)) {
      for (const value of values) {
        const parsed = parseOptions(members as Parameters<typeof parseOptions>[0], place.with(value))
        if (parsed.ok) continue
        refused++
        // Missing members are also reported, but only problems at this place count.
        const own = parsed.problems.filter(({ message }) => !message.startsWith('missing field'))
        const missing = parsed.problems.length - own.length
        if (own.length === 0 && missing === 0) silent.push(`${place.name} = ${JSON.stringify(value)}`)
      }
    }
  }
  expect(refused).toBeGreaterThan(1000)
  expect(silent).toEqual([])
})

test('a problem in a union states the bounds of the matching variant', () => {
  const concurrency = {
    anyOf: [
      { type: 'integer', minimum: 1 },
      { type: 'string', enum: ['none'] },
    ],
  }
  const parsed = parseOptions({ concurrency } as never, { concurrency: -1 })
  expect(parsed).toMatchObject({ ok: false, problems: [{ message: '`concurrency` must be greater than zero' }] })
})
