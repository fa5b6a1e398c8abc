// Reads messages of the domain name system (RFC 1035), and writes questions. Names end in a dot; record data has the zone file format.
// Reading is bounded by the message: a name that points at itself is an error.
// dns-packet is not used: it joins the labels of a name without escapes, so a dot within a label reads as a separator. It leaves the
// data of LOC, CERT, NSEC3PARAM, CSYNC, SVCB, HTTPS, TSIG and others as bytes, detached from the message that their compressed names
// refer to. We would still need our reader for those, in addition to the library.

import { setField, type Value, type ValueObject } from '../event/value.ts'
import { ipText } from './ip.ts'

export interface DnsQuestion {
  readonly name: string
  readonly type: number
  readonly class: number
}

export interface DnsRecord extends DnsQuestion {
  readonly ttl: number
  /** In zone file format. */
  readonly data: string
}

export interface DnsOption {
  readonly code: number
  readonly data: Buffer
}

export interface DnsMessage {
  readonly id: number
  readonly flags: number
  /** Numbers of questions, answers, authorities and additional records in the header. */
  readonly counts: readonly [number, number, number, number]
  /** Includes the upper bits from the option record, if there is one. */
  readonly responseCode: number
  readonly questions: readonly DnsQuestion[]
  readonly answers: readonly DnsRecord[]
  readonly authorities: readonly DnsRecord[]
  /** Without the option record. */
  readonly additional: readonly DnsRecord[]
  readonly extension:
    | { readonly payloadSize: number; readonly ttl: number; readonly options: readonly DnsOption[] }
    | undefined
}

export class MalformedDnsMessage extends Error {}

const typeNumbers: Readonly<Record<string, number>> = {
  A: 1,
  NS: 2,
  CNAME: 5,
  SOA: 6,
  NULL: 10,
  PTR: 12,
  HINFO: 13,
  MX: 15,
  TXT: 16,
  RP: 17,
  AFSDB: 18,
  SIG: 24,
  KEY: 25,
  AAAA: 28,
  LOC: 29,
  SRV: 33,
  NAPTR: 35,
  CERT: 37,
  DNAME: 39,
  OPT: 41,
  DS: 43,
  SSHFP: 44,
  RRSIG: 46,
  NSEC: 47,
  DNSKEY: 48,
  NSEC3: 50,
  NSEC3PARAM: 51,
  TLSA: 52,
  SMIMEA: 53,
  CDS: 59,
  CDNSKEY: 60,
  OPENPGPKEY: 61,
  CSYNC: 62,
  SVCB: 64,
  HTTPS: 65,
  SPF: 99,
  TSIG: 250,
  IXFR: 251,
  AXFR: 252,
  ANY: 255,
  URI: 256,
  CAA: 257,
}
const typeNames = new Map(Object.entries(typeNumbers).map(([name, number]) => [number, name]))
const classNumbers: Readonly<Record<string, number>> = { IN: 1, CH: 3, HS: 4, NONE: 254, ANY: 255 }
const classNames = new Map(Object.entries(classNumbers).map(([name, number]) => [number, name]))

export function dnsTypeNumber(name: string): number | undefined {
  return numberOf(typeNumbers, 'TYPE', name)
}

export function dnsClassNumber(name: string): number | undefined {
  return numberOf(classNumbers, 'CLASS', name)
}

function numberOf(known: Readonly<Record<string, number>>, prefix: string, name: string): number | undefined {
  const upper = name.toUpperCase()
  if (Object.hasOwn(known, upper)) return known[upper]
  const number = upper.startsWith(prefix) ? Number(upper.slice(prefix.length)) : Number.NaN
  return Number.isInteger(number) && number >= 0 && number < 65_536 ? number : undefined
}

function dnsTypeName(type: number): string {
  return typeNames.get(type) ?? `TYPE${type}`
}

function dnsClassName(number: number): string {
  return classNames.get(number) ?? `CLASS${number}`
}

const responseCodes: Readonly<Record<number, string>> = {
  0: 'NoError',
  1: 'FormErr',
  2: 'ServFail',
  3: 'NXDomain',
  4: 'NotImp',
  5: 'Refused',
  6: 'YXDomain',
  7: 'YXRRSet',
  8: 'NXRRSet',
  9: 'NotAuth',
  10: 'NotZone',
  16: 'BADSIG',
  17: 'BADKEY',
  18: 'BADTIME',
  19: 'BADMODE',
  20: 'BADNAME',
  21: 'BADALG',
  22: 'BADTRUNC',
  23: 'BADCOOKIE',
}

