import { expect, test } from 'vitest'
import { matchesLabels, SampleApiServer } from './api-server.ts'
import { sampleObjects } from './pods.ts'

const names = async (url: string) =>
  ((await (await fetch(url)).json()) as { items: { metadata: { name: string } }[] }).items.map(
    (item) => item.metadata.name,
  )

test('lists are filtered by fields and labels, and a pod is read by its name', async () => {
  await using server = new SampleApiServer(sampleObjects('shop'))
  const url = `${await server.open()}/api/v1`
  const [web = '', payments = ''] = await names(`${url}/pods`)
  expect(await names(`${url}/pods?labelSelector=${encodeURIComponent('app in (web,api),team!=money')}`)).toEqual([web])
  expect(await names(`${url}/pods?fieldSelector=metadata.namespace%3Dshop,spec.nodeName%3Dlaptop`)).toEqual([
    web,
    payments,
  ])
  expect(await names(`${url}/pods?fieldSelector=metadata.namespace%3Dother`)).toEqual([])
  expect((await fetch(`${url}/namespaces/shop/pods/${web}`)).status).toBe(200)
  expect((await fetch(`${url}/namespaces/shop/pods/nobody`)).status).toBe(404)
})

test.each([
  ['a=b', true],
  ['a==b', true],
  ['a!=b', false],
  ['c!=x', true],
  ['a', true],
  ['!a', false],
  ['!c', true],
  ['a in (x, b)', true],
  ['a notin (x,b)', false],
  ['c notin (x)', true],
  ['a=b,d=e', true],
  ['', true],
])('labels a=b, d=e match "%s": %s', (selector, matches) => {
  expect(matchesLabels({ a: 'b', d: 'e' }, selector)).toBe(matches)
})
