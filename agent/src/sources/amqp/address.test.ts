import { expect, test } from 'vitest'
import { parseAddress, shownAddress } from './address.ts'

test.each([
  ['amqp://broker', { secure: false, host: 'broker', port: 5672, user: 'guest', password: 'guest', vhost: '/' }],
  ['amqp://me:p%40ss@broker:1234/%2f?timeout=5', { user: 'me', password: 'p@ss', port: 1234, timeoutMs: 5000 }],
  ['amqps://broker/shop%2Flogs', { secure: true, port: 5671, vhost: 'shop/logs' }],
  ['amqp://[::1]:5673/x?heartbeat=30&frame_max=8192', { host: '::1', vhost: 'x', heartbeat: 30, frameMax: 8192 }],
  ['amqp://user@broker/', { user: 'user', password: '', vhost: '/' }],
])('%s', (text, parts) => {
  expect(parseAddress(text)).toMatchObject(parts)
})

test.each([
  ['http://broker', 'scheme amqp or amqps'],
  ['broker:5672', 'scheme amqp or amqps'],
  ['amqp:///vhost', 'no host'],
  ['amqp://u:s3cret@broker/?prefetch=1', 'unknown parameter `prefetch`'],
  ['amqp://u:s3cret@broker/?timeout=soon', 'must be a whole number'],
  ['amqp://u:s3cret%zz@broker/', 'percent sign'],
  ['amqp://broker/?frame_max=10', 'below 4096'],
])('%s is refused: %s', (text, problem) => {
  expect(parseAddress(text)).toContain(problem)
  expect(parseAddress(text)).not.toContain('s3cret')
})

test('an address is shown without its credentials', () => {
  const address = parseAddress('amqps://u:s3cret@[::1]/%2f')
  expect(typeof address === 'string' ? address : shownAddress(address)).toBe('amqps://[::1]:5671/%2F')
})