/** The name of a response code; null if unknown. */
export function responseCodeName(code: number): string | null {
  return responseCodes[code] ?? null
}

/** Reads a message; throws a MalformedDnsMessage if it is invalid. */
export function parseDnsMessage(data: Buffer): DnsMessage {
  const reader = new Reader(data)
  const id = reader.u16()
  const flags = reader.u16()
  const counts = [reader.u16(), reader.u16(), reader.u16(), reader.u16()] as const
  const questions: DnsQuestion[] = []
  for (let index = 0; index < counts[0]; index++) {
    questions.push({ name: reader.name(), type: reader.u16(), class: reader.u16() })
  }
  let extension: DnsMessage['extension']
  const records = (count: number): DnsRecord[] => {
    const found: DnsRecord[] = []
    for (let index = 0; index < count; index++) {
      const name = reader.name()
      const type = reader.u16()
      const number = reader.u16()
      const ttl = reader.u32()
      const end = reader.u16() + reader.at
      reader.check(end)
      if (type === typeNumbers['OPT']) {
        const options: DnsOption[] = []
        while (reader.at < end) options.push({ code: reader.u16(), data: reader.bytes(reader.u16()) })
        extension = { payloadSize: number, ttl, options }
      } else {
        found.push({ name, type, class: number, ttl, data: recordText(reader, type, end) })
      }
      reader.at = end
    }
    return found
  }
  const answers = records(counts[1])
  const authorities = records(counts[2])
  const additional = records(counts[3])
  const upper = extension === undefined ? 0 : extension.ttl >>> 24
  const responseCode = (upper << 4) | (flags & 15)
  return { id, flags, counts, responseCode, questions, answers, authorities, additional, extension }
}

class Reader {
  readonly #data: Buffer
  at = 0

  constructor(data: Buffer) {
    this.#data = data
  }

  check(end: number): void {
    if (end > this.#data.length) throw new MalformedDnsMessage('unexpected end of the message')
  }

  #take(count: number): number {
    this.check(this.at + count)
    this.at += count
    return this.at - count
  }

  u8(): number {
    return this.#data[this.#take(1)] as number
  }

  u16(): number {
    return this.#data.readUInt16BE(this.#take(2))
  }

  u32(): number {
    return this.#data.readUInt32BE(this.#take(4))
  }

  bytes(count: number): Buffer {
    const start = this.#take(count)
    return this.#data.subarray(start, start + count)
  }

