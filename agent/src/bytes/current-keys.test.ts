// Names and plans of sources: one source cannot take the room of another, and gives its own back when it ends.

import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test, vi } from 'vitest'
import { logBatch } from '../event/batch.ts'
import { Finalizer } from '../event/finalizer.ts'
import { writeJson } from '../formats/json.ts'
import { PodByteLane } from '../sources/orchestrator_logs/byte-lane.ts'
import { CriParser } from '../sources/orchestrator_logs/cri.ts'
import { BytePod } from '../testing/byte-pod.ts'
import { through, transformsOf } from '../testing/lanes.ts'
import { ByteBatch } from './byte-batch.ts'
import { CurrentKeys, SharedKeys } from './current-keys.ts'
import { Form } from './form.ts'
import { theKernel } from './kernel.ts'
import { PlanRoom } from './plan-room.ts'

const line = (message: string) => Buffer.from(`2026-11-23T10:11:12.5Z stdout F ${message}`)

/** A pod of a source that shares its names with others. */
function podOf(name: string, shared: SharedKeys) {
  const keys = new CurrentKeys(shared)
  return { keys, pod: new BytePod(name, false, undefined, new PodByteLane(new CriParser(() => 0), false, keys)) }
}

/** Reads lines whose names never repeat. */
function fill(pod: BytePod, prefix: string): void {
  for (let round = 0; round < 3; round++) {
    const lines = Array.from({ length: 400 }, (_, index) => line(`{"${prefix}-${round}-${index}":1}`))
    pod.read(lines, (batch) => batch.lines.enterRead())
  }
}

/** The names in the table of a source, after a line of it. */
function namesAfter({ pod, keys }: ReturnType<typeof podOf>, message = '{"level":"info"}') {
  let isPossible = false
  pod.read([line(message)], (batch) => {
    batch.lines.enterRead()
    isPossible = batch.lines.origin.plan(theKernel(), Form.asRead).isPossible
  })
  const table = keys.table(theKernel())
  return { names: table.names, lacks: table.lacksNames(theKernel()), isPossible }
}

test('a source with names that never repeat leaves the others their room at once', () => {
  const shared = new SharedKeys()
  const others = ['a', 'b'].map((name) => podOf(name, shared))
  const hostile = podOf('hostile', shared)
  for (const other of others) namesAfter(other)
  fill(hostile.pod, 'id')
  expect(theKernel().lacksNames).toBe(true)

  for (const [index, other] of others.entries()) {
    const { names, lacks, isPossible } = namesAfter(other, `{"new-${index}":1}`)
    expect({ lacks, isPossible }).toEqual({ lacks: false, isPossible: true })
    expect(names.filter((name) => name.startsWith('id-'))).toEqual([])
  }
  expect(others[0]?.keys.table(theKernel())).toBe(others[1]?.keys.table(theKernel()))

  for (let round = 0; round < 5; round++) fill(hostile.pod, `again-${round}`)
  for (const other of others) expect(namesAfter(other).lacks).toBe(false)
  expect(namesAfter(hostile).lacks).toBe(true)
})

test('a sink that selects a thousand fields does not fill the table of other sources', async () => {
  const shared = new SharedKeys()
  const many = podOf('many', shared)
  const other = podOf('other', shared)
  namesAfter(other)
  const only = new Set(Array.from({ length: 1100 }, (_, index) => `field-${index}`))
  const form = Form.asRead.selected({ only, except: [], converted: undefined })
  many.pod.read([line('{}')], (batch) => {
    expect(batch.lines.origin.plan(theKernel(), form).isPossible).toBe(false)
  })
  expect(namesAfter(other)).toMatchObject({ lacks: false, isPossible: true })
})

test('a source shares names again when it has had room for a while', () => {
  const shared = new SharedKeys()
  const one = podOf('one', shared)
  const other = podOf('other', shared)
  namesAfter(other)
  fill(one.pod, 'id')
  namesAfter(other)
  const isShared = () => {
    namesAfter(one)
    return one.keys.table(theKernel()) === other.keys.table(theKernel())
  }
  expect(isShared()).toBe(false)
  const now = performance.now()
  const clock = vi.spyOn(performance, 'now').mockReturnValue(now + 61_000)
  expect(isShared()).toBe(false)
  clock.mockReturnValue(now + 700_000)
  expect(isShared()).toBe(true)
  clock.mockRestore()
})

