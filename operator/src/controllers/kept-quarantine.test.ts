import { createLogger } from '@penstock/agent/telemetry'
import { expect, test } from 'vitest'
import type { KubeClient } from '../kube/client.ts'
import { KeptQuarantine } from './kept-quarantine.ts'

interface Stored {
  readonly metadata: { readonly name: string; readonly namespace: string }
  readonly data: Record<string, string>
}

/** A namespace with one ConfigMap that can be made read-only. */
function namespaceOf() {
  const state: { stored: Stored | undefined; writes: number; fails: boolean } = {
    stored: undefined,
    writes: 0,
    fails: false,
  }
  const kube = {
    get: async () => state.stored,
    apply: async (_: unknown, object: Stored) => {
      state.writes++
      if (state.fails) throw new Error('the API server does not answer')
      state.stored = JSON.parse(JSON.stringify(object))
    },
  } as unknown as KubeClient
  const logger = createLogger({ level: 'silent', format: 'json' })
  const load = () => KeptQuarantine.load(kube, 'system', logger, AbortSignal.timeout(60_000))
  return { state, load }
}

const refusal = { reason: 'CompileFailed', path: 'spec', message: 'compiling it takes too much' } as const

test('remembers expensive Pipelines after a restart, and forgets them in another version', async () => {
  const { state, load } = namespaceOf()
  const first = await load()
  first.keep('hash', 'Pipeline shop/checkout', refusal)
  await expect.poll(() => state.stored?.metadata).toMatchObject({ namespace: 'system' })
  expect((await load()).refusalOf('hash')).toEqual(refusal)
  expect((await load()).refusalOf('changed')).toBeUndefined()
  Object.assign(state.stored?.data ?? {}, { version: 'another' })
  expect((await load()).refusalOf('hash')).toBeUndefined()
})

test('suspects the Pipeline that was being compiled when an operator ended, and refuses it after the second time', async () => {
  const { load } = namespaceOf()
  await (await load()).begin('hash', 'Pipeline shop/checkout')
  const second = await load()
  expect([second.isSuspect('hash'), second.refusalOf('hash')]).toEqual([true, undefined])
  await second.begin('hash', 'Pipeline shop/checkout')
  const third = await load()
  expect(third.refusalOf('hash')?.message).toContain('an operator has stopped twice')
})

test('does not suspect a compilation that ended normally', async () => {
  const { load } = namespaceOf()
  const first = await load()
  await first.begin('hash', 'Pipeline shop/checkout')
  await first.end('hash')
  expect((await load()).isSuspect('hash')).toBe(false)
})

test('many changes at once cause few writes, and the last change wins', async () => {
  const { state, load } = namespaceOf()
  const quarantine = await load()
  await Promise.all(Array.from({ length: 100 }, (_, index) => quarantine.begin(`h${index}`, `Pipeline shop/p${index}`)))
  expect(state.writes).toBeLessThan(10)
  expect((await load()).entries()).toHaveLength(100)
})

test('a record that is damaged or cannot be written stops nothing', async () => {
  const { state, load } = namespaceOf()
  state.fails = true
  const quarantine = await load()
  await quarantine.begin('hash', 'Pipeline shop/checkout')
  expect(quarantine.entries()).toHaveLength(1)
  state.fails = false
  await quarantine.begin('other', 'Pipeline shop/other')
  Object.assign(state.stored?.data ?? {}, { 'entries.json': '{' })
  expect((await load()).entries()).toEqual([])
})