  name(): string {
    let text = ''
    let at = this.at
    let end: number | undefined
    for (let jumps = 0; ; ) {
      this.check(at + 1)
      const length = this.#data[at] as number
      if (length >= 0xc0) {
        this.check(at + 2)
        end ??= at + 2
        at = this.#data.readUInt16BE(at) & 0x3fff
        if (++jumps > 64) throw new MalformedDnsMessage('a name points at itself')
        continue
      }
      if (length > 63) throw new MalformedDnsMessage('a label is too long')
      at++
      if (length === 0) break
      this.check(at + length)
      for (const byte of this.#data.subarray(at, at + length)) text += labelCharacter(byte)
      text += '.'
      if (text.length > 1100) throw new MalformedDnsMessage('a name is too long')
      at += length
    }
    this.at = end ?? at
    return text === '' ? '.' : text
  }
}

function labelCharacter(byte: number): string {
  if (byte < 0x21 || byte > 0x7e) return `\\${String(byte).padStart(3, '0')}`
  const character = String.fromCharCode(byte)
  return '."\\();@$'.includes(character) ? `\\${character}` : character
}

function quoted(bytes: Buffer): string {
  let text = ''
  for (const byte of bytes) {
    const character = String.fromCharCode(byte)
    if (byte < 0x20 || byte > 0x7e) text += `\\${String(byte).padStart(3, '0')}`
    else text += character === '"' || character === '\\' ? `\\${character}` : character
  }
  return `"${text}"`
}

function time(seconds: number): string {
  return new Date(seconds * 1000)
    .toISOString()
    .replace(/\.000Z$/, '')
    .replaceAll(/[-:T]/g, '')
}

function recordText(reader: Reader, type: number, end: number): string {
  const rest = (): Buffer => reader.bytes(end - reader.at)
  const string = (): string => quoted(reader.bytes(reader.u8()))
  switch (typeNames.get(type)) {
    case 'A':
    case 'AAAA':
      return ipText(Uint8Array.from(reader.bytes(type === 1 ? 4 : 16)))
    case 'NS':
    case 'CNAME':
    case 'PTR':
    case 'DNAME':
      return reader.name()
    case 'MX':
    case 'AFSDB':
      return `${reader.u16()} ${reader.name()}`
    case 'SOA': {
      const names = `${reader.name()} ${reader.name()}`
      return `${names} ${reader.u32()} ${reader.u32()} ${reader.u32()} ${reader.u32()} ${reader.u32()}`
    }
    case 'RP':
      return `${reader.name()} ${reader.name()}`
    case 'TXT':
    case 'SPF':
    case 'HINFO': {
      const strings: string[] = []
      while (reader.at < end) strings.push(string())
      return strings.join(' ')
    }
    case 'SRV':
      return `${reader.u16()} ${reader.u16()} ${reader.u16()} ${reader.name()}`
    case 'NAPTR':
      return `${reader.u16()} ${reader.u16()} ${string()} ${string()} ${string()} ${reader.name()}`
    case 'URI':
      return `${reader.u16()} ${reader.u16()} ${quoted(rest())}`
    case 'CAA': {
      const flags = reader.u8()
      const tag = reader.bytes(reader.u8()).toString('latin1')
      return `${flags} ${tag} ${quoted(rest())}`
    }
    case 'DS':
    case 'CDS':
      return `${reader.u16()} ${reader.u8()} ${reader.u8()} ${rest().toString('hex').toUpperCase()}`
    case 'DNSKEY':
    case 'CDNSKEY':
    case 'KEY':
      return `${reader.u16()} ${reader.u8()} ${reader.u8()} ${rest().toString('base64')}`
    case 'SSHFP':
      return `${reader.u8()} ${reader.u8()} ${rest().toString('hex').toUpperCase()}`
    case 'TLSA':
    case 'SMIMEA':
      return `${reader.u8()} ${reader.u8()} ${reader.u8()} ${rest().toString('hex').toUpperCase()}`
    case 'RRSIG':
    case 'SIG': {
      const head = `${dnsTypeName(reader.u16())} ${reader.u8()} ${reader.u8()} ${reader.u32()}`
      const times = `${time(reader.u32())} ${time(reader.u32())}`
      return `${head} ${times} ${reader.u16()} ${reader.name()} ${rest().toString('base64')}`
    }
    case 'NSEC': {
      const next = reader.name()
      return [next, ...typesIn(rest())].join(' ')
    }
    default: {
      // RFC 3597
      const bytes = rest()
      return bytes.length === 0 ? '\\# 0' : `\\# ${bytes.length} ${bytes.toString('hex')}`
    }
  }
}

/** The record types in a bit map (RFC 4034). */
function typesIn(map: Buffer): string[] {
  const names: string[] = []
  for (let at = 0; at + 2 <= map.length; ) {
    const window = map[at] as number
    const length = map[at + 1] as number
    for (let index = 0; index < length * 8; index++) {
      const byte = map[at + 2 + (index >> 3)] ?? 0
      if (byte & (0x80 >> (index & 7))) names.push(dnsTypeName(window * 256 + index))
    }
    at += 2 + length
  }
  return names
}

/** The bytes of a question; a sentence if the name is invalid. */
export function writeDnsQuery(id: number, question: DnsQuestion, recursive: boolean): Buffer | string {
  const labels = question.name === '.' ? [] : question.name.replace(/\.$/, '').split('.')
  const parts: Buffer[] = []
  for (const label of labels) {
    const bytes = Buffer.from(label)
    if (bytes.length === 0 || bytes.length > 63) return `${question.name} is not a domain name`
    parts.push(Buffer.of(bytes.length), bytes)
  }
  const name = Buffer.concat([...parts, Buffer.of(0)])
  if (name.length > 255) return `${question.name} is not a domain name`
  const head = Buffer.alloc(12)
  head.writeUInt16BE(id, 0)
  head.writeUInt16BE(recursive ? 0x0100 : 0, 2)
  head.writeUInt16BE(1, 4)
  head.writeUInt16BE(1, 10)
  const tail = Buffer.alloc(4)
  tail.writeUInt16BE(question.type, 0)
  tail.writeUInt16BE(question.class, 2)
  // An option record that allows UDP responses of 1232 bytes.
  return Buffer.concat([head, name, tail, Buffer.from([0, 0, 41, 0x04, 0xd0, 0, 0, 0, 0, 0, 0])])
}

/** The header as fields, with the complete response code. */
export function headerFields(message: DnsMessage): ValueObject {
  const { flags, counts } = message
  const bit = (position: number): boolean => ((flags >> position) & 1) === 1
  return {
    aa: bit(10),
    ad: bit(5),
    anCount: counts[1],
    arCount: counts[3],
    cd: bit(4),
    nsCount: counts[2],
    opcode: (flags >> 11) & 15,
    qdCount: counts[0],
    qr: (flags >> 15) & 1,
    ra: bit(7),
    rcode: message.responseCode,
    rd: bit(8),
    tc: bit(9),
  }
}

export function questionFields(question: DnsQuestion): ValueObject {
  return {
    class: dnsClassName(question.class),
    domainName: question.name,
    questionType: dnsTypeName(question.type),
    questionTypeId: question.type,
  }
}

export function recordFields(record: DnsRecord): ValueObject {
  return {
    class: dnsClassName(record.class),
    domainName: record.name,
    rData: record.data,
    recordType: dnsTypeName(record.type),
    recordTypeId: record.type,
    ttl: record.ttl,
  }
}

const optionNames: Readonly<Record<number, string>> = {
  1: 'LLQ',
  2: 'UL',
  3: 'NSID',
  5: 'DAU',
  6: 'DHU',
  7: 'N3U',
  8: 'Subnet',
  9: 'Expire',
  10: 'Cookie',
  11: 'Keepalive',
  12: 'Padding',
  13: 'Chain',
  14: 'KeyTag',
}
const extendedErrorCode = 15
const extendedErrors = [
  'Other Error',
  'Unsupported DNSKEY Algorithm',
  'Unsupported DS Digest Type',
  'Stale Answer',
  'Forged Answer',
  'DNSSEC Indeterminate',
  'DNSSEC Bogus',
  'Signature Expired',
  'Signature Not Yet Valid',
  'DNSKEY Missing',
  'RRSIGs Missing',
  'No Zone Key Bit Set',
  'NSEC Missing',
  'Cached Error',
  'Not Ready',
  'Blocked',
  'Censored',
  'Filtered',
  'Prohibited',
  'Stale NXDomain Answer',
  'Not Authoritative',
  'Not Supported',
  'No Reachable Authority',
  'Network Error',
  'Invalid Data',
] as const

/** The option record as fields. Extended errors (RFC 8914) are in the separate field `ede`. */
export function extensionFields(extension: NonNullable<DnsMessage['extension']>): ValueObject {
  const errors: Value[] = []
  const options: Value[] = []
  for (const { code, data } of extension.options) {
    if (code === extendedErrorCode && data.length >= 2) {
      const infoCode = data.readUInt16BE(0)
      const entry: ValueObject = { infoCode }
      let end = data.length
      while (end > 2 && data[end - 1] === 0) end--
      const text = data.subarray(2, end).toString('utf8')
      if (text !== '') entry['extraText'] = text
      const purpose = extendedErrors[infoCode]
      if (purpose !== undefined) entry['purpose'] = purpose
      errors.push(entry)
    } else {
      options.push({
        optCode: code,
        optName: optionNames[code] ?? `Unknown(${code})`,
        optValue: data.toString('base64'),
      })
    }
  }
  const fields: ValueObject = {
    do: ((extension.ttl >> 15) & 1) === 1,
    ednsVersion: (extension.ttl >> 16) & 255,
    extendedRcode: extension.ttl >>> 24,
    udpPayloadSize: extension.payloadSize,
  }
  if (errors.length > 0) setField(fields, 'ede', errors)
  if (options.length > 0) setField(fields, 'options', options)
  return fields
}