test('a source that ends gives its names and plans back, and lines that still wait are written', async () => {
  const shared = new SharedKeys()
  const ending = podOf('ending', shared)
  const other = podOf('other', shared)
  const [asBytes, asObjects] = await Promise.all(
    [true, false].map((isBytes) => transformsOf(['. = parse_json!(.message)', '.env = "prod"'], isBytes)),
  )
  const lines = Array.from({ length: 40 }, (_, index) => line(`{"b":${index},"ending-${index}":1}`))
  let after: ReturnType<typeof through>
  ending.pod.read(lines, (batch) => {
    after = through(asBytes ?? [], batch)
  })
  const before = namesAfter(other)
  expect(before.names).toContain('ending-1')
  expect(ending.keys.plans.count).toBeGreaterThan(0)

  ending.keys.close()

  expect(ending.keys.plans).toMatchObject({ count: 0, bytes: 0 })
  expect(namesAfter(other).names).toEqual(expect.not.arrayContaining(['ending-1']))
  expect(after).toBeInstanceOf(ByteBatch)
  const expected = through(asObjects ?? [], logBatch(ending.pod.objects(lines), new Finalizer()))
  expect(after?.events.map(({ fields }) => writeJson(fields))).toEqual(
    expected?.events.map(({ fields }) => writeJson(fields)),
  )
})

const constant = (length: number) => ({
  parsing: undefined,
  edits: new Map([['c', { is: 'constant', value: 'x'.repeat(length) } as const]]),
  units: [],
  bare: undefined as never,
  apply() {},
})

test('the plans of a source are limited in number and bytes, and others keep theirs', () => {
  const shared = new SharedKeys()
  const hostile = podOf('hostile', shared)
  const other = podOf('other', shared)
  const kernel = theKernel()
  const forms: Form[] = []
  const planOf = ({ pod }: typeof other, form: Form) => {
    let plan: unknown
    pod.read([line('{}')], (batch) => {
      plan = batch.lines.origin.plan(kernel, form)
    })
    return plan
  }
  const kept = Form.asRead.after(constant(10)) as Form
  const plan = planOf(other, kept)
  for (const length of [10, 200_000]) {
    for (let count = 0; count < (length === 10 ? 5000 : 100); count++) {
      const form = Form.asRead.after(constant(length)) as Form
      forms.push(form)
      planOf(hostile, form)
    }
    expect(hostile.keys.plans.count).toBeLessThanOrEqual(4096)
    expect(hostile.keys.plans.bytes).toBeLessThanOrEqual(8 << 20)
  }
  expect(hostile.keys.plans.count).toBeGreaterThan(5)
  expect(planOf(other, kept)).toBe(plan)
})

test('the plans of a program that was replaced are given back', async () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const { keys, pod } = podOf('pod', new SharedKeys())
  pod.read([line('{}')], (batch) => batch.lines.origin.plan(theKernel(), Form.asRead))
  const { count, bytes } = keys.plans
  pod.read([line('{}')], (batch) => {
    for (let program = 0; program < 50; program++) {
      batch.lines.origin.plan(theKernel(), Form.asRead.after(constant(10_000)) as Form)
    }
  })
  expect(keys.plans.bytes).toBeGreaterThan(bytes + 50 * 10_000)
  await vi.waitFor(() => {
    collect()
    expect(keys.plans).toMatchObject({ count, bytes })
  })
})

test('a room forgets the oldest plans first', () => {
  const room = new PlanRoom()
  const forgotten: number[] = []
  const plans = Array.from({ length: 4100 }, () => ({}))
  for (const [index, plan] of plans.entries()) room.add(plan, 100, () => forgotten.push(index))
  expect(forgotten).toEqual([0, 1, 2, 3])
  room.add(plans, 9 << 20, () => {})
  expect(room).toMatchObject({ count: 1, bytes: 9 << 20 })
})
