import { expect, test } from 'vitest'
import { Timestamp } from '../event/timestamp.ts'
import { parseDnsMessage, writeDnsQuery } from './dns-message.ts'
import { parseDnstap } from './dnstap.ts'

// A resolver's query for a name whose validation failed.
const query = Buffer.from(
  'ChVqYW1lcy1WaXJ0dWFsLU1hY2hpbmUSC0JJTkQgOS4xNi4zGgBy5wEIAxACGAEiEAAAAAAAAAAAAAAAAAAAAAAqECABBQJwlAAAAAAAAAAAADAw8+0CODVA7+zq9wVNMU3WNlI2kwIAAAABAAAAAAABCWZhY2Vib29rMQNjb20AAAEAAQAAKQIAAACAAAAMAAoACOxjCAG9zVgzWgUDY29tAGAAbQAAAAByZLM4AAAAAQAAAAAAAQJoNQdleGFtcGxlA2NvbQAABgABAAApBNABAUAAADkADwA1AAlubyBTRVAgbWF0Y2hpbmcgdGhlIERTIGZvdW5kIGZvciBkbnNzZWMtZmFpbGVkLm9yZy54AQ==',
  'base64',
)
const header = { aa: false, ad: false, anCount: 0, arCount: 1, cd: false, nsCount: 0, opcode: 0, qdCount: 1, qr: 0 }

test('a message of a resolver with options and errors', () => {
  expect(parseDnstap(query, false)).toEqual({
    dataType: 'Message',
    dataTypeId: 1,
    extraInfo: '',
    messageType: 'ResolverQuery',
    messageTypeId: 3,
    queryZone: 'com.',
    requestData: {
      fullRcode: 0,
      header: { ...header, id: 37634, ra: false, rcode: 0, rd: false, tc: false },
      opt: {
        do: true,
        ednsVersion: 0,
        extendedRcode: 0,
        options: [{ optCode: 10, optName: 'Cookie', optValue: '7GMIAb3NWDM=' }],
        udpPayloadSize: 512,
      },
      question: [{ class: 'IN', domainName: 'facebook1.com.', questionType: 'A', questionTypeId: 1 }],
      rcodeName: 'NoError',
    },
    responseAddress: '2001:502:7094::30',
    responseData: {
      fullRcode: 16,
      header: { ...header, id: 45880, ra: false, rcode: 16, rd: false, tc: false },
      opt: {
        do: false,
        ednsVersion: 1,
        extendedRcode: 1,
        ede: [
          {
            extraText: 'no SEP matching the DS found for dnssec-failed.org.',
            infoCode: 9,
            purpose: 'DNSKEY Missing',
          },
        ],
        udpPayloadSize: 1232,
      },
      question: [{ class: 'IN', domainName: 'h5.example.com.', questionType: 'SOA', questionTypeId: 6 }],
      rcodeName: 'BADSIG',
    },
    responsePort: 53,
    serverId: 'james-Virtual-Machine',
    serverVersion: 'BIND 9.16.3',
    socketFamily: 'INET6',
    socketProtocol: 'UDP',
    sourceAddress: '::',
    sourcePort: 46835,
    time: 1_593_489_007_920_014_129n,
    timePrecision: 'ns',
    timestamp: Timestamp.fromNanoseconds(1_593_489_007_920_014_129n),
  })
})

test.each([
  ['01', 'A', '0a000001', '10.0.0.1'],
  ['1c', 'AAAA', '20010db8000000000000000000000001', '2001:db8::1'],
  ['05', 'CNAME', '0161c00c', 'a.x.'],
  ['0f', 'MX', '000a016dc00c', '10 m.x.'],
  ['10', 'TXT', '02612203622062', '"a\\"" "b b"'],
  ['21', 'SRV', '000100020050c00c', '1 2 80 x.'],
  ['ff', 'ANY', 'abcd', '\\# 2 abcd'],
])('a record of type %s (%s)', (type, _name, data, text) => {
  const length = (data.length / 2).toString(16).padStart(4, '0')
  const bytes = Buffer.from(`000081800000000100000000${'017800'}00${type}000100000e10${length}${data}`, 'hex')
  expect(parseDnsMessage(bytes).answers).toEqual([
    { name: 'x.', type: Number.parseInt(type, 16), class: 1, ttl: 3600, data: text },
  ])
})

test.each([
  ['too short', '0000'],
  ['a name that points at itself', '000000000001000000000000c00c00010001'],
  ['a record longer than the message', '00008180000000010000000001780000010001000000000010aa'],
])('%s is not a message', (_, hex) => {
  expect(() => parseDnsMessage(Buffer.from(hex, 'hex'))).toThrow()
})

test('a question is read back unchanged', () => {
  const bytes = writeDnsQuery(7, { name: 'www.example.com', type: 28, class: 1 }, true)
  if (typeof bytes === 'string') throw new Error(bytes)
  const message = parseDnsMessage(bytes)
  expect(message).toMatchObject({ id: 7, questions: [{ name: 'www.example.com.', type: 28, class: 1 }] })
  expect(message.extension?.payloadSize).toBe(1232)
  expect(writeDnsQuery(7, { name: 'a..b', type: 1, class: 1 }, true)).toContain('not a domain name')
})
