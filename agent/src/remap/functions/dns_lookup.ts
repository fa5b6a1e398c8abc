// Function `dns_lookup`.

import { randomInt } from 'node:crypto'
import { Float, fieldNames, type Value, type ValueObject } from '../../event/value.ts'
import {
  type DnsMessage,
  dnsClassNumber,
  dnsTypeNumber,
  headerFields,
  MalformedDnsMessage,
  parseDnsMessage,
  questionFields,
  recordFields,
  responseCodeName,
  writeDnsQuery,
} from '../../formats/dns-message.ts'
import { writeJson } from '../../formats/json.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'
import { askNetwork, needsNetwork } from '../network.ts'

const { string, integer, boolean } = kinds
const text = string.or(kinds.null)
const records = kinds.arrayEach(
  kinds.objectOf({
    class: string,
    domainName: string,
    rData: string,
    recordType: string,
    recordTypeId: integer,
    ttl: integer,
  }),
)
const maxKeptMs = 60_000

export const dnsLookup = defineFunction({
  name: 'dns_lookup',
  category: 'System',
  summary: 'Sends a DNS query and returns the complete response.',
  description:
    'Needs `remap.network: true` at the top level of the configuration. The program waits for the response, which is cached as long as its records are valid, for at most a minute. Options: `servers` (addresses, with an optional port after a colon; by default those of the system), `timeout` (seconds per query, 5), `attempts` (2), `tcp` (false), `recurse` (true).',
  parameters: [
    { name: 'value', kind: string, description: 'The domain name.' },
    {
      name: 'qtype',
      kind: string,
      required: false,
      default: 'A',
      description: 'The record type: `A`, `AAAA`, `MX`, `TXT`, ….',
    },
    { name: 'class', kind: string, required: false, default: 'IN', description: 'The record class.' },
    { name: 'options', kind: kinds.object, required: false, default: {}, description: 'Query options.' },
  ],
  returns: kinds.objectOf({
    fullRcode: integer,
    rcodeName: text,
    time: text,
    timePrecision: text,
    header: kinds.objectOf({
      opcode: integer,
      rcode: integer,
      qr: integer,
      aa: boolean,
      tc: boolean,
      rd: boolean,
      ra: boolean,
      ad: boolean,
      cd: boolean,
      qdCount: integer,
      anCount: integer,
      nsCount: integer,
      arCount: integer,
    }),
    question: kinds.arrayEach(
      kinds.objectOf({ class: string, domainName: string, questionType: string, questionTypeId: integer }),
    ),
    answers: records,
    authority: records,
    additional: records,
  }),
  fallible: 'always',
  errors: ['The name, the type, the class or an option is invalid.', 'No name server answered.'],
  pure: false,
  reaches: 'network',
  examples: [
    { source: 'dns_lookup("a..b") ?? "no name"', result: '"no name"' },
    { source: 'dns_lookup("example.com", qtype: "NOPE") ?? "no type"', result: '"no type"' },
    { source: 'dns_lookup("example.com", options: {"tries": 3}) ?? "no option"', result: '"no option"' },
  ],
  compile(call) {
    needsNetwork(call, 'dns_lookup')
    return (name: string, type: string, className: string, given: ValueObject): Result => {
      const typeNumber = dnsTypeNumber(type)
      if (typeNumber === undefined) return failure(`invalid record type: ${type}`)
      const classNumber = dnsClassNumber(className)
      if (classNumber === undefined) return failure(`invalid class: ${className}`)
      const options = optionsOf(given)
      if (typeof options === 'string') return failure(options)
      const question = { name, type: typeNumber, class: classNumber }
      const query = writeDnsQuery(randomInt(65_536), question, options.recurse)
      if (typeof query === 'string') return failure(query)
      const { servers, attempts, timeoutMs, tcp } = options
      const key = `dns ${typeNumber} ${classNumber} ${writeJson(given)} ${name}`
      const patience = timeoutMs * attempts * Math.max(1, servers.length || 3) + 1000
      const request = { kind: 'dns', query, servers, attempts, timeoutMs, tcp } as const
      const { data, problem } = askNetwork(request, key, patience, (answer) => lifetime(answer.data))
      if (data === undefined) return failure(`DNS lookup failed: ${problem}`)
      try {
        return fieldsOf(parseDnsMessage(Buffer.from(data)))
      } catch (error) {
        if (error instanceof MalformedDnsMessage) return failure(`DNS lookup failed: ${error.message}`)
        throw error
      }
    }
  },
})

interface LookupOptions {
  readonly servers: readonly string[]
  readonly timeoutMs: number
  readonly attempts: number
  readonly tcp: boolean
  readonly recurse: boolean
}

/** The options; a sentence if one is invalid. */
function optionsOf(given: ValueObject): LookupOptions | string {
  let options: LookupOptions = { servers: [], timeoutMs: 5000, attempts: 2, tcp: false, recurse: true }
  for (const name of fieldNames(given)) {
    const value = given[name] as Value
    const number = value instanceof Float ? value.value : typeof value === 'number' ? value : Number.NaN
    if (name === 'servers' && Array.isArray(value) && value.every((server) => typeof server === 'string')) {
      options = { ...options, servers: value }
    } else if (name === 'timeout' && number > 0 && number <= 60) options = { ...options, timeoutMs: number * 1000 }
    else if (name === 'attempts' && Number.isInteger(number) && number > 0 && number <= 10) {
      options = { ...options, attempts: number }
    } else if (name === 'tcp' && typeof value === 'boolean') options = { ...options, tcp: value }
    else if (name === 'recurse' && typeof value === 'boolean') options = { ...options, recurse: value }
    else return `invalid option: ${name}`
  }
  return options
}

/** How long the shortest-lived record is valid. */
function lifetime(data: Uint8Array | undefined): number {
  try {
    const message = parseDnsMessage(Buffer.from(data ?? []))
    const lives = [...message.answers, ...message.authorities].map((record) => record.ttl * 1000)
    return Math.min(maxKeptMs, ...lives)
  } catch {
    return 0 // the caller repeats the query and reports the error
  }
}

function fieldsOf(message: DnsMessage): ValueObject {
  const header = headerFields(message)
  return {
    fullRcode: message.responseCode,
    rcodeName: responseCodeName(message.responseCode)?.toUpperCase() ?? null,
    // Like elsewhere, this field is declared as an integer.
    header: { ...header, qr: header['qr'] === 1 },
    question: message.questions.map((question) => questionFields(withoutDot(question))),
    answers: message.answers.map((record) => recordFields(withoutDot(record))),
    authority: message.authorities.map((record) => recordFields(withoutDot(record))),
    additional: message.additional.map((record) => recordFields(withoutDot(record))),
  }
}

function withoutDot<T extends { readonly name: string }>(named: T): T {
  return named.name.endsWith('.') ? { ...named, name: named.name.slice(0, -1) } : named
}
