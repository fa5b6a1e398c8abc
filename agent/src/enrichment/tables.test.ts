import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Timestamp } from '../event/timestamp.ts'
import { Float, type Value, type ValueObject } from '../event/value.ts'
import { parseOptions } from '../schema/validate.ts'
import { database } from '../testing/address-database.ts'
import { MemoryTable } from './memory-table.ts'
import { enrichmentOption, type TableOptions } from './options.ts'
import { Tables } from './tables.ts'

let dir: string

beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'penstock-tables-'))
})

afterAll(() => rmSync(dir, { recursive: true }))

function open(table: Record<string, unknown>): Tables {
  const parsed = parseOptions({ tables: enrichmentOption }, { tables: { t: table } })
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems))
  return Tables.open(parsed.value.tables as Readonly<Record<string, TableOptions>>, 'UTC')
}

function file(name: string, content: string | Buffer): string {
  writeFileSync(join(dir, name), content)
  return join(dir, name)
}

const people = `id,name,age,member,since
1,Ada,36,yes,2024-01-01
2,Bob,2.5,no,2024-02-01
3,ada,40,yes,2024-03-01
*,Any,1,no,2024-04-01
`
const schema = { age: 'float', member: 'boolean', since: 'date' }
const at = (text: string) => new Timestamp(Date.parse(text), 0)

test.each([
  [{ id: '1' }, {}, ['Ada']],
  [{ name: 'ada' }, {}, ['ada']],
  [{ name: 'ADA' }, { caseSensitive: false }, ['Ada', 'ada']],
  [{ id: '2' }, { wildcard: '*' }, ['Bob', 'Any']],
  [{ id: '9' }, {}, []],
  [{ member: true, name: 'Ada' }, {}, ['Ada']],
  [{ age: 40 }, {}, ['ada']],
  [{}, {}, ['Ada', 'Bob', 'ada', 'Any']],
  [{ since: { from: at('2024-02-01'), to: at('2024-03-01') } }, {}, ['Bob', 'ada']],
  [{ member: true, since: { from: at('2024-02-01') } }, {}, ['ada']],
] as [Record<string, Value>, { caseSensitive?: boolean; wildcard?: string }, string[]][])(
  'records of a file that match %j',
  (condition, { caseSensitive = true, wildcard }, names) => {
    const tables = open({ type: 'file', file: { path: file('people.csv', people) }, schema })
    const found = tables.find('t')?.find(condition, ['name'], caseSensitive, wildcard)
    expect(found).toEqual(names.map((name) => ({ name })))
  },
)

test('columns have the types of the schema', () => {
  const tables = open({ type: 'file', file: { path: file('people.csv', people) }, schema })
  expect(tables.find('t')?.find({ id: '1' }, undefined, true, undefined)).toEqual([
    { id: '1', name: 'Ada', age: new Float(36), member: true, since: at('2024-01-01') },
  ])
})

test('a file without column names', () => {
  const options = { path: file('plain.csv', '1;a\n2;b\n'), encoding: { include_headers: false, delimiter: ';' } }
  const tables = open({ type: 'file', file: options, schema: { '0': 'integer' } })
  expect(tables.find('t')?.find({ 0: 2 }, undefined, true, undefined)).toEqual([{ 0: 2, 1: 'b' }])
})

test.each([
  [{ path: '/no/such/file.csv' }, {}, 'the file "/no/such/file.csv" does not exist'],
  [{ content: 'a,b\n1\n' }, {}, 'record 2 has 1 columns, expected 2'],
  [{ content: 'a\nx\n' }, { a: 'integer' }, 'record 2: `a` is not a valid integer'],
  [{ content: 'a\nx\n' }, { b: 'integer' }, 'the column `b` in `schema` does not exist in the file'],
  [{ content: 'a\nx\n' }, { a: 'number' }, '`number` is not a valid column type'],
])('an invalid file: %j %j', ({ path, content }: { path?: string; content?: string }, types, message) => {
  const tables = open({ type: 'file', file: { path: path ?? file('bad.csv', content ?? '') }, schema: types })
  expect(tables.problems).toEqual([{ table: 't', message: expect.stringContaining(message) }])
  expect(tables.find('t')).toBeUndefined()
})

test('a condition on a missing column', () => {
  const tables = open({ type: 'file', file: { path: file('people.csv', people) } })
  expect(tables.find('t')?.find({ nothing: 1 }, undefined, true, undefined)).toBe('the table has no column nothing')
})

test.each([{ value: { a: 1 } }, { value: Object.create(null) as ValueObject }, { value: ['x'] }])(
  'no row matches an object or an array: $value',
  ({ value }) => {
    const tables = open({ type: 'file', file: { path: file('objects.csv', 'k,v\n[object Object],1\nx,2\n') } })
    expect(tables.find('t')?.find({ k: value as Value }, undefined, true, undefined)).toEqual([])
  },
)

