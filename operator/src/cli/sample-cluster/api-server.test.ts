import { expect, test } from 'vitest'
import { SampleApiServer } from './api-server.ts'
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
