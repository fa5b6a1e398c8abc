// Lines crafted to read other lines' data, or to make the kernel slow or wrong.

import { afterEach, expect, test, vi } from 'vitest'
import { compileEncoder } from '../codecs/encoding/encoder.ts'
import { LineTarget } from '../delivery/line-target.ts'
import { OpenRequest } from '../delivery/request.ts'
import { type Batch, logBatch } from '../event/batch.ts'
import { Body } from '../event/body.ts'
import { Finalizer } from '../event/finalizer.ts'
import { LogEvent } from '../event/log.ts'
import type { Value } from '../event/value.ts'
import { parseJson, writeJson } from '../formats/json.ts'
import { PodByteLane } from '../sources/orchestrator_logs/byte-lane.ts'
import { CriParser } from '../sources/orchestrator_logs/cri.ts'
import { BytePod } from '../testing/byte-pod.ts'
import { buildTransform } from '../testing/harness.ts'
import { check, expectedOf } from '../testing/lane-check.ts'
import { through, transformsOf } from '../testing/lanes.ts'
import { Random } from '../testing/random.ts'
import { ByteBatch } from './byte-batch.ts'
import { CurrentKeys } from './current-keys.ts'
import { theKernel } from './kernel.ts'

afterEach(() => {
  vi.restoreAllMocks()
})

const encoder = compileEncoder({ codec: 'json' } as never)
const parse = '. = parse_json!(.message)'
const merge = '. = merge(., object!(parse_json!(.message)))'

const lineOf = (message: string | Buffer) =>
  Buffer.concat([Buffer.from('2026-11-23T10:11:12.123456789Z stdout F '), Buffer.from(message)])

/** Runs a program on batches. */
async function programOf(source: string): Promise<(batch: ByteBatch) => ByteBatch> {
  const transform = await buildTransform('remap', { source, drop_on_error: true })
  return (batch) => {
    let after: Batch | undefined
    void transform.transform(batch, {
      send(next) {
        after = next
        return undefined
      },
    })
    if (!(after instanceof ByteBatch)) throw new Error('The lines did not stay bytes.')
    return after
  }
}

function written(batch: ByteBatch): string[] {
  const request = new OpenRequest('', new Body(16))
  const target = new LineTarget({ delimiter: undefined, isSeparator: false }, (events, from, to, into) => {
    for (let index = from; index < to; index++) {
      const start = into.body.length
      encoder.encode(events[index] as LogEvent, into.body)
      into.mark(start)
    }
  })
  target.encode(batch, 0, batch.count, request)
  const all = request.body.view()
  return Array.from({ length: request.count }, (_, index) =>
    all.toString('utf8', request.starts[index], request.ends[index]),
  )
}

test('values that other lines left in the kernel do not count against its limits when lines are repeated', async () => {
  const run = await programOf(parse)
  const members = Array.from({ length: 90 }, (_, index) => `"k${index}":1e5`).join(',')
  const noText = (text: string) => lineOf(Buffer.from(`${text},"x":"\xff"}`, 'latin1'))
  const chunk = [
    ...Array.from({ length: 50 }, () => noText(`{${members}`)),
    ...Array.from({ length: 100 }, () => noText('{"k1":1e5')),
    ...Array.from({ length: 30 }, () => lineOf('{"mine":1e5}')),
  ]
  let mine: ByteBatch | undefined
  new BytePod('attacker').read(chunk, (batch) => {
    mine = run(batch)
  })
  const secrets = Array.from({ length: 180 }, (_, line) => {
    const values = Array.from({ length: 32 }, (__, member) => `"v${member}":"victim-${line}"`)
    return lineOf(`{${values.join(',')}}`)
  })
  new BytePod('victim').read(secrets, (batch) => expect(written(run(batch))).toHaveLength(180))
  const after = written(mine as ByteBatch)
  expect(after.join()).not.toContain('victim')
  expect(after.slice(-30)).toEqual(Array.from({ length: 30 }, () => '{"mine":100000.0}'))
})

test('the kernel writes only lines that it accepted, for any caller', () => {
  new BytePod('victim').read([lineOf('{"secret":"s"}')], (batch) => written(batch))
  new BytePod('attacker').read([lineOf('no JSON'), lineOf('{"a":1,"a":2}')], () => {
    const kernel = theKernel()
    kernel.call.readObjects(0, 2)
    expect(kernel.call.write(0, 2, 0, kernel.at('spread'), 0, 0)).toBe(0)
    expect(kernel.call.writeQuoted(1, 0, kernel.at('spread'))).toBe(0)
    expect([...kernel.counts.subarray(0, 2)]).toEqual([0, 0])
  })
})

