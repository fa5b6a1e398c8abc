import { expect, test } from 'vitest'
import { writeJson, writeJsonTo } from '../formats/json.ts'
import { Random } from '../testing/random.ts'
import { Body } from './body.ts'
import { LogEvent } from './log.ts'
import { Float, type Value, type ValueObject } from './value.ts'

const values: (Value | undefined)[] = [undefined, 'text', '', 7, -1234567, 0.5, 2n ** 60n, true, null, new Float(1), { in: { a: 1 } }, ['x', 2]] // biome-ignore format: a table
const names = ['b', 'env', 'message', 'z', 'ä', '10']

test('after a change of some fields, size and JSON equal those of a new event with the same fields', () => {
  // Repeated until shapes exist; the results must stay the same.
  const chance = new Random(20260101)
  const random = (below: number) => chance.below(below)
  for (let round = 0; round < 3000; round++) {
    const fields: ValueObject = { message: `line ${round}`, level: 'info', in: { a: 1, b: [true] } }
    for (const name of names) if (random(3) === 0) fields[name] = values[random(values.length)]
    const event = new LogEvent(fields)
    if (random(8) > 0) expect(event.size).toBeGreaterThan(0)
    const own = random(2) === 0 ? event.measuredCopy() : event
    for (let changes = random(3); changes >= 0; changes--) {
      const touched = [names[random(names.length)] as string, names[random(names.length)] as string]
      const before = touched.map((name) => own.fields[name])
      for (const name of touched) own.fields[name] = values[random(values.length)]
      // A field that is listed twice must count only once.
      if (touched[0] === touched[1]) own.changedIn(touched.slice(1), before.slice(1))
      else own.changedIn(touched, before)
    }
    expect(own.size).toBe(new LogEvent({ ...own.fields }).size)
    const body = new Body(64)
    writeJsonTo(body, own.fields, own.shape)
    expect(body.view().toString()).toBe(writeJson({ ...own.fields }))
  }
})
