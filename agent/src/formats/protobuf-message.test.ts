import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parseRfc3339 } from './datetime.ts'
import { compileMessage, type MessageFormat } from './protobuf-message.ts'

const set = readFileSync(new URL('../remap/testdata/order.desc', import.meta.url))
const order = compileMessage(set, 'shop.v1.Order') as MessageFormat

test('decodes its own output', () => {
  const value = {
    name: 'box',
    amount: 9_007_199_254_740_993n,
    state: 'sent',
    codes: [-1, 300],
    prices: { eu: 1.5 },
    placed: parseRfc3339('1969-12-31T23:59:59.999999999Z') ?? null,
    item: { sku: 'a', unknown: 1 },
    raw: 'bytes',
    paid: false,
    serial: 7,
    absent: null,
  }
  const written = order.write(value, true)
  if ('problem' in written) throw new Error(written.problem)
  expect(order.read(written.data)).toEqual({
    fields: {
      name: 'box',
      amount: 9_007_199_254_740_993n,
      state: 'SENT',
      codes: [-1, 300],
      prices: { eu: 1.5 },
      placed: value.placed,
      item: { sku: 'a' },
      raw: 'bytes',
      paid: false,
      serial: 7,
    },
  })
})

test('texts, integers and timestamps stand for numbers and booleans', () => {
  const written = order.write({ amount: '12', serial: '+7', prices: { eu: '1.5' }, paid: 'Yes' }, true)
  if ('problem' in written) throw new Error(written.problem)
  expect(order.read(written.data)).toEqual({ fields: { amount: 12, serial: 7, prices: { eu: 1.5 }, paid: true } })
  const second = order.write({ amount: parseRfc3339('1970-01-01T00:00:01.000002Z') ?? null, paid: 2 }, true)
  if ('problem' in second) throw new Error(second.problem)
  expect(order.read(second.data)).toEqual({ fields: { amount: 1_000_002, paid: true } })
})

test.each([
  ['text', 'the value is not an object'],
  [{ amount: 'x' }, 'amount is of another type'],
  [{ codes: [1, 'x'] }, 'codes[1] is of another type'],
  [{ codes: [3_000_000_000] }, 'codes[0] does not fit'],
  [{ item: { sku: true } }, 'item.sku is of another type'],
  [{ state: 'LOST' }, 'state is not a value of the enum shop.v1.State'],
  [{ serial: -1 }, 'serial does not fit'],
  [{ paid: 'maybe' }, 'paid is of another type'],
])('%j does not fit: %s', (value, problem) => {
  const written = order.write(value, false)
  expect('problem' in written && written.problem).toContain(problem)
})

test('the problem of a missing type lists the existing types', () => {
  expect(compileMessage(set, 'shop.v1.Nothing')).toContain('shop.v1.Order')
  expect(compileMessage(Buffer.from('no set'), 'shop.v1.Order')).toContain('descriptors')
})
