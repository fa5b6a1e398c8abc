// The agent process under attack: tenants with endless or growing programs, and with the largest possible keys, names and responses,
// together with one tenant whose lines must keep arriving.

import { afterAll, beforeAll, expect, test } from 'vitest'
import { Destination, HostileAgent, hostileBundle, tenants } from './hostile-agent.ts'

const resources = new AsyncDisposableStack()
let destination: Destination
let agent: HostileAgent

beforeAll(async () => {
  destination = resources.use(await Destination.start())
  const identity = { AWS_ACCESS_KEY_ID: 'AKIAAGENTIDENTITY', AWS_SECRET_ACCESS_KEY: 'of-the-agent' }
  agent = resources.use(await HostileAgent.start(hostileBundle(destination.url), identity))
  await agent.until("the victim's first lines", () => destination.lags.length > 0)
})
afterAll(() => resources.disposeAsync())

const withPrograms = ['endless', 'doubling', 'texts', 'speaking']

test.each(withPrograms)('%s: events fail one by one, and the agent continues with the next', async (name) => {
  await agent.until(
    `two errors of ${name}`,
    async () => (await agent.counted('component_errors_total', `${name}/p`)) >= 2,
  )
  const before = destination.lags.length
  await agent.until("the victim's lines", () => destination.lags.length > before + 20)
})

test.each(['keys', 'metrics', 'labels'])(
  "%s: an endless number of names does not stop the victim's lines",
  async (name) => {
    await agent.until(
      `events of ${name}`,
      async () => (await agent.counted('component_received_events_total', `${name}/p`)) > 500,
    )
    const before = destination.lags.length
    await agent.until("the victim's lines", () => destination.lags.length > before + 20)
  },
)

test('responses that decompress to 256 MiB are read only up to the size that is kept', async () => {
  await agent.until('five such answers', () => (destination.requests.get('/bomb') ?? 0) >= 5)
  const before = destination.lags.length
  await agent.until("the victim's lines", () => destination.lags.length > before + 20)
})

test('the agent never sends its own identity', async () => {
  expect(tenants['identity']).toBeDefined()
  await agent.until('a message about the tenant without credentials', () => agent.log.includes('identity/p'))
  expect(destination.authorizations).toEqual([])
  expect(agent.log).not.toContain('of-the-agent')
})

test('the log contains no event content', async () => {
  expect(await agent.counted('component_errors_total', 'speaking/p')).toBeGreaterThan(0)
  expect(agent.log).toContain('speaking/p')
  expect(agent.log).not.toContain('CARD-4111')
})

test('after all attacks, the same process still responds', async () => {
  expect(agent.running).toBe(true)
  expect(await agent.health()).toBe(200)
})
