import { expect, test } from 'vitest'
import { testContext } from '../testing/context.ts'
import { keepTokens, overlapMs, pathOfWebhook, publishMs, renewTokens, rotateMs, WebhookTokens } from './tokens.ts'

const start = 1_800_000_000_000

test('the first token is registered at once, and a later one when every replica can know it', () => {
  const made = renewTokens([], start)
  expect(made.registered).toBe(made.tokens[0])
  const again = renewTokens(made.tokens, start + rotateMs - 1)
  expect(again.tokens, 'nothing to write').toBe(made.tokens)

  const at = start + rotateMs
  const rotated = renewTokens(made.tokens, at)
  expect(rotated.tokens).toHaveLength(2)
  expect(rotated.registered).toEqual(made.tokens[0])
  expect(renewTokens(rotated.tokens, at + publishMs - 1).registered).toEqual(made.tokens[0])
  const published = renewTokens(rotated.tokens, at + publishMs)
  expect(published.registered).toEqual(rotated.tokens[0])
  // The old one stays valid until all API servers use the new one.
  expect(renewTokens(rotated.tokens, at + publishMs + overlapMs - 1).tokens).toHaveLength(2)
  expect(renewTokens(rotated.tokens, at + publishMs + overlapMs).tokens).toEqual([rotated.tokens[0]])
})

test('setting back the clock does not keep a token forever', () => {
  const ahead = renewTokens([], start + 10 * rotateMs)
  const renewed = renewTokens(ahead.tokens, start)
  expect(renewed.tokens).toHaveLength(2)
  expect(renewTokens(renewed.tokens, start + 1).tokens).toBe(renewed.tokens)
  expect(renewTokens(renewed.tokens, start + publishMs + overlapMs).tokens).toEqual([renewed.tokens[0]])
})

test('each webhook has its own secret for every valid token', () => {
  const tokens = new WebhookTokens()
  expect(tokens.webhookAt(pathOfWebhook('/validate', 'one'), ['/validate'])).toBeUndefined()
  tokens.set(['one', 'two'].map((value) => ({ value, createdAt: start })))
  for (const token of ['one', 'two'])
    for (const path of ['/validate', '/inject'])
      expect(tokens.webhookAt(pathOfWebhook(path, token), ['/validate', '/inject'])).toBe(path)
  const [, , secret] = pathOfWebhook('/inject', 'one').split('/')
  expect(tokens.webhookAt(`/validate/${secret}`, ['/validate', '/inject'])).toBeUndefined()
})

test('the leader keeps the tokens before it registers them, and writes nothing twice', async () => {
  const objects = new Map<string, { data?: object; webhooks?: { name: string; clientConfig: { service: object } }[] }>()
  const webhook = (name: string) => ({ name, clientConfig: { service: { name: 'penstock-webhook', namespace: 'ns' } } })
  objects.set('ValidatingWebhookConfiguration', {
    webhooks: [webhook('resources.penstock.dev'), webhook('workloads.penstock.dev'), webhook('added.by-somebody')],
  })
  objects.set('MutatingWebhookConfiguration', { webhooks: [webhook('strict.sidecar.penstock.dev')] })
  const writes: string[] = []
  const kube = {
    get: async ({ kind }: { kind: string }) => objects.get(kind),
    apply: async ({ kind }: { kind: string }, object: { data?: object; webhooks?: ReturnType<typeof webhook>[] }) => {
      writes.push(kind)
      const found = objects.get(kind)
      for (const { name, clientConfig } of object.webhooks ?? [])
        Object.assign(
          found?.webhooks?.find((one) => one.name === name)?.clientConfig.service ?? {},
          clientConfig.service,
        )
      if (object.data !== undefined) objects.set(kind, object)
    },
  }
  const context = testContext({ kube, settings: { namespace: 'ns' }, logger: { info() {} } })
  const [token] = await keepTokens(context, start)
  expect(writes).toEqual(['Secret', 'ValidatingWebhookConfiguration', 'MutatingWebhookConfiguration'])
  const paths = [...objects.values()].flatMap(({ webhooks = [] }) =>
    webhooks.map(({ clientConfig }) => (clientConfig.service as { path?: string }).path),
  )
  const of = (path: string) => pathOfWebhook(path, token?.value ?? '')
  expect(paths).toEqual([of('/validate'), of('/warn'), undefined, of('/inject')])
  expect(await keepTokens(context, start + 1000)).toEqual([token])
  expect(writes).toHaveLength(3)
})