test('a field equals the text of the line, also in a chunk of only ASCII', async () => {
  const run = await programOf(parse)
  new BytePod('p').read([lineOf('{"app":"caf\\u00e9","b":"\\ud83d\\ude00","c":"a\\/b"}')], (batch) => {
    const [event] = run(batch).events
    expect(['app', 'b', 'c'].map((name) => event?.field(name))).toEqual(['café', '😀', 'a/b'])
  })
})

test('event numbers restart before they overflow', async () => {
  const run = await programOf(merge)
  const pod = new BytePod('p')
  const lines = Array.from({ length: 20 }, (_, index) => lineOf(`{"i":${index}}`))
  pod.read(lines, (batch) => written(run(batch)))
  const kernel = theKernel()
  for (const stamp of [2 ** 31 + 1, 2 ** 32 - 10]) {
    kernel.call.setKeys(kernel.current('keyCount'), stamp, false)
    pod.read(lines, (batch) => {
      const events = written(run(batch))
      expect(events).toHaveLength(20)
      for (const event of events) expect(event).toContain('"source_type":"orchestrator_logs"')
    })
    expect(kernel.current('stamp')).toBeLessThan(1000)
  }
})

test('names from data are written from their line once the table is full, and are found there', async () => {
  const programs = [await programOf(parse), await programOf(`${merge}\ndel(.message)\n.zz = 1`)]
  const pod = new BytePod('p')
  for (const run of programs) pod.read([lineOf('{"known":1}')], (batch) => written(run(batch)))
  for (let round = 0; round < 8; round++) {
    const lines = Array.from({ length: 200 }, (_, index) => {
      const name = `id-${round}-${index}`
      return lineOf(
        `{"${name}":1,"known":${index},"a${name}":{"b":1,"a":2},"file":"f","${name}b":"\\u003c","z":${index}.50}`,
      )
    })
    const doubled = lineOf(`{"x-${round}":1,"y-${round}":2,"x-${round}":3}`)
    for (const run of programs) {
      pod.read([...lines, doubled], (batch) => {
        const after = run(batch)
        const other = after.share()
        expect(after.lineCount).toBe(200)
        const sizes = Array.from({ length: after.count }, (_, index) => after.size(index))
        const texts = written(after)
        for (const [index, event] of other.events.entries()) {
          expect(event.field(`aid-${round}-${index}`)).toEqual(index < 200 ? { a: 2, b: 1 } : undefined)
          expect(event.field('z')).toEqual(index < 200 ? event.fields['z'] : undefined)
          expect(texts[index]).toBe(writeJson(event.fields))
          expect(sizes[index]).toBe(new LogEvent(event.fields).size)
        }
      })
    }
  }
})

test('lines with very many names from data are written in order, without repeated names', async () => {
  const run = await programOf(parse)
  const pod = new BytePod('p')
  const textOf = (names: readonly string[]) => `{${names.map((name, index) => `"${name}":${index}`).join(',')}}`
  const fill = (round: number) => Array.from({ length: 20 }, (_, line) => lineOf(textOf([`id-${round}-${line}`])))
  for (let round = 0; round < 60; round++) pod.read(fill(round), (batch) => written(run(batch)))
  // Some names begin with others, and some differ in only one letter.
  const names = Array.from({ length: 90 }, (_, index) => `new-${'x'.repeat(index % 40)}${index % 3}`)
  const distinct = [...new Set(names)].toReversed()
  const whole = Array.from({ length: 20 }, (_, line) => lineOf(textOf(distinct.map((name) => `${name}-${line}`))))
  const doubled = Array.from({ length: 20 }, (_, line) => lineOf(textOf([...distinct, distinct[line] as string])))
  for (const { lines, asLines } of [
    { lines: whole, asLines: 20 },
    { lines: doubled, asLines: 0 },
  ]) {
    pod.read(lines, (batch) => {
      const after = run(batch)
      expect(after.lineCount).toBe(asLines)
      const messages = pod.objects(lines).map((event) => parseJson(String(event.fields['message'])) as Value)
      expect(written(after)).toEqual(messages.map(writeJson))
    })
  }
})

/** Where the kernel begins to look for a name, as `findKey` does. */
function slotOf(name: string): number {
  let hash = name.length
  for (const byte of Buffer.from(name)) hash = Math.imul(hash ^ byte, 0x01000193)
  return (hash ^ (hash >>> 15)) & (theKernel().at('hashSlots') - 1)
}

/** A name for each slot where the kernel looks for this one. */
function namesInPlaceOf(name: string): readonly string[] {
  const slots = theKernel().at('hashSlots')
  const taken = new Map<number, string>()
  for (let index = 0; taken.size < theKernel().at('maxProbes'); index++) {
    const other = `x${index}`
    const distance = (slotOf(other) - slotOf(name)) & (slots - 1)
    if (distance < theKernel().at('maxProbes') && !taken.has(distance)) taken.set(distance, other)
  }
  return [...taken.values()]
}