const city = {
  city: { names: { en: 'Vienna', de: 'Wien' } },
  country: { iso_code: 'AT', names: { en: 'Austria' } },
  location: { latitude: 48, longitude: 16.5, time_zone: 'Europe/Vienna' },
}

test('geoip fields of a location database', () => {
  const path = file('city.mmdb', database('GeoLite2-City', [10, 1], city))
  const tables = open({ type: 'geoip', path, locale: 'de' })
  expect(tables.problems).toEqual([])
  const found = tables.find('t')?.find({ ip: '10.1.2.3' }, undefined, true, undefined) as Value[]
  expect(found).toEqual([
    {
      city_name: 'Wien',
      continent_code: null,
      country_code: 'AT',
      country_name: 'Austria',
      latitude: new Float(48),
      longitude: 16.5,
      metro_code: null,
      postal_code: null,
      region_code: null,
      region_name: null,
      timezone: 'Europe/Vienna',
    },
  ])
  expect(tables.find('t')?.find({ ip: '10.2.2.3' }, undefined, true, undefined)).toEqual([])
  expect(tables.find('t')?.find({ ip: 'none' }, undefined, true, undefined)).toEqual([])
  expect(tables.find('t')?.find({ ip: '10.1.2.3' }, ['city_name'], true, undefined)).toEqual([{ city_name: 'Wien' }])
})

test('an unchanged record of a database', () => {
  const tables = open({ type: 'mmdb', path: file('own.mmdb', database('Own', [10, 1], { team: 'a', tags: ['x'] })) })
  expect(tables.find('t')?.find({ ip: '10.1.0.0' }, undefined, true, undefined)).toEqual([{ team: 'a', tags: ['x'] }])
  const broken = open({ type: 'mmdb', path: file('broken.mmdb', 'no database') })
  expect(broken.problems[0]?.message).toContain('is not an MMDB database')
})

test('entries of a memory table expire, and their size is limited', () => {
  let now = 0
  const table = new MemoryTable(
    { type: 'memory', inputs: [], ttl: 10, scan_interval: 5, max_byte_size: 320 },
    () => now * 1000,
  )
  const find = (key: string) => table.find({ key }, undefined)
  expect(table.write({ a: 1, b: 'two' })).toBe(true)
  expect(find('a')).toEqual([{ key: 'a', value: 1, ttl: 10 }])
  now = 4
  expect(find('b')).toEqual([{ key: 'b', value: 'two', ttl: 6 }])
  expect(table.write({ c: 'more than there is room' })).toBe(false)
  expect(table.write({ a: 2 })).toBe(true)
  now = 10
  expect(find('b')).toEqual([])
  expect(find('a')).toEqual([{ key: 'a', value: 2, ttl: 4 }])
  expect(table.write({ c: 'twelve chars' })).toBe(true)
  expect(table.find({ other: 'a' }, undefined)).toContain('`key`')
})

test('a memory table uses at most 64 MiB, and continues when entries expire', () => {
  let now = 0
  const tables = open({ type: 'memory', inputs: ['x'] })
  const options = { type: 'memory', inputs: ['x'], ttl: 600, scan_interval: 30, max_byte_size: 67_108_864 } as const
  const table = new MemoryTable(options, () => now)
  let refused = 0
  for (let index = 0; index < 200_000; index++) if (!table.write({ [`${index}`.padEnd(1000, 'x')]: index })) refused++
  expect(table.bytes).toBeLessThanOrEqual(67_108_864)
  expect(refused).toBeGreaterThan(100_000)
  expect(table.find({ key: '0'.padEnd(1000, 'x') }, ['value'])).toEqual([{ value: 0 }])
  now = 600_000
  expect(table.write({ late: 1 })).toBe(true)
  expect(table.bytes).toBe(150 + 4 + 1)
  // The default limit.
  expect(tables.memory('t')?.write({ a: 'x'.repeat(67_108_864) })).toBe(false)
})

test('a table that was read again returns its new content; a memory table keeps its entries', () => {
  const path = file('changing.csv', 'k,v\na,1\n')
  const first = open({ type: 'file', file: { path } })
  const table = () => first.find('t')?.find({ k: 'a' }, ['v'], true, undefined)
  expect(table()).toEqual([{ v: '1' }])
  file('changing.csv', 'k,v\na,2\n')
  first.replaceBy(open({ type: 'file', file: { path } }))
  expect(table()).toEqual([{ v: '2' }])
  const memory = open({ type: 'memory', inputs: ['x'] })
  memory.memory('t')?.write({ a: 1 })
  memory.replaceBy(open({ type: 'memory', inputs: ['x'] }))
  expect(memory.find('t')?.find({ key: 'a' }, ['value'], true, undefined)).toEqual([{ value: 1 }])
})
