// Functions that need the network, with servers on loopback. The servers run in a separate thread, because a waiting
// program blocks its thread.

import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { noMetadata } from '../event/log.ts'
import { isFailure } from './function.ts'
import { compileProgram } from './program.ts'
import { valueText } from './text.ts'

const servers = `
  const { parentPort } = require('node:worker_threads')
  const dgram = require('node:dgram'), http = require('node:http'), net = require('node:net')
  // Answers every question by one record of the address 10.0.0.1; over UDP by a cut answer if the name begins with "long".
  const answer = (query, cut) => {
    const question = query.subarray(12, query.length - 11)
    const head = Buffer.from([query[0], query[1], cut ? 0x83 : 0x81, 0x80, 0, 1, 0, cut ? 0 : 1, 0, 0, 0, 0])
    const record = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 10, 0, 0, 1])
    return Buffer.concat(cut ? [head, question] : [head, question, record])
  }
  const tcp = net.createServer((socket) => socket.on('data', (data) => {
    const reply = answer(data.subarray(2), false)
    const length = Buffer.alloc(2); length.writeUInt16BE(reply.length)
    socket.write(Buffer.concat([length, reply]))
  }))
  const udp = dgram.createSocket('udp4')
  udp.on('message', (query, from) => {
    const label = query.subarray(13, 13 + query[12]).toString()
    if (label !== 'silent') udp.send(answer(query, label === 'long'), from.port, from.address)
  })
  let requests = 0
  const web = http.createServer((request, response) => {
    let body = ''
    request.on('data', (piece) => { body += piece })
    request.on('end', () => response.end([request.method, request.url, request.headers['x-a'], body, ++requests].join(' ')))
  })
  tcp.listen(0, '127.0.0.1', () => udp.bind(tcp.address().port, '127.0.0.1', () => web.listen(0, '127.0.0.1', () =>
    parentPort.postMessage({ dns: tcp.address().port, web: web.address().port }))))
`

let worker: Worker
let ports: { dns: number; web: number }

beforeAll(async () => {
  worker = new Worker(servers, { eval: true })
  const [message] = await once(worker, 'message')
  ports = message as typeof ports
})

afterAll(() => worker.terminate())

function run(source: string): string {
  const compiled = compileProgram(source, { keepResult: true, network: true })
  if (!compiled.ok) throw new TypeError(compiled.rendered)
  const result = compiled.program.run({}, noMetadata, true)
  return isFailure(result) ? `fails: ${result.message}` : valueText(result)
}

const lookup = (name: string, options = ''): string =>
  `dns_lookup!("${name}", options: {"servers": ["127.0.0.1:${ports.dns}"]${options}})`

test('a query over UDP, and one with an answer over TCP', () => {
  const record =
    '{ "class": "IN", "domainName": "a.test", "rData": "10.0.0.1", "recordType": "A", "recordTypeId": 1, "ttl": 60 }'
  expect(run(`${lookup('a.test')}.answers`)).toBe(`[${record}]`)
  expect(run(`${lookup('long.test')}.answers[0].rData`)).toBe('"10.0.0.1"')
  expect(run(`${lookup('b.test', ', "tcp": true')}.question[0].domainName`)).toBe('"b.test"')
  expect(run(`${lookup('b.test')}.rcodeName`)).toBe('"NOERROR"')
  expect(run(`answer = ${lookup('b.test')}\n[answer.header.qr, answer.time, exists(answer.time)]`)).toBe(
    '[true, null, false]',
  )
})

test('a server that does not respond is abandoned', () => {
  expect(run(lookup('silent.test', ', "timeout": 0.05, "attempts": 2'))).toContain('no answer in time')
})

test('an HTTP request; the response to GET is cached, that to POST is not', () => {
  const url = `http://127.0.0.1:${ports.web}/x?y=1`
  const first = run(`http_request!("${url}", headers: {"x-a": "b"})`)
  expect(first).toBe('"GET /x?y=1 b  1"')
  expect(run(`http_request!("${url}", headers: {"x-a": "b"})`)).toBe(first)
  expect(run(`http_request!("${url}", method: "POST", body: "two words")`)).toBe('"POST /x?y=1  two words 2"')
  expect(run(`http_request!("${url}", method: "POST", body: "two words")`)).toBe('"POST /x?y=1  two words 3"')
})

test('a method of WebDAV', () => {
  expect(run(`http_request!("http://127.0.0.1:${ports.web}/x", method: "propfind")`)).toContain('"PROPFIND /x')
  expect(run(`http_request!("http://127.0.0.1:${ports.web}/x", method: "trace")`)).toContain('unsupported HTTP method')
})

test('the error of a failed request contains headers, but no secret ones', () => {
  const failed = run('http_request!("http://127.0.0.1:1/", headers: {"authorization": "abc", "x-a": "b"})')
  expect(failed).toContain('(headers: authorization: [REDACTED], x-a: b)')
  expect(failed).not.toContain('abc')
})

test('without permission the program does not compile, and says how to permit it', () => {
  const compiled = compileProgram('reverse_dns!("10.0.0.1")')
  expect(compiled.ok ? '' : compiled.rendered).toContain('remap.network: true')
})