test('a name whose slots other names have taken is found where it stands', async () => {
  const chain = [parse, 'filter: .level == "error"', '.up = upcase(string(.level) ?? "none")\n.n = .level']
  const [asBytes, asObjects] = await Promise.all([transformsOf(chain, true), transformsOf(chain, false)])
  const pod = new BytePod('p')
  const lines = ['error', 'info', 'error'].map((level, index) => lineOf(`{"level":"${level}","i":${index}}`))
  const same = (pass: readonly Buffer[]) => {
    const expected = expectedOf(through(asObjects, logBatch(pod.objects(pass), new Finalizer()))?.events ?? [])
    pod.read(pass, (batch) => check(through(asBytes, batch), expected, new Random(1)))
    return expected.json.length
  }

  same([lineOf(`{${namesInPlaceOf('level').map((name) => `"${name}":1`)}}`)])

  expect(same(lines)).toBe(2)
  expect(theKernel().current('keyCount')).toBeLessThan(100)
})

test('a full table is cleared after a minute, so that other pods have space again', async () => {
  const run = await programOf(parse)
  const pod = new BytePod('p')
  for (let round = 0; round < 3; round++) {
    const lines = Array.from({ length: 400 }, (_, index) => lineOf(`{"id-${round}-${index}":1}`))
    pod.read(lines, (batch) => expect(written(run(batch))).toHaveLength(400))
  }
  const countOf = () => {
    pod.read([lineOf('{"level":"info"}')], (batch) => expect(written(run(batch))).toEqual(['{"level":"info"}']))
    return theKernel().current('keyCount')
  }
  expect(countOf()).toBe(1024)
  const now = performance.now()
  vi.spyOn(performance, 'now').mockReturnValue(now + 61_000)
  expect(countOf()).toBeLessThan(20)
})

test('a file whose own fields had no room in the table is read as lines once they have', () => {
  const keys = new CurrentKeys()
  const laneOf = (hasFile: boolean) => new PodByteLane(new CriParser(() => 0), hasFile, keys)
  const others = new BytePod('others', false, undefined, laneOf(false))
  for (let round = 0; round < 3; round++) {
    const lines = Array.from({ length: 400 }, (_, index) => lineOf(`{"id-${round}-${index}":1}`))
    others.read(lines, (batch) => batch.lines.enterRead())
  }
  const pod = new BytePod('with-file', true, undefined, laneOf(true))
  const read = () => {
    let lines = 0
    pod.read([lineOf('{"level":"info"}')], (batch) => {
      lines = batch.lineCount
    })
    return lines
  }
  expect(read).toThrow('The lane accepted no lines.')
  const now = performance.now()
  vi.spyOn(performance, 'now').mockReturnValue(now + 61_000)
  expect(read()).toBe(1)
})

test('long lines of every kind are written like objects, and no write leaves its area', async () => {
  const programs = [await programOf('.a = 1'), await programOf(parse), await programOf(merge)]
  const kernel = theKernel()
  const places = [
    'recodes',
    'members',
    'keys',
    'slots',
    'edited',
    'outside',
    'literals',
    'order',
    'editedPlaces',
    'rankBits',
    'rankPlaces',
    'input',
  ] as const
  const repeated = (text: string, length: number) => text.repeat(Math.max(0, Math.floor(length / text.length)))
  for (const length of [1000, 20_000, 58_000, 87_300, 87_382, 174_700, 174_764, 262_000]) {
    const texts = [
      `{"a":"${repeated('\\"', length - 60)}"}`,
      `{"a":"${repeated('\\u0001', length - 60)}"}`,
      `{"a":"${repeated('é', length / 2 - 40)}"}`,
      repeated('\u0001', length - 60),
      `{"a":[${repeated('1.50,', length - 70)}1]}`,
      `{"a":{${Array.from({ length: Math.min(2000, length / 20) }, (_, index) => `"${2000 - index}":1e20`).join()}}}`,
    ]
    for (const [index, text] of texts.entries()) {
      for (const run of programs) {
        new BytePod('p').read([lineOf(text)], (batch) => {
          // Without an object in the message, only the first program emits an event.
          if (index === 3 && run !== programs[0]) return
          const after = run(batch)
          const other = after.share()
          const [json = ''] = written(after)
          expect(json === writeJson((other.events[0] as LogEvent).fields), `${text.slice(0, 20)}, ${length}`).toBe(true)
        })
      }
      for (const name of places) {
        const place = kernel.at(name)
        expect(
          kernel.memory.subarray(place - 200, place).every((byte) => byte === 0),
          name,
        ).toBe(true)
      }
    }
  }
})
